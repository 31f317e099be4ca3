"""Log-likelihoods, deviances and means of targets, against plain formulas."""

import numpy as np
import pytest
from scipy.special import xlogy

from posteriori.likelihood.binary_losses import LogisticLoss, SignedLogisticLoss
from posteriori.likelihood.glm_families import GLM_FAMILIES, glm_loss
from posteriori.likelihood.softmax import SoftmaxLoss
from posteriori.rows.block import Block
from posteriori.statistics.goodness_of_fit import GatherClassTargets, GatherFamilyFit

RANDOM = np.random.default_rng(0)
N = 60
OFFSET, WEIGHT = RANDOM.normal(size=N), 0.5 + np.arange(N) % 3
SIGNS = RANDOM.choice([-1.0, 1.0], N)
LABELS = {  # the loss, its targets, and the shares of classes that they are
    "signed": (SignedLogisticLoss(), SIGNS, (SIGNS + 1) / 2),
    "soft": (LogisticLoss(), OFFSET % 1, OFFSET % 1),
    "classes": (SoftmaxLoss(), *[RANDOM.dirichlet(np.ones(3), N)] * 2),
}


def target(block):
    return block.y


@pytest.mark.parametrize("name", LABELS)
def test_targets_and_a_loss_that_is_known_have_all_sums(name):
    loss, y, share = LABELS[name]
    offset = OFFSET[:, None] * np.arange(3) if y.ndim == 2 else OFFSET
    block = Block(np.empty((N, 1)), y, WEIGHT, 0, None, offset)
    found = GatherClassTargets(loss, target)(block).with_loss(50.0)
    entropy = xlogy(share, share)
    entropy = entropy.sum(axis=1) if y.ndim == 2 else entropy + xlogy(1 - share, 1 - share)
    assert (found.loss, found.log_likelihood, found.has_offset) == (50.0, -50.0, True)
    assert found.deviance == pytest.approx(2 * (50.0 + WEIGHT @ entropy), rel=1e-12)
    np.testing.assert_allclose(found.mean, np.average(share, 0, WEIGHT), rtol=1e-12)
    np.testing.assert_allclose(found.mean_offset, np.average(offset, 0, WEIGHT), rtol=1e-12)


def test_the_loss_of_a_family_is_what_is_minimised():
    loss, t = glm_loss("gamma", "log"), RANDOM.gamma(2.0, 1.0, N)
    kernel = GatherFamilyFit(loss, GLM_FAMILIES["gamma"], target, lambda b: 0.3 + b.offset, 0.5)
    found = kernel(Block(np.empty((N, 1)), t, None, 0, None, OFFSET))
    assert found.loss == pytest.approx(loss.value(0.3 + OFFSET, t).sum(), rel=1e-12)
