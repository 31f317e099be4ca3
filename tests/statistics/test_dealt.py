"""Rows dealt out on disk or to workers are visited as they would be in memory."""

import dask
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from posteriori import scan
from posteriori.design.columns import Columns
from posteriori.rows import dask as rows_in_dask
from posteriori.rows.in_memory import read_rows
from posteriori.rows.kept import Room
from posteriori.statistics import bins, walks
from posteriori.statistics.bins import Shuffle, bins_of, n_bins
from posteriori.statistics.collect import Collected
from posteriori.statistics.coordinates import Coordinates
from posteriori.statistics.dealt import Dealt
from posteriori.statistics.walks import visits_of

RANDOM = np.random.default_rng(4)
N = 2000
FRAME = pd.DataFrame(
    {
        "a": RANDOM.normal(size=N),
        "b": RANDOM.normal(size=N) * 100,
        "f": np.array(["u", "v", "w"])[RANDOM.integers(3, size=N)],
        "y": np.array(["no", "so", "yes"])[RANDOM.integers(3, size=N)],
        "w": RANDOM.integers(1, 4, N).astype(float),
    }
)


def _coordinates(rows):
    m = sum(1 if column.kind == "numeric" else 2 for column in rows.schema.columns)
    centre, scale = np.linspace(0, 1, m), np.linspace(1, 2, m)
    return Coordinates(Columns(rows.schema), True, centre, scale, True, False, np.ones(m))


def _in_memory(frame, columns):
    rows = read_rows(frame[columns], frame["y"], frame["w"])
    return visits_of(rows, _coordinates(rows), shuffled=True)


def _on_disk(frame, columns, folder, monkeypatch):
    third = len(frame) // 3
    for i, part in enumerate([frame[:third], frame[third:]]):
        pq.write_table(pa.Table.from_pandas(part, preserve_index=False), folder / f"{i}.parquet")
    rows = scan(folder, "y", weight="w", columns=columns)
    return visits_of(rows, _coordinates(rows), shuffled=True)


