"""Generalised linear models: the numbers of statsmodels and of 50 digits, family by family."""

import warnings

import mpmath
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import sparse
from scipy.optimize import minimize_scalar
from sklearn.base import is_classifier, is_regressor
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import GammaRegressor, PoissonRegressor, Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import cross_val_score

from posteriori import GaussianPrior, LogisticRegression
from posteriori.errors import (
    InferenceError,
    LabelError,
    LevelError,
    ParameterError,
    RankDeficiencyWarning,
)
from posteriori.models.binary_links import ProbitRegression
from posteriori.models.glm import GLM

FAMILIES = sm.families
LINKS = {
    "identity": FAMILIES.links.Identity,
    "log": FAMILIES.links.Log,
    "reciprocal": FAMILIES.links.InversePower,
    "logit": FAMILIES.links.Logit,
    "probit": FAMILIES.links.Probit,
    "cloglog": FAMILIES.links.CLogLog,
}
THEIRS = {
    "gaussian": FAMILIES.Gaussian,
    "poisson": FAMILIES.Poisson,
    "gamma": FAMILIES.Gamma,
    "exponential": FAMILIES.Gamma,
    "bernoulli": FAMILIES.Binomial,
}
NUMBERS = [
    ("gaussian", "identity"),
    ("gaussian", "log"),
    ("gaussian", "reciprocal"),
    ("poisson", "log"),
    ("poisson", "identity"),
    ("gamma", "reciprocal"),
    ("gamma", "log"),
    ("gamma", "identity"),
    ("exponential", "reciprocal"),
    ("exponential", "log"),
    ("exponential", "identity"),
]
LABELS = [("bernoulli", "logit"), ("bernoulli", "probit"), ("bernoulli", "cloglog")]
numbers = pytest.mark.parametrize(("family", "link"), NUMBERS)


def data(name):
    found = getattr(sm.datasets, name).load_pandas()
    return found.exog.to_numpy(float), found.endog.to_numpy(float)


SCOTLAND, CPUNISH, RANDHIE = data("scotland"), data("cpunish"), data("randhie")
FAIR = (data("fair")[0], (data("fair")[1] > 0).astype(float))
DIABETES_X, DIABETES_Y = load_diabetes(return_X_y=True)


def statsmodels(X, y, family, link, weight=None, offset=None, start=None):
    """Its fit, to the last digit that it gives; its exponential family is gamma with scale one.

    Without a start it may leave the domain of the link and call that converged.
    """
    given = {} if weight is None else {"freq_weights": weight}
    given |= {} if offset is None else {"offset": offset}
    scale = 1.0 if family == "exponential" else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = sm.GLM(y, sm.add_constant(X), family=THEIRS[family](LINKS[link]()), **given)
        return model.fit(start, tol=1e-13, tol_criterion="params", maxiter=500, scale=scale)


def parameters(model):
    return np.concatenate([np.ravel(model.intercept_), np.ravel(model.coef_)])


def assert_equal(ours, theirs, means, tolerance=1e-8):
    np.testing.assert_allclose(parameters(ours), theirs.params, rtol=tolerance)
    np.testing.assert_allclose(ours.coef_covariance_, theirs.cov_params(), rtol=tolerance)
    np.testing.assert_allclose(means, theirs.fittedvalues, rtol=tolerance)
    assert ours.log_likelihood_ == pytest.approx(theirs.llf, rel=tolerance)
    assert ours.deviance_ == pytest.approx(theirs.deviance, rel=tolerance)
    assert ours.dispersion_ == pytest.approx(theirs.scale, rel=tolerance)
    assert ours.null_deviance_ == pytest.approx(theirs.null_deviance, rel=tolerance)


def simulated(family, link, n=200, seed=0):
    """Rows whose targets have means well inside the family's."""
    random = np.random.default_rng([seed, n])
    X = random.normal(size=(n, 3)) * 0.3
    a = (1.0 if link == "log" else 2.0) + X @ [0.5, -0.4, 0.2]
    mean = {"identity": a, "log": np.exp(a), "reciprocal": 1 / a}[link]
    draw = {
        "gaussian": lambda: mean + 0.1 * random.normal(size=n),
        "poisson": lambda: random.poisson(mean).astype(float),
        "gamma": lambda: random.gamma(4.0, mean / 4),
        "exponential": lambda: random.exponential(mean),
    }
    return X, draw[family]()


