"""Newton's method with a lazily refreshed Hessian, and Fisher scoring with secants."""

import numpy as np
import pytest
from toy_objectives import Function, away, logistic, of_one, optimum, quadratic

from posteriori.solve.newton import InverseHessian, newton, scoring
from posteriori.solve.objective import Status

H = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.2], [0.5, -0.2, 1.0]])
CENTRE = np.array([1.0, -2.0, 3.0])


def test_a_quadratic_is_solved_by_one_step():
    solution = newton([quadratic(H, CENTRE)], np.zeros(3))
    np.testing.assert_allclose(solution.parameters, CENTRE, rtol=1e-12)
    assert solution.status is Status.CONVERGED
    assert solution.value == pytest.approx(0.0, abs=1e-12)
    assert solution.trace[0].decrement == pytest.approx(np.sqrt(CENTRE @ H @ CENTRE))


@pytest.mark.parametrize("correlation", [0.0, 0.9999])
@pytest.mark.parametrize("hessian_cost", [0.5, 5.0, 50.0])
def test_the_optimum_does_not_depend_on_what_a_hessian_costs(correlation, hessian_cost):
    objective = logistic(1500, 8, correlation, hessian_cost=hessian_cost)
    solution = newton([objective], np.zeros(9), max_iter=2000)
    assert solution.status is Status.CONVERGED
    assert away(solution.parameters, optimum(objective)) < 1e-6
    assert solution.value == pytest.approx(objective.at(solution.parameters)[0], rel=1e-12)


LONG_STEPS = {  # start, minimum, and a function whose full Newton step from the start is too long
    "ln cosh x, which rises": (
        (2.0, 0.0), (lambda x: np.log(np.cosh(x)), np.tanh, lambda x: 1 / np.cosh(x) ** 2),
    ),
    "x - ln x, which ends at zero": (
        (3.0, 1.0), (lambda x: x - np.log(x), lambda x: 1 - 1 / x, lambda x: 1 / x**2),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LONG_STEPS)
def test_steps_that_raise_the_objective_or_leave_its_domain_are_halved(name):
    (start, minimum), functions = LONG_STEPS[name]
    solution = newton([of_one(*functions)], np.array([start]))
    assert solution.status is Status.CONVERGED
    assert solution.trace[0].step < 1.0
    assert solution.parameters[0] == pytest.approx(minimum, abs=1e-8)
    values = [note.objective for note in solution.trace]
    assert values == sorted(values, reverse=True)


def test_a_subsample_gives_a_start_from_which_few_passes_are_needed():
    alone, objective = logistic(8000, 5, hessian_cost=20.0), logistic(8000, 5, hessian_cost=20.0)
    levels = objective.with_subsample()
    whole, staged = newton([alone], np.zeros(6)), newton(levels, np.zeros(6))
    np.testing.assert_allclose(staged.parameters, whole.parameters, atol=1e-9)
    assert levels[0].evaluations
    first = next(note for note in staged.trace if note.row_fraction == 1)
    # The optimum of one row in eight is √(8 p) standard errors of all rows away, about.
    assert first.decrement < 3 * np.sqrt(8 * 6)
    assert first.decrement < 0.5 * whole.trace[0].decrement
    assert objective.count("full") == 0 < alone.count("full")
    fractions = [note.row_fraction for note in staged.trace]
    assert fractions == sorted(fractions)
    assert set(fractions) == {1 / 8, 1.0}


def test_separation_is_not_checked_where_there_is_an_optimum():
    def check_separation():
        raise AssertionError

    objective = logistic(500, 4, 0.99)
    assert newton([objective], np.zeros(5), check_separation=check_separation).converged


def quartic(factor=1.0):
    """Σ (w - 1)² + (w - 1)⁴ with a multiple of its second derivative at 1 as its matrix."""

    def at(w):
        v = w - 1
        return (v**2 + v**4).sum(), 2 * v + 4 * v**3, factor * 2 * np.eye(len(w))

    return Function(at=at, tolerance=1e-10, n_rows=10)


@pytest.mark.parametrize("factor", [0.3, 1.0, 20.0])
def test_scoring_with_any_positive_definite_matrix_leads_to_the_minimum(factor):
    found = scoring(quartic(factor), np.array([3.0, -2.0, 0.5]))
    assert found.converged
    np.testing.assert_allclose(found.parameters, 1.0, atol=1e-9)


def test_it_ends_early_where_the_objective_is_low_enough_or_steps_run_out():
    start = np.array([9.0, 3.0])
    assert 1.0 < scoring(quartic(), start, low_enough=100.0).trace[-1].objective <= 100.0
    assert scoring(quartic(), start, max_iter=2).status is Status.MAX_ITERATIONS


def test_negative_curvatures_count_as_positive_ones_and_steps_along_them_are_forgotten():
    gradient = np.array([0.3, -2.0])
    direction = InverseHessian.of(np.array([[1.0, 2.0], [2.0, 1.0]])).direction(gradient)
    np.testing.assert_allclose([[2.0, 1.0], [1.0, 2.0]] @ direction, -gradient, rtol=1e-12)
    inverse = InverseHessian.of(H)
    inverse.learn(np.eye(3)[0], -np.eye(3)[0])
    np.testing.assert_allclose(inverse.direction(H @ CENTRE), -CENTRE, rtol=1e-12)
