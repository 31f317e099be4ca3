"""Updates of many rows at once against one row after the other."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from posteriori.design.columns import Columns
from posteriori.rows.in_memory import read_rows
from posteriori.solve.perceptron import (
    PerceptronState,
    adaline_epoch,
    mistakes,
    perceptron,
    perceptron_epoch,
    squared_error_gradient,
    targets,
)
from posteriori.statistics.coordinates import Coordinates
from posteriori.statistics.row_stream import RowStream


def stream(X, codes, weight=None):
    """Rows that are visited as they are."""
    rows = read_rows(X, codes, weight, classes=np.arange(max(codes.max() + 1, 2)))
    zeros, ones = np.zeros(X.shape[1]), np.ones(X.shape[1])
    at = Coordinates(Columns(rows.schema), True, zeros, ones, far=True, long=False, unit=ones)
    return RowStream(rows, at, 1.0)


def problem(K, n=400, d=3, seed=0, noise=1.0):
    random = np.random.default_rng([seed, K])
    X = random.normal(size=(n, d))
    codes = (X @ random.normal(size=(d, K)) + noise * random.normal(size=(n, K))).argmax(axis=1)
    return X, codes, random.uniform(0.2, 3.0, size=n)


def one_by_one(X, codes, weight, order, W):
    """The perceptron as the book has it (4.55), W after each visit, and the number of updates."""
    W, seen, n_updates = W.copy(), [], 0
    phi = np.column_stack([np.ones(len(X)), X])
    for i in order:
        if W.shape[1] == 1:
            t = 1.0 if codes[i] == 1 else -1.0
            if phi[i] @ W[:, 0] * t <= 0:
                W[:, 0] += weight[i] * phi[i] * t
                n_updates += 1
        else:
            a = phi[i] @ W
            others = [k for k in range(W.shape[1]) if k != codes[i]]
            largest = max(a[k] for k in others)
            if a[codes[i]] <= largest:
                winners = [k for k in others if a[k] == largest]
                W[:, codes[i]] += weight[i] * phi[i]
                for k in winners:
                    W[:, k] -= weight[i] * phi[i] / len(winners)
                n_updates += 1
        seen.append(W.copy())
    return W, np.array(seen), n_updates


@pytest.mark.parametrize("K", [2, 3, 5])
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_an_epoch_is_one_row_after_the_other(K, noise):
    X, codes, weight = problem(K, noise=noise)
    random, same = np.random.default_rng(1), np.random.default_rng(1)
    state = PerceptronState.zero(4, K)
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


def test_the_first_update_shares_the_loss_among_classes_that_tie():
    X = np.array([[2.0], [1.0]])
    state = perceptron_epoch(PerceptronState.zero(2, 3), stream(X, np.array([1, 1])))
    assert_allclose(state.weights, [[-0.5, 1.0, -0.5], [-1.0, 2.0, -1.0]])
    assert state.n_updates == 1


def test_an_update_makes_the_error_of_its_row_smaller():
    """By |φ|² (4.56)."""
    X, codes, _ = problem(2)
    state = perceptron_epoch(PerceptronState.zero(4, 2), stream(X, codes))
    phi, t = np.column_stack([np.ones(400), X]), np.where(codes == 1, 1.0, -1.0)
    before = -(phi @ state.weights)[:, 0] * t
    i = int(np.flatnonzero(before[100:] >= 0)[0]) + 100
    after = perceptron_epoch(state, stream(X[[i]], codes[[i]]))
    assert_allclose(-(phi[i] @ after.weights)[0] * t[i], before[i] - phi[i] @ phi[i])


@pytest.mark.parametrize("K", [2, 4])
def test_the_updates_end_no_later_than_novikoffs_bound(K):
    """At most (R |W*| / γ)² updates, for rows of length R and margins γ under W*."""
    X, codes, _ = problem(K, n=200, noise=0.0)
    phi = np.column_stack([np.ones(200), X])
    random = np.random.default_rng([0, K])
    random.normal(size=(200, 3))
    W = np.vstack([np.zeros(K), random.normal(size=(3, K))])
    W = W[:, 1:] - W[:, :1] if K == 2 else W
    a = phi @ W
    if K == 2:
        margins, length = np.where(codes == 1, a[:, 0], -a[:, 0]), (phi**2).sum(axis=1).max()
    else:
        own = a[np.arange(200), codes]
        a[np.arange(200), codes] = -np.inf
        margins, length = own - a.max(axis=1), 2 * (phi**2).sum(axis=1).max()
    found = _learnt(stream(X, codes), K, max_epochs=100_000)
    assert found.converged
    assert found.separable
    assert not mistakes([found.weights], stream(X, codes)).any()
    assert found.state.n_updates <= length * (W**2).sum() / margins.min() ** 2


def _learnt(rows, K, separable=lambda weights: True, max_epochs=100, averaged=False):
    start = PerceptronState.zero(len(rows.coordinates.scale) + 1, K)
    random = np.random.default_rng(0)
    return perceptron(rows, start, range(max_epochs), random, separable, averaged=averaged)


def test_separability_is_decided_once_and_only_when_it_pays():
    X, codes, _ = problem(2, n=60)
    asked = []

    def answer(weights):
        asked.append(weights)
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
    found = _learnt(rows, K, lambda weights: False)
    assert not found.converged
    assert not found.separable
    assert found.state.n_epochs < 100
    fewest, *others = mistakes([found.weights, found.state.weights, found.state.mean()], rows)
    assert fewest.sum() <= min(other.sum() for other in others)
    averaged = _learnt(rows, K, lambda weights: False, averaged=True)
    assert_array_equal(averaged.weights, averaged.state.mean())


def test_mistakes_are_rows_not_strictly_on_their_side():
    X = np.array([[1.0], [-1.0], [0.0], [2.0]])
    w = np.array([[0.0], [1.0]])
    found = mistakes([w, -w], stream(X, np.array([1, 0, 1, 0]), np.arange(1.0, 5.0)))
    assert found.tolist() == [[4.0, 3.0], [2.0, 4.0]]
    W = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, -1.0]])
    assert mistakes([W], stream(X, np.array([0, 2, 1, 2]))).sum() == 2 * 2.0


def test_mistakes_count_for_both_of_the_classes_that_are_confused():
    X = np.array([[1.0], [2.0], [3.0], [-1.0]])
    W = np.array([[0.0, 0.0, -9.0], [1.0, -1.0, 0.0]])
    found = mistakes([W], stream(X, np.array([1, 1, 2, 1]), np.array([1.0, 1.0, 5.0, 1.0])))
    assert found.tolist() == [[7.0, 2.0, 5.0]]


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


@pytest.mark.parametrize("K", [2, 3])
def test_the_gradient_is_zero_at_the_least_squares_answer(K):
    X, codes, weight = problem(K)
    phi, t = np.column_stack([np.ones(400), X]), targets(codes, 1 if K == 2 else K)
    root = np.sqrt(weight)[:, None]
    W = np.linalg.lstsq(root * phi, root * t)[0]
    assert_allclose(squared_error_gradient(W, stream(X, codes, weight)), 0.0, atol=1e-13)
    zero = squared_error_gradient(np.zeros_like(W), stream(X, codes, weight))
    assert_allclose(zero, phi.T @ (weight[:, None] * t) / weight.sum(), rtol=1e-12)


def _exactly(phi, codes, weight, K):
    """One epoch of the perceptron in fractions: W, and the number of updates."""
    W = [[Fraction(0)] * len(phi[0]) for _ in range(K)]
    n_updates = 0
    for row, own, size in zip(phi, codes, weight, strict=True):
        a = [sum(u * v for u, v in zip(w, row, strict=True)) for w in W]
        largest = max(a[k] for k in range(K) if k != own)
        if a[own] > largest:
            continue
        n_updates += 1
        winners = [k for k in range(K) if k != own and a[k] == largest]
        for k, share in [(own, Fraction(1)), *((k, -Fraction(1, len(winners))) for k in winners)]:
            W[k] = [w + size * share * x for w, x in zip(W[k], row, strict=True)]
    return W, n_updates


@pytest.mark.parametrize("K", [2, 3, 4])
@pytest.mark.parametrize("seed", range(5))
def test_rounding_does_not_decide_who_is_on_the_boundary(K, seed):
    """Entries are sevenths and weights ninths, which doubles do not hold: many ties, all seen."""
    random = np.random.default_rng([seed, K])
    whole, ninths = random.integers(-3, 4, size=(200, 2)), random.integers(1, 4, size=200)
    codes = random.integers(K, size=200)
    exact = [[Fraction(1), *(Fraction(int(x), 7) for x in row)] for row in whole]
    W, n_updates = _exactly(exact, codes, [Fraction(int(w), 9) for w in ninths], K)
    rows = stream(whole / 7, codes, ninths / 9)
    state = perceptron_epoch(PerceptronState.zero(3, K), rows)
    assert state.n_updates == n_updates
    expected = np.array(W, dtype=float).T
    if K == 2:  # the one activation is that of the second class less that of the first
        expected = (expected[:, 1:] - expected[:, :1]) / 2
    assert_allclose(state.weights, expected, rtol=0, atol=1e-12)
