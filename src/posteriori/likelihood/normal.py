"""Gaussian columns: a variance for each class, or one that all classes share."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
from scipy import sparse

from posteriori.errors import ScaleError, SingularCovarianceWarning, WeightError, warn
from posteriori.likelihood.family import Entries, Family, LinearFamily, Mask, Places, in_parts
from posteriori.likelihood.linear_form import LinearForm
from posteriori.typing import Array

_HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)
_SMALLEST_SD = 1e-300
CONSTANT = 1e-13
"""A column is called constant when its spread is below this part of its size."""

_FAR = 300.0
"""Standard deviations between a mean and the centre beyond which a square is not multiplied out."""


class Expansion(NamedTuple):
    """Σ_j A_kj q_j² + B_kj q_j + C_k with q = (x - centre) · shrink."""

    centre: Array
    shrink: Array
    square: Array
    linear: Array
    constant: Array

    def values(self, x: Entries) -> Array:
        if isinstance(x, sparse.csr_array):  # its centre is zero
            q = sparse.csr_array((x.data * self.shrink[x.indices], x.indices, x.indptr), x.shape)
            squares = sparse.csr_array((q.data**2, x.indices, x.indptr), x.shape)
        else:
            q = x - self.centre
            q *= self.shrink
            squares = q * q
        return cast(Array, squares @ self.square + q @ self.linear + self.constant)


@dataclass(frozen=True)
class Gaussian(Family):
    """N(x|μ_k, σ_k²), with `mean` μ and `sd` σ (K, m), infinite for columns that are left out.

    ln p = -½ ((x - μ)/σ)² - ln σ - ½ ln 2π: the boundaries are quadratic.

    >>> Gaussian(np.array([[0.0]]), np.array([[1.0]])).log_density(np.array([[2.0]]))
    array([[-2.91893853]])
    """

    mean: Array
    sd: Array

    name = "gaussian"
    summary = "moments"

    def log_density(self, x: Array) -> Array:
        present = ~np.isnan(x)
        logs = present @ log_normaliser(self.sd).T
        for k in range(len(self.mean)):
            z = (x - self.mean[k]) / self.sd[k]
            logs[:, k] += 0.5 * np.sum(z * z, axis=1, where=present)
        return -logs

    def quick(self, x: Entries) -> Array:
        about = self._about_zero if isinstance(x, sparse.csr_array) else self._about_centre
        return in_parts(self.log_density, x) if about is None else about.values(x)

    @cached_property
    def _about_centre(self) -> Expansion | None:
        return self._expand(self.mean.mean(axis=0))

    @cached_property
    def _about_zero(self) -> Expansion | None:
        return self._expand(np.zeros(self.mean.shape[1]))

    def _expand(self, centre: Array) -> Expansion | None:
        """The square multiplied out, where no digits are lost by it."""
        scale = np.exp(np.log(np.where(np.isfinite(self.sd), self.sd, 1.0)).mean(axis=0))
        step, ratio = (self.mean - centre) / self.sd, scale / self.sd
        if not (abs(step).max() < _FAR and ratio.max() < _FAR):
            return None
        constant = -np.sum(0.5 * step**2 + log_normaliser(self.sd), axis=1)
        return Expansion(centre, 1 / scale, -0.5 * (ratio**2).T, (step * ratio).T, constant)

    def draw(self, k: int, n: int, random: np.random.Generator) -> Array:
        return random.normal(self.mean[k], _spread(self.sd[k]), (n, self.mean.shape[1]))

    @property
    def n_parameters(self) -> int:
        return 2 * int(np.isfinite(self.sd).sum())

    def column(self, j: int) -> dict[str, Any]:
        return {"mean": self.mean[:, j], "sd": _spread(self.sd[:, j])}


@dataclass(frozen=True)
class SharedGaussian(LinearFamily):
    """N(x|μ_k, σ²), one `sd` σ (m,) for all classes: the boundaries are linear.

    About a common c: ln p = ln N(x|c, σ²) + (x - c)(μ - c)/σ² - ½ ((μ - c)/σ)².

    >>> model = SharedGaussian(np.array([[0.0], [1.0]]), np.array([1.0]))
    >>> model.log_density(np.array([[0.5]]))
    array([[-1.04393853, -1.04393853]])
    """

    mean: Array
    sd: Array

    name = "gaussian"
    summary = "moments"
    has_base = True

    @property
    def _centre(self) -> Array:
        return self.mean.mean(axis=0)

    def log_base(self, x: Array, columns: Any = slice(None)) -> Array:
        sd = self.sd[columns]
        return -0.5 * ((x - self._centre[columns]) / sd) ** 2 - log_normaliser(sd)

    def _form(self) -> LinearForm:
        step = (self.mean - self._centre) / self.sd
        return LinearForm((step / self.sd).T, -0.5 * step.T**2, self._centre)

    def draw(self, k: int, n: int, random: np.random.Generator) -> Array:
        return random.normal(self.mean[k], _spread(self.sd), (n, self.mean.shape[1]))

    @property
    def n_parameters(self) -> int:
        return (len(self.mean) + 1) * int(np.isfinite(self.sd).sum())

    def column(self, j: int) -> dict[str, Any]:
        return {"mean": self.mean[:, j], "sd": np.full(len(self.mean), _spread(self.sd[j]))}


def estimate_gaussian(
    count: Array,
    mean: Array,
    scatter: Array,
    unit: Array,
    *,
    shared: bool,
    places: Places,
    taken: float = 0.0,
) -> Gaussian | SharedGaussian:
    """Means and variances Σ(x - μ)²/(N - taken), given in multiples of `unit`.

    A column that is the same in all rows is left out. Where one is constant in a class only (with
    `shared`, in every class), it is given the variance that one more row, as far out as rows are
    overall, would have made. A class without rows is described by all rows together.
    """
    vacant = places.vacant[:, None]
    places.check_counted(np.where(vacant, 1.0, count))
    centre, overall = spread_of_all(count, mean, scatter)
    mean = np.where(vacant, centre, mean)
    if shared:
        count, scatter, vacant = count.sum(0), scatter.sum(0), np.zeros(1, dtype=np.bool_)
    rows = count - taken
    check_freedom(count, taken, scatter)
    sd = np.sqrt(np.divide(scatter, rows, out=np.zeros_like(rows), where=rows > 0))
    flat = (sd <= CONSTANT * (abs(mean).max(axis=0) if shared else abs(mean))) & ~vacant
    sd = np.where(flat, overall / np.sqrt(count + 1), np.where(vacant, overall, sd))
    _warn_of_flat_columns(flat, overall == 0, places)
    _check_size(np.where(overall == 0, np.inf, sd) * unit, places)
    sd = np.where(overall == 0, np.inf, sd * unit)
    return SharedGaussian(mean * unit, sd) if shared else Gaussian(mean * unit, sd)


def check_freedom(count: Array, taken: float, squares: Array) -> None:
    """An error where weights sum to too little for a divisor that is less than their sum."""
    short = (count <= taken) & (squares > 0)
    if taken and short.any():
        raise WeightError(
            f"Weights that sum to {np.min(count[short]):.3g} leave nothing when the unbiased "
            f"estimate takes {taken:g} off.",
            "Scale the weights to numbers of rows, or use estimate='ml'.",
        )


def spread_of_all(count: Array, mean: Array, scatter: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of each column in all rows, zero where it is constant."""
    total = count.sum(axis=0)
    centre = (count * mean).sum(axis=0) / total
    sd = np.sqrt((scatter + count * (mean - centre) ** 2).sum(axis=0) / total)
    return centre, np.where(sd <= CONSTANT * abs(centre), 0.0, sd)


