"""Profiles that never rise, rows that are certain, and two optima under Jeffreys' prior."""

import pickle

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import chi2
from sklearn.datasets import load_iris

from posteriori import LogisticRegression
from posteriori.errors import InferenceError, SeparationWarning
from posteriori.posterior.inference import Inference

RISE = 0.5 * chi2.ppf(0.95, 1)
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(200, 2))
Y = (RANDOM.random(200) < expit(X[:, 0] - 0.3)).astype(int)
RARE = np.where(np.arange(200) % 10 == 0, Y, 0)  # where it is one, so is Y


def quasi_separated():
    with pytest.warns(SeparationWarning, match="x2"):
        return LogisticRegression().fit(np.column_stack([X, RARE]), Y)


def test_a_coefficient_that_diverges_has_an_infinite_error_and_the_others_those_of_other_rows():
    found = quasi_separated().tidy()
    rest = LogisticRegression().fit(X[RARE == 0], Y[RARE == 0]).tidy()
    for name in ("estimate", "std_error", "statistic", "conf_low", "conf_high"):
        np.testing.assert_allclose(found[name][:3], rest[name], rtol=1e-6)
    last = found.iloc[3]
    assert last["std_error"] == last["conf_high"] == -last["conf_low"] == np.inf
    assert last["statistic"] == 0.0
    assert last["p_value"] == 1.0
    text = " ".join(str(quasi_separated().summary()).split())
    assert "The coefficient of 'x2' diverges" in text


def test_separated_classes_have_no_profile():
    with pytest.raises(InferenceError, match=r"can be separated.*prior='jeffreys'"):
        quasi_separated().tidy(intervals="profile")
    # Where that is not known, the profile of what diverges never rises on one side.
    model = quasi_separated()
    objective, w = model._inference.objective, model._inference.w
    ends = Inference(objective, w, objective(w, "none").value).profile(0.95)
    rest = LogisticRegression().fit(X[RARE == 0], Y[RARE == 0]).tidy(intervals="profile")
    np.testing.assert_allclose(ends[:3, :2], rest[["conf_low", "conf_high"]], rtol=1e-5)
    assert ends[3, 1] == np.inf


def test_intervals_of_rows_that_are_certain_say_nothing():
    model, Z = quasi_separated(), np.column_stack([X, RARE])
    rest = LogisticRegression().fit(X[RARE == 0], Y[RARE == 0])
    ends = model.predict_interval(Z)
    np.testing.assert_allclose(ends[RARE == 0], rest.predict_interval(X[RARE == 0]), rtol=1e-6)
    np.testing.assert_array_equal(ends[RARE == 1], [[0.0, 1.0]] * RARE.sum())
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.predict_interval(Z), ends)
    assert np.isinf(loaded.tidy()["std_error"][3])
    certain = X[:, 0] > 1
    with pytest.warns(SeparationWarning):
        many = LogisticRegression().fit(X, np.where(certain, 2, Y))
    ends = many.predict_interval(X)
    np.testing.assert_array_equal(ends[certain], np.tile([0.0, 1.0], (certain.sum(), 3, 1)))
    inside = LogisticRegression().fit(X[~certain], Y[~certain]).predict_interval(X[~certain])
    np.testing.assert_allclose(ends[~certain, 1], inside, rtol=1e-5)


def test_the_better_of_two_optima_counts_under_jeffreys_prior():
    """On separated rows the penalised profile has two optima: the boundary near either class."""
    X, y = load_iris(return_X_y=True)
    x, t = X[y < 2, 2], y[y < 2]
    fit = LogisticRegression(prior="jeffreys").fit(x[:, None], t)
    end = fit.tidy(intervals="profile")["conf_high"][1]
    levels = np.linspace(-60.0, 60.0, 4001)[:, None]

    def penalised(slope):
        a = levels + slope * (x - x.mean())
        r = expit(a) * expit(-a)
        s0, s1, s2 = (r @ (x - x.mean()) ** k for k in range(3))
        loss = np.logaddexp(0, -np.where(t == 1, 1.0, -1.0) * a).sum(axis=1)
        return (0.5 * np.log(s0 * s2 - s1**2) - loss).max()

    best = max(penalised(slope) for slope in np.linspace(3.9, 4.1, 81))
    assert 2 * (best - penalised(end)) == pytest.approx(chi2.ppf(0.95, 1), abs=1e-3)
