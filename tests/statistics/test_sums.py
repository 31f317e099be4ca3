"""Laws that every statistic keeps: it is a sum over rows, and a row counts by its weight."""

from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from statistics_registry import STATISTICS, assert_numbers, assert_same, numbers

from posteriori.errors import InfiniteValueError, MissingValueError, StatisticsError
from posteriori.rows.in_memory import read_rows
from posteriori.rows.schema import Schema
from posteriori.rows.threads import threads

rng = np.random.default_rng(11)
N, D, K = 240, 3, 4
X = rng.normal(size=(N, D)) @ rng.normal(size=(D, D)) + [0.0, 5.0, -1.0]
Y = rng.choice(K, size=N, p=[0.5, 0.3, 0.15, 0.05])
HOT = np.eye(K)[Y]
SOFT = rng.dirichlet(np.full(K, 0.4), size=N)
W = rng.choice([0.0, 0.5, 1.0, 3.0], size=N)
CLASSES = np.arange(K)

every_statistic = pytest.mark.parametrize("name", STATISTICS)
hard_and_soft = pytest.mark.parametrize("y", [Y, SOFT], ids=["hard", "soft"])
weighted = pytest.mark.parametrize("weight", [None, W], ids=["unweighted", "weighted"])


@every_statistic
@hard_and_soft
@weighted
@pytest.mark.parametrize("source", [np.asarray, np.asfortranarray, sparse.csr_array, pl.DataFrame])
def test_it_is_the_plain_formula(name, y, weight, source):
    entry = STATISTICS[name]
    found = entry.of(source(X), y, weight)
    T = HOT if y is Y else SOFT
    assert_numbers(found, entry.formula(X, T, np.ones(N) if weight is None else weight))
    assert found.classes.tolist() == [0, 1, 2, 3]


@every_statistic
def test_it_is_the_plain_formula_of_a_table_with_factors(name):
    entry = STATISTICS[name]
    letters = np.array(["u", "v", "w"])[rng.integers(0, 3, size=N)]
    frame = pl.DataFrame({"f": letters, "a": X[:, 0], "b": X[:, 1]})
    matrix = np.column_stack([letters == "v", letters == "w", X[:, :2]]).astype(float)
    assert_numbers(entry.of(frame, Y, W), entry.formula(matrix, HOT, W))


@every_statistic
@hard_and_soft
@settings(max_examples=25, deadline=None)
@given(
    cuts=st.lists(st.integers(1, N - 1), max_size=12),
    seed=st.integers(0, 2**32 - 1),
    weights=st.booleans(),
)
def test_any_split_in_any_order_is_the_pooled_statistic(name, y, cuts, seed, weights):
    """Parts of a row or two hold few of the classes, so some classes are empty in most parts."""
    entry = STATISTICS[name]
    weight = W + 0.25 if weights else None
    shuffled = np.random.default_rng(seed)
    order = shuffled.permutation(N)
    parts = [part for part in np.split(order, sorted(set(cuts))) if len(part)]
    shuffled.shuffle(parts)
    found = sum(
        entry.of(X[part], y[part], None if weight is None else weight[part], CLASSES)
        for part in parts
    )
    assert_same(found, entry.of(X, y, weight))


@every_statistic
@hard_and_soft
def test_one_row_at_a_time_is_the_pooled_statistic(name, y):
    entry = STATISTICS[name]
    assert_same(entry.of(X, y, block_entries=1), entry.of(X, y))


@every_statistic
def test_a_tree_of_additions_is_the_chain(name):
    entry = STATISTICS[name]
    parts = [entry.of(X[i : i + 30], Y[i : i + 30], None, CLASSES) for i in range(0, N, 30)]
    while len(parts) > 1:
        parts = [a + b for a, b in zip(parts[::2], parts[1::2], strict=True)]
    assert_same(parts[0], entry.of(X, Y))


@every_statistic
def test_zero_is_the_identity(name):
    a = STATISTICS[name].of(X, Y)
    assert 0 + a is a
    assert sum([a]) is a


