"""Generalised linear models: numbers, domains of links, limits."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats
from scipy.stats import norm
from sklearn.base import is_classifier, is_regressor
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import GammaRegressor, PoissonRegressor, Ridge

from posteriori import GLM, GaussianPrior, LogisticRegression
from posteriori.errors import (
    BoundaryWarning,
    ConvergenceWarning,
    DomainError,
    LabelError,
    ParameterError,
    RankDeficiencyWarning,
    ScaleError,
    SeparationWarning,
)
from posteriori.likelihood.glm_families import GLM_FAMILIES

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
PAIRS = [(family.name, link) for family in GLM_FAMILIES.values() for link in family.links]
numbers = pytest.mark.parametrize(
    ("family", "link"), [pair for pair in PAIRS if pair[0] != "bernoulli"]
)
WEIGHT = np.random.default_rng(0).integers(1, 4, 569).astype(float)
OFFSET = np.random.default_rng(1).uniform(-0.1, 0.1, 569)


def data(name):
    found = getattr(sm.datasets, name).load_pandas()
    return found.exog.to_numpy(float), found.endog.to_numpy(float)


FAIR = (data("fair")[0], (data("fair")[1] > 0).astype(float))
DIABETES_X, DIABETES_Y = load_diabetes(return_X_y=True)
X, Y = DIABETES_X[:, [0, 1, 3]], DIABETES_Y
CANCER_X, CANCER_Y = load_breast_cancer(return_X_y=True)
CANCER_X = CANCER_X[:, :2]
RISK_X = np.column_stack([X[:, 1] > 0, X[:, 0] > 0.02, X[:, 2] > 0.03]).astype(float)


def parameters(model):
    return np.concatenate([np.ravel(model.intercept_), np.ravel(model.coef_)])


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
    for family, target in (("categorical", y), ("categorical", y > 0), ("bernoulli", y > 0)):
        ours, plain = GLM(family=family).fit(X, target), LogisticRegression().fit(X, target)
        np.testing.assert_allclose(parameters(ours), parameters(plain), rtol=1e-9)
        np.testing.assert_allclose(ours.coef_covariance_, plain.coef_covariance_, rtol=1e-9)


@pytest.mark.parametrize("family", ["gaussian", "poisson", "gamma"])
def test_prior_and_score_are_those_of_scikit_learn(family):
    link = "identity" if family == "gaussian" else "log"
    X, y = simulated(family, link)
    ours = GLM(family=family, link=link, prior=2.0).fit(X, y)
    if family == "gaussian":
        theirs = Ridge(alpha=2.0)
    else:
        rival = {"poisson": PoissonRegressor, "gamma": GammaRegressor}[family]
        theirs = rival(alpha=2.0 / len(y), tol=1e-12, max_iter=10_000, solver="newton-cholesky")
    theirs.fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-7)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, rel=1e-8)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), rel=1e-8)


@pytest.mark.parametrize("family", ["gaussian", "poisson", "exponential", "gamma"])
def test_a_model_of_numbers_is_a_regressor_with_a_vector_and_a_number(family):
    model = GLM(family=family, link="canonical" if family == "gaussian" else "log")
    assert is_regressor(model)
    assert not is_classifier(model)
    assert is_classifier(GLM(family="bernoulli"))
    assert hasattr(GLM(family="categorical"), "predict_proba")
    model.fit(DIABETES_X, DIABETES_Y)
    assert model.coef_.shape == (10,)
    assert type(model.intercept_) is float
    for name in ("predict_proba", "decision_function", "hyperplane", "classes_"):
        assert not hasattr(model, name)
    a = DIABETES_X @ model.coef_ + model.intercept_
    mean = a if family == "gaussian" else np.exp(a)
    np.testing.assert_allclose(model.predict(DIABETES_X), mean, rtol=1e-12)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
@numbers
def test_the_unit_of_the_target_changes_no_digit(family, link, unit):
    X, y = simulated(family, link)
    plain, scaled = (GLM(family=family, link=link).fit(X, u * y) for u in (1.0, unit))
    np.testing.assert_allclose(scaled.predict(X), unit * plain.predict(X), rtol=1e-11)


@numbers
def test_the_score_is_the_explained_share_of_the_deviance(family, link):
    X, y = simulated(family, link)
    weight, offset = WEIGHT[: len(y)], OFFSET[: len(y)]
    model = GLM(family=family, link=link).fit(X, y, sample_weight=weight, offset=offset)
    deviance = GLM_FAMILIES[family].deviance
    null = weight @ deviance(y, np.full(len(y), np.average(y, weights=weight)))
    wanted = 1 - weight @ deviance(y, model.predict(X, offset=offset)) / null
    found = model.score(X, y, sample_weight=weight, offset=offset)
    assert found == pytest.approx(wanted, rel=1e-12)
    assert found != pytest.approx(model.score(X, y, sample_weight=weight), rel=1e-6)


def test_a_refit_with_another_family_leaves_nothing_of_the_first():
    X, y = FAIR
    model = GLM(family="bernoulli").fit(X, y)
    model.set_params(family="poisson").fit(X, y)
    assert not hasattr(model, "classes_")
    fresh = GLM(family="poisson").fit(X, y)
    np.testing.assert_array_equal(model.coef_, fresh.coef_)
    assert sorted(vars(model)) == sorted(vars(fresh))


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


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"family": "weibull"}, "family='weibull'"),
        ({"family": "poisson", "link": "logit"}, "cannot have the link 'logit'"),
        ({"family": "categorical", "link": "probit"}, "cannot have the link 'probit'"),
        ({"prior": "jeffreys"}, "classes"),
        ({"tol": 2.0}, "tol"),
        ({"family": "bernoulli"}, "Only binary classification.*family='categorical'"),
        ({"family": "bernoulli", "link": "log", "prior": "jeffreys"}, "bounded support"),
    ],
    ids=str,
)
def test_a_setting_that_cannot_be_honoured_is_named(settings, words):
    y = np.arange(len(DIABETES_Y)) % (2 if "link" in settings else 3)
    with pytest.raises((ParameterError, LabelError), match=words):
        GLM(**settings).fit(DIABETES_X, y)
    with pytest.raises(ParameterError, match="no classes"):
        GLM().fit(DIABETES_X, DIABETES_Y, classes=[0, 1])


def rows(family, link):
    """Rows and targets that keep inside the domain of the link, and the size of an offset there."""
    if family != "bernoulli":
        return X, Y, 0.001 if link == "reciprocal" else 1.0
    if link in ("log", "identity"):
        return RISK_X, (Y > 140).astype(int), 0.5
    return CANCER_X, CANCER_Y, 1.0


def theirs(family, link, X, y, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of links that can leave the domain
        model = sm.GLM(y, sm.add_constant(X), family=THEIRS[family](LINKS[link]()), **given)
        fixed = {"scale": 1.0} if family == "exponential" else {}
        start = None
        if link in ("log", "identity", "reciprocal"):
            level = LINKS[link]()(np.average(y, weights=given.get("freq_weights")))
            start = np.r_[level, np.zeros(X.shape[1])]
        return model.fit(
            start_params=start, tol=1e-14, maxiter=500, tol_criterion="params", **fixed
        )


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_all_that_is_estimated_is_the_same(family, link, weighted, offset):
    X, y, size = rows(family, link)
    ours, wanted, new = {}, {}, {}
    if weighted:
        ours["sample_weight"] = wanted["freq_weights"] = WEIGHT[: len(y)]
    if offset:
        ours["offset"] = wanted["offset"] = new["offset"] = size * OFFSET[: len(y)]
    model = GLM(family=family, link=link).fit(X, y, **ours)
    found = theirs(family, link, X, y, **wanted)
    np.testing.assert_allclose(
        np.r_[model.intercept_, np.ravel(model.coef_)], found.params, rtol=1e-8
    )
    np.testing.assert_allclose(np.sqrt(np.diag(model.coef_covariance_)), found.bse, rtol=1e-8)
    units = np.outer(found.bse, found.bse)
    np.testing.assert_allclose(
        model.coef_covariance_ / units, found.cov_params() / units, rtol=1e-8, atol=1e-9
    )
    assert model.log_likelihood_ == pytest.approx(found.llf, rel=1e-10)
    assert model.deviance_ == pytest.approx(found.deviance, rel=1e-10)
    assert model.null_deviance_ == pytest.approx(found.null_deviance, rel=1e-8)
    assert model.dispersion_ == pytest.approx(found.scale, rel=1e-9)
    mean = model.predict_proba(X, **new).T[1] if family == "bernoulli" else model.predict(X, **new)
    np.testing.assert_allclose(mean, found.fittedvalues, rtol=1e-8)


def few(family):
    """So few rows that intervals reach beyond the ends."""
    random = np.random.default_rng(0)
    Z = random.uniform(0, 1, size=(12, 1))
    mean = 0.4 + 2 * Z[:, 0]
    return Z, random.poisson(mean) * 1.0 if family == "poisson" else random.exponential(mean) + 0.01


@pytest.mark.parametrize(
    ("family", "link", "quantile"),
    [
        ("poisson", "identity", norm.ppf(0.9995)),
        ("gamma", "identity", stats.t(10).ppf(0.9995)),
        ("exponential", "reciprocal", norm.ppf(0.9995)),
        ("poisson", "log", norm.ppf(0.9995)),
    ],
)
def test_intervals_are_those_of_the_activation_as_far_as_it_has_a_mean(family, link, quantile):
    Z, y = few(family)
    model = GLM(family=family, link=link).fit(Z, y)
    design = np.column_stack([np.ones(12), Z])
    a = design @ np.r_[model.intercept_, model.coef_]
    away = quantile * np.sqrt(np.einsum("ij,jk,ik->i", design, model.coef_covariance_, design))
    ends = np.stack([a - away, a + away], axis=1)
    if link != "log":
        assert (ends[:, 0] < 0).any()
        ends = np.maximum(ends, 0.0)
    with np.errstate(divide="ignore"):
        wanted = {"identity": ends, "log": np.exp(ends), "reciprocal": 1 / ends[:, ::-1]}[link]
    found = model.predict_interval(Z, level=0.999)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-300)


def test_a_saturated_fit_has_no_deviance_and_its_page_names_family_and_link():
    model = GLM(family="poisson").fit(np.eye(3)[:, 1:], [1.0, 2.0, 3.0])
    assert model.deviance_ == 0.0
    assert model.log_likelihood_ == pytest.approx(
        -6 + np.log(1) + 2 * np.log(2) + 3 * np.log(3) - np.log(2) - np.log(6), rel=1e-14
    )
    page = str(model.summary())
    assert "Deviance                            0" in page
    assert re.search(r"^Family +poisson ", page, re.MULTILINE)
    assert re.search(r"^Link +log ", page, re.MULTILINE)


def levels(f="aaabbbccc"):
    return pd.DataFrame({"f": list(f), "x": np.arange(9.0) % 4})


@pytest.mark.parametrize(
    ("y", "columns"),
    [
        ([0, 0, 0, 1, 2, 3, 2, 4, 1.0], ("intercept", "f[b]", "f[c]")),
        ([1, 2, 3, 0, 0, 0, 2, 4, 1.0], ("f[b]",)),
        ([0, 0, 0, 0, 0, 0, 2, 4, 1.0], ("intercept", "f[c]")),
    ],
)
def test_coefficients_of_levels_whose_targets_are_all_zero_are_named(y, columns):
    frame, y, density = levels(), np.array(y), GLM(family="exponential", link="log")
    with pytest.warns(SeparationWarning, match=rf"'{re.escape(columns[-1])}'.*mean goes to zero"):
        model = GLM(family="poisson").fit(frame, y)
    assert model.separation_.columns == columns
    with pytest.raises(DomainError, match=r"every target of some of the rows is zero.*no bound"):
        density.fit(frame, y)
    assert density.set_params(prior=1.0).fit(frame, y).converged_


def test_a_risk_whose_coefficients_diverge_is_one_warning():
    random = np.random.default_rng(0)
    x = random.normal(size=(40, 2))
    y = (np.arange(40) == np.argmax(x[:, 0])).astype(int)
    with pytest.warns(SeparationWarning) as caught:
        model = GLM(family="bernoulli", link="log").fit(x, y)
    assert [warning.category for warning in caught] == [SeparationWarning]
    assert not model.converged_
    assert model.log_likelihood_ == pytest.approx(0.0, abs=1e-7)


@pytest.mark.parametrize("family", ["gamma", "poisson"])
def test_offsets_that_span_more_than_thirty_with_the_log_link_are_an_error(family):
    X, y = simulated(family, "log")
    model, words = GLM(family=family, link="log"), r"between -16 and 16.*logarithm of an exposure"
    with pytest.raises(ScaleError, match=words + r".*\[P201\]"):
        model.fit(X, y, offset=np.linspace(-16, 16, len(y)))
    plain = model.fit(X, y).coef_
    np.testing.assert_allclose(model.fit(X, y, offset=np.full(len(y), 500.0)).coef_, plain, 1e-9)


BOUNDED = [
    ("exponential", "reciprocal"),
    ("exponential", "identity"),
    ("gamma", "reciprocal"),
    ("gamma", "identity"),
    ("gaussian", "reciprocal"),
    ("poisson", "identity"),
]
bounded = pytest.mark.parametrize(("family", "link"), BOUNDED)


def exponential_rows(n=300, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 2))
    return X, random.exponential(1 / (2 + 0.3 * X[:, 0] - 0.2 * X[:, 1]))


def counts(n=300, seed=0):
    """Counts in four groups and by a number."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame({"g": random.choice(list("abcd"), n), "x": random.normal(size=n)})
    return frame, random.poisson(np.exp(0.3 * frame["x"])).astype(float)