@numbers
def test_real_targets_equal_statsmodels(family, link):
    X, y = SCOTLAND
    ours = GLM(family=family, link=link, tol=1e-5).fit(X, y)
    assert_equal(ours, statsmodels(X, y, family, link), ours.predict(X))
    assert ours.converged_
    assert ours.n_parameters_ == X.shape[1] + 1


@numbers
def test_weights_equal_those_that_count_rows_in_statsmodels(family, link):
    X, y = SCOTLAND
    weight = np.arange(len(y)) % 3 + 1
    ours = GLM(family=family, link=link, tol=1e-5).fit(X, y, sample_weight=weight)
    assert_equal(ours, statsmodels(X, y, family, link, weight), ours.predict(X))
    twice = GLM(family=family, link=link, tol=1e-5).fit(X.repeat(weight, axis=0), y.repeat(weight))
    np.testing.assert_allclose(parameters(ours), parameters(twice), rtol=1e-9)
    assert ours.dispersion_ == pytest.approx(twice.dispersion_, rel=1e-10)


@numbers
def test_offsets_equal_statsmodels(family, link):
    X, y = simulated(family, link)
    offset = 0.2 * np.random.default_rng(5).normal(size=len(y))
    ours = GLM(family=family, link=link, tol=1e-5).fit(X, y, offset=offset)
    theirs = statsmodels(X, y, family, link, offset=offset, start=parameters(ours))
    assert theirs.fit_history["iteration"] > 0
    np.testing.assert_allclose(parameters(ours), theirs.params, rtol=1e-8)
    np.testing.assert_allclose(ours.predict(X, offset=offset), theirs.fittedvalues, rtol=1e-8)
    assert ours.deviance_ == pytest.approx(theirs.deviance, rel=1e-8)


@pytest.mark.parametrize("link", ["log", "identity"])
def test_counts_of_visits_equal_statsmodels(link):
    X, y = RANDHIE
    ours = GLM(family="poisson", link=link).fit(X, y)
    assert_equal(ours, statsmodels(X, y, "poisson", link), ours.predict(X))


def test_counts_of_executions_equal_statsmodels():
    X, y = CPUNISH
    X = X * [1e-4, 1, 1, 1, 1, 1]
    ours = GLM(family="poisson", tol=1e-5).fit(X, y)
    assert_equal(ours, statsmodels(X, y, "poisson", "log"), ours.predict(X))


@pytest.mark.parametrize(("family", "link"), LABELS)
def test_two_classes_equal_statsmodels(family, link):
    X, y = FAIR
    ours = GLM(family=family, link=link).fit(X, y)
    assert_equal(ours, statsmodels(X, y, family, link), ours.predict_proba(X)[:, 1])
    weight = np.random.default_rng(0).integers(1, 4, len(y))
    ours = GLM(family=family, link=link).fit(X, y, sample_weight=weight)
    assert_equal(ours, statsmodels(X, y, family, link, weight), ours.predict_proba(X)[:, 1])


@pytest.mark.parametrize("link", ["log", "identity"])
def test_risks_and_differences_of_risks_equal_statsmodels(link):
    random = np.random.default_rng(4)
    X = random.uniform(-1, 1, size=(400, 2))
    mean = np.exp(-1 + 0.4 * X[:, 0]) if link == "log" else 0.4 + 0.2 * X[:, 0]
    y = (random.uniform(size=400) < mean).astype(float)
    ours = GLM(family="bernoulli", link=link, tol=1e-5).fit(X, y)
    theirs = statsmodels(X, y, "bernoulli", link)
    np.testing.assert_allclose(parameters(ours), theirs.params, rtol=1e-8)
    np.testing.assert_allclose(ours.coef_covariance_, theirs.cov_params(), rtol=1e-7)
    np.testing.assert_allclose(ours.predict_proba(X)[:, 1], theirs.fittedvalues, rtol=1e-8)


