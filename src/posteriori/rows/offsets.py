"""Numbers that the user adds to the activations."""

from typing import Any

import numpy as np

from posteriori.errors import DataError, ShapeError
from posteriori.rows.labels import as_vector
from posteriori.typing import Array


def read_offset(offset: Any, n_rows: int, n_activations: int) -> Array:
    """Offsets as doubles: (n,), or (n, K) where each class has an activation.

    >>> read_offset([1, 2], 2, 1)
    array([1., 2.])
    """
    values = as_vector(offset)
    wanted = (n_rows,) if n_activations == 1 else (n_rows, n_activations)
    if values.dtype.kind not in "fiub" or values.shape != wanted:
        raise ShapeError(
            f"offset has shape {values.shape} and type {values.dtype}; expected numbers of shape "
            f"{wanted}.",
            "Pass one number a row" + ("." if n_activations == 1 else " and class."),
        )
    values = values.astype(np.float64)
    if not np.isfinite(values).all():
        row = int(np.argmax(~np.isfinite(values.reshape(n_rows, -1)).all(axis=1)))
        raise DataError(f"The offset of row {row} is not finite.", "Pass finite numbers.")
    return values
