"""Regions and surfaces in a plane of two columns, and the densities of the classes."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib.colors import to_rgba
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.integrate import trapezoid
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import FixedThresholdClassifier

from posteriori import (
    DecidingClassifier,
    FisherDiscriminant,
    GaussianClassifier,
    LeastSquaresClassifier,
    LogisticRegression,
    NaiveBayes,
)
from posteriori.errors import LabelError, LevelError, ParameterError, ShapeError
from posteriori.report.plots import (
    COLOURS,
    class_colours,
    class_densities,
    decision_regions,
    density_ellipses,
    posterior_surface,
)
from posteriori.report.plots.densities import slice_of
from posteriori.report.plots.style import read_table

FRAMES = pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return X, np.array(["barolo", "grignolino", "barbera"])[y]


@pytest.fixture(scope="module")
def plane(wine):
    return FisherDiscriminant(n_components=2).fit(*wine)


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True, as_frame=True)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


@pytest.fixture(scope="module")
def mails():
    """Columns of all kinds, and two classes."""
    random = np.random.default_rng(1)
    n = 200
    y = np.where(random.random(n) < 0.4, "spam", "ham")
    X = pd.DataFrame(
        {
            "links": random.poisson(np.where(y == "spam", 4.0, 1.0)),
            "sender": np.where(random.random(n) < 0.6, "unknown", "friend"),
            "wait": random.exponential(np.where(y == "spam", 1.0, 3.0)),
            "html": random.random(n) < np.where(y == "spam", 0.9, 0.4),
            "size": random.normal(size=n),
        }
    )
    return X, y


@pytest.fixture(scope="module")
def model(mails):
    return NaiveBayes(family={"links": "poisson", "wait": "exponential"}).fit(*mails)


class Spy:
    """A classifier of two classes that keeps the rows it is given."""

    classes_ = np.array(["ham", "spam"])

    def predict(self, rows):
        self.rows = rows
        return np.full(len(rows), "ham")


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


# --- Regions and surfaces -------------------------------------------------------------------------


def colour_at(ax, point):
    """The colour of the region under a point."""
    left, right, bottom, top = ax.images[0].get_extent()
    pixels = np.asarray(ax.images[0].get_array())
    column = int((point[0] - left) / (right - left) * pixels.shape[1])
    return pixels[int((point[1] - bottom) / (top - bottom) * pixels.shape[0]), column]


def hue_of(pixel):
    """Which class's colour was mixed with white to give the pixel, and how strongly."""
    ink, full = 1 - pixel, 1 - class_colours(3)
    strength = (full @ ink) / (full**2).sum(axis=1)
    k = int(np.abs(strength[:, None] * full - ink).sum(axis=1).argmin())
    return k, float(strength[k])


def test_a_row_is_a_point_on_the_colour_of_its_predicted_class(wine, plane):
    X, y = wine
    model = GaussianClassifier().fit(X, y)
    ax = decision_regions(model, X, y, plane=plane, resolution=300)
    for label, drawn in zip(model.classes_, ax.collections[-3:], strict=True):
        assert_allclose(drawn.get_offsets(), plane.transform(X)[y == label])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("component 1", "component 2")
    predicted, proba = model.predict(X), model.predict_proba(X)
    for i in np.flatnonzero(proba.max(axis=1) > 0.8):  # not too near to a boundary
        k, _ = hue_of(colour_at(ax, plane.transform(X[i : i + 1])[0]))
        assert model.classes_[k] == predicted[i]


def test_the_more_probable_the_class_the_stronger_the_colour(wine, plane):
    X, y = wine
    Z = plane.transform(X)
    model = GaussianClassifier().fit(Z, y)
    ax = decision_regions(model, Z, y, resolution=400)
    largest = model.predict_proba(Z).max(axis=1)
    strength = np.array([hue_of(colour_at(ax, z))[1] for z in Z])
    assert (largest < 0.9).any()
    assert strength[largest > 0.999].min() > strength[largest < 0.9].max()
    assert_allclose(strength[largest > 1 - 1e-6], 0.45, atol=0.005)
    flat = decision_regions(LeastSquaresClassifier().fit(Z, y), Z, y, resolution=20)
    pixels = np.asarray(flat.images[0].get_array()).reshape(-1, 3)
    assert {round(hue_of(pixel)[1], 6) for pixel in pixels} == {0.45}


