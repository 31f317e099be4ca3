"""The probability of a class when the activation itself is uncertain (4.145)-(4.155).

Conventions: n rows; the activation of a row is a ~ N(μ, s²), with means μ (n,) and variances s²
(n,), zero or more. The predictive probability of the second of two classes is

    p = ∫ F(a) N(a|μ, s²) da,                                                          (4.151)

F being the mean that the link gives. Functions named `..._logs` give ln p and ln(1 - p), both
exact where p or 1 - p underflow.
"""

from typing import cast

import numpy as np
from scipy.special import erfcx, expit, log_expit, log_ndtr, ndtri

from posteriori.arguments import check_fraction
from posteriori.likelihood.arithmetic import quiet
from posteriori.likelihood.link import Link, LocatedLink, ProbabilityLink
from posteriori.likelihood.sigmoids import Laplace, Logit, Probit
from posteriori.typing import Array

_TERMS = 18
"""Terms of the series; the error is 5.8 to the power of minus this."""

_NODES = 112
"""Points at which any other link is evaluated for a row."""

_REACH = 8.5
"""Standard deviations beyond which a Gaussian holds nothing that a double shows."""

_ROWS = 2**11
"""Rows at a time, so that a temporary stays in the cache."""

_STEP = 1e8
"""So many times its own width is a Gaussian for which F is a step."""

_EXPONENT = 300.0
"""Above this sinh x is as good as eˣ/2, and eˣ is a double with room to spare."""


def kappa_probability(mean: Array, variance: Array) -> Array:
    """The probit approximation for the logistic sigmoid, within 0.018 of the integral.

    p ≈ σ(κ(s²) μ) with κ(s²) = (1 + πs²/8)^-½ (4.153)-(4.155).

    >>> kappa_probability(np.array([2.0, 2.0, 0.0]), np.array([0.0, 4.0, 4.0])).round(4)
    array([0.8808, 0.7768, 0.5   ])
    """
    return cast(Array, expit(_shrunk(mean, variance)))


def kappa_logs(mean: Array, variance: Array) -> tuple[Array, Array]:
    """ln p and ln(1 - p) by the probit approximation (4.155)."""
    activation = _shrunk(mean, variance)
    return log_expit(activation), log_expit(-activation)


def _shrunk(mean: Array, variance: Array) -> Array:
    return mean / np.sqrt(1 + np.pi / 8 * variance)  # (4.154)


def quadrature_probability(mean: Array, variance: Array) -> Array:
    """The integral (4.151) for the logistic sigmoid, to twelve digits and more.

    With μ <= 0, A = s/√2 and B = -μ/(s√2), the series σ(a) = Σ_k (-1)^(k-1) e^(ka) for a < 0,
    and 1 - σ(-a) for a > 0, gives

        p = Φ(μ/s) + ½ exp(-B²) Σ_k (-1)^(k-1) (erfcx(kA - B) - erfcx(kA + B)).

    The terms are moments of a positive measure on [0, 1], whatever μ and s: eighteen of them,
    weighted as Cohen, Rodriguez Villegas and Zagier do for alternating series, are enough.
    1 - p(μ) is p(-μ).

    >>> quadrature_probability(np.array([2.0, 2.0, -2.0]), np.array([0.0, 4.0, 4.0])).round(6)
    array([0.880797, 0.7752  , 0.2248  ])
    """
    parts = _lower(mean, variance, _WEIGHTS)
    lower = np.concatenate([np.exp(log_factor) * rest for log_factor, rest in parts])
    return np.where(mean > 0, 1 - lower, lower)


def quadrature_logs(mean: Array, variance: Array) -> tuple[Array, Array]:
    """ln p and ln(1 - p) of the integral (4.151) for the logistic sigmoid.

    >>> quadrature_logs(np.array([-1000.0]), np.array([4.0]))
    (array([-998.]), array([-0.]))
    """
    return _series_logs(mean, variance, _WEIGHTS)


def _series_logs(mean: Array, variance: Array, weights: Array) -> tuple[Array, Array]:
    parts = _lower(mean, variance, weights)
    lower = np.concatenate([log_factor + np.log(rest) for log_factor, rest in parts])
    upper = np.log1p(-np.exp(lower))
    above = mean > 0
    return np.where(above, upper, lower), np.where(above, lower, upper)


