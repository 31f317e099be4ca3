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

NAMES = np.array(["barolo", "grignolino", "barbera"])


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return X, NAMES[y]


@pytest.fixture(scope="module")
def plane(wine):
    return FisherDiscriminant(n_components=2).fit(*wine)


def colour_at(ax, point):
    """The colour of the region under a point."""
    image = ax.images[0]
    left, right, bottom, top = image.get_extent()
    pixels = np.asarray(image.get_array())
    height, width = pixels.shape[:2]
    column = int((point[0] - left) / (right - left) * width)
    row = int((point[1] - bottom) / (top - bottom) * height)
    return pixels[row, column]


def hue_of(pixel):
    """Which class's colour was mixed with white to give the pixel, and how strongly."""
    ink = 1 - pixel
    full = 1 - class_colours(len(NAMES))
    strength = (full @ ink) / (full**2).sum(axis=1)
    k = int(np.abs(strength[:, None] * full - ink).sum(axis=1).argmin())
    return k, float(strength[k])


def test_the_points_are_the_rows_in_the_plane(wine, plane):
    X, y = wine
    ax = decision_regions(GaussianClassifier().fit(X, y), X, y, plane=plane)
    for label, drawn in zip(sorted(NAMES), ax.collections[-3:], strict=True):
        assert_allclose(drawn.get_offsets(), plane.transform(X)[y == label])


def test_a_point_lies_on_the_colour_of_its_predicted_class(wine, plane):
    X, y = wine
    model = GaussianClassifier().fit(X, y)
    ax = decision_regions(model, X, y, plane=plane, resolution=300)
    predicted, proba = model.predict(X), model.predict_proba(X)
    # A pixel is not a point: leave out the rows a hair's breadth from a boundary.
    for i in np.flatnonzero(proba.max(axis=1) > 0.8):
        k, _ = hue_of(colour_at(ax, plane.transform(X[i : i + 1])[0]))
        assert model.classes_[k] == predicted[i]


def test_the_surer_the_model_the_stronger_the_colour(wine, plane):
    X, y = wine
    Z = plane.transform(X)
    model = GaussianClassifier().fit(Z, y)
    ax = decision_regions(model, Z, y, resolution=400)
    sureness = model.predict_proba(Z).max(axis=1)
    strength = np.array([hue_of(colour_at(ax, z))[1] for z in Z])
    sure, unsure = sureness > 0.999, sureness < 0.9
    assert unsure.any()
    assert strength[sure].min() > strength[unsure].max()
    assert_allclose(strength[sureness > 1 - 1e-6], 0.45, atol=0.005)


def test_points_of_the_plane_stand_for_rows_that_lie_there(wine, plane):
    X, y = wine
    seen = []

    class Spy:
        classes_ = np.unique(y)

        def predict(self, rows):
            seen.append(rows)
            return np.full(len(rows), self.classes_[0])

    ax = decision_regions(Spy(), X, y, plane=plane, resolution=11)
    back = plane.transform(seen[0])
    left, right, bottom, top = ax.images[0].get_extent()
    half = np.array([right - left, top - bottom]) / 22
    assert_allclose(back[0], np.array([left, bottom]) + half, rtol=1e-8)
    assert_allclose(back[-1], np.array([right, top]) - half, rtol=1e-8)


def test_a_model_without_probabilities_is_drawn_in_flat_colours(wine, plane):
    X, y = wine
    model = LeastSquaresClassifier().fit(X, y)
    ax = decision_regions(model, X, y, plane=plane, resolution=60)
    strengths = {
        round(hue_of(p)[1], 6) for p in np.asarray(ax.images[0].get_array()).reshape(-1, 3)
    }
    assert strengths == {0.45}


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_data_frame_keeps_its_column_names(wine, frame):
    X, y = wine
    table = frame({"alcohol": X[:, 0], "hue": X[:, 10]})
    ax = decision_regions(GaussianClassifier().fit(table, y), table, y, resolution=20)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("alcohol", "hue")


def test_what_has_no_regions_is_named(wine, plane):
    X, y = wine
    model = GaussianClassifier().fit(X, y)
    with pytest.raises(ShapeError, match="13 columns"):
        decision_regions(model, X, y)
    with pytest.raises(ParameterError, match="two components"):
        decision_regions(model, X, y, plane=FisherDiscriminant(n_components=1).fit(X, y))
    with pytest.raises(LabelError, match="chianti"):
        decision_regions(model, X, np.full(len(X), "chianti"), plane=plane)
    with pytest.raises(ShapeError, match="missing"):
        decision_regions(model, np.where(X > 100, np.nan, X), y, plane=plane)


