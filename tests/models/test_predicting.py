"""Predictions of linear models: offsets, and rows whose activations leave the doubles."""

import numpy as np
import pytest

from posteriori import (
    GLM,
    Adaline,
    LeastSquaresClassifier,
    LogisticRegression,
    Perceptron,
    ProbitRegression,
)
from posteriori.errors import ConvergenceWarning, ScaleError, ShapeError

RANDOM = np.random.default_rng(2)
X = RANDOM.normal(size=(300, 2))
Y = (X @ [1.0, -2.0] + RANDOM.logistic(size=300) > 0).astype(int)
Y3 = Y + (X[:, 0] + RANDOM.logistic(size=300) > 1)

LINEAR = [
    LogisticRegression(prior=1e-3),
    ProbitRegression(),
    GLM(family="bernoulli"),
    LeastSquaresClassifier(),
    Perceptron(max_epochs=2, random_state=0),
    Adaline(max_epochs=2, random_state=0),
]


def name(model):
    return type(model).__name__


@pytest.mark.filterwarnings(f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning")
@pytest.mark.parametrize("target", [Y, Y3], ids=["two classes", "three classes"])
@pytest.mark.parametrize("model", LINEAR, ids=name)
def test_activations_that_leave_the_doubles_are_named_by_row_and_remedy(model, target):
    if target is Y3 and isinstance(model, ProbitRegression | GLM):
        pytest.skip("two classes only")
    model.fit(1e-3 * X, target)
    rows = np.vstack([X, [[1e308, -1e308]], X])
    with pytest.raises(ScaleError, match=r"activations of row 300 do not fit.*divide the column"):
        model.predict(rows)


def test_an_offset_is_added_to_the_activation():
    offset = RANDOM.normal(size=300)
    model = LogisticRegression().fit(X, Y, offset=offset)
    a = X @ model.coef_[0] + model.intercept_[0] + offset
    np.testing.assert_allclose(model.decision_function(X, offset), a, rtol=1e-12)
    np.testing.assert_allclose(
        model.predict_proba(X, offset)[:, 1], 1 / (1 + np.exp(-a)), rtol=1e-12
    )
    np.testing.assert_allclose(
        model.predict_log_proba(X, offset)[:, 0], -np.log1p(np.exp(a)), rtol=1e-12
    )
    np.testing.assert_array_equal(model.predict(X, offset), (a > 0).astype(int))


def test_every_class_has_an_offset_of_its_own():
    offset = RANDOM.normal(size=(300, 3))
    model = LogisticRegression().fit(X, Y3, offset=offset)
    e = np.exp(X @ model.coef_.T + model.intercept_ + offset)
    np.testing.assert_allclose(
        model.predict_proba(X, offset), e / e.sum(axis=1, keepdims=True), rtol=1e-12
    )
    with pytest.raises(ShapeError, match=r"expected numbers of shape \(300, 3\)"):
        model.predict(X, offset[:, 0])
