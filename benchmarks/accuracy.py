"""Equal accuracy: each rival at the loosest setting with which it reaches the optimum.

The settings of a solver are tried on the data of the case, from loose to tight, until its
suboptimality is small enough. A solver is given up when one fit takes far longer than the best
solver so far, or when its time is up; a note below the table says so.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter, sleep
from typing import Any

from benchmarks.contender import Contender, Solver
from benchmarks.data import formed
from benchmarks.data.forms import as_made
from benchmarks.problem import Problem
from benchmarks.timing import REST, two_threads

ENOUGH = 1e-8
"""The relative suboptimality of the mean objective that counts as equal accuracy."""

TOO_SLOW = 4.0
"""A solver one of whose fits takes this many times the best solver's is given up."""

CLOSE = 2.0
"""Solvers within this many times the best one are timed again; the others cannot win."""

MOST = 3
"""So many rivals are timed at most."""

BUDGET = 60.0
"""Seconds after which a solver that has not reached the optimum is given up."""

QUICK = 0.5
"""Fits are repeated until they have taken so many seconds together: on busy cores a single short
one can take many times as long."""

REPEATS = 5
"""But not more often than this."""


@dataclass(frozen=True)
class Candidate:
    """A contender at one setting, the seconds of its fit, and its suboptimality."""

    label: str
    new: Callable[[], Any]
    form: Callable[[Any], Any]
    seconds: float
    suboptimality: float

    @property
    def accurate(self) -> bool:
        return self.suboptimality <= ENOUGH

    def fit_task(self, data: str, shrink: int) -> Callable[[], Any]:
        X, y = formed(data, shrink, self.form)
        return lambda: self.new().fit(X, y)


@dataclass(frozen=True)
class Rivals:
    """The rivals that reached the optimum, fastest first, and a note on the others."""

    candidates: tuple[Candidate, ...]
    note: str


@lru_cache(maxsize=8)
def accurate_rivals(solvers: tuple[Solver, ...], problem: Problem, shrink: int) -> Rivals:
    """All solvers at equal accuracy; cached, because several cases need it."""
    candidates: list[Candidate] = []
    notes = []
    for solver in solvers:
        best = min((candidate.seconds for candidate in candidates), default=float("inf"))
        outcome = _first_accurate(solver, problem, shrink, best)
        if isinstance(outcome, Candidate):
            candidates.append(outcome)
        else:
            notes.append(f"{solver.name}: {outcome}")
    return Rivals(_closest(candidates), "; ".join(notes))


def our_candidate(ours: Contender, problem: Problem, shrink: int) -> Candidate:
    """Ours, at its default settings, whatever it reaches."""
    (new,) = ours.variants.values()
    return attempt(ours.name, new, as_made, problem, shrink)


def attempt(
    label: str,
    new: Callable[[], Any],
    form: Callable[[Any], Any],
    problem: Problem,
    shrink: int,
) -> Candidate:
    """Fit, more than once if that is quick; see how long it takes at best and how far it comes."""
    X, y = formed(problem.data, shrink, form)
    new()  # imports
    seconds: list[float] = []
    while sum(seconds) < QUICK and len(seconds) < REPEATS:
        model, took = timed_fit(new, X, y)
        seconds.append(took)
    return Candidate(label, new, form, min(seconds), problem.suboptimality(model, shrink))


def _first_accurate(solver: Solver, problem: Problem, shrink: int, best: float) -> Candidate | str:
    """The first setting that reaches the optimum, or why there is none."""
    end = perf_counter() + BUDGET
    for setting in solver.settings:
        try:
            candidate = attempt(
                solver.label(setting), solver.at(setting), solver.form, problem, shrink
            )
        except ImportError as missing:
            return str(missing)
        if candidate.seconds > TOO_SLOW * best:
            return f"{candidate.seconds / best:.2g} times the best rival's time"
        if candidate.accurate:
            return candidate
        if perf_counter() > end:
            return f"{candidate.suboptimality:.0e} off after {BUDGET:g} s"
    return f"{candidate.suboptimality:.0e} off at its tightest"


def _closest(candidates: list[Candidate]) -> tuple[Candidate, ...]:
    ranked = sorted(candidates, key=lambda candidate: candidate.seconds)
    return tuple(e for e in ranked[:MOST] if e.seconds <= CLOSE * ranked[0].seconds)


def timed_fit(new: Callable[[], Any], X: Any, y: Any) -> tuple[Any, float]:
    """The fitted model, and the seconds that took."""
    # Entered for each fit: a rival may bring thread pools that are loaded only now.
    with two_threads(), warnings.catch_warnings(action="ignore"):
        sleep(REST)
        start = perf_counter()
        model = new().fit(X, y)
        return model, perf_counter() - start
