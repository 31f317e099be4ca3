"""Several models side by side, by cross-validation.

Conventions: n rows, K classes; `codes` (n,) are the observed classes. Scores are losses: less is
better.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from numbers import Integral
from os import PathLike
from time import perf_counter
from typing import Any, cast

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.model_selection import StratifiedKFold, check_cv

from posteriori.decision.calibration import calibration_error
from posteriori.decision.scores import brier_score
from posteriori.errors import (
    ColumnTypeError,
    InferenceError,
    LabelError,
    ParameterError,
    ShapeError,
)
from posteriori.models.base import inside
from posteriori.models.likelihood_model import LikelihoodModel
from posteriori.rows.features import as_frame
from posteriori.rows.formula import read_formula
from posteriori.rows.frames import as_pickable, backend_of, count_rows, make_frame, pick_rows
from posteriori.rows.in_memory import check_aligned, is_memory_rows
from posteriori.rows.scan import is_source
from posteriori.rows.target import as_vector, encode, read_target, read_weight
from posteriori.typing import Array, Codes, Labels

_CONDITIONAL, _JOINT = "p(t|x)", "p(x, t)"
_DENSITIES = ("gaussian", "exponential")
_CRITERIA = ("log_evidence", "bic", "aic")
_COLUMNS = (
    *("model", "log_score", "std_error", "difference", "difference_std_error", "brier"),
    *("accuracy", "calibration_error", *_CRITERIA, "n_parameters", "seconds", "note"),
)
_HIDDEN = ("calibration_error", "n_parameters", "seconds", "note")
"""Columns of the frame that the text and HTML tables leave out."""

_HEADINGS = {"model": "", "difference_std_error": "std error", "bic": "BIC", "aic": "AIC"}


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """What `compare` returns: printed as text, as HTML in a notebook, and `to_frame()`."""

    title: str
    columns: dict[str, list[Any]]
    backend: str | None

    def to_frame(self) -> Any:
        """The whole table, best model first, as a frame of the kind that X is."""
        return make_frame(self.columns, self.backend)

    def __repr__(self) -> str:
        headings, rows = self._cells()
        widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
            for row in (headings, *rows)
        ]
        rule = "=" * len(lines[0])
        return "\n".join([self.title, rule, lines[0], *lines[1:], rule, *self._notes("* ")])

    def _repr_html_(self) -> str:
        headings, rows = self._cells()
        head = "".join(f"<th>{escape(each)}</th>" for each in headings)
        body = "".join(
            f"<tr><th>{escape(name)}</th>{''.join(f'<td>{each}</td>' for each in numbers)}</tr>"
            for name, *numbers in rows
        )
        notes = "".join(f"<li>{escape(note)}</li>" for note in self._notes(""))
        return (
            f"<div><p><b>{escape(self.title)}</b></p><table><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table><ul>{notes}</ul></div>"
        )

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        """Headings and rows as text, without columns that are blank."""
        shown = {name: self.columns[name] for name in _COLUMNS if name not in _HIDDEN}
        names = [name for name, values in shown.items() if any(v is not None for v in values)]
        columns = [[_cell(name, each) for each in self.columns[name]] for name in names]
        headings = [_HEADINGS.get(name, name.replace("_", " ")) for name in names]
        return headings, list(map(list, zip(*columns, strict=True)))

    def _notes(self, bullet: str) -> list[str]:
        pairs = zip(self.columns["model"], self.columns["note"], strict=True)
        return [f"{bullet}{model}: {note}." for model, note in pairs if note]


def _cell(name: str, value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return f"{value:.2f}" if name in _CRITERIA else f"{value:.4f}"


def compare(
    models: Mapping[str, Any] | Iterable[Any],
    X: Any,
    y: Any = None,
    *,
    cv: Any = 5,
    groups: Any = None,
    sample_weight: Any = None,
    random_state: int = 0,
    progress: Callable[[str], object] | None = None,
) -> Comparison:
    """Compare models by cross-validation, in one table, best first.

    All models have the same folds; each row is predicted by models fitted to other rows. Columns:

    - log_score, the mean of -ln p of the class that occurred, and its std_error;
    - difference to the best model and difference_std_error, from the differences row by row: much
      smaller than the errors of the scores, as all models find the same rows hard;
    - brier, accuracy, and calibration_error (of the most probable class);
    - log_evidence, bic and aic of the fit to all rows, where they are defined and comparable: a
      likelihood p(t|x) and a density p(x, t) are not; `note` has the reason;
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
    progress : a function that is called with a text before each fit, such as `print`.

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
    rows = _read(named, X, y, sample_weight, progress)
    folds = _read_folds(cv, rows, groups, random_state)
    scored = []
    for name, model in named.items():
        try:
            scored.append(_scored(name, model, rows, folds))
        except Exception as error:
            error.add_note(f"This was model {name!r}.")
            raise
    title = f"Cross-validation of {sum(len(test) for _, test in folds)} rows, {len(folds)} folds"
    return Comparison(title, _table(scored), backend_of(X))


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
    progress: Callable[[str], object] | None

    def fit(self, name: str, model: Any, part: str, train: Codes | None = None) -> Any:
        """A copy of the model, fitted to some rows; to all by default."""
        if self.progress is not None:
            self.progress(f"{name}, {part}")
        X, labels, weight = self.X, self.classes[self.codes], self.weight
        if train is not None:
            X, labels, weight = pick_rows(X, train), labels[train], weight[train]
        given = (self.formulas[name], X) if name in self.formulas else (X, labels)
        return clone(model).fit(*given, **({"sample_weight": weight} if self.weighted else {}))


