"""Laws of every family of features: densities sum to one, estimates maximise the likelihood."""

import numpy as np
import pytest
from scipy import sparse, stats

from posteriori.errors import (
    DomainError,
    MissingValueError,
    ParameterError,
    ScaleError,
    SingularCovarianceWarning,
)
from posteriori.likelihood.feature_families import (
    Bernoulli,
    Categorical,
    Exponential,
    Gaussian,
    Poisson,
    TableLabels,
    estimate_gaussian,
    read_families,
)
from posteriori.rows.schema import Column, Schema

CLASSES = np.array(["a", "b"])
MEAN = np.array([[0.3, 0.9], [0.6, 0.2]])
LEVELS = ((1.0, 2.0, 4.0), (0.0, 5.0))
TABLES = [np.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]]), np.array([[0.4, 0.6], [0.7, 0.3]])]


def categorical(levels, tables):
    """With the probabilities of the tables (K, L), and none for other levels."""
    logs = [np.log(np.vstack([p.T, np.full((1, 2), 1e-300), np.ones((1, 2))])) for p in tables]
    return Categorical(levels, tuple(logs), coded=False)


FITTED = {
    "bernoulli": Bernoulli(MEAN),
    "poisson": Poisson(5 * MEAN),
    "exponential": Exponential(5 * MEAN),
    "gaussian": Gaussian(MEAN, 2 * MEAN),
    "shared gaussian": Gaussian(MEAN, np.array([[0.5, 2.0]] * 2), True),
    "categorical": categorical(LEVELS, TABLES),
}
DISTRIBUTIONS = {  # ln p of column j in class k
    "bernoulli": lambda j, k: stats.bernoulli(MEAN[k, j]).logpmf,
    "poisson": lambda j, k: stats.poisson(5 * MEAN[k, j]).logpmf,
    "exponential": lambda j, k: stats.expon(0, 5 * MEAN[k, j]).logpdf,
    "gaussian": lambda j, k: stats.norm(MEAN[k, j], 2 * MEAN[k, j]).logpdf,
    "shared gaussian": lambda j, k: stats.norm(MEAN[k, j], (0.5, 2.0)[j]).logpdf,
    "categorical": lambda j, k: np.vectorize(
        lambda x: np.log(TABLES[j][k][LEVELS[j].index(x)]) if x == x else np.nan
    ),
}


def places(n_columns=1, vacant=(False, False)):
    schema = Schema.of_names([f"col{j}" for j in range(n_columns)])
    return TableLabels(schema, np.arange(n_columns), CLASSES, np.array(vacant))


def draws(name, n=60, seed=0):
    return FITTED[name].draw(0, n, np.random.default_rng(seed))


def expected(name, x):
    """ln p(x|C_k) (n, K) by SciPy, the sum being over the entries that are not missing."""
    each = [[DISTRIBUTIONS[name](j, k)(x[:, j]) for k in (0, 1)] for j in (0, 1)]
    return np.nansum(each, axis=0).T


@pytest.mark.parametrize("name", FITTED)
def test_densities_are_those_of_scipy_with_missing_entries_left_out(name):
    x, family = draws(name), FITTED[name]
    right = expected(name, x)
    np.testing.assert_allclose(family.log_density(x), right, rtol=1e-12, atol=1e-12)
    thin = family.log_density(sparse.csr_array(x))
    np.testing.assert_allclose(thin, right, rtol=1e-11, atol=1e-11)
    if family.form is not None:
        gaps = np.diff(family.form(x)), np.diff(right)
        np.testing.assert_allclose(*gaps, rtol=1e-11, atol=1e-11)
    x[1, 0] = x[2, 1] = x[3, 0] = x[3, 1] = np.nan
    found = family.marginal_log_density(x)
    np.testing.assert_allclose(found, expected(name, x), rtol=1e-12, atol=1e-12)
    each = np.stack([np.nansum(family.entries(x, k), axis=1) for k in (0, 1)], axis=1)
    np.testing.assert_allclose(each, found, rtol=1e-12, atol=1e-12)


