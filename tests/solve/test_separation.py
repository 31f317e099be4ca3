"""Separation against linear programs with all rows, and against what is known of small examples."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import linprog

from posteriori.errors import InfiniteValueError, MissingValueError
from posteriori.rows.in_memory import MemoryRows, read_rows
from posteriori.rows.threads import threads
from posteriori.solve.separation import are_separable, find_separation, reach


def separation(X, y, **options):
    rows = read_rows(X, y)
    return find_separation(rows, len(rows.classes), **options)


def constraints_of(phi, support):
    """One constraint a row for each other class, and whether its margin must be zero."""
    K = support.shape[1]
    matrix, equal = [], []
    for row, shared in zip(phi, support, strict=True):
        own = shared.argmax()
        for k in set(range(K)) - {own}:
            e = np.zeros(K)
            e[own], e[k] = 1.0, -1.0
            matrix.append(np.outer(row, e[1:] if K == 2 else e).ravel())
            equal.append(shared[k])
    return np.array(matrix), np.array(equal, dtype=bool)


def by_all_rows(phi, support):
    """The kind, and the constraints at zero in the end: Konis's program, over and over."""
    matrix, equal = constraints_of(phi, support)
    left, found = np.ones(len(matrix), dtype=bool), False
    while (left & ~equal).any():
        free, fixed = matrix[left & ~equal], matrix[left & equal]
        best = linprog(
            -free.sum(axis=0),
            A_ub=-free,
            b_ub=np.zeros(len(free)),
            A_eq=fixed if len(fixed) else None,
            b_eq=np.zeros(len(fixed)) if len(fixed) else None,
            bounds=(-1, 1),
        )
        separated = left & ~equal & (matrix @ best.x > 1e-7)
        if not separated.any():
            break
        found, left = True, left & ~separated
    kind = "none" if not found else "quasi" if left.any() else "complete"
    return kind, left, matrix


def small_rows(random):
    """A few rows of small whole numbers, with labels that may or may not follow them."""
    K, d = int(random.choice([2, 2, 3, 4])), int(random.integers(1, 5))
    n = int(random.integers(K, 25))
    X = random.integers(-2, 3, size=(n, d)).astype(float)
    if random.random() < 0.3 and d > 1:
        X[:, -1] = 2 * X[:, 0] - 1
    noise = random.integers(-1, 2, size=(n, K)) * (random.random() < 0.5)
    y = (X @ random.integers(-2, 3, size=(d, K)) + noise).argmax(axis=1)
    if random.random() < 0.5:
        y = random.integers(K, size=n)
    y[:K] = np.arange(K)
    return X, y, K


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_the_verdict_is_that_of_a_program_with_all_rows(seed, soft):
    random = np.random.default_rng([seed, soft])
    X, y, K = small_rows(random)
    shares = np.eye(K)[y]
    if soft:
        shares[0] = random.dirichlet(np.ones(K))
        shares[-1] = [0.5, 0.5, *[0.0] * (K - 2)]
    intercept = bool(seed % 3)
    found = separation(X, shares if soft else y, fit_intercept=intercept)
    phi = np.column_stack([np.ones(len(X)), X]) if intercept else X
    kind, left, matrix = by_all_rows(phi, shares > 0)
    assert found.kind == kind
    margins = matrix @ found.ray.ravel()
    assert_allclose(margins[left], 0.0, atol=1e-6)
    assert (margins[~left] > 1 - 1e-6).all()


def test_one_column_that_tells_the_classes_apart_is_named():
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 6))
    found = separation(pd.DataFrame(X, columns=list("abcdef")), X[:, 3] < 0.4)
    assert found.kind == "complete"
    assert found.columns == ("intercept", "d")
    assert found.directions.tolist() == [1.0, -1.0]
    assert not found.ray[[1, 2, 3, 5, 6]].any()


def test_two_rows_apart_give_the_known_ray():
    """Margins of one on both sides: 2(x - 1)/(3 - 1)."""
    found = separation(np.array([[0.0], [1.0], [3.0], [4.0]]), [0, 0, 1, 1])
    assert found.kind == "complete"
    assert found.columns == ("intercept", "x0")
    assert_allclose(found.ray, [[-2.0], [1.0]], rtol=1e-9)


def test_classes_that_touch_in_a_point_are_separated_but_there():
    x = np.array([[0.0], [1.0], [2.0], [2.0], [3.0], [5.0]])
    found = separation(x, [0, 0, 0, 1, 1, 1])
    assert found.kind == "quasi"
    assert_allclose(found.ray, [[-2.0], [1.0]], rtol=1e-9)


def test_a_level_with_one_class_only_is_named_with_its_direction():
    frame = pd.DataFrame(
        {
            "size": [1.0, 2.0, 3.0, 1.5, 2.5, 0.5, 2.2, 1.1],
            "colour": ["blue", "blue", "blue", "blue", "green", "green", "red", "red"],
        }
    )
    y = np.array(["no", "yes", "no", "yes", "yes", "yes", "no", "no"])
    found = separation(frame, y)
    assert found.kind == "quasi"
    assert found.columns == ("colour[green]", "colour[red]")
    assert found.directions.tolist() == [1.0, -1.0]
    assert_allclose(found.ray[:, 0], [0.0, 0.0, 1.0, -1.0], atol=1e-9)


