"""Several models side by side, by cross-validation.

Conventions: n rows, K classes; `codes` (n,) are the classes that occurred. Scores are losses: less
is better.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.validation import has_fit_parameter

from posteriori.decision.calibration import calibration_error
from posteriori.decision.scores import brier_score, mean_score
from posteriori.errors import InferenceError, ParameterError, ShapeError
from posteriori.inspection.summary import shortened
from posteriori.models.base import predicted_log_probabilities
from posteriori.models.cross_fit import check_folds, check_training_classes, make_folds
from posteriori.models.from_statistics import GenerativeClassifier
from posteriori.models.likelihood_model import LikelihoodModel
from posteriori.models.naive_bayes import NaiveBayes
from posteriori.models.wrapper import Training, read_training
from posteriori.rows.frames import backend_of, make_frame
from posteriori.rows.target import as_vector, encode
from posteriori.rows.threads import one_blas_thread
from posteriori.typing import Array, Codes

_CONDITIONAL = "p(t|x)"
_DENSITY = "p(x, t)"
_DENSITIES = ("gaussian", "exponential")


@dataclass(frozen=True)
class Criteria:
    """ln p(t), BIC, AIC and the number of parameters of a fit; None where there is none.

    `of` says of what density the likelihood is; `reasons` why something is left out.
    """

    of: str | None = None
    log_evidence: float | None = None
    bic: float | None = None
    aic: float | None = None
    n_parameters: int | None = None
    reasons: tuple[str, ...] = ()


def criteria_of(fitted: Any, rows: Training) -> Criteria:
    """The criteria of a model fitted to these rows."""
    n_parameters = getattr(fitted, "n_parameters_", None)
    if isinstance(fitted, LikelihoodModel):
        found = replace(_conditional(fitted), n_parameters=n_parameters)
    elif isinstance(fitted, GenerativeClassifier):
        found = _joint(fitted, rows, int(fitted.n_parameters_))
    else:
        reason = "no evidence, BIC or AIC: it has no likelihood of its own"
        found = Criteria(n_parameters=n_parameters, reasons=(reason,))
    return found


def _conditional(fitted: LikelihoodModel) -> Criteria:
    evidence, why_no_evidence = _asked(lambda: fitted.log_evidence_)
    bic, why_no_bic = _asked(lambda: fitted.bic_)
    aic, _ = _asked(lambda: fitted.aic_)
    reasons = [f"log_evidence: {why_no_evidence}"] * bool(why_no_evidence)
    reasons += [f"bic, aic: {why_no_bic}"] * bool(why_no_bic)
    return Criteria(_CONDITIONAL, evidence, bic, aic, reasons=tuple(reasons))


def _asked(question: Callable[[], float]) -> tuple[float | None, str]:
    """The answer, or why there is none."""
    try:
        return float(question()), ""
    except InferenceError as error:
        return None, error.problem.rstrip(".")


def _joint(fitted: GenerativeClassifier, rows: Training, k: int) -> Criteria:
    """By ln p(x, t) = ln p(x) + ln p(t|x) of the rows."""
    weight = rows.weight
    logs = predicted_log_probabilities(fitted, rows.features)
    own = np.take_along_axis(logs, rows.codes[:, None], axis=1)[:, 0]
    value = float(weight @ (fitted.score_samples(rows.features) + own))
    kind = _DENSITY
    if isinstance(fitted, NaiveBayes):
        masses = [j for j, name in enumerate(fitted.families_) if name not in _DENSITIES]
        kind = (
            f"{_DENSITY} with masses of {fitted.schema_.describe_all(masses)}" if masses else kind
        )
    reason = "log_evidence: the parameters have no prior"
    n = float(weight.sum())
    return Criteria(kind, None, k * np.log(n) - 2 * value, 2 * (k - value), k, (reason,))


def comparable(table: Sequence[Criteria]) -> list[Criteria]:
    """The same without those that say nothing beside the others.

    Likelihoods are compared with those of the same kind: p(t|x) if any model has it, else that
    of the first that has one.
    """
    kinds = [found.of for found in table if found.of is not None]
    wanted = _CONDITIONAL if _CONDITIONAL in kinds else next(iter(kinds), None)
    return [found if found.of in (None, wanted) else _blank(found, wanted) for found in table]


def _blank(found: Criteria, wanted: str | None) -> Criteria:
    reason = f"BIC and AIC are of {found.of}, those of other models of {wanted}"
    reasons = (*found.reasons, reason)
    return replace(found, log_evidence=None, bic=None, aic=None, reasons=reasons)


@dataclass(frozen=True)
class Fitting:
    """What is being fitted: a model by name, to all rows but those of a fold; `fold` 0 is none."""

    model: str
    fold: int
    n_folds: int
    fits: int
    n_fits: int

    def __str__(self) -> str:
        part = f"fold {self.fold} of {self.n_folds}" if self.fold else "all rows"
        return f"{self.model}, {part}"


@dataclass(frozen=True, eq=False)
class Predictions:
    """Of one model: ln p (n, K) and predicted codes (n,) of held-out rows; -1 for no class.

    `log_proba` is None where the model gives no probabilities. `fitted` is the model fitted to all
    rows, in `seconds`.
    """

    name: str
    log_proba: Array | None
    predicted: Codes
    fitted: Any
    seconds: float


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows, the fold (n,) of each, and who is told of each fit."""

    rows: Training
    folds: Codes
    models: Mapping[str, Any]
    listener: Callable[[Fitting], object] | None = None

    @property
    def n_folds(self) -> int:
        return int(self.folds.max()) + 1

    def predictions(self) -> list[Predictions]:
        """Those of every model."""
        for name, model in self.models.items():
            _check_weights(name, model, self.rows)
        n, K = len(self.rows.codes), len(self.rows.classes)
        predicted = {name: np.empty(n, dtype=np.intp) for name in self.models}
        log_proba: dict[str, Array | None] = {name: np.empty((n, K)) for name in self.models}
        for fold in range(self.n_folds):
            held = np.flatnonzero(self.folds == fold)
            rest, new = (
                self.rows.pick(np.flatnonzero(self.folds != fold)),
                self.rows.pick(held).features,
            )
            for name, model in self.models.items():
                self._tell(name, fold + 1)
                fitted = self._fitted(name, model, fold, rest)
                predicted[name][held] = self._codes(fitted.predict(new))
                logs = log_proba[name]
                if logs is not None and hasattr(fitted, "predict_proba"):
                    logs[held] = self._aligned(fitted, predicted_log_probabilities(fitted, new))
                else:
                    log_proba[name] = None
        return [self._whole(name, log_proba[name], predicted[name]) for name in self.models]

    def _whole(self, name: str, log_proba: Array | None, predicted: Codes) -> Predictions:
        """The predictions of a model, with its fit to all rows."""
        self._tell(name, 0)
        begun = perf_counter()
        fitted = self.rows.fit(self.models[name])
        return Predictions(name, log_proba, predicted, fitted, perf_counter() - begun)

    def _fitted(self, name: str, model: Any, fold: int, rest: Training) -> Any:
        """A copy of the model, fitted to the rows that are not in the fold."""
        try:
            return rest.fit(model)
        except Exception as error:
            error.add_note(f"This was {name}, fitted to all rows but those of fold {fold + 1}.")
            raise

    def _aligned(self, fitted: Any, logs: Array) -> Array:
        """ln p of all classes; -inf for those that were not in the training folds."""
        known = self.rows.classes.tolist()
        out = np.full((len(logs), len(known)), -np.inf)
        out[:, [known.index(label) for label in np.asarray(fitted.classes_).tolist()]] = logs
        return out

    def _codes(self, labels: Any) -> Codes:
        place = {label: code for code, label in enumerate(self.rows.classes.tolist())}
        return np.array([place.get(label, -1) for label in np.asarray(labels).tolist()])

    def _tell(self, name: str, fold: int) -> None:
        if self.listener is not None:
            place, n_models = list(self.models).index(name), len(self.models)
            done = ((fold or self.n_folds + 1) - 1) * n_models + place
            self.listener(Fitting(name, fold, self.n_folds, done, (self.n_folds + 1) * n_models))


