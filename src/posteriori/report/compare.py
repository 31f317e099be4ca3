"""Several models side by side: what each is worth on rows that it has not seen.

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
from posteriori.report.held_out import Answers, Fitting, HeldOut, read_folds
from posteriori.rows.frames import backend_of, make_frame
from posteriori.rows.target import as_vector
from posteriori.rows.threads import one_blas_thread
from posteriori.typing import Array, Codes

_NO_PROBABILITIES = "gives no probabilities"


@dataclass(frozen=True, eq=False)
class _Row:
    """A model in the table; None is blank."""

    answers: Answers
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

    Every row is judged once, by models fitted to the folds it is not in; all models have the same
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
        A number deals the rows of each class out evenly (nearly so beyond 4,096 different ones),
        equal rows of a class into the same fold.
    random_state : how rows are dealt out; None does it the same way every time.
    progress : True for a bar, or a function that is told of each `Fitting`.

    >>> from sklearn.datasets import load_iris
    >>> from posteriori import GaussianClassifier, LogisticRegression
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> models = {"logistic": LogisticRegression(prior=1.0), "shared": GaussianClassifier()}
    >>> table = compare(models, X, y)
    >>> table[["model", "log_score", "difference", "difference_error", "accuracy"]].round(3)
          model  log_score  difference  difference_error  accuracy
    0    shared      0.064       0.000              0.00     0.980
    1  logistic      0.140       0.076              0.02     0.967
    """
    named = _named(models)
    rows = read_pickable(X, y, sample_weight, "compare")
    kept = _kept(rows, sample_weight)
    with one_blas_thread(), read_listener(progress) as listener:
        fold = read_folds(folds, rows, kept, random_state)
        answers = HeldOut(rows, fold, named, listener).answers()
        table = sorted((_judged(one, rows) for one in answers), key=_rank)
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


def _judged(answers: Answers, rows: Training) -> _Row:
    weight = np.ones(len(rows.codes)) if rows.weight is None else rows.weight
    accuracy = float(np.average(answers.predicted == rows.codes, weights=weight))
    criteria = criteria_of(answers.fitted, rows)
    if answers.log_proba is None:
        return _Row(answers, None, (None, None), None, None, accuracy, criteria)
    losses = -np.take_along_axis(answers.log_proba, rows.codes[:, None], axis=1)[:, 0]
    proba, classes = np.exp(answers.log_proba), np.arange(len(rows.classes))
    brier = brier_score(rows.codes, proba, classes=classes, sample_weight=rows.weight)
    error = calibration_error(rows.codes, proba, classes=classes, sample_weight=rows.weight)
    score = _mean(losses, rows.weight)
    return _Row(answers, losses, score, brier.value, error.expected, accuracy, criteria)


def _rank(row: _Row) -> tuple[bool, float]:
    """The order of the table: by score, those without one at the end by accuracy."""
    score = row.score[0]
    return (True, -row.accuracy) if score is None else (False, score)


def _columns(table: list[_Row], rows: Training, kept: Codes) -> dict[str, list[Any]]:
    best = table[0].losses
    behind = [_mean(_less(row.losses, best), rows.weight) for row in table]
    criteria = comparable([row.criteria for row in table])
    return {
        "model": [row.answers.name for row in table],
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
        "seconds": [row.answers.seconds for row in table],
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
