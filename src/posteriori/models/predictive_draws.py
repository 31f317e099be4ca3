"""Draws of predictions, and draws as data for the package arviz.

Conventions: n rows, K classes, S draws of the coefficients.
"""

from importlib import import_module
from typing import Any, cast

import numpy as np

from posteriori.arguments import as_generator
from posteriori.errors import InferenceError, ParameterError
from posteriori.likelihood.binary_losses import SignedLogisticLoss
from posteriori.likelihood.links import ProbabilityLink
from posteriori.likelihood.log_arithmetic import times
from posteriori.posterior.activations import FromDraws
from posteriori.posterior.coefficient_posterior import Posterior
from posteriori.posterior.log_posterior import LogPosterior
from posteriori.posterior.predictive import drawn_logs
from posteriori.rows.block import Block
from posteriori.rows.in_memory import MemoryRows
from posteriori.typing import Array, Codes, Labels

_MOST = 50_000_000
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


def pointwise_log_likelihood(
    objective: LogPosterior, posterior: Posterior, draws: Array, link: ProbabilityLink
) -> Array:
    """ln p(t_i|w_s) (S, n) of the rows of a fit, times their weights."""

    def of_block(block: Block) -> Array:
        t = membership(objective, block)[:, :, None]
        kernel = FromDraws.of(posterior.coefficient_map, draws, lambda a: drawn_logs(link, a))
        found = times(t, kernel(block)).sum(axis=1)
        return found if block.weight is None else found * block.weight[:, None]

    rows = cast(MemoryRows, objective.rows)
    return rows.fill(np.empty((rows.n_rows, len(draws))), of_block).T


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
        groups |= _of_rows(posterior, draws, link, objective, random)
        dims["y"], coords["row"] = ["row"], np.arange(objective.rows.n_rows)
    if int(arviz.__version__.split(".")[0]) >= 1:
        return arviz.from_dict(groups, coords=coords, dims=dims)
    return arviz.from_dict(**groups, coords=coords, dims=dims)


def _of_rows(
    posterior: Posterior, draws: Array, link: ProbabilityLink, objective: LogPosterior, random: Any
) -> dict[str, dict[str, Any]]:
    rows, flat = objective.rows, draws.reshape(-1, draws.shape[-1])
    if not isinstance(rows, MemoryRows):
        raise InferenceError(
            "Predictive draws and log-likelihoods need rows in memory.",
            "Use to_arviz(by_row=False).",
        )
    _check_size(rows.n_rows * len(flat))
    logs = pointwise_log_likelihood(objective, posterior, flat, link)
    drawn = drawn_classes(rows, posterior, flat, link, random)
    observed = rows.fill(np.empty(rows.n_rows), lambda b: membership(objective, b).argmax(axis=1))
    shape = (*draws.shape[:2], rows.n_rows)
    return {
        "log_likelihood": {"y": logs.reshape(shape)},
        "posterior_predictive": {"y": drawn.reshape(shape)},
        "observed_data": {"y": observed.astype(np.intp)},
    }


def _check_size(size: int) -> None:
    if size > _MOST:
        raise InferenceError(
            f"Draws times rows are {size:,} numbers, more than {_MOST:,}.",
            "Take fewer draws or rows; to_arviz(by_row=False) has the coefficients alone.",
        )
