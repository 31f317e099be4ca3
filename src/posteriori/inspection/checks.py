"""Checks of a fitted model: a verdict with a code on each subject, as text, HTML or a frame.

Conventions: n rows, K classes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from html import escape
from textwrap import wrap
from typing import Any, Literal, cast, get_args

import numpy as np
from scipy.special import ndtr
from sklearn.base import is_regressor
from sklearn.utils.validation import check_is_fitted

from posteriori.arguments import either, is_number
from posteriori.decision.calibration import (
    OUTSIDE,
    BinnedResiduals,
    binned_residuals,
    calibration_error,
)
from posteriori.design.columns import Columns
from posteriori.errors import (
    InferenceError,
    ParameterError,
    PosterioriError,
    printable,
)
from posteriori.inspection.results import offset_argument, p_text
from posteriori.posterior.diagnostics import LARGE, VERY_LARGE, collinearity_of, influence_of
from posteriori.posterior.log_posterior import WIDE
from posteriori.rows.block import Block, Rows
from posteriori.rows.features import read_features
from posteriori.rows.frames import make_frame
from posteriori.rows.in_memory import MemoryRows, check_aligned
from posteriori.rows.schema import listed
from posteriori.rows.target import read_real_target, read_target, read_weight
from posteriori.rows.threads import one_blas_thread
from posteriori.solve.objective import Status
from posteriori.statistics.goodness_of_fit import shares
from posteriori.statistics.row_sample import sample_rows
from posteriori.statistics.statistic import weights_of
from posteriori.typing import Array

Word = Literal["not checked", "good", "warning", "bad"]
"""A verdict, from nothing to the worst."""

_WORDS: tuple[Word, ...] = get_args(Word)

_WIDTH = 88
"""Characters of a line."""

_DISTANT, _FAR = 0.5, 1.0
"""Cook's distances for a warning, and for a bad verdict."""

_UNLIKELY, _VERY_UNLIKELY = 0.01, 1e-4
"""The same of p-values."""

_OVERDISPERSED = 1.5
"""Pearson chi2/df of a bad verdict."""

_SMALL = 0.01
"""A calibration error that does no harm, whatever its p-value."""

_FEWEST, _ROWS_EACH = 10, 10
"""Rows that averages need, and rows for each coefficient if those of the fit are to judge it."""

_MOST = 10**6
"""Rows of a source whose predictions are stored; of more rows a sample is used."""

_REMEDIES = {
    Status.MAX_ITERATIONS: "Raise max_iter (max_epochs of a Perceptron).",
    Status.SEPARATED: "See the check on separation.",
    Status.DIVERGED: "Set a prior, such as prior=1.0.",
}

Finding = tuple[Word, str, Mapping[str, Any]]
"""The verdict on a subject, a sentence, and the numbers."""


@dataclass(frozen=True, eq=False)
class Check:
    """A verdict: "good", "warning", "bad" or "not checked"; a sentence; and its numbers.

    The sentence says what was found, in which column or row, and what to do. `rows` are those it
    was judged on: "fit", "X" (the rows passed), or none.

    >>> check = Check("collinearity", "good", "The columns are not collinear.", {"largest": 3.2})
    >>> print(check)
    The columns are not collinear. [C103]
    """

    name: str
    word: Word
    sentence: str
    values: Mapping[str, Any] = field(default_factory=dict, repr=False)
    rows: str = ""

    @property
    def code(self) -> str:
        return _CHECKS[self.name][0]

    def __str__(self) -> str:
        rows = {"fit": ", rows of the fit", "X": ", rows of X"}.get(self.rows, "")
        return f"{self.sentence} [{self.code}{rows}]"


