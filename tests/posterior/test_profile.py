"""Profiles: the step with one parameter held, likelihoods that never rise, and Jeffreys' prior."""

import pickle

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import chi2

from posteriori import LogisticRegression
from posteriori.errors import InferenceError, SeparationWarning
from posteriori.posterior.held import with_one_held

RISE = 0.5 * chi2.ppf(0.95, 1)
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(200, 2))
Y = (RANDOM.random(200) < expit(X[:, 0] - 0.3)).astype(int)
RARE = np.where(np.arange(200) % 10 == 0, Y, 0)  # where it is one, so is Y


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("p", [1, 2, 5])
def test_the_step_with_one_held_solves_the_bordered_system(p, sign):
    random = np.random.default_rng(p)
    m, g = random.normal(size=(2, p))
    root = random.normal(size=(p, p))
    H = root @ root.T + np.eye(p)
    # Curved upwards where m is held, and either way along m.
    H += (sign * 20 - 10) * np.outer(m, m) / (m @ m) ** 2 * (p > 1)
    held = with_one_held(g, H, m)
    bordered = np.block([[H, m[:, None]], [m, np.zeros((1, 1))]])
    np.testing.assert_allclose(held.step, np.linalg.solve(bordered, [*-g, 0.0])[:p], atol=1e-12)
    along = np.linalg.solve(bordered, [*np.zeros(p), 1.0])[:p]
    np.testing.assert_allclose(held.along, along, rtol=1e-10)
    assert held.curvature == pytest.approx(along @ H @ along, rel=1e-9)


def test_directions_that_are_not_curved_upwards_are_turned():
    held = with_one_held(np.array([0.0, 1.0, 2.0]), np.diag([1.0, -1.0, 4.0]), np.eye(3)[0])
    np.testing.assert_allclose(held.step, [0.0, -1.0, -0.5])


def test_no_curvature_and_no_slope_make_no_step():
    held = with_one_held(np.zeros(3), np.zeros((3, 3)), np.eye(3)[1])
    np.testing.assert_array_equal(held.step, np.zeros(3))
    np.testing.assert_allclose(held.along, np.eye(3)[1], atol=1e-15)


def quasi_separated():
    with pytest.warns(SeparationWarning, match="x2"):
        return LogisticRegression().fit(np.column_stack([X, RARE]), Y)


def test_what_runs_to_infinity_has_no_error_and_the_rest_that_of_the_other_rows():
    found = quasi_separated().tidy()
    rest = LogisticRegression().fit(X[RARE == 0], Y[RARE == 0]).tidy()
    for name in ("estimate", "std_error", "statistic", "conf_low", "conf_high"):
        np.testing.assert_allclose(found[name][:3], rest[name], rtol=1e-6)
    last = found.iloc[3]
    assert last["std_error"] == last["conf_high"] == -last["conf_low"] == np.inf
    assert last["statistic"] == 0.0
    assert last["p_value"] == 1.0


def test_the_page_says_what_runs_to_infinity():
    text = " ".join(str(quasi_separated().summary()).split())
    assert "The coefficient of x2 runs to infinity" in text
    assert "inf 0.00 1.0000 -inf inf" in text


def test_a_profile_of_what_runs_to_infinity_ends_on_one_side():
    model = quasi_separated()
    found = model.tidy(intervals="profile")
    low, high = found["conf_low"], found["conf_high"]
    assert np.isfinite(low).all()
    assert list(np.isinf(high)) == [False, False, False, True]
    # At the end that exists, the others being best, the likelihood is 1.92 below its supremum.
    Z = sm.add_constant(X)
    at_end = sm.Logit(Y, Z, offset=RARE * low[3]).fit(disp=0, tol=1e-13).llf
    assert model.log_likelihood_ - at_end == pytest.approx(RISE, rel=1e-6)
    rest = LogisticRegression().fit(X[RARE == 0], Y[RARE == 0]).tidy(intervals="profile")
    np.testing.assert_allclose(high[:3], rest["conf_high"], rtol=1e-5)


def test_complete_separation_leaves_only_ends_that_exist():
    y = (X[:, 0] > 0).astype(int)
    with pytest.warns(SeparationWarning):
        model = LogisticRegression().fit(X, y)
    found = model.tidy(intervals="profile")
    assert np.isinf(found["std_error"]).all()
    assert list(np.isfinite(found["conf_low"])) == [False, True, False]
    assert np.isinf(found["conf_high"]).all()
    Z = sm.add_constant(X[:, 1:])

    def objective(w):
        a = (2 * y - 1) * (X[:, 0] * found["conf_low"][1] + Z @ w)
        return np.logaddexp(0, -a).sum()

    assert minimize(objective, [0.0, 0.0]).fun == pytest.approx(RISE, rel=1e-3)


def test_intervals_of_rows_that_are_certain_say_nothing():
    model = quasi_separated()
    rest = LogisticRegression().fit(X[RARE == 0], Y[RARE == 0])
    ends = model.predict_interval(np.column_stack([X, RARE]))
    np.testing.assert_allclose(ends[RARE == 0], rest.predict_interval(X[RARE == 0]), rtol=1e-6)
    np.testing.assert_array_equal(ends[RARE == 1], [[0.0, 1.0]] * RARE.sum())
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.predict_interval(np.column_stack([X, RARE])), ends)


def test_intervals_of_many_classes_know_what_is_certain():
    y = np.where(X[:, 0] > 1, 2, Y)
    with pytest.warns(SeparationWarning):
        model = LogisticRegression().fit(X, y)
    ends = model.predict_interval(X)
    certain = X[:, 0] > 1
    np.testing.assert_array_equal(ends[certain], np.tile([0.0, 1.0], (certain.sum(), 3, 1)))
    inside = LogisticRegression().fit(X[~certain], Y[~certain]).predict_interval(X[~certain])
    np.testing.assert_allclose(ends[~certain, 1], inside, rtol=1e-5)


@pytest.mark.slow
def test_the_profile_with_jeffreys_prior_is_that_of_brute_force():
    X30, y = X[:30], (X[:30, 0] > 0).astype(float)  # separated, and yet all ends exist
    found = LogisticRegression(prior="jeffreys").fit(X30, y).tidy(intervals="profile")
    Z = sm.add_constant(X30)

    def objective(w):
        a = Z @ w
        information = (Z.T * (expit(a) * expit(-a))) @ Z
        return np.logaddexp(0, a).sum() - y @ a - 0.5 * np.linalg.slogdet(information)[1]

    w = found["estimate"].to_numpy()
    assert minimize(objective, w).fun == pytest.approx(objective(w), abs=1e-9)
    random = np.random.default_rng(1)
    for j in range(3):
        for end in found.loc[j, ["conf_low", "conf_high"]]:
            # With one coefficient held there are several minima: many starts.
            inner = [
                minimize(lambda v, j=j, end=end: objective(np.insert(v, j, end)), start, tol=1e-9)
                for start in np.delete(w, j) + random.normal(scale=5.0, size=(20, 2))
            ]
            risen = min(one.fun for one in inner) - objective(w)
            assert risen == pytest.approx(RISE, rel=1e-6)


def test_rows_of_a_fit_that_was_let_go_cannot_be_profiled():
    loaded = pickle.loads(pickle.dumps(quasi_separated()))
    assert np.isinf(loaded.tidy()["std_error"][3])
    with pytest.raises(InferenceError, match="loaded from a file"):
        loaded.tidy(intervals="profile")
