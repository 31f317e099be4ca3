"""How far a posterior can be trusted, told by weighted draws: its tails, its mean and its width.

Conventions: p free parameters, S draws (S, p).
"""

from dataclasses import dataclass, replace
from typing import cast, get_args

import numpy as np

from posteriori.posterior.importance import SmoothedWeights, Word, smoothed, trust
from posteriori.posterior.many_jeffreys import densities_of
from posteriori.posterior.monte_carlo import Draws
from posteriori.posterior.normal_posterior import Gaussian
from posteriori.posterior.objective import LogPosterior
from posteriori.posterior.summary import number_text
from posteriori.posterior.wide_laplace import WideLaplace
from posteriori.typing import Array

_FEWEST_DRAWS, _MOST_DRAWS, _ACTIVATIONS = 1000, 10_000, 10**7
"""Draws of a Gaussian that say how well it fits: as many as make so many activations of rows."""

_ENOUGH = 400
"""Effective draws that are enough."""

_FEW = 100
"""Effective draws that are too few to tell a width."""

_SEED = 0
"""Of the draws that say how well a Gaussian fits, so that they say the same whenever asked."""

_NEAR, _FAR = 0.4, 0.6
"""Standard deviations up to which the means of a Gaussian and of the posterior are close, or near:
probabilities then change by some hundredths, or by less than a tenth."""

_NARROW, _TOO_NARROW, _POINT = 0.85, 0.7, 0.35
"""Standard deviations beside the exact ones with which 95 % intervals hold 90, 83 and 51 %."""

_WORDS: tuple[Word, ...] = get_args(Word)

_SENTENCES: dict[Word, str] = {
    "good": "The Gaussian is close to the exact posterior",
    "usable": "The Gaussian is near the exact posterior, but not in all its tails",
    "poor": "The exact posterior lies or reaches elsewhere: use inference='monte_carlo'",
    "useless": "The exact posterior is unlike the Gaussian: use inference='monte_carlo'",
}


@dataclass(frozen=True)
class Verdict:
    """How far a posterior can be trusted: a word, a sentence, and what it goes by for a Gaussian.

    "good" and "usable" are enough; with "poor" and "useless" probabilities and tails may be off.
    k_hat tells of tails that the Gaussian lacks. shift tells how far the mean of the exact
    posterior is from its own, in standard deviations along the direction in which it is. width
    is its standard deviation beside the exact one, along the direction in which they differ most:
    0.7 if it is too small by 30 %; None if too few draws count to tell.
    """

    word: Word
    sentence: str
    k_hat: float | None = None
    shift: float | None = None
    width: float | None = None

    @property
    def is_enough(self) -> bool:
        """Whether draws would hardly change anything."""
        return self.word in ("good", "usable")

    def __str__(self) -> str:
        return self.sentence


def worst(*words: Word) -> Word:
    """The word that says least good.

    >>> worst("usable", "good", "poor")
    'poor'
    """
    return max(words, key=_WORDS.index)


