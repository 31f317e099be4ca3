"""The perceptron and the adaline, taught by batches of rows."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_wine

from posteriori.errors import LabelError, LevelError, MissingValueError, ShapeError
from posteriori.models.perceptron import Adaline, Perceptron
from posteriori.rows.in_memory import read_rows

WINE = load_wine(return_X_y=True)


def _apart(n, gap):
    """Two classes on both sides of a plane, with a gap between them."""
    random = np.random.default_rng(6)
    X, w = random.normal(size=(n, 4)), np.array([1.0, -2.0, 0.5, 0.0])
    y = (X @ w + 0.3 > 0).astype(int)
    return X + np.outer(np.where(y, gap, -gap), w / (w @ w)), y


LINE = _apart(300, 0.2)


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
    orders, learn_once = [], model._learn_once

    def listen(self, visits, order):
        [(_, own)] = order.of([300])
        orders.append(own.tolist())
        learn_once(self, visits, order)

    monkeypatch.setattr(model, "_learn_once", listen)
    for _ in range(2):
        learner = model(random_state=seed)
        for _ in range(3):
            learner.partial_fit(*LINE)
    assert all(sorted(order) == list(range(300)) for order in orders)
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
