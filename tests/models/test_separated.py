"""Maximum likelihood where the classes can be separated: the limit, named, with right numbers."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris

from posteriori import LogisticRegression
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
