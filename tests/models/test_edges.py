"""Optima at an end of the domain, and starts inside of it."""

import warnings

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize

from posteriori import GLM, ThresholdRegression
from posteriori.errors import BoundaryWarning, DomainError


def looks(model):
    return sum(step.n_evaluations for step in model.solution_.trace)


def small(seed):
    random = np.random.default_rng(seed)
    return random.normal(size=(6, 10)), random.permutation([0, 0, 0, 1, 1, 1])


def some(seed, n=30, d=2):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    return X, (random.uniform(size=n) < np.clip(0.5 + 0.3 * X[:, 0], 0, 1)).astype(int)


def best(X, y, prior, at_least):
    """The least of -Σ ln p + ½ prior |w|² by a general solver, labels certain beyond the ends."""
    signs = 2.0 * y - 1

    def slack(w):
        return 0.5 + signs * (X @ w[1:] + w[0] - 0.5)  # the probability of the label

    def value(w):
        own = np.minimum(w[-len(y) :], 1.0)
        return (
            -np.log(np.maximum(own, 1e-300)).sum()
            + prior * w[1 : 1 + X.shape[1]] @ w[1 : 1 + X.shape[1]] / 2
        )

    q = 1 + X.shape[1]
    own = [{"type": "ineq", "fun": lambda v: slack(v[:q]) - v[q:]}]
    own += [] if not at_least else [{"type": "ineq", "fun": lambda v: 1 - slack(v[:q])}]
    start = np.concatenate([[0.5], np.zeros(q - 1), np.full(len(y), 0.4)])
    bounds = [(None, None)] * q + [(1e-9, 1.0)] * len(y)
    found = minimize(
        value, start, constraints=own, bounds=bounds, method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 2000},
    )  # fmt: skip
    assert found.success
    return found.fun


@pytest.mark.parametrize("seed", range(4))
def test_uniform_noise_ends_near_the_optimum_and_says_that_it_is_at_a_kink(seed):
    X, y = small(seed)
    with pytest.warns(BoundaryWarning, match="kinks.*Use noise whose density is smooth") as caught:
        model = ThresholdRegression(noise="uniform", prior=1.0).fit(X, y)
    assert len(caught) == 1
    assert not model.converged_
    assert model.solution_.value == pytest.approx(best(X, y, 1.0, False), abs=5e-3)


@pytest.mark.parametrize("seed", range(4))
def test_differences_of_risks_and_a_prior_reach_the_optimum_in_few_steps(seed):
    X, y = small(seed)
    with pytest.warns(BoundaryWarning):
        model = GLM(family="bernoulli", link="identity", prior=1.0).fit(X, y)
    assert model.converged_
    assert looks(model) < 250
    assert model.solution_.value == pytest.approx(best(X, y, 1.0, True), abs=1e-7)


def least(X, y, is_certain):
    """A small -Σ ln p over two parameters, by simplices, which may get stuck at an end."""
    signs = 2.0 * y - 1

    def value(w):
        p = 0.5 + signs * (w[0] + X[:, 0] * w[1] - 0.5)
        if p.min() <= 0 or (p.max() > 1 and not is_certain):
            return np.inf
        return -np.log(np.minimum(p, 1.0)).sum()

    w, options = np.array([0.5, 0.01]), {"xatol": 1e-13, "fatol": 1e-14, "maxiter": 4000}
    for _ in range(10):
        w = minimize(value, w, method="Nelder-Mead", options=options).x
    return value(w)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("is_certain", [False, True])
def test_without_a_prior_simplices_find_nothing_better(is_certain, seed):
    X, y = some(seed, n=20, d=1)
    uniform, risks = ThresholdRegression(noise="uniform"), GLM(family="bernoulli", link="identity")
    model = uniform if is_certain else risks
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoundaryWarning)
        model.fit(X, y)
    assert -model.log_likelihood_ < least(X, y, is_certain) + (1e-4 if is_certain else 1e-7)


def test_a_start_inside_is_found_among_many_rows():
    random = np.random.default_rng(0)
    X = random.normal(size=(5000, 4))
    X[:, 0] = 4.5 + abs(X[:, 0])
    y = random.poisson(np.maximum(X @ [1.0, 0.5, -0.2, 0.1], 0.1))
    model = GLM(family="poisson", link="identity", fit_intercept=False).fit(X, y)
    assert model.converged_
    mean = model.predict(X)
    np.testing.assert_allclose((X.T * (1 - y / mean)).sum(axis=1), 0.0, atol=1e-6)


def test_offsets_count_where_there_is_no_intercept():
    X, y = some(1, n=60)
    offset = np.where(X[:, 0] > 0, 0.3, 0.6)
    model = GLM(family="bernoulli", link="identity", fit_intercept=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoundaryWarning)
        model.fit(0.1 * X, y, offset=offset)
    mean = model.predict_proba(0.1 * X, offset=offset)[:, 1]
    np.testing.assert_allclose(mean, offset + 0.1 * X @ model.coef_[0], rtol=1e-12)
    assert 0 <= mean.min() < mean.max() <= 1


@pytest.mark.parametrize("noise", [stats.gamma(2.0), stats.lognorm(1.0)])
def test_noise_above_zero_needs_an_intercept_or_columns_above_zero(noise):
    X, y = some(0, n=200)
    with pytest.raises(DomainError, match=r"Without an intercept, no coefficients .* above zero"):
        ThresholdRegression(noise=noise, fit_intercept=False).fit(X, y)
    Z = np.column_stack([0.1 * X, np.ones(len(y))])
    model = ThresholdRegression(noise=noise, fit_intercept=False).fit(Z, y)
    plain = ThresholdRegression(noise=noise).fit(0.1 * X, y)
    assert model.log_likelihood_ == pytest.approx(plain.log_likelihood_, rel=1e-9)
