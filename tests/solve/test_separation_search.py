"""Separation against linear programs with all rows, and against what is known of small examples."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from posteriori.rows.in_memory import read_rows
from posteriori.solve import separation as solve_separation
from posteriori.solve.separation import are_separable, find_separation
from posteriori.statistics.separation_margins import pair_sums


def separation(X, y, fit_intercept=True, **options):
    rows = read_rows(X, y)
    sums = pair_sums(rows, len(rows.classes), fit_intercept=fit_intercept)
    found = find_separation(*sums, **options)
    assert are_separable(*sums) == (found.kind == "complete")
    return found


def constraints_of(phi, support):
    """One constraint a row for each other class, and whether its margin must be zero."""
    K = support.shape[1]
    matrix, equal = [], []
    for row, shared in zip(phi, support, strict=True):
        own = shared.argmax()
        for k in set(range(K)) - {own}:
            e = np.eye(K)[own] - np.eye(K)[k]
            matrix.append(np.outer(row, e[1:] if K == 2 else e).ravel())
            equal.append(shared[k])
    return np.array(matrix), np.array(equal, dtype=bool)


def by_all_rows(phi, support):
    """The kind, and the constraints at zero in the end: Konis's program, over and over."""
    matrix, equal = constraints_of(phi, support)
    left = np.ones(len(matrix), dtype=bool)
    while (left & ~equal).any():
        total = -matrix[left & ~equal].sum(axis=0)
        most = np.where(equal[left], 0.0, np.inf)
        margins = LinearConstraint(matrix[left], 0.0, most)
        best = milp(total, constraints=margins, bounds=Bounds(-1, 1))
        separated = left & ~equal & (matrix @ best.x > 1e-7)
        if not separated.any():
            break
        left &= ~separated
    kind = "none" if left.all() else "quasi" if left.any() else "complete"
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
@pytest.mark.parametrize("seed", range(30))
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
    margins = matrix @ found.ray.T.ravel()
    assert_allclose(margins[left], 0.0, atol=1e-6)
    assert (margins[~left] > 1 - 1e-6).all()


RANDOM = np.random.default_rng(0)
Z, LABELS = RANDOM.normal(size=(300, 4)), RANDOM.integers(2, size=300)
LINE, COLOUR = np.array([[0.0], [1.0], [3.0], [4.0]]), list("bbbbggrr")
SIZES = pd.DataFrame({"size": [1.0, 2.0, 3.0, 1.5, 2.5, 0.5, 2.2, 1.1], "colour": COLOUR})
NOT_SEPARATED = ("none", (), [])
FOUND = {  # X, y, settings, kind, columns, directions
    "one column tells the classes apart": (
        pd.DataFrame(Z, columns=list("abcd")), Z[:, 3] < 0.4, {},
        ("complete", ("intercept", "d"), [1, -1]),
    ),
    "a level with one class only": (
        SIZES, [0, 1, 0, 1, 1, 1, 0, 0], {}, ("quasi", ("colour[g]", "colour[r]"), [1, -1]),
    ),
    "a pure reference level": (
        pd.DataFrame({"f": list("aabbcc")}), [0, 0, 0, 1, 0, 1], {},
        ("quasi", ("intercept", "f[b]", "f[c]"), [-1, 1, 1]),
    ),
    "one class of three stands apart": (
        Z, np.where(Z[:, 1] > 1.2, 2, LABELS), {},
        ("quasi", ("intercept", "x1"), [[0, 0, -1], [0, 0, 1]]),
    ),
    "one row": (
        np.column_stack([Z, np.arange(300) == 77]), np.where(np.arange(300) == 77, 1, LABELS), {},
        ("quasi", ("x4",), [1]),
    ),
    "rows of both classes everywhere": (
        np.repeat(Z[:20], 2, axis=0), np.arange(40) % 2, {}, NOT_SEPARATED,
    ),
    "no boundary through zero": (LINE, [0, 0, 1, 1], {"fit_intercept": False}, NOT_SEPARATED),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_kind_columns_and_directions_of_known_examples(name):
    X, y, settings, (kind, columns, directions) = FOUND[name]
    found = separation(X, np.asarray(y), **settings)
    assert (found.kind, found.columns) == (kind, columns)
    assert found.directions.tolist() == directions


KINDS = {
    "none": lambda X, noise: (X, X @ [1.0, -1.0, 0.5] + noise > 0),
    "complete": lambda X, noise: (X, X @ [1.0, -1.0, 0.5] > 0),
    "quasi": lambda X, noise: (
        np.column_stack([X[:, :2], X[:, 2] > 1]),
        (X[:, 2] > 1) | (X[:, 0] + noise > 0),
    ),
}
UNITS = {
    "all sizes": lambda X: X * [1e150, 1e-150, 1e-8],
    "far away": lambda X: X + 1e8 * X.std(axis=0),
    "sparse": sparse.csr_array,
    "sparse, far away": lambda X: sparse.csr_array(X + 1e6),
    "frame": lambda X: pd.DataFrame(X, columns=["x0", "x1", "x2"]),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
def test_units_origins_and_storage_change_no_verdict(kind, unit):
    random = np.random.default_rng(7)
    X, y = KINDS[kind](random.normal(size=(400, 3)), random.logistic(size=400))
    plain, found = separation(X, y), separation(unit(X), y)
    assert found.kind == plain.kind == kind
    assert set(found.columns) - {"intercept"} == set(plain.columns) - {"intercept"}


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-11])
def test_a_narrow_gap_is_a_gap_unless_it_cannot_be_distinguished_from_touching(gap):
    x = np.concatenate([np.linspace(0.0, 0.4, 49), [0.5, 0.5 + gap], np.linspace(0.6, 1.0, 49)])
    y, touching = np.arange(100) >= 50, gap < 1e-10
    assert separation(x[:, None], y).kind == ("quasi" if touching else "complete")
    y[[49, 50]] = y[[50, 49]]
    assert separation(x[:, None], y).kind == ("quasi" if touching else "none")