def _named(models: Mapping[str, Any] | Iterable[Any]) -> dict[str, Any]:
    """Names and models; of two with the same name the second gets a number."""
    if hasattr(models, "fit"):
        models = [models]
    given = list(models.values() if isinstance(models, Mapping) else models)
    for model in given:
        if not hasattr(model, "fit") or isinstance(model, type) or is_regressor(model):
            raise ParameterError(
                f"{model!r} is not a classifier.", "Pass classifiers, fitted or not."
            )
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


def _read(models: Mapping[str, Any], X: Any, y: Any, sample_weight: Any, progress: Any) -> _Rows:
    if is_source(X) or is_memory_rows(X) or isinstance(X, str | PathLike):
        raise ParameterError(
            f"compare works on rows in memory, and X is a {type(X).__name__}.",
            "Pass an array or a data frame, such as a sample of the rows.",
        )
    check_aligned(X, y=y, sample_weight=sample_weight)
    X = as_pickable(X)
    n = count_rows(X)
    formulas = {name: text for name, model in models.items() if (text := _formula_of(model))}
    targets = _formula_targets(models, formulas, X)
    if y is None and not targets:
        raise LabelError("y is missing.", "Pass the labels y, one per row.")
    classes, codes = read_target(next(iter(targets.values())) if y is None else y, n)
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
    return _Rows(X, classes[present], codes, weights, weighted, kept, formulas, progress)


def _formula_of(model: Any) -> str | None:
    """The formula by which a model, or the one inside it, was fitted."""
    for each in (model, inside(model), *model.get_params().values()):
        if getattr(each, "formula_", None) is not None:
            return str(each.formula_.text)
    return None


def _formula_targets(
    models: Mapping[str, Any], formulas: Mapping[str, str], X: Any
) -> dict[str, Any]:
    """The target of each formula; an error where a model would be fitted to the target column."""
    frame = as_frame(X)
    for name, text in formulas.items():
        if frame is None:
            raise ColumnTypeError(
                f"Model {name!r} was fitted by a formula, and X is not a data frame.",
                "Pass the data frame that has the columns of the formula.",
            )
        target = text.split("~")[0].strip()
        plain = [each for each in models if each not in formulas]
        if plain and target in frame.columns:
            raise ParameterError(
                f"Model {plain[0]!r} has no formula, and would be fitted to the target column "
                f"{target!r}.",
                "Fit it by a formula too.",
            )
    return {text: read_formula(text, X).y for text in formulas.values()}


Fold = tuple[Codes, Codes]


def _read_folds(cv: Any, rows: _Rows, groups: Any, random_state: int) -> list[Fold]:
    """The training and the test rows of each fold; no row is tested twice."""
    if isinstance(cv, Integral):
        cv = StratifiedKFold(int(cv), shuffle=True, random_state=random_state)
    groups = None if groups is None else as_vector(groups)
    if groups is not None and len(groups) > len(rows.number):
        groups = groups[rows.number]
    folds = list(check_cv(cv).split(np.empty((len(rows.codes), 0)), rows.codes, groups))
    tested = np.concatenate([test for _, test in folds])
    if len(np.unique(tested)) < len(tested):
        raise ParameterError(
            "The splitter tests a row more than once.", "Use one that tests every row once."
        )
    return folds


# --- Scores ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Scored:
    """A model's line of the table, its losses (m,) and their weights, and notes.

    `likelihood` says of what its likelihood is a density; None without one.
    """

    line: dict[str, Any]
    losses: Array | None
    weight: Array
    likelihood: str | None
    notes: list[str]


def _scored(name: str, model: Any, rows: _Rows, folds: Sequence[Fold]) -> _Scored:
    """The scores of a model in the test rows of all folds, and the criteria of its fit to all."""
    log_proba, predicted = _out_of_fold(name, model, rows, folds)
    begun = perf_counter()
    fitted = rows.fit(name, model, "all rows")
    line: dict[str, Any] = dict.fromkeys(_COLUMNS)
    line |= {"model": name, "seconds": perf_counter() - begun}
    tested = np.concatenate([test for _, test in folds])
    codes, weight = rows.codes[tested], rows.weight[tested]
    line["accuracy"] = float(np.average(predicted == codes, weights=weight))
    likelihood, criteria, notes = _criteria(fitted, rows)
    line |= criteria
    if log_proba is None:
        return _Scored(line, None, weight, likelihood, ["gives no probabilities", *notes])
    losses, proba = -log_proba[np.arange(len(codes)), codes], np.exp(log_proba)
    line["log_score"], line["std_error"] = _mean(losses, weight)
    given: dict[str, Any] = {"classes": range(len(rows.classes)), "sample_weight": weight}
    line["brier"] = brier_score(codes, proba, **given).value
    line["calibration_error"] = calibration_error(codes, proba, **given).expected
    if np.isinf(losses).any():
        row = rows.number[tested][np.isinf(losses).argmax()]
        notes.insert(0, f"row {row} has the probability zero for its class")
    return _Scored(line, losses, weight, likelihood, notes)


