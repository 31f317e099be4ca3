"""Bayesian logistic regression with Jeffreys' prior, beside 50 digits."""

import pickle

import numpy as np
import pytest
from jeffreys_oracle import exact_logistic, optimum, penalised_logistic, with_ones

from posteriori import BayesianLogisticRegression, LogisticRegression
from posteriori.errors import (
    ApproximationWarning,
    InferenceError,
    ParameterError,
    RankDeficiencyWarning,
)

RANDOM = np.random.default_rng(4)
X = RANDOM.normal(size=(30, 2)) + 1.0
Y = (X[:, 0] + RANDOM.logistic(size=30) > 1.0).astype(int)
APART = np.array([0.0, 1.0, 2.0, 4.0, 5.0, 6.0]), np.array([0, 0, 0, 1, 1, 1])


def fitted(X, y, **settings):
    settings = {"prior": "jeffreys", "inference": "laplace", "random_state": 0, **settings}
    X = X[:, None] if np.ndim(X) == 1 else X
    return BayesianLogisticRegression(**settings).fit(X, y)


def test_laplace_has_mode_and_curvature_to_the_last_digits():
    design = with_ones(X)
    mode, value, hessian = optimum(penalised_logistic, exact_logistic, design, Y, 3)
    model = fitted(X, Y)
    np.testing.assert_allclose(model.posterior_.mean, mode, rtol=1e-8)
    np.testing.assert_allclose(model.posterior_.covariance, np.linalg.inv(-hessian), rtol=1e-9)
    assert model.penalised_log_likelihood_ == pytest.approx(value, rel=1e-9)
    assert model.prior_ == "jeffreys"


def test_the_mode_is_that_of_the_plain_fit():
    plain = LogisticRegression(prior="jeffreys").fit(X, Y)
    model = fitted(X, Y)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-7)
    np.testing.assert_allclose(
        model.tidy()["std_error"], plain.tidy(errors="observed")["std_error"], rtol=1e-6
    )
    assert (model.predict(X) == plain.predict(X)).all()


@pytest.mark.parametrize("inference", ["monte_carlo", "variational"])
def test_other_inferences_are_refused(inference):
    with pytest.raises(ParameterError, match=rf"'{inference}' is for a Gaussian.*Use .*'laplace'"):
        fitted(X, Y, inference=inference)


def test_auto_is_laplace_and_its_approximation_check_tells_of_separated_classes():
    model = fitted(X, Y, inference="auto")
    assert (model.inference_, model.approximation_check_.is_enough) == ("laplace", True)
    with pytest.warns(
        ApproximationWarning, match=r"far from .* Use a Gaussian prior and inference"
    ):
        apart = fitted(*APART, inference="auto")
    assert apart.inference_ == "laplace"
    assert "There is no Monte Carlo" in apart.inference_reason_
    assert apart.approximation_check_.word == "poor"
    assert "Use a Gaussian prior and inference" in apart.approximation_check_.remedy


def test_the_units_of_the_columns_do_not_matter():
    model = fitted(X, Y)
    other = fitted(X * [1e3, 1e-4] + [5.0, -2.0], Y)
    np.testing.assert_allclose(
        model.predict_proba(X), other.predict_proba(X * [1e3, 1e-4] + [5.0, -2.0]), rtol=1e-7
    )
    assert model.approximation_check_.k_hat == pytest.approx(
        other.approximation_check_.k_hat, abs=1e-5
    )


def test_there_is_no_evidence_and_that_is_said():
    model = fitted(X, Y)
    for name in ("log_evidence_", "evidence_"):
        with pytest.raises(InferenceError, match=r"no evidence with prior='jeffreys'.*bic_"):
            getattr(model, name)
    assert model.glance()["log_evidence"].tolist() == [None]
    assert "evidence" not in str(model.summary())
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.prior_ == "jeffreys"
    assert model.bic_ == pytest.approx(again.bic_)


def test_more_rows_are_learnt_from_the_posterior_so_far():
    random = np.random.default_rng(5)
    X = random.normal(size=(400, 2))
    y = (X[:, 0] + random.logistic(size=400) > 0).astype(int)
    half = fitted(X[:200], y[:200])
    gaussian = half.posterior_
    half.update(X[200:], y[200:])
    whole = fitted(X, y)
    deviation = whole.posterior_.standard_deviation
    assert (abs(half.posterior_.mean - whole.posterior_.mean) < 0.2 * deviation).all()
    assert half.prior_ is gaussian
    with pytest.raises(InferenceError, match="no evidence"):
        _ = half.log_evidence_
    assert half.evidence_.value < 0  # of the last rows, whose prior is a Gaussian
    assert "rows of the last fit." in " ".join(str(half.summary()).split())
    assert "evidence" not in str(half.summary())


def test_rows_that_come_bit_by_bit():
    model = BayesianLogisticRegression(prior="jeffreys")
    for part in np.array_split(np.arange(30), 3):
        model.partial_fit(X[part], Y[part], classes=[0, 1])
    np.testing.assert_allclose(model.coef_, fitted(X, Y).coef_, rtol=1e-7)


def test_dependent_columns_leave_nothing_to_update():
    twice = np.column_stack([X, X[:, 0] - X[:, 1]])
    with pytest.warns(RankDeficiencyWarning):
        model = fitted(twice, Y)
    np.testing.assert_allclose(model.predict_proba(twice), fitted(X, Y).predict_proba(X), rtol=1e-7)
    with pytest.raises(ParameterError, match="first rows said nothing of some combination of x0"):
        model.update(twice, Y)
