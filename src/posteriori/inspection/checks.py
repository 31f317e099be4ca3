"""Checks of a fitted model: a verdict with a code on each subject, as text, HTML or a frame.

Conventions: n rows, K classes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape
from textwrap import wrap
from typing import Any, Literal, cast, get_args

import numpy as np
from scipy.special import ndtr
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from posteriori.arguments import either, is_number
from posteriori.decision.calibration import OUTSIDE, binned_residuals, calibration_error
from posteriori.design.columns import Columns
from posteriori.errors import InferenceError, MissingValueError, ParameterError, PosterioriError
from posteriori.inspection.results import listed, offset_argument
from posteriori.inspection.summary import p_text
from posteriori.posterior.diagnostics import LARGE, VERY_LARGE, collinearity_of, influence_of
from posteriori.posterior.log_posterior import WIDE
from posteriori.rows.block import Block
from posteriori.rows.features import read_features
from posteriori.rows.frames import make_frame
from posteriori.rows.in_memory import MemoryRows, check_aligned
from posteriori.rows.scan import as_source, is_source
from posteriori.rows.source import FitRows
from posteriori.rows.target import read_offset, read_real_target, read_target, read_weight
from posteriori.rows.threads import one_blas_thread
from posteriori.solve.objective import Status
from posteriori.statistics.goodness_of_fit import shares
from posteriori.statistics.row_sample import sample_rows
from posteriori.typing import Array, Codes

Word = Literal["not checked", "good", "warning", "bad"]
"""A verdict, from nothing to the worst."""

_WORDS: tuple[Word, ...] = get_args(Word)

CODES = {
    "convergence": "C101",
    "separation": "C102",
    "collinearity": "C103",
    "influence": "C104",
    "dispersion": "C105",
    "residuals": "C106",
    "calibration": "C107",
    "approximation": "C108",
}

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

_ENDED = {
    Status.MAX_ITERATIONS: "Raise max_iter.",
    Status.STALLED: "Look at the scales of the columns, or set a prior.",
    Status.SEPARATED: "See the check on separation.",
    Status.DIVERGED: "Set a prior, such as prior=1.0.",
}


class NotChecked(Exception):
    """A subject that cannot be checked; the message says why."""


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
        return CODES[self.name]

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
    >>> checks["C101"].word, len(checks), checks.worst
    ('good', 1, 'good')
    """

    title: str
    found: tuple[Check, ...]

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[Check]:
        return iter(self.found)

    def __getitem__(self, key: int | str) -> Check:
        if not isinstance(key, str):
            return self.found[key]
        for check in self.found:
            if key in (check.name, check.code):
                return check
        names = [check.name for check in self.found]
        raise ParameterError(f"There is no check called {key!r}.", f"Use {either(names)}.")

    @property
    def worst(self) -> Word:
        """The worst of the verdicts."""
        words = [check.word for check in self.found]
        return max(words, key=_WORDS.index, default="not checked")

    def to_frame(self, backend: str | None = None) -> Any:
        """A row a check: check, code, word, sentence, rows; of "pandas", "polars" or "pyarrow"."""
        names = ("name", "code", "word", "sentence", "rows")
        columns = {name: [getattr(check, name) for check in self.found] for name in names}
        return make_frame({"check": columns.pop("name"), **columns}, backend)

    def __repr__(self) -> str:
        return self.text()

    def text(self) -> str:
        """The verdicts in plain characters, 88 a line."""
        lines = [self._heading(), "=" * _WIDTH]
        for check in self.found:
            start = f"{check.word:11}  {check.name:13}  "
            first, *rest = wrap(str(check), _WIDTH - len(start))
            lines += [start + first, *(" " * len(start) + line for line in rest)]
        return "\n".join(lines)

    def _heading(self) -> str:
        words = [check.word for check in self.found]
        counts = [f"{words.count(word)} {word}" for word in reversed(_WORDS) if word in words]
        return f"{self.title}: {', '.join(counts) or 'nothing checked'}"

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        rows = "".join(
            f"<tr><td><b>{escape(check.word)}</b></td><th>{escape(check.name)}</th>"
            f'<td style="text-align: left">{escape(str(check))}</td></tr>'
            for check in self.found
        )
        return f"<div><p><b>{escape(self._heading())}</b></p><table>{rows}</table></div>"


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
    residuals and calibration: pass X and y, or the rows of `scan`. With a prior, or fewer than ten
    rows for each coefficient, the rows of the fit would mislead, and those two are not checked on
    them. Influence is always that of the rows of the fit. Of a source of more than a million rows
    a sample is used.

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
    The iteration converged. [C101]
    """
    check_is_fitted(model)
    if is_classifier(model) and not hasattr(model, "classes_"):
        raise NotFittedError(
            f"This {type(model).__name__} instance is not fitted yet. Call fit first."
        )
    if X is None and any(given is not None for given in (y, sample_weight, offset)):
        raise ParameterError("y, sample_weight or offset was given without X.", "Pass X too.")
    ignored = {ignore} if isinstance(ignore, str) else set(ignore)
    unknown = ignored - {*CODES, *CODES.values()}
    if unknown:
        raise ParameterError(
            f"There is no check called {min(unknown)!r}.", f"Use {either([*CODES])}."
        )
    wanted = {n: f for n, f in _CHECKS.items() if not ignored & {n, CODES[n]}}
    with one_blas_thread():
        rows = _rows_of_fit(model) if X is None else _given(model, X, y, sample_weight, offset)
        found = tuple(_verdict(name, f, model, rows) for name, f in wanted.items())
    return Checks(type(model).__name__, found)


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Predictions, targets and weights (n,) of rows; `sampled` if they are some of many.

    Predictions are (n, K), and targets class codes, shares (n, K), or shares of the second class;
    of a number both are (n,).
    """

    predicted: Array
    target: Array | Codes
    weight: Array
    sampled: bool = False

    def by_class(self) -> "Outcomes":
        """Rows with one class each: a row of shares is a row for each of its classes.

        >>> found = Outcomes(np.array([[0.4, 0.6]]), np.array([0.75]), np.array([8.0])).by_class()
        >>> found.target, found.weight
        (array([0, 1]), array([2., 6.]))
        """
        if self.predicted.ndim == 1 or self.target.dtype.kind != "f":
            return self
        share: Array = self.target  # type: ignore[assignment]
        share = np.stack([1 - share, share], axis=1) if share.ndim == 1 else share
        row, code = np.nonzero(share * self.weight[:, None])
        weight = self.weight[row] * share[row, code]
        return replace(self, predicted=self.predicted[row], target=code, weight=weight)


