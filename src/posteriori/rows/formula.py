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
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from posteriori.errors import (
    ColumnNameError,
    ColumnTypeError,
    LevelError,
    MissingValueError,
    ParameterError,
    PosterioriError,
)
from posteriori.rows.features import as_frame, read_features
from posteriori.rows.in_memory import MemoryRows, check_text_columns
from posteriori.rows.schema import Column, Schema, Unseen, known_levels, listed
from posteriori.rows.tables import ColumnTable

_CODED_COLUMN = re.compile(r"C\((\w+)\)")

_FILL_IN = "Fill in or drop the rows with missing entries first; a formula drops none."

_QUOTED = re.compile(r"`([^`]+)`")

_SPELLED = re.compile(r"""\bQ\(['"]([^'"]+)['"]\)""")


@dataclass(frozen=True, slots=True)
class Factor:
    """A column whose levels are a term by themselves: `region`, or `C(year)` of numbers.

    `values` has the levels of a column of numbers in order; None for a categorical column.
    """

    name: str
    column: str
    labels: tuple[str, ...]
    values: tuple[float, ...] | None = None

    def codes(self, table: ColumnTable, unseen: Unseen) -> NDArray[Any]:
        """The level of each row."""
        entries = table.column(table.schema.names.index(self.column))
        if self.values is None:
            return entries
        pandas = _formulaic().pandas
        column = pandas.Series(entries, name=self.column)
        known = _of_known_levels(_whole(column), _whole_numbers(self.values), unseen)
        return cast(NDArray[Any], pandas.Categorical(known, self.values).codes)


def _names_in(factor: Any) -> set[str]:
    """The names that a factor of a formula uses: of columns, and of functions."""
    kind, expr = factor.eval_method.value, factor.expr
    if kind != "python":
        return {expr} if kind == "lookup" else set()
    tree = ast.parse(_QUOTED.sub("None", expr), mode="eval")
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return names.union(_QUOTED.findall(expr), _SPELLED.findall(expr))


def is_intercept(term: Any) -> bool:
    """Whether a term of a formula is the constant one."""
    return [factor.eval_method.value for factor in term.factors] == ["literal"]


def lone_factors(terms: Sequence[Any], table: ColumnTable) -> tuple[Factor, ...]:
    """The factors that are a term of their own and occur in no other, if there is an intercept.

    Those have treatment coding whatever the other terms are, so the design can code them.
    """
    if not any(map(is_intercept, terms)):
        return ()
    times = Counter(factor.expr for term in terms for factor in term.factors)
    alone = [term.factors[0] for term in terms if len(term.factors) == 1]
    found = [_factor(factor, table) for factor in alone if times[factor.expr] == 1]
    return tuple(factor for factor in found if factor is not None)


def _factor(factor: Any, table: ColumnTable) -> Factor | None:
    """The factor of a column of levels, or of a column inside C(); None for anything else."""
    expr = factor.expr
    coded = _CODED_COLUMN.fullmatch(expr) if factor.eval_method.value == "python" else None
    name = coded[1] if coded else expr
    if name not in table.schema.names:
        return None
    j = table.schema.names.index(name)
    column = table.schema.columns[j]
    if column.kind == "categorical":
        return Factor(expr, name, tuple(f"T.{level}" for level in column.levels))
    if coded is None:
        return None
    values = tuple(np.unique(table.columns[j]).astype(np.float64).tolist())
    return Factor(expr, name, tuple(f"T.{level}" for level in _whole_numbers(values)), values)


def _whole_numbers(values: Sequence[float]) -> list[float]:
    """Numbers without a decimal point where all are whole."""
    return [int(value) for value in values] if all(v.is_integer() for v in values) else [*values]


def _unseen_level(name: object, row: int, level: object, known: Sequence[Any]) -> LevelError:
    return LevelError(
        f"Row {row} has the level {level!r} in column '{name}', which was not in the fit.",
        known_levels(known),
    )