def test_points_of_the_plane_stand_for_rows_that_are_mapped_to_them(wine, plane):
    X, _ = wine
    space = slice_of(X, None, None, plane)
    points = space.coordinates[:5] + 1.0
    assert_allclose(plane.transform(space.lift(points)), points, rtol=1e-8)
    by_name = slice_of(X, wine[1], None, "fisher")
    assert_array_equal(by_name.coordinates, space.coordinates)


@FRAMES
def test_other_columns_are_at_their_mean_or_most_frequent_level(mails, frame):
    X, y = mails
    spy = Spy()
    table = frame({name: X[name].to_list() for name in X})
    ax = decision_regions(spy, table, y, columns=("size", "wait"), resolution=5)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("size", "wait")
    rows = {name: np.asarray(spy.rows[name]) for name in X}
    assert list(spy.rows.columns) == list(X)
    assert_array_equal(rows["links"], np.full(25, round(X["links"].mean())))
    assert_array_equal(rows["sender"], np.full(25, "unknown"))
    assert_array_equal(rows["html"], np.full(25, True))
    low, high = X["size"].min(), X["size"].max()
    margin = 0.08 * (high - low)
    assert_allclose(rows["size"][:5], np.linspace(low - margin, high + margin, 5))
    assert_allclose(rows["wait"][:5], rows["wait"][0])
    model = NaiveBayes(family={"links": "poisson"}).fit(table, y)
    assert legend(decision_regions(model, table, y, columns=(2, 4), resolution=5)) == [
        "ham",
        "spam",
    ]


def test_rows_of_the_plane_keep_types_and_leave_missing_entries_out(mails):
    X, y = mails
    X = X.astype({"sender": "category"})
    rows = slice_of(X, y, ("size", "wait"), None).lift(np.zeros((3, 2)))
    assert rows["sender"].dtype == X["sender"].dtype
    gaps = np.array([[1.0, 2.0, 0.5], [2.0, 1.0, np.nan], [3.0, 0.0, 1.0], [4.0, 5.0, 3.0]])
    assert_allclose(slice_of(gaps, None, (0, 1), None).lift(np.zeros((1, 2))), [[0, 0, 1.5]])


def test_lines_of_the_surface_are_where_the_class_has_their_probability(iris):
    X, y = iris
    model = GaussianClassifier().fit(X, y)
    columns = ["petal length (cm)", "petal width (cm)"]
    ax = posterior_surface(model, X, y, label="virginica", columns=columns)
    lines = ax.collections[-1]  # the contour lines are drawn last
    table = read_table(X)
    for level, path in zip(lines.levels, lines.get_paths(), strict=True):
        rows = table.with_columns(dict(zip((2, 3), path.vertices.T, strict=True)))
        assert_allclose(model.predict_proba(rows)[:, 2], level, atol=0.02)
    assert [text.get_text() for text in ax.texts] == [f"0.{i}" for i in range(1, 10)]
    rows = table.with_columns({2 + j: np.array([t.xy[j] for t in ax.texts]) for j in (0, 1)})
    assert_allclose(model.predict_proba(rows)[:, 2], np.arange(1, 10) / 10, atol=0.02)
    assert ax.get_title() == "probability of class virginica"
    assert (ax.get_xlabel(), ax.get_ylabel()) == tuple(columns)
    assert legend(ax) == list(model.classes_)


def test_a_constant_surface_has_no_lines(iris):
    class Even:
        classes_ = np.array(["no", "yes"])

        def predict_proba(self, rows):
            return np.full((len(rows), 2), 0.5)

    X, _ = iris
    ax = posterior_surface(Even(), X.iloc[:, :2], np.full(len(X), "no"), resolution=10)
    assert not ax.texts


