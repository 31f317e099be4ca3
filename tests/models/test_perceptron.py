"""The perceptron and the adaline as classifiers."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from posteriori import LeastSquaresClassifier
from posteriori.errors import (
    ConvergenceWarning,
    ParameterError,
    ScaleError,
)
from posteriori.models.perceptron import Adaline, Perceptron

IRIS = load_iris(return_X_y=True)
WINE = load_wine(return_X_y=True)
CANCER = load_breast_cancer(return_X_y=True)


def _apart(n, gap):
    """Two classes on both sides of a plane, with a gap between them."""
    random = np.random.default_rng(6)
    X, w = random.normal(size=(n, 4)), np.array([1.0, -2.0, 0.5, 0.0])
    y = (X @ w + 0.3 > 0).astype(int)
    return X + np.outer(np.where(y, gap, -gap), w / (w @ w)), y


LINE = _apart(300, 0.2)


def by_the_book(X, y, max_epochs, weight=None):
    """(4.55) in the order of the rows, on standardised columns; w and the number of updates."""
    weight = np.ones(len(X)) if weight is None else weight
    mean = np.average(X, axis=0, weights=weight)
    scale = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    phi = np.column_stack([np.ones(len(X)), (X - mean) / scale])
    w, n_updates, weight = np.zeros(phi.shape[1]), 0, weight / weight.mean()
    for epochs in range(1, max_epochs + 1):
        before = n_updates
        for row, t, c in zip(phi, np.where(y == 1, 1.0, -1.0), weight, strict=True):
            if row @ w * t <= 0:
                w, n_updates = w + c * row * t, n_updates + 1
        if n_updates == before:
            return w[1:] / scale, w[0] - w[1:] / scale @ mean, n_updates, epochs
    raise AssertionError("not separated")


@pytest.mark.parametrize("weighted", [False, True])
def test_unshuffled_it_is_the_perceptron_of_the_book(weighted):
    X, y = IRIS[0][50:], (IRIS[1][50:] == 2).astype(int)
    X, y = X[X[:, 3] != 1.7], y[X[:, 3] != 1.7]
    X[:, 2] += 2.0 * y
    weight = np.linspace(0.5, 2.0, len(X)) if weighted else None
    model = Perceptron(shuffle=False).fit(X, y, sample_weight=weight)
    coef, intercept, n_updates, epochs = by_the_book(X, y, 1000, weight)
    assert_allclose(model.coef_, coef[None], rtol=1e-9)
    assert_allclose(model.intercept_, [intercept], rtol=1e-9)
    assert (model.n_updates_, model.n_iter_) == (n_updates, epochs)
    assert model.converged_


@pytest.mark.parametrize("data", ["iris", "wine", "line"])
@pytest.mark.parametrize("averaged", [False, True])
def test_what_can_be_separated_is_separated(data, averaged):
    X, y = {"iris": (IRIS[0], IRIS[1] > 0), "wine": WINE, "line": LINE}[data]
    model = Perceptron(random_state=0, averaged=averaged).fit(X, y)
    assert model.converged_
    assert model.separable_ is True
    if not averaged:
        assert model.score(X, y) == 1.0
    assert model.n_updates_ > 0


def test_what_cannot_be_separated_is_said_to_be_so_by_a_linear_program():
    X, y = IRIS
    with pytest.warns(ConvergenceWarning, match="No linear function") as caught:
        model = Perceptron(random_state=0).fit(X, y)
    assert "LogisticRegression" in caught[0].message.remedy
    assert caught[0].filename == __file__
    assert not model.converged_
    assert model.separable_ is False
    assert model.n_iter_ < model.max_epochs
    assert model.score(X, y) > 0.95


def test_one_row_on_the_wrong_side_is_enough():
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 2))
    y = X[:, 0] > 0
    X[:, 0] += np.where(y, 1.0, -1.0)
    assert Perceptron(random_state=0).fit(X, y).converged_
    X = np.vstack([X, [[5.0, 0.0]]])
    with pytest.warns(ConvergenceWarning, match="No linear function"):
        model = Perceptron(random_state=0).fit(X, np.append(y, False))
    assert model.score(X, np.append(y, False)) == 200 / 201


def test_classes_that_touch_cannot_be_separated():
    X = np.array([[0.0], [1.0], [1.0], [2.0]])
    with pytest.warns(ConvergenceWarning, match="No linear function"):
        model = Perceptron(random_state=0).fit(X, [0, 0, 1, 1])
    assert model.score(X, [0, 0, 1, 1]) == 0.75


def test_too_few_epochs_are_said_to_be_too_few():
    with pytest.warns(ConvergenceWarning, match="can be separated, but 1 epoch of") as caught:
        model = Perceptron(max_epochs=1, random_state=0).fit(*CANCER)
    assert "max_epochs" in caught[0].message.remedy
    assert not model.converged_
    assert model.separable_ is True
    assert model.n_iter_ == 1
    assert model.score(*CANCER) > 0.95


def test_the_mean_of_the_weights_is_given_for_overlapping_classes_without_a_warning():
    random = np.random.default_rng(1)
    X = random.normal(size=(3000, 5))
    w = random.normal(size=5)
    y = X @ w + 2 * random.logistic(size=3000) > 0
    model = Perceptron(averaged=True, random_state=0).fit(X, y)
    assert not model.converged_
    assert model.separable_ is False
    direction = model.coef_[0] / np.linalg.norm(model.coef_)
    assert direction @ w / np.linalg.norm(w) > 0.98


def test_the_mean_is_that_over_all_visits():
    X, y = IRIS[0][:100], IRIS[1][:100]
    mean, std = X.mean(axis=0), X.std(axis=0)
    phi = np.column_stack([np.ones(100), (X - mean) / std])
    w, seen = np.zeros(5), []
    model = Perceptron(shuffle=False, averaged=True).fit(X, y)
    for _ in range(model.n_iter_):
        for row, t in zip(phi, 2 * y - 1, strict=True):
            w = w + row * t if row @ w * t <= 0 else w
            seen.append(w)
    w = np.mean(seen, axis=0)
    assert_allclose(model.coef_, [w[1:] / std], rtol=1e-10)
    assert_allclose(model.decision_function(X), phi @ w, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("model", [Perceptron(random_state=3), Adaline(random_state=3)])
def test_the_order_of_rows_and_repeated_rows_do_not_matter(model):
    X, y = WINE
    plain = model.fit(X, y).decision_function(X)
    random = np.random.default_rng(2)
    order = random.permutation(len(X))
    assert_allclose(model.fit(X[order], y[order]).decision_function(X), plain, rtol=1e-9)
    times = random.integers(0, 4, size=len(X))
    weighted = model.fit(X, y, sample_weight=times).decision_function(X)
    repeated = model.fit(X.repeat(times, axis=0), y.repeat(times)).decision_function(X)
    assert_allclose(repeated, weighted, rtol=1e-9, atol=1e-12)


def test_the_seed_draws_the_order():
    X, y = LINE
    coef = [Perceptron(random_state=seed).fit(X, y).coef_ for seed in (0, 0, 1)]
    assert_array_equal(coef[0], coef[1])
    assert not np.array_equal(coef[0], coef[2])


@pytest.mark.parametrize("model", [Perceptron(random_state=0), Adaline(random_state=0)])
@pytest.mark.parametrize(
    "labels", [np.array(["no", "yes"]), np.array([False, True]), np.array([-1, 1])], ids=str
)
def test_labels_of_any_kind(model, labels):
    X, y = LINE
    plain = model.fit(X, y).decision_function(X)
    found = model.fit(X, labels[y])
    assert found.classes_.tolist() == labels.tolist()
    assert_array_equal(found.decision_function(X), plain)
    assert set(found.predict(X).tolist()) == set(labels.tolist())


@pytest.mark.parametrize("model", [Perceptron(random_state=0), Adaline(random_state=0)])
def test_sparse_rows_are_the_same_rows(model):
    random = np.random.default_rng(3)
    X = np.where(random.uniform(size=(150, 6)) < 0.5, 0.0, random.normal(size=(150, 6)))
    y = (X @ random.normal(size=(6, 3))).argmax(axis=1)
    plain = model.fit(X, y).decision_function(X)
    found = model.fit(sparse.csr_array(X), y).decision_function(sparse.csr_array(X))
    assert_allclose(found, plain, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("model", [Perceptron(random_state=0), Adaline(random_state=0)])
def test_levels_are_columns_of_zeros_and_ones(model):
    random = np.random.default_rng(4)
    colour, size = random.integers(3, size=120), random.normal(size=120)
    y = (size + np.array([0.0, 2.0, -2.0])[colour] > 0).astype(int)
    size = size + np.where(y, 0.3, -0.3)
    frame = pd.DataFrame({"size": size, "colour": np.array(["blue", "green", "red"])[colour]})
    plain = np.column_stack([size, colour == 1, colour == 2])
    found = model.fit(frame, y).coef_
    assert_allclose(found, model.fit(plain, y).coef_, rtol=1e-9)
    if isinstance(model, Perceptron):
        assert model.fit(frame, y).score(frame, y) == 1.0


@pytest.mark.parametrize("model", [Perceptron(random_state=0), Adaline(random_state=0)])
@pytest.mark.parametrize("scale", [1e150, 1e-150, 1e-8])
def test_units_do_not_matter(model, scale):
    X, y = WINE
    unit = np.where(np.arange(X.shape[1]) % 2, scale, 1.0)
    plain = model.fit(X, y).decision_function(X)
    assert_allclose(model.fit(X * unit, y).decision_function(X * unit), plain, atol=1e-6)


@pytest.mark.parametrize("model", [Perceptron(random_state=0), Adaline(random_state=0)])
def test_an_origin_far_away_does_not_matter(model):
    X, y = WINE
    shift = 1e8 * X.std(axis=0)
    far = X + shift
    plain = model.fit(far - shift, y).decision_function(far - shift)
    assert_allclose(model.fit(far, y).decision_function(far), plain, atol=1e-5)


def test_coefficients_that_leave_the_doubles_are_named():
    X, y = WINE
    X = X * np.where(np.arange(X.shape[1]) == 2, 1e-310, 1.0)
    with pytest.raises(ScaleError, match="column 2"):
        Perceptron(random_state=0).fit(X, y)


def test_coefficients_give_the_boundary():
    X, y = WINE
    for model in (Perceptron(random_state=0), Adaline(random_state=0)):
        model.fit(X, y)
        assert_allclose(model.coef_.sum(axis=0), 0.0, atol=1e-9)
        activation = model.decision_function(X)
        found = X @ model.coef_.T + model.intercept_
        assert_allclose(found - found[:, :1], activation - activation[:, :1], atol=1e-8)
        assert model.n_parameters_ == 14 * 2
        plane = model.hyperplane(0, 1)
        side = plane.signed_distance(X) > 0
        assert_array_equal(side, activation[:, 0] > activation[:, 1])


def test_the_adaline_goes_to_the_least_squares_answer():
    for X, y in (WINE, LINE, IRIS):
        expected = LeastSquaresClassifier().fit(X, y).decision_function(X)
        gaps = []
        for tol in (1e-2, 1e-3, 3e-4):
            model = Adaline(random_state=0, tol=tol, max_epochs=5000).fit(X, y)
            assert model.converged_
            found = model.decision_function(X)
            gaps.append(np.sqrt(np.mean((found - expected) ** 2)))
        assert gaps[2] < gaps[0] / 3
        assert gaps[2] < 0.02


def test_weights_move_the_adaline_as_they_move_least_squares():
    X, y = IRIS
    weight = np.where(y == 1, 5.0, 1.0)
    expected = LeastSquaresClassifier().fit(X, y, sample_weight=weight).decision_function(X)
    model = Adaline(random_state=0, tol=3e-4, max_epochs=5000).fit(X, y, sample_weight=weight)
    assert_allclose(model.decision_function(X), expected, atol=0.02)


def test_an_adaline_that_is_stopped_says_how_far_it_is():
    with pytest.warns(ConvergenceWarning, match="After 2 epochs a column still has") as caught:
        model = Adaline(random_state=0, max_epochs=2, tol=1e-8).fit(*WINE)
    assert "LeastSquaresClassifier" in caught[0].message.remedy
    assert not model.converged_
    assert (model.n_iter_, model.n_updates_) == (2, 2 * 178)


def test_soft_labels_share_a_row_among_classes():
    X, y = WINE
    soft = 0.8 * np.eye(3)[y] + 0.2 / 3
    model = Adaline(random_state=0, tol=3e-4, max_epochs=5000).fit(X, soft)
    expected = LeastSquaresClassifier().fit(X, soft).decision_function(X)
    assert_allclose(model.decision_function(X), expected, atol=0.02)


@pytest.mark.parametrize(
    ("estimator", "name"),
    [
        (Perceptron(max_epochs=0), "max_epochs=0"),
        (Perceptron(max_epochs=2.5), "max_epochs=2.5"),
        (Perceptron(shuffle="yes"), "shuffle='yes'"),
        (Perceptron(averaged=1), "averaged=1"),
        (Adaline(learning_rate=0.0), "learning_rate=0.0"),
        (Adaline(learning_rate=1.5), "learning_rate=1.5"),
        (Adaline(tol=0), "tol=0"),
        (Adaline(tol=np.inf), "tol=inf"),
    ],
)
def test_settings_that_cannot_be_honoured_are_refused(estimator, name):
    with pytest.raises(ParameterError, match=name):
        estimator.fit(*WINE)
