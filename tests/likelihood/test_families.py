"""Laws of every family of features: densities sum to one, estimates maximise the likelihood."""

import mpmath
import numpy as np
import pytest
from scipy import sparse
from scipy.integrate import quad

from posteriori.errors import (
    DomainError,
    MissingValueError,
    ParameterError,
    ScaleError,
    SingularCovarianceWarning,
)
from posteriori.likelihood.categorical import Categorical, codes_among
from posteriori.likelihood.choice import read_families
from posteriori.likelihood.families import FAMILIES
from posteriori.likelihood.family import LinearFamily, Places
from posteriori.likelihood.normal import Gaussian, SharedGaussian, estimate_gaussian
from posteriori.likelihood.one_parameter import Bernoulli, Exponential, Poisson
from posteriori.rows.schema import Column, Schema

CLASSES = np.array(["a", "b"])
MEAN = np.array([[0.3, 0.9], [0.6, 0.2]])
LEVELS = ((1.0, 2.0, 4.0), (0.0, 5.0))
TABLES = [np.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]]), np.array([[0.4, 0.6], [0.7, 0.3]])]

FITTED = {
    "bernoulli": Bernoulli(MEAN, 1 - MEAN),
    "poisson": Poisson(5 * MEAN),
    "exponential": Exponential(5 * MEAN),
    "gaussian": Gaussian(MEAN, 2 * MEAN),
    "shared gaussian": SharedGaussian(MEAN, np.array([0.5, 2.0])),
    "categorical": Categorical.of_probabilities(LEVELS, TABLES, coded=False),
}
every_family = pytest.mark.parametrize("name", FITTED)
one_parameter = pytest.mark.parametrize("family", [Bernoulli, Poisson, Exponential])


def places(n_columns=1, vacant=(False, False)):
    schema = Schema.of_names([f"col{j}" for j in range(n_columns)])
    return Places(schema, np.arange(n_columns), CLASSES, np.array(vacant))


def one_column(name, j):
    """The log density of one column, by leaving out the other."""

    def log_density(x):
        row = np.full((1, 2), np.nan)
        row[0, j] = x
        return FITTED[name].log_density(row)[0]

    return log_density


def draws(name, n=60, seed=0):
    return FITTED[name].draw(0, n, np.random.default_rng(seed))


def test_every_family_has_an_example_here():
    assert {family.name for family in FITTED.values()} == set(FAMILIES)


@every_family
@pytest.mark.parametrize("j", [0, 1])
@pytest.mark.parametrize("k", [0, 1])
def test_density_has_mass_one(name, j, k):
    density = one_column(name, j)
    if name in ("bernoulli", "poisson"):
        total = sum(np.exp(density(x)[k]) for x in range(2 if name == "bernoulli" else 80))
    elif name == "categorical":
        total = sum(np.exp(density(x)[k]) for x in LEVELS[j])
    else:
        low = 0 if name == "exponential" else -40
        total = quad(lambda x: np.exp(density(x)[k]), low, 120, limit=400, points=[0, 1])[0]
    assert total == pytest.approx(1, abs=1e-8)


@every_family
def test_quick_density_is_the_density(name):
    x = draws(name)
    family = FITTED[name]
    np.testing.assert_allclose(family.quick(x), family.log_density(x), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        family.quick(sparse.csr_array(x)), family.log_density(x), rtol=1e-11, atol=1e-11
    )


@every_family
def test_missing_entries_are_left_out(name):
    x = draws(name, 5)
    holes = x.copy()
    holes[1, 0] = holes[2, 1] = np.nan
    holes[3] = np.nan
    found = FITTED[name].log_density(holes)
    parts = [np.array([one_column(name, j)(v) for v in x[:, j]]) for j in (0, 1)]
    kept = ~np.isnan(holes)
    expected = sum(np.where(kept[:, [j]], parts[j], 0.0) for j in (0, 1))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert (found[3] == 0).all()


