"""Rows that come out of their class: for Gaussian and naive Bayes classifiers.

n rows, d columns, K classes. Filled chunk by chunk, so that making the data leaves no large
temporaries behind.
"""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import load_iris

SEED = 20
CLASSES = 5
CHUNK = 50_000

Data = tuple[Any, np.ndarray]


def correlated(rows: int, columns: int) -> Data:
    """Gaussian classes with means of their own and one mixing matrix each."""
    rng = np.random.default_rng(SEED)
    y = rng.integers(0, CLASSES, rows)
    means = rng.normal(scale=1.5 / np.sqrt(columns), size=(CLASSES, columns))
    common = np.eye(columns) + rng.normal(scale=0.5 / np.sqrt(columns), size=(columns, columns))
    own = rng.normal(scale=0.1 / np.sqrt(columns), size=(CLASSES, columns, columns))
    X = np.empty((rows, columns))
    for start in range(0, rows, CHUNK):
        part = slice(start, min(start + CHUNK, rows))
        noise = rng.normal(size=(part.stop - start, columns))
        for k in range(CLASSES):
            of_k = y[part] == k
            X[part][of_k] = means[k] + noise[of_k] @ (common + own[k])
    return X, y


def bits(rows: int, columns: int) -> Data:
    """Zeros and ones, dense, whose rates differ from class to class."""
    rng = np.random.default_rng(SEED)
    y = rng.integers(0, CLASSES, rows)
    rates = np.clip(0.3 + 0.08 * rng.normal(size=(CLASSES, columns)), 0.02, 0.98)
    X = np.empty((rows, columns))
    for start in range(0, rows, CHUNK):
        part = slice(start, min(start + CHUNK, rows))
        X[part] = rng.random((part.stop - start, columns)) < rates[y[part]]
    return X, y


def rare_bits(rows: int, columns: int, density: float = 0.01) -> Data:
    """Zeros and ones, one in a hundred set, as a CSR matrix: words in documents."""
    rng = np.random.default_rng(SEED)
    y = rng.integers(0, CLASSES, rows)
    popularity = rng.gamma(0.5, size=(CLASSES, columns)) + 0.2
    parts = []
    for k in range(CLASSES):
        n = int(np.sum(y == k))
        rates = popularity[k] / popularity[k].sum()
        per_row = rng.poisson(density * columns, n)
        words = rng.choice(columns, per_row.sum(), p=rates)
        documents = np.repeat(np.arange(n), per_row)
        part = sparse.csr_matrix((np.ones(words.size), (documents, words)), shape=(n, columns))
        part.data[:] = 1.0
        parts.append(part)
    order = np.argsort(np.argsort(y, kind="stable"))
    return sparse.vstack(parts, format="csr")[order], y


def iris(rows: int) -> Data:
    """150 x 4, whatever `rows` says."""
    return load_iris(return_X_y=True)
