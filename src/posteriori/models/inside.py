"""Where a fit may start: coefficients whose activations all lie inside the domain of the link."""

from dataclasses import replace
from typing import cast

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from posteriori.design.columns import Columns
from posteriori.design.standardise import Standard
from posteriori.errors import DomainError
from posteriori.likelihood.domain import Domain
from posteriori.rows.rows import Rows
from posteriori.statistics.glm_domain import GatherRoom, GatherTightest, Room, Tightest
from posteriori.statistics.local_quadratic import Target
from posteriori.typing import Array

_ROWS = 1000
"""Rows that a linear program is given at a time, those that are farthest outside."""

_MOST_PROGRAMS = 100
_NOTHING = 1e-9
"""A share of the room wanted that is rounding."""


def start_inside(
    rows: Rows,
    columns: Columns,
    target: Target,
    domain: Domain,
    standard: Standard,
    level: float,
) -> Array:
    """Coefficients (1, q) in standardised columns, with no slopes where that will do.

    `level` is the activation wanted. With an intercept it is moved by as much as the offsets ask
    for. Without one, linear programs find coefficients that keep away from the ends.
    """
    room = rows.map_sum(GatherRoom(columns, domain, target))
    start = np.zeros((1, len(standard.scale) + int(standard.intercept)))
    if standard.intercept:
        start[0, 0] = _within(room, level, domain)
    elif not room.has(0.0):
        wanted = min(level - domain.low, domain.high - level)
        kernel = GatherTightest(columns, domain, target, start[0], _ROWS)
        start = standard.from_user(_far_inside(rows, kernel, standard.scale, wanted)[None])
    return start


def _within(room: Room, level: float, domain: Domain) -> float:
    """A length inside the room: the level, or one as far from the end as it; else the middle."""
    if not room.low < room.high:
        raise DomainError(
            f"No start gives every row an activation between {domain.low:g} and {domain.high:g}: "
            f"the offsets of rows {room.low_row} and {room.high_row} are too far apart.",
            "Use smaller offsets, or a link whose activations have no ends.",
        )
    if room.has(level):
        return level
    if room.high == np.inf:
        return room.low + abs(level - domain.low)
    if room.low == -np.inf:
        return room.high - abs(domain.high - level)
    return (room.low + room.high) / 2


def _far_inside(rows: Rows, kernel: GatherTightest, scale: Array, wanted: float) -> Array:
    """Coefficients (m,) with which no row is as close to an end as `wanted`, or none outside.

    Only rows that are outside with the coefficients found before are looked at.
    """
    known: Tightest | None = None
    for _ in range(_MOST_PROGRAMS):
        found = rows.map_sum(kernel)
        if found.room[0] > 0:
            return kernel.theta
        known = found if known is None else _both(known, found)
        theta = _farthest(known, scale, wanted)
        if theta is None:
            break
        kernel = replace(kernel, theta=theta)
    raise DomainError(
        "Without an intercept, no coefficients were found that give every row an activation "
        f"{kernel.domain.words}"
        + (", where its class is possible." if kernel.domain.by_label else "."),
        "Use fit_intercept=True, or a link whose activations have no ends.",
    )


def _both(known: Tightest, found: Tightest) -> Tightest:
    """All rows of the two."""
    outside = found.room <= 0
    return Tightest(
        known.most,
        np.concatenate([known.rows, found.rows[outside]]),
        np.concatenate([known.low, found.low[outside]]),
        np.concatenate([known.high, found.high[outside]]),
        np.concatenate([known.room, found.room[outside]]),
    )


def _farthest(known: Tightest, scale: Array, wanted: float) -> Array | None:
    """θ with the most room s between φᵀθ and the ends, up to what is wanted; None if there is none.

    The linear program: s as large as can be with low + s ≤ φᵀθ ≤ high - s.
    """
    phi, m = known.rows / scale, len(scale)
    below, above = np.isfinite(known.low), np.isfinite(known.high)
    matrix = np.concatenate([-phi[below], phi[above]])
    matrix = np.column_stack([matrix, np.ones(len(matrix))])
    found = linprog(
        np.append(np.zeros(m), -1.0),
        A_ub=sparse.csr_array(matrix),
        b_ub=np.concatenate([-known.low[below], known.high[above]]),
        bounds=[(None, None)] * m + [(0.0, wanted)],
    )
    if found.status != 0 or -found.fun <= _NOTHING * wanted:
        return None
    return cast(Array, found.x[:m] / scale)
