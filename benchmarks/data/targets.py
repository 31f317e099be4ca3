"""Targets that come out of their row: for logistic, softmax and probit regression.

n rows, d columns, K classes. All columns have mean zero and variance one, which suits the
solvers that do not scale. Filled chunk by chunk, as in `classes`.
"""

import numpy as np

from benchmarks.data.classes import CHUNK, SEED, Data

SIGNAL = 1.5
"""The standard deviation of an activation."""

INTERCEPT = -0.5


def two_classes(rows: int, columns: int, correlation: float = 0.0) -> Data:
    """A logistic target of Gaussian columns, any two of which have the same correlation."""
    rng = np.random.default_rng(SEED)
    w = _weights(rng, (columns,), correlation)
    X = _columns(rng, rows, columns, correlation)
    return X, draw_bits(rng, X @ w + INTERCEPT)


def many_classes(rows: int, columns: int, classes: int) -> Data:
    """A softmax target of independent Gaussian columns."""
    rng = np.random.default_rng(SEED)
    W = _weights(rng, (columns, classes), correlation=0.0)
    X = _columns(rng, rows, columns, correlation=0.0)
    # The largest of activations with Gumbel noise follows the softmax.
    return X, np.argmax(X @ W + rng.gumbel(size=(rows, classes)), axis=1)


def draw_bits(rng: np.random.Generator, activation: np.ndarray) -> np.ndarray:
    """1 with the logistic probability of the activation, else 0."""
    return (activation > rng.logistic(size=activation.size)).astype(np.int64)


def _weights(rng: np.random.Generator, shape: tuple[int, ...], correlation: float) -> np.ndarray:
    """Weights that give each activation the standard deviation `SIGNAL`."""
    w = rng.normal(size=shape)
    variance = correlation * w.sum(axis=0) ** 2 + (1 - correlation) * np.sum(w**2, axis=0)
    return SIGNAL * w / np.sqrt(variance)


def _columns(rng: np.random.Generator, rows: int, columns: int, correlation: float) -> np.ndarray:
    """One common factor plus a part of its own in every column."""
    X = np.empty((rows, columns))
    for start in range(0, rows, CHUNK):
        part = X[start : start + CHUNK]
        rng.standard_normal(out=part)
        part *= np.sqrt(1 - correlation)
        part += np.sqrt(correlation) * rng.standard_normal((len(part), 1))
    return X
