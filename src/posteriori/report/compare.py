"""Several models side by side, by cross-validation.

Conventions: n rows, K classes; `codes` (n,) are the observed classes. Scores are losses: less is
better.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral
from time import perf_counter
from typing import Any, cast

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.model_selection import StratifiedKFold, check_cv

from posteriori.decision.calibration import calibration_error
from posteriori.decision.scores import brier_score, mean_score
from posteriori.errors import InferenceError, LabelError, ParameterError
from posteriori.inspection.results import Summary, TextTable, predicted_log_probabilities
from posteriori.models.base import inside
from posteriori.models.likelihood_model import LikelihoodModel
from posteriori.rows.block import is_source
from posteriori.rows.formula import read_formula
from posteriori.rows.frames import as_pickable, backend_of, count_rows, pick_rows
from posteriori.rows.in_memory import check_aligned
from posteriori.rows.target import as_vector, encode, read_target, read_weight
from posteriori.typing import Array, Codes, Labels

_CRITERIA = ("log_evidence", "bic", "aic")
_SCORES = ("log_score", "std_error", "difference", "difference_std_error", "brier", "accuracy")
_PRINTED = ("model", *_SCORES, *_CRITERIA)
_COLUMNS = ("model", *_SCORES, "calibration_error", *_CRITERIA, "n_parameters", "seconds", "note")
_HEADINGS = {"model": "", "difference_std_error": "std error", "bic": "BIC", "aic": "AIC"}

Fold = tuple[Codes, Codes]
"""The training and the test rows."""


def compare(
    models: Mapping[str, Any] | Iterable[Any],
    X: Any,
    y: Any = None,
    *,
    cv: Any = 5,
    groups: Any = None,
    sample_weight: Any = None,
    random_state: int = 0,
) -> Summary:
    """Compare models by cross-validation, in one table, best first.

    All models have the same folds; each row is predicted by models fitted to other rows. Columns:

    - log_score, the mean of -ln p of the class that occurred, and its std_error;
    - difference to the best model and difference_std_error, from the differences row by row: much
      smaller than the errors of the scores, as all models find the same rows hard;
    - brier, accuracy, and calibration_error (of the most probable class);
    - log_evidence, bic and aic of the fit to all rows, for likelihoods p(t|x): those of
      generative models are densities p(x, t), and cannot be compared; `note` has the reason;
    - n_parameters, and the seconds of the fit to all rows.

    Parameters
    ----------
    models : {name: classifier}, or classifiers, which are named by their parameters. Any
        scikit-learn classifier; one without `predict_proba` has an accuracy only. A model that was
        fitted by a formula is fitted by that formula again: X is then the data frame, with the
        target among its columns, and y may be left out.
    cv : a number of folds, or a splitter of scikit-learn, which gets `groups`. A number n means
        `StratifiedKFold(n, shuffle=True, random_state=random_state)`. A splitter may leave rows
        out of all test sets, as TimeSeriesSplit does; they have no score.

    >>> from sklearn.datasets import load_iris
    >>> from posteriori import GaussianClassifier, LogisticRegression
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> models = {"logistic": LogisticRegression(prior=1.0), "shared": GaussianClassifier()}
    >>> table = compare(models, X, y).to_frame()
    >>> table[["model", "log_score", "difference", "difference_std_error", "accuracy"]].round(3)
          model  log_score  difference  difference_std_error  accuracy
    0    shared      0.052       0.000                 0.000      0.98
    1  logistic      0.141       0.089                 0.014      0.96
    """
    named = _named(models)
    rows = _read(named, X, y, sample_weight)
    folds, tested = _read_folds(cv, rows, groups, random_state)
    scored = []
    for name, model in named.items():
        try:
            scored.append(_scored(name, model, rows, folds))
        except Exception as error:
            error.add_note(f"This was model {name!r}.")
            raise
    columns = _table(scored, rows.weight[tested])
    names = [name for name in _PRINTED if any(v is not None for v in columns[name])]
    cells = [columns["model"]]
    for name in names[1:]:
        digits = 2 if name in _CRITERIA else 4
        cells.append(["" if v is None else f"{v:.{digits}f}" for v in columns[name]])
    headings = [_HEADINGS.get(name, name.replace("_", " ")) for name in names]
    pairs = zip(columns["model"], columns["note"], strict=True)
    notes = [f"{model}: {note}." for model, note in pairs if note]
    title = f"Cross-validation of {len(tested)} rows, {len(folds)} folds"
    table = TextTable(headings, list(zip(*cells, strict=True)), columns)
    return Summary(title, (), table, notes, backend_of(X))


# --- Models, rows and folds -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of positive weight, with the `number` of each among all; formulas of models by name."""

    X: Any
    classes: Labels
    codes: Codes
    weight: Array
    weighted: bool
    number: Codes
    formulas: dict[str, str]

    def fit(self, name: str, model: Any, train: Codes) -> Any:
        """A copy of the model, fitted to some rows."""
        X = pick_rows(self.X, train)
        weight = {"sample_weight": self.weight[train]} if self.weighted else {}
        if name in self.formulas:
            return clone(model).fit(self.formulas[name], X, **weight)
        return clone(model).fit(X, self.classes[self.codes[train]], **weight)


