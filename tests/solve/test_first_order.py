"""Gradient ascent, and ascent of one coefficient at a time: the same optimum as Newton's."""

import numpy as np
import pytest
from toy_objectives import Function, away, logistic, of_one, optimum, quadratic

from posteriori.errors import ParameterError
from posteriori.solve.first_order import Curvatures, coordinate, gradient, sweeps
from posteriori.solve.newton import newton
from posteriori.solve.search import rounding, search
from posteriori.solve.solution import Status

BOTH = pytest.mark.parametrize("solver", [gradient, coordinate])

SHAPES = {
    "few columns": (2000, 5),
    "many columns": (600, 60),
    "correlated": (1500, 12, 0.9),
    "nearly collinear": (1500, 12, 0.9999),
    "far from zero": (400, 4, 0.0, 8.0),
}


def spread_matrix(p, condition, seed=0):
    """A matrix with eigenvalues from one down to 1 / condition."""
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(p, p)))[0]
    return Q * np.geomspace(1, 1 / condition, p) @ Q.T


@BOTH
@pytest.mark.parametrize("shape", SHAPES)
def test_the_optimum_is_that_of_newton_to_a_tiny_part_of_a_standard_error(solver, shape):
    objective = logistic(*SHAPES[shape], tolerance=1e-8)
    solution = solver([objective], np.zeros(objective.X.shape[1]))
    assert solution.status is Status.CONVERGED
    assert away(solution.parameters, optimum(objective)) < 1e-7
    assert solution.value == pytest.approx(objective.at(solution.parameters)[0], rel=1e-13)


@BOTH
@pytest.mark.parametrize("shape", SHAPES)
def test_the_error_left_is_that_which_was_asked_for(solver, shape):
    objective = logistic(*SHAPES[shape], seed=3, tolerance=1e-3)
    solution = solver([objective], np.zeros(objective.X.shape[1]))
    assert solution.converged
    assert away(solution.parameters, optimum(objective)) < 1e-3


@BOTH
def test_the_objective_falls_at_every_step(solver):
    objective = logistic(800, 10, 0.95, 3.0)
    trace = solver([objective], np.zeros(11)).trace
    values = np.array([note.objective for note in trace])
    assert (np.diff(values) <= 1e-13 * values[:-1]).all()  # to the rounding of a sum over rows
    assert all(0 < note.step <= 1 for note in trace)
    assert sum(note.looks for note in trace) == len(objective.asked) - 1


@BOTH
def test_a_prior_is_part_of_what_is_made_small(solver):
    objective = logistic(40, 60, ridge=2.0)
    solution = solver([objective], np.zeros(61))
    assert solution.converged
    assert away(solution.parameters, optimum(objective)) < 1e-7


@BOTH
def test_a_subsample_gives_the_start(solver):
    objective = logistic(8000, 5)
    levels = objective.with_subsample()
    solution = solver(levels, np.zeros(6))
    shares = [note.share for note in solution.trace]
    assert shares == sorted(shares)
    assert set(shares) == {1 / 8, 1.0}
    first = next(note for note in solution.trace if note.share == 1)
    assert first.decrement < 3 * np.sqrt(8 * 6)
    assert away(solution.parameters, optimum(objective)) < 1e-7


@BOTH
def test_directions_that_change_nothing_do_no_harm(solver):
    objective = logistic(500, 3)
    objective.X = np.column_stack([objective.X, objective.X[:, 1], np.zeros(500)])
    solution = solver([objective], np.zeros(6))
    assert solution.converged
    alone = logistic(500, 3)
    best, _ = optimum(alone)
    w = solution.parameters
    np.testing.assert_allclose([w[0], w[1] + w[4], *w[2:4], w[5]], [*best, 0.0], atol=1e-8)


@BOTH
def test_steps_stay_where_the_objective_is_finite(solver):
    objective = of_one(
        lambda x: x - np.log(x) if x > 0 else np.inf,
        lambda x: 1 - 1 / x if x > 0 else np.nan,
        lambda x: 1 / x**2 if x > 0 else np.nan,
    )
    solution = solver([objective], np.array([30.0]))
    assert solution.converged
    assert solution.parameters[0] == pytest.approx(1.0, abs=1e-8)


