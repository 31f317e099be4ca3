"""Whether events happen as often as the probabilities said, as a picture (extra `plots`)."""

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes

from posteriori.decision.calibration import ReliabilityCurve, reliability_curve
from posteriori.errors import ParameterError
from posteriori.report.palette import GREY, Style, new_axes, styles

_ROOM = 0.03
"""What is left around the axes, so that no marker is cut."""


def calibration(
    y: Any,
    proba: Any,
    *,
    label: Any = None,
    level: float = 0.95,
    bins: int | None = None,
    classes: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how often a class occurred against how probable it was said to be, in bins of rows.

    On a calibrated model the points lie on the diagonal; the band is the exact confidence interval
    of each bin at the given `level` (see `reliability_curve`, which reads all other arguments).
    `proba` may be a dict from the names of several models to their probabilities. Gives the Axes.

    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> y, proba = [0, 0, 0, 1, 0, 1, 1, 1], [0.1, 0.1, 0.2, 0.2, 0.7, 0.7, 0.8, 0.8]
    >>> ax = calibration(y, proba, bins=2)
    >>> ax.get_xlabel(), ax.get_lines()[1].get_ydata()
    ('predicted probability of class 1', array([0.25, 0.75]))
    """
    models = dict(proba) if isinstance(proba, Mapping) else {"model": proba}
    if not models:
        raise ParameterError("proba has no models.", "Pass {name: probabilities}.")
    curves = [
        reliability_curve(y, each, label=label, level=level, bins=bins, classes=classes)
        for each in models.values()
    ]
    axes = new_axes(ax)
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle=":", label="calibrated")
    for style, curve in zip(styles(models), curves, strict=True):
        _draw_curve(axes, curve, style)
    axes.set_xlim(-_ROOM, 1 + _ROOM)
    axes.set_ylim(-_ROOM, 1 + _ROOM)
    axes.set_xlabel(f"predicted probability of class {curves[0].label}")
    axes.set_ylabel(f"share of class {curves[0].label}, with {100 * level:g} % interval")
    axes.legend(loc="upper left")
    return axes


def _draw_curve(axes: Axes, curve: ReliabilityCurve, style: Style) -> None:
    """The shares of the bins in their band; an interval where there is one bin only."""
    ends = curve.predicted, curve.low, curve.high
    if len(curve.predicted) > 1:
        axes.fill_between(*ends, color=style.colour, alpha=0.15, linewidth=0)
    else:
        axes.vlines(*ends, color=style.colour)
    axes.plot(
        curve.predicted,
        curve.observed,
        color=style.colour,
        linestyle=style.line,
        marker=style.marker,
        markeredgecolor="black",
        markeredgewidth=0.5,
        label=style.label,
    )
