"""The design matrix, known by three products only.

Conventions: n rows, m columns of the design matrix Φ (n, m), w (m,) or W (m, c), weights r (n,).

- `times(w)` = Φw
- `transpose_times(r)` = Φᵀr, for r (n,) or (n, c)
- `sandwich(r)` = Φᵀ diag(r) Φ

Intercept, centring, scaling, sparse storage and categorical codes live behind these three.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from posteriori.linalg import transpose_matmul
from posteriori.typing import Array, Codes

_ROOM = 2**18
"""Numbers of rows that a sandwich multiplies by weights at a time: they stay in the cache."""


class Design(ABC):
    """Φ for the rows of one block."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Rows and columns of Φ."""

    @abstractmethod
    def times(self, w: Array) -> Array:
        """Φw."""

    @abstractmethod
    def transpose_times(self, r: Array) -> Array:
        """Φᵀr."""

    @abstractmethod
    def cross(self, r: Array, other: "Design") -> Array:
        """Φᵀ diag(r) Ψ for the design Ψ of the same rows."""

    @abstractmethod
    def array(self) -> Array:
        """Φ itself, for kernels whose blocks are small enough."""

    def shifted(self, centre: Array) -> "Design":
        """Φ - 1 centreᵀ."""
        return Shifted(self, centre)

    def scaled(self, scale: Array) -> "Design":
        """Φ diag(1/scale), with numbers divided before they are ever squared."""
        return Scaled(self, scale)

    def sandwich(self, r: Array) -> Array:
        """Φᵀ diag(r) Φ, for r ≥ 0."""
        return self.cross(r, self)

    @abstractmethod
    def squares(self, r: Array) -> Array:
        """The diagonal of the sandwich: Σ_n r_n φ_nj² for each column j, for r (n,) or (n, c)."""


@dataclass(frozen=True, slots=True)
class Dense(Design):
    """Columns of numbers; centring is done on the numbers themselves, so no digit is lost."""

    values: Array

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.values), self.values.shape[1]

    def times(self, w: Array) -> Array:
        # Column by column in memory, which makes what is done row by row to several columns fast.
        return self.values @ w if w.ndim == 1 else (w.T @ self.values.T).T

    def transpose_times(self, r: Array) -> Array:
        return transpose_matmul(self.values, r)

    def squares(self, r: Array) -> Array:
        return transpose_matmul(np.square(self.values), r)

    def cross(self, r: Array, other: Design) -> Array:
        return other.transpose_times(self.values * r[:, None]).T

    def sandwich(self, r: Array) -> Array:
        n, d = self.shape
        rows, root, out = max(_ROOM // max(d, 1), 1), np.sqrt(r)[:, None], np.zeros((d, d))
        room = np.empty((min(rows, n), d))
        for low in range(0, n, rows):
            part = slice(low, low + rows)
            rooted = np.multiply(self.values[part], root[part], out=room[: len(root[part])])
            out += transpose_matmul(rooted, rooted)
        return out

    def shifted(self, centre: Array) -> "Dense":
        return Dense(self.values - centre)

    def scaled(self, scale: Array) -> "Dense":
        return Dense(self.values / scale)

    def array(self) -> Array:
        return self.values


@dataclass(frozen=True)
class Sparse(Design):
    """Columns stored by their nonzero entries."""

    values: sparse.csr_array

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape[0], self.values.shape[1]

    def times(self, w: Array) -> Array:
        return cast(Array, self.values @ w)

    def transpose_times(self, r: Array) -> Array:
        return cast(Array, self.values.T @ r)

    def squares(self, r: Array) -> Array:
        entries = self.values.data**2, self.values.indices, self.values.indptr
        return cast(Array, sparse.csc_array(entries, shape=self.shape[::-1]) @ r)

    def cross(self, r: Array, other: Design) -> Array:
        weighted = self.values.multiply(r[:, None]).tocsr()
        if isinstance(other, Sparse):
            return cast(Array, (weighted.T @ other.values).toarray())
        return cast(Array, weighted.T @ other.array())

    def shifted(self, centre: Array) -> Design:
        """Columns without a zero are subtracted number by number, so that no digit is lost."""
        n, d = self.shape
        filled = np.bincount(self.values.indices, minlength=d) == n
        if not filled.any():
            return Shifted(self, centre)
        own, rest = np.flatnonzero(filled), np.flatnonzero(~filled)
        dense = Dense(self.values[:, own].toarray() - centre[own])
        return Stacked([dense, Shifted(Sparse(self.values[:, rest]), centre[rest])], [own, rest])

    def array(self) -> Array:
        return cast(Array, self.values.toarray())


@dataclass(frozen=True, slots=True)
class Coded(Design):
    """A factor in treatment coding: level 0 is the reference, level l owns column l - 1.

    Its products are `take` and `bincount`; the 0/1 matrix is never made.
    """

    codes: NDArray[np.int32]
    n_levels: int

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.codes), self.n_levels - 1

    def times(self, w: Array) -> Array:
        return np.concatenate([np.zeros((1, *w.shape[1:])), w]).take(self.codes, axis=0)

    def transpose_times(self, r: Array) -> Array:
        if r.ndim == 1:
            return self._sums(self.codes, r, self.n_levels)[1:]
        return np.stack([self.transpose_times(column) for column in r.T], axis=1)

    def squares(self, r: Array) -> Array:
        return self.transpose_times(r)

    def cross(self, r: Array, other: Design) -> Array:
        if isinstance(other, Coded):
            pairs = self.codes.astype(np.intp) * other.n_levels + other.codes
            counts = self._sums(pairs, r, self.n_levels * other.n_levels)
            return counts.reshape(self.n_levels, other.n_levels)[1:, 1:]
        return other.cross(r, self).T

    def sandwich(self, r: Array) -> Array:
        return np.diag(self.transpose_times(r))

    @staticmethod
    def _sums(codes: NDArray[Any], r: Array, n_levels: int) -> Array:
        return np.bincount(codes, r, minlength=n_levels).astype(np.float64, copy=False)

    def array(self) -> Array:
        out = np.zeros(self.shape, order="F")
        rows = np.flatnonzero(self.codes)
        out[rows, self.codes[rows] - 1] = 1.0
        return out


