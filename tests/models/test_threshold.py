"""Noisy thresholds: known links, any noise of SciPy, mixtures, and supports with ends."""

import copy
import pickle
import warnings

import mpmath
import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats
from scipy.optimize import minimize
from sklearn.base import clone

from posteriori import LogisticRegression
from posteriori.errors import (
    BoundaryWarning,
    DomainError,
    LabelError,
    ParameterError,
    SeparationWarning,
)
from posteriori.likelihood.cdf_links import Mixture
from posteriori.models.binary_links import ProbitRegression, ThresholdRegression

LINKS = sm.families.links
TWO_BUMPS = Mixture([0.4, 0.6], [stats.norm(-1.0, 0.5), stats.norm(1.5, 1.0)])  # Figure 4.13


def data(name):
    found = getattr(sm.datasets, name).load_pandas()
    return found.exog.to_numpy(float), (found.endog.to_numpy() > 0).astype(int)


SPECTOR, FAIR = data("spector"), data("fair")


def parameters(model):
    return np.concatenate([model.intercept_, model.coef_[0]])


def energy(noise, X, y):
    """-ln p(t|w) as SciPy gives it."""
    parts = noise.distributions if isinstance(noise, Mixture) else [noise]
    weights = noise.weights if isinstance(noise, Mixture) else [1.0]

    def at(w):
        a = w[0] + X @ w[1:]
        shares = zip(weights, parts, strict=True)
        p = sum(v * np.where(y == 1, part.cdf(a), part.sf(a)) for v, part in shares)
        with np.errstate(divide="ignore"):
            return -np.log(p).sum() if (p > 0).all() else 1e300

    return at


