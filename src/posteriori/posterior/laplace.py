"""The Laplace approximation of any density that is known up to a constant (4.125)-(4.135).

Conventions: p variables z (p,), and u (p,) their unbounded coordinates, u = z where there are no
bounds; p(z) = f(z)/Z with Z unknown; F(u) = ln f(z(u)) + ln |dz/du|.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit, ndtri

from posteriori.arguments import check_fraction
from posteriori.errors import InferenceError, ParameterError, ShapeError
from posteriori.linalg import unit_diagonal
from posteriori.posterior.gaussian import Gaussian
from posteriori.solve.newton import newton
from posteriori.solve.objective import Curvature, Local, Status
from posteriori.typing import Array

Function = Callable[[Any], Any]
Pair = tuple[float | None, float | None]
Bounds = Pair | Sequence[Pair] | None
"""Lower and upper bound of every variable, or a pair for each; None where there is none."""

_LOG_2PI = float(np.log(2 * np.pi))
_EPS = float(np.finfo(np.float64).eps)

_PLACES = np.array([-2.0, -1.0, 1.0, 2.0])
_FIRST = np.array([1.0, -8.0, 8.0, -1.0]) / 12
_SECOND = np.array([-1.0, 16.0, 16.0, -1.0]) / 12
_CENTRE = 30.0 / 12
"""Weights of central differences with an error of order h⁴."""

_NEARBY, _ALIKE = 0.01, 0.002
"""Standard deviations from the mode at which F is compared with its parabola, and how much slope
and curvature may differ."""


@dataclass(frozen=True, eq=False)
class LaplaceApproximation:
    """q(u) = N(u|u₀, A⁻¹) (4.134) at a mode u₀, A being -∇∇ ln f there (4.132).

    `mean`, `covariance` and `precision` are those of u: of the variables themselves where they have
    no bounds, else of ln(z - low), -ln(high - z) or ln((z - low)/(high - z)). `mode`, `sample`,
    `interval` and `log_density` are in the user's variables. `log_normaliser` is
    ln Z ≃ F(u₀) + (p/2) ln 2π - ½ ln|A| (4.135), the same integral in any coordinates.
    """

    gaussian: Gaussian
    log_normaliser: float
    coordinates: "_Coordinates"

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
    def mode(self) -> Array:
        """z(u₀) (p,), the median of each marginal; for variables with bounds it maximises the
        density of u, not that of z."""
        return self.coordinates.z(self.mean)

    def sample(self, n: int = 1, random_state: Any = None) -> Array:
        """`n` draws of z, as rows (n, p).

        >>> q = laplace(lambda tau: 3 * np.log(tau) - tau, 1.0, bounds=(0, None))
        >>> q.sample(2, random_state=0).round(3)
        array([[4.26 ],
               [3.744]])
        """
        return self.coordinates.z(self.gaussian.sample(n, random_state))

    def interval(self, level: float = 0.95) -> Array:
        """Lower and upper end (p, 2) of a central credible interval of each variable z.

        >>> laplace(lambda tau: 3 * np.log(tau) - tau, 1.0, bounds=(0, None)).interval().round(6)
        array([[ 1.501271, 10.657633]])
        """
        check_fraction("level", level)
        half = float(ndtri(0.5 + 0.5 * level)) * self.gaussian.standard_deviation
        ends = [self.coordinates.z(self.mean + side * half) for side in (-1, 1)]
        return np.stack(ends, axis=1)

    def log_density(self, z: ArrayLike) -> Array:
        """ln q of z, as one point (p,) or as rows (n, p); -∞ beyond the bounds.

        >>> laplace(lambda z: -z @ z / 2, [1.0, 1.0]).log_density([0.0, 0.0]).round(8)
        np.float64(-1.83787707)
        """
        points = np.asarray(z, dtype=np.float64)
        if points.shape[-1:] != self.mean.shape:
            raise ShapeError(
                f"z has the shape {points.shape} for {len(self.mean)} variables.",
                f"Use one point ({len(self.mean)},), or points as rows.",
            )
        inside = self.coordinates.inside(points)
        u = self.coordinates.u(np.where(inside, points, self.mode))
        found = self.gaussian.log_density(u) - self.coordinates.jacobian(u)[0].sum(axis=-1)
        return np.where(inside.all(axis=-1), found, -np.inf)[()]


def laplace(
    log_density: Function,
    start: ArrayLike,
    gradient: Function | None = None,
    hessian: Function | None = None,
    bounds: Bounds = None,
) -> LaplaceApproximation:
    """The Gaussian at a mode of any density f(z)/Z, and an estimate of its ln Z (4.125)-(4.135).

    With ∇ln f = 0 at z₀ and A = -∇∇ ln f there, p(z) ≃ N(z|z₀, A⁻¹) and
    ln Z ≃ ln f(z₀) + (p/2) ln 2π - ½ ln|A|. Newton's method finds z₀.

    Variables with bounds are approximated in unbounded coordinates, ln z for a positive one. The
    factor dz/du is included, so the mode is that of the density of u = ln z, not of z.

    Parameters
    ----------
    log_density : function of z (p,)
        ln f(z), one number; -inf beyond the support.
    start : (p,) or a number
        Where the iteration starts. If it is a number, the functions receive numbers too.
    gradient : function of z, optional
        ∇ln f (p,); by central differences if it is not given, as is the Hessian. The mode is then
        accurate to some 1e-9 standard deviations, and ln Z to some 1e-8.
    hessian : function of z, optional
        ∇∇ln f (p, p).
    bounds : (low, high), or a list of such pairs, optional
        For all variables, or one for each; None stands for no bound.

    Raises
    ------
    InferenceError
        If no mode was found at which A is positive definite and the log density near it is that
        of its derivatives.
    ParameterError, ShapeError
        If arguments cannot be used.

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
    z = np.atleast_1d(np.asarray(start, dtype=np.float64))
    if z.ndim != 1 or z.size == 0:
        raise ShapeError(f"start has the shape {z.shape}.", "Use one point (p,).")
    coordinates = _Coordinates.of(bounds, len(z))
    F = _LogDensity(log_density, gradient, hessian, coordinates, np.ndim(start) == 0)
    u, V = coordinates.u(z), None
    if not all(np.isfinite(part).all() for part in F.local(u)):
        raise ParameterError(
            f"The log density or a derivative of it is not finite at the start, z = {z}.",
            "Start where the density is positive, inside the bounds.",
        )
    found = newton([F], u, always_fresh=True)
    u = found.parameters
    if found.status is not Status.CONVERGED:
        raise _no_mode(F, z, u, "the log density still increases, ends or has a kink")
    for _ in range(3):  # the last digits, by differences along standard deviations
        value, g, H = F.local(u, V)
        A = -H  # (4.132)
        if not np.isfinite(A).all():
            raise _no_mode(F, z, u, "the support of the density ends")
        try:
            gaussian = Gaussian.of(u, A)
        except InferenceError:
            j = int(abs(np.linalg.eigh(unit_diagonal(A)[0])[1][:, 0]).argmax())
            reason = f"the precision (4.132) is not positive definite along variable {j}"
            raise _no_mode(F, z, u, reason) from None
        V = gaussian.root
        white = V.T @ g
        u = u + V @ white  # (4.92)
    gaussian = Gaussian(u, gaussian.precision_cholesky)
    height = value + 0.5 * float(white @ white)
    _check_parabola(F, z, gaussian, height)
    volume = 0.5 * (len(u) * _LOG_2PI - gaussian.log_determinant)
    return LaplaceApproximation(gaussian, height + volume, coordinates)


