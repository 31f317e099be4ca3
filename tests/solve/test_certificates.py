"""Proofs of overlap and separation against linear programs with all rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from posteriori.design.columns import Columns
from posteriori.rows.in_memory import read_rows
from posteriori.solve import certificates, separation
from posteriori.solve.certificates import decide
from posteriori.statistics.coordinates import Coordinates, GatherSample, by_label
from posteriori.statistics.separation_margins import PairsOf


def verdict(X, y, intercept=True):
    rows = read_rows(X, y)
    columns = Columns(rows.schema)
    at = Coordinates.of(rows.map_sum(GatherSample(columns, by_label, 200)), columns, intercept)
    return decide(rows, at, PairsOf(by_label, len(rows.classes)))


def few_rows(seed):
    random = np.random.default_rng(seed)
    K, d = int(random.choice([2, 2, 3])), int(random.integers(1, 4))
    n = int(random.integers(K, 9))
    X = random.integers(-1, 2, size=(n, d)).astype(float)
    y = random.integers(K, size=n)
    if random.random() < 0.4:
        y = (X @ random.integers(-2, 3, size=(d, K))).argmax(axis=1)
    y[:K] = np.arange(K)
    if random.random() < 0.3:
        shares = np.eye(K)[y]
        shares[-1] = [0.5, 0.5, *[0.0] * (K - 2)]
        return X, shares
    return X, y


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_what_is_proved_is_what_the_programs_say(seed, wide, monkeypatch):
    if wide:
        monkeypatch.setattr(certificates, "_WIDE", 0)
    X, y = few_rows(seed)
    rows = read_rows(X, y)
    kind = separation.find_separation(rows, len(rows.classes)).kind
    found = verdict(X, y)
    if found.known:
        assert (found.found is None) == (kind == "none")
    else:
        assert kind == "quasi"  # seldom; always where no Hessian is to be had
    if kind != "quasi":
        assert found.known


def test_a_direction_that_separates_some_leaves_the_others_at_zero():
    random = np.random.default_rng(1)
    X, y = random.normal(size=(300, 4)), random.integers(2, size=300)
    X = np.column_stack([X, np.zeros(300)])
    X[:7, -1], y[:7] = 1.0, 1
    ray, margins = verdict(X, y).found
    original = ray.coordinates.original(ray.theta)[:, 0]
    assert_allclose(original / original[-1], [0.0] * 5 + [1.0], atol=1e-9)
    assert margins.n_clear == 7


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["none", "quasi", "complete"])
def test_many_columns_are_decided_without_programs(kind, monkeypatch):
    random = np.random.default_rng(2)
    X = random.normal(size=(3000, 200))
    X[:, 0] = 0.0
    a = X[:, 1] - X[:, 2]
    y = a + (kind != "complete") * random.logistic(size=3000) > 0
    X, y = X[abs(a) > 0.05], y[abs(a) > 0.05]
    X[np.flatnonzero(y)[:5], 0] = float(kind == "quasi")
    with monkeypatch.context() as patched:
        patched.setattr(separation, "largest_sum", None)
        rows = read_rows(X, y)
        found = separation.find_separation(rows, 2)
        spread = separation.find_separation(read_rows(sparse.csr_array(X), y), 2)
    names = {"none": (), "quasi": ("x0",), "complete": ("x1", "x2")}[kind]
    assert found.kind == spread.kind == kind
    assert set(found.columns) - {"intercept"} == set(names)
    margins = (np.column_stack([np.ones(len(X)), X]) @ found.ray)[:, 0] * np.where(y, 1, -1)
    off = {"none": y < 0, "quasi": X[:, 0] > 0, "complete": y >= 0}[kind]
    assert_allclose(margins[~off], 0.0, atol=1e-6)
    assert (margins[off] > 1 - 1e-6).all()


def test_rays_that_need_most_of_many_columns_are_taken_as_they_are():
    random = np.random.default_rng(3)
    X = random.normal(size=(900, 300))
    y = X.sum(axis=1) > 0
    found = separation.find_separation(read_rows(X, y), 2)
    margins = (np.column_stack([np.ones(900), X]) @ found.ray)[:, 0] * np.where(y, 1, -1)
    assert found.kind == "complete"
    assert margins.min() > 1 - 1e-6


@pytest.mark.slow
def test_more_columns_than_a_hessian_has_room_for_are_decided():
    random = np.random.default_rng(4)
    X = sparse.random_array((1500, 5000), density=0.01, rng=random, format="csr")
    y = random.integers(2, size=1500)
    found = separation.find_separation(read_rows(X, y), 2)
    assert found.kind == "complete"
    margins = (X @ found.ray[1:] + found.ray[0])[:, 0] * np.where(y, 1, -1)
    assert margins.min() > 1 - 1e-6


def documents(n, p, signal):
    """Counts of words, some of them rare, and a noisy label."""
    random = np.random.default_rng(0)
    popularity = 1 / (np.arange(p) + 10.0)
    words = random.choice(p, (n, 30), p=popularity / popularity.sum())
    places = np.repeat(np.arange(n), 30), words.ravel()
    X = sparse.csr_array((np.ones(30 * n), places), shape=(n, p))
    a = X @ random.normal(scale=signal / np.sqrt(30), size=p)
    return X, (a + random.logistic(size=n) > 0).astype(int)


def margins_of(X, y, ray):
    return (X @ ray[1:] + ray[0])[:, 0] * np.where(y, 1, -1)


def test_half_as_many_columns_as_rows_part_them_all_in_few_steps(monkeypatch):
    X, y = documents(9000, 4500, 3.0)
    monkeypatch.setattr(certificates, "_WideDescent", None)
    monkeypatch.setattr(separation, "largest_sum", None)
    monkeypatch.setattr(certificates, "_STEPS", 15)
    found = separation.find_separation(read_rows(X, y), 2)
    assert found.kind == "complete"
    assert margins_of(X, y, found.ray).min() > 1 - 1e-6


@pytest.mark.parametrize("alone", [0, 2])
def test_a_tenth_as_many_columns_as_rows_overlap_but_for_those_in_one_class(alone, monkeypatch):
    X, y = documents(40000, 4100, 1.0)
    rare = np.zeros((40000, alone))
    for j in range(alone):
        rare[np.flatnonzero(y == j)[7 * j : 7 * j + 7], j] = 1.0
    X = sparse.hstack([X, sparse.csr_array(rare)]).tocsr()
    monkeypatch.setattr(separation, "largest_sum", None)
    found = separation.find_separation(read_rows(X, y), 2)
    assert found.kind == ("quasi" if alone else "none")
    assert found.columns == ("x4100", "x4101")[:alone]
    np.testing.assert_array_equal(found.directions, [-1.0, 1.0][:alone])
    clear = rare.any(axis=1)
    margins = margins_of(X, y, found.ray)
    assert margins[clear].min(initial=1.0) > 1 - 1e-6
    assert_allclose(margins[~clear], 0.0, atol=1e-9)


@pytest.mark.parametrize("K", [2, 3])
def test_rows_that_do_not_depend_on_each_other_are_separated_by_interpolation(K):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(30, 40)), np.arange(30) % K
    rows = read_rows(X, y)
    columns = Columns(rows.schema)
    sample = rows.map_sum(GatherSample(columns, by_label, 200))
    at = Coordinates.of(sample, columns, True)
    theta = certificates.interpolating(sample, at, K)
    assert abs(theta).max() == pytest.approx(1.0)
    activation = at.standardise(X) @ theta
    own = (activation[:, 0] > 0) if K == 2 else activation.argmax(axis=1)
    np.testing.assert_array_equal(own, y)


def test_parameters_that_are_held_stay_and_a_guess_that_errs_is_not_believed():
    X = np.array([[-2.0, 1.0], [-1.0, 0.0], [1.0, 1.0], [2.0, 0.0]])
    rows = read_rows(X, [0, 0, 1, 1])
    wrong = np.array([[0.0], [-1.0], [0.0]])
    found = separation.find_separation(rows, 2, guess=wrong)
    assert found.kind == "complete"
    assert found.columns == ("x0",)
    held = np.array([False, True, False])
    assert separation.find_separation(rows, 2, guess=-wrong, held=held).kind == "none"
    held = np.array([True, False, True])
    found = separation.find_separation(rows, 2, held=held)
    assert found.kind == "complete"
    assert_allclose(found.ray[[0, 2]], 0.0)
