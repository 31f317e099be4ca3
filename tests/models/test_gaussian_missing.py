"""Gaussian classes fitted to rows with missing entries: expectation-maximisation."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracle import correlated_rows

from posteriori import GaussianClassifier
from posteriori.errors import (
    MissingValueError,
    SingularCovarianceError,
    SingularCovarianceWarning,
    StatisticsError,
)

X, Y = correlated_rows(60, 3, 3, seed=4)
KINDS = ["shared", "full", [[0, 2]]]
GROUPS = {"shared": [0, 0, 0], "full": [0, 1, 2]}


def with_gaps(X, share=0.25, seed=0):
    X = X.copy()
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return X


GAPS = with_gaps(X)


def observed_log_likelihood(X, member, means, covariances, priors):
    """Σ ln p(x_o|C_k) p(C_k) row by row."""
    total = 0.0
    for x, row in zip(X, member, strict=True):
        o = np.flatnonzero(~np.isnan(x))
        for k in np.flatnonzero(row):
            step, sigma = x[o] - means[k][o], covariances[k][np.ix_(o, o)]
            square = step @ np.linalg.solve(sigma, step) + np.linalg.slogdet(2 * np.pi * sigma)[1]
            total += row[k] * (np.log(priors[k]) - square / 2)
    return total


def likelihood_of(model, X, member):
    covariances = np.broadcast_to(model.covariances_, (len(model.priors_), 3, 3))
    return observed_log_likelihood(X, member, model.means_, covariances, model.priors_)


def one_hot(y, K=3):
    return np.eye(K)[y]


@pytest.mark.parametrize("kind", KINDS)
def test_the_likelihood_rises_at_every_step_to_a_stationary_point(kind):
    model = GaussianClassifier(covariance=kind).fit(GAPS, Y)
    trace = model.log_likelihood_trace_
    assert model.converged_
    assert model.n_iter_ == len(trace) > 3
    assert (np.diff(trace) >= -1e-10 * abs(trace[-1])).all()
    assert_allclose(trace[-1], model.log_likelihood_, rtol=1e-12)
    assert_allclose(model.log_likelihood_, likelihood_of(model, GAPS, one_hot(Y)), rtol=1e-11)
    assert abs(slopes(kind, GAPS, one_hot(Y), model)).max() < 1e-5


def slopes(kind, X, member, model):
    """Derivatives of the likelihood in every mean and every covariance, in standard units.

    Means move along the columns of the factor L of Σ, and Σ = LLᵀ to L (I + hB)(I + hB)ᵀ Lᵀ.
    """
    groups = np.array(GROUPS[kind]) if isinstance(kind, str) else np.array([0, 1, 0])
    covariances = np.broadcast_to(model.covariances_, (3, 3, 3))
    lower = np.linalg.cholesky(covariances)

    def value(means, covariances):
        return observed_log_likelihood(X, member, means, covariances, model.priors_)

    def with_mean(k, j, h):
        means = model.means_.copy()
        means[k] += h * lower[k][:, j]
        return value(means, covariances)

    def with_covariance(g, i, j, h):
        moved, bend = covariances.copy(), np.eye(3)
        bend[i, j] += h
        moved[groups == g] = [L @ bend @ bend.T @ L.T for L in lower[groups == g]]
        return value(model.means_, moved)

    moves = [partial(with_mean, k, j) for k in range(3) for j in range(3)]
    for g in range(groups.max() + 1):
        moves += [partial(with_covariance, g, i, j) for i in range(3) for j in range(i, 3)]
    return np.array([(move(1e-5) - move(-1e-5)) / 2e-5 for move in moves])


def test_soft_labels_and_weights_lead_to_a_stationary_point_too():
    random = np.random.default_rng(3)
    soft, weight = random.dirichlet(np.ones(3), size=60), random.uniform(0.5, 2, size=60)
    model = GaussianClassifier().fit(GAPS, soft, sample_weight=weight)
    member = soft * weight[:, None]
    assert_allclose(model.priors_, member.sum(0) / member.sum(), rtol=1e-13)
    assert_allclose(model.log_likelihood_, likelihood_of(model, GAPS, member), rtol=1e-11)
    assert abs(slopes("shared", GAPS, member, model)).max() < 1e-5


@pytest.mark.parametrize("kind", ["shared", "full"])
def test_monotone_missingness_has_the_closed_form_of_factored_regressions(kind):
    # x0 is always there; p(x1|x0, C_k) is a regression over the rows that have x1.
    rows, y = correlated_rows(50, 2, 2, seed=6)
    rows[np.random.default_rng(0).random(50) < 0.4, 1] = np.nan
    model = GaussianClassifier(covariance=kind).fit(rows, y)
    full = ~np.isnan(rows[:, 1])
    groups = [[0, 1]] if kind == "shared" else [[0], [1]]
    covariances = np.broadcast_to(model.covariances_, (2, 2, 2))
    for group in groups:
        inside = np.isin(y, group)
        own = {k: y == k for k in group}
        m0 = {k: rows[own[k], 0].mean() for k in group}
        v0 = sum(((rows[own[k], 0] - m0[k]) ** 2).sum() for k in group) / inside.sum()
        both = {k: rows[own[k] & full] for k in group}
        steps = np.concatenate([r - r.mean(axis=0) for r in both.values()])
        slope = (steps[:, 0] @ steps[:, 1]) / (steps[:, 0] @ steps[:, 0])
        left = ((steps[:, 1] - slope * steps[:, 0]) ** 2).mean()
        right = np.array([[v0, slope * v0], [slope * v0, left + slope**2 * v0]])
        for k in group:
            m1 = both[k][:, 1].mean() + slope * (m0[k] - both[k][:, 0].mean())
            assert_allclose(model.means_[k], [m0[k], m1], rtol=1e-7, atol=1e-8)
            assert_allclose(covariances[k], right, rtol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_without_entries_count_in_the_priors_only(kind):
    nothing = np.full((4, 3), np.nan)
    y = np.concatenate([Y, [0, 0, 1, 2]])
    model = GaussianClassifier(covariance=kind).fit(np.concatenate([X, nothing]), y)
    plain = GaussianClassifier(covariance=kind).fit(X, Y)
    assert_allclose(model.means_, plain.means_, atol=1e-7)
    assert_allclose(model.covariances_, plain.covariances_, atol=1e-7)
    assert_allclose(model.priors_, np.bincount(y) / 64, rtol=1e-14)
    assert_allclose(model.predict_proba(nothing), [model.priors_] * 4, rtol=1e-13)
    assert_allclose(model.score_samples(nothing), 0.0, atol=1e-13)


def test_unbiased_covariances_are_wider_by_the_lost_degrees_of_freedom():
    ml = GaussianClassifier(covariance=[[0, 2]]).fit(GAPS, Y)
    unbiased = GaussianClassifier(covariance=[[0, 2]], estimate="unbiased").fit(GAPS, Y)
    wide = [40 / 38, 20 / 19, 40 / 38]
    for k in range(3):
        assert_allclose(unbiased.covariances_[k], ml.covariances_[k] * wide[k], rtol=1e-7)
    assert_allclose(unbiased.log_likelihood_, likelihood_of(unbiased, GAPS, one_hot(Y)), rtol=1e-11)


def test_shrinkage_shrinks_the_correlations_of_the_fixed_point():
    assert GaussianClassifier(shrinkage="auto").fit(GAPS, Y).converged_
    total = GaussianClassifier(shrinkage=1.0).fit(GAPS, Y)
    scale = np.sqrt(np.diagonal(total.covariances_))
    assert_allclose(total.covariances_ / scale / scale[:, None], np.eye(3), atol=1e-12)
    assert_allclose(total.means_[0], np.nanmean(GAPS[Y == 0], axis=0), rtol=1e-7)


@pytest.mark.parametrize("kind", ["diagonal", "isotropic"])
def test_independent_columns_need_no_iteration(kind):
    model = GaussianClassifier(covariance=kind).fit(GAPS, Y)
    means = np.array([np.nanmean(GAPS[k == Y], axis=0) for k in range(3)])
    assert_allclose(model.means_, means, rtol=1e-12)
    squares = np.array([np.nansum((GAPS[k == Y] - means[k]) ** 2, axis=0) for k in range(3)])
    count = np.array([(~np.isnan(GAPS[k == Y])).sum(axis=0) for k in range(3)])
    found = np.diagonal(np.broadcast_to(model.covariances_, (3, 3, 3)), 0, 1, 2)
    right = squares / count if kind == "diagonal" else squares.sum() / count.sum()
    assert_allclose(found, np.broadcast_to(right, (3, 3)), rtol=1e-12)
    assert_allclose(model.log_likelihood_, likelihood_of(model, GAPS, one_hot(Y)), rtol=1e-12)
    assert not hasattr(model, "n_iter_")


def test_a_constant_column_is_left_out_of_the_iteration():
    wide = np.column_stack([GAPS, np.full(60, 3.7)])
    wide[5, 3] = np.nan
    with pytest.warns(SingularCovarianceWarning, match="column 3"):
        model = GaussianClassifier().fit(wide, Y)
    plain = GaussianClassifier().fit(GAPS, Y)
    assert_allclose(model.predict_proba(wide), plain.predict_proba(GAPS), atol=1e-9)
    assert_allclose(model.log_likelihood_, plain.log_likelihood_, rtol=1e-9)
    assert model.n_iter_ == plain.n_iter_


def test_dependent_columns_with_gaps_are_a_named_error():
    wide = np.column_stack([GAPS, X[:, 0]])
    with pytest.raises(SingularCovarianceError, match="became singular") as caught:
        GaussianClassifier().fit(wide, Y)
    assert "shrinkage='auto'" in caught.value.remedy
    assert GaussianClassifier(shrinkage="auto").fit(wide, Y).converged_


def test_a_column_without_entries_in_a_class_is_an_error_that_names_both():
    gone = X.copy()
    gone[Y == 1, 2] = np.nan
    for kind in ("shared", "diagonal"):
        with pytest.raises(MissingValueError, match="Class 1 has no entry in column 2"):
            GaussianClassifier(covariance=kind).fit(gone, Y)


@pytest.mark.parametrize("kind", ["diagonal", "isotropic"])
def test_rows_with_gaps_are_added_exactly_to_independent_columns(kind):
    model = GaussianClassifier(covariance=kind)
    for part in np.array_split(np.arange(60), 3):
        model.partial_fit(GAPS[part], Y[part], classes=[0, 1, 2])
    expected = GaussianClassifier(covariance=kind).fit(GAPS, Y)
    assert_allclose(model.predict_proba(GAPS), expected.predict_proba(GAPS), rtol=1e-11)


def test_rows_with_gaps_cannot_be_added_to_joint_covariances():
    model = GaussianClassifier().fit(GAPS, Y)
    with pytest.raises(AttributeError, match="expectation-maximisation"):
        _ = model.statistics_
    with pytest.raises(StatisticsError, match="fitted by expectation-maximisation"):
        model.partial_fit(X, Y)
    model.fit(X, Y)
    before = model.predict_proba(X)
    with pytest.raises(StatisticsError, match="missing entries cannot be added"):
        model.partial_fit(GAPS, Y)
    assert_array_equal(model.predict_proba(X), before)
    assert not hasattr(model, "n_iter_")
    assert not hasattr(model, "log_likelihood_trace_")
    assert_array_equal(model.statistics_.count, [20, 20, 20])