@every_statistic
@hard_and_soft
def test_adding_leaves_the_terms_alone(name, y):
    entry = STATISTICS[name]
    a, b = entry.of(X[:100], y[:100], None, CLASSES), entry.of(X[100:], y[100:], None, CLASSES)
    before = [{k: v.copy() for k, v in numbers(s).items()} for s in (a, b)]
    assert_same(a + b, b + a)
    assert_numbers(a, before[0], 0.0)
    assert_numbers(b, before[1], 0.0)


@every_statistic
@hard_and_soft
def test_the_users_rows_are_left_alone(name, y):
    own, labels, weight = X.copy(), y.copy(), W.copy()
    STATISTICS[name].of(own, labels, weight)
    np.testing.assert_array_equal(own, X)
    np.testing.assert_array_equal(labels, y)
    np.testing.assert_array_equal(weight, W)


@every_statistic
def test_the_bits_do_not_depend_on_the_threads(name):
    entry = STATISTICS[name]
    large, codes = rng.normal(size=(30_000, 6)), rng.integers(0, 3, size=30_000)
    found = []
    for n in (1, 2):
        with threads(n):
            found.append(numbers(entry.of(large, codes, block_entries=9_000)))
    for field, value in found[0].items():
        np.testing.assert_array_equal(value, found[1][field])


# Weights.


@every_statistic
@hard_and_soft
def test_weight_two_is_the_row_twice(name, y):
    entry = STATISTICS[name]
    twice = rng.choice([1, 2, 3], size=N)
    places = np.repeat(np.arange(N), twice)
    assert_same(entry.of(X, y, twice), entry.of(X[places], y[places]))


@every_statistic
@hard_and_soft
@pytest.mark.parametrize("source", [np.asarray, sparse.csr_array])
def test_weight_zero_is_the_row_dropped(name, y, source):
    entry = STATISTICS[name]
    spoilt = X.copy()
    spoilt[W == 0] = np.nan
    kept = W > 0
    assert_same(entry.of(source(spoilt), y, W), entry.of(source(X[kept]), y[kept], W[kept]))


@every_statistic
@hard_and_soft
@pytest.mark.parametrize("source", [np.asarray, sparse.csr_array, pl.DataFrame])
def test_a_block_of_weight_zero_adds_nothing(name, y, source):
    entry = STATISTICS[name]
    weight = np.ones(N)
    weight[:20] = weight[60:150] = 0.0
    kept = weight > 0
    found = entry.of(source(X), y, weight, block_entries=10 * D)
    assert_same(found, entry.of(X[kept], y[kept], None, CLASSES))


# Soft labels.


@every_statistic
@weighted
@pytest.mark.parametrize("source", [np.asarray, sparse.csr_array])
def test_soft_labels_of_ones_and_zeros_are_hard_labels(name, weight, source):
    entry = STATISTICS[name]
    assert_same(entry.of(source(X), HOT, weight), entry.of(source(X), Y, weight))


@every_statistic
def test_a_soft_label_is_the_row_in_every_class_with_its_share_as_weight(name):
    entry = STATISTICS[name]
    rows, classes = np.repeat(np.arange(N), K), np.tile(CLASSES, N)
    split = entry.of(X[rows], classes, (SOFT * (W + 1)[:, None]).ravel(), CLASSES)
    assert_same(entry.of(X, SOFT, W + 1), split)


# Classes.


# The two groups are made by place, so they differ where classes do; test_moments adds such sites.
@pytest.mark.parametrize("name", [name for name in STATISTICS if "two groups" not in name])
@pytest.mark.parametrize("labels", [np.array(list("abcd")), np.array([-3, 0, 10**12, 10**13])])
def test_statistics_of_different_classes_add_up_to_the_pooled_one(name, labels):
    entry = STATISTICS[name]
    y = labels[Y]
    few = np.isin(Y, (0, 2))
    a = entry.of(X[few], y[few])
    b = entry.of(X[~few], y[~few])
    both = np.arange(N) % 2 == 0
    c = entry.of(X[both], y[both])
    assert a.classes.tolist() == labels[[0, 2]].tolist()
    assert_same(a + b, entry.of(X, y))
    assert_same(b + a, entry.of(X, y))
    assert_same(sum([a, c]), sum([c, a]))
    assert_same(a + c, entry.of(np.vstack([X[few], X[both]]), np.r_[y[few], y[both]]))


