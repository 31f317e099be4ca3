"""Posteriors of very many coefficients, against those with all second derivatives."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from posteriori import BayesianLogisticRegression, GaussianPrior, LogisticRegression
from posteriori.errors import InferenceError, ParameterError
from posteriori.posterior import objective as objectives
from posteriori.posterior import wide_laplace

RANDOM = np.random.default_rng(3)
N, D = 900, 80
X = RANDOM.normal(size=(N, D)) @ (np.eye(D) + 0.1 * RANDOM.normal(size=(D, D))) * 3.0 + 1.0
SLOPES = RANDOM.normal(size=(D, 3)) * 0.08
NOISY = X @ SLOPES + RANDOM.gumbel(size=(N, 3))
LABELS = {"two": NOISY[:, :2].argmax(axis=1), "three": NOISY.argmax(axis=1)}
NEW = RANDOM.normal(size=(50, D)) * 4.0


def wide(monkeypatch, rank):
    """Problems of more than forty parameters count as wide; so many directions are kept."""
    monkeypatch.setattr(objectives, "WIDE", 40)
    monkeypatch.setattr(wide_laplace, "_RANK", rank)
    monkeypatch.setattr(wide_laplace, "_LEAST_RANK", 1)


def fitted(y, **given):
    return BayesianLogisticRegression(**{"tol": 1e-9, **given}).fit(X, y)


@pytest.mark.parametrize("name", LABELS)
@pytest.mark.parametrize("prior", [2.0, GaussianPrior(np.eye(D) + 0.2, intercept_precision=0.5)])
def test_with_as_many_directions_as_parameters_the_evidence_is_the_same(name, prior, monkeypatch):
    exact = fitted(LABELS[name], prior=prior)
    wide(monkeypatch, 2_000)
    model = fitted(LABELS[name], prior=prior)
    assert_allclose(model.posterior_.mean, exact.posterior_.mean, atol=1e-7)
    assert model.log_evidence_ == pytest.approx(exact.log_evidence_, abs=1e-5)
    assert model.evidence_.standard_error < 1e-6
    # Two thousand draws know standard deviations to 1.6 %.
    deviations = exact.posterior_.standard_deviation
    assert_allclose(model.posterior_.standard_deviation, deviations, rtol=0.08)
    assert_allclose(model.tidy()["std_error"], exact.tidy()["std_error"], rtol=0.08)
    assert_allclose(model.predict_proba(NEW), exact.predict_proba(NEW), atol=0.01)
    assert_allclose(model.predict_interval(NEW), exact.predict_interval(NEW), atol=0.06)


@pytest.mark.parametrize("name", LABELS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_with_few_directions_it_is_as_near_as_draws_are(name, fit_intercept, monkeypatch):
    exact = fitted(LABELS[name], fit_intercept=fit_intercept)
    wide(monkeypatch, 40)
    model = fitted(LABELS[name], fit_intercept=fit_intercept)
    assert "stochastic traces" in model.prior_reason_
    assert "known by 40 draws" in repr(model.posterior_)
    ratio = model.posterior_.standard_deviation / exact.posterior_.standard_deviation
    assert np.mean(ratio) == pytest.approx(1, abs=0.04)
    assert np.std(ratio) == pytest.approx(80**-0.5, rel=0.4)
    error = max(model.evidence_.standard_error, 0.05)
    assert abs(model.log_evidence_ - exact.log_evidence_) < 4 * error
    assert model.trust_.word == "usable"
    assert "off by some 11 %" in model.trust_.sentence
    assert "known by 40 draws" in str(model.summary())


HARD = {
    "correlated": lambda Z: np.cumsum(Z, axis=1) / np.sqrt(np.arange(1, Z.shape[1] + 1)),
    "each column twice": lambda Z: np.hstack([Z[:, : Z.shape[1] // 2]] * 2),
    "fewer rows than columns": lambda Z: Z[:60],
}


@pytest.mark.parametrize("kind", HARD)
def test_columns_that_depend_on_each_other_do_no_harm(kind, monkeypatch):
    Z = HARD[kind](np.random.default_rng(8).normal(size=(700, 120)))
    y = (Z[:, 0] - Z[:, 5] + np.random.default_rng(9).logistic(size=len(Z)) > 0).astype(int)
    exact = BayesianLogisticRegression(prior=0.5, tol=1e-9).fit(Z, y)
    wide(monkeypatch, 200)
    monkeypatch.setattr(wide_laplace, "_ENTRIES", 121 * 200)
    model = BayesianLogisticRegression(prior=0.5, tol=1e-9).fit(Z, y)
    assert model.trust_.word == "usable"
    ratio = model.posterior_.standard_deviation / exact.posterior_.standard_deviation
    assert np.mean(ratio) == pytest.approx(1, abs=0.03)
    assert abs(np.log(ratio)).max() < 0.25
    for rows in (Z[:50], np.random.default_rng(10).normal(size=(50, 120))):
        found, known = (
            np.diff(_log_odds(each.predict_interval(rows, level=0.5))) for each in (model, exact)
        )
        assert_allclose(found / known, 1.0, atol=0.25)
    error = max(model.evidence_.standard_error, 1e-4)
    assert abs(model.log_evidence_ - exact.log_evidence_) < 4.5 * error


def _log_odds(ends):
    return np.log(ends) - np.log1p(-ends)


def test_draws_that_have_not_settled_are_poor(monkeypatch):
    wide(monkeypatch, 2)
    monkeypatch.setattr(wide_laplace, "_LEAST_RANK", 2)
    monkeypatch.setattr(wide_laplace, "_MORE_STEPS", 2)
    monkeypatch.setattr(wide_laplace, "_STEPS", 2)
    model = fitted_on(HARD["correlated"](np.random.default_rng(8).normal(size=(N, D))))
    assert model.trust_.word == "poor"
    assert "had not settled" in model.trust_.sentence


def test_what_was_asked_before_changes_no_answer(monkeypatch):
    wide(monkeypatch, 20)
    prior = GaussianPrior(2.0, intercept_precision=0.01)
    model = LogisticRegression(prior=prior).fit(X, LABELS["two"])
    _ = model.log_evidence_
    with pytest.raises(InferenceError, match="was not computed"):
        model.tidy()


def test_a_sparse_table_gives_the_same(monkeypatch):
    wide(monkeypatch, 20)
    table = np.where(RANDOM.random(X.shape) < 0.2, X, 0.0)
    dense = fitted_on(table)
    thin = fitted_on(sparse.csr_array(table))
    assert_allclose(thin.predict_proba(table[:20]), dense.predict_proba(table[:20]), atol=1e-7)
    assert thin.log_evidence_ == pytest.approx(dense.log_evidence_, rel=1e-8)


def fitted_on(table):
    return BayesianLogisticRegression(prior=1.0, tol=1e-9).fit(table, LABELS["two"])


def test_draws_have_its_deviations_and_average_to_its_predictions(monkeypatch):
    wide(monkeypatch, 20)
    model = fitted(LABELS["two"], prior=2.0)
    draws = model.posterior_.sample(20_000, random_state=0)
    deviations = model.posterior_.standard_deviation
    assert_allclose(draws.std(axis=0) / deviations, 1.0, atol=0.04)
    drawn = fitted(LABELS["two"], prior=2.0, predictive="monte_carlo")
    assert_allclose(drawn.predict_proba(NEW), model.predict_proba(NEW), atol=0.06)


def test_a_pickle_tells_the_same_without_the_rows(monkeypatch):
    wide(monkeypatch, 20)
    model = fitted(LABELS["three"], prior=2.0)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict_proba(NEW), model.predict_proba(NEW))
    assert_array_equal(again.tidy()["std_error"], model.tidy()["std_error"])
    assert again.log_evidence_ == model.log_evidence_
    assert again.trust_ == model.trust_


def test_auto_stays_with_it(monkeypatch):
    wide(monkeypatch, 20)
    assert fitted(LABELS["two"], inference="auto").inference_ == "laplace"


def test_what_would_need_the_whole_covariance_is_an_error(monkeypatch):
    wide(monkeypatch, 20)
    for inference in ("variational", "monte_carlo"):
        with pytest.raises(ParameterError, match=r"81 coefficients, which has 6,561 numbers"):
            fitted(LABELS["two"], inference=inference)
    model = fitted(LABELS["two"], prior=1.0)
    with pytest.raises(InferenceError, match="is not kept"):
        _ = model.posterior_.covariance
    before = model.predict_proba(NEW)
    with pytest.raises(InferenceError, match="not to learn more rows from"):
        model.update(X, LABELS["two"])
    assert_array_equal(model.predict_proba(NEW), before)
    with pytest.raises(InferenceError, match="was not computed"):
        model.tidy(errors="robust")


def test_the_mode_alone_has_the_evidence_too(monkeypatch):
    prior = GaussianPrior(2.0, intercept_precision=0.01, units="standardised")
    exact = LogisticRegression(prior=prior).fit(X, LABELS["two"])
    wide(monkeypatch, 40)
    model = LogisticRegression(prior=prior).fit(X, LABELS["two"])
    assert model.log_evidence_ == pytest.approx(
        exact.log_evidence_, abs=4 * model.evidence_.standard_error
    )
    assert model.evidence_.standard_error > 0