def gaussian_of(count, mean, scatter, shared=False, vacant=(False, False)):
    """Columns of two classes."""
    table = [np.array(v, dtype=float).reshape(2, -1) for v in (count, mean, scatter)]
    return estimate_gaussian(*table, shared=shared, places=places(table[0].shape[1], vacant=vacant))


def test_a_column_constant_in_a_class_gets_the_variance_of_one_more_row():
    count, mean, scatter = [3, 3], [1, 2], [2, 0]
    overall = np.sqrt((2 + 6 * 0.25) / 6)
    with pytest.warns(SingularCovarianceWarning, match=r"'col0' is zero in class 'b'"):
        found = gaussian_of(count, mean, scatter)
    np.testing.assert_allclose(found.sd, [[np.sqrt(2 / 3)], [overall / 2]])
    assert gaussian_of(count, mean, scatter, True).sd[0] == pytest.approx(np.sqrt(2 / 6))
    with pytest.warns(SingularCovarianceWarning, match="'col0' is zero in every class"):
        shared = gaussian_of(count, mean, [0, 0], True)
    np.testing.assert_allclose(shared.sd, 0.5 / np.sqrt(7))


@pytest.mark.parametrize("family", [Bernoulli, Poisson, Exponential])
def test_a_class_without_rows_has_the_parameters_of_all_rows(family):
    count, total = np.array([[4.0], [0.0]]), np.array([[2.0], [0.0]])
    with pytest.raises(MissingValueError, match="Class 'b' has no entry in column 'col0'"):
        family.estimate(count, total, 0.0, places())
    found = family.estimate(count, total, 0.0, places(vacant=(False, True)))
    assert found.column(0).popitem()[1].tolist() == [0.5, 0.5]
    for shared in (False, True):
        found = gaussian_of([4, 0], [2, 0], [8, 0], shared, vacant=(False, True))
        assert found.mean.tolist() == [[2.0], [2.0]]
        np.testing.assert_allclose(found.column(0)["sd"], np.sqrt(2))


def test_sums_and_tables_without_an_estimate_are_an_error():
    totals = [
        (Exponential, 0.0, DomainError, "class 'b' in column 'col0' is zero"),
        (Exponential, np.inf, ScaleError, "col0"),
        (Poisson, np.inf, ScaleError, "col0"),
    ]
    for family, total, error, words in totals:
        with pytest.raises(error, match=words):
            family.estimate(np.ones((2, 1)), np.array([[1.0], [total]]), 0.0, places())
    with pytest.raises(MissingValueError, match="Column 'col0' has no entry"):
        Categorical.estimate(((),), [np.zeros((2, 0))], 1.0, places(), coded=True)
    table = np.array([[1.0, 2.0], [0.0, 0.0]])
    with pytest.raises(MissingValueError, match="Class 'b' has no entry in column 'col0'"):
        Categorical.estimate((("x", "y"),), [table], 0.0, places(), coded=True)


MIXED = Schema(
    (Column("n"), Column("b", "boolean"), Column("c", "categorical", ("x", "y"))), named=True
)


def test_families_come_from_the_types_of_the_columns():
    assert read_families("auto", MIXED) == ("gaussian", "bernoulli", "categorical")
    chosen = {"n": "poisson", 1: "categorical"}
    assert read_families(chosen, MIXED) == ("poisson", "categorical", "categorical")
    assert read_families("categorical", MIXED) == ("categorical",) * 3


@pytest.mark.parametrize(
    ("family", "words"),
    [
        ("normal", "no family 'normal'"),
        (3, "no family 3"),
        ({"n": ["poisson"]}, "no family"),
        ("gaussian", "Column 'c' is categorical"),
        ({"c": "poisson"}, "Column 'c' is categorical"),
        ({"z": "poisson"}, "column 'z', which is not there"),
        ({7: "poisson"}, "column 7, which is not there"),
    ],
)
def test_families_that_cannot_be_are_named(family, words):
    with pytest.raises(ParameterError, match=words):
        read_families(family, MIXED)
