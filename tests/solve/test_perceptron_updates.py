"""Updates of many rows at once against one row after the other."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from posteriori.design.standardise import Standard
from posteriori.rows.in_memory import read_rows
from posteriori.solve.perceptron import (
    PerceptronState,
    adaline_epoch,
    perceptron,
    perceptron_epoch,
)
from posteriori.statistics.row_stream import RowStream


def stream(X, codes, weight=None):
    """Rows that are visited as they are."""
    rows = read_rows(X, codes, weight, classes=np.arange(max(codes.max() + 1, 2)))
    return RowStream(rows, Standard(np.zeros(X.shape[1]), np.ones(X.shape[1]), True))


def problem(K, n=400, noise=1.0):
    random = np.random.default_rng([0, K])
    X = random.normal(size=(n, 3))
    codes = (X @ random.normal(size=(3, K)) + noise * random.normal(size=(n, K))).argmax(axis=1)
    return X, codes, random.uniform(0.2, 3.0, size=n)


def start(K, unit=1.0):
    return PerceptronState(np.zeros((4, K)), np.zeros((4, K)), unit)


def one_by_one(X, codes, weight, order, W):
    """The perceptron as the book has it (4.55), W after each visit, and the number of updates.

    Two classes have one vector w, which is the difference of the two of the solver.
    """
    W, seen, n_updates = W.copy(), [], 0
    phi = np.column_stack([np.ones(len(X)), X])
    for i in order:
        if W.shape[1] == 1:
            change = np.array([2.0 * codes[i] - 1])
            wrong = phi[i] @ W[:, 0] * change[0] <= 0
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
    state, W, visits, weights, n_updates = start(K, 2.0), np.zeros((4, K)), [], [], 0
    W = np.zeros((4, 1 if K == 2 else K))

    def of_book(W):
        return np.diff(W, axis=1) if K == 2 else W

    for _ in range(3):
        state = perceptron_epoch(state, stream(X, codes, 2.0 * weight), random)
        order = same.permutation(len(X))
        W, seen, n = one_by_one(X, codes, weight, order, W)
        visits.append(seen)
        weights.append(weight[order])
        n_updates += n
        assert_allclose(of_book(state.weights), W, rtol=1e-12, atol=1e-12)
    assert (state.n_updates, state.n_epochs) == (n_updates, 3)
    mean = np.average(np.concatenate(visits), axis=0, weights=np.concatenate(weights))
    assert_allclose(of_book(state.mean()), mean, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("answer", [True, False, None])
def test_separability_is_decided_once(answer):
    X, codes, _ = problem(2, n=60)
    requests = []

    def separable():
        requests.append(answer)
        return answer

    random = np.random.default_rng(0)
    state, *found = perceptron(stream(X, codes), start(2), 300, random, separable)
    assert found == [False, answer]
    assert (state.n_epochs == 300) == (answer is not False)
    rows = stream(X, (X[:, 0] > 0).astype(int))
    assert perceptron(rows, start(2), 1000, random, separable)[1:] == (True, True)
    assert len(requests) == 1


def lms_one_by_one(X, codes, weight, order, W, rate):
    phi, t = np.column_stack([np.ones(len(X)), X]), np.eye(W.shape[1])[codes]
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
    W = np.random.default_rng(3).normal(size=(4, K))
    *found, n_visits = adaline_epoch(W, stream(X, codes, weight), rate, np.random.default_rng(2))
    assert n_visits == len(X)
    expected = lms_one_by_one(X, codes, weight, order, W, rate)
    for a, b in zip(found, expected, strict=True):
        assert_allclose(a, b, rtol=1e-10, atol=1e-12)
