"""Reliability curve, binned residuals, the error-reject curve and the confusion matrix."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib.collections import LineCollection
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.metrics import confusion_matrix

from posteriori import decide
from posteriori.errors import (
    ColumnNameError,
    LabelError,
    MissingValueError,
    ParameterError,
    ShapeError,
)
from posteriori.report.plots import (
    calibration,
    confusion,
    reject_curve,
    residuals,
)
from posteriori.report.plots.style import COLOURS, LINES, MARKERS


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
    low, high = ax.get_xlim()
    assert ax.get_ylim() == (low, high)
    assert 0.5 * high < ax.get_lines()[1].get_xdata().max() < high < 0.4
    (histogram,) = ax.child_axes
    steps = histogram.patches[0].get_xy()
    assert_allclose([steps[:, 0].min(), steps[:, 0].max()], [p.min(), p.max()])
    assert_allclose(steps[:, 1].max(), np.histogram(p, 40)[0].max())
    assert histogram.get_xlim() == ax.get_xlim()
    frequent = 0.8 + p / 5
    assert calibration(random.random(2000) < frequent, frequent).get_xlim()[0] > 0.6


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
    assert (abs(gap) > band).any()
    assert legend(ax) == ["two standard errors", "in the band", "outside"]
    assert ax.get_xlabel() == "predicted probability of class no"
    assert ax.get_ylabel() == "mean of outcome - probability, class no"
    assert len(drawn(residuals(MODEL, X, y))[0]) == 10  # the root of the number of rows


def test_a_bin_is_a_level_of_a_categorical_column_and_rare_levels_share_the_last(rows):
    X, y = rows
    gap, variance = (y == "yes") - X[:, 0], X[:, 0] * (1 - X[:, 0])
    group = np.repeat(["c", "a", "b"], [1, 59, 40])
    number = [f"row {i}" for i in range(100)]
    ax = residuals(MODEL, pl.DataFrame({"p": X[:, 0], "g": group, "id": number}), y, column="g")
    assert words(ax) == ["a", "b", "c"]
    points, lines = drawn(ax)
    each = [group == level for level in "abc"]
    assert_allclose(points, np.column_stack([np.arange(3), [gap[own].mean() for own in each]]))
    errors = [variance[own].sum() ** 0.5 / own.sum() for own in each]
    assert_allclose(lines["two standard errors"].get_ydata(), 2 * np.array(errors))
    levels = pd.Categorical(["b"] * 50 + ["c"] * 30 + ["a"] * 9 + ["d"] * 11, list("dcbax"))
    table = pd.DataFrame({"p": X[:, 0], "group": levels})
    ax = residuals(MODEL, table, y, column="group", bins=3)
    assert words(ax) == ["c", "b", "other levels"]  # in their order
    parts = [levels == "c", levels == "b", (levels == "a") | (levels == "d")]
    assert_allclose(drawn(ax)[0][:, 1], [gap[part].mean() for part in parts])
    gaps = pd.DataFrame({"p": X[:, 0], "group": ["a", None] * 50})
    assert words(residuals(MODEL, gaps, y, column="group")) == ["a", "missing"]


def test_what_has_no_residuals_is_named(rows):
    X, y = rows
    gaps = np.where(X > 98, np.nan, X)
    for model, table, given, error, text in (
        (MODEL, X, {"column": "age"}, ColumnNameError, "no column 'age'"),
        (MODEL, X, {"label": "maybe"}, ParameterError, "no class 'maybe'"),
        (MODEL, X, {"bins": 0}, ParameterError, "bins=0"),
        (Known(["maybe", "no", "yes"]), X, {}, ParameterError, "3 classes"),
        (MODEL, gaps, {"column": 1}, MissingValueError, "missing or infinite"),
    ):
        with pytest.raises(error, match=text):
            residuals(model, table, y, **given)


# --- Rejection ------------------------------------------------------------------------------------


LABELS = np.array(["ant", "bee", "cat"])
LOSS = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 3.0], [9.0, 5.0, 0.0]])


@pytest.fixture(scope="module")
def decided_rows():
    random = np.random.default_rng(2)
    proba = random.dirichlet([0.7, 0.7, 0.7], 60)
    return LABELS[[random.choice(3, p=p) for p in proba]], proba


def right_of(ax):
    """The axis at the right-hand side."""
    return next(other for other in ax.figure.axes if other is not ax)


def by_brute_force(y, proba, loss, price):
    """Errors and losses of the rows kept, and costs of all, for each number of rejected rows."""
    codes, expected = np.searchsorted(LABELS, y), proba @ loss
    action, order = expected.argmin(axis=1), np.argsort(-expected.min(axis=1))
    error, kept_loss, cost = [], [], []
    for m in range(len(y) + 1):
        kept = order[m:]
        lost = loss[codes[kept], action[kept]].sum()
        cost.append((lost + m * price) / len(y))
        if len(kept):
            error.append((action[kept] != codes[kept]).mean())
            kept_loss.append(lost / len(kept))
    return error, kept_loss, cost


def test_errors_and_costs_are_those_when_the_least_sure_rows_are_rejected(decided_rows, legend):
    (line,) = reject_curve(*decided_rows).get_lines()
    error = by_brute_force(*decided_rows, 1 - np.eye(3), 0)[0]
    assert_allclose(line.get_xydata(), np.column_stack([np.arange(60) / 60, error]), atol=1e-12)
    ax = reject_curve(*decided_rows, loss=LOSS, reject_cost=0.8)
    error, kept_loss, cost = by_brute_force(*decided_rows, LOSS, 0.8)
    (line,) = right_of(ax).get_lines()
    assert_allclose(ax.get_lines()[0].get_ydata(), error, atol=1e-12)
    assert_allclose(line.get_xydata(), np.column_stack([np.arange(61) / 60, cost]), atol=1e-12)
    words = ["error rate of the remaining rows", "rejected by Chow's rule", "mean cost of all rows"]
    assert legend(ax) == words
    share = ((decided_rows[1] @ LOSS).min(axis=1) > 0.8).mean()  # Chow's rule
    assert_allclose(ax.get_lines()[-1].get_xdata(), [share, share])
    right = right_of(reject_curve(*decided_rows, loss=LOSS))
    assert_allclose(right.get_lines()[0].get_ydata(), kept_loss, atol=1e-12)
    # Actions that are no classes have costs but no errors.
    loss = {c: {"go": float(k), "stop": 1.0} for k, c in enumerate(LABELS.tolist())}
    ax = reject_curve(*decided_rows, loss=loss, reject_cost=0.5)
    values = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
    cost, first = by_brute_force(*decided_rows, values, 0.5)[2], ax.get_lines()[0].get_ydata()
    assert_allclose(first[[0, -1]], [cost[0], 0.5])
    assert ax.get_ylabel() == "mean cost of all rows"


def test_rows_that_are_equally_sure_are_rejected_together():
    y, p = np.array([0, 1, 1, 0, 1]), np.array([0.1, 0.9, 0.9, 0.6, 0.6])
    for order in (slice(None), slice(None, None, -1)):
        (line,) = reject_curve(y[order], p[order]).get_lines()
        assert_allclose(line.get_xydata(), [[0, 0.2], [0.4, 0]], atol=1e-12)


def test_rows_may_have_losses_and_prices_of_their_own(decided_rows):
    y, proba = decided_rows
    amount = np.random.default_rng(0).uniform(1, 5, len(y))
    given = {"loss": amount[:, None, None] * LOSS, "reject_cost": amount / 2}
    right = right_of(reject_curve(y, proba, **given))
    codes, expected = np.searchsorted(LABELS, y), proba @ LOSS
    order = np.argsort(-(expected.min(axis=1) - 0.5) * amount)
    lost = amount * LOSS[codes, expected.argmin(axis=1)]
    cost = [(lost[order[m:]].sum() + amount[order[:m]].sum() / 2) / 60 for m in range(61)]
    assert_allclose(right.get_lines()[0].get_ydata(), cost, atol=1e-12)


# --- The confusion matrix -------------------------------------------------------------------------


def cells(ax):
    return [text.get_text() for text in ax.texts]


def names(labels):
    return [text.get_text() for text in labels]


def test_cells_are_counts_and_costs_shaded_by_the_shares_of_the_class(decided_rows):
    y, proba = decided_rows
    decided = LABELS[(proba @ LOSS).argmin(axis=1)]
    ax, count = confusion(y, decided), confusion_matrix(y, decided)
    assert cells(ax) == [str(n) for n in count.ravel()]
    assert_allclose(ax.images[0].get_array(), count / count.sum(axis=1, keepdims=True))
    assert names(ax.get_xticklabels()) == names(ax.get_yticklabels()) == LABELS.tolist()
    assert (ax.get_xlabel(), ax.get_ylabel()[:10]) == ("action", "true class")
    ax, costs = confusion(y, decide(proba, LOSS, classes=LABELS), loss=LOSS), count * LOSS
    assert [float(cell.split("cost ")[1]) for cell in cells(ax)] == costs.ravel().tolist()
    assert ax.get_title() == f"total cost {costs.sum():g}, {costs.sum() / 60:.3g} per row"
    ax = confusion(y, decided, loss=LOSS[::-1, ::-1], classes=LABELS[::-1])
    assert [float(cell.split("cost ")[1]) for cell in cells(ax)] == costs.ravel().tolist()[::-1]


@pytest.mark.parametrize("sign", ["reject", None, np.nan])
def test_rejected_rows_have_a_column_and_a_cost_and_rows_losses_of_their_own(sign):
    plain = confusion([0, 0, 1, 1], [0, 1, sign, sign])
    assert names(plain.get_xticklabels()) == ["0", "1", "reject"]
    assert cells(plain) == ["1", "1", "0", "0", "0", "2"]
    loss = np.array([3.0, 5.0, 11.0])[:, None, None] * (1 - np.eye(2))  # of each row
    ax = confusion([0, 0, 0], [1, 1, 0], loss=loss, classes=[0, 1])
    assert cells(ax) == ["1\ncost 0", "2\ncost 8", "0\ncost 0", "0\ncost 0"]
    assert_array_equal(ax.images[0].get_array()[1], [0, 0])
    ax = confusion([0, 0, 1, 1], [0, 1, sign, sign], reject_cost=0.25)
    assert cells(ax)[1::4] == ["1\ncost 1", "2\ncost 0.5"]
    assert ax.get_title() == "total cost 1.5, 0.375 per row"


@pytest.mark.parametrize(
    ("draw", "given", "error", "words"),
    [
        (reject_curve, {"y": np.full(60, "ant")}, LabelError, "3 classes, but y has 1"),
        (reject_curve, {"loss": np.eye(2)}, ShapeError, "loss has shape"),
        (confusion, {"decided": ["ant"]}, ShapeError, "decided has shape"),
        (confusion, {"decided": np.full(60, "dog"), "loss": LOSS}, ParameterError, "'dog'"),
        (confusion, {"decided": ["reject"] * 60, "loss": LOSS}, ParameterError, "reject_cost="),
    ],
)
def test_what_cannot_be_drawn_is_named(decided_rows, draw, given, error, words):
    second = {"proba": decided_rows[1]} if draw is reject_curve else {}
    with pytest.raises(error, match=words):
        draw(**{"y": decided_rows[0], **second, **given})
