"""Factors of a formula: columns of levels that can stay so, and the coding of all others."""

import ast
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from posteriori.errors import LevelError, MissingValueError
from posteriori.rows.schema import Unseen
from posteriori.rows.tables import ColumnTable

_CODED_COLUMN = re.compile(r"C\((\w+)\)")
_QUOTED = re.compile(r"`([^`]+)`")


@dataclass(frozen=True, slots=True)
class Factor:
    """A column whose levels are a term by themselves: `region`, or `C(year)` of numbers.

    `values` has the levels of a column of numbers in order; None for a categorical column.
    """

    name: str
    column: str
    labels: tuple[str, ...]
    values: tuple[float, ...] | None = None

    def codes(self, table: ColumnTable, unseen: Unseen) -> NDArray[np.int32]:
        """The level of each row."""
        entries = table.columns[table.schema.names.index(self.column)]
        if self.values is None:
            return entries.astype(np.int32, copy=False)
        known = np.array(self.values)
        places = np.searchsorted(known, entries).clip(max=len(known) - 1)
        strange = known[places] != entries
        if strange.any() and unseen == "error":
            row = int(strange.argmax())
            (level,) = _whole_numbers([float(entries[row])])
            raise unseen_level(self.column, row, level, _whole_numbers(self.values))
        return np.where(strange, 0, places).astype(np.int32)


def names_in(factor: Any) -> set[str]:
    """The names whose values a factor of a formula uses, functions that it calls left out."""
    kind = factor.eval_method.value
    if kind != "python":
        return {factor.expr} if kind == "lookup" else set()
    nodes = _nodes_of(factor)
    called = [node.func for node in nodes if isinstance(node, ast.Call)]
    names = {n.id for n in nodes if isinstance(n, ast.Name) and n not in called}
    return names.union(_QUOTED.findall(factor.expr), *map(_spelled, nodes))


def calls(factor: Any, function: str) -> bool:
    """Whether a factor of a formula calls the function of that name."""
    if factor.eval_method.value != "python":
        return False
    return any(_is_call(node, function) for node in _nodes_of(factor))


def _nodes_of(factor: Any) -> list[ast.AST]:
    return list(ast.walk(ast.parse(_QUOTED.sub("None", factor.expr), mode="eval")))


def _is_call(node: ast.AST, function: str) -> TypeGuard[ast.Call]:
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Name) and called.id == function


def _spelled(node: ast.AST) -> set[str]:
    """The column that a call such as Q("blood pressure") names."""
    arguments = node.args if _is_call(node, "Q") else []
    return {a.value for a in arguments if isinstance(a, ast.Constant) and isinstance(a.value, str)}


def is_intercept(term: Any) -> bool:
    """Whether a term of a formula is the constant one."""
    return [factor.eval_method.value for factor in term.factors] == ["literal"]


def lone_factors(terms: Sequence[Any], table: ColumnTable) -> tuple[Factor, ...]:
    """The factors that make up a term each and occur in no other, where there is an intercept.

    Those are coded by treatment, whatever the other terms; their columns need not be made here.
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


def no_value(name: object, row: int) -> MissingValueError:
    """A missing entry in a column of a formula."""
    return MissingValueError(
        f"Column '{name}' of the formula has no value in row {row}.",
        "Fill in or drop the rows with missing entries first; a formula drops none.",
    )


def unseen_level(name: object, row: int, level: object, known: Sequence[Any]) -> LevelError:
    """A level that is not among those known, in a column of a formula."""
    return LevelError(
        f"Row {row} has the level {level!r} in column '{name}', which is not among those of the "
        "fit.",
        known_levels(known),
    )


def known_levels(known: Sequence[Any]) -> str:
    """What to do about a level that is not among those known.

    >>> known_levels(["a", "b"])
    "The levels are 'a', 'b'; fit again with rows that have the new level, recode it, or set
    unseen='reference' where the model has that choice."
    """
    return (
        f"The levels are {', '.join(map(repr, known[:8]))}{', ...' if len(known) > 8 else ''}; fit "
        "again with rows that have the new level, recode it, or set unseen='reference' where the "
        "model has that choice."
    )


def coding(unseen: Unseen) -> Callable[..., Any]:
    """formulaic's C(), but for levels that it does not know: it would code none for them."""
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
    """The column with unseen levels as the first one, or the error that they are."""
    name = "C()" if column.name is None else column.name
    gaps = column.isna().to_numpy()
    if gaps.any():
        raise no_value(name, int(gaps.argmax()))
    if known is None:
        return column
    strange = ~column.isin(known).to_numpy()
    if strange.any() and unseen == "error":
        row = int(strange.argmax())
        raise unseen_level(name, row, column.iloc[row : row + 1].tolist()[0], known)
    return column.mask(strange, known[0]) if strange.any() else column
