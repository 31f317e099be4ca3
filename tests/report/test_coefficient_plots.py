"""The forest plot, prior and posterior, the evidence curve, and the trace of a fit."""

from itertools import pairwise
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_iris

from posteriori import (
    GLM,
    BayesianLogisticRegression,
    GaussianPrior,
    LogisticRegression,
    NaiveBayes,
)
from posteriori.errors import InferenceError, ParameterError, SeparationWarning
from posteriori.report.plots import (
    convergence,
    evidence_curve,
    forest,
    prior_and_posterior,
)
from posteriori.report.plots.style import COLOURS, MARKERS
from posteriori.solve.objective import Iteration, Solution, Status

COLUMNS = ["mean radius", "mean texture", "mean symmetry"]


@pytest.fixture(scope="module")
def tumours():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = X[COLUMNS]
    return (X - X.mean()) / X.std(), np.array(["malignant", "benign"])[y]


@pytest.fixture(scope="module")
def model(tumours):
    return LogisticRegression().fit(*tumours)


def ends_of(lines):
    """The ends (n, 2) and heights of horizontal lines."""
    segments = np.array(lines.get_segments())
    return segments[:, :, 0], segments[:, 0, 1]


def terms_of(ax):
    return [text.get_text() for text in ax.get_yticklabels()]


def test_points_and_lines_are_estimates_and_intervals_by_statsmodels(tumours, model):
    X, y = tumours
    expected = sm.Logit(y == "malignant", sm.add_constant(X)).fit(disp=0)
    ax = forest(model, level=0.5)
    assert_allclose(ax.get_lines()[0].get_xdata(), expected.params[1:], rtol=1e-4)
    ends, heights = ends_of(ax.collections[0])
    assert_allclose(ends, expected.conf_int(alpha=0.5)[1:], rtol=1e-4)
    assert_array_equal(heights, [0, 1, 2])
    assert terms_of(ax) == COLUMNS
    assert ax.get_ylim()[0] > ax.get_ylim()[1]
    words = "log odds of class malignant per unit of the column\nwith 50 % interval"
    assert (ax.get_xlabel(), ax.get_legend()) == (words, None)
    ax = forest(model, terms=["mean texture", "intercept"])
    assert terms_of(ax) == ["mean texture", "intercept"]
    assert_allclose(ax.get_lines()[0].get_xdata(), [model.coef_[0, 1], model.intercept_[0]])


def test_odds_ratios_are_exponentials_on_a_logarithmic_axis_about_one(model):
    plain, odds = forest(model), forest(model, odds_ratios=True)
    assert odds.get_xscale() == "log"
    for k in (0, -1):
        data = odds.get_lines()[k].get_xdata(), plain.get_lines()[k].get_xdata()
        assert_allclose(data[0], np.exp(data[1]))
    assert_allclose(ends_of(odds.collections[0])[0], np.exp(ends_of(plain.collections[0])[0]))
    assert odds.get_xlabel().startswith("odds ratio of class malignant")


def test_more_classes_have_a_marker_each_against_the_first(legend):
    X, y = load_iris(return_X_y=True)
    labels = np.array(["setosa", "versicolor", "virginica"])[y]
    ax = forest(model := LogisticRegression(prior=1.0).fit(pl.DataFrame(X), labels))
    for k, line in enumerate(ax.get_lines()[:2]):
        assert_allclose(line.get_xdata(), model.coef_[k + 1] - model.coef_[0])
        assert_allclose(line.get_ydata() - np.arange(4), [-0.15, 0.15][k])
        assert (line.get_color(), line.get_marker()) == (COLOURS[k], MARKERS[k])
    assert ax.get_legend().get_title().get_text() == "class, against setosa"
    assert legend(ax) == ["versicolor", "virginica"]


@pytest.mark.parametrize("odds_ratios", [False, True])
def test_an_infinite_interval_goes_to_both_edges(odds_ratios):
    with pytest.warns(SeparationWarning):
        model = LogisticRegression().fit(np.arange(10.0)[:, None], np.arange(10) > 4)
    ax = forest(model, odds_ratios=odds_ratios)
    assert_allclose(ends_of(ax.collections[0])[0], [ax.get_xlim()])
    assert np.isfinite(ax.get_xlim()).all()


@pytest.mark.parametrize("scale", [20.0, 1.0, 1e-2])
def test_odds_ratios_of_all_sizes_have_ticks(tumours, scale):
    X, y = tumours
    ax = forest(LogisticRegression().fit(X[["mean texture"]] * scale, y), odds_ratios=True)
    ax.figure.draw_without_rendering()
    low, high = ax.get_xlim()
    labels = zip(ax.get_xticks(), ax.get_xticklabels(), strict=True)
    assert sum(low < tick < high and bool(text.get_text()) for tick, text in labels) >= 3


