"""Pictures, by matplotlib (extra `plots`)."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle
from typing import Any, Protocol

import matplotlib.pyplot as plt
import narwhals as nw
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from posteriori.errors import LabelError, ParameterError, ShapeError
from posteriori.typing import Array, Codes, Labels

# The colours of Okabe and Ito, which the colour-blind can tell apart; each class also has a marker
# of its own. Seven colours and eight markers: no pair comes twice within 56 classes.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

_MARGIN = 0.08
_FAINTEST, _STRONGEST = 0.06, 0.45


class Plane(Protocol):
    """A fitted linear map of rows onto two coordinates."""

    def transform(self, X: Any) -> Any: ...


class FittedClassifier(Protocol):
    """A fitted classifier; with `predict_proba`, the regions are shaded by it."""

    classes_: Labels

    def predict(self, X: Any) -> Any: ...


def decision_regions(
    model: FittedClassifier,
    X: Any,
    y: Any,
    *,
    plane: Plane | None = None,
    ax: Axes | None = None,
    resolution: int = 200,
) -> Axes:
    """Draw which class `model` chooses where, and how sure it is: the paler, the less sure.

    Without `plane`, X has two columns and the picture shows all there is to know. With `plane`,
    such as a fitted `FisherDiscriminant(n_components=2)`, the model is one of all columns of X,
    and the picture is a slice of its space: a point z of the plane stands for the row
    x̄ + Bᵀ(z - z̄), where B is the least-squares regression of the rows of X on their coordinates,
    that is, for the average row that falls there. `plane.transform` takes that row back to z.
    For a model with one shared covariance and at most three classes, the Fisher plane loses
    nothing; for others, a row off the slice may be classified otherwise than the point it is
    drawn at.

    `resolution` is the number of points along each side. Gives the Axes drawn on.

    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> ax = decision_regions(GaussianNB().fit(X[:, :2], y), X[:, :2], y)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['0', '1', '2']
    """
    slice_ = _slice(X, plane)
    codes = _codes(y, model.classes_, len(slice_.coordinates))
    horizontal, vertical = (_axis(values, resolution) for values in slice_.coordinates.T)
    grid = np.stack(np.meshgrid(horizontal, vertical), axis=-1)
    share = _shares(model, slice_.lift(grid.reshape(-1, 2))).reshape(resolution, resolution, -1)

    axes = _new_axes() if ax is None else ax
    _draw_regions(axes, horizontal, vertical, share)
    _draw_points(axes, slice_.coordinates, codes, model.classes_)
    axes.set_xlabel(slice_.labels[0])
    axes.set_ylabel(slice_.labels[1])
    return axes


def class_colours(n_classes: int) -> Array:
    """The colour of each class as red, green and blue (K, 3); they repeat after seven."""
    return np.array([to_rgb(colour) for colour, _ in zip(cycle(COLOURS), range(n_classes))])


@dataclass(frozen=True)
class _Slice:
    """The rows as points of the plane, and the way back from the plane to rows."""

    rows: Any
    coordinates: Array  # (n, 2)
    centre: Array  # (d,): x̄
    back: Array  # (2, d): B
    labels: tuple[str, str]

    def lift(self, points: Array) -> Any:
        """Rows like those of X that stand for points of the plane."""
        lifted = self.centre + (points - self.coordinates.mean(axis=0)) @ self.back
        return _like(self.rows, lifted)


def _slice(X: Any, plane: Plane | None) -> _Slice:
    values = np.asarray(X, dtype=np.float64)
    if values.ndim != 2 or not np.isfinite(values).all():
        raise ShapeError(
            "A picture needs a table of numbers without missing entries.",
            "Pass rows and numeric columns only, and drop the rows with missing entries.",
        )
    if plane is None:
        if values.shape[1] != 2:
            raise ShapeError(
                f"X has {values.shape[1]} columns, a picture has two.",
                "Pass plane=FisherDiscriminant(n_components=2).fit(X, y), or two columns only.",
            )
        return _Slice(X, values, values.mean(axis=0), np.eye(2), _column_names(X))
    coordinates = np.asarray(plane.transform(X), dtype=np.float64)
    if coordinates.shape != (len(values), 2):
        raise ParameterError(
            f"plane.transform gives an array of shape {coordinates.shape}.",
            "Give a plane with two components; Fisher's takes at least three classes.",
        )
    centre = values.mean(axis=0)
    back = np.linalg.lstsq(coordinates - coordinates.mean(axis=0), values - centre)[0]
    return _Slice(X, coordinates, centre, back, ("component 1", "component 2"))


def _column_names(X: Any) -> tuple[str, str]:
    first, second = (str(name) for name in getattr(X, "columns", ("column 0", "column 1")))
    return first, second


def _like(X: Any, values: Array) -> Any:
    """`values` as a data frame of the kind and with the columns of X, if X is one."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return values
    columns = dict(zip(frame.columns, values.T, strict=True))
    return nw.from_dict(columns, backend=frame.implementation).to_native()


