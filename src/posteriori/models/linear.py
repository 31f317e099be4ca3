"""Linear models: coefficients, and the geometry of hyperplanes (4.4)-(4.10).

Conventions: n rows, d columns, w (d,) the normal of a plane, w₀ its offset. Where a model has
categorical columns, d counts the columns of the design matrix, and distances are taken there.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import norm

from posteriori.design.columns import Columns
from posteriori.errors import ColumnTypeError, ParameterError, ScaleError, ShapeError
from posteriori.linalg import read_only
from posteriori.rows.block import Block, check_finite
from posteriori.rows.features import read_features
from posteriori.rows.in_memory import MemoryRows
from posteriori.rows.schema import HandleUnknown
from posteriori.typing import Array, Labels


@dataclass(frozen=True, eq=False)
class Hyperplane:
    """The points x where y(x) = wᵀx + w₀ is zero; w points to its positive side.

    The signed distance of x is r = y(x) / |w| (4.7), and x = x⊥ + r w / |w| (4.6) with x⊥ the
    point of the plane closest to x. Neither changes when w and w₀ are scaled together.

    >>> plane = Hyperplane(normal=np.array([3.0, 4.0]), offset=-10.0)
    >>> plane.signed_distance([[0.0, 0.0], [6.0, 8.0]])
    array([-2.,  8.])
    >>> plane.project([[6.0, 8.0]])
    array([[1.2, 1.6]])
    >>> plane.closest_to_origin
    array([1.2, 1.6])
    """

    normal: Array
    offset: float
    unit_normal: Array = field(init=False)
    """w / |w|."""
    _shift: float = field(init=False, repr=False)
    """w₀ / |w|, the signed distance of the origin."""

    def __post_init__(self) -> None:
        normal, offset = np.array(self.normal, dtype=np.float64), float(self.offset)
        if normal.ndim != 1 or not len(normal):
            raise ShapeError(f"The normal has shape {normal.shape}.", "Pass one number a column.")
        if not (np.isfinite(normal).all() and np.isfinite(offset)):
            raise ParameterError(
                "The normal or the offset holds NaN or infinity.", "Pass finite numbers."
            )
        if not normal.any():
            raise ParameterError(
                "The normal is zero in every column, so there is no plane.",
                "Pass a normal with at least one entry that is not zero.",
            )
        length = float(norm(normal))
        with np.errstate(over="ignore"):
            shift = np.float64(offset) / length
        if not np.isfinite(shift):
            raise ScaleError(
                f"The plane lies farther from the origin than doubles reach (offset {offset}, "
                f"length of the normal {length:g}).",
                "Scale the columns so that the normal is of the size of the offset.",
            )
        self.__dict__.update(
            normal=read_only(normal),
            offset=offset,
            unit_normal=normal / length,
            _shift=float(shift),
        )

    def __neg__(self) -> "Hyperplane":
        """The same points with the sides exchanged."""
        return Hyperplane(-self.normal, -self.offset)

    @property
    def closest_to_origin(self) -> Array:
        """The point of the plane closest to the origin, -w₀ w / |w|² (4.5)."""
        return -self._shift * self.unit_normal

    def signed_distance(self, X: Any) -> Array:
        """How far each row of X lies from the plane, (n,); positive where wᵀx + w₀ > 0 (4.7)."""
        return self._distances(self._read(X))

    def project(self, X: Any) -> Array:
        """For each row of X the closest point of the plane, (n, d), by (4.6)."""
        rows = self._read(X)
        unit, distances = self.unit_normal, self._distances(rows)

        def closest(block: Block) -> Array:
            points = Columns(rows.schema).design(block).array()
            away = distances[block.start : block.start + len(points), None]
            return points - away * unit  # (4.6)

        return rows.fill(np.empty((rows.n_rows, len(unit))), closest)

    def _distances(self, rows: MemoryRows, handle_unknown: HandleUnknown = "error") -> Array:
        unit, shift, columns = self.unit_normal, self._shift, Columns(rows.schema, handle_unknown)

        def distances(block: Block) -> Array:
            with np.errstate(over="ignore", invalid="ignore"):
                found = columns.design(block).times(unit) + shift  # (4.7)
            if not np.isfinite(found).all():
                check_finite(block, rows.schema)
                raise ScaleError("A distance is larger than doubles reach.", "Scale the columns.")
            return found

        return rows.fill(np.empty(rows.n_rows), distances)

    def _read(self, X: Any) -> MemoryRows:
        table = read_features(X)
        if table.schema.categorical:
            raise ColumnTypeError(
                f"A plane is given in numbers, but X has levels in "
                f"{table.schema.describe_all(table.schema.categorical)}.",
                "Pass numbers, or ask the fitted model itself: model.signed_distance(X).",
            )
        if len(table.schema) != len(self.normal):
            raise ShapeError(
                f"X has {len(table.schema)} columns, but the plane has {len(self.normal)}.",
                "Pass one column for each entry of the normal.",
            )
        return MemoryRows(table)


def coefficient_names(model: Any) -> Labels:
    """Names of the columns of `coef_` (d,) of a fitted classifier."""
    names = Columns(model.schema_).names if model.coef_.size else ()
    return np.array(names, dtype=object)


def signed_distance(model: Any, X: Any, plane: Hyperplane) -> Array:
    """How far each row of X lies from a plane of a fitted classifier (4.7), (n,)."""
    return plane._distances(model._new_rows(X), model.handle_unknown)


def boundary(model: Any, first: Any = None, second: Any = None) -> Hyperplane:
    """The plane where two classes of a fitted classifier are equally probable (4.10)."""
    k, j = _two_classes(model.classes_, first, second)
    W, offsets = _one_row_a_class(model)
    with np.errstate(over="ignore"):
        normal, offset = W[k] - W[j], offsets[k] - offsets[j]  # (4.10)
    if not normal.any():
        raise ParameterError(
            f"Classes {model.classes_[k]!r} and {model.classes_[j]!r} have the same coefficients, "
            "so there is no boundary between them.",
            "Ask for two classes that the model tells apart by its columns.",
        )
    return Hyperplane(normal, offset)


def _two_classes(classes: Labels, first: Any, second: Any) -> tuple[int, int]:
    """Places of the class on the positive side and of the one on the negative side."""
    if first is None and second is None and len(classes) == 2:
        return 1, 0
    if first is None or second is None:
        raise ParameterError(
            f"A boundary lies between two classes, and {len(classes)} were fitted.",
            "Name both of them: hyperplane(first, second).",
        )
    k, j = _place(classes, first), _place(classes, second)
    if k == j:
        raise ParameterError(f"Class {first!r} has no boundary with itself.", "Name two classes.")
    return k, j


def _place(classes: Labels, label: Any) -> int:
    places = [k for k, known in enumerate(classes) if known == label]
    if not places:
        raise ParameterError(
            f"{label!r} is not a class of the fit.",
            f"The classes are {', '.join(map(repr, classes[:8].tolist()))}"
            f"{', ...' if len(classes) > 8 else ''}.",
        )
    return places[0]


def _one_row_a_class(model: Any) -> tuple[Array, Array]:
    """w_k and w_k0 of (4.9), with zeros for the first of two classes."""
    W = np.asarray(model.coef_, dtype=np.float64)
    offsets = np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64), (len(W),))
    if len(model.classes_) > 2:
        return W, offsets
    return np.vstack([np.zeros_like(W), W]), np.append(0.0, offsets - model._middle())
