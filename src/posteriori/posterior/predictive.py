"""The probability of a class when the activation itself is uncertain (4.145)-(4.155).

Conventions: n rows; the activation of a row is a ~ N(μ, s²), with means μ (n,) and variances s²
(n,), zero or more. The predictive probability of the second of two classes is

    p = ∫ F(a) N(a|μ, s²) da,                                                          (4.151)

F being the mean that the link gives. Functions named `..._logs` give ln p and ln(1 - p), both
exact where p or 1 - p underflow.

More classes: activations a ~ N(μ, Σ) with means μ (n, K) and covariances Σ (n, K, K), draws of them
(n, K, S), and p_k = ∫ softmax_k(a) N(a|μ, Σ) da. A softmax depends on differences of activations
alone: K - 1 orthonormal contrasts Bᵀa carry it.
"""

from collections.abc import Callable
from functools import partial
from typing import Literal, cast, get_args

import numpy as np
from scipy.linalg import helmert
from scipy.special import erfcx, log_expit, ndtri, softmax
from scipy.stats import qmc

from posteriori.arguments import check_choice, check_count, check_fraction
from posteriori.errors import ParameterError
from posteriori.likelihood.links import Link, ProbabilityLink
from posteriori.likelihood.log_arithmetic import quiet
from posteriori.likelihood.softmax import log_probabilities
from posteriori.posterior.activations import (
    ActivationGaussian,
    FromDraws,
    FromGaussian,
    ends_of_one,
    log_odds_of_each,
)
from posteriori.posterior.coefficient_posterior import Posterior
from posteriori.posterior.coefficient_table import CoefficientMap
from posteriori.posterior.gaussian import DiagonalGaussian, Gaussian
from posteriori.posterior.monte_carlo import Draws
from posteriori.rows.block import Block
from posteriori.typing import Array

PredictiveName = Literal["auto", "probit", "quadrature", "monte_carlo"]

PredictionKernel = Callable[[Block], Array]

_EFFECT_DRAWS = 1000
"""Draws of a Gaussian over the coefficients, and those that effects are computed from."""

_TERMS = 18
"""Terms of the series; the error is 5.8 to the power of minus this."""

_ROWS = 2**11
"""Rows at a time, so that a temporary stays in the cache."""


def kappa_logs(mean: Array, variance: Array) -> tuple[Array, Array]:
    """ln p and ln(1 - p) by the probit approximation, with p within 0.018 of the integral.

    p ≈ σ(κ(s²) μ) with κ(s²) = (1 + πs²/8)^-½ (4.153)-(4.155).

    >>> np.exp(kappa_logs(np.array([2.0, 2.0, 0.0]), np.array([0.0, 4.0, 4.0]))[0]).round(4)
    array([0.8808, 0.7768, 0.5   ])
    """
    activation = mean / np.sqrt(1 + np.pi / 8 * variance)  # (4.154)
    return log_expit(activation), log_expit(-activation)


def quadrature_logs(mean: Array, variance: Array) -> tuple[Array, Array]:
    """ln p and ln(1 - p) of the integral (4.151) for the logistic sigmoid, to twelve digits.

    With μ <= 0, A = s/√2 and B = -μ/(s√2), the series σ(a) = Σ_k (-1)^(k-1) e^(ka) for a < 0,
    and 1 - σ(-a) for a > 0, gives

        p = Φ(μ/s) + ½ exp(-B²) Σ_k (-1)^(k-1) (erfcx(kA - B) - erfcx(kA + B)).

    The terms are moments of a positive measure on [0, 1], whatever μ and s: eighteen of them,
    weighted as Cohen, Rodriguez Villegas and Zagier do for alternating series, are enough.
    1 - p(μ) is p(-μ).

    >>> quadrature_logs(np.array([-1000.0]), np.array([4.0]))
    (array([-998.]), array([-0.]))
    >>> np.exp(quadrature_logs(np.array([2.0, 2.0]), np.array([0.0, 4.0]))[0]).round(6)
    array([0.880797, 0.7752  ])
    """
    m, s = abs(mean), np.sqrt(variance)
    starts = range(0, max(len(m), 1), _ROWS)
    lower = np.concatenate(
        [_log_series(m[low : low + _ROWS], s[low : low + _ROWS]) for low in starts]
    )
    upper = np.log1p(-np.exp(lower))
    return np.where(mean > 0, upper, lower), np.where(mean > 0, lower, upper)


