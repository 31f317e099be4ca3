"""Verdicts on a fit itself: whether it ended, and what its coefficients hang on."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from sklearn.frozen import FrozenEstimator

from posteriori.errors import MissingValueError, PosterioriError
from posteriori.models.held import is_held
from posteriori.models.seen import Seen, clause
from posteriori.posterior.checks import Check, Word
from posteriori.posterior.collinearity import (
    LARGE,
    VERY_LARGE,
    Collinearity,
    Dependency,
    collinearity_of,
)
from posteriori.posterior.influence import influence_of
from posteriori.posterior.objective import WIDE
from posteriori.posterior.page import listed
from posteriori.solve.separation import Separation
from posteriori.solve.solution import Status
from posteriori.statistics.leverage import Influence

_DISTANT, _FAR = 0.5, 1.0
"""Cook's distances that are to be looked at, and that are too large."""

_MOST = 3
"""Dependencies that a sentence names."""

_TRUST: dict[str, Word] = {"good": "good", "usable": "look", "poor": "bad", "useless": "bad"}

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
    """Whether coefficients run to infinity."""
    if not hasattr(model, "_inference"):
        return not_checked("separation", _why_no_likelihood(model))
    if is_held(model):
        told = "Not needed: the prior keeps all coefficients finite, whatever the classes."
        return Check("separation", "good", told, {"kind": None, "columns": ()})
    found: Separation = model.separation_
    values = {"kind": found.kind, "columns": found.columns}
    if found.kind == "none":
        return Check("separation", "good", "No coefficient runs to infinity.", values)
    runs = "coefficient runs" if len(found.columns) == 1 else "coefficients run"
    told = (
        f"The {runs} to infinity along {listed(found.columns)}: the likelihood has no maximum "
        f"({'all' if found.kind == 'complete' else 'some'} rows are told apart without error). Set "
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
    return Check("collinearity", word, _told(found, near, _harm(model)), values)


def _harm(model: Any) -> str:
    """What columns that hang together do to a model, and what to do about it."""
    if not hasattr(model, "_inference"):
        return "What each of them does cannot be told; drop or merge some of these columns."
    if is_held(model):
        return "The prior deals their effect out among them: do not read them one by one."
    return (
        "Their coefficients can hardly be told apart, though predictions suffer little. Drop or "
        "merge some of these columns, or set a prior."
    )


def _told(found: Collinearity, near: Sequence[Dependency], harm: str) -> str:
    told = ""
    if near:
        more = f", and {len(near) - _MOST} more" if len(near) > _MOST else ""
        told = (
            f"Nearly a combination of each other are {'; '.join(map(_named, near[:_MOST]))}{more}. "
            f"{harm}"
        )
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
    return Check("influence", word, _influence_told(found, word), values)


def _influence_told(found: Influence, word: Word) -> str:
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
    if not hasattr(type(model), "trust_"):
        return not_checked("trust", "there is no posterior over coefficients to be trusted")
    found = model.trust_
    values = {name: getattr(found, name) for name in ("word", "k_hat", "shift", "width")}
    return Check("trust", _TRUST[found.word], found.sentence, values)
