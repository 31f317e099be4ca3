"""Newton's method with a lazily refreshed Hessian: what it must do whatever the rows are."""

import numpy as np
import pytest
from toy_objectives import Function, away, logistic, of_one, optimum, quadratic

from posteriori.solve.local import Local
from posteriori.solve.metric import Metric
from posteriori.solve.newton import newton
from posteriori.solve.solution import Status

H = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.2], [0.5, -0.2, 1.0]])
CENTRE = np.array([1.0, -2.0, 3.0])


def fresh_steps(solution):
    return [note.fresh for note in solution.trace]


def test_a_quadratic_is_solved_by_one_step():
    solution = newton([quadratic(H, CENTRE)], np.zeros(3))
    np.testing.assert_allclose(solution.parameters, CENTRE, rtol=1e-12)
    assert solution.status is Status.CONVERGED
    assert solution.value == pytest.approx(0.0, abs=1e-12)
    # The second entry of the trace is the look that finds nothing left to do.
    assert len(solution.trace) <= 2
    assert solution.trace[0].step == 1.0
    assert solution.trace[0].decrement == pytest.approx(np.sqrt(CENTRE @ H @ CENTRE))


def test_the_value_is_that_of_the_objective_at_the_parameters():
    objective = logistic(400, 3)
    solution = newton([objective], np.zeros(4))
    assert solution.value == pytest.approx(objective.at(solution.parameters)[0], rel=1e-12)


@pytest.mark.parametrize("correlation", [0.0, 0.9, 0.9999])
@pytest.mark.parametrize("price", [0.5, 5.0, 50.0])
def test_the_optimum_does_not_depend_on_what_a_hessian_costs(correlation, price):
    objective = logistic(1500, 8, correlation, price=price)
    solution = newton([objective], np.zeros(9), max_iter=2000)
    assert solution.status is Status.CONVERGED
    assert away(solution.parameters, optimum(objective)) < 1e-6


def test_steps_that_raise_the_objective_are_halved():
    # ln cosh x: from 2, a full Newton step overshoots by far more than it came.
    objective = of_one(lambda x: np.log(np.cosh(x)), np.tanh, lambda x: 1 / np.cosh(x) ** 2)
    solution = newton([objective], np.array([2.0]))
    assert solution.status is Status.CONVERGED
    assert solution.trace[0].step < 0.5
    assert abs(solution.parameters[0]) < 1e-8
    values = [note.objective for note in solution.trace]
    assert values == sorted(values, reverse=True)


def test_steps_stay_where_the_objective_is_finite():
    # x - ln x for x > 0: from 3, a full Newton step ends at -3.
    objective = of_one(
        lambda x: x - np.log(x) if x > 0 else np.inf,
        lambda x: 1 - 1 / x if x > 0 else np.nan,
        lambda x: 1 / x**2 if x > 0 else np.nan,
    )
    solution = newton([objective], np.array([3.0]))
    assert solution.status is Status.CONVERGED
    assert solution.trace[0].step < 1.0
    assert solution.parameters[0] == pytest.approx(1.0, abs=1e-9)


def test_a_function_that_is_not_convex_is_followed_downhill_to_a_minimum():
    # x⁴/4 - x²/2 has a maximum at 0, where its curvature is negative, and minima at ±1.
    objective = of_one(
        lambda x: x**4 / 4 - x**2 / 2, lambda x: x**3 - x, lambda x: max(3 * x**2 - 1, -1.0)
    )
    solution = newton([objective], np.array([0.1]))
    assert solution.status is Status.CONVERGED
    assert solution.parameters[0] == pytest.approx(1.0, abs=1e-7)
    values = [note.objective for note in solution.trace]
    assert values == sorted(values, reverse=True)


def test_a_cheap_hessian_is_computed_at_every_step():
    objective = logistic(400, 3, price=0.1, tolerance=1e-12)
    solution = newton([objective], np.zeros(4))
    assert all(fresh_steps(solution))
    assert objective.count("full") == len(solution.trace)


def test_a_dear_hessian_is_not_computed_where_gradients_do():
    objective = logistic(4000, 3, price=1e4, tolerance=1e-6)
    solution = newton([objective], np.zeros(4))
    assert solution.status is Status.CONVERGED
    assert objective.count("full") == 0
    assert objective.count("diagonal") == 1


def test_a_hessian_that_is_not_to_be_had_is_never_asked_for():
    objective = logistic(1000, 6, 0.5, price=np.inf)
    solution = newton([objective], np.zeros(7))
    assert solution.status is Status.CONVERGED
    assert objective.count("full") == 0
    assert away(solution.parameters, optimum(objective)) < 1e-6


def test_a_hessian_of_every_step_can_be_asked_for():
    objective = logistic(1000, 4, price=1e6)
    solution = newton([objective], np.zeros(5), always_fresh=True)
    assert all(fresh_steps(solution))
    assert away(solution.parameters, optimum(objective)) < 1e-8


