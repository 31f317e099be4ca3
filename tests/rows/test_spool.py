"""What was decoded once comes back as it was, from a file that nobody sees."""

import errno
import gc
import os
import pickle
import tempfile
from concurrent.futures import ThreadPoolExecutor

import dask
import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

import posteriori.rows.spool as spools
from posteriori import Adaline, GaussianClassifier, LogisticRegression, scan
from posteriori.errors import Interrupted, ParameterError, SourceError
from posteriori.rows import files, parquet
from posteriori.rows.arrow import plain_table
from posteriori.rows.csv import CsvFiles
from posteriori.rows.in_memory import MemoryRows
from posteriori.rows.kept import LIMITS, Room, room_here
from posteriori.rows.parquet import Part
from posteriori.rows.schema import Column, Schema
from posteriori.rows.scratch import Scratch
from posteriori.rows.spool import Spool
from posteriori.rows.tables import ColumnTable, DenseTable

N = 3000
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(N, 3))
Y = RANDOM.uniform(size=N) < 1 / (1 + np.exp(-X[:, 0]))
TABLE = pa.table({**{f"x{j}": X[:, j] for j in range(3)}, "y": Y})
ANY = pa.table(
    {
        "double": pa.array([1.5, None, float("nan"), 1e300, -0.0]),
        "single": pa.array([1.5, 2.5, None, 0.1, 0.2], pa.float32()),
        "whole": pa.array([1, 2, 3, None, 2**62]),
        "flag": [True, None, False, True, True],
        "text": ["a", "", None, "ä", "long " * 20],
        "level": pa.array(["a", None, "b", "a", "b"]).dictionary_encode(),
        "empty": pa.nulls(5),
    }
)


def _parquet(folder):
    for i in range(3):
        part = TABLE.slice(i * 1000, 1000)
        pq.write_table(part, folder / f"part-{i}.parquet", row_group_size=400)
    return folder


def _csv(folder):
    csv.write_csv(TABLE, folder / "rows.csv")
    return folder / "rows.csv"


SOURCES = {"Parquet": _parquet, "CSV": _csv}
READERS = {"Parquet": (Part, "batches"), "CSV": (CsvFiles, "to_batches")}


@pytest.fixture(params=SOURCES)
def kind(request):
    return request.param


@pytest.fixture
def source(kind, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    return SOURCES[kind](folder)


@pytest.fixture
def reads(kind, monkeypatch):
    """How often the files themselves were asked for rows."""
    owner, name = READERS[kind]
    plain, found = getattr(owner, name), []

    def counted(*args, **given):
        found.append(1)
        return plain(*args, **given)

    monkeypatch.setattr(owner, name, counted)
    return found


def _fit(rows):
    """A fit after a look that found it worth while to keep what it read."""
    _ = rows.look
    return GaussianClassifier().fit(rows)


def _filled(tables, spool=None):
    spool = Spool("always") if spool is None else spool
    spool.begin()
    for start, table in tables.items():
        spool.put(start, table)
    return spool


def _is_whole(rows):
    return rows.spool.find(0, rows.n_rows) is not None


@pytest.mark.parametrize(
    "table",
    [ANY, ANY.slice(1, 3), pa.concat_tables([ANY, ANY.slice(2)]), TABLE, TABLE.slice(7, 1)],
    ids=["any", "a slice", "in chunks", "numbers", "a row"],
)
def test_a_table_comes_back_as_it_was(table):
    ((start, found),) = _filled({5: table}).find(5, 5 + table.num_rows)
    assert start == 5
    assert found.schema == table.schema
    found.validate(full=True)
    for name in table.column_names:
        ours, theirs = found.column(name), table.column(name)
        assert [len(chunk) for chunk in ours.chunks] == [len(chunk) for chunk in theirs.chunks]
        np.testing.assert_equal(ours.to_pylist(), theirs.to_pylist())


def test_tables_come_in_the_order_of_rows_however_they_were_put():
    starts = [20, 0, 10, 30, 50]
    spool = _filled({start: TABLE.slice(start, 10) for start in starts})
    assert [start for start, _ in spool.find(0, 40)] == [0, 10, 20, 30]
    assert [start for start, _ in spool.find(10, 30)] == [10, 20]
    for low, high in [(0, 60), (40, 60), (0, 35), (5, 20), (60, 70)]:
        assert spool.find(low, high) is None
    for start, table in spool.find(0, 40):
        assert table.equals(TABLE.slice(start, 10))


def test_a_table_is_taken_in_once():
    spool = _filled({0: TABLE})
    size = spool._held._scratch.size
    spool.put(0, TABLE)
    assert spool._held._scratch.size == size


def test_nothing_is_kept_unless_it_is_asked_for():
    assert _filled({0: TABLE}, Spool()).find(0, N) is None
    spool = Spool("always")
    spool.put(0, TABLE)  # before a first look has begun
    assert spool.find(0, N) is None


def test_files_are_read_in_the_first_look_alone(source, reads):
    rows = scan(source, "y")
    rows.look  # noqa: B018
    first = len(reads)
    found = LogisticRegression(tol=1e-8).fit(rows)
    assert len(reads) == first > 0
    expected = LogisticRegression(tol=1e-8).fit(X, Y)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-10)
    assert found.passes_.passes > 2
    assert found.passes_.bytes_read == pytest.approx(TABLE.nbytes * found.passes_.passes, rel=0.1)