@quiet
def _log_series(m: Array, s: Array) -> Array:
    """ln p at -m <= 0.

    Where the integrand has its peak far below zero, at s² - m, its height exp(s²/2 - m) is a
    factor; otherwise that of the Gaussian at zero, exp(-B²). So nothing overflows.
    """
    k = np.arange(1.0, _TERMS + 1)
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
    total = share * erfcx(B) + term @ _WEIGHTS
    return np.where(far, half - m, -B * B) + np.log(total)


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


def probability_interval(mean: Array, standard_deviation: Array, level: float, link: Link) -> Array:
    """The interval (n, 2) in which the probability lies with probability `level`.

    As F is monotone, its quantiles are those of the activation: F(μ ± zs), with Φ(z) = (1 +
    level)/2. They are exact, and not centred at the predictive probability.

    >>> from posteriori.likelihood.links import Logit
    >>> probability_interval(np.array([1.0]), np.array([0.5]), 0.95, Logit()).round(4)
    array([[0.505 , 0.8787]])
    """
    check_fraction("level", level)
    return ends_of_one(link, mean, ndtri((1 + level) / 2) * standard_deviation)


DRAWS = 512
"""Draws of the activations of a row, by default: a power of two."""

_ALIKE = 9
"""Digits behind the point in which activations differ that are not equal."""

_PART_ENTRIES = 2**16
"""Entries of the widest temporary."""


@quiet
def extended_probit_logs(mean: Array, covariance: Array) -> Array:
    """ln p_k (n, K) in closed form; for two classes it is the probit approximation (4.155).

    The log odds of each class against the rest, η_k = a_k - ln Σ_{j≠k} exp(a_j), are taken for
    Gaussian, with the mean m_k and the variance s_k² that their expansion about μ has:

        p_k ∝ σ(κ(s_k²) m_k),    s_k² = ∇η_kᵀ Σ ∇η_k,    κ as in (4.154),

    m_k = η_k(μ) - c/√(1 + c). Here c = -½ tr(∇∇η_k Σ) is of second order, and its root keeps it
    from growing faster than the deviations do. Without uncertainty it is the softmax itself. For
    K > 2 and standard deviations beyond one, errors of several percent are usual: draws are
    better then.

    >>> np.exp(extended_probit_logs(np.array([[2.0, 0.0, 0.0]]), 0.5 * np.eye(3)[None])).round(4)
    array([[0.7354, 0.1323, 0.1323]])
    """
    log_odds, slopes = log_odds_of_each(mean)
    variance = np.maximum(((slopes @ covariance) * slopes).sum(axis=2), 0.0)
    raised = _second_order(slopes, covariance)
    return log_probabilities(kappa_logs(log_odds - raised / np.sqrt(1 + raised), variance)[0])


def _second_order(slopes: Array, covariance: Array) -> Array:
    """½ tr(HΣ) (n, K), H being the second derivatives of ln Σ_{j≠k} exp(a_j).

    With its shares p_j and the variances of differences this is ¼ Σ_ij p_i p_j var(a_i - a_j).
    """
    shares = np.eye(slopes.shape[1]) - slopes
    own = np.einsum("nkk->nk", covariance)
    apart = own[:, :, None] + own[:, None, :] - covariance - covariance.swapaxes(1, 2)
    return ((shares @ np.maximum(apart, 0.0)) * shares).sum(axis=2) / 4


def monte_carlo_logs(mean: Array, covariance: Array, n_draws: int = DRAWS) -> Array:
    """ln p_k (n, K) as averages over quasi-random draws of the activations, the same for all rows.

    Draws are the `normal_points`, mapped to N(μ, Σ) by the root of the covariance of contrasts: the
    error falls almost as 1/S, not as 1/√S. Best are powers of two.
    Where a probability depends on activations many standard deviations away, no draw is there, and
    the logarithm is too low.

    >>> np.exp(monte_carlo_logs(np.array([[2.0, 0.0, 0.0]]), 4 * np.eye(3)[None])).round(3)
    array([[0.587, 0.207, 0.207]])
    """
    return _of_draws(log_mean, mean, covariance, n_draws)


