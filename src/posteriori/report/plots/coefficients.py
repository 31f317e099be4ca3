"""Coefficients with their intervals, priors and posteriors, and how a fit found them.

Conventions: intervals (3, c, n) are estimates, low and high ends of c contrasts and n terms: one
contrast for two classes, K - 1 for more.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter
from scipy import stats
from sklearn.base import clone

from posteriori.arguments import check_choice, check_fraction
from posteriori.decision.probabilities import class_place
from posteriori.errors import InferenceError, ParameterError
from posteriori.models.bayesian import BROAD, BayesianLogisticRegression
from posteriori.models.likelihood_model import LikelihoodModel
from posteriori.models.logistic import LogisticRegression
from posteriori.posterior.coefficient_posterior import Posterior
from posteriori.posterior.coefficient_table import INTERCEPT
from posteriori.posterior.gaussian import DiagonalGaussian, Gaussian
from posteriori.posterior.monte_carlo import Draws
from posteriori.posterior.priors import GaussianPrior
from posteriori.report.plots import style
from posteriori.typing import Array

_LARGEST = 690.0
"""The largest log odds whose exponential is a double."""

_TERM_HEIGHT = 0.28
"""Inches for a term of a new figure; a font of 10 points takes half of it."""

_WIDEST = 20.0
"""The largest distance from the posterior mean that is drawn, in posterior standard deviations."""


def forest(
    model: LikelihoodModel,
    *,
    level: float = 0.95,
    terms: Sequence[str] | None = None,
    odds_ratios: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw the coefficients of `model.tidy(level)` with their intervals, one line per term.

    `terms` chooses some of them, in their order; by default all but the intercept. With more than
    two classes there is a marker for each class against the first. `odds_ratios` draws exp(w) of a
    logistic model, on a logarithmic axis. A line to an infinite end, or to one beyond the doubles,
    goes to the edge. Coefficients have the inverse units of their columns: standardise these to
    compare them. A new figure grows with the terms.

    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 1, 0, 1, 1]
    >>> ax = forest(LogisticRegression().fit(X, y))
    >>> ax.get_xlabel(), [text.get_text() for text in ax.get_yticklabels()]
    ('log odds of class 1 per unit of the column\\nwith 95 % interval', ['x0'])
    """
    check_fraction("level", level)
    if not isinstance(model, LikelihoodModel):
        raise ParameterError(
            f"{type(model).__name__} has no coefficients with intervals.",
            "Pass a model that was fitted by likelihood, such as posteriori.LogisticRegression.",
        )
    model._check_odds(odds_ratios)
    labels: Any = getattr(model, "classes_", None)
    table = model._fitted_inference().table(labels, level)
    known, classes = list(dict.fromkeys(table.terms)), list(dict.fromkeys(table.classes or [None]))
    if terms is None:
        terms = [term for term in known if term != INTERCEPT]
    terms = [terms] if isinstance(terms, str) else list(terms)
    for term in terms:
        check_choice("term", term, known)
    found = np.array([table.estimate, table.conf_low, table.conf_high])
    found = found.reshape(3, len(classes), -1)[..., [known.index(term) for term in terms]]
    n = len(terms)
    height = max(5.25, 1.2 + _TERM_HEIGHT * n * max(1.0, len(classes) / 2))
    axes = style.new_axes(ax, height, 7.0 + 0.07 * max(0, max(map(len, terms)) - 25))
    _draw_intervals(axes, found, classes, odds_ratios)
    points = 72 * axes.get_window_extent().height / axes.figure.dpi / n
    axes.set_yticks(np.arange(n), terms, fontsize=min(10.0, 0.85 * points))
    axes.set_ylim(n - 0.5, -0.5)
    what = "coefficient"
    if isinstance(model, LogisticRegression | BayesianLogisticRegression):
        of = f" of class {labels[1]}" if len(labels) == 2 else ""
        what = f"{'odds ratio' if odds_ratios else 'log odds'}{of} per unit of the column"
    axes.set_xlabel(f"{what}\nwith {100 * level:g} % interval")
    if table.classes is not None:
        style.add_legend(axes, title=f"class, against {table.reference}")
    return axes


