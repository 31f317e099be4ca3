"""Checks of a fitted model: a verdict in words on each subject, as text, HTML or a frame."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from html import escape
from textwrap import wrap
from typing import Any, Literal, cast, get_args, overload

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from posteriori.arguments import either
from posteriori.decision.calibration import (
    OUTSIDE,
    BinnedResiduals,
    CalibrationError,
    binned_residuals,
    calibration_error,
)
from posteriori.errors import InferenceError, MissingValueError, ParameterError, PosterioriError
from posteriori.inspection.check_rows import (
    Outcomes,
    Seen,
    clause,
    has_proper_prior,
    rows_given,
    rows_of_fit,
)
from posteriori.inspection.results import listed
from posteriori.inspection.summary import p_text, shortened
from posteriori.posterior.diagnostics import (
    LARGE,
    VERY_LARGE,
    Collinearity,
    Dependency,
    collinearity_of,
    influence_of,
)
from posteriori.posterior.log_posterior import WIDE
from posteriori.rows.frames import make_frame
from posteriori.rows.threads import one_blas_thread
from posteriori.solve.objective import Status
from posteriori.solve.separation import Separation
from posteriori.statistics.leverage import Influence

Word = Literal["not checked", "good", "look", "bad"]
"""What a check says, from nothing to the worst."""

_WORDS: tuple[Word, ...] = get_args(Word)

_WIDTH = 88
"""Characters of a line."""

_GAP = "  "

_MOST = 40
"""Characters of the name of a model in the title."""


@dataclass(frozen=True, eq=False)
class Check:
    """A verdict: "good", "look" (into it), "bad", or "not checked"; a sentence; and its numbers.

    The sentence says what was found, in which column or row, and what to do about it.

    >>> Check("collinearity", "good", "The columns can be told apart.", {"largest": 3.2})
    Check(name='collinearity', word='good', sentence='The columns can be told apart.')
    """

    name: str
    word: Word
    sentence: str
    values: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, eq=False, repr=False)
class Checks(Sequence[Check]):
    """What `check()` gives: all checks of a model, in order, or one by its name.

    >>> checks = Checks("Model", (Check("convergence", "good", "The iteration converged."),))
    >>> checks
    Model: 1 good
    ========================================================================================
    good         convergence   The iteration converged.
    >>> checks["convergence"].word, len(checks), checks.worst
    ('good', 1, 'good')
    """

    title: str
    found: tuple[Check, ...]

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[Check]:
        return iter(self.found)

    @overload
    def __getitem__(self, key: int | str) -> Check: ...

    @overload
    def __getitem__(self, key: slice) -> tuple[Check, ...]: ...

    def __getitem__(self, key: int | str | slice) -> Check | tuple[Check, ...]:
        if not isinstance(key, str):
            return self.found[key]
        names = [check.name for check in self.found]
        if key not in names:
            raise ParameterError(f"There is no check called {key!r}.", f"Use {either(names)}.")
        return self.found[names.index(key)]

    @property
    def worst(self) -> Word:
        """The worst of the verdicts."""
        words = [check.word for check in self.found]
        return max(words, key=_WORDS.index, default="not checked")

    def to_frame(self, backend: str | None = None) -> Any:
        """A row a check: check, word, sentence; of "pandas", "polars" or "pyarrow"."""
        rows = [(check.name, check.word, check.sentence) for check in self.found]
        columns = zip(*rows, strict=True) if rows else ([], [], [])
        names = ("check", "word", "sentence")
        return make_frame(dict(zip(names, map(list, columns), strict=True)), backend)

    def __repr__(self) -> str:
        return self.text()

    def text(self) -> str:
        """The verdicts in plain characters, at most 88 a line."""
        lines = [self._heading(), "=" * _WIDTH]
        for check in self.found:
            lines += _lines(check)
        return "\n".join(lines)

    def _heading(self) -> str:
        words = [check.word for check in self.found]
        counts = [f"{words.count(word)} {word}" for word in reversed(_WORDS) if word in words]
        return f"{shortened(self.title, _MOST)}: {', '.join(counts) or 'nothing checked'}"

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        rows = "".join(map(_html_row, self.found))
        return f"<div><p><b>{escape(self._heading())}</b></p><table>{rows}</table></div>"


def _lines(check: Check) -> list[str]:
    words, names = max(map(len, _WORDS)), len("collinearity")
    start = check.word.ljust(words) + _GAP + check.name.ljust(names) + _GAP
    parts = wrap(check.sentence, _WIDTH - len(start)) or [""]
    return [start + parts[0], *(" " * len(start) + part for part in parts[1:])]


def _html_row(check: Check) -> str:
    colour = {"bad": "#b00020", "look": "#8a6100", "good": "#1b6e2c"}.get(check.word, "#666666")
    style = f'style="color: {colour}; white-space: nowrap"'
    return (
        f"<tr><td {style}><b>{escape(check.word)}</b></td><th>{escape(check.name)}</th>"
        f'<td style="text-align: left">{escape(check.sentence)}</td></tr>'
    )


_DISTANT, _FAR = 0.5, 1.0
"""Cook's distances that are to be looked at, and that are too large."""