def test_files_are_read_in_each_pass_if_nothing_is_to_be_kept(source, reads):
    rows = scan(source, "y", cache=False)
    rows.look  # noqa: B018
    first = len(reads)
    found = LogisticRegression(tol=1e-8).fit(rows)
    assert found.passes_.passes > 2
    assert len(reads) == first * found.passes_.passes
    kept = LogisticRegression(tol=1e-8).fit(scan(source, "y"))
    np.testing.assert_allclose(kept.coef_, found.coef_, rtol=1e-13)
    np.testing.assert_allclose(kept.coef_covariance_, found.coef_covariance_, rtol=1e-12)


@pytest.mark.parametrize(("share", "is_whole"), [(0.0, False), (0.5, False), (2.0, True)])
def test_what_takes_too_much_is_read_in_each_pass(source, reads, share, is_whole, monkeypatch):
    room = int(4 * share * TABLE.nbytes)
    monkeypatch.setattr(spools, "room_here", lambda: Room("this machine", room))
    rows = scan(source, "y")
    rows.look  # noqa: B018
    first = len(reads)
    found = _fit(rows)
    assert _is_whole(rows) == is_whole
    assert is_whole == (len(reads) == first)
    assert len(reads) <= 2 * first
    np.testing.assert_allclose(found.coef_, GaussianClassifier().fit(X, Y).coef_, rtol=1e-10)


def test_memory_and_disk_say_how_much_may_be_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(spools, "free_in", {str(tmp_path): 3000, None: 600}.get)
    monkeypatch.setattr(spools, "room_here", lambda: Room("this machine", 4000))
    assert spools._room_in(str(tmp_path)) == 1000
    assert spools._room_in(None) == 300
    monkeypatch.setattr(spools, "room_here", lambda: Room("this machine", None))
    assert spools._room_in(str(tmp_path)) == 1500


@pytest.mark.parametrize(
    ("kept", "reading", "writing", "n_kept"),
    [
        ("if it fits", 1.0, 1.9, 20),
        ("if it fits", 1.0, 2.1, 5),
        ("if it fits", 0.001, 0.019, 20),
        ("if it fits", 0.001, 0.04, 5),
        ("always", 1.0, 9.0, 20),
    ],
)
def test_a_disk_that_is_slow_is_done_without(kept, reading, writing, n_kept, monkeypatch):
    """Slow is what takes twice as long as reading, and some time, by four tables after the first.

    The next pass tries again.
    """
    now, add = [0.0], Scratch.add

    def slow(self, pieces):
        now[0] += writing
        return add(self, pieces)

    monkeypatch.setattr(spools, "perf_counter", lambda: now[0])
    monkeypatch.setattr(Scratch, "add", slow)
    spool = Spool(kept)
    spool.begin()
    for n in (n_kept, min(2 * n_kept, 20)):
        for i in range(20):
            now[0] += reading
            spool.put(10 * i, TABLE.slice(10 * i, 10))
        assert spool.find(0, 10 * n + 10) is None
        here = pa.concat_tables(table for _, table in spool.find(0, 10 * n))
        assert here.equals(TABLE.slice(0, 10 * n))
        spool.go_on()


