"""Small real data sets of two classes, that come with scikit-learn."""

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from benchmarks.data.classes import Data


def small_data_sets() -> dict[str, Data]:
    """Ten of them, one of which can be separated."""
    X, y = load_breast_cancer(return_X_y=True)
    found = {
        f"tumours, columns {low}-{low + 4}": (X[:, low : low + 5], y) for low in range(0, 30, 5)
    }
    X, y = load_iris(return_X_y=True)
    found["versicolor and virginica"] = _pair(X, y, 1, 2)
    found["setosa and versicolor, separated"] = _pair(X, y, 0, 1)
    X, y = load_wine(return_X_y=True)
    found["wines 0 and 1"] = _pair(X, y, 0, 1)
    X, y = load_digits(return_X_y=True)
    found["digits 3 and 8"] = _pair(X[:, 26:38], y, 3, 8)
    return found


def _pair(X: np.ndarray, y: np.ndarray, first: int, second: int) -> Data:
    rows = (y == first) | (y == second)
    X = X[rows]
    return X[:, X.std(axis=0) > 0], (y[rows] == second).astype(int)