@dataclass(frozen=True, eq=False)
class CheckedRows:
    """The rows of the "fit" or of "X"; `why` is the reason if there are no outcomes."""

    name: str
    rows: FitRows | None = None
    columns: Columns | None = None
    outcomes: Outcomes | None = None
    why: str = "the rows of the fit are not here; pass X and y"
    misleading: bool = False

    def judged(self, on_fit: bool = True) -> Outcomes:
        """The outcomes, enough of them; those of the fit only if they do not mislead."""
        if self.outcomes is None or (self.misleading and not on_fit):
            raise NotChecked(self.why)
        if self.outcomes.weight.sum() < _FEWEST:
            raise NotChecked(f"it takes {_FEWEST} rows or more, by their weights")
        return self.outcomes


def _rows_of_fit(model: Any) -> CheckedRows:
    """The rows that a model was fitted to, if it keeps them and they are what they were."""
    inference: Any = getattr(model, "_inference", None)
    try:
        _ = inference.objective
    except (AttributeError, InferenceError):
        return CheckedRows("fit")
    try:
        inference.goodness.check_rows()
        objective = inference.objective
    except PosterioriError as error:
        return CheckedRows("fit", why=_clause(error))
    truth = partial(_shares, objective.loss, objective.target)
    outcomes, why = _outcomes(objective.rows, model._predicted, truth), ""
    if has_proper_prior(model) or objective.penalty.precision.any():
        why = "where a prior holds the coefficients"
    elif inference.n_parameters * _ROWS_EACH > inference.goodness.n_obs:
        why = "with so many coefficients for so few rows"
    said = f"the rows of the fit say little of it {why}; pass others, X and y"
    return CheckedRows("fit", objective.rows, objective.columns, outcomes, said, bool(why))