def _check_weights(name: str, model: Any, rows: Training) -> None:
    if rows.fit_params and not has_fit_parameter(model, "sample_weight"):
        raise ParameterError(
            f"sample_weight was given, but {name} takes none.",
            "Leave the weights out, or compare models whose fit takes them.",
        )


def read_folds(folds: Any, rows: Training, kept: Codes, random_state: Any) -> Codes:
    """The fold of each row: by a number of folds, a label a row, or a splitter with `split`.

    `kept` are the places of the rows among those given, as rows of weight zero do not count.
    """
    listed = isinstance(folds, list | tuple)
    in_parts = listed and any(isinstance(one, list | tuple | np.ndarray) for one in folds)
    if isinstance(folds, str) or in_parts:
        raise ParameterError(
            f"folds={shortened(repr(folds), 60)} is not understood.",
            "Use a number, one label a row, or a splitter such as StratifiedKFold.",
        )
    if hasattr(folds, "split"):
        return _of_splitter(folds, rows, kept)
    if np.ndim(folds) == 1:
        given = np.asarray(folds)
        given = given[kept] if len(given) > len(rows.codes) and kept.max() < len(given) else given
        if len(given) != len(rows.codes):
            raise ShapeError(
                f"folds has {len(given)} labels for {len(rows.codes)} rows.", "Give one a row."
            )
        labels, found = encode(given)
        check_folds(len(labels))
        return found
    check_folds(folds)
    shuffled = StratifiedKFold(folds, shuffle=True, random_state=random_state)
    splits = make_folds(folds if random_state is None else shuffled, rows, {})
    check_training_classes(rows, splits)
    found = np.empty_like(rows.codes)
    for fold, (_, test) in enumerate(splits):
        found[test] = fold
    return found


