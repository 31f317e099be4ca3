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
    LabelError,
    LevelError,
    MissingValueError,
    ParameterError,
    ScaleError,
    ShapeError,
)
from posteriori.models.perceptron import Adaline, Perceptron
from posteriori.rows.in_memory import read_rows
from posteriori.statistics.row_stream import RowStream

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

BOTH = pytest.mark.parametrize(
    "model", [Perceptron(random_state=0), Adaline(random_state=0)], ids=["perceptron", "adaline"]
)


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


@BOTH
def test_the_seed_draws_the_order(model):
    X, y = LINE
    coef = [model.set_params(random_state=seed).fit(X, y).coef_ for seed in (0, 0, 1)]
    assert_array_equal(coef[0], coef[1])
    assert not np.array_equal(coef[0], coef[2])


@BOTH
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


@BOTH
def test_sparse_rows_are_the_same_rows(model):
    random = np.random.default_rng(3)
    X = np.where(random.uniform(size=(150, 6)) < 0.5, 0.0, random.normal(size=(150, 6)))
    y = (X @ random.normal(size=(6, 3))).argmax(axis=1)
    plain = model.fit(X, y).decision_function(X)
    found = model.fit(sparse.csr_array(X), y).decision_function(sparse.csr_array(X))
    assert_allclose(found, plain, rtol=1e-9, atol=1e-9)


@BOTH
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


@BOTH
@pytest.mark.parametrize("scale", [1e150, 1e-150, 1e-8])
def test_units_do_not_matter(model, scale):
    X, y = WINE
    unit = np.where(np.arange(X.shape[1]) % 2, scale, 1.0)
    plain = model.fit(X, y).decision_function(X)
    assert_allclose(model.fit(X * unit, y).decision_function(X * unit), plain, atol=1e-6)


@BOTH
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


# Batches of rows.


@pytest.mark.filterwarnings("ignore::posteriori.errors.ConvergenceWarning")
@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize(
    "model",
    [
        Perceptron(max_epochs=1, random_state=0, averaged=True),
        Adaline(max_epochs=1, random_state=0),
    ],
    ids=["perceptron", "adaline"],
)
def test_one_epoch_is_one_partial_fit(model, K):
    X, y = WINE[0][WINE[1] < K], WINE[1][WINE[1] < K]
    once = model.fit(X, y).decision_function(X)
    fresh = type(model)(**model.get_params()).partial_fit(X, y)
    assert_allclose(fresh.decision_function(X), once, rtol=1e-10)
    assert fresh.n_iter_ == 1


@pytest.mark.parametrize("model", [Perceptron, Adaline])
@pytest.mark.parametrize("seed", [3, np.random.RandomState(3)], ids=["number", "generator"])
def test_batches_have_orders_of_their_own(model, seed, monkeypatch):
    """As the epochs of a fit have, and the same again for the same seed."""
    orders, segments = [], RowStream.segments

    def listen(self, random=None):
        found = list(segments(self, random))
        if random is not None:
            orders.append(np.concatenate([segment.rows[:, 1] for segment in found]).tolist())
        return iter(found)

    monkeypatch.setattr(RowStream, "segments", listen)
    for _ in range(2):
        learner = model(random_state=seed)
        for _ in range(3):
            learner.partial_fit(*LINE)
    assert len({tuple(sorted(order)) for order in orders}) == 1
    assert len({tuple(order) for order in orders[:3]}) == 3
    assert (orders[:3] == orders[3:]) == isinstance(seed, int)


def test_whether_all_rows_can_be_separated_is_not_said_of_batches():
    X, y = LINE
    model = Perceptron(random_state=0).fit(X, y)
    assert model.partial_fit(X[:100], y[:100]).separable_ is None


def test_batches_teach_the_perceptron_as_one_epoch_would():
    X, y = LINE
    model = Perceptron(shuffle=False)
    for _ in range(20):
        for low in range(0, 300, 100):
            model.partial_fit(X[low : low + 100], y[low : low + 100])
    assert model.score(X, y) == 1.0
    assert model.converged_
    assert model.n_iter_ == 20 * 3


def test_a_batch_may_lack_classes_that_were_named():
    X, y = WINE
    for model in (Perceptron(random_state=0), Adaline(random_state=0)):
        model.partial_fit(X[:80], y[:80], classes=[0, 1, 2])
        model.partial_fit(X[80:], y[80:])
        assert model.classes_.tolist() == [0, 1, 2]
        for _ in range(30):
            model.partial_fit(X, y)
        assert model.score(X, y) > 0.97


def test_a_batch_with_a_new_class_or_other_columns_is_refused_and_changes_nothing():
    X, y = WINE
    model = Perceptron(random_state=0).partial_fit(X[y < 2], y[y < 2])
    before = model.decision_function(X)
    with pytest.raises(LabelError, match="2, which is not among the classes"):
        model.partial_fit(X, y)
    with pytest.raises(LabelError, match="Name all classes"):
        model.partial_fit(read_rows(X, y))
    with pytest.raises(ShapeError, match="12 features"):
        model.partial_fit(X[y < 2, :12], y[y < 2])
    spoilt = X[y < 2].copy()
    spoilt[3, 4] = np.nan
    with pytest.raises(MissingValueError, match="row 3, column 4"):
        model.partial_fit(spoilt, y[y < 2])
    assert_array_equal(model.decision_function(X), before)


def test_an_unseen_level_is_named():
    frame = pd.DataFrame({"f": ["a", "b", "a", "b"], "x": [0.0, 1.0, 2.0, 3.0]})
    model = Perceptron(random_state=0).partial_fit(frame, [0, 1, 0, 1])
    with pytest.raises(LevelError, match="Row 1 has the level 'c' in column 'f'"):
        model.partial_fit(frame.assign(f=["a", "c", "a", "b"]), [0, 1, 0, 1])
