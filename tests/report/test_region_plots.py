"""Regions and surfaces in a plane of two columns, and the densities of the classes."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib.colors import to_rgb, to_rgba
from numpy.testing import assert_allclose
from scipy import stats
from scipy.integrate import trapezoid
from sklearn.datasets import load_iris, load_wine

from posteriori import (
    DecidingClassifier,
    FisherDiscriminant,
    GaussianClassifier,
    LeastSquaresClassifier,
    LogisticRegression,
    NaiveBayes,
)
from posteriori.errors import (
    ColumnNameError,
    LabelError,
    MissingValueError,
    ParameterError,
    ShapeError,
)
from posteriori.report.plots import (
    class_densities,
    decision_regions,
    density_ellipses,
    posterior_surface,
)
from posteriori.report.plots.style import COLOURS


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return X, np.array(["barolo", "grignolino", "barbera"])[y]


@pytest.fixture(scope="module")
def plane(wine):
    return FisherDiscriminant(n_components=2).fit(*wine)


class Spy:
    """A classifier of two classes that keeps the rows it is given."""

    classes_ = np.array(["ham", "spam"])

    def predict(self, rows):
        self.rows = rows
        return np.full(len(rows), "ham")


def pixels_of(ax):
    """The colours of the regions, and the points under which they are."""
    mesh = next(each for each in ax.collections if hasattr(each, "get_coordinates"))
    corners = mesh.get_coordinates()
    centres = (corners[:-1, :-1] + corners[1:, 1:]) / 2
    return np.asarray(mesh.get_array()).reshape(*centres.shape[:2], 3), centres


def regions(ax):
    """A function from a point to the class whose colour it has, and how strong that colour is."""
    pixels, centres = pixels_of(ax)

    def at(point):
        ink = (
            1
            - pixels[
                abs(centres[:, 0, 1] - point[1]).argmin(), abs(centres[0, :, 0] - point[0]).argmin()
            ]
        )
        full = 1 - np.array([to_rgb(colour) for colour in COLOURS[:3]])
        strength = (full @ ink) / (full**2).sum(axis=1)
        k = int(np.abs(strength[:, None] * full - ink).sum(axis=1).argmin())
        return k, float(strength[k])

    return at


def test_rows_are_points_on_the_colour_of_their_predicted_class(wine, plane):
    X, y = wine
    model, Z = GaussianClassifier().fit(X, y), plane.transform(X)
    ax = decision_regions(model, X, y, plane=plane)
    for label, drawn in zip(model.classes_, ax.collections[-3:], strict=True):
        assert_allclose(drawn.get_offsets(), Z[y == label])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("component 1", "component 2")
    predicted, largest = model.predict(X), model.predict_proba(X).max(axis=1)
    found = [regions(ax)(z) for z in Z]
    assert all(model.classes_[found[i][0]] == predicted[i] for i in np.flatnonzero(largest > 0.8))
    strength = np.array([each[1] for each in found])
    assert strength[largest > 0.999].min() > strength[largest < 0.9].max()
    flat = regions(decision_regions(LeastSquaresClassifier().fit(Z, y), Z, y, resolution=20))
    assert {round(flat(z)[1], 6) for z in Z} == {0.45}


def test_points_of_the_plane_stand_for_rows_that_are_mapped_to_them(wine, plane):
    spy = Spy()
    spy.classes_ = np.array(["ham", *np.unique(wine[1])])
    for given in (plane, "fisher"):
        _, centres = pixels_of(decision_regions(spy, *wine, plane=given, resolution=9))
        assert_allclose(plane.transform(spy.rows), centres.reshape(-1, 2), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_other_columns_are_at_their_mean_or_most_frequent_level(mails, kind, legend):
    X, y = mails
    X = X.astype({"sender": "category"}) if kind == "pandas" else pl.from_pandas(X)
    spy = Spy()
    ax = decision_regions(spy, X, y, columns=("size", "wait"), resolution=5)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("size", "wait")
    assert legend(ax) == ["ham", "spam"]
    assert spy.rows["sender"].dtype == X["sender"].dtype
    for name, value in (("links", round(X["links"].mean())), ("sender", "unknown"), ("html", True)):
        assert set(spy.rows[name]) == {value}
    low, high = X["size"].min(), X["size"].max()
    margin = 0.08 * (high - low)
    assert_allclose(spy.rows["size"][:5], np.linspace(low - margin, high + margin, 5))
    assert np.ptp(np.asarray(spy.rows["wait"])[:5]) == 0
    gaps = np.array([[1.0, 2.0, 0.5], [2.0, 1.0, np.nan], [3.0, 0.0, 1.0], [4.0, 5.0, 3.0]])
    decision_regions(spy, gaps, ["ham"] * 4, columns=(0, 1), resolution=2)
    assert_allclose(spy.rows[:, 2], 1.5)


def test_a_model_fitted_by_a_formula_has_regions_of_the_columns_of_its_frame(mails):
    X, y = mails
    frame = X.assign(spam=y, day=pd.Timestamp("2024-01-01"))
    model = LogisticRegression().fit("spam ~ size + wait + I(wait**2) + sender", frame)
    other = LogisticRegression().fit(X, y)  # to which the frame has extra columns
    for each in (model, other):
        ax = posterior_surface(each, frame, y, columns=("wait", "size"), resolution=5)
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("wait", "size")


def test_lines_of_the_surface_are_where_the_class_has_their_probability(iris, legend):
    X, y = iris
    columns = ["petal length (cm)", "petal width (cm)"]
    model = GaussianClassifier().fit(X[columns], y)
    ax = posterior_surface(model, X[columns], y, label="virginica")
    lines = ax.collections[-1]  # the contour lines are drawn last
    for level, path in zip(lines.levels, lines.get_paths(), strict=True):
        rows = pd.DataFrame(path.vertices, columns=columns)
        assert_allclose(model.predict_proba(rows)[:, 2], level, atol=0.02)
    assert_allclose(lines.levels, np.arange(1, 10) / 10)
    assert ax.get_title() == "probability of class virginica"
    assert (ax.get_xlabel(), ax.get_ylabel()) == tuple(columns)
    assert legend(ax) == list(model.classes_)


def test_actions_have_grey_regions_and_classes_keep_their_colours(legend):
    X, y = load_iris(return_X_y=True)
    X = X[:, 2:]
    loss = {0: {"go": 0, "stop": 5}, 1: {"go": 1, "stop": 0}, 2: {"go": 2, "stop": 0}}
    model = DecidingClassifier(GaussianClassifier(), loss=loss, reject_cost=0.2).fit(X, y)
    ax = decision_regions(model, X, y, resolution=60)
    assert legend(ax) == ["go", "reject", "stop", "0", "1", "2"]
    pixels, centres = pixels_of(ax)
    chosen = model.predict(centres.reshape(-1, 2)).reshape(pixels.shape[:2])
    for patch in ax.patches:
        own = pixels[chosen == patch.get_label()]
        assert_allclose(own, np.tile(patch.get_facecolor()[:3], (len(own), 1)))
    model = DecidingClassifier(GaussianClassifier(), reject_cost=0.2).fit(X, y)
    at = regions(ax := decision_regions(model, X, y, resolution=60))
    assert legend(ax) == ["reject", "0", "1", "2"]  # None in the predictions
    assert all(at(x)[0] == 2 for x in X[model.predict(X) == 2])


def test_what_has_no_plane_or_surface_is_named(iris, mails):
    X, y = iris
    model = GaussianClassifier().fit(X, y)
    two = {"columns": (0, 1)}
    for given, error, words in (
        ({"columns": ("petal", 0)}, ColumnNameError, "no column 'petal'"),
        ({"columns": (1, 1)}, ParameterError, "two columns, not 1"),
        ({}, ParameterError, "two columns, not 4"),
        ({**two, "plane": "fisher"}, ParameterError, "exclude each other"),
        ({"plane": "pca"}, ParameterError, "plane='pca'"),
        ({**two, "y": np.full(150, "rose")}, LabelError, "rose"),
        ({**two, "label": None}, ParameterError, "3 classes, and label"),
        ({"plane": "fisher", "X": X.mask(X > 7.5)}, MissingValueError, "missing"),
        ({"X": mails[0], "columns": ("size", "sender")}, ShapeError, "'sender' is not numeric"),
    ):
        used = Spy() if "X" in given and given["X"] is mails[0] else model
        with pytest.raises(error, match=words):
            posterior_surface(used, **{"X": X, "y": y, "label": "setosa", **given})


# --- Densities ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(mails):
    return NaiveBayes(family={"links": "poisson", "wait": "exponential"}).fit(*mails)


@pytest.mark.parametrize("covariance", ["shared", "full", "diagonal"])
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


def test_weighted_curves_integrate_to_the_priors(iris, mails, model):
    priors = [0.5, 0.3, 0.2]
    naive = NaiveBayes(priors=priors).fit(*iris)
    for weighted, areas in ((False, [1, 1, 1]), (True, priors)):
        ax = class_densities(naive, column=2, weighted=weighted)
        found = [trapezoid(line.get_ydata(), line.get_xdata()) for line in ax.get_lines()]
        assert_allclose(found, areas, rtol=1e-3)
    assert ax.get_ylabel() == "density in the class × prior of the class"
    x, density = class_densities(model, column="wait").get_lines()[1].get_data()
    mean = mails[0]["wait"][mails[1] == "spam"].mean()
    assert abs(x[0]) < 1e-3 * mean  # an exponential density starts at zero
    assert_allclose(density, np.exp(-x / mean) / mean)


def test_bars_are_the_probabilities_of_the_states_with_the_shares_of_the_rows(model, mails, legend):
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
    ax = class_densities(model, pl.from_pandas(X), y, column="sender", weighted=True)
    assert [text.get_text() for text in ax.get_xticklabels()] == ["friend", "unknown"]
    expected = [(X["sender"][y == "spam"] == s).mean() for s in ("friend", "unknown")]
    assert_allclose(ax.get_lines()[1].get_ydata(), model.priors_[1] * np.array(expected))
    assert sorted(legend(ax)) == ["ham", "rows", "spam"]
    new = X["sender"].where(np.arange(200) % 3 > 0, "stranger")  # left out
    spam = class_densities(model, X.assign(sender=new), y, column="sender").get_lines()[1]
    assert_allclose(spam.get_ydata().sum(), 1)


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
    away, classes = X[pair] - X[pair].groupby(y).transform("mean"), np.unique(y)
    assert len(ax.get_lines()) == 6
    for i, line in enumerate(ax.get_lines()):
        own = y == classes[i // 2]
        precision = np.linalg.inv(np.cov(away[own | (covariance == "shared")].T, bias=True))
        ring = line.get_xydata() - X[pair][own].mean().to_numpy()
        assert_allclose(np.einsum("ij,jk,ik->i", ring, precision, ring), (1 + i % 2) ** 2)
    assert (ax.get_xlabel(), ax.get_ylabel()) == tuple(pair)
    assert legend(ax) == ["setosa", "versicolor", "virginica"]


@pytest.mark.filterwarnings("ignore::posteriori.errors.SingularCovarianceWarning")
def test_what_has_no_density_is_named(iris, mails):
    X, y = iris
    constant = X.assign(one=1.0)
    for model, rows, column, error, words in (
        (GaussianClassifier().fit(X, y), (), "age", ColumnNameError, "no column 'age'"),
        (GaussianClassifier().fit(X, y), (X,), 1, LabelError, "requires y"),
        (GaussianClassifier().fit(*mails), (), "sender", ParameterError, "of column 'sender'"),
        (GaussianClassifier().fit(constant, y), (), "one", ParameterError, "'one' is constant"),
        (NaiveBayes().fit(constant, y), (), "one", ParameterError, "'one' is constant"),
    ):
        with pytest.raises(error, match=words):
            class_densities(model, *rows, column=column)
