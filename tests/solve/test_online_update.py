"""Quadratic approximations of dropped rows: they add up, and a sample of the rows corrects them."""

import numpy as np
from toy_objectives import away, logistic, optimum

from posteriori.solve.online_update import BROAD, QuadraticApproximation, online_update


def test_without_earlier_rows_an_update_is_the_fit():
    objective = logistic(400, 3)
    update = online_update(QuadraticApproximation.zero(4), [objective], np.zeros(4), 1e-8)
    assert update.determined
    best, hessian = optimum(objective)
    assert away(update.solution.parameters, (best, hessian)) < 1e-7
    np.testing.assert_allclose(update.quadratic.precision, hessian, rtol=1e-6)


def test_an_approximation_is_close_to_its_rows_and_a_sample_of_them_corrects_it():
    whole = logistic(4000, 3, seed=2)
    old, new = whole.part(slice(0, 400), 1), whole.part(slice(400, None), 1)
    w, _ = optimum(old)
    kept = old.part(slice(None, None, 4), 4)
    alone = QuadraticApproximation.about(w, old(w, "full"))
    rest = alone - QuadraticApproximation.about(w, kept(w, "full"))
    by_approximation = online_update(alone, [new], w, 1e-8).solution.parameters
    corrected = online_update(rest, [kept, new], w, 1e-8).solution.parameters
    error = away(by_approximation, optimum(whole))
    assert error < 0.3
    assert away(corrected, optimum(whole)) < 0.4 * error


def test_a_broad_prior_is_added_where_rows_do_not_determine_the_parameters():
    objective = logistic(60, 2)
    objective.t = (objective.X @ [0.2, 1.0, -1.0] > 0).astype(float)
    update = online_update(QuadraticApproximation.zero(3), [objective], np.zeros(3), 1e-8)
    assert not update.determined
    w = update.solution.parameters
    assert np.isfinite(w).all()
    np.testing.assert_allclose(objective.at(w)[1], -w / BROAD**2, atol=1e-6)
    # The prior is not part of what is passed on.
    np.testing.assert_allclose(update.quadratic.precision, objective.at(w)[2], atol=1e-12)
