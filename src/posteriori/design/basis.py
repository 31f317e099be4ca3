"""Fixed basis functions φ_j(x) (4.3.1): Gaussians about centres, and sigmoids of one column each.

Conventions: n rows, d columns, m functions; X (n, d) finite; centres in the units of the data.
A `rate` is one over a width, in the units of the data; a rate of zero leaves a column out.
Polynomials are scikit-learn's `PolynomialFeatures`.
"""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
from scipy.special import expit

from posteriori.typing import Array, Codes

_FAR = 500.0
"""Half the squared distance from the origin, in widths, beyond which |x|² - 2xᵀμ + |μ|² would lose
more than four digits."""


class Functions:
    """What both kinds share: as many functions as centres, written into an array."""

    centres: Array

    @property
    def n_functions(self) -> int:
        return len(self.centres)

    def values(self, X: Array) -> Array:
        """φ(x) of each row (n, m)."""
        return self.fill(X, np.empty((len(X), self.n_functions)))

    @abstractmethod
    def fill(self, X: Array, out: Array) -> Array:
        """φ(x) of each row, written into `out` (n, m)."""


@dataclass(frozen=True, eq=False)
class Gaussians(Functions):
    """φ_j(x) = exp(-½ Σ_k rate_k² (x_k - μ_jk)²), for centres μ (m, d) and rates (d,).

    `origin` (d,) is a point amid the rows: the squares are expanded about it, so that one product
    gives the distances of all rows from all centres.

    >>> gaussians = Gaussians(np.array([[0.0], [2.0]]), np.array([0.5]), np.array([1.0]))
    >>> gaussians.values(np.array([[0.0], [1.0]])).round(4)
    array([[1.    , 0.6065], [0.8825, 0.8825]])
    """

    centres: Array
    rate: Array
    origin: Array

    @cached_property
    def _points(self) -> Array:
        """The centres about the origin, in widths (m, d)."""
        return (self.centres - self.origin) * self.rate

    @cached_property
    def _halves(self) -> Array:
        return 0.5 * np.square(self._points).sum(axis=1)

    def fill(self, X: Array, out: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            steps = (X - self.origin) * self.rate
            half = 0.5 * np.einsum("ij,ij->i", steps, steps)
            np.matmul(steps, self._points.T, out=out)
            out -= self._halves
            out -= half[:, None]
            np.exp(np.minimum(out, 0.0, out=out), out=out)
            far = np.flatnonzero(~(half <= _FAR))
            if len(far):
                out[far] = self._by_differences(X[far])
        return out

    def _by_differences(self, X: Array) -> Array:
        """The same from x - μ itself: d passes in place of one product, and no digit lost."""
        square = np.zeros((len(X), len(self.centres)))
        for k in np.flatnonzero(self.rate):
            square += np.square((X[:, k, None] - self.centres[:, k]) * self.rate[k])
        return np.exp(-0.5 * square)


@dataclass(frozen=True, eq=False)
class Sigmoids(Functions):
    """φ_j(x) = σ(rate_j (x_k - μ_j)) with k = `column` j; all of length m.

    >>> sigmoids = Sigmoids(np.array([0, 0, 1]), np.array([0.0, 1.0, 5.0]), np.array([1.0, 2, 0]))
    >>> sigmoids.values(np.array([[1.0, 7.0]])).round(4)
    array([[0.7311, 0.5   , 0.5   ]])
    """

    column: Codes
    centres: Array
    rate: Array

    def fill(self, X: Array, out: Array) -> Array:
        np.take(X, self.column, axis=1, out=out, mode="clip")
        with np.errstate(over="ignore", under="ignore"):
            out -= self.centres
            out *= self.rate
            return cast(Array, expit(out, out=out))
