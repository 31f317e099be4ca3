"""The rows that a fitted model is checked by: those of its fit, or others.

Conventions: n rows, K classes.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from sklearn.base import is_regressor

from posteriori.arguments import is_number
from posteriori.design.columns import Columns
from posteriori.errors import InferenceError, ParameterError, PosterioriError
from posteriori.likelihood.loss import ClassLoss, Loss
from posteriori.posterior.inference import Inference
from posteriori.rows.block import Block
from posteriori.rows.features import read_features
from posteriori.rows.in_memory import MemoryRows, check_aligned
from posteriori.rows.scan import as_source, is_source
from posteriori.rows.source import FitRows
from posteriori.rows.target import read_real_target, read_target, read_weight
from posteriori.statistics.goodness_of_fit import shares
from posteriori.statistics.local_quadratic import Target
from posteriori.statistics.row_sample import sample_rows
from posteriori.statistics.statistic import Statistic
from posteriori.typing import Array, Codes

_ROWS_EACH = 10
"""Rows for each coefficient from which on those of a fit can be used to check it."""

_LITTLE = "the rows of the fit say little of it {}; pass others, X and y"

Predict = Callable[[Block], Array]
Truth = Callable[[Block], Array]

_MOST = 10**6
"""Rows of a source whose predictions are kept in memory; of more rows a sample is."""

NO_ROWS = "the rows of the fit are not here; pass X and y"
"""Why a check cannot be made of a model that was loaded from a file, or keeps no rows."""

NO_TARGETS = "y was not passed"
NO_PROBABILITIES = "{} gives no probabilities; CalibratedClassifier makes some of its decisions"


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Predictions beside what happened, and weights (n,).

    For classes the predictions are (n, K) and what happened a class code; a row with a soft label
    is one row for each class that shares it. For a number both are (n,). `sampled` says that the
    rows are some of those asked for.
    """

    predicted: Array
    happened: Array | Codes
    weight: Array
    sampled: bool = False


@dataclass(frozen=True, eq=False)
class Seen:
    """Rows to check by. What is not there is None, and `why` says so.

    `of_fit` says that they are the rows of the fit.
    """

    rows: FitRows | None = None
    columns: Columns | None = None
    outcomes: Outcomes | None = None
    why: str = NO_ROWS
    of_fit: bool = False


def rows_of_fit(model: Any) -> Seen:
    """The rows that a model was fitted to, if it keeps them and they are what they were.

    Outcomes are with them where they say something of the fit.
    """
    inference: Inference | None = getattr(model, "_inference", None)
    if inference is None:
        return Seen()
    try:
        _ = inference.objective
    except InferenceError:
        return Seen()
    try:
        inference.goodness.check_rows()
        objective = inference.objective
    except PosterioriError as error:
        return Seen(why=clause(error))
    rows, why = cast(FitRows, objective.rows), why_no_judge(model, inference)
    if why is not None:
        return Seen(rows, objective.columns, why=why, of_fit=True)
    truth = _Shares(objective.loss, objective.target)
    outcomes = _outcomes(rows, model._predicted, truth)
    return Seen(rows, objective.columns, outcomes, of_fit=True)


def rows_given(model: Any, X: Any, y: Any, sample_weight: Any) -> Seen:
    """Other rows, read as the model reads those that it predicts."""
    rows = _read(model, X, y, sample_weight)
    columns = Columns(rows.schema, handle_unknown="reference")
    if not hasattr(model, "predict_proba") and not is_regressor(model):
        return Seen(rows, columns, why=NO_PROBABILITIES.format(type(model).__name__))
    if rows.classes is None and not (is_regressor(model) and _has_numbers(rows)):
        return Seen(rows, columns, why=NO_TARGETS)
    if hasattr(model, "_predicted"):
        return Seen(rows, columns, _outcomes(rows, model._predicted, _labels))
    own = cast(MemoryRows, rows)
    happened, weight = own.y, np.ones(own.n_rows) if own.weight is None else own.weight
    predicted = np.asarray(model.predict_proba(X))
    return Seen(rows, columns, _by_class(predicted, cast(Array, happened), weight))


def clause(error: PosterioriError) -> str:
    """What is wrong, as a part of a sentence.

    >>> clause(InferenceError("The rows have changed.", "Fit again."))
    'the rows have changed'
    """
    return error.problem[0].lower() + error.problem[1:].rstrip(".")


def _has_numbers(rows: FitRows) -> bool:
    return rows.has_target


