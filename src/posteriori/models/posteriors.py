"""Posteriors over the coefficients of a fit, by name: what each of them makes of the optimum."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from posteriori.arguments import as_generator
from posteriori.posterior.chosen_prior import Chosen, groups_of
from posteriori.posterior.drawn_evidence import drawn_log_evidence
from posteriori.posterior.drawn_gaussian import DrawnGaussian
from posteriori.posterior.importance import Word
from posteriori.posterior.inference import Inference
from posteriori.posterior.jeffreys import JeffreysPosterior
from posteriori.posterior.many_jeffreys import densities_of
from posteriori.posterior.monte_carlo import Draws, sample_posterior
from posteriori.posterior.normal_posterior import Gaussian
from posteriori.posterior.objective import LogPosterior
from posteriori.posterior.priors import Penalty
from posteriori.posterior.variational import variational
from posteriori.posterior.variational_evidence import variational_evidence
from posteriori.typing import Array

_EVIDENCE_POINTS = 2000
"""Points at which the density is weighed for the evidence."""


@dataclass(frozen=True, eq=False)
class Found:
    """A posterior: the Gaussian, or draws as well; ln p(t) by it; and the prior it was found with.

    There is no ln p(t) where the prior is known but for a factor, as Jeffreys' is.

    `curved` is the Gaussian with the same mean and the curvature of the posterior there, which
    is that of Laplace itself. `bound` has the lower bounds on ln p(t) of each step, if it was found
    by one.
    """

    gaussian: Gaussian | DrawnGaussian
    curved: Gaussian | DrawnGaussian
    log_evidence: float | None
    penalty: Penalty
    chains: Draws | None = None
    bound: tuple[float, ...] = ()


@dataclass(frozen=True)
class Earlier:
    """What was learnt before the rows at hand, in `n_fits` fits to rows of the weight `n_obs`.

    `word` is the best that can be said of it.
    """

    log_evidence: float | None = 0.0
    n_obs: float = 0.0
    n_fits: int = 0
    word: Word = "good"


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

    @property
    def has_evidence(self) -> bool:
        return not isinstance(self.objective, JeffreysPosterior)


def by_laplace(asked: Asked) -> Found:
    """The Gaussian of the curvature at the most probable coefficients (4.144)."""
    inference = asked.inference
    gaussian: Gaussian | DrawnGaussian
    if asked.objective.is_wide:
        inference.is_drawn = True
        gaussian = inference.wide.gaussian
    else:
        gaussian = Gaussian.of(inference.w, inference.free_precision)
    evidence = inference.evidence.value if asked.has_evidence else None
    return Found(gaussian, gaussian, evidence, asked.objective.penalty)


def by_variational(asked: Asked) -> Found:
    """The Gaussian of the largest quadratic lower bound on the evidence."""
    inference, objective = asked.inference, asked.objective
    start = inference.w, inference.free_precision
    if asked.chosen is None:
        found = variational(objective, *start)
    else:
        groups = groups_of(objective.columns, objective.standard.intercept, asked.chosen)
        found = variational_evidence(objective, groups, *start)
    mean = found.posterior.mean
    curvature = replace(objective, penalty=found.penalty)(mean, "full").hessian
    curved = Gaussian.of(mean, cast(Array, curvature))
    return Found(found.posterior, curved, found.bound, found.penalty, bound=found.trace)


def by_monte_carlo(asked: Asked) -> Found:
    """Draws from the exact posterior, and the evidence by weighting others like them."""
    laplace, objective = by_laplace(asked), asked.objective
    target, near = densities_of(objective), cast(Gaussian, laplace.gaussian)
    draws = sample_posterior(
        target,
        near.mean,
        near.precision_cholesky,
        asked.n_draws,
        random_state=asked.random_state,
        names=asked.inference.shown.names,
    )
    found = replace(laplace, chains=draws)
    if not asked.has_evidence:
        return found
    # What the target leaves out of ln p(t, w) is the same at every w.
    parts, mode = asked.inference.evidence, near.mean[None, :]
    left_out = parts.log_likelihood + parts.log_prior - target.log_density(mode)[0]
    random = as_generator(asked.random_state)
    evidence = drawn_log_evidence(target, draws.pooled, _EVIDENCE_POINTS, random)
    return replace(found, log_evidence=evidence + left_out)


INFERENCES: dict[str, Callable[[Asked], Found]] = {
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
