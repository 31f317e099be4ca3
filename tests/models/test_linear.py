"""Planes, distances and projections of linear discriminants, and offsets of activations."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.exceptions import NotFittedError

from posteriori import GaussianClassifier, LeastSquaresClassifier, LogisticRegression
from posteriori.errors import (
    ColumnTypeError,
    InfiniteValueError,
    LevelError,
    MissingValueError,
    NotLinearError,
    ParameterError,
    ScaleError,
    ShapeError,
)
from posteriori.models.linear import Hyperplane

RANDOM = np.random.default_rng(7)
PLANE = Hyperplane(np.array([1.0, -2.0, 0.5]), 3.0)
X = RANDOM.normal(size=(300, 2))
TWO = (X @ [1.0, -2.0] + RANDOM.logistic(size=300) > 0).astype(int)
THREE = TWO + (X[:, 0] + RANDOM.logistic(size=300) > 1)
OFFSET = RANDOM.normal(size=(300, 3))


def test_the_distance_is_the_least_distance_to_a_point_of_the_plane():
    for x in RANDOM.normal(size=(5, 3), scale=3):
        nearest = minimize(
            lambda z, x=x: ((z - x) ** 2).sum(),
            np.zeros(3),
            constraints={"type": "eq", "fun": lambda z: PLANE.normal @ z + PLANE.offset},
            options={"ftol": 1e-15},
        ).x
        side = np.sign(PLANE.normal @ x + PLANE.offset)
        distance = side * np.linalg.norm(nearest - x)
        assert PLANE.signed_distance([x])[0] == pytest.approx(distance, abs=1e-6)
        assert (-PLANE).signed_distance([x])[0] == -PLANE.signed_distance([x])[0]
        np.testing.assert_allclose(PLANE.project([x])[0], nearest, atol=1e-5)
    np.testing.assert_allclose(PLANE.closest_to_origin, PLANE.project(np.zeros((1, 3)))[0])


def test_parameters_that_give_no_plane_are_named():
    for normal, offset, words in [
        (np.zeros(2), 1.0, "zero in every column"),
        (np.array([1.0, np.nan]), 1.0, "NaN or infinity"),
        (np.ones(2), np.inf, "NaN or infinity"),
    ]:
        with pytest.raises(ParameterError, match=words):
            Hyperplane(normal, offset)
    with pytest.raises(ShapeError, match=r"shape \(1, 2\)"):
        Hyperplane(np.ones((1, 2)), 1.0)


def test_a_plane_reads_frames_and_sparse_rows():
    Z = RANDOM.normal(size=(9, 3)).round()
    expected = (Z @ PLANE.normal + PLANE.offset) / np.sqrt(5.25)  # (4.7)
    for rows in (pd.DataFrame(Z, columns=list("pqr")), sparse.coo_array(Z)):
        np.testing.assert_allclose(PLANE.signed_distance(rows), expected, atol=1e-14)
        feet = PLANE.project(rows)
        rebuilt = feet + expected[:, None] * PLANE.normal / np.sqrt(5.25)  # (4.6)
        np.testing.assert_allclose(rebuilt, Z, atol=1e-14)
    with pytest.raises(ShapeError, match="X has 2 columns, but the plane has 3"):
        PLANE.signed_distance(Z[:, :2])
    with pytest.raises(ColumnTypeError, match="levels in column 'q'"):
        PLANE.signed_distance(pd.DataFrame({"p": [1.0], "q": ["u"], "r": [2.0]}))
    with pytest.raises(MissingValueError, match="row 1, column 0"):
        PLANE.project([[1.0, 2.0, 3.0], [np.nan, 1.0, 1.0]])


def test_two_classes_have_the_second_on_the_positive_side():
    model = LogisticRegression().fit(X, np.where(TWO, "yes", "no"))
    distance = model.decision_function(X) / np.linalg.norm(model.coef_)
    np.testing.assert_allclose(model.signed_distance(X), distance, rtol=1e-12)
    np.testing.assert_allclose(model.signed_distance(X, "no", "yes"), -distance, rtol=1e-12)
    np.testing.assert_array_equal(model.hyperplane().normal, model.coef_[0])
    assert model.hyperplane().offset == model.intercept_[0]
    with pytest.raises(MissingValueError, match="row 1, column 0"):
        model.signed_distance([[1.0, 2.0], [np.nan, 1.0]])
    with pytest.raises(InfiniteValueError, match="row 0, column 1"):
        model.signed_distance([[1.0, np.inf]])


def test_on_the_boundary_of_two_of_many_classes_their_scores_are_equal():
    model = LogisticRegression().fit(X, THREE)
    scores = model.decision_function(X)
    for k, j in ((0, 1), (2, 0), (1, 2)):
        feet = model.decision_function(model.hyperplane(k, j).project(X))
        np.testing.assert_allclose(feet[:, k], feet[:, j], atol=1e-13)
        np.testing.assert_array_equal(
            model.signed_distance(X, k, j) > 0, scores[:, k] > scores[:, j]
        )


def test_distances_are_taken_between_design_columns_where_there_are_levels():
    colour = np.array(["red", "blue", "green"])[RANDOM.integers(0, 3, 300)]
    frame = pd.DataFrame({"colour": colour, "size": X[:, 0]})
    model = LogisticRegression().fit(frame, TWO)  # colour[green], colour[red], size
    distance = model.decision_function(frame) / np.linalg.norm(model.coef_)
    np.testing.assert_allclose(model.signed_distance(pl.from_pandas(frame)), distance, rtol=1e-12)
    with pytest.raises(LevelError, match="Row 0 has the level 'puce' in column 'colour'"):
        model.signed_distance(pd.DataFrame({"colour": ["puce"], "size": [1.0]}))


def test_a_boundary_that_does_not_exist_is_an_error():
    two, three = LogisticRegression().fit(X, TWO), LogisticRegression().fit(X, THREE)
    same = LeastSquaresClassifier().fit([[0.0], [1.0], [0.0], [1.0], [5.0]], list("aaccb"))
    for model, classes, words in [
        (three, (), "3 were fitted"),
        (two, (1,), "Name both"),
        (three, (0, "z"), "'z' is not a class"),
        (three, (0, 0), "no boundary with itself"),
        (same, ("a", "c"), r"'a'.* and .*'c'.* have the same coefficients"),
    ]:
        with pytest.raises(ParameterError, match=words):
            model.hyperplane(*classes)
    with pytest.raises(NotLinearError):
        GaussianClassifier(covariance="full").fit(X, TWO).hyperplane()
    with pytest.raises(NotFittedError):
        LogisticRegression().hyperplane()


def test_an_activation_that_leaves_the_doubles_is_named_by_row_and_remedy():
    model = LogisticRegression(prior=1e-3).fit(1e-3 * X, TWO)
    rows = np.vstack([X, [[1e308, -1e308]], X])
    with pytest.raises(ScaleError, match=r"activations of row 300 do not fit.*divide the column"):
        model.predict(rows)


def test_an_offset_is_added_to_the_activation():
    offset = OFFSET[:, 0]
    model = LogisticRegression().fit(X, TWO, offset=offset)
    a = X @ model.coef_[0] + model.intercept_[0] + offset
    p, logs = model.predict_proba(X, offset), model.predict_log_proba(X, offset)
    np.testing.assert_allclose(model.decision_function(X, offset), a, rtol=1e-12)
    np.testing.assert_allclose(p[:, 1], 1 / (1 + np.exp(-a)), rtol=1e-12)
    np.testing.assert_allclose(logs[:, 0], -np.log1p(np.exp(a)), rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X, offset), (a > 0).astype(int))


def test_every_class_has_an_offset_of_its_own():
    model = LogisticRegression().fit(X, THREE, offset=OFFSET)
    e = np.exp(X @ model.coef_.T + model.intercept_ + OFFSET)
    np.testing.assert_allclose(
        model.predict_proba(X, OFFSET), e / e.sum(axis=1, keepdims=True), rtol=1e-12
    )
    with pytest.raises(ShapeError, match=r"expected numbers of shape \(300, 3\)"):
        model.predict(X, OFFSET[:, 0])
