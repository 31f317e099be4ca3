"""Fits to labels that may be wrong, rows to try them on, and their likelihood as defined."""

import warnings

import mpmath as mp
import numpy as np
from oracle import doubles, exact
from scipy.optimize import minimize
from scipy.special import expit

from posteriori.likelihood.binary_losses import LogisticLoss
from posteriori.likelihood.softmax import SoftmaxLoss
from posteriori.models.fitting import prepare, read_problem
from posteriori.models.label_noise import (
    read_label_noise,
    solver_of_noise,
    wrong_label_probability,
)
from posteriori.models.separation import SeparationSearch
from posteriori.rows.in_memory import read_rows
from posteriori.rows.threads import one_blas_thread
from posteriori.solve.newton import newton
from posteriori.solve.objective import Status


def prepared_rows(X, y, weight=None, prior=None):
    """What a fit without noise would start from."""
    rows = read_rows(X, y, weight)
    K = len(rows.classes)
    loss = LogisticLoss() if K == 2 else SoftmaxLoss()
    return prepare(read_problem(rows, loss, "error", True, prior, 1e-4)), K


class Fit:
    """A fit with label noise: Θ (K, q) in the user's units, and what follows from it."""

    def __init__(self, X, y, label_noise, weight=None, prior=None):
        with one_blas_thread():
            prepared, K = prepared_rows(X, y, weight, prior)
            noise = read_label_noise(label_noise, K)
            noisy = noise.start(prepared)
            self.solution = solver_of_noise(100)(noisy, SeparationSearch()).solution
            assert self.solution.status in (Status.CONVERGED, Status.DIVERGED)
            self.objective, self.w = noisy.objective, self.solution.parameters
            self.inference, self.rate, self.rate_error, self.loss = noise.conclude(
                self.objective, self.solution
            )
        standard = self.objective.standard
        self.theta = standard.to_user(self.objective.coordinates.expand(self.w))

    @property
    def errors(self):
        return self.inference.standard_errors()

    def wrong(self, X, y):
        """The probability that each label is wrong."""
        activation = self.theta[:, 0] + X @ self.theta[:, 1:].T
        classes = np.arange(max(activation.shape[1], 2))
        return wrong_label_probability(self.loss, activation, y, classes)


def clean_fit(X, y):
    prepared, _ = prepared_rows(X, y)
    found = newton(prepared.levels, prepared.start).parameters
    return prepared.objective.standard.to_user(prepared.objective.coordinates.expand(found))


SLOPES, LEVEL = np.array([1.5, -1.0, 0.0]), 0.4


def labels_with_flips(n, rates, seed, slopes=SLOPES):
    """Rows of the logistic model, and labels of which shares `rates` of each class are wrong."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, len(slopes)))
    true = (random.logistic(size=n) < X @ slopes + LEVEL).astype(int)
    wrong = random.random(n) < np.take(rates, true)
    return X, np.where(wrong, 1 - true, true), wrong


def minus_log_likelihood(theta, rates, X, y):
    """-ln p(t|w, ε) of two classes, θ (3,) or so with the intercept first."""
    s = expit(theta[0] + X @ theta[1:])
    p = (1 - rates[1]) * s + rates[0] * (1 - s)
    with np.errstate(divide="ignore"):
        return -np.log(np.where(y == 1, p, 1 - p)).sum()


def exact_minus_log_likelihood(theta, rates, X, y):
    total = mp.mpf(0)
    for x, label in zip(X, y, strict=True):
        s = 1 / (1 + mp.exp(-(theta[0] + x @ theta[1:])))
        p = (1 - rates[1]) * s + rates[0] * (1 - s)
        total -= mp.log(p if label else 1 - p)
    return total


def derivatives(f, v):
    """Gradient and Hessian of f by central differences at 50 digits."""
    h, size = mp.mpf(10) ** -12, len(v)
    steps = [h * np.array([int(i == j) for j in range(size)], dtype=object) for i in range(size)]
    gradient = mp.matrix([(f(v + s) - f(v - s)) / (2 * h) for s in steps])
    hessian = mp.matrix(size)
    for i, a in enumerate(steps):
        for j, b in enumerate(steps):
            corners = f(v + a + b) - f(v + a - b) - f(v - a + b) + f(v - a - b)
            hessian[i, j] = corners / (4 * h**2)
    return gradient, hessian


def polished(f, v):
    """The optimum near v by Newton's method at 50 digits, and the Hessian there."""
    v = exact(v)
    for _ in range(3):
        gradient, hessian = derivatives(f, v)
        v = v - np.array(list(mp.lu_solve(hessian, gradient)), dtype=object)
    return doubles(v), doubles(np.array(hessian.tolist()))


def best_of_many(objective, size, seed, tries=25):
    """The least value that a quasi-Newton method finds from many random starts."""
    random = np.random.default_rng(seed)
    starts = random.standard_normal((tries, size)) * random.choice([0.5, 2.0, 6.0], (tries, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        found = [minimize(objective, start) for start in starts]
    return min(found, key=lambda result: result.fun)