def test_a_disk_that_becomes_slow_is_done_without_soon(monkeypatch):
    now, add = [0.0], Scratch.add

    def slow(self, pieces):
        now[0] += 0.005 if self.size < 30 * 4096 else 0.08
        return add(self, pieces)

    monkeypatch.setattr(spools, "perf_counter", lambda: now[0])
    monkeypatch.setattr(Scratch, "add", slow)
    spool = Spool("if it fits")
    spool.begin()
    for i in range(60):
        now[0] += 0.01
        spool.put(10 * i, TABLE.slice(10 * i, 10))
    here = pa.concat_tables(table for _, table in spool.find(0, 310))
    assert here.equals(TABLE.slice(0, 310))
    assert spool.find(0, 320) is None


def test_a_later_pass_takes_in_what_the_first_look_had_no_time_for(source, reads, monkeypatch):
    monkeypatch.setattr(files, "BATCH_ENTRIES", 4 * 300)
    put = spools._Held.put
    once = lambda self, *args: None if self.tables else put(self, *args)  # noqa: E731
    monkeypatch.setattr(spools._Held, "put", once)
    rows = scan(source, "y")
    rows.look  # noqa: B018
    first = len(reads)
    assert not _is_whole(rows)
    monkeypatch.setattr(spools._Held, "put", put)
    model = _fit(rows)
    assert len(reads) > first
    assert _is_whole(rows)
    second = len(reads)
    np.testing.assert_array_equal(_fit(rows).coef_, model.coef_)
    assert len(reads) == second
    np.testing.assert_allclose(model.coef_, GaussianClassifier().fit(X, Y).coef_, rtol=1e-10)


def test_files_that_have_no_room_are_read_in_part(tmp_path, monkeypatch):
    """Of five row groups in a file each is of use without the others."""
    monkeypatch.setattr(parquet, "PART_ROWS", 1)
    pq.write_table(TABLE, tmp_path / "rows.parquet", row_group_size=600)
    room = int(4 * 0.5 * TABLE.nbytes)
    monkeypatch.setattr(spools, "room_here", lambda: Room("this machine", room))
    rows = scan(tmp_path, "y")
    rows.look  # noqa: B018
    asked = []
    batches = Part.batches
    monkeypatch.setattr(Part, "batches", lambda self, *a: asked.append(1) or batches(self, *a))
    found = _fit(rows)
    assert 1 <= len(asked) <= 3
    np.testing.assert_allclose(found.coef_, GaussianClassifier().fit(X, Y).coef_, rtol=1e-10)


def test_rows_that_come_one_after_the_other_are_kept_all_or_not(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "BATCH_ENTRIES", 4 * 300)
    room = int(4 * 0.5 * TABLE.nbytes)
    monkeypatch.setattr(spools, "room_here", lambda: Room("this machine", room))
    rows = scan(_csv(tmp_path), "y")
    _fit(rows)
    assert rows.spool._held is None


def test_looks_at_the_same_time_do_not_mix(source, monkeypatch):
    """Four threads learn of the same rows at once, and all of them meet all rows."""
    monkeypatch.setattr(files, "BATCH_ENTRIES", 4 * 100)
    for _ in range(5):
        rows = scan(source, "y")
        with ThreadPoolExecutor(4) as pool:
            looks = [pool.submit(getattr, rows, "n_rows") for _ in range(4)]
            assert [look.result() for look in looks] == [N] * 4
        total = rows.map_sum(lambda block: block.X.sum(axis=0))
        np.testing.assert_allclose(total, X.sum(axis=0), rtol=1e-11)


def test_who_reads_goes_on_with_what_was_there_when_he_began():
    spool = _filled({0: TABLE.slice(0, 10), 10: TABLE.slice(10, 10)})
    reading = spool.find(0, 20)
    assert next(reading)[1].equals(TABLE.slice(0, 10))
    _filled({0: TABLE.slice(100, 5)}, spool)
    assert next(reading)[1].equals(TABLE.slice(10, 10))
    assert spool.find(0, 20) is None


def test_answers_are_as_many_as_rows_were_seen(tmp_path):
    there = fsspec.filesystem("memory")
    there.pipe("/answers/a.csv", b"x,y\n" + b"1.5,no\n2.5,yes\n" * 20)
    source = pads.dataset("/answers", filesystem=there, format="csv")
    rows = scan(source, "y", cache=False)
    model = LogisticRegression(prior=1.0).fit(rows)
    there.pipe("/answers/a.csv", b"x,y\n" + b"1.5,no\n2.5,yes\n" * 21)
    with pytest.raises(SourceError, match="The source has 42 rows, and had 40"):
        model.predict(rows, to=tmp_path / "answers.parquet")
    assert not (tmp_path / "answers.parquet").exists()


