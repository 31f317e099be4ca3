"""A first look: parts of the rows, looked at one by one and added up in any order."""

from functools import reduce
from itertools import pairwise, permutations
from operator import add

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from scipy.stats import chi2

import posteriori.rows.look as looking
from posteriori.errors import (
    ColumnNameError,
    ColumnTypeError,
    LabelError,
    ShapeError,
    WeightError,
)
from posteriori.rows.chunk import Chunk, Reader, Roles
from posteriori.rows.in_memory import read_rows
from posteriori.rows.look import Drawn, look_at, sample_halvings, sample_limit, whole_look
from posteriori.rows.one_in import one_in

N = 60
CUTS = [0, 7, 7, 30, 31, N]


def _frame():
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "size": random.normal(size=N),
            "count": random.integers(0, 5, N),
            "old": random.uniform(size=N) < 0.4,
            "colour": random.choice(["blue", "green", "red"], size=N).astype(object),
            "y": random.choice(["a", "b", "c"], size=N).astype(object),
            "w": random.choice([0.0, 0.5, 2.0], size=N),
        }
    )


FRAME = _frame()
ROLES = Roles("y", "w")
FEATURES = ["size", "count", "old", "colour"]
KINDS = {
    "pandas": lambda frame: frame,
    "polars": lambda frame: pl.from_pandas(frame),
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}


def _look(number, data, roles=ROLES, **given):
    return look_at(number, roles.split(data), f"In part {number}", **given)


def _looks(make, frame=FRAME, cuts=CUTS):
    return [_look(i, make(frame.iloc[a:b]), start=a) for i, (a, b) in enumerate(pairwise(cuts))]


def _trees(looks):
    """Sums in many orders: one by one, backwards, shuffled, and in pairs."""
    yield reduce(add, looks)
    yield reduce(add, looks[::-1])
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(len(looks))
        yield reduce(add, [looks[i] for i in order])
    half = len(looks) // 2
    yield reduce(add, looks[half:]) + reduce(add, looks[:half])
    yield whole_look(looks)


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_looks_in_any_order_learn_what_all_rows_show(make):
    memory = read_rows(make(FRAME[FEATURES]), FRAME["y"], FRAME["w"])
    counts = [FRAME["w"][FRAME["y"] == name].sum() for name in "abc"]
    for look in _trees(_looks(make)):
        assert look.schema() == memory.schema
        assert look.n_rows == N
        assert look.starts() == {0: 0, 1: 7, 2: 7, 3: 30, 4: 31}
        assert look.weight == pytest.approx(FRAME["w"].sum(), rel=1e-14)
        assert look.labels.classes().tolist() == memory.classes.tolist() == ["a", "b", "c"]
        np.testing.assert_allclose(look.labels.weight, counts, rtol=1e-14)
        assert look.labels.count.tolist() == [
            ((FRAME["y"] == name) & (FRAME["w"] > 0)).sum() for name in "abc"
        ]


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_the_sample_of_few_rows_is_all_that_count_in_order(make):
    counting = np.flatnonzero(FRAME["w"])
    own = FRAME.iloc[counting]
    memory = read_rows(make(own[FEATURES]), own["y"], own["w"])
    for look in _trees(_looks(make)):
        rows = look.drawn.rows(Reader(look.schema(), look.labels.classes()))
        np.testing.assert_array_equal(rows.weight, memory.weight)
        np.testing.assert_array_equal(rows.y, memory.y)
        ours, theirs = (every.table.cut(0, len(counting)) for every in (rows, memory))
        np.testing.assert_array_equal(ours.numeric, theirs.numeric)
        np.testing.assert_array_equal(ours.codes, theirs.codes)


def test_nothing_is_drawn_of_rows_whose_numbers_are_unknown():
    drawn = whole_look([_look(i, FRAME.iloc[20 * i : 20 * i + 20]) for i in range(2)]).drawn
    assert drawn.n_rows == 0
    assert drawn.limit == sample_limit(4)


def _numbered(first, n, limit, halvings=0):
    places = np.arange(first, first + n, dtype=float)
    return Drawn.of(first, Chunk(places[:, None], None, places + 1.0), limit, halvings)