def _out_of_fold(
    name: str, model: Any, rows: _Rows, folds: Sequence[Fold]
) -> tuple[Array | None, Codes]:
    """ln p (m, K), None without probabilities, and the predicted codes (m,) of all test rows."""
    place = {label: k for k, label in enumerate(rows.classes.tolist())}
    logs: list[Array] = []
    predicted: list[int] = []
    for i, (train, test) in enumerate(folds):
        fitted = rows.fit(name, model, f"fold {i + 1} of {len(folds)}", train)
        new = pick_rows(rows.X, test)
        predicted += [place.get(label, -1) for label in np.asarray(fitted.predict(new)).tolist()]
        if hasattr(fitted, "predict_proba"):
            logs.append(np.full((len(test), len(place)), -np.inf))  # of a class not in `train`
            known = [place[label] for label in np.asarray(fitted.classes_).tolist()]
            logs[-1][:, known] = _log_proba(fitted, new)
    return np.concatenate(logs) if logs else None, np.array(predicted)


def _log_proba(fitted: Any, X: Any) -> Array:
    """The model's own logarithms where it has them, which are finite below 1e-308."""
    with np.errstate(divide="ignore"):
        if hasattr(fitted, "predict_log_proba"):
            return np.asarray(fitted.predict_log_proba(X))
        return np.log(fitted.predict_proba(X))


def _criteria(fitted: Any, rows: _Rows) -> tuple[str | None, dict[str, Any], list[str]]:
    """Of what the likelihood of a fit is a density, its criteria, and why some are missing."""
    k = getattr(fitted, "n_parameters_", None)
    found: dict[str, Any] = {"n_parameters": k}
    if isinstance(fitted, LikelihoodModel):
        notes: list[str] = []
        for name in _CRITERIA:
            try:
                found[name] = float(getattr(fitted, f"{name}_"))
            except InferenceError as error:
                notes.append(f"{name}: {error.problem.rstrip('.')}")
        return _CONDITIONAL, found, notes
    if k is None or not hasattr(fitted, "score_samples"):
        return None, found, ["no evidence, BIC or AIC: it has no likelihood of its own"]
    own = _log_proba(fitted, rows.X)[np.arange(len(rows.codes)), rows.codes]
    value = float(rows.weight @ (fitted.score_samples(rows.X) + own))  # ln p(x) + ln p(t|x)
    found["bic"] = float(k * np.log(rows.weight.sum()) - 2 * value)
    found["aic"] = float(2 * (k - value))
    families = enumerate(getattr(fitted, "families_", ()))
    masses = [j for j, family in families if family not in _DENSITIES]
    kind = f"{_JOINT} with masses of {fitted.schema_.describe_all(masses)}" if masses else _JOINT
    return kind, found, ["log_evidence: the parameters have no prior"]


def _table(scored: list[_Scored]) -> dict[str, list[Any]]:
    """All columns: a row per model, the best first, those without probabilities last.

    Likelihoods that are densities of something else than those of the others are left out: p(t|x)
    is kept where a model has it, else the kind of the best.
    """
    scored = sorted(scored, key=_rank)
    best = scored[0].losses
    kinds = [each.likelihood for each in scored if each.likelihood is not None]
    wanted = _CONDITIONAL if _CONDITIONAL in kinds else next(iter(kinds), None)
    for each in scored:
        if each.losses is not None and best is not None:
            mean, error = _difference(each.losses, best, each.weight)
            each.line.update({"difference": mean, "difference_std_error": error})
        if each.likelihood not in (None, wanted):
            each.line.update(dict.fromkeys(_CRITERIA))
            each.notes.append(
                f"BIC and AIC are of {each.likelihood}, those of other models of {wanted}"
            )
        each.line["note"] = "; ".join(each.notes)
    return {name: [each.line[name] for each in scored] for name in _COLUMNS}


def _rank(scored: _Scored) -> tuple[bool, float]:
    no_score = scored.losses is None
    return no_score, -scored.line["accuracy"] if no_score else scored.line["log_score"]


def _difference(losses: Array, best: Array, weight: Array) -> tuple[float | None, float | None]:
    """The mean of the differences to the best model, and its standard error."""
    if losses is best:
        return 0.0, 0.0
    return (None, None) if np.isinf(best).any() else _mean(losses - best, weight)


def _mean(values: Array, weight: Array) -> tuple[float, float | None]:
    """The mean and its standard error, None for one row or an infinite mean."""
    total = weight.sum()
    mean = weight @ values / total
    if not np.isfinite(mean) or total <= 1:
        return float(mean), None
    variance = weight @ (values - mean) ** 2 / (total - 1)
    return float(mean), float(np.sqrt(variance / total))