def coding(unseen: Unseen) -> Callable[..., Any]:
    """formulaic's C(), with an error for levels that were not in the fit; it would ignore them."""
    pandas, transforms = import_module("pandas"), import_module("formulaic.transforms")
    types = import_module("formulaic.materializers.types")

    def C(
        data: Any, contrasts: Any = None, *, levels: Any = None, spans_intercept: bool = True
    ) -> Any:
        plain = transforms.C(data, contrasts, levels=levels, spans_intercept=spans_intercept)
        encode = plain.__formulaic_metadata__.encoder

        def encoder(values: Any, *, encoder_state: dict[str, Any], **how: Any) -> Any:
            column = _whole(pandas.Series(getattr(values, "__wrapped__", values)))
            known = encoder_state.get("categories") if levels is None else levels
            column = _of_known_levels(column, None if known is None else list(known), unseen)
            return encode(column, encoder_state=encoder_state, **how)

        return types.FactorValues(
            data, kind="categorical", spans_intercept=spans_intercept, encoder=encoder
        )

    return C


def _whole(column: Any) -> Any:
    """Whole numbers as such, so that the levels 1.0 and 2.0 are called 1 and 2."""
    if column.dtype.kind != "f" or not (column % 1 == 0).all():
        return column
    return column.astype(np.int64)


def _of_known_levels(column: Any, known: list[Any] | None, unseen: Unseen) -> Any:
    """The column with unseen levels replaced by the first one, or an error that names one."""
    name = "C()" if column.name is None else column.name
    gaps = column.isna().to_numpy()
    if gaps.any():
        raise MissingValueError(
            f"Column '{name}' of the formula has no value in row {int(gaps.argmax())}.", _FILL_IN
        )
    if known is None:
        return column
    strange = ~column.isin(known).to_numpy()
    if strange.any() and unseen == "error":
        row = int(strange.argmax())
        raise _unseen_level(name, row, column.iloc[row : row + 1].tolist()[0], known)
    return column.mask(strange, known[0]) if strange.any() else column


_COLOURS = re.compile(r"\x1b\[[0-9;]*m|[⧛⧚]")


@dataclass(frozen=True, eq=False)
class Formula:
    """The right side of a formula as it was fitted; can be pickled.

    `schema` has the columns of the frame that it uses, `names` the columns it makes of them, and
    `intercept` says whether the model is to have one (not after `- 1` or `+ 0`).
    """

    text: str
    schema: Schema
    names: tuple[str, ...]
    intercept: bool
    factors: tuple[Factor, ...]
    spec: Any

    def apply(self, data: Any, unseen: Unseen = "error") -> Any:
        """The features of new rows, coded as in the fit; columns it does not use are ignored.

        A level that was not in the fit is an error or, with "reference", taken for the first.
        """
        table = _read(data, self.schema.names, self.text, self.schema, unseen)
        X, _ = _evaluate(self.spec, table, self.text, unseen)
        X = _joined(X, table, self.factors, unseen)[list(self.names)]
        return _indexed(X, data)


@dataclass(frozen=True, eq=False)
class FormulaRows:
    """What a formula makes of a data frame: features `X` (a pandas frame), target `y`, and the
    `formula` that makes the same of other frames."""

    X: Any
    y: Any
    formula: Formula


