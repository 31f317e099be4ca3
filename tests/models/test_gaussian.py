"""Gaussian classes: the numbers against mpmath at 50 digits and scikit-learn; singular cases."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracle import Gaussians, correlated_rows, doubles, shares
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB

from posteriori import GaussianClassifier
from posteriori.errors import (
    NotLinearError,
    ParameterError,
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
@pytest.mark.parametrize("estimate", ["ml", "unbiased"])
def test_numbers_are_those_of_fifty_digits(kind, estimate):
    model = GaussianClassifier(covariance=kind, estimate=estimate).fit(X, NAMES)
    exact = exact_model(kind, unbiased=estimate == "unbiased")
    covariances = np.broadcast_to(model.covariances_, (3, 3, 3))
    assert_allclose(model.means_, doubles(exact.means), rtol=1e-13)
    assert_allclose(covariances, doubles(exact.covariances), rtol=1e-12, atol=1e-15)
    assert_allclose(model.priors_, doubles(exact.priors), rtol=1e-15)
    assert_allclose(model.predict_proba(X), doubles(exact.posteriors(X)), rtol=1e-11, atol=1e-13)
    assert_allclose(model.score_samples(X), doubles(exact.log_density(X)), rtol=1e-12)
    joint = exact.log_joint(X)
    assert_allclose(model.log_likelihood_, doubles(joint[np.arange(36), Y].sum()), rtol=1e-12)
    far = X * 40
    expected = doubles(exact.log_joint(far) - exact.log_density(far)[:, None])
    assert_allclose(model.predict_log_proba(far), expected, rtol=1e-10, atol=1e-11)


@of_any_kind
def test_missing_entries_are_integrated_out_in_prediction(kind):
    rows, priors = with_gaps(X), {"cat": 0.7, "ant": 0.1, "bee": 0.2}
    plain = GaussianClassifier(covariance=kind).fit(X, NAMES)
    given = GaussianClassifier(covariance=kind, priors=priors).fit(X, NAMES)
    other = plain.with_priors([0.1, 0.2, 0.7])
    assert_array_equal(other.predict_proba(rows), given.predict_proba(rows))
    for model, exact in (
        (plain, exact_model(kind)),
        (given, exact_model(kind, priors=[0.1, 0.2, 0.7])),
    ):
        posteriors = doubles(exact.posteriors(rows))
        assert_allclose(model.predict_proba(rows), posteriors, rtol=1e-11, atol=1e-13)
        scores = doubles(exact.log_density(rows))
        assert_allclose(model.score_samples(rows), scores, rtol=1e-11, atol=1e-12)


@of_any_kind
def test_weights_and_soft_labels_count_as_shares_of_rows(kind):
    random = np.random.default_rng(1)
    weight, soft = random.uniform(0.2, 2, size=36), random.dirichlet(np.ones(3), size=36)
    model = GaussianClassifier(covariance=kind)
    model.fit(X, soft, sample_weight=weight, classes=CLASSES)
    exact = exact_model(kind, soft * weight[:, None])
    assert_allclose(model.predict_proba(X), doubles(exact.posteriors(X)), rtol=1e-10)
    with pytest.raises(WeightError, match="leave nothing"):
        GaussianClassifier(covariance=kind, estimate="unbiased").fit(X, NAMES, np.full(36, 1 / 36))


DATA = {"wine": load_wine(return_X_y=True), "cancer": load_breast_cancer(return_X_y=True)}
of_data = pytest.mark.parametrize("data", DATA)


@of_data
def test_shared_is_linear_discriminant_analysis(data):
    X, y = DATA[data]
    ours, theirs = GaussianClassifier().fit(X, y), LinearDiscriminantAnalysis().fit(X, y)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-9)
    assert_allclose(ours.means_, theirs.means_, rtol=1e-12)


@of_data
def test_full_is_quadratic_discriminant_analysis(data):
    X, y = DATA[data]
    ours = GaussianClassifier(covariance="full").fit(X, y)
    # scikit-learn decides ranks on variances as they are, and would call the cancer data singular;
    # an invertible linear map of the columns changes no probability.
    Z = np.linalg.solve(np.linalg.cholesky(np.cov(X, rowvar=False)), (X - X.mean(axis=0)).T).T
    theirs = QuadraticDiscriminantAnalysis().fit(Z, y)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(Z), atol=1e-9)


@of_data
def test_diagonal_is_gaussian_naive_bayes(data):
    X, y = DATA[data]
    ours = GaussianClassifier(covariance="diagonal").fit(X, y)
    theirs = GaussianNB(var_smoothing=0.0).fit(X, y)
    assert abs(ours.predict_log_proba(X) - theirs.predict_log_proba(X)).max() < 1e-8
    assert_allclose(np.diagonal(ours.covariances_, 0, 1, 2), theirs.var_, rtol=1e-9)


@pytest.mark.parametrize("kind", ["shared", "isotropic"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_coefficients_are_the_log_density_ratio(kind, n_classes):
    rows = n_classes > Y
    model = GaussianClassifier(covariance=kind).fit(X[rows], NAMES[rows])
    member = shares(NAMES[rows], CLASSES[:n_classes])
    joint = doubles(Gaussians(X[rows], member, kind).log_joint(X))
    activation = X @ model.coef_.T + model.intercept_
    expected = joint[:, 1:] - joint[:, :1] if n_classes == 2 else joint - joint.mean(1)[:, None]
    assert_allclose(activation, expected, rtol=1e-10, atol=1e-11)
    with pytest.raises(NotLinearError):
        _ = model.quadratic_


@pytest.mark.parametrize("kind", ["full", "diagonal", [["ant", "cat"]]])
def test_the_quadratic_form_is_the_log_joint_density(kind):
    model = GaussianClassifier(covariance=kind).fit(X, NAMES)
    A, b, c = model.quadratic_
    found = np.einsum("ni,kij,nj->nk", X, A, X) + X @ b.T + c
    assert_allclose(found, doubles(exact_model(kind).log_joint(X)), rtol=1e-10)
    with pytest.raises(NotLinearError):
        _ = model.coef_


def test_one_group_of_all_classes_is_shared_and_groups_of_one_are_full():
    for kind, same in (([["cat", "bee", "ant"]], "shared"), ([["ant"], ["bee"]], "full")):
        found = GaussianClassifier(covariance=kind).fit(X, NAMES).predict_proba(X)
        expected = GaussianClassifier(covariance=same).fit(X, NAMES).predict_proba(X)
        assert_allclose(found, expected, rtol=1e-11)


def test_the_boundary_is_a_plane_inside_a_group_and_quadratic_between_groups():
    model = GaussianClassifier(covariance=[["ant", "cat"]]).fit(X, NAMES)
    plane = model.hyperplane("ant", "cat")
    logs = model.predict_log_proba(plane.project(X))
    assert_allclose(logs[:, 0], logs[:, 2], rtol=1e-10, atol=1e-10)
    off = model.predict_log_proba(plane.project(X) + 0.5 * plane.unit_normal)
    assert (off[:, 0] > off[:, 2]).all()
    with pytest.raises(NotLinearError):
        model.hyperplane("ant", "bee")


@pytest.mark.parametrize(
    ("kind", "count"),
    list(zip(KINDS, [9 + 6 + 2, 9 + 18 + 2, 9 + 9 + 2, 9 + 1 + 2, 9 + 12 + 2], strict=True)),
)
def test_parameters_are_counted(kind, count):
    assert GaussianClassifier(covariance=kind).fit(X, NAMES).n_parameters_ == count
    rows, y = correlated_rows(40, 7, 2)
    assert GaussianClassifier().fit(rows, y).n_parameters_ == 7 * (7 + 5) / 2 + 1  # as in 001


def test_priors_are_a_copy_and_a_new_likelihood_is_not_claimed():
    priors = np.array([0.5, 0.25, 0.25])
    given = GaussianClassifier(priors=priors).fit(X, NAMES)
    changed = GaussianClassifier().fit(X, NAMES).with_priors(priors)
    priors[:] = [0.0, 0.0, 1.0]
    for model in (given, changed):
        assert_array_equal(model.priors_, [0.5, 0.25, 0.25])
        for name in ("priors_", "means_", "coef_", "intercept_"):
            with pytest.raises(ValueError, match="read-only"):
                getattr(model, name)[:] = 0
    assert hasattr(given, "log_likelihood_")
    assert not hasattr(changed, "log_likelihood_")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"covariance": "spherical"}, "covariance='spherical'"),
        ({"covariance": [["ant", "dog"]]}, "'dog', which is no class"),
        ({"covariance": [["ant"], ["ant", "bee"]]}, "twice"),
        ({"covariance": "diagonal", "shrinkage": 0.5}, "shrinkage is for correlations"),
        ({"shrinkage": 2.0}, "shrinkage"),
        ({"estimate": "map"}, "estimate='map'"),
        ({"covariance": 5}, "covariance"),
        ({"covariance": ["ant", "bee"]}, "list of lists of labels"),
    ],
)
def test_wrong_settings_are_an_error(settings, words):
    with pytest.raises(ParameterError, match=words):
        GaussianClassifier(**settings).fit(X, NAMES)


@of_any_kind
def test_samples_have_the_parameters_of_the_model(kind):
    model = GaussianClassifier(covariance=kind, priors=[0.2, 0.5, 0.3]).fit(X, NAMES)
    n = 30_000
    again = GaussianClassifier(covariance=kind).fit(*model.sample(n, np.random.RandomState(3)))
    error = np.sqrt(model.priors_ * (1 - model.priors_) / n)
    assert (abs(again.priors_ - model.priors_) < 5 * error).all()
    sigma = np.broadcast_to(model.covariances_, (3, 3, 3))
    found = np.broadcast_to(again.covariances_, (3, 3, 3))
    for k in range(3):
        variance, count = np.diagonal(sigma[k]), n * model.priors_[k]
        assert (abs(again.means_[k] - model.means_[k]) < 5 * np.sqrt(variance / count)).all()
        error = np.sqrt((np.outer(variance, variance) + sigma[k] ** 2) / count)
        assert (abs(found[k] - sigma[k]) < 5 * error).all()


# Batches and statistics.


def assert_same(found, expected):
    assert_array_equal(found.classes_, expected.classes_)
    for name in ("means_", "covariances_", "priors_", "log_likelihood_"):
        assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-10, atol=1e-10)
    assert_allclose(found.predict_proba(X), expected.predict_proba(X), rtol=1e-10, atol=1e-10)


@of_any_kind
def test_batches_and_sums_of_sites_make_the_fit_to_all_rows(kind):
    random = np.random.default_rng(2)
    soft, weight = random.dirichlet(np.ones(3), size=36), random.uniform(0, 2, size=36)
    expected = GaussianClassifier(covariance=kind).fit(X, soft, weight, CLASSES)
    batches, sums = GaussianClassifier(covariance=kind), []
    for part in np.array_split(random.permutation(36), 3):
        batch = X[part], soft[part], CLASSES, weight[part]
        sums.append(GaussianClassifier(covariance=kind).fit(*batch[:2], batch[3], CLASSES))
        batches.partial_fit(*batch)
    assert_same(batches, expected)
    both = sum(site.statistics_ for site in sums)
    assert_same(GaussianClassifier.from_statistics(both, covariance=kind), expected)


def test_other_settings_can_be_tried_on_the_same_sums():
    sums = GaussianClassifier(covariance="full").fit(X, NAMES).statistics_
    for kind in KINDS:
        settings = {"covariance": kind, "estimate": "unbiased", "priors": [0.5, 0.25, 0.25]}
        found = GaussianClassifier.from_statistics(sums, **settings)
        assert_same(found, GaussianClassifier(**settings).fit(X, NAMES))
    groups = [
        GaussianClassifier(covariance=kind).fit(X[part], NAMES[part]).statistics_
        for kind, part in (([["ant", "cat"]], Y >= 0), ([["cat", "ant"]], Y >= 0))
    ]
    assert (groups[0] + groups[1]).count.sum() == 72


@pytest.mark.parametrize(
    ("of", "kind"), [("shared", "full"), ("shared", "diagonal"), ("diagonal", "shared")]
)
def test_sums_for_another_covariance_are_an_error(of, kind):
    sums = GaussianClassifier(covariance=of).fit(X, NAMES).statistics_
    with pytest.raises(StatisticsError, match="not for covariance"):
        GaussianClassifier.from_statistics(sums, covariance=kind)


@of_any_kind
def test_a_class_without_rows_has_probability_zero_until_they_come(kind):
    model, seen = GaussianClassifier(covariance=kind, priors=[0.2, 0.3, 0.5]), Y < 2
    model.partial_fit(X[seen], NAMES[seen], classes=CLASSES)
    assert_allclose(model.priors_, [0.4, 0.6, 0.0], rtol=1e-15)
    with pytest.raises(ParameterError, match="Class 'cat' has no rows"):
        model.with_priors([0.2, 0.3, 0.5])
    plain = GaussianClassifier(
        covariance="shared" if kind == "shared" else kind if isinstance(kind, str) else "full",
        priors=[0.4, 0.6],
    ).fit(X[seen], NAMES[seen])
    rows = with_gaps(X)
    found = model.predict_proba(rows)
    assert_array_equal(found[:, 2], 0.0)
    assert_allclose(found[:, :2], plain.predict_proba(rows), rtol=1e-9, atol=1e-12)
    assert_allclose(model.score_samples(rows), plain.score_samples(rows), rtol=1e-9, atol=1e-12)
    assert_allclose(model.log_likelihood_, plain.log_likelihood_, rtol=1e-12)
    model.partial_fit(X[~seen], NAMES[~seen])
    whole = GaussianClassifier(covariance=kind, priors=[0.2, 0.3, 0.5]).fit(X, NAMES)
    assert_same(model, whole)


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
@pytest.mark.parametrize("first", [True, False])
def test_redundant_columns_change_no_probability(kind, name, first):
    wide = np.column_stack([REDUNDANT[name], X] if first else [X, REDUNDANT[name]])
    model, messages = fit_with_warnings(wide, NAMES, covariance=kind)
    plain = GaussianClassifier(covariance=kind).fit(X, NAMES)
    assert_allclose(model.predict_proba(wide), plain.predict_proba(X), rtol=1e-9, atol=1e-9)
    assert model.n_parameters_ == plain.n_parameters_
    assert len(messages) == 1
    assert "left out" in messages[0]


@with_correlations
def test_a_duplicate_stands_in_for_a_missing_entry_and_samples_keep_the_relation(kind):
    wide = np.column_stack([X, X[:, 1] * 2, np.full(36, 4.0)])
    model, _ = fit_with_warnings(wide, NAMES, covariance=kind)
    plain = GaussianClassifier(covariance=kind).fit(X, NAMES).predict_proba(X)
    for j in (1, 3):
        gaps = wide.copy()
        gaps[:, j] = np.nan
        assert_allclose(model.predict_proba(gaps), plain, rtol=1e-8, atol=1e-9)
    rows, _ = model.sample(500, random_state=1)
    assert_allclose(rows[:, 3], 2 * rows[:, 1], rtol=1e-7, atol=1e-7)
    assert_array_equal(rows[:, 4], 4.0)


@pytest.mark.parametrize(
    ("name", "named"),
    [("constant", "extra"), ("duplicate", "b|extra"), ("combination", "a|c|extra")],
)
def test_strict_shrinkage_is_an_error_that_names_columns(name, named):
    wide = pd.DataFrame(np.column_stack([X, REDUNDANT[name]]), columns=["a", "b", "c", "extra"])
    with pytest.raises(SingularCovarianceError, match=f"column '({named})'") as caught:
        GaussianClassifier(shrinkage=0.0).fit(wide, NAMES)
    assert "shrinkage='auto'" in caught.value.remedy
    strict = GaussianClassifier(shrinkage=0.0).fit(X, NAMES).predict_proba(X)
    assert_array_equal(strict, GaussianClassifier().fit(X, NAMES).predict_proba(X))


@with_correlations
@pytest.mark.parametrize("amount", [0.1, 1.0])
def test_a_number_interpolates_between_correlations_and_none(kind, amount):
    plain = GaussianClassifier(covariance=kind).fit(X, NAMES)
    shrunk = GaussianClassifier(covariance=kind, shrinkage=amount).fit(X, NAMES)
    expected = plain.covariances_ * ((1 - amount) + amount * np.eye(3))
    assert_allclose(shrunk.covariances_, expected, rtol=1e-12)
    assert_array_equal(shrunk.means_, plain.means_)
    assert_array_equal(shrunk.shrinkage_, amount)


@pytest.mark.parametrize("amount", [0.3, "auto"])
def test_a_constant_column_does_not_enter_at_any_shrinkage(amount):
    wide = np.column_stack([X, np.full(36, 9.0)])
    model, messages = fit_with_warnings(wide, NAMES, shrinkage=amount)
    plain = GaussianClassifier(shrinkage=amount).fit(X, NAMES)
    assert "column 3" in messages[0]
    assert_allclose(model.score_samples(wide), plain.score_samples(X), rtol=1e-11)
    assert_allclose(model.shrinkage_, plain.shrinkage_, rtol=1e-12)


def test_automatic_shrinkage_predicts_better_from_few_rows():
    X, y = DATA["wine"]
    random, losses = np.random.default_rng(0), {None: 0.0, "auto": 0.0}
    for _ in range(5):
        few, rest = np.split(random.permutation(len(y)), [40])
        for amount in losses:
            p = GaussianClassifier(shrinkage=amount).fit(X[few], y[few]).predict_proba(X[rest])
            losses[amount] += log_loss(y[rest], np.maximum(p, 1e-15))
    assert losses["auto"] < 0.8 * losses[None]


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
    rows[Y == 1, 2] = 0.25
    model, messages = fit_with_warnings(rows[:, :3], NAMES, covariance="diagonal")
    assert "column 2 is zero in class 'bee'" in messages[0]
    assert_allclose(model.covariances_[1, 2, 2], rows[:, 2].var() / 13, rtol=1e-12)


def test_rows_that_are_all_alike_are_an_error_and_regular_rows_give_no_warning():
    for kind in ("shared", "full", "isotropic"):
        with pytest.raises(SingularCovarianceError):
            GaussianClassifier(covariance=kind).fit(np.ones((6, 2)), [0, 1] * 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in KINDS:
            GaussianClassifier(covariance=kind).fit(X, NAMES)
