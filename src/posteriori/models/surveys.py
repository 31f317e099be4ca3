"""Which rows are looked at to tell of effects, and how a model is asked about them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
from scipy.special import ndtr
from sklearn.utils.validation import check_is_fitted

from posteriori.errors import InferenceError, ParameterError
from posteriori.models.black_box import BlackBoxPopulation, softmax_weights
from posteriori.models.populations import FormulaPopulation, MeasuredPopulation, Population
from posteriori.models.predictive import interval_kernel, log_kernel, read_predictive, some_draws
from posteriori.posterior.activation_gaussian import FromDraws
from posteriori.posterior.drawn_effects import DrawnMeasure
from posteriori.posterior.effects import DeltaMeasure
from posteriori.posterior.influence import unchanged
from posteriori.posterior.intervals import MeanInterval
from posteriori.posterior.measure import Measure
from posteriori.rows.block import Block
from posteriori.rows.features import as_frame, read_features
from posteriori.rows.formula import Formula
from posteriori.rows.frames import backend_of
from posteriori.rows.in_memory import MemoryRows
from posteriori.rows.scan import is_source
from posteriori.rows.tables import Table
from posteriori.typing import Array, Labels

Ends: TypeAlias = Callable[[Block], Array] | None


@dataclass(frozen=True, eq=False)
class Survey:
    """The rows to ask about, the classes (None for a number), and how to hand answers back.

    `p_values` says how probable a larger statistic is, either sign, if there is no effect.
    """

    population: Population
    classes: Labels | None
    backend: str | None
    p_values: Callable[[Array], Array]


def survey(model: Any, X: Any, level: float) -> Survey:
    """What is needed to tell of the effects of a fitted model on rows X, or on those of its fit."""
    check_is_fitted(model)
    _check_in_memory(X)
    classes = getattr(model, "classes_", None)
    backend = (None if X is None else backend_of(X)) or getattr(model, "_frame_backend", None)
    inference = getattr(model, "_inference", None)
    if inference is None:
        return Survey(_black_box(model, X), classes, backend, _normal)
    measured = _measured(model, level)
    return Survey(_population(model, X, *measured), classes, backend, inference.p_values)


def _population(model: Any, X: Any, measure: Measure, ends: Ends) -> Population:
    if X is None:
        return MeasuredPopulation(_rows_of_fit(model), measure, ends)
    rows = model._new_rows(X)
    if model.formula_ is None:
        return MeasuredPopulation(rows, measure, ends)
    return FormulaPopulation(rows, measure, ends, X, _data(X, model.formula_), model._new_rows)


def _measured(model: Any, level: float) -> tuple[Measure, Ends]:
    """How a model with an `Inference` tells of means, and of an interval for each."""
    link, posterior = model._link(), getattr(model, "posterior_", None)
    if posterior is None:
        measure = DeltaMeasure.of(model._inference, link, level)
        known = measure.has_errors
        return measure, MeanInterval.of(model._inference, link, level) if known else None
    method = read_predictive(model.predictive, len(model.classes_))
    logs, draws = log_kernel(posterior, method, link), some_draws(posterior)
    theta = FromDraws.of(posterior.shown, draws, np.asarray).theta

    def predictive(block: Block) -> Array:
        found = np.exp(logs(block))
        return found if found.shape[1] > 2 else found[:, 1:]

    measure_by_draws = DrawnMeasure(posterior.shown, theta, link, level, predictive)
    return measure_by_draws, interval_kernel(posterior, level, link)


def _black_box(model: Any, X: Any) -> Population:
    name = type(model).__name__
    if not hasattr(model, "predict_proba"):
        raise ParameterError(
            f"{name} gives no probabilities, so there are no effects on them.",
            "Use a model that has predict_proba, such as LogisticRegression.",
        )
    if X is None:
        raise _no_rows(name)
    formula = getattr(model, "formula_", None)
    if formula is not None:
        model._new_rows(X)
        return BlackBoxPopulation(X, _data(X, formula), model)
    table = read_features(X, getattr(model, "schema_", None), name)
    return BlackBoxPopulation(X, table, model, softmax_weights(model))


def _data(X: Any, formula: Formula) -> Table:
    """The columns of the user's frame that a formula uses."""
    frame = cast(Any, as_frame(X))
    return read_features(frame.select(formula.schema.names).to_native(), formula.schema)


def _rows_of_fit(model: Any) -> MemoryRows:
    """The rows that a model was fitted to, all of them, if they are still there."""
    earlier = getattr(model, "_earlier", None)
    if model.formula_ is not None or (earlier is not None and earlier.n_fits):
        raise _no_rows(type(model).__name__)
    try:
        objective = model._inference.objective
    except InferenceError:
        raise _no_rows(type(model).__name__) from None
    if not objective.rows.in_memory:
        raise _no_rows(type(model).__name__)
    unchanged(model._inference)
    return objective.rows


def _no_rows(name: str) -> ParameterError:
    return ParameterError(
        f"This {name} has not kept in memory the rows that it was fitted to.",
        "Pass X: the rows to average over.",
    )


def _check_in_memory(X: Any) -> None:
    if is_source(X):
        raise ParameterError(
            "Effects are computed for rows in memory, and X is read batch by batch.",
            "Pass a sample of the rows.",
        )


def _normal(statistic: Array) -> Array:
    return cast(Array, 2 * ndtr(-abs(statistic)))
