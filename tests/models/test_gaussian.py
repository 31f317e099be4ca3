"""Gaussian classes: the numbers, against mpmath at 50 digits and scikit-learn."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracle import Gaussians, correlated_rows, doubles, shares
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.naive_bayes import GaussianNB

from posteriori import GaussianClassifier
from posteriori.errors import NotLinearError, ParameterError

X, Y = correlated_rows(36, 3, 3, seed=3)
NAMES = np.array(["ant", "bee", "cat"])[Y]
TWO = Y < 2
KINDS = ["shared", "full", "diagonal", "isotropic", [["ant", "cat"]]]
NUMBERED = {"ant": 0, "bee": 1, "cat": 2}


def right(kind, member=None, **settings):
    member = shares(NAMES, list(NUMBERED)) if member is None else member
    if not isinstance(kind, str):
        kind = [[0, 2], [1]]
    return Gaussians(X, member, kind, **settings)


def holed(X):
    """A copy with every pattern of missing entries in turn."""
    X = X.copy()
    for i in range(len(X)):
        X[i, [j for j in range(3) if i % 8 >> j & 1]] = np.nan
    return X


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("estimate", ["ml", "unbiased"])
def test_parameters_and_posteriors_are_those_of_fifty_digits(kind, estimate):
    model = GaussianClassifier(covariance=kind, estimate=estimate).fit(X, NAMES)
    truth = right(kind, unbiased=estimate == "unbiased")
    covariances = np.broadcast_to(model.covariances_, (3, 3, 3))
    assert_allclose(model.means_, doubles(truth.means), rtol=1e-13)
    assert_allclose(covariances, doubles(truth.covariances), rtol=1e-12, atol=1e-15)
    assert_allclose(model.priors_, doubles(truth.priors), rtol=1e-15)
    assert_allclose(model.predict_proba(X), doubles(truth.posteriors(X)), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_log_posteriors_keep_their_digits_far_out(kind):
    model = GaussianClassifier(covariance=kind).fit(X, NAMES)
    far, truth = X * 40, right(kind)
    expected = truth.log_joint(far) - truth.log_density(far)[:, None]
    assert_allclose(model.predict_log_proba(far), doubles(expected), rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("estimate", ["ml", "unbiased"])
def test_the_log_likelihood_is_the_sum_over_rows_and_labels(kind, estimate):
    model = GaussianClassifier(covariance=kind, estimate=estimate).fit(X, NAMES)
    joint = right(kind, unbiased=estimate == "unbiased").log_joint(X)
    assert_allclose(model.log_likelihood_, doubles(joint[np.arange(36), Y].sum()), rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_the_score_of_a_row_is_its_log_density(kind):
    model = GaussianClassifier(covariance=kind).fit(X, NAMES)
    assert_allclose(model.score_samples(X), doubles(right(kind).log_density(X)), rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_missing_entries_are_integrated_out_in_prediction(kind):
    model, truth, rows = GaussianClassifier(covariance=kind).fit(X, NAMES), right(kind), holed(X)
    posteriors = doubles(truth.posteriors(rows))
    assert_allclose(model.predict_proba(rows), posteriors, rtol=1e-11, atol=1e-13)
    assert_array_equal(model.predict(rows), np.unique(NAMES)[posteriors.argmax(axis=1)])
    scores = doubles(truth.log_density(rows))
    assert_allclose(model.score_samples(rows), scores, rtol=1e-11, atol=1e-12)
    assert_allclose(model.predict_proba(rows[7:8]), model.priors_[None], rtol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_and_soft_labels_count_as_shares_of_rows(kind):
    random = np.random.default_rng(1)
    weight, soft = random.uniform(0.2, 2, size=36), random.dirichlet(np.ones(3), size=36)
    weighted = GaussianClassifier(covariance=kind).fit(X, NAMES, sample_weight=weight)
    truth = right(kind, shares(NAMES, list(NUMBERED), weight))
    assert_allclose(weighted.predict_proba(X), doubles(truth.posteriors(X)), rtol=1e-10)
    both = GaussianClassifier(covariance=kind)
    both.fit(X, soft, sample_weight=weight, classes=["ant", "bee", "cat"])
    truth = right(kind, soft * weight[:, None])
    assert_allclose(both.predict_proba(X), doubles(truth.posteriors(X)), rtol=1e-10)


DATA = {"wine": load_wine(return_X_y=True), "cancer": load_breast_cancer(return_X_y=True)}


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("solver", ["svd", "lsqr", "eigen"])
def test_shared_is_linear_discriminant_analysis(data, solver):
    X, y = DATA[data]
    ours = GaussianClassifier().fit(X, y)
    theirs = LinearDiscriminantAnalysis(solver=solver).fit(X, y)
    # The eigen solver of scikit-learn loses digits on columns of unequal size.
    tolerance = 1e-9 if solver == "svd" else 1e-6
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=tolerance)
    assert_allclose(ours.means_, theirs.means_, rtol=1e-12)


@pytest.mark.parametrize("data", DATA)
def test_full_is_quadratic_discriminant_analysis(data):
    X, y = DATA[data]
    ours = GaussianClassifier(covariance="full").fit(X, y)
    # scikit-learn decides ranks on variances as they are, and would call the cancer data singular;
    # an invertible linear map of the columns changes no probability.
    Z = np.linalg.solve(np.linalg.cholesky(np.cov(X, rowvar=False)), (X - X.mean(axis=0)).T).T
    theirs = QuadraticDiscriminantAnalysis().fit(Z, y)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(Z), atol=1e-9)


@pytest.mark.parametrize("data", DATA)
def test_diagonal_is_gaussian_naive_bayes(data):
    X, y = DATA[data]
    ours = GaussianClassifier(covariance="diagonal").fit(X, y)
    theirs = GaussianNB(var_smoothing=0.0).fit(X, y)
    gap = ours.predict_log_proba(X) - theirs.predict_log_proba(X)
    assert abs(gap).max() < 1e-8
    assert_allclose(np.diagonal(ours.covariances_, 0, 1, 2), theirs.var_, rtol=1e-9)


@pytest.mark.parametrize("kind", ["shared", "isotropic"])
@pytest.mark.parametrize("rows", [TWO, Y < 3], ids=["two", "three"])
def test_coefficients_are_the_log_density_ratio(kind, rows):
    X_, y = X[rows], NAMES[rows]
    model = GaussianClassifier(covariance=kind).fit(X_, y)
    joint = doubles(Gaussians(X_, shares(y, np.unique(y)), kind).log_joint(X))
    activation = X @ model.coef_.T + model.intercept_
    if len(np.unique(y)) == 2:
        assert_allclose(activation[:, 0], joint[:, 1] - joint[:, 0], rtol=1e-10, atol=1e-12)
        assert_allclose(model.decision_function(X), activation[:, 0], rtol=1e-12, atol=1e-12)
        return
    centred = joint - joint.mean(axis=1, keepdims=True)
    assert_allclose(activation, centred, rtol=1e-10, atol=1e-11)
    assert_allclose(model.coef_.sum(axis=0), 0.0, atol=1e-13)
    assert_allclose(model.intercept_.sum(), 0.0, atol=1e-13)


@pytest.mark.parametrize("kind", ["full", "diagonal", [["ant", "cat"]]])
def test_the_quadratic_form_is_the_log_joint_density(kind):
    A, b, c = GaussianClassifier(covariance=kind).fit(X, NAMES).quadratic_
    found = np.einsum("ni,kij,nj->nk", X, A, X) + X @ b.T + c
    assert_allclose(found, doubles(right(kind).log_joint(X)), rtol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_a_linear_model_has_no_quadratic_form_and_the_reverse(kind):
    model = GaussianClassifier(covariance=kind).fit(X, NAMES)
    lacking = ["quadratic_"] if kind in ("shared", "isotropic") else ["coef_", "intercept_"]
    for name in lacking:
        with pytest.raises(NotLinearError):
            getattr(model, name)


def test_one_group_of_all_classes_is_shared_and_groups_of_one_are_full():
    for kind, same in (([["cat", "bee", "ant"]], "shared"), ([["ant"], ["bee"]], "full")):
        ours = GaussianClassifier(covariance=kind).fit(X, NAMES).predict_proba(X)
        expected = GaussianClassifier(covariance=same).fit(X, NAMES).predict_proba(X)
        assert_allclose(ours, expected, rtol=1e-11)


def test_inside_a_group_the_boundary_is_a_plane():
    model = GaussianClassifier(covariance=[["ant", "cat"]]).fit(X, NAMES)
    on_plane = model.hyperplane("ant", "cat").project(X)
    logs = model.predict_log_proba(on_plane)
    assert_allclose(logs[:, 0], logs[:, 2], rtol=1e-10, atol=1e-10)
    off = on_plane + 0.5 * model.hyperplane("ant", "cat").unit_normal
    assert (np.diff(model.predict_log_proba(off)[:, [2, 0]]) > 0).all()


def test_between_groups_the_boundary_is_quadratic():
    model = GaussianClassifier(covariance=[["ant", "cat"]]).fit(X, NAMES)
    with pytest.raises(NotLinearError):
        model.hyperplane("ant", "bee")
    A, _, _ = model.quadratic_
    assert abs(A[0] - A[1]).max() > 0.01
    assert_array_equal(A[0], A[2])


@pytest.mark.parametrize("d", [1, 3, 7])
def test_two_shared_classes_have_the_parameters_of_the_book(d):
    rows, y = correlated_rows(40, d, 2)
    assert GaussianClassifier().fit(rows, y).n_parameters_ == d * (d + 5) / 2 + 1


@pytest.mark.parametrize(
    ("kind", "count"),
    list(zip(KINDS, [9 + 6 + 2, 9 + 18 + 2, 9 + 9 + 2, 9 + 1 + 2, 9 + 12 + 2], strict=True)),
)
def test_parameters_are_counted(kind, count):
    assert GaussianClassifier(covariance=kind).fit(X, NAMES).n_parameters_ == count


@pytest.mark.parametrize("kind", KINDS)
def test_other_priors_need_no_other_fit(kind):
    priors = {"cat": 0.7, "ant": 0.1, "bee": 0.2}
    given = GaussianClassifier(covariance=kind, priors=priors).fit(X, NAMES)
    changed = GaussianClassifier(covariance=kind).fit(X, NAMES).with_priors([0.1, 0.2, 0.7])
    truth = right(kind, priors=[0.1, 0.2, 0.7])
    expected = doubles(truth.posteriors(holed(X)))
    assert_allclose(given.predict_proba(holed(X)), expected, rtol=1e-11)
    assert_array_equal(changed.predict_proba(holed(X)), given.predict_proba(holed(X)))
    assert_array_equal(changed.score_samples(X), given.score_samples(X))


def test_the_model_whose_priors_were_changed_stays_as_it_was():
    model = GaussianClassifier().fit(X, NAMES)
    before = model.predict_proba(X)
    model.with_priors([0.9, 0.05, 0.05])
    assert_array_equal(model.predict_proba(X), before)


def test_a_prior_of_zero_is_a_probability_of_exactly_zero():
    for kind in KINDS:
        model = GaussianClassifier(covariance=kind).fit(X, NAMES).with_priors([0.5, 0.0, 0.5])
        found = model.predict_proba(holed(X))
        assert_array_equal(found[:, 1], 0.0)
        assert_allclose(found.sum(axis=1), 1.0, rtol=1e-14)


@pytest.mark.parametrize("bad", [[0.5, 0.5], {"ant": 1.0}, [0.5, 0.6, 0.1], "equal"])
def test_bad_priors_are_an_error_in_fitting_and_after(bad):
    with pytest.raises(ParameterError, match="priors"):
        GaussianClassifier(priors=bad).fit(X, NAMES)
    with pytest.raises(ParameterError, match="priors"):
        GaussianClassifier().fit(X, NAMES).with_priors(bad)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"covariance": "spherical"}, "covariance='spherical'"),
        ({"covariance": [["ant", "dog"]]}, "'dog', which is no class"),
        ({"covariance": [["ant"], ["ant", "bee"]]}, "twice"),
        ({"covariance": "diagonal", "shrinkage": 0.5}, "no correlations"),
        ({"shrinkage": 2.0}, "shrinkage"),
        ({"estimate": "map"}, "estimate='map'"),
        ({"covariance": 5}, "covariance"),
        ({"covariance": ["ant", "bee"]}, "list of lists of labels"),
    ],
)
def test_settings_that_cannot_be_honoured_are_an_error(settings, words):
    with pytest.raises(ParameterError, match=words):
        GaussianClassifier(**settings).fit(X, NAMES)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_drawn_from_a_model_bring_it_back(kind):
    model = GaussianClassifier(covariance=kind, priors=[0.2, 0.5, 0.3]).fit(X, NAMES)
    n = 30_000
    rows, y = model.sample(n, random_state=0)
    again = GaussianClassifier(covariance=kind).fit(rows, y)
    error = np.sqrt(model.priors_ * (1 - model.priors_) / n)
    assert (abs(again.priors_ - model.priors_) < 5 * error).all()
    sigma = np.broadcast_to(model.covariances_, (3, 3, 3))
    found = np.broadcast_to(again.covariances_, (3, 3, 3))
    for k in range(3):
        variance, count = np.diagonal(sigma[k]), n * model.priors_[k]
        assert (abs(again.means_[k] - model.means_[k]) < 5 * np.sqrt(variance / count)).all()
        error = np.sqrt((np.outer(variance, variance) + sigma[k] ** 2) / count)
        assert (abs(found[k] - sigma[k]) < 5 * error).all()


def test_the_same_random_state_draws_the_same_rows():
    model = GaussianClassifier(covariance="full").fit(X, NAMES)
    first, second, other = (model.sample(50, random_state=s) for s in (7, 7, 8))
    assert_array_equal(first[0], second[0])
    assert_array_equal(first[1], second[1])
    assert abs(first[0] - other[0]).max() > 0.1
    states = [model.sample(5, np.random.RandomState(3))[0] for _ in range(2)]
    assert_array_equal(*states)


def test_a_model_before_fit_says_so():
    for name in ("covariances_", "coef_", "n_parameters_", "quadratic_", "statistics_"):
        with pytest.raises(AttributeError):
            getattr(GaussianClassifier(), name)
