"""The Python in the README runs, and says what the README says it does."""

import re
from pathlib import Path

import numpy as np
import pytest

README = Path(__file__).parents[1] / "README.md"


@pytest.fixture(scope="module")
def names():
    """What is defined after running every Python block of the README, one after the other."""
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 2
    found: dict = {}
    for block in blocks:
        exec(block, found)
    return found


def test_a_missing_entry_still_gives_probabilities(names):
    assert names["bottle"].isna().sum().sum() == 1
    assert names["model"].predict_proba(names["bottle"]).sum() == pytest.approx(1, abs=1e-12)


def test_merged_sites_equal_one_fit(names):
    wine, together = names["wine"], names["together"]
    pooled = names["GaussianClassifier"]().fit(wine.data, wine.target)
    np.testing.assert_allclose(
        together.predict_proba(wine.data), pooled.predict_proba(wine.data), rtol=0, atol=1e-10
    )