@dataclass(frozen=True, slots=True)
class Shifted(Design):
    """Φ - 1 centreᵀ, for a Φ whose zeros must not be filled in."""

    inner: Design
    centre: Array

    @property
    def shape(self) -> tuple[int, int]:
        return self.inner.shape

    def times(self, w: Array) -> Array:
        return self.inner.times(w) - self.centre @ w

    def transpose_times(self, r: Array) -> Array:
        correction = self.centre * r.sum() if r.ndim == 1 else np.outer(self.centre, r.sum(0))
        return self.inner.transpose_times(r) - correction

    def squares(self, r: Array) -> Array:
        inner, sums = self.inner.squares(r).T, self.inner.transpose_times(r).T
        total = r.sum(axis=0)[..., None]
        return (inner + self.centre * (self.centre * total - 2 * sums)).T

    def cross(self, r: Array, other: Design) -> Array:
        plain = self.inner.cross(r, other)
        return plain - np.outer(self.centre, other.transpose_times(r))

    def sandwich(self, r: Array) -> Array:
        half = np.outer(self.inner.transpose_times(r) - self.centre * (r.sum() / 2), self.centre)
        half += half.T
        return self.inner.sandwich(r) - half

    def array(self) -> Array:
        return self.inner.array() - self.centre


@dataclass(frozen=True, slots=True)
class Scaled(Design):
    """Φ diag(1/scale)."""

    inner: Design
    scale: Array

    @property
    def shape(self) -> tuple[int, int]:
        return self.inner.shape

    def times(self, w: Array) -> Array:
        return self.inner.times((w.T / self.scale).T)

    def transpose_times(self, r: Array) -> Array:
        return (self.inner.transpose_times(r).T / self.scale).T

    def squares(self, r: Array) -> Array:
        return (self.inner.squares(r).T / self.scale / self.scale).T

    def cross(self, r: Array, other: Design) -> Array:
        return self.inner.cross(r, other) / self.scale[:, None]

    def sandwich(self, r: Array) -> Array:
        return self.inner.sandwich(r) / self.scale / self.scale[:, None]

    def array(self) -> Array:
        return self.inner.array() / self.scale


@dataclass(frozen=True, slots=True)
class Stacked(Design):
    """Φ made of several designs of the same rows; each has the positions of its columns in Φ."""

    parts: Sequence[Design]
    positions: Sequence[Codes]

    @property
    def shape(self) -> tuple[int, int]:
        return self.parts[0].shape[0], sum(part.shape[1] for part in self.parts)

    def times(self, w: Array) -> Array:
        parts = zip(self.parts, self.positions, strict=True)
        return np.sum([part.times(w[at]) for part, at in parts], axis=0)

    def transpose_times(self, r: Array) -> Array:
        return self.joined([part.transpose_times(r) for part in self.parts])

    def squares(self, r: Array) -> Array:
        return self.joined([part.squares(r) for part in self.parts])

    def cross(self, r: Array, other: Design) -> Array:
        return self.joined([part.cross(r, other) for part in self.parts])

    def joined(self, values: Sequence[Array]) -> Array:
        """One array (m, ...) of the values that each part has for its columns."""
        out = np.empty((self.shape[1], *values[0].shape[1:]))
        for at, own in zip(self.positions, values, strict=True):
            out[at] = own
        return out

    def sandwich(self, r: Array) -> Array:
        out = np.empty((self.shape[1], self.shape[1]))
        for i, (a, here) in enumerate(zip(self.parts, self.positions, strict=True)):
            out[np.ix_(here, here)] = a.sandwich(r)
            for b, there in zip(self.parts[:i], self.positions[:i], strict=True):
                block = a.cross(r, b)
                out[np.ix_(here, there)] = block
                out[np.ix_(there, here)] = block.T
        return out

    def shifted(self, centre: Array) -> "Stacked":
        parts = zip(self.parts, self.positions, strict=True)
        return Stacked([part.shifted(centre[at]) for part, at in parts], self.positions)

    def scaled(self, scale: Array) -> "Stacked":
        parts = zip(self.parts, self.positions, strict=True)
        return Stacked([part.scaled(scale[at]) for part, at in parts], self.positions)

    def array(self) -> Array:
        return self.joined([part.array().T for part in self.parts]).T