def test_many_small_tables_take_no_file_each(tmp_path):
    """A process may have some 1,000 files open."""
    resource = pytest.importorskip("resource")
    for i in range(80):
        pq.write_table(TABLE.slice(10 * i, 10), tmp_path / f"{i:03d}.parquet")
    rows = scan(tmp_path, "y")
    rows.look  # noqa: B018
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/dev/fd")) + 20, hard))
    try:
        Adaline(max_epochs=1, tol=10).fit(rows)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _full(*args, **given):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_done_without(source, reads, monkeypatch):
    monkeypatch.setattr(os, "pwrite", _full)
    rows = scan(source, "y")
    rows.look  # noqa: B018
    first = len(reads)
    _fit(rows)
    assert not _is_whole(rows)
    assert len(reads) == 2 * first


def test_a_folder_that_cannot_be_written_to_is_done_without(source, monkeypatch):
    monkeypatch.setattr(tempfile, "TemporaryFile", _full)
    rows = scan(source, "y")
    _fit(rows)
    assert not _is_whole(rows)


@pytest.mark.parametrize("what", [(os, "pwrite"), (tempfile, "TemporaryFile")])
def test_a_full_disk_is_an_error_where_the_user_asked_for_it(source, what, tmp_path, monkeypatch):
    monkeypatch.setattr(*what, _full)
    with pytest.raises(SourceError, match=rf"{tmp_path}.*No space left") as error:
        _fit(scan(source, "y", cache=tmp_path))
    assert "cache=False" in str(error.value)


def test_a_system_that_writes_at_the_end_of_a_seek_alone(source, monkeypatch):
    monkeypatch.delattr(os, "pwrite")
    monkeypatch.delattr(os, "posix_fadvise")
    rows = scan(source, "y")
    found = _fit(rows)
    assert _is_whole(rows)
    np.testing.assert_allclose(found.coef_, GaussianClassifier().fit(X, Y).coef_, rtol=1e-10)


def test_bytes_that_are_written_in_part_are_followed_by_the_rest(source, monkeypatch):
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda f, piece, at: pwrite(f, piece[:1000], at))
    found = _fit(scan(source, "y"))
    np.testing.assert_allclose(found.coef_, GaussianClassifier().fit(X, Y).coef_, rtol=1e-10)


@pytest.mark.parametrize("cache", [True, "a folder"])
def test_what_is_asked_for_is_kept_whatever_it_takes(source, cache, tmp_path, monkeypatch):
    monkeypatch.setattr(spools, "room_here", lambda: Room("this machine", 0))
    made = []
    plain = tempfile.TemporaryFile
    monkeypatch.setattr(
        tempfile, "TemporaryFile", lambda dir, **given: made.append(dir) or plain(dir=dir, **given)
    )
    rows = scan(source, "y", cache=True if cache is True else tmp_path)
    _fit(rows)
    assert _is_whole(rows)
    assert made == [None if cache is True else str(tmp_path)]
    assert os.listdir(tmp_path) == ["data"]


def test_a_folder_may_begin_at_home_or_here(source, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert spools.read_cache("~").folder == str(tmp_path)
    assert spools.read_cache("data").folder == str(tmp_path / "data")


def test_a_machine_without_a_folder_for_temporary_files_says_so(source, monkeypatch):
    def nowhere(*args, **given):
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", nowhere)
    monkeypatch.setattr(tempfile, "TemporaryFile", nowhere)
    _fit(scan(source, "y"))
    with pytest.raises(SourceError, match=r"kept in the folder of temporary files: .*No usable"):
        _fit(scan(source, "y", cache=True))


@pytest.mark.parametrize("cache", [3, [], "nowhere"])
def test_what_is_no_folder_is_an_error(source, cache):
    with pytest.raises(ParameterError, match="folder"):
        scan(source, "y", cache=cache)


def test_dask_keeps_what_it_is_told_to():
    with pytest.raises(ParameterError, match=r"cache is for files(.|\n)*persist"):
        scan(dask.delayed(lambda: TABLE.to_pandas())(), "y", cache=True)


def test_rows_in_memory_are_not_kept_again(tmp_path):
    rows = scan(pads.dataset(TABLE), "y", cache=tmp_path)
    _fit(rows)
    assert not _is_whole(rows)
    assert rows.folder == str(tmp_path)


def test_the_file_is_gone_with_the_rows(source):
    rows = scan(source, "y")
    model = _fit(rows)
    number = rows.spool._held._scratch._file.fileno()
    assert os.fstat(number).st_nlink == 0
    assert os.fstat(number).st_size > TABLE.nbytes / 2
    del rows, model
    gc.collect()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)