def read_formula(formula: str, data: Any) -> FormulaRows:
    """The features and the target that a formula makes of a data frame.

    The target is the column as it stands where the left side is a name, else what the expression
    gives. A missing entry in a column that is used is an error: rows are never dropped.

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
    columns = list(_as_frame(data, formula).columns)
    target, terms = _parsed(formula, columns)
    table = _read(data, _columns_of(terms, columns, formula), formula)
    factors = lone_factors(terms, table)
    taken = {factor.name for factor in factors}
    rest = _spec([term for term in terms if str(term) not in taken])
    X, spec = _evaluate(rest, table, formula)
    names = _in_order(terms, spec)
    X = _indexed(_joined(X, table, factors)[names], data)
    if X.shape[1] == 0:
        raise ParameterError(
            f"The formula {formula!r} has no columns except the intercept.",
            "Name at least one column on its right side.",
        )
    intercept = any(map(is_intercept, terms))
    fitted = Formula(formula, table.schema, tuple(names), intercept, factors, spec)
    return FormulaRows(X, _target(target, data, columns, formula), fitted)


@cache
def _formulaic() -> Any:
    """The parts of formulaic and pandas that are used here."""
    try:
        base, pandas = import_module("formulaic"), import_module("pandas")
        functions = import_module("formulaic.transforms").TRANSFORMS
    except ImportError as error:
        raise ParameterError(
            f"A formula needs the formulaic package ({error}).",
            'Install it: pip install "posteriori[formula]". Or pass X and y.',
        ) from error
    return SimpleNamespace(base=base, pandas=pandas, functions=functions)


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


def _columns_of(terms: list[Any], columns: Sequence[str], text: str) -> list[str]:
    """The columns that terms use; an error for a name that is neither a column nor a function."""
    with _named_errors(text):
        used = set().union(*(_names_in(factor) for term in terms for factor in term.factors))
    strange = used.difference(columns, _formulaic().functions, dir(builtins), ["Q"])
    if "offset" in strange:
        raise ParameterError(
            f"The formula {text!r} has an offset, which is no column of the model.",
            "Pass it beside the formula, in fit and in predictions: fit(formula, frame, "
            "offset=...).",
        )
    if strange:
        raise _no_column(min(strange), columns, text)
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
    unseen: Unseen = "error",
) -> ColumnTable:
    """The columns named, with no entry missing and every level known."""
    frame = _as_frame(data, text)
    for name in names:
        if name not in frame.columns:
            raise _no_column(name, frame.columns, text)
    if not names:
        return ColumnTable((), Schema((), named=True), len(frame))
    table = read_features(frame.select(names).to_native(), schema)
    try:
        MemoryRows(table).check_missing()
    except MissingValueError as error:
        raise MissingValueError(error.problem, _FILL_IN) from None
    if schema is None:
        check_text_columns(table)
    columns = enumerate(table.schema.columns)
    entries = tuple(_known(column, table.column(j), unseen) for j, column in columns)
    return ColumnTable(entries, table.schema, table.n_rows)


def _known(column: Column, values: NDArray[Any], unseen: Unseen) -> NDArray[Any]:
    """Entries of a column, without a level that was not in the fit."""
    if column.kind != "categorical" or values.min(initial=0) == 0:
        return values
    if unseen == "error" and column.strange is not None:
        raise _unseen_level(column.name, *column.strange, column.levels)
    return np.maximum(values, 0)


def _evaluate(
    spec: Any, table: ColumnTable, text: str, unseen: Unseen = "error"
) -> tuple[Any, Any]:
    """The columns that a specification makes of a table, and the specification with its state."""
    pandas = _formulaic().pandas
    columns = {
        column.name: pandas.Categorical.from_codes(values, column.levels)
        if column.kind == "categorical"
        else values.astype(np.float64)  # of int8, x ** 2 would overflow
        for column, values in zip(table.schema.columns, table.columns, strict=True)
    }
    frame = pandas.DataFrame(columns, index=range(table.n_rows))
    with _named_errors(text), np.errstate(all="ignore"):
        found = spec.get_model_matrix(frame, context={"C": coding(unseen)})
    matrix, ones = found.__wrapped__, any(map(is_intercept, spec.formula))
    return matrix.drop(columns="Intercept") if ones else matrix, found.model_spec


def _joined(X: Any, table: ColumnTable, factors: Sequence[Factor], unseen: Unseen = "error") -> Any:
    """The columns of numbers and those of levels."""
    from_codes = _formulaic().pandas.Categorical.from_codes
    levels = {f.name: from_codes(f.codes(table, unseen), list(f.labels)) for f in factors}
    return X.assign(**levels)


def _in_order(terms: Sequence[Any], spec: Any) -> list[str]:
    """The columns in the order of the terms; a factor that `spec` lacks is one column."""
    columns = {
        str(term): [spec.column_names[i] for i in places]
        for term, places in spec.term_indices.items()
    }
    wanted = [str(term) for term in terms if not is_intercept(term)]
    return [name for term in wanted for name in columns.get(term, [term])]


def _indexed(X: Any, data: Any) -> Any:
    """The features with the index of the data, if that is a pandas frame."""
    return X.set_axis(data.index) if isinstance(data, _formulaic().pandas.DataFrame) else X


def _target(term: Any, data: Any, columns: Sequence[str], text: str) -> Any:
    """The column as it stands where a term is a name, else what the expression gives."""
    frame = _as_frame(data, text)
    used = _columns_of([term], columns, text)
    if [factor.eval_method.value for factor in term.factors] == ["lookup"]:
        return frame[str(term)].to_native()
    y, _ = _evaluate(_spec([term]), _read(data, used, text), text)
    if y.shape[1] != 1:
        raise ParameterError(
            f"The left side of the formula {text!r} gives {y.shape[1]} columns.",
            "Name a column of labels as it stands, without C().",
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