def _named(models: Mapping[str, Any] | Iterable[Any]) -> dict[str, Any]:
    """Names and models; of two with the same name the second gets a number."""
    if hasattr(models, "fit"):
        models = [models]
    given = list(models.values() if isinstance(models, Mapping) else models)
    bad = [m for m in given if not hasattr(m, "fit") or isinstance(m, type) or is_regressor(m)]
    if bad or not given:
        problem = f"{bad[0]!r} is not a classifier." if bad else "There are no models to compare."
        raise ParameterError(problem, "Pass classifiers, fitted or not.")
    if isinstance(models, Mapping):
        return dict(models)
    found: dict[str, Any] = {}
    for model in given:
        name = " ".join(repr(clone(model)).split())
        same = sum(other.split(" #")[0] == name for other in found)
        found[name if not same else f"{name} #{same + 1}"] = model
    return found


def _read(models: Mapping[str, Any], X: Any, y: Any, sample_weight: Any) -> _Rows:
    if is_source(X):
        raise ParameterError(
            f"compare works on rows in memory, and X is a {type(X).__name__}.",
            "Pass an array or a data frame, such as a sample of the rows.",
        )
    check_aligned(X, y=y, sample_weight=sample_weight)
    X = as_pickable(X)
    n = count_rows(X)
    formulas = {name: text for name, model in models.items() if (text := _formula_of(model))}
    plain = [name for name in models if name not in formulas]
    if formulas and plain:
        raise ParameterError(
            f"Model {plain[0]!r} has no formula, and others do: it would be fitted to the target.",
            "Fit it by a formula too.",
        )
    targets = {text: read_formula(text, X).y for text in formulas.values()}
    classes, codes = read_target(next(iter(targets.values()), None) if y is None else y, n)
    if codes.ndim == 2:
        raise LabelError("compare takes no soft labels.", "Pass one label per row.")
    for text, target in targets.items():
        if not np.array_equal(as_vector(target), classes[codes]):
            raise LabelError(
                f"The formula {text!r} has another target than y or the other formulas.",
                "Compare models of one target, and leave y out: it is a column of the frame.",
            )
    weight = read_weight(sample_weight, n)
    kept = np.arange(n) if weight is None else np.flatnonzero(weight)
    present, codes = encode(cast(Codes, codes)[kept])
    X = X if len(kept) == n else pick_rows(X, kept)
    weights, weighted = np.ones(n) if weight is None else weight[kept], weight is not None
    return _Rows(X, classes[present], codes, weights, weighted, kept, formulas)


def _formula_of(model: Any) -> str | None:
    """The formula by which a model, or the one inside it, was fitted."""
    for each in (model, inside(model), *model.get_params().values()):
        if getattr(each, "formula_", None) is not None:
            return str(each.formula_.text)
    return None


