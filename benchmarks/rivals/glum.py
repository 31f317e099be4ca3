"""glum's GeneralizedLinearRegressor by iteratively reweighted least squares.

It gets a dense matrix by column: in small trials its weighted products were about a tenth faster so
on narrow matrices, and no different on wide ones. Data frames it takes as they are, the first level
of each factor left out.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.contender import Solver
from benchmarks.data.forms import by_column
from benchmarks.rivals import tolerances
from benchmarks.rivals.per_row import per_row


def solvers(family: str, *, form: Callable[[Any], Any] = by_column) -> tuple[Solver, ...]:
    new = partial(
        per_row,
        "glum.GeneralizedLinearRegressor",
        family=family,
        solver="irls-ls",
        max_iter=1_000,
        drop_first=True,
    )
    return (Solver("glum", new, tolerances.newton("gradient_tol"), form),)