@pytest.mark.parametrize("link", ["logit", "probit", "cloglog"])
def test_grouped_counts_equal_statsmodels(link):
    found = sm.datasets.star98.load_pandas()
    X, counts = found.exog.to_numpy(float)[:, :6], found.endog.to_numpy(float)
    trials = counts.sum(axis=1)
    soft = counts[:, ::-1] / trials[:, None]
    ours = GLM(family="bernoulli", link=link).fit(X, soft, sample_weight=trials)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        family = FAMILIES.Binomial(LINKS[link]())
        theirs = sm.GLM(counts, sm.add_constant(X), family=family).fit(
            tol=1e-13, tol_criterion="params", maxiter=200
        )
    np.testing.assert_allclose(parameters(ours), theirs.params, rtol=1e-8)
    np.testing.assert_allclose(ours.coef_covariance_, theirs.cov_params(), rtol=1e-8)
    assert ours.deviance_ == pytest.approx(theirs.deviance, rel=1e-9)


def test_the_canonical_links_are_logistic_regression():
    X, y = load_iris(return_X_y=True)
    X = X + np.random.default_rng(0).normal(size=X.shape)
    ours, plain = GLM(family="categorical").fit(X, y), LogisticRegression().fit(X, y)
    np.testing.assert_allclose(ours.coef_, plain.coef_, rtol=1e-9)
    np.testing.assert_allclose(ours.predict_proba(X), plain.predict_proba(X), rtol=1e-9)
    np.testing.assert_allclose(ours.coef_covariance_, plain.coef_covariance_, rtol=1e-9)
    two = y > 0
    for family in ("categorical", "bernoulli"):
        ours, plain = GLM(family=family).fit(X, two), LogisticRegression().fit(X, two)
        np.testing.assert_allclose(parameters(ours), parameters(plain), rtol=1e-12)
    assert GLM(family="categorical", link="softmax").fit(X, y).n_parameters_ == 10


def test_probit_is_probit_regression_with_expected_errors():
    X, y = FAIR
    ours, plain = GLM(family="bernoulli", link="probit").fit(X, y), ProbitRegression().fit(X, y)
    np.testing.assert_allclose(parameters(ours), parameters(plain), rtol=1e-9)
    observed = plain.tidy(errors="expected")["std_error"]
    np.testing.assert_allclose(ours.tidy()["std_error"], observed, rtol=1e-9)


EXACT = {
    ("gaussian", "identity"): lambda a, t: a - t,
    ("poisson", "log"): lambda a, t: mpmath.exp(a) - t,
    ("gamma", "reciprocal"): lambda a, t: t - 1 / a,
    ("gamma", "log"): lambda a, t: 1 - t * mpmath.exp(-a),
    ("exponential", "identity"): lambda a, t: (1 - t / a) / a,
}


@pytest.mark.parametrize(("family", "link"), EXACT)
@pytest.mark.parametrize("precision", [None, 3.0], ids=["likelihood", "prior"])
def test_fifty_digits_agree(family, link, precision):
    X, y = SCOTLAND[0][:, [1, 3]], SCOTLAND[1]
    ours = GLM(family=family, link=link, prior=precision, tol=1e-7).fit(X, y)
    alpha, score = precision or 0, EXACT[family, link]
    with mpmath.workdps(50):
        rows = [[mpmath.mpf(1), *map(mpmath.mpf, row)] for row in X.tolist()]

        def gradient(*w):
            pull = [
                score(mpmath.fdot(w, row), mpmath.mpf(t))
                for row, t in zip(rows, y.tolist(), strict=True)
            ]
            return [
                mpmath.fdot(pull, [row[j] for row in rows]) + (alpha * w[j] if j else 0)
                for j in range(3)
            ]

        exact = mpmath.findroot(gradient, parameters(ours).tolist())
    np.testing.assert_allclose(parameters(ours), [float(v) for v in exact], rtol=1e-11)


@pytest.mark.parametrize("precision", [0.1, 2.0])
def test_a_prior_on_a_gaussian_target_is_ridge_regression(precision):
    ours = GLM(prior=precision).fit(DIABETES_X, DIABETES_Y)
    theirs = Ridge(alpha=precision).fit(DIABETES_X, DIABETES_Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-9)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, rel=1e-12)


