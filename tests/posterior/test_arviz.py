"""Draws handed to arviz, old and new; and the error where it is not there."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from posteriori import BayesianLogisticRegression
from posteriori.errors import InferenceError, ParameterError

X = np.random.default_rng(0).normal(size=(80, 2))
TWO = X[:, 0] + np.random.default_rng(1).logistic(size=80) > 0
THREE = np.digitize(X[:, 0] + np.random.default_rng(1).logistic(size=80), [-1.0, 1.0])


def drawn(y):
    model = BayesianLogisticRegression(prior=1.0, inference="monte_carlo", random_state=0)
    return model.fit(X, y)


def old_from_dict(posterior, coords, dims):
    return posterior, coords, dims


def new_from_dict(data, *, coords, dims):
    return data["posterior"], coords, dims


@pytest.mark.parametrize(("version", "call"), [("0.23.4", old_from_dict), ("1.0.0", new_from_dict)])
@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_arviz_gets_every_draw_by_name(monkeypatch, version, call, y):
    fake = SimpleNamespace(__version__=version, from_dict=call)
    monkeypatch.setitem(sys.modules, "arviz", fake)
    model = drawn(y)
    values, coords, dims = model.to_arviz()
    each = model.posterior_.draws
    if len(model.classes_) == 2:
        np.testing.assert_array_equal(values["intercept"], each[:, :, 0])
        np.testing.assert_array_equal(values["coef"], each[:, :, 1:])
        assert dims == {"coef": ["column"], "intercept": []}
    else:
        np.testing.assert_array_equal(values["coef"][:, :, 1], each[:, :, 4:6])
        assert dims == {"coef": ["class", "column"], "intercept": ["class"]}
        assert coords["class"].tolist() == [0, 1, 2]
    assert coords["column"].tolist() == ["x0", "x1"]


def test_without_arviz_there_is_a_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ParameterError, match=r"needs the package arviz.* pip install arviz"):
        drawn(TWO).to_arviz()


def test_a_gaussian_has_no_draws_for_it():
    with pytest.raises(InferenceError, match="was not drawn from"):
        BayesianLogisticRegression(prior=1.0).fit(X, TWO).to_arviz()