def _on_workers(frame, columns, folder, monkeypatch):
    """Three workers, none of which has room for half of the rows."""
    third = len(frame) // 3
    chunks = [dask.delayed(part) for part in (frame[:third], frame[third:third], frame[third:])]
    rows = scan(chunks, "y", weight="w", columns=columns)
    count = n_bins(len(frame), len(columns))
    needed = walks._needed(8 * len(frame) * len(columns) * -(-count // 3) // count)
    monkeypatch.setattr(rows_in_dask, "room_on_workers", lambda: Room("each worker", needed, 3))
    dealt = visits_of(rows, _coordinates(rows), shuffled=True)
    assert len(dealt.bins.held.held) == min(3, len(dealt.sizes))
    return dealt


ELSEWHERE = pytest.mark.parametrize("deal", [_on_disk, _on_workers], ids=["disk", "workers"])


def _all(visits, order=None):
    def step(seen, segments):
        return [*seen, *segments]

    parts = visits.fold(step, [], order)
    return [np.concatenate([part[i] for part in parts]) for i in range(3)]


def _assert_same(ours, theirs):
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)


@pytest.fixture
def small_bins(monkeypatch):
    """Of some 250 rows and 3 columns."""
    monkeypatch.setattr(bins, "BIN_ENTRIES", 750)


@pytest.mark.parametrize(("columns", "count"), [(["a", "b"], 8), (["a", "f"], 8), (["f"], 1)])
@pytest.mark.parametrize("order", [None, Shuffle(1)])
@ELSEWHERE
def test_rows_come_in_the_same_order_as_in_memory(
    deal, columns, count, order, small_bins, tmp_path, monkeypatch
):
    """Of f and the class there are nine different rows, which need one bin."""
    here, there = _in_memory(FRAME, columns), deal(FRAME, columns, tmp_path, monkeypatch)
    assert isinstance(there, Dealt)
    assert len(there.sizes) == count
    assert tuple(there.sizes) == (here.sizes or (len(here),))
    _assert_same(_all(there, order), _all(here, order))


@ELSEWHERE
def test_rows_that_come_often_are_one(deal, small_bins, tmp_path, monkeypatch):
    """Four times as many rows would need four times as many bins."""
    times = np.tile(np.arange(N), 4)
    often = FRAME.iloc[RANDOM.permutation(times)]
    once = FRAME.assign(w=4 * FRAME["w"])
    here = _in_memory(once, ["a", "b"])
    there = deal(often, ["a", "b"], tmp_path, monkeypatch)
    assert n_bins(4 * N, 2) == 4 * len(there.sizes)
    assert sum(there.sizes) == N
    _assert_same(_all(there, Shuffle(2)), _all(here, Shuffle(2)))


@ELSEWHERE
def test_a_row_that_comes_again_and_again_fills_no_bin(deal, small_bins, tmp_path, monkeypatch):
    """Nine of ten rows are the same; in two chunks that makes two of them."""
    same = FRAME.iloc[np.where(RANDOM.uniform(size=N) < 0.9, 0, np.arange(N))]
    joined, largest = Collected.joined, []

    def counted(self):
        found = joined(self)
        largest.append(len(found.y))
        return found

    here = _in_memory(same, ["a", "b"])
    monkeypatch.setattr(Collected, "joined", counted)
    there = deal(same, ["a", "b"], tmp_path, monkeypatch)
    chunks, in_bins = largest[:2], largest[2:]
    assert sum(chunks) == N
    assert max(in_bins) < N // 8
    _assert_same(_all(there, Shuffle(5)), _all(here, Shuffle(5)))


@ELSEWHERE
def test_weights_can_be_multiplied(deal, small_bins, tmp_path, monkeypatch):
    there = deal(FRAME, ["a", "b"], tmp_path, monkeypatch)
    _, _, weight = _all(there.weighted(2.0).weighted(1.5))
    assert weight.sum() == pytest.approx(3 * FRAME["w"].sum(), rel=1e-12)


def test_bins_do_not_depend_on_the_order_of_rows_nor_on_classes(small_bins):
    order = RANDOM.permutation(N)
    called = FRAME.assign(y=FRAME["y"].map({"no": "c", "so": "a", "yes": "b"}))
    first, second, third = (
        _in_memory(frame, ["a", "b"]) for frame in (FRAME, FRAME.iloc[order], called)
    )
    assert len(first.sizes) == 8
    _assert_same(_all(first, Shuffle(3)), _all(second, Shuffle(3)))
    rows, codes, _ = _all(third, Shuffle(3))
    np.testing.assert_array_equal(rows, _all(first, Shuffle(3))[0])
    np.testing.assert_array_equal(np.array([1, 2, 0])[codes], _all(first, Shuffle(3))[1])


def test_bins_have_about_as_many_rows_each_and_two_make_one():
    X = RANDOM.normal(size=(50_000, 2))
    found = bins_of(X, 16)
    assert np.bincount(found, minlength=16) == pytest.approx(50_000 / 16, rel=0.1)
    np.testing.assert_array_equal(bins_of(X, 8), found // 2)
    np.testing.assert_array_equal(bins_of(X, 1), 0)
    grid = np.stack(np.meshgrid(np.arange(200.0), np.arange(100.0)), axis=-1).reshape(-1, 2)
    assert np.bincount(bins_of(grid, 16), minlength=16) == pytest.approx(20_000 / 16, rel=0.1)


def test_an_order_has_each_row_once_and_each_seed_its_own():
    sizes = [5, 0, 7]
    found = list(Shuffle(1).of(sizes))
    assert sorted(i for i, _ in found) == [0, 1, 2]
    for i, order in found:
        assert sorted(order) == list(range(sizes[i]))
    again, other = list(Shuffle(1).of(sizes)), list(Shuffle(2).of(sizes))
    assert [order.tolist() for _, order in again] == [order.tolist() for _, order in found]
    assert [order.tolist() for _, order in other] != [order.tolist() for _, order in found]


def test_rows_in_one_bin_are_in_any_order_with_the_same_chance():
    """Where a row of four comes, in 4,000 orders."""
    orders = np.array([next(Shuffle(seed).of([4]))[1] for seed in range(4000)])
    for place in range(4):
        assert np.bincount(orders[:, place]) == pytest.approx(1000, abs=4 * np.sqrt(750))