def test_actions_have_regions_with_their_names_in_them():
    X, y = load_iris(return_X_y=True)
    loss = {0: {"go": 0, "stop": 5}, 1: {"go": 1, "stop": 0}, 2: {"go": 2, "stop": 0}}
    model = DecidingClassifier(GaussianClassifier(), loss=loss, reject_cost=0.2)
    model.fit(X[:, 2:], y)
    ax = decision_regions(model, X[:, 2:], y, resolution=60)
    assert {text.get_text() for text in ax.texts} == {"go", "reject", "stop"}
    for text in ax.texts:
        assert model.predict(np.array([text.xy]))[0] == text.get_text()
    assert len(np.unique(ax.images[0].get_array())) == 3


def test_regions_are_those_of_the_rule_of_the_model():
    X, y = load_iris(return_X_y=True)
    X, y = X[y > 0, 2:], y[y > 0]
    careful = FixedThresholdClassifier(GaussianClassifier(), threshold=0.9, pos_label=2).fit(X, y)
    models = (GaussianClassifier().fit(X, y), careful)
    plain, moved = (
        decision_regions(each, X, y, resolution=50).images[0].get_array() for each in models
    )
    assert not np.allclose(plain, moved)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"columns": ("petal", 0)}, ParameterError, "no column 'petal'"),
        ({"columns": (0, 1, 2)}, ParameterError, "not two"),
        ({"columns": (1, 1)}, ParameterError, "the same"),
        ({"columns": (0, 1), "plane": "fisher"}, ParameterError, "exclude each other"),
        ({"plane": "pca"}, ParameterError, "plane='pca'"),
        ({"columns": (0, 1), "resolution": 1}, ParameterError, "resolution=1 "),
        ({}, ShapeError, "4 columns"),
        ({"columns": (0, 1), "y": ["setosa"]}, ShapeError, r"shape \(1,\)"),
        ({"columns": (0, 1), "y": np.full(150, "rose")}, LabelError, "rose"),
        ({"columns": (0, 1), "label": "rose"}, ParameterError, "no class 'rose'"),
        ({"columns": (0, 1), "label": None}, ParameterError, "3 classes, and label"),
        ({"model": GaussianClassifier()}, ParameterError, "not fitted"),
    ],
)
def test_what_cannot_be_sliced_is_named(iris, given, error, words):
    X, y = iris
    given = {"model": GaussianClassifier().fit(X, y), "y": y, "label": "setosa", **given}
    with pytest.raises(error, match=words):
        posterior_surface(X=X, **given)


def test_what_has_no_regions_is_named(wine, mails, plane):
    X, y = wine
    model = GaussianClassifier().fit(X, y)
    with pytest.raises(ParameterError, match="two components"):
        decision_regions(model, X, y, plane=FisherDiscriminant(n_components=1).fit(X, y))
    with pytest.raises(ShapeError, match="missing"):
        decision_regions(model, np.where(X > 100, np.nan, X), y, plane=plane)
    with pytest.raises(ShapeError, match="Column 'sender' is not numeric"):
        decision_regions(Spy(), *mails, columns=("size", "sender"))
    with pytest.raises(ParameterError, match="2 classes in 2 columns have 1"):
        decision_regions(Spy(), mails[0][["size", "wait"]], mails[1], plane="fisher")
    with pytest.raises(ParameterError, match="no predict_proba"):
        posterior_surface(Spy(), *mails, columns=("size", "wait"))


# --- Densities ------------------------------------------------------------------------------------


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
    priors = [0.5, 0.3, 0.2]
    model = NaiveBayes(priors=priors).fit(*iris)
    for weighted, areas in ((False, [1, 1, 1]), (True, priors)):
        ax = class_densities(model, column=2, weighted=weighted)
        found = [trapezoid(line.get_ydata(), line.get_xdata()) for line in ax.get_lines()]
        assert_allclose(found, areas, rtol=1e-3)
    assert ax.get_ylabel() == "density in the class × prior of the class"


