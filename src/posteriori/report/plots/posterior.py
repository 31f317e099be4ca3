"""Prior and posterior of a coefficient, the evidence of a prior, and the convergence of a fit."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from scipy import stats
from sklearn.base import clone

from posteriori.arguments import check_choice, is_number
from posteriori.decision.probabilities import class_place
from posteriori.errors import InferenceError, ParameterError
from posteriori.models.bayesian import BROAD, BayesianLogisticRegression
from posteriori.posterior.coefficient_posterior import Posterior
from posteriori.posterior.priors import GaussianPrior
from posteriori.report.plots.style import BLUE, GREY, VERMILION, add_legend, new_axes
from posteriori.solve.objective import Iteration, Solution
from posteriori.typing import Array

_BINS = 30
_WIDEST = 20.0
"""The largest distance from the posterior mean that is drawn, in posterior standard deviations."""


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
    k, i = _place(model, term, label)
    found = model.posterior_
    flat = k * len(found.coefficient_map.terms) + i
    mean, sd = float(found.mean[flat]), float(found.standard_deviation[flat])
    prior_mean, prior_sd = _prior(model, k, i)
    wide = np.array([prior_mean - 3 * prior_sd, prior_mean + 3 * prior_sd])
    wide = np.clip(wide, mean - _WIDEST * sd, mean + _WIDEST * sd)
    x = np.linspace(min(wide[0], mean - 4 * sd), max(wide[1], mean + 4 * sd), 401)
    axes = new_axes(ax)
    text = f"prior: mean {prior_mean:.3g}, sd {prior_sd:.3g}"
    density = stats.norm.pdf(x, prior_mean, prior_sd)
    axes.plot(x, density, color=VERMILION, linestyle="--", linewidth=2, label=text)
    text = f"posterior: mean {mean:.3g}, sd {sd:.3g}"
    if found.chains is None:
        density = stats.norm.pdf(x, mean, sd)
        axes.plot(x, density, color=BLUE, linewidth=2, label=text)
        axes.fill_between(x, density, color=BLUE, alpha=0.2, linewidth=0)
    else:
        filled: dict[str, Any] = {"histtype": "stepfilled", "alpha": 0.5, "color": BLUE}
        axes.hist(found.draws[..., flat].ravel(), _BINS, density=True, label=text, **filled)
    axes.axvline(0.0, color=GREY, linewidth=1, zorder=0)
    axes.set_xlim(x[0], x[-1])
    axes.set_ylim(bottom=0)
    of_class = "" if len(model.classes_) == 2 else f", class {model.classes_.tolist()[k]}"
    axes.set_xlabel(f"coefficient of {term}{of_class}")
    axes.set_ylabel("density")
    add_legend(axes)
    return axes


def _place(model: BayesianLogisticRegression, term: str, label: Any) -> tuple[int, int]:
    """The place of the class, zero for two classes, and that of the term."""
    if not isinstance(model, BayesianLogisticRegression) or not hasattr(model, "posterior_"):
        raise ParameterError(
            f"This {type(model).__name__} has no posterior over its coefficients.",
            "Pass a fitted BayesianLogisticRegression.",
        )
    terms = model.posterior_.coefficient_map.terms
    if term not in terms:
        raise ParameterError(f"The model has no term {term!r}.", f"Use one of {list(terms[:8])}.")
    labels = model.classes_.tolist()
    if len(labels) > 2:
        return class_place(label, model.classes_), terms.index(term)
    if label not in (None, labels[1]):
        raise ParameterError(
            f"The coefficients of two classes are those of {labels[1]!r}.", "Leave label out."
        )
    return 0, terms.index(term)


def _prior(model: BayesianLogisticRegression, k: int, i: int) -> tuple[float, float]:
    """Mean and standard deviation of the prior of one coefficient.

    It is N(tᵀm, tᵀA⁻¹t), where t maps the free parameters (c, q) to the coefficient.
    """
    coef_map, given = model.posterior_.coefficient_map, model.prior_
    if isinstance(given, Posterior):
        flat = k * len(coef_map.terms) + i
        return float(given.mean[flat]), float(given.standard_deviation[flat])
    if given == "jeffreys":
        raise InferenceError(
            "Jeffreys' prior has no density of one coefficient: its integral is not known.",
            "Use a Gaussian prior, such as prior='evidence'.",
        )
    penalty, c = model._inference.objective.penalty, coef_map.coordinates.c
    along = coef_map.standard.pull_back(np.eye(len(coef_map.terms))[i])
    t = np.kron(coef_map.coordinates.contrasts[k], along)
    if penalty.precision.ndim == 1:
        variance = t @ (t / penalty.diagonal(c))
    else:
        variance = t @ np.linalg.solve(penalty.matrix(c), t)
    return float(t @ penalty.means(c)), float(np.sqrt(variance))


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
    if not isinstance(base, BayesianLogisticRegression):
        raise ParameterError(
            f"{type(base).__name__} has no evidence.",
            "Pass a BayesianLogisticRegression, or leave estimator out.",
        )

    def fitted(prior: Any) -> Any:
        return clone(base).set_params(prior=prior).fit(X, y, sample_weight=sample_weight)

    chosen = fitted("evidence")
    best = float(np.exp(np.log(chosen.prior_.precision).mean()))  # of many rows, one per column
    grid = _around(best) if precisions is None else _checked(precisions)
    fixed: dict[str, Any] = {"intercept_precision": BROAD**-2, "units": "standardised"}
    values = [fitted(GaussianPrior(float(each), **fixed)).log_evidence_ for each in grid]
    axes = new_axes(ax)
    axes.plot(grid, values, color=BLUE, marker="o", markersize=4, label="log evidence")
    star: dict[str, Any] = {"marker": "*", "markersize": 16, "markeredgecolor": "black"}
    star |= {"color": VERMILION, "linestyle": "none", "label": f"chosen: precision {best:.3g}"}
    axes.plot([best], [chosen.log_evidence_], **star)
    axes.set_xscale("log")
    axes.set_xlabel("precision of the prior, for standardised columns")
    axes.set_ylabel("log evidence")
    add_legend(axes, above=True)
    return axes


def _around(best: float) -> Array:
    """Precisions around one, as usual for standardised columns, and around the best."""
    return np.sort(np.append(np.geomspace(min(best, 1.0) / 1e3, max(best, 1.0) * 1e3, 24), best))


def _checked(precisions: Sequence[float]) -> Array:
    bad = [p for p in precisions if not (is_number(p) and 0 < p < np.inf)]
    if bad or not len(precisions):
        raise ParameterError(
            f"precisions has {bad[0]!r}." if bad else "precisions is empty.",
            "Pass numbers above zero.",
        )
    return np.sort(np.asarray(precisions, dtype=np.float64))


def convergence(
    fitted: Any, *, against: Literal["seconds", "passes"] = "seconds", ax: Axes | None = None
) -> Axes:
    """Draw how the objective and the distance from the optimum fell during a fit.

    `fitted` is a model with `solution_`, or that solution; `against` is "seconds", or "passes" over
    the rows. Both curves share a logarithmic axis: the objective less its minimum, in units of
    ln p, and the Newton decrement, about how many standard errors the parameters were from the
    optimum. Steps on a subsample are hollow and have no objective, because that of a subsample has
    another minimum. A step that was shortened has its length beside it.

    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from posteriori import LogisticRegression
    >>> model = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])
    >>> ax = convergence(model, against="passes")
    >>> ax.get_yscale(), ax.get_xlabel(), ax.get_ylabel()
    ('log', 'passes over the rows', 'distance from the optimum')
    """
    check_choice("against", against, ["seconds", "passes"])
    solution = fitted if isinstance(fitted, Solution) else getattr(fitted, "solution_", None)
    if solution is None:
        raise ParameterError(
            f"This {type(fitted).__name__} has no solution_: it is not fitted, or its solver keeps "
            "no trace.",
            "Pass a fitted model such as LogisticRegression, or its solution_.",
        )
    notes = solution.trace
    if not notes or not isinstance(notes[0], Iteration):
        raise ParameterError(
            "This solution has no trace of steps.",
            "Pass a model fitted by a solver, or its solution_.",
        )
    if against == "seconds":
        when = np.array([note.seconds for note in notes])
    else:
        looked = [note.row_fraction * note.n_evaluations for note in notes]
        when = np.concatenate([[0.0], np.cumsum(looked)[:-1]])
    whole = np.array([note.row_fraction >= 1 for note in notes])
    above = np.array([note.objective for note in notes]) - solution.value
    decrement = np.array([note.decrement for note in notes])
    positive = np.where(decrement > 0, decrement, np.nan)
    axes = new_axes(ax)
    drawn = np.where(whole & (above > 0), above, np.nan)  # zero: rounding leaves no digit
    axes.plot(when, drawn, "o-", color=BLUE, label="objective above its minimum")
    axes.plot(when, positive, "s-", color=VERMILION, label="standard errors from the optimum")
    if not whole.all():
        hollow: dict[str, Any] = {"color": VERMILION, "markerfacecolor": "white"}
        hollow["label"] = "on a subsample of the rows"
        axes.plot(when[~whole], positive[~whole], "s", **hollow)
    for x, y, note in zip(when, decrement, notes, strict=True):
        if note.step < 0.9 and y > 0:
            beside: dict[str, Any] = {"xytext": (4, 6), "textcoords": "offset points"}
            axes.annotate(f"{note.step:.2g}", (x, y), fontsize=8, **beside)
    axes.set_yscale("log")
    axes.set_ylabel("distance from the optimum")
    axes.set_xlabel("seconds" if against == "seconds" else "passes over the rows")
    add_legend(axes)
    return axes