def test_a_pure_reference_level_shows_in_the_intercept():
    frame = pd.DataFrame({"f": ["a", "a", "b", "b", "c", "c"]})
    found = separation(frame, [0, 0, 0, 1, 0, 1])
    assert found.kind == "quasi"
    assert found.columns == ("intercept", "f[b]", "f[c]")
    assert found.directions.tolist() == [-1.0, 1.0, 1.0]


def test_only_the_class_that_stands_apart_is_named():
    random = np.random.default_rng(1)
    X, y = random.normal(size=(300, 4)), random.integers(4, size=300)
    y[y == 2] = 0
    y[X[:, 1] > 1.2] = 2
    found = separation(X, y)
    assert found.kind == "quasi"
    assert found.columns == ("intercept", "x1")
    assert found.directions.tolist() == [[0.0, 0.0, -1.0, 0.0], [0.0, 0.0, 1.0, 0.0]]


def test_a_class_without_rows_is_ruled_out_by_its_intercept():
    random = np.random.default_rng(2)
    rows = read_rows(random.normal(size=(60, 2)), np.arange(60) % 2, classes=[0, 1, 2])
    found = find_separation(rows, 3)
    assert found.kind == "quasi"
    assert found.columns == ("intercept",)
    assert found.directions.tolist() == [[0.0, 0.0, -1.0]]


def test_classes_in_the_corners_of_a_triangle_are_separated():
    corners = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
    y = np.arange(90) % 3
    X = corners[y] + np.random.default_rng(3).uniform(-1, 1, size=(90, 2))
    found = separation(X, y)
    assert found.kind == "complete"
    activation = np.column_stack([np.ones(90), X]) @ found.ray
    own = activation[np.arange(90), y]
    activation[np.arange(90), y] = -np.inf
    assert (own - activation.max(axis=1) > 1 - 1e-6).all()


def test_rows_of_both_classes_everywhere_are_not_separated():
    X = np.repeat(np.random.default_rng(4).normal(size=(20, 3)), 2, axis=0)
    found = separation(X, np.arange(40) % 2)
    assert found.kind == "none"
    assert found.columns == ()
    assert found.directions.shape == (0,)
    assert not found.ray.any()
    assert found.standard is None


def test_columns_that_repeat_others_are_no_separation():
    random = np.random.default_rng(5)
    X = random.normal(size=(200, 3))
    X = np.column_stack([X, X[:, 0] - 2 * X[:, 1], X[:, 2], np.full(200, 3.0)])
    y = X[:, 0] + random.logistic(size=200) > 0
    assert separation(X, y).kind == "none"
    assert separation(X, X[:, 0] > 0).kind == "complete"


def test_one_strictly_separated_row_among_many_is_found():
    random = np.random.default_rng(6)
    X, y = random.normal(size=(20_000, 3)), random.integers(2, size=20_000)
    X = np.column_stack([X, np.arange(20_000) == 777])
    found = separation(X, y)
    assert found.kind == "quasi"
    assert found.columns == ("x3",)
    assert found.directions.tolist() == [1.0 if y[777] else -1.0]


