"""Columns that are read as they lie, held against what pyarrow decodes, bit for bit."""

import os
from contextlib import suppress
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from posteriori import GaussianClassifier, scan
from posteriori.errors import SourceError
from posteriori.rows import files, pages, plain
from posteriori.rows.page_content import BLOCK, tag_of
from posteriori.rows.page_heads import HEAD, NotPlain, PageHead, varint
from posteriori.rows.pages import WIDTH, PlainColumn, plain_column

N = 150_000


@pytest.fixture(scope="module")
def random() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture(scope="module")
def table(random: np.random.Generator) -> pa.Table:
    """Three columns without repetitions, of which one has some digits alike, and labels."""
    X = random.normal(size=(N, 3))
    X[:, 2] += 1e9
    return pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": random.integers(0, 3, N)})


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The rows that were read as they lie, call by call."""
    found: list[tuple[int, int]] = []
    read = PlainColumn.read

    def noted(self: PlainColumn, file: int, low: int, high: int, out: memoryview) -> None:
        read(self, file, low, high, out)
        found.append((low, high))

    monkeypatch.setattr(PlainColumn, "read", noted)
    return found


def check(path: Any) -> None:
    """All tables of a scan hold what pyarrow reads, in a second pass too."""
    rows, true = scan(path, target="y", cache=False), parquet.ParquetFile(path).read()
    for _ in range(2):
        found = pa.concat_tables(table for _, table in rows._tables())
        for name in found.column_names:
            ours, theirs = (bits(each.column(name).combine_chunks()) for each in (found, true))
            assert ours.equals(theirs)


def bits(values: pa.Array) -> pa.Array:
    """Doubles as whole numbers, so that NaN is NaN, and -0 is not 0."""
    return values.view(pa.int64()) if str(values.type) == "double" else values


SETTINGS: dict[str, dict[str, Any]] = {
    "as pyarrow writes": {},
    "no dictionary": {"use_dictionary": False},
    "not compressed": {"compression": "none"},
    "neither": {"compression": "none", "use_dictionary": False},
    "no statistics": {"write_statistics": False},
    "small pages": {"data_page_size": 30_000, "use_dictionary": False},
    "large pages": {"data_page_size": 2**20, "max_rows_per_page": 10**6, "use_dictionary": False},
    "small dictionary": {"dictionary_pagesize_limit": 80_000},
    "checksums": {"write_page_checksum": True},
    "index of pages": {"write_page_index": True},
    "row groups": {"row_group_size": 70_000, "dictionary_pagesize_limit": 80_000},
}


@pytest.mark.parametrize("batch", [2**21, 2**17, 99_990])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_columns_are_read_as_they_lie(
    table: pa.Table,
    settings: dict[str, Any],
    batch: int,
    calls: Any,
    tmp_path: Any,
    monkeypatch: Any,
) -> None:
    parquet.write_table(table, tmp_path / "a.parquet", **settings)
    monkeypatch.setattr(files, "BATCH_ENTRIES", batch)
    check(tmp_path / "a.parquet")
    assert calls


OTHERS: dict[str, dict[str, Any]] = {
    "other compression": {"compression": "zstd"},
    "other pages": {"data_page_version": "2.0"},
    "other encoding": {"use_dictionary": False, "column_encoding": "BYTE_STREAM_SPLIT"},
    "tiny pages": {"data_page_size": 1000, "write_batch_size": 100, "use_dictionary": False},
    "small row groups": {"row_group_size": 20_000, "use_dictionary": False},
}


@pytest.mark.parametrize("settings", OTHERS.values(), ids=OTHERS)
def test_others_are_left_to_pyarrow(
    table: pa.Table, settings: dict[str, Any], calls: Any, tmp_path: Any
) -> None:
    doubles = table.drop_columns("y").append_column("y", table["a"])
    parquet.write_table(doubles, tmp_path / "a.parquet", **settings)
    check(tmp_path / "a.parquet")
    assert not calls


def test_a_system_that_cannot_is_left_to_pyarrow(
    table: pa.Table, calls: Any, tmp_path: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(plain, "_IS_POSSIBLE", False)
    parquet.write_table(table, tmp_path / "a.parquet")
    check(tmp_path / "a.parquet")
    assert not calls


def columns(random: np.random.Generator) -> dict[str, Any]:
    X = random.normal(size=N)
    found = {
        "required": X,
        "one number twice": np.concatenate([X[:1], X[:-1]]),
        "repeated at first": np.concatenate([X[: N // 20].repeat(2), X[N // 10 :]]),
        "infinities": np.where(np.arange(N) % 1000 == 7, -np.inf, X),
        "rounded": X.round(2),
        "constant": np.zeros(N),
        "singles": X.astype(np.float32),
        "levels": pa.array(X[:40].repeat(N // 40)).dictionary_encode(),
    }
    for name, place in {"first": 0, "among the first": 2_000, "later": 90_000}.items():
        found[f"missing {name}"] = pa.array(X, mask=np.arange(N) == place)
        found[f"NaN {name}"] = np.where(np.arange(N) == place, np.nan, X)
    return found


NAMES = list(columns(np.random.default_rng(0)))
LEFT = {"rounded", "constant", "singles", "levels", *(n for n in NAMES if n.startswith("missing"))}


@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_what_columns_hold(
    name: str, dictionary: bool, random: np.random.Generator, calls: Any, tmp_path: Any
) -> None:
    array = pa.array(columns(random)[name])
    field = pa.field("x", array.type, nullable=name != "required")
    schema = pa.schema([field, ("y", pa.int64())])
    written = pa.table([array, pa.array(np.arange(N) % 2)], schema=schema)
    settings = {"use_dictionary": dictionary, "dictionary_pagesize_limit": 200_000}
    parquet.write_table(written, tmp_path / "a.parquet", **settings)
    check(tmp_path / "a.parquet")
    assert bool(calls) == (name not in LEFT)


def test_a_dictionary_in_order_is_read_as_it_lies(
    table: pa.Table, calls: Any, tmp_path: Any
) -> None:
    """The first rows too, which pyarrow has written by their places in it."""
    parquet.write_table(table, tmp_path / "a.parquet")
    check(tmp_path / "a.parquet")
    assert min(low for low, _ in calls) == 0


def test_columns_of_other_names_and_kinds_beside(
    table: pa.Table, calls: Any, random: np.random.Generator, tmp_path: Any
) -> None:
    nested = pa.StructArray.from_arrays([pa.array(np.arange(N) % 5 / 2)], ["b"])
    texts = pa.array(np.array(["u", "v"])[random.integers(0, 2, N)])
    for name, values in {"s": nested, "s.b": table["b"], "s.c": table["c"], "text": texts}.items():
        table = table.append_column(name, values)
    parquet.write_table(table, tmp_path / "a.parquet")
    columns = ["a", "text", "s.c", "s.b"]
    rows = scan(tmp_path / "a.parquet", target="y", columns=columns, cache=False)
    found = pa.concat_tables(each for _, each in rows._tables())
    assert found.equals(table.select(found.column_names))
    assert calls


def first_column(path: Any) -> PlainColumn:
    file = os.open(path, os.O_RDONLY)
    try:
        column = plain_column(file, parquet.ParquetFile(path).metadata, 0, 0)
    finally:
        os.close(file)
    assert column is not None
    return column


def place_of_page(column: PlainColumn, number: int) -> int:
    """Where the content of a page begins, of those that are like the first."""
    head, place = column.pages[0].head, column.pages[0].place
    return place + number * (head.length + head.n_bytes) + head.length


def overwrite(path: Any, place: int, content: bytes) -> None:
    with open(path, "r+b") as file:
        file.seek(place)
        file.write(content)


@pytest.mark.parametrize("batch", [2**21, 7_000 * 2])
def test_a_page_that_is_compressed_to_its_own_size(
    batch: int, random: np.random.Generator, calls: Any, tmp_path: Any, monkeypatch: Any
) -> None:
    """Six bytes less, and six more to say so: its size does not show it, the bytes between do."""
    path = tmp_path / "a.parquet"
    X = random.normal(size=N)
    X[49_100] = X[49_000]  # in the second 64 KiB of the third page
    written = pa.table({"x": X, "y": np.arange(N) % 2})
    parquet.write_table(written, path, use_dictionary=False)
    column = first_column(path)
    assert all(each.stored for each in column.pages)
    place, levels = place_of_page(column, 2), 8
    content = levels + WIDTH * 9_100 - BLOCK  # of the copied number in its block
    begin = place + 3 + 3 + BLOCK  # of the block
    with open(path, "rb") as file:
        file.seek(begin)
        block = file.read(3 + BLOCK)
    assert block[:3] == b"\xf4\xff\xff"
    rest = BLOCK - content - 6
    compressed = b"".join(
        [
            tag_of(content) + block[3 : 3 + content],
            bytes([(6 - 1) << 2 | 2]) + (WIDTH * 100).to_bytes(2, "little"),
            tag_of(rest) + block[3 + content + 6 :],
        ]
    )
    assert len(compressed) == len(block)
    overwrite(path, begin, compressed)
    assert parquet.read_table(path).equals(written)
    monkeypatch.setattr(files, "BATCH_ENTRIES", batch)
    check(path)
    assert calls


def test_a_page_that_is_not_like_those_around_it_is_an_error(
    table: pa.Table, tmp_path: Any
) -> None:
    """Its head is seen when it is read, and pyarrow says what is wrong with it."""
    path = tmp_path / "a.parquet"
    parquet.write_table(table, path, use_dictionary=False)
    column = first_column(path)
    head = column.pages[0].head
    overwrite(path, place_of_page(column, 2) - head.length, b"\x15\x06")  # a page of another kind
    with pytest.raises(SourceError, match="cannot be read"):
        GaussianClassifier().fit(scan(path, target="y"))


@pytest.mark.parametrize("where", [1, 1 + 3 + 3, 3 + 3 + 2**16])
def test_tags_that_are_none_are_an_error(where: int, table: pa.Table, tmp_path: Any) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(table, path, use_dictionary=False)
    overwrite(path, place_of_page(first_column(path), 3) + where, b"\x00\x01\x02")
    with pytest.raises(SourceError, match="cannot be read"):
        GaussianClassifier().fit(scan(path, target="y"))


def test_pages_between_two_that_are_alike_may_be_others(calls: Any, tmp_path: Any) -> None:
    """The fifth of forty is like the first two, and lies where it would if those between were."""
    size, path = 8192, tmp_path / "a.parquet"
    X = np.random.default_rng(0).normal(size=(40, size))
    X[0, :20] = X[0, 0]
    X[[1, 4]] = X[0]

    def length(page: np.ndarray) -> int:
        return len(pa.compress(page.tobytes(), "snappy", asbytes=True))

    short, wanted = X[3].copy(), 2 * length(X[0]) - length(X[2])
    for n_same, n_bytes in product(range(1, 200), range(1, 9)):
        X[3], X[3, :n_same] = short, short[0]
        X[3].view(np.uint8)[8 * n_same : 8 * n_same + n_bytes] = X[3].view(np.uint8)[:n_bytes]
        if length(X[3]) == wanted:
            break
    assert length(X[3]) == wanted
    schema = pa.schema([pa.field("x", pa.float64(), nullable=False), ("y", pa.int64())])
    written = pa.table([X.ravel(), np.arange(X.size) % 2], schema=schema)
    settings = {"max_rows_per_page": size, "data_page_size": 2**20, "write_statistics": False}
    parquet.write_table(written, path, use_dictionary=False, **settings)
    assert first_column(path).pages[0].stop == 5 * size  # which it took for alike
    check(path)
    assert not calls  # pyarrow has read it


def test_a_dictionary_whose_places_are_noise_is_an_error(table: pa.Table, tmp_path: Any) -> None:
    """A number that never ends would take Python long."""
    path = tmp_path / "a.parquet"
    parquet.write_table(table, path, compression="none")
    column = parquet.ParquetFile(path).metadata.row_group(0).column(0)
    overwrite(path, column.data_page_offset + 100, b"\xff" * 30_000)
    with pytest.raises(SourceError, match="cannot be read"):
        GaussianClassifier().fit(scan(path, target="y"))


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_pages_that_are_passed_over_are_missed(compression: str, tmp_path: Any) -> None:
    """pyarrow skips what is no page of data, and then has no rows, or no more."""
    path = tmp_path / "a.parquet"
    written = pa.table(
        {"y": np.arange(70_000) % 2, "x": np.random.default_rng(0).normal(size=70_000)}
    )
    parquet.write_table(written, path, compression=compression, use_dictionary=False)
    metadata = parquet.ParquetFile(path).metadata.row_group(0)
    for number in range(2):
        for page in heads(path, metadata.column(number)):
            overwrite(path, page + 1, b"\x02")
    with pytest.raises(SourceError, match="fewer rows than it says"):
        GaussianClassifier().fit(scan(path, target="y"))


def heads(path: Any, column: Any) -> list[int]:
    """Where the pages of a column begin."""
    with open(path, "rb") as file:
        content = file.read()
    place, found = column.data_page_offset, []
    while place < column.data_page_offset + column.total_compressed_size:
        head = PageHead.of(content[place : place + HEAD])
        found.append(place)
        place += head.length + head.n_bytes
    return found


def test_structs_in_structs_are_no_head() -> None:
    with pytest.raises(NotPlain):
        PageHead.of(b"\x1c" * HEAD)


def test_more_pieces_than_are_read_at_a_stroke(
    calls: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch, random: np.random.Generator
) -> None:
    monkeypatch.setattr(files, "_LONGEST_BATCH", 2**21)
    values = random.normal(size=1_300_000)
    table = pa.table({"a": values, "y": np.arange(len(values)) % 2})
    parquet.write_table(table, tmp_path / "x.parquet", row_group_size=2**21, data_page_size=17_000)
    check(tmp_path / "x.parquet")
    assert max(high - low for low, high in calls) > 10**6


@pytest.mark.parametrize("most", [1_000, 65_536, 100_003])
def test_a_system_that_reads_less_than_it_is_asked_for_is_asked_again(
    most: int, table: pa.Table, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    preadv, short = os.preadv, list[int]()

    def reluctant(file: int, pieces: list[memoryview], place: int) -> int:
        wanted, some = sum(map(len, pieces)), list[memoryview]()
        for piece in pieces:
            some.append(piece[: most - sum(map(len, some))])
        found = preadv(file, [piece for piece in some if len(piece)], place)
        short.extend([found] * (found < wanted))
        return found

    parquet.write_table(table, tmp_path / "x.parquet")
    monkeypatch.setattr(os, "preadv", reluctant)
    check(tmp_path / "x.parquet")
    assert short
    assert max(short) == most


def test_a_file_that_ends_within_a_page_is_an_error(table: pa.Table, tmp_path: Any) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(table, path, use_dictionary=False)
    column, out = first_column(path), bytearray(WIDTH * 60_000)
    os.truncate(path, place_of_page(column, 2) + 1000)
    file = os.open(path, os.O_RDONLY)
    with pytest.raises(OSError, match="ends within a page"):
        column.read(file, 0, 60_000, memoryview(out))
    os.close(file)


@pytest.mark.parametrize("seed", range(8))
def test_heads_that_are_noise_are_no_heads(seed: int) -> None:
    """Nothing but these errors, which leave a column to pyarrow; or by chance a head."""
    random = np.random.default_rng(seed)
    for _ in range(500):
        noise = random.bytes(HEAD)
        with suppress(NotPlain, IndexError):
            assert PageHead.of(noise).is_of(noise)


@pytest.mark.parametrize("width", [1, 2, 7, 8, 9, 17])
def test_runs_that_count(width: int) -> None:
    n = min(2**width, 200) // 8 * 8 or 2
    bits = (np.arange(n)[:, None] >> np.arange(width)) & 1
    bits = np.concatenate([bits, np.zeros((-n % 8, width), dtype=bits.dtype)])
    packed = np.packbits(bits.astype(np.uint8).ravel(), bitorder="little").tobytes()
    runs = bytes([width]) + varint((len(bits) // 8) << 1 | 1) + packed
    assert pages._counts(runs, 0, n)
    assert not pages._counts(runs, 1, n - 1)
    assert not pages._counts(runs, 0, len(bits) + 1)
    assert not pages._counts(bytes([width]) + varint(n << 1) + b"\x00" * 4, 0, n)


def test_what_is_learnt_is_forgotten_where_there_is_no_room(
    table: pa.Table, calls: Any, tmp_path: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(plain, "_REMEMBERED", 1)
    parquet.write_table(table, tmp_path / "a.parquet")
    check(tmp_path / "a.parquet")
    assert calls
    rows = scan(tmp_path / "a.parquet", target="y", cache=False)
    list(rows._tables())
    assert len(rows._parts[0].remembered._found) == 1
