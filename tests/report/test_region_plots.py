"""Predicted classes and probabilities in a plane of two columns, or of two components."""

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
    LeastSquaresClassifier,
    LogisticRegression,
)
from posteriori.errors import LabelError, MissingValueError, ParameterError, ShapeError
from posteriori.report.plots import class_colours, decision_regions, posterior_surface


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
        full = 1 - class_colours(3)
        strength = (full @ ink) / (full**2).sum(axis=1)
        k = int(np.abs(strength[:, None] * full - ink).sum(axis=1).argmin())
        return k, float(strength[k])

    return at


def test_rows_are_points_on_the_colour_of_their_predicted_class(wine, plane):
    X, y = wine
    model, Z = GaussianClassifier().fit(X, y), plane.transform(X)
    ax = decision_regions(model, X, y, plane=plane, resolution=400)
    for label, drawn in zip(model.classes_, ax.collections[-3:], strict=True):
        assert_allclose(drawn.get_offsets(), Z[y == label])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("component 1", "component 2")
    predicted, largest = model.predict(X), model.predict_proba(X).max(axis=1)
    found = [regions(ax)(z) for z in Z]
    assert all(model.classes_[found[i][0]] == predicted[i] for i in np.flatnonzero(largest > 0.8))
    strength = np.array([each[1] for each in found])
    assert strength[largest > 0.999].min() > strength[largest < 0.9].max()
    assert_allclose(strength[largest > 1 - 1e-6], 0.45, atol=0.005)
    flat = regions(decision_regions(LeastSquaresClassifier().fit(Z, y), Z, y, resolution=20))
    assert {round(flat(z)[1], 6) for z in Z} == {0.45}