def test_a_subsample_gives_a_start_from_which_few_passes_are_needed():
    alone, objective = logistic(8000, 5, price=20.0), logistic(8000, 5, price=20.0)
    levels = objective.with_subsample()
    whole, staged = newton([alone], np.zeros(6)), newton(levels, np.zeros(6))
    np.testing.assert_allclose(staged.parameters, whole.parameters, atol=1e-9)
    assert levels[0].asked
    first = next(note for note in staged.trace if note.share == 1)
    # The optimum of one row in eight is √(8 p) standard errors of all rows away, about.
    assert first.decrement < 3 * np.sqrt(8 * 6)
    assert first.decrement < 0.5 * whole.trace[0].decrement
    assert objective.count("full") + objective.count("none") <= len(whole.trace)


def test_the_trace_tells_levels_steps_and_seconds():
    levels = logistic(8000, 5).with_subsample()
    trace = newton(levels, np.zeros(6)).trace
    shares = [note.share for note in trace]
    assert shares == sorted(shares)
    assert set(shares) == {1 / 8, 1.0}
    seconds = [note.seconds for note in trace]
    assert seconds == sorted(seconds)
    assert trace[-1].decrement < 1e-4


def separated(n=60):
    objective = logistic(n, 2)
    objective.t = (objective.X @ [0.2, 1.0, -1.0] > 0).astype(float)
    return objective


def test_suspicion_is_asked_when_parameters_run_away_and_ends_the_iteration():
    asked = []

    def suspicion():
        asked.append(True)
        return True

    solution = newton([separated()], np.zeros(3), suspicion=suspicion)
    assert solution.status is Status.SEPARATED
    assert not solution.converged
    assert asked == [True]


def test_unfounded_suspicion_is_asked_once_and_changes_nothing():
    asked = []

    def suspicion():
        asked.append(True)
        return False

    solution = newton([separated()], np.zeros(3), max_iter=30, suspicion=suspicion)
    assert solution.status is not Status.SEPARATED
    assert asked == [True]


def test_nobody_is_suspected_where_there_is_an_optimum():
    def suspicion():
        raise AssertionError

    objective = logistic(500, 4, 0.99)
    assert newton([objective], np.zeros(5), suspicion=suspicion).converged


def test_too_few_steps_are_a_status_with_a_sentence():
    solution = newton([logistic(500, 4)], np.zeros(5), max_iter=1)
    assert solution.status is Status.MAX_ITERATIONS
    assert solution.status.value == "The iteration was stopped before it converged."


def test_a_direction_that_leads_nowhere_is_a_status():
    def at(w):  # the gradient lies
        return float(w @ w), -2 * w, np.eye(2)

    solution = newton([Function(at=at)], np.ones(2))
    assert solution.status is Status.STALLED
    np.testing.assert_array_equal(solution.parameters, np.ones(2))


def test_a_singular_hessian_leaves_what_is_not_determined_where_it_was():
    flat = np.array([[1.0, 1.0], [1.0, 1.0]])
    solution = newton([quadratic(flat, [3.0, 0.0])], np.array([1.0, 1.0]))
    assert solution.parameters.sum() == pytest.approx(3.0, abs=1e-6)
    assert solution.parameters[0] - solution.parameters[1] == pytest.approx(0.0, abs=1e-6)


def test_the_metric_is_the_inverse_of_what_it_was_made_of():
    metric = Metric.of(H)
    np.testing.assert_allclose(metric.direction(H @ CENTRE), -CENTRE, rtol=1e-12)
    assert metric.is_full
    np.testing.assert_allclose(Metric.of(np.diag(H)).solve(np.diag(H)), np.ones(3))


def test_the_metric_is_exact_along_the_steps_it_was_shown():
    metric = Metric.of(np.diag(H).copy())
    for step in np.eye(3)[:2]:
        metric.learn(step, H @ step)
    v = np.array([2.0, -1.0, 0.0])
    np.testing.assert_allclose(metric.direction(H @ v), -v, rtol=1e-10)


def test_the_metric_forgets_steps_along_which_the_function_is_not_convex():
    metric = Metric.of(H)
    metric.learn(np.array([1.0, 0.0, 0.0]), np.array([-1.0, 0.0, 0.0]))
    np.testing.assert_allclose(metric.direction(H @ CENTRE), -CENTRE, rtol=1e-12)


def test_the_metric_of_an_indefinite_matrix_points_downhill():
    metric = Metric.of(np.array([[1.0, 2.0], [2.0, 1.0]]))
    for gradient in np.array([[1.0, -1.0], [1.0, 1.0], [0.3, -2.0]]):
        assert gradient @ metric.direction(gradient) < 0


def test_local_values_are_plain_tuples():
    value, gradient, hessian = Local(1.0, np.ones(2), None)
    assert (value, gradient.tolist(), hessian) == (1.0, [1.0, 1.0], None)