BAD = [
    ("poisson", -1.0, "zero or more"),
    ("gamma", 0.0, "more than zero"),
    ("gamma", -2.5, "more than zero"),
    ("exponential", -1e-9, "zero or more"),
]


@pytest.mark.parametrize(("family", "value", "allowed"), BAD)
def test_a_target_outside_the_family_is_named_with_its_row(family, value, allowed):
    X, y = exponential_rows()
    y[[40, 7]] = value
    with pytest.raises(DomainError, match=rf"Row 7 of y is outside .*{family}.*{allowed}"):
        GLM(family=family).fit(X, y)


@pytest.mark.parametrize(
    ("family", "link"), [*BOUNDED, ("bernoulli", "identity"), ("bernoulli", "log")]
)
def test_a_new_row_beyond_the_domain_is_named(family, link):
    X, y = exponential_rows()
    y = {"poisson": np.ceil(y), "bernoulli": y > 0.4}.get(family, y)
    model = GLM(family=family, link=link).fit(X * 0.1, y)
    coef = np.ravel(model.coef_)
    far = (1e3 if link == "log" else -1e3) * coef / np.linalg.norm(coef)
    with pytest.raises(DomainError, match=r"Row 1 has the activation .*takes every activation"):
        model.predict(np.vstack([X[0], far]))
    with pytest.raises(DomainError, match="Row 2"):
        model.predict(np.zeros((3, 2)), offset=[0.0, 0.0, 1e6 if link == "log" else -1e6])


