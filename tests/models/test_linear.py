"""Planes, distances and projections of linear discriminants."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.exceptions import NotFittedError

from posteriori import (
    GLM,
    Adaline,
    GaussianClassifier,
    LeastSquaresClassifier,
    LogisticRegression,
    Perceptron,
    ProbitRegression,
)
from posteriori.errors import (
    ColumnTypeError,
    ConvergenceWarning,
    InfiniteValueError,
    LevelError,
    MissingValueError,
    NotLinearError,
    ParameterError,
    ScaleError,
    ShapeError,
)
from posteriori.models.linear import Hyperplane, boundary, signed_distance
from posteriori.rows.features import read_features
from posteriori.rows.in_memory import read_new_rows
from posteriori.rows.schema import Schema

RANDOM = np.random.default_rng(7)
PLANE = Hyperplane(np.array([1.0, -2.0, 0.5]), 3.0)


class Linear:
    """A linear classifier with its parameters given."""

    handle_unknown = "error"

    def __init__(self, classes, coef, intercept, schema=None) -> None:
        self.classes_ = classes
        self.coef_ = coef
        self.intercept_ = intercept
        self.schema_ = schema or Schema.unnamed(2)

    def _new_rows(self, X):
        return read_new_rows(X, self.schema_, "Linear")

    def _middle(self):
        return 0.0

    def hyperplane(self, first=None, second=None):
        return boundary(self, first, second)

    def signed_distance(self, X, first=None, second=None):
        return signed_distance(self, X, self.hyperplane(first, second))


TWO = Linear(np.array(["no", "yes"]), np.array([[3.0, 4.0]]), np.array([-10.0]))
THREE = Linear(
    np.array(["a", "b", "c"]),
    np.array([[1.0, 2.0], [-1.0, 0.5], [0.0, -2.5]]),
    np.array([0.3, -0.2, -0.1]),
)


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
        np.testing.assert_allclose(PLANE.project([x])[0], nearest, atol=1e-5)


def test_projections_lie_on_the_plane_and_differ_along_the_normal():
    X = RANDOM.normal(size=(50, 3))
    feet = PLANE.project(X)
    np.testing.assert_allclose(PLANE.signed_distance(feet), 0, atol=1e-14)
    rebuilt = feet + PLANE.signed_distance(X)[:, None] * PLANE.unit_normal  # (4.6)
    np.testing.assert_allclose(rebuilt, X, atol=1e-14)


def test_the_point_closest_to_the_origin_is_the_projection_of_the_origin():
    np.testing.assert_allclose(PLANE.closest_to_origin, -3.0 * PLANE.normal / 5.25, rtol=1e-15)
    np.testing.assert_allclose(PLANE.project(np.zeros((1, 3)))[0], PLANE.closest_to_origin)


def test_the_negative_plane_has_its_sides_exchanged():
    X = RANDOM.normal(size=(20, 3))
    np.testing.assert_array_equal((-PLANE).signed_distance(X), -PLANE.signed_distance(X))
    np.testing.assert_array_equal((-PLANE).project(X), PLANE.project(X))


def test_bad_parameters_of_a_plane_are_named():
    with pytest.raises(ParameterError, match="zero in every column"):
        Hyperplane(np.zeros(2), 1.0)
    with pytest.raises(ParameterError, match="NaN or infinity"):
        Hyperplane(np.array([1.0, np.nan]), 1.0)
    with pytest.raises(ParameterError, match="NaN or infinity"):
        Hyperplane(np.ones(2), np.inf)
    with pytest.raises(ShapeError, match=r"shape \(1, 2\)"):
        Hyperplane(np.ones((1, 2)), 1.0)


def test_a_plane_reads_frames_and_sparse_rows():
    X = RANDOM.normal(size=(9, 3)).round()
    expected = (X @ PLANE.normal + PLANE.offset) / np.sqrt(5.25)
    for rows in (pd.DataFrame(X, columns=list("pqr")), pl.DataFrame(X), sparse.coo_array(X)):
        np.testing.assert_allclose(PLANE.signed_distance(rows), expected, atol=1e-14)
        np.testing.assert_allclose(PLANE.project(rows), PLANE.project(X), atol=1e-14)
    with pytest.raises(ShapeError, match="X has 2 columns, but the plane has 3"):
        PLANE.signed_distance(X[:, :2])
    with pytest.raises(ColumnTypeError, match="levels in column 'q'"):
        PLANE.signed_distance(pd.DataFrame({"p": [1.0], "q": ["u"], "r": [2.0]}))


def test_two_classes_have_the_second_on_the_positive_side():
    assert TWO.signed_distance([[6.0, 8.0]])[0] == pytest.approx(8.0)
    assert TWO.signed_distance([[6.0, 8.0]], "yes", "no")[0] == pytest.approx(8.0)
    assert TWO.signed_distance([[6.0, 8.0]], "no", "yes")[0] == pytest.approx(-8.0)
    np.testing.assert_array_equal(TWO.hyperplane().normal, [3.0, 4.0])
    assert TWO.hyperplane().offset == -10.0


def test_on_the_boundary_of_two_of_many_classes_their_scores_are_equal():
    X = RANDOM.normal(size=(30, 2))
    for first, second, k, j in (("a", "b", 0, 1), ("c", "a", 2, 0), ("b", "c", 1, 2)):
        plane = THREE.hyperplane(first, second)
        feet = plane.project(X) @ THREE.coef_.T + THREE.intercept_
        np.testing.assert_allclose(feet[:, k], feet[:, j], atol=1e-13)
        scores = X @ THREE.coef_.T + THREE.intercept_
        distances = THREE.signed_distance(X, first, second)
        np.testing.assert_array_equal(distances > 0, scores[:, k] > scores[:, j])


def test_distances_are_taken_between_design_columns_where_levels_are():
    frame = pd.DataFrame({"colour": ["red", "blue", "green"], "size": [1.0, 2.0, 3.0]})
    schema = read_features(frame).schema  # colour[green], colour[red], size
    model = Linear(np.array([0, 1]), np.array([[-1.0, 2.0, 2.0]]), np.array([1.0]), schema)
    np.testing.assert_allclose(
        model.signed_distance(frame), np.array([2 + 2 + 1, 4 + 1, 6 - 1 + 1]) / 3
    )
    reversed_columns = pl.from_pandas(frame)[["size", "colour"]]
    np.testing.assert_allclose(
        model.signed_distance(reversed_columns), model.signed_distance(frame)
    )
    with pytest.raises(LevelError, match="Row 0 has the level 'puce' in column 'colour'"):
        model.signed_distance(pd.DataFrame({"colour": ["puce"], "size": [1.0]}))


def test_missing_and_infinite_entries_are_named():
    with pytest.raises(MissingValueError, match="row 1, column 0"):
        TWO.signed_distance([[1.0, 2.0], [np.nan, 1.0]])
    with pytest.raises(InfiniteValueError, match="row 0, column 1"):
        TWO.signed_distance([[1.0, np.inf]])
    with pytest.raises(MissingValueError, match="row 1, column 0"):
        PLANE.project([[1.0, 2.0, 3.0], [np.nan, 1.0, 1.0]])


def test_classes_that_have_no_boundary_are_named():
    with pytest.raises(ParameterError, match="3 were fitted"):
        THREE.hyperplane()
    with pytest.raises(ParameterError, match="Name both"):
        TWO.hyperplane("yes")
    with pytest.raises(ParameterError, match="'z' is not a class"):
        THREE.hyperplane("a", "z")
    with pytest.raises(ParameterError, match="no boundary with itself"):
        THREE.hyperplane("a", "a")
    same = Linear(np.array(["a", "b", "c"]), np.ones((3, 2)), np.arange(3.0))
    with pytest.raises(ParameterError, match=r"'a'.* and .*'c'.* have the same coefficients"):
        same.signed_distance([[0.0, 0.0]], "a", "c")


def test_a_model_without_linear_boundary_says_so():
    X = RANDOM.normal(size=(40, 2))
    curved = GaussianClassifier(covariance="full").fit(X, X[:, 0] > 0)
    with pytest.raises(NotLinearError):
        curved.hyperplane()


def test_a_model_must_be_fitted():
    with pytest.raises(NotFittedError):
        LogisticRegression().hyperplane()


# Offsets, and activations that overflow.


RANDOM_ROWS = np.random.default_rng(2)
X_ROWS = RANDOM_ROWS.normal(size=(300, 2))
Y_ROWS = (X_ROWS @ [1.0, -2.0] + RANDOM_ROWS.logistic(size=300) > 0).astype(int)
Y3_ROWS = Y_ROWS + (X_ROWS[:, 0] + RANDOM_ROWS.logistic(size=300) > 1)

LINEAR = [
    LogisticRegression(prior=1e-3),
    ProbitRegression(),
    GLM(family="bernoulli"),
    LeastSquaresClassifier(),
    Perceptron(max_epochs=2, random_state=0),
    Adaline(max_epochs=2, random_state=0),
]


def name_of(model):
    return type(model).__name__


@pytest.mark.filterwarnings(f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning")
@pytest.mark.parametrize("target", [Y_ROWS, Y3_ROWS], ids=["two classes", "three classes"])
@pytest.mark.parametrize("model", LINEAR, ids=name_of)
def test_activations_that_leave_the_doubles_are_named_by_row_and_remedy(model, target):
    if target is Y3_ROWS and isinstance(model, ProbitRegression | GLM):
        pytest.skip("two classes only")
    model.fit(1e-3 * X_ROWS, target)
    rows = np.vstack([X_ROWS, [[1e308, -1e308]], X_ROWS])
    with pytest.raises(ScaleError, match=r"activations of row 300 do not fit.*divide the column"):
        model.predict(rows)


def test_an_offset_is_added_to_the_activation():
    offset = RANDOM_ROWS.normal(size=300)
    model = LogisticRegression().fit(X_ROWS, Y_ROWS, offset=offset)
    a = X_ROWS @ model.coef_[0] + model.intercept_[0] + offset
    np.testing.assert_allclose(model.decision_function(X_ROWS, offset), a, rtol=1e-12)
    np.testing.assert_allclose(
        model.predict_proba(X_ROWS, offset)[:, 1], 1 / (1 + np.exp(-a)), rtol=1e-12
    )
    np.testing.assert_allclose(
        model.predict_log_proba(X_ROWS, offset)[:, 0], -np.log1p(np.exp(a)), rtol=1e-12
    )
    np.testing.assert_array_equal(model.predict(X_ROWS, offset), (a > 0).astype(int))


def test_every_class_has_an_offset_of_its_own():
    offset = RANDOM_ROWS.normal(size=(300, 3))
    model = LogisticRegression().fit(X_ROWS, Y3_ROWS, offset=offset)
    e = np.exp(X_ROWS @ model.coef_.T + model.intercept_ + offset)
    np.testing.assert_allclose(
        model.predict_proba(X_ROWS, offset), e / e.sum(axis=1, keepdims=True), rtol=1e-12
    )
    with pytest.raises(ShapeError, match=r"expected numbers of shape \(300, 3\)"):
        model.predict(X_ROWS, offset[:, 0])
