"""Rows one after the other: standardised, in their order or a random one, from any source."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from rows import sources
from scipy import sparse

from posteriori import scan
from posteriori.design.standardise import Standard
from posteriori.errors import InfiniteValueError, MissingValueError
from posteriori.rows import files
from posteriori.rows.in_memory import read_rows
from posteriori.statistics import row_stream
from posteriori.statistics.row_stream import RowStream

RANDOM = np.random.default_rng(3)
N = 400
X = RANDOM.normal(size=(N, 3)) * [1.0, 10.0, 0.1] + [0.0, 5.0, 0.0]
Y = RANDOM.integers(3, size=N)
WEIGHT = RANDOM.choice([0.0, 0.5, 2.0], size=N)
FRAME = pd.DataFrame(X, columns=list("abc")).assign(y=Y, w=WEIGHT)
CENTRE = np.array([1.0, 2.0, 3.0])


def stream_of(rows, **settings):
    return RowStream(rows, Standard(CENTRE, np.full(3, 2.0), True), **settings)


def whole(stream, seed=None):
    random = None if seed is None else np.random.default_rng(seed)
    return tuple(map(np.concatenate, zip(*stream.segments(random), strict=True)))


@pytest.fixture(params=[0, 2**24], ids=["read in every epoch", "read once"])
def read_once(request, monkeypatch):
    monkeypatch.setattr(row_stream, "LAID_OUT", request.param)
    monkeypatch.setattr(row_stream, "_SEGMENT", 40)
    monkeypatch.setattr(files, "BATCH_ENTRIES", 5 * 70)
    return request.param > 0


def scanned(kind):
    def rows(folder):
        source = kind(folder, sources.parts(FRAME, [0, 0, 150, 151, N]))
        return scan(source, "y", weight="w").discover()

    return rows


SOURCES = {
    "array": lambda folder: read_rows(X, Y, WEIGHT),
    "sparse": lambda folder: read_rows(sparse.csr_array(X), Y, WEIGHT),
    "Parquet": scanned(sources.parquet),
    "Dask": scanned(sources.delayed),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_rows_come_standardised_in_their_order_or_a_random_one(source, read_once, tmp_path):
    stream, kept = stream_of(source(tmp_path)), WEIGHT > 0
    rows, codes, weight = whole(stream)
    assert_array_equal(codes, Y[kept])
    assert_array_equal(weight, WEIGHT[kept])
    assert stream.mean(lambda segment: segment.weight) == pytest.approx(WEIGHT[kept].mean())
    assert_allclose(rows[:, 1:], (X[kept] - CENTRE) / 2.0, rtol=1e-12, atol=1e-14)
    assert_array_equal(rows[:, 0], 1.0)
    shuffled = [whole(stream, seed)[0] for seed in (0, 0, 1)]
    assert_array_equal(shuffled[0], shuffled[1])
    assert not np.array_equal(shuffled[0], shuffled[2])
    for values in shuffled:
        assert not np.array_equal(values, rows)
        assert_array_equal(np.sort(values[:, 1]), np.sort(rows[:, 1]))


def test_a_source_is_read_in_a_random_order_of_batches_and_once_if_it_is_small(read_once, tmp_path):
    rows = SOURCES["Parquet"](tmp_path)
    sizes = [batch.n_rows for batch in rows.batches()]
    starts = [batch.start for batch in rows.batches(np.random.default_rng(0))]
    assert starts != sorted(starts)
    assert sorted(starts) == np.cumsum([0, *sizes[:-1]]).tolist()
    stream, passes = stream_of(rows), rows.log.passes
    for _ in range(3):
        whole(stream)
    assert rows.log.passes - passes == (1 if read_once else 3)


def test_soft_rows_become_one_row_for_each_class_that_shares_them(read_once):
    soft = np.array([[0.25, 0.75], [1.0, 0.0], [0.0, 1.0]])
    rows, codes, weight = whole(stream_of(read_rows(X[:3], soft, [2.0, 1.0, 1.0])))
    assert codes.tolist() == [0, 1, 0, 1]
    assert weight.tolist() == [0.5, 1.5, 1.0, 1.0]
    assert_allclose(rows[:, 1:], (X[[0, 0, 1, 2]] - CENTRE) / 2.0)


@pytest.mark.parametrize(
    ("value", "error"), [(np.nan, MissingValueError), (np.inf, InfiniteValueError)]
)
def test_entries_that_are_no_numbers_are_named(value, error, read_once):
    spoilt = X.copy()
    spoilt[7, 1] = value
    with pytest.raises(error, match="row 7, column 1"):
        whole(stream_of(read_rows(spoilt, Y)), seed=0)