@bounded
def test_offsets_move_the_start_inside_the_domain(family, link):
    X, y = exponential_rows()
    y = np.ceil(y) if family == "poisson" else y
    offset = np.random.default_rng(2).normal(size=len(y)) * 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoundaryWarning)
        model = GLM(family=family, link=link).fit(X, y, offset=offset)
    assert (model.predict(X, offset=offset) > 0).all()


def test_offsets_that_no_intercept_can_mend_are_an_error():
    X, y = exponential_rows()
    offset = np.zeros(len(y))
    offset[[11, 23]] = -0.7, 0.6
    with pytest.raises(
        DomainError, match=r"every row an activation from zero to 1.*smaller offsets"
    ):
        GLM(family="bernoulli", link="identity").fit(X, y > 0.4, offset=offset)


def assert_optimal(X, score, at_low, at_high):
    """The gradient of ln p is made of rows at the edge, each of which pulls outwards."""
    edge, design = at_low | at_high, sm.add_constant(X)
    gradient = design.T @ score
    shares = np.linalg.lstsq(design[edge].T, gradient)[0]
    assert 1 <= edge.sum() <= design.shape[1]
    np.testing.assert_allclose(design[edge].T @ shares, gradient, atol=1e-4)
    assert (np.sign(shares) == np.where(at_high[edge], 1, -1)).all()


