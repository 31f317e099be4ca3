"""Missing and infinite entries: errors that say where they are."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from scipy import sparse

from posteriori.errors import InfiniteValueError, MissingValueError
from posteriori.rows.block import MISSING, Block, Mixed
from posteriori.rows.schema import Schema
from posteriori.typing import Array, Codes

_MOST_COLUMNS = 50
"""Columns with missing entries that are listed in an error."""


def check_finite(block: Block, schema: Schema, *, missing: bool = False) -> None:
    """An error for entries that are infinite, or missing where not `missing`.

    Kernels call this when a sum is NaN or infinite, so that clean data pay nothing.
    """
    rows, columns = _where(np.isinf, block, schema)
    if len(rows):
        where = schema.describe(int(columns[0]))
        raise InfiniteValueError(
            f"Input X contains infinity (first in row {{row}}, {where}).",
            "Replace it by a finite number, or by NaN if it is unknown.",
            block.row(int(rows[0])),
        )
    if not missing:
        check_missing([block], schema)


def check_missing(blocks: Iterable[Block], schema: Schema) -> None:
    """An error that lists the columns with missing entries, counted in all blocks."""
    count, first = np.zeros(len(schema), dtype=np.intp), None
    for block in blocks:
        rows, columns = _where(np.isnan, block, schema)
        if isinstance(block.X, Mixed):
            lost, which = np.nonzero(block.X.codes == MISSING)
            rows = np.append(rows, lost)
            columns = np.append(columns, np.array(schema.categorical, dtype=np.intp)[which])
        count += np.bincount(columns, minlength=len(schema))
        if first is None and len(rows):
            row, column = min(zip(rows.tolist(), columns.tolist(), strict=True))
            first = block.row(row), schema.describe(column)
    if first is None:
        return
    row, where = first
    found = np.flatnonzero(count)
    each = [f"{count[j]:,} in {schema.describe(j)}" for j in found[:_MOST_COLUMNS]]
    more = f" and more in {len(found) - _MOST_COLUMNS} others" if found[_MOST_COLUMNS:].size else ""
    remedy = (
        "or use a model that accepts missing values: GaussianClassifier or NaiveBayes."
        if set(found).difference(schema.categorical)
        else "give them a level of their own such as 'missing', or use NaiveBayes."
    )
    raise MissingValueError(
        f"Input X contains NaN (first in row {{row}}, {where}). Missing entries: "
        f"{', '.join(each)}{more}.",
        f"Fill them in, drop these rows or columns, {remedy}",
        row,
    )


def _where(is_bad: Callable[[Array], Any], block: Block, schema: Schema) -> tuple[Codes, Codes]:
    """Rows and columns of the bad numbers, row by row."""
    X = block.X
    if isinstance(X, sparse.csr_array):
        places = np.flatnonzero(is_bad(X.data))
        rows = np.searchsorted(X.indptr, places, side="right") - 1
        return rows, X.indices[places].astype(np.intp)
    rows, columns = np.nonzero(is_bad(X.numeric if isinstance(X, Mixed) else X))
    return rows, np.array(schema.numeric, dtype=np.intp)[columns]
