"""Small functions to be made small, which count how often they are asked."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from posteriori.solve.objective import Local


@dataclass(eq=False)
class Asked:
    """What every objective has: its place among the levels, and a record of the questions."""

    tolerance: float = 1e-8
    hessian_cost: float = 1.0
    row_fraction: float = 1.0
    n_rows: int = 1
    unit: float = 1.0
    asked: list[str] = field(default_factory=list)

    def __call__(self, w, hessian):
        self.asked.append(hessian)
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
        """How often this much of the second derivative was asked for."""
        return self.asked.count(hessian)


@dataclass(eq=False)
class Function(Asked):
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
class Logistic(Asked):
    """-ln p(t|w) of logistic regression with weights and a ridge, `factor` times over."""

    X: Any = None
    t: Any = None
    weight: Any = None
    ridge: float = 0.0
    factor: float = 1.0

    def __post_init__(self):
        self.n_rows = len(self.t)
        if self.weight is None:
            self.weight = np.ones(self.n_rows)

    def at(self, w):
        a = self.X @ w
        y = np.exp(-np.logaddexp(0, -a))
        value = self.weight @ (np.logaddexp(0, a) - self.t * a)
        gradient = self.X.T @ (self.weight * (y - self.t))
        r = self.weight * y * np.exp(-np.logaddexp(0, a))
        hessian = (self.X.T * r) @ self.X
        k = self.factor
        return (
            k * value + 0.5 * self.ridge * w @ w,
            k * gradient + self.ridge * w,
            k * hessian + self.ridge * np.eye(len(w)),
        )

    def part(self, own, times, **settings):
        """The objective on some of the rows, which stand for all."""
        return replace(
            self,
            X=self.X[own],
            t=self.t[own],
            weight=self.weight[own],
            factor=self.factor * times,
            row_fraction=self.row_fraction / times,
            asked=[],
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
    t = (random.random(n) < 1 / (1 + np.exp(-X @ w))).astype(float)
    return Logistic(X=X, t=t, **settings)


def optimum(objective, start=None):
    """The minimum by Newton's method with exact Hessians, and the Hessian there."""
    w = np.zeros(objective.X.shape[1]) if start is None else start
    for _ in range(60):
        value, gradient, hessian = objective.at(w)
        step, length = -np.linalg.solve(hessian, gradient), 1.0
        while objective.at(w + length * step)[0] > value + 1e-12 * abs(value):
            length /= 2
        w = w + length * step
        if -(gradient @ step) < 1e-24:
            break
    return w, objective.at(w)[2]


def away(w, best):
    """How many standard errors w is from the optimum."""
    d = w - best[0]
    return float(np.sqrt(d @ best[1] @ d))
