"""Whether classes can be separated, and by which columns: linear programs over few of the rows.

Classes are separated when there is a direction θ along which no margin is negative and some are
positive: the likelihood grows along it without end and has no maximum (Albert and Anderson 1984).
The separation is complete when all margins can be positive, quasi-complete when some stay at zero.
Decided by linear programs (Konis 2007) with cutting planes: a program has the constraints that
the directions before it violated; if its optimum is zero, so is that with the constraints of all
rows.

Conventions: those of `statistics.separation_margins`. Gaps and overlaps of less than 1e-9 of the
standard deviation of a column cannot be distinguished from touching.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from posteriori.statistics.separation_margins import (
    CLEAR,
    TOUCHING,
    Constraints,
    GatherMargins,
    MarginGradient,
    Mask,
    Pairs,
)
from posteriori.typing import Array

INTERCEPT = "intercept"
"""The name of the intercept among the columns."""

Kind = Literal["none", "quasi", "complete", "undecided"]

_TOLERANCE = 1e-10
"""By how much HiGHS may miss a constraint; the smallest that it takes."""

_NOTHING = 1e-9
"""A sum of margins that is no more than rounding, the largest coefficient of the sum being one."""

_MISSED = 1e-6
"""By how much a ray of few columns may miss the margins zero and one."""

_SMALLEST_MARGIN = 1e3
"""Weight of the smallest margin beside their sum, so that all pairs are separated at once, where
that is possible."""

_SOLVED, _INFEASIBLE = 0, 2
"""Statuses of SciPy for a linear program that was decided."""

_TRIED = 20
"""With more columns than this in a ray, none is left out."""

_LARGE = 150
"""Unknowns beyond which the interior point method is the faster one."""

_ROUNDS = 100
"""The largest number of programs; a dozen is usual."""

_WORK, _NAMING_WORK = 3e7, 4e5
"""Nonzero entries times iterations, over all programs, at which the search is given up, and at
which no more columns are left out of a ray: about ten seconds, and less than half of one."""

_SIMPLEX_WORK = 0.03
"""An iteration of the simplex method beside one of the interior point method."""


@dataclass(frozen=True, eq=False)
class Separation:
    """Whether a linear function separates the classes, and which coefficients diverge with it.

    kind: "none", "quasi" or "complete"; "undecided" where that would take too long. columns: names
    of design columns, and "intercept", that suffice to separate all that can be separated; where
    there are many ways, one with few columns. directions: +1 or -1 for each of them (columns,),
    the sign of its coefficient on the way to infinity; for more than two classes (columns, K),
    zero for the classes that stay. ray (c, q): the direction itself in the units of the columns,
    the intercept first, along which the margin of each row is zero, or one and more.

    >>> Separation("quasi", ("age",), np.array([1.0]), np.array([[0.0, 2.0]]))
    Separation(kind='quasi', columns=('age',))
    """

    kind: Kind
    columns: tuple[str, ...]
    directions: Array = field(repr=False)
    ray: Array = field(repr=False)

    @property
    def is_found(self) -> bool:
        """Whether some coefficients diverge."""
        return self.kind in ("quasi", "complete")


def unseparated(kind: Kind, shape: tuple[int, int]) -> Separation:
    """The result for classes that overlap, or that were not decided; (c, q) is the shape of θ."""
    c = shape[0]
    return Separation(kind, (), np.empty((0,) if c == 1 else (0, c)), np.zeros(shape))


def find_separation(
    pairs: Pairs,
    map_sum: Callable[[Any], Any],
    *,
    guess: Array | None = None,
    fixed: Mask | None = None,
) -> Separation:
    """Decide whether the classes of the rows can be separated, and name the columns that do it.

    `map_sum` sums kernels over the rows. `guess` (c, q), in the units of the columns, is tried
    before any program. `fixed` (q,) are parameters, the intercept first, that must stay.

    >>> from posteriori.rows.in_memory import read_rows
    >>> from posteriori.statistics.separation_margins import pair_sums
    >>> rows = read_rows([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1])
    >>> find_separation(*pair_sums(rows, 2))
    Separation(kind='complete', columns=('intercept', 'x0'))
    """
    search = _Search(pairs, map_sum, fixed)
    ray = None if guess is None else search.complete(guess)
    kind: Kind = "complete"
    if ray is None:
        ray, kind = search.ray()
    if not ray.any():
        return unseparated(kind, search.shape)
    return search.named(kind, search.few_columns(ray))


def are_separable(pairs: Pairs, map_sum: Callable[[Any], Any]) -> bool | None:
    """Whether a linear function puts every row on the right side; None where it is undecided."""
    _, kind = _Search(pairs, map_sum, None).ray()
    return None if kind == "undecided" else kind == "complete"


class _Search:
    """The linear programs for the pairs of some rows."""

    def __init__(self, pairs: Pairs, map_sum: Callable[[Any], Any], fixed: Mask | None) -> None:
        self.pairs, self.map_sum = pairs, map_sum
        K, q = pairs.n_classes, len(pairs.standard.scale) + int(pairs.standard.intercept)
        self.shape = (1 if K == 2 else K), q
        self.free = np.ones(self.shape)
        if fixed is not None:
            self.free[:, fixed] = 0.0
        self.none = np.zeros(self.shape)
        self.constraints = self._none()
        self.most = max(200, min(2 * self.free.size, 2**24 // q))
        self.work = 0.0

    def _none(self) -> Constraints:
        return Constraints(sparse.csr_array((0, self.free.size)), np.empty(0), np.empty(0))

    def complete(self, guess: Array) -> Array | None:
        """The guess as a ray, if it separates every pair."""
        theta = self.pairs.standard.from_user(guess) * self.free
        size = abs(theta).max(initial=0.0)
        if not 0 < size < np.inf:
            return None
        found = self.map_sum(GatherMargins(self.pairs, theta / size, self.none, CLEAR, 1))
        return theta / size / found.least_clear if found.n_clear == found.n_open else None

    def ray(self) -> tuple[Array, Kind]:
        """A direction along which all pairs that can be separated have margin one and more.

        The largest sum of margins may leave some at zero that could be positive: then these alone
        are summed, until none is left. The ray is zero if nothing is separated.
        """
        found: Kind = "none"
        ray = self.none
        while True:
            gradient = self.map_sum(MarginGradient(self.pairs, ray)) * self.free
            gradient /= abs(gradient).max(initial=0.0) or 1.0
            for _ in range(_ROUNDS):
                theta, smallest, total = self._largest_sum(gradient)
                if total <= _NOTHING:
                    return ray, found
                floor = smallest / 10 if smallest > 10 * CLEAR else -TOUCHING
                margins = self.map_sum(GatherMargins(self.pairs, theta, ray, floor, self.most))
                if self.work > _WORK or not len(margins.violated.slack):
                    break
                self.constraints = self.constraints.joined(margins.violated)
            if len(margins.violated.slack):
                return ray, "undecided" if found == "none" else found
            if not margins.n_clear:
                return ray, found
            ray, found = ray + theta / margins.least_clear, "quasi"
            if margins.n_clear == margins.n_open:
                return ray, "complete"

    def few_columns(self, ray: Array) -> Array:
        """The ray of least Σ|θ| that separates the same pairs, without the columns that are not
        needed; the ray itself where that would take too long."""
        self.work, self.constraints = 0.0, self._none()
        found = self._shortest(ray, self.free)
        if found is None:
            return ray
        used = np.flatnonzero(found.any(axis=0))
        order = np.argsort(abs(found[:, used]).max(axis=0), kind="stable")
        for j in used[order] if len(used) <= _TRIED else ():
            allowed = self.free * found.any(axis=0)
            allowed[:, j] = 0.0
            fewer = self._shortest(ray, allowed)
            found = found if fewer is None else fewer
        return found

    def _shortest(self, ray: Array, allowed: Array) -> Array | None:
        """θ of least Σ|θ|, zero where not allowed, that separates what the ray does."""
        for _ in range(_ROUNDS):
            theta = self._least_size(allowed)
            if theta is None or self.work > _NAMING_WORK:
                return None
            kernel = GatherMargins(self.pairs, theta, ray, -_MISSED, self.most, like_ray=True)
            violated = self.map_sum(kernel).violated
            if not len(violated.slack):
                return theta
            self.constraints = self.constraints.joined(violated)
        return None

    def named(self, kind: Kind, theta: Array) -> Separation:
        """The ray in the units of the columns, with the names of those that take part."""
        standard, names = self.pairs.standard, self.pairs.columns.names
        ray, size = standard.to_user(theta), np.full(self.shape, abs(theta).max())
        if standard.intercept:
            names = (INTERCEPT, *names)
            theta = np.column_stack([ray[:, 0], theta[:, 1:]])
            size[:, 0] += abs(theta[:, 1:]) @ abs(standard.centre / standard.scale)
        signs = np.where(abs(theta) > TOUCHING * size, np.sign(theta), 0.0)
        moved = np.flatnonzero(signs.any(axis=0))
        directions = signs[0, moved] if len(signs) == 1 else signs[:, moved].T
        return Separation(kind, tuple(names[j] for j in moved), directions, ray)

    def _largest_sum(self, gradient: Array) -> tuple[Array, float, float]:
        """θ in [-1, 1] of largest Σ margins = Σ gradient θ, and the smallest margin γ large, too.

        Gives θ, γ, and the sum with 1000 γ, which is zero if nothing is separated.
        """
        matrix = self.constraints.matrix
        ends = np.append(self.free.ravel(), 1.0)
        found = self._solve(
            -np.append(gradient, _SMALLEST_MARGIN),
            sparse.hstack([-matrix, np.ones((matrix.shape[0], 1))], format="csr"),
            np.zeros(matrix.shape[0]),
            np.column_stack([np.append(-ends[:-1], 0.0), ends]),
        )
        if found is None:
            return self.none, 0.0, 0.0
        theta, smallest = found[:-1].reshape(self.shape), float(found[-1])
        return theta, smallest, float(np.sum(gradient * theta) + _SMALLEST_MARGIN * smallest)

    def _least_size(self, allowed: Array) -> Array | None:
        """θ of least Σ|θ| under the constraints, zero where not allowed; None if there is none."""
        matrix, goal, _ = self.constraints
        both = sparse.hstack([-matrix, matrix], format="csr")
        ends = np.where(np.tile(allowed.ravel(), 2) > 0, np.inf, 0.0)
        bounds = np.column_stack([np.zeros(len(ends)), ends])
        found = self._solve(np.ones(len(ends)), both, -goal, bounds)
        if found is None:
            return None
        plus, minus = found.reshape(2, *self.shape)
        return plus - minus

    def _solve(
        self, cost: Array, matrix: sparse.sparray, limit: Array, bounds: Array
    ) -> Array | None:
        """x of least cost with matrix x ≤ limit, within bounds; None if there is none."""
        methods = ("highs-ipm", "highs-ds") if len(cost) > _LARGE else ("highs-ds", "highs-ipm")
        tolerances = ("primal_feasibility_tolerance", "dual_feasibility_tolerance")
        options = dict.fromkeys(tolerances, _TOLERANCE)
        for method in methods:
            found = linprog(cost, matrix, limit, bounds=bounds, method=method, options=options)
            effort = 1.0 if method == "highs-ipm" else _SIMPLEX_WORK
            self.work += effort * found.nit * matrix.nnz
            if found.status in (_SOLVED, _INFEASIBLE):
                return found.x
        return None