def _draw_intervals(axes: Axes, found: Array, classes: list[Any], odds_ratios: bool) -> None:
    """Points and horizontal lines, between limits that show all ends that can be drawn."""
    scale, largest = (np.exp, _LARGEST) if odds_ratios else (np.positive, np.inf)
    ends = np.append(found[np.isfinite(found) & (abs(found) <= largest)], 0.0)
    margin = 0.06 * (ends.max() - ends.min()) or 1.0
    left, right = max(ends.min() - margin, -largest), min(ends.max() + margin, largest)
    for k, label in enumerate(classes):
        heights = np.arange(found.shape[2]) + 0.6 * ((k + 0.5) / len(classes) - 0.5)
        middle, low, high = scale(np.clip(found[:, k], left, right))
        axes.hlines(heights, low, high, color=style.colour_of(k), linewidth=1.8)
        axes.plot(middle, heights, label=str(label), **style.point_style(k))
    axes.axvline(scale(0.0), color=style.GREY, linewidth=1, zorder=0)
    if odds_ratios:
        axes.set_xscale("log")
        if right - left < np.log(1000):
            near = right - left < np.log(10)
            axes.xaxis.set_major_locator(MaxNLocator(7) if near else LogLocator(subs=(1, 2, 5)))
            axes.xaxis.set_major_formatter("{x:g}")
            axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlim(scale(left), scale(right))


def prior_and_posterior(
    model: BayesianLogisticRegression, term: str, *, label: Any = None, ax: Axes | None = None
) -> Axes:
    """Draw p(w) and p(w|t) of one coefficient, in the units of its column.

    Both are Gaussians, or the second is a histogram of draws. The prior of a slope has the standard
    deviation 1/(s√α), with α its precision for standardised columns and s the standard deviation of
    its column; that of the intercept is of columns that are not centred, as `intercept_` is. With
    more than two classes `label` is the class; coefficients sum to zero over the classes. After
    `update` the prior is the posterior before.

    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 1, 0, 1, 1]
    >>> ax = prior_and_posterior(BayesianLogisticRegression(prior=1.0).fit(X, y), "x0")
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['prior: mean 0, sd 1', 'posterior: mean 0.767, sd 0.547']
    """
    found, prior, labels = model.posterior_, _prior(model), model.classes_.tolist()
    terms = found.coefficient_map.terms
    check_choice("term", term, terms)
    if len(labels) == 2 and label not in (None, labels[1]):
        raise ParameterError(
            f"The coefficients of two classes are those of {labels[1]!r}.", "Leave label out."
        )
    k = 0 if len(labels) == 2 else class_place(label, model.classes_)
    flat = k * len(terms) + terms.index(term)
    mean, sd = found.mean[flat], found.standard_deviation[flat]
    prior_mean, prior_sd = prior.mean[flat], prior.standard_deviation[flat]
    wide = np.array([prior_mean - 3 * prior_sd, prior_mean + 3 * prior_sd])
    wide = np.clip(wide, mean - _WIDEST * sd, mean + _WIDEST * sd)
    x = np.linspace(min(wide[0], mean - 4 * sd), max(wide[1], mean + 4 * sd), 401)
    axes = style.new_axes(ax)
    text = f"prior: mean {prior_mean:.3g}, sd {prior_sd:.3g}"
    density = stats.norm.pdf(x, prior_mean, prior_sd)
    axes.plot(x, density, color=style.VERMILION, linestyle="--", linewidth=2, label=text)
    text = f"posterior: mean {mean:.3g}, sd {sd:.3g}"
    if not isinstance(found.free, Draws):
        density = stats.norm.pdf(x, mean, sd)
        axes.plot(x, density, color=style.BLUE, linewidth=2, label=text)
        axes.fill_between(x, density, color=style.BLUE, alpha=0.2, linewidth=0)
    else:
        filled: dict[str, Any] = {"histtype": "stepfilled", "alpha": 0.5, "color": style.BLUE}
        axes.hist(found.draws[..., flat].ravel(), 30, density=True, label=text, **filled)
    axes.axvline(0.0, color=style.GREY, linewidth=1, zorder=0)
    axes.set(xlim=(x[0], x[-1]), ylim=(0, None), ylabel="density")
    of_class = "" if len(labels) == 2 else f", class {labels[k]}"
    axes.set_xlabel(f"coefficient of {term}{of_class}")
    style.add_legend(axes)
    return axes


def _prior(model: BayesianLogisticRegression) -> Posterior:
    """The prior in the form of a posterior, which has means and deviations in the user's units."""
    if isinstance(model.prior_, Posterior):
        return model.prior_
    if model.prior_ == "jeffreys":
        raise InferenceError(
            "Jeffreys' prior has no density of one coefficient: its integral is not known.",
            "Use a Gaussian prior, such as prior='evidence'.",
        )
    penalty, coef_map = model._inference.objective.penalty, model.posterior_.coefficient_map
    c = coef_map.coordinates.c
    if penalty.precision.ndim == 1:
        return Posterior(coef_map, DiagonalGaussian(penalty.means(c), penalty.diagonal(c)))
    return Posterior(coef_map, Gaussian.of(penalty.means(c), penalty.matrix(c)))