@every_family
def test_quick_density_of_a_row_outside_the_domain_is_not_a_number(name):
    family = FITTED[name]
    outside = {"bernoulli": 2.0, "poisson": 0.5, "exponential": -1.0}.get(name)
    if outside is None:
        return
    x = draws(name, 4)
    x[2, 1] = outside
    for values in (family.quick(x), family.quick(sparse.csr_array(x))):
        assert np.isnan(values[2]).all()
        assert np.isfinite(values[[0, 1, 3]]).all()
    assert np.argwhere(family.outside(x)).tolist() == [[2, 1]]


@every_family
def test_draws_have_the_frequencies_of_the_density(name):
    x = draws(name, 40_000)
    if name == "categorical":
        for j, levels in enumerate(LEVELS):
            share = [(x[:, j] == level).mean() for level in levels]
            np.testing.assert_allclose(share, TABLES[j][0], atol=0.01)
        return
    family = FITTED[name]
    mean = (family.one if name == "bernoulli" else family.mean)[0]
    np.testing.assert_allclose(x.mean(0), mean, atol=5 * x.std() / np.sqrt(len(x)))


@one_parameter
def test_estimate_maximises_the_likelihood(family):
    x = FITTED[family.name].draw(0, 50, np.random.default_rng(1))[:, :1]
    count, total = np.full((2, 1), 50.0), np.full((2, 1), x.sum())
    best = family.estimate(count, total, 0.0, places())
    top = best.log_density(x)[:, 0].sum()
    for factor in (0.99, 1.01):
        mean = (best.one if family is Bernoulli else best.mean) * factor
        other = Bernoulli(mean, 1 - mean) if family is Bernoulli else family(mean)
        assert other.log_density(x)[:, 0].sum() < top


@pytest.mark.parametrize("shared", [False, True])
def test_gaussian_estimate_maximises_the_likelihood(shared):
    rng = np.random.default_rng(2)
    groups = [rng.normal(1, 2, (30, 1)), rng.normal(-1, 1, (50, 1))]
    count = np.array([[30.0], [50.0]])
    mean = np.array([g.mean(0) for g in groups])
    scatter = np.array([((g - g.mean(0)) ** 2).sum(0) for g in groups])
    best = estimate_gaussian(count, mean, scatter, np.ones(1), shared=shared, places=places())

    def likelihood(model):
        return sum(model.log_density(g)[:, k].sum() for k, g in enumerate(groups))

    for change in (0.99, 1.01):
        assert likelihood(type(best)(best.mean * change, best.sd)) < likelihood(best)
        assert likelihood(type(best)(best.mean, best.sd * change)) < likelihood(best)


def test_categorical_estimate_is_smoothed_frequency():
    table = np.array([[3.0, 1.0, 0.0], [0.0, 2.0, 6.0]])
    levels = (("x", "y", "z"),)
    found = Categorical.estimate(levels, [table], 0.5, places(), coded=True)
    column = found.column(0)
    np.testing.assert_allclose(column["probability"], (table + 0.5) / [[5.5], [9.5]])
    np.testing.assert_allclose(column["unseen"], [0.5 / 5.5, 0.5 / 9.5])
    assert column["levels"] == ("x", "y", "z")


@pytest.mark.parametrize(
    "name", [name for name, family in FITTED.items() if isinstance(family, LinearFamily)]
)
def test_classes_differ_by_a_linear_function(name):
    family = FITTED[name]
    x = draws(name)
    difference = np.diff(family.log_density(x), axis=1)[:, 0]
    form = family.form
    weight, intercept = np.diff(form.weight, axis=1)[:, 0], np.diff(form.intercept)[0]
    np.testing.assert_allclose(x @ weight + intercept, difference, rtol=1e-11, atol=1e-11)


def test_natural_parameters_are_those_of_the_books():
    rate = np.diff(FITTED["exponential"].form.weight, axis=1)[:, 0]
    np.testing.assert_allclose(rate, -1 / (5 * MEAN[1]) + 1 / (5 * MEAN[0]))
    logit = np.diff(FITTED["bernoulli"].form.weight, axis=1)[:, 0]
    np.testing.assert_allclose(logit, np.diff(np.log(MEAN / (1 - MEAN)), axis=0)[0])
    log_mean = np.diff(FITTED["poisson"].form.weight, axis=1)[:, 0]
    np.testing.assert_allclose(log_mean, np.log(MEAN[1] / MEAN[0]))


