"""Reliability curve and binned residuals."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib.collections import LineCollection
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from posteriori import LeastSquaresClassifier, LogisticRegression
from posteriori.errors import DataError, MissingValueError, ParameterError, ShapeError
from posteriori.report.plots import COLOURS, LINES, MARKERS, calibration, residuals


@pytest.fixture(scope="module")
def forecasts():
    random = np.random.default_rng(5)
    p = np.sort(random.random(200))
    return np.where(random.random(200) < p, "rain", "dry"), p


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_points_are_the_shares_in_bins_of_equal_size(forecasts):
    y, p = forecasts
    ax = calibration(y, p, bins=4)
    line = ax.get_lines()[1]
    assert_allclose(line.get_xdata(), p.reshape(4, 50).mean(axis=1))
    assert_allclose(line.get_ydata(), (y == "rain").reshape(4, 50).mean(axis=1))


def test_the_band_is_the_exact_interval_of_each_bin(forecasts):
    y, p = forecasts
    ax = calibration(y, p, bins=4, level=0.9)
    corners = ax.collections[0].get_paths()[0].vertices
    for x, hits in zip(
        ax.get_lines()[1].get_xdata(), (y == "rain").reshape(4, 50).sum(axis=1), strict=True
    ):
        found = np.unique(corners[np.isclose(corners[:, 0], x), 1])
        interval = stats.binomtest(int(hits), 50).proportion_ci(0.9, "exact")
        assert_allclose([found.min(), found.max()], [interval.low, interval.high], rtol=1e-8)
    assert ax.get_ylabel() == "share of class rain, with 90 % interval"


def test_the_diagonal_is_where_a_calibrated_model_lies(forecasts):
    ax = calibration(*forecasts)
    assert_array_equal(ax.get_lines()[0].get_xydata(), [[0, 0], [1, 1]])
    assert ax.get_xlabel() == "predicted probability of class rain"
    assert legend(ax) == ["calibrated", "model"]


def test_several_models_have_a_style_and_a_name_each(forecasts):
    y, p = forecasts
    ax = calibration(y, {"honest": p, "bold": p**2 / (p**2 + (1 - p) ** 2)}, bins=5)
    assert legend(ax) == ["calibrated", "honest", "bold"]
    honest, bold = ax.get_lines()[1:]
    assert (bold.get_color(), bold.get_marker()) == (COLOURS[1], MARKERS[1])
    assert bold.get_linestyle() == LINES[1]
    assert_array_equal(bold.get_ydata(), honest.get_ydata())
    assert (bold.get_xdata()[0] < honest.get_xdata()[0]).all()
    assert len(ax.collections) == 2


def test_a_class_of_many_is_chosen_by_its_label():
    random = np.random.default_rng(0)
    proba = random.dirichlet([1, 1, 1], 90)
    y = np.array(["a", "b", "c"])[random.integers(3, size=90)]
    ax = calibration(y, proba, label="c", bins=3)
    order = proba[:, 2].argsort().reshape(3, 30)
    assert_allclose(ax.get_lines()[1].get_ydata(), (y == "c")[order].mean(axis=1))
    assert ax.get_xlabel() == "predicted probability of class c"


def test_a_single_bin_has_an_interval_in_place_of_a_band():
    ax = calibration([0, 1, 1, 1], [0.5] * 4)
    (interval,) = ax.collections
    assert isinstance(interval, LineCollection)
    ends = stats.binomtest(3, 4).proportion_ci(0.95, "exact")
    assert_allclose(interval.get_segments()[0], [[0.5, ends.low], [0.5, ends.high]], rtol=1e-8)


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
    counts, edges, _ = histogram.patches[0].get_data()
    assert counts.sum() == 2000
    assert_allclose(edges[[0, -1]], [p.min(), p.max()])
    assert histogram.get_xlim() == ax.get_xlim()


def test_a_second_plot_is_added_to_the_first(forecasts):
    y, p = forecasts
    ax = calibration(y, p, bins=4)
    assert calibration(y, p**2, bins=4, ax=ax) is ax
    assert legend(ax) == ["calibrated", "model", "model 2"]
    assert [line.get_color() for line in ax.get_lines()[1:]] == list(COLOURS[:2])
    (histogram,) = ax.child_axes
    assert len(histogram.patches) == 2
    low, high = ax.get_xlim()
    assert all(low < x < high for line in ax.get_lines()[1:] for x in line.get_xydata().ravel())


def test_what_cannot_be_drawn_is_named(forecasts):
    y, p = forecasts
    with pytest.raises(ParameterError, match="no models"):
        calibration(y, {})
    with pytest.raises(ParameterError, match="no class 'snow'"):
        calibration(y, p, label="snow")
    with pytest.raises(ParameterError, match="bins=0"):
        calibration(y, p, bins=0)
    with pytest.raises(DataError, match="not a probability"):
        calibration(y, 2 * p)


# --- Residuals ------------------------------------------------------------------------------------


class Known:
    """A model whose probabilities are the first column."""

    def __init__(self, labels):
        self.classes_ = np.array(labels)

    def predict_proba(self, X):
        p = np.asarray(X)[:, 0].astype(float)
        rest = [(1 - p) / (len(self.classes_) - 1)] * (len(self.classes_) - 1)
        return np.column_stack([*rest, p])


@pytest.fixture(scope="module")
def residual_rows():
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


def test_points_are_the_mean_residuals_of_equal_bins_of_the_probability(residual_rows):
    X, y = residual_rows
    ax = residuals(Known(["no", "yes"]), X, y, bins=5)
    p, t = X[:, 0].reshape(5, 20), (y == "yes").reshape(5, 20)
    assert_allclose(points(ax), np.column_stack([p.mean(axis=1), (t - p).mean(axis=1)]))
    band = next(line for line in ax.get_lines() if line.get_label() == "two standard errors")
    assert_allclose(band.get_ydata(), 2 * np.sqrt((p * (1 - p)).sum(axis=1)) / 20)
    assert ax.get_xlabel() == "predicted probability of class yes"
    assert ax.get_ylabel() == "mean of outcome - probability, class yes"


def test_there_are_as_many_bins_as_the_root_of_the_rows(residual_rows):
    assert len(points(residuals(Known(["no", "yes"]), *residual_rows))) == 10


def test_bins_of_a_column_are_in_its_order(residual_rows):
    X, y = residual_rows
    ax = residuals(Known(["no", "yes"]), X, y, column=1, bins=4)
    order = X[:, 1].argsort().reshape(4, 25)
    gap = ((y == "yes") - X[:, 0])[order].mean(axis=1)
    assert_allclose(points(ax), np.column_stack([X[:, 1][order].mean(axis=1), gap]))
    assert ax.get_xlabel() == "x1"


def test_rows_of_one_value_stay_together(residual_rows):
    X, y = residual_rows
    X = np.column_stack([X[:, 0], np.repeat([1.0, 2.0], [90, 10])])
    found = points(residuals(Known(["no", "yes"]), X, y, column=1, bins=10))
    assert_array_equal(found[:, 0], [1, 2])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_every_level_of_a_categorical_column_is_a_bin(residual_rows, frame):
    X, y = residual_rows
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


def test_points_outside_the_band_are_marked(residual_rows):
    X, _ = residual_rows
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


def test_residuals_of_a_class_of_many_are_chosen_by_its_label(residual_rows):
    X, y = residual_rows
    model = Known(["maybe", "no", "yes"])
    ax = residuals(model, X, y, label="no", bins=2)
    gap = ((y == "no") - (1 - X[:, 0]) / 2)[np.argsort(-X[:, 0])].reshape(2, 50).mean(axis=1)
    assert_allclose(points(ax)[:, 1], gap)


def test_rare_levels_share_the_last_bin_and_levels_keep_their_order(residual_rows):
    X, y = residual_rows
    levels = pd.Categorical(["b"] * 50 + ["c"] * 30 + ["a"] * 9 + ["d"] * 11, list("dcbax"))
    table = pd.DataFrame({"p": X[:, 0], "group": levels})
    ax = residuals(Known(["no", "yes"]), table, y, column="group")
    assert [text.get_text() for text in ax.get_xticklabels()] == list("dcba")
    ax = residuals(Known(["no", "yes"]), table, y, column="group", bins=3)
    assert [text.get_text() for text in ax.get_xticklabels()] == ["c", "b", "other levels"]
    gap = (y == "yes") - X[:, 0]
    parts = [levels == "c", levels == "b", (levels == "a") | (levels == "d")]
    assert_allclose(points(ax)[:, 1], [gap[part].mean() for part in parts])


def test_what_has_no_residuals_is_named(residual_rows):
    X, y = residual_rows
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
    with pytest.raises(ParameterError, match="no predict_proba"):
        residuals(LeastSquaresClassifier().fit(X, y), X, y)
    with pytest.raises(ShapeError, match="missing or infinite"):
        residuals(model, np.where(X > 98, np.nan, X), y, column=1)
    levels = pd.DataFrame({"p": X[:, 0], "group": ["a", None] * 50})
    with pytest.raises(MissingValueError, match="Row 1 of column 'group'"):
        residuals(model, levels, y, column="group")