@dataclass(frozen=True, eq=False, repr=False)
class Checks:
    """The checks of a model, in order, or one by its name or code.

    >>> checks = Checks("Model", (Check("convergence", "good", "The iteration converged."),))
    >>> checks
    Model: 1 good
    ========================================================================================
    good         convergence    The iteration converged. [C101]
    >>> checks["C101"].word, len(checks)
    ('good', 1)
    """

    title: str
    found: tuple[Check, ...]

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[Check]:
        return iter(self.found)

    def __getitem__(self, key: str) -> Check:
        for check in self.found:
            if key in (check.name, check.code):
                return check
        raise _no_check(key, [check.name for check in self.found])

    def to_frame(self, backend: str | None = None) -> Any:
        """A row a check: check, code, word, sentence, rows; of "pandas", "polars" or "pyarrow"."""
        names = ("name", "code", "word", "sentence", "rows")
        columns = {name: [getattr(check, name) for check in self.found] for name in names}
        return make_frame({"check": columns.pop("name"), **columns}, backend)

    def __repr__(self) -> str:
        return self.text()

    def text(self) -> str:
        """The verdicts in plain characters, 88 a line."""
        words = [check.word for check in self.found]
        counts = [f"{words.count(word)} {word}" for word in reversed(_WORDS) if word in words]
        lines = [f"{self.title}: {', '.join(counts) or 'nothing checked'}", "=" * _WIDTH]
        for check in self.found:
            start = f"{check.word:11}  {check.name:13}  "
            indent = " " * len(start)
            lines += wrap(str(check), _WIDTH, initial_indent=start, subsequent_indent=indent)
        return printable("\n".join(lines))

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        return f"<pre>{escape(self.text())}</pre>"


def check(
    model: Any,
    X: Any = None,
    y: Any = None,
    sample_weight: Any = None,
    offset: Any = None,
    *,
    ignore: str | Iterable[str] = (),
) -> Checks:
    """What looks wrong with a fit: a verdict in words on each of eight subjects.

    convergence; separation (coefficients that diverge); collinearity (condition indices
    √(λ_max/λ_j) of the columns about their means); influence (Cook's distances δᵀHδ/(ps) of
    rows); dispersion (Pearson χ²/df of counts and grouped labels); residuals (averages over rows
    of similar predictions); calibration (Spiegelhalter's test); approximation (how near the
    posterior found is to the exact one). A verdict is "good", "warning", "bad" or "not checked",
    with a code, a sentence that says what to do, and the rows it was judged on.

    Without X the rows of the fit are used, where the model keeps them. New rows say more about
    residuals and calibration: pass X and y. With a prior, or fewer than ten rows for each
    coefficient, the rows of the fit would mislead, and those two are not checked on them.
    Influence is always that of the rows of the fit. Of a dataset of more than a million rows on
    disk or on a cluster, a sample is used.

    Parameters
    ----------
    sample_weight, offset : those of the rows X.
    ignore : names or codes of checks to leave out.

    >>> from posteriori import LogisticRegression
    >>> X = [[0, 0], [1, 1], [2, 2], [3, 3], [4, 4], [5, 5.1], [6, 6], [7, 7.1]]
    >>> checks = LogisticRegression().fit(X, [0, 0, 1, 0, 1, 0, 1, 1]).check(ignore="influence")
    >>> checks["collinearity"].word, checks["collinearity"].values["dependencies"][0].columns
    ('bad', ('x0', 'x1'))
    >>> print(checks["convergence"])
    The iteration converged. [C101, rows of the fit]
    """
    check_is_fitted(model)
    if X is None and any(given is not None for given in (y, sample_weight, offset)):
        raise ParameterError("y, sample_weight or offset was given without X.", "Pass X too.")
    ignored = {ignore} if isinstance(ignore, str) else set(ignore)
    unknown = ignored - {*_CHECKS, *(code for code, *_ in _CHECKS.values())}
    if unknown:
        raise _no_check(min(unknown), _CHECKS)
    found = []
    with one_blas_thread():
        rows = _rows_of_fit(model) if X is None else _given(model, X, y, sample_weight, offset)
        for name, (code, find, judged_on) in _CHECKS.items():
            if ignored & {name, code}:
                continue
            try:
                finding, on = find(model, rows), judged_on or rows.name
            except PosterioriError as error:
                why = f"Not checked: {error.problem} {error.remedy}".rstrip()
                finding, on = ("not checked", why, {}), ""
            found.append(Check(name, *finding, on))
    return Checks(type(model).__name__, tuple(found))