def drawn(noise, seed, n=60):
    """Rows whose labels come from a threshold with this noise."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 2))
    theta = noise.rvs(n, random_state=random)
    return X, (X @ [1.0, -0.5] + noise.median() > theta).astype(int)


@pytest.mark.parametrize(("X", "y"), [SPECTOR, FAIR], ids=["spector", "fair"])
def test_normal_noise_is_probit_and_logistic_noise_logistic_regression(X, y):
    probit, logistic = ProbitRegression().fit(X, y), LogisticRegression().fit(X, y)
    normal = ThresholdRegression(noise=stats.norm()).fit(X, y)
    np.testing.assert_allclose(parameters(normal), parameters(probit), rtol=1e-9)
    assert normal.log_likelihood_ == pytest.approx(probit.log_likelihood_, rel=1e-13)
    other = ThresholdRegression(noise=stats.logistic()).fit(X, y)
    np.testing.assert_allclose(parameters(other), parameters(logistic), rtol=1e-9)
    np.testing.assert_allclose(other.coef_covariance_, logistic.coef_covariance_, rtol=1e-8)
    np.testing.assert_allclose(other.predict_proba(X), logistic.predict_proba(X), rtol=1e-9)


NAMED = {
    "norm": LINKS.Probit(),
    "cauchy": LINKS.Cauchy(),
    "gumbel_l": LINKS.CLogLog(),
    "gumbel_r": LINKS.LogLog(),
}


@pytest.mark.parametrize(("X", "y"), [SPECTOR, FAIR], ids=["spector", "fair"])
@pytest.mark.parametrize("noise", NAMED)
def test_noise_with_a_link_of_its_own_equals_statsmodels(noise, X, y):
    ours = ThresholdRegression(noise=noise, tol=1e-5).fit(X, y)
    family = sm.families.Binomial(NAMED[noise])
    theirs = sm.GLM(y, sm.add_constant(X), family=family).fit(
        tol=1e-13, tol_criterion="params", maxiter=500
    )
    np.testing.assert_allclose(parameters(ours), theirs.params, rtol=1e-8)
    np.testing.assert_allclose(ours.coef_covariance_, theirs.cov_params(), rtol=1e-8)
    np.testing.assert_allclose(ours.predict_proba(X)[:, 1], theirs.fittedvalues, rtol=1e-8)
    assert ours.log_likelihood_ == pytest.approx(theirs.llf, rel=1e-12)


@pytest.mark.parametrize(
    "noise",
    [stats.t(3), stats.laplace(), stats.skewnorm(4), stats.lognorm(1.0), stats.beta(2, 3),
     stats.genextreme(0.2), TWO_BUMPS],
    ids=["t", "laplace", "skewnorm", "lognorm", "beta", "genextreme", "mixture"],
)  # fmt: skip
def test_no_other_coefficients_have_a_larger_likelihood(noise):
    X, y = FAIR
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X, y = X[::6, :3], y[::6]
    model = ThresholdRegression(noise=noise).fit(X, y)
    assert model.converged_
    at, w = energy(noise, X, y), parameters(model)
    assert -model.log_likelihood_ == pytest.approx(at(w), rel=1e-11)
    other = minimize(at, w + 0.1, method="Nelder-Mead", options={"fatol": 1e-11, "xatol": 1e-9})
    assert at(w) <= other.fun + 1e-9


def test_fifty_digits_agree():
    X, y = SPECTOR
    ours = ThresholdRegression(noise=stats.cauchy, tol=1e-7).fit(X, y)
    with mpmath.workdps(50):
        rows = [[mpmath.mpf(1), *map(mpmath.mpf, row)] for row in X.tolist()]

        def score(row, t, w):
            a = mpmath.fdot(w, row)
            p = mpmath.mpf(1) / 2 + mpmath.atan(a) / mpmath.pi
            return (p - t) / (p * (1 - p)) / (1 + a * a) / mpmath.pi

        def gradient(*w):
            pull = [score(row, int(t), w) for row, t in zip(rows, y, strict=True)]
            return [mpmath.fdot(pull, [row[j] for row in rows]) for j in range(len(w))]

        exact = mpmath.findroot(gradient, parameters(ours).tolist())
    np.testing.assert_allclose(parameters(ours), [float(v) for v in exact], rtol=1e-10)


def test_place_and_width_of_the_noise_shift_and_scale_the_coefficients():
    X, y = FAIR
    plain = ThresholdRegression(noise=stats.t(4)).fit(X, y)
    moved = ThresholdRegression(noise=stats.t(4, loc=2.0, scale=3.0)).fit(X, y)
    np.testing.assert_allclose(moved.coef_, 3 * plain.coef_, rtol=1e-7)
    np.testing.assert_allclose(moved.intercept_, 3 * plain.intercept_ + 2, rtol=1e-7)
    np.testing.assert_allclose(moved.predict_proba(X), plain.predict_proba(X), rtol=1e-7)
    assert moved.log_likelihood_ == pytest.approx(plain.log_likelihood_, rel=1e-12)


def test_a_name_a_distribution_and_a_frozen_one_are_the_same():
    X, y = SPECTOR
    found = [
        parameters(ThresholdRegression(noise=noise).fit(X, y))
        for noise in ("laplace", stats.laplace, stats.laplace())
    ]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_weights_offsets_and_soft_labels_count_as_in_probit_regression():
    X, y = FAIR
    random = np.random.default_rng(0)
    weight, offset = random.integers(0, 3, len(y)), random.normal(size=len(y))
    share = 0.7 * y + 0.1
    given = {"sample_weight": weight, "offset": offset}
    soft = np.column_stack([1 - share, share])
    ours = ThresholdRegression(noise="norm", prior=0.3).fit(X, soft, **given)
    probit = ProbitRegression(prior=0.3).fit(X, soft, **given)
    np.testing.assert_allclose(parameters(ours), parameters(probit), rtol=1e-9)


@pytest.mark.parametrize("noise", [stats.gumbel_r(), stats.expon(-0.5), TWO_BUMPS])
def test_the_decision_changes_sign_where_both_classes_are_equally_probable(noise):
    X, y = FAIR
    model = ThresholdRegression(noise=noise, prior=1.0).fit(X, y)
    p, decision = model.predict_proba(X)[:, 1], model.decision_function(X)
    np.testing.assert_array_equal(decision > 0, p > 0.5)
    np.testing.assert_array_equal(model.predict(X), (p > 0.5).astype(int))
    length = np.linalg.norm(model.coef_)
    np.testing.assert_allclose(model.signed_distance(X), decision / length, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.signed_distance(X, 0, 1), -model.signed_distance(X))
    activation = X @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(np.diff(decision), np.diff(activation), rtol=1e-9, atol=1e-9)


def test_noise_with_an_end_makes_rows_certain_and_no_label_impossible():
    X, y = FAIR
    model = ThresholdRegression(noise=stats.uniform()).fit(X, y)
    p = model.predict_proba(X)
    assert model.converged_
    assert (p == 0).any()
    assert (p[np.arange(len(y)), y] > 0).all()
    assert np.isfinite(model.log_likelihood_)


@pytest.mark.parametrize(
    ("noise", "seed"),
    [(stats.uniform(-2, 4), 0), (stats.uniform(-2, 4), 1), (stats.expon(), 0), (stats.expon(), 5)],
    ids=["uniform 0", "uniform 1", "expon 0", "expon 5"],
)
def test_an_optimum_at_a_kink_is_nearly_reached_and_named(noise, seed):
    """With few rows the likelihood is often largest where one lies at an end of the support."""
    X, y = drawn(noise, seed)
    with pytest.warns(BoundaryWarning, match="kinks where rows lie at an end of the support"):
        model = ThresholdRegression(noise=noise).fit(X, y)
    assert not model.converged_
    at, w = energy(noise, X, y), parameters(model)
    simplex = w + 0.1 * np.vstack([np.zeros(3), np.eye(3)])
    options = {"fatol": 1e-12, "xatol": 1e-10, "maxiter": 9999, "initial_simplex": simplex}
    other = minimize(at, w, method="Nelder-Mead", options=options)
    assert at(w) <= other.fun + 1e-3
    assert -model.log_likelihood_ == pytest.approx(at(w), abs=1e-9)
    assert "end of the support" in " ".join(str(model.summary()).split())


def test_a_label_that_scipy_makes_impossible_is_named_with_its_row():
    X, y = drawn(stats.norm(), 0)
    offset = np.where(y == 1, -1e3, 1e3)
    with pytest.raises(DomainError, match=r"label of row \d+ .*probability zero"):
        ThresholdRegression(noise=stats.skewnorm(2.0)).fit(X, y, offset=offset)


def test_offsets_move_the_start_inside_the_support():
    X, y = drawn(stats.expon(), 3)
    offset = np.where(y == 1, -3.0, 0.0) + 0.5 * X[:, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoundaryWarning)
        model = ThresholdRegression(noise="expon").fit(X, y, offset=offset)
    p = model.predict_proba(X, offset=offset)
    assert np.isfinite(model.log_likelihood_)
    assert (p[np.arange(len(y)), y] > 0).all()


def test_offsets_that_no_intercept_can_mend_are_an_error():
    X, y = drawn(stats.uniform(), 3)
    offset = np.where(y == 1, -30.0, 0.0)
    with pytest.raises(DomainError, match="offsets lie between -30 and 0, which is too far apart"):
        ThresholdRegression(noise="uniform").fit(X, y, offset=offset)


def test_without_an_intercept_zero_must_lie_inside_the_support():
    X, y = drawn(stats.uniform(-2, 4), 3)
    model = ThresholdRegression(noise=stats.uniform(-2, 4), fit_intercept=False).fit(X, y)
    assert model.intercept_[0] == 0.0
    with pytest.raises(DomainError, match=r"Without an intercept.*fit_intercept=True"):
        ThresholdRegression(noise=stats.uniform(0.1, 1), fit_intercept=False).fit(X, y)


@pytest.mark.parametrize("noise", ["cauchy", "gumbel_r", stats.uniform(-1, 2)])
def test_separated_classes_are_named_and_certain(noise):
    X = np.random.default_rng(0).normal(size=(80, 2))
    y = X[:, 0] > 0.2
    with pytest.warns(SeparationWarning, match="'x0'"):
        model = ThresholdRegression(noise=noise).fit(X, y)
    assert model.separation_.kind == "complete"
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], y, atol=1e-12)


def test_jeffreys_prior_is_for_noise_without_ends():
    X = np.arange(8.0)[:, None]
    y = X[:, 0] > 3
    finite = ThresholdRegression(noise="cauchy", prior="jeffreys").fit(X, y)
    np.testing.assert_allclose(finite.intercept_, -3.5 * finite.coef_[0], rtol=1e-6)
    with pytest.raises(ParameterError, match=r"jeffreys.*ends"):
        ThresholdRegression(noise="uniform", prior="jeffreys").fit(X, y)


@pytest.mark.parametrize("noise", [stats.t(3), stats.cauchy, TWO_BUMPS, "gumbel_r"])
@pytest.mark.parametrize("same", [clone, copy.deepcopy], ids=["clone", "deepcopy"])
def test_copies_fit_the_same(noise, same):
    X, y = SPECTOR
    model = ThresholdRegression(noise=noise, prior=0.5)
    assert model.get_params()["noise"] is noise
    first = model.fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(same(model).fit(X, y).predict_proba(X), first)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), first)


def test_another_noise_set_later_changes_no_fitted_model():
    X, y = SPECTOR
    model = ThresholdRegression(noise="norm").fit(X, y)
    before = model.predict_proba(X)
    model.set_params(noise="cauchy")
    np.testing.assert_array_equal(model.predict_proba(X), before)


@pytest.mark.parametrize(
    ("noise", "words"),
    [
        ("gauss", "noise='gauss' is not the name"),
        ("poisson", "noise='poisson' is not the name"),
        (3.0, "not a continuous distribution"),
        (stats.poisson(2), "not a continuous distribution"),
        (stats.gamma, "needs arguments"),
    ],
)
def test_noise_that_cannot_be_is_named(noise, words):
    with pytest.raises(ParameterError, match=words):
        ThresholdRegression(noise=noise).fit(*SPECTOR)


def test_more_classes_than_two_are_an_error_with_the_remedy():
    with pytest.raises(LabelError, match=r"Only binary classification.*LogisticRegression"):
        ThresholdRegression().fit(np.arange(12.0)[:, None], np.arange(12) % 3)
