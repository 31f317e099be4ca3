"""Predictions of rows by a posterior over coefficients: probabilities, and intervals for them."""

from collections.abc import Callable
from functools import partial
from typing import Literal, get_args

import numpy as np

from posteriori.arguments import check_choice, check_fraction
from posteriori.errors import ParameterError
from posteriori.likelihood.links import ProbabilityLink
from posteriori.posterior.activations import (
    ActivationGaussian,
    DiagonalActivations,
    FromDraws,
    FromGaussian,
)
from posteriori.posterior.coefficient_posterior import Posterior
from posteriori.posterior.gaussian import DiagonalGaussian
from posteriori.posterior.predictive import (
    average_link_logs,
    average_logs,
    class_intervals,
    drawn_ends,
    drawn_link_ends,
    extended_probit_logs,
    kappa_logs,
    monte_carlo_logs,
    probability_interval,
    quadrature_logs,
)
from posteriori.rows.block import Block
from posteriori.typing import Array

PredictiveName = Literal["auto", "probit", "quadrature", "monte_carlo"]

PredictionKernel = Callable[[Block], Array]

_DRAWS = 1000
"""Draws of a Gaussian over the coefficients, and those that effects are computed from."""


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
    is_binary = posterior.shown.coordinates.n_activations == 1
    if posterior.chains is not None or (is_binary and method == "monte_carlo"):
        function = partial(average_link_logs, link) if is_binary else average_logs
        chains = posterior.chains
        draws = some_draws(posterior) if chains is None else chains.pooled
        return FromDraws.of(posterior.shown, draws, function)
    activations = _activations(posterior)
    if not is_binary:
        by_classes = extended_probit_logs if method == "probit" else monte_carlo_logs
        return FromGaussian(activations, by_classes)
    logs = kappa_logs if method == "probit" else quadrature_logs
    return FromGaussian(activations, lambda mean, variance: _both(logs(mean, variance)))


def interval_kernel(posterior: Posterior, level: float, link: ProbabilityLink) -> PredictionKernel:
    """A block of rows to the ends (n, 2) or (n, K, 2) of intervals for the probability itself."""
    check_fraction("level", level)
    is_binary = posterior.shown.coordinates.n_activations == 1
    if posterior.chains is not None:
        ends = (
            partial(drawn_link_ends, link, level=level)
            if is_binary
            else partial(drawn_ends, level=level)
        )
        return FromDraws.of(posterior.shown, posterior.chains.pooled, ends)
    if is_binary:
        return FromGaussian(
            _activations(posterior),
            lambda mean, variance: probability_interval(mean, np.sqrt(variance), level, link),
        )
    return FromGaussian(_activations(posterior), partial(class_intervals, level=level))


def _activations(posterior: Posterior) -> ActivationGaussian | DiagonalActivations:
    gaussian = posterior.gaussian
    if isinstance(gaussian, DiagonalGaussian):
        return DiagonalActivations.of(posterior.shown, gaussian.mean, 1 / gaussian.precision)
    return ActivationGaussian.of(posterior.shown, gaussian.mean, gaussian.root)


def some_draws(posterior: Posterior) -> Array:
    """About 1,000 draws (S, p) of the free parameters, the same ones every time."""
    if posterior.chains is None:
        return posterior.free_sample(_DRAWS, random_state=0)
    pooled = posterior.chains.pooled
    return pooled[:: max(1, len(pooled) // _DRAWS)]


def _both(logs: tuple[Array, Array]) -> Array:
    """Logarithms of the first and the second class, from those of the second and the rest."""
    return np.stack([logs[1], logs[0]], axis=1)
