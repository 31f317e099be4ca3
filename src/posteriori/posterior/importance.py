"""Importance weights whose largest are smoothed, and how far they can be trusted (Vehtari, Simpson,
Gelman, Yao and Gabry 2024).

Draws θ_s from q stand for a density p if each has the weight r_s = p(θ_s)/q(θ_s); p and q need not
be normalised. A few large ratios can make up the whole sum. They follow a generalised Pareto
distribution, whatever p and q, with the density

    (1/σ) (1 + k x/σ)^(-1/k - 1)

of the excess x over a high cut. Ratios have 1/k finite moments, so that k tells what their mean is
worth. In place of the largest ratios stand the quantiles of the distribution fitted to them.

Conventions: S draws, M of them in the tail.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import logsumexp

from posteriori.errors import InfiniteValueError, MissingValueError, ParameterError, ShapeError
from posteriori.typing import Array

_FEWEST = 25
"""Draws whose largest fifth is the smallest tail to be fitted."""

_SMALLEST_TAIL = 5

_LEVEL = 1e-8
"""Logarithms of the largest ratios that differ by less are taken for equal."""

_NOTHING = -600.0
"""Logarithm of a ratio, beside the largest, that is nothing; squares of others can be had."""

_PRIOR_SHAPE, _PRIOR_COUNT = 0.5, 10
"""k is drawn towards the first as if by so many ratios, which steadies it in small tails."""

_VARIANCE, _LARGEST, _MEAN = 0.5, 0.7, 1.0
"""The k from which ratios have no variance, smoothing does not help, and there is no mean."""


Word = Literal["good", "usable", "poor", "useless"]
"""How far weights can be trusted, from the best to the worst."""


class ParetoTail(NamedTuple):
    """A generalised Pareto distribution of excesses: `shape` is k, `scale` is σ."""

    shape: float
    scale: float

    def quantiles(self, p: Array) -> Array:
        """σ ((1 - p)^-k - 1)/k, or -σ ln(1 - p) where k is zero.

        >>> ParetoTail(1.0, 2.0).quantiles(np.array([0.5, 0.75]))
        array([2., 6.])
        """
        steps = -np.log1p(-p)
        with np.errstate(over="ignore"):
            grown = np.expm1(self.shape * steps) / self.shape if self.shape else steps
        return self.scale * grown


@dataclass(frozen=True, eq=False)
class SmoothedWeights:
    """Weights of draws that stand for another density than they were drawn from.

    log_weights: ln of the weights (S,), which sum to one. k_hat: the shape of the tail of the
    ratios; -inf if the largest are equal, +inf if too few matter for it to be known.
    effective_size: 1/Σ w², the draws of equal weight that would be worth as much.
    """

    log_weights: Array
    k_hat: float
    effective_size: float


@dataclass(frozen=True)
class Trust:
    """What k-hat says of importance weights, in a word and in a sentence."""

    word: Word
    sentence: str


def smoothed(log_ratios: Array) -> SmoothedWeights:
    """Pareto-smoothed importance weights from ln r_s (S,), which may lack a common constant.

    The M = min(S/5, 3√S) largest ratios become c + F⁻¹((z - ½)/M), z = 1, ..., M, in their order,
    with c the largest other ratio and F fitted to the excesses over it; none becomes larger than
    the largest was. Ratios that equal c are left as they are. A ratio may be zero.

    Exponential draws of mean one that are to stand for those of mean 5/4, for which k = 1/5:

    >>> x = np.random.default_rng(0).exponential(size=100_000)
    >>> found = smoothed(0.2 * x)
    >>> round(found.k_hat, 2), round(found.effective_size)
    (0.2, 93685)
    >>> round(float(np.exp(found.log_weights) @ x), 2)
    1.25
    """
    logs = _checked(log_ratios)
    logs = logs - logs.max()
    order = np.argsort(logs, kind="stable")
    length = int(np.ceil(min(len(logs) / 5, 3 * np.sqrt(len(logs)))))
    cut = max(float(logs[order[-length - 1]]), _NOTHING)
    tail = order[-length:][logs[order[-length:]] > cut]
    if cut > -_LEVEL:
        return _weights(logs, -np.inf)
    if len(tail) < _SMALLEST_TAIL:
        return _weights(logs, np.inf)
    fit = pareto_fit(np.exp(cut) * np.expm1(logs[tail] - cut))
    p = (np.arange(len(tail)) + 0.5) / len(tail)
    logs[tail] = np.minimum(np.log(np.exp(cut) + fit.quantiles(p)), 0.0)
    return _weights(logs, fit.shape)


def _weights(logs: Array, k_hat: float) -> SmoothedWeights:
    logs = logs - logsumexp(logs)
    return SmoothedWeights(logs, k_hat, float(np.exp(-logsumexp(2 * logs))))


def _checked(log_ratios: Array) -> Array:
    logs = np.asarray(log_ratios, dtype=float)
    if logs.ndim != 1:
        raise ShapeError(f"Log ratios have the shape {logs.shape}.", "Give one number a draw.")
    if len(logs) < _FEWEST:
        raise ParameterError(
            f"{len(logs)} draws are too few to see the tail of their ratios.",
            f"Give at least {_FEWEST} draws.",
        )
    if np.isnan(logs).any():
        raise MissingValueError(
            f"The log ratio of draw {np.isnan(logs).argmax()} is not a number.",
            "Look for a log density that is not one, or for the difference of two infinite ones.",
        )
    if logs.max() == np.inf:
        raise InfiniteValueError(
            f"The log ratio of draw {logs.argmax()} is infinite.",
            "The draws must have a density that is not zero where they are.",
        )
    if logs.max() == -np.inf:
        raise ParameterError(
            "All ratios are zero.", "Draw from a density that covers the one wanted."
        )
    return logs


def pareto_fit(excesses: Array) -> ParetoTail:
    """The generalised Pareto distribution of positive excesses (M,) in increasing order.

    With θ = -k/σ, the likelihood is largest at k(θ) = Σ ln(1 - θx)/M. θ is its mean under

        L(θ) ∝ exp(M (ln(-θ/k(θ)) - k(θ) - 1))

    over a grid whose reach is set by the first quartile (Zhang and Stephens 2009). k is then drawn
    a little towards 1/2, as if by ten more excesses.

    >>> exact = ParetoTail(0.3, 2.0).quantiles((np.arange(5000) + 0.5) / 5000)
    >>> fit = pareto_fit(exact)
    >>> round(fit.shape, 2), round(fit.scale, 2)
    (0.3, 2.0)
    """
    largest = float(excesses[-1])
    x = excesses / largest
    theta = _grid(x)
    k = np.log1p(-theta[:, None] * x).mean(axis=1)
    log_likelihood = len(x) * (np.log(-theta / k) - k - 1)
    weight = np.exp(log_likelihood - logsumexp(log_likelihood))
    best = float(theta @ weight) or float(np.finfo(float).eps)
    shape = float(np.log1p(-best * x).mean())
    drawn = (len(x) * shape + _PRIOR_COUNT * _PRIOR_SHAPE) / (len(x) + _PRIOR_COUNT)
    return ParetoTail(drawn, -shape / best * largest)


def _grid(x: Array) -> Array:
    """The values of θ to be weighed, for excesses whose largest is one."""
    size = 30 + int(np.sqrt(len(x)))
    quartile = x[int(len(x) / 4 + 0.5) - 1]
    theta = 1 + (1 - np.sqrt(size / (np.arange(size) + 0.5))) / (3 * quartile)
    # At zero, -θ/k(θ) is that of its neighbourhood.
    return np.where(theta == 0, np.finfo(float).eps, theta)


def trust(k_hat: float, n_draws: int) -> Trust:
    """What k-hat says of the weights of so many draws.

    "good" up to ½, where ratios have a variance; "usable" up to min(1 - 1/log10 S, 0.7), where
    smoothing takes care of it; "poor" up to 1, where ratios have a mean; "useless" beyond.

    >>> print(trust(0.32, 1000).sentence)
    k-hat is 0.32: the weights are reliable.
    >>> trust(0.75, 1000).word
    'poor'
    """
    limit = min(1 - 1 / np.log10(max(n_draws, 2)), _LARGEST)
    word = _word(k_hat, limit)
    return Trust(word, f"k-hat is {k_hat:.2f}: {_reason(word, k_hat, n_draws)}")


def _word(k_hat: float, limit: float) -> Word:
    if k_hat <= min(_VARIANCE, limit):
        return "good"
    if k_hat <= limit:
        return "usable"
    return "poor" if k_hat <= _MEAN else "useless"


def _reason(word: Word, k_hat: float, n_draws: int) -> str:
    if word == "good":
        return "the weights are reliable."
    if word == "usable":
        return "some draws weigh much more than others, but smoothing takes care of them."
    if word == "useless":
        return "a few draws decide everything; the draws do not cover the density wanted."
    if k_hat <= _LARGEST:
        needed = int(np.ceil(10 ** (1 / (1 - k_hat))))
        return f"{n_draws} draws are too few for it; {needed} would do."
    return "a few draws decide much, and more draws would hardly help."