def _given(model: Any, X: Any, y: Any, sample_weight: Any, offset: Any) -> CheckedRows:
    """Other rows, read as the model reads those that it predicts."""
    name, given = type(model).__name__, offset_argument(model, offset)
    read = _source if is_source(X) else _table
    rows = read(model, X, y, sample_weight, offset)
    columns = Columns(rows.schema, handle_unknown="reference")
    if not hasattr(model, "predict_proba") and not is_regressor(model):
        why = f"{name} gives no probabilities; CalibratedClassifier makes some of its decisions"
        return CheckedRows("X", rows, columns, why=why)
    if rows.classes is None and not (is_regressor(model) and rows.has_target):
        return CheckedRows("X", rows, columns, why="y was not passed")
    if hasattr(model, "_predicted"):
        return CheckedRows("X", rows, columns, _outcomes(rows, model._predicted, _labels))
    own = cast(MemoryRows, rows)
    weight = np.ones(own.n_rows) if own.weight is None else own.weight
    predicted, kept = np.asarray(model.predict_proba(X, **given)), weight > 0
    outcomes = Outcomes(predicted[kept], cast(Array, own.y)[kept], weight[kept])
    return CheckedRows("X", rows, columns, outcomes)


def _source(model: Any, X: Any, y: Any, sample_weight: Any, offset: Any) -> FitRows:
    name = type(model).__name__
    if offset is not None or not hasattr(model, "schema_"):
        raise ParameterError(
            f"{name} cannot be checked by rows of a source"
            f"{' and offsets beside them' * (offset is not None)}.",
            "Name the column of offsets in scan(), or pass a table X and labels y.",
        )
    rows = as_source(X, y, sample_weight, None, name)
    if is_regressor(model):
        return rows.with_numbers().discover().known_as(model.schema_, None)
    return rows.discover().known_as(model.schema_, model.classes_)


def _table(model: Any, X: Any, y: Any, sample_weight: Any, offset: Any) -> FitRows:
    ours = hasattr(model, "_new_rows")
    rows = model._new_rows(X) if ours else MemoryRows(read_features(X, None, type(model).__name__))
    check_aligned(X, y=y, sample_weight=sample_weight)
    n, K = rows.n_rows, len(getattr(model, "classes_", ()))
    rows = replace(rows, weight=read_weight(sample_weight, n))
    if offset is not None:
        rows = replace(rows, offset=read_offset(offset, n, K if K > 2 else 1))
    if y is None:
        return cast(FitRows, rows)
    if is_regressor(model):
        return replace(rows, y=read_real_target(y, n))
    classes, target = read_target(y, n, known=model.classes_)
    return replace(rows, y=target, classes=classes)


def _labels(block: Block) -> Array:
    return cast(Array, block.y)


def _shares(loss: Any, target: Any, block: Block) -> Array:
    return shares(loss, target(block))


def _collect(
    predict: Callable[[Block], Array], truth: Callable[[Block], Array], block: Block
) -> list[tuple[Array, Array, Array]]:
    """Predictions, targets and weights of a block."""
    n = block.X.shape[0]
    weight = np.ones(n) if block.weight is None else block.weight
    return [(predict(block), truth(block), weight)] if n else []