@BOTH
def test_a_function_that_is_not_convex_is_followed_downhill_to_a_minimum(solver):
    objective = of_one(lambda x: x**4 / 4 - x**2 / 2, lambda x: x**3 - x, lambda x: 3 * x**2 - 1)
    solution = solver([objective], np.array([0.1]))
    assert solution.converged
    assert solution.parameters[0] == pytest.approx(1.0, abs=1e-7)


def separated():
    objective = logistic(80, 2)
    objective.t = (objective.X @ [0.2, 1.0, -1.0] > 0).astype(float)
    return objective


@BOTH
@pytest.mark.parametrize("answer", [True, False])
def test_suspicion_is_asked_once_when_parameters_run_away(solver, answer):
    asked = []

    def suspicion():
        asked.append(True)
        return answer

    solution = solver([separated()], np.zeros(3), suspicion=suspicion)
    assert asked == [True]
    assert (solution.status is Status.SEPARATED) == answer


@BOTH
@pytest.mark.parametrize("shape", ["few columns", "many columns", "correlated"])
def test_nobody_is_suspected_where_columns_are_told_apart(solver, shape):
    def suspicion():
        raise AssertionError

    objective = logistic(*SHAPES[shape])
    assert solver([objective], np.zeros(objective.X.shape[1]), suspicion=suspicion).converged


@BOTH
def test_too_few_steps_are_a_status(solver):
    solution = solver([logistic(500, 4)], np.zeros(5), max_iter=1)
    assert solution.status is Status.MAX_ITERATIONS
    assert len(solution.trace) == 1


@BOTH
def test_a_direction_that_leads_nowhere_is_a_status(solver):
    solution = solver([Function(at=lambda w: (w @ w, -2 * w, np.eye(2)))], np.ones(2))
    assert solution.status is Status.STALLED
    np.testing.assert_array_equal(solution.parameters, np.ones(2))


def test_gradients_never_ask_for_a_matrix():
    objective = logistic(1500, 12, 0.99, price=np.inf)
    solution = gradient([objective], np.zeros(13))
    assert solution.converged
    assert objective.count("full") == 0
    # The diagonal is asked for at the start, and after 5, 10, 20, ... steps.
    renewals = np.log2(len(solution.trace) / 5) + 1
    assert 1 <= objective.count("diagonal") <= 2 + 2 * renewals


@pytest.mark.parametrize(
    "correlation", [0.9, 0.99, 0.999, pytest.param(0.9999, marks=pytest.mark.slow)]
)
def test_gradients_know_how_far_they_are_where_their_metric_does_not(correlation):
    # The decrement by a diagonal can be a hundred times too small in a flat direction.
    objective = logistic(1500, 30, correlation, tolerance=1e-4)
    solution = gradient([objective], np.zeros(31))
    assert solution.converged
    assert away(solution.parameters, optimum(objective)) < 1e-4


def test_one_coefficient_at_a_time_asks_for_one_matrix_a_step():
    objective = logistic(1500, 12, 0.99)
    solution = coordinate([objective], np.zeros(13))
    assert objective.count("full") == len(solution.trace)
    assert objective.count("none") == 1  # the end of the last step
    assert len(solution.trace) <= len(newton([logistic(1500, 12, 0.99)], np.zeros(13)).trace) + 1


def test_one_coefficient_at_a_time_needs_a_matrix_that_can_be_had():
    with pytest.raises(ParameterError, match=r"13 parameters.*solver='gradient'"):
        coordinate([logistic(100, 12, price=np.inf)], np.zeros(13))


def test_fisher_scoring_ends_as_near_as_was_asked_for():
    # A Hessian that is too large by half makes steps shrink the error by a third, not square it.
    inner = logistic(2000, 4)

    def at(w):
        value, slope, hessian = inner.at(w)
        return value, slope, 1.5 * hessian

    solution = coordinate([Function(at=at, n_rows=2000, tolerance=1e-8)], np.zeros(5))
    assert solution.converged
    assert away(solution.parameters, optimum(inner)) < 2e-8


