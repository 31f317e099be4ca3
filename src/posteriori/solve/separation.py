"""Linear programs that say whether, and along which columns, the coefficients run away.

Classes are separated when there is a direction θ along which no margin is negative and some are
positive: the likelihood grows along it for ever and has no maximum (Albert and Anderson 1984). The
separation is complete when all margins can be positive, quasi-complete when some stay at zero.
Decided by linear programs (Konis 2007) that see few of the rows: those whose constraints the
directions found before did not meet.

Conventions: p parameters, the intercept first, c activations a row, margins and constraints as in
`statistics.pairs` and `statistics.margins`. Gaps and overlaps of less than 1e-9 of the usual size
of a column cannot be told from touching, unless they turn out to be gaps when looked at alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from posteriori.design.columns import Columns
from posteriori.errors import ScaleError
from posteriori.rows.rows import Rows
from posteriori.solve.programs import largest_sum, least_size, tightest
from posteriori.statistics.coordinates import Coordinates, GatherSample, Sample
from posteriori.statistics.face import Face, GatherReach
from posteriori.statistics.margins import (
    CLEAR,
    Constraints,
    GatherBalance,
    GatherMargins,
    GatherPull,
    Margins,
    PairsOf,
    Ray,
)
from posteriori.statistics.pairs import TOUCHING, Pairs, Support, by_label
from posteriori.statistics.some_classes import SomeClasses
from posteriori.typing import Array

INTERCEPT = "intercept"
"""What the intercept is called among the columns."""

Kind = Literal["none", "quasi", "complete"]

_NOTHING = 1e-9
"""A sum of margins that is no more than rounding, the largest coefficient of the sum being one."""

_MISSED = 1e-6
"""By how much a ray may miss the margins zero and one."""

_TRIED = 30
"""Columns that are tried to be left out of a ray."""

_ROOM = 2**24
"""Numbers that the rows brought together for a program may take, 128 MiB."""

_FEW = (2, 8, 32)
"""Numbers of classes that are looked at before all of them are."""

_ROUNDS, _PRUNED = 500, 20
"""Programs solved before giving up, and before all constraints are kept; a dozen is usual."""


@dataclass(frozen=True, eq=False)
class Separation:
    """Whether a linear function separates the classes, and which coefficients run away with it.

    kind: "none", "quasi" or "complete". columns: names of design columns, and "intercept", that
    suffice to separate all that can be separated; where there are many ways, one with few columns.
    directions: +1 or -1 for each of them (columns,), the sign of its coefficient on the way to
    infinity; for more than two classes (columns, K), zero for the classes that stay. ray (p, c):
    the direction itself in the units of the columns, along which the margin of each row is zero,
    or one and more. face: the rows and classes that it leaves open; None where kind is "none".
    """

    kind: Kind
    columns: tuple[str, ...]
    directions: Array
    ray: Array
    face: Face | None


def find_separation(
    rows: Rows, n_classes: int, *, support: Support = by_label, fit_intercept: bool = True
) -> Separation:
    """Decide by linear programs whether the classes of the rows can be separated.

    `support` says which classes a row may belong to: `by_label`, or `by_count` with n_classes=2,
    or another function of a block.
    """
    ray, kind = _levels(rows, PairsOf(support, n_classes), fit_intercept)
    if ray is None:
        p, c = len(Columns(rows.schema).names) + fit_intercept, 1 if n_classes == 2 else n_classes
        none = np.empty((0,) if n_classes == 2 else (0, c))
        return Separation(kind, (), none, np.zeros((p, c)), None)
    return _named(kind, _sparse_ray(rows, PairsOf(support, n_classes, ray)))


def are_separable(rows: Rows, n_classes: int, suspects: Sequence[int] = ()) -> bool:
    """Whether a linear function puts every row on the right side: complete separation.

    `suspects` are codes of classes, those most likely to overlap first. If a few classes cannot be
    separated from each other, neither can all, and that takes a much smaller program to see.
    """
    for few in _FEW:
        if 2 * few <= n_classes and few <= len(suspects):
            some = SomeClasses(rows, suspects[:few])
            if _levels(some, PairsOf(by_label, few), True)[1] != "complete":
                return False
    return _levels(rows, PairsOf(by_label, n_classes), True)[1] == "complete"


def reach(
    rows: Rows, separation: Separation, theta: Array, *, margin: float, support: Support = by_label
) -> float:
    """The smallest t ≥ 0 for which θ + t ray has the margin on every row that the ray separates.

    θ (p, c) is in the units of the columns. At a margin of 40 the probability that is left for
    other classes is below the precision of doubles.
    """
    if separation.face is None:
        return 0.0
    c = theta.shape[1]
    pairs = PairsOf(support, 2 if c == 1 else c, separation.face.ray)
    return rows.map_sum(GatherReach(pairs, theta, margin)).t


def _levels(rows: Rows, pairs: PairsOf, fit_intercept: bool) -> tuple[Ray | None, Kind]:
    """A ray for all pairs that can be separated, found on those that it leaves open so far.

    The largest sum of margins may leave some at zero that could be positive: then these are looked
    at again, with coordinates of their own.
    """
    while True:
        found = _separate(rows, pairs, fit_intercept)
        ray = None if found is None else _joined(rows, pairs, found)
        if found is None or ray is None:
            return pairs.ray, "none" if pairs.ray is None else "quasi"
        if found.margins.n_clear == found.margins.n_open:
            return ray, "complete"
        pairs = PairsOf(pairs.support, pairs.n_classes, ray)


class _Found(NamedTuple):
    """A direction for the open pairs, and what the rows say of it."""

    ray: Ray
    margins: Margins


def _joined(rows: Rows, pairs: PairsOf, found: _Found) -> Ray | None:
    """One ray for what the ray of `pairs` and the one found separate; None if there is none.

    The second counts for so little that it spoils nothing that the first has separated.
    """
    first, second = pairs.ray, found.ray
    if first is None:
        return Ray(second.coordinates, second.theta / found.margins.least_clear)
    bounds = rows.map_sum(GatherBalance(pairs, second, 0.0))
    if bounds.low > (1 - _MISSED) * bounds.high:
        return None
    rho = min(max(2 * bounds.low, 1.0), (bounds.low + bounds.high) / 2)
    balance = rows.map_sum(GatherBalance(pairs, second, rho))
    if not balance.least > 4 * balance.loose:
        return None
    theta = first.coordinates.from_other(second.coordinates, second.theta)
    return Ray(first.coordinates, (rho * first.theta + theta) / balance.least)


def _separate(rows: Rows, pairs: PairsOf, fit_intercept: bool) -> _Found | None:
    """A direction that separates some of the open pairs and none wrongly; None if there is none.

    The largest sum of margins under the constraints found so far, until all rows meet theirs. If
    that sum is zero under some of the constraints, it is zero under all.
    """
    columns = Columns(rows.schema)
    p = len(columns.names) + fit_intercept
    most = _few_enough(4 * p, p)
    wanted = None if pairs.ray is None else pairs.has_open
    sample = rows.map_sum(GatherSample(columns, pairs.support, most, wanted))
    if not len(sample.rows):
        return None
    coordinates = Coordinates.of(sample, columns, fit_intercept)
    pull = rows.map_sum(GatherPull(coordinates, pairs))
    largest, most = abs(pull).max(), _few_enough(2 * pull.size, p)
    constraints = _first_constraints(sample, coordinates, pairs.n_classes)
    for turn in range(_ROUNDS if largest > 0 else 0):
        theta, smallest, total = largest_sum(pull / largest, constraints)
        if total <= _NOTHING:
            return None
        floor = smallest / 10 if smallest > 10 * CLEAR else -TOUCHING
        margins = rows.map_sum(GatherMargins(coordinates, pairs, theta, floor, most))
        if not len(margins.worst.slack):
            return _Found(Ray(coordinates, theta), margins) if margins.n_clear else None
        kept = constraints if turn > _PRUNED else tightest(constraints, theta)
        constraints = kept.joined(margins.worst)
    return None


def _few_enough(wanted: int, p: int) -> int:
    """As many rows of p numbers as are wanted, two hundred at least, unless they take much room."""
    return max(200, min(wanted, _ROOM // p))


def _first_constraints(sample: Sample, coordinates: Coordinates, n_classes: int) -> Constraints:
    """One constraint for each row of a sample, the other classes in turn."""
    pairs, places = Pairs.of(sample.support, n_classes), np.arange(len(sample.rows))
    others = (pairs.own + 1 + places % max(n_classes - 1, 1)) % n_classes
    rows = coordinates.standardise(sample.rows)
    if coordinates.long:
        rows /= abs(rows).max(axis=1, keepdims=True)
    zeros, equal = np.zeros(len(rows)), pairs.are_equal(places, others)
    return Constraints(rows, pairs.directions(places, others), zeros, equal, zeros)


def _sparse_ray(rows: Rows, pairs: PairsOf) -> Ray:
    """A ray of few columns that separates what the ray of `pairs` does; that one if none is found.

    The least Σ|θ|, then the least Σ|θ|/s with s = |θ| of the answer before until that changes no
    more (Candès, Wakin and Boyd 2008), then without each of the columns that can be left out.
    """
    assert pairs.ray is not None
    shortest, intercept = _Shortest(rows, pairs), int(pairs.ray.coordinates.intercept)
    theta = shortest(np.ones_like(pairs.ray.theta))
    if theta is None:
        return pairs.ray
    while (sparser := shortest(abs(theta))) is not None:
        fewer = np.count_nonzero(sparser) < np.count_nonzero(theta)
        theta = sparser
        if not fewer:
            break
    columns = np.argsort(abs(theta[intercept:]).max(axis=1), kind="stable") + intercept
    for j in [j for j in columns if theta[j].any()][:_TRIED]:
        size = abs(theta)
        size[j] = 0.0
        if theta[j].any() and size.any() and (sparser := shortest(size)) is not None:
            theta = sparser
    return Ray(pairs.ray.coordinates, theta)


class _Shortest:
    """The shortest θ along which separated pairs have margin one and more, and open ones zero."""

    def __init__(self, rows: Rows, pairs: PairsOf) -> None:
        assert pairs.ray is not None
        self._rows, self._pairs, self._ray = rows, pairs, pairs.ray
        self._constraints = self._lacking(pairs.ray.theta, np.inf)

    def __call__(self, size: Array) -> Array | None:
        """The one of least Σ|θ|/size, with zeros where size is zero; None if there is none."""
        for turn in range(_ROUNDS):
            theta = least_size(size, self._constraints)
            if theta is None:
                return None
            worst = self._lacking(theta, -_MISSED)
            if not len(worst.slack):
                return theta
            kept = self._constraints
            kept = kept if turn > _PRUNED else tightest(kept, theta)
            self._constraints = kept.joined(worst)
        return None

    def _lacking(self, theta: Array, floor: float) -> Constraints:
        most = _few_enough(2 * theta.size, len(theta))
        kernel = GatherMargins(self._ray.coordinates, self._pairs, theta, floor, most, 1.0)
        return self._rows.map_sum(kernel).worst


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
    return Separation(kind, tuple(terms[j] for j in running), directions, original, Face(ray))


def _signs(ray: Ray, original: Array) -> Array:
    """The sign of each coefficient on the ray, zero for what is only rounding (p, c)."""
    theta, size = ray.theta, np.full(ray.theta.shape, abs(ray.theta).max())
    if ray.coordinates.intercept:
        theta = np.vstack([original[:1], theta[1:]])
        size[0] += abs(ray.coordinates.centre / ray.coordinates.scale) @ abs(theta[1:])
    return np.where(abs(theta) > TOUCHING * size, np.sign(theta), 0.0)
