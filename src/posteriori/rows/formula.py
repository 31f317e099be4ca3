"""Formulas: "sick ~ age + C(region) + age:bmi" and a data frame, as features and a target.

The language is that of the formulaic package (similar to R's). A formula is code: do not evaluate
one from an untrusted source. Columns are read as in any data frame, so a formula fitted on pandas
predicts on polars. A categorical column that is a term of its own stays a column of levels, which
the design codes without a one-hot matrix; all else becomes numbers.
"""

import ast
import builtins
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.random import default_rng

from posteriori.errors import (
    ColumnNameError,
    ColumnTypeError,
    LevelError,
    MissingValueError,
    ParameterError,
    PosterioriError,
)
from posteriori.rows.block import is_dask
from posteriori.rows.dask import scan_dask
from posteriori.rows.features import as_frame, read_features
from posteriori.rows.in_memory import MemoryRows, check_text_columns
from posteriori.rows.schema import HandleUnknown, Roles, Schema, known_levels, listed
from posteriori.rows.source import SourceRows

_CODED_COLUMN = re.compile(r"C\((\w+)\)")

_COLOURS = re.compile(r"\x1b\[[0-9;]*m|[⧛⧚]")

_FILL_IN = "Fill in or drop the rows with missing entries first; a formula drops none."

_QUOTED = re.compile(r"`([^`]+)`")

_SPELLED = re.compile(r"""\bQ\(['"]([^'"]+)['"]\)""")


@dataclass(frozen=True, slots=True)
class Factor:
    """A column whose levels are a term by themselves: `region`, or `C(year)` of numbers."""

    name: str
    column: str
    levels: tuple[Any, ...]

    def of(self, frame: Any, handle_unknown: HandleUnknown) -> Any:
        """The level of each row, as formulaic names it in the design."""
        known = _of_known_levels(_whole(frame[self.column]), self.levels, handle_unknown)
        levels = _formulaic().pandas.Categorical(known, self.levels)
        return levels.rename_categories([f"T.{level}" for level in self.levels])


@dataclass(frozen=True, eq=False)
class Formula:
    """The right side of a formula as it was fitted; can be pickled.

    `schema` has the columns of the frame that it uses, `names` the columns it makes of them, and
    `intercept` says whether the model is to have one (not after `- 1` or `+ 0`). `data` has the
    columns of the fit, which are not pickled.
    """

    text: str
    schema: Schema
    names: tuple[str, ...]
    intercept: bool
    factors: tuple[Factor, ...]
    spec: Any
    data: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "data": None}

    def apply(self, data: Any, handle_unknown: HandleUnknown = "error") -> Any:
        """The features of new rows, coded as in the fit; columns it does not use are ignored.

        A level that was not in the fit is an error or, with "reference", taken for the first.
        """
        frame, _ = _read(data, self.schema.names, self.text, self.schema, handle_unknown)
        X, _ = _evaluate(self.spec, frame, self.text, handle_unknown)
        levels = {factor.name: factor.of(frame, handle_unknown) for factor in self.factors}
        return X.assign(**levels)[list(self.names)]

    def target(self, data: Any) -> Any:
        """The target of new rows: the left side of the formula."""
        columns = list(_as_frame(data, self.text).columns)
        return _target(_parsed(self.text, columns)[0], data, columns, self.text)


@dataclass(frozen=True, eq=False)
class FormulaRows:
    """What a formula makes of a data frame: features `X` (a pandas frame), target `y`, and the
    `formula` that makes the same of other frames. Of a source, `X` is a source with the target."""

    X: Any
    y: Any
    formula: Formula


def read_formula(formula: str, data: Any) -> FormulaRows:
    """The features and the target that a formula makes of a data frame.

    The target is the column itself where the left side is a name, else the value of the expression.
    A missing entry in a column that is used is an error: rows are never dropped.

    >>> import polars as pl
    >>> frame = pl.DataFrame({"sick": ["no", "yes", "no"], "age": [30, 60, 40], "bmi": [20, 30, 25],
    ...                       "region": ["north", "south", "north"]})
    >>> rows = read_formula("sick ~ age + region + age:bmi", frame)
    >>> rows.X
        age   region  age:bmi
    0  30.0  T.north    600.0
    1  60.0  T.south   1800.0
    2  40.0  T.north   1000.0
    >>> rows.y.to_list(), rows.formula.intercept
    (['no', 'yes', 'no'], True)
    >>> rows.formula.apply(frame.select("region", "bmi", "age").head(1))
        age   region  age:bmi
    0  30.0  T.north    600.0
    """
    if isinstance(data, SourceRows) or is_dask(data):
        return _of_source(formula, data)
    columns = list(_as_frame(data, formula).columns)
    target, terms, used = _split(formula, columns)
    frame, schema = _read(data, used, formula)
    X, fitted = _fit(formula, terms, frame, schema)
    own = _as_frame(data, formula)
    fitted = replace(fitted, data=(own.select(used) if used else own).to_native())
    return FormulaRows(X, _target(target, data, columns, formula), fitted)