@pytest.mark.parametrize(("K", "d", "work"), [(2, 20, 1e3), (60, 3, 1e5)])
def test_a_search_that_takes_too_long_is_undecided(monkeypatch, K, d, work):
    X, y = np.random.default_rng(15).normal(size=(400, d)), np.arange(400) % K
    monkeypatch.setattr(solve_separation, "_WORK", work)
    sums = pair_sums(read_rows(X, y), K)
    found = find_separation(*sums)
    assert found.kind == "undecided"
    assert not found.is_found
    assert are_separable(*sums) is None


def test_a_guess_does_not_separate_a_row_that_two_classes_share():
    rows = read_rows([[0.0], [1.0], [2.0]], np.array([[1.0, 0.0], [1.0, 0.0], [0.5, 0.5]]))
    found = find_separation(*pair_sums(rows, 2), guess=np.array([[-9.0, 1.0]]))
    assert found.kind == "quasi"
    assert_allclose(np.array([[1.0, 2.0]]) @ found.ray.T, 0.0, atol=1e-9)


def test_parameters_that_are_fixed_stay():
    X = np.array([[-2.0, 0.3], [-1.0, -0.2], [1.0, 0.1], [2.0, -0.3]])
    rows = read_rows(X, [0, 0, 1, 1])
    assert find_separation(*pair_sums(rows, 2), fixed=np.array([False, True, False])).kind == "none"
    found = find_separation(*pair_sums(rows, 2), fixed=np.array([True, False, True]))
    assert (found.kind, found.columns) == ("complete", ("x0",))


def test_factors_of_many_levels_are_decided_by_sparse_programs():
    random = np.random.default_rng(17)
    level, y = np.repeat(np.arange(2000), 4), np.tile([0, 1, 0, 1], 2000)
    pure = random.choice(np.arange(1, 2000), 30, replace=False)
    y[np.isin(level, pure)] = 1
    frame = pd.DataFrame({"f": level.astype(str), "x": random.normal(size=8000)})
    found = separation(frame, y)
    assert found.kind == "quasi"
    assert set(found.columns) == {f"f[{k}]" for k in pure}
    assert (found.directions == 1).all()
