"""The forms in which a contender may want its X; the change of form is never timed."""

from typing import Any

import numpy as np
from scipy import sparse


def as_made(X: Any) -> Any:
    """X itself."""
    return X


def by_column(X: np.ndarray) -> np.ndarray:
    """X with its columns contiguous in memory."""
    return np.asfortranarray(X)


def with_constant(X: np.ndarray) -> np.ndarray:
    """X behind a column of ones, for a rival that adds no intercept."""
    return np.column_stack([np.ones(len(X)), X])


def one_hot(frame: Any) -> sparse.csr_matrix:
    """The columns in order; a factor becomes one column for each level but the first."""
    return sparse.hstack([_columns_of(frame[name]) for name in frame], format="csr")


def _columns_of(column: Any) -> sparse.csr_matrix:
    if column.dtype.name != "category":
        return sparse.csr_matrix(column.to_numpy()[:, None])
    codes = column.cat.codes.to_numpy()
    rows = np.flatnonzero(codes > 0)
    shape = (codes.size, column.cat.categories.size - 1)
    return sparse.csr_matrix((np.ones(rows.size), (rows, codes[rows] - 1)), shape=shape)