def _split(text: str, columns: Sequence[str]) -> tuple[Any, list[Any], list[str]]:
    """The target, the terms, and the columns that the terms use."""
    target, terms = _parsed(text, columns)
    if not terms:
        raise ParameterError(
            f"The formula {text!r} has no terms.", "Name a column, or write '~ 1'."
        )
    return target, terms, _columns_of(terms, columns, text)


def _fit(text: str, terms: list[Any], frame: Any, schema: Schema) -> tuple[Any, Formula]:
    """The features that terms make of a frame, and the fitted formula."""
    factors = _lone_factors(terms, frame)
    taken = {factor.name for factor in factors}
    X, spec = _evaluate(_spec([term for term in terms if str(term) not in taken]), frame, text)
    made = {
        str(term): [spec.column_names[i] for i in places]
        for term, places in spec.term_indices.items()
    }
    wanted = [str(term) for term in terms if not _is_intercept(term)]
    names = [name for term in wanted for name in made.get(term, [term])]
    X = X.assign(**{factor.name: factor.of(frame, "error") for factor in factors})[names]
    intercept = any(map(_is_intercept, terms))
    return X, Formula(text, schema, tuple(names), intercept, factors, spec)


# Formulas of datasets that are read batch by batch.


def _of_source(text: str, data: Any) -> FormulaRows:
    """The rows of `scan` or of a Dask data frame, whose features a formula makes batch by batch."""
    source = scan_dask(data, Roles()) if is_dask(data) else data
    known = source.roles.columns or source.discover().schema.names
    target, terms, used = _split(text, [*known, *source.roles.others])
    if not _is_name(target) or source.roles.targets not in ((), (str(target),)):
        raise ParameterError(
            f"The target of the formula {text!r} is not that of the rows.",
            "Name the column of the target on its left side, and the same or none in scan().",
        )
    rows = source.with_columns(used, str(target))
    if not used:
        raise ParameterError(
            f"The formula {text!r} uses no column.", "Fit it to a data frame in memory."
        )
    columns = replace(rows, real=True).discover()  # of which the target does not matter
    columns.check_text()
    example = _example(columns.schema)
    X, formula = _fit(text, terms, example, columns.schema)
    _check_row_wise(text, terms, X, example, columns.schema)
    schema, rows = read_features(X).schema, source.with_columns(used, str(target))
    return FormulaRows(replace(rows, known_schema=schema, prepare=formula.apply), None, formula)


def _example(schema: Schema) -> Any:
    """Rows whose two halves have every level, of which a formula makes the same as of any rows."""
    half, random = max(8, *(len(column.levels) for column in schema.columns)), default_rng(0)
    pandas, columns = _formulaic().pandas, {}
    for column in schema.columns:
        if column.kind == "categorical":
            codes = np.arange(2 * half) % half % len(column.levels)
            columns[column.name] = pandas.Categorical.from_codes(codes, column.levels)
        else:
            columns[column.name] = random.uniform(size=2 * half)
    return pandas.DataFrame(columns)


def _check_row_wise(text: str, terms: list[Any], X: Any, example: Any, schema: Schema) -> None:
    """An error for terms that give something else for two halves of the rows than for all."""
    half = len(X) // 2
    halves = [_fit(text, terms, part, schema)[0] for part in (example[:half], example[half:])]
    both = _formulaic().pandas.concat(halves)
    for name, values in X.items():
        found, is_number = both.get(name, values[:0]), values.dtype.kind == "f"
        same = len(found) == len(values) and (
            np.allclose(values, found, equal_nan=True) if is_number else values.equals(found)
        )
        if not same:
            raise ParameterError(
                f"The term {name!r} of the formula {text!r} is not made row by row: its value "
                "depends on other rows.",
                "Fit to a data frame in memory; or compute the column before scan(). For levels "
                "of numbers, write them as text.",
            )


@cache
def _formulaic() -> Any:
    """The parts of formulaic and pandas that are used here."""
    try:
        return SimpleNamespace(
            base=import_module("formulaic"),
            pandas=import_module("pandas"),
            transforms=import_module("formulaic.transforms"),
            types=import_module("formulaic.materializers.types"),
        )
    except ImportError as error:
        raise ParameterError(
            f"A formula needs the formulaic package ({error}).",
            'Install it: pip install "posteriori[formula]". Or pass X and y.',
        ) from error


