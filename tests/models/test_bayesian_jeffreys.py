"""Bayesian logistic regression with Jeffreys' prior, beside 50 digits and sums over a grid."""

import pickle

import numpy as np
import pytest
from jeffreys_oracle import exact_logistic, optimum, penalised_logistic, with_ones
from scipy.special import expit, log_expit, logsumexp

from posteriori import BayesianLogisticRegression, LogisticRegression
from posteriori.errors import InferenceError, ParameterError, RankDeficiencyWarning

RANDOM = np.random.default_rng(4)
X = RANDOM.normal(size=(30, 2)) + 1.0
Y = (X[:, 0] + RANDOM.logistic(size=30) > 1.0).astype(int)
OVERLAP = np.array([0.0, 1.0, 1.5, 2.0, 3.0, 3.5, 4.0, 5.0]), np.array([0, 0, 1, 0, 1, 0, 1, 1])
APART = np.array([0.0, 1.0, 2.0, 4.0, 5.0, 6.0]), np.array([0, 0, 0, 1, 1, 1])


def fitted(X, y, **settings):
    settings = {"prior": "jeffreys", "random_state": 0, **settings}
    X = X[:, None] if np.ndim(X) == 1 else X
    return BayesianLogisticRegression(**settings).fit(X, y)


class Grid:
    """The posterior of an intercept, at 2.5, and a slope, by its definition at many points."""

    def __init__(self, x, y, reach, n_points=500):
        b, w = (g.ravel() for g in np.meshgrid(*(np.linspace(*r, n_points) for r in reach)))
        self.points = np.column_stack([b - 2.5 * w, w])
        activations = self.points @ with_ones(x[:, None]).T
        logs = log_expit(np.where(y == 1, 1, -1) * activations).sum(axis=1)
        r = np.exp(log_expit(activations) + log_expit(-activations))
        i, j = np.triu_indices(len(x), 1)  # |I| = Σ r_i r_j (x_i - x_j)²
        with np.errstate(divide="ignore"):
            logs += 0.5 * np.log((r[:, i] * r[:, j]) @ (x[i] - x[j]) ** 2)
        self.weights = np.exp(logs - logsumexp(logs))

    @property
    def mean(self):
        return self.weights @ self.points

    @property
    def deviation(self):
        return np.sqrt(self.weights @ np.square(self.points - self.mean))

    def probability(self, x):
        return self.weights @ expit(self.points @ with_ones(x[:, None]).T)

    def probability_error(self, x):
        """Standard deviation of p over the posterior."""
        p = expit(self.points @ with_ones(x[:, None]).T)
        return np.sqrt(self.weights @ np.square(p - self.probability(x)))


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


@pytest.mark.parametrize(
    ("rows", "reach"),
    [
        pytest.param(OVERLAP, ((-12, 12), (-3, 12)), id="overlapping"),
        pytest.param(APART, ((-60, 60), (-5, 70)), id="separated", marks=pytest.mark.slow),
    ],
)
def test_draws_are_those_of_the_posterior_by_its_definition(rows, reach):
    grid = Grid(*rows, reach)
    model = fitted(*rows, inference="monte_carlo", n_draws=16_000)
    assert model.trust_.word == "good"
    errors = model.posterior_.standard_deviation / np.sqrt(model.diagnostics_["ess_bulk"])
    assert (abs(model.posterior_.mean - grid.mean) < 4 * errors).all()
    np.testing.assert_allclose(model.posterior_.standard_deviation, grid.deviation, rtol=0.1)
    new = np.array([-1.0, 1.0, 2.4, 4.0, 8.0])
    p, error = grid.probability(new), grid.probability_error(new)
    drawn = expit(model.posterior_.draws.reshape(-1, 2) @ with_ones(new[:, None]).T).mean(axis=0)
    assert (abs(drawn - p) < 4 * error / np.sqrt(model.diagnostics_["ess_tail"].min())).all()
    found = model.predict_proba(new[:, None])[:, 1]  # by a thousand of the draws
    assert (abs(found - p) < 4 * error / np.sqrt(500)).all()


@pytest.mark.slow
def test_auto_draws_where_classes_can_be_separated():
    assert fitted(X, Y, inference="auto").inference_ == "laplace"
    model = fitted(*APART, inference="auto", n_draws=1000)
    assert model.inference_ == "monte_carlo"
    assert fitted(*APART).trust_.word in ("poor", "useless")


def test_the_units_of_the_columns_do_not_matter():
    model = fitted(X, Y)
    other = fitted(X * [1e3, 1e-4] + [5.0, -2.0], Y)
    np.testing.assert_allclose(
        model.predict_proba(X), other.predict_proba(X * [1e3, 1e-4] + [5.0, -2.0]), rtol=1e-7
    )
    assert model.trust_.k_hat == pytest.approx(other.trust_.k_hat, abs=1e-5)


@pytest.mark.parametrize("inference", ["laplace", "monte_carlo"])
def test_there_is_no_evidence_and_that_is_said(inference):
    model = fitted(X, Y, inference=inference, n_draws=400)
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