def test_densities_agree_with_mpmath():
    mpmath.mp.dps = 50
    for x in (0, 3, 17):
        mean = mpmath.mpf(5 * MEAN[0, 0])
        exact = x * mpmath.log(mean) - mean - mpmath.loggamma(x + 1)
        assert one_column("poisson", 0)(x)[0] == pytest.approx(float(exact), rel=1e-13)
    exact = mpmath.log(mpmath.npdf(mpmath.mpf("1.5"), MEAN[0, 0], 2 * MEAN[0, 0]))
    assert one_column("gaussian", 0)(1.5)[0] == pytest.approx(float(exact), rel=1e-13)


def test_large_poisson_counts_keep_their_digits():
    mpmath.mp.dps = 50
    means = np.array([[1e12], [1e12 + 2e6]])
    family = Poisson(means)
    x = 1e12 + 5e5
    found = np.diff(family.form.values(np.array([[x]])))[0, 0]
    low, high = mpmath.mpf(1e12), mpmath.mpf(1e12 + 2e6)
    exact = x * mpmath.log(high / low) - (high - low)
    assert found == pytest.approx(float(exact), abs=1e-6)


def test_a_probability_of_zero_is_exactly_zero():
    sure = Bernoulli(np.array([[0.0, 0.5], [1.0, 0.5]]), np.array([[1.0, 0.5], [0.0, 0.5]]))
    x = np.array([[0.0, 1.0], [1.0, 0.0], [np.nan, 1.0]])
    half = np.log(0.5)
    expected = [[half, -np.inf], [-np.inf, half], [half, half]]
    np.testing.assert_allclose(sure.log_density(x), expected)
    np.testing.assert_allclose(sure.quick(x[:2]), expected[:2])
    np.testing.assert_allclose(sure.quick(sparse.csr_array(x[:2])), expected[:2])


def test_a_poisson_mean_of_zero_leaves_only_zero():
    never = Poisson(np.array([[0.0], [2.0]]))
    values = never.log_density(np.array([[0.0], [1.0]]))
    np.testing.assert_allclose(values, [[0, -2], [-np.inf, np.log(2) - 2]], rtol=1e-14, atol=1e-14)
    both = Poisson(np.zeros((2, 1)))
    np.testing.assert_array_equal(both.log_density(np.array([[0.0]])), [[0.0, 0.0]])


def test_weights_that_do_not_add_up_leave_no_probability_behind():
    count = np.array([[0.1 + 0.2], [1.0]])
    found = Bernoulli.estimate(count, np.array([[0.3], [1.0]]), 0.0, places())
    assert (found.zero == 0).all()


def test_a_column_constant_in_a_class_gets_the_variance_of_one_more_row():
    count, mean = np.full((2, 1), 3.0), np.array([[1.0], [2.0]])
    scatter = np.array([[2.0], [0.0]])
    overall = np.sqrt((2 + 6 * 0.25) / 6)
    with pytest.warns(SingularCovarianceWarning, match=r"'col0' is zero in class 'b'"):
        found = estimate_gaussian(count, mean, scatter, np.ones(1), shared=False, places=places())
    np.testing.assert_allclose(found.sd, [[np.sqrt(2 / 3)], [overall / 2]])
    shared = estimate_gaussian(count, mean, scatter, np.ones(1), shared=True, places=places())
    assert shared.sd[0] == pytest.approx(np.sqrt(2 / 6))
    with pytest.warns(SingularCovarianceWarning, match="'col0' is zero in every class"):
        shared = estimate_gaussian(
            count, mean, 0 * scatter, np.ones(1), shared=True, places=places()
        )
    np.testing.assert_allclose(shared.sd, 0.5 / np.sqrt(7))


