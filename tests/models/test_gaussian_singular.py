"""Gaussian classes where a covariance has no inverse, and shrinkage."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracle import correlated_rows
from sklearn.datasets import load_wine
from sklearn.metrics import log_loss

from posteriori import GaussianClassifier
from posteriori.errors import SingularCovarianceError, SingularCovarianceWarning

X, Y = correlated_rows(60, 3, 3, seed=7)
KINDS = ["shared", "full", [[0, 2]]]
REDUNDANT = {
    "constant": np.full((60, 1), 5.1),
    "zero": np.zeros((60, 1)),
    "duplicate": X[:, 1:2],
    "combination": X[:, :1] - 3 * X[:, 2:] + 1,
    "several": np.column_stack([X[:, 0], np.full(60, -2.0), X[:, 1] + X[:, 2], 1e7 * X[:, 1]]),
    "huge constant": np.full((60, 1), 1e12),
}


def fit_loudly(X, y, **settings):
    with pytest.warns(SingularCovarianceWarning) as caught:
        model = GaussianClassifier(**settings).fit(X, y)
    return model, [str(warning.message) for warning in caught]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", REDUNDANT)
@pytest.mark.parametrize("first", [True, False])
def test_redundant_columns_change_no_probability(kind, name, first):
    parts = [REDUNDANT[name], X] if first else [X, REDUNDANT[name]]
    wide = np.column_stack(parts)
    model, said = fit_loudly(wide, Y, covariance=kind)
    plain = GaussianClassifier(covariance=kind).fit(X, Y)
    assert_allclose(model.predict_proba(wide), plain.predict_proba(X), rtol=1e-9, atol=1e-9)
    assert model.n_parameters_ == plain.n_parameters_
    assert len(said) == 1
    assert "left out" in said[0]


@pytest.mark.parametrize("kind", KINDS)
def test_with_a_column_missing_its_duplicate_stands_in(kind):
    wide = np.column_stack([X, X[:, 1] * 2])
    model, _ = fit_loudly(wide, Y, covariance=kind)
    plain = GaussianClassifier(covariance=kind).fit(X, Y).predict_proba(X)
    for j in (1, 3):
        holed = wide.copy()
        holed[:, j] = np.nan
        assert_allclose(model.predict_proba(holed), plain, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", ["constant", "duplicate", "combination"])
def test_strict_shrinkage_is_an_error_that_names_columns(name):
    wide = pd.DataFrame(np.column_stack([X, REDUNDANT[name]]), columns=["a", "b", "c", "extra"])
    named = {"constant": "extra", "duplicate": "b|extra", "combination": "a|c|extra"}[name]
    with pytest.raises(SingularCovarianceError, match=f"column '({named})'") as caught:
        GaussianClassifier(shrinkage=0.0).fit(wide, Y)
    assert "shrinkage='auto'" in caught.value.remedy


def test_strict_shrinkage_of_regular_rows_is_no_shrinkage():
    strict = GaussianClassifier(shrinkage=0.0).fit(X, Y)
    assert_array_equal(strict.predict_proba(X), GaussianClassifier().fit(X, Y).predict_proba(X))


def test_draws_keep_the_relation_between_columns():
    wide = np.column_stack([X, X[:, 0] - 3 * X[:, 2] + 1, np.full(60, 4.0)])
    for kind in KINDS:
        model, _ = fit_loudly(wide, Y, covariance=kind)
        rows, _ = model.sample(500, random_state=1)
        assert_allclose(rows[:, 3], rows[:, 0] - 3 * rows[:, 2] + 1, rtol=1e-7, atol=1e-7)
        assert_array_equal(rows[:, 4], 4.0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("amount", [0.1, 0.5, 1.0])
def test_a_number_interpolates_between_correlations_and_none(kind, amount):
    plain = GaussianClassifier(covariance=kind).fit(X, Y)
    shrunk = GaussianClassifier(covariance=kind, shrinkage=amount).fit(X, Y)
    expected = plain.covariances_ * ((1 - amount) + amount * np.eye(3))
    assert_allclose(shrunk.covariances_, expected, rtol=1e-12)
    assert_array_equal(shrunk.means_, plain.means_)
    assert_array_equal(shrunk.shrinkage_, amount)


def test_wholly_shrunk_full_covariances_are_diagonal():
    shrunk = GaussianClassifier(covariance="full", shrinkage=1.0).fit(X, Y)
    diagonal = GaussianClassifier(covariance="diagonal").fit(X, Y)
    assert_allclose(shrunk.predict_proba(X), diagonal.predict_proba(X), rtol=1e-10)


def test_a_constant_column_does_not_enter_at_any_shrinkage():
    wide = np.column_stack([X, np.full(60, 9.0)])
    for amount in (0.3, "auto"):
        model, said = fit_loudly(wide, Y, shrinkage=amount)
        plain = GaussianClassifier(shrinkage=amount).fit(X, Y)
        assert "column 3" in said[0]
        assert_allclose(model.score_samples(wide), plain.score_samples(X), rtol=1e-11)
        assert_allclose(model.shrinkage_, plain.shrinkage_, rtol=1e-12)
        assert_allclose(model.log_likelihood_, plain.log_likelihood_, rtol=1e-12)


def test_automatic_shrinkage_predicts_better_from_few_rows():
    X, y = load_wine(return_X_y=True)
    random, plain, shrunk = np.random.default_rng(0), 0.0, 0.0
    for _ in range(5):
        order = random.permutation(len(y))
        few, rest = order[:40], order[40:]
        for amount in (None, "auto"):
            model = GaussianClassifier(shrinkage=amount).fit(X[few], y[few])
            loss = log_loss(y[rest], np.maximum(model.predict_proba(X[rest]), 1e-15))
            plain, shrunk = (plain + loss, shrunk) if amount is None else (plain, shrunk + loss)
    assert shrunk < 0.8 * plain


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [6, 9, 12])
def test_more_columns_than_rows_give_finite_answers_and_a_warning(kind, n):
    random = np.random.default_rng(3)
    rows, y = random.standard_normal((n, 20)), np.arange(n) % 3
    rows[:, 0] += 5 * y
    model, said = fit_loudly(rows, y, covariance=kind)
    found = model.predict_proba(random.standard_normal((5, 20)))
    assert np.isfinite(found).all()
    assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    assert all("shrunk by" in words for words in said)
    assert (model.shrinkage_ > 0).all()
    assert_array_equal(model.predict(rows), y)


def test_a_class_of_one_row_takes_the_shared_covariance_of_the_others():
    few = np.append(np.flatnonzero(Y < 2), np.flatnonzero(Y == 2)[0])
    model = GaussianClassifier().fit(X[few], Y[few])
    assert_allclose(model.means_[2], X[few[-1]], rtol=1e-15)
    two = GaussianClassifier().fit(X[few[:-1]], Y[few[:-1]])
    assert_allclose(model.covariances_, two.covariances_ * 40 / 41, rtol=1e-12)


def test_a_class_of_one_row_with_its_own_covariance_is_warned_of():
    few = np.append(np.flatnonzero(Y < 2), np.flatnonzero(Y == 2)[0])
    model, said = fit_loudly(X[few], Y[few], covariance="full")
    assert "class 2 (1 rows)" in said[0]
    assert_array_equal(model.shrinkage_, [0.0, 0.0, 1.0])
    # One row says nothing of spread: each column has that of all rows.
    assert_allclose(model.covariances_[2], np.diag(X[few].var(axis=0)), rtol=1e-12)
    with pytest.raises(SingularCovarianceError, match="class 2"):
        GaussianClassifier(covariance="full", shrinkage=0.0).fit(X[few], Y[few])


def test_diagonal_columns_constant_in_a_class_get_the_spread_of_one_more_row():
    rows = X.copy()
    rows[Y == 1, 2] = 0.25
    model, said = fit_loudly(rows, Y, covariance="diagonal")
    assert "column 2 is zero in class 1" in said[0]
    assert_allclose(model.covariances_[1, 2, 2], rows[:, 2].var() / 21, rtol=1e-12)


def test_diagonal_columns_that_never_change_are_left_out():
    wide = np.column_stack([X, np.full(60, 0.3)])
    model, said = fit_loudly(wide, Y, covariance="diagonal")
    plain = GaussianClassifier(covariance="diagonal").fit(X, Y)
    assert "column 3 never change" in said[0]
    assert_allclose(model.predict_proba(wide), plain.predict_proba(X), rtol=1e-12)
    assert_allclose(model.score_samples(wide), plain.score_samples(X), rtol=1e-12)
    assert model.n_parameters_ == plain.n_parameters_


def test_rows_that_are_all_alike_are_an_error():
    for kind in ("shared", "full", "isotropic"):
        with pytest.raises(SingularCovarianceError):
            GaussianClassifier(covariance=kind).fit(np.ones((6, 2)), [0, 1] * 3)


def test_regular_rows_give_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in KINDS:
            GaussianClassifier(covariance=kind).fit(X, Y)
