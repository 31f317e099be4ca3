"""Coefficients with their intervals: the forest plot."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from posteriori.arguments import check_flag, check_fraction
from posteriori.errors import ParameterError
from posteriori.models.bayesian import BayesianLogisticRegression
from posteriori.models.likelihood_model import LikelihoodModel
from posteriori.models.logistic import LogisticRegression
from posteriori.posterior.coefficient_table import INTERCEPT
from posteriori.report.plots.style import GREY, MARKER_EDGE, Style, add_legend, new_axes, styles
from posteriori.typing import Array

_LARGEST = 690.0
"""The largest log odds whose exponential is a double."""

_TERM_HEIGHT = 0.28
"""Inches for a term of a new figure; a font of 10 points takes half of it."""

_MARGIN = 0.06


@dataclass(frozen=True, eq=False)
class Intervals:
    """Estimates and ends (terms, contrasts): one contrast for two classes, K - 1 for more.

    `classes` are the classes of the contrasts; (None,) where there is one contrast.
    """

    terms: tuple[str, ...]
    classes: tuple[Any, ...]
    estimate: Array
    low: Array
    high: Array

    def of(self, terms: Sequence[str]) -> "Intervals":
        """Those of some terms, in their order."""
        unknown = [term for term in terms if term not in self.terms]
        if unknown:
            raise ParameterError(
                f"The model has no term {unknown[0]!r}.", f"Use some of {list(self.terms[:8])}."
            )
        at = [self.terms.index(term) for term in terms]
        columns = (self.estimate[at], self.low[at], self.high[at])
        return Intervals(tuple(terms), self.classes, *columns)


def forest(
    model: LikelihoodModel,
    *,
    level: float = 0.95,
    terms: Sequence[str] | None = None,
    odds_ratios: bool = False,
    sort: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw the coefficients of `model.tidy(level)` with their intervals, one line per term.

    `terms` chooses some of them, in their order; by default all but the intercept. With more than
    two classes there is a marker for each class against the first. `odds_ratios` draws exp(w) of a
    logistic model, on a logarithmic axis. `sort` puts the largest absolute estimate at the top. An
    infinite end, or one beyond the doubles, is an arrow at the edge. Coefficients have the inverse
    units of their columns: standardise these to compare them. A new figure grows with the terms.

    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 1, 0, 1, 1]
    >>> ax = forest(LogisticRegression().fit(X, y))
    >>> ax.get_xlabel(), [text.get_text() for text in ax.get_yticklabels()]
    ('log odds of class 1 per unit of the column\\nwith 95 % interval', ['x0'])
    """
    check_fraction("level", level)
    check_flag("odds_ratios", odds_ratios)
    check_flag("sort", sort)
    found = _intervals(model, level, odds_ratios)
    if terms is None:
        terms = [term for term in found.terms if term != INTERCEPT]
    found = found.of([terms] if isinstance(terms, str) else list(terms))
    if not found.terms:
        raise ParameterError("There is no term to draw.", "Pass terms=['intercept'].")
    if sort:
        order = np.argsort(-abs(found.estimate).max(axis=1), kind="stable")
        found = found.of([found.terms[i] for i in order])
    return _draw(found, model, level, odds_ratios, ax)


def _intervals(model: LikelihoodModel, level: float, odds_ratios: bool) -> Intervals:
    """The coefficient table of a model as arrays."""
    if not isinstance(model, LikelihoodModel):
        raise ParameterError(
            f"{type(model).__name__} has no coefficients with intervals.",
            "Pass a model that was fitted by likelihood, such as posteriori.LogisticRegression.",
        )
    if odds_ratios:
        model.tidy(level=level, odds_ratios=True)  # an error where there are no odds
    table = model.tidy(level=level)
    if not isinstance(table, dict):
        table = nw.from_native(table, eager_only=True).to_dict(as_series=False)
    terms = tuple(dict.fromkeys(table["term"]))
    classes = tuple(dict.fromkeys(table.get("class", [None])))
    names = ("estimate", "conf_low", "conf_high")
    columns = (np.array(table[name], dtype=np.float64) for name in names)
    return Intervals(terms, classes, *(column.reshape(len(classes), -1).T for column in columns))


