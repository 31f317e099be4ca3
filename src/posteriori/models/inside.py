"""Where a fit may start: coefficients whose activations all lie inside the domain of the link."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from posteriori.design.columns import Columns
from posteriori.design.standard import Standard
from posteriori.errors import DomainError
from posteriori.likelihood.domain import Domain
from posteriori.rows.block import Block
from posteriori.rows.rows import Rows
from posteriori.solve.separation import find_separation
from posteriori.statistics.local_quadratic import Target
from posteriori.statistics.room import GatherRoom, Room
from posteriori.typing import Array


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
    for. Without one, a direction along which every activation grows is found by a linear program.
    """
    room = rows.map_sum(GatherRoom(columns, domain, target))
    start = np.zeros((1, len(standard.scale) + int(standard.intercept)))
    if standard.intercept:
        start[0, 0] = _within(room, level, domain)
    elif not room.has(0.0):
        ray = _upward(rows, domain)
        room = rows.map_sum(GatherRoom(columns, domain, target, ray))
        start = standard.from_user(_within(room, level, domain) * ray[None])
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


def _upward(rows: Rows, domain: Domain) -> Array:
    """Coefficients (m,) that give every row a positive activation, one or more."""
    found = find_separation(rows, 2, support=_all_second, fit_intercept=False)
    if domain.by_label or found.kind != "complete":
        raise DomainError(
            f"Without an intercept, no coefficients were found that give every row an activation "
            f"between {domain.low:g} and {domain.high:g}.",
            "Use fit_intercept=True, or a link whose activations have no ends.",
        )
    return found.ray[:, 0]


def _all_second(block: Block) -> NDArray[Any]:
    return np.ones(block.X.shape[0], dtype=np.intp)