def test_rows_that_travel_are_read_again(source, reads):
    rows = scan(source, "y")
    expected = _fit(rows)
    first = len(reads)
    again = pickle.loads(pickle.dumps(rows))
    assert not _is_whole(again)
    found = _fit(again)
    assert len(reads) == 2 * first
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-13)
    assert _is_whole(again)
    assert _is_whole(rows)
    np.testing.assert_array_equal(_fit(rows).coef_, expected.coef_)
    assert len(reads) == 2 * first


def test_a_look_that_was_stopped_can_be_made_again(source):
    stops = [True]

    def stop(step):
        if step.rows and stops:
            stops.pop()
            raise KeyboardInterrupt

    rows = scan(source, "y", progress=stop)
    with pytest.raises(Interrupted):
        _fit(rows)
    found = _fit(rows)
    assert _is_whole(rows)
    np.testing.assert_allclose(found.coef_, GaussianClassifier().fit(X, Y).coef_, rtol=1e-10)


def test_a_column_that_gets_a_wider_type_is_kept_as_such(tmp_path):
    """Whole numbers in the first mebibyte, decimals after it."""
    numbers = [*range(300_000), 0.5]
    lines = (f"{x},{'yes' if i % 3 else 'no'}" for i, x in enumerate(numbers))
    (tmp_path / "rows.csv").write_text("\n".join(["x,y", *lines]))
    rows = scan(tmp_path / "rows.csv", "y", columns=["x"])
    assert rows.n_rows == len(numbers)
    kept = pa.concat_tables([table for _, table in rows.spool.find(0, rows.n_rows)])
    np.testing.assert_array_equal(kept.column("x").to_numpy(), numbers)


SCHEMA = Schema(tuple(Column(f"x{j}", "numeric") for j in range(3)), named=True)


def test_columns_that_lie_side_by_side_are_not_copied():
    ((_, kept),) = _filled({0: TABLE}).find(0, N)
    table = plain_table(kept.select(SCHEMA.names), SCHEMA)
    assert isinstance(table, DenseTable)
    assert not table.copies
    del kept
    gc.collect()
    np.testing.assert_array_equal(table.values, X)
    with pytest.raises(ValueError, match="read-only"):
        table.values[0, 0] = 1.0
    rows = MemoryRows(table)
    total = rows.map_sum(lambda block: block.X.sum(axis=0))
    np.testing.assert_allclose(total, X.sum(axis=0), rtol=1e-12)


@pytest.mark.parametrize(
    "table",
    [
        TABLE,
        TABLE.set_column(1, "x1", pa.array(X[:, 1].astype(np.float32))),
        pa.concat_tables([TABLE.slice(0, 10), TABLE.slice(10, 20)]),
    ],
    ids=["elsewhere", "other types", "in chunks"],
)
@pytest.mark.parametrize("spooled", [False, True])
def test_columns_that_do_not_lie_side_by_side_are_put_there(table, spooled):
    found = table
    if spooled:
        ((_, found),) = _filled({0: table}).find(0, table.num_rows)
    columns = plain_table(found.select(SCHEMA.names), SCHEMA)
    assert isinstance(columns, DenseTable if spooled and table is TABLE else ColumnTable)
    expected = np.column_stack([table.column(name).to_numpy() for name in SCHEMA.names])
    np.testing.assert_array_equal(columns.cut(3, 20), expected[3:20])


def test_a_container_has_the_memory_that_it_is_given(tmp_path, monkeypatch):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr("posteriori.rows.kept.LIMITS", (str(limit), *LIMITS))
    machine = room_here()
    for text, expected in [("max\n", machine), ("1048576\n", Room("this container", 2**20))]:
        limit.write_text(text)
        assert room_here() == expected
