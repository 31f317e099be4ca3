"""Beliefs that rows leave behind: they add up, and kept rows correct them."""

import numpy as np
import pytest
from toy_objectives import away, logistic, optimum, quadratic

from posteriori.solve.online_update import BROAD, Belief, Together, online_update

H = np.array([[4.0, 1.0], [1.0, 3.0]])


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


def test_without_a_belief_an_update_is_the_fit():
    objective = logistic(400, 3)
    update = online_update(Belief.nothing(4), [objective], np.zeros(4), 1e-8)
    assert update.determined
    best, hessian = optimum(objective)
    assert away(update.solution.parameters, (best, hessian)) < 1e-7
    np.testing.assert_allclose(update.belief.precision, hessian, rtol=1e-6)
    assert not Belief.nothing(4).determined
    assert Together(Belief.nothing(4), [objective], 1e-8)(best, "none").hessian is None


def halves():
    objective = logistic(4000, 3, seed=2)
    return objective, objective.part(slice(0, 400), 1), objective.part(slice(400, None), 1)


def test_a_parabola_does_nearly_what_its_rows_do_and_rows_that_are_kept_correct_it():
    whole, old, new = halves()
    w, _ = optimum(old)
    kept = old.part(slice(None, None, 4), 4)
    alone = Belief.about(w, old(w, "full"))
    rest = alone - Belief.about(w, kept(w, "full"))
    by_parabola = online_update(alone, [new], w, 1e-8).solution.parameters
    corrected = online_update(rest, [kept, new], w, 1e-8).solution.parameters
    error = away(by_parabola, optimum(whole))
    assert error < 0.3
    assert away(corrected, optimum(whole)) < 0.4 * error


def test_a_broad_prior_stands_in_where_rows_do_not_determine_the_parameters():
    objective = logistic(60, 2)
    objective.t = (objective.X @ [0.2, 1.0, -1.0] > 0).astype(float)
    update = online_update(Belief.nothing(3), [objective], np.zeros(3), 1e-8)
    assert not update.determined
    w = update.solution.parameters
    assert np.isfinite(w).all()
    np.testing.assert_allclose(objective.at(w)[1], -w / BROAD**2, atol=1e-6)
    # The prior is not part of what is passed on.
    np.testing.assert_allclose(update.belief.precision, objective.at(w)[2], atol=1e-12)
