"""Reliability curve and binned residuals."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib.collections import LineCollection
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from posteriori import LeastSquaresClassifier, LogisticRegression
from posteriori.errors import MissingValueError, ParameterError
from posteriori.report.plots import COLOURS, LINES, MARKERS, calibration, residuals


@pytest.fixture(scope="module")
def forecasts():
    random = np.random.default_rng(5)
    p = np.sort(random.random(200))
    return np.where(random.random(200) < p, "rain", "dry"), p


def test_points_are_the_shares_in_bins_and_bands_their_exact_intervals(forecasts, legend):
    y, p = forecasts
    ax = calibration(y, p, bins=4, level=0.9)
    diagonal, line = ax.get_lines()
    assert_array_equal(diagonal.get_xydata(), [[0, 0], [1, 1]])
    assert_allclose(line.get_xdata(), p.reshape(4, 50).mean(axis=1))
    hits = (y == "rain").reshape(4, 50).sum(axis=1)
    assert_allclose(line.get_ydata(), hits / 50)
    expected = [stats.binomtest(int(n), 50).proportion_ci(0.9, "exact") for n in hits]
    (bars,) = (each for each in ax.collections if isinstance(each, LineCollection))
    assert_allclose([bar[:, 1] for bar in bars.get_segments()], expected, rtol=1e-8)
    corners = ax.collections[0].get_paths()[0].vertices
    assert_allclose([corners[:, 1].min(), corners[:, 1].max()], [expected[0].low, expected[3].high])
    assert ax.get_xlabel() == "predicted probability of class rain"
    assert ax.get_ylabel() == "share of class rain, with 90 % interval"
    assert legend(ax) == ["calibrated", "model"]


def test_the_axes_cover_the_bins_of_a_rare_event_and_a_histogram_is_below():
    random = np.random.default_rng(1)
    p = random.beta(1, 15, 2000)
    ax = calibration(random.random(2000) < p, p)
    line = ax.get_lines()[1]
    low, high = ax.get_xlim()
    assert ax.get_ylim() == (low, high)
    assert high < 0.4
    assert line.get_xdata().max() > 0.5 * high
    (histogram,) = ax.child_axes
    steps = histogram.patches[0].get_xy()
    assert_allclose([steps[:, 0].min(), steps[:, 0].max()], [p.min(), p.max()])
    assert_allclose(steps[:, 1].max(), np.histogram(p, 40)[0].max())
    assert histogram.get_xlim() == ax.get_xlim()
    high_p = 0.8 + p / 5
    assert calibration(random.random(2000) < high_p, high_p).get_xlim()[0] > 0.6


def test_several_models_and_a_second_plot_have_a_style_and_a_name_each(forecasts, legend):
    y, p = forecasts
    ax = calibration(y, {"model": p, "bold": p**2 / (p**2 + (1 - p) ** 2)}, bins=5)
    assert calibration(y, p**2, bins=4, ax=ax) is ax
    assert legend(ax) == ["calibrated", "model", "bold", "model 3"]
    lines = ax.get_lines()[1:]
    styles = [(line.get_color(), line.get_marker(), line.get_linestyle()) for line in lines]
    assert styles == list(zip(COLOURS[:3], MARKERS[:3], LINES[:3], strict=True))
    assert_array_equal(lines[1].get_ydata(), lines[0].get_ydata())
    assert len(ax.child_axes[0].patches) == 3
    low, high = ax.get_xlim()
    assert all(low < x < high for line in lines for x in line.get_xydata().ravel())


# --- Residuals ------------------------------------------------------------------------------------


class Known:
    """A model whose probabilities are the first column."""

    def __init__(self, labels):
        self.classes_ = np.array(labels)

    def predict_proba(self, X):
        p = np.asarray(X)[:, 0].astype(float)
        rest = [(1 - p) / (len(self.classes_) - 1)] * (len(self.classes_) - 1)
        return np.column_stack([*rest, p])


MODEL = Known(["no", "yes"])


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(4)
    p = np.sort(random.random(100))
    x = random.permutation(100).astype(float)
    return np.column_stack([p, x]), np.where(random.random(100) < p, "yes", "no")


def drawn(ax):
    """The points in the order of the axis, and the lines by their labels."""
    lines = {line.get_label(): line for line in ax.get_lines()}
    points = np.concatenate([lines[name].get_xydata() for name in ("in the band", "outside")])
    return points[points[:, 0].argsort()], lines


def words(ax):
    return [text.get_text() for text in ax.get_xticklabels()]


def test_points_are_the_mean_residuals_of_equal_bins(rows, legend):
    X, y = rows
    for given, along in (({}, 0), ({"column": 1}, 1), ({"label": "no"}, 0)):
        y = np.full(100, "yes") if "label" in given else y
        ax = residuals(MODEL, X, y, bins=5, **given)
        order = X[:, along].argsort().reshape(5, 20)
        p, t, x = X[order, 0], (y == "yes")[order], X[order, along]
        if "label" in given:
            p, t, x = 1 - p[::-1], ~t[::-1], 1 - x[::-1]
        gap, band = (t - p).mean(axis=1), 2 * np.sqrt((p * (1 - p)).sum(axis=1)) / 20
        points, lines = drawn(ax)
        assert_allclose(points, np.column_stack([x.mean(axis=1), gap]))
        assert_allclose(lines["two standard errors"].get_ydata(), band)
        assert len(lines["outside"].get_xdata()) == (abs(gap) > band).sum()
        assert legend(ax) == ["two standard errors", "in the band", "outside"]
    assert (abs(gap) > band).any()
    assert ax.get_xlabel() == "predicted probability of class no"
    assert ax.get_ylabel() == "mean of outcome - probability, class no"
    assert residuals(MODEL, *rows, column=1).get_xlabel() == "x1"
    assert len(drawn(residuals(MODEL, X, y))[0]) == 10  # the root of the number of rows


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_every_level_of_a_categorical_column_is_a_bin(rows, frame):
    X, y = rows
    group, number = np.repeat(["c", "a", "b"], [1, 59, 40]), [f"row {i}" for i in range(100)]
    table = frame({"p": X[:, 0], "group": group, "identifier": number})
    ax = residuals(MODEL, table, y, column="group")
    assert words(ax) == ["a", "b", "c"]
    gap, variance = (y == "yes") - X[:, 0], X[:, 0] * (1 - X[:, 0])
    points, lines = drawn(ax)
    each = [group == level for level in "abc"]
    assert_allclose(points, np.column_stack([np.arange(3), [gap[own].mean() for own in each]]))
    errors = [variance[own].sum() ** 0.5 / own.sum() for own in each]
    assert_allclose(lines["two standard errors"].get_ydata(), 2 * np.array(errors))


def test_rare_levels_share_the_last_bin_and_levels_keep_their_order(rows):
    X, y = rows
    levels = pd.Categorical(["b"] * 50 + ["c"] * 30 + ["a"] * 9 + ["d"] * 11, list("dcbax"))
    table = pd.DataFrame({"p": X[:, 0], "group": levels})
    assert words(residuals(MODEL, table, y, column="group")) == list("dcba")
    ax = residuals(MODEL, table, y, column="group", bins=3)
    assert words(ax) == ["c", "b", "other levels"]
    gap = (y == "yes") - X[:, 0]
    parts = [levels == "c", levels == "b", (levels == "a") | (levels == "d")]
    assert_allclose(drawn(ax)[0][:, 1], [gap[part].mean() for part in parts])


def test_what_has_no_residuals_is_named(rows):
    X, y = rows
    gaps = np.where(X > 98, np.nan, X)
    levels = pd.DataFrame({"p": X[:, 0], "group": ["a", None] * 50})
    for model, table, given, error, text in (
        (MODEL, X, {"column": "age"}, ParameterError, "no column 'age'"),
        (MODEL, X, {"label": "maybe"}, ParameterError, "no class 'maybe'"),
        (MODEL, X, {"bins": 0}, ParameterError, "bins=0"),
        (Known(["maybe", "no", "yes"]), X, {}, ParameterError, "3 classes"),
        (LogisticRegression(), X, {}, ParameterError, "not fitted"),
        (LeastSquaresClassifier().fit(X, y), X, {}, ParameterError, "no predict_proba"),
        (MODEL, gaps, {"column": 1}, MissingValueError, "missing or infinite"),
        (MODEL, levels, {"column": "group"}, MissingValueError, "Row 1 of column 'group'"),
    ):
        with pytest.raises(error, match=text):
            residuals(model, table, y, **given)
