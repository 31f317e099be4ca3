"""Columns that separate some pairs by themselves, as a dummy with all its ones in one class does.

Conventions: those of `solve.separation`. One look at the rows finds all such columns; what they
separate together is taken off, and only the rest has to be decided by other means.
"""

import numpy as np

from posteriori.rows.rows import Rows
from posteriori.statistics.coordinates import Coordinates, Mask
from posteriori.statistics.separation_margins import ClassRanges, GatherClassRanges, PairsOf
from posteriori.typing import Array


def columns_alone(rows: Rows, coordinates: Coordinates, pairs: PairsOf) -> Array:
    """θ (p, c), the sum of all columns that separate a class from the others; zero if none does.

    A column does if its range in the class touches that in the others at one end, or misses it.
    """
    ranges = rows.map_sum(GatherClassRanges(coordinates.columns, pairs))
    ranges = ClassRanges(ranges.low / coordinates.unit, ranges.high / coordinates.unit)
    of_classes = [1] if pairs.n_classes == 2 else range(pairs.n_classes)
    return np.column_stack([_direction(ranges, coordinates, k) for k in of_classes])


def _direction(ranges: ClassRanges, coordinates: Coordinates, k: int) -> Array:
    """θ (p,) of one class: the columns that are larger in it, less those that are smaller."""
    low, high = np.delete(ranges.low, k, axis=0), np.delete(ranges.high, k, axis=0)
    above, cut_above = _parts(high.max(axis=0), ranges.low[k], coordinates.intercept)
    below, cut_below = _parts(ranges.high[k], low.min(axis=0), coordinates.intercept)
    changes = ranges.low.min(axis=0) < ranges.high.max(axis=0)
    signs = np.where(changes, above.astype(np.float64) - below, 0.0)
    if not coordinates.intercept:
        return signs
    cut = np.where(signs == 0, coordinates.centre, np.where(above, cut_above, cut_below))
    return np.append(-signs @ ((cut - coordinates.centre) / coordinates.scale), signs)


def _parts(left: Array, right: Array, moves: bool) -> tuple[Mask, Array]:
    """Whether no entry on the left is above one on the right (m,), and what lies between them.

    Without an intercept that `moves`, it must be zero.
    """
    known = np.isfinite(left) & np.isfinite(right)
    left, right = np.where(known, left, 0.0), np.where(known, right, 0.0)
    cut = left + (right - left) / 2 if moves else np.zeros(len(left))
    return known & (left <= cut) & (cut <= right), cut
