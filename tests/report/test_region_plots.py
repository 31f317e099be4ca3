"""What `decision_regions` and `posterior_surface` draw of two columns, or of Fisher's plane."""

import matplotlib as mpl

mpl.use("agg")

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import FixedThresholdClassifier

from posteriori import (
    DecidingClassifier,
    FisherDiscriminant,
    GaussianClassifier,
    LogisticRegression,
    NaiveBayes,
)
from posteriori.errors import LabelError, ParameterError, ShapeError
from posteriori.report.plots import COLOURS, LINES, decision_regions, posterior_surface
from posteriori.report.regions import slice_of
from posteriori.report.tables import read_table


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True, as_frame=True)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


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


def test_no_colour_comes_with_the_same_line_twice_within_56_classes():
    assert len(set(zip(COLOURS * 8, map(str, LINES * 7), strict=True))) == 56


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
    with pytest.raises(ParameterError, match="no probabilities"):
        posterior_surface(Spy(), X, np.full(150, "ham"), columns=(0, 1))
    columns, kinds = mixed
    with pytest.raises(ShapeError, match="'sender' is not a column of numbers"):
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
