"""The perceptron and the adaline as classifiers."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, load_wine

from posteriori import Adaline, LeastSquaresClassifier, Perceptron
from posteriori.errors import (
    ConvergenceWarning,
    LabelError,
    LevelError,
    ParameterError,
    ShapeError,
)
from posteriori.rows.in_memory import read_rows

IRIS = load_iris(return_X_y=True)
WINE = load_wine(return_X_y=True)
BOTH = pytest.mark.parametrize(
    "model", [Perceptron(random_state=0), Adaline(random_state=0)], ids=["perceptron", "adaline"]
)


def separated_rows(n, gap):
    """Two classes on both sides of a plane, with a gap between them."""
    random = np.random.default_rng(6)
    X, w = random.normal(size=(n, 4)), np.array([1.0, -2.0, 0.5, 0.0])
    y = (X @ w + 0.3 > 0).astype(int)
    return X + np.outer(np.where(y, gap, -gap), w / (w @ w)), y


LINE = separated_rows(300, 0.2)
CLOSE = IRIS[0][50:] + np.outer(IRIS[1][50:] == 2, [0, 0, 2.0, 0]), (IRIS[1][50:] == 2).astype(int)
CLOSE = tuple(values[IRIS[0][50:, 3] != 1.7] for values in CLOSE)


def by_the_book(X, y, start=0.0):
    """(4.55) in the order of the rows: weights after each update, their mean, and the epochs."""
    phi = np.column_stack([np.ones(len(X)), X])
    w = np.zeros(phi.shape[1]) + start
    path, visited = [w], []
    for epochs in range(1, 1000):
        before = len(path)
        for row, t in zip(phi, np.where(y == 1, 1.0, -1.0), strict=True):
            if row @ w * t <= 0:
                w = w + row * t
                path.append(w)
            visited.append(w)
        if len(path) == before:
            return np.array(path), np.mean(visited, axis=0), epochs
    raise AssertionError("not separated")


def test_it_is_the_perceptron_of_the_book_on_standardised_columns():
    X, y = CLOSE
    mean, sd = X.mean(axis=0), X.std(axis=0)
    model = Perceptron(shuffle=False, keep_path=True).fit(X, y)
    path, averaged, epochs = by_the_book((X - mean) / sd, y)
    slopes = path[:, 1:] / sd
    expected = np.column_stack([path[:, 0] - slopes @ mean, slopes])
    assert_allclose(model.path_[:, 0], expected, rtol=1e-9, atol=1e-9)
    assert (model.n_updates_, model.n_iter_) == (len(path) - 1, epochs)
    model = Perceptron(shuffle=False, averaged=True).fit(X, y)
    assert_allclose(model.coef_, [averaged[1:] / sd], rtol=1e-10)


@pytest.mark.parametrize("standardise", [False, True])
def test_the_first_weights_can_be_given(standardise):
    """As in Figure 4.7, which shows the boundary after each update."""
    X, y = separated_rows(40, 1.0)
    start = np.array([0.5, -3.0, 1.0, 2.0, 0.0])
    model = Perceptron(shuffle=False, standardise=standardise, keep_path=True)
    model.fit(X, y, coef_init=start[None, 1:], intercept_init=start[0])
    assert_allclose(model.path_[0, 0], start, atol=1e-12)
    if not standardise:
        path, *_ = by_the_book(X, y, start)
        assert_allclose(model.path_[:, 0], path, rtol=1e-9, atol=1e-9)
    again = model.fit(X, y, coef_init=model.coef_, intercept_init=model.intercept_)
    assert again.n_updates_ == 0
    with pytest.raises(ShapeError, match=r"coef_init is not .* shape \(1, 4\)"):
        model.fit(X, y, coef_init=[1.0, 2.0])


def test_the_path_of_three_classes_ends_at_the_coefficients():
    model = Perceptron(random_state=0, keep_path=True).fit(*WINE)
    assert model.path_.shape == (model.n_updates_ + 1, 3, 14)
    assert_allclose(model.path_[-1, :, 1:], model.coef_, rtol=1e-9, atol=1e-12)
    assert_allclose(model.path_[-1, :, 0], model.intercept_, rtol=1e-9)
    start = Perceptron(keep_path=True).fit(
        *WINE, coef_init=model.coef_, intercept_init=model.intercept_
    )
    assert start.path_.shape == (1, 3, 14)
    assert not hasattr(model.set_params(keep_path=False).fit(*WINE), "path_")


@pytest.mark.parametrize("data", [(IRIS[0], IRIS[1] > 0), WINE, LINE], ids=["iris", "wine", "line"])
@pytest.mark.parametrize("averaged", [False, True])
def test_separable_classes_are_separated(data, averaged):
    model = Perceptron(random_state=0, averaged=averaged).fit(*data)
    assert model.converged_
    assert model.separable_ is True
    assert averaged or model.score(*data) == 1.0


@pytest.mark.parametrize(
    ("model", "data", "words", "remedy"),
    [
        (Perceptron(max_epochs=1), LINE, "can be separated, but .* in 1 epoch", "Raise max_epochs"),
        (Adaline(max_epochs=2, tol=1e-8), WINE, "After 2 epochs a column", "LeastSquaresCl"),
    ],
    ids=["perceptron", "adaline"],
)
def test_too_few_epochs_are_warned_of(model, data, words, remedy):
    with pytest.warns(ConvergenceWarning, match=words) as caught:
        model.set_params(random_state=0).fit(*data)
    assert remedy in caught[0].message.remedy
    assert not model.converged_
    assert model.n_iter_ == model.max_epochs
    assert getattr(model, "separable_", True) is True
    assert model.score(*data) > 0.9


def test_classes_that_overlap_are_detected_by_a_linear_program():
    touching = np.array([[0.0], [1.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
    for (X, y), score in ((IRIS, 0.95), (touching, 0.75)):
        with pytest.warns(ConvergenceWarning, match="No linear function") as caught:
            model = Perceptron(random_state=0).fit(X, y)
        assert "LogisticRegression" in caught[0].message.remedy
        assert caught[0].filename == __file__
        assert not model.converged_
        assert model.separable_ is False
        assert model.score(X, y) >= score


@pytest.mark.parametrize("data", ["wine", "weighted", "soft", "raw"])
def test_the_adaline_goes_to_the_least_squares_solution(data):
    X, y = IRIS if data in ("weighted", "raw") else WINE
    y = 0.8 * np.eye(3)[y] + 0.2 / 3 if data == "soft" else y
    weight = np.where(y == 1, 5.0, 1.0) if data == "weighted" else None
    X = X - X.mean(axis=0) if data == "raw" else X
    expected = LeastSquaresClassifier().fit(X, y, sample_weight=weight).decision_function(X)
    model = Adaline(random_state=0, tol=1e-3, max_epochs=5000, standardise=data != "raw")
    model.fit(X, y, sample_weight=weight)
    assert model.converged_
    gap = np.sqrt(np.mean((model.decision_function(X) - expected) ** 2))
    assert gap < 0.02
    loose = model.set_params(tol=1e-2).fit(X, y, sample_weight=weight).decision_function(X)
    assert gap < np.sqrt(np.mean((loose - expected) ** 2))


@pytest.mark.parametrize(
    ("estimator", "name"),
    [
        (Perceptron(max_epochs=0), "max_epochs=0"),
        (Perceptron(shuffle="yes"), "shuffle='yes'"),
        (Perceptron(standardise=1), "standardise=1"),
        (Perceptron(averaged=1), "averaged=1"),
        (Adaline(learning_rate=0.0), "learning_rate=0.0"),
        (Adaline(learning_rate=1.5), "learning_rate=1.5"),
        (Adaline(tol=np.inf), "tol=inf"),
    ],
)
def test_wrong_settings_are_refused(estimator, name):
    with pytest.raises(ParameterError, match=name):
        estimator.fit(*WINE)


# Batches of rows.


@pytest.mark.filterwarnings("ignore::posteriori.errors.ConvergenceWarning")
@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize(
    "model",
    [Perceptron(max_epochs=1, random_state=0, averaged=True), Adaline(max_epochs=1)],
    ids=["perceptron", "adaline"],
)
def test_one_epoch_is_one_partial_fit(model, K):
    X, y = WINE[0][WINE[1] < K], WINE[1][WINE[1] < K]
    once = model.set_params(random_state=0).fit(X, y).decision_function(X)
    fresh = type(model)(**model.get_params()).partial_fit(X, y)
    assert_allclose(fresh.decision_function(X), once, rtol=1e-10)
    assert fresh.n_iter_ == 1


@BOTH
def test_batches_may_lack_classes_and_lead_to_a_good_model(model):
    X, y = WINE
    fresh = type(model)(random_state=0)
    fresh.partial_fit(X[:80], y[:80], [0, 1, 2]).partial_fit(X[80:], y[80:])
    for _ in range(30):
        fresh.partial_fit(X, y)
    assert fresh.classes_.tolist() == [0, 1, 2]
    assert fresh.score(X, y) > 0.97
    assert getattr(fresh, "separable_", None) is None


def test_a_batch_with_a_new_class_or_level_is_refused_and_changes_nothing():
    X, y = WINE
    model = Perceptron(random_state=0).partial_fit(X[y < 2], y[y < 2])
    before = model.decision_function(X)
    with pytest.raises(LabelError, match="2, which is not among the classes"):
        model.partial_fit(X, y)
    with pytest.raises(LabelError, match="Name all classes"):
        model.partial_fit(read_rows(X, y))
    with pytest.raises(ShapeError, match="12 features"):
        model.partial_fit(X[y < 2, :12], y[y < 2])
    assert_array_equal(model.decision_function(X), before)
    frame = pd.DataFrame({"f": ["a", "b", "a", "b"], "x": [0.0, 1.0, 2.0, 3.0]})
    model = Perceptron(random_state=0).partial_fit(frame, [0, 1, 0, 1])
    with pytest.raises(LevelError, match="Row 1 has the level 'c' in column 'f'"):
        model.partial_fit(frame.assign(f=["a", "c", "a", "b"]), [0, 1, 0, 1])
