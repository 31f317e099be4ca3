"""Sums over rows that can be added: what they share, and how classes and levels are aligned."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, Protocol, Self, TypeVar, cast

import numpy as np
from scipy import sparse
from scipy.linalg import block_diag

from posteriori.errors import LabelError, StatisticsError
from posteriori.rows.block import Block
from posteriori.rows.schema import Column, Schema, merge_columns
from posteriori.rows.target import merge_classes
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
    try:
        return merge_classes(a, b)
    except LabelError as error:
        raise StatisticsError(error.problem, "Use labels of one kind at every site.") from error


def spread(values: Array, places: Codes, n_classes: int) -> Array:
    """Rows of `values` moved to their places among `n_classes`; the other rows are zero."""
    if np.array_equal(places, np.arange(n_classes)):
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


def union_of_columns(a: Schema, b: Schema) -> Schema:
    """The columns of both, with the levels of both; an error if they differ in more than levels."""
    if a is b or a == b:
        return a
    same_columns(_without_levels(a), _without_levels(b))
    pairs = zip(a.columns, b.columns, strict=True)
    return replace(a, columns=tuple(merge_columns(x, y) for x, y in pairs))


def _without_levels(schema: Schema) -> Schema:
    return replace(schema, columns=tuple(replace(c, levels=()) for c in schema.columns))


def recoding(old: Schema, new: Schema) -> tuple[Array, Array]:
    """M and c with φ_new = M φ_old + c, for design columns without intercept.

    >>> old = Schema((Column("s", "categorical", ("b", "c")),), named=True)
    >>> new = Schema((Column("s", "categorical", ("a", "b", "c")),), named=True)
    >>> M, c = recoding(old, new)
    >>> M.tolist(), c.tolist()
    ([[-1.0], [1.0]], [1.0, 0.0])
    """
    parts = [_recode(*pair) for pair in zip(old.columns, new.columns, strict=True)]
    matrices, offsets = zip(*parts, strict=True)
    return block_diag(*matrices), np.concatenate(offsets)


def _recode(old: Column, new: Column) -> tuple[Array, Array]:
    if old.kind != "categorical":
        return np.eye(1), np.zeros(1)
    indicators, offset = np.zeros((len(new.levels), len(old.levels) - 1)), np.zeros(len(new.levels))
    for i, level in enumerate(old.levels):
        place = new.levels.index(level)
        if i == 0:
            indicators[place], offset[place] = -1.0, 1.0
        else:
            indicators[place, i - 1] = 1.0
    return indicators[1:], offset[1:]


_DENSE_CLASSES = 64


def is_soft(block: Block) -> bool:
    """Whether each row has a distribution over the classes rather than one class."""
    return cast(Array, block.y).ndim == 2


def weights_of(block: Block) -> Array:
    """The weight of each row, ones where none were given."""
    if block.weight is not None:
        return block.weight
    return np.ones(len(cast(Array, block.y)))


def membership(block: Block, n_classes: int) -> Array | sparse.csr_array:
    """Weight of each row in each class (n, K), sparse where there are many classes."""
    if is_soft(block):
        soft = cast(Array, block.y)
        return soft if block.weight is None else soft * block.weight[:, None]
    codes = cast(Codes, block.y)
    if n_classes <= _DENSE_CLASSES:
        hot = np.eye(n_classes).take(codes, axis=0)
        if block.weight is not None:
            hot *= block.weight[:, None]
        return hot
    places = np.arange(len(codes) + 1)
    return sparse.csr_array((weights_of(block), codes, places), shape=(len(codes), n_classes))


def class_counts(block: Block, n_classes: int) -> Array:
    """Total weight of each class (K,)."""
    if is_soft(block):
        return cast(Array, membership(block, n_classes)).sum(0)
    return np.bincount(cast(Codes, block.y), block.weight, minlength=n_classes).astype(np.float64)


def dense_membership(block: Block, n_classes: int) -> Array:
    """The same matrix, dense whatever the number of classes."""
    member = membership(block, n_classes)
    return member if isinstance(member, np.ndarray) else cast(Array, member.toarray())
