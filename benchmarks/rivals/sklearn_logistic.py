"""scikit-learn's LogisticRegression with C = 1, in all its solvers."""

from collections.abc import Callable
from functools import partial
from typing import Any

from sklearn.linear_model import LogisticRegression

from benchmarks.contender import Contender, Solver
from benchmarks.data.forms import as_made
from benchmarks.rivals import tolerances

RIVAL = Contender("LogisticRegression", {"": LogisticRegression})

# liblinear penalises the intercept too; so scaled, the penalty does not matter.
LIBLINEAR = partial(LogisticRegression, solver="liblinear", intercept_scaling=100.0)
SAGA = partial(LogisticRegression, solver="saga", tol=1e-14, random_state=0)


def solvers(*, form: Callable[[Any], Any] = as_made, leave_out: str = "") -> tuple[Solver, ...]:
    """Those not named in `leave_out`, the likely winners first."""
    every = {
        "newton-cholesky": (_by("newton-cholesky"), tolerances.newton()),
        "lbfgs": (_by("lbfgs"), tolerances.first_order()),
        "newton-cg": (_by("newton-cg"), tolerances.first_order()),
        "liblinear": (partial(LIBLINEAR, max_iter=1_000), tolerances.newton()),
        "saga": (SAGA, tolerances.epochs()),
    }
    return tuple(
        Solver(name, new, settings, form)
        for name, (new, settings) in every.items()
        if name not in leave_out.split()
    )


def _by(solver: str) -> Callable[..., LogisticRegression]:
    return partial(LogisticRegression, solver=solver, max_iter=10_000)
