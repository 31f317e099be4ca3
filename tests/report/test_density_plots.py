"""Densities of the classes: of one column, and the Gaussians in two columns."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib.colors import to_rgba
from numpy.testing import assert_allclose
from scipy import stats
from scipy.integrate import trapezoid
from sklearn.exceptions import NotFittedError

from posteriori import GaussianClassifier, LogisticRegression, NaiveBayes
from posteriori.errors import LevelError, MissingValueError, ParameterError
from posteriori.report.plots import COLOURS, class_densities, density_ellipses


@pytest.fixture(scope="module")
def model(mails):
    return NaiveBayes(family={"links": "poisson", "wait": "exponential"}).fit(*mails)


@pytest.mark.parametrize("covariance", ["shared", "full", "diagonal", "isotropic"])
def test_a_curve_is_the_density_of_a_class_with_the_other_columns_integrated_out(
    iris, covariance, legend
):
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
    priors = [0.5, 0.3, 0.2]
    model = NaiveBayes(priors=priors).fit(*iris)
    for weighted, areas in ((False, [1, 1, 1]), (True, priors)):
        ax = class_densities(model, column=2, weighted=weighted)
        found = [trapezoid(line.get_ydata(), line.get_xdata()) for line in ax.get_lines()]
        assert_allclose(found, areas, rtol=1e-3)
    assert ax.get_ylabel() == "density in the class × prior of the class"


def test_an_exponential_column_starts_at_zero(model, mails):
    X, y = mails
    x, density = class_densities(model, column="wait").get_lines()[1].get_data()
    mean = X["wait"][y == "spam"].mean()
    assert abs(x[0]) < 1e-3 * mean
    assert_allclose(density, np.exp(-x / mean) / mean)


def test_bars_are_the_probabilities_of_the_states(model, mails):
    X, y = mails
    ax = class_densities(model, column="links")
    for label, bars in zip(["ham", "spam"], ax.containers, strict=True):
        mean = X["links"][y == label].mean()
        assert_allclose(bars.datavalues, stats.poisson.pmf(np.arange(len(bars)), mean))
    further = X.assign(links=np.where(np.arange(200) == 0, 30, X["links"]))
    assert len(class_densities(model, further, y, column="links").containers[0]) == 31
    share = (X["html"][y == "spam"].sum() + 1) / ((y == "spam").sum() + 2)
    html = class_densities(model, column="html").containers[1].datavalues
    assert_allclose(html, [1 - share, share])


def test_many_states_have_lines_where_the_counts_are(mails):
    many, y = np.random.default_rng(0).poisson(200, (200, 1)), mails[1]
    ax = class_densities(NaiveBayes(family="poisson").fit(many, y), many, y, column=0)
    x, probability = ax.get_lines()[0].get_data()
    assert_allclose(probability, stats.poisson.pmf(x, many[y == "ham"].mean()))
    assert 130 < ax.get_xlim()[0] < many.min()
    counts, shares = ax.get_lines()[1].get_data()
    assert_allclose(np.nansum(shares), 1)
    assert set(counts[shares > 0]) == set(many[y == "ham", 0])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_markers_beside_the_bars_are_the_shares_of_the_rows(model, mails, frame, legend):
    X, y = mails
    rows = frame({name: X[name].to_list() for name in X})
    ax = class_densities(model, rows, y, column="sender", weighted=True)
    assert [text.get_text() for text in ax.get_xticklabels()] == ["friend", "unknown"]
    spam = ax.get_lines()[1].get_ydata()
    expected = [(X["sender"][y == "spam"] == s).mean() for s in ("friend", "unknown")]
    assert_allclose(spam, model.priors_[1] * np.array(expected))
    assert sorted(legend(ax)) == ["ham", "rows", "spam"]


def test_the_histogram_is_that_of_the_rows_of_each_class_without_missing_entries(iris):
    X, y = iris
    model = GaussianClassifier(covariance="diagonal").fit(X.to_numpy(), y)
    ax = class_densities(model, X.mask(X > 4.0).to_numpy(), y, column=1, weighted=True)
    assert ax.get_xlabel() == "x1"
    for k, (label, steps) in enumerate(zip(np.unique(y), ax.patches, strict=True)):
        height, edges, _ = steps.get_data()
        own = X["sepal width (cm)"][(y == label) & (X["sepal width (cm)"] <= 4.0)]
        assert_allclose(height, np.histogram(own, edges, density=True)[0] / 3)
        assert steps.get_facecolor()[:3] == to_rgba(COLOURS[k])[:3]


@pytest.mark.parametrize("covariance", ["shared", "full"])
def test_ellipses_are_at_one_and_two_standard_deviations(iris, covariance, legend):
    X, y = iris
    model = GaussianClassifier(covariance=covariance).fit(X, y)
    pair = ["petal width (cm)", "sepal width (cm)"]
    ax = density_ellipses(model, X, y, columns=pair)
    assert len(ax.get_lines()) == 6
    for i, line in enumerate(ax.get_lines()):
        own = y == np.unique(y)[i // 2]
        rows = (
            X[pair][own] if covariance == "full" else X[pair] - X[pair].groupby(y).transform("mean")
        )
        precision = np.linalg.inv(np.cov(rows.T, bias=True))
        away = line.get_xydata() - X[pair][own].mean().to_numpy()
        assert_allclose(np.einsum("ij,jk,ik->i", away, precision, away), (1 + i % 2) ** 2)
    assert (ax.get_xlabel(), ax.get_ylabel()) == tuple(pair)
    assert legend(ax) == ["setosa", "versicolor", "virginica"]


def test_what_has_no_density_is_named(iris, mails, model):
    X, y = iris
    gaussian, mixed = GaussianClassifier().fit(X, y), GaussianClassifier().fit(*mails)
    infinite = X.copy()
    infinite.loc[3] = np.inf
    stranger = mails[0].assign(sender="stranger")
    other = LogisticRegression(prior=1.0).fit(X, y)
    for bad, rows, column, error, words in (
        (other, (), 0, ParameterError, "no densities"),
        (GaussianClassifier(), (), 0, NotFittedError, "not fitted"),
        (gaussian, (), "age", ParameterError, "no column 'age'"),
        (gaussian, (), 4, ParameterError, "no column 4"),
        (gaussian, (infinite, y), 1, MissingValueError, "Row 3 of column 'sepal width"),
        (gaussian, (X,), 1, ParameterError, "X and y belong together"),
        (model, (stranger, mails[1]), "sender", LevelError, "Row 0 of column 'sender'"),
        (mixed, (), "sender", ParameterError, "levels of column 'sender'"),
    ):
        with pytest.raises(error, match=words):
            class_densities(bad, *rows, column=column)
    for bad, words in ((gaussian, "4 columns"), (other, "has no covariances")):
        with pytest.raises(ParameterError, match=words):
            density_ellipses(bad, X, y)


@pytest.mark.filterwarnings("ignore::posteriori.errors.SingularCovarianceWarning")
@pytest.mark.parametrize("kind", [GaussianClassifier, NaiveBayes])
def test_a_column_that_never_changes_has_no_density(iris, kind):
    X, y = iris
    with pytest.raises(ParameterError, match="'one' is constant"):
        class_densities(kind().fit(X.assign(one=1.0), y), column="one")
