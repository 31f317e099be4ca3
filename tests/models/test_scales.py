"""Units and origins: no probability depends on them, or a named error says so."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
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
@pytest.mark.parametrize("name", ["shared", "full", "diagonal"])
def test_missing_entries_in_other_units_give_the_same_answers(scale, name):
    X, y = DATA["wine"]
    holed = X.copy()
    holed[np.random.default_rng(0).random(X.shape) < 0.3] = np.nan
    right = answers(MODELS[name].fit(X, y), holed)
    assert_allclose(answers(MODELS[name].fit(X * scale, y), holed * scale), right, atol=1e-6)


def far_rows(far, n):
    rows = np.tile(DATA["wine"][0][:1], (n, 1))
    rows[-1, 0] = far
    return rows


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("shared", "Row 4 has density zero"),
        ("fisher", "activations of row 4 do not fit in a double"),
    ],
)
def test_activations_that_leave_the_doubles_are_a_named_error(name, message):
    model = MODELS[name].fit(*DATA["wine"])
    with pytest.raises(ScaleError, match=message):
        model.predict_proba(far_rows(1e308, 5))


def test_coefficients_that_leave_the_doubles_are_a_named_error():
    X, y = DATA["wine"]
    factor = np.ones(13)
    factor[4] = 1e-307
    with pytest.raises(ScaleError, match="column 4"):
        LeastSquaresClassifier().fit(X * factor * 1e-5, y)