def evidence_curve(
    X: Any,
    y: Any,
    *,
    precisions: Sequence[float] | None = None,
    estimator: BayesianLogisticRegression | None = None,
    sample_weight: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the log evidence ln p(t|α) against the precision α of the prior, and mark the best.

    α is the precision of all slopes of standardised columns, that of the intercept being 0.01. The
    estimator, by default a `BayesianLogisticRegression` by Laplace's approximation, is fitted once
    for each of `precisions`, and once with prior="evidence", which finds the marked one. By default
    there are 25 precisions, from a thousandth to a thousandfold of the marked one and of 1.

    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 1, 0, 1, 1]
    >>> ax = evidence_curve(X, y, precisions=[0.01, 0.1, 1.0, 10.0])
    >>> ax.get_lines()[0].get_ydata().round(2)
    array([-6.59, -5.86, -6.09, -6.55])
    """
    base = BayesianLogisticRegression(inference="laplace") if estimator is None else estimator

    def fitted(prior: Any) -> Any:
        return clone(base).set_params(prior=prior).fit(X, y, sample_weight=sample_weight)

    chosen = fitted("evidence")
    best = float(np.exp(np.log(chosen.prior_.precision).mean()))  # of many rows, one per column
    if precisions is None:
        precisions = [*np.geomspace(min(best, 1.0) / 1e3, max(best, 1.0) * 1e3, 24), best]
    grid = sorted(map(float, precisions))
    fixed: dict[str, Any] = {"intercept_precision": BROAD**-2, "units": "standardised"}
    values = [fitted(GaussianPrior(each, **fixed)).log_evidence_ for each in grid]
    axes = style.new_axes(ax)
    axes.plot(grid, values, color=style.BLUE, marker="o", markersize=4, label="log evidence")
    star = style.point_style(5) | {"marker": "*", "markersize": 16}
    axes.plot([best], [chosen.log_evidence_], label=f"chosen: precision {best:.3g}", **star)
    axes.set(xscale="log", xlabel="precision of the prior, for standardised columns")
    axes.set_ylabel("log evidence")
    style.add_legend(axes)
    return axes


def convergence(
    model: LikelihoodModel,
    *,
    against: Literal["seconds", "passes"] = "seconds",
    ax: Axes | None = None,
) -> Axes:
    """Draw how the objective and the distance from the optimum fell during a fit.

    `against` is "seconds", or "passes" over the rows. Both curves share a logarithmic axis: the
    objective less its minimum, in units of ln p, and the Newton decrement, about how many standard
    errors the parameters were from the optimum. Steps on a subsample are hollow and have no
    objective, because that of a subsample has another minimum.

    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from posteriori import LogisticRegression
    >>> model = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])
    >>> ax = convergence(model, against="passes")
    >>> ax.get_yscale(), ax.get_xlabel(), ax.get_ylabel()
    ('log', 'passes over the rows', 'distance from the optimum')
    """
    check_choice("against", against, ["seconds", "passes"])
    steps = model.solution_.trace
    if against == "seconds":
        when = np.array([step.seconds for step in steps])
    else:
        passes = [step.row_fraction * step.n_evaluations for step in steps]
        when = np.cumsum([0.0, *passes[:-1]])
    whole = np.array([step.row_fraction >= 1 for step in steps])
    above = np.array([step.objective for step in steps]) - model.solution_.value
    decrement = np.array([step.decrement for step in steps])
    positive = np.where(decrement > 0, decrement, np.nan)
    axes = style.new_axes(ax)
    drawn = np.where(whole & (above > 0), above, np.nan)  # zero: rounding leaves no digit
    axes.plot(when, drawn, "o-", color=style.BLUE, label="objective above its minimum")
    axes.plot(when, positive, "s-", color=style.VERMILION, label="standard errors from the optimum")
    if not whole.all():
        look: dict[str, Any] = {"color": style.VERMILION, "markerfacecolor": "white"}
        look["label"] = "on a subsample of the rows"
        axes.plot(when[~whole], positive[~whole], "s", **look)
    axes.set(yscale="log", ylabel="distance from the optimum")
    axes.set_xlabel("seconds" if against == "seconds" else "passes over the rows")
    style.add_legend(axes)
    return axes