def _draw(found: Intervals, model: Any, level: float, odds: bool, ax: Axes | None) -> Axes:
    n, contrasts = found.estimate.shape
    longest = max(map(len, found.terms))
    height = max(5.25, 1.2 + _TERM_HEIGHT * n * max(1.0, contrasts / 2))
    axes = new_axes(ax, height, 7.0 + 0.07 * max(0, longest - 25))
    window = _window(found, _LARGEST if odds else np.inf)
    for k, style in enumerate(styles(found.classes)):
        heights = np.arange(n) + 0.6 * ((k + 0.5) / contrasts - 0.5)
        _draw_contrast(axes, found, k, heights, window, style, odds)
    axes.axvline(1.0 if odds else 0.0, color=GREY, linewidth=1, zorder=0)
    axes.set_xlim(*_scaled(np.array(window), odds))
    if odds:
        _use_log_axis(axes, window)
    points = 72 * axes.get_window_extent().height / axes.figure.dpi / n
    axes.set_yticks(np.arange(n), found.terms, fontsize=min(10.0, 0.85 * points))
    axes.set_ylim(n - 0.5, -0.5)
    axes.set_xlabel(f"{_quantity(model, odds)}\nwith {100 * level:g} % interval")
    if found.classes != (None,):
        add_legend(axes, title=f"class, against {model.classes_.tolist()[0]}")
    return axes


def _draw_contrast(
    axes: Axes,
    found: Intervals,
    k: int,
    heights: Array,
    window: tuple[float, float],
    style: Style,
    odds: bool,
) -> None:
    """The intervals of one class, with arrows where they leave the window."""
    low, middle, high = (
        _scaled(np.clip(part[:, k], *window), odds)
        for part in (found.low, found.estimate, found.high)
    )
    axes.hlines(heights, low, high, color=style.colour, linewidth=1.8)
    point: dict[str, Any] = {"linestyle": "none", "color": style.colour}
    axes.plot(middle, heights, marker=style.marker, label=style.label, **MARKER_EDGE, **point)
    for ends, marker, beyond in (
        (low, "<", found.low[:, k] < window[0]),
        (high, ">", found.high[:, k] > window[1]),
    ):
        if beyond.any():
            axes.plot(ends[beyond], heights[beyond], marker=marker, clip_on=False, **point)


def _window(found: Intervals, largest: float) -> tuple[float, float]:
    """The limits of the axis: zero, and all ends that are finite and not beyond `largest`."""
    ends = np.concatenate([part.ravel() for part in (found.low, found.estimate, found.high)])
    ends = np.append(ends[np.isfinite(ends) & (abs(ends) <= largest)], 0.0)
    margin = _MARGIN * (ends.max() - ends.min()) or 1.0
    return max(ends.min() - margin, -largest), min(ends.max() + margin, largest)


def _scaled(values: Array, odds: bool) -> Array:
    return np.exp(values) if odds else values


def _use_log_axis(axes: Axes, window: tuple[float, float]) -> None:
    """Plain numbers along a logarithmic axis, more of them where it is short."""
    decades = (window[1] - window[0]) / np.log(10)
    axes.set_xscale("log")
    subs = (1, 1.5, 2, 3, 5, 7) if decades < 1 else (1, 2, 5) if decades < 3 else (1,)
    axes.xaxis.set_major_locator(LogLocator(subs=subs))
    if decades < 6:
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _quantity(model: Any, odds: bool) -> str:
    if not isinstance(model, LogisticRegression | BayesianLogisticRegression):
        return "coefficient"
    labels = model.classes_.tolist()
    of = f" of class {labels[1]}" if len(labels) == 2 else ""
    return f"{'odds ratio' if odds else 'log odds'}{of} per unit of the column"
