"""Families with one parameter a class and column, and u(x) = x: Bernoulli, Poisson, exponential."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import gammaln

from posteriori.errors import DomainError, ScaleError
from posteriori.likelihood.family import LinearFamily, Mask, Places
from posteriori.likelihood.linear_form import LinearForm
from posteriori.typing import Array

_ROUNDING = 1e-12
"""A share of the weight below this is what adding up weights leaves of zero."""

_SMALLEST_MEAN = 1e-300


@dataclass(frozen=True)
class Bernoulli(LinearFamily):
    """x is one with probability μ and zero otherwise (4.81): `one` = μ, `zero` = 1 - μ (K, m).

    ln p = x ln μ + (1 - x) ln(1 - μ), hence λ = ln μ/(1 - μ), ln g = ln(1 - μ).

    >>> Bernoulli(np.array([[0.25]]), np.array([[0.75]])).log_density(np.array([[1.0], [np.nan]]))
    array([[-1.38629436],
           [ 0.        ]])
    """

    one: Array
    zero: Array

    name = "bernoulli"
    domain = "0 or 1"

    @classmethod
    def estimate(cls, count: Array, total: Array, pseudocount: float, places: Places) -> Self:
        """μ = (Σx + α) / (N + 2α)."""
        if pseudocount == 0:
            count, total = places.fill_vacant(count, total)
            places.check_counted(count)
        rest = count - total
        rest = np.where(rest > _ROUNDING * count, rest, 0.0)
        weight = count + 2 * pseudocount
        return cls((total + pseudocount) / weight, (rest + pseudocount) / weight)

    @staticmethod
    def outside(x: Array) -> Mask:
        bad = x != 1  # the stored entries of a sparse matrix are done with this one look
        if bad.any():
            bad &= x != 0
        return bad & ~np.isnan(x) if bad.any() else bad

    def _form(self) -> LinearForm:
        never, always = self.one == 0, self.zero == 0
        certain = never | always
        one, zero = (np.log(np.where(certain, 1.0, p)).T for p in (self.one, self.zero))
        centre = np.zeros(len(one))
        if not certain.any():
            return LinearForm(one - zero, zero, centre)
        forbidden = (1.0 * never - always).T, 1.0 * always.T
        return LinearForm(one - zero, zero, centre, forbidden)

    def draw(self, k: int, n: int, random: np.random.Generator) -> Array:
        return (random.random((n, self.one.shape[1])) < self.one[k]).astype(np.float64)

    @property
    def n_parameters(self) -> int:
        return self.one.size

    def column(self, j: int) -> dict[str, Any]:
        return {"probability": self.one[:, j]}


@dataclass(frozen=True)
class Poisson(LinearFamily):
    """x = 0, 1, 2, ... with p = μˣ exp(-μ) / x!, hence λ = ln μ and ln g = -μ.

    Written about a common c, so that large counts lose no digits:
    ln p = ln Poisson(x|c) + (x - c) ln μ/c + c (ln μ/c - (μ - c)/c).
    The estimate is the mean; a pseudocount has no part in it. Where the mean is zero, x = 0 has
    probability one.

    >>> Poisson(np.array([[2.0], [0.0]])).log_density(np.array([[0.0], [1.0]]))
    array([[-2.        ,  0.        ],
           [-1.30685282,        -inf]])
    """

    mean: Array

    name = "poisson"
    domain = "a whole number, zero or more"
    has_base = True

    @classmethod
    def estimate(cls, count: Array, total: Array, pseudocount: float, places: Places) -> Self:
        """μ = Σx / N."""
        return cls(_means(count, total, places))

    @staticmethod
    def outside(x: Array) -> Mask:
        bad = (x < 0) | (np.floor(x) != x)
        return bad & ~np.isnan(x) if bad.any() else bad

    @property
    def _reference(self) -> Array:
        mean = self.mean.mean(axis=0)
        return np.where(mean > 0, mean, 1.0)

    def log_base(self, x: Array, columns: Any = slice(None)) -> Array:
        c = self._reference[columns]
        return x * np.log(c) - c - gammaln(x + 1)

    def _form(self) -> LinearForm:
        c = self._reference
        never = self.mean == 0
        excess = (np.where(never, c, self.mean) - c) / c
        weight = np.log1p(excess)
        offset = np.where(never, c, c * (weight - excess))
        forbidden = (1.0 * never.T, np.zeros(never.T.shape)) if never.any() else None
        return LinearForm(weight.T, offset.T, c, forbidden)

    def draw(self, k: int, n: int, random: np.random.Generator) -> Array:
        return random.poisson(self.mean[k], (n, self.mean.shape[1])).astype(np.float64)

    @property
    def n_parameters(self) -> int:
        return self.mean.size

    def column(self, j: int) -> dict[str, Any]:
        return {"mean": self.mean[:, j]}


@dataclass(frozen=True)
class Exponential(LinearFamily):
    """x >= 0 with p = exp(-x/μ) / μ, hence λ = -1/μ and ln g = -ln μ.

    The estimate is the mean; a pseudocount has no part in it, and a mean of zero is an error.

    >>> Exponential(np.array([[2.0]])).log_density(np.array([[4.0]]))
    array([[-2.69314718]])
    """

    mean: Array

    name = "exponential"
    domain = "zero or more"

    @classmethod
    def estimate(cls, count: Array, total: Array, pseudocount: float, places: Places) -> Self:
        """μ = Σx / N."""
        mean = _means(count, total, places)
        if (mean == 0).any():
            label, column = places.first(mean == 0)
            raise DomainError(
                f"Every entry of class {label!r} in {column} is zero, where the exponential "
                "density has no maximum.",
                "Drop the column, or choose another family for it.",
            )
        if (mean < _SMALLEST_MEAN).any():
            _, column = places.first(mean < _SMALLEST_MEAN)
            raise ScaleError(f"The entries of {column} are too small.", "Multiply them by 1e100.")
        return cls(mean)

    @staticmethod
    def outside(x: Array) -> Mask:
        return x < 0

    def _form(self) -> LinearForm:
        return LinearForm(-1 / self.mean.T, -np.log(self.mean.T), np.zeros(self.mean.shape[1]))

    def draw(self, k: int, n: int, random: np.random.Generator) -> Array:
        return random.exponential(self.mean[k], (n, self.mean.shape[1]))

    @property
    def n_parameters(self) -> int:
        return self.mean.size

    def column(self, j: int) -> dict[str, Any]:
        return {"mean": self.mean[:, j]}


def _means(count: Array, total: Array, places: Places) -> Array:
    """Σx / N, the mean of all rows standing in for a class that has none yet."""
    if not np.isfinite(total).all():
        _, column = places.first(~np.isfinite(total))
        raise ScaleError(f"The sum of {column} is beyond the doubles.", "Divide it by 1e10.")
    count, total = places.fill_vacant(count, total)
    places.check_counted(count)
    return total / count
