"""The diagonal posterior of very many coefficients, against its definition."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from posteriori import BayesianLogisticRegression, GaussianPrior, LogisticRegression
from posteriori.errors import InferenceError, ParameterError
from posteriori.posterior import log_posterior as objectives

RANDOM = np.random.default_rng(3)
N, D = 900, 80
X = RANDOM.normal(size=(N, D)) * 3.0 + 1.0
SLOPES = RANDOM.normal(size=(D, 3)) * 0.08
NOISY = X @ SLOPES + RANDOM.gumbel(size=(N, 3))
LABELS = {"two": NOISY[:, :2].argmax(axis=1), "three": NOISY.argmax(axis=1)}
NEW = RANDOM.normal(size=(50, D)) * 4.0


def fitted(y, table=X, **given):
    return BayesianLogisticRegression(**{"tol": 1e-9, "inference": "laplace", **given}).fit(
        table, y
    )


@pytest.fixture
def wide(monkeypatch):
    """Problems of more than forty parameters count as wide."""
    monkeypatch.setattr(objectives, "WIDE", 40)


@pytest.mark.parametrize("name", LABELS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_it_has_the_diagonal_of_the_curvature(name, fit_intercept, request):
    exact = fitted(LABELS[name], prior=2.0, fit_intercept=fit_intercept)
    precision = exact._inference.free_precision
    request.getfixturevalue("wide")
    model = fitted(LABELS[name], prior=2.0, fit_intercept=fit_intercept)
    assert_allclose(model.posterior_.mean, exact.posterior_.mean, atol=1e-7)
    assert_allclose(model.posterior_.gaussian.precision, np.diagonal(precision), rtol=1e-6)
    away = 0.5 * (np.log(np.diagonal(precision)).sum() - np.linalg.slogdet(precision)[1])
    assert model.log_evidence_ == pytest.approx(exact.log_evidence_ - away, abs=1e-5)
    # In the user's units, and along rows.
    shown, variance = exact.posterior_, 1 / np.diagonal(precision)
    to_user = shown.in_user_units(np.eye(len(variance))) - shown.in_user_units(0 * variance)
    deviations = np.sqrt(variance @ to_user**2)
    assert_allclose(model.posterior_.standard_deviation, deviations, rtol=1e-6)
    draws = model.posterior_.sample(20_000, random_state=0)
    assert_allclose(draws.std(axis=0) / deviations, 1.0, atol=0.03)
    drawn = fitted(LABELS[name], prior=2.0, fit_intercept=fit_intercept, predictive="monte_carlo")
    assert_allclose(drawn.predict_proba(NEW), model.predict_proba(NEW), atol=0.04)
    # (A⁻¹)_jj >= 1/A_jj: what correlations add is left out.
    assert (variance <= np.diagonal(exact.posterior_.free_covariance)).all()
    assert_allclose(model.predict_proba(NEW), exact.predict_proba(NEW), atol=0.1)


@pytest.mark.usefixtures("wide")
def test_the_result_says_so_and_so_does_a_pickle_without_the_rows():
    model = fitted(LABELS["three"])
    assert model.prior_reason_ == "by the diagonal of the second derivatives"
    assert "diagonal" in repr(model.posterior_)
    assert "count as independent" in " ".join(str(model.summary()).split())
    assert model.approximation_check_.word == "usable"
    assert "was not checked" in model.approximation_check_.sentence
    assert fitted(LABELS["two"], inference="auto").inference_ == "laplace"
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict_proba(NEW), model.predict_proba(NEW))
    assert_array_equal(again.tidy()["std_error"], model.tidy()["std_error"])
    assert again.log_evidence_ == model.log_evidence_
    assert again.approximation_check_ == model.approximation_check_


@pytest.mark.usefixtures("wide")
def test_a_sparse_table_gives_the_same():
    table = np.where(RANDOM.random(X.shape) < 0.2, X, 0.0)
    dense, thin = (
        fitted(LABELS["two"], each, prior=1.0) for each in (table, sparse.csr_array(table))
    )
    assert_allclose(thin.predict_proba(table[:20]), dense.predict_proba(table[:20]), atol=1e-7)
    assert thin.log_evidence_ == pytest.approx(dense.log_evidence_, rel=1e-8)


@pytest.mark.usefixtures("wide")
def test_what_would_need_the_whole_covariance_is_an_error():
    for inference in ("variational", "monte_carlo"):
        with pytest.raises(ParameterError, match=r"81 coefficients, which has 6,561 numbers"):
            fitted(LABELS["two"], inference=inference)
    model = fitted(LABELS["two"], prior=1.0)
    with pytest.raises(InferenceError, match="is not computed"):
        _ = model.posterior_.covariance
    before = model.predict_proba(NEW)
    with pytest.raises(InferenceError, match="not enough as the prior of more rows"):
        model.update(X, LABELS["two"])
    assert_array_equal(model.predict_proba(NEW), before)
    with pytest.raises(InferenceError, match="was not computed"):
        model.tidy(errors="robust")
    mode = LogisticRegression(prior=GaussianPrior(2.0, intercept_precision=0.01))
    assert np.isfinite(mode.fit(X, LABELS["two"]).log_evidence_)
    with pytest.raises(InferenceError, match="was not computed"):
        mode.tidy()
