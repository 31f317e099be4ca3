"""Small functions to minimise, which count their evaluations."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import expit

from posteriori.solve.objective import Local


@dataclass(eq=False)
class Counted:
    """What every objective has: its place among the subsamples, and a record of evaluations."""

    tolerance: float = 1e-8
    hessian_cost: float = 1.0
    row_fraction: float = 1.0
    n_rows: int = 1
    unit: float = 1.0
    evaluations: list[str] = field(default_factory=list)

    def __call__(self, w, hessian):
        self.evaluations.append(hessian)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            value, gradient, curved = self.at(w)
        if hessian == "none":
            curved = None
        elif hessian == "diagonal":
            curved = np.diagonal(curved).copy()
        return Local(float(value), gradient, curved)

    def hessian_product(self, w):
        """The map v to Hv, as `newton_cg` needs it."""
        H = self.at(w)[2]
        return lambda v: H @ v

    def batches(self, k):
        return [self]

    def count(self, hessian):
        """The number of evaluations with this much of the second derivative."""
        return self.evaluations.count(hessian)


@dataclass(eq=False)
class Function(Counted):
    """Any function that gives value, gradient and Hessian."""

    at: Any = None


def quadratic(H, centre, **settings):
    """½ (w - centre)ᵀ H (w - centre)."""
    H, centre = np.asarray(H, dtype=float), np.asarray(centre, dtype=float)

    def at(w):
        away = w - centre
        return 0.5 * away @ H @ away, H @ away, H

    return Function(at=at, **settings)


def of_one(value, slope, curvature, **settings):
    """A function of one parameter."""

    def at(w):
        x = w[0]
        return value(x), np.array([slope(x)]), np.array([[curvature(x)]])

    return Function(at=at, **settings)


@dataclass(eq=False)
class Logistic(Counted):
    """-ln p(t|w) of logistic regression with a ridge, `factor` times over."""

    X: Any = None
    t: Any = None
    ridge: float = 0.0
    factor: float = 1.0

    def __post_init__(self):
        self.n_rows = len(self.t)

    def at(self, w):
        a, k = self.X @ w, self.factor
        value = (np.logaddexp(0, a) - self.t * a).sum()
        gradient = self.X.T @ (expit(a) - self.t)
        hessian = (self.X.T * (expit(a) * expit(-a))) @ self.X
        prior = self.ridge * np.eye(len(w))
        return k * value + 0.5 * w @ prior @ w, k * gradient + prior @ w, k * hessian + prior

    def part(self, own, times, **settings):
        """The objective on some of the rows, which stand for all."""
        factor, row_fraction = self.factor * times, self.row_fraction / times
        return replace(
            self,
            X=self.X[own],
            t=self.t[own],
            factor=factor,
            row_fraction=row_fraction,
            evaluations=[],
            **settings,
        )

    def batches(self, k):
        return [self.part(slice(b, None, k), k) for b in range(k)]

    def with_subsample(self, times=8):
        """A level of one row in `times`, and this one."""
        p = self.X.shape[1]
        rough = self.part(slice(None, None, times), times, tolerance=0.3 * np.sqrt(p * times))
        return [rough, self]


def logistic(n, d, correlation=0.0, spread=1.0, seed=0, **settings):
    """Standardised columns, the first of them ones, and labels drawn from the model."""
    random = np.random.default_rng(seed)
    Z = np.sqrt(1 - correlation) * random.normal(size=(n, d))
    Z += np.sqrt(correlation) * random.normal(size=(n, 1))
    X = np.column_stack([np.ones(n), (Z - Z.mean(axis=0)) / Z.std(axis=0)])
    w = spread * random.normal(size=d + 1) / np.sqrt(d)
    t = (random.random(n) < expit(X @ w)).astype(float)
    return Logistic(X=X, t=t, **settings)


def optimum(objective):
    """The minimum by Newton's method with exact Hessians, and the Hessian there."""
    w = np.zeros(objective.X.shape[1])
    for _ in range(60):
        value, gradient, hessian = objective.at(w)
        step = -np.linalg.solve(hessian, gradient)
        if -(gradient @ step) < 1e-24:
            break
        while objective.at(w + step)[0] > value + 1e-12 * abs(value):
            step = step / 2
        w = w + step
    return w, hessian


def away(w, best):
    """How many standard errors w is from the optimum."""
    d = w - best[0]
    return float(np.sqrt(d @ best[1] @ d))
