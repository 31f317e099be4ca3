"""What is measured where there is an optimum to reach: `run(scale)` gives one row.

Ours runs at its default settings, each rival at the loosest one that reaches the optimum. The
row shows how far each side is from it; ours meets no target if it is not there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.accuracy import ENOUGH, accurate_rivals, our_candidate
from benchmarks.contender import Contender, Solver
from benchmarks.data import formed, make, size_in_bytes
from benchmarks.data.forms import as_made, with_constant
from benchmarks.measures import Scale
from benchmarks.memory import peak_in_fresh_process
from benchmarks.problem import Problem
from benchmarks.result import Result, Target, duration, result


@dataclass(frozen=True)
class OnProblem:
    """Our one variant on one problem."""

    ours: Contender
    problem: Problem
    target: Target

    what = ""

    @property
    def name(self) -> str:
        return f"{self.what} {self.ours.name}"

    @property
    def data(self) -> str:
        return self.problem.data

    @property
    def new(self) -> Callable[[], Any]:
        (new,) = self.ours.variants.values()
        return new

    def row(
        self, ours: str, rival: str, value: float | None, *, valid: bool = True, note: str = ""
    ) -> Result:
        return result(self.name, self.data, ours, rival, value, self.target, valid=valid, note=note)


@dataclass(frozen=True)
class AgainstSolvers(OnProblem):
    """Against the best of some solvers; `against` is part of the name."""

    solvers: tuple[Solver, ...]
    against: str = ""

    @property
    def name(self) -> str:
        return f"{super().name} {self.against}".strip()


class EqualFit(AgainstSolvers):
    """Time to fit, at equal accuracy."""

    what = "fit"

    def run(self, scale: Scale) -> Result:
        ours = our_candidate(self.ours, self.problem, scale.shrink)
        rivals = accurate_rivals(self.solvers, self.problem, scale.shrink)
        off = {e.label: e.suboptimality for e in (ours, *rivals.candidates)}
        if not rivals.candidates:
            return self.row(_off(ours.seconds, ours.suboptimality), "none", None, note=rivals.note)
        times = scale.best_times(
            {e.label: e.fit_task(self.data, scale.shrink) for e in (ours, *rivals.candidates)}
        )
        us = ours.label
        them = min((e.label for e in rivals.candidates), key=times.__getitem__)
        return self.row(
            _off(times[us], off[us]),
            f"{_off(times[them], off[them])} ({them})",
            times[them] / times[us],
            valid=ours.accurate,
            note=rivals.note,
        )


class EqualMemory(AgainstSolvers):
    """Memory beyond the data during a fit, as a multiple of the data; the fastest rival's too."""

    what = "memory of fit / data,"

    def run(self, scale: Scale) -> Result:
        ours = self.share(self.new, as_made, scale.shrink)
        if ours is None:
            return self.row("–", "–", None)
        rivals = accurate_rivals(self.solvers, self.problem, scale.shrink).candidates
        cells = [
            f"{self.share(rival.new, rival.form, scale.shrink):.2f} ({rival.label})"
            for rival in rivals[:1]
        ]
        return self.row(f"{ours:.2f}", "".join(cells), ours)

    def share(
        self, new: Callable[[], Any], form: Callable[[Any], Any], shrink: int
    ) -> float | None:
        """The peak of a fit over the size of its X, which is in the form the fit wants."""
        peak = peak_in_fresh_process(new, self.data, shrink, form)
        return None if peak is None else peak / size_in_bytes(formed(self.data, shrink, form)[0])


class WithErrors(OnProblem):
    """Time to fit and to give the covariance of the coefficients, over the time to fit."""

    what = "fit with standard errors / fit alone,"

    def run(self, scale: Scale) -> Result:
        X, y = make(self.data, scale.shrink)
        times = scale.best_times(
            {
                "alone": lambda: self.new().fit(X, y),
                "with errors": lambda: self.new().fit(X, y).coef_covariance_,
            }
        )
        return self.row(
            duration(times["with errors"]),
            f"{duration(times['alone'])} (fit alone)",
            times["with errors"] / times["alone"],
        )


@dataclass(frozen=True)
class WithSummary(OnProblem):
    """Time to fit and to write the summary; the lower objective of the two is the optimum."""

    rival: Contender

    what = "fit with summary"

    def run(self, scale: Scale) -> Result:
        ((variant, rival_new),) = self.rival.variants.items()
        tasks = {
            "ours": _summary_task(self.new, formed(self.data, scale.shrink, as_made)),
            "rival": _summary_task(rival_new, formed(self.data, scale.shrink, with_constant)),
        }
        values = {
            name: self.problem.objective(task(), scale.shrink) for name, task in tasks.items()
        }
        off = {name: value / min(values.values()) - 1.0 for name, value in values.items()}
        times = scale.best_times(tasks)
        return self.row(
            _off(times["ours"], off["ours"]),
            f"{_off(times['rival'], off['rival'])} ({self.rival.label(variant)})",
            times["rival"] / times["ours"],
            valid=off["ours"] <= ENOUGH,
        )


def _summary_task(new: Callable[[], Any], data: tuple[Any, Any]) -> Callable[[], Any]:
    """Fit, write the summary, give back the model."""

    def task() -> Any:
        model = new().fit(*data)
        str(model.summary())
        return model

    return task


def _off(seconds: float, suboptimality: float) -> str:
    """A time, and how far from the optimum it led."""
    return f"{duration(seconds)}, {max(suboptimality, 0.0):.0e} off"
