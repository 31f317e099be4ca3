"""What every statistic has in common: it can be added, and 0 is its identity."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from posteriori.errors import StatisticsError
from posteriori.rows.schema import Schema
from posteriori.typing import Array, Codes, Labels


class Statistic(ABC):
    """A frozen value with `+`: the statistic of two sets of rows together.

    `sum` is the reducer: built-in `sum` starts from 0, which adds nothing.
    """

    @abstractmethod
    def __add__(self, other: Any) -> Any:
        """The statistic of both sets of rows."""

    def __radd__(self, other: object) -> Self:
        if other == 0:
            return self
        return NotImplemented


def same_kind(a: Statistic, b: object) -> None:
    """An error unless both are statistics of one kind."""
    if type(a) is not type(b):
        raise StatisticsError(
            f"A {type(a).__name__} and a {type(b).__name__} cannot be added.",
            "Add statistics of models of one kind, fitted with the same settings.",
        )


def union_of_classes(a: Labels, b: Labels) -> tuple[Labels, Codes, Codes]:
    """All classes in order, and where those of `a` and of `b` stand among them."""
    if a is b or np.array_equal(a, b):
        places = np.arange(len(a))
        return a, places, places
    if (a.dtype.kind in "US") != (b.dtype.kind in "US"):
        # NumPy would spell numbers out and call 1 and "1" the same class.
        a, b = a.astype(object), b.astype(object)
    try:
        classes = np.union1d(a, b)
    except TypeError as error:
        raise StatisticsError(
            f"The class labels of the two statistics cannot be sorted together ({error}).",
            "Use labels of one kind at every site.",
        ) from error
    return classes, np.searchsorted(classes, a), np.searchsorted(classes, b)


def spread(values: Array, places: Codes, n_classes: int) -> Array:
    """Rows of `values` moved to their places among `n_classes`; the other rows are zero."""
    if len(values) == n_classes:
        return values
    out = np.zeros((n_classes, *values.shape[1:]))
    out[places] = values
    return out


class Measured(Protocol):
    """A statistic in multiples of `unit` (d,), powers of two."""

    @property
    def unit(self) -> Array: ...

    def in_units(self, unit: Array) -> Any: ...


M = TypeVar("M", bound=Measured)


def in_same_units(a: M, b: M) -> tuple[M, M]:
    """Both in the larger of their units."""
    if a.unit is b.unit or np.array_equal(a.unit, b.unit):
        return a, b
    unit = np.maximum(a.unit, b.unit)
    return a.in_units(unit), b.in_units(unit)


def merge_weights(a: Array, b: Array) -> tuple[Array, Array, Array]:
    """Total count, the share of `b` in it, and the harmonic weight ab/(a+b) of the pair."""
    total = a + b
    share = np.divide(b, total, out=np.zeros_like(total), where=total > 0)
    return total, share, a * share


def same_columns(a: Schema, b: Schema) -> Schema:
    """The columns of both; an error if they differ."""
    if a is b or a == b:
        return a
    raise StatisticsError(
        f"The statistics are of different columns: {list(a.names[:6])} and {list(b.names[:6])}.",
        "Add statistics of the same columns in the same order.",
    )


def group_places(sharing: Sequence[Hashable]) -> Codes:
    """Number of each class's group, groups being numbered as they first appear.

    >>> group_places(["a", "b", "a"])
    array([0, 1, 0])
    """
    seen: dict[Hashable, int] = {}
    return np.array([seen.setdefault(key, len(seen)) for key in sharing], dtype=np.intp)