def _no_check(name: str, known: Iterable[str]) -> ParameterError:
    return ParameterError(f"There is no check called {name!r}.", f"Use {either([*known])}.")


_PASS = "Pass X and y."


@dataclass(frozen=True, eq=False)
class CheckedRows:
    """The rows of the "fit" or of "X", with their predictions, targets and weights.

    Predictions and targets of classes are shares (n, K), those of a number (n,). `why` is the
    reason if there are none, or if they are `misleading` because the model was fitted to them.
    """

    name: str
    rows: Rows | None = None
    outcomes: tuple[Array, Array, Array] | None = None
    why: tuple[str, str] = ("The model has not kept the rows of its fit.", _PASS)
    misleading: bool = False

    def judged(self, on_fit: bool = True) -> tuple[Array, Array, Array]:
        """The outcomes, if there are enough; with `on_fit`, misleading ones too."""
        if self.outcomes is None or (self.misleading and not on_fit):
            raise InferenceError(*self.why)
        if self.outcomes[2].sum() < _FEWEST:
            raise InferenceError("There are too few rows.", f"Pass {_FEWEST} rows or more.")
        return self.outcomes


def _rows_of_fit(model: Any) -> CheckedRows:
    """The rows that a model was fitted to, if it keeps them and they have not changed."""
    if not hasattr(model, "_inference"):
        return CheckedRows("fit")
    inference = model._inference
    try:
        objective = inference.objective
        inference.goodness.check_rows()
    except InferenceError as error:
        return CheckedRows("fit", why=(error.problem, _PASS))

    def collect(block: Block) -> list[tuple[Array, Array, Array]]:
        predicted, target = model._predicted(block), objective.target(block)
        if predicted.ndim == 2:
            target = _as_shares(shares(objective.loss, target), predicted.shape[1])
        return [(predicted, target, weights_of(block))]

    rows = objective.rows
    if not rows.in_memory and rows.n_rows > _MOST:
        rows = sample_rows(rows, rows.n_rows / _MOST)[0]
    predicted, target, weight = map(np.concatenate, zip(*rows.map_sum(collect), strict=True))
    few = inference.n_parameters * _ROWS_EACH > inference.goodness.n_obs
    regularised = has_proper_prior(model) or objective.penalty.precision.any()
    why = (
        f"The rows of the fit say little of a model with a prior, or with fewer than {_ROWS_EACH} "
        "rows for each coefficient.",
        "Pass other rows, X and y.",
    )
    outcomes = predicted, target, weight
    return CheckedRows("fit", objective.rows, outcomes, why, few or bool(regularised))


def _given(model: Any, X: Any, y: Any, sample_weight: Any, offset: Any) -> CheckedRows:
    """Other rows, read as the model reads those that it predicts."""
    given, name = offset_argument(model, offset), type(model).__name__
    check_aligned(X, y=y, sample_weight=sample_weight)
    ours = hasattr(model, "_new_rows")
    rows = model._new_rows(X) if ours else MemoryRows(read_features(X, None, name))
    weight = read_weight(sample_weight, rows.n_rows)
    rows = replace(rows, weight=weight)
    if not hasattr(model, "predict_proba") and not is_regressor(model):
        why = f"{name} has no probabilities.", "Wrap it in a CalibratedClassifier."
        return CheckedRows("X", rows, why=why)
    if y is None:
        return CheckedRows("X", rows, why=("y was not passed.", _PASS))
    if is_regressor(model):
        predicted, target = model.predict(X, **given), read_real_target(y, rows.n_rows)
    else:
        predicted = np.asarray(model.predict_proba(X, **given))
        codes = read_target(y, rows.n_rows, known=model.classes_)[1]
        target = _as_shares(cast(Array, codes), predicted.shape[1])
    weight = np.ones(rows.n_rows) if weight is None else weight
    kept = weight > 0
    return CheckedRows("X", rows, (predicted[kept], target[kept], weight[kept]))