def test_points_of_the_plane_stand_for_rows_that_are_mapped_to_them(wine, plane):
    spy = Spy()
    spy.classes_ = np.array(["ham", *np.unique(wine[1])])
    for given in (plane, "fisher"):
        _, centres = pixels_of(decision_regions(spy, *wine, plane=given, resolution=9))
        assert_allclose(plane.transform(spy.rows), centres.reshape(-1, 2), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_other_columns_are_at_their_mean_or_most_frequent_level(mails, frame, legend):
    X, y = mails
    spy, table = Spy(), frame({name: X[name].to_list() for name in X})
    ax = decision_regions(spy, table, y, columns=("size", "wait"), resolution=5)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("size", "wait")
    assert legend(ax) == ["ham", "spam"]
    assert list(spy.rows.columns) == list(X)
    rows = {name: np.asarray(spy.rows[name]) for name in X}
    assert_array_equal(rows["links"], np.full(25, round(X["links"].mean())))
    assert_array_equal(rows["sender"], np.full(25, "unknown"))
    assert_array_equal(rows["html"], np.full(25, True))
    low, high = X["size"].min(), X["size"].max()
    margin = 0.08 * (high - low)
    assert_allclose(rows["size"][:5], np.linspace(low - margin, high + margin, 5))
    assert_allclose(rows["wait"][:5], rows["wait"][0])


def test_rows_of_the_plane_keep_types_and_leave_missing_entries_out(mails):
    X, y = mails
    spy, X = Spy(), X.astype({"sender": "category"})
    decision_regions(spy, X, y, columns=("size", "wait"), resolution=5)
    assert spy.rows["sender"].dtype == X["sender"].dtype
    gaps = np.array([[1.0, 2.0, 0.5], [2.0, 1.0, np.nan], [3.0, 0.0, 1.0], [4.0, 5.0, 3.0]])
    decision_regions(spy, gaps, ["ham"] * 4, columns=(0, 1), resolution=2)
    assert_allclose(spy.rows[:, 2], 1.5)


def test_a_model_fitted_by_a_formula_has_regions_of_the_columns_of_its_frame(mails):
    X, y = mails
    frame = X.assign(spam=y, day=pd.Timestamp("2024-01-01"))
    model = LogisticRegression().fit("spam ~ size + wait + I(wait**2) + sender", frame)
    ax = posterior_surface(model, frame, y, columns=("wait", "size"), resolution=5)
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
    assert [text.get_text() for text in ax.texts] == [f"0.{i}" for i in range(1, 10)]
    rows = pd.DataFrame([text.xy for text in ax.texts], columns=columns)
    assert_allclose(model.predict_proba(rows)[:, 2], np.arange(1, 10) / 10, atol=0.02)
    assert ax.get_title() == "probability of class virginica"
    assert (ax.get_xlabel(), ax.get_ylabel()) == tuple(columns)
    assert legend(ax) == list(model.classes_)


def test_actions_have_regions_with_their_names_in_them():
    X, y = load_iris(return_X_y=True)
    loss = {0: {"go": 0, "stop": 5}, 1: {"go": 1, "stop": 0}, 2: {"go": 2, "stop": 0}}
    model = DecidingClassifier(GaussianClassifier(), loss=loss, reject_cost=0.2)
    model.fit(X[:, 2:], y)
    ax = decision_regions(model, X[:, 2:], y, resolution=60)
    assert {text.get_text() for text in ax.texts} == {"go", "stop", "reject"}
    for text in ax.texts:
        assert model.predict(np.array([text.xy]))[0] == text.get_text()
    assert len(np.unique(pixels_of(ax)[0])) == 3


def test_classes_keep_their_colours_beside_a_region_of_rejection(iris):
    X, y = iris[0].to_numpy()[:, 2:], iris[1]
    model = DecidingClassifier(GaussianClassifier(), reject_cost=0.2).fit(X, y)
    ax = decision_regions(model, X, y, resolution=60)
    assert [text.get_text() for text in ax.texts] == ["reject"]
    predicted, at = model.predict(X), regions(ax)
    assert all(at(x)[0] == 2 for x in X[predicted == "virginica"])


def test_regions_are_those_of_the_rule_of_the_model():
    X, y = load_iris(return_X_y=True)
    X, y = X[y > 0, 2:], y[y > 0]
    careful = FixedThresholdClassifier(GaussianClassifier(), threshold=0.9, pos_label=2).fit(X, y)
    at = regions(decision_regions(careful, X, y, resolution=200))
    proba = GaussianClassifier().fit(X, y).predict_proba(X)[:, 1]
    changed = (proba > 0.55) & (proba < 0.85)
    assert changed.any()
    assert all(at(x)[0] == 0 for x in X[changed])


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"columns": ("petal", 0)}, ParameterError, "no column 'petal'"),
        ({"columns": (1, 1)}, ParameterError, "not two"),
        ({"columns": (0, 1), "plane": "fisher"}, ParameterError, "exclude each other"),
        ({"plane": "pca"}, ParameterError, "plane='pca'"),
        ({"plane": FisherDiscriminant(n_components=1)}, ParameterError, "two components"),
        ({"columns": (0, 1), "resolution": 1}, ParameterError, "resolution=1 "),
        ({}, ParameterError, "4 columns"),
        ({"columns": (0, 1), "y": np.full(150, "rose")}, LabelError, "rose"),
        ({"columns": (0, 1), "label": None}, ParameterError, "3 classes, and label"),
        ({"columns": (0, 1), "model": GaussianClassifier()}, ParameterError, "not fitted"),
        ({"columns": (0, 1), "model": Spy()}, ParameterError, "no class 'setosa'"),
    ],
)
def test_what_has_no_surface_is_named(iris, given, error, words):
    X, y = iris
    given = {"model": GaussianClassifier().fit(X, y), "y": y, "label": "setosa", **given}
    if isinstance(given.get("plane"), FisherDiscriminant):
        given["plane"].fit(X, y)
    with pytest.raises(error, match=words):
        posterior_surface(X=X, **given)


def test_what_cannot_be_a_plane_is_named(wine, mails, plane):
    X, y = wine
    model = GaussianClassifier().fit(X, y)
    with pytest.raises(MissingValueError, match="missing"):
        decision_regions(model, np.where(X > 100, np.nan, X), y, plane=plane)
    with pytest.raises(ShapeError, match="Column 'sender' is not numeric"):
        decision_regions(Spy(), *mails, columns=("size", "sender"))
    with pytest.raises(ParameterError, match="no predict_proba"):
        posterior_surface(Spy(), *mails, columns=("size", "wait"))