def verdict_on(objective: LogPosterior, gaussian: Gaussian, curved: Gaussian) -> Verdict:
    """Whether the Gaussian is near the posterior, by the weights that make its draws draws of it.

    Their k-hat does not see a Gaussian that is wider than the posterior, or beside it, as that of
    separated classes is; their mean does. Draws of a Gaussian that is too narrow do not reach what
    it lacks: mean and width are told by those of `curved`, which has the curvature of the
    posterior; for Laplace's it is the same.
    """
    n_draws = int(np.clip(_ACTIVATIONS // max(objective.n_rows, 1), _FEWEST_DRAWS, _MOST_DRAWS))
    draws, weights = _weighted(objective, gaussian, n_draws)
    k_hat = weights.k_hat
    if curved is not gaussian:
        draws, weights = _weighted(objective, curved, n_draws)
    white = (draws - gaussian.mean) @ gaussian.precision_cholesky
    shift, width = _shift(white, np.exp(weights.log_weights)), _width(white, weights)
    word = worst(trust(k_hat, n_draws).word, _nearness(shift), _likeness(width))
    told = f"k-hat {k_hat:.2f}, mean off by {shift:.2f} standard deviations"
    told += "" if width is None else f", {_told(width)}"
    return Verdict(word, f"{_SENTENCES[word]} ({told}).", k_hat, shift, width)


def verdict_on_many(found: WideLaplace) -> Verdict:
    """Whether draws have the curvature of the posterior of very many coefficients.

    Weights of draws say nothing there: in thousands of dimensions a few of them always have all
    the weight. Whether the posterior is Gaussian at all remains open; so it is usable at best.
    """
    gaussian = found.gaussian
    told = (
        f"The Gaussian of the curvature is known by {gaussian.told}, so that standard deviations "
        f"are off by some {100 * gaussian.error:.0f} %; whether the exact posterior of "
        f"{len(gaussian.mean):,} coefficients is Gaussian was not checked."
    )
    if found.is_settled:
        return Verdict("usable", told)
    more = f" The draws had not settled: they still changed by {100 * found.settled:.0f} %."
    return Verdict("poor", told + more)


def _weighted(
    objective: LogPosterior, gaussian: Gaussian, n_draws: int
) -> tuple[Array, SmoothedWeights]:
    """Draws of the Gaussian, and the weights with which they stand for the posterior."""
    draws = gaussian.sample(n_draws, _SEED)
    found = densities_of(objective).log_density(draws) - gaussian.log_density(draws)
    return draws, smoothed(found)


def _nearness(shift: float) -> Word:
    return "good" if shift <= _NEAR else "usable" if shift <= _FAR else "poor"


def _likeness(width: float | None) -> Word:
    """What it is worth; as much too large is as bad as too small."""
    ratio = 1.0 if width is None else min(width, 1 / width)
    if ratio >= _TOO_NARROW:
        return "good" if ratio >= _NARROW else "usable"
    return "poor" if ratio >= _POINT else "useless"


def _told(width: float) -> str:
    """The width in words.

    >>> _told(0.7)
    'its standard deviations too small by up to 30 %'
    """
    percent = round(100 * abs(1 - width))
    if percent == 0:
        return "its standard deviations right"
    return f"its standard deviations too {'small' if width < 1 else 'large'} by up to {percent} %"


def _shift(white: Array, weights: Array) -> float:
    """The length of the mean of weighted draws in standard deviations, without what is noise."""
    mean = weights @ white
    noise = weights**2 @ np.square(white - mean).sum(axis=1)
    return float(np.sqrt(max(mean @ mean - noise, 0.0)))


def _width(white: Array, found: SmoothedWeights) -> float | None:
    """One over the standard deviation that is farthest from one, without what is noise.

    Half of the draws say along which directions to look, the others what the deviation is there:
    the largest of many would else be the noisiest.
    """
    if found.effective_size < _FEW:
        return None
    weights = np.exp(found.log_weights)
    directions = np.linalg.eigh(_covariance(white[::2], weights[::2]))[1]
    along, w = white[1::2] @ directions, weights[1::2] / weights[1::2].sum()
    squares = np.square(along - w @ along)
    variance = w @ squares
    noise = np.sqrt(w**2 @ np.square(squares - variance)) / variance
    # So many of them have noise of this size, one of them at least.
    noise *= 1.0 + np.sqrt(2 * np.log(2 * len(variance)))
    log_variance = np.log(variance)
    sure = np.sign(log_variance) * np.maximum(abs(log_variance) - noise, 0.0)
    return float(np.exp(-0.5 * sure[abs(sure).argmax()]))


def _covariance(white: Array, weights: Array) -> Array:
    w = weights / weights.sum()
    away = white - w @ white
    return cast(Array, (away.T * w) @ away)


def verdict_on_chains(chains: Draws) -> Verdict:
    """Whether the chains agree."""
    rhat, size = float(np.nanmax(chains.rhat)), float(np.nanmin(chains.effective_size))
    agree = chains.worst(min(_ENOUGH, len(chains.pooled) / 4)) is None
    return Verdict(
        "good" if agree else "poor",
        f"The draws are those of the exact posterior; their chains {'' if agree else 'do not '}"
        f"agree (R-hat {rhat:.3f} at most, {size:.0f} effective draws at least).",
    )


def after_updates(verdict: Verdict, before: Word, n_last: float, n_all: float) -> Verdict:
    """The verdict on the last of several fits, where only the rows of that one are there.

    `before` is the best that can be said of what the fits before it handed on: "usable", unless
    one of them was judged worse.
    """
    told = (
        f"{verdict.sentence} That is told of the last {number_text(n_last)} of "
        f"{number_text(n_all)} rows: those before are known by a Gaussian, and what that lost of "
        "them is not seen here; only a fit to all rows has it."
    )
    word = worst(verdict.word, before)
    if word != worst(verdict.word, "usable"):
        told += f" An earlier fit was judged '{before}', and what it lost stays lost."
    return replace(verdict, word=word, sentence=told)
