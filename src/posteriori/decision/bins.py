"""Rows of like predictions, taken together: what was predicted of them, and what happened."""

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, betaln, xlog1py, xlogy

from posteriori.typing import Array, Codes


@dataclass(frozen=True, eq=False)
class Bins:
    """Bins (m,) of rows in order of their predictions.

    `n` is the number of rows (the sum of their weights), `predicted` the mean prediction,
    `observed` how often the event happened. `variance` is that of the number of events if the
    predictions are right, Σ p(1 - p); `residual` the sum of squares of t - p about its mean.
    """

    n: Array
    predicted: Array
    observed: Array
    variance: Array
    residual: Array

    @property
    def gap(self) -> Array:
        return self.observed - self.predicted


def make_bins(
    predicted: Array, happened: NDArray[np.bool_], weight: Array, bins: int | None
) -> Bins:
    """Bins with equal numbers of rows, as far as rows of one prediction can stay together.

    By default there are as many as the cube root of the number of rows, which keeps the error from
    averaging within bins and that from small bins in balance. Weights that are whole numbers count
    rows; of others only the ratios matter here, see `rows_of`.
    """
    bin_of_row = bins_of(predicted, weight, bins)

    def total(values: Array) -> Array:
        return cast(Array, np.bincount(bin_of_row, weight * values))

    n = total(np.ones_like(predicted))
    gap = total(happened - predicted) / n
    return Bins(
        n,
        total(predicted) / n,
        total(happened.astype(np.float64)) / n,
        total(predicted * (1 - predicted)),
        total((happened - predicted - gap[bin_of_row]) ** 2),
    )


def bins_of(predicted: Array, weight: Array, bins: int | None) -> Codes:
    """The bin of each row (n,), in the order of the predictions.

    >>> bins_of(np.array([0.3, 0.1, 0.3, 0.9]), np.ones(4), 2)
    array([1, 0, 1, 1])
    """
    place = np.unique(predicted, return_inverse=True)[1]
    held = np.bincount(place, weight)
    wanted = max(1, round(rows_of(weight) ** (1 / 3))) if bins is None else bins
    middle = (np.cumsum(held) - held / 2) / held.sum()
    bin_of_level = (middle * wanted + _ROUNDING).astype(np.intp)
    return np.unique(bin_of_level, return_inverse=True)[1][place]


_ROUNDING = 1e-9
"""Of a bin, by which a row on its edge may miss it; of a weight, by which it may miss a number."""


def rows_of(weight: Array) -> float:
    """How many rows these are: the sum of whole weights, else (Σw)²/Σw² (Kish, 1965).

    The latter is the number of equal weights with as much to tell, in whatever units.

    >>> rows_of(np.array([1.0, 2.0, 0.0])), rows_of(np.array([0.25, 0.25])), rows_of(np.zeros(2))
    (3.0, 2.0, 0.0)
    """
    total = float(weight.sum())
    if total < _COUNTABLE and (abs(weight - np.rint(weight)) <= _ROUNDING * weight).all():
        return total
    share = weight / weight.max()
    return float(share.sum() ** 2 / (share**2).sum())


_COUNTABLE = 2.0**53
"""From here on every double is a whole number, and no weight counts rows."""


def exact_interval(rate: Array, n: Array, level: float) -> tuple[Array, Array]:
    """Clopper and Pearson's interval for a probability, from a rate among n rows.

    Its ends are the probabilities under which a rate as large, or as small, has the chance
    (1 - level)/2; it covers at least as often as `level` says.

    >>> low, high = exact_interval(np.array([0.0, 0.5]), np.array([10.0, 10.0]), 0.95)
    >>> low.round(4), high.round(4)
    (array([0.    , 0.1871]), array([0.3085, 0.8129]))
    """
    tail, hits = (1 - level) / 2, rate * n
    misses = n - hits
    low, high = np.zeros_like(rate), np.ones_like(rate)
    some, lacking = hits > 0, misses > 0
    low[some] = betaincinv(hits[some], misses[some] + 1, tail)
    high[lacking] = betaincinv(hits[lacking] + 1, misses[lacking], 1 - tail)
    return low, high


def mean_gap_by_chance(bins: Bins) -> Array:
    """The mean of |observed - predicted| in each bin, if the predictions are right.

    The number of events is taken as binomial with the mean and the variance that it has:
    E|X - Np| = 2ν C(N, ν) p^ν (1 - p)^(N - ν + 1), with ν the first integer above Np (De Moivre);
    if it varies by many, as normal.
    """
    expected = bins.n * np.minimum(bins.predicted, 1 - bins.predicted)
    found = np.zeros_like(expected)
    normal = bins.variance > _NORMAL
    found[normal] = np.sqrt(2 * bins.variance[normal] / np.pi)
    chance = (bins.variance > 0) & ~normal
    mean, variance = expected[chance], np.minimum(bins.variance, expected)[chance]
    p = np.maximum(1 - variance / mean, _SMALLEST_P)
    N = mean / p
    ν = np.floor(mean) + 1
    log_choose = -np.log1p(N) - betaln(N - ν + 1, ν + 1)
    log_mean = np.log(2 * ν) + log_choose + xlogy(ν, p) + xlog1py(N - ν + 1, -p)
    found[chance] = np.exp(log_mean)
    return found / bins.n


_NORMAL = 1e8
"""Variance from which on a binomial is normal in this to nine digits, and its logs have fewer."""

_SMALLEST_P = 1e-9
"""Below it, the binomial is a Poisson distribution to all digits that matter."""


def mean_square_gap(bins: Bins) -> float | None:
    """Σ (n/N) gap² less what chance adds to it: without bias, so that it may fall below zero.

    From each gap² the variance of the gap is taken, as the rows of the bin show it (Kumar, Liang
    and Ma, 2019). A bin of one row or less cannot show it and is left out; None if all are.
    """
    told = bins.n - 1 > _MORE_THAN_ONE * bins.n
    if not told.any():
        return None
    n, gap, residual = bins.n[told], bins.gap[told], bins.residual[told]
    square = gap**2 - residual / (n - 1) / n
    return float(n @ square / n.sum())


_MORE_THAN_ONE = 1e-6
"""Share of a bin by which it must exceed one row: less is the rounding of its weights."""
