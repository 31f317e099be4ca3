"""What `class_densities` and `density_ellipses` put on the axes."""

import matplotlib as mpl

mpl.use("agg")

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib.colors import to_rgba
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.integrate import trapezoid
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from posteriori import GaussianClassifier, LogisticRegression, NaiveBayes
from posteriori.errors import InfiniteValueError, LevelError, ParameterError
from posteriori.report.plots import COLOURS, class_densities, density_ellipses


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True, as_frame=True)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


@pytest.fixture(scope="module")
def mails():
    random = np.random.default_rng(1)
    n = 200
    y = np.where(random.random(n) < 0.4, "spam", "ham")
    X = pd.DataFrame(
        {
            "links": random.poisson(np.where(y == "spam", 4.0, 1.0)),
            "sender": np.where(random.random(n) < 0.6, "unknown", "friend"),
            "wait": random.exponential(np.where(y == "spam", 1.0, 3.0)),
            "html": random.random(n) < np.where(y == "spam", 0.9, 0.4),
        }
    )
    return X, y


@pytest.fixture(scope="module")
def model(mails):
    return NaiveBayes(family={"links": "poisson", "wait": "exponential"}).fit(*mails)


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.mark.parametrize("covariance", ["shared", "full", "diagonal", "isotropic"])
def test_a_curve_is_the_density_of_a_class_with_the_other_columns_integrated_out(iris, covariance):
    X, y = iris
    model = GaussianClassifier(covariance=covariance).fit(X, y)
    ax = class_densities(model, column="petal width (cm)")
    # Rows in which all else is missing have this density by the model itself.
    alone = model.with_priors([1.0, 0.0, 0.0])
    x, density = ax.get_lines()[0].get_data()
    rows = pd.DataFrame(np.nan, index=range(len(x)), columns=X.columns)
    rows["petal width (cm)"] = x
    assert_allclose(np.log(density), alone.score_samples(rows), atol=1e-8)
    assert legend(ax) == ["setosa", "versicolor", "virginica"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("petal width (cm)", "density in the class")


def test_curves_integrate_to_one_and_weighted_ones_to_the_priors(iris):
    X, y = iris
    priors = [0.5, 0.3, 0.2]
    model = NaiveBayes(priors=priors).fit(X, y)
    for weighted, areas in ((False, [1, 1, 1]), (True, priors)):
        ax = class_densities(model, column=2, weighted=weighted)
        found = [trapezoid(line.get_ydata(), line.get_xdata()) for line in ax.get_lines()]
        assert_allclose(found, areas, rtol=1e-3)
    assert ax.get_ylabel() == "density in the class × prior of the class"


def test_an_exponential_column_starts_at_zero(model, mails):
    X, y = mails
    ax = class_densities(model, column="wait")
    for label, line in zip(["ham", "spam"], ax.get_lines(), strict=True):
        x, density = line.get_data()
        mean = X["wait"][y == label].mean()
        assert abs(x[0]) < 1e-3 * mean
        assert_allclose(density, np.exp(-x / mean) / mean)


def test_bars_are_the_probabilities_of_the_states(model, mails):
    X, y = mails
    ax = class_densities(model, column="links")
    for label, bars in zip(["ham", "spam"], ax.containers, strict=True):
        mean = X["links"][y == label].mean()
        assert_allclose(bars.datavalues, stats.poisson.pmf(np.arange(len(bars)), mean))
    assert [text.get_text() for text in ax.get_xticklabels()][:3] == ["0", "1", "2"]
    ax = class_densities(model, column="html")
    share = (X["html"][y == "spam"].sum() + 1) / ((y == "spam").sum() + 2)
    assert_allclose(ax.containers[1].datavalues, [1 - share, share])
    ax = class_densities(model, column="sender")
    assert [text.get_text() for text in ax.get_xticklabels()] == ["friend", "unknown"]
    assert ax.get_ylabel() == "probability in the class"


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_markers_beside_the_bars_are_the_shares_of_the_rows(model, mails, frame):
    X, y = mails
    rows = frame({name: X[name].to_list() for name in X})
    ax = class_densities(model, rows, y, column="sender", weighted=True)
    spam = ax.collections[1].get_offsets()[:, 1]
    expected = [(X["sender"][y == "spam"] == s).mean() for s in ("friend", "unknown")]
    assert_allclose(spam, model.priors_[1] * np.array(expected))
    assert legend(ax) == ["ham", "spam", "rows"]


def test_states_go_as_far_as_the_rows(model, mails):
    X, y = mails
    X = X.assign(links=np.where(np.arange(200) == 0, 30, X["links"]))
    ax = class_densities(model, X, y, column="links")
    assert len(ax.get_xticks()) == 31


def test_very_many_states_are_a_line(mails):
    _, y = mails
    X = np.random.default_rng(0).poisson(200, (200, 1))
    model = NaiveBayes(family="poisson").fit(X, y)
    ax = class_densities(model, column=0)
    x, probability = ax.get_lines()[0].get_data()
    assert_allclose(probability, stats.poisson.pmf(x, X[y == "ham"].mean()))


def test_the_histogram_is_that_of_the_rows_of_each_class(iris):
    X, y = iris
    model = GaussianClassifier().fit(X, y)
    ax = class_densities(model, X, y, column="sepal width (cm)", weighted=True)
    for k, (label, steps) in enumerate(zip(np.unique(y), ax.patches, strict=True)):
        height, edges, _ = steps.get_data()
        own = X["sepal width (cm)"][y == label]
        assert_allclose(height, np.histogram(own, edges, density=True)[0] / 3)
        assert steps.get_facecolor()[:3] == to_rgba(COLOURS[k])[:3]
        assert len(height) >= 15


def test_rows_without_labels_are_ticks_and_missing_entries_are_left_out(iris):
    X, y = iris
    model = GaussianClassifier(covariance="diagonal").fit(X, y)
    X = X.mask(X > 6.5)
    ax = class_densities(model, X, column="sepal length (cm)")
    ticks = ax.get_lines()[-1]
    kept = X["sepal length (cm)"].dropna()
    assert 0 < len(kept) < 150
    assert_array_equal(ticks.get_xdata(), kept)
    assert ticks.get_marker() == "|"


def test_a_frame_is_read_by_place_where_the_fit_had_no_names(iris):
    X, y = iris
    model = GaussianClassifier().fit(X.to_numpy(), y)
    ax = class_densities(model, X, column=2)
    assert_array_equal(ax.get_lines()[-1].get_xdata(), X.iloc[:, 2])
    assert ax.get_xlabel() == "column 2"


@pytest.mark.parametrize("covariance", ["shared", "full"])
def test_ellipses_lie_at_one_and_two_standard_deviations(iris, covariance):
    X, y = iris
    model = GaussianClassifier(covariance=covariance).fit(X, y)
    pair = ["petal width (cm)", "sepal width (cm)"]
    ax = density_ellipses(model, X, y, columns=pair)
    lines = ax.get_lines()
    assert len(lines) == 6
    for i, line in enumerate(lines):
        k, deviations = i // 2, 1 + i % 2
        rows = X[pair][(y == np.unique(y)[k]) if covariance == "full" else slice(None)]
        own = rows if covariance == "full" else rows - rows.groupby(y).transform("mean")
        precision = np.linalg.inv(np.cov(own.T, bias=True))
        away = line.get_xydata() - X[pair][y == np.unique(y)[k]].mean().to_numpy()
        assert_allclose(np.einsum("ij,jk,ik->i", away, precision, away), deviations**2)
    assert (ax.get_xlabel(), ax.get_ylabel()) == tuple(pair)
    assert legend(ax) == ["setosa", "versicolor", "virginica"]


def test_what_has_no_density_is_named(iris, mails, model):
    X, y = iris
    gaussian = GaussianClassifier().fit(X, y)
    with pytest.raises(ParameterError, match="no densities of its columns"):
        class_densities(LogisticRegression(prior=1.0).fit(X, y), column=0)
    with pytest.raises(NotFittedError):
        class_densities(GaussianClassifier(), column=0)
    with pytest.raises(ParameterError, match="no column 'age'"):
        class_densities(gaussian, column="age")
    with pytest.raises(ParameterError, match="no column 4"):
        class_densities(gaussian, column=4)
    with pytest.raises(InfiniteValueError, match="Row 3 of 'column 1'"):
        class_densities(gaussian, np.where(np.arange(150)[:, None] == 3, np.inf, X), y, column=1)
    with pytest.raises(ParameterError, match="y is given without X"):
        class_densities(gaussian, y=y, column=0)
    with pytest.raises(ParameterError, match="X is given without y"):
        class_densities(model, mails[0], column="sender")
    with pytest.raises(LevelError, match="'stranger'"):
        class_densities(model, mails[0].assign(sender="stranger"), mails[1], column="sender")
    mixed = GaussianClassifier().fit(*mails)
    with pytest.raises(ParameterError, match="levels of column 'sender'"):
        class_densities(mixed, column="sender")
    with pytest.raises(ParameterError, match="not two"):
        density_ellipses(gaussian, X, y)
    with pytest.raises(ParameterError, match="NaiveBayes has no covariances"):
        density_ellipses(NaiveBayes().fit(X, y), X, y, columns=(0, 1))


@pytest.mark.filterwarnings("ignore::posteriori.errors.SingularCovarianceWarning")
@pytest.mark.parametrize("kind", [GaussianClassifier, NaiveBayes])
def test_a_column_that_never_changes_has_no_density(iris, kind):
    X, y = iris
    model = kind().fit(X.assign(one=1.0), y)
    with pytest.raises(ParameterError, match="'one' never changes"):
        class_densities(model, column="one")