@pytest.mark.parametrize(
    ("family", "rival"), [("poisson", PoissonRegressor), ("gamma", GammaRegressor)]
)
def test_a_prior_is_the_penalty_of_scikit_learn_times_the_rows(family, rival):
    X, y = simulated(family, "log")
    ours = GLM(family=family, link="log", prior=2.0).fit(X, y)
    theirs = rival(alpha=2.0 / len(y), tol=1e-12, max_iter=10_000, solver="newton-cholesky")
    theirs.fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-7)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, rel=1e-8)


def test_wide_sparse_problems_reach_the_same_optimum():
    random = np.random.default_rng(8)
    X = sparse.random_array((600, 6000), density=0.01, rng=random, format="csr")
    y = random.poisson(np.exp(0.3 * (X @ random.normal(size=6000)))).astype(float)
    ours = GLM(family="poisson", prior=1.0, tol=1e-8).fit(X, y)
    theirs = PoissonRegressor(alpha=1 / 600, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    assert ours.solver_ == "newton-cg"


def test_a_gaussian_prior_with_a_mean_is_added_to_the_likelihood():
    X, y = simulated("poisson", "log")
    prior = GaussianPrior(precision=[1e9, 0.0, 0.0], mean=[0.7, 0.0, 0.0])
    ours = GLM(family="poisson", prior=prior).fit(X, y)
    held = GLM(family="poisson").fit(X[:, 1:], y, offset=0.7 * X[:, 0])
    np.testing.assert_allclose(ours.coef_, [0.7, *held.coef_], rtol=1e-6)


def test_the_null_model_has_the_offsets():
    X, y = simulated("exponential", "reciprocal")
    offset = np.random.default_rng(1).normal(size=len(y))
    ours = GLM(family="exponential").fit(X, y, offset=offset)

    def deviance(intercept):
        a = intercept + offset
        return 2 * (y * a - 1 - np.log(y * a)).sum() if (a > 0).all() else 1e300

    least = minimize_scalar(deviance, bounds=(-offset.min(), 60.0), options={"xatol": 1e-10})
    assert ours.null_deviance_ == pytest.approx(least.fun, rel=1e-9)


@numbers
def test_without_intercept_equals_statsmodels(family, link):
    X, y = simulated(family, link)
    X = np.column_stack([X, np.full(len(y), 0.5)])
    ours = GLM(family=family, link=link, fit_intercept=False, tol=1e-5).fit(X, y)
    plain = GLM(family=family, link=link, tol=1e-5).fit(X[:, :3], y)
    np.testing.assert_allclose(ours.coef_[:3], plain.coef_, rtol=1e-8)
    assert 0.5 * ours.coef_[3] == pytest.approx(plain.intercept_, rel=1e-8)
    assert ours.intercept_ == 0.0


def test_the_estimator_is_what_its_family_says():
    for family in ("gaussian", "poisson", "exponential", "gamma"):
        model = GLM(family=family)
        assert is_regressor(model)
        assert not is_classifier(model)
        for name in ("predict_proba", "predict_log_proba", "decision_function", "hyperplane"):
            assert not hasattr(model, name)
    for family in ("bernoulli", "categorical"):
        model = GLM(family=family)
        assert is_classifier(model)
        assert not is_regressor(model)
        assert hasattr(model, "predict_proba")


def test_a_regressor_has_a_vector_a_number_and_r_squared():
    model = GLM(family="gamma", link="log").fit(DIABETES_X, DIABETES_Y)
    assert model.coef_.shape == (10,)
    assert type(model.intercept_) is float
    assert not hasattr(model, "classes_")
    mean = np.exp(DIABETES_X @ model.coef_ + model.intercept_)
    np.testing.assert_allclose(model.predict(DIABETES_X), mean, rtol=1e-12)
    assert model.score(DIABETES_X, DIABETES_Y) == pytest.approx(r2_score(DIABETES_Y, mean))
    scores = cross_val_score(GLM(), DIABETES_X, DIABETES_Y, cv=3)
    assert (scores > 0.4).all()


def test_a_classifier_has_labels_and_their_share():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = GLM(family="categorical", prior=1.0).fit(X, names)
    assert model.coef_.shape == (3, 4)
    assert model.classes_.tolist() == sorted(set(names))
    assert model.score(X, names) == (model.predict(X) == names).mean() > 0.95
    two = GLM(family="bernoulli", link="cloglog", prior=1.0).fit(X, y == 1)
    p = two.predict_proba(X)[:, 1]
    np.testing.assert_array_equal(two.predict(X), p > 0.5)
    np.testing.assert_array_equal(two.decision_function(X) > 0, p > 0.5)


def test_a_refit_with_another_family_leaves_nothing_of_the_first():
    X, y = FAIR
    model = GLM(family="bernoulli").fit(X, y)
    model.set_params(family="poisson").fit(X, y)
    assert not hasattr(model, "classes_")
    fresh = GLM(family="poisson").fit(X, y)
    np.testing.assert_array_equal(model.coef_, fresh.coef_)
    assert sorted(vars(model)) == sorted([*vars(fresh), "_fitted_link"])


@numbers
def test_sources_and_orders_do_not_matter(family, link):
    X, y = simulated(family, link)
    weight = np.random.default_rng(2).uniform(0.5, 2, len(y))
    plain = parameters(GLM(family=family, link=link, tol=1e-7).fit(X, y, sample_weight=weight))
    frame = pd.DataFrame(X, columns=list("abc"))
    order = np.random.default_rng(3).permutation(len(y))
    for other, t, v in [
        (frame, pd.Series(y), weight),
        (sparse.csr_array(X), y, weight),
        (X[order], y[order], weight[order]),
        (X.repeat(2, axis=0), y.repeat(2), weight.repeat(2) / 2),
        (X.tolist(), y.tolist(), weight.tolist()),
    ]:
        found = parameters(GLM(family=family, link=link, tol=1e-7).fit(other, t, sample_weight=v))
        np.testing.assert_allclose(found, plain, rtol=1e-9)


@numbers
def test_units_and_origins_of_columns_change_no_mean(family, link):
    X, y = simulated(family, link)
    plain = GLM(family=family, link=link).fit(X, y).predict(X)
    for Z, tolerance in [
        (X * [1e-150, 1, 1], 1e-8),
        (X * [1e150, 1, 1], 1e-8),
        (X + np.array([1e8, 0, -1e7]), 1e-6),
    ]:
        found = GLM(family=family, link=link).fit(Z, y).predict(Z)
        np.testing.assert_allclose(found, plain, rtol=tolerance)


@numbers
@pytest.mark.parametrize("unit", [1e-60, 1e60])
def test_the_unit_of_the_target_is_that_of_the_mean(family, link, unit):
    """Large and small targets reach the same optimum."""
    X, y = simulated(family, link)
    unit = min(unit, 1e12) if family == "poisson" else unit
    plain = GLM(family=family, link=link).fit(X, y).predict(X)
    found = GLM(family=family, link=link).fit(X, y * unit).predict(X)
    np.testing.assert_allclose(found / unit, plain, rtol=1e-8)


@numbers
def test_dependent_columns_get_the_smallest_coefficients(family, link):
    X, y = simulated(family, link)
    Z = np.column_stack([X, X[:, 0] + X[:, 1], np.ones(len(y))])
    with pytest.warns(RankDeficiencyWarning, match=r"Columns \d, 4"):
        model = GLM(family=family, link=link).fit(Z, y)
    plain = GLM(family=family, link=link).fit(X, y)
    np.testing.assert_allclose(model.predict(Z), plain.predict(X), rtol=1e-9)
    assert model.coef_ @ [1, 1, 0, -1, 0] == pytest.approx(0.0, abs=1e-9)
    assert model.dispersion_ == pytest.approx(plain.dispersion_, rel=1e-9)


def test_fewer_rows_than_columns_are_interpolated_with_a_warning():
    X, y = DIABETES_X[:5], DIABETES_Y[:5]
    with pytest.warns(RankDeficiencyWarning):
        model = GLM().fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, rtol=1e-9)
    with pytest.raises(InferenceError, match="5 rows leave none"):
        _ = model.dispersion_
    held = GLM(prior=1.0).fit(X, y)
    np.testing.assert_allclose(held.coef_, Ridge(alpha=1.0).fit(X, y).coef_, rtol=1e-8)


