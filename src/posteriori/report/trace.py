"""How a fit got to its optimum, as a picture by matplotlib (extra `plots`)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from posteriori.errors import ParameterError
from posteriori.solve.objective import Iteration, Solution
from posteriori.typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Clock = Literal["seconds", "passes"]

_OBJECTIVE, _DECREMENT = "#0072B2", "#D55E00"

_SHORTENED = 0.9
"""A step of less than this has its length beside it."""

_MARKER = 4.5


class Fitted(Protocol):
    """A model that keeps the solution of its fit."""

    solution_: Solution[Any, Iteration]


@dataclass(frozen=True, eq=False)
class TraceValues:
    """A trace as columns, one entry a step, seen from its start.

    `above` is how far the objective was above its minimum: NaN on a subsample, whose minimum is
    another, and where no digit is left. `whole` says which steps looked at all rows.
    """

    seconds: Array
    passes: Array
    above: Array
    decrement: Array
    step: Array
    whole: NDArray[np.bool_]

    @classmethod
    def of(cls, solution: Solution[Any, Iteration]) -> "TraceValues":
        """Those of a solution."""
        notes = solution.trace
        if not notes or not isinstance(notes[0], Iteration):
            raise ParameterError(
                "This solution has no trace of steps.",
                "Pass a model fitted by a solver, or its solution_.",
            )
        looked = [note.row_fraction * note.n_evaluations for note in notes]
        whole = np.array([note.row_fraction >= 1 for note in notes])
        above = np.array([note.objective for note in notes]) - solution.value
        return cls(
            np.array([note.seconds for note in notes]),
            np.concatenate([[0.0], np.cumsum(looked)[:-1]]),
            np.where(whole & (above > 0), above, np.nan),
            np.array([note.decrement for note in notes]),
            np.array([note.step for note in notes]),
            whole,
        )


def plot_trace(
    fitted: Fitted | Solution[Any, Iteration],
    *,
    against: Clock = "seconds",
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw how the objective and the distance from the optimum fell.

    `against` is "seconds", or "passes" over the rows. Both curves share a logarithmic axis: the
    objective above its minimum, in units of ln p, and the Newton decrement, about how many
    standard errors the parameters were from the optimum. Steps that looked at a part of the rows
    only are hollow and have no objective, because that of a part has another minimum. A step that
    was shortened has its length beside it.

    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from posteriori import LogisticRegression
    >>> model = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])
    >>> ax = plot_trace(model, against="passes")
    >>> ax.get_yscale(), ax.get_xlabel(), ax.get_ylabel()
    ('log', 'passes over the rows', 'distance from the optimum')
    """
    if against not in ("seconds", "passes"):
        raise ParameterError(
            f"against={against!r} is not understood.", "Use 'seconds' or 'passes'."
        )
    values = TraceValues.of(_solution_of(fitted))
    axes = _new_axes() if ax is None else ax
    when = values.seconds if against == "seconds" else values.passes
    _draw_curves(axes, when, values)
    _mark_lengths(axes, when, values)
    axes.set_yscale("log")
    axes.set_ylabel("distance from the optimum")
    axes.set_xlabel("seconds" if against == "seconds" else "passes over the rows")
    axes.legend()
    return axes


def _solution_of(fitted: Fitted | Solution[Any, Iteration]) -> Solution[Any, Iteration]:
    if isinstance(fitted, Solution):
        return fitted
    try:
        return fitted.solution_
    except AttributeError:
        raise ParameterError(
            f"This {type(fitted).__name__} has no solution_: it is not fitted yet, or not fitted "
            "by a solver that keeps a trace.",
            "Pass a fitted model such as LogisticRegression, or its solution_.",
        ) from None


def _draw_curves(axes: "Axes", when: Array, values: TraceValues) -> None:
    axes.plot(
        when,
        values.above,
        color=_OBJECTIVE,
        marker="o",
        markersize=_MARKER,
        label="objective above its minimum",
    )
    positive = np.where(values.decrement > 0, values.decrement, np.nan)
    axes.plot(
        when,
        positive,
        color=_DECREMENT,
        marker="s",
        markersize=_MARKER,
        label="standard errors from the optimum",
    )
    part = ~values.whole
    if part.any():
        axes.plot(
            when[part],
            positive[part],
            color=_DECREMENT,
            marker="s",
            markersize=_MARKER,
            markerfacecolor="white",
            linestyle="none",
            label="on part of the rows",
        )


def _mark_lengths(axes: "Axes", when: Array, values: TraceValues) -> None:
    for x, y, step in zip(when, values.decrement, values.step, strict=True):
        if step < _SHORTENED and y > 0:
            axes.annotate(
                f"{step:.2g}", (x, y), xytext=(4, 6), textcoords="offset points", fontsize=8
            )


def _new_axes() -> "Axes":
    from matplotlib import pyplot as plt

    _, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    return axes