def class_intervals(mean: Array, covariance: Array, level: float, n_draws: int = DRAWS) -> Array:
    """For each class an interval (n, K, 2) in which its probability lies with probability `level`.

    The ends are quantiles of the softmax over draws of the activations.

    >>> class_intervals(np.array([[2.0, 0.0, 0.0]]), np.eye(3)[None], 0.9).round(2)
    array([[[0.26, 0.96],
            [0.01, 0.46],
            [0.01, 0.47]]])
    """
    check_fraction("level", level)
    return _of_draws(lambda logs: quantile_ends(np.exp(logs), level), mean, covariance, n_draws)


@quiet
def drawn_logs(link: ProbabilityLink, a: Array) -> Array:
    """ln p(C_k|x) (n, K, S) of drawn activations (n, K, S), or (n, 1, S) for two classes.

    >>> from posteriori.likelihood.links import Logit
    >>> drawn_logs(Logit(), np.zeros((1, 1, 1)))[0, :, 0]
    array([-0.69314718, -0.69314718])
    """
    if a.shape[1] == 1:
        second, first = (each.reshape(len(a), -1) for each in link.logs(a.ravel()))
        return np.stack([first, second], axis=1)
    return _log_softmax(a)


@quiet
def _log_softmax(a: Array) -> Array:
    a = a - a.max(axis=1, keepdims=True)
    return a - np.log(np.exp(a).sum(axis=1, keepdims=True))


@quiet
def log_mean(logs: Array) -> Array:
    """ln of the mean over the last axis of numbers given by their logarithms.

    >>> log_mean(np.array([[-2000.0, -2000.0], [-np.inf, -np.inf]]))
    array([-2000.,   -inf])
    """
    top = logs.max(axis=-1, keepdims=True)
    finite = np.where(np.isfinite(top), top, 0.0)
    return finite[..., 0] + np.log(np.exp(logs - finite).mean(axis=-1))


def quantile_ends(values: Array, level: float) -> Array:
    """Ends (..., 2) with equal shares of drawn values (..., S) outside at both sides.

    >>> quantile_ends(np.linspace(0, 1, 101)[None, :], 0.9)
    array([[0.05, 0.95]])
    """
    check_fraction("level", level)
    ends = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=-1)
    return np.moveaxis(ends, 0, -1)


