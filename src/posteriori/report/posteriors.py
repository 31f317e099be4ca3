"""What the rows taught a Bayesian model, and what they say of its prior (extra `plots`)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from scipy import stats
from sklearn.base import clone

from posteriori.arguments import is_number
from posteriori.decision.probabilities import class_place
from posteriori.errors import InferenceError, ParameterError
from posteriori.models.bayesian import BROAD, BayesianLogisticRegression
from posteriori.posterior.coefficient_posterior import Posterior
from posteriori.posterior.priors import GaussianPrior, Penalty
from posteriori.report.palette import BLUE, GREY, VERMILION, legend_above, new_axes
from posteriori.typing import Array

_POINTS = 401
_BINS = 30
_WIDEST = 20.0
"""Standard deviations of the posterior that are shown to either side of it at most."""


@dataclass(frozen=True)
class Normal:
    """A Gaussian over one coefficient."""

    mean: float
    sd: float

    def density(self, x: Array) -> Array:
        return stats.norm.pdf(x, self.mean, self.sd)

    def __str__(self) -> str:
        return f"mean {self.mean:.3g}, sd {self.sd:.3g}"


@dataclass(frozen=True)
class Place:
    """A coefficient by the class and the term that it belongs to."""

    k: int
    i: int


def prior_and_posterior(
    model: BayesianLogisticRegression, term: str, *, label: Any = None, ax: Axes | None = None
) -> Axes:
    """Draw p(w) and p(w|t) of one coefficient, in the units of its column.

    Both are Gaussians, or the second is a histogram of draws. The prior of a slope has the standard
    deviation 1/(s√α), with α its precision for standardised columns and s the standard deviation of
    its column; that of the intercept is of columns that are not centred, as `intercept_` is. With
    more than two classes `label` is the class, whose coefficients sum to zero with those of the
    others. After `update` the prior is the posterior before. Gives the Axes.

    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 1, 0, 1, 1]
    >>> ax = prior_and_posterior(BayesianLogisticRegression(prior=1.0).fit(X, y), "x0")
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['prior: mean 0, sd 1', 'posterior: mean 0.767, sd 0.547']
    """
    place = _place(model, term, label)
    prior, posterior = _prior(model, place), _marginal(model.posterior_, place)
    axes = new_axes(ax)
    axes.set_xlim(*_window(prior, posterior))
    x = np.linspace(*axes.get_xlim(), _POINTS)
    axes.plot(
        x, prior.density(x), color=VERMILION, linestyle="--", linewidth=2, label=f"prior: {prior}"
    )
    _draw_posterior(axes, x, posterior, _draws(model.posterior_, place))
    axes.axvline(0.0, color=GREY, linewidth=1, zorder=0)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(f"coefficient of {term}" + _of_class(model, place.k))
    axes.set_ylabel("density")
    axes.legend()
    return axes


def evidence_curve(
    X: Any,
    y: Any,
    *,
    precisions: Sequence[float] | None = None,
    estimator: BayesianLogisticRegression | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the log evidence ln p(t|α) against the precision α of the prior, and mark the best.

    α is the precision of all slopes of standardised columns, that of the intercept being 0.01. The
    estimator, by default a `BayesianLogisticRegression` by Laplace's approximation, is fitted once
    at every one of `precisions`, and once with prior="evidence", which finds the marked one by
    itself. By default there are 25 of them about the marked one and about 1, to a thousandth and to
    a thousandfold. Gives the Axes.

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
            f"A {type(base).__name__} has no evidence to draw.",
            "Pass a BayesianLogisticRegression, or leave estimator out.",
        )
    chosen = clone(base).set_params(prior="evidence").fit(X, y)
    best = float(np.exp(np.log(chosen.prior_.precision).mean()))  # of many rows, one a column
    grid = _about(best) if precisions is None else _checked(precisions)
    values = [_log_evidence(base, X, y, precision) for precision in grid]
    axes = new_axes(ax)
    axes.plot(grid, values, color=BLUE, marker="o", markersize=4, label="log evidence")
    axes.plot(
        [best],
        [chosen.log_evidence_],
        linestyle="none",
        marker="*",
        markersize=16,
        color=VERMILION,
        markeredgecolor="black",
        label=f"chosen: precision {best:.3g}",
    )
    axes.set_xscale("log")
    axes.set_xlabel("precision of the prior, for standardised columns")
    axes.set_ylabel("log evidence")
    legend_above(axes)
    return axes


def _draw_posterior(axes: Axes, x: Array, found: Normal, draws: Array | None) -> None:
    """The Gaussian, or a histogram of the draws where there are some."""
    told = f"posterior: {found}"
    if draws is not None:
        axes.hist(
            draws, _BINS, density=True, histtype="stepfilled", color=BLUE, alpha=0.5, label=told
        )
        return
    axes.plot(x, found.density(x), color=BLUE, linewidth=2, label=told)
    axes.fill_between(x, found.density(x), color=BLUE, alpha=0.2, linewidth=0)


def _log_evidence(base: BayesianLogisticRegression, X: Any, y: Any, precision: float) -> float:
    prior = GaussianPrior(
        precision=float(precision), intercept_precision=BROAD**-2, units="standardised"
    )
    return float(clone(base).set_params(prior=prior).fit(X, y).log_evidence_)


def _about(best: float) -> Array:
    """Precisions about one, where standardised columns have theirs, and about the best."""
    return np.sort(np.append(np.geomspace(min(best, 1.0) / 1e3, max(best, 1.0) * 1e3, 24), best))


def _checked(precisions: Sequence[float]) -> Array:
    bad = [p for p in precisions if not (is_number(p) and 0 < p < np.inf)]
    if bad or not len(precisions):
        raise ParameterError(
            f"precisions has {bad[0]!r}." if bad else "precisions is empty.",
            "Pass numbers above zero.",
        )
    return np.sort(np.asarray(precisions, dtype=np.float64))


def _place(model: BayesianLogisticRegression, term: str, label: Any) -> Place:
    if not isinstance(model, BayesianLogisticRegression) or not hasattr(model, "posterior_"):
        raise ParameterError(
            f"This {type(model).__name__} has no posterior over its coefficients.",
            "Pass a fitted BayesianLogisticRegression.",
        )
    terms = model.posterior_.shown.terms
    if term not in terms:
        raise ParameterError(f"The model has no term {term!r}.", f"Use one of {list(terms[:8])}.")
    two = len(model.classes_) == 2
    if two and label not in (None, model.classes_.tolist()[1]):
        raise ParameterError(
            f"The coefficients of two classes are those of {model.classes_.tolist()[1]!r}.",
            "Leave label out.",
        )
    return Place(0 if two else class_place(label, model.classes_), terms.index(term))


def _flat(posterior: Posterior, place: Place) -> int:
    return place.k * len(posterior.shown.terms) + place.i


def _marginal(posterior: Posterior, place: Place) -> Normal:
    at = _flat(posterior, place)
    return Normal(float(posterior.mean[at]), float(posterior.standard_deviation[at]))


def _draws(posterior: Posterior, place: Place) -> Array | None:
    return (
        None if posterior.chains is None else posterior.draws[..., _flat(posterior, place)].ravel()
    )


def _prior(model: BayesianLogisticRegression, place: Place) -> Normal:
    """The prior of one coefficient."""
    given = model.prior_
    if isinstance(given, Posterior):
        return _marginal(given, place)
    if given == "jeffreys":
        raise InferenceError(
            "Jeffreys' prior has no density of one coefficient: its integral is not known.",
            "Use a Gaussian prior, such as prior='evidence'.",
        )
    return _through(model._inference.objective.penalty, model.posterior_, place)


def _through(penalty: Penalty, posterior: Posterior, place: Place) -> Normal:
    """N(tᵀm, tᵀA⁻¹t), where t takes the free vectors V (c, q) to the coefficient."""
    shown, c = posterior.shown, posterior.shown.coordinates.c
    along = shown.standard.pull_back(np.eye(len(shown.terms))[place.i])
    t = np.kron(shown.coordinates.contrasts[place.k], along)
    if penalty.precision.ndim == 1:
        variance = t @ (t / penalty.diagonal(c))
    else:
        variance = t @ np.linalg.solve(penalty.matrix(c), t)
    return Normal(float(t @ penalty.means(c)), float(np.sqrt(variance)))


def _window(prior: Normal, posterior: Normal) -> tuple[float, float]:
    """All of the posterior, and of the prior as much as leaves the posterior legible."""
    wide = np.array([prior.mean - 3 * prior.sd, prior.mean + 3 * prior.sd])
    low, high = np.clip(
        wide, posterior.mean - _WIDEST * posterior.sd, posterior.mean + _WIDEST * posterior.sd
    )
    all_of_it = posterior.mean - 4 * posterior.sd, posterior.mean + 4 * posterior.sd
    return min(float(low), all_of_it[0]), max(float(high), all_of_it[1])


def _of_class(model: BayesianLogisticRegression, k: int) -> str:
    return "" if len(model.classes_) == 2 else f", class {model.classes_.tolist()[k]}"