def test_large_activations_have_means_or_a_named_error():
    X, y = simulated("poisson", "log")
    model = GLM(family="poisson").fit(X, y)
    along = X[:1] * 0 + 690 * model.coef_ / (model.coef_ @ model.coef_)
    found = model.predict(np.vstack([along, -along]))
    expected = model.intercept_ + np.array([690, -690])
    np.testing.assert_allclose(np.log(found), expected, rtol=1e-12)


def test_factors_equal_their_indicators_and_unseen_levels_are_errors_or_the_reference():
    random = np.random.default_rng(3)
    levels = random.choice(["low", "mid", "top"], 300)
    x = random.normal(size=300)
    y = random.poisson(np.exp(0.3 * x + (levels == "top"))).astype(float)
    frame = pd.DataFrame({"level": pd.Categorical(levels), "x": x})
    ours = GLM(family="poisson").fit(frame, y)
    plain = GLM(family="poisson").fit(np.column_stack([levels == "mid", levels == "top", x]), y)
    np.testing.assert_allclose(ours.coef_, plain.coef_, rtol=1e-9)
    assert ours.tidy()["term"].tolist() == ["intercept", "level[mid]", "level[top]", "x"]
    new = pd.DataFrame({"level": ["huge", "low"], "x": [0.5, 0.5]})
    with pytest.raises(LevelError, match="'level'"):
        ours.predict(new)
    found = GLM(family="poisson", handle_unknown="reference").fit(frame, y).predict(new)
    assert found[0] == found[1]