@pytest.mark.parametrize("shared", [False, True])
def test_a_column_constant_in_all_rows_is_left_out(shared):
    count, mean = np.full((2, 2), 3.0), np.array([[0.1, 1.0], [0.1, 2.0]])
    scatter = np.array([[1e-33, 2.0], [1e-33, 3.0]])
    with pytest.warns(SingularCovarianceWarning, match="'col0' never change"):
        found = estimate_gaussian(count, mean, scatter, np.ones(2), shared=shared, places=places(2))
    alone = estimate_gaussian(
        count[:, 1:], mean[:, 1:], scatter[:, 1:], np.ones(1), shared=shared, places=places()
    )
    x = np.array([[7.0, 1.5], [0.1, -1.0]])
    for values in (found.log_density(x), found.quick(x), found.quick(sparse.csr_array(x))):
        np.testing.assert_allclose(values, alone.log_density(x[:, 1:]), rtol=1e-12)
    assert found.n_parameters == alone.n_parameters
    assert found.column(0)["sd"].tolist() == [0.0, 0.0]
    assert found.draw(1, 3, np.random.default_rng(0))[:, 0].tolist() == [0.1] * 3


def test_exponential_columns_of_zeros_are_an_error():
    ones = np.ones((2, 1))
    with pytest.raises(DomainError, match=r"class 'b' in column 'col0' is zero"):
        Exponential.estimate(ones, np.array([[1.0], [0.0]]), 0.0, places())


@pytest.mark.parametrize("family", [Poisson, Exponential])
def test_sums_beyond_the_doubles_are_an_error(family):
    with pytest.raises(ScaleError, match="col0"):
        family.estimate(np.ones((2, 1)), np.array([[1.0], [np.inf]]), 0.0, places())


def test_entries_too_small_are_an_error():
    with pytest.raises(ScaleError, match="col0"):
        Exponential.estimate(np.ones((2, 1)), np.full((2, 1), 1e-310), 0.0, places())
    with pytest.raises(ScaleError, match="col0"):
        estimate_gaussian(
            np.ones((2, 1)), np.zeros((2, 1)), np.ones((2, 1)), np.array([1e-301]), shared=False,
            places=places(),
        )  # fmt: skip


@one_parameter
def test_a_class_without_entries_is_an_error_unless_it_has_no_rows(family):
    count, total = np.array([[4.0], [0.0]]), np.array([[2.0], [0.0]])
    with pytest.raises(MissingValueError, match="Class 'b' has no entry in column 'col0'"):
        family.estimate(count, total, 0.0, places())
    found = family.estimate(count, total, 0.0, places(vacant=(False, True)))
    assert found.column(0).popitem()[1].tolist() == [0.5, 0.5]


def test_a_class_without_rows_has_the_gaussian_of_all_rows():
    count, mean = np.array([[4.0], [0.0]]), np.array([[2.0], [0.0]])
    scatter = np.array([[8.0], [0.0]])
    vacant = places(vacant=(False, True))
    for shared in (False, True):
        found = estimate_gaussian(count, mean, scatter, np.ones(1), shared=shared, places=vacant)
        assert found.mean.tolist() == [[2.0], [2.0]]
        np.testing.assert_allclose(found.column(0)["sd"], np.sqrt(2))


def test_a_categorical_column_without_entries_is_an_error():
    with pytest.raises(MissingValueError, match="Column 'col0' has no entry"):
        Categorical.estimate(((),), [np.zeros((2, 0))], 1.0, places(), coded=True)
    table = np.array([[1.0, 2.0], [0.0, 0.0]])
    with pytest.raises(MissingValueError, match="Class 'b' has no entry in column 'col0'"):
        Categorical.estimate((("x", "y"),), [table], 0.0, places(), coded=True)


def test_codes_of_numbers():
    x = np.array([0.0, 1.0, 1.5, 9.0, np.nan, np.inf])
    assert codes_among((0.0, 1.0, 2.0), x).tolist() == [0, 1, -2, -2, -1, -2]


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
        ("gaussian", "Column 'c' holds levels"),
        ({"c": "poisson"}, "Column 'c' holds levels"),
        ({"z": "poisson"}, "column 'z', which is not there"),
        ({7: "poisson"}, "column 7, which is not there"),
        ({"n": "poisson", 0: "gaussian"}, "twice"),
    ],
)
def test_families_that_cannot_be_are_named(family, words):
    with pytest.raises(ParameterError, match=words):
        read_families(family, MIXED)
