"""Units and origins: no probability depends on them, or a named error says so."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_wine

from posteriori import FisherDiscriminant, GaussianClassifier, LeastSquaresClassifier
from posteriori.errors import ScaleError

DATA = {"wine": load_wine(return_X_y=True), "cancer": load_breast_cancer(return_X_y=True)}
MODELS = {
    "shared": GaussianClassifier(),
    "shrunk": GaussianClassifier(shrinkage="auto"),
    "full": GaussianClassifier(covariance="full"),
    "groups": GaussianClassifier(covariance=[[0, 1]]),
    "diagonal": GaussianClassifier(covariance="diagonal"),
    "fisher": FisherDiscriminant(),
    "midpoint": FisherDiscriminant(threshold="midpoint"),
    "squares": LeastSquaresClassifier(),
}
SCALES = [1e150, 1e-150, 1e8, 1e-8]


def answers(model, X):
    """Probabilities, or the fitted targets where there are none."""
    if isinstance(model, LeastSquaresClassifier):
        return model.predict_targets(X)
    return model.predict_proba(X)


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("columns", ["one", "half", "all"])
def test_columns_in_other_units_give_the_same_answers(data, name, scale, columns):
    X, y = DATA[data]
    places = {"one": [2], "half": slice(None, None, 2), "all": slice(None)}[columns]
    factor = np.ones(X.shape[1])
    factor[places] = scale
    right = answers(MODELS[name].fit(X, y), X)
    found = answers(MODELS[name].fit(X * factor, y), X * factor)
    assert_allclose(found, right, atol=1e-6)


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("name", MODELS)
def test_units_far_apart_in_one_table_give_the_same_answers(data, name):
    X, y = DATA[data]
    factor = np.array(SCALES)[np.arange(X.shape[1]) % 4]
    right = answers(MODELS[name].fit(X, y), X)
    found = answers(MODELS[name].fit(X * factor, y), X * factor)
    assert_allclose(found, right, atol=1e-6)


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("name", [*MODELS, "isotropic"])
def test_an_origin_a_hundred_million_spreads_away_gives_the_same_answers(data, name):
    X, y = DATA[data]
    model = MODELS.get(name, GaussianClassifier(covariance="isotropic"))
    shift = 1e8 * X.std(axis=0)
    # Moved back exactly: what was rounded off in the shift is no fault of the models.
    far = X + shift
    near = far - shift
    right = answers(model.fit(near, y), near)
    assert_allclose(answers(model.fit(far, y), far), right, atol=1e-6)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("covariance", ["isotropic"])
def test_all_columns_in_other_units_leave_the_isotropic_answer(scale, covariance):
    X, y = DATA["wine"]
    model = GaussianClassifier(covariance=covariance)
    right = answers(model.fit(X, y), X)
    assert_allclose(answers(model.fit(X * scale, y), X * scale), right, atol=1e-6)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", ["shared", "full", "diagonal"])
def test_missing_entries_in_other_units_give_the_same_answers(scale, name):
    X, y = DATA["wine"]
    holed = X.copy()
    holed[np.random.default_rng(0).random(X.shape) < 0.3] = np.nan
    right = answers(MODELS[name].fit(X, y), holed)
    assert_allclose(answers(MODELS[name].fit(X * scale, y), holed * scale), right, atol=1e-6)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", ["shared", "full", "diagonal"])
def test_log_densities_move_by_the_jacobian_alone(scale, name):
    X, y = DATA["wine"]
    plain = MODELS[name].fit(X, y).score_samples(X)
    shift = X.shape[1] * np.log(scale)
    assert_allclose(MODELS[name].fit(X * scale, y).score_samples(X * scale), plain - shift)


@pytest.mark.parametrize("scale", SCALES)
def test_fitting_rows_with_holes_does_not_depend_on_units(scale):
    X, y = DATA["wine"]
    holed = X[:, :4].copy()
    holed[np.random.default_rng(0).random(holed.shape) < 0.2] = np.nan
    right = GaussianClassifier().fit(holed, y).predict_proba(holed)
    factor = np.array([1.0, scale, 1.0, scale])
    found = GaussianClassifier().fit(holed * factor, y).predict_proba(holed * factor)
    assert_allclose(found, right, atol=1e-6)


FAR = [1e100, 1e160, 1e250, 1e308]


def far_rows(far, n):
    rows = np.tile(DATA["wine"][0][:1], (n, 1))
    rows[-1, 0] = far
    return rows


@pytest.mark.parametrize("name", ["shared", "shrunk", "fisher", "midpoint", "squares"])
@pytest.mark.parametrize("far", FAR[:3])
@pytest.mark.parametrize("n", [1, 20_000], ids=["one row", "many rows"])
def test_linear_models_have_an_answer_for_rows_far_out(name, far, n):
    model = MODELS[name].fit(*DATA["wine"])
    found = answers(model, far_rows(far, n))
    assert np.isfinite(found).all()
    slope = model.coef_[:, 0]
    assert found[-1].argmax() == slope.argmax()


@pytest.mark.parametrize("name", ["shared", "fisher"])
def test_activations_that_leave_the_doubles_are_a_named_error(name):
    model = MODELS[name].fit(*DATA["wine"])
    with pytest.raises(ScaleError, match="Row 4 has density zero"):
        model.predict_proba(far_rows(1e308, 5))


@pytest.mark.parametrize("far", [1e2, 1e3])
def test_inside_a_group_rows_far_out_keep_the_odds_of_the_plane(far):
    X, y = DATA["wine"]
    model = MODELS["groups"].fit(X, y)
    plane = model.hyperplane(0, 1)
    # Rows at all distances along the plane, with odds of e to one.
    along = np.linalg.svd(plane.normal[None])[2][1:] * far
    on_plane = plane.project(along + X.mean(axis=0))
    rows = on_plane + plane.unit_normal / np.linalg.norm(plane.normal)
    right = (rows @ plane.normal) + plane.offset
    logs = model.predict_log_proba(rows)
    inside = logs[:, :2].max(axis=1) > logs[:, 2]
    assert inside.any()
    # The plane itself is known to this many digits so far out.
    digits = 1e-15 * far * abs(plane.normal).sum() * 100
    assert_allclose((logs[:, 0] - logs[:, 1])[inside], right[inside], atol=1e-9 + digits)


@pytest.mark.parametrize("name", ["full", "groups", "diagonal"])
@pytest.mark.parametrize("far", FAR)
@pytest.mark.parametrize("n", [1, 20_000], ids=["one row", "many rows"])
def test_quadratic_models_have_an_answer_or_a_named_error_for_rows_far_out(name, far, n):
    model = MODELS[name].fit(*DATA["wine"])
    rows = far_rows(far, n)
    if far > 1e150:
        for method in (model.predict_proba, model.predict, model.score_samples):
            with pytest.raises(ScaleError, match=f"Row {n - 1} has density zero"):
                method(rows)
        return
    # Far out the square of the first column decides, and inside a group its slope.
    best = model.quadratic_.matrix[:, 0, 0].argmax()
    if name == "groups":
        assert best in (0, 1)
        if far > 1e10:  # squares leave no digits for the slope
            assert answers(model, rows)[-1][2] == 0
            return
        best = int(model.hyperplane(1, 0).normal[0] > 0)
    assert_array_equal(answers(model, rows)[-1], np.eye(3)[best])


def test_ridge_in_units_too_small_for_it_leaves_nothing_of_the_column():
    X, y = DATA["wine"]
    factor = np.ones(13)
    factor[4] = 1e-200
    model = LeastSquaresClassifier(ridge=1.0).fit(X * factor, y)
    without = LeastSquaresClassifier(ridge=1.0).fit(np.delete(X, 4, axis=1), y)
    right = without.predict_targets(np.delete(X, 4, axis=1))
    assert_allclose(model.predict_targets(X * factor), right, rtol=1e-10, atol=1e-12)


def test_coefficients_that_leave_the_doubles_are_a_named_error():
    X, y = DATA["wine"]
    factor = np.ones(13)
    factor[4] = 1e-307
    with pytest.raises(ScaleError, match="column 4"):
        LeastSquaresClassifier().fit(X * factor * 1e-5, y)


def test_covariances_that_leave_the_doubles_are_a_named_error():
    X, y = DATA["wine"]
    factor = np.ones(13)
    factor[4] = 1e170
    model = GaussianClassifier().fit(X * factor, y)
    with pytest.raises(ScaleError, match="column 4"):
        _ = model.covariances_
