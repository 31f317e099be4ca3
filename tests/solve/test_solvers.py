"""The solvers by name: all reach one optimum, through the whole of a fit."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from toy_objectives import Function, away, logistic, of_one, optimum

from posteriori import LogisticRegression
from posteriori.errors import ParameterError
from posteriori.posterior.priors import GaussianPrior
from posteriori.solve.newton import newton, newton_cg
from posteriori.solve.objective import Status
from posteriori.solve.solvers import (
    SOLVERS,
    choose,
    coordinate,
    gradient,
    sequential,
    solve,
)


def draw(n, d, n_classes=2, correlation=0.0):
    random = np.random.default_rng(0)
    X = np.sqrt(1 - correlation) * random.normal(size=(n, d))
    X += np.sqrt(correlation) * random.normal(size=(n, 1))
    W = random.normal(size=(d, n_classes)) / np.sqrt(d)
    y = (X @ W + random.gumbel(size=(n, n_classes))).argmax(axis=1)
    return 10.0 ** (np.arange(d) % 5) * X + 3.0, y


def with_zeros(X, y):
    return sparse.csr_array(np.where(np.random.default_rng(1).random(X.shape) < 0.05, X, 0.0)), y


PROBLEMS = {
    "four classes": (draw(3000, 4, 4), {}),
    "correlated": (draw(3000, 8, correlation=0.99), {}),
    "prior with a matrix": (draw(1000, 2), {"prior": GaussianPrior(np.array([[2.0, 1], [1, 3]]))}),
    "no intercept": (draw(2000, 4), {"fit_intercept": False}),
    "subsamples": (draw(40000, 4), {}),
    "sparse": (with_zeros(*draw(2000, 80)), {"prior": 0.1}),
}


@pytest.mark.parametrize("solver", ["newton-cg", "gradient", "coordinate", "sequential"])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_solver_reaches_the_optimum_of_newton(solver, problem):
    rows, settings = PROBLEMS[problem]
    model, best = (
        LogisticRegression(solver=name, tol=1e-8, **settings).fit(*rows)
        for name in (solver, "newton")
    )
    assert model.solver_ == solver
    assert model.converged_
    w = best.solution_.parameters
    hessian = best._inference.objective(w, "full").hessian
    # SciPy's L-BFGS-B stops where the objective is level to its last digits.
    tolerance = 1e-5 if solver == "gradient" else 1e-7
    assert away(model.solution_.parameters, (w, hessian)) < tolerance
    assert model.solution_.value == pytest.approx(best.solution_.value, rel=1e-11)


def test_hessians_are_computed_where_they_are_cheap_or_a_subsample_has_one():
    cheap, expensive = logistic(100, 3, hessian_cost=1.5), logistic(100, 3, hessian_cost=30.0)
    assert choose([cheap], 4).name == "newton"
    assert choose([expensive, expensive], 4).name == "newton"
    name, reason = choose([expensive], 1200)
    assert name == "newton-cg"
    assert reason == "the Hessian of 1,200 parameters costs as much as 30 passes"


def test_conjugate_gradients_reach_the_optimum_where_columns_are_many():
    X, y = with_zeros(*draw(500, 2500))
    model = LogisticRegression(prior=1.0, tol=1e-10).fit(X, y)
    assert model.solver_ == "newton-cg"
    assert "2,501 parameters" in model.solver_reason_
    residual = model.predict_proba(X)[:, 1] - y
    assert residual.sum() == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(model.coef_[0], -(residual @ X), atol=1e-9)


@pytest.mark.parametrize("name", SOLVERS)
def test_the_number_of_steps_is_left_to_the_solver_or_set(name):
    objective = logistic(600, 5, 0.9)
    assert solve(name, [objective], np.zeros(6)).converged
    short = solve(name, [replace(objective, evaluations=[])], np.zeros(6), max_iter=1)
    assert short.status is Status.MAX_ITERATIONS


ALL = pytest.mark.parametrize("solver", [newton, gradient, coordinate, sequential, newton_cg])

SHAPES = {
    "many columns": {"n": 600, "d": 60},
    "far from zero": {"n": 400, "d": 4, "spread": 8.0},
    "prior": {"n": 40, "d": 60, "ridge": 2.0},
}


@pytest.mark.parametrize("solver", [gradient, coordinate, sequential, newton_cg])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_error_left_is_within_the_tolerance(solver, shape):
    objective = logistic(**SHAPES[shape], seed=3, tolerance=1e-3)
    solution = solver([objective], np.zeros(objective.X.shape[1]))
    assert solution.status is Status.CONVERGED
    assert away(solution.parameters, optimum(objective)) < 1e-3
    assert solution.value == pytest.approx(objective.at(solution.parameters)[0], rel=1e-9)


@ALL
def test_the_objective_falls_at_every_step(solver):
    objective = logistic(800, 10, 0.95, 3.0, tolerance=1e-4)
    trace = solver([objective], np.zeros(11)).trace
    values = np.array([note.objective for note in trace])
    assert (np.diff(values) <= 1e-13 * values[:-1]).all()  # to the rounding of a sum over rows
    assert all(0 < note.step <= 1 for note in trace)


@pytest.mark.parametrize("solver", [newton, gradient, coordinate, newton_cg])
def test_directions_that_change_nothing_do_no_harm(solver):
    objective = logistic(500, 3)
    objective.X = np.column_stack([objective.X, objective.X[:, 1], np.zeros(500)])
    solution = solver([objective], np.zeros(6))
    assert solution.converged
    best, _ = optimum(logistic(500, 3))
    w = solution.parameters
    np.testing.assert_allclose([w[0], w[1] + w[4], *w[2:4], w[5]], [*best, 0.0], atol=1e-7)


@pytest.mark.parametrize("solver", [newton, gradient, coordinate, newton_cg])
def test_a_function_that_is_not_convex_is_followed_to_a_minimum(solver):
    objective = of_one(
        lambda x: x**4 / 4 - x**2 / 2, lambda x: x**3 - x, lambda x: 3 * x**2 - 1, tolerance=1e-6
    )
    solution = solver([objective], np.array([0.1]))
    assert solution.converged
    assert solution.parameters[0] == pytest.approx(1.0, abs=1e-6)


@ALL
@pytest.mark.parametrize("answer", [True, False])
def test_separation_is_checked_once_where_estimates_may_be_infinite(solver, answer):
    objective = logistic(80, 2)
    objective.t = (objective.X @ [0.2, 1.0, -1.0] > 0).astype(float)
    calls = []

    def is_separated():
        calls.append(True)
        return answer

    solution = solver([objective], np.zeros(3), check_separation=is_separated)
    assert calls == [True]
    assert (solution.status is Status.SEPARATED) == answer


@pytest.mark.parametrize("solver", [newton, coordinate, gradient])
def test_a_direction_without_descent_is_a_status(solver):
    solution = solver([Function(at=lambda w: (w @ w, -2 * w, np.eye(2)))], np.ones(2))
    assert solution.status is Status.STALLED
    np.testing.assert_allclose(solution.parameters, np.ones(2))


@pytest.mark.parametrize("solver", [gradient, newton_cg])
def test_neither_gradients_nor_products_need_a_matrix(solver):
    objective = logistic(1500, 12, 0.99, hessian_cost=np.inf, tolerance=1e-4)
    assert solver([objective], np.zeros(13)).converged
    assert objective.count("full") == 0


@pytest.mark.parametrize("solver", [coordinate, sequential])
def test_a_matrix_that_is_too_large_is_named(solver):
    with pytest.raises(ParameterError, match=r"13 parameters.*solver='gradient'"):
        solver([logistic(100, 12, hessian_cost=np.inf)], np.zeros(13))
