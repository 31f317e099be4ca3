"""Generalised linear models at the ends: of a link's domain, of the doubles, and of the data."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from posteriori import GaussianPrior
from posteriori.errors import (
    BoundaryWarning,
    DomainError,
    InferenceError,
    ScaleError,
    SeparationWarning,
)
from posteriori.models.glm import GLM

BOUNDED = [
    ("exponential", "reciprocal"),
    ("exponential", "identity"),
    ("gamma", "reciprocal"),
    ("gamma", "identity"),
    ("gaussian", "reciprocal"),
    ("poisson", "identity"),
]
bounded = pytest.mark.parametrize(("family", "link"), BOUNDED)


def rows(n=300, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 2))
    return X, random.exponential(1 / (2 + 0.3 * X[:, 0] - 0.2 * X[:, 1]))


def counts(n=300, seed=0):
    """Counts in four groups and by a number."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame({"g": random.choice(list("abcd"), n), "x": random.normal(size=n)})
    return frame, random.poisson(np.exp(0.3 * frame["x"])).astype(float)


def parameters(model):
    return np.concatenate([np.ravel(model.intercept_), np.ravel(model.coef_)])


BAD = [
    ("poisson", -1.0, "zero or more"),
    ("gamma", 0.0, "more than zero"),
    ("gamma", -2.5, "more than zero"),
    ("exponential", -1e-9, "zero or more"),
]


@pytest.mark.parametrize(("family", "value", "allowed"), BAD)
def test_a_target_outside_the_family_is_named_with_its_row(family, value, allowed):
    X, y = rows()
    y[[40, 7]] = value
    with pytest.raises(DomainError, match=rf"Row 7 of y is {value:g}.*{family}.*{allowed}"):
        GLM(family=family).fit(X, y)
    weight = np.ones(len(y))
    weight[[40, 7]] = 0
    dropped = np.delete(np.arange(len(y)), [40, 7])
    found = GLM(family=family).fit(X, y, sample_weight=weight)
    plain = GLM(family=family).fit(X[dropped], y[dropped])
    np.testing.assert_allclose(parameters(found), parameters(plain), rtol=1e-8)


@bounded
def test_all_fitted_means_are_those_of_the_family(family, link):
    X, y = rows()
    model = GLM(family=family, link=link).fit(X * 0.2, np.ceil(y) if family == "poisson" else y)
    assert model.converged_
    assert (model.predict(X * 0.2) > 0).all()


@bounded
def test_a_new_row_beyond_the_domain_is_named(family, link):
    X, y = rows()
    y = np.ceil(y) if family == "poisson" else y
    model = GLM(family=family, link=link).fit(X * 0.2, y)
    far = -1e3 * model.coef_ / np.linalg.norm(model.coef_)
    with pytest.raises(DomainError, match=r"Row 1 has the activation -.*no ends"):
        model.predict(np.vstack([X[0], far]))
    named = pd.DataFrame(np.vstack([X[:2], far]), columns=["x0", "x1"])
    fitted = GLM(family=family, link=link).fit(pd.DataFrame(X * 0.2, columns=["x0", "x1"]), y)
    with pytest.raises(DomainError, match="Row 2"):
        fitted.predict(named)
    with pytest.raises(DomainError, match="Row 2"):
        model.predict(np.zeros((3, 2)), offset=[0.0, 0.0, -1e6])


@pytest.mark.parametrize("link", ["identity", "log"])
def test_a_probability_beyond_one_is_an_error(link):
    X, _ = rows()
    random = np.random.default_rng(3)
    y = random.uniform(size=len(X)) < 0.4
    model = GLM(family="bernoulli", link=link).fit(X * 0.1, y)
    far = 1e3 * model.coef_[0] / np.linalg.norm(model.coef_)
    for answer in (model.predict, model.predict_proba, model.predict_log_proba):
        with pytest.raises(DomainError, match="Row 1 has the activation"):
            answer(np.vstack([X[0], far]))


@bounded
def test_offsets_move_the_start_inside_the_domain(family, link):
    X, y = rows()
    y = np.ceil(y) if family == "poisson" else y
    offset = np.random.default_rng(2).normal(size=len(y)) * 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoundaryWarning)
        model = GLM(family=family, link=link).fit(X, y, offset=offset)
    assert (model.predict(X, offset=offset) > 0).all()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.coef_, model.coef_)


def test_offsets_that_no_intercept_can_mend_are_an_error():
    X, y = rows()
    offset = np.zeros(len(y))
    offset[[11, 23]] = -0.7, 0.6
    with pytest.raises(DomainError, match=r"offsets lie between -0.7 and 0.6.*from zero to 1"):
        GLM(family="bernoulli", link="identity").fit(X, y > 0.4, offset=offset)