_MOST_NAMED = 3
"""Dependencies that a sentence names."""

_TRUST: dict[str, Word] = {"good": "good", "usable": "look", "poor": "bad"}

_ENDED: dict[Status, str] = {
    Status.MAX_ITERATIONS: "Raise max_iter.",
    Status.STALLED: "Look at the scales of the columns, or set a prior.",
    Status.SEPARATED: "See the check on separation.",
}

Verdict = Callable[..., Check]


def not_checked(name: str, why: str) -> Check:
    """What to say where nothing can be said.

    >>> not_checked("influence", "the rows of the fit are not here").sentence
    'Not checked: the rows of the fit are not here.'
    """
    return Check(name, "not checked", f"Not checked: {why}.")


def where_possible(name: str) -> Callable[[Verdict], Verdict]:
    """The verdict, or where it cannot be had a check that says why."""

    def guard(verdict: Verdict) -> Verdict:
        @wraps(verdict)
        def guarded(*arguments: Any) -> Check:
            try:
                return verdict(*arguments)
            except PosterioriError as error:
                return not_checked(name, clause(error))

        return guarded

    return guard


def convergence(model: Any) -> Check:
    """Whether the iteration ended where it should."""
    parts = _parts(model)
    stopped = [not part.converged_ for part in parts if hasattr(part, "converged_")]
    silent = [part for part in parts if not (hasattr(part, "converged_") or _is_ours(part))]
    values = {"converged": not any(stopped)}
    if any(stopped):
        return Check("convergence", "bad", _end(model, sum(stopped)), values)
    if silent:
        name = type(silent[0]).__name__
        return not_checked("convergence", f"{name} does not tell whether it converged")
    told = "The iteration converged." if stopped else "The fit needs no iteration."
    return Check("convergence", "good", told, values)


def _end(model: Any, n_stopped: int) -> str:
    """How an iteration ended that did not converge."""
    if not hasattr(model, "converged_"):
        of = len([part for part in _parts(model) if not _inner(part)])
        return f"Of {of} fits inside, {n_stopped} did not converge. Call check() of each of them."
    if not hasattr(model, "solution_"):
        return (
            "The iteration was stopped before it converged. Raise max_epochs; where classes "
            "overlap, use a model with probabilities, such as LogisticRegression."
        )
    return f"{model.solution_.status.value} {_ENDED[model.solution_.status]}"


def _parts(model: Any) -> list[Any]:
    """The model, and the fitted models inside of it and of each other."""
    return [model, *(part for inside in _inner(model) for part in _parts(inside))]


def _inner(model: Any) -> list[Any]:
    """The fitted models inside of one of ours; what others are made of is their own matter."""
    if not _is_ours(model):
        return []
    own = [model.estimator_] if hasattr(model, "estimator_") else []
    return [_thawed(each) for each in (*own, *getattr(model, "estimators_", []))]


def _thawed(model: Any) -> Any:
    return model.estimator if isinstance(model, FrozenEstimator) else model


def _is_ours(model: Any) -> bool:
    """Whether a model is of this library, or made from one that is."""
    return any(each.__module__.partition(".")[0] == "posteriori" for each in type(model).__mro__)


def _why_no_likelihood(model: Any) -> str:
    if _inner(model):
        return "it is a matter of the fits inside; call check() of each of them"
    return "the fit does not maximise a likelihood of the target given the columns"


