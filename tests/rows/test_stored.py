"""Blocks come back from disk as they were."""

import errno
import gc
import os
import tempfile

import numpy as np
import pytest
from scipy import sparse

from posteriori.errors import SourceError
from posteriori.rows.block import Block, Mixed
from posteriori.rows.stored import Stored

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(37, 3))
CODES = RANDOM.integers(4, size=(37, 3)).astype(np.int32)
Y = RANDOM.integers(2, size=37)
WEIGHT = RANDOM.uniform(size=37)
FEATURES = {
    "dense": X,
    "column by column": np.asfortranarray(X),
    "of no rows": X[:0],
    "of no columns": X[:, :0],
    "mixed": Mixed(X, CODES),
    "mixed, column by column": Mixed(np.asfortranarray(X), np.asfortranarray(CODES)),
    "sparse": sparse.csr_array(np.where(X > 0, X, 0.0)),
}


def _parts(X):
    if isinstance(X, Mixed):
        return X.numeric, X.codes
    return (X,) if isinstance(X, np.ndarray) else (X.data, X.indices, X.indptr)


@pytest.mark.parametrize("X", FEATURES.values(), ids=FEATURES)
@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_a_block_comes_back_as_it_was(X, weight):
    n = X.shape[0]
    block = Block(X, Y[:n], None if weight is None else weight[:n], 5)
    stored = Stored(None)
    stored.put(3, block)
    stored.put(0, Block(np.ones((2, 2)), None, None, 0))
    found = stored.get(3)
    del stored
    gc.collect()
    assert found.start == 5
    assert type(found.X) is type(X)
    assert found.X.shape == X.shape
    for ours, theirs in zip(_parts(found.X), _parts(X), strict=True):
        np.testing.assert_array_equal(ours, theirs)
        assert ours.flags.aligned
    np.testing.assert_array_equal(found.y, block.y)
    assert (found.weight is None) == (weight is None)
    if weight is not None:
        np.testing.assert_array_equal(found.weight, block.weight)


def _full(*args, **given):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("what", [(os, "pwrite"), (tempfile, "TemporaryFile")])
def test_a_disk_without_room_is_named(what, tmp_path, monkeypatch):
    monkeypatch.setattr(*what, _full)
    with pytest.raises(SourceError, match=rf"{tmp_path}: .*No space left") as error:
        Stored(str(tmp_path)).put(0, Block(X, Y, None, 0))
    assert "shuffle=False" in str(error.value)
    assert "cache=" in str(error.value)
