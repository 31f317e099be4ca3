"""Digits: far from zero, for constant columns, and at the ends of the doubles."""

from fractions import Fraction
from math import fsum

import numpy as np
import pytest
from scipy import sparse
from statistics_registry import STATISTICS, assert_numbers, numbers

from posteriori.rows.in_memory import read_rows
from posteriori.statistics.column_moments import gather

rng = np.random.default_rng(5)
N, K = 400, 2
Z = rng.normal(size=(N, 2)) @ np.array([[1.0, 0.6], [0.0, 0.8]])
Y = np.r_[0, 1, rng.integers(0, K, size=N - 2)]
HOT = np.eye(K)[Y]
SOFT = rng.dirichlet(np.ones(K), size=N)
W = rng.uniform(0.5, 2.0, size=N)

every_statistic = pytest.mark.parametrize("name", STATISTICS)


def exact_moments(X: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and scatter of the very doubles: rational mean, products summed without rounding."""
    w = [Fraction(v) for v in weight]
    total = sum(w)
    means, residuals = [], []
    for column in X.T:
        values = [Fraction(x) for x in column]
        mean = sum(v * x for v, x in zip(w, values, strict=True)) / total
        means.append(float(mean))
        residuals.append(np.array([float(x - mean) for x in values]))
    scatter = [[fsum(weight * a * b) for b in residuals] for a in residuals]
    return np.array(means), np.array(scatter)


@every_statistic
@pytest.mark.parametrize("shift", [1e4, -1e8])
@pytest.mark.parametrize("block_entries", [None, 60])
@pytest.mark.parametrize("labels", ["hard", "soft"])
@pytest.mark.parametrize("source", [np.asarray, sparse.csr_array])
def test_mean_and_scatter_keep_their_digits_far_from_zero(
    name, shift, block_entries, labels, source
):
    X, y = Z + shift, Y if labels == "hard" else SOFT
    found = STATISTICS[name].of(source(X), y, W, block_entries=block_entries)
    T = HOT if labels == "hard" else SOFT
    per_class = [exact_moments(X, T[:, k] * W) for k in range(K)]
    if name == "gram":
        means, scatters = exact_moments(X, W)
    else:
        means = np.array([mean for mean, _ in per_class])
        scatters = np.array([scatter for _, scatter in per_class])
    assert abs(found.mean - means).max() < 1e-6  # of a spread, which is one
    if name == "column moments":
        scatters = np.einsum("kii->ki", scatters)
    elif found.scatter.ndim == 3:
        scatters = scatters.sum(0)
        found = found.pooled()
    np.testing.assert_allclose(np.squeeze(found.scatter), scatters, rtol=1e-6)


@every_statistic
@pytest.mark.parametrize("labels", ["hard", "soft"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("source", [np.asarray, sparse.csr_array])
def test_a_constant_column_has_no_negative_squares(name, labels, weighted, source):
    for value in (0.1, 1 / 3, -1e5 - 0.1, 7e-9, 1e8 + 1 / 7):
        X = np.column_stack([np.full(N, value), Z])
        found = STATISTICS[name].of(
            source(X), Y if labels == "hard" else SOFT, W if weighted else None
        )
        assert (found.squares[0] >= 0).all()
        assert found.squares[0] <= N * (1e-14 * value) ** 2
        mean = found.mean[..., 0]
        np.testing.assert_allclose(mean, np.full_like(mean, value), rtol=1e-15)


@every_statistic
@pytest.mark.parametrize("labels", ["hard", "soft"])
@pytest.mark.parametrize("source", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(
    "scales", [(1e150, 1e-150), (1e200, 1.0), (1e-200, 1e-3), (1e-300, 1e300)], ids=str
)
def test_columns_whose_squares_leave_the_doubles_are_gathered_in_units(
    name, labels, source, scales
):
    entry = STATISTICS[name]
    y, T = (Y, HOT) if labels == "hard" else (SOFT, SOFT)
    X = Z * np.array(scales)
    rows = read_rows(source(X), y, W)
    found = gather(rows, entry.of_rows(rows))
    assert (np.frexp(found.unit)[0] == 0.5).all()  # powers of two
    in_units = X / found.unit
    assert (abs(in_units).max(0) >= 1 - 1e-12).all()
    assert (abs(in_units).max(0) < 2**12).all()
    assert_numbers(found, entry.formula(in_units, T, W))
    np.testing.assert_allclose(
        found.mean * (found.unit / scales), entry.formula(Z, T, W)["mean"], rtol=1e-9
    )


@every_statistic
def test_columns_of_ordinary_size_are_gathered_as_they_are(name):
    rows = read_rows(Z, Y)
    found = gather(rows, STATISTICS[name].of_rows(rows))
    assert found.unit.tolist() == [1.0, 1.0]
    assert_numbers(found, numbers(STATISTICS[name].of(Z, Y)), 0.0)


@every_statistic
def test_a_column_of_zeros_has_unit_one(name):
    rows = read_rows(np.column_stack([Z[:, 0], np.zeros(N)]), Y)
    found = gather(rows, STATISTICS[name].of_rows(rows))
    assert found.unit[1] == 1.0
    assert found.squares[1] == 0.0
    assert np.isfinite(found.squares).all()


@every_statistic
def test_units_of_different_sites_add(name):
    """One site has a column of size 1e-150, another the same column of size 1e150."""
    entry = STATISTICS[name]
    parts = []
    for rows, scale in ((slice(0, 150), 1e-150), (slice(150, N), 1e150)):
        part = read_rows(Z[rows] * scale, Y[rows], None, np.arange(K))
        parts.append(gather(part, entry.of_rows(part)))
    joint = parts[0] + parts[1]
    X = np.concatenate([Z[:150] * (1e-150 / joint.unit), Z[150:] * (1e150 / joint.unit)])
    assert_numbers(joint, entry.formula(X, HOT, np.ones(N)))