def _as_frame(data: Any, text: str) -> Any:
    frame = as_frame(data)
    if frame is None:
        raise ColumnTypeError(
            f"The formula {text!r} names columns, but a {type(data).__name__} has no names.",
            "Pass a data frame: pandas, polars or a pyarrow table.",
        )
    return frame


def _parsed(text: str, columns: Sequence[str]) -> tuple[Any, list[Any]]:
    """The term on the left side, and those on the right."""
    with _named_errors(text):
        found = _formulaic().base.Formula(
            text, _context={"__formulaic_variables_available__": list(columns)}
        )
    one_sided = not hasattr(found, "lhs")
    if one_sided or len(list(found.lhs)) != 1 or isinstance(found.rhs, tuple):
        raise ParameterError(
            f"The formula {text!r} is not of the form 'target ~ terms'.",
            "Write one target on the left side of ~, and one sum of terms on the right.",
        )
    return next(iter(found.lhs)), list(found.rhs)


def _spec(terms: list[Any]) -> Any:
    base = _formulaic().base
    simple = base.SimpleFormula(terms)
    return base.ModelSpec(formula=simple, na_action="ignore", output="pandas")


def _is_intercept(term: Any) -> bool:
    """Whether a term of a formula is the constant one."""
    return [factor.eval_method.value for factor in term.factors] == ["literal"]


def _is_name(term: Any) -> bool:
    """Whether a term is a column as it is."""
    return [factor.eval_method.value for factor in term.factors] == ["lookup"]


