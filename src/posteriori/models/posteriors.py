"""Posteriors by Laplace's, variational and Monte Carlo methods, checks of them, and their draws.

Conventions: n rows, K classes, p free parameters, S draws w_s (S, p) of the Gaussian q or of the
posterior, r_s = p(w_s|t)/q(w_s).
"""

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, cast

import numpy as np

from posteriori.arguments import as_generator
from posteriori.errors import InferenceError, ParameterError
from posteriori.likelihood.binary_losses import SignedLogisticLoss
from posteriori.likelihood.links import ProbabilityLink
from posteriori.likelihood.log_arithmetic import times
from posteriori.posterior.activations import FromDraws
from posteriori.posterior.coefficient_posterior import Posterior
from posteriori.posterior.evidence import Evidence
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
from posteriori.posterior.predictive import drawn_logs
from posteriori.posterior.variational import variational
from posteriori.rows.block import Block
from posteriori.rows.in_memory import MemoryRows
from posteriori.rows.threads import one_blas_thread
from posteriori.typing import Array, Codes, Labels

Word = Literal["good", "usable", "poor"]
"""How far an approximation can be relied on, from the best to the worst."""

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
    """How well the posterior is approximated: a word, a sentence, a remedy where it is poor, and
    for a Gaussian the numbers.

    discrepancy: the standard deviation of ln r over draws of the Gaussian, divided by √p; zero if
    the posterior is Gaussian. k_hat: the shape of the tail of r by Pareto smoothing; None where
    there are so many rows that only a few draws were evaluated.
    """

    word: Word
    sentence: str
    k_hat: float | None = None
    discrepancy: float | None = None
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.sentence} {self.remedy}".rstrip()


