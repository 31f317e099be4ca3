"""What `decision_regions` puts on the axes."""

import matplotlib as mpl

mpl.use("agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib.colors import to_rgb
from sklearn.datasets import load_wine

from posteriori import FisherDiscriminant, GaussianClassifier, LeastSquaresClassifier
from posteriori.errors import LabelError, ParameterError, ShapeError
from posteriori.report.plots import COLOURS, MARKERS, class_colours, decision_regions

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
        np.testing.assert_allclose(drawn.get_offsets(), plane.transform(X)[y == label])


def test_every_class_has_a_colour_and_a_marker_of_its_own(wine, plane):
    X, y = wine
    ax = decision_regions(GaussianClassifier().fit(X, y), X, y, plane=plane)
    points = ax.collections[-3:]
    assert [tuple(p.get_facecolor()[0, :3]) for p in points] == [to_rgb(c) for c in COLOURS[:3]]
    assert len({p.get_paths()[0].vertices.tobytes() for p in points}) == 3
    assert len(set(zip(COLOURS * 8, MARKERS * 7, strict=True))) == 56


def test_the_legend_names_the_classes_and_the_axes_the_components(wine, plane):
    X, y = wine
    ax = decision_regions(GaussianClassifier().fit(X, y), X, y, plane=plane)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == sorted(NAMES)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("component 1", "component 2")


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
    np.testing.assert_allclose(strength[sureness > 1 - 1e-6], 0.45, atol=0.005)


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
    np.testing.assert_allclose(back[0], np.array([left, bottom]) + half, rtol=1e-8)
    np.testing.assert_allclose(back[-1], np.array([right, top]) - half, rtol=1e-8)


def test_the_units_of_a_column_do_not_change_the_picture(wine):
    X, y = wine
    images = []
    for units in (np.ones(13), np.geomspace(1e-4, 1e4, 13)):
        plane = FisherDiscriminant(n_components=2).fit(X * units, y)
        model = GaussianClassifier(covariance="full").fit(X * units, y)
        ax = decision_regions(model, X * units, y, plane=plane, resolution=40)
        image = np.asarray(ax.images[0].get_array())
        # The sign of a component is free.
        signs = np.sign(plane.transform(X * units)[0])
        images.append(image[:: int(signs[1]), :: int(signs[0])])
    np.testing.assert_allclose(images[1], images[0], atol=1e-4)


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


def test_it_draws_on_the_axes_given(wine):
    X, y = wine
    _, ax = plt.subplots()
    model = GaussianClassifier().fit(X[:, :2], y)
    assert decision_regions(model, X[:, :2], y, ax=ax, resolution=20) is ax


def test_what_cannot_be_drawn_is_named(wine, plane):
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
