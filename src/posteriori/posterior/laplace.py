"""The Laplace approximation of any density that is known up to a constant (4.125)-(4.135).

Conventions: p variables z (p,), and u (p,) their coordinates without bounds, u = z where there are
none; p(z) = f(z)/Z with Z unknown.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from posteriori.arguments import check_count, is_number
from posteriori.errors import ParameterError, ShapeError
from posteriori.posterior.density import Density
from posteriori.posterior.marginals import Marginal
from posteriori.posterior.mode import Mode, find_mode
from posteriori.posterior.normal_posterior import Gaussian
from posteriori.posterior.unbounded import Bounds, Space
from posteriori.typing import Array

_LOG_2PI = float(np.log(2 * np.pi))

_SAME = 1e-3
"""Modes that are fewer standard deviations apart are one."""


@dataclass(frozen=True, eq=False)
class LaplaceApproximation:
    """q(u) = N(u|u₀, A⁻¹) (4.134) at a mode u₀, A being -∇∇ ln f there (4.132).

    `mean`, `covariance` and `precision` are those of u: of the variables themselves where they have
    no bounds, else of ln(z - low), -ln(high - z) or ln((z - low)/(high - z)). `mode`, `sample`,
    `marginal` and `log_density` are in the variables as the user knows them. `height` is ln f
    times the Jacobian at the mode, and `others` has the lesser modes that other starts led to.
    """

    gaussian: Gaussian
    height: float
    space: Space
    others: tuple["LaplaceApproximation", ...] = ()

    @property
    def mean(self) -> Array:
        """u₀ (p,)."""
        return self.gaussian.mean

    @property
    def precision(self) -> Array:
        """A (p, p), of u."""
        return self.gaussian.precision

    @property
    def covariance(self) -> Array:
        """A⁻¹ (p, p), of u."""
        return self.gaussian.covariance

    @property
    def log_normaliser(self) -> float:
        """ln Z = ln f(u₀) + (p/2) ln 2π - ½ ln|A| (4.135), whatever the coordinates."""
        volume = 0.5 * (len(self.mean) * _LOG_2PI - self.gaussian.log_determinant)
        return self.height + volume

    @property
    def mode(self) -> Array:
        """z(u₀) (p,): where the density of u is largest, which for variables with bounds is not
        where that of z is. It is the median of each marginal."""
        return self.space.outward(self.mean)

    @property
    def modes(self) -> tuple["LaplaceApproximation", ...]:
        """One approximation a mode that was found, this one first; by falling `log_normaliser`."""
        return (self, *self.others)

    def sample(self, n: int = 1, random_state: Any = None) -> Array:
        """`n` draws of z, as rows (n, p).

        >>> q = laplace(lambda tau: 3 * np.log(tau) - tau, 1.0, bounds=(0, None))
        >>> q.sample(2, random_state=0).round(3)
        array([[4.26 ],
               [3.744]])
        """
        return self.space.outward(self.gaussian.sample(n, random_state))

    def marginal(self, i: int) -> Marginal:
        """The distribution of z_i, with `pdf`, `cdf`, `ppf`, `mean` and `sd`.

        >>> q = laplace(lambda tau: 3 * np.log(tau) - tau, 1.0, bounds=(0, None))
        >>> q.marginal(0).ppf([0.025, 0.975]).round(6)
        array([ 1.501271, 10.657633])
        """
        p = len(self.mean)
        if not (isinstance(i, Integral) and -p <= i < p):
            raise ParameterError(f"There is no variable {i!r}.", f"Use a number from 0 to {p - 1}.")
        spread = float(self.gaussian.standard_deviation[i])
        return Marginal(self.space.coordinates[i], float(self.mean[i]), spread)

    def log_density(self, z: ArrayLike) -> Array:
        """ln q of z, as one point (p,) or as rows (n, p); -∞ beyond the bounds.

        >>> laplace(lambda z: -z @ z / 2, [1.0, 1.0]).log_density([0.0, 0.0]).round(8)
        np.float64(-1.83787707)
        """
        points = np.asarray(z, dtype=np.float64)
        if points.ndim not in (1, 2) or points.shape[-1] != len(self.mean):
            raise ShapeError(
                f"z has the shape {points.shape} for {len(self.mean)} variables.",
                f"Use one point ({len(self.mean)},), or points as rows.",
            )
        inside = self.space.inside(points)
        u = self.space.inward(np.where(inside, points, self.mode))
        found = self.gaussian.log_density(u) - self.space.slope(u).log.sum(axis=-1)
        return np.where(inside.all(axis=-1), found, -np.inf)[()]


def laplace(
    log_density: Callable[[Any], Any],
    start: ArrayLike,
    gradient: Callable[[Any], Any] | None = None,
    hessian: Callable[[Any], Any] | None = None,
    *,
    bounds: Bounds = None,
    tol: float = 1e-10,
    max_iter: int = 100,
) -> LaplaceApproximation:
    """The Gaussian at a mode of any density f(z)/Z, and an estimate of its ln Z (4.125)-(4.135).

    With ∇ln f = 0 at z₀ and A = -∇∇ ln f there, p(z) ≃ N(z|z₀, A⁻¹) and
    ln Z ≃ ln f(z₀) + (p/2) ln 2π - ½ ln|A|. Newton's method finds z₀; it halves steps that lead
    downhill or out of the support, and turns round where ln f is curved upwards.

    Variables with bounds are approximated in coordinates that have none, ln z for a positive one:
    the factor dz/du is included, so the mode is that of the density of u = ln z, not of z.

    Parameters
    ----------
    log_density : function of z (p,)
        ln f(z), one number; -inf beyond the support.
    start : (p,), a number, or (s, p)
        Where the climb begins. If it is a number, the functions are handed numbers too. From
        each of several starts the climb must lead to a mode; the result describes the one with the
        largest `log_normaliser`, and `modes` has all that differ.
    gradient : function of z, optional
        ∇ln f (p,); by central differences if it is not given, as is the Hessian. The mode is then
        good to some 1e-9 standard deviations, and ln Z to some 1e-8. Derivatives given are
        compared with differences at the start.
    hessian : function of z, optional
        ∇∇ln f (p, p).
    bounds : (low, high), or a list of such pairs, optional
        For all variables, or one for each; None stands for no bound, or no pair.
    tol : float
        How many standard deviations from the mode are near enough.
    max_iter : int
        The most steps a climb may take.

    Raises
    ------
    InferenceError
        Where a climb ends and A is not positive definite: on a saddle, at an edge, where the
        density is flat or rises without end.
    ParameterError, ShapeError
        Where the functions give what cannot be, or do not belong together.

    Examples
    --------
    Figure 4.14, p(z) ∝ exp(-z²/2) σ(20z + 4):

    >>> from scipy.special import log_expit
    >>> q = laplace(lambda z: -(z**2) / 2 + log_expit(20 * z + 4), 0.0)
    >>> q.mode.round(6), q.precision.round(6), round(q.log_normaliser, 6)
    (array([0.07748]), array([[2.543589]]), 0.445268)

    A positive variable: the density τ³e^-τ has Z = 3! = 6.

    >>> q = laplace(lambda tau: 3 * np.log(tau) - tau, 1.0, bounds=(0, None))
    >>> np.exp(q.log_normaliser).round(4), q.mode.round(6), q.precision.round(6)
    (np.float64(5.8765), array([4.]), array([[4.]]))
    """
    _check_settings(log_density, tol, max_iter)
    starts = _starts(start)
    space = Space.of(bounds, starts.shape[1])
    _check_starts(starts, space)
    density = Density(log_density, gradient, hessian, space, scalar=np.ndim(start) == 0)
    found = [find_mode(density, u, tol, max_iter) for u in space.inward(starts)]
    modes = [LaplaceApproximation(*mode, space) for mode in _distinct(found)]
    best, *others = sorted(modes, key=lambda mode: -mode.log_normaliser)
    return replace(best, others=tuple(others))


def _distinct(modes: list[Mode]) -> list[Mode]:
    """The same modes without those that are there already."""
    kept: list[Mode] = []
    for mode in modes:
        if not any(_distance(mode, other) < _SAME for other in kept):
            kept.append(mode)
    return kept


def _distance(one: Mode, other: Mode) -> float:
    """In standard deviations of the second."""
    step = one.gaussian.mean - other.gaussian.mean
    return float(np.linalg.norm(step @ other.gaussian.precision_cholesky))


def _starts(start: ArrayLike) -> Array:
    """The starts as rows (s, p)."""
    try:
        found = np.atleast_2d(np.asarray(start, dtype=np.float64))
    except (TypeError, ValueError):
        raise ParameterError(f"start={start!r} is not a point.", "Use numbers.") from None
    if found.ndim != 2 or found.size == 0:
        raise ShapeError(
            f"start has the shape {np.shape(start)}.", "Use one point (p,), or starts as rows."
        )
    return found


def _check_starts(starts: Array, space: Space) -> None:
    outside = np.argwhere(~space.inside(starts))
    if len(outside):
        i, j = outside[0]
        raise ParameterError(
            f"The start has {starts[i, j]} for variable {j}, which is not a number within its "
            f"bounds, {space.coordinates[j].low:g} and {space.coordinates[j].high:g}.",
            "Start strictly between the bounds.",
        )


def _check_settings(log_density: object, tol: object, max_iter: object) -> None:
    if not callable(log_density):
        raise ParameterError(
            f"log_density={log_density!r} is not a function.", "Use a function of z."
        )
    check_count("max_iter", max_iter, "steps")
    if not (is_number(tol) and 0 < tol < np.inf):
        raise ParameterError(f"tol={tol!r} is out of range.", "Use a number above zero.")
