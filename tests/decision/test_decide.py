"""Decisions: the least expected loss by enumeration, rejecting, and what is never chosen."""

import pickle
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar

from posteriori.decision.decide import decide, optimal_margin
from posteriori.errors import (
    DecisionWarning,
    InfiniteValueError,
    MissingValueError,
    ParameterError,
    ShapeError,
)

QUIET = pytest.mark.filterwarnings("ignore::posteriori.errors.DecisionWarning")
SIZES = list(product([1, 3, 7], [1, 2, 5], [False, True], [None, "one", "own"]))
TWO = np.array([[0.0, 1.0], [1.0, 0.0]])


def simplex(random, n, K):
    return random.dirichlet(np.full(K, 0.5), size=n)


@QUIET
@pytest.mark.parametrize(("K", "A", "own", "rejecting"), SIZES)
def test_decisions_are_those_of_enumeration(K, A, own, rejecting):
    random = np.random.default_rng([K, A, own])
    p = simplex(random, 60, K)
    loss = random.normal(size=(60, K, A) if own else (K, A))
    cost = {None: None, "one": 0.1, "own": random.normal(size=60)}[rejecting]
    found = decide(p, loss, reject_cost=cost)
    each = zip(p, np.broadcast_to(loss, (60, K, A)), strict=True)
    costs = np.array([row @ own for row, own in each])
    reject = np.broadcast_to(np.inf if cost is None else cost, 60)
    assert_array_equal(found.rejected, reject < costs.min(axis=1))
    assert_array_equal(found.code, np.where(found.rejected, -1, costs.argmin(axis=1)))
    assert_allclose(found.expected_loss, np.minimum(costs.min(axis=1), reject), rtol=1e-13)


@pytest.mark.parametrize(
    ("loss", "threshold"),
    [
        ([[0, 3], [17, 0]], 3 / 20),
        ([[1, 4], [18, 1]], 3 / 20),  # what every action costs changes nothing
        ([[3, 0], [0, 17]], 3 / 20),
        (TWO, 0.5),
        ([[0, 1], [0, 1]], None),  # the first is never worse
        ([[1, 1], [1, 1]], None),
        ([[0, 1, 2], [2, 1, 0]], None),
    ],
)
@QUIET
def test_two_actions_change_at_the_threshold_of_their_costs(loss, threshold):
    """Act if p > c_fp / (c_fp + c_fn)."""
    p = np.linspace(0, 1, 1001)
    found = decide(p, loss)
    assert found.threshold == (None if threshold is None else pytest.approx(threshold, rel=1e-15))
    if threshold is not None:
        assert np.ptp(found.code[p < threshold - 1e-9]) == np.ptp(found.code[p > threshold]) == 0
        assert found.code[0] != found.code[-1]


@pytest.mark.parametrize("cost", [None, 0.05, 0.49])
def test_without_losses_the_most_probable_class_wins_if_it_is_probable_enough(cost):
    """Chow's rule: reject if the largest probability is below one less the cost."""
    p = simplex(np.random.default_rng(1), 500, 6)
    found, best = decide(p, classes=list("abcdef"), reject_cost=cost), p.max(axis=1)
    assert_array_equal(found.rejected, best < 1 - (1.0 if cost is None else cost))
    kept = ~found.rejected
    assert_array_equal(found.action[kept], np.array(list("abcdef"))[p.argmax(axis=1)][kept])
    assert_allclose(found.expected_loss, np.minimum(1 - best, cost or 1.0), atol=1e-15)


def test_ties_go_to_the_first_action_and_to_an_action_rather_than_to_rejecting():
    assert decide([0.5], TWO).code.tolist() == [0]
    assert decide([[0.2, 0.3, 0.2, 0.3]], None).code.tolist() == [1]
    found = decide([0.5, 0.5 - 1e-9], TWO, reject_cost=np.array([0.5, 0.4]))
    assert found.code.tolist() == [0, -1]
    assert found.action.tolist() == [0, None]  # among numbers


LOSS = np.array([[0.0, 3.0, 1.0], [20.0, 1.0, 6.0]])
BY_NAME = {"well": {"a": 0, "b": 3, "c": 1}, "ill": {"b": 1, "a": 20, "c": 6}}
P = np.array([[0.9, 0.1], [0.5, 0.5], [0.99, 0.01]])
CLASSES = ["well", "ill"]
EXPECTED = ["c", "b", "a"]


def forms():
    indexed = pd.DataFrame(LOSS[::-1, ::-1], index=["ill", "well"], columns=list("cba"))
    yield BY_NAME, None
    yield indexed, None
    yield indexed, list("abc")
    yield pl.DataFrame(LOSS, schema=list("abc")), None
    yield LOSS, list("abc")
    yield LOSS.tolist(), pd.Series(list("abc"))
    yield np.repeat(LOSS[None], 3, axis=0), list("abc")
    each = {name: {a: [loss] * 3 for a, loss in row.items()} for name, row in BY_NAME.items()}
    yield each, None


def test_losses_in_every_form_give_the_same_decisions():
    for loss, actions in forms():
        found = decide(P, loss, actions=actions, classes=CLASSES)
        assert found.action.tolist() == EXPECTED
        assert_allclose(found.expected_loss, [1.5, 2.0, 0.2])


def test_probabilities_in_every_form_give_the_same_decisions():
    backwards = pd.DataFrame(P[:, ::-1], columns=["ill", "well"])
    for p, classes in [
        (P.astype(np.float32), CLASSES),
        (pd.DataFrame(P), CLASSES),
        (backwards, CLASSES),
        (backwards, None),
        (pl.DataFrame(P, schema=CLASSES), None),
        (P[:, 1], CLASSES),
        (pl.Series(P[:, 1]), CLASSES),
    ]:
        found = decide(p, BY_NAME, classes=classes)
        assert found.action.tolist() == EXPECTED


