"""Posteriors over the coefficients of a fit, by name: what each of them makes of the optimum."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast, get_args

import numpy as np

from posteriori.arguments import as_generator
from posteriori.posterior.chosen_prior import Chosen, groups_of
from posteriori.posterior.drawn_evidence import drawn_log_evidence
from posteriori.posterior.importance import Word, smoothed, trust
from posteriori.posterior.inference import Inference
from posteriori.posterior.many import ManyDensities
from posteriori.posterior.monte_carlo import Draws, sample_posterior
from posteriori.posterior.normal_posterior import Gaussian
from posteriori.posterior.objective import LogPosterior
from posteriori.posterior.priors import Penalty
from posteriori.posterior.variational import variational
from posteriori.posterior.variational_evidence import variational_evidence
from posteriori.typing import Array

_EVIDENCE_POINTS = 2000
"""Points at which the density is weighed for the evidence."""

_FEWEST_DRAWS, _MOST_DRAWS, _ACTIVATIONS = 1000, 10_000, 10**7
"""Draws of a Gaussian that say how well it fits: as many as make so many activations of rows."""

_ENOUGH = 400
"""Effective draws that are enough."""

_SEED = 0
"""Of the draws that say how well a Gaussian fits, so that they say the same whenever asked."""

_NEAR, _FAR = 0.4, 0.6
"""Standard deviations up to which the means of a Gaussian and of the posterior are close, or near:
probabilities then change by some hundredths, or by less than a tenth."""

_WORDS: tuple[Word, ...] = get_args(Word)

_SENTENCES: dict[Word, str] = {
    "good": "The Gaussian is close to the exact posterior",
    "usable": "The Gaussian is near the exact posterior, but not in all its tails",
    "poor": "The exact posterior lies or reaches elsewhere: use inference='monte_carlo'",
    "useless": "The exact posterior is unlike the Gaussian: use inference='monte_carlo'",
}


@dataclass(frozen=True, eq=False)
class Found:
    """A posterior: the Gaussian, or draws as well; ln p(t) by it; and the prior it was found with.

    `bound` has the lower bounds on ln p(t) of each step, if it was found by one.
    """

    gaussian: Gaussian
    log_evidence: float
    penalty: Penalty
    chains: Draws | None = None
    bound: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class Asked:
    """An optimum and its curvature, how its prior was chosen, and how to draw."""

    inference: Inference
    chosen: Chosen | None
    n_draws: int
    random_state: Any

    @property
    def objective(self) -> LogPosterior:
        return self.inference.objective


def by_laplace(asked: Asked) -> Found:
    """The Gaussian of the curvature at the most probable coefficients (4.144)."""
    inference = asked.inference
    gaussian = Gaussian.of(inference.w, inference.free_precision)
    return Found(gaussian, inference.evidence.value, asked.objective.penalty)


def by_variational(asked: Asked) -> Found:
    """The Gaussian of the largest quadratic lower bound on the evidence."""
    inference, objective = asked.inference, asked.objective
    start = inference.w, inference.free_precision
    if asked.chosen is None:
        found = variational(objective, *start)
    else:
        groups = groups_of(objective.columns, objective.standard.intercept, asked.chosen)
        found = variational_evidence(objective, groups, *start)
    return Found(found.posterior, found.bound, found.penalty, bound=found.trace)


def by_monte_carlo(asked: Asked) -> Found:
    """Draws from the exact posterior, and the evidence by weighting others like them."""
    laplace, objective = by_laplace(asked), asked.objective
    target = ManyDensities(objective)
    draws = sample_posterior(
        target,
        laplace.gaussian.mean,
        laplace.gaussian.precision_cholesky,
        asked.n_draws,
        random_state=asked.random_state,
        names=asked.inference.shown.names,
    )
    # What the target leaves out of ln p(t, w) is the same at every w.
    parts, mode = asked.inference.evidence, laplace.gaussian.mean[None, :]
    left_out = parts.log_likelihood + parts.log_prior - target.log_density(mode)[0]
    random = as_generator(asked.random_state)
    found = drawn_log_evidence(target, draws.pooled, _EVIDENCE_POINTS, random)
    return Found(laplace.gaussian, found + left_out, objective.penalty, chains=draws)


INFERENCES: dict[str, Callable[[Asked], Found]] = {
    "laplace": by_laplace,
    "variational": by_variational,
    "monte_carlo": by_monte_carlo,
}


def log_ratios(objective: LogPosterior, gaussian: Gaussian, draws: Array) -> Array:
    """ln of the posterior over the Gaussian at draws (S, p) of that, zero at its mean."""
    target = ManyDensities(objective)
    points = np.concatenate([gaussian.mean[None, :], draws])
    found = target.log_density(points) - gaussian.log_density(points)
    return found[1:] - found[0]


@dataclass(frozen=True)
class Verdict:
    """How far a posterior can be trusted: a word, a sentence, and what it goes by for a Gaussian.

    "good" and "usable" are enough; with "poor" and "useless" probabilities and tails may be off.
    k_hat tells of tails that the Gaussian lacks. shift tells how far the mean of the exact
    posterior is from its own, in standard deviations along the direction in which it is.
    """

    word: Word
    sentence: str
    k_hat: float | None = None
    shift: float | None = None

    @property
    def is_enough(self) -> bool:
        """Whether draws would hardly change anything."""
        return self.word in ("good", "usable")

    def __str__(self) -> str:
        return self.sentence


def verdict_on(objective: LogPosterior, gaussian: Gaussian) -> Verdict:
    """Whether the Gaussian is near the posterior, by the weights that make its draws draws of it.

    Their k-hat does not see a Gaussian that is wider than the posterior, or beside it, as that of
    separated classes is; their mean does.
    """
    n_draws = int(np.clip(_ACTIVATIONS // max(objective.n_rows, 1), _FEWEST_DRAWS, _MOST_DRAWS))
    draws = gaussian.sample(n_draws, _SEED)
    found = smoothed(log_ratios(objective, gaussian, draws))
    shift = _shift(gaussian, draws, np.exp(found.log_weights))
    nearness = "good" if shift <= _NEAR else "usable" if shift <= _FAR else "poor"
    words = (trust(found.k_hat, n_draws).word, nearness)
    word = cast(Word, max(words, key=_WORDS.index))
    told = f"k-hat {found.k_hat:.2f}, mean off by {shift:.2f} standard deviations"
    return Verdict(word, f"{_SENTENCES[word]} ({told}).", found.k_hat, shift)


def _shift(gaussian: Gaussian, draws: Array, weights: Array) -> float:
    """The length of the mean of weighted draws in standard deviations, without what is noise."""
    white = (draws - gaussian.mean) @ gaussian.precision_cholesky
    mean = weights @ white
    noise = weights**2 @ np.square(white - mean).sum(axis=1)
    return float(np.sqrt(max(mean @ mean - noise, 0.0)))


def verdict_on_chains(chains: Draws) -> Verdict:
    """Whether the chains agree."""
    rhat, size = float(np.nanmax(chains.rhat)), float(np.nanmin(chains.effective_size))
    agree = chains.worst(min(_ENOUGH, len(chains.pooled) / 4)) is None
    return Verdict(
        "good" if agree else "poor",
        f"The draws are those of the exact posterior; their chains {'' if agree else 'do not '}"
        f"agree (R-hat {rhat:.3f} at most, {size:.0f} effective draws at least).",
    )
