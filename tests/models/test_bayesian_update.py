"""Sequential learning: yesterday's posterior as today's prior."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from bayesian_oracle import updated

from posteriori import BayesianLogisticRegression, GaussianPrior
from posteriori.design.columns import Columns
from posteriori.design.standardise import Standard
from posteriori.errors import (
    ColumnNameError,
    IdentifiabilityWarning,
    LabelError,
    MissingValueError,
    ParameterError,
    ShapeError,
)
from posteriori.likelihood.glm_families import SquaredLoss
from posteriori.posterior.coefficient_posterior import Posterior
from posteriori.posterior.coefficient_table import CoefficientMap
from posteriori.posterior.evidence import evidence_of, log_determinant
from posteriori.posterior.gaussian import Gaussian
from posteriori.posterior.log_posterior import Coordinates, LogPosterior
from posteriori.posterior.priors import read_prior
from posteriori.rows.in_memory import read_rows
from posteriori.statistics.row_sample import split_rows

INFERENCES = ["laplace", "variational", "monte_carlo"]


def sample(n=400, d=3, K=2, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    y = np.argmax(X @ random.normal(size=(d, K)) + random.gumbel(size=(n, K)), axis=1)
    return X, y


def settings(inference="laplace", **others):
    return BayesianLogisticRegression(
        **{"prior": 1.0, "inference": inference, "random_state": 0, **others}
    )


def state(model):
    found = model.posterior_
    return found.mean, found.covariance, model.log_evidence_, model.coef_, model.intercept_


# Quadratic losses.


def least_squares():
    random = np.random.default_rng(1)
    X = random.normal(size=(30, 2)) * [1.0, 5.0] + [0.0, 3.0]
    rows = read_rows(X, np.arange(30) % 2)
    t = {tuple(x): value for x, value in zip(X.tolist(), random.normal(size=30), strict=True)}
    standard = Standard(X.mean(axis=0), X.std(axis=0), True)
    prior = GaussianPrior(precision=0.3, mean=0.5, intercept_precision=0.2)
    return LogPosterior(
        rows,
        Columns(rows.schema),
        standard,
        SquaredLoss(),
        lambda block: np.array([t[tuple(x)] for x in np.asarray(block.X).tolist()]),
        read_prior(prior, standard),
        Coordinates(1, 3),
        1e-8,
    )


def solved(objective):
    """The Gaussian posterior of a quadratic objective, and its evidence."""
    start = np.zeros(objective.coordinates.size)
    at_zero = objective(start, "full")
    w = -np.linalg.solve(at_zero.hessian, at_zero.gradient)
    found = Posterior(CoefficientMap.of(objective), Gaussian.of(w, at_zero.hessian))
    log_likelihood = -objective.likelihood(w, "none", "observed").value
    volume = log_determinant(at_zero.hessian)
    vectors = objective.coordinates.vectors(w)
    return found, evidence_of(objective.penalty, vectors, log_likelihood, volume).value


@pytest.mark.parametrize("parts", [2, 5])
def test_quadratic_losses_learn_exactly_in_parts(parts):
    whole = least_squares()
    expected, log_evidence = solved(whole)
    penalty, total = whole.penalty, 0.0
    for rows in split_rows(whole.rows, parts):
        posterior, value = solved(replace(whole, rows=rows, penalty=penalty))
        penalty, total = posterior.as_penalty(), total + value
    np.testing.assert_allclose(posterior.mean, expected.mean, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(posterior.covariance, expected.covariance, rtol=1e-10, atol=1e-12)
    assert total == pytest.approx(log_evidence, abs=1e-10)


# Logistic ones.


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("inference", ["laplace"])
def test_two_halves_are_close_to_the_whole(K, inference):
    X, y = sample(1600, K=K)
    whole = settings(inference).fit(X, y)
    half = settings(inference).fit(X[:800], y[:800])
    first = half.log_evidence_
    half.update(X[800:], y[800:])
    away = abs(half.posterior_.mean - whole.posterior_.mean)
    assert (away < 0.15 * whole.posterior_.standard_deviation).all()
    np.testing.assert_allclose(
        half.posterior_.standard_deviation, whole.posterior_.standard_deviation, rtol=0.05
    )
    assert half.log_evidence_ == pytest.approx(whole.log_evidence_, abs=0.2)
    assert half.log_evidence_ < first
    np.testing.assert_allclose(half.predict_proba(X), whole.predict_proba(X), atol=0.02)


def sharp(seed, n=500):
    """Classes that hardly overlap."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    y = (X @ [3.0, -3.0, 1.5] + 0.3 + random.logistic(size=n) > 0).astype(int)
    return X, y