def _drawn(looks_in_order):
    drawn = reduce(add, looks_in_order)
    return drawn, np.concatenate([chunk.X[:, 0] for chunk in _in_order(drawn)])


def _in_order(drawn):
    return [chunk for _, chunk in sorted(drawn.parts, key=lambda part: part[0][0])]


def test_the_sample_does_not_depend_on_the_order_of_looks():
    cuts = [0, 100, 150, 151, 800, 3000, 5000]
    parts = [_numbered(a, b - a, 300) for a, b in pairwise(cuts)]
    first, rows = _drawn(parts)
    assert first.halvings >= 3
    for order in permutations(range(len(parts)), 6):
        if order[0] % 2 == order[5] % 3:  # some of the 720 orders
            other, again = _drawn([parts[i] for i in order])
            assert other.halvings == first.halvings
            np.testing.assert_array_equal(again, rows)
    early = [_numbered(a, b - a, 300, first.halvings - 1) for a, b in pairwise(cuts)]
    np.testing.assert_array_equal(_drawn(early)[1], rows)


@pytest.mark.parametrize("n", [900, 2000, 10_000, 30_000])
@pytest.mark.parametrize("limit", [50, 400])
@pytest.mark.parametrize("size", [64, 1000])
def test_the_sample_has_between_one_and_two_limits_of_many_rows(n, limit, size):
    cuts = [*range(0, n, size), n]
    parts = [_numbered(a, b - a, limit) for a, b in pairwise(cuts)]
    drawn, rows = _drawn(parts)
    # Halving leaves half of the rows, give or take three deviations.
    assert min(n, limit - 3 * (limit / 2) ** 0.5) <= len(rows) <= 2 * limit
    assert drawn.n_rows == len(rows) == len(set(rows))
    assert (np.diff(rows) > 0).all()
    weights = np.concatenate([chunk.weight for chunk in _in_order(drawn)])
    np.testing.assert_array_equal(weights, rows + 1)


