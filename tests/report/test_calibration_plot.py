"""What `calibration` puts on the axes."""

import matplotlib as mpl

mpl.use("agg")

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from posteriori.errors import DataError, ParameterError
from posteriori.report.plots import COLOURS, LINES, MARKERS, calibration


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