def _as_shares(target: Array, n_classes: int) -> Array:
    """Codes of classes, shares (n, K), or shares (n,) of the second of two, as shares (n, K).

    >>> _as_shares(np.array([0, 1]), 3), _as_shares(np.array([0.25]), 2)
    (array([[1., 0., 0.],
           [0., 1., 0.]]), array([[0.75, 0.25]]))
    """
    if target.ndim == 2:
        return target
    if target.dtype.kind != "f":
        return np.eye(n_classes)[target]
    return np.stack([1 - target, target], axis=1)


def has_proper_prior(model: Any) -> bool:
    """Whether a prior determines every coefficient."""
    prior = getattr(model, "prior", None)
    if prior is None or isinstance(prior, str) or hasattr(model, "posterior_"):
        return prior is not None
    try:
        return bool(model._inference.objective.penalty.proper)
    except InferenceError:
        return is_number(prior) and prior > 0


def _convergence(model: Any, rows: CheckedRows) -> Finding:
    parts = [part for part in _innermost(model) if hasattr(part, "converged_")]
    if not parts:
        raise InferenceError("The fit has no iteration, or does not report its convergence.", "")
    n_stopped = sum(not part.converged_ for part in parts)
    values = {"converged": not n_stopped}
    if not n_stopped:
        return "good", "The iteration converged.", values
    if parts[0] is not model:
        said = f"{n_stopped} of {len(parts)} inner fits did not converge. Call check() of each."
        return "bad", said, values
    solution = getattr(model, "solution_", None)
    status = Status.MAX_ITERATIONS if solution is None else solution.status
    remedy = _REMEDIES.get(status, "Look at the scales of the columns, or set a prior.")
    return "bad", f"{status.value} {remedy}", values


def _innermost(model: Any) -> list[Any]:
    """The innermost fitted models of a wrapper; any other model itself."""
    own = [model.estimator_] if hasattr(model, "estimator_") else getattr(model, "estimators_", [])
    return [part for each in own for part in _innermost(each)] or [model]


def _require_likelihood(model: Any) -> None:
    if not hasattr(model, "_inference"):
        raise InferenceError(
            "The model was not fitted by likelihood.", "Of inner fits, call check() of each."
        )


def _separation(model: Any, rows: CheckedRows) -> Finding:
    _require_likelihood(model)
    if has_proper_prior(model):
        said = "Not needed: the prior keeps all coefficients finite."
        return "good", said, {"kind": None, "columns": ()}
    found = model.separation_
    values = {"kind": found.kind, "columns": found.columns}
    if found.kind == "undecided":
        raise InferenceError("There are too many coefficients to decide it.", "Set a prior.")
    if found.kind == "none":
        return "good", "No coefficient diverges.", values
    said = (
        f"The coefficients of {listed(found.columns)} diverge: the likelihood has no maximum "
        f"({found.kind} separation). Set prior='jeffreys' or prior=1.0, or drop the columns."
    )
    return "bad", said, values