def _lower(mean: Array, variance: Array, weights: Array) -> list[tuple[Array, Array]]:
    """p at -|μ|, as the logarithm of one factor and the other, a few rows at a time."""
    m, s = abs(mean), np.sqrt(variance)
    starts = range(0, max(len(m), 1), _ROWS)
    return [_series(m[low : low + _ROWS], s[low : low + _ROWS], weights) for low in starts]


@quiet
def _series(m: Array, s: Array, weights: Array) -> tuple[Array, Array]:
    """p at -m <= 0 as exp(first) · second, for F(a) = 1 - F(-a) = Σ_k weight_k e^(ka), a < 0.

    Where the integrand has its peak far below zero, at s² - m, its height exp(s²/2 - m) is the
    factor; otherwise that of the Gaussian at zero, exp(-B²). So nothing overflows.
    """
    k = np.arange(1.0, len(weights) + 1)
    A, half = s / np.sqrt(2), s * s / 2
    B = np.where(m > 0, m / s, 0.0) / np.sqrt(2)
    far = B > A
    share = 0.5 * np.exp(-np.square(np.maximum(B - A, 0.0)))
    x = A[:, None] * k - B[:, None]
    term = np.copysign(erfcx(abs(x)), x)
    term -= erfcx(A[:, None] * k + B[:, None])
    term *= share[:, None]
    if far.any():  # erfcx(x) = 2 exp(x²) - erfcx(-x)
        peak = np.exp((k - 1) * ((k + 1) * half[far, None] - m[far, None]))
        term[far] += np.where(x[far] < 0, peak, 0.0)
    total = share * erfcx(B) + term @ weights
    return np.where(far, half - m, -B * B), total


def _alternating(n: int) -> Array:
    """Weights of n terms of an alternating series, signs included.

    >>> round(float(_alternating(18) @ (1 / np.arange(1, 19))), 14)
    0.69314718055995
    """
    root = (3 + np.sqrt(8)) ** n
    d = (root + 1 / root) / 2
    weights, b, c = [], -1.0, -d
    for k in range(n):
        c = b - c
        weights.append(c / d)
        b *= (k + n) * (k - n) / ((k + 0.5) * (k + 1))
    return np.array(weights)


_WEIGHTS = _alternating(_TERMS)
_LAPLACE = np.array([0.5])


def link_probability(link: ProbabilityLink, mean: Array, variance: Array) -> Array:
    """The integral (4.151) for any link.

    The probit has a closed form, p = Φ(μ/√(1 + s²)) (4.152), the logit the series of
    `quadrature_probability`, and Laplace's distribution one term like it. For all others it is
    the trapezoidal rule, good to eight digits where F is smooth.

    >>> from posteriori.likelihood.sigmoids import Cloglog
    >>> link_probability(Probit(), np.array([1.0]), np.array([3.0])).round(6)
    array([0.691462])
    >>> link_probability(Cloglog(), np.array([1.0]), np.array([3.0])).round(6)
    array([0.766819])
    """
    if isinstance(link, Logit):
        return quadrature_probability(mean, variance)
    return np.exp(link_logs(link, mean, variance)[0])


def link_logs(link: ProbabilityLink, mean: Array, variance: Array) -> tuple[Array, Array]:
    """ln p and ln(1 - p) of the integral (4.151) for any link.

    >>> link_logs(Probit(), np.array([-40.0]), np.array([0.0]))
    (array([-804.60844201]), array([-0.]))
    """
    if isinstance(link, LocatedLink):
        inner, width = (mean - link.place) / link.width, link.width
        return link_logs(link.link, inner, variance / width**2)
    if isinstance(link, Logit):
        return quadrature_logs(mean, variance)
    if isinstance(link, Probit):
        activation = mean / np.sqrt(1 + variance)  # (4.152)
        return log_ndtr(activation), log_ndtr(-activation)
    if isinstance(link, Laplace):
        return _series_logs(mean, variance, _LAPLACE)
    return _trapezoidal(link, mean, np.sqrt(variance))


