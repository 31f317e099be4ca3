"""Margins, the coordinates they are measured in, and what a ray leaves open."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from posteriori.design.columns import Columns
from posteriori.rows.block import Block
from posteriori.rows.in_memory import read_rows
from posteriori.statistics.coordinates import Coordinates, GatherSample, Pairs, by_label
from posteriori.statistics.separation_margins import (
    GatherBalance,
    GatherMargins,
    GatherReach,
    MarginGradient,
    PairsOf,
    Ray,
    some_classes,
)

RANDOM = np.random.default_rng(4)
X = RANDOM.normal(size=(60, 3))
Y = RANDOM.integers(3, size=60)


def coordinates(rows, intercept=True):
    columns = Columns(rows.schema)
    sample = rows.map_sum(GatherSample(columns, by_label, 200))
    return Coordinates.of(sample, columns, intercept)


def block_of(y, n_columns=1):
    y = np.asarray(y)
    return Block(np.zeros((len(y), n_columns)), y, None, 0)


def test_the_margin_of_a_label_is_its_activation_less_the_others():
    a = RANDOM.normal(size=(60, 3))
    margins = Pairs.of(Y, 3).margins(a)
    for i in range(60):
        for k in range(3):
            expected = np.inf if k == Y[i] else a[i, Y[i]] - a[i, k]
            assert margins[i, k] == expected


def test_two_classes_have_one_margin_positive_on_their_own_side():
    margins = Pairs.of(np.array([1, 0, 1]), 2).margins(np.array([[2.0], [2.0], [-3.0]]))
    assert margins.tolist() == [[2.0], [-2.0], [-3.0]]


def test_classes_that_share_a_row_must_have_the_same_activation():
    soft = by_label(block_of(np.array([[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]])))
    pairs = Pairs.of(soft, 3)
    assert pairs.own.tolist() == [0, 1]
    assert pairs.equal.tolist() == [[False, False, True], [False, False, False]]
    slack = pairs.slack(pairs.margins(np.array([[1.0, 0.0, 3.0], [0.0, 2.0, 1.0]])))
    assert slack.tolist() == [[np.inf, 1.0, -2.0], [2.0, np.inf, 1.0]]


def test_two_classes_that_share_a_row_must_have_margin_zero():
    pairs = Pairs.of(np.array([[True, False], [True, True], [True, True]]), 2)
    slack = pairs.slack(pairs.margins(np.array([[-2.0], [-2.0], [0.0]])))
    assert slack.tolist() == [[2.0], [-2.0], [np.inf]]


@pytest.mark.parametrize("K", [2, 3])
def test_the_gradient_is_that_of_the_sum_of_margins(K):
    y = Y % K
    rows = read_rows(X * [1.0, 50.0, 1e-3] + [0.0, 7.0, 0.0], y)
    at, pairs = coordinates(rows), PairsOf(by_label, K)
    pull = rows.map_sum(MarginGradient(at, pairs))
    phi = at.standardise(X * [1.0, 50.0, 1e-3] + [0.0, 7.0, 0.0])
    theta = RANDOM.normal(size=pull.shape)
    margins = Pairs.of(y, K).margins(phi @ theta)
    assert_allclose(np.sum(pull * theta), margins[np.isfinite(margins)].sum(), rtol=1e-12)


def test_the_worst_constraints_are_those_of_least_slack_one_a_row():
    rows = read_rows(X, Y)
    at, theta = coordinates(rows), RANDOM.normal(size=(4, 3))
    worst = rows.map_sum(GatherMargins(at, PairsOf(by_label, 3), theta, -0.1, 5)).worst
    margins = Pairs.of(Y, 3).margins(at.standardise(X) @ theta)
    assert_allclose(np.sort(worst.slack), np.sort(margins.min(axis=1))[:5], rtol=1e-12)
    values = np.einsum("kp,pc,kc->k", worst.rows.toarray(), theta, worst.directions)
    assert_allclose(values, worst.slack, rtol=1e-12)


def test_with_a_goal_open_pairs_must_be_zero_and_separated_ones_reach_it():
    rows = read_rows(np.array([[-2.0], [0.0], [0.5], [3.0]]), [0, 0, 1, 1])
    at = Coordinates(Columns(rows.schema), True, np.zeros(1), np.ones(1), False, False, np.ones(1))
    ray = Ray(at, np.array([[0.0], [1.0]]))  # the rows at 0 and 0.5 are open
    kernel = GatherMargins(at, PairsOf(by_label, 2, ray), ray.theta, -1e-6, 10, goal=2.5)
    worst = rows.map_sum(kernel).worst
    assert sorted(worst.slack.tolist()) == [-0.5, -0.5]
    assert sorted(worst.goal.tolist()) == [0.0, 2.5]
    assert worst.equal.sum() == 1


def test_two_rays_are_balanced_where_both_separate():
    """ρ(1, -1e-3, ..) + (-5, 1, ..): positive for 5 < ρ < 1000."""
    rows = read_rows(np.array([[1.0, -5.0], [-1e-3, 1.0], [0.0, 0.0]]), [1, 1, 0])
    at = Coordinates(Columns(rows.schema), False, np.zeros(2), np.ones(2), False, False, np.ones(2))
    first, second = Ray(at, np.array([[1.0], [0.0]])), Ray(at, np.array([[0.0], [1.0]]))
    pairs = PairsOf(by_label, 2, first)
    found = rows.map_sum(GatherBalance(at, pairs, second.theta, 10.0))
    assert_allclose([found.low, found.high], [5.0, 1000.0])
    assert_allclose([found.least, found.loose], [0.99, 0.0])


def test_coordinates_are_medians_that_one_wild_entry_does_not_move():
    values = RANDOM.normal(size=(101, 2)) + np.array([0.0, 1e9])
    wild = values.copy()
    wild[17, 0] = 1e30
    for rows in (values, wild):
        at = coordinates(read_rows(rows, np.arange(101) % 2))
        assert abs(at.centre[0]) < 0.5
        assert abs(at.centre[1] - 1e9) < 0.5
        assert ((at.scale > 0.4) & (at.scale < 1.0)).all()
        assert at.far
    assert at.long


@pytest.mark.parametrize("unit", [1.0, 1e150, 1e-150, 1e307, 1e-300])
@pytest.mark.parametrize("intercept", [True, False])
def test_coefficients_go_to_standard_ones_and_back_in_any_unit(unit, intercept):
    values = X / abs(X).max() * unit
    at = coordinates(read_rows(values, Y), intercept)
    theta = RANDOM.normal(size=(3 + intercept, 2))
    original = at.original(theta)
    assert_allclose(at.standard(original), theta, rtol=1e-9, atol=1e-9)
    activation = values @ original[intercept:] + (original[0] if intercept else 0.0)
    assert_allclose(at.standardise(values) @ theta, activation, rtol=1e-9, atol=1e-9)


def test_a_direction_can_be_told_in_other_coordinates():
    one, other = (coordinates(read_rows(part, Y[:30])) for part in (X[:30], 2 + 5 * X[30:]))
    theta = RANDOM.normal(size=(4, 1))
    found = one.standardise(X) @ one.from_other(other, theta)
    assert_allclose(found, other.standardise(X) @ theta, rtol=1e-12, atol=1e-14)


def test_a_column_that_varies_by_rounding_alone_is_constant():
    rows = read_rows(np.column_stack([X[:, 0], 1.0 + 1e-14 * np.arange(60)]), Y)
    assert coordinates(rows).scale[1] == pytest.approx(1.0)


SOURCES = {
    "dense": np.asarray,
    "sparse": sparse.csr_array,
    "frame": lambda values: pd.DataFrame(values, columns=list("abc")),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_any_storage_has_the_same_margins(source, shift):
    values = np.where(abs(X) < 1, 0.0, X) + shift
    rows, plain = read_rows(source(values), Y), read_rows(values, Y)
    at, theta = coordinates(plain), RANDOM.normal(size=(4, 3))
    kernel = GatherMargins(at, PairsOf(by_label, 3), theta, -0.1, 500)
    found, expected = rows.map_sum(kernel), plain.map_sum(kernel)
    assert found.n_clear == expected.n_clear
    assert_allclose(found.worst.slack, expected.worst.slack, rtol=1e-9)
    assert_allclose(
        found.worst.rows.toarray(), expected.worst.rows.toarray(), rtol=1e-9, atol=1e-12
    )


def ray_for(values, K, theta):
    rows = read_rows(values, np.arange(len(values)) % K)
    m = values.shape[1]
    at = Coordinates(Columns(rows.schema), True, np.zeros(m), np.ones(m), False, False, np.ones(m))
    return rows, Ray(at, theta)


@pytest.mark.parametrize("K", [2, 3])
def test_the_reach_is_the_step_after_which_the_last_row_has_its_margin(K):
    values = np.array([[2.0], [0.0], [-1.0], [5.0], [0.0], [-4.0]])
    theta = np.array([[0.0], [-1.0]]) if K == 2 else np.array([[0.0] * 3, [1.0, 0.0, -1.0]])
    rows, ray = ray_for(values, K, theta)
    codes = np.where(values[:, 0] > 0, 0, K - 1)
    codes[[1, 4]] = [0, 1]
    rows = read_rows(values, codes, classes=np.arange(K))
    start = RANDOM.normal(size=theta.shape)
    t = rows.map_sum(GatherReach(ray.coordinates, PairsOf(by_label, K, ray), start, 40.0)).value
    phi = np.column_stack([np.ones(6), values])
    margins = Pairs.of(codes, K).margins(phi @ (start + t * theta))
    separated = np.isfinite(margins) & (Pairs.of(codes, K).margins(phi @ theta) > 0.5)
    assert_allclose(margins[separated].min(), 40.0, rtol=1e-12)
    assert separated.sum() == (4 if K == 2 else 8)


def test_some_classes_are_numbered_anew_and_others_left_out():
    rows = read_rows(X, np.array(["a", "b", "c"])[Y])
    some = some_classes(rows, [2, 0])
    assert some.classes.tolist() == ["c", "a"]
    assert some.map_sum(lambda block: np.bincount(block.y, minlength=2)).tolist() == [
        (Y == 2).sum(),
        (Y == 0).sum(),
    ]
    assert_allclose(some.map_sum(lambda block: block.X.sum()), X[Y != 1].sum())


def test_soft_rows_belong_to_some_classes_if_no_other_has_a_share():
    soft = np.array([[0.5, 0.5, 0.0], [0.0, 0.4, 0.6], [0.0, 0.0, 1.0]])
    some = some_classes(read_rows(X[:3], soft), [1, 2])
    assert some.map_sum(lambda block: block.y).tolist() == [[0.4, 0.6], [0.0, 1.0]]
    assert some.soft
