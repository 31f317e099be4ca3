"""What `forest` puts on the axes."""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_iris

from posteriori import GLM, BayesianLogisticRegression, LogisticRegression, NaiveBayes
from posteriori.errors import ParameterError, SeparationWarning
from posteriori.report.plots import COLOURS, MARKERS, forest

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
    for level in (0.95, 0.5):
        ax = forest(model, level=level)
        points = ax.get_lines()[0]
        assert_allclose(points.get_xdata(), expected.params[1:], rtol=1e-4)
        ends, heights = ends_of(ax.collections[0])
        assert_allclose(ends, expected.conf_int(alpha=1 - level)[1:], rtol=1e-4)
        assert_array_equal(heights, [0, 1, 2])
    assert terms_of(ax) == COLUMNS
    assert ax.get_xlabel() == (
        "log odds of class malignant per unit of the column\nwith 50 % interval"
    )
    assert ax.get_legend() is None


def test_the_first_term_is_at_the_top_and_zero_has_a_line(model):
    ax = forest(model)
    low, high = ax.get_ylim()
    assert low > high
    assert_array_equal(ax.get_lines()[-1].get_xdata(), [0, 0])


def test_odds_ratios_are_exponentials_on_a_logarithmic_axis_about_one(model):
    plain, odds = forest(model), forest(model, odds_ratios=True)
    assert odds.get_xscale() == "log"
    assert_allclose(odds.get_lines()[0].get_xdata(), np.exp(plain.get_lines()[0].get_xdata()))
    assert_allclose(ends_of(odds.collections[0])[0], np.exp(ends_of(plain.collections[0])[0]))
    assert_array_equal(odds.get_lines()[-1].get_xdata(), [1, 1])
    assert odds.get_xlabel().startswith("odds ratio of class malignant")


def test_terms_are_drawn_in_the_order_asked_for(model):
    ax = forest(model, terms=["mean texture", "intercept"])
    assert terms_of(ax) == ["mean texture", "intercept"]
    expected = [model.coef_[0, 1], model.intercept_[0]]
    assert_allclose(ax.get_lines()[0].get_xdata(), expected)
    assert terms_of(forest(model, terms="mean radius")) == ["mean radius"]


def test_sorting_puts_the_largest_of_either_sign_at_the_top(tumours):
    X, y = tumours
    model = LogisticRegression().fit(X * [1, -1, 1], y)
    ax = forest(model, sort=True)
    size = abs(model.coef_[0])
    assert terms_of(ax) == [COLUMNS[j] for j in np.argsort(-size)]
    assert_allclose(abs(ax.get_lines()[0].get_xdata()), np.sort(size)[::-1])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_more_classes_have_a_marker_each_against_the_first(frame):
    X, y = load_iris(return_X_y=True)
    labels = np.array(["setosa", "versicolor", "virginica"])[y]
    X = frame({f"x{j}": X[:, j] for j in range(4)})
    model = LogisticRegression(prior=1.0).fit(X, labels)
    ax = forest(model)
    points = ax.get_lines()[:2]
    for k, line in enumerate(points):
        assert_allclose(line.get_xdata(), model.coef_[k + 1] - model.coef_[0])
        assert (line.get_color(), line.get_marker()) == (COLOURS[k], MARKERS[k])
    assert_allclose(points[0].get_ydata() - np.arange(4), -0.15)
    assert_allclose(points[1].get_ydata() - np.arange(4), 0.15)
    legend = ax.get_legend()
    assert legend.get_title().get_text() == "class, against setosa"
    assert [text.get_text() for text in legend.get_texts()] == ["versicolor", "virginica"]


@pytest.mark.parametrize("odds_ratios", [False, True])
def test_an_interval_without_ends_has_arrows_at_both_edges(odds_ratios):
    with pytest.warns(SeparationWarning):
        model = LogisticRegression().fit(np.arange(10.0)[:, None], np.arange(10) > 4)
    ax = forest(model, odds_ratios=odds_ratios)
    arrows = {line.get_marker(): line.get_xdata() for line in ax.get_lines()[1:3]}
    low, high = ax.get_xlim()
    assert_allclose(arrows["<"], [low])
    assert_allclose(arrows[">"], [high])
    assert np.isfinite([low, high]).all()
    assert low < ax.get_lines()[0].get_xdata()[0] < high


def test_odds_ratios_beyond_the_doubles_end_in_an_arrow():
    random = np.random.default_rng(0)
    x = random.normal(size=200)
    model = LogisticRegression().fit(1e-3 * x[:, None], random.random(200) < 1 / (1 + np.exp(-x)))
    assert model.tidy()["conf_high"][1] > 710
    ax = forest(model, odds_ratios=True)
    assert ax.get_lines()[1].get_marker() == ">"
    assert np.isfinite(ax.get_xlim()).all()


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


def test_any_model_with_a_table_can_be_drawn():
    X = np.arange(20.0)[:, None]
    model = GLM(family="poisson").fit(X, np.arange(20))
    ax = forest(model)
    assert_allclose(ax.get_lines()[0].get_xdata(), model.coef_)
    assert ax.get_xlabel() == "coefficient\nwith 95 % interval"


def test_it_draws_on_the_axes_given(model):
    _, ax = plt.subplots()
    assert forest(model, ax=ax) is ax


def test_what_has_no_forest_is_named(model, tumours):
    with pytest.raises(ParameterError, match="NaiveBayes has no coefficients with intervals"):
        forest(NaiveBayes().fit(*tumours))
    with pytest.raises(ParameterError, match="no term 'age'"):
        forest(model, terms=["age"])
    with pytest.raises(ParameterError, match="no term to draw"):
        forest(model, terms=[])
    with pytest.raises(ParameterError, match="level=95"):
        forest(model, level=95)
    with pytest.raises(ParameterError, match="sort='yes'"):
        forest(model, sort="yes")
    glm = GLM(family="poisson").fit(np.arange(20.0)[:, None], np.arange(20))
    with pytest.raises(ParameterError, match="no logarithms of odds ratios"):
        forest(glm, odds_ratios=True)