@quiet
def _trapezoidal(link: ProbabilityLink, mean: Array, s: Array) -> tuple[Array, Array]:
    """The smaller of p and 1 - p by the trapezoidal rule, the other from it."""
    low, centre, high = link.activation(np.array([0.25, 0.5, 0.75]))
    width = (high - low) / 2
    found = np.array(link.logs(mean))
    for side, chosen in ((0, mean <= centre), (1, mean > centre)):
        rows = np.flatnonzero(chosen & (s > 0) & (s < _STEP * width))
        for part in np.split(rows, range(_ROWS, len(rows), _ROWS)):
            found[side, part] = _log_integral(link, side, mean[part], s[part], centre, width)
            found[1 - side, part] = np.log1p(-np.exp(np.minimum(found[side, part], 0.0)))
    wide = s >= _STEP * width
    above = (mean[wide] - centre) / s[wide]
    found[:, wide] = log_ndtr(above), log_ndtr(-above)
    return found[0], found[1]


def _log_integral(
    link: ProbabilityLink, side: int, mean: Array, s: Array, centre: float, width: float
) -> Array:
    """ln ∫ G(a) N(a|μ, s²) da, where G is F, or on the other side 1 - F."""
    peak = _peak(link, side, mean, s, centre) if link.log_concave else np.zeros(len(mean))
    z, step = _even(peak)
    wide = s > width
    if wide.any():
        rise, scale = (centre - mean[wide]) / s[wide], width / s[wide]
        z[wide], step[wide] = _graded(peak[wide], rise[:, None], scale[:, None])
    a = mean[:, None] + s[:, None] * z
    terms = link.logs(a.ravel())[side].reshape(a.shape) - z * z / 2
    top = terms.max(axis=1, keepdims=True)
    sums = (np.exp(terms - top) * step).sum(axis=1)
    return top[:, 0] + np.log(sums) - 0.5 * np.log(2 * np.pi)


_WINDOW = np.linspace(-_REACH, _REACH, _NODES)


def _even(peak: Array) -> tuple[Array, Array]:
    """Points z = (a - μ)/s (n, nodes) at even distances about a peak, and these distances."""
    z = peak[:, None] + _WINDOW
    return z, np.full_like(z, _WINDOW[1] - _WINDOW[0])


def _graded(peak: Array, rise: Array, scale: Array) -> tuple[Array, Array]:
    """The same where F goes up within `scale` < 1 of the place `rise`: points are denser there.

    They are even in v, where sinh(z - rise) = scale · sinh v. So dz/dv is the scale at that place,
    grows with the distance from it, and is one far away.
    """
    ends = peak[:, None] + _WINDOW[[0, -1]] - rise
    near = np.minimum(abs(ends), _EXPONENT)
    first, last = np.hsplit(np.copysign(np.arcsinh(np.sinh(near) / scale) - near, ends) + ends, 2)
    v = first + (last - first) * np.linspace(0.0, 1.0, _NODES)
    near = np.minimum(abs(v), _EXPONENT)
    grown = np.exp(near) / 2
    sinh, cosh = scale * (grown - 0.25 / grown), scale * (grown + 0.25 / grown)
    z = rise + np.copysign(np.arcsinh(sinh) + abs(v) - near, v)
    return z, cosh / np.sqrt(1 + sinh * sinh) * (last - first) / (_NODES - 1)


def _peak(link: ProbabilityLink, side: int, mean: Array, s: Array, centre: float) -> Array:
    """Where G(a) N(a|μ, s²) is largest, in standard deviations from μ, to a quarter.

    There z = s (ln G)'; ln G being concave, the right side falls as z goes towards the larger G.
    """
    sign = 1.0 - 2.0 * side
    at_centre = link.rates(np.array([centre]))[side]
    low, high = np.zeros(len(mean)), abs(centre - mean) / s + s * at_centre
    while (high - low).max(initial=0.0) > 0.25:
        middle = (low + high) / 2
        short = s * link.rates(mean + sign * s * middle)[side] > middle
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    return sign * (low + high) / 2


def probability_interval(mean: Array, standard_deviation: Array, level: float, link: Link) -> Array:
    """The interval (n, 2) in which the probability lies with probability `level`.

    F being monotone, its quantiles are those of the activation: F(μ ± zs), with Φ(z) = (1 +
    level)/2. This is exact, and not centred at the predictive probability.

    >>> probability_interval(np.array([1.0]), np.array([0.5]), 0.95, Logit()).round(4)
    array([[0.505 , 0.8787]])
    """
    check_fraction("level", level)
    away = ndtri((1 + level) / 2) * standard_deviation
    ends = np.stack([mean - away, mean + away], axis=1)
    return np.sort(link.mean(ends.ravel()).reshape(ends.shape), axis=1)
