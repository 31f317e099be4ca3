"""Fisher's discriminant and least squares: the numbers by 50 digits, scikit-learn and lstsq."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracle import class_moments, correlated_rows, doubles, exact, shares, solve
from scipy.linalg import eigh
from scipy.optimize import brentq
from scipy.stats import multivariate_normal, norm
from sklearn.datasets import load_wine

from posteriori import FisherDiscriminant, GaussianClassifier, LeastSquaresClassifier
from posteriori.errors import LabelError, ParameterError, RankDeficiencyWarning

X, Y = correlated_rows(50, 4, 3, seed=9)
UNEQUAL = np.sort(np.random.default_rng(0).permutation(50)[:41])
TWO_X, TWO_Y = X[Y < 2][5:], Y[Y < 2][5:]
TWO_Y = np.where(np.arange(len(TWO_Y)) % 7 == 0, 0, TWO_Y)  # classes of unequal sizes
WINE, WINE_Y = load_wine(return_X_y=True)


def scatters(X, member):
    """S_W (4.40) and S_B (4.46) at 50 digits."""
    found = [class_moments(X, member[:, k]) for k in range(member.shape[1])]
    n = sum(count for count, _, _ in found)
    mean = sum(count * m for count, m, _ in found) / n
    between = sum(count * np.outer(m - mean, m - mean) for count, m, _ in found)
    return sum(s for _, _, s in found), between, [m for _, m, _ in found], mean


def test_two_classes_have_the_direction_of_the_book():
    model = FisherDiscriminant().fit(TWO_X, TWO_Y)
    within, _, (m1, m2), _ = scatters(TWO_X, shares(TWO_Y, [0, 1]))
    direction = solve(within, m2 - m1)  # (4.30)
    length = (direction @ within @ direction / (len(TWO_Y) - 2)) ** 0.5
    assert_allclose(model.scalings_[:, 0], doubles(direction / length), rtol=1e-11)


@pytest.mark.parametrize("rows", [np.arange(50), UNEQUAL], ids=["equal", "unequal"])
def test_directions_are_the_generalised_eigenvectors(rows):
    model = FisherDiscriminant().fit(X[rows], Y[rows])
    within, between, _, _ = map(doubles, scatters(X[rows], shares(Y[rows], range(3))))
    values, vectors = eigh(between, within)
    assert_allclose(model.eigenvalues_, values[::-1][:2], rtol=1e-10)
    W = model.scalings_
    assert_allclose(between @ W, within @ W * model.eigenvalues_, rtol=1e-8, atol=1e-9)
    assert_allclose(W.T @ within @ W / (len(rows) - 3), np.eye(2), atol=1e-12)
    angle = np.linalg.lstsq(vectors[:, [-1, -2]], W)[0]
    assert_allclose(angle - np.diag(np.diagonal(angle)), 0.0, atol=1e-9 * abs(angle).max())


@pytest.mark.parametrize("components", [1, 2])
def test_the_criterion_is_the_trace_ratio(components):
    model = FisherDiscriminant(n_components=components).fit(X, Y)
    within, between, _, _ = map(doubles, scatters(X, shares(Y, range(3))))
    W = model.scalings_
    expected = np.trace(np.linalg.solve(W.T @ within @ W, W.T @ between @ W))  # (4.50)
    assert_allclose(model.criterion_, expected, rtol=1e-11)
    assert_allclose(model.criterion_, model.eigenvalues_.sum(), rtol=1e-14)


@pytest.mark.parametrize(
    ("rows", "y"), [(X, Y), (TWO_X, TWO_Y), (WINE, WINE_Y)], ids=["three", "two", "wine"]
)
@pytest.mark.parametrize("shrinkage", [None, "auto"])
def test_with_all_components_the_probabilities_are_those_of_gaussians(rows, y, shrinkage):
    ours = FisherDiscriminant(shrinkage=shrinkage).fit(rows, y)
    gaussian = GaussianClassifier(shrinkage=shrinkage).fit(rows, y)
    found, right = ours.predict_log_proba(rows), gaussian.predict_log_proba(rows)
    assert_allclose(found, right, rtol=1e-9, atol=1e-9)
    assert_allclose(ours.coef_, gaussian.coef_, rtol=1e-7, atol=1e-9)
    assert_allclose(ours.intercept_, gaussian.intercept_, rtol=1e-7)
    assert ours.n_parameters_ == gaussian.n_parameters_


def test_two_of_three_components_are_a_model_of_reduced_rank():
    rows, y = correlated_rows(80, 5, 4, seed=10)
    model = FisherDiscriminant(n_components=2).fit(rows, y)
    Z = model.transform(rows)
    assert_allclose(model.predict_proba(rows), GaussianClassifier().fit(Z, y).predict_proba(Z))
    means = np.array([Z[y == k].mean(axis=0) for k in range(4)])
    sigma = (Z - means[y]).T @ (Z - means[y]) / 80
    joint = np.array([multivariate_normal(m, sigma).pdf(Z) for m in means]).T
    assert_allclose(model.predict_proba(rows), joint / joint.sum(axis=1, keepdims=True), rtol=1e-8)


def test_the_threshold_is_where_the_gaussians_on_the_projection_cross():
    model = FisherDiscriminant().fit(TWO_X, TWO_Y)
    z = model.transform(TWO_X)[:, 0]
    means = [z[TWO_Y == 0].mean(), z[TWO_Y == 1].mean()]
    spread = np.sqrt(((z - np.array(means)[TWO_Y]) ** 2).mean())
    priors = np.bincount(TWO_Y) / len(TWO_Y)

    def gap(t):
        logs = np.log(priors) + norm(means, spread).logpdf(t)
        return logs[1] - logs[0]

    assert means[1] > means[0]
    assert_allclose(model.threshold_, brentq(gap, -50, 50, xtol=1e-13), rtol=1e-9)
    assert_array_equal(model.predict(TWO_X), (z > model.threshold_).astype(int))
    assert_allclose(model.decision_function(TWO_X), [gap(t) for t in z], rtol=1e-8, atol=1e-10)


def test_the_midpoint_is_the_nearest_projected_mean():
    model = FisherDiscriminant(threshold="midpoint").fit(X[UNEQUAL], Y[UNEQUAL])
    Z = model.transform(X)
    nearest = ((Z[:, None] - model.transform(model.means_)) ** 2).sum(axis=2).argmin(axis=1)
    assert_array_equal(model.predict(X), nearest)
    assert not hasattr(model, "threshold_")
    two = FisherDiscriminant(threshold="midpoint").fit(TWO_X, TWO_Y)
    half = two.transform(two.means_).mean()
    assert_allclose(two.threshold_, half, rtol=1e-9, atol=1e-12)
    assert_array_equal(two.predict(TWO_X), (two.transform(TWO_X)[:, 0] > half).astype(int))


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"n_components": 0}, ParameterError, "n_components=0"),
        ({"n_components": 1.5}, ParameterError, "n_components=1.5"),
        ({"n_components": 5}, ParameterError, "4 columns have at most 2 .* n_components=5"),
        ({"n_components": 3}, LabelError, "4 columns have at most 2 .* n_components=3"),
        ({"threshold": "best"}, ParameterError, "threshold"),
        ({"shrinkage": 3}, ParameterError, "shrinkage"),
    ],
)
def test_wrong_settings_of_fishers_discriminant_are_errors(settings, error, words):
    with pytest.raises(error, match=words):
        FisherDiscriminant(**settings).fit(X, Y)


def test_frames_come_out_of_the_transform_with_names():
    frame = pd.DataFrame(X, columns=list("abcd"), index=np.arange(50) + 7)
    out = FisherDiscriminant().set_output(transform="pandas").fit(frame, Y).transform(frame)
    assert list(out.columns) == ["fisherdiscriminant0", "fisherdiscriminant1"]
    assert_array_equal(out.index, frame.index)


# Least squares.

T = np.eye(3)[Y]
LS_X, LS_Y = X[Y < 2], Y[Y < 2]


def with_intercept(X):
    return np.column_stack([np.ones(len(X)), X])


def test_coefficients_are_those_of_fifty_digits():
    model = LeastSquaresClassifier().fit(X, Y)
    phi = exact(with_intercept(X))
    W = np.array([solve(phi.T @ phi, phi.T @ exact(T[:, k])) for k in range(3)])  # (4.16)
    assert_allclose(model.coef_, doubles(W[:, 1:]), rtol=1e-11, atol=1e-14)
    assert_allclose(model.intercept_, doubles(W[:, 0]), rtol=1e-11)
    two = LeastSquaresClassifier().fit(LS_X, LS_Y)
    W = np.linalg.lstsq(with_intercept(LS_X), np.eye(2)[LS_Y])[0]
    expected = with_intercept(X) @ (W[:, 1] - W[:, 0])
    assert_allclose(two.decision_function(X), expected, rtol=1e-10, atol=1e-12)
    assert_allclose(two.coef_, (W[1:, 1] - W[1:, 0])[None], rtol=1e-10)
    assert (model.n_parameters_, two.n_parameters_) == (5 * 2, 5)


@pytest.mark.parametrize("ridge", [0.0, 1e-3, np.float32(0.5), np.int64(100)])
def test_a_ridge_penalises_all_but_the_intercept(ridge):
    model = LeastSquaresClassifier(ridge=ridge).fit(X, Y)
    phi = with_intercept(X)
    W = np.linalg.solve(phi.T @ phi + float(ridge) * np.diag([0, 1, 1, 1, 1]), phi.T @ T)
    assert_allclose(model.coef_, W[1:].T, rtol=1e-10, atol=1e-13)
    assert_allclose(model.intercept_, W[0], rtol=1e-10)
    assert_allclose(model.predict_targets(X), phi @ W, rtol=1e-10, atol=1e-12)
    assert_array_equal(model.predict(X), (phi @ W).argmax(axis=1))
    assert_allclose(model.predict_targets(X * 1e3).sum(axis=1), 1.0, rtol=1e-12)  # (4.18)


REDUNDANT = {
    "duplicate": (X[:, 1], {1, 4}),
    "constant": (np.full(50, 3.3), {4}),
    "combination": (X[:, 0] - 2 * X[:, 3] + 1, {0, 3, 4}),
}


@pytest.mark.parametrize("name", REDUNDANT)
def test_redundant_columns_are_named_and_the_solution_is_the_smallest(name):
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


def test_more_columns_than_rows_fit_the_labels_with_the_smallest_slopes():
    random = np.random.default_rng(3)
    rows, y = random.standard_normal((10, 25)), np.arange(10) % 3
    with pytest.warns(RankDeficiencyWarning, match="and 8 more"):
        model = LeastSquaresClassifier().fit(rows, y)
    centred = rows - rows.mean(axis=0)
    slopes = np.linalg.pinv(centred) @ (np.eye(3)[y] - np.eye(3)[y].mean(axis=0))
    assert_allclose(model.coef_, slopes.T, rtol=1e-8, atol=1e-10)
    assert_allclose(model.predict_targets(rows), np.eye(3)[y], atol=1e-9)


@pytest.mark.parametrize("weight", [None, np.linspace(0.1, 2, len(LS_Y))])
def test_fishers_code_is_a_regression_on_his_targets_and_has_his_direction(weight):
    model = LeastSquaresClassifier(coding="fisher").fit(LS_X, LS_Y, sample_weight=weight)
    w = np.ones(len(LS_Y)) if weight is None else weight
    n, n1, n2 = w.sum(), w[LS_Y == 0].sum(), w[LS_Y == 1].sum()
    target = np.where(LS_Y == 0, -n / n1, n / n2)  # (4.31), positive for the second class
    root = np.sqrt(w)
    W = np.linalg.lstsq(with_intercept(LS_X) * root[:, None], target * root)[0]
    assert_allclose(model.predict_targets(X), with_intercept(X) @ W, rtol=1e-9, atol=1e-11)
    assert_allclose(model.coef_[0], W[1:], rtol=1e-9)
    assert_allclose(model.intercept_, W[:1], rtol=1e-9)
    fisher = FisherDiscriminant().fit(LS_X, LS_Y, sample_weight=weight)
    ratio = model.coef_[0] / fisher.scalings_[:, 0]
    assert_allclose(ratio, ratio[0], rtol=1e-9)  # (4.38)
    assert ratio[0] > 0
    mean = np.average(LS_X, axis=0, weights=w)  # the threshold (4.34)
    assert_allclose(model.decision_function(mean[None]), 0.0, atol=1e-12)


@pytest.mark.parametrize(
    "settings",
    [{"coding": "one-hot"}, {"coding": "fisher"}, {"ridge": -1.0}, {"ridge": "a"}],
)
def test_wrong_settings_of_least_squares_are_errors(settings):
    with pytest.raises(ParameterError, match=next(iter(settings))):
        LeastSquaresClassifier(**settings).fit(X, Y)
