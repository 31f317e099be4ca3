"""Shards whose factors saw different levels make the pooled fit all the same."""

import numpy as np
import pandas as pd
import pytest

from posteriori import GaussianClassifier, LeastSquaresClassifier

RANDOM = np.random.default_rng(12)
N = 240
Y = np.arange(N) % 3
LEVELS = np.array(["b", "c", "d", "e"])[RANDOM.integers(0, 4, N)]
LEVELS[:40] = np.array(["b", "c"])[np.arange(40) % 2]
LEVELS[200:] = np.array(["a", "d", "e", "f"])[RANDOM.integers(0, 4, 40)]
FRAME = pd.DataFrame(
    {
        "x": RANDOM.normal(size=N) + Y,
        "s": LEVELS,
        "t": np.array(["u", "v"])[RANDOM.integers(0, 2, N)],
        "z": RANDOM.normal(size=N) * (1 + Y),
    }
)
SHARDS = [slice(0, 40), slice(40, 200), slice(200, N)]
COVARIANCES = ["shared", "full", "diagonal", "isotropic", [[0, 2]]]


def assert_same_model(found, covariance):
    pooled = GaussianClassifier(covariance=covariance).fit(FRAME, Y)
    np.testing.assert_allclose(
        found.predict_proba(FRAME), pooled.predict_proba(FRAME), rtol=1e-9, atol=1e-12
    )
    assert found.schema_ == pooled.schema_
    np.testing.assert_allclose(found.means_, pooled.means_, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.covariances_, pooled.covariances_, rtol=1e-9, atol=1e-11)


@pytest.mark.filterwarnings("ignore::posteriori.errors.SingularCovarianceWarning")
@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_statistics_of_shards_with_other_levels_are_those_of_all_rows(covariance, order):
    sums = [
        GaussianClassifier(covariance=covariance).fit(FRAME[SHARDS[i]], Y[SHARDS[i]]).statistics_
        for i in order
    ]
    merged = GaussianClassifier.from_statistics(sum(sums), covariance=covariance)
    assert_same_model(merged, covariance)


@pytest.mark.filterwarnings("ignore::posteriori.errors.SingularCovarianceWarning")
@pytest.mark.parametrize("covariance", COVARIANCES)
def test_batches_may_bring_new_levels(covariance):
    model = GaussianClassifier(covariance=covariance)
    for shard in (SHARDS[1], SHARDS[0], SHARDS[2]):
        model.partial_fit(FRAME[shard], Y[shard])
    assert_same_model(model, covariance)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_the_gram_matrix_of_shards_with_other_levels_is_that_of_all_rows(order):
    parts = [LeastSquaresClassifier().fit(FRAME[s], Y[s]).statistics_ for s in SHARDS]
    found, whole = sum(parts[i] for i in order), LeastSquaresClassifier().fit(FRAME, Y).statistics_
    assert found.schema == whole.schema
    assert found.weight == whole.weight == N
    for name in ("mean", "target_mean", "scatter", "cross"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(whole, name), rtol=1e-12, atol=1e-12, err_msg=name
        )
