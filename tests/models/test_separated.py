"""Maximum likelihood where the classes can be separated: the limit, named, with right numbers."""

import pickle
import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import load_iris

from posteriori import GLM, LogisticRegression, Mixture, ProbitRegression, ThresholdRegression
from posteriori.errors import SeparationWarning

RANDOM = np.random.default_rng(0)
IRIS_X, IRIS_Y = load_iris(return_X_y=True)


def one_sided(n=200, seed=0):
    """Rows with a flag that is only ever seen with the second class."""
    random = np.random.default_rng(seed)
    X = np.column_stack([random.normal(size=n), random.integers(0, 2, n)])
    y = (X[:, 0] + random.logistic(size=n) > 0) | (X[:, 1] == 1)
    return X, y.astype(int)


def test_completely_separated_rows_have_probability_one():
    X = RANDOM.normal(size=(60, 3))
    y = (X[:, 0] + 0.5 * X[:, 1] > 0.1).astype(int)
    with pytest.warns(SeparationWarning, match="all rows"):
        model = LogisticRegression().fit(X, y)
    assert model.separation_.kind == "complete"
    assert model.score(X, y) == 1.0
    np.testing.assert_allclose(model.predict_proba(X)[np.arange(60), y], 1.0, rtol=1e-15)
    assert model.log_likelihood_ == pytest.approx(0.0, abs=1e-13)
    assert not model.converged_


def test_the_rows_on_the_face_get_the_fit_that_they_have_alone():
    X, y = one_sided()
    with pytest.warns(SeparationWarning, match="some of the rows .* by 'x1'"):
        model = LogisticRegression().fit(X, y)
    open_rows = X[:, 1] == 0
    alone = LogisticRegression().fit(X[open_rows][:, :1], y[open_rows])
    assert model.separation_.kind == "quasi"
    assert model.separation_.columns == ("x1",)
    np.testing.assert_array_equal(model.separation_.directions, [1.0])
    np.testing.assert_allclose(model.coef_[0, 0], alone.coef_[0, 0], rtol=1e-8)
    np.testing.assert_allclose(model.intercept_, alone.intercept_, rtol=1e-8)
    assert model.log_likelihood_ == pytest.approx(alone.log_likelihood_, rel=1e-12)
    np.testing.assert_array_equal(model.predict_proba(X[~open_rows])[:, 1], 1.0)


def test_standard_errors_are_infinite_where_coefficients_are_and_right_elsewhere():
    X, y = one_sided()
    with pytest.warns(SeparationWarning):
        model = LogisticRegression().fit(X, y)
    open_rows = X[:, 1] == 0
    alone = LogisticRegression().fit(X[open_rows][:, :1], y[open_rows])
    found = model.coef_covariance_
    np.testing.assert_allclose(found[:2, :2], alone.coef_covariance_, rtol=1e-7)
    assert found[2, 2] == np.inf
    assert not np.isnan(found).any()


def test_with_many_classes_those_that_overlap_keep_their_fit():
    with pytest.warns(SeparationWarning):
        model = LogisticRegression().fit(IRIS_X, IRIS_Y)
    rest = IRIS_Y > 0
    alone = LogisticRegression().fit(IRIS_X[rest], IRIS_Y[rest])
    assert model.separation_.kind == "quasi"
    assert model.log_likelihood_ == pytest.approx(alone.log_likelihood_, rel=1e-9)
    np.testing.assert_allclose(
        model.predict_proba(IRIS_X[rest])[:, 1:], alone.predict_proba(IRIS_X[rest]), atol=1e-8
    )
    np.testing.assert_allclose(model.predict_proba(IRIS_X[~rest])[:, 0], 1.0, rtol=1e-15)


def test_overlapping_classes_are_not_called_separated():
    X, y = one_sided()
    keep = X[:, 1] == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LogisticRegression().fit(X[keep][:, :1], y[keep])
    assert model.separation_.kind == "none"
    assert model.separation_.columns == ()


@pytest.mark.parametrize("prior", [1.0, "jeffreys"])
def test_a_prior_keeps_coefficients_finite_and_still_tells_of_the_separation(prior):
    X, y = one_sided()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LogisticRegression(prior=prior).fit(X, y)
    assert abs(model.coef_).max() < 10
    assert model.separation_.kind == "quasi"