@pytest.fixture(scope="module")
def mixed():
    random = np.random.default_rng(0)
    n = 90
    y = np.where(random.random(n) < 0.5, "ham", "spam")
    columns = {
        "size": random.normal(size=n) + (y == "spam"),
        "links": random.poisson(2.6, n),
        "age": random.normal(size=n),
        "sender": np.where(random.random(n) < 0.7, "unknown", "friend"),
        "html": random.random(n) < 0.2,
    }
    return columns, y


class Spy:
    """A classifier of two classes that keeps the rows it is asked about."""

    classes_ = np.array(["ham", "spam"])

    def predict(self, rows):
        self.rows = rows
        return np.full(len(rows), "ham")


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_not_drawn_are_held_at_their_mean_or_most_frequent_level(mixed, frame):
    columns, y = mixed
    spy = Spy()
    decision_regions(spy, frame(columns), y, columns=("size", "age"), resolution=5)
    seen = {name: np.asarray(spy.rows[name]) for name in columns}
    assert list(spy.rows.columns) == list(columns)
    assert_array_equal(seen["links"], np.full(25, round(columns["links"].mean())))
    assert_array_equal(seen["sender"], np.full(25, "unknown"))
    assert_array_equal(seen["html"], np.full(25, False))
    low, high = columns["size"].min(), columns["size"].max()
    margin = 0.08 * (high - low)
    assert_allclose(seen["size"][:5], np.linspace(low - margin, high + margin, 5))
    assert_allclose(seen["age"][:5], seen["age"][0])


def test_the_mean_of_a_column_that_is_not_drawn_leaves_missing_entries_out():
    X = np.array([[1.0, 2.0, 0.5], [2.0, 1.0, np.nan], [3.0, 0.0, 1.0], [4.0, 5.0, 3.0]])
    rows = slice_of(X, None, (0, 1), None).lift(np.zeros((2, 2)))
    assert_allclose(rows, [[0, 0, 1.5], [0, 0, 1.5]])


def test_levels_keep_the_type_of_their_column(mixed):
    columns, y = mixed
    X = pd.DataFrame(columns).astype({"sender": "category"})
    rows = slice_of(X, y, ("size", "age"), None).lift(np.zeros((3, 2)))
    assert rows["sender"].dtype == X["sender"].dtype
    model = LogisticRegression().fit(X, y)
    assert_allclose(model.predict_proba(rows).sum(axis=1), 1)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_any_model_of_mixed_columns_can_be_drawn(mixed, frame):
    columns, y = mixed
    X = frame(columns)
    model = NaiveBayes(family={"links": "poisson"}).fit(X, y)
    ax = decision_regions(model, X, y, columns=("size", "age"), resolution=10)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("size", "age")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["ham", "spam"]


def test_the_fisher_plane_by_name_is_that_of_a_fitted_discriminant():
    X, y = load_wine(return_X_y=True)
    model = GaussianClassifier().fit(X, y)
    plane = FisherDiscriminant(n_components=2).fit(X, y)
    by_name = decision_regions(model, X, y, plane="fisher", resolution=30)
    fitted = decision_regions(model, X, y, plane=plane, resolution=30)
    assert_array_equal(by_name.images[0].get_array(), fitted.images[0].get_array())
    assert_allclose(by_name.collections[-1].get_offsets(), plane.transform(X)[y == 2])


def test_a_line_of_the_surface_runs_where_the_class_has_that_probability(iris):
    X, y = iris
    X = X.iloc[:, :2]
    model = LogisticRegression(prior=1.0).fit(X, y)
    ax = posterior_surface(model, X, y, label="versicolor", resolution=120)
    lines = ax.collections[-1]  # the contour lines are drawn last
    for level, path in zip(lines.levels, lines.get_paths(), strict=True):
        rows = pd.DataFrame(path.vertices, columns=X.columns)
        assert_allclose(model.predict_proba(rows)[:, 1], level, atol=2e-3)


def test_every_line_of_the_surface_has_its_number_on_it(iris):
    X, y = iris
    model = GaussianClassifier().fit(X, y)
    columns = ["petal length (cm)", "petal width (cm)"]
    ax = posterior_surface(model, X, y, label="virginica", columns=columns)
    assert [text.get_text() for text in ax.texts] == [f"0.{i}" for i in range(1, 10)]
    rows = read_table(X).with_columns({2 + j: [t.xy[j] for t in ax.texts] for j in (0, 1)})
    assert_allclose(model.predict_proba(rows)[:, 2], np.arange(1, 10) / 10, atol=0.02)
    assert ax.get_title() == "probability of class virginica"
    assert (ax.get_xlabel(), ax.get_ylabel()) == tuple(columns)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(model.classes_)


