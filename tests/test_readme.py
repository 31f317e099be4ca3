"""The Python in the README runs, and says what the README says it does."""

import re
from pathlib import Path

import numpy as np
import pytest

README = Path(__file__).parents[1] / "README.md"


BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def _block(words: str) -> str:
    """The example in which these words stand."""
    return next(block for block in BLOCKS if words in block)


@pytest.fixture(scope="module")
def first():
    names: dict = {}
    exec(BLOCKS[0], names)
    return names


def test_the_probabilities_of_the_first_screen_are_those_it_shows(first):
    bottle, model = first["X"][43:44], first["model"]
    assert bottle.isna().sum().sum() == 1
    np.testing.assert_allclose(model.predict_proba(bottle), [[0.948, 0.052, 0.0]], atol=5e-4)
    elsewhere = model.with_priors({0: 0.1, 1: 0.8, 2: 0.1})
    np.testing.assert_allclose(elsewhere.predict_proba(bottle), [[0.735, 0.265, 0.0]], atol=5e-4)


def test_merged_sites_equal_one_fit(first):
    exec(_block("from_statistics"), first)
    X, y = first["X"], first["y"]
    pooled = first["GaussianClassifier"]().fit(X, y).predict_proba(X)
    np.testing.assert_allclose(first["together"].predict_proba(X), pooled, rtol=0, atol=1e-10)


def test_standard_errors_come_as_shown():
    names: dict = {}
    exec(_block("model.summary()"), names)
    model, X = names["model"], names["X"]
    assert str(model.summary()).startswith("LogisticRegression, fitted by maximum likelihood")
    robust = model.tidy(errors="robust")
    assert list(robust["term"]) == ["intercept", "mean radius", "mean texture"]
    np.testing.assert_allclose(robust["std_error"], [1.716895, 0.099032, 0.035880], rtol=1e-4)
    assert model.predict_interval(X[["mean radius", "mean texture"]]).shape == (569, 2)
