"""Families with a dispersion, the null model, and profiles that never rise."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.special import expit
from scipy.stats import chi2
from scipy.stats import t as student

from posteriori.design.columns import Columns
from posteriori.errors import DomainError, InferenceError, ScaleError
from posteriori.likelihood.glm import GLM_FAMILIES, glm_loss
from posteriori.likelihood.links import LINKS
from posteriori.likelihood.noise import NoisyLogisticLoss
from posteriori.models.fitting import Problem, prepare
from posteriori.posterior.coefficients import coefficients_of
from posteriori.posterior.goodness import Goodness
from posteriori.posterior.inference import Inference, inverse_of
from posteriori.posterior.intervals import MeanInterval, log_odds_of_each, root_of
from posteriori.posterior.objective import LogPosterior
from posteriori.rows.features import read_features
from posteriori.rows.in_memory import MemoryRows, read_new_rows
from posteriori.solve.newton import newton

N = 200
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(N, 2)) * [1.0, 3.0] + [0.0, 2.0]
ACTIVATION = 0.4 * X[:, 0] - 0.1 * X[:, 1]
TARGETS = {
    "gaussian": ACTIVATION + 0.5 * RANDOM.normal(size=N),
    "poisson": RANDOM.poisson(np.exp(ACTIVATION)).astype(float),
    "gamma": RANDOM.gamma(3.0, np.exp(ACTIVATION) / 3),
    "bernoulli": (RANDOM.random(N) < expit(ACTIVATION)).astype(float),
}
WEIGHT = RANDOM.integers(0, 4, N).astype(float)
OFFSET = 0.3 * RANDOM.normal(size=N)

CASES = {
    ("gaussian", "identity"): sm.families.Gaussian(),
    ("gaussian", "log"): sm.families.Gaussian(sm.families.links.Log()),
    ("poisson", "log"): sm.families.Poisson(),
    ("gamma", "log"): sm.families.Gamma(sm.families.links.Log()),
    ("bernoulli", "logit"): sm.families.Binomial(),
    ("bernoulli", "probit"): sm.families.Binomial(sm.families.links.Probit()),
}


def target_of(family, link):
    t = TARGETS[family]
    return np.exp(t) if (family, link) == ("gaussian", "log") else t


class Fit(NamedTuple):
    objective: LogPosterior
    w: Any
    value: float


def prepared_fit(loss, t, weight=None, offset=None, intercept=True, rows=X, most=100):
    """The optimum of a loss, as a model would find it."""
    data = MemoryRows(read_features(rows[: len(t)]), t, weight, None, offset)
    columns = Columns(data.schema)
    problem = Problem(
        data, columns, loss, lambda block: block.y, 1, intercept, None, 1e-5, "expected"
    )
    prepared = prepare(problem)
    solution = newton(prepared.levels, prepared.start, max_iter=most)
    assert solution.converged or len(solution.trace) == most
    return Fit(prepared.objective, solution.parameters, solution.value)


def infer(family, link, t, *given, **settings):
    return Inference(
        *prepared_fit(glm_loss(family, link), t, *given, **settings), GLM_FAMILIES[family]
    )


def glm(family, link, t, **settings):
    model = sm.GLM(t, sm.add_constant(X[: len(t)]), family=CASES[family, link], **settings)
    return model.fit(tol=1e-15, tol_criterion="params", maxiter=200)


@pytest.mark.parametrize(("family", "link"), CASES)
@pytest.mark.parametrize("rich", [False, True])
def test_families_have_the_numbers_of_statsmodels(family, link, rich):
    t = target_of(family, link)
    ours = infer(family, link, t, *([WEIGHT, OFFSET] if rich else []))
    given = {"freq_weights": WEIGHT, "offset": OFFSET} if rich else {}
    theirs = glm(family, link, t, **given)
    goodness, n = ours.goodness, float(WEIGHT.sum()) if rich else N
    np.testing.assert_allclose(ours.estimates, theirs.params, rtol=1e-7)
    np.testing.assert_allclose(ours.standard_errors(), theirs.bse, rtol=1e-7)
    assert goodness.n_obs == n
    assert goodness.dispersion == pytest.approx(theirs.scale, rel=1e-9)
    assert goodness.deviance == pytest.approx(theirs.deviance, rel=1e-9)
    assert goodness.null_deviance == pytest.approx(theirs.null_deviance, rel=1e-9)
    assert goodness.log_likelihood == pytest.approx(theirs.llf, rel=1e-9)
    extra = family in ("gaussian", "gamma")
    assert goodness.aic == pytest.approx(theirs.aic + 2 * extra, rel=1e-9)
    assert goodness.bic == pytest.approx((3 + extra) * np.log(n) - 2 * theirs.llf, rel=1e-9)


@pytest.mark.parametrize(("family", "link"), CASES)
def test_robust_errors_of_families_take_no_dispersion(family, link):
    t = target_of(family, link)
    ours = infer(family, link, t)
    theirs = sm.GLM(t, sm.add_constant(X), family=CASES[family, link])
    theirs = theirs.fit(tol=1e-15, tol_criterion="params", cov_type="HC0", maxiter=200)
    scores = theirs.model.score_obs(theirs.params, scale=1.0)
    inverse = np.linalg.inv(-theirs.model.hessian(theirs.params, scale=1.0, observed=True))
    wanted = np.sqrt(np.diag(inverse @ scores.T @ scores @ inverse))
    np.testing.assert_allclose(ours.standard_errors("robust"), wanted, rtol=1e-7)
    np.testing.assert_allclose(theirs.bse, wanted, rtol=1e-7)


@pytest.mark.parametrize("family", ["gaussian", "gamma"])
def test_an_estimated_dispersion_asks_for_students_t(family):
    ours = infer(family, "log" if family == "gamma" else "identity", TARGETS[family])
    found = coefficients_of(ours, None, level=0.9)
    tail = 2 * student.sf(abs(found.statistic), N - 3)
    np.testing.assert_allclose(found.p_value, tail, rtol=1e-10)
    half = student.ppf(0.95, N - 3) * found.std_error
    np.testing.assert_allclose(found.conf_high - found.estimate, half, rtol=1e-10)


def test_the_profile_of_a_gaussian_is_its_plain_interval():
    ours = infer("gaussian", "identity", TARGETS["gaussian"])
    plain, profile = (coefficients_of(ours, None, intervals=kind) for kind in ("wald", "profile"))
    np.testing.assert_allclose(profile.conf_low, plain.conf_low, rtol=1e-9)
    np.testing.assert_allclose(profile.conf_high, plain.conf_high, rtol=1e-9)


def test_no_rows_left_for_the_dispersion_are_an_error_that_says_so():
    ours = infer("gaussian", "identity", TARGETS["gaussian"][:3])
    for ask in (lambda: ours.goodness.dispersion, ours.standard_errors):
        with pytest.raises(InferenceError, match=r"3 rows leave none .* 3 parameters") as caught:
            ask()
        assert "fewer columns" in str(caught.value)
    assert ours.goodness.deviance == pytest.approx(0.0, abs=1e-20)
    ours.without_rows()


def test_the_null_model_of_counts_is_their_mean():
    t = TARGETS["poisson"]
    ours = infer("poisson", "log", t)
    wanted = 2 * np.where(t > 0, t * np.log(np.maximum(t, 1) / t.mean()), 0.0).sum()
    assert ours.goodness.null_deviance == pytest.approx(wanted, rel=1e-12)


def test_the_null_model_of_counts_that_are_all_zero_is_perfect():
    fit = prepared_fit(glm_loss("poisson"), TARGETS["poisson"])
    objective = replace(fit.objective, target=lambda block: np.zeros(len(block.y)))
    goodness = Goodness(objective, fit.w, GLM_FAMILIES["poisson"])
    assert goodness.null_deviance == 0.0


def test_the_null_model_without_an_intercept_has_the_offsets_alone():
    t = TARGETS["poisson"]
    ours = infer("poisson", "log", t, None, OFFSET, intercept=False)
    mean = np.exp(OFFSET)
    wanted = 2 * (np.where(t > 0, t * np.log(np.maximum(t, 1) / mean), 0.0) - t + mean).sum()
    assert ours.goodness.null_deviance == pytest.approx(wanted, rel=1e-12)


def test_noisy_labels_have_a_null_model_of_their_own():
    t = TARGETS["bernoulli"]
    ones, zeros = t.sum(), N - t.sum()
    fit = prepared_fit(glm_loss("bernoulli"), t)
    for rates, share in (((0.1, 0.2), t.mean()), ((0.7, 0.1), 0.7), ((0.1, 0.8), 0.2)):
        # The share of ones that such labels can have ends at the rates.
        objective = replace(fit.objective, loss=NoisyLogisticLoss(*rates))
        wanted = -2 * (ones * np.log(share) + zeros * np.log(1 - share))
        assert Goodness(objective, fit.w).null_deviance == pytest.approx(wanted, rel=1e-9)


def test_separated_classes_have_profiles_that_end_on_one_side():
    y = TARGETS["bernoulli"]
    rare = np.where(np.arange(N) % 10 == 0, y, 0.0)  # where it is one, so is y
    # Ended early, on its way to infinity.
    fit = prepared_fit(glm_loss("bernoulli"), y, rows=np.column_stack([X[:, 0], rare]), most=15)
    low, high = Inference(*fit).profile(0.95).T
    assert np.isfinite(low).all()
    assert list(np.isinf(high)) == [False, False, True]
    # At the end that exists, the others being best, the likelihood is 1.92 below its supremum.
    Z = sm.add_constant(X[:, :1])
    supremum = sm.Logit(y[rare == 0], Z[rare == 0]).fit(disp=0, tol=1e-14).llf
    at_end = sm.Logit(y, Z, offset=rare * low[2]).fit(disp=0, tol=1e-14).llf
    assert supremum - at_end == pytest.approx(0.5 * chi2.ppf(0.95, 1), rel=1e-6)


def test_intervals_of_a_mean_stay_in_its_domain():
    t = RANDOM.gamma(3.0, 1 / (1 + 0.2 * abs(X[:, 0])) / 3)
    ours = infer("gamma", "reciprocal", t, rows=abs(X[:, :1]))
    quantile, link = ours.quantile(0.95), LINKS["reciprocal"]
    kernel = MeanInterval.of(ours, link, 0.95)
    new = np.linspace(3, -30, 300)[:, None]
    Z = sm.add_constant(new)
    a = Z @ ours.estimates
    away = quantile * np.sqrt(((Z @ ours.covariance()) * Z).sum(axis=1))
    inside, certain = a > 0, a - away > 0
    assert 0 < certain.sum() < inside.sum() < 300

    def ends(new):
        rows = read_new_rows(new, ours.shown.columns.schema, "The model")
        return rows.fill(np.empty((len(new), 2)), kernel).T

    low, high = ends(new[inside])
    np.testing.assert_allclose(low, 1 / (a + away)[inside], rtol=1e-9)
    np.testing.assert_allclose(high[certain[inside]], 1 / (a - away)[certain], rtol=1e-9)
    assert (high[~certain[inside]] == np.inf).all()
    first = int(np.argmin(inside))
    with pytest.raises(DomainError, match=f"Row {first} has the activation {a[first]:.6g}"):
        ends(new)


def test_log_odds_keep_their_digits_where_a_class_is_certain():
    odds, slopes = log_odds_of_each(np.array([[700.0, 0.0, -5.0], [0.0, 0.0, 800.0]]))
    np.testing.assert_allclose(odds[0, 0], 700 - np.log1p(np.exp(-5.0)), rtol=1e-15)
    np.testing.assert_allclose(odds[1], [-800.0, -800.0, 800 - np.log(2)], rtol=1e-15)
    np.testing.assert_allclose(slopes.sum(axis=2), 0.0, atol=1e-14)


def test_a_singular_covariance_has_a_root_too():
    A = np.array([[1.0, 2.0], [2.0, 4.0]])
    root = root_of(A)
    np.testing.assert_allclose(root @ root.T, A, rtol=1e-12)


def test_a_curvature_without_an_inverse_is_an_error():
    with pytest.raises(InferenceError, match="not positive definite"):
        inverse_of(np.array([[1.0, 2.0], [2.0, 1.0]]))


def test_coefficients_that_are_not_determined_are_named():
    inference = Inference(*prepared_fit(glm_loss("bernoulli"), TARGETS["bernoulli"]))
    hessian = np.eye(3)
    hessian[1, 2] = hessian[2, 1] = 1.0
    with pytest.raises(InferenceError) as caught:
        inference._inverse(hessian)
    assert "some combination of coefficients ('x0', 'x1') is not determined" in str(caught.value)


def test_intervals_of_rows_far_out_are_those_of_longer_numbers():
    ours = infer("gaussian", "identity", TARGETS["gaussian"])
    new = np.array([[1e300, -2e300], [-3e170, 1e160], [5e307, 5e307], [0.0, 0.0]])
    rows = read_new_rows(new, ours.shown.columns.schema, "GLM")
    kernel = MeanInterval.of(ours, LINKS["identity"], 0.95)
    found = rows.fill(np.empty((4, 2)), kernel)
    Z = np.column_stack([np.ones(4), new]).astype(np.longdouble)
    centre = Z @ ours.estimates
    away = ours.quantile(0.95) * np.sqrt(np.einsum("ni,ij,nj->n", Z, ours.covariance(), Z))
    wanted = np.stack([centre - away, centre + away], axis=1).astype(float)
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


def test_a_row_beyond_the_doubles_has_no_interval():
    ours = infer("gaussian", "identity", 1e3 * TARGETS["gaussian"])
    rows = read_new_rows(np.array([[0.0, 0.0], [1e308, 1e308]]), ours.shown.columns.schema, "GLM")
    kernel = MeanInterval.of(ours, LINKS["identity"], 0.95)
    with pytest.raises(ScaleError, match="activations of row 1 do not fit in a double"):
        rows.fill(np.empty((2, 2)), kernel)
