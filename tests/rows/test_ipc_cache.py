"""Decoded batches in one memory-mapped file: written once, private, gone with the source."""

import gc
import os
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sources import PLAIN, N, parquet

from posteriori import GaussianClassifier, LogisticRegression, scan
from posteriori.errors import SourceError
from posteriori.rows import files
from posteriori.rows.files import IpcFile


@pytest.fixture
def source(tmp_path):
    levels = pd.Categorical(PLAIN["colour"], ["red", "green", "blue"])
    return parquet(tmp_path, [PLAIN.assign(colour=levels)])


def test_batches_come_back_as_they_were():
    file = IpcFile(None)
    batches = [
        pa.record_batch({"x": [1.0, None], "level": ["a", "b"]}),
        pa.record_batch({"x": [3.0], "level": ["c"]}),
    ]
    for start, where, batch in [(2, "two", batches[1]), (0, "one", batches[0])]:
        file.put(start, where, batch)
    file.finish()
    found = [(start, where, batch.to_pydict()) for start, where, batch in file.batches()]
    assert found == [
        (0, "one", {"x": [1.0, None], "level": ["a", "b"]}),
        (2, "two", {"x": [3.0], "level": ["c"]}),
    ]
    assert [start for start, *_ in file.batches(2, 3)] == [2]


@pytest.mark.parametrize("cache", [True, False])
def test_files_are_decoded_once_with_a_cache(source, monkeypatch, cache):
    decoded, read = [], pq.ParquetFile.iter_batches

    def counted(self, n_rows, groups, columns, **options):
        decoded.append(len(columns))
        return read(self, n_rows, groups, columns, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", counted)
    rows = scan(source, "y", cache=cache)
    first = LogisticRegression(tol=1e-8).fit(rows)
    assert decoded.count(5) == (1 if cache else rows.log.passes - 1)
    plain = LogisticRegression(tol=1e-8).fit(scan(source, "y", cache=not cache))
    np.testing.assert_array_equal(first.coef_, plain.coef_)
    assert first.schema_.columns[3].levels == ("red", "green", "blue")


def test_a_model_of_one_pass_writes_no_cache(source):
    rows = scan(source, "y")
    GaussianClassifier().fit(rows)
    assert rows.log.passes == 1
    assert rows.cache.file is None


def test_a_source_that_does_not_fit_is_read_in_each_pass(source, monkeypatch, tmp_path):
    expected = LogisticRegression().fit(scan(source, "y"))
    monkeypatch.setattr(files, "DISK_SHARE", 1e-9)
    rows = scan(source, "y")
    found = LogisticRegression().fit(rows)
    assert rows.cache.file is None
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    with pytest.raises(SourceError, match=r"cannot be cached in .*: they take more than"):
        LogisticRegression().fit(scan(source, "y", cache=tmp_path))


def test_the_file_is_private_and_gone_with_the_rows(source, tmp_path):
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("open files are listed by Linux alone")

    def open_files():
        links = [Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd")]
        return [p for p in links if p.is_symlink() and str(tmp_path / "kept") in os.readlink(p)]

    (tmp_path / "kept").mkdir()
    rows = scan(source, "y", cache=tmp_path / "kept")
    LogisticRegression().fit(rows)
    assert open_files()
    assert all(os.stat(found).st_mode & 0o077 == 0 for found in open_files())
    assert list((tmp_path / "kept").iterdir()) == []
    del rows
    gc.collect()
    assert open_files() == []


def test_rows_that_are_pickled_are_read_again(source):
    rows = scan(source, "y")
    found = LogisticRegression().fit(rows)
    again = pickle.loads(pickle.dumps(rows))
    assert again.cache.file is None
    np.testing.assert_array_equal(LogisticRegression().fit(again).coef_, found.coef_)


def test_an_interrupted_pass_leaves_no_half_written_cache(source):
    rows = scan(source, "y").discover()

    def kernel(block):
        if block.start:
            raise KeyboardInterrupt
        return 1

    with pytest.raises(KeyboardInterrupt, match="Stopped in pass 2"), rows.fitting():
        rows.map_sum(kernel)
    assert rows.cache.file is None
    assert rows.map_sum(lambda block: block.X.shape[0]) == N
    assert rows.cache.file is not None
