"""The Python in the README runs, and says what the README says it does."""

import re
from pathlib import Path

import numpy as np
import pytest

README = Path(__file__).parents[1] / "README.md"


BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


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
    exec(BLOCKS[1], first)
    X, y = first["X"], first["y"]
    pooled = first["GaussianClassifier"]().fit(X, y).predict_proba(X)
    np.testing.assert_allclose(first["together"].predict_proba(X), pooled, rtol=0, atol=1e-10)
