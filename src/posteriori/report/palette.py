"""Colours, markers and lines that the colour-blind can tell apart, and new axes to draw on."""

from collections.abc import Iterable, Sequence
from itertools import cycle
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from posteriori.typing import Array

# The colours of Okabe and Ito, which the colour-blind can tell apart; each class also has a marker
# and a line of its own. Seven colours and eight of the others: no pair comes twice within 56.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES: tuple[Any, ...] = (
    "-",
    "--",
    "-.",
    ":",
    (0, (7, 1, 1, 1, 1, 1)),
    (0, (9, 2)),
    (0, (2, 2)),
    (0, (9, 2, 2, 2)),
)

BLUE, VERMILION = "#0072B2", "#D55E00"
GREY = "0.35"
"""For what is no class: boundaries, reference lines, all rows together."""


class Style(NamedTuple):
    """How a class, or one of several models, is drawn."""

    label: str
    colour: str
    marker: str
    line: Any


def styles(labels: Iterable[Any]) -> list[Style]:
    """A style for each label, in their order.

    >>> [style.marker for style in styles(["ham", "spam"])]
    ['o', 's']
    """
    return [
        Style(str(label), colour, marker, line)
        for label, colour, marker, line in zip(labels, cycle(COLOURS), cycle(MARKERS), cycle(LINES))
    ]


def class_colours(n_classes: int) -> Array:
    """The colour of each class as red, green and blue (K, 3); they repeat after seven."""
    return np.array([to_rgb(colour) for colour, _ in zip(cycle(COLOURS), range(n_classes))])


def tinted(colour: Any, strength: Any) -> Array:
    """White mixed with a colour (..., 3) by a strength (...) from 0, white, to 1, the colour.

    >>> tinted((1.0, 0.0, 0.0), 0.5)
    array([1. , 0.5, 0.5])
    """
    return 1 - np.asarray(strength)[..., None] * (1 - np.asarray(colour))


def legend_above(axes: Axes, handles: Sequence[Any] | None = None) -> None:
    """A legend over the axes, where it hides nothing."""
    given = {} if handles is None else {"handles": handles}
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False, **given)


def new_axes(ax: Axes | None, height: float = 5.25) -> Axes:
    """The axes given, or those of a new figure."""
    if ax is not None:
        return ax
    _, axes = plt.subplots(figsize=(7, height), layout="constrained")
    return axes