def _of_draws(
    summary: Callable[[Array], Array], mean: Array, covariance: Array, n_draws: int
) -> Array:
    """`summary` (n, K, ...) of drawn ln p (n, K, S), some rows at a time.

    Classes are taken in the order of their mean activations, so that how they are numbered does
    not matter; where these are equal, rounding does not matter.
    """
    check_count("n_draws", n_draws, "draws")
    K = mean.shape[1]
    white = normal_points(n_draws, K - 1)
    contrasts = np.ascontiguousarray(helmert(K).T)
    parts, rows = [], max(1, _PART_ENTRIES // (n_draws * K))
    for low in range(0, max(len(mean), 1), rows):
        part = slice(low, low + rows)
        order = mean[part].round(_ALIKE).argsort(axis=1, kind="stable")
        each = np.arange(len(order))[:, None]
        ordered = covariance[part][each[:, :, None], order[:, :, None], order[:, None, :]]
        found = summary(_log_softmax(_drawn(mean[part][each, order], ordered, contrasts, white)))
        out = np.empty_like(found)
        out[each, order] = found
        parts.append(out)
    return np.concatenate(parts)


def normal_points(n: int, size: int) -> Array:
    """`n` points (n, size) that fill a standard normal distribution evenly.

    They are a Sobol sequence, moved by a random digital shift, each in the middle of its cell; so
    a power of two of them has every coordinate in every n-th of its distribution once.

    >>> points = normal_points(4, 2)
    >>> np.sort(points, axis=0).round(3)
    array([[-1.15 , -1.15 ],
           [-0.319, -0.319],
           [ 0.319,  0.319],
           [ 1.15 ,  1.15 ]])
    """
    bits = int(n - 1).bit_length()
    cells = (qmc.Sobol(size, scramble=False).random_base2(bits) * 2.0**bits).astype(np.int64)
    cells ^= np.random.default_rng(0).integers(2**bits, size=size)
    return cast(Array, ndtri((cells[:n] + 0.5) / 2.0**bits))


def _drawn(mean: Array, covariance: Array, contrasts: Array, white: Array) -> Array:
    """Activations (n, K, S) with the differences of draws from N(μ, Σ)."""
    values, axes = np.linalg.eigh(contrasts.T @ covariance @ contrasts)
    # The symmetric root: axes of equal length may be any, and would make draws depend on rounding.
    root = (axes * np.sqrt(np.maximum(values, 0.0))[:, None, :]) @ axes.swapaxes(1, 2)
    return mean[:, :, None] + (contrasts @ root) @ white.T


def read_predictive(name: str, n_classes: int) -> str:
    """The name, or what "auto" stands for."""
    check_choice("predictive", name, get_args(PredictiveName))
    if n_classes > 2 and name == "quadrature":
        raise ParameterError(
            f"predictive='quadrature' is for two classes; there are {n_classes}.",
            "Use 'monte_carlo', 'probit' or 'auto'.",
        )
    if name != "auto":
        return name
    return "quadrature" if n_classes == 2 else "monte_carlo"


def log_kernel(posterior: Posterior, method: str, link: ProbabilityLink) -> PredictionKernel:
    """A block of rows to ln p(C_k|x) (n, K), by a `method` other than "auto".

    Of a posterior that was drawn from, the draws themselves are averaged over.
    """
    coef_map, free = posterior.coefficient_map, posterior.free
    is_binary = coef_map.coordinates.n_activations == 1
    if isinstance(free, Draws) or (is_binary and method == "monte_carlo"):
        draws = free.pooled if isinstance(free, Draws) else some_draws(posterior)
        return FromDraws.of(coef_map, draws, lambda a: log_mean(drawn_logs(link, a)))
    if not is_binary:
        by_classes = extended_probit_logs if method == "probit" else monte_carlo_logs
        return FromGaussian(_activations(coef_map, free), by_classes)
    logs = kappa_logs if method == "probit" else quadrature_logs

    def both(mean: Array, variance: Array) -> Array:
        second, first = logs(mean, variance)
        return np.stack([first, second], axis=1)

    return FromGaussian(_activations(coef_map, free), both)


def interval_kernel(posterior: Posterior, level: float, link: ProbabilityLink) -> PredictionKernel:
    """A block of rows to the ends (n, 2) or (n, K, 2) of intervals for the probability itself."""
    check_fraction("level", level)
    coef_map, free = posterior.coefficient_map, posterior.free
    is_binary = coef_map.coordinates.n_activations == 1
    if isinstance(free, Draws):

        def ends(a: Array) -> Array:
            if is_binary:
                return link.mean(quantile_ends(a[:, 0], level))
            return quantile_ends(softmax(a, axis=1), level)

        return FromDraws.of(coef_map, free.pooled, ends)
    if is_binary:
        return FromGaussian(
            _activations(coef_map, free),
            lambda mean, variance: probability_interval(mean, np.sqrt(variance), level, link),
        )
    return FromGaussian(_activations(coef_map, free), partial(class_intervals, level=level))


def _activations(
    coef_map: CoefficientMap, gaussian: Gaussian | DiagonalGaussian
) -> ActivationGaussian:
    if isinstance(gaussian, DiagonalGaussian):
        deviation = gaussian.standard_deviation
        return ActivationGaussian.independent(coef_map, gaussian.mean, deviation)
    return ActivationGaussian.of(coef_map, gaussian.mean, gaussian.root)


def some_draws(posterior: Posterior) -> Array:
    """About 1,000 draws (S, p) of the free parameters, the same ones every time."""
    if not isinstance(posterior.free, Draws):
        return posterior.free.sample(_EFFECT_DRAWS, random_state=0)
    pooled = posterior.free.pooled
    return pooled[:: max(1, len(pooled) // _EFFECT_DRAWS)]
