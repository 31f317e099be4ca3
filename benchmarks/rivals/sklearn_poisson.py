"""scikit-learn's PoissonRegressor, in both its solvers."""

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.contender import Solver
from benchmarks.rivals import tolerances
from benchmarks.rivals.per_row import per_row

NEW = partial(per_row, "sklearn.linear_model.PoissonRegressor", max_iter=10_000)


def solvers(*, form: Callable[[Any], Any]) -> tuple[Solver, ...]:
    return (
        Solver(
            "newton-cholesky", partial(NEW, solver="newton-cholesky"), tolerances.newton(), form
        ),
        Solver("lbfgs", partial(NEW, solver="lbfgs"), tolerances.first_order(), form),
    )