def _check_parabola(F: "_LogDensity", start: Array, gaussian: Gaussian, height: float) -> None:
    """An error unless F is the parabola of (4.131) close to the mode.

    It is not at kinks and edges, where F levels off towards infinity, and where a gradient or a
    Hessian that was given is wrong.
    """
    u, noise = gaussian.mean, 1e-14 * abs(height) / _NEARBY**2
    for v in gaussian.root.T:
        above, below = (F.value(u + step * v) - height for step in (_NEARBY, -_NEARBY))
        curvature, slope = (above + below) / _NEARBY**2, (above - below) / (2 * _NEARBY)
        if not max(abs(curvature + 1), abs(slope)) <= _ALIKE + noise:
            j = int((abs(v) / gaussian.standard_deviation).argmax())
            reason = f"the log density is not the parabola of its derivatives along variable {j}"
            raise _no_mode(F, start, u, reason)


def _no_mode(F: "_LogDensity", start: Array, u: Array, reason: str) -> InferenceError:
    return InferenceError(
        f"From the start z = {start} the iteration led to z = {F.coordinates.z(u)}, "
        f"where {reason}.",
        "The density needs a smooth maximum inside its support: start elsewhere, give "
        "bounds=(low, high) for variables that have them, add a prior, or check the derivatives.",
    )


