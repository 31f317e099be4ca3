"""The posterior by name, and how well a Gaussian approximates it by importance weights.

Conventions: p free parameters, S draws w_s (S, p) of the Gaussian q, r_s = p(w_s|t)/q(w_s).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, cast, get_args

import numpy as np

from posteriori.arguments import as_generator
from posteriori.inspection.results import number_text
from posteriori.posterior.evidence import Chosen, groups_of
from posteriori.posterior.gaussian import DiagonalGaussian, Gaussian
from posteriori.posterior.inference import Inference
from posteriori.posterior.jeffreys import JeffreysPosterior
from posteriori.posterior.log_posterior import LogPosterior
from posteriori.posterior.monte_carlo import (
    Draws,
    PosteriorDensity,
    importance_evidence,
    pareto_k,
    sample_posterior,
)
from posteriori.posterior.priors import Penalty
from posteriori.posterior.variational import variational
from posteriori.rows.threads import one_blas_thread
from posteriori.typing import Array

Word = Literal["good", "usable", "poor"]
"""How far an approximation can be relied on, from the best to the worst."""

_WORDS: tuple[Word, ...] = get_args(Word)

_MOST_DRAWS, _FEWEST_DRAWS, _ACTIVATIONS = 200, 8, 400_000
"""Draws of the Gaussian: as many as make so many activations of rows, within these bounds."""

_TAIL_DRAWS = 100
"""Draws that k-hat needs."""

_SEED = 0

_SMALL, _LARGE = 0.15, 0.4
"""Discrepancies up to which a Gaussian is close, and from which on it is not."""

_K_HAT = 0.7
"""k-hat above which importance weights are not reliable (Vehtari and others 2024)."""

_SENTENCES: dict[Word, str] = {
    "good": "The Gaussian approximation is close to the exact posterior",
    "usable": "The Gaussian approximation is near the exact posterior, but not in all its tails",
    "poor": "The Gaussian approximation is far from the exact posterior",
}


DIAGONAL = (
    "The posterior has the diagonal of the second derivatives alone: coefficients count as "
    "independent, and where columns are correlated, standard deviations are too small."
)
"""The note for very many coefficients."""


@dataclass(frozen=True)
class ApproximationCheck:
    """How well the posterior is approximated: a word, a sentence, a remedy if it is poor, and the
    numbers for a Gaussian.

    discrepancy: the standard deviation of ln r over draws of the Gaussian, divided by √p; zero if
    the posterior is Gaussian. k_hat: the shape of the tail of r by Pareto smoothing; None where
    rows are so many that only a few draws were evaluated.
    """

    word: Word
    sentence: str
    k_hat: float | None = None
    discrepancy: float | None = None
    remedy: str = ""

    @property
    def is_enough(self) -> bool:
        """Whether Monte Carlo would change little."""
        return self.word != "poor"

    def __str__(self) -> str:
        return f"{self.sentence} {self.remedy}".rstrip()


def worst(*words: Word) -> Word:
    """The least good of some words.

    >>> worst("usable", "good", "poor")
    'poor'
    """
    return max(words, key=_WORDS.index)


def check_gaussian(objective: LogPosterior, gaussian: Gaussian) -> ApproximationCheck:
    """The check of a Gaussian, on the same draws every time."""
    size = objective.n_rows * objective.coordinates.n_activations
    n_draws = int(np.clip(_ACTIVATIONS // max(size, 1), _FEWEST_DRAWS, _MOST_DRAWS))
    draws, is_jeffreys = gaussian.sample(n_draws, _SEED), isinstance(objective, JeffreysPosterior)
    with one_blas_thread():
        if is_jeffreys:
            log_density = np.array([-objective(draw, "none").value for draw in draws])
        else:
            log_density = PosteriorDensity(objective).log_density(draws)
    log_ratio = log_density - gaussian.log_density(draws)
    k_hat = pareto_k(log_ratio) if n_draws >= _TAIL_DRAWS else None
    with np.errstate(invalid="ignore"):
        discrepancy = float(np.std(log_ratio)) / len(gaussian.mean) ** 0.5
    word = _word(discrepancy, k_hat)
    remedy = "" if word != "poor" else "Use inference='monte_carlo'."
    if remedy and is_jeffreys:
        remedy = "Use a Gaussian prior and inference='monte_carlo'."
    numbers = f"discrepancy {discrepancy:.2f}" + ("" if k_hat is None else f", k-hat {k_hat:.2f}")
    sentence = f"{_SENTENCES[word]} ({numbers})."
    return ApproximationCheck(word, sentence, k_hat, discrepancy, remedy)


def _word(discrepancy: float, k_hat: float | None) -> Word:
    """By the discrepancy, with k-hat telling "good" from "usable".

    k-hat of a joint density is large in many dimensions, whatever its margins, and does not detect
    a Gaussian that is too wide, as that of separated classes is.
    """
    if not discrepancy <= _LARGE:
        return "poor"
    return "good" if discrepancy <= _SMALL and (k_hat is None or k_hat <= _K_HAT) else "usable"


def check_diagonal(p: int) -> ApproximationCheck:
    """That of a posterior of p coefficients without their correlations, which is not checked.

    Weights of draws say nothing there: in thousands of dimensions a few have all the weight.
    """
    more = f"Whether the exact posterior of {p:,} coefficients is near was not checked."
    return ApproximationCheck("usable", f"{DIAGONAL} {more}")


def check_draws(draws: Draws) -> ApproximationCheck:
    """Whether chains agree."""
    found = draws.diagnostics
    rhat = float(np.nanmax(found["rhat"]))
    size = float(np.nanmin(np.minimum(found["ess_bulk"], found["ess_tail"])))
    agree = draws.worst() is None
    return ApproximationCheck(
        "good" if agree else "poor",
        f"The draws are from the exact posterior; their chains {'' if agree else 'do not '}"
        f"agree (R-hat {rhat:.3f} at most, {size:.0f} effective draws at least).",
    )


def after_updates(
    check: ApproximationCheck, before: Word, n_last: float, n_all: float
) -> ApproximationCheck:
    """The check of the last of several fits, the rows before being known by a Gaussian."""
    sentence = (
        f"{check.sentence} This check is of the last {number_text(n_last)} of {number_text(n_all)} "
        "rows: those before enter as a Gaussian prior."
    )
    word = worst(check.word, before)
    if word != worst(check.word, "usable"):
        sentence += f" An earlier fit was '{before}'."
    return replace(check, word=word, sentence=sentence)


_AFFORDABLE = 1e10
"""Floating-point operations of Monte Carlo, some seconds, up to which inference="auto" uses it."""

_GRADIENTS_A_DRAW, _OPERATIONS_AN_ACTIVATION = 4, 20
"""For that estimate: steps of a trajectory, and what an activation costs beside its products."""


@dataclass(frozen=True, eq=False)
class Found:
    """A posterior: the Gaussian, or draws as well; ln p(t) by it; and the prior it was found with.

    There is no ln p(t) where the prior is improper, as Jeffreys' is. `evidence_error` is its Monte
    Carlo standard error, if it was found from draws.

    `curved` is the Gaussian with the same mean and the curvature of the posterior there, which
    is that of Laplace itself. `bound` has the lower bounds on ln p(t) of each step, if it was found
    by one.
    """

    gaussian: Gaussian | DiagonalGaussian
    curved: Gaussian | DiagonalGaussian
    log_evidence: float | None
    penalty: Penalty
    chains: Draws | None = None
    bound: tuple[float, ...] = ()
    evidence_error: float | None = None


@dataclass(frozen=True)
class Earlier:
    """The fits before the last: `n_fits` of them, to rows of the weight `n_obs`.

    `word` is the best verdict on them.
    """

    log_evidence: float | None = 0.0
    n_obs: float = 0.0
    n_fits: int = 0
    word: Word = "good"


@dataclass(frozen=True, eq=False)
class InferenceRequest:
    """An optimum and its curvature, how its prior was chosen, and how to draw."""

    inference: Inference
    chosen: Chosen | None
    n_draws: int
    random_state: Any

    @property
    def objective(self) -> LogPosterior:
        return self.inference.objective

    @property
    def has_evidence(self) -> bool:
        return not isinstance(self.objective, JeffreysPosterior)

    @property
    def is_affordable(self) -> bool:
        """Whether Monte Carlo takes no more than some seconds."""
        objective, to = self.objective, self.objective.coordinates
        each = objective.n_rows * to.n_activations * (4 * to.q + _OPERATIONS_AN_ACTIVATION)
        return self.n_draws * _GRADIENTS_A_DRAW * each <= _AFFORDABLE


def by_laplace(request: InferenceRequest) -> Found:
    """The Gaussian of the curvature at the most probable coefficients (4.144)."""
    inference = request.inference
    gaussian: Gaussian | DiagonalGaussian
    if request.objective.is_wide:
        inference.is_diagonal = True
        gaussian = DiagonalGaussian(inference.w, inference.diagonal)
    else:
        gaussian = Gaussian.of(inference.w, inference.free_precision)
    evidence = inference.evidence.value if request.has_evidence else None
    return Found(gaussian, gaussian, evidence, request.objective.penalty)


def by_variational(request: InferenceRequest) -> Found:
    """The Gaussian of the largest quadratic lower bound on the evidence."""
    inference, objective = request.inference, request.objective
    start = inference.w, inference.free_precision
    groups = None
    if request.chosen is not None:
        groups = groups_of(objective.columns, objective.standard.intercept, request.chosen)
    found = variational(objective, *start, groups)
    mean = found.posterior.mean
    curvature = replace(objective, penalty=found.penalty)(mean, "full").hessian
    curved = Gaussian.of(mean, cast(Array, curvature))
    return Found(found.posterior, curved, found.bound, found.penalty, bound=found.trace)


def by_monte_carlo(request: InferenceRequest) -> Found:
    """Draws from the exact posterior, and the evidence by importance sampling."""
    laplace, random = by_laplace(request), as_generator(request.random_state)
    density, near = PosteriorDensity(request.objective), cast(Gaussian, laplace.gaussian)
    names = request.inference.coefficient_map.names
    draws = sample_posterior(density, near.mean, near.root, request.n_draws, random, names)
    evidence, error = importance_evidence(density, draws.pooled, random)
    # What the density leaves out of ln p(t, w) is the same at every w.
    parts, mode = request.inference.evidence, near.mean[None, :]
    left_out = parts.log_likelihood + parts.log_prior - density.log_density(mode)[0]
    return replace(laplace, chains=draws, log_evidence=evidence + left_out, evidence_error=error)


INFERENCES: dict[str, Callable[[InferenceRequest], Found]] = {
    "laplace": by_laplace,
    "variational": by_variational,
    "monte_carlo": by_monte_carlo,
}


def stream(random_state: Any, n_before: int) -> Any:
    """The random numbers of a fit that follows `n_before` others.

    From one seed each of them has its own: the errors of draws would else add up over updates.
    """
    moves_on = isinstance(random_state, np.random.Generator | np.random.RandomState)
    if n_before == 0 or moves_on or random_state is None:
        return random_state
    return np.random.default_rng([n_before, *as_generator(random_state).integers(2**32, size=4)])