@where_possible("separation")
def separation(model: Any) -> Check:
    """Whether coefficients diverge."""
    if not hasattr(model, "_inference"):
        return not_checked("separation", _why_no_likelihood(model))
    if has_proper_prior(model):
        told = "Not needed: the prior keeps all coefficients finite, whatever the classes."
        return Check("separation", "good", told, {"kind": None, "columns": ()})
    found: Separation = model.separation_
    values = {"kind": found.kind, "columns": found.columns}
    if found.kind == "none":
        return Check("separation", "good", "No coefficient diverges.", values)
    if found.kind == "undecided":
        return not_checked("separation", "there are too many coefficients to decide it")
    diverge = "coefficient diverges" if len(found.columns) == 1 else "coefficients diverge"
    told = (
        f"The {diverge} along {listed(found.columns)}: the likelihood has no maximum "
        f"({'all' if found.kind == 'complete' else 'some'} rows are separated without error). Set "
        "prior='jeffreys' or a number such as prior=1.0, or drop the columns."
    )
    return Check("separation", "bad", told, values)


@where_possible("collinearity")
def collinearity(model: Any, seen: Seen) -> Check:
    """Whether columns are nearly combinations of others."""
    if seen.rows is None or seen.columns is None:
        return not_checked("collinearity", seen.why)
    if seen.rows.n_rows < 2:
        return not_checked("collinearity", "a single row says nothing of how columns go together")
    if len(seen.columns.names) > WIDE:
        return not_checked("collinearity", f"it is worked out for {WIDE:,} columns at most")
    try:
        found = collinearity_of(seen.rows, seen.columns, _has_intercept(model))
    except MissingValueError:
        return not_checked("collinearity", "some entries are missing")
    near = found.dependencies()
    values = {
        "largest": found.largest,
        "indices": found.indices,
        "dependencies": near,
        "constant": found.constant,
        "uncentred": found.uncentred,
        "details": found,
    }
    word: Word = "bad" if found.largest > VERY_LARGE else "look" if near else "good"
    if found.constant and word == "good":
        word = "look"
    return Check("collinearity", word, _collinearity_sentence(found, near, _harm(model)), values)


def _harm(model: Any) -> str:
    """What columns that hang together do to a model, and what to do about it."""
    if not hasattr(model, "_inference"):
        return "What each of them does cannot be told; drop or merge some of these columns."
    if has_proper_prior(model):
        return "The prior deals their effect out among them: do not read them one by one."
    return (
        "Their coefficients can hardly be told apart, though predictions suffer little. Drop or "
        "merge some of these columns, or set a prior."
    )


def _collinearity_sentence(found: Collinearity, near: Sequence[Dependency], harm: str) -> str:
    told = ""
    if near:
        more = f", and {len(near) - _MOST_NAMED} more" if len(near) > _MOST_NAMED else ""
        named = "; ".join(map(_named, near[:_MOST_NAMED]))
        told = f"Nearly a combination of each other are {named}{more}. {harm}"
    if found.constant:
        told += f" Never changing, and better dropped: {listed(found.constant)}."
    largest = f"the largest condition index is {found.largest:.3g} (from {LARGE:g} on, look)"
    return told.strip() or f"The columns can be told apart: {largest}."


def _named(each: Dependency) -> str:
    return f"{listed(each.columns)} (condition index {each.index:.3g})"


def _has_intercept(model: Any) -> bool:
    formula = getattr(model, "formula_", None)
    return bool(getattr(model, "fit_intercept", True)) and (formula is None or formula.intercept)


@where_possible("influence")
def influence(model: Any) -> Check:
    """Whether the coefficients hang on a few rows."""
    if not hasattr(model, "_inference"):
        return not_checked("influence", _why_no_likelihood(model))
    found = influence_of(model._inference)
    distant, levered = found.by_distance(), found.by_leverage()
    most = float(found.distance[distant[0]])
    values = {
        "rows": found.row[distant].tolist(),
        "distances": found.distance[distant].tolist(),
        "leverages": found.leverage[distant].tolist(),
        "highest_leverage_rows": found.row[levered].tolist(),
        "highest_leverages": found.leverage[levered].tolist(),
    }
    word: Word = "bad" if most > _FAR else "look" if most > _DISTANT else "good"
    return Check("influence", word, _influence_sentence(found, word), values)


