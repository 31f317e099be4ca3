"""A problem: data, a loss and a prior; and how far a fit is from the best possible one.

The objective is the mean over the rows: (Σ loss + ½ prior |slopes|²) / n, the intercept free.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression, PoissonRegressor

from benchmarks.data import formed
from benchmarks.data.forms import as_made
from benchmarks.losses import POISSON, Loss, target

PRIOR = 1.0
"""The prior precision of every penalised problem: scikit-learn's C = 1."""

TIGHT = {"tol": 1e-10, "max_iter": 1_000}


@dataclass(frozen=True)
class Problem:
    """`design` is the form of X to which the coefficients belong."""

    data: str
    loss: Loss
    prior: float = PRIOR
    design: Callable[[Any], Any] = as_made

    def objective(self, model: Any, shrink: int) -> float:
        """The objective at the coefficients of a fitted model."""
        X, y = formed(self.data, shrink, self.design)
        penalty = 0.5 * self.prior * np.sum(np.square(model.coef_))
        return float((np.sum(self.loss.value(_activation(model, X), y)) + penalty) / len(y))

    def suboptimality(self, model: Any, shrink: int) -> float:
        """How far the objective is above the least possible one, as a part of that."""
        least = least_objective(self, shrink)
        return self.objective(model, shrink) / least - 1.0


@lru_cache(maxsize=8)
def least_objective(problem: Problem, shrink: int) -> float:
    """A bound from below that no fit can pass: a very tight fit, less what it may still lack.

    The prior curves the objective by at least prior/n along every slope (the intercept's own
    curvature is larger still), so f - min f <= |gradient|² n / (2 prior).
    """
    X, y = formed(problem.data, shrink, problem.design)
    model = _tight_fit(problem, X, y)
    lacking = _squared_gradient(problem, model, X, y) * len(y) / (2 * problem.prior)
    return problem.objective(model, shrink) - lacking


def _tight_fit(problem: Problem, X: Any, y: np.ndarray) -> Any:
    """By Newton's method, with the Hessian where it fits into memory."""
    if problem.loss is POISSON:
        model = PoissonRegressor(alpha=problem.prior / len(y), solver="newton-cholesky", **TIGHT)
    else:
        wide = sparse.issparse(X) and X.shape[1] > 1_000
        solver = "newton-cg" if wide else "newton-cholesky"
        model = LogisticRegression(C=1 / problem.prior, solver=solver, **TIGHT)
    with warnings.catch_warnings(action="ignore"):
        return model.fit(X, y)


def _squared_gradient(problem: Problem, model: Any, X: Any, y: np.ndarray) -> float:
    activation = _activation(model, X)
    residual = problem.loss.mean(activation) - target(y, activation.shape[1])
    slopes = X.T @ residual + problem.prior * np.atleast_2d(model.coef_).T
    return float(np.sum(slopes**2) + np.sum(residual.sum(axis=0) ** 2)) / len(y) ** 2


def _activation(model: Any, X: Any) -> np.ndarray:
    return X @ np.atleast_2d(model.coef_).T + model.intercept_
