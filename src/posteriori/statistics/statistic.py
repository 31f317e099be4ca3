"""What all sums over rows share: `+`, alignment of classes and levels, and labels as weights.

A statistic is a frozen dataclass; the built-in `sum` reduces a sequence of them. Sums of rows with
different classes, or with factors of different levels, are aligned before they are added: in
treatment coding the indicator of the reference level is one minus the others, so a statistic with
some levels is known with more.

Conventions: n rows, d design columns, K classes.
"""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np
from scipy.linalg import block_diag
from scipy.sparse import csr_array

from posteriori.design.matrix import Dense, Design, Sparse
from posteriori.errors import LabelError, StatisticsError
from posteriori.linalg import transpose_matmul
from posteriori.rows.block import Block, take_rows
from posteriori.rows.schema import Column, Schema, merge_columns
from posteriori.rows.target import merge_classes
from posteriori.typing import Array, Codes, Labels

_FEW_CLASSES = 16
"""Classes up to which sums by class are a dense product with a column for each class."""

LARGEST = {"rule": np.maximum}
"""Metadata of the fields of a `Statistic` that are not added."""


class Statistic:
    """A frozen dataclass with `+`: the statistic of two sets of rows together.

    Fields are added one by one. A field that was not requested is None in both, and stays so; a
    field declared with the metadata `LARGEST` keeps the larger value.

    >>> @dataclass(frozen=True)
    ... class Heights(Statistic):
    ...     total: int
    ...     most: int = field(metadata={"rule": max})
    >>> sum([Heights(3, 18), Heights(2, 20)])
    Heights(total=5, most=20)
    """

    def __add__(self, other: Any) -> Any:
        same_kind(self, other)
        with np.errstate(over="ignore", invalid="ignore"):  # infinite outside of a domain
            return type(self)(*(_merged(self, other, each) for each in fields(cast(Any, self))))

    def __radd__(self, other: object) -> Self:
        return self if other == 0 else NotImplemented


def _merged(a: Statistic, b: Statistic, each: Any) -> Any:
    x, y = getattr(a, each.name), getattr(b, each.name)
    rule = each.metadata.get("rule")
    if rule is not None:
        return rule(x, y)
    return None if x is None or y is None else x + y


@dataclass(frozen=True, eq=False)
class Maximum(Statistic):
    """The largest value over all rows: a number, or one for each column."""

    value: Any = field(metadata=LARGEST)


def same_kind(a: Statistic, b: object) -> None:
    """An error unless both are statistics of one kind."""
    if type(a) is not type(b):
        raise StatisticsError(
            f"A {type(a).__name__} and a {type(b).__name__} cannot be added.",
            "Add statistics of models of one kind, fitted with the same settings.",
        )


@dataclass(frozen=True, eq=False)
class ClassStatistic(Statistic):
    """A statistic of rows with classes; the fields named in `by_class` have them on their first
    axis."""

    classes: Labels
    by_class: ClassVar[tuple[str, ...]]

    def __add__(self, other: Any) -> Any:
        self, other = align_classes(self, other)
        added = {name: getattr(self, name) + getattr(other, name) for name in self.by_class}
        return replace(self, **added)

    def with_classes(self, classes: Labels, places: Codes) -> Self:
        """The same statistic over more classes, its own being at `places` among them."""
        values = {name: getattr(self, name) for name in self.by_class}
        moved = {name: spread(value, places, len(classes)) for name, value in values.items()}
        return replace(self, classes=classes, **moved)


@dataclass(frozen=True, eq=False)
class ColumnStatistic(ClassStatistic):
    """A statistic of design columns by class, with the class means (K, d)."""

    schema: Schema
    mean: Array

    @property
    @abstractmethod
    def squares(self) -> Array:
        """Sums of squares of the columns about the class means (d,)."""

    @abstractmethod
    def with_levels(self, schema: Schema) -> Self:
        """The same statistic with the levels of another schema, of which it has some."""


C = TypeVar("C", bound=ClassStatistic)
D = TypeVar("D", bound=ColumnStatistic)


def align_classes(a: C, b: C) -> tuple[C, C]:
    """Both over the classes of either."""
    same_kind(a, b)
    if a.classes is b.classes:
        return a, b
    classes, in_a, in_b = union_of_classes(a.classes, b.classes)
    return a.with_classes(classes, in_a), b.with_classes(classes, in_b)


def align(a: D, b: D) -> tuple[D, D]:
    """Both over the classes and the levels of either."""
    a, b = align_classes(a, b)
    if a.schema is b.schema:
        return a, b
    schema = union_of_columns(a.schema, b.schema)
    return a.with_levels(schema), b.with_levels(schema)


def union_of_classes(a: Labels, b: Labels) -> tuple[Labels, Codes, Codes]:
    """All classes in order, and the positions of those of `a` and of `b` among them."""
    if np.array_equal(a, b):
        places = np.arange(len(a))
        return a, places, places
    try:
        return merge_classes(a, b)
    except LabelError as error:
        raise StatisticsError(error.problem, "Use labels of one kind at every site.") from error


