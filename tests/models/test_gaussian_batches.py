"""Gaussian classes from batches, shards and sums."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracle import correlated_rows

from posteriori import GaussianClassifier
from posteriori.errors import ParameterError, StatisticsError

X, Y = correlated_rows(120, 3, 3, seed=5)
KINDS = ["shared", "full", "diagonal", "isotropic", [[0, 2]]]
NEW = X[:7] * 1.5


def same(a, b, tolerance=1e-10):
    assert_array_equal(a.classes_, b.classes_)
    assert_allclose(a.means_, b.means_, rtol=tolerance, atol=tolerance)
    assert_allclose(a.covariances_, b.covariances_, rtol=tolerance, atol=tolerance)
    assert_allclose(a.priors_, b.priors_, rtol=tolerance)
    assert_allclose(a.predict_proba(NEW), b.predict_proba(NEW), rtol=tolerance, atol=tolerance)
    assert_allclose(a.log_likelihood_, b.log_likelihood_, rtol=tolerance)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_batches", [2, 3, 7])
def test_batches_make_the_fit_to_all_rows(kind, n_batches):
    model = GaussianClassifier(covariance=kind)
    for part in np.array_split(np.random.default_rng(0).permutation(120), n_batches):
        model.partial_fit(X[part], Y[part])
    same(model, GaussianClassifier(covariance=kind).fit(X, Y))


@pytest.mark.parametrize("kind", ["shared", "full", "diagonal", "isotropic"])
def test_a_batch_may_lack_classes_or_bring_new_ones(kind):
    model = GaussianClassifier(covariance=kind)
    order = [Y == 2, Y == 0, (Y == 1) & (X[:, 0] > 1), (Y == 1) & (X[:, 0] <= 1)]
    for part in order:
        model.partial_fit(X[part], Y[part])
    same(model, GaussianClassifier(covariance=kind).fit(X, Y))


@pytest.mark.parametrize("kind", KINDS)
def test_weights_and_soft_labels_go_through_batches(kind):
    random = np.random.default_rng(2)
    soft, weight = random.dirichlet(np.ones(3), size=120), random.uniform(0, 2, size=120)
    model = GaussianClassifier(covariance=kind)
    for part in np.array_split(np.arange(120), 4):
        model.partial_fit(X[part], soft[part], sample_weight=weight[part])
    same(model, GaussianClassifier(covariance=kind).fit(X, soft, sample_weight=weight))


@pytest.mark.parametrize("kind", ["shared", "full", "diagonal", "isotropic"])
@pytest.mark.parametrize("far", [0.0, 1e8])
def test_a_class_that_never_comes_has_probability_zero_and_harms_no_other(kind, far):
    model = GaussianClassifier(covariance=kind)
    model.partial_fit(X[Y < 2] + far, Y[Y < 2], classes=[0, 1, 2])
    plain = GaussianClassifier(covariance=kind).fit(X[Y < 2] + far, Y[Y < 2])
    rows = NEW + far
    found = model.predict_proba(rows)
    assert_array_equal(found[:, 2], 0.0)
    assert_allclose(found[:, :2], plain.predict_proba(rows), rtol=1e-7, atol=1e-12)
    assert_array_equal(model.predict_log_proba(rows)[:, 2], -np.inf)
    assert_allclose(model.score_samples(rows), plain.score_samples(rows), rtol=1e-7)
    assert_allclose(model.log_likelihood_, plain.log_likelihood_, rtol=1e-12)
    rows[:, 1] = np.nan
    assert_array_equal(model.predict_proba(rows)[:, 2], 0.0)
    assert np.isfinite(model.means_).all()
    assert np.isfinite(model.covariances_).all()


def test_a_prior_given_to_a_class_waits_for_its_rows():
    model = GaussianClassifier(priors=[0.2, 0.3, 0.5], covariance="full")
    model.partial_fit(X[Y < 2], Y[Y < 2], classes=[0, 1, 2])
    assert_allclose(model.priors_, [0.4, 0.6, 0.0], rtol=1e-15)
    with pytest.raises(ParameterError, match="Class 2 is given a prior, but no row"):
        model.with_priors([0.2, 0.3, 0.5])
    assert_allclose(model.with_priors([0.5, 0.5, 0.0]).priors_, [0.5, 0.5, 0.0])
    model.partial_fit(X[Y == 2], Y[Y == 2])
    same(model, GaussianClassifier(priors=[0.2, 0.3, 0.5], covariance="full").fit(X, Y))


@pytest.mark.parametrize("kind", KINDS)
def test_sums_of_two_sites_make_the_pooled_fit(kind):
    sites = [np.arange(120) < 50, np.arange(120) >= 50]
    parts = [GaussianClassifier(covariance=kind).fit(X[s], Y[s]).statistics_ for s in sites]
    for both in (parts[0] + parts[1], parts[1] + parts[0], sum(parts)):
        merged = GaussianClassifier.from_statistics(both, covariance=kind)
        same(merged, GaussianClassifier(covariance=kind).fit(X, Y))


def test_other_settings_can_be_tried_on_the_same_sums():
    sums = GaussianClassifier().fit(X, Y).statistics_
    settings = {"estimate": "unbiased", "shrinkage": 0.2, "priors": [0.5, 0.25, 0.25]}
    again = GaussianClassifier.from_statistics(sums, **settings)
    same(again, GaussianClassifier(**settings).fit(X, Y))
    assert_allclose(again.fit(X, Y).shrinkage_, [0.2])


def test_sums_for_another_covariance_are_an_error():
    shared = GaussianClassifier().fit(X, Y).statistics_
    diagonal = GaussianClassifier(covariance="diagonal").fit(X, Y).statistics_
    for kind in ("full", "diagonal", "isotropic", [[0, 2]]):
        with pytest.raises(StatisticsError, match="not gathered for covariance"):
            GaussianClassifier.from_statistics(shared, covariance=kind)
    for kind in ("full", "shared"):
        with pytest.raises(StatisticsError, match="not gathered for covariance"):
            GaussianClassifier.from_statistics(diagonal, covariance=kind)


def test_diagonal_and_isotropic_share_their_sums():
    sums = GaussianClassifier(covariance="diagonal").fit(X, Y).statistics_
    merged = GaussianClassifier.from_statistics(sums, covariance="isotropic")
    same(merged, GaussianClassifier(covariance="isotropic").fit(X, Y))


def test_sums_of_different_columns_cannot_be_added():
    one = GaussianClassifier().fit(X, Y).statistics_
    other = GaussianClassifier().fit(X[:, :2], Y).statistics_
    with pytest.raises(StatisticsError, match="different columns"):
        _ = one + other


def test_batches_may_be_added_to_a_model_from_sums():
    half = np.arange(120) < 60
    sums = GaussianClassifier().fit(X[half], Y[half]).statistics_
    model = GaussianClassifier.from_statistics(sums).partial_fit(X[~half], Y[~half])
    same(model, GaussianClassifier().fit(X, Y))