@pytest.mark.parametrize(
    ("family", "link", "ends"),
    [
        ("bernoulli", "identity", (0.0, 1.0)),
        ("bernoulli", "log", (-np.inf, 0.0)),
        ("poisson", "identity", (0.0, np.inf)),
    ],
)
def test_means_at_the_end_of_the_domain_are_optimal_there_and_named(family, link, ends):
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 2))
    if family == "bernoulli":
        y = (random.uniform(size=300) < np.clip(0.5 + 0.4 * X[:, 0], 0, 1)).astype(float)
    else:
        y = random.poisson(np.maximum(0.5 + 0.6 * X[:, 0], 0)).astype(float)
    with pytest.warns(BoundaryWarning, match=rf"row \d+.*{family} family with the {link} link"):
        model = GLM(family=family, link=link).fit(X, y)
    assert model.converged_
    a = X @ np.ravel(model.coef_) + np.ravel(model.intercept_)
    mean = np.exp(a) if link == "log" else a
    score = (y / mean - (1 - y) / (1 - mean)) * (mean if link == "log" else 1.0)
    if family == "poisson":
        score = y / mean - 1
    assert_optimal(X, score, a - ends[0] < 1e-5, ends[1] - a < 1e-5)
    assert "lies at the boundary of the means" in " ".join(str(model.summary()).split())


