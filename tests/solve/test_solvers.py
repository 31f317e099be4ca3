"""The solvers by name: all reach one optimum, through the whole of a fit."""

import warnings
from dataclasses import replace
from typing import get_args

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer
from toy_objectives import logistic

from posteriori import LogisticRegression
from posteriori.errors import ConvergenceWarning, ParameterError, SeparationWarning
from posteriori.models.discriminative import Solver as SolverName
from posteriori.posterior.priors import GaussianPrior
from posteriori.solve.solution import Status
from posteriori.solve.solvers import SOLVERS, Choice, choose, solve

OTHERS = pytest.mark.parametrize("solver", ["gradient", "coordinate", "sequential"])


def draw(n, d, n_classes=2, correlation=0.0, seed=0):
    random = np.random.default_rng(seed)
    X = np.sqrt(1 - correlation) * random.normal(size=(n, d))
    X += np.sqrt(correlation) * random.normal(size=(n, 1))
    W = random.normal(size=(d, n_classes)) / np.sqrt(d)
    y = (X @ W + random.gumbel(size=(n, n_classes))).argmax(axis=1)
    return 10.0 ** (np.arange(d) % 5) * X + 3.0, y


def frame_of(n=3000):
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "shop": random.choice(list("abcd"), n),
            "day": random.choice(["mo", "tu", "we"], n),
            "price": random.normal(size=n),
        }
    )
    a = frame["price"] + (frame["shop"] == "b") - 0.5 * (frame["day"] == "we")
    return frame, (random.random(n) < 1 / (1 + np.exp(-a))).to_numpy()


def sparse_of(n=2000, d=80):
    X = sparse.random(n, d, density=0.05, random_state=0, format="csr")
    a = X @ np.random.default_rng(0).normal(size=d)
    return X, np.random.default_rng(1).random(n) < 1 / (1 + np.exp(-a))


PROBLEMS = {
    "two classes": (draw(3000, 5), {}),
    "four classes": (draw(3000, 4, 4), {}),
    "correlated": (draw(3000, 8, correlation=0.99), {}),
    "prior": (draw(1000, 6), {"prior": 1.0}),
    "prior with a matrix": (draw(1000, 2), {"prior": GaussianPrior(np.array([[2.0, 1], [1, 3]]))}),
    "no intercept": (draw(2000, 4), {"fit_intercept": False}),
    "subsamples": (draw(40000, 4), {}),
    "factors": (frame_of(), {}),
    "sparse": (sparse_of(), {"prior": 0.1}),
    "real": (load_breast_cancer(return_X_y=True), {"prior": 1e-2}),
}


def apart(model, other):
    """How many standard errors each coefficient is off."""

    def numbers(each):
        W = np.column_stack([each.intercept_, each.coef_])
        return (W if len(W) == 1 else W[1:] - W[0]).ravel()

    off, covariance = numbers(model) - numbers(other), other.coef_covariance_
    if len(covariance) < len(off):
        off = off[1:]
    return (abs(off) / np.sqrt(np.diagonal(covariance))).max()


@OTHERS
@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_solver_reaches_the_optimum_of_newton(solver, problem):
    (X, y), settings = PROBLEMS[problem]
    newton = LogisticRegression(solver="newton", tol=1e-8, **settings).fit(X, y)
    model = LogisticRegression(solver=solver, tol=1e-8, **settings).fit(X, y)
    assert model.solver_ == solver
    assert model.converged_
    assert apart(model, newton) < 1e-7
    assert model.log_likelihood_ == pytest.approx(newton.log_likelihood_, rel=1e-11)


@OTHERS
def test_columns_that_depend_on_others_get_the_same_coefficients(solver):
    X, y = draw(2000, 4)
    X = np.column_stack([X, X[:, 0] - X[:, 1]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        newton = LogisticRegression(solver="newton", tol=1e-8).fit(X, y)
        model = LogisticRegression(solver=solver, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.coef_, newton.coef_, rtol=1e-6)


@OTHERS
def test_weights_count_as_rows(solver):
    X, y = draw(2000, 4)
    weight = 1.0 + np.arange(2000) % 3
    newton = LogisticRegression(solver="newton", tol=1e-8).fit(X, y, sample_weight=weight)
    model = LogisticRegression(solver=solver, tol=1e-8).fit(X, y, sample_weight=weight)
    assert apart(model, newton) < 1e-7


@OTHERS
def test_separated_classes_are_found_by_every_solver(solver):
    X, _ = draw(300, 3)
    y = X[:, 0] > 3.0
    with pytest.warns(SeparationWarning):
        model = LogisticRegression(solver=solver).fit(X, y)
    assert model.separation_.kind == "complete"


@OTHERS
def test_one_step_is_too_few_and_is_said_to_be(solver):
    X, y = draw(2000, 5)
    with pytest.warns(ConvergenceWarning, match="Raise max_iter"):
        model = LogisticRegression(solver=solver, max_iter=1).fit(X, y)
    assert model.solution_.status is Status.MAX_ITERATIONS


def test_the_names_are_those_that_the_models_offer():
    assert {"auto", *SOLVERS} == set(get_args(SolverName))


def test_what_is_asked_for_is_taken():
    for name in SOLVERS:
        assert choose(logistic(100, 3), 4, name) == Choice(name, "asked for")


def test_an_unknown_solver_is_an_error_that_names_the_others():
    with pytest.raises(ParameterError, match=r"'lbfgs'.*'newton', 'gradient', 'coordinate'"):
        choose(logistic(100, 3), 4, "lbfgs")
    with pytest.raises(ParameterError, match="'lbfgs'"):
        LogisticRegression(solver="lbfgs").fit(*draw(100, 2))


def test_second_derivatives_are_taken_where_they_can_be_had():
    cheap = choose(logistic(100, 3, price=0.5), 4)
    assert cheap.name == "newton"
    assert "4 parameters cost no more than 0.5 passes" in cheap.reason
    dear = choose(logistic(100, 3, price=14.2), 1200)
    assert dear.name == "newton"
    assert "1,200 parameters cost as much as 14 passes" in dear.reason


def test_gradients_are_taken_where_second_derivatives_are_too_many():
    wide = choose(logistic(100, 3, price=np.inf), 50001)
    assert wide.name == "gradient"
    assert "50,001 parameters are too many to keep" in wide.reason
    X, y = sparse_of(500, 2500)
    model = LogisticRegression(prior=1.0).fit(X, y)
    assert model.solver_ == "gradient"
    assert "2,501 parameters" in model.solver_reason_
    assert model.converged_


@pytest.mark.parametrize("name", SOLVERS)
def test_the_number_of_steps_is_left_to_the_solver_or_set(name):
    objective = logistic(600, 5, 0.9)
    assert solve(name, [objective], np.zeros(6)).converged
    short = solve(name, [replace(objective, asked=[])], np.zeros(6), max_iter=1)
    assert short.status is Status.MAX_ITERATIONS