@pytest.mark.parametrize("n", [200, 399, 401, 5000, 10_001])
@pytest.mark.parametrize("early", [False, True])
def test_counted_rows_are_drawn_alike_however_they_are_cut(n, early, monkeypatch):
    monkeypatch.setattr(looking, "SAMPLE_ENTRIES", 100)
    known = sample_halvings(n, 1)
    many = 2**known
    X = np.arange(n, dtype=float)[:, None]
    schema = look_at(0, Chunk(X), "").schema()
    for cuts in ([0, n], [0, 1, 130, 131, 190, n]):
        spans, halvings = reversed([*pairwise(cuts)]), known if early else 0
        looks = [look_at(a, Chunk(X[a:b]), "", halvings=halvings, start=a) for a, b in spans]
        drawn = whole_look(looks).drawn.halved(known)
        found = drawn.rows(Reader(schema, None)).table.values[:, 0]
        np.testing.assert_array_equal(found, one_in(many, 0, n))
        assert n // many <= len(found) <= min(-(-n // many), 200)
        assert (found // many).tolist() == sorted(set(found // many))  # one of each at most


def test_so_many_rows_are_one_sample():
    """All up to twice the limit, else one in eight or fewer."""
    limit = sample_limit(20)
    assert sample_halvings(2 * limit, 20) == 0
    assert sample_halvings(2 * limit + 1, 20) == sample_halvings(16 * limit, 20) == 3
    assert sample_halvings(16 * limit + 1, 20) == 4
    assert sample_halvings(10**12, 20) == 22


def test_few_rows_are_all_kept():
    drawn, rows = _drawn([_numbered(50 * i, 50, 100) for i in range(4)])
    assert drawn.halvings == 0
    assert rows.tolist() == list(range(200))


@pytest.mark.parametrize("start", [0, 2**35])
def test_all_rows_are_as_likely_to_be_drawn(start):
    """Pearson's statistic for where rows lie in the source, and for where in their chunk.

    As one in so many is taken all along the source, that is more even than chance would be.
    """
    n_chunks, size, limit = 200, 500, 4000
    _, rows = _drawn([_numbered(start + size * i, size, limit) for i in range(n_chunks)])
    rows -= start
    assert limit * 0.95 < len(rows) <= 2 * limit
    for places, bins in ((rows // 2000, 50), (rows % size // 10, 50), (rows % 7, 7)):
        counts = np.bincount(places.astype(int), minlength=bins)
        total = n_chunks * size
        width = np.array([len(range(k, total, 7)) for k in range(7)]) if bins == 7 else total / bins
        expected = len(rows) * width / total
        statistic = ((counts - expected) ** 2 / expected).sum()
        assert statistic < chi2.ppf(0.999, bins - 1)
        assert statistic > chi2.ppf(0.001, bins - 1) or bins == 50


def test_the_limit_is_set_by_the_columns(monkeypatch):
    monkeypatch.setattr(looking, "SAMPLE_ENTRIES", 4000)
    X = np.random.default_rng(1).normal(size=(3000, 20))
    looks = [look_at(i, Chunk(X[i * 1000 :][:1000]), "", start=i * 1000) for i in range(3)]
    look = whole_look(looks)
    assert look.drawn.limit == 200
    assert 170 <= look.drawn.n_rows <= 400
    assert look.n_rows == 3000


# Columns.


def test_levels_are_those_of_all_parts():
    parts = [
        pd.DataFrame({"colour": pd.array(names, dtype=object)})
        for names in (["red"], ["blue", None], [None], ["green", "red"])
    ]
    for look in _trees([_look(i, part, Roles()) for i, part in enumerate(parts)]):
        assert look.schema().columns[0].levels == ("blue", "green", "red")


def test_pandas_categories_keep_their_declared_order():
    declared = ["small", "medium", "large", "huge"]
    parts = [
        pd.DataFrame({"size": pd.Categorical(names, declared)})
        for names in (["large"], ["small", "large"], [None, "medium"])
    ]
    for look in _trees([_look(i, part, Roles()) for i, part in enumerate(parts)]):
        assert look.schema().columns[0].levels == ("small", "medium", "large")
    memory = read_rows(pd.concat(parts), list("abbaa"))
    assert look.schema() == memory.schema


def test_enums_of_polars_keep_their_declared_order():
    declared = pl.Enum(["small", "medium", "large"])
    parts = [pl.DataFrame({"size": pl.Series(x, dtype=declared)}) for x in (["large"], ["small"])]
    for look in _trees([_look(i, part, Roles()) for i, part in enumerate(parts)]):
        assert look.schema().columns[0].levels == ("small", "large")


def test_parts_that_declare_other_orders_are_taken_in_turn():
    """The order of the first part, then what later ones add; levels of text at the end, sorted."""
    parts = [
        pd.DataFrame({"size": pd.Categorical(["m", "s"], ["s", "m"])}),
        pd.DataFrame({"size": pd.Categorical(["l", "m"], ["l", "m", "s"])}),
        pd.DataFrame({"size": pd.array(["xs", "a"], dtype=object)}),
    ]
    for look in _trees([_look(i, part, Roles()) for i, part in enumerate(parts)]):
        assert look.schema().columns[0].levels == ("s", "m", "l", "a", "xs")


def test_kinds_of_parts_make_the_kind_of_the_whole():
    gap, number, flag = [np.nan, np.nan], [0.5, 1.0], [True, False]
    for parts, kind in (
        ([gap, number], "numeric"),
        ([gap, flag], "boolean"),
        ([gap, gap], "numeric"),
        ([flag, number], "numeric"),
        ([flag, flag, gap], "boolean"),
    ):
        looks = [_look(i, pd.DataFrame({"x": part}), Roles()) for i, part in enumerate(parts)]
        for look in _trees(looks):
            assert look.schema().columns[0].kind == kind


def test_a_part_without_values_may_belong_to_levels():
    parts = [pd.DataFrame({"x": [np.nan]}), pd.DataFrame({"x": pd.array(["a"], dtype=object)})]
    for look in _trees([_look(i, part, Roles()) for i, part in enumerate(parts)]):
        assert look.schema().columns[0].levels == ("a",)


def test_numbers_in_one_part_and_levels_in_another():
    parts = [pd.DataFrame({"x": [1.0]}), pd.DataFrame({"x": pd.array(["a"], dtype=object)})]
    looks = [_look(i, part, Roles()) for i, part in enumerate(parts)]
    for pair in (looks, looks[::-1]):
        with pytest.raises(ColumnTypeError, match="Column 'x' holds numbers in some parts"):
            whole_look(pair)


def test_parts_with_other_columns():
    looks = [_look(0, FRAME[:5]), _look(1, FRAME[5:9].rename(columns={"old": "new"}))]
    with pytest.raises(ColumnNameError, match=r"different columns: .*'old'.* here, .*'new'"):
        whole_look(looks)


def test_arrays_and_sparse_matrices_have_no_names():
    X = np.random.default_rng(2).poisson(1.0, size=(9, 3)).astype(float)
    for make in (np.asarray, sparse.csr_array):
        looks = [look_at(i, Chunk(make(X[i : i + 3])), "", start=i) for i in (0, 3, 6)]
        for look in _trees(looks):
            assert look.schema() == read_rows(X, range(9)).schema
            rows = look.drawn.rows(Reader(look.schema(), None))
            values = rows.map_sum(lambda block: [block.X])
            dense = [part.toarray() if sparse.issparse(part) else part for part in values]
            np.testing.assert_array_equal(np.concatenate(dense), X)


# Labels.


def _labels(parts, weights=None, **given):
    weights = weights or [None] * len(parts)
    return [
        look_at(i, Chunk(np.zeros((len(y), 1)), y, w), f"In part {i}", start=100 * i, **given)
        for i, (y, w) in enumerate(zip(parts, weights, strict=True))
    ]


def test_classes_are_those_of_all_parts_in_order():
    for parts, classes in (
        ([["b"], ["a", "c"], ["b"]], ["a", "b", "c"]),
        ([[3, 1], [2**40], [-5]], [-5, 1, 3, 2**40]),
        ([[True], [False]], [False, True]),
        ([[1.0], [0.0, 1.0]], [0.0, 1.0]),
        ([np.array([7], np.int8), np.array([300], np.int16)], [7, 300]),
        ([np.array(["a"]), np.array(["longer"])], ["a", "longer"]),
    ):
        for look in _trees(_labels(parts)):
            assert look.labels.classes().tolist() == classes


def test_classes_of_weightless_rows_alone_are_left_out():
    parts = [["a", "b"], ["z", "b"], ["z", "c", "a"]]
    weights = [[1.0, 0.0], [0.0, 0.0], [0.0, 0.5, 3.0]]
    for look in _trees(_labels(parts, weights)):
        assert look.labels.classes().tolist() == ["a", "c"]
        assert look.weight == 4.5
    memory = read_rows(np.zeros((7, 1)), reduce(add, parts), reduce(add, weights))
    assert memory.classes.tolist() == ["a", "c"]
    chunks = [Chunk(np.zeros((len(y), 1)), y, w) for y, w in zip(parts, weights, strict=True)]
    reader = Reader(look.schema(), look.labels.classes())
    counted = [reader(chunk, 0, "").map_sum(lambda b: list(b.y)) for chunk in chunks]
    assert reduce(add, counted) == [0, 1, 0]


@pytest.mark.parametrize(("weight", "match"), [(4e304, "too large"), (1e-307, "too small")])
def test_weights_that_no_sum_can_hold_are_refused(weight, match):
    """Though each part by itself would do."""
    X, w = np.ones((3, 1)), np.full(3, weight)
    parts = [look_at(i, Chunk(X, np.arange(3), w / 3), "") for i in range(9)]
    with pytest.raises(WeightError, match=match):
        whole_look(parts)


def test_no_row_has_any_weight():
    with pytest.raises(WeightError, match="zero in every row"):
        whole_look(_labels([["a"], ["b"]], [[0.0], [0.0]]))


def test_labels_that_are_none_are_told_of_when_classes_are_asked_for():
    parts = [["a", "b"], ["b", None], ["a"], [None, "a"]]
    for look in _trees(_labels(parts)):
        assert look.n_rows == 7
        with pytest.raises(LabelError, match=r"^In part 1: .*row 1\)"):
            look.labels.classes()


def test_a_real_target_has_no_classes():
    parts = [[1.0, 2.0], [0.5, 1.0], [3.0, 0.25]]
    for look in _trees(_labels(parts)):
        with pytest.raises(LabelError, match=r"^In part 1: .*continuous. Row 0 of y is 0\.5"):
            look.labels.classes()


def test_more_values_than_classes_can_be():
    parts = [range(6000), range(5000, 9000), range(8000, 12_000)]
    for look in _trees(_labels([list(part) for part in parts])):
        with pytest.raises(LabelError, match="more than 10,000 different values"):
            look.labels.classes()


@pytest.mark.parametrize(
    "parts", [[[1, 2], np.array(["a", "b"])], [[1, 2], np.array(["a", "b"], dtype=object)]]
)
def test_labels_of_two_kinds(parts):
    for look in _trees(_labels(parts)):
        with pytest.raises(LabelError, match="cannot be sorted"):
            look.labels.classes()


def test_shares_of_classes_are_added_up():
    shares = np.random.default_rng(4).dirichlet([1.0, 2.0, 3.0], size=10)
    frame = pd.DataFrame(shares, columns=["c", "a", "b"])
    parts = [frame[:4], frame[4:5], frame[5:]]
    weights = [np.arange(4.0), np.ones(1), np.full(5, 2.0)]
    expected = np.concatenate(weights) @ shares
    for look in _trees(_labels(parts, weights)):
        assert look.labels.soft
        assert look.labels.classes().tolist() == ["a", "b", "c"]
        np.testing.assert_allclose(look.labels.weight, expected[[1, 2, 0]], rtol=1e-13)
    for look in _trees(_labels([part.to_numpy() for part in parts], weights, classes=[9, 5, 7])):
        assert look.labels.classes().tolist() == [5, 7, 9]
        np.testing.assert_allclose(look.labels.weight, expected[[1, 2, 0]], rtol=1e-13)
        reader = Reader(look.schema(), look.labels.classes(), named=[9, 5, 7])
        rows = look.drawn.rows(reader)
        np.testing.assert_array_equal(rows.y, shares[1:, [1, 2, 0]])  # the first does not count


# Parts without rows.


def test_parts_without_rows_change_nothing():
    empty = _look(9, FRAME[:0])
    full = _looks(lambda frame: frame)
    for look in (reduce(add, [empty, *full]), reduce(add, [*full, empty]), empty + full[0]):
        assert look.starts()[9] == look.n_rows
    assert (empty + empty).n_rows == 0
    for parts in ([], [empty], [empty, _look(3, FRAME[:0])]):
        with pytest.raises(ShapeError, match="no rows"):
            whole_look(parts)


# What columns are.


def test_roles_name_columns_once():
    names = ["a", "b", "c", "d"]
    assert Roles("d").features(names) == ["a", "b", "c"]
    assert Roles(("c", "d"), "a").features(names) == ["b"]
    assert Roles("d", columns=("c", "a")).needed(names) == ["c", "a", "d"]
    assert Roles("d", "b", "a").needed(names) == ["c", "d", "b", "a"]
    for roles in (Roles("a", "a"), Roles("a", columns=("a",)), Roles(None, "b", "b")):
        with pytest.raises(ColumnNameError, match="named twice"):
            roles.features(names)
    with pytest.raises(ShapeError, match="0 feature"):
        Roles("d", "b", "a").features(["a", "b", "d"])
    with pytest.raises(ColumnNameError, match=r"weight='w' is not among .* 'n11', \.\.\.\."):
        Roles("n0", "w").features([f"n{i}" for i in range(40)])


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_a_frame_is_split_by_its_roles(make):
    chunk = Roles("y", "w", "size", ("colour", "old")).split(make(FRAME))
    assert chunk.n_rows == N
    some = chunk.take(np.array([3, 50, 51]))
    rows = Reader(look_at(0, chunk, "").schema(), np.array(["a", "b", "c"]))
    with pytest.raises(ShapeError, match="In all: offset has shape"):
        rows(some, 0, "In all")  # three classes have three activations
    two = Reader(rows.schema, None)(some._replace(y=None), 5, "In all")
    np.testing.assert_array_equal(two.weight, FRAME["w"][[3, 50, 51]])
    np.testing.assert_array_equal(two.offset, FRAME["size"][[3, 50, 51]])
    assert two.schema.names == ("colour", "old")
    assert two.start == 5
