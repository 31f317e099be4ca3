"""Statistics of factors whose levels differ from one set of rows to the other.

In treatment coding the indicators of all levels are a linear function of the design columns: that
of the reference is one less the others. So a statistic under some levels is known under more.
"""

from dataclasses import replace

import numpy as np
from scipy.linalg import block_diag

from posteriori.rows.schema import Column, Schema, levels_of_both
from posteriori.statistics.statistic import same_columns
from posteriori.typing import Array


def union_of_columns(a: Schema, b: Schema) -> Schema:
    """The columns of both, with the levels of both; an error if they differ in more than levels."""
    if a is b or a == b:
        return a
    same_columns(_without_levels(a), _without_levels(b))
    pairs = zip(a.columns, b.columns, strict=True)
    columns = tuple(replace(x, levels=levels_of_both(x.levels, y.levels)) for x, y in pairs)
    return replace(a, columns=columns)


def _without_levels(schema: Schema) -> Schema:
    return replace(schema, columns=tuple(replace(c, levels=()) for c in schema.columns))


def recoding(old: Schema, new: Schema) -> tuple[Array, Array]:
    """M and c with φ_new = M φ_old + c, for design columns without intercept.

    >>> old = Schema((Column("s", "categorical", ("b", "c")),), named=True)
    >>> new = Schema((Column("s", "categorical", ("a", "b", "c")),), named=True)
    >>> M, c = recoding(old, new)
    >>> M.tolist(), c.tolist()
    ([[-1.0], [1.0]], [1.0, 0.0])
    """
    parts = [_recode(old.columns[j], new.columns[j]) for j in old.categorical]
    p = len(old.numeric)
    offset = np.concatenate([np.zeros(p), *(offset for _, offset in parts)])
    return block_diag(np.eye(p), *(matrix for matrix, _ in parts)), offset


def _recode(old: Column, new: Column) -> tuple[Array, Array]:
    indicators, offset = np.zeros((len(new.levels), len(old.levels) - 1)), np.zeros(len(new.levels))
    for i, level in enumerate(old.levels):
        place = new.levels.index(level)
        if i == 0:
            indicators[place], offset[place] = -1.0, 1.0
        else:
            indicators[place, i - 1] = 1.0
    return indicators[1:], offset[1:]