def test_a_formula_names_the_target():
    frame = pd.DataFrame(DIABETES_X[:, :3], columns=["age", "sex", "bmi"]).assign(y=DIABETES_Y)
    ours = GLM(family="gamma", link="log").fit("y ~ age + bmi", frame)
    plain = GLM(family="gamma", link="log").fit(frame[["age", "bmi"]], DIABETES_Y)
    np.testing.assert_allclose(ours.coef_, plain.coef_, rtol=1e-12)
    np.testing.assert_allclose(ours.predict(frame), plain.predict(frame[["age", "bmi"]]))
    assert GLM().fit("y ~ age - 1", frame).intercept_ == 0.0


def test_many_rows_start_from_a_sample_and_end_at_the_same_optimum():
    random = np.random.default_rng(0)
    X = random.normal(size=(60_000, 4))
    y = random.poisson(np.exp(0.5 + X @ [0.3, -0.2, 0.1, 0.0])).astype(float)
    model = GLM(family="poisson", tol=1e-6).fit(X, y)
    assert model.solution_.trace[0].row_fraction < 0.2
    residual = model.predict(X) - y
    score = np.concatenate([[residual.sum()], X.T @ residual])
    assert abs(score).max() < 1e-3


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"family": "weibull"}, "family='weibull'"),
        ({"family": "poisson", "link": "logit"}, "cannot have the link 'logit'"),
        ({"family": "categorical", "link": "probit"}, "cannot have the link 'probit'"),
        ({"prior": "jeffreys"}, "classes"),
        ({"prior": -1.0}, "precision"),
        ({"tol": 2.0}, "tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"handle_unknown": "drop"}, "handle_unknown"),
    ],
    ids=str,
)
def test_a_setting_that_cannot_be_honoured_is_named(settings, words):
    y = np.arange(len(DIABETES_Y)) % 3
    with pytest.raises(ParameterError, match=words):
        GLM(**settings).fit(DIABETES_X, y)


def test_classes_are_for_families_of_classes():
    with pytest.raises(ParameterError, match="no classes"):
        GLM().fit(DIABETES_X, DIABETES_Y, classes=[0, 1])
    with pytest.raises(LabelError, match=r"Only binary classification.*family='categorical'"):
        GLM(family="bernoulli").fit(DIABETES_X, np.arange(len(DIABETES_Y)) % 3)
