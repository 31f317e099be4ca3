"""Gaussian classes: the numbers against mpmath at 50 digits and scikit-learn; singular cases."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracle import Gaussians, correlated_rows, doubles, shares
from scipy import sparse
from sklearn.datasets import load_breast_cancer
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.naive_bayes import GaussianNB

from posteriori import (
    GaussianClassifier,
    NaiveBayes,
)
from posteriori.errors import (
    MissingValueError,
    NotLinearError,
    ParameterError,
    ShapeError,
    SingularCovarianceError,
    SingularCovarianceWarning,
    StatisticsError,
    WeightError,
)

X, Y = correlated_rows(36, 3, 3, seed=3)
NAMES = np.array(["ant", "bee", "cat"])[Y]
KINDS = ["shared", "full", "diagonal", "isotropic", [["ant", "cat"]]]
JOINT = ["shared", "full", [["ant", "cat"]]]
CLASSES = ["ant", "bee", "cat"]

of_any_kind = pytest.mark.parametrize("kind", KINDS)
with_correlations = pytest.mark.parametrize("kind", JOINT)


def exact_model(kind, member=None, **settings):
    member = shares(NAMES, CLASSES) if member is None else member
    return Gaussians(X, member, kind if isinstance(kind, str) else [[0, 2], [1]], **settings)


def with_gaps(X):
    """A copy with every pattern of missing entries in turn."""
    X = X.copy()
    for i in range(len(X)):
        X[i, [j for j in range(3) if i % 8 >> j & 1]] = np.nan
    return X


@of_any_kind
@pytest.mark.parametrize("case", ["ml", "unbiased", "weights and soft labels"])
def test_numbers_are_those_of_fifty_digits(kind, case):
    settings, y, weight, member = {}, NAMES, None, shares(NAMES, CLASSES)
    if case == "unbiased":
        settings = {"estimate": "unbiased"}
    if case == "weights and soft labels":
        random = np.random.default_rng(1)
        weight, y = random.uniform(0.2, 2, size=36), random.dirichlet(np.ones(3), size=36)
        member = y * weight[:, None]
    model = GaussianClassifier(covariance=kind, **settings)
    model.fit(X, y, sample_weight=weight, classes=CLASSES if y.ndim == 2 else None)
    exact = exact_model(kind, member, unbiased=case == "unbiased")
    covariances = np.broadcast_to(model.covariances_, (3, 3, 3))
    assert_allclose(model.means_, doubles(exact.means), rtol=1e-13)
    assert_allclose(covariances, doubles(exact.covariances), rtol=1e-12, atol=1e-15)
    assert_allclose(model.priors_, doubles(exact.priors), rtol=1e-15)
    some, gaps = X[::4], with_gaps(X)
    for rows in (some, gaps):
        posteriors, scores = doubles(exact.posteriors(rows)), doubles(exact.log_density(rows))
        assert_allclose(model.predict_proba(rows), posteriors, rtol=1e-11, atol=1e-13)
        assert_allclose(model.score_samples(rows), scores, rtol=1e-12, atol=1e-12)
    joint = (exact.log_joint(X) * member).sum()
    assert_allclose(model.log_likelihood_, doubles(joint), rtol=1e-12)
    far = some * 40
    expected = doubles(exact.log_joint(far) - exact.log_density(far)[:, None])
    assert_allclose(model.predict_log_proba(far), expected, rtol=1e-10, atol=1e-11)


@of_any_kind
def test_priors_can_be_given_or_changed(kind):
    rows, priors = with_gaps(X), {"cat": 0.7, "ant": 0.1, "bee": 0.2}
    given = GaussianClassifier(covariance=kind, priors=priors).fit(X, NAMES)
    other = GaussianClassifier(covariance=kind).fit(X, NAMES).with_priors([0.1, 0.2, 0.7])
    assert not hasattr(other, "log_likelihood_")
    assert_array_equal(other.predict_proba(rows), given.predict_proba(rows))
    posteriors = doubles(exact_model(kind, priors=[0.1, 0.2, 0.7]).posteriors(rows))
    assert_allclose(given.predict_proba(rows), posteriors, rtol=1e-11, atol=1e-13)


@of_any_kind
def test_weights_too_small_for_unbiased_covariances_are_an_error(kind):
    with pytest.raises(WeightError, match="leave nothing"):
        GaussianClassifier(covariance=kind, estimate="unbiased").fit(X, NAMES, np.full(36, 1 / 36))


def test_numbers_are_those_of_scikit_learn():
    rows, y = load_breast_cancer(return_X_y=True)
    ours = GaussianClassifier().fit(rows, y).predict_proba(rows)
    theirs = LinearDiscriminantAnalysis().fit(rows, y).predict_proba(rows)
    assert_allclose(ours, theirs, atol=1e-9)
    ours = GaussianClassifier(covariance="full").fit(rows, y).predict_proba(rows)
    # scikit-learn decides ranks on variances as they are, and would call the rows singular; an
    # invertible linear map of the columns changes no probability.
    Z = np.linalg.solve(np.linalg.cholesky(np.cov(rows, rowvar=False)), (rows - rows.mean(0)).T).T
    theirs = QuadraticDiscriminantAnalysis().fit(Z, y).predict_proba(Z)
    assert_allclose(ours, theirs, atol=1e-9)
    ours = GaussianClassifier(covariance="diagonal").fit(rows, y).predict_log_proba(rows)
    theirs = GaussianNB(var_smoothing=0.0).fit(rows, y).predict_log_proba(rows)
    assert_allclose(ours, theirs, atol=1e-8)


@pytest.mark.parametrize("kind", ["full", "diagonal", [["ant", "cat"]]])
def test_the_quadratic_form_is_the_log_joint_density(kind):
    model = GaussianClassifier(covariance=kind).fit(X, NAMES)
    A, b, c = model.quadratic_
    found = np.einsum("ni,kij,nj->nk", X, A, X) + X @ b.T + c
    assert_allclose(found, doubles(exact_model(kind).log_joint(X)), rtol=1e-10)
    with pytest.raises(NotLinearError, match="See quadratic_"):
        _ = model.coef_
    with pytest.raises(NotLinearError, match="See coef_"):
        _ = GaussianClassifier().fit(X, NAMES).quadratic_


@pytest.mark.parametrize(
    ("kind", "count"),
    list(zip(KINDS, [9 + 6 + 2, 9 + 18 + 2, 9 + 9 + 2, 9 + 1 + 2, 9 + 12 + 2], strict=True)),
)
def test_parameters_are_counted(kind, count):
    assert GaussianClassifier(covariance=kind).fit(X, NAMES).n_parameters_ == count
    rows, y = correlated_rows(40, 7, 2)
    assert GaussianClassifier().fit(rows, y).n_parameters_ == 7 * (7 + 5) / 2 + 1  # as in 001


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"covariance": "spherical"}, "covariance='spherical'"),
        ({"covariance": [["ant", "dog"]]}, "'dog', which is no class"),
        ({"covariance": [["ant"], ["ant", "bee"]]}, "twice"),
        ({"covariance": "diagonal", "shrinkage": 0.5}, "shrinkage is for correlations"),
        *[({"shrinkage": bad}, "shrinkage") for bad in (-0.1, 1.1, np.nan, "oas", True, [0.5])],
        ({"estimate": "map"}, "estimate='map'"),
        ({"covariance": 5}, "covariance"),
        ({"covariance": ["ant", "bee"]}, "list of lists of labels"),
    ],
)
def test_wrong_settings_are_an_error(settings, words):
    with pytest.raises(ParameterError, match=words):
        GaussianClassifier(**settings).fit(X, NAMES)


@pytest.mark.parametrize("kind", [GaussianClassifier, NaiveBayes])
def test_priors_are_a_copy_that_cannot_be_written_to(kind):
    given = np.array([0.5, 0.25, 0.25])
    model = kind(priors=given).fit(X, NAMES)
    given[0] = 7.0
    assert model.priors_[0] == 0.5
    with pytest.raises(ValueError, match="read-only"):
        model.priors_[0] = 1.0


def test_many_sparse_columns_need_no_matrices():
    wide = sparse.random_array((60, 100_000), density=0.001, random_state=0, format="csr")
    model = GaussianClassifier(covariance="isotropic").fit(wide, np.arange(60) % 2)
    assert np.isfinite(model.predict_proba(wide)).all()
    assert len(model.tidy()["sd"]) == 200_000
    with pytest.raises(ShapeError, match="100,000 columns do not fit"):
        _ = model.covariances_


# Batches and statistics.


@of_any_kind
def test_other_settings_can_be_tried_on_the_same_sums(kind):
    sums = GaussianClassifier(covariance="full").fit(X, NAMES).statistics_
    settings = {"covariance": kind, "estimate": "unbiased", "priors": [0.5, 0.25, 0.25]}
    found = GaussianClassifier.from_statistics(sums, **settings)
    whole = GaussianClassifier(**settings).fit(X, NAMES)
    for name in ("means_", "covariances_", "priors_", "log_likelihood_"):
        assert_allclose(getattr(found, name), getattr(whole, name), rtol=1e-10, atol=1e-10)


def test_a_class_without_rows_cannot_have_a_prior():
    model = GaussianClassifier().partial_fit(X[Y < 2], NAMES[Y < 2], classes=CLASSES)
    assert_allclose(model.predict_proba(X)[:, 2], 0.0)
    with pytest.raises(ParameterError, match="Class 'cat' has no rows"):
        model.with_priors([0.2, 0.3, 0.5])


# Singular covariances and shrinkage.

REDUNDANT = {
    "constant": np.full((36, 1), 5.1),
    "duplicate": X[:, 1:2],
    "combination": X[:, :1] - 3 * X[:, 2:] + 1,
    "several": np.column_stack([X[:, 0], np.full(36, -2.0), X[:, 1] + X[:, 2], 1e7 * X[:, 1]]),
}


def fit_with_warnings(X, y, **settings):
    with pytest.warns(SingularCovarianceWarning) as caught:
        model = GaussianClassifier(**settings).fit(X, y)
    return model, [str(warning.message) for warning in caught]


@with_correlations
@pytest.mark.parametrize("name", REDUNDANT)
def test_redundant_columns_change_no_probability(kind, name):
    wide = np.column_stack([X, REDUNDANT[name]])
    model, messages = fit_with_warnings(wide, NAMES, covariance=kind)
    plain = GaussianClassifier(covariance=kind).fit(X, NAMES)
    assert_allclose(model.predict_proba(wide), plain.predict_proba(X), rtol=1e-9, atol=1e-9)
    assert model.n_parameters_ == plain.n_parameters_
    assert len(messages) == 1
    assert "left out" in messages[0]
    found = model.covariances_[..., :3, :3]
    assert_allclose(found, plain.covariances_, rtol=1e-9, atol=1e-12)
    gaps = with_gaps(X)
    found = model.predict_proba(np.column_stack([gaps, wide[:, 3:]]))
    assert_allclose(found, plain.predict_proba(gaps), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "named"),
    [("constant", "extra"), ("duplicate", "b|extra"), ("combination", "a|c|extra")],
)
def test_strict_shrinkage_is_an_error_that_names_columns(name, named):
    wide = pd.DataFrame(np.column_stack([X, REDUNDANT[name]]), columns=["a", "b", "c", "extra"])
    with pytest.raises(SingularCovarianceError, match=f"column '({named})'") as caught:
        GaussianClassifier(shrinkage=0.0).fit(wide, NAMES)
    assert "shrinkage='auto'" in caught.value.remedy


@with_correlations
@pytest.mark.parametrize("amount", [0.0, 0.1, 1.0])
def test_a_number_interpolates_between_correlations_and_none(kind, amount):
    plain = GaussianClassifier(covariance=kind).fit(X, NAMES)
    shrunk = GaussianClassifier(covariance=kind, shrinkage=amount).fit(X, NAMES)
    expected = plain.covariances_ * ((1 - amount) + amount * np.eye(3))
    assert_allclose(shrunk.covariances_, expected, rtol=1e-12)
    assert_array_equal(shrunk.shrinkage_, amount)


@pytest.mark.parametrize("kind", ["shared", "full", [[0, 2]]])
def test_more_columns_than_rows_are_shrunk_with_a_warning(kind):
    random = np.random.default_rng(3)
    rows, y = random.standard_normal((9, 20)), np.arange(9) % 3
    rows[:, 0] += 5 * y
    model, messages = fit_with_warnings(rows, y, covariance=kind)
    assert np.isfinite(model.predict_proba(random.standard_normal((5, 20)))).all()
    assert all("shrunk by" in message for message in messages)
    assert (model.shrinkage_ > 0).all()
    assert_array_equal(model.predict(rows), y)


def test_a_class_of_one_row_is_warned_of_unless_it_shares_its_covariance():
    few = np.append(np.flatnonzero(Y < 2), np.flatnonzero(Y == 2)[0])
    shared = GaussianClassifier().fit(X[few], NAMES[few])
    two = GaussianClassifier().fit(X[few[:-1]], NAMES[few[:-1]])
    assert_allclose(shared.means_[2], X[few[-1]], rtol=1e-15)
    assert_allclose(shared.covariances_, two.covariances_ * 24 / 25, rtol=1e-12)
    model, messages = fit_with_warnings(X[few], NAMES[few], covariance="full")
    assert "class 'cat' (1 rows)" in messages[0]
    assert "The variance of columns 0, 1, 2, which is zero there, was replaced by 1" in messages[0]
    assert_array_equal(model.shrinkage_, [0.0, 0.0, 1.0])
    assert_allclose(model.covariances_[2], np.diag(X[few].var(axis=0)), rtol=1e-12)
    with pytest.raises(SingularCovarianceError, match="class 'cat'"):
        GaussianClassifier(covariance="full", shrinkage=0.0).fit(X[few], NAMES[few])


def test_constant_columns_under_diagonal_covariance():
    rows = np.column_stack([X, np.full(36, 0.3)])
    model, messages = fit_with_warnings(rows, NAMES, covariance="diagonal")
    plain = GaussianClassifier(covariance="diagonal").fit(X, NAMES)
    assert "column 3 never change" in messages[0]
    assert_allclose(model.score_samples(rows), plain.score_samples(X), rtol=1e-12)
    assert model.n_parameters_ == plain.n_parameters_


# Missing entries: expectation-maximisation.


X_EM, Y_EM = correlated_rows(60, 3, 3, seed=4)
OF_GROUPS = ["shared", "full", [[0, 2]]]
GROUPS = {"shared": [0, 0, 0], "full": [0, 1, 2]}


def with_random_gaps(X, share=0.25, seed=0):
    X = X.copy()
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return X


GAPS = with_random_gaps(X_EM)


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


@pytest.mark.parametrize("kind", OF_GROUPS)
def test_the_likelihood_rises_at_every_step_to_a_stationary_point(kind):
    model = GaussianClassifier(covariance=kind).fit(GAPS, Y_EM)
    trace = model.log_likelihood_trace_
    assert model.converged_
    assert model.n_iter_ == len(trace) > 3
    assert (np.diff(trace) >= -1e-10 * abs(trace[-1])).all()
    assert_allclose(trace[-1], model.log_likelihood_, rtol=1e-12)
    assert_allclose(model.log_likelihood_, likelihood_of(model, GAPS, one_hot(Y_EM)), rtol=1e-11)
    assert abs(gradient(kind, GAPS, one_hot(Y_EM), model)).max() < 1e-5


def gradient(kind, X, member, model):
    """Derivatives of the likelihood in means and covariances, in units of standard deviations."""
    groups = np.array(GROUPS[kind]) if isinstance(kind, str) else np.array([0, 1, 0])
    covariances = np.broadcast_to(model.covariances_, (3, 3, 3))
    first = [list(groups).index(g) for g in range(groups.max() + 1)]
    start = np.concatenate([model.means_.ravel(), covariances[first].ravel()])

    def value(theta):
        sigma = theta[9:].reshape(-1, 3, 3)
        sigma = (sigma + sigma.swapaxes(1, 2))[groups] / 2
        return observed_log_likelihood(X, member, theta[:9].reshape(3, 3), sigma, model.priors_)

    sd = np.sqrt(np.diagonal(covariances[0]))
    units = [*np.tile(sd, 3), *np.tile(np.outer(sd, sd).ravel(), len(first))]
    steps = 1e-5 * np.diag(units)
    return np.array([(value(start + h) - value(start - h)) / 2e-5 for h in steps])


def test_unbiased_covariances_are_wider_by_the_lost_degrees_of_freedom():
    ml = GaussianClassifier(covariance=[[0, 2]]).fit(GAPS, Y_EM)
    unbiased = GaussianClassifier(covariance=[[0, 2]], estimate="unbiased").fit(GAPS, Y_EM)
    wide = [40 / 38, 20 / 19, 40 / 38]
    for k in range(3):
        assert_allclose(unbiased.covariances_[k], ml.covariances_[k] * wide[k], rtol=1e-7)
    assert_allclose(
        unbiased.log_likelihood_, likelihood_of(unbiased, GAPS, one_hot(Y_EM)), rtol=1e-11
    )


@pytest.mark.parametrize("kind", ["diagonal", "isotropic"])
def test_independent_columns_need_no_iteration(kind):
    model = GaussianClassifier(covariance=kind).fit(GAPS, Y_EM)
    means = np.array([np.nanmean(GAPS[k == Y_EM], axis=0) for k in range(3)])
    assert_allclose(model.means_, means, rtol=1e-12)
    squares = np.array([np.nansum((GAPS[k == Y_EM] - means[k]) ** 2, axis=0) for k in range(3)])
    count = np.array([(~np.isnan(GAPS[k == Y_EM])).sum(axis=0) for k in range(3)])
    found = np.diagonal(np.broadcast_to(model.covariances_, (3, 3, 3)), 0, 1, 2)
    right = squares / count if kind == "diagonal" else squares.sum() / count.sum()
    assert_allclose(found, np.broadcast_to(right, (3, 3)), rtol=1e-12)
    assert_allclose(model.log_likelihood_, likelihood_of(model, GAPS, one_hot(Y_EM)), rtol=1e-12)
    assert not hasattr(model, "n_iter_")


def test_dependent_columns_with_gaps_are_a_named_error():
    wide = np.column_stack([GAPS, X_EM[:, 0]])
    with pytest.raises(SingularCovarianceError, match="became singular") as caught:
        GaussianClassifier().fit(wide, Y_EM)
    assert "shrinkage='auto'" in caught.value.remedy
    assert GaussianClassifier(shrinkage="auto").fit(wide, Y_EM).converged_


def test_a_column_without_entries_in_a_class_is_an_error_that_names_both():
    gone = X_EM.copy()
    gone[Y_EM == 1, 2] = np.nan
    for kind in ("shared", "diagonal"):
        with pytest.raises(MissingValueError, match="Class 1 has no entry in column 2"):
            GaussianClassifier(covariance=kind).fit(gone, Y_EM)


def test_rows_with_gaps_cannot_be_added_to_joint_covariances():
    model = GaussianClassifier().fit(GAPS, Y_EM)
    with pytest.raises(AttributeError, match="expectation-maximisation"):
        _ = model.statistics_
    with pytest.raises(StatisticsError, match="fitted by expectation-maximisation"):
        model.partial_fit(X_EM, Y_EM)
    model.fit(X_EM, Y_EM)
    with pytest.raises(StatisticsError, match="missing entries cannot be added"):
        model.partial_fit(GAPS, Y_EM)
    assert not hasattr(model, "n_iter_")
    assert_array_equal(model.statistics_.count, [20, 20, 20])