def _of_splitter(folds: Any, rows: Training, kept: Codes) -> Codes:
    """The fold of each row, which is to be in one test part and in all other training parts."""
    n = len(rows.codes)
    found = np.full(n, -1)
    for fold, (train, test) in enumerate(folds.split(rows.features, rows.classes[rows.codes])):
        left = np.setdiff1d(np.arange(n), test)
        if (found[test] >= 0).any() or not np.array_equal(np.sort(train), left):
            raise ParameterError(
                "The splitter tests a row twice, or trains by only some of the others.",
                "Use one that tests every row once, against all others, such as StratifiedKFold.",
            )
        found[test] = fold
    if (found < 0).any():
        raise ParameterError(
            f"The folds leave out row {kept[int((found < 0).argmax())]}: every row is tested once.",
            "Use a splitter whose test rows are all rows, such as StratifiedKFold.",
        )
    return found


Listener = Callable[[Fitting], object]


@contextmanager
def read_listener(progress: Any) -> Iterator[Listener | None]:
    """What the user asked for: nothing, a bar that is gone at the end, or a function."""
    if progress is None or progress is False:
        yield None
    elif progress is True:
        with _bar() as listener:
            yield listener
    elif callable(progress):
        yield progress
    else:
        raise ParameterError(
            f"progress={progress!r} is neither True, False nor callable.",
            "Pass True for a bar, or a function of a posteriori.report.compare.Fitting.",
        )


@contextmanager
def _bar() -> Iterator[Listener]:
    try:
        rich = import_module("rich.progress")
    except ImportError as error:
        raise ParameterError(
            "The bar is drawn by rich, which is not installed.",
            "Install it: pip install 'posteriori[cli]'; or pass a function as progress.",
        ) from error
    columns = rich.TextColumn("{task.description}"), rich.BarColumn(), rich.TimeRemainingColumn()
    with rich.Progress(*columns, transient=True) as bar:
        task = bar.add_task("")

        def tell(fitting: Fitting) -> None:
            bar.update(task, description=str(fitting), completed=fitting.fits, total=fitting.n_fits)

        yield tell


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
    given = {} if sample_weight is None else {"sample_weight": sample_weight}
    rows = read_training("compare", X, y, sample_weight, fit_params=given)
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
    weight = rows.weight
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
    known = np.isfinite(found.std_error)
    return found.value, found.std_error if known else None


def _note(losses: Array | None, criteria: Criteria, kept: Codes) -> str:
    notes = list(criteria.reasons)
    if losses is None:
        notes.insert(0, _NO_PROBABILITIES)
    elif np.isinf(losses).any():
        first = kept[int(np.isinf(losses).argmax())]
        notes.insert(0, f"gave row {first} the probability zero for the class that it is of")
    return "; ".join(notes)
