"""Count and sum of each class and column: all that a family with one parameter needs."""

from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from scipy import sparse

from posteriori.linalg import over_rows
from posteriori.rows.block import Block
from posteriori.rows.finite import check_finite
from posteriori.rows.schema import Schema
from posteriori.statistics.labels import class_counts, is_soft, membership
from posteriori.statistics.statistic import (
    Statistic,
    same_kind,
    spread,
    union_of_classes,
)
from posteriori.typing import Array, Codes, Labels


@dataclass(frozen=True, eq=False)
class Sums(Statistic):
    """Per class and column (K, m): the weight of the entries present, and their sum.

    Where no entry is missing, one weight a class (K, 1) serves all columns.

    >>> one = Sums(np.array(["a"]), np.array([[2.0]]), np.array([[5.0]]))
    >>> two = one + Sums(np.array(["b"]), np.array([[1.0]]), np.array([[4.0]]))
    >>> two.classes.tolist(), two.total.tolist()
    (['a', 'b'], [[5.0], [4.0]])
    """

    classes: Labels
    count: Array
    total: Array

    def __add__(self, other: "Sums") -> "Sums":
        same_kind(self, other)
        if other.classes is not self.classes:
            self, other = _aligned(self, other)
        return replace(self, count=self.count + other.count, total=self.total + other.total)


def _aligned(a: Sums, b: Sums) -> tuple[Sums, Sums]:
    classes, in_a, in_b = union_of_classes(a.classes, b.classes)

    def lay_out(sums: Sums, places: Codes) -> Sums:
        K = len(classes)
        return Sums(classes, spread(sums.count, places, K), spread(sums.total, places, K))

    return lay_out(a, in_a), lay_out(b, in_b)


@dataclass(frozen=True, eq=False)
class GatherSums:
    """The kernel: a block of rows to its `Sums`."""

    schema: Schema
    classes: Labels

    def __call__(self, block: Block) -> Sums:
        with np.errstate(over="ignore", invalid="ignore"):
            total = self._totals(block)
            count = class_counts(block, len(total))[:, None]
            if not np.isfinite(total).all():
                check_finite(block, self.schema, missing=True)
                total, lost = self._totals_of_present(block)
                count = count - lost
        return Sums(self.classes, count, total)

    def _totals(self, block: Block) -> Array:
        """Sum of each column in each class (K, m)."""
        X, K = block.X, len(self.classes)
        if not isinstance(X, sparse.csr_array):
            member, values = membership(block, K), cast(Array, X)
            is_dense = isinstance(member, np.ndarray)
            return over_rows(member, values) if is_dense else np.asarray(member.T @ values)
        if is_soft(block):
            return cast(Array, (X.T @ membership(block, K)).T)
        # bincount takes half the time of SciPy's product with the matrix of memberships.
        per_row, d = np.diff(X.indptr), X.shape[1]
        place = np.repeat(cast(Codes, block.y) * d, per_row) + X.indices
        data = X.data if block.weight is None else X.data * np.repeat(block.weight, per_row)
        return cast(Array, np.bincount(place, data, minlength=K * d).reshape(K, d))

    def _totals_of_present(self, block: Block) -> tuple[Array, Array]:
        """Sums without the missing entries, and the weight of those (K, m)."""
        X = block.X
        values = X.data if isinstance(X, sparse.csr_array) else cast(Array, X)
        absent = np.isnan(values)
        filled, lost = (
            self._totals(replace(block, X=_like(X, v)))
            for v in (np.where(absent, 0.0, values), absent.astype(np.float64))
        )
        return filled, lost


def _like(X: object, values: Array) -> Array | sparse.csr_array:
    if isinstance(X, sparse.csr_array):
        return sparse.csr_array((values, X.indices, X.indptr), shape=X.shape)
    return values