@pytest.mark.parametrize("given", [False, True])
def test_the_labels_of_many_terms_are_whole_and_do_not_overlap(given):
    names = [f"a column with a name of more than forty letters, {j}" for j in range(60)]
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 60)), columns=names)
    model = BayesianLogisticRegression(prior=1.0).fit(X, np.arange(200) % 2)
    ax = forest(model, ax=plt.subplots(layout="constrained")[1] if given else None)
    ax.figure.draw_without_rendering()
    assert terms_of(ax) == names
    boxes = [text.get_window_extent() for text in ax.get_yticklabels()]
    assert all(a.y0 > b.y1 for a, b in pairwise(boxes))
    assert min(box.x0 for box in boxes) >= 0
    assert given or ax.get_yticklabels()[0].get_fontsize() == 10


def test_what_has_no_forest_is_named(model, tumours):
    glm = GLM(family="poisson").fit(np.arange(20.0)[:, None], np.arange(20))
    assert forest(glm).get_xlabel() == "coefficient\nwith 95 % interval"
    for bad, given, words in (
        (glm, {"odds_ratios": True}, "odds ratios"),
        (NaiveBayes().fit(*tumours), {}, "NaiveBayes has no coefficients with intervals"),
        (model, {"terms": ["age"]}, "term='age'"),
        (model, {"level": 95}, "level=95"),
    ):
        with pytest.raises(ParameterError, match=words):
            forest(bad, **given)


# --- Prior and posterior --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(3)
    X = random.normal([5.0, -2.0], [2.0, 0.1], (80, 2))
    return X, random.random(80) < 1 / (1 + np.exp(2.5 - 0.5 * X[:, 0]))


def curves(ax):
    """The two lines by the first word of their labels."""
    return {line.get_label().split(":")[0]: line for line in ax.get_lines()[:2]}


def test_the_prior_is_in_the_units_of_the_columns(rows):
    X, y = rows
    prior = GaussianPrior(4.0, mean=[0.3, -0.2], intercept_precision=0.25, units="standardised")
    model = BayesianLogisticRegression(prior=prior).fit(X, y)
    # b = b' - Σ_j w_j m_j/s_j with b' ~ N(0, 4) and w_j ~ N(mean_j, 1/4), and w_j/s_j as slopes.
    ratio, sd = X.mean(axis=0) / X.std(axis=0), X.std(axis=0)
    expected = {
        "x0": (0.3 / sd[0], 0.5 / sd[0]),
        "x1": (-0.2 / sd[1], 0.5 / sd[1]),
        "intercept": (-ratio @ prior.mean, np.sqrt(4 + (ratio**2).sum() / 4)),
    }
    for term, (mean, deviation) in expected.items():
        x, density = curves(prior_and_posterior(model, term))["prior"].get_data()
        assert_allclose(density, stats.norm.pdf(x, mean, deviation), rtol=1e-7)
    matrix = np.array([[2.0, 1.5], [1.5, 3.0]])
    model = BayesianLogisticRegression(prior=GaussianPrior(matrix)).fit(X, y)
    x, density = curves(prior_and_posterior(model, "x0"))["prior"].get_data()
    expected = stats.norm.pdf(x, 0, np.sqrt(np.linalg.inv(matrix)[0, 0]))
    assert_allclose(density, expected, rtol=1e-6)


def test_the_posterior_is_the_gaussian_of_the_table_or_a_histogram_of_draws(rows, legend):
    model = BayesianLogisticRegression().fit(*rows)
    ax = prior_and_posterior(model, "x0")
    line, table = curves(ax)["posterior"], model.tidy()
    estimate, error = table["estimate"][1], table["std_error"][1]
    assert_allclose(line.get_ydata(), stats.norm.pdf(line.get_xdata(), estimate, error), rtol=1e-6)
    assert legend(ax)[1] == f"posterior: mean {estimate:.3g}, sd {error:.3g}"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("coefficient of x0", "density")
    model = BayesianLogisticRegression(inference="monte_carlo", n_draws=500, random_state=0)
    ax = prior_and_posterior(model.fit(*rows), "x0")
    height, edges = np.histogram(model.posterior_.draws[..., 1].ravel(), 30, density=True)
    outline = ax.patches[0].get_xy()
    assert_allclose([outline[:, 0].min(), outline[:, 1].max()], [edges[0], height.max()])
    assert legend(ax)[1].startswith("posterior: mean")