def _read(model: Any, X: Any, y: Any, sample_weight: Any) -> FitRows:
    name = type(model).__name__
    if not is_source(X):
        return _read_table(model, X, y, sample_weight)
    rows = as_source(X, y, sample_weight, None, name)
    if not hasattr(model, "schema_"):
        raise ParameterError(
            f"{name} cannot be checked by rows of a source.", "Pass a table X and labels y."
        )
    if is_regressor(model):
        return rows.with_numbers().discover().known_as(model.schema_, None)
    return rows.discover().known_as(model.schema_, model.classes_)


def _read_table(model: Any, X: Any, y: Any, sample_weight: Any) -> MemoryRows:
    rows = (
        model._new_rows(X)
        if hasattr(model, "_new_rows")
        else MemoryRows(read_features(X, None, type(model).__name__))
    )
    check_aligned(X, y=y, sample_weight=sample_weight)
    rows = replace(rows, weight=read_weight(sample_weight, rows.n_rows))
    if y is None:
        return rows
    if is_regressor(model):
        return replace(rows, y=read_real_target(y, rows.n_rows))
    classes, target = read_target(y, rows.n_rows, known=model.classes_)
    return replace(rows, y=target, classes=classes)


def _labels(block: Block) -> Array:
    return cast(Array, block.y)


@dataclass(frozen=True, eq=False)
class _Shares:
    """What happened in the rows of a fit, as its loss knows it."""

    loss: Loss | ClassLoss
    target: Target

    def __call__(self, block: Block) -> Array:
        return shares(self.loss, self.target(block))


@dataclass(frozen=True, eq=False)
class _Collected(Statistic):
    """Of each block predictions, what happened, and weights."""

    parts: tuple[tuple[Array, Array, Array], ...]

    def __add__(self, other: "_Collected") -> "_Collected":
        return _Collected(self.parts + other.parts)


@dataclass(frozen=True, eq=False)
class _Collect:
    """The kernel: a block to its part of what is `_Collected`."""

    predict: Predict
    truth: Truth

    def __call__(self, block: Block) -> _Collected:
        n = block.X.shape[0]
        if not n:
            return _Collected(())
        weight = np.ones(n) if block.weight is None else block.weight
        return _Collected(((self.predict(block), self.truth(block), weight),))


def _outcomes(rows: FitRows, predict: Predict, truth: Truth) -> Outcomes:
    """Predictions of the rows beside their targets: of a sample where they are too many.

    Those of rows in memory are no more than the rows themselves.
    """
    sampled = not rows.in_memory and rows.n_rows > _MOST
    some = sample_rows(rows, 2 ** (rows.n_rows // _MOST).bit_length())[0] if sampled else rows
    parts = some.map_sum(_Collect(predict, truth)).parts
    predicted, happened, weight = (np.concatenate(each) for each in zip(*parts, strict=True))
    if predicted.ndim == 1:
        return Outcomes(predicted, happened, weight, sampled)
    return replace(_by_class(predicted, happened, weight), sampled=sampled)


def _by_class(predicted: Array, happened: Array, weight: Array) -> Outcomes:
    """Rows with one class each; `happened` is codes (n,), shares (n, K), or shares of the second.

    >>> found = _by_class(np.array([[0.4, 0.6]]), np.array([[0.25, 0.75]]), np.array([8.0]))
    >>> found.happened, found.weight
    (array([0, 1]), array([2., 6.]))
    """
    if happened.ndim == 1 and happened.dtype.kind == "f":
        happened = np.stack([1 - happened, happened], axis=1)
    if happened.ndim == 1:
        kept = np.flatnonzero(weight)
        return Outcomes(predicted[kept], happened[kept], weight[kept])
    row, code = np.nonzero(happened * weight[:, None])
    return Outcomes(predicted[row], code, weight[row] * happened[row, code])


def has_proper_prior(model: Any) -> bool:
    """Whether a prior determines every coefficient."""
    prior = getattr(model, "prior", None)
    if prior is None or isinstance(prior, str) or hasattr(model, "posterior_"):
        return prior is not None
    try:
        return bool(model._inference.objective.penalty.proper)
    except InferenceError:
        return is_number(prior) and prior > 0


def why_no_judge(model: Any, inference: Inference) -> str | None:
    """Why predictions beside the rows of the fit would mislead; None where they do not.

    A prior draws predictions of these rows to the middle, whatever it does to those of others; and
    p coefficients take up as many of n rows, which are then met better than others are.
    """
    if has_proper_prior(model) or inference.objective.penalty.precision.any():
        return _LITTLE.format("where a prior holds the coefficients")
    if inference.n_parameters * _ROWS_EACH > inference.goodness.n_obs:
        return _LITTLE.format("with so many coefficients for so few rows")
    return None