@every_statistic
def test_many_classes_are_the_plain_formula(name):
    entry = STATISTICS[name]
    y = np.r_[np.arange(100), rng.integers(0, 100, size=N - 100)]
    assert_numbers(entry.of(X, y), entry.formula(X, np.eye(100)[y], np.ones(N)))


@every_statistic
def test_classes_of_different_kinds_do_not_add(name):
    entry = STATISTICS[name]
    a = entry.of(X, Y % 2)
    b = entry.of(X, np.array(["0", "1"])[Y % 2])
    with pytest.raises(StatisticsError, match="cannot be sorted together"):
        a + b


@every_statistic
def test_strings_add_whatever_array_holds_them(name):
    entry = STATISTICS[name]
    y = np.array(["a", "b"])[Y % 2]
    assert_same(entry.of(X, y) + entry.of(X, y.astype(object)), entry.of(X, y, np.full(N, 2.0)))


# Columns and units.


@every_statistic
def test_different_columns_do_not_add(name):
    entry = STATISTICS[name]
    a = entry.of(pl.DataFrame(X, schema=["age", "mass", "size"]), Y)
    b = entry.of(pl.DataFrame(X, schema=["age", "mass", "width"]), Y)
    for other in (b, entry.of(X[:, :2], Y), replace(a, schema=Schema.of_names("pqr"))):
        with pytest.raises(StatisticsError, match=r"different columns: .*'age', 'mass', 'size'"):
            a + other


@every_statistic
def test_equal_columns_read_twice_add(name):
    entry = STATISTICS[name]
    frame = pl.DataFrame(X, schema=["age", "mass", "size"])
    assert_same(entry.of(frame, Y) + entry.of(frame, Y), entry.of(X, Y, np.full(N, 2.0)))


@every_statistic
@hard_and_soft
def test_statistics_in_different_units_add(name, y):
    entry = STATISTICS[name]
    parts = []
    for rows, unit in (
        (slice(0, 80), None),
        (slice(80, 150), np.array([2.0, 2.0**-40, 2.0**300])),
        (slice(150, N), np.array([2.0**-7, 1.0, 2.0**-9])),
    ):
        part = read_rows(X[rows], y[rows], None, CLASSES)
        parts.append(part.map_sum(replace(entry.of_rows(part), unit=unit)))
    expected = entry.of(X, y)
    for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2)):
        found = reduce(add, [parts[i] for i in order])
        assert found.unit.tolist() == [2.0, 1.0, 2.0**300]
        assert_same(found.in_units(np.ones(D)), expected)


# Bad entries.


@every_statistic
@hard_and_soft
@pytest.mark.parametrize("source", [np.asarray, sparse.csr_array, pl.DataFrame])
def test_infinity_is_named_wherever_it_lies(name, y, source):
    bad = X.copy()
    bad[[137, 200], [2, 0]] = [np.inf, -np.inf]
    column = "'column_2'" if source is pl.DataFrame else "2"
    with pytest.raises(InfiniteValueError, match=f"row 137, column {column}"):
        STATISTICS[name].of(source(bad), y, W + 1, block_entries=100)


@pytest.mark.parametrize("name", [name for name in STATISTICS if name != "column moments"])
@hard_and_soft
@pytest.mark.parametrize("source", [np.asarray, sparse.csr_array, pl.DataFrame])
def test_a_missing_entry_is_named_wherever_it_lies(name, y, source):
    bad = X.copy()
    bad[[137, 200], [2, 0]] = np.nan
    column = "'column_2'" if source is pl.DataFrame else "2"
    with pytest.raises(MissingValueError, match=f"row 137, column {column}"):
        STATISTICS[name].of(source(bad), y, W + 1, block_entries=100)