def _columns_of(terms: list[Any], columns: Sequence[str], text: str) -> list[str]:
    """The columns that terms use; an error for a name that is neither a column nor a function."""
    used: set[str] = set()
    for factor in (factor for term in terms for factor in term.factors):
        if factor.eval_method.value == "lookup":
            used.add(factor.expr)
        elif factor.eval_method.value == "python":
            with _named_errors(text):
                tree = ast.parse(_QUOTED.sub("None", factor.expr), mode="eval")
            used.update(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
            used.update(_QUOTED.findall(factor.expr), _SPELLED.findall(factor.expr))
    functions = _formulaic().transforms.TRANSFORMS
    unseen = used.difference(columns, functions, dir(builtins), ["Q"])
    if "offset" in unseen:
        raise ParameterError(
            f"The formula {text!r} has an offset, which is not a term of the model.",
            "Pass it as an argument, in fit and in predictions: fit(formula, frame, offset=...).",
        )
    if unseen:
        raise _no_column(min(unseen), columns, text)
    if "Intercept" in used:
        raise ColumnNameError(
            f"The formula {text!r} uses a column called 'Intercept', as the constant term is.",
            "Rename the column.",
        )
    return [name for name in columns if name in used]


def _no_column(name: str, columns: Sequence[str], text: str) -> ColumnNameError:
    return ColumnNameError(
        f"The formula {text!r} names '{name}', which is neither a column of the frame nor a "
        "function.",
        f"The columns are {listed(columns)}.",
    )


def _read(
    data: Any,
    names: Sequence[str],
    text: str,
    schema: Schema | None = None,
    handle_unknown: HandleUnknown = "error",
) -> tuple[Any, Schema]:
    """The columns named as a pandas frame of doubles and levels, all present and known."""
    frame, pandas = _as_frame(data, text), _formulaic().pandas
    for name in names:
        if name not in frame.columns:
            raise _no_column(name, frame.columns, text)
    own = frame.select(names).to_native() if names else pandas.DataFrame(index=range(len(frame)))
    table = read_features(own, schema)
    try:
        MemoryRows(table).check_missing()
    except MissingValueError as error:
        raise type(error)(error.args[0], _FILL_IN, error.row) from None
    if schema is None:
        check_text_columns(table)
    columns = {}
    for j, column in enumerate(table.schema.columns):
        values = table.column(j)
        if column.kind != "categorical":
            columns[column.name] = values.astype(np.float64)  # of int8, x ** 2 would overflow
            continue
        if column.unseen is not None and handle_unknown == "error":
            raise _unseen_level(column.name, *column.unseen, column.levels)
        codes = np.maximum(values, 0)
        columns[column.name] = pandas.Categorical.from_codes(codes, column.levels)
    index = data.index if isinstance(data, pandas.DataFrame) else range(table.n_rows)
    return pandas.DataFrame(columns, index=index), table.schema


def _lone_factors(terms: Sequence[Any], frame: Any) -> tuple[Factor, ...]:
    """The factors that are a term of their own and occur in no other, if there is an intercept.

    Those have treatment coding whatever the other terms are, so the design can code them.
    """
    found: list[Factor] = []
    times = Counter(factor.expr for term in terms for factor in term.factors)
    for term in terms if any(map(_is_intercept, terms)) else ():
        factor = term.factors[0]
        coded = factor.eval_method.value == "python" and _CODED_COLUMN.fullmatch(factor.expr)
        name = coded[1] if coded else factor.expr
        if len(term.factors) > 1 or times[factor.expr] > 1 or name not in frame:
            continue
        if hasattr(frame[name], "cat"):
            found.append(Factor(factor.expr, name, tuple(frame[name].cat.categories)))
        elif coded:
            found.append(Factor(factor.expr, name, tuple(np.unique(_whole(frame[name])).tolist())))
    return tuple(found)


def _evaluate(
    spec: Any, frame: Any, text: str, handle_unknown: HandleUnknown = "error"
) -> tuple[Any, Any]:
    """The columns that a specification makes of a frame, and the specification with its state."""
    with _named_errors(text), np.errstate(all="ignore"):
        found = spec.get_model_matrix(frame, context={"C": _coding(handle_unknown)})
    matrix, ones = found.__wrapped__, any(map(_is_intercept, spec.formula))
    return matrix.drop(columns="Intercept") if ones else matrix, found.model_spec


def _coding(handle_unknown: HandleUnknown) -> Callable[..., Any]:
    """formulaic's C(), with an error for levels that were not in the fit; it would ignore them."""
    parts = _formulaic()

    def C(
        data: Any, contrasts: Any = None, *, levels: Any = None, spans_intercept: bool = True
    ) -> Any:
        plain = parts.transforms.C(data, contrasts, levels=levels, spans_intercept=spans_intercept)
        encode = plain.__formulaic_metadata__.encoder

        def encoder(values: Any, *, encoder_state: dict[str, Any], **how: Any) -> Any:
            column = _whole(parts.pandas.Series(getattr(values, "__wrapped__", values)))
            known = encoder_state.get("categories") if levels is None else levels
            column = _of_known_levels(column, known, handle_unknown)
            return encode(column, encoder_state=encoder_state, **how)

        return parts.types.FactorValues(
            data, kind="categorical", spans_intercept=spans_intercept, encoder=encoder
        )

    return C


def _whole(column: Any) -> Any:
    """Whole numbers as such, so that the levels 1.0 and 2.0 are called 1 and 2."""
    if column.dtype.kind != "f" or not (column % 1 == 0).all():
        return column
    return column.astype(np.int64)


def _of_known_levels(
    column: Any, known: Sequence[Any] | None, handle_unknown: HandleUnknown
) -> Any:
    """The column with unseen levels replaced by the first one, or an error that names one."""
    name = "C()" if column.name is None else column.name
    gaps = column.isna().to_numpy()
    if gaps.any():
        raise MissingValueError(
            f"Column '{name}' of the formula has no value in row {int(gaps.argmax())}.", _FILL_IN
        )
    if known is None:
        return column
    unseen = ~column.isin(known).to_numpy()
    if unseen.any() and handle_unknown == "error":
        row = int(unseen.argmax())
        raise _unseen_level(name, row, column.iloc[row : row + 1].tolist()[0], list(known))
    return column.mask(unseen, known[0]) if unseen.any() else column


def _unseen_level(name: object, row: int, level: object, known: Sequence[Any]) -> LevelError:
    return LevelError(
        f"Row {row} has the level {level!r} in column '{name}', which was not in the fit.",
        known_levels(known),
    )


def _target(term: Any, data: Any, columns: Sequence[str], text: str) -> Any:
    """The column itself where a term is a name, else the value of the expression."""
    used = _columns_of([term], columns, text)
    if _is_name(term):
        return _as_frame(data, text)[str(term)].to_native()
    y, _ = _evaluate(_spec([term]), _read(data, used, text)[0], text)
    if y.shape[1] != 1:
        raise ParameterError(
            f"The left side of the formula {text!r} gives {y.shape[1]} columns.",
            "Write the column of labels without C().",
        )
    return y.iloc[:, 0].to_numpy()


@contextmanager
def _named_errors(text: str) -> Iterator[None]:
    """Errors of formulaic, and of what it evaluates, as errors that quote the formula."""
    try:
        yield
    except (PosterioriError, MemoryError):
        raise
    except Exception as error:  # whatever the user's expression may raise
        first = _COLOURS.sub("", str(error)).strip().split("\n")[0].rstrip(".")
        raise ParameterError(
            f"The formula {text!r} cannot be used: {first}.",
            "See https://matthewwardrop.github.io/formulaic/ for what a formula may hold.",
        ) from error