def test_an_exponential_column_starts_at_zero(model, mails):
    X, y = mails
    for label, line in zip(
        ["ham", "spam"], class_densities(model, column="wait").get_lines(), strict=True
    ):
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
    further = X.assign(links=np.where(np.arange(200) == 0, 30, X["links"]))
    assert len(class_densities(model, further, y, column="links").get_xticks()) == 31
    share = (X["html"][y == "spam"].sum() + 1) / ((y == "spam").sum() + 2)
    html = class_densities(model, column="html").containers[1].datavalues
    assert_allclose(html, [1 - share, share])
    many = np.random.default_rng(0).poisson(200, (200, 1))
    ax = class_densities(NaiveBayes(family="poisson").fit(many, y), column=0)
    x, probability = ax.get_lines()[0].get_data()
    assert_allclose(probability, stats.poisson.pmf(x, many[y == "ham"].mean()))


@FRAMES
def test_markers_beside_the_bars_are_the_shares_of_the_rows(model, mails, frame):
    X, y = mails
    rows = frame({name: X[name].to_list() for name in X})
    ax = class_densities(model, rows, y, column="sender", weighted=True)
    assert [text.get_text() for text in ax.get_xticklabels()] == ["friend", "unknown"]
    spam = ax.collections[1].get_offsets()[:, 1]
    expected = [(X["sender"][y == "spam"] == s).mean() for s in ("friend", "unknown")]
    assert_allclose(spam, model.priors_[1] * np.array(expected))
    assert legend(ax) == ["ham", "spam", "rows"]


def test_the_histogram_is_that_of_the_rows_of_each_class_without_missing_entries(iris):
    X, y = iris
    model = GaussianClassifier(covariance="diagonal").fit(X.to_numpy(), y)
    ax = class_densities(model, X.mask(X > 4.0), y, column=1, weighted=True)
    assert ax.get_xlabel() == "x1"
    for k, (label, steps) in enumerate(zip(np.unique(y), ax.patches, strict=True)):
        height, edges, _ = steps.get_data()
        own = X["sepal width (cm)"][(y == label) & (X["sepal width (cm)"] <= 4.0)]
        assert_allclose(height, np.histogram(own, edges, density=True)[0] / 3)
        assert steps.get_facecolor()[:3] == to_rgba(COLOURS[k])[:3]
        assert len(height) >= 15


@pytest.mark.parametrize("covariance", ["shared", "full"])
def test_ellipses_are_at_one_and_two_standard_deviations(iris, covariance):
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
    gaussian = GaussianClassifier().fit(X, y)
    infinite = np.where(np.arange(150)[:, None] == 3, np.inf, X)
    stranger = mails[0].assign(sender="stranger")
    for bad, rows, column, error, words in (
        (LogisticRegression(prior=1.0).fit(X, y), (), 0, ParameterError, "no densities"),
        (GaussianClassifier(), (), 0, NotFittedError, "not fitted"),
        (gaussian, (), "age", ParameterError, "no column 'age'"),
        (gaussian, (), 4, ParameterError, "no column 4"),
        (gaussian, (infinite, y), 1, ShapeError, "Row 3 of column 'x1' is infinite"),
        (gaussian, (X,), 1, ParameterError, "X and y belong together"),
        (model, (stranger, mails[1]), "sender", LevelError, "'stranger'"),
        (
            GaussianClassifier().fit(*mails),
            (),
            "sender",
            ParameterError,
            "levels of column 'sender'",
        ),
    ):
        with pytest.raises(error, match=words):
            class_densities(bad, *rows, column=column)
    with pytest.raises(ParameterError, match="not two"):
        density_ellipses(gaussian, X, y)
    with pytest.raises(ParameterError, match="NaiveBayes has no covariances"):
        density_ellipses(NaiveBayes().fit(X, y), X, y, columns=(0, 1))


@pytest.mark.filterwarnings("ignore::posteriori.errors.SingularCovarianceWarning")
@pytest.mark.parametrize("kind", [GaussianClassifier, NaiveBayes])
def test_a_column_that_never_changes_has_no_density(iris, kind):
    X, y = iris
    with pytest.raises(ParameterError, match="'one' never changes"):
        class_densities(kind().fit(X.assign(one=1.0), y), column="one")
