"""Linear programs that say whether, and along which columns, the coefficients run away.

Classes are separated when there is a direction θ along which no margin is negative and some are
positive: the likelihood grows along it for ever and has no maximum (Albert and Anderson 1984). The
separation is complete when all margins can be positive, quasi-complete when some stay at zero.
Decided by linear programs (Konis 2007) that see few of the rows: those whose constraints the
directions found before did not meet; for many unknowns by `solve.certificates`, if that will do.

Conventions: p parameters, the intercept first, c activations a row, margins and constraints as in
`statistics.pairs` and `statistics.margins`. Gaps and overlaps of less than 1e-9 of the usual size
of a column cannot be told from touching, unless they turn out to be gaps when looked at alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np
from scipy import sparse

from posteriori.design.columns import Columns
from posteriori.errors import ScaleError
from posteriori.rows.rows import Rows
from posteriori.solve.certificates import decide, interpolating
from posteriori.solve.programs import largest_sum, tightest
from posteriori.solve.sparse_ray import (
    MANY,
    MISSED,
    PRUNED,
    ROUNDS,
    few_enough,
    sparse_ray,
)
from posteriori.statistics.coordinates import (
    TOUCHING,
    Coordinates,
    GatherSample,
    Mask,
    Pairs,
    Sample,
    Support,
    by_label,
)
from posteriori.statistics.separation_margins import (
    CLEAR,
    Constraints,
    GatherBalance,
    GatherMargins,
    GatherReach,
    MarginGradient,
    Margins,
    PairsOf,
    Ray,
    some_classes,
)
from posteriori.typing import Array

INTERCEPT = "intercept"
"""What the intercept is called among the columns."""

Kind = Literal["none", "quasi", "complete"]

_NOTHING = 1e-9
"""A sum of margins that is no more than rounding, the largest coefficient of the sum being one."""

_SHOWN = 2**21
"""Numbers in a sample that shows what is usual in a column, and serves for nothing else."""

_FEW = (2, 8, 32)
"""Numbers of classes that are looked at before all of them are."""


@dataclass(frozen=True, eq=False)
class Separation:
    """Whether a linear function separates the classes, and which coefficients run away with it.

    kind: "none", "quasi" or "complete". columns: names of design columns, and "intercept", that
    suffice to separate all that can be separated; where there are many ways, one with few columns.
    directions: +1 or -1 for each of them (columns,), the sign of its coefficient on the way to
    infinity; for more than two classes (columns, K), zero for the classes that stay. ray (p, c):
    the direction itself in the units of the columns, along which the margin of each row is zero,
    or one and more. standard: the same in the coordinates in which it was found; None where kind
    is "none".

    >>> Separation("quasi", ("age",), np.array([1.0]), np.array([[0.0], [2.0]]), None)
    Separation(kind='quasi', columns=('age',))
    """

    kind: Kind
    columns: tuple[str, ...]
    directions: Array = field(repr=False)
    ray: Array = field(repr=False)
    standard: Ray | None = field(repr=False)


def find_separation(
    rows: Rows,
    n_classes: int,
    *,
    support: Support = by_label,
    fit_intercept: bool = True,
    guess: Array | None = None,
    held: Mask | None = None,
) -> Separation:
    """Decide by linear programs whether the classes of the rows can be separated.

    `support` says which classes a row may belong to: `by_label`, or another function of a block.
    `guess` (p, c), in the units of the columns, is looked at first. `held` (p,) are parameters,
    the intercept first, that must stay.
    """
    asked, pairs = _Asked(rows, fit_intercept, held), PairsOf(support, n_classes)
    ray = None if guess is None else _complete(asked, pairs, guess)
    kind: Kind = "complete"
    if ray is None:
        ray, kind = _levels(asked, pairs)
    if ray is None:
        p, c = len(Columns(rows.schema).names) + fit_intercept, 1 if n_classes == 2 else n_classes
        none = np.empty((0,) if n_classes == 2 else (0, c))
        return Separation(kind, (), none, np.zeros((p, c)), None)
    return _named(kind, sparse_ray(rows, PairsOf(support, n_classes, ray), held))


def are_separable(rows: Rows, n_classes: int, suspects: Sequence[int] = ()) -> bool:
    """Whether a linear function puts every row on the right side: complete separation.

    `suspects` are codes of classes, those most likely to overlap first. If a few classes cannot be
    separated from each other, neither can all, and that takes a much smaller program to see.
    """
    for few in _FEW:
        if 2 * few <= n_classes and few <= len(suspects):
            some = some_classes(rows, suspects[:few])
            if _levels(_Asked(some), PairsOf(by_label, few))[1] != "complete":
                return False
    return _levels(_Asked(rows), PairsOf(by_label, n_classes))[1] == "complete"


def reach(
    rows: Rows, separation: Separation, theta: Array, *, margin: float, support: Support = by_label
) -> float:
    """The smallest t ≥ 0 for which θ + t ray has the margin on every row that the ray separates.

    θ (p, c) is in the units of the columns. At a margin of 40 the probability that is left for
    other classes is below the precision of doubles.
    """
    if separation.standard is None:
        return 0.0
    c = theta.shape[1]
    pairs = PairsOf(support, 2 if c == 1 else c, separation.standard)
    return rows.map_sum(GatherReach(separation.standard.coordinates, pairs, theta, margin)).value


@dataclass(frozen=True, eq=False)
class _Asked:
    """The rows, whether there is an intercept, and the parameters that must stay (p,), if any."""

    rows: Rows
    intercept: bool = True
    held: Mask | None = None

    @property
    def columns(self) -> Columns:
        return Columns(self.rows.schema)

    @property
    def p(self) -> int:
        return len(self.columns.names) + self.intercept

    def sample(self, pairs: PairsOf) -> Sample:
        """Some of the rows with an open pair."""
        most = few_enough(4 * self.p, self.p)
        if most < 4 * self.p < 4 * self.rows.n_rows:  # too few for programs to start from
            most = max(200, _SHOWN // self.p)
        wanted = None if pairs.ray is None else pairs.has_open
        return self.rows.map_sum(GatherSample(self.columns, pairs.support, most, wanted))

    def coordinates(self, sample: Sample) -> Coordinates:
        """Columns about their medians, if the intercept can follow; else about zero."""
        follows = self.intercept and (self.held is None or not self.held[0])
        return replace(Coordinates.of(sample, self.columns, follows), intercept=self.intercept)


def _complete(asked: _Asked, pairs: PairsOf, guess: Array) -> Ray | None:
    """The guess as a ray, if it separates every pair."""
    coordinates = asked.coordinates(asked.sample(pairs))
    theta = coordinates.standard(guess)
    if asked.held is not None:
        theta[asked.held] = 0.0
    size = abs(theta).max(initial=0.0)
    if not 0 < size < np.inf:
        return None
    found = _all_clear(asked.rows, pairs, Ray(coordinates, theta / size))
    return None if found is None else _joined(asked.rows, pairs, found)


def _levels(asked: _Asked, pairs: PairsOf) -> tuple[Ray | None, Kind]:
    """A ray for all pairs that can be separated, found on those that it leaves open so far.

    The largest sum of margins may leave some at zero that could be positive: then these are looked
    at again, with coordinates of their own.
    """
    while True:
        found = _separate(asked, pairs)
        ray = None if found is None else _joined(asked.rows, pairs, found)
        if found is None or ray is None:
            return pairs.ray, "none" if pairs.ray is None else "quasi"
        if found.margins.n_clear == found.margins.n_open:
            return ray, "complete"
        pairs = PairsOf(pairs.support, pairs.n_classes, ray)


class _Found(NamedTuple):
    """A direction for the open pairs, and what the rows say of it."""

    ray: Ray
    margins: Margins


def _all_clear(rows: Rows, pairs: PairsOf, ray: Ray) -> _Found | None:
    """A direction of size one, if it separates every open pair."""
    margins = rows.map_sum(GatherMargins(ray.coordinates, pairs, ray.theta, CLEAR, 1))
    return _Found(ray, margins) if margins.n_clear == margins.n_open else None


def _joined(rows: Rows, pairs: PairsOf, found: _Found) -> Ray | None:
    """One ray for what the ray of `pairs` and the one found separate; None if there is none.

    The second counts for so little that it spoils nothing that the first has separated.
    """
    first, second = pairs.ray, found.ray
    if first is None:
        return Ray(second.coordinates, second.theta / found.margins.least_clear)
    bounds = rows.map_sum(GatherBalance(second.coordinates, pairs, second.theta, 0.0))
    if bounds.low > (1 - MISSED) * bounds.high:
        return None
    rho = min(max(2 * bounds.low, 1.0), (bounds.low + bounds.high) / 2)
    balance = rows.map_sum(GatherBalance(second.coordinates, pairs, second.theta, rho))
    if not balance.least > 4 * balance.loose:
        return None
    theta = first.coordinates.from_other(second.coordinates, second.theta)
    return Ray(first.coordinates, (rho * first.theta + theta) / balance.least)


def _separate(asked: _Asked, pairs: PairsOf) -> _Found | None:
    """A direction that separates some of the open pairs and none wrongly; None if there is none.

    The largest sum of margins under the constraints found so far, until all rows meet theirs. If
    that sum is zero under some of the constraints, it is zero under all.
    """
    rows, p, sample = asked.rows, asked.p, asked.sample(pairs)
    if not len(sample.rows):
        return None
    coordinates = asked.coordinates(sample)
    c = 1 if pairs.n_classes == 2 else pairs.n_classes
    if p * c > MANY and asked.held is None:
        if len(sample.rows) == rows.n_rows <= p:
            theta = interpolating(sample, coordinates, pairs.n_classes)
            if (found := _all_clear(rows, pairs, Ray(coordinates, theta))) is not None:
                return found
        verdict = decide(rows, coordinates, pairs)
        if verdict.known:
            return None if verdict.found is None else _Found(*verdict.found)
    pull = rows.map_sum(MarginGradient(coordinates, pairs))
    if asked.held is not None:
        pull[asked.held] = 0.0
    largest, most = abs(pull).max(), few_enough(2 * pull.size, p)
    constraints = _first_constraints(sample, coordinates, pairs.n_classes)
    for turn in range(ROUNDS if largest > 0 else 0):
        theta, smallest, total = largest_sum(pull / largest, constraints, asked.held)
        if total <= _NOTHING:
            return None
        floor = smallest / 10 if smallest > 10 * CLEAR else -TOUCHING
        margins = rows.map_sum(GatherMargins(coordinates, pairs, theta, floor, most))
        if not len(margins.worst.slack):
            return _Found(Ray(coordinates, theta), margins) if margins.n_clear else None
        kept = constraints if turn > PRUNED else tightest(constraints, theta)
        constraints = kept.joined(margins.worst)
    return None


def _first_constraints(sample: Sample, coordinates: Coordinates, n_classes: int) -> Constraints:
    """One constraint for each row of a sample, the other classes in turn."""
    pairs, places = Pairs.of(sample.support, n_classes), np.arange(len(sample.rows))
    others = (pairs.own + 1 + places % max(n_classes - 1, 1)) % n_classes
    rows = coordinates.standardise(sample.rows)
    if coordinates.long:
        rows /= abs(rows).max(axis=1, keepdims=True)
    zeros, equal = np.zeros(len(rows)), pairs.are_equal(places, others)
    directions = pairs.directions(places, others)
    return Constraints(sparse.csr_array(rows), directions, zeros, equal, zeros)


def _named(kind: Kind, ray: Ray) -> Separation:
    """The ray in the units of the columns, with the names of those that take part."""
    coordinates, columns = ray.coordinates, ray.coordinates.columns
    original = coordinates.original(ray.theta)
    if not np.isfinite(original).all():
        wrong = ~np.isfinite(original[int(coordinates.intercept) :]).all(axis=1)
        raise ScaleError(
            f"The coefficients with which {columns.as_schema().describe(int(wrong.argmax()))} "
            "separates the classes do not fit in a double.",
            "Multiply the column by a large number.",
        )
    signs = _signs(ray, original)
    running = np.flatnonzero(signs.any(axis=1))
    terms = (INTERCEPT, *columns.names) if coordinates.intercept else columns.names
    directions = signs[running, 0] if signs.shape[1] == 1 else signs[running]
    return Separation(kind, tuple(terms[j] for j in running), directions, original, ray)


def _signs(ray: Ray, original: Array) -> Array:
    """The sign of each coefficient on the ray, zero for what is only rounding (p, c)."""
    theta, size = ray.theta, np.full(ray.theta.shape, abs(ray.theta).max())
    if ray.coordinates.intercept:
        theta = np.vstack([original[:1], theta[1:]])
        size[0] += abs(ray.coordinates.centre / ray.coordinates.scale) @ abs(theta[1:])
    return np.where(abs(theta) > TOUCHING * size, np.sign(theta), 0.0)