def check_posterior(inference: Inference, found: "Found") -> ApproximationCheck:
    """Whether the chains of draws agree, or how near a Gaussian is to the exact posterior.

    A posterior of very many coefficients without their correlations is not checked: in thousands of
    dimensions a few draws have all the weight.
    """
    free, objective = found.free, inference.objective
    if isinstance(free, Draws):
        numbers = free.diagnostics
        rhat = float(np.nanmax(numbers["rhat"]))
        size = float(np.nanmin(np.minimum(numbers["ess_bulk"], numbers["ess_tail"])))
        agree = free.worst() is None
        return ApproximationCheck(
            "good" if agree else "poor",
            f"The draws are from the exact posterior; their chains {'' if agree else 'do not '}"
            f"agree (R-hat {rhat:.3f} at most, {size:.0f} effective draws at least).",
        )
    if isinstance(free, DiagonalGaussian):
        more = f"Whether the exact posterior of {len(free.mean):,} coefficients is near was not"
        return ApproximationCheck("usable", f"{DIAGONAL} {more} checked.")
    # On the same draws every time.
    size = objective.n_rows * objective.coordinates.n_activations
    n_draws = int(np.clip(_ACTIVATIONS // max(size, 1), _FEWEST_DRAWS, _MOST_DRAWS))
    draws, is_jeffreys = free.sample(n_draws, _SEED), isinstance(objective, JeffreysPosterior)
    with one_blas_thread():
        if is_jeffreys:
            log_density = np.array([-objective(draw, "none").value for draw in draws])
        else:
            log_density = PosteriorDensity(objective).log_density(draws)
    log_ratio = log_density - free.log_density(draws)
    k_hat = pareto_k(log_ratio) if n_draws >= _TAIL_DRAWS else None
    with np.errstate(invalid="ignore"):
        discrepancy = float(np.std(log_ratio)) / len(free.mean) ** 0.5
    # k-hat of a joint density is large in many dimensions, whatever its margins, and does not
    # detect a Gaussian that is too wide, as that of separated classes is.
    is_good = discrepancy <= _SMALL and (k_hat is None or k_hat <= _K_HAT)
    word: Word = "good" if is_good else "usable" if discrepancy <= _LARGE else "poor"
    remedy = "" if word != "poor" else "Use inference='monte_carlo'."
    if remedy and is_jeffreys:
        remedy = "Use a Gaussian prior and inference='monte_carlo'."
    shown = f"discrepancy {discrepancy:.2f}" + ("" if k_hat is None else f", k-hat {k_hat:.2f}")
    return ApproximationCheck(word, f"{_SENTENCES[word]} ({shown}).", k_hat, discrepancy, remedy)


_AFFORDABLE = 1e10
"""Floating-point operations of Monte Carlo, some seconds, up to which inference="auto" uses it."""

_GRADIENTS_A_DRAW, _OPERATIONS_AN_ACTIVATION = 4, 20
"""For that estimate: steps of a trajectory, and what an activation costs beside its products."""


def is_affordable(objective: LogPosterior, n_draws: int) -> bool:
    """Whether Monte Carlo takes no more than some seconds."""
    to = objective.coordinates
    each = objective.n_rows * to.n_activations * (4 * to.q + _OPERATIONS_AN_ACTIVATION)
    return n_draws * _GRADIENTS_A_DRAW * each <= _AFFORDABLE


@dataclass(frozen=True, eq=False)
class Found:
    """The posterior of the free parameters; ln p(t) by it, and by Laplace's approximation.

    There is no ln p(t) where the prior is improper, as Jeffreys' is. `evidence_error` is its Monte
    Carlo standard error, if it was computed from draws.

    After a variational fit, `curved` is the Gaussian with the same mean and the curvature of the
    posterior there, and `bound` has the lower bounds on ln p(t) after each step.
    """

    free: Gaussian | DiagonalGaussian | Draws
    evidence: Evidence | None
    log_evidence: float | None
    curved: Gaussian | None = None
    bound: tuple[float, ...] = ()
    evidence_error: float | None = None


@dataclass(frozen=True)
class Earlier:
    """The fits before the last: `n_fits` of them, to rows of the weight `n_obs`."""

    log_evidence: float | None = 0.0
    n_obs: float = 0.0
    n_fits: int = 0


def by_laplace(inference: Inference) -> Found:
    """The Gaussian of the curvature at the most probable coefficients (4.144)."""
    objective = inference.objective
    gaussian: Gaussian | DiagonalGaussian
    if objective.is_wide:
        inference.is_diagonal = True
        gaussian = DiagonalGaussian(inference.w, inference.diagonal)
    else:
        gaussian = Gaussian.of(inference.w, inference.free_precision)
    if isinstance(objective, JeffreysPosterior):
        return Found(gaussian, None, None)
    return Found(gaussian, inference.evidence, inference.evidence.value)


def by_variational(inference: Inference) -> Found:
    """The Gaussian of the largest quadratic lower bound on the evidence."""
    objective = inference.objective
    found = variational(objective, inference.w, inference.free_precision)
    mean = found.posterior.mean
    curved = Gaussian.of(mean, cast(Array, objective(mean, "full").hessian))
    return Found(found.posterior, inference.evidence, found.bound, curved, found.trace)


def by_monte_carlo(inference: Inference, n_draws: int, random: np.random.Generator) -> Found:
    """Draws from the exact posterior, and the evidence by importance sampling."""
    near = Gaussian.of(inference.w, inference.free_precision)
    density = PosteriorDensity(inference.objective)
    names, parts = inference.coefficient_map.names, inference.evidence
    draws = sample_posterior(density, near.mean, near.root, n_draws, random, names)
    evidence, error = importance_evidence(density, draws, random)
    # What the density leaves out of ln p(t, w) is the same at every w.
    left_out = parts.log_likelihood + parts.log_prior - density.log_density(near.mean[None])[0]
    return Found(draws, parts, evidence + left_out, evidence_error=error)


_MOST_ENTRIES = 50_000_000
"""Entries of what is drawn row by row: 400 MB."""


def drawn_classes(
    rows: MemoryRows, posterior: Posterior, draws: Array, link: ProbabilityLink, random: Any
) -> Codes:
    """Class codes (S, n): for each row one with each of the draws (S, p) of the coefficients."""
    _check_size(rows.n_rows * len(draws))
    uniform = as_generator(random).uniform(size=(rows.n_rows, len(draws)))

    def bounds(a: Array) -> Array:
        return np.exp(drawn_logs(link, a)).cumsum(axis=1)[:, :-1]

    kernel = FromDraws.of(posterior.coefficient_map, draws, bounds)

    def of_block(block: Block) -> Array:
        below = kernel(block)
        u = uniform[block.start : block.start + len(below), None]
        return cast(Array, (u > below).sum(axis=1))

    return rows.fill(np.empty(uniform.shape), of_block).T.astype(np.intp)


def membership(objective: LogPosterior, block: Block) -> Array:
    """How much each row of a block belongs to each class (n, K)."""
    t = objective.target(block)
    if t.ndim == 2:
        return t
    second = (1 + t) / 2 if isinstance(objective.loss, SignedLogisticLoss) else t
    return np.stack([1 - second, second], axis=1)


def to_arviz(
    posterior: Posterior,
    draws: Array,
    classes: Labels,
    link: ProbabilityLink,
    objective: LogPosterior | None,
    random: Any,
) -> Any:
    """Draws (chains, steps, p) as data for arviz; with an objective, those of its rows too."""
    try:
        arviz = import_module("arviz")
    except ImportError as error:
        raise ParameterError(
            "to_arviz needs the package arviz, which is not installed.", "Run: pip install arviz"
        ) from error
    coef_map, shape = posterior.coefficient_map, draws.shape[:2]
    first, K = int(coef_map.standard.intercept), coef_map.coordinates.n_activations
    each = posterior.in_user_units(draws)
    each = each.reshape(*shape, K, -1) if K > 1 else each
    by_class = ["class"] if K > 1 else []
    groups = {"posterior": {"coef": each[..., first:]}}
    dims = {"coef": [*by_class, "column"]}
    coords = {"column": np.array(coef_map.columns.names)}
    if first:
        groups["posterior"]["intercept"], dims["intercept"] = each[..., 0], by_class
    if K > 1:
        coords["class"] = np.array(classes)
    if objective is not None:
        groups |= _of_each_row(posterior, draws, link, objective, random)
        dims["y"], coords["row"] = ["row"], np.arange(objective.rows.n_rows)
    if int(arviz.__version__.split(".")[0]) >= 1:
        return arviz.from_dict(groups, coords=coords, dims=dims)
    return arviz.from_dict(**groups, coords=coords, dims=dims)


def _of_each_row(
    posterior: Posterior, draws: Array, link: ProbabilityLink, objective: LogPosterior, random: Any
) -> dict[str, dict[str, Any]]:
    """ln p(t_i|w_s) of the rows of a fit times their weights, drawn classes, and those observed."""
    rows, flat = objective.rows, draws.reshape(-1, draws.shape[-1])
    if not isinstance(rows, MemoryRows):
        raise InferenceError(
            "Predictive draws and log-likelihoods need rows in memory.",
            "Use to_arviz(by_row=False).",
        )
    _check_size(rows.n_rows * len(flat))
    kernel = FromDraws.of(posterior.coefficient_map, flat, lambda a: drawn_logs(link, a))

    def log_likelihood(block: Block) -> Array:
        found = times(membership(objective, block)[:, :, None], kernel(block)).sum(axis=1)
        return found if block.weight is None else found * block.weight[:, None]

    logs = rows.fill(np.empty((rows.n_rows, len(flat))), log_likelihood).T
    drawn = drawn_classes(rows, posterior, flat, link, random)
    observed = rows.fill(np.empty(rows.n_rows), lambda b: membership(objective, b).argmax(axis=1))
    shape = (*draws.shape[:2], rows.n_rows)
    return {
        "log_likelihood": {"y": logs.reshape(shape)},
        "posterior_predictive": {"y": drawn.reshape(shape)},
        "observed_data": {"y": observed.astype(np.intp)},
    }


def _check_size(size: int) -> None:
    if size > _MOST_ENTRIES:
        raise InferenceError(
            f"Draws times rows are {size:,} numbers, more than {_MOST_ENTRIES:,}.",
            "Take fewer draws or rows; to_arviz(by_row=False) has the coefficients alone.",
        )