def _warn_of_flat_columns(flat: Mask, lost: Mask, places: Places) -> None:
    if lost.any():
        warn(
            SingularCovarianceWarning(
                f"The values in {places.all_columns(lost)} never change (to 13 digits); they were "
                "left out.",
                "Drop what does not vary.",
            )
        )
    for k, columns in enumerate(np.atleast_2d(flat & ~lost)):
        if columns.any():
            where = "every class" if flat.ndim == 1 else f"class {places.classes.tolist()[k]!r}"
            warn(
                SingularCovarianceWarning(
                    f"The variance of {places.all_columns(columns)} is zero in {where}; it was "
                    "given what one more row of the overall spread would make.",
                    "Pass more rows, or drop what does not vary.",
                )
            )


def _check_size(sd: Array, places: Places) -> None:
    if (sd < _SMALLEST_SD).any():
        _, column = places.first(np.atleast_2d(sd < _SMALLEST_SD))
        raise ScaleError(f"The entries of {column} are too small.", "Multiply them by 1e100.")


def log_normaliser(sd: Array) -> Array:
    """ln σ√(2π), zero for columns that are left out."""
    used = np.isfinite(sd)
    return np.where(used, np.log(np.where(used, sd, 1.0)) + _HALF_LOG_2PI, 0.0)


def _spread(sd: Array) -> Array:
    """The standard deviations, zero for columns that never change."""
    return np.where(np.isfinite(sd), sd, 0.0)