def _collinearity(model: Any, rows: CheckedRows) -> Finding:
    if rows.rows is None:
        raise InferenceError(*rows.why)
    columns = Columns(rows.rows.schema, handle_unknown="reference")
    if len(columns.names) > WIDE:
        raise InferenceError(f"There are more than {WIDE:,} columns.", "")
    inference = getattr(model, "_inference", None)
    intercept = inference is None or inference.coefficient_map.standard.intercept
    found = collinearity_of(rows.rows, columns, intercept)
    near, said = found.dependencies(), []
    if near:
        named = [f"{listed(each.columns)} (condition index {each.index:.3g})" for each in near]
        remedy = ", or set a prior" if getattr(model, "prior", 0) is None else ""
        said.append(
            f"Nearly linearly dependent are {'; '.join(named)}. Do not interpret their "
            f"effects one by one; drop or merge some of these columns{remedy}."
        )
    if found.constant:
        said.append(f"Constant, and better dropped: {listed(found.constant)}.")
    word: Word = "warning" if said else "good"
    if not said:
        said.append(
            f"The columns are not collinear: the largest condition index is {found.largest:.3g} "
            f"(a warning from {LARGE:g} on)."
        )
    values = {"largest": found.largest, "indices": found.indices, "dependencies": near}
    return "bad" if found.largest > VERY_LARGE else word, " ".join(said), values


def _influence(model: Any, rows: CheckedRows) -> Finding:
    _require_likelihood(model)
    found = influence_of(model._inference)
    distant, high = found.by_distance(), found.by_leverage()[0]
    row, distance = found.row[distant].tolist(), found.distance[distant].tolist()
    values = {"rows": row, "distances": distance}
    if distance[0] <= _DISTANT:
        said = (
            f"No single row moves the coefficients much: the largest Cook's distance is "
            f"{distance[0]:.2g} (row {row[0]}), the largest leverage {found.leverage[high]:.2g} "
            f"(row {found.row[high]})."
        )
        return "good", said, values
    large = [f"row {i} ({d:.2g})" for i, d in zip(row, distance, strict=True) if d > _DISTANT]
    said = (
        f"The coefficients depend on single rows, by Cook's distance: {', '.join(large)}. Inspect "
        "them, and fit without them to see what changes."
    )
    return "bad" if distance[0] > _FAR else "warning", said, values


def _dispersion(model: Any, rows: CheckedRows) -> Finding:
    z, weight, excess = _pearson(model, *rows.judged())
    df = weight.sum() - (model.n_parameters_ if rows.name == "fit" else 0)
    if df <= 0:
        raise InferenceError("There are no more rows than coefficients.", _PASS)
    ratio = float(weight @ z**2 / df)
    # The variance of z² is two plus the excess kurtosis of the target.
    p_value = float(ndtr(-(ratio - 1) * df / np.sqrt(weight @ (2 + excess))))
    values = {"dispersion": ratio, "p_value": p_value, "df": float(df)}
    found, word = f"Pearson chi2/df is {ratio:.3g} (p {p_text(p_value)})", _word(p_value)
    if word == "good":
        return "good", f"The targets vary no more than the model says: {found}.", values
    said = (
        f"Overdispersion: the targets vary more than the model says. {found}. Standard errors are "
        "too small: use tidy(errors='robust'), or add columns that explain the variation."
    )
    return "warning" if ratio < _OVERDISPERSED else word, said, values