@pytest.mark.parametrize("family", ["poisson", "exponential"])
def test_targets_that_are_all_zero_are_an_error(family):
    X, y = exponential_rows()
    with pytest.raises(DomainError, match="All targets are zero"):
        GLM(family=family).fit(X, y * 0)
    prior = GaussianPrior(1.0, intercept_precision=1.0)
    model = GLM(family=family, link="log", prior=prior).fit(X, y * 0)
    assert (model.predict(X) < 0.2).all()
    np.testing.assert_allclose(GLM().fit(X, y * 0).predict(X), 0.0, atol=1e-12)


def test_a_level_with_counts_of_zero_alone_is_named_and_leaves_the_others_right():
    frame, y = counts()
    y[frame["g"] == "c"] = 0
    with pytest.warns(SeparationWarning, match=r"'g\[c\]' diverge"):
        model = GLM(family="poisson").fit(frame, y)
    assert model.separation_.kind == "quasi"
    assert model.separation_.columns == ("g[c]",)
    assert model.separation_.directions.tolist() == [-1.0]
    kept = frame["g"] != "c"
    plain = GLM(family="poisson").fit(frame[kept], y[kept])
    ours = model.tidy().set_index("term")
    theirs = plain.tidy().set_index("term")
    np.testing.assert_allclose(
        ours.loc[theirs.index, ["estimate", "std_error"]],
        theirs[["estimate", "std_error"]],
        rtol=1e-6,
    )
    assert np.isinf(ours.loc["g[c]", "std_error"])
    assert model.predict(frame[~kept]).max() < 1e-6
    assert plain.separation_.kind == "none"
    held = GLM(family="poisson", prior=0.5).fit(frame, y)
    assert held.converged_
    assert -5 < held.coef_[held.coef_names_ == "g[c]"] < -1
    assert held.separation_.columns == ("g[c]",)


@pytest.mark.parametrize("family", ["gaussian", "gamma"])
@pytest.mark.parametrize(("size", "word"), [(1e160, "Divide"), (1e-160, "Multiply")])
def test_targets_beyond_what_doubles_carry_are_an_error(family, size, word):
    X, y = exponential_rows()
    with pytest.raises(ScaleError, match=word):
        GLM(family=family, link="identity").fit(X, (y + 1) * size)


def test_a_constant_target_and_a_perfect_fit_have_no_dispersion():
    X, _ = exponential_rows()
    constant = GLM().fit(X, np.full(len(X), 3.0))
    np.testing.assert_allclose(parameters(constant), [3.0, 0.0, 0.0], atol=1e-12)
    assert constant.dispersion_ == pytest.approx(0.0, abs=1e-20)
    perfect = GLM().fit(X, X @ [1.0, 2.0] - 1)
    np.testing.assert_allclose(parameters(perfect), [-1.0, 1.0, 2.0], rtol=1e-12)


@pytest.mark.parametrize(("family", "link"), [p for p in PAIRS if p[0] == "bernoulli"])
@pytest.mark.parametrize("max_iter", [None, 2])
def test_rows_with_a_share_in_both_classes_are_never_separated(family, link, max_iter):
    model = GLM(family=family, link=link, max_iter=max_iter)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit([[0.0], [1.0]], [[0.9, 0.1], [0.7, 0.3]], sample_weight=[50, 60])
    found = model.predict_proba([[0.0], [1.0]])[:, 1]
    np.testing.assert_allclose(found, [0.1, 0.3], rtol=0.03 if max_iter else 1e-8)
    assert model.separation_.kind == "none"


@pytest.mark.parametrize("prior", ["ard", "evidence"])
@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_a_prior_chosen_by_the_data_does_not_see_rows_of_weight_zero(family, prior):
    X, y = simulated(family, "log" if family == "poisson" else "identity")
    plain = GLM(family=family, prior=prior).fit(X, y)
    more, target = np.vstack([X, 5 * X[:40]]), np.append(y, y[:40])
    weight = np.append(np.ones(len(y)), np.zeros(40))
    found = GLM(family=family, prior=prior).fit(more, target, sample_weight=weight)
    np.testing.assert_allclose(parameters(found), parameters(plain), rtol=1e-10)


@pytest.mark.parametrize(
    "model", [GLM(fit_intercept=False), GLM(family="bernoulli", fit_intercept=False)]
)
def test_columns_of_zeros_without_intercept_leave_nothing_to_estimate(model):
    with pytest.warns(RankDeficiencyWarning):
        model.fit(np.zeros((6, 2)), [0, 1] * 3)
    assert model.n_parameters_ == 0
    assert "Parameters                          0" in str(model.summary())
    np.testing.assert_array_equal(model.coef_, 0.0)
