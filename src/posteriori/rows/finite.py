"""Naming the entry that is missing or infinite."""

import numpy as np
from scipy import sparse

from posteriori.errors import InfiniteValueError, MissingValueError
from posteriori.rows.block import MISSING, Block, Mixed
from posteriori.rows.schema import Schema
from posteriori.typing import Array, Codes


def check_finite(block: Block, schema: Schema, *, missing: bool = False) -> None:
    """An error that names the first bad entry: infinite, or missing where not `missing`.

    Kernels call this when a sum came out as NaN or infinite, so that clean data pay nothing.
    """
    rows, columns, values = _numbers(block, schema)
    _report(np.isinf(values), rows, columns, block, schema, InfiniteValueError)
    if missing:
        return
    gaps = [(int(rows[i]), int(columns[i])) for i in np.flatnonzero(np.isnan(values))[:1]]
    if isinstance(block.X, Mixed):
        lost = np.argwhere(block.X.codes == MISSING)
        gaps += [(int(i), schema.categorical[q]) for i, q in lost[:1]]
    if gaps:
        row, column = min(gaps)
        _raise(MissingValueError, block.row(row), column, schema)


def _numbers(block: Block, schema: Schema) -> tuple[Codes, Codes, Array]:
    """Row, column and value of each stored number, row by row."""
    X = block.X
    if isinstance(X, sparse.csr_array):
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        return rows, X.indices.astype(np.intp), X.data
    dense = X.numeric if isinstance(X, Mixed) else X
    positions = np.array(schema.numeric, dtype=np.intp)
    rows, columns = np.indices(dense.shape)
    return rows.ravel(), positions[columns.ravel()], dense.ravel()


def _report(
    bad: np.ndarray[tuple[int, ...], np.dtype[np.bool_]],
    rows: Codes,
    columns: Codes,
    block: Block,
    schema: Schema,
    error: type[MissingValueError] | type[InfiniteValueError],
) -> None:
    if bad.any():
        first = int(bad.argmax())
        _raise(error, block.row(int(rows[first])), int(columns[first]), schema)


def _raise(
    error: type[MissingValueError] | type[InfiniteValueError], row: int, column: int, schema: Schema
) -> None:
    where = f"(first in row {row}, {schema.describe(column)})"
    if error is MissingValueError:
        if schema.columns[column].kind == "categorical":
            raise MissingValueError(
                f"A level is missing {where}.",
                "Give missing entries a level of their own, such as 'missing', or use NaiveBayes, "
                "which leaves them out.",
            )
        raise MissingValueError(
            f"Input X contains NaN {where}.",
            "This model needs every entry: fill in or drop the missing ones, or use a model that "
            "can leave them out, GaussianClassifier or NaiveBayes.",
        )
    raise InfiniteValueError(
        f"Input X contains infinity {where}.", "Replace it by a number, or by NaN if unknown."
    )