def _outcomes(rows: FitRows, predict: Any, truth: Any) -> Outcomes:
    """Predictions of the rows beside their targets: of a sample where a source has too many."""
    sampled = not rows.in_memory and rows.n_rows > _MOST
    some = sample_rows(rows, 2 ** (rows.n_rows // _MOST).bit_length())[0] if sampled else rows
    parts = some.map_sum(partial(_collect, predict, truth))
    predicted, target, weight = (np.concatenate(each) for each in zip(*parts, strict=True))
    return Outcomes(predicted, target, weight, sampled)


def _clause(error: PosterioriError) -> str:
    """What is wrong, as a part of a sentence.

    >>> _clause(InferenceError("The rows have changed.", "Fit again."))
    'the rows have changed'
    """
    return error.problem[0].lower() + error.problem[1:].rstrip(".")


def has_proper_prior(model: Any) -> bool:
    """Whether a prior determines every coefficient."""
    prior = getattr(model, "prior", None)
    if prior is None or isinstance(prior, str) or hasattr(model, "posterior_"):
        return prior is not None
    try:
        return bool(model._inference.objective.penalty.proper)
    except InferenceError:
        return is_number(prior) and prior > 0


def _verdict(
    name: str, check: Callable[[Any, CheckedRows], Check], model: Any, rows: CheckedRows
) -> Check:
    """The verdict, or "not checked" with the reason."""
    try:
        return check(model, rows)
    except (NotChecked, PosterioriError) as error:
        why = _clause(error) if isinstance(error, PosterioriError) else str(error)
        return Check(name, "not checked", f"Not checked: {why}.")


def _convergence(model: Any, rows: CheckedRows) -> Check:
    inner = _inner(model)
    known = [part for part in (inner or [model]) if hasattr(part, "converged_") or _is_ours(part)]
    if len(known) < len(inner or [model]):
        name = type(next(part for part in inner or [model] if part not in known)).__name__
        raise NotChecked(f"{name} does not say whether it converged")
    stopped = [part for part in known if not getattr(part, "converged_", True)]
    values = {"converged": not stopped}
    if not stopped:
        iterated = any(hasattr(part, "converged_") for part in known)
        said = "The iteration converged." if iterated else "The fit needs no iteration."
        return Check("convergence", "good", said, values)
    if inner:
        said = f"{len(stopped)} of {len(inner)} inner fits did not converge. Call check() of each."
    elif hasattr(model, "solution_"):
        said = f"{model.solution_.status.value} {_ENDED[model.solution_.status]}"
    else:
        said = (
            "The iteration was stopped before it converged. Raise max_epochs; where classes "
            "overlap, use a model with probabilities, such as LogisticRegression."
        )
    return Check("convergence", "bad", said, values)


def _inner(model: Any) -> list[Any]:
    """The innermost fitted models of a wrapper; none of any other model."""
    if not _is_ours(model):
        return []
    own = [model.estimator_] if hasattr(model, "estimator_") else getattr(model, "estimators_", [])
    thawed = [each.estimator if isinstance(each, FrozenEstimator) else each for each in own]
    return [part for each in thawed for part in (_inner(each) or [each])]


def _is_ours(model: Any) -> bool:
    """Whether a model is of this library, or made from one that is."""
    return any(each.__module__.partition(".")[0] == "posteriori" for each in type(model).__mro__)


def _require_likelihood(model: Any) -> None:
    if not hasattr(model, "_inference"):
        raise NotChecked(
            "the inner fits have it; call check() of each of them"
            if _inner(model)
            else "the fit does not maximise a likelihood of the target given the columns"
        )


def _separation(model: Any, rows: CheckedRows) -> Check:
    _require_likelihood(model)
    if has_proper_prior(model):
        said = "Not needed: the prior keeps all coefficients finite."
        return Check("separation", "good", said, {"kind": None, "columns": ()})
    found = model.separation_
    values = {"kind": found.kind, "columns": found.columns}
    if found.kind == "undecided":
        raise NotChecked("there are too many coefficients to decide it")
    if found.kind == "none":
        return Check("separation", "good", "No coefficient diverges.", values, "fit")
    diverge = "coefficient diverges" if len(found.columns) == 1 else "coefficients diverge"
    said = (
        f"The {diverge} along {listed(found.columns)}: the likelihood has no maximum "
        f"({'all' if found.kind == 'complete' else 'some'} rows are separated without error). Set "
        "prior='jeffreys' or a number such as prior=1.0, or drop the columns."
    )
    return Check("separation", "bad", said, values, "fit")


def _collinearity(model: Any, rows: CheckedRows) -> Check:
    if rows.rows is None or rows.columns is None:
        raise NotChecked(rows.why)
    if rows.rows.n_rows < 2:
        raise NotChecked("there is a single row")
    if len(rows.columns.names) > WIDE:
        raise NotChecked(f"it is computed for {WIDE:,} columns at most")
    formula = getattr(model, "formula_", None)
    intercept = getattr(model, "fit_intercept", True) and (formula is None or formula.intercept)
    try:
        found = collinearity_of(rows.rows, rows.columns, bool(intercept))
    except MissingValueError:
        raise NotChecked("some entries are missing") from None
    near, said = found.dependencies(), ""
    if near:
        more = f", and {len(near) - 3} more" if len(near) > 3 else ""
        named = [f"{listed(each.columns)} (condition index {each.index:.3g})" for each in near[:3]]
        said = f"Nearly linearly dependent are {'; '.join(named)}{more}. {_harm(model)}"
    if found.constant:
        said += f" Constant, and better dropped: {listed(found.constant)}."
    if not said:
        said = (
            f"The columns are not collinear: the largest condition index is {found.largest:.3g} "
            f"(a warning from {LARGE:g} on)."
        )
    word: Word = "bad" if found.largest > VERY_LARGE else "good"
    word = "warning" if word == "good" and (near or found.constant) else word
    values = {"largest": found.largest, "indices": found.indices, "dependencies": near}
    return Check("collinearity", word, said.strip(), values, rows.name)


def _harm(model: Any) -> str:
    """What collinear columns do to a model, and what to do."""
    if not hasattr(model, "_inference"):
        return "Their separate effects are not determined; drop or merge some of these columns."
    if has_proper_prior(model):
        return "The prior shares their effect among them: do not interpret them one by one."
    return (
        "Their coefficients have large errors, though predictions suffer little. Drop or merge "
        "some of these columns, or set a prior."
    )


def _influence(model: Any, rows: CheckedRows) -> Check:
    _require_likelihood(model)
    found = influence_of(model._inference)
    distant, levered = found.by_distance(), found.by_leverage()
    first, high = distant[0], levered[0]
    most = float(found.distance[first])
    values = {"rows": found.row[distant].tolist(), "distances": found.distance[distant].tolist()}
    if most <= _DISTANT:
        said = (
            f"No single row moves the coefficients much: the largest Cook's distance is {most:.2g} "
            f"(row {found.row[first]}), the largest leverage {found.leverage[high]:.2g} (row "
            f"{found.row[high]})."
        )
        return Check("influence", "good", said, values, "fit")
    large = [i for i in distant if found.distance[i] > _DISTANT]
    named = ", ".join(f"row {found.row[i]} ({found.distance[i]:.2g})" for i in large)
    said = (
        f"The coefficients depend on single rows, by Cook's distance: {named}. Inspect their "
        "entries and targets, and fit without them to see what changes."
    )
    return Check("influence", "bad" if most > _FAR else "warning", said, values, "fit")


def _dispersion(model: Any, rows: CheckedRows) -> Check:
    outcomes = rows.judged()
    z, weight, excess = _pearson(model, outcomes)
    df = weight.sum() - (model.n_parameters_ if rows.name == "fit" else 0)
    if df <= 0:
        raise NotChecked("there are no more rows than coefficients")
    ratio = float(weight @ z**2 / df)
    # The variance of z² is two plus the excess kurtosis of the target.
    p_value = float(ndtr(-(ratio - 1) * df / np.sqrt(weight @ (2 + excess))))
    values = {"dispersion": ratio, "p_value": p_value, "df": float(df)}
    said = f"Pearson chi2/df is {ratio:.3g} (p {p_text(p_value)})"
    word = _word(p_value)
    if word == "good":
        said = f"The targets vary no more than the model says: {said}."
        return Check("dispersion", "good", said, values, rows.name)
    word = "bad" if ratio >= _OVERDISPERSED and word == "bad" else "warning"
    said = (
        f"Overdispersion: the targets vary more than the model says. {said}. The model's standard "
        "errors are too small; use tidy(errors='robust') and summary(errors='robust'), or add "
        "columns that explain the variation."
    )
    return Check("dispersion", word, said, values, rows.name)


def _pearson(model: Any, outcomes: Outcomes) -> tuple[Array, Array, Array]:
    """Pearson residuals of counts or of groups of labels, weights, and excess kurtoses."""
    p, t, weight = outcomes.predicted, outcomes.target, outcomes.weight
    if p.ndim == 1:
        if model.family != "poisson":
            raise NotChecked("it is for counts and for grouped labels")
        return (t - p) / np.sqrt(p), weight, 1 / p
    share, second = t if t.ndim == 1 else t[:, 1], p[:, 1]
    if p.shape[1] > 2 or not ((share > 0) & (share < 1)).any():
        raise NotChecked("it is for counts and for grouped labels of two classes")
    variance = second * (1 - second) / weight
    kurtosis = 1 / (weight**2 * variance) - 6 / weight
    return (share - second) / np.sqrt(variance), np.ones(len(second)), kurtosis


def _word(p_value: float) -> Word:
    if p_value >= _UNLIKELY:
        return "good"
    return "bad" if p_value < _VERY_UNLIKELY else "warning"


def _residuals(model: Any, rows: CheckedRows) -> Check:
    """Whether targets are on average what was predicted, at every prediction."""
    outcomes = rows.judged(on_fit=False)
    found, labels = _binned(model, outcomes), [None]
    if not is_regressor(model):
        classes = model.classes_.tolist()
        labels = classes[1:] if len(classes) == 2 else classes
    chances = [min(each.p_value * len(found), 1.0) for each in found]
    k = int(np.argmin(chances))
    each, label, chance = found[k], labels[k], chances[k]
    m, i = len(each.n), each.worst
    of_class = "" if label is None else f" of class {label!r}"
    said = (
        f"{int(each.outside.sum())} of {m} bins of similar predictions{of_class} are more than two "
        f"standard errors from their mean target, where {m * OUTSIDE:.1f} are expected"
        f"{_sample_text(outcomes)}"
    )
    word = _word(chance)
    if word == "good":
        said += "."
    else:
        said += (
            f" (p {p_text(chance)}). The farthest: predicted {each.predicted[i]:.3g}, observed "
            f"{each.observed[i]:.3g} ({each.n[i]:.4g} rows). An effect may be nonlinear or an "
            "interaction: add a power, a basis or a product of columns."
        )
    values = {"p_value": chance, "label": label, "bins": each}
    return Check("residuals", word, said, values, rows.name)


def _binned(model: Any, outcomes: Outcomes) -> list[Any]:
    """Of the second of two classes, of each of more, or of the number."""
    ratio = _overdispersion(model, outcomes)
    whole = outcomes.by_class()
    p, t, weight = whole.predicted, whole.target, whole.weight
    if p.ndim == 1:
        variance = ratio * model._variance(p)
        if not (variance > 0).all():
            raise NotChecked("the fit meets every target")
        return [binned_residuals(p, t.astype(np.float64), variance, weight)]
    K = p.shape[1]
    return [
        binned_residuals(
            p[:, k], (t == k).astype(np.float64), ratio * p[:, k] * (1 - p[:, k]), weight
        )
        for k in ([1] if K == 2 else range(K))
    ]


def _overdispersion(model: Any, outcomes: Outcomes) -> float:
    """Pearson's χ²/n where that is large: overdispersion is no curvature."""
    try:
        z, weight, _ = _pearson(model, outcomes)
    except NotChecked:
        return 1.0
    return max(float(weight @ z**2 / weight.sum()), 1.0)


def _sample_text(outcomes: Outcomes) -> str:
    return f" (in a sample of {len(outcomes.weight):,} rows)" if outcomes.sampled else ""


def _calibration(model: Any, rows: CheckedRows) -> Check:
    """Whether classes occur as often as their probabilities say."""
    if is_regressor(model):
        raise NotChecked("the target is a number, not a class")
    outcomes = rows.judged(on_fit=False).by_class()
    found = calibration_error(
        outcomes.target,
        outcomes.predicted,
        classes=np.arange(outcomes.predicted.shape[1]),
        sample_weight=outcomes.weight,
    )
    p_value, z = found.spiegelhalter.p_value, found.spiegelhalter.z
    word = _word(p_value)
    word = "warning" if word == "bad" and found.expected < _SMALL else word
    error = (
        f"probabilities differ from rates by {found.expected:.2g} on average"
        f"{_sample_text(outcomes)}, where chance makes {found.expected_by_chance:.2g} "
        f"(Spiegelhalter's p {p_text(p_value)})"
    )
    if word == "good":
        said = f"Classes occur as often as predicted: {error}."
    elif z > 0:
        said = (
            f"The model is overconfident: {error}. Wrap it in a CalibratedClassifier, or drop "
            "columns that repeat each other."
        )
    else:
        said = (
            f"The model is underconfident: {error}. Wrap it in a CalibratedClassifier, or weaken "
            "the prior."
        )
    if rows.name == "fit":
        said += " The rows of the fit are optimistic: pass others, X and y."
    values = {"p_value": p_value, "error": found}
    return Check("calibration", word, said, values, rows.name)


def _approximation(model: Any, rows: CheckedRows) -> Check:
    if not hasattr(type(model), "approximation_check_"):
        raise NotChecked("there is no posterior over coefficients")
    found = model.approximation_check_
    values = {name: getattr(found, name) for name in ("word", "k_hat", "discrepancy")}
    words: dict[str, Word] = {"good": "good", "usable": "warning", "poor": "bad"}
    return Check("approximation", words[found.word], str(found), values, "fit")


_CHECKS: dict[str, Callable[[Any, CheckedRows], Check]] = {
    "convergence": _convergence,
    "separation": _separation,
    "collinearity": _collinearity,
    "influence": _influence,
    "dispersion": _dispersion,
    "residuals": _residuals,
    "calibration": _calibration,
    "approximation": _approximation,
}
