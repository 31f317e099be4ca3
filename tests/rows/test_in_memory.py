"""Sums over blocks in memory: the same bits from any number of threads, and errors that name the
row the user knows."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from posteriori import GLM, LogisticRegression, OneVersusRest
from posteriori.errors import InfiniteValueError, LabelError, MissingValueError, ShapeError
from posteriori.rows.block import Block, Mixed, Rows, check_finite
from posteriori.rows.in_memory import (
    MemoryRows,
    read_new_rows,
    read_real_rows,
    read_rows,
)
from posteriori.rows.schema import Schema
from posteriori.rows.threads import threads

rng = np.random.default_rng(20)
LARGE = rng.normal(size=(120_000, 8)) * 10.0 ** rng.integers(-3, 4, size=8)
CODES = rng.integers(0, 3, size=len(LARGE))
WEIGHT = rng.choice([0.0, 0.3, 1.0, 2.5], size=len(LARGE))


def sums(block: Block) -> np.ndarray:
    """Weighted sums of the columns, and of their products; bits depend on the order of adding."""
    X = block.X.toarray() if sparse.issparse(block.X) else block.X
    w = np.ones(len(X)) if block.weight is None else block.weight
    return np.vstack([w @ X, (X * w[:, None]).T @ X])


SOURCES = {
    "array": lambda: LARGE,
    "Fortran": lambda: np.asfortranarray(LARGE),
    "float32": lambda: LARGE.astype(np.float32),
    "sparse": lambda: sparse.csr_array(LARGE * (abs(LARGE) > 0.5)),
    "polars": lambda: pl.DataFrame(LARGE),
}


@pytest.mark.parametrize("source", SOURCES)
def test_the_bits_do_not_depend_on_the_number_of_threads(source):
    X = SOURCES[source]()
    rows = read_rows(X, CODES, WEIGHT)
    assert isinstance(rows, Rows)
    for block_entries in (5000, None):
        found = []
        for n in (1, 2, 5):
            with threads(n):
                found.append(rows.map_sum(sums, block_entries=block_entries))
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_array_equal(found[0], found[2])
    dense = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    np.testing.assert_allclose(found[0][0], WEIGHT @ dense, rtol=1e-9)
    np.testing.assert_allclose(np.diagonal(found[0][1:]), WEIGHT @ dense**2, rtol=1e-11, atol=0)
    kept = WEIGHT > 0  # a weight of zero is the row dropped
    fewer = X.filter(kept) if isinstance(X, pl.DataFrame) else X[kept]
    less = read_rows(fewer, CODES[kept], WEIGHT[kept]).map_sum(sums)
    np.testing.assert_allclose(less[0], found[0][0], rtol=1e-9)
    np.testing.assert_allclose(less[1:], found[0][1:], rtol=1e-10, atol=1e-6)


@pytest.mark.parametrize("n", [1, 7, 120_000])
def test_every_row_is_visited_once_and_in_order(n):
    rows = read_rows(LARGE[:n], np.zeros(n, dtype=int), classes=[0, 1])
    for entries in (999, None) if n > 7 else (1, 8, None):
        found = rows.map_sum(lambda block: [(block.start, len(block.X))], block_entries=entries)
        ends = np.cumsum([size for _, size in found])
        assert [start for start, _ in found] == [0, *ends[:-1]]
        assert ends[-1] == n


def test_fill_writes_each_row_in_its_place():
    rows = read_new_rows(LARGE, Schema.unnamed(8), "M")
    out = rows.fill(np.full(len(LARGE), np.nan), lambda block: block.X.sum(1))
    np.testing.assert_array_equal(out, LARGE.sum(1))


def test_levels_and_targets_are_dropped_with_their_rows():
    frame = pl.DataFrame({"a": [1.0, 2.0, 3.0], "f": ["u", None, "v"]})
    soft = np.array([[0.5, 0.5], [0.1, 0.9], [1.0, 0.0]])
    block = read_rows(frame, soft, [1.0, 0.0, 2.0]).block()
    assert isinstance(block.X, Mixed)
    assert block.X.numeric[:, 0].tolist() == [1.0, 3.0]
    assert block.X.codes[:, 0].tolist() == [0, 1]
    assert block.y.tolist() == [[0.5, 0.5], [1.0, 0.0]]
    assert block.weight.tolist() == [1.0, 2.0]
    assert [block.row(i) for i in (0, 1)] == [0, 2]


def test_one_class_is_too_few_and_numbers_have_none():
    with pytest.raises(LabelError, match=r"needs rows of two classes .* one class, .*'a'"):
        read_rows(np.eye(2), ["a", "a"])
    with pytest.raises(LabelError, match="two classes"):
        read_rows(np.eye(2), ["a", "b"], [1.0, 0.0])
    rows = read_real_rows([[1.0], [2.0]], [3, 4], [1, 2])
    assert (rows.classes, rows.soft) == (None, False)
    assert (rows.y.tolist(), rows.weight.tolist()) == ([3.0, 4.0], [1.0, 2.0])


# Bad entries are named, in the numbering of the user.


def check(rows: MemoryRows, **how: int) -> None:
    def checked(block: Block) -> int:
        check_finite(block, rows.schema)
        return 0

    rows.map_sum(checked, **how)


@pytest.mark.parametrize("kind", ["array", "Fortran", "sparse", "weights"])
@pytest.mark.parametrize(
    ("bad", "error"), [(np.nan, MissingValueError), (-np.inf, InfiniteValueError)]
)
def test_the_first_bad_entry_is_named(kind, bad, error):
    X, weight = LARGE.copy(), None
    # In memory order of Fortran (2, 30123) comes first; row by row it is (5, 12345).
    spots = [(12_345, 5), (12_345, 6), (30_123, 2), (39_999, 0)]
    for spot in spots:
        X[spot] = bad
    if kind == "weights":
        weight = WEIGHT.copy()
        weight[[i for i, _ in spots]] = 1.0
        X[77, 3], weight[77] = bad, 0.0
    make = {"Fortran": np.asfortranarray, "sparse": sparse.csr_array}.get(kind, np.array)
    rows = read_rows(make(X), CODES, weight)
    for n in (1, 2):
        with threads(n), pytest.raises(error, match="first in row 12345, column 5"):
            check(rows, block_entries=20_000)


def test_missing_entries_of_all_rows_are_counted_by_column():
    X = LARGE.copy()
    X[[3, 30_000, -1], 1] = np.nan
    X[-5000:, 6] = np.nan
    X[5, 2], weight = np.nan, np.ones(len(X))
    weight[5] = 0.0
    for table in (X, sparse.csr_array(X), pl.DataFrame(X)):
        rows = read_rows(table, CODES, weight)
        where = "column 'column_1'" if rows.schema.named else "column 1"
        with pytest.raises(MissingValueError) as caught, rows.fitting():
            check(rows)
        second = where.replace("1", "6")
        assert caught.value.problem == (
            f"Input X contains NaN (first in row 3, {where}). "
            f"Missing entries: 3 in {where}, 5,000 in {second}."
        )


def test_numbers_and_levels_that_are_missing_are_one_error():
    frame = pd.DataFrame({"a": [1.0, None, 3.0] * 40, "b": 1.0, "f": ["u", "v", None] * 40})
    with pytest.raises(MissingValueError, match="40 in column 'a', 40 in column 'f'"):
        LogisticRegression().fit(frame, [0, 1, 1] * 40)
    with pytest.raises(MissingValueError, match="level of their own such as 'missing'"):
        LogisticRegression().fit(frame[["b", "f"]], [0, 1, 1] * 40)
    model = LogisticRegression(prior=1.0).fit(frame.fillna({"a": 0.0, "f": "w"}), [0, 1, 1] * 40)
    with pytest.raises(MissingValueError, match="40 in column 'a', 40 in column 'f'"):
        model.predict(frame)


@pytest.mark.parametrize("what", ["y", "sample_weight", "offset"])
@pytest.mark.parametrize("model", [LogisticRegression(), GLM(family="gaussian")], ids=str)
def test_pandas_objects_with_other_indices_are_not_aligned(model, what):
    X = pd.DataFrame({"a": [1.0, 2.0, 4.0, 3.0]}, index=[3, 5, 7, 9])
    given = {"y": pd.Series([0, 1, 1, 0], X.index), "sample_weight": pd.Series(1.0, X.index)}
    given["offset"] = pd.Series(0.5, X.index)
    model.fit(X, **given)
    model.fit(X, given["y"].to_numpy())
    with pytest.raises(ShapeError, match=f"indices of X and {what} are not aligned.*X.index"):
        model.fit(X, **given | {what: given[what][::-1]})
    if what != "offset":
        given = given | {"offset": None, what: given[what][::-1]}
        with pytest.raises(ShapeError, match=f"indices of X and {what} are not aligned"):
            OneVersusRest(estimator=LogisticRegression()).fit(X, given["y"], given["sample_weight"])