def test_nearly_separated_classes_have_their_finite_maximum():
    x = np.concatenate([np.linspace(-1, 0.0, 50), np.linspace(0.02, 1, 50), [0.05, -0.05]])
    y = np.concatenate([np.zeros(50), np.ones(50), [0, 1]]).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LogisticRegression().fit(x[:, None], y)
    residual = model.predict_proba(x[:, None])[:, 1] - y
    np.testing.assert_allclose([residual.sum(), residual @ x], 0.0, atol=1e-9)
    assert model.separation_.kind == "none"


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_units_do_not_matter(scale):
    X, y = one_sided()
    with pytest.warns(SeparationWarning, match="'x1'"):
        model = LogisticRegression().fit(X * [1.0, scale], y)
    np.testing.assert_array_equal(model.predict_proba(X[X[:, 1] == 1] * [1.0, scale])[:, 1], 1.0)


def test_more_columns_than_rows_are_always_separated():
    X, y = RANDOM.normal(size=(20, 50)), np.arange(20) % 2
    with pytest.warns() as caught:
        model = LogisticRegression().fit(X, y)
    assert {type(w.message).__name__ for w in caught} == {
        "RankDeficiencyWarning",
        "SeparationWarning",
    }
    assert model.score(X, y) == 1.0


def test_a_fit_that_overlaps_says_so_after_a_round_trip_and_forgets_an_earlier_prior():
    X, y = one_sided()
    keep = X[:, 1] == 0
    model = LogisticRegression(prior="jeffreys").fit(X[keep][:, :1], y[keep])
    model.set_params(prior=None).fit(X[keep][:, :1], y[keep])
    assert not hasattr(model, "penalised_log_likelihood_")
    assert pickle.loads(pickle.dumps(model)).separation_.kind == "none"


BUMPS = Mixture([0.4, 0.6], [stats.norm(-1, 0.5), stats.norm(1.5, 1)])
LINKED = {
    "cloglog": GLM(family="bernoulli", link="cloglog"),
    "largest of many": ThresholdRegression(noise="gumbel_r"),
    "one end": ThresholdRegression(noise="expon"),
    "far from zero": ThresholdRegression(noise=stats.norm(1000.0, 1.0)),
    "two bumps": ThresholdRegression(noise=BUMPS),
    "skew": ThresholdRegression(noise=stats.skewnorm(5.0)),
    "heavy tails": ThresholdRegression(noise="cauchy"),
    "one heavy tail": ThresholdRegression(noise=stats.lomax(2.0)),
    "probit": ProbitRegression(),
    "two ends": ThresholdRegression(noise="uniform"),
}
linked = pytest.mark.parametrize("model", LINKED.values(), ids=LINKED)
smooth = pytest.mark.parametrize("model", [*LINKED.values()][:-1], ids=[*LINKED][:-1])
lopsided = pytest.mark.parametrize("name", [*LINKED][:6])


def parted(n=60, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 2))
    return X, (X[:, 0] + 0.5 * X[:, 1] > 0.3).astype(int)


def all_certain(model, X, y, **given):
    own = model.predict_proba(X, **given)[np.arange(len(y)), y]
    np.testing.assert_allclose(own, 1.0, rtol=1e-15)
    assert model.log_likelihood_ == pytest.approx(0.0, abs=1e-13)
    return True


@linked
def test_rows_have_probability_one_with_every_link(model):
    X, y = parted()
    with pytest.warns(SeparationWarning, match="all rows"):
        model = clone(model).fit(X, y)
    assert all_certain(model, X, y)
    assert model.score(X, y) == 1.0


@pytest.mark.parametrize("name", ["cloglog", "largest of many", "two bumps", "heavy tails"])
def test_rows_have_probability_one_without_an_intercept(name):
    X, y = parted()
    X = X - [0.3, 0.0]
    with pytest.warns(SeparationWarning, match="all rows"):
        model = clone(LINKED[name]).set_params(fit_intercept=False).fit(X, y)
    assert all_certain(model, X, y)


@lopsided
def test_links_that_are_not_symmetric_part_new_rows_at_the_same_plane(name):
    X, y = parted()
    with pytest.warns(SeparationWarning):
        model = clone(LINKED[name]).fit(X, y)
    with pytest.warns(SeparationWarning):
        first = clone(LINKED["cloglog"]).fit(X, y)
    found, known = model.hyperplane(), first.hyperplane()
    size = np.linalg.norm(found.normal), np.linalg.norm(known.normal)
    np.testing.assert_allclose(found.normal / size[0], known.normal / size[1], rtol=1e-7)
    assert found.offset / size[0] == pytest.approx(known.offset / size[1], rel=1e-7)
    # It lies between the classes, not much nearer to one of them than to the other.
    away = (X @ found.normal + found.offset) / size[0]
    assert away[y == 1].min() == pytest.approx(-away[y == 0].max(), rel=0.5)


