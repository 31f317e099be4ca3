"""Rows one after the other: standardised, in their order or a random one, from any source."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from rows import sources
from scipy import sparse

from posteriori import scan
from posteriori.design.columns import Columns
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


def stream_of(rows, unit=1.0):
    columns = Columns(rows.schema)
    m = len(columns.names)
    return RowStream(rows, Standard(CENTRE[:m], np.full(m, 2.0), True), unit)


def whole(stream, seed=None):
    random = None if seed is None else np.random.default_rng(seed)
    return tuple(map(np.concatenate, zip(*stream.segments(random), strict=True)))


@pytest.fixture(params=[0, 2**24], ids=["read in every epoch", "laid out"])
def laid_out(request, monkeypatch):
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
    "frame": lambda folder: read_rows(FRAME[list("abc")], Y, WEIGHT),
    "Parquet": scanned(sources.parquet),
    "CSV": scanned(sources.csv),
    "IPC": scanned(sources.ipc),
    "Dask": scanned(sources.delayed),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_rows_come_standardised_in_their_order_or_a_random_one(source, laid_out, tmp_path):
    stream, kept = stream_of(source(tmp_path), unit=2.0), WEIGHT > 0
    rows, codes, weight = whole(stream)
    assert_array_equal(codes, Y[kept])
    assert_array_equal(weight, WEIGHT[kept] / 2)
    assert_allclose(rows[:, 1:], (X[kept] - CENTRE) / 2.0, rtol=1e-12, atol=1e-14)
    assert_array_equal(rows[:, 0], 1.0)
    shuffled = [whole(stream, seed) for seed in (0, 0, 1)]
    for a, b in zip(shuffled[0], shuffled[1], strict=True):
        assert_array_equal(a, b)
    for values, *_ in shuffled:
        assert not np.array_equal(values, rows)
        assert_array_equal(np.sort(values[:, 1]), np.sort(rows[:, 1]))
    assert not np.array_equal(shuffled[0][0], shuffled[2][0])
    if laid_out or not hasattr(stream.rows, "log"):
        order = np.random.default_rng(0).permutation(kept.sum())
        assert_array_equal(shuffled[0][0], rows[order])


@pytest.mark.parametrize("source", ["Parquet", "Dask"])
def test_a_source_is_read_in_a_random_order_of_batches(source, tmp_path):
    rows = SOURCES[source](tmp_path)
    sizes = [batch.n_rows for batch in rows.batches()]
    assert len(sizes) > 2
    passes = rows.log.passes
    starts = [batch.start for batch in rows.batches(np.random.default_rng(0))]
    assert starts != sorted(starts)
    assert sorted(starts) == np.cumsum([0, *sizes[:-1]]).tolist()
    assert rows.log.passes == passes + 1
    assert rows.progress.now.is_last


def test_rows_are_read_once_where_they_are_few(laid_out, tmp_path):
    rows = SOURCES["Parquet"](tmp_path)
    stream = stream_of(rows, unit=None)
    passes = rows.log.passes
    for _ in range(3):
        whole(stream)
    assert rows.log.passes - passes == (1 if laid_out else 4)  # and one for the mean weight


def test_segments_are_about_as_large_as_asked_for(laid_out):
    assert [len(part.codes) for part in stream_of(read_rows(X, Y)).segments()] == [64] * 6 + [16]


def test_soft_rows_become_one_row_for_each_class_that_shares_them(laid_out):
    soft = np.array([[0.25, 0.75], [1.0, 0.0], [0.0, 1.0]])
    stream = stream_of(read_rows(X[:3], soft, [2.0, 1.0, 1.0]), unit=None)
    rows, codes, weight = whole(stream)
    assert codes.tolist() == [0, 1, 0, 1]
    assert stream.weight_unit == 1.0
    assert weight.tolist() == [0.5, 1.5, 1.0, 1.0]
    assert_allclose(rows[:, 1:], (X[[0, 0, 1, 2]] - CENTRE) / 2.0)


def test_weights_are_relative_to_their_mean_unless_a_unit_is_given(laid_out):
    stream = stream_of(read_rows(X, Y, 1.0 + Y), unit=None)
    assert stream.weight_unit == pytest.approx(1.0 + Y.mean())
    assert_allclose(whole(stream)[2], (1.0 + Y) / (1.0 + Y.mean()))
    assert_allclose(whole(replace(stream, unit=0.5))[2], 2.0 + 2.0 * Y)


@pytest.mark.parametrize(
    ("value", "error"), [(np.nan, MissingValueError), (np.inf, InfiniteValueError)]
)
def test_entries_that_are_no_numbers_are_named(value, error, laid_out):
    spoilt = X.copy()
    spoilt[7, 1] = value
    with pytest.raises(error, match="row 7, column 1"):
        whole(stream_of(read_rows(spoilt, Y)), seed=0)