def _read_folds(cv: Any, rows: _Rows, groups: Any, random_state: int) -> tuple[list[Fold], Codes]:
    """The training and the test rows of each fold, and all test rows; none is tested twice."""
    if isinstance(cv, Integral):
        cv = StratifiedKFold(int(cv), shuffle=True, random_state=random_state)
    if groups is not None:
        groups = as_vector(groups)
        groups = groups[rows.number] if rows.weighted else groups
    folds = list(check_cv(cv).split(np.empty((len(rows.codes), 0)), rows.codes, groups))
    tested = np.concatenate([test for _, test in folds])
    if len(np.unique(tested)) < len(tested):
        raise ParameterError(
            "The splitter tests a row more than once.", "Use one that tests every row once."
        )
    return folds, tested


# --- Scores ---------------------------------------------------------------------------------------


_Scored = dict[str, Any]
"""The columns of a model, its losses in the test rows (m,) or None, and notes."""


def _scored(name: str, model: Any, rows: _Rows, folds: list[Fold]) -> _Scored:
    """The scores of a model in the test rows of all folds, and the criteria of its fit to all."""
    place = {label: k for k, label in enumerate(rows.classes.tolist())}
    logs: list[Array] = []
    right: list[Any] = []
    for train, test in folds:
        fitted = rows.fit(name, model, train)
        new, truth = pick_rows(rows.X, test), rows.classes[rows.codes[test]]
        right += (np.asarray(fitted.predict(new)) == truth).tolist()
        if hasattr(fitted, "predict_proba"):
            logs.append(np.full((len(test), len(place)), -np.inf))  # of a class not in `train`
            known = [place[label] for label in np.asarray(fitted.classes_).tolist()]
            logs[-1][:, known] = predicted_log_probabilities(fitted, new)
    begun = perf_counter()
    fitted = rows.fit(name, model, np.arange(len(rows.codes)))
    seconds, found = perf_counter() - begun, _criteria(fitted)
    tested = np.concatenate([test for _, test in folds])
    codes, weight = rows.codes[tested], rows.weight[tested]
    found |= {"model": name, "seconds": seconds, "losses": None}
    found["accuracy"] = float(np.average(right, weights=weight))
    if not logs:
        found["notes"].insert(0, "gives no probabilities")
        return found
    log_proba = np.concatenate(logs)
    losses, proba = -log_proba[np.arange(len(codes)), codes], np.exp(log_proba)
    given: dict[str, Any] = {"classes": range(len(place)), "sample_weight": weight}
    score = mean_score(losses, weight)
    found |= {"losses": losses, "log_score": score.value, "std_error": score.std_error}
    found["brier"] = brier_score(codes, proba, **given).value
    found["calibration_error"] = calibration_error(codes, proba, **given).expected
    if np.isinf(losses).any():
        row = rows.number[tested][np.isinf(losses).argmax()]
        found["notes"].insert(0, f"row {row} has the probability zero for its class")
    return found


def _criteria(fitted: Any) -> _Scored:
    """The criteria of a fit by its likelihood p(t|x), and why some are missing."""
    found: _Scored = {"n_parameters": getattr(fitted, "n_parameters_", None), "notes": []}
    if isinstance(fitted, LikelihoodModel):
        for name in _CRITERIA:
            try:
                found[name] = float(getattr(fitted, f"{name}_"))
            except InferenceError as error:
                found["notes"].append(f"{name}: {error.problem.rstrip('.')}")
    elif hasattr(fitted, "score_samples"):
        found["notes"].append("no evidence, BIC or AIC: its likelihood is p(x, t), not p(t|x)")
    else:
        found["notes"].append("no evidence, BIC or AIC: it has no likelihood of its own")
    return found


def _table(scored: list[_Scored], weight: Array) -> dict[str, list[Any]]:
    """All columns: a row per model, the best first, those without probabilities last."""
    scored = sorted(scored, key=lambda each: (each.get("log_score", np.inf), -each["accuracy"]))
    best = scored[0]["losses"]
    for each in scored:
        if each["losses"] is not None and np.isfinite(best).all():
            score = mean_score(each["losses"] - best, weight)
            each |= {"difference": score.value, "difference_std_error": score.std_error}
        each["note"] = "; ".join(each["notes"])
    return {name: [each.get(name) for each in scored] for name in _COLUMNS}
