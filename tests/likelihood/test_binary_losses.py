"""Two classes: hard labels by the probit, and labels that may be wrong (4.117)."""

import numpy as np
import pytest
from scipy.special import expit

from posteriori.likelihood.binary_losses import NoisyLogisticLoss


@pytest.mark.parametrize("flips", [(0.1, 0.05), (1e-3, 0.3), (0.2, 0.2)])
def test_wrong_labels_are_found_by_bayes(flips):
    first, second = flips
    loss, a = NoisyLogisticLoss(*flips), np.append(np.linspace(-5, 5, 9), [-1e4, 1e4])
    p = expit(a)
    wrong = {1: first * (1 - p), 0: second * p}
    right = {1: (1 - second) * p, 0: (1 - first) * (1 - p)}
    found = {t: loss.wrong_label_probability(a, np.full(11, float(t))) for t in (0, 1)}
    for t in (0, 1):
        np.testing.assert_allclose(found[t], wrong[t] / (wrong[t] + right[t]), rtol=1e-13)
    half = loss.wrong_label_probability(a, np.full(11, 0.5))
    np.testing.assert_allclose(half, (found[0] + found[1]) / 2, rtol=1e-13)


def test_means_beyond_the_flips_have_no_activation():
    found = NoisyLogisticLoss(0.1, 0.2).activation(np.array([0.05, 0.1, 0.45, 0.8, 0.9]))
    assert np.isnan(found).tolist() == [True, False, False, False, True]
    np.testing.assert_allclose(found[1:4], [-np.inf, 0.0, np.inf], atol=1e-15)