def _pearson(model: Any, p: Array, t: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Pearson residuals of counts or of groups of labels, weights, and excess kurtoses."""
    if p.ndim == 1 and model.family == "poisson":
        return (t - p) / np.sqrt(p), weight, 1 / p
    if p.ndim == 1 or p.shape[1] > 2 or not ((t > 0) & (t < 1)).any():
        raise InferenceError("It is for counts and for grouped labels of two classes.", "")
    share, second = t[:, 1], p[:, 1]
    variance = second * (1 - second) / weight
    kurtosis = 1 / (weight**2 * variance) - 6 / weight
    return (share - second) / np.sqrt(variance), np.ones(len(second)), kurtosis


def _word(p_value: float) -> Word:
    if p_value >= _UNLIKELY:
        return "good"
    return "bad" if p_value < _VERY_UNLIKELY else "warning"


def _residuals(model: Any, rows: CheckedRows) -> Finding:
    """Whether targets are on average what was predicted, at every prediction."""
    found = _binned(model, *rows.judged(on_fit=False))
    labels = getattr(model, "classes_", np.array([None]))
    chances = [min(each.p_value * len(found), 1.0) for each in found]
    k = int(np.argmin(chances))
    each, label, chance = found[k], labels[-len(found) :].tolist()[k], chances[k]
    m, i = len(each.n), each.worst
    of_class = "" if label is None else f" of class {label!r}"
    said = (
        f"{int(each.outside.sum())} of {m} bins of similar predictions{of_class} are more than two "
        f"standard errors from their mean target, where {m * OUTSIDE:.1f} are expected"
    )
    word = _word(chance)
    if word != "good":
        said += (
            f" (p {p_text(chance)}). The farthest: predicted {each.predicted[i]:.3g}, observed "
            f"{each.observed[i]:.3g} ({each.n[i]:.4g} rows). An effect may be nonlinear or an "
            "interaction: add a power, a basis or a product of columns"
        )
    return word, f"{said}.", {"p_value": chance, "label": label, "bins": each}


def _binned(model: Any, p: Array, t: Array, weight: Array) -> list[BinnedResiduals]:
    """Of the second of two classes, of each of more, or of the number."""
    ratio = 1.0  # Pearson's χ²/n where that is larger: overdispersion is no curvature
    with suppress(InferenceError):
        z, counts, _ = _pearson(model, p, t, weight)
        ratio = max(float(counts @ z**2 / counts.sum()), 1.0)
    if p.ndim == 1:
        return [binned_residuals(p, t, ratio * model._variance(p), weight)]
    variance = ratio * p * (1 - p)
    classes = range(int(p.shape[1] == 2), p.shape[1])
    return [binned_residuals(p[:, k], t[:, k], variance[:, k], weight) for k in classes]


def _calibration(model: Any, rows: CheckedRows) -> Finding:
    """Whether classes occur as often as their probabilities say."""
    if is_regressor(model):
        raise InferenceError("The target is a number, not a class.", "")
    p, t, weight = rows.judged(on_fit=False)
    row, code = np.nonzero(weight[:, None] * t)  # a row of shares is a row for each of its classes
    each = weight[row] * t[row, code]
    classes = np.arange(p.shape[1])
    found = calibration_error(code, p[row], classes=classes, sample_weight=each)
    p_value, z = found.p_value, found.z
    word = _word(p_value)
    word = "warning" if word == "bad" and found.expected < _SMALL else word
    error = (
        f"probabilities differ from rates by {found.expected:.2g} on average, where chance "
        f"makes {found.expected_by_chance:.2g} (Spiegelhalter's p {p_text(p_value)})"
    )
    said = f"Classes occur as often as predicted: {error}."
    if word != "good":
        which = "overconfident" if z > 0 else "underconfident"
        said = f"The model is {which}: {error}. Wrap it in a CalibratedClassifier."
    if rows.name == "fit":
        said += " The rows of the fit are optimistic: pass others, X and y."
    return word, said, {"p_value": p_value, "error": found}


def _approximation(model: Any, rows: CheckedRows) -> Finding:
    if not hasattr(type(model), "approximation_check_"):
        raise InferenceError("There is no posterior over coefficients.", "")
    found = model.approximation_check_
    values = {name: getattr(found, name) for name in ("word", "k_hat", "discrepancy")}
    words: dict[str, Word] = {"good": "good", "usable": "warning", "poor": "bad"}
    return words[found.word], str(found), values


_CHECKS: dict[str, tuple[str, Callable[[Any, CheckedRows], Finding], str]] = {
    "convergence": ("C101", _convergence, "fit"),
    "separation": ("C102", _separation, "fit"),
    "collinearity": ("C103", _collinearity, ""),
    "influence": ("C104", _influence, "fit"),
    "dispersion": ("C105", _dispersion, ""),
    "residuals": ("C106", _residuals, ""),
    "calibration": ("C107", _calibration, ""),
    "approximation": ("C108", _approximation, "fit"),
}
"""The code and the function of each check, and the rows it is judged on if not those given."""
