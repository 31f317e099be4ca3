"""Updates of many rows at once against one row after the other."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from posteriori.design.standardise import Standard
from posteriori.rows.in_memory import read_rows
from posteriori.solve.perceptron import (
    PerceptronState,
    adaline_epoch,
    mistakes,
    perceptron,
    perceptron_epoch,
    targets,
)
from posteriori.statistics.row_stream import RowStream


def stream(X, codes, weight=None):
    """Rows that are visited as they are."""
    rows = read_rows(X, codes, weight, classes=np.arange(max(codes.max() + 1, 2)))
    zeros, ones = np.zeros(X.shape[1]), np.ones(X.shape[1])
    return RowStream(rows, Standard(zeros, ones, True), 1.0)


def problem(K, n=400, noise=1.0):
    random = np.random.default_rng([0, K])
    X = random.normal(size=(n, 3))
    codes = (X @ random.normal(size=(3, K)) + noise * random.normal(size=(n, K))).argmax(axis=1)
    return X, codes, random.uniform(0.2, 3.0, size=n)


def one_by_one(X, codes, weight, order, W):
    """The perceptron as the book has it (4.55), W after each visit, and the number of updates."""
    W, seen, n_updates = W.copy(), [], 0
    phi = np.column_stack([np.ones(len(X)), X])
    signs = targets(codes, 1)[:, 0]
    for i in order:
        if W.shape[1] == 1:
            wrong, change = phi[i] @ W[:, 0] * signs[i] <= 0, signs[i : i + 1]
        else:
            a = phi[i] @ W
            own, a[codes[i]] = a[codes[i]], -np.inf
            wrong, winners = own <= a.max(), a == a.max()
            change = np.where(winners, -1 / winners.sum(), 0.0)
            change[codes[i]] = 1.0
        W = W + wrong * weight[i] * np.outer(phi[i], change)
        n_updates += wrong
        seen.append(W)
    return W, np.array(seen), n_updates


@pytest.mark.parametrize("K", [2, 3, 5])
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_an_epoch_is_one_row_after_the_other(K, noise):
    X, codes, weight = problem(K, noise=noise)
    random, same = np.random.default_rng(1), np.random.default_rng(1)
    state = PerceptronState.at(np.zeros((4, 1 if K == 2 else K)))
    W, visits, weights, n_updates = state.weights, [], [], 0
    for _ in range(3):
        state = perceptron_epoch(state, stream(X, codes, weight), random)
        order = same.permutation(len(X))
        W, seen, n = one_by_one(X, codes, weight, order, W)
        visits.append(seen)
        weights.append(weight[order])
        n_updates += n
        assert_allclose(state.weights, W, rtol=1e-12, atol=1e-12)
    assert (state.n_updates, state.n_epochs) == (n_updates, 3)
    mean = np.average(np.concatenate(visits), axis=0, weights=np.concatenate(weights))
    assert_allclose(state.mean(), mean, rtol=1e-10, atol=1e-10)


def _learnt(rows, K, separable=lambda: True, max_epochs=100, averaged=False):
    start = PerceptronState.at(np.zeros((len(rows.standard.scale) + 1, 1 if K == 2 else K)))
    random = np.random.default_rng(0)
    return perceptron(rows, start, range(max_epochs), random, separable, averaged=averaged)


def test_separability_is_decided_once_and_only_when_it_pays():
    X, codes, _ = problem(2, n=60)
    asked = []

    def answer():
        asked.append(True)
        return True

    for max_epochs in (1, 1000):
        found = _learnt(stream(X, codes), 2, answer, max_epochs=max_epochs)
        assert (found.converged, found.separable, found.state.n_epochs) == (False, True, max_epochs)
    assert len(asked) == 2
    assert _learnt(stream(X, (X[:, 0] > 0).astype(int)), 2, answer, max_epochs=1000).converged
    assert len(asked) == 2


@pytest.mark.parametrize("K", [2, 3])
def test_what_cannot_be_separated_ends_with_the_fewest_mistakes_met(K):
    X, codes, weight = problem(K, n=300)
    rows = stream(X, codes, weight)
    found = _learnt(rows, K, lambda: False)
    assert not found.converged
    assert not found.separable
    assert found.state.n_epochs < 100
    fewest, *others = mistakes([found.weights, found.state.weights, found.state.mean()], rows)
    assert fewest <= min(others)
    averaged = _learnt(rows, K, lambda: False, averaged=True)
    assert_array_equal(averaged.weights, averaged.state.mean())


def test_mistakes_are_rows_not_strictly_on_their_side():
    X = np.array([[1.0], [-1.0], [0.0], [2.0]])
    w = np.array([[0.0], [1.0]])
    found = mistakes([w, -w], stream(X, np.array([1, 0, 1, 0]), np.arange(1.0, 5.0)))
    assert found.tolist() == [7.0, 6.0]
    X, weight = np.array([[1.0], [2.0], [3.0], [-1.0]]), np.array([1.0, 1.0, 5.0, 1.0])
    W = np.array([[0.0, 0.0, -9.0], [1.0, -1.0, 0.0]])
    assert mistakes([W], stream(X, np.array([1, 1, 2, 1]), weight)).tolist() == [7.0]


def lms_one_by_one(X, codes, weight, order, W, rate):
    phi, t = np.column_stack([np.ones(len(X)), X]), targets(codes, W.shape[1])
    seen = []
    for i in order:
        step = min(rate * weight[i], 1 / (phi[i] @ phi[i]))
        W = W + step * np.outer(phi[i], t[i] - phi[i] @ W)
        seen.append(W)
    return W, np.average(seen, axis=0, weights=weight[order])


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("rate", [0.01, 0.5])
def test_an_adaline_epoch_is_one_row_after_the_other(K, rate):
    X, codes, weight = problem(K)
    order = np.random.default_rng(2).permutation(len(X))
    W = np.random.default_rng(3).normal(size=(4, 1 if K == 2 else K))
    *found, n_visits = adaline_epoch(W, stream(X, codes, weight), rate, np.random.default_rng(2))
    assert n_visits == len(X)
    expected = lms_one_by_one(X, codes, weight, order, W, rate)
    for a, b in zip(found, expected, strict=True):
        assert_allclose(a, b, rtol=1e-10, atol=1e-12)
