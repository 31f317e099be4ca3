"""Generalised linear models at the ends of the doubles: right numbers, or a named error."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest

from posteriori import GLM
from posteriori.errors import DomainError, InferenceError, ScaleError, SeparationWarning
from posteriori.posterior.fit_statistics import check_same_rows

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(200, 3))
Y = RANDOM.gamma(2.0, np.exp(X @ [0.3, -0.2, 0.1]) / 2)
COUNTS = RANDOM.poisson(6 + X @ [0.3, -0.2, 0.1]).astype(float)


@pytest.mark.parametrize("unit", [1e-300, 1e-200, 1e-160, 1e160, 1e200, 1e300])
@pytest.mark.parametrize("family", ["gamma", "exponential"])
def test_waiting_times_with_the_log_link_have_no_units(family, unit):
    plain = GLM(family=family, link="log").fit(X, Y)
    found = GLM(family=family, link="log").fit(X, Y * unit)
    np.testing.assert_allclose(found.coef_, plain.coef_, rtol=1e-10)
    assert found.intercept_ == pytest.approx(plain.intercept_ + np.log(unit), rel=1e-13)
    np.testing.assert_allclose(found.tidy()["std_error"], plain.tidy()["std_error"], rtol=1e-10)
    assert found.dispersion_ == pytest.approx(plain.dispersion_, rel=1e-10)
    assert found.deviance_ == pytest.approx(plain.deviance_, rel=1e-10)
    wanted = plain.log_likelihood_ - 200 * np.log(unit)
    assert found.log_likelihood_ == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("unit", [1e-300, 1e-200, 1e-170, 1e-160, 1e-150])
def test_squares_that_vanish_are_named(unit):
    with pytest.raises(ScaleError, match=r"as small as .* double\. Multiply y"):
        GLM().fit(X, Y * unit)


@pytest.mark.parametrize("unit", [1e160, 1e300])
def test_squares_that_overflow_are_named(unit):
    with pytest.raises(ScaleError, match=r"as large as .* double\. Divide y"):
        GLM().fit(X, Y * unit)


def test_targets_that_are_all_the_same_are_no_matter_of_scale():
    model = GLM().fit(X, np.zeros(200))
    assert model.coef_.tolist() == [0.0, 0.0, 0.0]
    assert model.dispersion_ == 0.0


@pytest.mark.parametrize("unit", [1e6, 1e12, 1e15])
@pytest.mark.parametrize("link", ["log", "identity"])
def test_large_counts_reach_the_optimum(link, unit):
    plain = GLM(family="poisson", link=link).fit(X, COUNTS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = GLM(family="poisson", link=link).fit(X, COUNTS * unit)
    assert found.n_iter_ < 20
    np.testing.assert_allclose(found.predict(X) / unit, plain.predict(X), rtol=1e-9)


@pytest.mark.parametrize(("unit", "words"), [(1e-200, "as small as"), (1e200, "as large as")])
def test_counts_whose_curvature_is_no_double_are_named(unit, words):
    with pytest.raises(ScaleError, match=words):
        GLM(family="poisson", link="identity").fit(X, COUNTS * unit)


def test_a_saturated_fit_has_no_deviance():
    model = GLM(family="poisson").fit(np.eye(3)[:, 1:], [1.0, 2.0, 3.0])
    assert model.deviance_ == 0.0
    assert model.log_likelihood_ == pytest.approx(
        -6 + np.log(1) + 2 * np.log(2) + 3 * np.log(3) - np.log(2) - np.log(6), rel=1e-14
    )
    assert "Deviance                         0.00" in str(model.summary())


def test_a_small_deviance_that_is_none_of_rounding_is_kept():
    x = np.array([[0.0], [0.0], [1.0]])
    model = GLM(family="poisson").fit(x, [1e6, 1e6 + 1, 5.0])
    mean = 1e6 + 0.5
    wanted = 2 * sum(t * np.log1p((t - mean) / mean) - (t - mean) for t in (1e6, 1e6 + 1))
    assert model.deviance_ == pytest.approx(wanted, rel=1e-3)
    assert model.deviance_ > 4e-7


def test_rows_whose_loss_stays_infinite_have_not_changed():
    check_same_rows(np.inf, np.inf)
    check_same_rows(1e300, 1e300)
    for now in (np.nan, 5.0, -np.inf):
        with pytest.raises(InferenceError, match="have changed since"):
            check_same_rows(np.inf, now)


def levels(f="aaabbbccc"):
    return pd.DataFrame({"f": list(f), "x": np.arange(9.0) % 4})


@pytest.mark.parametrize(
    ("y", "columns"),
    [
        ([0, 0, 0, 1, 2, 3, 2, 4, 1.0], ("intercept", "f[b]", "f[c]")),
        ([1, 2, 3, 0, 0, 0, 2, 4, 1.0], ("f[b]",)),
        ([0, 0, 0, 0, 0, 0, 2, 4, 1.0], ("intercept", "f[c]")),
    ],
)
def test_coefficients_of_levels_whose_targets_are_all_zero_are_named(y, columns):
    with pytest.warns(SeparationWarning, match=rf"'{re.escape(columns[-1])}'.*mean goes to zero"):
        model = GLM(family="poisson").fit(levels(), np.array(y))
    assert model.separation_.columns == columns
    if columns != ("f[b]",):
        with pytest.raises(DomainError, match="no bound: every target of some of the rows is zero"):
            GLM(family="exponential", link="log").fit(levels(), np.array(y))


@pytest.mark.parametrize("seed", range(5))
def test_a_risk_that_runs_away_is_one_warning(seed):
    random = np.random.default_rng(seed)
    x = random.normal(size=(40, 2))
    y = (np.arange(40) == np.argmax(x[:, 0])).astype(int)
    with pytest.warns(SeparationWarning) as caught:
        model = GLM(family="bernoulli", link="log").fit(x, y)
    assert [warning.category for warning in caught] == [SeparationWarning]
    assert not model.converged_
    assert model.log_likelihood_ == pytest.approx(0.0, abs=1e-7)