@pytest.mark.slow
@lopsided
def test_where_separated_classes_part_does_not_depend_on_how_rows_are_counted(name):
    X, y = parted(30)
    X = np.column_stack([X, np.random.default_rng(1).normal(size=(30, 6))])
    weight = np.random.default_rng(2).integers(1, 4, 30)
    with pytest.warns(SeparationWarning):
        weighted = clone(LINKED[name]).fit(X, y, sample_weight=weight)
    with pytest.warns(SeparationWarning):
        repeated = clone(LINKED[name]).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-7)
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, rtol=1e-7)


@pytest.mark.slow
@smooth
@pytest.mark.parametrize("side", [0, 1])
def test_the_face_has_the_fit_that_its_rows_have_alone_with_every_link(model, side):
    X, y = one_sided()
    y = y if side else np.where(X[:, 1] == 1, 0, y)
    with pytest.warns(SeparationWarning, match="some of the rows .* by 'x1'"):
        found = clone(model).fit(X, y)
    on_face = X[:, 1] == 0
    alone = clone(model).fit(X[on_face][:, :1], y[on_face])
    heavy = 1e-6 if "cauchy" in str(model) else 1e-7
    np.testing.assert_allclose(found.coef_[0, 0], alone.coef_[0, 0], rtol=heavy)
    np.testing.assert_allclose(found.intercept_, alone.intercept_, rtol=heavy)
    assert found.log_likelihood_ == pytest.approx(alone.log_likelihood_, abs=1e-5)
    np.testing.assert_allclose(found.predict_proba(X[~on_face])[:, side], 1.0, atol=2e-8)
    np.testing.assert_allclose(
        found.coef_covariance_[:2, :2], alone.coef_covariance_, rtol=10 * heavy
    )
    assert found.coef_covariance_[2, 2] == np.inf


@smooth
def test_a_prior_that_hardly_counts_comes_close_to_the_limit(model):
    X, y = one_sided()
    with pytest.warns(SeparationWarning):
        limit = clone(model).fit(X, y)
    near = clone(model).set_params(prior=1e-9).fit(X, y)
    np.testing.assert_allclose(limit.predict_proba(X), near.predict_proba(X), atol=2e-3)
    assert near.log_likelihood_ <= limit.log_likelihood_ + 1e-6
    assert near.log_likelihood_ == pytest.approx(limit.log_likelihood_, abs=0.05)


@pytest.mark.parametrize("name", ["cloglog", "probit", "one end"])
def test_offsets_against_the_separation_are_outrun(name):
    X, y = parted()
    offset = np.zeros(60)
    row = np.flatnonzero(y == 0)[3]
    offset[row] = 40.0
    with pytest.warns(SeparationWarning, match="all rows"):
        model = clone(LINKED[name]).fit(X, y, offset=offset)
    assert all_certain(model, X, y, offset=offset)
    X, y = one_sided()
    offset = np.zeros(200)
    offset[np.flatnonzero(X[:, 1] == 0)[4]] = -0.5
    offset[np.flatnonzero(X[:, 1] == 1)[4]] = 80.0
    with pytest.warns(SeparationWarning, match="some of the rows"):
        model = clone(LINKED[name]).fit(X, np.where(X[:, 1] == 1, 0, y), offset=offset)
    np.testing.assert_array_equal(model.predict_proba(X, offset=offset)[X[:, 1] == 1, 0], 1.0)


def test_offsets_of_many_classes_are_outrun():
    X = np.repeat(np.eye(3), 10, axis=0) * 5 + RANDOM.normal(size=(30, 3)) * 0.1
    y, offset = np.repeat([0, 1, 2], 10), np.zeros((30, 3))
    offset[4, 1], offset[25, 0] = 300.0, 150.0
    with pytest.warns(SeparationWarning, match="all rows"):
        model = LogisticRegression().fit(X, y, offset=offset)
    own = model.predict_proba(X, offset=offset)[np.arange(30), y]
    np.testing.assert_allclose(own, 1.0, rtol=1e-15)
    assert model.log_likelihood_ == pytest.approx(0.0, abs=1e-13)


@pytest.mark.filterwarnings("ignore::posteriori.errors.BoundaryWarning")
def test_a_maximum_by_noise_with_ends_does_not_hide_that_classes_are_separated():
    X, y = one_sided()
    with pytest.warns(SeparationWarning):
        model = ThresholdRegression(noise="uniform").fit(X, y)
    assert model.separation_.kind == "quasi"
    assert model.separation_.columns == ("x1",)
    on_face = X[:, 1] == 0
    alone = ThresholdRegression(noise="uniform").fit(X[on_face][:, :1], y[on_face])
    assert model.log_likelihood_ == pytest.approx(alone.log_likelihood_, rel=1e-6)
    np.testing.assert_array_equal(model.predict_proba(X[~on_face])[:, 1], 1.0)