@dataclass(frozen=True, eq=False)
class _LogDensity:
    """F, with the derivatives given or central differences; as an `Objective`, -F.

    `scalar`: the functions receive a plain number, because the start was one.
    """

    function: Function
    gradient: Function | None
    hessian: Function | None
    coordinates: "_Coordinates"
    scalar: bool
    hessian_cost = row_fraction = unit = 1.0
    n_rows = 1
    tolerance = 1e-10

    def __call__(self, w: Array, hessian: Curvature) -> Local:
        value, g, H = self.local(w)
        return Local(-value, -g, -H)

    def value(self, u: Array) -> float:
        """F(u); -∞ beyond the support, and wherever the log density is not finite."""
        z = self.coordinates.z(u)
        if not self.coordinates.inside(z).all():
            return -np.inf
        try:
            found = float(self._call("log density", self.function, z, ()))
        except OverflowError:  # of Python's numbers, where NumPy's would become infinite
            return -np.inf
        log = float(self.coordinates.jacobian(u)[0].sum())
        return found + log if np.isfinite(found) else -np.inf

    def slope(self, u: Array) -> Array:
        """∇F by the gradient given."""
        z, (log, first, _) = self.coordinates.z(u), self.coordinates.jacobian(u)
        given = self._call("gradient", cast(Function, self.gradient), z, z.shape)
        return given * np.exp(log) + first

    def local(self, u: Array, V: Array | None = None) -> tuple[float, Array, Array]:
        """F, ∇F and ∇∇F; -∞ beyond the support.

        Differences are along the columns of V, over which F changes by about one, or along axes.
        """
        here, p = self.value(u), len(u)
        if here == -np.inf:
            return here, np.full(p, np.nan), np.full((p, p), np.nan)
        if V is None:
            given = self.gradient is not None and self.hessian is not None
            V = np.eye(p) if given else np.diag(self.lengths(u, here))
        if self.gradient is None:
            first, second = _differences(self.value, u, here, V)
            g = cast(Array, np.linalg.solve(V.T, first))
        else:
            g = self.slope(u)
        if self.hessian is not None:
            z, (log, first, more) = self.coordinates.z(u), self.coordinates.jacobian(u)
            H = self._call("Hessian", self.hessian, z, (p, p)) * np.exp(log) * np.exp(log)[:, None]
            return here, g, 0.5 * (H + H.T) + np.diag((g - first) * first + more)
        if self.gradient is not None:
            h = _step(u, here, V, 5)
            slopes = [[self.slope(u + place * h * v) for v in V.T] for place in _PLACES]
            second = np.tensordot(_FIRST, np.array(slopes), 1) @ V / h
        H = np.linalg.solve(V.T, np.linalg.solve(V.T, 0.5 * (second + second.T)).T)
        return here, g, H

    def lengths(self, u: Array, here: float) -> Array:
        """How far to go along each axis for F to change by about one (p,)."""
        lengths, enough = np.ones(len(u)), 1.0 + 1e-5 * abs(here)

        def is_short(step: Array) -> bool:
            return max(abs(self.value(u + each) - here) for each in (step, -step)) <= enough

        for j, axis in enumerate(np.eye(len(u))):
            while lengths[j] > 1e-200 and not is_short(lengths[j] * axis):
                lengths[j] /= 8
            while lengths[j] < 1e200 and is_short(8 * lengths[j] * axis):
                lengths[j] *= 8
        return np.where(lengths < 1e200, lengths, 1.0)  # F may not depend on a variable

    def _call(self, what: str, function: Function, z: Array, shape: tuple[int, ...]) -> Array:
        """What a function of the user gives at z, in its shape."""
        with np.errstate(all="ignore"):
            found = np.asarray(function(float(z[0]) if self.scalar else z))
        if found.dtype.kind not in "fiub" or found.size != math.prod(shape):
            raise ShapeError(
                f"The {what} gave {found!r} at z = {z}.", f"Return real numbers of shape {shape}."
            )
        return found.astype(np.float64).reshape(shape)


