"""Several models side by side, by cross-validation.

Conventions: n rows, K classes. Scores are losses: less is better.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_regressor

from posteriori.decision.calibration import calibration_error
from posteriori.decision.scores import brier_score, mean_score
from posteriori.errors import ParameterError, ShapeError
from posteriori.models.meta import Training, read_pickable
from posteriori.report.criteria import Criteria, comparable, criteria_of
from posteriori.report.fitting_bar import read_listener
from posteriori.report.held_out import Fitting, HeldOut, Predictions, read_folds
from posteriori.rows.frames import backend_of, make_frame
from posteriori.rows.target import as_vector
from posteriori.rows.threads import one_blas_thread
from posteriori.typing import Array, Codes

_NO_PROBABILITIES = "gives no probabilities"


@dataclass(frozen=True, eq=False)
class _Row:
    """A model in the table; None is blank."""

    predictions: Predictions
    losses: Array | None
    score: tuple[float | None, float | None]
    brier: float | None
    calibration: float | None
    accuracy: float
    criteria: Criteria


def compare(
    models: Mapping[str, Any] | Iterable[Any],
    X: Any,
    y: Any,
    *,
    folds: Any = 5,
    sample_weight: Any = None,
    random_state: Any = None,
    progress: bool | Callable[[Fitting], object] | None = None,
) -> Any:
    """Models by cross-validation, in one table of the kind of frame that X is; best first.

    Every row is predicted once, by models fitted to the other folds; all models have the same
    folds. Gaussian models are made of the same sums. Columns of the table:

    - log_score, the mean of -ln p of the class that occurred, and its standard error;
    - difference, how much worse that is than the best, and its standard error, from the
      differences row by row: much smaller than that of the scores themselves, as all models
      find the same rows hard;
    - brier, accuracy, and calibration_error (of the most probable class);
    - log_evidence, bic and aic of the fit to all rows, where they are defined and can be compared:
      a likelihood p(t|x) and a density p(x, t) cannot; `note` says why they are blank;
    - n_parameters, and the seconds of the fit to all rows.

    Parameters
    ----------
    models : {name: classifier}, or classifiers, which are called by their parameters. Any with the
        scikit-learn contract; of those without `predict_proba` only the accuracy is told.
    folds : a number, the fold of each row (n,), or a splitter such as `StratifiedKFold`.
        A number n means `StratifiedKFold(n, shuffle=True)`.
    random_state : the seed of these folds; None is the seed 0.
    progress : True for a bar, or a function that is told of each `Fitting`.

    >>> from sklearn.datasets import load_iris
    >>> from posteriori import GaussianClassifier, LogisticRegression
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> models = {"logistic": LogisticRegression(prior=1.0), "shared": GaussianClassifier()}
    >>> table = compare(models, X, y)
    >>> table[["model", "log_score", "difference", "difference_error", "accuracy"]].round(3)
          model  log_score  difference  difference_error  accuracy
    0    shared      0.052       0.000             0.000      0.98
    1  logistic      0.141       0.089             0.014      0.96
    """
    named = _named(models)
    rows = read_pickable(X, y, sample_weight, "compare")
    kept = _kept(rows, sample_weight)
    with one_blas_thread(), read_listener(progress) as listener:
        fold = read_folds(folds, rows, kept, random_state)
        predictions = HeldOut(rows, fold, named, listener).predictions()
        table = sorted((_scored(one, rows) for one in predictions), key=_rank)
    return make_frame(_columns(table, rows, kept), backend_of(X))


def _kept(rows: Training, sample_weight: Any) -> Codes:
    """The places of the rows that count among those given."""
    if sample_weight is None:
        return np.arange(len(rows.codes))
    return np.flatnonzero(as_vector(sample_weight))


def _named(models: Mapping[str, Any] | Iterable[Any]) -> dict[str, Any]:
    """Names and models; of two with the same name the second gets a number."""
    if hasattr(models, "fit"):
        models = [models]
    given = list(models.values() if isinstance(models, Mapping) else models)
    for model in given:
        if not hasattr(model, "fit") or isinstance(model, type) or is_regressor(model):
            raise ParameterError(f"{model!r} is no classifier.", "Pass classifiers, fitted or not.")
    if not given:
        raise ShapeError("There are no models to compare.", "Pass at least one.")
    if isinstance(models, Mapping):
        return dict(models)
    found: dict[str, Any] = {}
    for model in given:
        name = " ".join(repr(clone(model)).split())
        same = sum(other.split(" #")[0] == name for other in found)
        found[name if not same else f"{name} #{same + 1}"] = model
    return found


def _scored(predictions: Predictions, rows: Training) -> _Row:
    weight = np.ones(len(rows.codes)) if rows.weight is None else rows.weight
    accuracy = float(np.average(predictions.predicted == rows.codes, weights=weight))
    criteria = criteria_of(predictions.fitted, rows)
    if predictions.log_proba is None:
        return _Row(predictions, None, (None, None), None, None, accuracy, criteria)
    losses = -np.take_along_axis(predictions.log_proba, rows.codes[:, None], axis=1)[:, 0]
    proba, classes = np.exp(predictions.log_proba), np.arange(len(rows.classes))
    brier = brier_score(rows.codes, proba, classes=classes, sample_weight=rows.weight)
    error = calibration_error(rows.codes, proba, classes=classes, sample_weight=rows.weight)
    score = _mean(losses, rows.weight)
    return _Row(predictions, losses, score, brier.value, error.expected, accuracy, criteria)


def _rank(row: _Row) -> tuple[bool, float]:
    """The order of the table: by score, those without one at the end by accuracy."""
    score = row.score[0]
    return (True, -row.accuracy) if score is None else (False, score)


def _columns(table: list[_Row], rows: Training, kept: Codes) -> dict[str, list[Any]]:
    best = table[0].losses
    behind = [_mean(_less(row.losses, best), rows.weight) for row in table]
    criteria = comparable([row.criteria for row in table])
    return {
        "model": [row.predictions.name for row in table],
        "log_score": [row.score[0] for row in table],
        "log_score_error": [row.score[1] for row in table],
        "difference": [score for score, _ in behind],
        "difference_error": [error for _, error in behind],
        "brier": [row.brier for row in table],
        "accuracy": [row.accuracy for row in table],
        "calibration_error": [row.calibration for row in table],
        "log_evidence": [one.log_evidence for one in criteria],
        "bic": [one.bic for one in criteria],
        "aic": [one.aic for one in criteria],
        "n_parameters": [one.n_parameters for one in criteria],
        "seconds": [row.predictions.seconds for row in table],
        "note": [_note(row.losses, one, kept) for row, one in zip(table, criteria, strict=True)],
    }


def _less(losses: Array | None, best: Array | None) -> Array | None:
    """Losses less those of the best model; none where both are infinite."""
    if losses is None or best is None:
        return None
    if losses is best:
        return np.zeros_like(losses)
    return None if np.isinf(best).any() else losses - best


def _mean(values: Array | None, weight: Array | None) -> tuple[float | None, float | None]:
    """The mean and its standard error; the latter is blank for one row or an infinite mean."""
    if values is None:
        return None, None
    found = mean_score(values, np.ones(len(values)) if weight is None else weight)
    known = np.isfinite(found.standard_error)
    return found.value, found.standard_error if known else None


def _note(losses: Array | None, criteria: Criteria, kept: Codes) -> str:
    notes = list(criteria.reasons)
    if losses is None:
        notes.insert(0, _NO_PROBABILITIES)
    elif np.isinf(losses).any():
        first = kept[int(np.isinf(losses).argmax())]
        notes.insert(0, f"gave row {first} the probability zero for the class that it is of")
    return "; ".join(notes)