def assert_optimal(X, score, at_low, at_high):
    """The gradient of ln p is made of rows at the edge, each of which pulls outwards."""
    edge, design = at_low | at_high, sm.add_constant(X)
    gradient = design.T @ score
    shares = np.linalg.lstsq(design[edge].T, gradient)[0]
    assert 1 <= edge.sum() <= design.shape[1]
    np.testing.assert_allclose(design[edge].T @ shares, gradient, atol=1e-4)
    assert (np.sign(shares) == np.where(at_high[edge], 1, -1)).all()


def test_counts_with_mean_zero_are_at_the_edge_and_named():
    random = np.random.default_rng(0)
    X = random.normal(size=(120, 2))
    y = random.poisson(np.maximum(0.5 + 0.6 * X[:, 0], 0)).astype(float)
    with pytest.warns(BoundaryWarning, match=r"row \d+.*poisson family with the identity link"):
        model = GLM(family="poisson", link="identity").fit(X, y)
    assert model.converged_
    mean = model.predict(X)
    assert 0 < mean.min() < 1e-6
    assert_optimal(X, y / mean - 1, mean < 1e-5, np.zeros(120, dtype=bool))
    assert "lies at an end of the means" in " ".join(str(model.summary()).split())


@pytest.mark.parametrize("link", ["identity", "log"])
def test_risks_of_one_are_at_the_edge_and_named(link):
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 2))
    y = (random.uniform(size=300) < np.clip(0.5 + 0.4 * X[:, 0], 0, 1)).astype(float)
    with pytest.warns(BoundaryWarning, match=f"bernoulli family with the {link} link"):
        model = GLM(family="bernoulli", link=link).fit(X, y)
    a, p = X @ model.coef_[0] + model.intercept_[0], model.predict_proba(X)[:, 1]
    low, high = (0.0, 1.0) if link == "identity" else (-np.inf, 0.0)
    score = np.where(y == 1, 1 / p, -1 / (1 - p)) * (p if link == "log" else 1.0)
    assert_optimal(X, score, a - low < 1e-5, high - a < 1e-5)


def test_an_exponential_likelihood_without_bound_is_an_error():
    frame, y = counts()
    y = np.where(frame["g"] == "c", 0.0, y + 0.1)
    for link in ("reciprocal", "log"):
        with pytest.raises(DomainError, match=r"no bound.*'g\[c\]'"):
            GLM(family="exponential", link=link).fit(frame, y)
    with pytest.raises(DomainError, match=r"no bound.*mean of row \d+ \(and \d+ more\)"):
        GLM(family="exponential", link="identity").fit(frame, y)
    held = GLM(family="exponential", link="log", prior=1.0).fit(frame, y)
    assert held.converged_


@pytest.mark.parametrize("family", ["poisson", "exponential"])
def test_targets_that_are_all_zero_are_an_error(family):
    X, y = rows()
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


def test_zeros_and_a_prior_run_nowhere():
    frame, y = counts()
    y[frame["g"] == "c"] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = GLM(family="poisson", prior=0.5).fit(frame, y)
    assert model.converged_
    assert -5 < model.coef_[model.coef_names_ == "g[c]"] < -1
    # What the targets alone would do is told all the same.
    assert model.separation_.kind == "quasi"
    assert model.separation_.columns == ("g[c]",)


@pytest.mark.parametrize(
    ("family", "link", "size", "word"),
    [
        ("gaussian", "identity", 1e160, "Divide"),
        ("gaussian", "identity", 1e-160, "Multiply"),
        ("gaussian", "reciprocal", 1e100, "Divide"),
        ("gamma", "reciprocal", 1e160, "Divide"),
        ("gamma", "identity", 1e-160, "Divide|Multiply"),
    ],
)
def test_targets_beyond_what_doubles_carry_are_an_error(family, link, size, word):
    X, y = rows()
    with pytest.raises(ScaleError, match=word):
        GLM(family=family, link=link).fit(X, (y + 1) * size)


def test_a_constant_target_and_a_perfect_fit_have_no_dispersion():
    X, _ = rows()
    constant = GLM().fit(X, np.full(len(X), 3.0))
    np.testing.assert_allclose(parameters(constant), [3.0, 0.0, 0.0], atol=1e-12)
    assert constant.dispersion_ == pytest.approx(0.0, abs=1e-20)
    perfect = GLM().fit(X, X @ [1.0, 2.0] - 1)
    np.testing.assert_allclose(parameters(perfect), [-1.0, 1.0, 2.0], rtol=1e-12)


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    X, y = rows()
    model = GLM(family="gamma").fit(X, y)
    before = copy.deepcopy(model.coef_)
    with pytest.raises(DomainError):
        model.fit(X, y - 10)
    np.testing.assert_array_equal(model.coef_, before)


def test_a_copy_without_rows_keeps_what_was_asked():
    X, y = rows()
    model = GLM(family="gamma").fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert again.dispersion_ == model.dispersion_
    np.testing.assert_array_equal(again.coef_covariance_, model.coef_covariance_)
    with pytest.raises(InferenceError, match="without the rows"):
        again.tidy(errors="observed")