def _influence_sentence(found: Influence, word: Word) -> str:
    first, high = found.by_distance()[0], found.by_leverage()[0]
    if word == "good":
        return (
            "No single row moves the coefficients much: the largest Cook's distance is "
            f"{found.distance[first]:.2g} (row {found.row[first]}), the largest leverage "
            f"{found.leverage[high]:.2g} (row {found.row[high]})."
        )
    named = [
        f"row {found.row[i]} ({found.distance[i]:.2g})"
        for i in found.by_distance()
        if found.distance[i] > _DISTANT
    ]
    return (
        f"The coefficients hang on single rows, by Cook's distance: {', '.join(named)}. Look at "
        "their entries and targets, and fit without them to see what changes."
    )


@where_possible("trust")
def trust(model: Any) -> Check:
    """Whether the posterior found is near the exact one."""
    if not hasattr(type(model), "approximation_check_"):
        return not_checked("trust", "there is no posterior over coefficients to be trusted")
    found = model.approximation_check_
    values = {name: getattr(found, name) for name in ("word", "k_hat", "discrepancy")}
    return Check("trust", _TRUST[found.word], str(found), values)


_UNLIKELY, _VERY_UNLIKELY = 0.01, 1e-4
"""p-values that are to be looked at, and that are too small."""

_SMALL = 0.01
"""A calibration error that does no harm, however sure it is that there is one."""

_FEWEST = 10
"""Rows whose averages say something."""

_TOO_FEW = f"it takes {_FEWEST} rows or more, by their weights"

_FLATTERED = " These are the rows of the fit, which flatter it: pass others, X and y."


@where_possible("residuals")
def residuals(model: Any, seen: Seen) -> Check:
    """Whether targets are on average what was predicted, wherever one looks."""
    if seen.outcomes is None:
        return not_checked("residuals", seen.why)
    if seen.outcomes.weight.sum() < _FEWEST:
        return not_checked("residuals", _TOO_FEW)
    found = _binned(model, seen.outcomes)
    chances = [min(each.p_value * len(found), 1.0) for each in found]
    k = int(np.argmin(chances))
    worst, label = found[k], _label(model, k)
    values = {
        "share_outside": worst.share,
        "p_value": chances[k],
        "label": label,
        "predicted": worst.predicted,
        "observed": worst.observed,
        "z": worst.z,
        "n": worst.n,
    }
    return Check(
        "residuals", _word(chances[k]), _residual_sentence(worst, label, chances[k], seen), values
    )


def _word(p_value: float) -> Word:
    return "bad" if p_value < _VERY_UNLIKELY else "look" if p_value < _UNLIKELY else "good"


def _binned(model: Any, outcomes: Outcomes) -> list[BinnedResiduals]:
    """Of the second of two classes, of each of more, or of the number."""
    p, t, weight = outcomes.predicted, outcomes.happened, outcomes.weight
    if p.ndim == 1:
        variance = model._variance(p)
        if not (variance > 0).all():
            raise InferenceError("The fit meets every target.", "Fit fewer columns.")
        return [binned_residuals(p, t.astype(np.float64), variance, weight)]
    K = p.shape[1]
    return [
        binned_residuals(p[:, k], (t == k).astype(np.float64), p[:, k] * (1 - p[:, k]), weight)
        for k in ([1] if K == 2 else range(K))
    ]


def _label(model: Any, k: int) -> Any:
    if is_regressor(model):
        return None
    labels = model.classes_.tolist()
    return labels[1] if len(labels) == 2 else labels[k]


def _residual_sentence(found: BinnedResiduals, label: Any, p_value: float, seen: Seen) -> str:
    m, worst = len(found.n), found.worst
    what = "" if label is None else f" of class {label!r}"
    told = (
        f"{int(found.outside.sum())} of {m} bins of like predictions{what} lie more than two "
        f"standard errors from what was predicted, where {m * OUTSIDE:.1f} are expected"
    )
    farthest = (
        f"where {found.predicted[worst]:.3g} was predicted, {found.observed[worst]:.3g} was "
        f"observed ({found.n[worst]:.4g} rows)"
    )
    if p_value >= _UNLIKELY:
        return f"{told}{_sampled(seen)}."
    return (
        f"{told}{_sampled(seen)} (p {p_text(p_value)}). The farthest: {farthest}. A column may act "
        "by a curve or with another: add a power, a basis or a product."
    )


def _sampled(seen: Seen) -> str:
    outcomes = cast(Outcomes, seen.outcomes)
    return f" (in a sample of {len(outcomes.weight):,} rows)" if outcomes.sampled else ""


