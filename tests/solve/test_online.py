"""Beliefs that rows leave behind: they add up, and kept rows correct them."""

import numpy as np
import pytest
from toy_objectives import away, logistic, optimum, quadratic

from posteriori.solve.online import BROAD, Belief, Together, online_update

H = np.array([[4.0, 1.0], [1.0, 3.0]])


def nothing(p):
    return Belief.nothing(p)


def test_the_belief_about_a_parabola_is_the_parabola_wherever_it_is_made():
    objective = quadratic(H, [1.0, -2.0])
    for w in ([0.0, 0.0], [5.0, -3.0]):
        belief = Belief.about(np.array(w), objective(np.array(w), "full"))
        np.testing.assert_allclose(belief.precision, H)
        np.testing.assert_allclose(belief.information, H @ [1.0, -2.0])
        here, there = np.array([0.3, 0.7]), np.array([2.0, 1.0])
        gain = belief.at(here).value - belief.at(there).value
        assert gain == pytest.approx(objective.at(here)[0] - objective.at(there)[0])
        np.testing.assert_allclose(belief.at(here).gradient, objective.at(here)[1])


def test_beliefs_of_different_rows_add_up_and_can_be_taken_off():
    a, b = Belief(H, np.array([1.0, 2.0])), Belief(2 * H, np.array([0.5, -1.0]))
    both = a + b
    np.testing.assert_allclose(both.precision, 3 * H)
    np.testing.assert_allclose((both - b).information, a.information)
    np.testing.assert_allclose((nothing(2) + a).precision, H)


def test_a_belief_says_whether_it_holds_every_parameter():
    assert Belief(H, np.zeros(2)).determined
    assert not Belief(np.ones((2, 2)), np.zeros(2)).determined
    assert not nothing(2).determined
    assert Belief(np.diag([1e-12, 1e12]), np.zeros(2)).determined  # whatever the units


def test_without_a_belief_an_update_is_the_fit():
    objective = logistic(400, 3)
    update = online_update(nothing(4), [objective], np.zeros(4), 1e-8)
    assert update.determined
    best, hessian = optimum(objective)
    assert away(update.solution.parameters, (best, hessian)) < 1e-7
    np.testing.assert_allclose(update.belief.precision, hessian, rtol=1e-6)


def test_several_sets_of_rows_are_as_good_as_one():
    objective = logistic(600, 3)
    parts = [objective.part(slice(b, None, 3), 1) for b in range(3)]
    together = Together(nothing(4), parts, 1e-8)
    w = np.array([0.1, -0.2, 0.3, 0.4])
    value, gradient, hessian = objective.at(w)
    found = together(w, "full")
    assert found.value == pytest.approx(value)
    np.testing.assert_allclose(found.gradient, gradient, rtol=1e-10)
    np.testing.assert_allclose(found.hessian, hessian, rtol=1e-10)
    assert together(w, "none").hessian is None
    assert together.n_rows == 600


def halves():
    objective = logistic(4000, 3, seed=2)
    return objective, objective.part(slice(0, 400), 1), objective.part(slice(400, None), 1)


def test_a_parabola_of_old_rows_does_nearly_what_they_do():
    whole, old, new = halves()
    w, _ = optimum(old)
    belief = Belief.about(w, old(w, "full"))
    update = online_update(belief, [new], w, 1e-8)
    assert away(update.solution.parameters, optimum(whole)) < 0.3


def test_rows_that_are_kept_correct_the_parabola_of_those_let_go():
    whole, old, new = halves()
    w, _ = optimum(old)
    kept = old.part(slice(None, None, 4), 4)
    alone = Belief.about(w, old(w, "full"))
    rest = alone - Belief.about(w, kept(w, "full"))
    best = optimum(whole)
    by_parabola = online_update(alone, [new], w, 1e-8).solution.parameters
    corrected = online_update(rest, [kept, new], w, 1e-8).solution.parameters
    assert away(corrected, best) < 0.4 * away(by_parabola, best)


def test_if_all_rows_are_kept_nothing_is_lost():
    whole, old, new = halves()
    w = np.full(4, 0.7)  # anywhere
    rest = Belief.about(w, old(w, "full")) - Belief.about(w, old(w, "full"))
    update = online_update(rest, [old, new], w, 1e-8)
    assert away(update.solution.parameters, optimum(whole)) < 1e-7


def test_a_broad_prior_stands_in_where_rows_do_not_determine_the_parameters():
    objective = logistic(60, 2)
    objective.t = (objective.X @ [0.2, 1.0, -1.0] > 0).astype(float)
    update = online_update(nothing(3), [objective], np.zeros(3), 1e-8)
    assert not update.determined
    w = update.solution.parameters
    assert np.isfinite(w).all()
    np.testing.assert_allclose(objective.at(w)[1], -w / BROAD**2, atol=1e-6)
    # The prior is not part of what is passed on.
    np.testing.assert_allclose(update.belief.precision, objective.at(w)[2], atol=1e-12)
