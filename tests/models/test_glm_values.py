"""Numbers that a generalised linear model gives where a mean has ends, and what its page says."""

import re

import mpmath
import numpy as np
import pytest
from scipy.stats import norm, t
from sklearn.datasets import load_diabetes, make_blobs
from sklearn.preprocessing import StandardScaler

from posteriori import GLM
from posteriori.errors import BoundaryWarning, DomainError
from posteriori.likelihood.glm_families import GLM_FAMILIES

X, Y = load_diabetes(return_X_y=True)
X = X[:, :3]


def few(family):
    """So few rows that intervals reach beyond the ends."""
    random = np.random.default_rng(0)
    Z = random.uniform(0, 1, size=(12, 1))
    mean = 0.4 + 2 * Z[:, 0]
    return Z, random.poisson(mean) * 1.0 if family == "poisson" else random.exponential(mean) + 0.01


@pytest.mark.parametrize(
    ("family", "link"),
    [
        ("poisson", "identity"),
        ("gamma", "identity"),
        ("exponential", "identity"),
        ("gamma", "reciprocal"),
        ("exponential", "reciprocal"),
        ("poisson", "log"),
        ("gaussian", "identity"),
    ],
)
def test_intervals_are_those_of_the_activation_as_far_as_it_has_a_mean(family, link):
    Z, y = few(family)
    model = GLM(family=family, link=link).fit(Z, y)
    design = np.column_stack([np.ones(12), Z])
    a = design @ np.r_[model.intercept_, model.coef_]
    error = np.sqrt(np.einsum("ij,jk,ik->i", design, model.coef_covariance_, design))
    free = family in ("gaussian", "gamma")
    away = error * (t(10).ppf(0.9995) if free else norm.ppf(0.9995))
    ends = np.stack([a - away, a + away], axis=1)
    if (family, link) != ("gaussian", "identity") and link != "log":
        assert (ends[:, 0] < 0).any()
        ends = np.maximum(ends, 0.0)
    with np.errstate(divide="ignore"):
        wanted = {"identity": ends, "log": np.exp(ends), "reciprocal": 1 / ends[:, ::-1]}[link]
    found = model.predict_interval(Z, level=0.999)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-300)
    assert (found[:, 0] <= model.predict(Z)).all()
    assert (found[:, 1] >= model.predict(Z)).all()


def test_an_interval_of_a_row_without_a_mean_is_an_error_that_names_it():
    Z, y = few("poisson")
    model = GLM(family="poisson", link="identity").fit(Z, y)
    beyond = np.array([[0.5], [-1e3 * np.sign(model.coef_[0])]])
    with pytest.raises(DomainError, match="Row 1 has the activation -"):
        model.predict_interval(beyond)


@pytest.mark.parametrize("link", ["identity", "log"])
def test_intervals_of_probabilities_end_at_zero_and_one(link):
    Z, y = np.repeat([[0.0], [1.0]], 6, axis=0), np.array([0, 1, 0, 1, 0, 0, 1, 1, 0, 1, 1, 1])
    model = GLM(family="bernoulli", link=link).fit(Z, y)
    p = np.array([2 / 6, 5 / 6])
    error = np.sqrt(p * (1 - p) / 6) / (p if link == "log" else 1.0)
    ends = (np.log(p) if link == "log" else p) + np.outer([-1, 1], norm.ppf(0.9995) * error)
    wanted = np.clip(np.exp(ends) if link == "log" else ends, 0.0, 1.0)
    assert wanted.max() == 1.0
    np.testing.assert_allclose(
        model.predict_interval([[0.0], [1.0]], level=0.999), wanted.T, rtol=1e-9, atol=1e-300
    )


@pytest.mark.parametrize(
    ("family", "link"),
    [
        ("gaussian", "reciprocal"),
        ("poisson", "identity"),
        ("gamma", "reciprocal"),
        ("gamma", "identity"),
        ("exponential", "reciprocal"),
        ("exponential", "identity"),
        ("bernoulli", "identity"),
        ("bernoulli", "log"),
    ],
)
def test_without_an_intercept_offsets_alone_must_have_a_mean(family, link):
    sign = -1.0 if link == "log" else 1.0
    Z = np.column_stack([np.random.default_rng(0).normal(size=60) * 0.02, np.full(60, sign)])
    y = np.random.default_rng(1).uniform(0.2, 0.9, size=60)
    y = (y > 0.6).astype(int) if family == "bernoulli" else y
    bare = GLM(family=family, link=link, fit_intercept=False).fit(Z, y)
    assert bare.null_deviance_ == np.inf
    assert bare.glance()["null_deviance"][0] == np.inf
    assert re.search(r"Null deviance +inf", str(bare.summary()))
    offset = np.full(60, 0.3 * sign)
    given = GLM(family=family, link=link, fit_intercept=False).fit(Z, y, offset=offset)
    mean = {"identity": 0.3, "log": np.exp(-0.3), "reciprocal": 1 / 0.3}[link]
    wanted = GLM_FAMILIES[family].deviance(y * 1.0, np.full(60, mean)).sum()
    assert given.null_deviance_ == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize(
    ("family", "link", "shown"),
    [
        ("poisson", "canonical", "log"),
        ("gamma", "identity", "identity"),
        ("bernoulli", "cloglog", "cloglog"),
        ("categorical", "canonical", "softmax"),
    ],
)
def test_the_page_names_family_and_link(family, link, shown):
    y = (
        Y
        if family in ("poisson", "gamma")
        else np.digitize(Y, [90, 180][: 1 + (shown != "cloglog")])
    )
    page = str(GLM(family=family, link=link).fit(X, y).summary())
    assert re.search(rf"^Family +{family} ", page, re.MULTILINE)
    assert re.search(rf"^Link +{shown} ", page, re.MULTILINE)


def test_an_optimum_at_an_end_lies_on_its_inner_side():
    Z = np.random.default_rng(0).normal(size=(60, 2))
    y = np.zeros(60, dtype=int)
    y[np.argmax(Z[:, 0])] = 1
    with pytest.warns(BoundaryWarning):
        model = GLM(family="bernoulli", link="identity").fit(Z, y)
    p = model.predict_proba(Z)[:, 1]
    assert 0 <= p.min() < 1e-6
    own = np.log(np.where(y == 1, p, 1 - p))
    assert model.log_likelihood_ == pytest.approx(own.sum(), rel=1e-9)


def test_logarithms_of_probabilities_are_right_where_the_probabilities_are_no_doubles():
    Z, y = make_blobs(n_samples=300, random_state=0)
    Z = StandardScaler().fit_transform(Z)[y != 2]
    model = GLM(family="bernoulli", link="cloglog").fit(Z, y[y != 2])
    a = model.decision_function(Z) + np.log(np.log(2.0))
    with mpmath.workdps(50):
        first = [float(-mpmath.exp(mpmath.mpf(v))) for v in a]
        second = [float(mpmath.log1p(-mpmath.exp(-mpmath.exp(mpmath.mpf(v))))) for v in a]
    found = model.predict_log_proba(Z)
    assert found[:, 0].min() < -1e5
    assert model.predict_proba(Z)[:, 0].min() == 0.0
    np.testing.assert_allclose(found[:, 0], first, rtol=1e-11)
    np.testing.assert_allclose(found[:, 1], second, rtol=1e-11)