def test_decisions_are_shown_in_a_line_and_survive_pickling():
    found = decide([0.5, 0.9, 0.8], TWO, actions=["a", "b"], reject_cost=0.25)
    text = "Decisions('a': 0, 'b': 2, rejected: 1; mean expected loss 0.183333)"
    assert repr(found) == repr(pickle.loads(pickle.dumps(found))) == text
    assert len(found) == 3
    frame = found.to_frame("polars")
    assert frame.columns == ["action", "expected_loss", "rejected"]
    assert frame.rows()[0] == ("reject", 0.25, True)


def test_actions_and_rejecting_that_are_never_the_best_are_named():
    loss = [[0, 1, 2, 0.6], [1, 0, 2, 0.6]]
    with pytest.warns(DecisionWarning) as caught:
        decide([0.5], loss, actions=list("abcd"), reject_cost=0.9)
    assert [str(each.message) for each in caught] == [
        "Whatever the probabilities, 'c', 'd' are never of least expected loss; rejecting is "
        "never cheaper than the best action. Check the losses, or leave out the action. [W207]"
    ]
    assert decide([0.5], [[0, 1, 0.5], [1, 0, 0.5]]).action.tolist() == [0]  # tied: no warning
    # At 'c' the others cost 0.5 each, 'c' 0.4, and rejecting 0.3.
    loss = [[0, 1, 0.4], [1, 0, 0.4]]
    assert decide([0.5], loss).code.tolist() == [2]  # without a warning
    with pytest.warns(DecisionWarning, match="2 is never"):
        assert decide([0.5], loss, reject_cost=0.3).code.tolist() == [-1]
    # Rejecting that costs as much as a guess, where it has several costs by the smallest.
    for K in (2, 7):
        p, cost = np.full((2, K), 1 / K), 1 - 1 / K
        with pytest.warns(DecisionWarning, match="rejecting is never cheaper"):
            decide(p, None, reject_cost=[cost, 5.0])
        assert decide(p, None, reject_cost=[cost - 1e-6, 5.0]).rejected.tolist() == [True, False]


@pytest.mark.parametrize("seed", range(2))
def test_for_two_classes_the_programs_agree_with_a_search_along_the_line(seed):
    random = np.random.default_rng(seed)
    loss = random.uniform(size=(2, 6)) * random.choice([1e-6, 1.0, 1e9], size=(2, 1))
    for a in range(6):
        others = np.delete(loss, a, axis=1) - loss[:, [a]]
        scaled = others / abs(others).max(axis=1, keepdims=True)

        def margin(t, rows=scaled):
            return -((1 - t) * rows[0] + t * rows[1]).min()

        best = -minimize_scalar(margin, bounds=(0, 1), options={"xatol": 1e-12}).fun
        best = max(best, -margin(0.0), -margin(1.0))
        assert np.sign(optimal_margin(loss, a)) == np.sign(best)


NAN_IN_ROW_5 = np.ones((6, 2, 2))
NAN_IN_ROW_5[5, 1, 0] = np.nan
BAD_LOSSES = [
    (np.ones((3, 2)), ShapeError, r"shape \(3, 2\), expected \(2, actions\) or \(6, 2, a"),
    (np.ones((2, 0)), ShapeError, "shape"),
    (np.ones((3, 2, 2)), ShapeError, "shape"),
    ([[0, 1], [np.nan, 0]], MissingValueError, "action 0 in class 1 is missing"),
    (NAN_IN_ROW_5, MissingValueError, "action 0 in class 1 of row 5 is missing"),
    ([[0, np.inf], [1, 0]], InfiniteValueError, "action 1 in class 0 is inf"),
    ([["a", "b"], ["c", "d"]], ParameterError, "numbers"),
    ({0: {"a": 1}, 2: {"a": 0}}, ParameterError, "unknown class 2"),
    ({0: {"a": 1}}, ParameterError, "no class 1"),
    ({0: {"a": 1, "b": 0}, 1: {"a": 1}}, ParameterError, "no action 'b'"),
    ({0: {"a": 1}, 1: {"a": 1, "b": 2}}, ParameterError, "unknown action 'b'"),
    ({0: 1, 1: 2}, ParameterError, "from class to action"),
    ({0: {"a": [1, 2, 3]}, 1: {"a": 1}}, ShapeError, "shape"),
    (pd.DataFrame({"a": [1, 2]}, index=["x", "y"]), ParameterError, "unknown class 'x'"),
]


@pytest.mark.parametrize(("loss", "error", "words"), BAD_LOSSES)
def test_losses_that_cannot_be_used_are_an_error_that_says_why(loss, error, words):
    with pytest.raises(error, match=words):
        decide(np.zeros(6), loss)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"reject_cost": np.nan}, MissingValueError, "reject_cost is missing"),
        ({"reject_cost": np.inf}, InfiniteValueError, "reject_cost is inf"),
        ({"reject_cost": [0.1, np.nan]}, MissingValueError, "reject_cost of row 1"),
        ({"reject_cost": [0.1, 0.2, 0.3]}, ShapeError, r"shape \(3,\)"),
        ({"actions": ["a"]}, ParameterError, "2 columns"),
        ({"actions": ["a", "a"]}, ParameterError, "action 'a' twice"),
        ({"actions": ["a", "reject"], "reject_cost": 0.1}, ParameterError, "called 'reject'"),
        ({"classes": ["a", "a"]}, ParameterError, "class 'a' twice"),
    ],
)
def test_other_arguments_that_cannot_be_used_are_an_error(given, error, words):
    with pytest.raises(error, match=words):
        decide([0.5, 0.4], TWO, **given)
