"""Class labels as the losses want them."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from posteriori.rows.block import Block
from posteriori.rows.rows import Rows
from posteriori.rows.source import FitRows
from posteriori.statistics.local_quadratic import Target
from posteriori.typing import Array

Code = Callable[[Any], Array]


def second_of_two(y: Any) -> Array:
    """How much each row belongs to the second of two classes (n,)."""
    return cast(Array, y[:, 1] if y.ndim == 2 else y.astype(np.float64))


def signs(y: Any) -> Array:
    """-1 for the first class and +1 for the second (n,)."""
    return cast(Array, 2.0 * y - 1.0)


def of_many(n_classes: int) -> Code:
    """How much each row belongs to each class (n, K), class by class in memory."""
    unit = np.eye(n_classes)

    def code(y: Any) -> Array:
        return np.asfortranarray(y) if y.ndim == 2 else unit.take(y, axis=1).T

    return code


def coded(rows: Rows, code: Code, once: bool) -> tuple[Rows, Target]:
    """The rows, and how a block of them gives the target; `once` codes all rows beforehand."""
    if once:
        return cast(FitRows, rows).recoded(code), _as_it_is

    def target(block: Block) -> Array:
        return code(block.y)

    return rows, target


def _as_it_is(block: Block) -> Array:
    return cast(Array, block.y)