KINDS = {
    "none": lambda X, noise: (X, X @ [1.0, -1.0, 0.5] + noise > 0),
    "complete": lambda X, noise: (X, X @ [1.0, -1.0, 0.5] > 0),
    "quasi": lambda X, noise: (
        np.column_stack([X[:, :2], X[:, 2] > 1]),
        (X[:, 2] > 1) | (X[:, 0] + noise > 0),
    ),
}
UNITS = {
    "1e150": lambda X: X * 1e150,
    "1e-150": lambda X: X * 1e-150,
    "all sizes": lambda X: X * [1e150, 1e-150, 1e-8],
    "1e307": lambda X: X * (1e307 / abs(X).max()),
    "1e-300": lambda X: X * 1e-300,
    "far away": lambda X: X + 1e8 * X.std(axis=0),
    "far away in 1e150": lambda X: (X + 1e6) * 1e150,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
def test_units_and_origins_change_no_verdict(kind, unit):
    random = np.random.default_rng(7)
    X, y = KINDS[kind](random.normal(size=(400, 3)), random.logistic(size=400))
    plain, found = separation(X, y), separation(unit(X), y)
    assert found.kind == plain.kind == kind
    assert set(found.columns) - {"intercept"} == set(plain.columns) - {"intercept"}


@pytest.mark.parametrize("wild", [1e6, 1e10, 1e12, 1e200])
def test_a_code_for_missing_that_is_far_out_is_no_separation(wild):
    """Classes overlap in the rest of the column, so no slope there is infinite."""
    random = np.random.default_rng(8)
    X = random.normal(size=(400, 3))
    y = (X @ [-1.0, -1.0, 0.5] + random.logistic(size=400) > 0).astype(int)
    X[::50, 0], y[::50] = wild, 1
    assert separation(X, y).kind == "none"


@pytest.mark.parametrize("gap", [1e-6, 1e-9, 1e-11])
def test_a_narrow_gap_is_a_gap(gap):
    x = np.concatenate([np.linspace(0.0, 0.4, 49), [0.5, 0.5 + gap], np.linspace(0.6, 1.0, 49)])
    y = np.arange(100) >= 50
    assert separation(x[:, None], y).kind == "complete"
    y[[49, 50]] = y[[50, 49]]
    kind = "none" if gap > 1e-10 else "quasi"  # such an overlap is taken for touching
    assert separation(x[:, None], y).kind == kind


@pytest.mark.parametrize("kind", KINDS)
def test_storage_changes_no_verdict(kind):
    random = np.random.default_rng(9)
    X, y = KINDS[kind](random.normal(size=(400, 3)), random.logistic(size=400))
    for source in (sparse.csr_array(X), pd.DataFrame(X), X + 1e6, sparse.csr_array(X + 1e6)):
        assert separation(source, y).kind == kind


def test_without_an_intercept_the_boundary_goes_through_zero():
    x = np.array([[1.0], [2.0], [3.0], [4.0]])
    assert separation(x, [0, 0, 1, 1]).kind == "complete"
    assert separation(x, [0, 0, 1, 1], fit_intercept=False).kind == "none"
    found = separation(x * [[-1], [-1], [1], [1]], [0, 0, 1, 1], fit_intercept=False)
    assert found.kind == "complete"
    assert found.columns == ("x0",)
    assert_allclose(found.ray, [[1.0]], rtol=1e-9)


def by_count(block):
    """The first of two classes where a row counted nothing, both where it counted something."""
    return np.column_stack([np.ones(len(block.y), dtype=bool), block.y > 0])


def counts(X, t, **options):
    table = read_rows(X, np.zeros(len(X)), least_classes=1).table
    rows = MemoryRows(table, np.asarray(t, dtype=float))
    return rows, find_separation(rows, 2, support=by_count, **options)


def test_counts_run_away_where_a_level_never_counts_anything():
    X = np.column_stack([np.arange(8) >= 5, [3.0, 1.0, 2.0, 4.0, 0.0, 1.0, 2.0, 3.0]])
    _, found = counts(X, [2, 0, 1, 5, 3, 0, 0, 0])
    assert found.kind == "quasi"
    assert found.columns == ("x0",)
    assert found.directions.tolist() == [-1.0]
    _, found = counts(X, [2, 0, 1, 5, 3, 0, 1, 0])
    assert found.kind == "none"
    _, found = counts(X, np.zeros(8))
    assert found.kind == "complete"
    assert found.columns == ("intercept",)


def test_the_reach_gives_every_separated_row_its_margin():
    random = np.random.default_rng(10)
    X, y = KINDS["quasi"](random.normal(size=(400, 3)), random.logistic(size=400))
    rows = read_rows(X, y)
    found = find_separation(rows, 2)
    theta = random.normal(size=(4, 1))
    t = reach(rows, found, theta, margin=40.0)
    phi, sign = np.column_stack([np.ones(400), X]), np.where(y, 1.0, -1.0)
    off_face = abs(phi @ found.ray)[:, 0] > 0.5
    margins = (sign * (phi @ (theta + t * found.ray))[:, 0])[off_face]
    assert_allclose(margins.min(), 40.0, rtol=1e-9)
    assert reach(rows, found, theta + 2 * t * found.ray, margin=40.0) == 0.0
    overlapping = find_separation(read_rows(X[:, :2], np.arange(400) % 2), 2)
    assert reach(rows, overlapping, theta[:3], margin=40.0) == 0.0


def test_many_rows_are_decided_by_few():
    random = np.random.default_rng(11)
    X = random.normal(size=(50_000, 10))
    w = random.normal(size=10)
    assert separation(X, X @ w > 0).kind == "complete"
    assert separation(X, X @ w + 0.05 * random.normal(size=50_000) > 0).kind == "none"


def test_blocks_and_threads_change_no_bit():
    random = np.random.default_rng(12)
    X = random.normal(size=(60_000, 4))
    rows = read_rows(X, (X @ random.normal(size=(4, 3))).argmax(axis=1))
    found = []
    for count in (1, 2):
        with threads(count):
            found.append(find_separation(rows, 3).ray)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("K", [2, 3, 20])
def test_separability_is_complete_separation(K):
    random = np.random.default_rng(13)
    X = random.normal(size=(200, 4))
    apart = read_rows(X, (X @ random.normal(size=(4, K))).argmax(axis=1), classes=np.arange(K))
    mixed = read_rows(X, np.arange(200) % K)
    for suspects in ([], list(range(K))):
        assert are_separable(apart, K, suspects)
        assert not are_separable(mixed, K, suspects)


@pytest.mark.parametrize(
    ("value", "error"), [(np.nan, MissingValueError), (np.inf, InfiniteValueError)]
)
def test_entries_that_are_no_numbers_are_named(value, error):
    X = np.random.default_rng(14).normal(size=(30, 2))
    X[7, 1] = value
    with pytest.raises(error, match="row 7, column 1"):
        separation(X, np.arange(30) % 2)