def test_a_surface_without_slopes_has_no_lines(iris):
    class Even:
        classes_ = np.array(["no", "yes"])

        def predict_proba(self, rows):
            return np.full((len(rows), 2), 0.5)

    X, _ = iris
    ax = posterior_surface(Even(), X.iloc[:, :2], np.full(len(X), "no"), resolution=10)
    assert not ax.texts


def test_what_cannot_be_sliced_is_named(iris, mixed):
    X, y = iris
    model = GaussianClassifier().fit(X, y)
    for draw in (decision_regions, posterior_surface):
        given = {} if draw is decision_regions else {"label": "setosa"}
        with pytest.raises(ParameterError, match="no column 'petal'"):
            draw(model, X, y, columns=("petal", "sepal length (cm)"), **given)
        with pytest.raises(ParameterError, match="not two"):
            draw(model, X, y, columns=(0, 1, 2), **given)
        with pytest.raises(ParameterError, match="the same"):
            draw(model, X, y, columns=(1, 1), **given)
        with pytest.raises(ParameterError, match="exclude each other"):
            draw(model, X, y, columns=(0, 1), plane="fisher", **given)
        with pytest.raises(ParameterError, match="plane='pca'"):
            draw(model, X, y, plane="pca", **given)
        with pytest.raises(ParameterError, match="resolution=1 "):
            draw(model, X, y, columns=(0, 1), resolution=1, **given)
        with pytest.raises(ShapeError, match="4 columns"):
            draw(model, X, y, **given)
        with pytest.raises(ShapeError, match="shape \\(100,\\)"):
            draw(model, X, y[:100], columns=(0, 1), **given)
        with pytest.raises(LabelError, match="rose"):
            draw(model, X, np.full(150, "rose"), columns=(0, 1), **given)
    with pytest.raises(ParameterError, match="not fitted"):
        decision_regions(GaussianClassifier(), X, y, columns=(0, 1))
    with pytest.raises(ParameterError, match="3 classes, and label"):
        posterior_surface(model, X, y, columns=(0, 1))
    with pytest.raises(ParameterError, match="no class 'rose'"):
        posterior_surface(model, X, y, columns=(0, 1), label="rose")
    with pytest.raises(ParameterError, match="no predict_proba"):
        posterior_surface(Spy(), X, np.full(150, "ham"), columns=(0, 1))
    columns, kinds = mixed
    with pytest.raises(ShapeError, match="Column 'sender' is not numeric"):
        decision_regions(Spy(), pd.DataFrame(columns), kinds, columns=("size", "sender"))
    with pytest.raises(ParameterError, match="no two discriminant directions"):
        decision_regions(Spy(), pd.DataFrame(columns)[["size", "age"]], kinds, plane="fisher")


def test_actions_have_regions_with_their_names_in_them():
    X, y = load_iris(return_X_y=True)
    loss = {0: {"go": 0, "stop": 5}, 1: {"go": 1, "stop": 0}, 2: {"go": 2, "stop": 0}}
    model = DecidingClassifier(GaussianClassifier(), loss=loss, reject_cost=0.2)
    model.fit(X[:, 2:], y)
    ax = decision_regions(model, X[:, 2:], y, resolution=60)
    assert {text.get_text() for text in ax.texts} == {"go", "reject", "stop"}
    for text in ax.texts:
        assert model.predict(np.array([text.xy]))[0] == text.get_text()
    (picture,) = ax.get_images()
    assert len(np.unique(picture.get_array())) == 3
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["0", "1", "2"]


def test_another_rule_than_the_largest_probability_has_its_own_regions():
    X, y = load_iris(return_X_y=True)
    X, y = X[y > 0, 2:], y[y > 0]
    careful = FixedThresholdClassifier(GaussianClassifier(), threshold=0.9, pos_label=2).fit(X, y)
    plain = decision_regions(GaussianClassifier().fit(X, y), X, y, resolution=50)
    moved = decision_regions(careful, X, y, resolution=50)
    pictures = [ax.get_images()[0].get_array() for ax in (plain, moved)]
    assert not np.allclose(*pictures)


# --- Densities --------------------------------------------------------------------------------


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
    assert ax.get_xlabel() == "x2"


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
    with pytest.raises(ShapeError, match="Row 3 of column 'x1' is infinite"):
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
