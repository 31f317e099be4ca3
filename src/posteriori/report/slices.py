"""A plane through the space of the rows: two of their columns, or two components."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np

from posteriori.arguments import check_count
from posteriori.errors import ParameterError, ShapeError
from posteriori.models.fisher import FisherDiscriminant
from posteriori.report.tables import Table, read_table
from posteriori.typing import Array

_MARGIN = 0.08


class Plane(Protocol):
    """A fitted linear map of rows onto two coordinates."""

    def transform(self, X: Any) -> Any: ...


PlaneLike = Plane | Literal["fisher"]
Columns = Sequence[Any]
"""Two columns, by name or by number."""


class Slice(Protocol):
    """The rows as points (n, 2) of the plane, and the way back from the plane to rows."""

    @property
    def coordinates(self) -> Array: ...

    @property
    def labels(self) -> tuple[str, str]: ...

    def lift(self, points: Array) -> Any:
        """Rows like those of X that stand for points (m, 2) of the plane."""


@dataclass(frozen=True, eq=False)
class ColumnSlice:
    """Two columns, all others being held at their mean or most frequent level."""

    table: Table
    places: tuple[int, int]

    @cached_property
    def coordinates(self) -> Array:
        return np.column_stack([self.table.finite(j) for j in self.places])

    @property
    def labels(self) -> tuple[str, str]:
        first, second = self.places
        return self.table.names[first], self.table.names[second]

    def lift(self, points: Array) -> Any:
        return self.table.with_columns(dict(zip(self.places, points.T, strict=True)))


@dataclass(frozen=True, eq=False)
class PlaneSlice:
    """Two components: z stands for the row x̄ + Bᵀ(z - z̄), with B the regression of rows on z."""

    table: Table
    coordinates: Array
    centre: Array  # (d,): x̄
    back: Array  # (2, d): B
    labels: tuple[str, str] = ("component 1", "component 2")

    def lift(self, points: Array) -> Any:
        lifted = self.centre + (points - self.coordinates.mean(axis=0)) @ self.back
        return self.table.like(lifted)


@dataclass(frozen=True, eq=False)
class Grid:
    """Points that cover a slice: `horizontal` and `vertical` (m,), and rows that stand for them."""

    horizontal: Array
    vertical: Array
    rows: Any

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.vertical), len(self.horizontal)

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """The edges of an image that has a pixel around every point."""
        (left, right), (bottom, top) = map(_edges, (self.horizontal, self.vertical))
        return left, right, bottom, top


def slice_of(X: Any, y: Any, columns: Columns | None, plane: PlaneLike | None) -> Slice:
    """The slice that the user asks for; X may have two columns only if nothing is said."""
    table = read_table(X)
    if columns is not None and plane is not None:
        raise ParameterError("columns and plane exclude each other.", "Pass one of them.")
    if columns is not None:
        return ColumnSlice(table, two_places(table, columns))
    if plane is not None:
        return _component_slice(table, y, plane)
    if table.n_columns != 2:
        raise ShapeError(
            f"X has {table.n_columns} columns, a picture has two.",
            "Pass columns= with two of them, plane='fisher', or two columns only.",
        )
    return ColumnSlice(table, (0, 1))


def two_places(table: Table, columns: Columns) -> tuple[int, int]:
    """The places of two columns that differ."""
    if isinstance(columns, str) or len(columns) != 2:
        raise ParameterError(f"columns={columns!r} are not two.", "Pass a pair of columns.")
    first, second = (table.place(column) for column in columns)
    if first == second:
        raise ParameterError(f"columns={columns!r} are the same.", "Pass two that differ.")
    return first, second


def grid_over(space: Slice, resolution: int) -> Grid:
    """`resolution` points along each side, with a margin around the rows."""
    check_count("resolution", resolution, "points")
    if resolution < 2:
        raise ParameterError(f"resolution={resolution} is too small.", "Use two points or more.")
    horizontal, vertical = (_axis(values, resolution) for values in space.coordinates.T)
    points = np.stack(np.meshgrid(horizontal, vertical), axis=-1).reshape(-1, 2)
    return Grid(horizontal, vertical, space.lift(points))


def _component_slice(table: Table, y: Any, plane: PlaneLike) -> PlaneSlice:
    values = table.matrix()
    if isinstance(plane, str):
        plane = _fisher(table.X, y, plane)
    coordinates = np.asarray(plane.transform(table.X), dtype=np.float64)
    if coordinates.shape != (len(values), 2):
        raise ParameterError(
            f"plane.transform gives an array of shape {coordinates.shape}.",
            "Give a plane with two components; Fisher's takes at least three classes.",
        )
    centre = values.mean(axis=0)
    back = np.linalg.lstsq(coordinates - coordinates.mean(axis=0), values - centre)[0]
    return PlaneSlice(table, coordinates, centre, back)


def _fisher(X: Any, y: Any, name: str) -> Plane:
    if name != "fisher":
        raise ParameterError(
            f"plane={name!r} is not understood.", "Use 'fisher', or a fitted map to two components."
        )
    try:
        return FisherDiscriminant(n_components=2).fit(X, y)
    except ParameterError as error:
        raise ParameterError(
            f"There are no two discriminant directions. {error.problem}",
            "Fisher's plane takes three classes or more: pass columns= instead.",
        ) from error


def _axis(values: Array, resolution: int) -> Array:
    """Points that cover the values, with a margin."""
    low, high = float(values.min()), float(values.max())
    margin = _MARGIN * (high - low) or 1.0
    return np.linspace(low - margin, high + margin, resolution)


def _edges(points: Array) -> tuple[float, float]:
    half = (points[1] - points[0]) / 2
    return float(points[0] - half), float(points[-1] + half)
