"""How far draws from Markov chains can be trusted: whether the chains agree, and how many
independent draws theirs are worth (Vehtari, Gelman, Simpson, Carpenter and Bürkner 2021).

Conventions: draws (chains, steps, p) of p parameters. Every chain is split into its first and its
second half, so that one that wanders is told by itself: C half chains of n steps, N = Cn draws. W
is the mean of the variances within half chains, B the variance of their means, and

    V = W (n - 1)/n + B

the variance of all. Each answer is (p,); it is nan for a parameter that never moves, as draws
cannot tell one that is fixed from one that is stuck.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtri

from posteriori.errors import InfiniteValueError, MissingValueError, ParameterError, ShapeError
from posteriori.typing import Array, Codes

_Ordered = tuple[Array, Codes]
"""Draws of each parameter (q, N) from the smallest to the largest, and where these were."""

_FEWEST_TO_COMPARE = 4
"""Steps a chain for two halves to have a variance each."""

_FEWEST_TO_CORRELATE = 10
"""Steps a chain for a half to have two pairs of correlations, one to be counted and one to stop."""

_SLICE = 2**20
"""Numbers looked at in one go."""

_TAIL = 0.05
"""The share of the draws in either tail."""


def split_rhat(draws: Array) -> Array:
    """R-hat (p,): how much wider all draws spread than those of one chain; 1 where chains agree.

    R̂ = √(V/W) of the normal scores of the draws, which tells chains in different places, or that
    of the scores of |x - median|, which tells chains of different width, whichever is larger. More
    than 1.01 calls for longer chains. It is infinite if no chain moves, and they differ.

    >>> draws = np.random.default_rng(0).normal(size=(4, 1000, 2))
    >>> draws[0, :, 1] += 1.0
    >>> split_rhat(draws).round(2)
    array([1.  , 1.09])
    """
    return _by_parameter(_rhat_of_both, draws, _FEWEST_TO_COMPARE)


def effective_size_bulk(draws: Array) -> Array:
    """The number (p,) of independent draws that say as much of the middle of the distribution.

    N/τ of the normal scores of the draws, with τ = 1 + 2 Σ ρ_t over the correlations of draws t
    steps apart, cut off where noise begins (Geyer 1992). Below 100 a chain, R-hat and the spread
    of the draws are not to be relied on. It is more than N if steps lead to and fro, but never more
    than N log10 N.

    >>> steps = np.random.default_rng(0).normal(size=(4, 1000, 1))
    >>> effective_size_bulk(steps).round()
    array([3926.])
    >>> effective_size_bulk(np.cumsum(steps, axis=1)).round()
    array([5.])
    """
    return _by_parameter(_size_of_scores, draws, _FEWEST_TO_CORRELATE)


def effective_size_tail(draws: Array) -> Array:
    """The number (p,) of independent draws that say as much of the 5% and the 95% quantile.

    N/τ of the indicators I(x ≤ q), with q the 5% and the 95% quantile, whichever is smaller. One
    that never changes, because so many draws are the same, is left out.

    >>> draws = np.random.default_rng(0).normal(size=(4, 1000, 1))
    >>> effective_size_tail(draws).round()
    array([4028.])
    """
    return _by_parameter(_size_of_tails, draws, _FEWEST_TO_CORRELATE)


def mean_error(draws: Array) -> Array:
    """The Monte Carlo standard error (p,) of the mean of the draws.

    s/√(N/τ), with s the standard deviation of all draws and N/τ their effective size.

    >>> draws = np.random.default_rng(0).normal(size=(4, 2500, 1))
    >>> mean_error(draws).round(3)
    array([0.01])
    """
    return _by_parameter(_error_of_mean, draws, _FEWEST_TO_CORRELATE)


def _by_parameter(measure: Callable[[Array], Array], draws: Array, fewest: int) -> Array:
    """`measure` of (q, chains, steps), a slice of the parameters at a time (p,)."""
    draws = np.asarray(draws, dtype=float)
    _check_shape(draws, fewest)
    chains, steps, p = draws.shape
    out, width = np.empty(p), max(1, _SLICE // (chains * steps))
    for low in range(0, p, width):
        some = np.ascontiguousarray(np.moveaxis(draws[..., low : low + width], -1, 0))
        _check_finite(some, low)
        found = measure(some)
        out[low : low + width] = np.where(np.ptp(some, axis=(1, 2)) > 0, found, np.nan)
    return out


def _check_shape(draws: Array, fewest: int) -> None:
    if draws.ndim != 3 or draws.shape[0] == 0:
        raise ShapeError(
            f"Draws have the shape {draws.shape}.", "Give an array (chains, steps, parameters)."
        )
    if draws.shape[1] < fewest:
        raise ParameterError(
            f"Chains of {draws.shape[1]} steps are too short to be judged.",
            f"Draw at least {fewest} steps a chain; hundreds are usual.",
        )


def _check_finite(draws: Array, offset: int) -> None:
    wrong = np.flatnonzero(~np.isfinite(draws).all(axis=(1, 2)))
    if len(wrong) == 0:
        return
    name = f"parameter {offset + wrong[0]}"
    remedy = "Look for steps at which the log density is not finite, and reject them."
    if np.isnan(draws[wrong[0]]).any():
        raise MissingValueError(f"A draw of {name} is not a number.", remedy)
    raise InfiniteValueError(f"A draw of {name} is infinite.", remedy)


def _rhat_of_both(draws: Array) -> Array:
    halves = _halves(draws)
    ordered, order = _in_order(halves.reshape(len(halves), -1))
    middle = ordered.shape[1] // 2
    folded = np.abs(ordered - ordered[:, middle - 1 : middle + 1].mean(axis=1, keepdims=True))
    # It falls, then rises: two runs, which a stable sort only has to merge.
    refolded, again = _in_order(folded, kind="stable")
    reorder = np.take_along_axis(order, again, axis=1)
    bulk = _normal_scores(ordered, order).reshape(halves.shape)
    tail = _normal_scores(refolded, reorder).reshape(halves.shape)
    return np.fmax(_rhat(bulk), _rhat(tail))


def _size_of_scores(draws: Array) -> Array:
    halves = _halves(draws)
    scores = _normal_scores(*_in_order(halves.reshape(len(halves), -1)))
    return _effective_size(scores.reshape(halves.shape))


def _size_of_tails(draws: Array) -> Array:
    low, high = np.quantile(draws, [_TAIL, 1 - _TAIL], axis=(1, 2))[..., None, None]
    return np.fmin(_size_of_share(draws <= low), _size_of_share(draws <= high))


def _size_of_share(inside: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Array:
    return _effective_size(_halves(inside.astype(float)))


def _error_of_mean(draws: Array) -> Array:
    # In units of their range, no square of a draw is too large or too small.
    units = np.ptp(draws, axis=(1, 2))
    lowest = draws.min(axis=(1, 2), keepdims=True)
    scaled = (draws - lowest) / np.where(units > 0, units, 1.0)[:, None, None]
    return units * scaled.std(axis=(1, 2), ddof=1) / np.sqrt(_effective_size(_halves(scaled)))


def _halves(draws: Array) -> Array:
    """Half chains (q, 2 chains, n); the step in the middle of an odd number is left out."""
    n = draws.shape[2] // 2
    return np.concatenate([draws[..., :n], draws[..., -n:]], axis=1)


def _in_order(flat: Array, kind: Literal["quicksort", "stable"] = "quicksort") -> _Ordered:
    order = np.argsort(flat, axis=1, kind=kind)
    return np.take_along_axis(flat, order, axis=1), order


def _normal_scores(ordered: Array, order: Codes) -> Array:
    """Φ⁻¹((r - 3/8)/(N + 1/4)) in the places `order`, with r the rank among all N draws."""
    N = ordered.shape[1]
    at_twice_rank = ndtri((1 + np.arange(2 * N - 1) / 2 - 3 / 8) / (N + 1 / 4))
    scores = np.empty_like(ordered)
    np.put_along_axis(scores, order, at_twice_rank[_twice_rank(ordered)], axis=1)
    return scores


def _twice_rank(ordered: Array) -> Codes:
    """Twice the rank, from 0, of draws in order (q, N); equal ones share the mean of theirs."""
    places = np.arange(ordered.shape[1])
    equal = ordered[:, 1:] == ordered[:, :-1]
    if not equal.any():
        return np.broadcast_to(2 * places, ordered.shape)
    first = np.broadcast_to(places, ordered.shape).copy()
    last = first.copy()
    first[:, 1:][equal] = 0
    last[:, :-1][equal] = places[-1]
    first = np.maximum.accumulate(first, axis=1)
    return first + np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]


def _centred(halves: Array) -> tuple[Array, Array]:
    """Draws less the means of their half chains, and these means (q, C).

    The first draw goes first, so that nothing is left of a chain that stands still.
    """
    first = halves[..., :1]
    moved = halves - first
    mean = moved.mean(axis=2, keepdims=True)
    return moved - mean, (first + mean)[..., 0]


def _rhat(halves: Array) -> Array:
    """√(V/W)."""
    centred, means = _centred(halves)
    n = halves.shape[2]
    within = np.square(centred).sum(axis=2).mean(axis=1) / (n - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt((n - 1) / n + means.var(axis=1, ddof=1) / within)


def _effective_size(halves: Array) -> Array:
    """N/τ; nan where nothing moves."""
    N = halves.shape[1] * halves.shape[2]
    tau = _geyer_sum(_correlations(halves))
    return N / np.maximum(tau, 1 / np.log10(N))


def _correlations(halves: Array) -> Array:
    """ρ_t = 1 - (W - c_t)/V (q, n), with c_t the mean over half chains of their autocovariance."""
    centred, means = _centred(halves)
    n = halves.shape[2]
    covariance = _mean_autocovariance(centred)
    within = covariance[:, :1] * n / (n - 1)
    total = covariance[:, :1] + means.var(axis=1, ddof=1)[:, None]
    with np.errstate(invalid="ignore"):
        rho = 1 - (within - covariance) / total
    rho[:, 0] = np.where(total[:, 0] > 0, 1.0, np.nan)
    return rho


def _mean_autocovariance(centred: Array) -> Array:
    """Σ x_s x_{s+t}/n at t = 0, ..., n - 1, as the transform of the mean power of half chains."""
    n = centred.shape[2]
    length = next_fast_len(2 * n, real=True)
    spectrum = rfft(centred, length, axis=2)
    power = (np.square(spectrum.real) + np.square(spectrum.imag)).mean(axis=1)
    return irfft(power, length, axis=1)[:, :n] / n


def _geyer_sum(rho: Array) -> Array:
    """τ = -1 + 2 Σ (ρ_2k + ρ_2k+1), over the pairs before the first that is not positive.

    In truth pairs are positive and decrease, so that each is at most the one before it. Of the
    first pair left out, the even correlation is counted once.
    """
    n_pairs = (rho.shape[1] - 1) // 2
    even, odd = rho[:, 0 : 2 * n_pairs : 2], rho[:, 1 : 2 * n_pairs : 2]
    pairs = even + odd
    is_counted = np.logical_and.accumulate(pairs > 0, axis=1)
    is_counted[:, -1] = False
    counted = np.where(is_counted, np.minimum.accumulate(pairs, axis=1), 0.0).sum(axis=1)
    next_even = np.take_along_axis(even, is_counted.sum(axis=1)[:, None], axis=1)[:, 0]
    return -1 + 2 * counted + np.maximum(next_even, 0.0)
