"""The coefficients of a fit with their intervals (extra `plots`)."""

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
from posteriori.report.palette import GREY, Style, new_axes, styles
from posteriori.typing import Array

_ROOM = 0.06
_LARGEST = 690.0
"""A log odds whose exponential is still a double."""

_LINE_HEIGHT = 0.28
"""Inches that a row of the picture takes at least."""


@dataclass(frozen=True, eq=False)
class Intervals:
    """Estimates and ends (terms, contrasts): one contrast for two classes, K - 1 for more.

    `classes` are the classes of the contrasts; a single None where there is but one.
    """

    terms: tuple[str, ...]
    classes: tuple[Any, ...]
    estimate: Array
    low: Array
    high: Array

    def of(self, terms: Sequence[str]) -> "Intervals":
        """Those of some terms, in their order."""
        wanted = [terms] if isinstance(terms, str) else list(terms)
        unknown = [term for term in wanted if term not in self.terms]
        if unknown:
            raise ParameterError(
                f"The model has no term {unknown[0]!r}.", f"Use some of {list(self.terms[:8])}."
            )
        at = [self.terms.index(term) for term in wanted]
        return Intervals(
            tuple(wanted), self.classes, self.estimate[at], self.low[at], self.high[at]
        )

    def by_size(self) -> "Intervals":
        """The largest first, by the largest of the classes."""
        order = np.argsort(-abs(self.estimate).max(axis=1), kind="stable")
        return self.of([self.terms[i] for i in order])


def forest(
    model: LikelihoodModel,
    *,
    level: float = 0.95,
    terms: Sequence[str] | None = None,
    odds_ratios: bool = False,
    sort: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw the coefficients of `model.tidy(level)` with their intervals, one line a term.

    `terms` chooses some of them, in their order; by default it is all but the intercept. With more
    than two classes there is a marker for each class against the first. `odds_ratios` draws exp(w)
    of a logistic model, on a logarithmic axis. `sort` puts the largest estimate, of either sign, at
    the top. An interval without an end, or with one beyond the doubles, ends in an arrow at the
    edge. Coefficients have the inverse units of their columns: standardise these to compare them.
    Gives the Axes.

    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 1, 0, 1, 1]
    >>> ax = forest(LogisticRegression().fit(X, y))
    >>> ax.get_xlabel(), [text.get_text() for text in ax.get_yticklabels()]
    ('log odds of class 1 for one unit more of the column\\nwith 95 % interval', ['x0'])
    """
    check_fraction("level", level)
    check_flag("odds_ratios", odds_ratios)
    check_flag("sort", sort)
    found = _intervals(model, level)
    model._check_odds(odds_ratios)
    shown = [term for term in found.terms if term != INTERCEPT] if terms is None else terms
    found = found.of(shown)
    if not found.terms:
        raise ParameterError("There is no term to draw.", "Pass terms=['intercept'].")
    found = found.by_size() if sort else found
    return _draw(found, model, level, odds_ratios, ax)


def _intervals(model: LikelihoodModel, level: float) -> Intervals:
    """The table of a model, term by term and class by class."""
    if not isinstance(model, LikelihoodModel):
        raise ParameterError(
            f"{type(model).__module__}.{type(model).__name__} has no coefficients with intervals.",
            "Pass a model that was fitted by likelihood, such as posteriori.LogisticRegression.",
        )
    table = model.tidy(level=level)
    if not isinstance(table, dict):
        table = nw.from_native(table, eager_only=True).to_dict(as_series=False)
    terms = list(dict.fromkeys(table["term"]))
    classes = list(dict.fromkeys(table.get("class", [None])))

    def grid(name: str) -> Array:
        return np.array(table[name], dtype=np.float64).reshape(len(classes), -1).T

    return Intervals(
        tuple(terms), tuple(classes), grid("estimate"), grid("conf_low"), grid("conf_high")
    )


def _draw(found: Intervals, model: Any, level: float, odds: bool, ax: Axes | None) -> Axes:
    n, contrasts = found.estimate.shape
    axes = new_axes(ax, max(5.25, 1.2 + _LINE_HEIGHT * n * max(1.0, contrasts / 2)))
    window = _window(found, _LARGEST if odds else np.inf)
    for k, style in enumerate(styles(found.classes)):
        where = np.arange(n) + 0.6 * ((k + 0.5) / contrasts - 0.5)
        _draw_contrast(axes, found, k, where, window, style, odds)
    axes.axvline(1.0 if odds else 0.0, color=GREY, linewidth=1, zorder=0)
    axes.set_xlim(*_shown(np.array(window), odds))
    if odds:
        _use_log_axis(axes, window)
    axes.set_yticks(np.arange(n), found.terms)
    axes.set_ylim(n - 0.5, -0.5)
    axes.set_xlabel(f"{_quantity(model, odds)}\nwith {100 * level:g} % interval")
    if found.classes != (None,):
        axes.legend(title=f"class, against {model.classes_.tolist()[0]}")
    return axes


def _draw_contrast(
    axes: Axes,
    found: Intervals,
    k: int,
    where: Array,
    window: tuple[float, float],
    style: Style,
    odds: bool,
) -> None:
    """The intervals of one class, with arrows where they leave the window."""
    left, right = np.clip(found.low[:, k], *window), np.clip(found.high[:, k], *window)
    middle = np.clip(found.estimate[:, k], *window)
    axes.hlines(where, _shown(left, odds), _shown(right, odds), color=style.colour, linewidth=1.8)
    axes.plot(
        _shown(middle, odds),
        where,
        linestyle="none",
        marker=style.marker,
        color=style.colour,
        markeredgecolor="black",
        markeredgewidth=0.5,
        label=style.label,
    )
    _draw_arrow(axes, window[0], where[found.low[:, k] < window[0]], "<", style, odds)
    _draw_arrow(axes, window[1], where[found.high[:, k] > window[1]], ">", style, odds)


def _draw_arrow(
    axes: Axes, end: float, where: Array, marker: str, style: Style, odds: bool
) -> None:
    """Arrows at an end of the window, for the intervals that leave it."""
    if len(where):
        edge = _shown(np.full(len(where), end), odds)
        axes.plot(edge, where, linestyle="none", marker=marker, color=style.colour, clip_on=False)


def _window(found: Intervals, largest: float) -> tuple[float, float]:
    """What the axis covers: zero, and all ends that are finite and not beyond `largest`."""
    ends = np.concatenate([part.ravel() for part in (found.low, found.estimate, found.high)])
    ends = np.append(ends[np.isfinite(ends) & (abs(ends) <= largest)], 0.0)
    room = _ROOM * (ends.max() - ends.min()) or 1.0
    return max(ends.min() - room, -largest), min(ends.max() + room, largest)


def _shown(values: Array, odds: bool) -> Array:
    return np.exp(values) if odds else values


def _use_log_axis(axes: Axes, window: tuple[float, float]) -> None:
    """Plain numbers along a logarithmic axis, more of them where it is short."""
    decades = (window[1] - window[0]) / np.log(10)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if decades < 3 else (1,)))
    if decades < 6:
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _is_logistic(model: Any) -> bool:
    return isinstance(model, LogisticRegression | BayesianLogisticRegression)


def _quantity(model: Any, odds: bool) -> str:
    if not _is_logistic(model):
        return "coefficient"
    labels = model.classes_.tolist()
    of = f" of class {labels[1]}" if len(labels) == 2 else ""
    return f"{'odds ratio' if odds else 'log odds'}{of} for one unit more of the column"
