"""Coefficients with their intervals: the forest plot.

Conventions: intervals (3, n, c) are estimates, low and high ends of n terms and c contrasts: one
for two classes, K - 1 for more.
"""

from collections.abc import Sequence
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
from posteriori.report.plots.style import GREY, MARKER_EDGE, add_legend, new_axes, styles
from posteriori.typing import Array

_LARGEST = 690.0
"""The largest log odds whose exponential is a double."""

_TERM_HEIGHT = 0.28
"""Inches for a term of a new figure; a font of 10 points takes half of it."""

_MARGIN = 0.06


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
    known, classes, found = _intervals(model, level, odds_ratios)
    if terms is None:
        terms = [term for term in known if term != INTERCEPT]
    terms = [terms] if isinstance(terms, str) else list(terms)
    unknown = [term for term in terms if term not in known]
    if unknown:
        raise ParameterError(f"The model has no term {unknown[0]!r}.", f"Use some of {known[:8]}.")
    if not terms:
        raise ParameterError("There is no term to draw.", "Pass terms=['intercept'].")
    found = found[:, [known.index(term) for term in terms]]
    if sort:
        order = np.argsort(-abs(found[0]).max(axis=1), kind="stable")
        found, terms = found[:, order], [terms[i] for i in order]
    return _draw(found, terms, classes, model, level, odds_ratios, ax)


def _draw(
    found: Array,
    terms: list[str],
    classes: list[Any],
    model: LikelihoodModel,
    level: float,
    odds_ratios: bool,
    ax: Axes | None,
) -> Axes:
    n, contrasts = found.shape[1:]
    height = max(5.25, 1.2 + _TERM_HEIGHT * n * max(1.0, contrasts / 2))
    axes = new_axes(ax, height, 7.0 + 0.07 * max(0, max(map(len, terms)) - 25))
    scale = np.exp if odds_ratios else np.positive
    window = _window(found, _LARGEST if odds_ratios else np.inf)
    for k, style in enumerate(styles(classes)):
        heights = np.arange(n) + 0.6 * ((k + 0.5) / contrasts - 0.5)
        middle, low, high = scale(np.clip(found[..., k], *window))
        axes.hlines(heights, low, high, color=style.colour, linewidth=1.8)
        point: dict[str, Any] = {"linestyle": "none", "color": style.colour}
        axes.plot(middle, heights, marker=style.marker, label=style.label, **MARKER_EDGE, **point)
        for end, marker, beyond in (
            (window[0], "<", found[1, :, k] < window[0]),
            (window[1], ">", found[2, :, k] > window[1]),
        ):
            if beyond.any():
                edge = np.full(beyond.sum(), scale(end))
                axes.plot(edge, heights[beyond], marker=marker, clip_on=False, **point)
    axes.axvline(scale(0.0), color=GREY, linewidth=1, zorder=0)
    axes.set_xlim(*scale(window))
    if odds_ratios:
        _use_log_axis(axes, window)
    points = 72 * axes.get_window_extent().height / axes.figure.dpi / n
    axes.set_yticks(np.arange(n), terms, fontsize=min(10.0, 0.85 * points))
    axes.set_ylim(n - 0.5, -0.5)
    axes.set_xlabel(f"{_quantity(model, odds_ratios)}\nwith {100 * level:g} % interval")
    if classes != [None]:
        add_legend(axes, title=f"class, against {model.classes_.tolist()[0]}")
    return axes


def _intervals(
    model: LikelihoodModel, level: float, odds_ratios: bool
) -> tuple[list[str], list[Any], Array]:
    """Terms, the classes of the contrasts ([None] for one contrast), and the intervals."""
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
    terms, classes = (list(dict.fromkeys(table.get(name, [None]))) for name in ("term", "class"))
    columns = np.array([table[name] for name in ("estimate", "conf_low", "conf_high")], float)
    return terms, classes, columns.reshape(3, len(classes), -1).transpose(0, 2, 1)


def _window(found: Array, largest: float) -> tuple[float, float]:
    """The limits of the axis: zero, and all ends that are finite and not beyond `largest`."""
    ends = np.append(found[np.isfinite(found) & (abs(found) <= largest)], 0.0)
    margin = _MARGIN * (ends.max() - ends.min()) or 1.0
    return max(ends.min() - margin, -largest), min(ends.max() + margin, largest)


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