def spread(values: Array, places: Codes, n_classes: int) -> Array:
    """Rows of `values` moved to their places among `n_classes`; the other rows are zero."""
    out = np.zeros((n_classes, *values.shape[1:]))
    out[places] = values
    return out


def union_of_columns(a: Schema, b: Schema) -> Schema:
    """The columns of both, with the levels of both; an error if they differ in more than levels."""
    if a == b:
        return a
    if _without_levels(a) != _without_levels(b):
        raise StatisticsError(
            f"The statistics are of different columns: {list(a.names[:6])} and "
            f"{list(b.names[:6])}.",
            "Add statistics of the same columns in the same order.",
        )
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
    places = [new.levels.index(level) for level in old.levels]
    matrix = np.zeros((len(new.levels), len(old.levels) - 1))
    offset = np.zeros(len(new.levels))
    matrix[places[0]], offset[places[0]] = -1.0, 1.0
    matrix[places[1:], np.arange(len(places) - 1)] = 1.0
    return matrix[1:], offset[1:]


def is_soft(block: Block) -> bool:
    """Whether each row has a distribution over the classes rather than one class."""
    return cast(Array, block.y).ndim == 2


def weights_of(block: Block) -> Array:
    """The weight of each row, ones where none were given."""
    return np.ones(block.X.shape[0]) if block.weight is None else block.weight


def membership(block: Block, n_classes: int) -> Array:
    """Weight of each row in each class (n, K)."""
    if n_classes == 1:
        return weights_of(block)[:, None]
    y: Any = block.y
    shares: Array = y if is_soft(block) else np.eye(n_classes).take(y, axis=0)
    return shares if block.weight is None else shares * block.weight[:, None]


def class_counts(block: Block, n_classes: int) -> Array:
    """Total weight of each class (K,)."""
    if is_soft(block):
        return membership(block, n_classes).sum(0)
    return np.bincount(cast(Codes, block.y), block.weight, minlength=n_classes).astype(np.float64)


def class_sums(design: Design, block: Block, n_classes: int) -> Array:
    """Weighted sum of the design rows of each class (K, d)."""
    if isinstance(design, Sparse) and not is_soft(block):
        # bincount takes half the time of SciPy's product with the matrix of memberships.
        X, d = design.values, design.shape[1]
        per_row = np.diff(X.indptr)
        place = np.repeat(cast(Codes, block.y) * d, per_row) + X.indices
        data = X.data if block.weight is None else X.data * np.repeat(block.weight, per_row)
        sums = np.bincount(place, data, minlength=n_classes * d)
        return sums.astype(np.float64, copy=False).reshape(n_classes, d)
    if n_classes > _FEW_CLASSES and isinstance(design, Dense) and not is_soft(block):
        n = design.shape[0]
        member = csr_array((weights_of(block), block.y, np.arange(n + 1)), shape=(n, n_classes))
        return cast(Array, member.T @ design.values)
    return design.transpose_times(membership(block, n_classes)).T


def hard_labels(block: Block) -> tuple[Codes | slice, Codes, Array | None]:
    """Places, classes and weights of rows with one label each.

    A row with a soft label is one row for each of its classes, weighted by its share.
    """
    if not is_soft(block):
        return slice(None), cast(Codes, block.y), block.weight
    shares = membership(block, cast(Array, block.y).shape[1])
    rows, codes = np.nonzero(shares)
    return rows, codes, shares[rows, codes]


def rows_by_class(
    X: Array, block: Block, n_classes: int
) -> Iterator[tuple[int, Array, Array | None]]:
    """Of each class with rows: its number, its rows of X, and their weights unless all are one."""
    if n_classes == 1:
        yield from [(0, X, block.weight)] if len(X) else ()
        return
    places, codes, weight = hard_labels(block)
    # Sixteen bits are sorted by counting, which is several times faster.
    order = codes.astype(np.uint16 if n_classes < 2**16 else np.intp).argsort(kind="stable")
    ends = np.bincount(codes, minlength=n_classes).cumsum()
    for k, own in enumerate(np.split(order, ends[:-1])):
        if len(own):
            rows = own if isinstance(places, slice) else places[own]
            yield k, cast(Array, take_rows(X, rows)), None if weight is None else weight[own]


def centred(X: Array, weight: Array | None) -> tuple[float, Array, Array]:
    """Weight of some rows, their mean (d,), and the rows about it, times the roots of weights."""
    residual = X - X[0]  # far from zero, differences have more digits; exact for constant columns
    w = np.ones(len(X)) if weight is None else weight
    step = transpose_matmul(residual, w) / w.sum()
    residual -= step
    if weight is not None:
        residual *= np.sqrt(weight)[:, None]
    return float(w.sum()), X[0] + step, residual