@pytest.mark.parametrize("condition", [1e1, 1e4, 1e8])
def test_sweeps_solve_a_quadratic_whatever_its_condition(condition):
    H = spread_matrix(30, condition)
    s = np.random.default_rng(1).normal(size=30)
    found = sweeps(H, -H @ s)
    error = found - s
    assert np.sqrt(error @ H @ error) < 1e-6 * np.sqrt(s @ H @ s)


def test_a_sweep_moves_each_coefficient_to_its_own_minimum():
    # With a diagonal H one sweep is all there is to do.
    np.testing.assert_allclose(sweeps(np.diag([1.0, 4.0]), np.array([1.0, 8.0])), [-1.0, -2.0])


def test_sweeps_do_not_move_what_nothing_holds():
    H = np.zeros((3, 3))
    H[:2, :2] = [[2.0, 2.0], [2.0, 2.0]]
    step = sweeps(H, np.array([-4.0, -4.0, 0.0]))
    assert step[2] == 0.0
    assert step[:2].sum() == pytest.approx(2.0)


def test_sweeps_point_downhill_where_the_matrix_is_indefinite():
    for H in (np.diag([-1.0, 2.0]), np.array([[1.0, 3.0], [3.0, 1.0]]), -np.eye(2)):
        for g in np.array([[1.0, 0.5], [-2.0, 1.0], [1.0, -1.0]]):
            assert g @ sweeps(H, g) < 0


def test_the_bound_on_the_error_holds_in_the_flattest_direction_seen():
    H, w = np.diag([100.0, 1.0, 0.01]), np.array([0.5, -2.0, 30.0])
    curvatures = Curvatures(np.ones(3))
    assert curvatures.away(H @ w) == np.inf
    for step in np.eye(3):
        assert curvatures.see(step, H @ step) == step @ H @ step
    assert curvatures.away(H @ w) >= np.sqrt(w @ H @ w)
    only = np.array([0.0, 0.0, 30.0])
    assert curvatures.away(H @ only) == pytest.approx(np.sqrt(only @ H @ only))


def test_no_slope_at_all_is_the_optimum():
    assert Curvatures(np.ones(2)).away(np.zeros(2)) == 0.0


def test_a_step_of_no_length_says_nothing_of_the_curvature():
    curvatures = Curvatures(np.ones(2))
    assert curvatures.see(np.zeros(2), np.zeros(2)) == np.inf
    assert curvatures.away(np.ones(2)) == np.inf


def test_a_line_search_takes_a_step_that_does_well():
    objective = quadratic(np.eye(2), [1.0, 1.0])
    w = np.zeros(2)
    found = search(objective, w, objective(w, "none"), np.ones(2))
    assert (found.length, found.local.value, found.looks) == (1.0, 0.0, 1)


def test_a_line_search_on_a_parabola_finds_its_minimum_at_the_second_look():
    objective = quadratic(np.eye(2), [1.0, 1.0])
    w = np.zeros(2)
    found = search(objective, w, objective(w, "none"), np.full(2, 3.0))
    assert found.length == pytest.approx(1 / 3)
    assert found.looks == 2


def test_a_line_search_goes_by_slopes_where_the_value_has_no_digits_left():
    # 1e8 + x²/2 is the same double for all x of interest.
    objective = of_one(lambda x: 1e8 + x**2 / 2, lambda x: x, lambda x: 1.0)
    w = np.array([1e-5])
    found = search(objective, w, objective(w, "none"), np.array([-2.5e-5]))
    assert found.length == pytest.approx(0.4)
    assert rounding(objective, 1e8) > 0.5e-10


def test_a_line_search_that_finds_nothing_says_so():
    objective = Function(at=lambda w: (w @ w, -2 * w, None))
    w = np.ones(2)
    assert search(objective, w, objective(w, "none"), 0.1 * w) is None
