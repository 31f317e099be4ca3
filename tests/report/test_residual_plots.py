"""What `residuals` puts on the axes."""

import matplotlib as mpl

mpl.use("agg")

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from posteriori import LeastSquaresClassifier, LogisticRegression
from posteriori.errors import MissingValueError, ParameterError, ShapeError
from posteriori.report.plots import residuals


class Known:
    """A model whose probabilities are the first column."""

    def __init__(self, labels):
        self.classes_ = np.array(labels)

    def predict_proba(self, X):
        p = np.asarray(X)[:, 0].astype(float)
        rest = [(1 - p) / (len(self.classes_) - 1)] * (len(self.classes_) - 1)
        return np.column_stack([*rest, p])


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(4)
    p = np.sort(random.random(100))
    x = random.permutation(100).astype(float)
    return np.column_stack([p, x]), np.where(random.random(100) < p, "yes", "no")


def points(ax):
    """All points, in the order of the axis."""
    found = {line.get_label(): line for line in ax.get_lines()}
    both = [found[name].get_xydata() for name in ("in the band", "outside")]
    joined = np.concatenate(both)
    return joined[joined[:, 0].argsort()]


def test_points_are_the_mean_residuals_of_equal_bins_of_the_probability(rows):
    X, y = rows
    ax = residuals(Known(["no", "yes"]), X, y, bins=5)
    p, t = X[:, 0].reshape(5, 20), (y == "yes").reshape(5, 20)
    assert_allclose(points(ax), np.column_stack([p.mean(axis=1), (t - p).mean(axis=1)]))
    band = next(line for line in ax.get_lines() if line.get_label() == "two standard errors")
    assert_allclose(band.get_ydata(), 2 * np.sqrt((p * (1 - p)).sum(axis=1)) / 20)
    assert ax.get_xlabel() == "predicted probability of class yes"
    assert ax.get_ylabel() == "mean of outcome - probability, class yes"


def test_there_are_as_many_bins_as_the_root_of_the_rows(rows):
    assert len(points(residuals(Known(["no", "yes"]), *rows))) == 10


def test_bins_of_a_column_are_in_its_order(rows):
    X, y = rows
    ax = residuals(Known(["no", "yes"]), X, y, column=1, bins=4)
    order = X[:, 1].argsort().reshape(4, 25)
    gap = ((y == "yes") - X[:, 0])[order].mean(axis=1)
    assert_allclose(points(ax), np.column_stack([X[:, 1][order].mean(axis=1), gap]))
    assert ax.get_xlabel() == "column 1"


def test_rows_of_one_value_stay_together(rows):
    X, y = rows
    X = np.column_stack([X[:, 0], np.repeat([1.0, 2.0], [90, 10])])
    found = points(residuals(Known(["no", "yes"]), X, y, column=1, bins=10))
    assert_array_equal(found[:, 0], [1, 2])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_every_level_of_a_categorical_column_is_a_bin(rows, frame):
    X, y = rows
    group = np.repeat(["c", "a", "b"], [1, 59, 40])
    table = frame({"p": X[:, 0], "group": group})
    ax = residuals(Known(["no", "yes"]), table, y, column="group")
    assert [text.get_text() for text in ax.get_xticklabels()] == ["a", "b", "c"]
    gap = (y == "yes") - X[:, 0]
    expected = [gap[group == level].mean() for level in "abc"]
    assert_allclose(points(ax), np.column_stack([np.arange(3), expected]))
    bars = np.array(ax.collections[0].get_segments())
    sums = [(X[:, 0] * (1 - X[:, 0]))[group == g].sum() ** 0.5 / (group == g).sum() for g in "abc"]
    assert_allclose(bars[:, 1, 1], 2 * np.array(sums))


def test_points_outside_the_band_are_marked(rows):
    X, _ = rows
    ax = residuals(Known(["no", "yes"]), X, np.full(100, "yes"), bins=4)
    found = {line.get_label(): line for line in ax.get_lines()}
    outside, inside = found["outside"], found["in the band"]
    p = X[:, 0].reshape(4, 25)
    beyond = (1 - p).mean(axis=1) > 2 * np.sqrt((p * (1 - p)).sum(axis=1)) / 25
    assert beyond.any()
    assert len(outside.get_xdata()) == beyond.sum()
    assert len(inside.get_xdata()) == (~beyond).sum()
    assert outside.get_marker() != inside.get_marker()
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["two standard errors", "in the band", "outside"]


def test_of_the_right_model_one_point_in_twenty_is_outside():
    random = np.random.default_rng(0)
    p = random.uniform(0.1, 0.9, 40_000)
    ax = residuals(Known([0, 1]), p[:, None], (random.random(40_000) < p).astype(int))
    outside = next(line for line in ax.get_lines() if line.get_label() == "outside")
    assert 2 <= len(outside.get_xdata()) <= 18  # of 200, each with probability 0.0455


def test_a_square_that_the_model_lacks_shows_along_its_column():
    random = np.random.default_rng(1)
    x = random.normal(size=4000)
    y = random.random(4000) < 1 / (1 + np.exp(1 - x**2))
    ax = residuals(LogisticRegression().fit(x[:, None], y), x[:, None], y, column=0, bins=9)
    gap = points(ax)[:, 1]
    assert gap[0] > 0.2
    assert gap[-1] > 0.2
    assert gap[4] < -0.05


def test_a_class_of_many_is_chosen_by_its_label(rows):
    X, y = rows
    model = Known(["maybe", "no", "yes"])
    ax = residuals(model, X, y, label="no", bins=2)
    gap = ((y == "no") - (1 - X[:, 0]) / 2)[np.argsort(-X[:, 0])].reshape(2, 50).mean(axis=1)
    assert_allclose(points(ax)[:, 1], gap)


def test_what_cannot_be_drawn_is_named(rows):
    X, y = rows
    model = Known(["no", "yes"])
    with pytest.raises(ParameterError, match="no column 'age'"):
        residuals(model, X, y, column="age")
    with pytest.raises(ParameterError, match="no class 'maybe'"):
        residuals(model, X, y, label="maybe")
    with pytest.raises(ParameterError, match="3 classes"):
        residuals(Known(["maybe", "no", "yes"]), X, y)
    with pytest.raises(ParameterError, match="bins=0"):
        residuals(model, X, y, bins=0)
    with pytest.raises(ParameterError, match="not fitted"):
        residuals(LogisticRegression(), X, y)
    with pytest.raises(ParameterError, match="no probabilities"):
        residuals(LeastSquaresClassifier().fit(X, y), X, y)
    with pytest.raises(ShapeError, match="missing or infinite"):
        residuals(model, np.where(X > 98, np.nan, X), y, column=1)
    levels = pd.DataFrame({"p": X[:, 0], "group": ["a", None] * 50})
    with pytest.raises(MissingValueError, match="Row 1 of 'group'"):
        residuals(model, levels, y, column="group")