@where_possible("calibration")
def calibration(model: Any, seen: Seen) -> Check:
    """Whether classes occur as often as their probabilities say."""
    if is_regressor(model):
        return not_checked("calibration", "the target is a number, not a class")
    if seen.outcomes is None:
        return not_checked("calibration", seen.why)
    outcomes = seen.outcomes
    if outcomes.weight.sum() < _FEWEST:
        return not_checked("calibration", _TOO_FEW)
    labels = np.arange(outcomes.predicted.shape[1])
    found = calibration_error(
        outcomes.happened, outcomes.predicted, classes=labels, sample_weight=outcomes.weight
    )
    p_value = found.spiegelhalter.p_value
    values = {
        "p_value": p_value,
        "z": found.spiegelhalter.z,
        "expected_error": found.expected,
        "expected_by_chance": found.expected_by_chance,
        "of_fit": seen.of_fit,
    }
    word = _word(p_value)
    if word == "bad" and found.expected < _SMALL:
        word = "look"
    told = _calibration_sentence(found, word, _sampled(seen))
    return Check("calibration", word, told + (_FLATTERED if seen.of_fit else ""), values)


def _calibration_sentence(found: CalibrationError, word: Word, sampled: str) -> str:
    error = (
        f"probabilities differ from rates by {found.expected:.2g} on average{sampled}, where "
        f"chance makes {found.expected_by_chance:.2g}"
    )
    p = p_text(found.spiegelhalter.p_value)
    if word == "good":
        return f"Classes occur as often as predicted: {error} (Spiegelhalter's p {p})."
    if found.spiegelhalter.z > 0:
        return (
            f"The model is too sure of itself: {error} (Spiegelhalter's p {p}). Wrap it in a "
            "CalibratedClassifier, or drop columns that repeat each other."
        )
    return (
        f"The model is less sure than it might be: {error} (Spiegelhalter's p {p}). Wrap it in a "
        "CalibratedClassifier, or weaken the prior."
    )


def check(model: Any, X: Any = None, y: Any = None, sample_weight: Any = None) -> Checks:
    """What looks wrong with the fit, in words: a verdict on each of seven subjects.

    convergence, separation (coefficients that run to infinity), collinearity (condition indices
    √(λ_max/λ_j) of the columns about their means), influence (Cook's distances δᵀHδ/(ps) of
    rows), residuals (averaged over rows of like predictions), calibration (Spiegelhalter's
    test), and trust (how near the posterior found is to the exact one). A verdict is "good",
    "look", "bad" or "not checked"; its sentence says what was found, where, and what to do.

    Without arguments the rows of the fit are looked at, where the model keeps them. Rows that
    it has not seen say more of residuals and calibration: pass X and y, or the rows of `scan`;
    their offsets count as zero. Where a prior holds coefficients, or there are fewer than ten
    rows for each of them, those of the fit would mislead, and only others are judged by.
    Influence is always that of the rows of the fit. Of a
    source of more than a million rows, residuals and calibration go by a sample.

    >>> from posteriori import LogisticRegression
    >>> X = [[0, 0], [1, 1], [2, 2], [3, 3], [4, 4], [5, 5.1], [6, 6], [7, 7.1]]
    >>> checks = LogisticRegression().fit(X, [0, 0, 1, 0, 1, 0, 1, 1]).check()
    >>> checks["collinearity"].word, checks["collinearity"].values["dependencies"][0].columns
    ('bad', ('x0', 'x1'))
    >>> checks["convergence"].sentence
    'The iteration converged.'
    """
    _check_fitted(model)
    if X is None and not (y is None and sample_weight is None):
        raise ParameterError("y or weights were given without X.", "Pass X too.")
    with one_blas_thread():
        seen = rows_of_fit(model) if X is None else rows_given(model, X, y, sample_weight)
        return _checks(model, seen)


def _check_fitted(model: Any) -> None:
    check_is_fitted(model)
    if is_classifier(model) and not hasattr(model, "classes_"):
        raise NotFittedError(
            f"This {type(model).__name__} instance is not fitted yet. Call fit first."
        )


def _checks(model: Any, seen: Seen) -> Checks:
    return Checks(
        type(model).__name__,
        (
            convergence(model),
            separation(model),
            collinearity(model, seen),
            influence(model),
            residuals(model, seen),
            calibration(model, seen),
            trust(model),
        ),
    )