def _codes(y: Any, classes: Labels, n_rows: int) -> Codes:
    labels = np.asarray(y)
    if labels.shape != (n_rows,):
        raise ShapeError(f"y has shape {labels.shape} for {n_rows} rows.", "Pass one label a row.")
    place = {label: k for k, label in enumerate(classes.tolist())}
    unknown = [label for label in labels.tolist() if label not in place]
    if unknown:
        raise LabelError(
            f"The model has no class {unknown[0]!r}.", "Draw the rows of its classes only."
        )
    return np.array([place[label] for label in labels.tolist()], dtype=np.intp)


def _axis(values: Array, resolution: int) -> Array:
    """Points that cover the values, with a margin."""
    low, high = float(values.min()), float(values.max())
    margin = _MARGIN * (high - low) or 1.0
    return np.linspace(low - margin, high + margin, resolution)


def _shares(model: FittedClassifier, rows: Any) -> Array:
    """Posterior probabilities (n, K); one for the class chosen where the model has none."""
    proba = getattr(model, "predict_proba", None)
    if proba is not None:
        return np.asarray(proba(rows), dtype=np.float64)
    chosen = np.asarray(model.predict(rows))
    return (chosen[:, None] == np.asarray(model.classes_)).astype(np.float64)


def _draw_regions(axes: Axes, horizontal: Array, vertical: Array, share: Array) -> None:
    n_classes = share.shape[2]
    surest, winner = share.max(axis=2), share.argmax(axis=2)
    sureness = (surest - 1 / n_classes) / (1 - 1 / n_classes)
    strength = (_FAINTEST + (_STRONGEST - _FAINTEST) * sureness)[..., None]
    image = 1 - strength * (1 - class_colours(n_classes)[winner])
    halves = [(side[1] - side[0]) / 2 for side in (horizontal, vertical)]
    axes.imshow(
        image,
        origin="lower",
        aspect="auto",
        interpolation="nearest",
        extent=(
            horizontal[0] - halves[0],
            horizontal[-1] + halves[0],
            vertical[0] - halves[1],
            vertical[-1] + halves[1],
        ),
    )
    for k in np.unique(winner):
        lead = share[..., k] - np.delete(share, k, axis=2).max(axis=2, initial=0.0)
        if lead.min() < 0 < lead.max():
            axes.contour(horizontal, vertical, lead, levels=[0.0], colors="0.25", linewidths=0.8)


def _draw_points(axes: Axes, coordinates: Array, codes: Codes, classes: Labels) -> None:
    for k, (label, colour, marker) in enumerate(_styles(classes)):
        horizontal, vertical = coordinates[codes == k].T
        axes.scatter(
            horizontal,
            vertical,
            s=26,
            color=colour,
            marker=marker,
            edgecolors="black",
            linewidths=0.6,
            label=label,
        )
    axes.legend(title="class", framealpha=0.9)


def _styles(classes: Labels) -> Iterator[tuple[str, str, str]]:
    for label, colour, marker in zip(classes.tolist(), cycle(COLOURS), cycle(MARKERS)):
        yield str(label), colour, marker


def _new_axes() -> Axes:
    _, axes = plt.subplots(figsize=(7, 5.25), layout="constrained")
    return axes
