"""Class membership as matrices of weights."""

from typing import cast

import numpy as np
from scipy import sparse

from posteriori.rows.block import Block
from posteriori.typing import Array, Codes

_DENSE_CLASSES = 64


def is_soft(block: Block) -> bool:
    """Whether each row has a distribution over the classes rather than one class."""
    return cast(Array, block.y).ndim == 2


def weights_of(block: Block) -> Array:
    """The weight of each row, ones where none were given."""
    if block.weight is not None:
        return block.weight
    return np.ones(len(cast(Array, block.y)))


def membership(block: Block, n_classes: int) -> Array | sparse.csr_array:
    """Weight of each row in each class (n, K), sparse where there are many classes."""
    if is_soft(block):
        soft = cast(Array, block.y)
        return soft if block.weight is None else soft * block.weight[:, None]
    codes = cast(Codes, block.y)
    if n_classes <= _DENSE_CLASSES:
        hot = np.eye(n_classes).take(codes, axis=0)
        if block.weight is not None:
            hot *= block.weight[:, None]
        return hot
    places = np.arange(len(codes) + 1)
    return sparse.csr_array((weights_of(block), codes, places), shape=(len(codes), n_classes))


def class_counts(block: Block, n_classes: int) -> Array:
    """Total weight of each class (K,)."""
    if is_soft(block):
        return cast(Array, membership(block, n_classes)).sum(0)
    return np.bincount(cast(Codes, block.y), block.weight, minlength=n_classes).astype(np.float64)


def dense_membership(block: Block, n_classes: int) -> Array:
    """The same matrix, dense whatever the number of classes."""
    member = membership(block, n_classes)
    return member if isinstance(member, np.ndarray) else cast(Array, member.toarray())
