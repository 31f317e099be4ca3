"""Margins between classes along a direction: the sums behind the linear programs of separation.

Conventions: n rows, K classes, and c activations a row: that of the second of two classes, or one
each of more. A direction θ (c, q) has the intercept first and belongs to standardised columns.

A row has a pair for each class but its own, with the margin a_own - a_other. A step along θ lowers
the likelihood of no row if no margin is negative (Albert and Anderson 1984). A row with a share in
several classes counts as one row of each. For counts, whose mean falls to zero with the activation,
the two classes are "zero" and "more".
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from posteriori.design.columns import Columns
from posteriori.design.standardise import STILL, Standard
from posteriori.rows.block import Block, Rows, check_finite, take_block
from posteriori.statistics.column_moments import column_spread
from posteriori.statistics.local_quadratic import activations, gradient_of
from posteriori.statistics.statistic import Maximum, Statistic
from posteriori.typing import Array, Codes

Mask = NDArray[np.bool_]

Support = Callable[[Block], Mask]
"""The classes that the rows of a block may belong to: a mask (n, K)."""

TOUCHING = 1e-9
"""Margins of this size, along a θ of size one, cannot be distinguished from zero."""

CLEAR = 1e-7
"""Margins above this, along a θ of size one, are positive."""

SEPARATED = 0.5
"""A ray has margins of zero, or of one and more: above this they are positive."""


_FAR = 10.0
"""Standard deviations from zero beyond which a column is centred."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """What the margins of rows are made of: their columns, and the classes they may belong to."""

    columns: Columns
    standard: Standard
    support: Support
    n_classes: int

    def along(
        self, block: Block, theta: Array, offset: Array | None = None
    ) -> tuple[Array, Codes, Codes]:
        """Margins (m, K) of the rows of a block along θ, their rows (m,) and classes (m,).

        The margin of a class with itself is infinite. A row with a share in several classes comes
        once with each, so that their margins with one another can only be zero.
        """
        standard = self.standard
        with np.errstate(over="ignore", invalid="ignore"):
            design = standard.design(self.columns.design(block))
            a = activations(design, standard.outward(theta), standard.intercept, offset)
        if np.isnan(a).any():
            check_finite(block, self.columns.schema)
        if a.ndim == 1:
            a = np.column_stack([np.zeros(len(a)), a])
        rows, own = np.nonzero(self.support(block))
        margins = a[rows, own][:, None] - a[rows]
        margins[np.arange(len(own)), own] = np.inf
        return margins, rows, own

    def matrix(self, block: Block, rows: Codes, own: Codes, others: Codes) -> sparse.csr_array:
        """The margins of some pairs as functions of θ, flattened (k, c q)."""
        X = self.columns.design(take_block(block, rows)).array()
        X = (X - self.standard.centre) / self.standard.scale
        if self.standard.intercept:
            X = np.column_stack([np.ones(len(X)), X])
        part = sparse.csr_array(X)
        if self.n_classes == 2:  # the first has no activation
            return sparse.diags_array(own - others.astype(np.float64)).tocsr() @ part
        part = part.tocoo()
        row, column = part.coords
        q = part.shape[1]
        entries = np.concatenate([part.data, -part.data])
        columns = np.concatenate([column + q * own[row], column + q * others[row]])
        shape = len(rows), self.n_classes * q
        return sparse.csr_array((entries, (np.tile(row, 2), columns)), shape=shape)


class Constraints(NamedTuple):
    """Constraints matrix θ ≥ goal; θ is flattened (c q,).

    `slack` (k,) is what the left side had beyond the goal when the constraint was found.
    """

    matrix: sparse.csr_array
    goal: Array
    slack: Array

    def joined(self, other: "Constraints", most: int | None = None) -> "Constraints":
        """Both sets of constraints; of more than `most`, those with the least slack."""
        matrix = sparse.vstack([self.matrix, other.matrix], format="csr")
        pairs = zip(self[1:], other[1:], strict=True)
        found = Constraints(matrix, *(np.concatenate(pair) for pair in pairs))
        if most is None or len(found.slack) <= most:
            return found
        least = np.argsort(found.slack, kind="stable")[:most]
        return Constraints(matrix[least], found.goal[least], found.slack[least])


@dataclass(frozen=True, eq=False)
class Margins(Statistic):
    """The margins of all rows along a direction.

    Of the pairs that a ray does not separate: how many there are, how many have a `CLEAR` margin,
    and the least of these. Of all constraints: the `most` worst of those that are violated.
    """

    most: int
    n_open: int
    n_clear: int
    least_clear: float
    violated: Constraints

    def __add__(self, other: "Margins") -> "Margins":
        n_open, n_clear = self.n_open + other.n_open, self.n_clear + other.n_clear
        least_clear = min(self.least_clear, other.least_clear)
        violated = self.violated.joined(other.violated, self.most)
        return Margins(self.most, n_open, n_clear, least_clear, violated)


@dataclass(frozen=True, eq=False)
class GatherMargins:
    """The kernel: a block to its `Margins` along θ, with constraints of slack below `floor`.

    Constraints say that no margin is negative; with `like_ray`, that those which are positive along
    the ray are one at least.
    """

    pairs: Pairs
    theta: Array
    ray: Array
    floor: float
    most: int
    like_ray: bool = False

    def __call__(self, block: Block) -> Margins:
        margins, row_of, own = self.pairs.along(block, self.theta)
        on_ray, _, _ = self.pairs.along(block, self.ray)
        is_open = np.isfinite(margins) & (on_ray <= SEPARATED)
        goal = self.like_ray * (on_ray > SEPARATED).astype(np.float64)
        clear = margins[is_open & (margins > CLEAR)]
        slack = margins - goal
        others = slack.argmin(axis=1)
        least = np.take_along_axis(slack, others[:, None], axis=1)[:, 0]
        rows = np.flatnonzero(least < self.floor)
        rows = rows[np.argsort(least[rows], kind="stable")[: self.most]]
        others = others[rows]
        matrix = self.pairs.matrix(block, row_of[rows], own[rows], others)
        violated = Constraints(matrix, goal[rows, others], least[rows])
        least_clear = float(clear.min(initial=np.inf))
        return Margins(self.most, int(is_open.sum()), len(clear), least_clear, violated)


@dataclass(frozen=True, eq=False)
class MarginGradient:
    """The kernel: the gradient (c, q) of the sum of all margins that may become positive.

    Those that already are along the ray are left out.
    """

    pairs: Pairs
    ray: Array

    def __call__(self, block: Block) -> Array:
        standard, K = self.pairs.standard, self.pairs.n_classes
        margins, rows, own = self.pairs.along(block, self.ray)
        counted = margins <= SEPARATED
        signs = -counted.astype(np.float64)
        signs[np.arange(len(own)), own] = counted.sum(axis=1)
        sums = np.zeros((block.X.shape[0], K))
        np.add.at(sums, rows, signs)
        sums = sums[:, 1] if K == 2 else sums
        design = standard.design(self.pairs.columns.design(block))
        return standard.inward(gradient_of(design, sums, standard.intercept))


@dataclass(frozen=True, eq=False)
class GatherStepLength:
    """The kernel: the least t ≥ 0 at which θ + t `direction` has the margin on every pair that is
    separated by the ray, offsets included; infinite where the direction leads the wrong way."""

    pairs: Pairs
    theta: Array
    direction: Array
    ray: Array
    margin: float

    def __call__(self, block: Block) -> Maximum:
        here, _, _ = self.pairs.along(block, self.theta, block.offset)
        on_ray, _, _ = self.pairs.along(block, self.ray)
        along, _, _ = self.pairs.along(block, self.direction)
        separated = np.isfinite(on_ray) & (on_ray > SEPARATED)
        lacking, ahead = self.margin - here[separated], along[separated]
        with np.errstate(divide="ignore", invalid="ignore"):
            needed = np.where(lacking > 0, np.where(ahead > 0, lacking / ahead, np.inf), 0.0)
        return Maximum(float(needed.max(initial=0.0)))


def pair_sums(
    rows: Rows, n_classes: int, support: Support | None = None, fit_intercept: bool = True
) -> tuple[Pairs, Callable[[Any], Any]]:
    """The pairs of the rows, in columns of standard deviation one, and the rows' `map_sum`.

    `support` gives the classes that a row may belong to; by default its label, or the classes with
    a share in it. Only columns far from zero are centred, so that programs of levels and sparse
    rows stay sparse.
    """

    def by_label(block: Block) -> Mask:
        y = cast(NDArray[Any], block.y)
        return y > 0 if y.ndim == 2 else y[:, None] == np.arange(n_classes)

    columns = Columns(rows.schema, handle_unknown="reference")
    found = column_spread(rows, columns)
    mean, deviation = found
    if not fit_intercept:
        mean, deviation = np.zeros(len(mean)), np.hypot(found.mean, found.deviation)
    constant = deviation <= STILL * abs(mean)
    scale = np.where(constant, np.where(mean == 0, 1.0, abs(mean)), deviation)
    centre = np.where(abs(mean) / _FAR > scale, mean, 0.0)
    standard = Standard(centre, scale, fit_intercept)
    return Pairs(columns, standard, support or by_label, n_classes), rows.map_sum
