"""Steps on a few rows each: variance is taken off, so that they settle at the same optimum."""

import numpy as np
import pytest
from toy_objectives import Function, away, logistic, optimum

from posteriori.solve.sequential import sequential
from posteriori.solve.solution import Status

SHAPES = {
    "few rows": (200, 3),
    "some rows": (3000, 5),
    "many rows": (20000, 8),
    "correlated": (8000, 12, 0.9),
    "nearly collinear": (8000, 12, 0.9999),
    "far from zero": (2000, 4, 0.0, 8.0),
    "more columns than a batch could bear": (400, 60),
}


def start_of(objective):
    return np.zeros(objective.X.shape[1])


@pytest.mark.parametrize("shape", SHAPES)
def test_the_optimum_is_that_of_newton_to_a_tiny_part_of_a_standard_error(shape):
    objective = logistic(*SHAPES[shape], tolerance=1e-8)
    solution = sequential([objective], start_of(objective))
    assert solution.status is Status.CONVERGED
    assert away(solution.parameters, optimum(objective)) < 1e-7
    assert solution.value == pytest.approx(objective.at(solution.parameters)[0], rel=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_optimum_does_not_depend_on_the_order_of_the_rows(shape):
    objective = logistic(*SHAPES[shape], tolerance=1e-8)
    one = sequential([objective], start_of(objective), random_state=1)
    other = sequential([objective], start_of(objective), random_state=2)
    assert away(one.parameters, (other.parameters, optimum(objective)[1])) < 1e-7


def test_the_same_random_state_gives_the_same_bits():
    objective = logistic(3000, 5)
    one, other = (sequential([objective], np.zeros(6), random_state=7) for _ in range(2))
    np.testing.assert_array_equal(one.parameters, other.parameters)


def test_the_error_shrinks_by_a_factor_each_time_through():
    trace = sequential([logistic(20000, 8, tolerance=1e-8)], np.zeros(9)).trace
    decrements = np.array([note.decrement for note in trace])
    assert (decrements[2:] < 0.3 * decrements[1:-1]).all()
    values = [note.objective for note in trace]
    assert values == sorted(values, reverse=True)


def test_steps_are_on_batches_and_never_on_all_rows_at_once():
    objective = logistic(20000, 8)
    sequential([objective], np.zeros(9))
    assert objective.count("none") == 0
    assert objective.count("full") <= 2  # the metric


def test_the_trace_counts_how_often_rows_were_looked_at():
    objective = logistic(20000, 8)
    levels = objective.with_subsample()
    trace = sequential(levels, np.zeros(9)).trace
    assert {note.share for note in trace} == {1 / 8, 1.0}
    # Once through the batches, and once more to see where that led.
    assert trace[-1].looks == pytest.approx(2.0)
    assert all(0 < note.step < 1 for note in trace)


def test_rows_sorted_by_class_do_no_harm():
    objective = logistic(8000, 5)
    order = np.argsort(objective.t)
    sorted_ = logistic(8000, 5)
    sorted_.X, sorted_.t = objective.X[order], objective.t[order]
    solution = sequential([sorted_], np.zeros(6))
    assert away(solution.parameters, optimum(objective)) < 1e-7
    assert len(solution.trace) < 15


@pytest.mark.parametrize("period", [2, 3, 10, 16])
def test_labels_that_come_in_turns_do_no_harm(period):
    objective = logistic(8000, 5)
    first, second = (np.flatnonzero(objective.t == k) for k in (0, 1))
    n = min(len(first), len(second) * (period - 1)) // (period - 1)
    order = np.concatenate(
        [[second[i], *first[i * (period - 1) : (i + 1) * (period - 1)]] for i in range(n)]
    )
    turns = objective.part(order, 1)
    solution = sequential([turns], np.zeros(6))
    assert away(solution.parameters, optimum(turns)) < 1e-7
    assert len(solution.trace) < 20


def test_weights_of_very_different_size_do_no_harm():
    random = np.random.default_rng(1)
    objective = logistic(2000, 6, weight=random.pareto(1.1, size=2000))
    solution = sequential([objective], np.zeros(7))
    assert solution.converged
    assert away(solution.parameters, optimum(objective)) < 1e-7


def test_a_column_that_few_rows_have_does_no_harm():
    random = np.random.default_rng(2)
    objective = logistic(8000, 4, ridge=0.1)
    objective.X = np.column_stack([objective.X, random.random((8000, 4)) < 0.002])
    solution = sequential(objective.with_subsample(), np.zeros(9))
    assert solution.converged
    assert away(solution.parameters, optimum(objective)) < 1e-7


@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_a_diagonal_does_where_the_hessian_is_not_to_be_had(correlation):
    objective = logistic(8000, 12, correlation, price=np.inf)
    solution = sequential([objective], np.zeros(13), max_iter=500)
    assert solution.converged
    assert objective.count("full") == 0
    assert away(solution.parameters, optimum(objective)) < 1e-7


def test_a_start_far_out_is_come_back_from():
    objective = logistic(2000, 6)
    solution = sequential([objective], np.full(7, 5.0))
    assert solution.converged
    assert away(solution.parameters, optimum(objective)) < 1e-7


def test_batches_that_leave_the_domain_make_way_for_larger_ones():
    # The log likelihood of exponential targets with rate Xw, infinite where a rate is not positive.
    random = np.random.default_rng(0)
    X = np.column_stack([np.ones(3000), random.random((3000, 2))])
    t = random.exponential(1 / (X @ [0.05, 1.0, 2.0]))

    class Rates(Function):
        def batches(self, k):
            return [rates(X[b::k], t[b::k], k) for b in range(k)]

    def rates(X, t, times=1):
        def at(w):
            a = X @ w
            inside = (a > 0).all()
            value = times * (t * a - np.log(a)).sum() if inside else np.inf
            return value, times * X.T @ (t - 1 / a), times * (X.T / a**2) @ X

        return Rates(at=at, n_rows=len(t), share=1 / times)

    objective = rates(X, t)
    objective.X = X
    solution = sequential([objective], np.array([1.0, 0.0, 0.0]))
    assert solution.converged
    assert away(solution.parameters, optimum(objective, np.array([1.0, 0.0, 0.0]))) < 1e-7


@pytest.mark.parametrize("answer", [True, False])
def test_suspicion_is_asked_once_when_parameters_run_away(answer):
    objective = logistic(400, 2)
    objective.t = (objective.X @ [0.2, 1.0, -1.0] > 0).astype(float)
    asked = []

    def suspicion():
        asked.append(True)
        return answer

    solution = sequential([objective], np.zeros(3), max_iter=60, suspicion=suspicion)
    assert asked == [True]
    assert (solution.status is Status.SEPARATED) == answer


def test_too_few_times_through_are_a_status():
    solution = sequential([logistic(3000, 5)], np.zeros(6), max_iter=1)
    assert solution.status is Status.MAX_ITERATIONS
    assert len(solution.trace) == 1


def test_a_direction_that_leads_nowhere_is_a_status():
    objective = Function(at=lambda w: (w @ w, -2 * w, np.eye(2)))
    solution = sequential([objective], np.ones(2))
    assert solution.status is Status.STALLED
    np.testing.assert_array_equal(solution.parameters, np.ones(2))