def _step(u: Array, here: float, V: Array, order: int) -> float:
    """The h for which h^order is the rounding in f and u: errors are of order h⁴."""
    size = np.sqrt(np.square(V).sum(axis=1))  # of each variable
    rounding = _EPS * (1.0 + abs(here) + float((abs(u) / size).max()))
    return float(min(rounding ** (1 / order), 0.25))


def _differences(
    f: Callable[[Array], float], u: Array, here: float, V: Array
) -> tuple[Array, Array]:
    """Vᵀ∇f (k,) and Vᵀ∇∇f V (k, k) for directions V (p, k), not finite near -∞.

    The mixed derivatives come from the second derivatives along v, w and v + w.

    >>> first, second = _differences(lambda u: u[0] * u[1], np.array([1.0, 2.0]), 2.0, np.eye(2))
    >>> first.round(6), second.round(6) + 0.0
    (array([2., 1.]), array([[0., 1.], [1., 0.]]))
    """
    h = _step(u, here, V, 6)

    def along(v: Array) -> tuple[float, float]:
        values = np.array([f(u + place * h * v) for place in _PLACES])
        return float(_FIRST @ values) / h, float(_SECOND @ values - _CENTRE * here) / h**2

    with np.errstate(invalid="ignore"):
        first, diagonal = np.array([along(v) for v in V.T]).T
        second = np.diag(diagonal)
        for i, j in combinations(range(V.shape[1]), 2):
            mixed = along(V[:, i] + V[:, j])[1] - diagonal[i] - diagonal[j]
            second[i, j] = second[j, i] = 0.5 * mixed
    return first, second


@dataclass(frozen=True, eq=False)
class _Coordinates:
    """Unbounded coordinates u of variables z between `low` and `high` (p,) (002: ln τ for τ > 0).

    Points are (p,) or rows (n, p); z increases with u.

    >>> _Coordinates.of([(0, None), (None, None), (-1, 1)], 3).z(np.zeros(3))
    array([1., 0., 0.])
    """

    low: Array
    high: Array

    @classmethod
    def of(cls, bounds: Bounds, p: int) -> "_Coordinates":
        """The coordinates for these bounds."""
        pairs = np.array((None, None) if bounds is None else bounds, np.float64)
        low, high = np.broadcast_to(pairs, (p, 2)).T  # NaN for None
        low, high = np.fmax(low, -np.inf), np.fmin(high, np.inf)
        if not (low < high).all():
            raise ParameterError(
                f"bounds={bounds!r} are not those of {p} variables.",
                "Give (low, high) with low < high for all variables, or a list of such pairs.",
            )
        return cls(low, high)

    def inside(self, z: Array) -> NDArray[np.bool_]:
        """Whether each variable is finite and strictly between its bounds (like z)."""
        return (self.low < z) & (z < self.high)

    def u(self, z: Array) -> Array:
        """z, ln(z - low), -ln(high - z) or ln((z - low)/(high - z))."""
        with np.errstate(divide="ignore", invalid="ignore"):
            above, below = np.log(z - self.low), -np.log(self.high - z)
            return self._select(z, above, below, above + below)

    def z(self, u: Array) -> Array:
        """The variables at u, on a bound or infinite where doubles end."""
        with np.errstate(over="ignore", invalid="ignore"):
            both = self.low * expit(-u) + self.high * expit(u)
            return self._select(u, self.low + np.exp(u), self.high - np.exp(-u), both)

    def jacobian(self, u: Array) -> tuple[Array, Array, Array]:
        """l = ln dz/du of each variable, dl/du and d²l/du², each like u."""
        s, both = expit(u), np.log(self.high - self.low) + log_expit(u) + log_expit(-u)
        return (
            self._select(0.0, u, -u, both),
            self._select(0.0, 1.0, -1.0, 1 - 2 * s),
            self._select(0.0, 0.0, 0.0, -2 * s * (1 - s)),
        )

    def _select(self, neither: ArrayLike, above: ArrayLike, below: ArrayLike, both: Array) -> Array:
        """For each variable, the value for its kind of bounds."""
        has_low, has_high = np.isfinite(self.low), np.isfinite(self.high)
        with_low, without = np.where(has_high, both, above), np.where(has_high, below, neither)
        return np.where(has_low, with_low, without)