def test_a_variational_posterior_hands_on_the_curvature_at_its_mean():
    X, y = sharp(0, 100)
    model = settings("variational").fit(X[:60], y[:60])
    before, laplace = model.posterior_, settings().fit(X[:60], y[:60]).posterior_
    model.update(X[60:], y[60:])
    np.testing.assert_array_equal(model.prior_.mean, before.mean)
    narrow, handed = before.standard_deviation, model.prior_.standard_deviation
    assert (handed > 1.2 * narrow).all()
    np.testing.assert_allclose(handed, laplace.standard_deviation, rtol=0.2)


@pytest.mark.parametrize("inference", INFERENCES)
def test_approximation_check_after_updates_says_of_what_it_tells(inference):
    X, y = sharp(0, 300)
    model = settings(inference).fit(X[:100], y[:100])
    assert "of the last" not in str(model.approximation_check_)
    model.update(X[100:250], y[100:250])
    model.update(X[250:], y[250:])
    assert model.approximation_check_.word != "good"
    assert "This check is of the last 50 of 300 rows" in str(model.approximation_check_)


def test_the_posterior_of_all_classes_together_is_the_prior():
    X, y = sample(120, K=3)
    model = settings().fit(X[:60], y[:60])
    before = model.posterior_
    mean, covariance = updated(X[60:], y[60:], before.mean, before.covariance)
    model.update(X[60:], y[60:])
    np.testing.assert_allclose(model.posterior_.mean, mean, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(model.posterior_.covariance, covariance, rtol=1e-6, atol=1e-8)


def test_what_is_told_after_an_update_is_of_its_rows():
    X, y = sample(100)
    model = settings().fit(X[:60], y[:60])
    before, posterior = model.log_evidence_, model.posterior_
    model.update(X[60:], y[60:])
    assert model.log_evidence_ == pytest.approx(before + model.evidence_.value, abs=1e-10)
    assert model.prior_ is posterior
    activation = X[60:] @ model.coef_[0] + model.intercept_[0]
    fit = -np.logaddexp(0, np.where(y[60:] == 1, -activation, activation)).sum()
    assert model.log_likelihood_ == pytest.approx(fit, abs=1e-9)
    page = str(model.summary())
    assert "Prior                posterior before" in page
    assert f"{model.log_evidence_:.2f}" in page


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_are_counted_over_all_fits(weighted):
    X, y = sample(100)
    weight = np.full(100, 0.25) if weighted else None

    def part(low, high):
        return X[low:high], y[low:high], None if weight is None else weight[low:high]

    model = settings().fit(*part(0, 60))
    unit = 0.25 if weighted else 1
    assert model.glance()["n_obs_total"][0] == 60 * unit
    assert model.glance()["n_fits"][0] == 1
    assert "Rows in all" not in str(model.summary())
    model.update(*part(60, 80))
    model = pickle.loads(pickle.dumps(model)).update(*part(80, 100))
    glance = model.glance()
    assert glance["n_obs"][0] == 20 * unit
    assert glance["n_obs_total"][0] == 100 * unit
    assert glance["n_fits"][0] == 3
    page = " ".join(str(model.summary()).split())
    assert f"Rows of the last fit {20 * unit:g} " in page
    assert f"Rows in all {100 * unit:g}, 3 fits" in page
    assert "log evidence is that of all rows" in page
    assert model.fit(X, y).glance()["n_fits"][0] == 1


def test_the_first_batch_names_the_classes():
    X, y = sample(120, K=3)
    few = y[:40] < 2
    model = settings().partial_fit(X[:40][few], y[:40][few], classes=[0, 1, 2])
    assert model.classes_.tolist() == [0, 1, 2]
    assert (model.predict_proba(X)[:, 2] < 0.25).all()
    model.partial_fit(X[40:], y[40:], classes=[2, 1, 0])
    whole = settings().fit(X, y)
    assert abs(model.predict_proba(X) - whole.predict_proba(X)).mean() < 0.05
    with pytest.raises(ParameterError, match=r"not those of the first batch.*\[0, 1, 2\]"):
        model.partial_fit(X, y, classes=[0, 1])


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("inference", INFERENCES)
def test_an_update_that_fails_changes_nothing(inference, K):
    X, y = sample(90, K=K)
    model = settings(inference).fit(pd.DataFrame(X, columns=list("abc")), y)
    before = [np.copy(part) for part in state(model)]
    frame = pd.DataFrame(X, columns=list("abc"))
    holed = frame.assign(a=np.nan)
    for error, arguments in (
        (ColumnNameError, (frame.rename(columns={"a": "z"}), y)),
        (LabelError, (frame, y + 7)),
        (LabelError, (frame, None)),
        (MissingValueError, (holed, y)),
        (ShapeError, (frame.iloc[:0], y[:0])),
        (ShapeError, (frame, y, None, [1.0])),
    ):
        with pytest.raises(error):
            model.update(*arguments)
        for now, then in zip(state(model), before, strict=True):
            np.testing.assert_array_equal(now, then)
    model.update(frame, y)
    assert model.log_evidence_ < before[2]


def test_draws_are_kept_by_mean_and_covariance():
    X, y = sample(40)
    model = settings("monte_carlo").fit(X, y)
    penalty, posterior = model.posterior_.as_penalty(), model.posterior_
    np.testing.assert_allclose(penalty.mean[0], posterior.chains.pooled.mean(axis=0), rtol=1e-12)
    covariance = np.cov(posterior.chains.pooled.T)
    np.testing.assert_allclose(penalty.precision @ covariance, np.eye(4), atol=1e-9)
    model.update(X, y)
    assert model.inference_ == "monte_carlo"
    assert (model.posterior_.standard_deviation < posterior.standard_deviation).all()
    model.set_params(inference="laplace").update(X, y)
    assert model.inference_ == "laplace"


@pytest.mark.parametrize("inference", INFERENCES)
def test_a_model_from_a_file_learns_on(inference):
    X, y = sample(100)
    model = settings(inference).fit(X[:50], y[:50])
    copy = pickle.loads(pickle.dumps(model))
    model.update(X[50:], y[50:])
    copy.update(X[50:], y[50:])
    np.testing.assert_array_equal(copy.posterior_.mean, model.posterior_.mean)
    assert copy.log_evidence_ == model.log_evidence_


def test_factors_and_formulas_are_learnt_on():
    X, y = sample(120)
    frame = pd.DataFrame({"x": X[:, 0], "g": np.array(["u", "v", "w"])[np.arange(120) % 3]})
    frame["t"] = y
    whole = settings().fit("t ~ x + C(g)", frame)
    half = settings().fit("t ~ x + C(g)", frame[:60]).update(frame[60:], y[60:])
    error = whole.posterior_.standard_deviation
    assert (abs(half.posterior_.mean - whole.posterior_.mean) < 0.25 * error).all()
    by_column = settings().fit(frame[["x", "g"]][:60], y[:60])
    by_column.update(frame[["x", "g"]][60:], y[60:])
    np.testing.assert_allclose(by_column.posterior_.mean, half.posterior_.mean, rtol=1e-6)


def test_an_offset_is_learnt_from_too():
    X, y = sample(200)
    offset = 0.3 * X[:, 1]
    whole = settings().fit(X, y, offset=offset)
    half = settings().fit(X[:100], y[:100], offset=offset[:100])
    half.update(X[100:], y[100:], offset=offset[100:])
    error = whole.posterior_.standard_deviation
    assert (abs(half.posterior_.mean - whole.posterior_.mean) < 0.2 * error).all()


# From few rows on.


def in_units(n=200):
    random = np.random.default_rng(0)
    Z = random.normal(size=(n, 3))
    y = (Z @ [1.0, -1.0, 0.5] + 0.3 + random.logistic(size=n) > 0).astype(int)
    return Z * [1.0, 100.0, 0.01] + [5.0, 1000.0, 0.0], y


@pytest.mark.filterwarnings("ignore:The evidence grows")  # of the first rows, which are separated
@pytest.mark.parametrize("inference", ["laplace", "variational"])
def test_few_rows_that_come_one_by_one_are_fitted_together(inference):
    X, y = in_units(15)
    model = settings(inference, prior="evidence")
    for i in range(15):
        model.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1])
    whole = settings(inference, prior="evidence").fit(X, y)
    assert model.log_evidence_ == pytest.approx(whole.log_evidence_, abs=1e-6)
    assert model.prior_.precision == pytest.approx(whole.prior_.precision, rel=1e-3)
    np.testing.assert_allclose(model.predict_proba(X), whole.predict_proba(X), atol=1e-4)
    assert model.glance()["n_obs_total"][0] == 15


def test_a_chosen_prior_that_no_row_to_come_can_move_is_told():
    X, y = in_units()
    model = settings(prior="evidence").fit(X[:10], y[:10])
    assert model.prior_.precision > 1e6
    with pytest.warns(IdentifiabilityWarning, match=r"The 10 rows .* 0, 1, 2, .* does not change"):
        model.update(X[10:100], y[10:100])
    model.update(X[100:], y[100:])  # told once
    settings(prior="evidence").fit(X[:100], y[:100]).update(X[100:], y[100:])
