"""Gaussian columns: a variance for each class, or one that all classes share."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
from scipy import sparse

from posteriori.errors import ScaleError, SingularCovarianceError
from posteriori.likelihood.family import Entries, Family, LinearFamily, Mask, Places, in_parts
from posteriori.likelihood.linear_form import LinearForm
from posteriori.typing import Array

_HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)
_SMALLEST_SD = 1e-300
_CONSTANT = 8 * np.finfo(np.float64).eps
"""A standard deviation below this share of the mean is rounding, not spread."""

_FAR = 300.0
"""Standard deviations between a mean and the centre beyond which a square is not multiplied out."""


class Expansion(NamedTuple):
    """Σ_j A_kj q_j² + B_kj q_j + C_k with q = (x - centre) / scale."""

    centre: Array
    scale: Array
    square: Array
    linear: Array
    constant: Array

    def values(self, x: Entries) -> Array:
        if isinstance(x, sparse.csr_array):  # its centre is zero
            q = sparse.csr_array((x.data / self.scale[x.indices], x.indices, x.indptr), x.shape)
            squares = sparse.csr_array((q.data**2, x.indices, x.indptr), x.shape)
        else:
            q = (x - self.centre) / self.scale
            squares = q * q
        return cast(Array, squares @ self.square + q @ self.linear + self.constant)


@dataclass(frozen=True)
class Gaussian(Family):
    """N(x|μ_k, σ_k²), with `mean` μ and `sd` σ (K, m).

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
        logs = present @ (np.log(self.sd) + _HALF_LOG_2PI).T
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
        scale = np.exp(np.log(self.sd).mean(axis=0))
        step, ratio = (self.mean - centre) / self.sd, scale / self.sd
        if not (abs(step).max() < _FAR and ratio.max() < _FAR):
            return None
        constant = -np.sum(0.5 * step**2 + np.log(self.sd) + _HALF_LOG_2PI, axis=1)
        return Expansion(centre, scale, -0.5 * (ratio**2).T, (step * ratio).T, constant)

    def draw(self, k: int, n: int, random: np.random.Generator) -> Array:
        return random.normal(self.mean[k], self.sd[k], (n, self.mean.shape[1]))

    @property
    def n_parameters(self) -> int:
        return 2 * self.mean.size

    def column(self, j: int) -> dict[str, Any]:
        return {"mean": self.mean[:, j], "sd": self.sd[:, j]}


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
        return -0.5 * ((x - self._centre[columns]) / sd) ** 2 - np.log(sd) - _HALF_LOG_2PI

    def _form(self) -> LinearForm:
        step = (self.mean - self._centre) / self.sd
        return LinearForm((step / self.sd).T, -0.5 * step.T**2, self._centre)

    def draw(self, k: int, n: int, random: np.random.Generator) -> Array:
        return random.normal(self.mean[k], self.sd, (n, self.mean.shape[1]))

    @property
    def n_parameters(self) -> int:
        return self.mean.size + self.sd.size

    def column(self, j: int) -> dict[str, Any]:
        return {"mean": self.mean[:, j], "sd": np.full(len(self.mean), self.sd[j])}


def estimate_gaussian(
    count: Array, mean: Array, scatter: Array, unit: Array, *, shared: bool, places: Places
) -> Gaussian | SharedGaussian:
    """Means and variances Σ(x - μ)²/N of maximum likelihood, given in multiples of `unit`."""
    here = ~places.vacant
    pooled = scatter[here].sum(axis=0), count[here].sum(axis=0)
    if places.vacant.any():
        count, mean, scatter = _fill_vacant(count, mean, scatter, places.vacant)
    places.check_counted(count)
    if shared:
        sd = np.sqrt(pooled[0] / pooled[1])
        _check_spread(sd <= _CONSTANT * abs(mean).max(axis=0), sd * unit, places, shared=True)
        return SharedGaussian(mean * unit, sd * unit)
    sd = np.sqrt(scatter / count)
    _check_spread(sd <= _CONSTANT * abs(mean), sd * unit, places, shared=False)
    return Gaussian(mean * unit, sd * unit)


def _fill_vacant(
    count: Array, mean: Array, scatter: Array, vacant: Mask
) -> tuple[Array, Array, Array]:
    """A class without rows is described by all rows together."""
    total = count.sum(axis=0)
    centre = np.divide((count * mean).sum(axis=0), total, out=np.zeros_like(total), where=total > 0)
    spread = (scatter + count * (mean - centre) ** 2).sum(axis=0)
    pairs = ((count, total), (mean, centre), (scatter, spread))
    filled = [np.where(vacant[:, None], whole, part) for part, whole in pairs]
    return filled[0], filled[1], filled[2]


def _check_spread(constant: Mask, sd: Array, places: Places, *, shared: bool) -> None:
    if constant.any():
        label, column = places.first(np.atleast_2d(constant))
        where = f"within every class of {column}" if shared else f"of {column} in class {label!r}"
        others = "" if shared else "shared_scale=True, "
        raise SingularCovarianceError(
            f"The variance {where} is zero: all its entries are the same.",
            f"Drop the column, or use {others}another family for it"
            f"{'' if shared else ', or more rows of the class'}.",
        )
    if (sd < _SMALLEST_SD).any():
        _, column = places.first(np.atleast_2d(sd < _SMALLEST_SD))
        raise ScaleError(f"The entries of {column} are too small.", "Multiply them by 1e100.")
