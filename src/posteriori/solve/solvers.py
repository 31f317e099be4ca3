"""The solvers by name, and which of them to take.

All reach the same optimum; they differ in what they ask of the rows on the way there.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from posteriori.errors import ParameterError
from posteriori.solve.first_order import coordinate, gradient
from posteriori.solve.local import Objective
from posteriori.solve.newton import newton
from posteriori.solve.sequential import Splittable, sequential
from posteriori.solve.solution import Iteration, Solution
from posteriori.typing import Array

_CHEAP = 3.0
"""Passes over the rows that second derivatives may cost without a second thought."""


class Solver(Protocol):
    """A descent from `start` to the minimum of the last of `levels`.

    The levels before it are the same function on ever more of the rows. `max_iter` bounds the
    steps on the last level; each solver has a default of its own. `suspicion` is asked, once, if
    parameters may run to infinity; if it says yes, the descent ends with `Status.SEPARATED`.
    """

    def __call__(
        self,
        levels: Sequence[Splittable],
        start: Array,
        *,
        max_iter: int = ...,
        suspicion: Callable[[], bool] | None = ...,
    ) -> Solution[Array, Iteration]: ...


SOLVERS: dict[str, Solver] = {
    "newton": newton,
    "gradient": gradient,
    "coordinate": coordinate,
    "sequential": sequential,
}


class Choice(NamedTuple):
    """The name of a solver, and why it was taken."""

    name: str
    reason: str


def choose(objective: Objective, n_parameters: int, solver: str = "auto") -> Choice:
    """The solver asked for or, with "auto", the one that suits the shape of the problem.

    >>> class Table:
    ...     n_rows, share, tolerance = 1000, 1.0, 1e-4
    ...     price = 1.5
    >>> choose(Table(), 11)
    Choice(name='newton', reason='the second derivatives in 11 parameters cost no more than 1.5
    passes over the rows, so they are new wherever that saves steps')
    """
    if solver in SOLVERS:
        return Choice(solver, "asked for")
    if solver != "auto":
        raise ParameterError(
            f"solver={solver!r} is not known.",
            f"Use 'auto', {', '.join(map(repr, SOLVERS))}.",
        )
    parameters, price = f"{n_parameters:,} parameters", objective.price
    if price == np.inf:
        return Choice(
            "gradient",
            f"the second derivatives in {parameters} are too many to keep, and gradients that "
            "remember how they changed do without",
        )
    if price <= _CHEAP:
        reason = (
            f"the second derivatives in {parameters} cost no more than {price:.2g} passes over "
            "the rows, so they are new wherever that saves steps"
        )
    else:
        reason = (
            f"the second derivatives in {parameters} cost as much as {price:.2g} passes over the "
            "rows, so they are computed on few rows or seldom, and gradients correct them"
        )
    return Choice("newton", reason)


def solve(
    name: str,
    levels: Sequence[Splittable],
    start: Array,
    *,
    max_iter: int | None = None,
    suspicion: Callable[[], bool] | None = None,
    hessian: Array | None = None,
) -> Solution[Array, Iteration]:
    """The minimum of the last of `levels` by the solver of that name.

    `max_iter=None` leaves the number of steps to the solver: gradients need more than Hessians.
    `hessian` is that at the start, if it is known; it serves Newton's method alone.
    """
    if name == "newton" and hessian is not None:
        return newton(levels, start, max_iter=max_iter or 100, suspicion=suspicion, hessian=hessian)
    if max_iter is None:
        return SOLVERS[name](levels, start, suspicion=suspicion)
    return SOLVERS[name](levels, start, max_iter=max_iter, suspicion=suspicion)
