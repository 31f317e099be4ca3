"""Least squares for classification: the coefficients and their targets."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracle import correlated_rows, doubles, exact, solve
from scipy import sparse

from posteriori import LeastSquaresClassifier
from posteriori.errors import (
    LabelError,
    MissingValueError,
    ParameterError,
    RankDeficiencyWarning,
)

X, Y = correlated_rows(40, 4, 3, seed=11)
T = np.eye(3)[Y]
TWO_X, TWO_Y = X[Y < 2], Y[Y < 2]


def with_intercept(X):
    return np.column_stack([np.ones(len(X)), X])


def test_coefficients_are_those_of_fifty_digits():
    model = LeastSquaresClassifier().fit(X, Y)
    phi = exact(with_intercept(X))
    W = np.array([solve(phi.T @ phi, phi.T @ exact(T[:, k])) for k in range(3)])  # (4.16)
    assert_allclose(model.coef_, doubles(W[:, 1:]), rtol=1e-11, atol=1e-14)
    assert_allclose(model.intercept_, doubles(W[:, 0]), rtol=1e-11)


def test_coefficients_are_those_of_lstsq_with_an_intercept():
    model = LeastSquaresClassifier().fit(X, Y)
    W = np.linalg.lstsq(with_intercept(X), T)[0]
    assert_allclose(model.coef_, W[1:].T, rtol=1e-11, atol=1e-14)
    assert_allclose(model.predict_targets(X), with_intercept(X) @ W, rtol=1e-11, atol=1e-13)
    assert_array_equal(model.predict(X), (with_intercept(X) @ W).argmax(axis=1))


def test_two_classes_have_the_difference_of_their_functions():
    model = LeastSquaresClassifier().fit(TWO_X, TWO_Y)
    W = np.linalg.lstsq(with_intercept(TWO_X), np.eye(2)[TWO_Y])[0]
    assert_allclose(model.coef_, (W[1:, 1] - W[1:, 0])[None], rtol=1e-10)
    assert_allclose(model.intercept_, W[:1, 1] - W[:1, 0], rtol=1e-10)
    expected = with_intercept(X) @ (W[:, 1] - W[:, 0])
    assert_allclose(model.decision_function(X), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("ridge", [0.0, 2.5])
@pytest.mark.parametrize("far", [0.0, 1e3])
def test_targets_sum_to_one(ridge, far):
    rows = X * far + X + far
    model = LeastSquaresClassifier(ridge=ridge).fit(rows, Y)
    assert_allclose(model.predict_targets(rows * 3).sum(axis=1), 1.0, rtol=1e-12)  # (4.18)


@pytest.mark.parametrize("ridge", [1e-3, 1.0, 100, np.array([1.0, 0.1, 3.0, 10.0])[0]])
def test_a_ridge_penalises_all_but_the_intercept(ridge):
    model = LeastSquaresClassifier(ridge=ridge).fit(X, Y)
    phi = with_intercept(X)
    W = np.linalg.solve(phi.T @ phi + ridge * np.diag([0, 1, 1, 1, 1]), phi.T @ T)
    assert_allclose(model.coef_, W[1:].T, rtol=1e-10, atol=1e-13)
    assert_allclose(model.intercept_, W[0], rtol=1e-10)


def test_the_gradient_of_the_sum_of_squares_is_zero():
    model = LeastSquaresClassifier().fit(X, Y)
    residual = model.predict_targets(X) - T
    assert_allclose(with_intercept(X).T @ residual, 0.0, atol=1e-11)


REDUNDANT = {
    "duplicate": (X[:, 1], {1, 4}),
    "constant": (np.full(40, 3.3), {4}),
    "combination": (X[:, 0] - 2 * X[:, 3] + 1, {0, 3, 4}),
}


@pytest.mark.parametrize("name", REDUNDANT)
def test_of_all_answers_the_smallest_is_taken_and_columns_are_named(name):
    column, suspects = REDUNDANT[name]
    wide = np.column_stack([X, column])
    with pytest.warns(RankDeficiencyWarning, match=r"Column \d") as caught:
        model = LeastSquaresClassifier().fit(wide, Y)
    named = int(str(caught[0].message).split("Column ")[1][0])
    assert named in suspects
    slopes = np.linalg.pinv(wide - wide.mean(axis=0)) @ (T - T.mean(axis=0))
    assert_allclose(model.coef_, slopes.T, rtol=1e-8, atol=1e-11)
    plain = LeastSquaresClassifier().fit(X, Y)
    assert_allclose(model.predict_targets(wide), plain.predict_targets(X), rtol=1e-9, atol=1e-10)


def test_columns_of_a_frame_are_named_by_name():
    frame = pd.DataFrame(X, columns=["mass", "age", "height", "size"]).assign(flat=1.5)
    with pytest.warns(RankDeficiencyWarning, match="Column 'flat'"):
        LeastSquaresClassifier().fit(frame, Y)


def test_more_columns_than_rows_fit_the_labels_with_the_smallest_slopes():
    random = np.random.default_rng(3)
    rows, y = random.standard_normal((10, 25)), np.arange(10) % 3
    with pytest.warns(RankDeficiencyWarning, match="and 8 more"):
        model = LeastSquaresClassifier().fit(rows, y)
    centred = rows - rows.mean(axis=0)
    slopes = np.linalg.pinv(centred) @ (np.eye(3)[y] - np.eye(3)[y].mean(axis=0))
    assert_allclose(model.coef_, slopes.T, rtol=1e-8, atol=1e-10)
    assert_allclose(model.predict_targets(rows), np.eye(3)[y], atol=1e-9)


def test_a_ridge_makes_redundant_columns_harmless_without_a_word():
    wide = np.column_stack([X, X[:, 1], np.full(40, 2.0)])
    model = LeastSquaresClassifier(ridge=0.5).fit(wide, Y)
    phi = with_intercept(wide)
    W = np.linalg.solve(phi.T @ phi + 0.5 * np.diag([0.0] + [1] * 6), phi.T @ T)
    assert_allclose(model.coef_, W[1:].T, rtol=1e-9, atol=1e-12)


def test_weights_and_soft_labels_are_weighted_least_squares():
    random = np.random.default_rng(4)
    soft, weight = random.dirichlet(np.ones(3), size=40), random.uniform(0, 2, size=40)
    model = LeastSquaresClassifier().fit(X, soft, sample_weight=weight)
    root = np.sqrt(weight)[:, None]
    W = np.linalg.lstsq(with_intercept(X) * root, soft * root)[0]
    assert_allclose(model.coef_, W[1:].T, rtol=1e-9, atol=1e-12)
    assert_allclose(model.intercept_, W[0], rtol=1e-9)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
@pytest.mark.parametrize("ridge", [0.0, 1.0])
def test_sparse_rows_give_the_answer_of_dense_ones(kind, ridge):
    rows = np.where(np.random.default_rng(5).random(X.shape) < 0.5, 0.0, X)
    dense = LeastSquaresClassifier(ridge=ridge).fit(rows, Y)
    found = LeastSquaresClassifier(ridge=ridge).fit(kind(rows), Y)
    assert_allclose(found.coef_, dense.coef_, rtol=1e-10, atol=1e-13)
    assert_allclose(found.predict_targets(kind(rows)), dense.predict_targets(rows), rtol=1e-10)


def test_categorical_columns_are_their_dummies_but_the_first():
    colour = np.array(["red", "green", "blue"])[np.random.default_rng(6).integers(0, 3, 40)]
    frame = pd.DataFrame({"a": X[:, 0], "colour": pd.Categorical(colour), "b": X[:, 1]})
    model = LeastSquaresClassifier().fit(frame, Y)
    dummies = [(colour == level).astype(float) for level in ("green", "red")]
    explicit = np.column_stack([X[:, 0], *dummies, X[:, 1]])
    right = LeastSquaresClassifier().fit(explicit, Y)
    assert_allclose(model.predict_targets(frame), right.predict_targets(explicit), rtol=1e-10)
    order = np.argsort(model.coef_[0])
    assert_allclose(model.coef_[:, order], right.coef_[:, np.argsort(right.coef_[0])], rtol=1e-9)


@pytest.mark.parametrize("weight", [None, np.linspace(0.1, 2, len(TWO_Y))])
def test_fishers_code_is_a_regression_on_his_targets(weight):
    model = LeastSquaresClassifier(coding="fisher").fit(TWO_X, TWO_Y, sample_weight=weight)
    w = np.ones(len(TWO_Y)) if weight is None else weight
    n, n1, n2 = w.sum(), w[TWO_Y == 0].sum(), w[TWO_Y == 1].sum()
    target = np.where(TWO_Y == 0, -n / n1, n / n2)  # (4.31), positive for the second class
    root = np.sqrt(w)
    W = np.linalg.lstsq(with_intercept(TWO_X) * root[:, None], target * root)[0]
    assert_allclose(model.predict_targets(X), with_intercept(X) @ W, rtol=1e-9, atol=1e-11)
    assert_allclose(model.coef_[0], W[1:], rtol=1e-9)
    assert_allclose(model.intercept_, W[:1], rtol=1e-9)


def test_parameters_are_counted():
    assert LeastSquaresClassifier().fit(X, Y).n_parameters_ == 5 * 2
    assert LeastSquaresClassifier().fit(TWO_X, TWO_Y).n_parameters_ == 5
    assert LeastSquaresClassifier(coding="fisher").fit(TWO_X, TWO_Y).n_parameters_ == 5


@pytest.mark.parametrize(
    "settings",
    [
        {"coding": "one-hot"},
        {"coding": "fisher"},
        {"ridge": -1.0},
        {"ridge": np.inf},
        {"ridge": np.nan},
        {"ridge": "small"},
        {"ridge": [1.0]},
    ],
)
def test_settings_that_cannot_be_honoured_are_errors(settings):
    with pytest.raises(ParameterError, match=next(iter(settings))):
        LeastSquaresClassifier(**settings).fit(X, Y)


def test_numpy_numbers_are_numbers():
    for ridge in (np.float32(0.5), np.int64(2)):
        found = LeastSquaresClassifier(ridge=ridge).fit(X, Y).coef_
        assert_allclose(found, LeastSquaresClassifier(ridge=float(ridge)).fit(X, Y).coef_)


def test_fishers_code_needs_rows_of_both_classes():
    with pytest.raises(LabelError, match="Class 1 has no rows"):
        LeastSquaresClassifier(coding="fisher").fit(X[Y == 0], Y[Y == 0], classes=[0, 1])


def test_missing_entries_are_an_error():
    holed = X.copy()
    holed[3, 1] = np.nan
    with pytest.raises(MissingValueError, match="row 3, column 1"):
        LeastSquaresClassifier().fit(holed, Y)
    with pytest.raises(MissingValueError, match="row 3, column 1"):
        LeastSquaresClassifier().fit(X, Y).predict(holed)


def test_there_are_no_probabilities():
    assert not hasattr(LeastSquaresClassifier(), "predict_proba")