def test_classes_have_the_prior_of_contrasts_that_sum_to_zero():
    X, y = load_iris(return_X_y=True)
    model = BayesianLogisticRegression(prior=2.0).fit(X, y)
    ax = prior_and_posterior(model, "x2", label=1)
    # θ = BV with BBᵀ = I - 11ᵀ/3, so that each class has 2/3 of the variance.
    found = curves(ax)
    x = found["prior"].get_xdata()
    assert_allclose(found["prior"].get_ydata(), stats.norm.pdf(x, 0, np.sqrt(2 / 3 / 2)), rtol=1e-7)
    mean, sd = model.coef_[1, 2], np.sqrt(model.posterior_.covariance[5 + 3, 5 + 3])
    assert_allclose(found["posterior"].get_ydata(), stats.norm.pdf(x, mean, sd), rtol=1e-6)
    assert ax.get_xlabel() == "coefficient of x2, class 1"


def test_after_an_update_the_prior_is_the_posterior_before(rows):
    X, y = rows
    model = BayesianLogisticRegression(prior=1.0).fit(X[:40], y[:40])
    before = curves(prior_and_posterior(model, "x0"))["posterior"]
    after = curves(prior_and_posterior(model.update(X[40:], y[40:]), "x0"))["prior"]
    mean = before.get_xdata()[before.get_ydata().argmax()]
    assert_allclose(after.get_xdata()[after.get_ydata().argmax()], mean, atol=0.02)
    assert_allclose(after.get_ydata().max(), before.get_ydata().max(), rtol=1e-3)


def test_what_has_no_prior_or_posterior_is_named(rows):
    model = BayesianLogisticRegression().fit(*rows)
    jeffreys = BayesianLogisticRegression(prior="jeffreys").fit(*rows)
    for bad, term, label, error, words in (
        (model, "age", None, ParameterError, "term='age'"),
        (LogisticRegression().fit(*rows), "x0", None, AttributeError, "posterior_"),
        (model, "x0", False, ParameterError, "those of True"),
        (jeffreys, "x0", None, InferenceError, "Jeffreys"),
    ):
        with pytest.raises(error, match=words):
            prior_and_posterior(bad, term, label=label)


def test_the_curve_is_the_evidence_of_each_precision_and_the_best_is_marked(rows, legend):
    X, y = rows
    estimator = BayesianLogisticRegression(inference="variational")
    ax = evidence_curve(X, y, precisions=[10.0, 0.01], estimator=estimator)
    for precision, value in ax.get_lines()[0].get_xydata():
        prior = GaussianPrior(precision, intercept_precision=0.01, units="standardised")
        model = BayesianLogisticRegression(inference="variational", prior=prior).fit(X, y)
        assert_allclose(value, model.log_evidence_)
    curve, mark = (ax := evidence_curve(X, y)).get_lines()
    ((best, value),) = mark.get_xydata()
    model = BayesianLogisticRegression(inference="laplace").fit(X, y)
    assert_allclose([best, value], [model.prior_.precision, model.log_evidence_])
    assert_allclose(curve.get_xdata()[[0, -1]], [min(best, 1) / 1000, max(best, 1) * 1000])
    assert curve.get_xdata()[curve.get_ydata().argmax()] == best
    assert legend(ax) == ["log evidence", f"chosen: precision {best:.3g}"]


# --- Convergence ----------------------------------------------------------------------------------


def test_objective_and_decrement_are_drawn_against_seconds_or_passes():
    steps = (
        Iteration(90.0, 9.0, 1.0, 0.1, 0.125, True),
        Iteration(50.0, 8.0, 0.25, 0.2, 1.0, True, 3.0),
        Iteration(18.0, 2.0, 1.0, 0.4, 1.0, False, 1.0),
        Iteration(10.5, 1.0, 1.0, 0.5, 1.0, False),
        Iteration(10.0, 0.0, 1.0, 0.6, 1.0, False),
    )
    model = SimpleNamespace(solution_=Solution(np.zeros(2), Status.CONVERGED, steps, 10.0))
    ax = convergence(model)
    objective, decrement, hollow = ax.get_lines()
    assert_array_equal(objective.get_ydata(), [np.nan, 40.0, 8.0, 0.5, np.nan])
    assert_array_equal(objective.get_xdata(), [0.1, 0.2, 0.4, 0.5, 0.6])
    assert_array_equal(decrement.get_ydata(), [9.0, 8.0, 2.0, 1.0, np.nan])
    assert_array_equal(hollow.get_ydata(), [9.0])
    assert hollow.get_markerfacecolor() == "white"
    ax = convergence(model, against="passes")
    assert_array_equal(ax.get_lines()[1].get_xdata(), [0.0, 0.125, 3.125, 4.125, 5.125])
    assert ax.get_xlabel() == "passes over the rows"
    with pytest.raises(ParameterError, match="'hours'"):
        convergence(model, against="hours")
