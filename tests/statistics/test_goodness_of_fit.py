"""Log-likelihoods, deviances and means of targets, against plain formulas."""

import numpy as np
import pytest
from scipy.special import xlogy

from posteriori.likelihood.binary_losses import LogisticLoss, SignedLogisticLoss
from posteriori.likelihood.glm_families import GLM_FAMILIES, glm_loss
from posteriori.likelihood.softmax import SoftmaxLoss
from posteriori.rows.block import Block
from posteriori.statistics.goodness_of_fit import (
    GatherClassFit,
    GatherClassTargets,
    GatherFamilyFit,
)

RANDOM = np.random.default_rng(0)
N = 60
OFFSET = RANDOM.normal(size=N)
FIELDS = ("weight", "target", "offset", "log_likelihood", "deviance", "loss", "pearson")


def target(block):
    return block.y


def constant(level):
    return lambda block: np.asarray(level) + block.offset


ONE, THREE = constant(0.3), constant([0.3, 0.0, -1.0])
GAMMA = glm_loss("gamma", "log"), GLM_FAMILIES["gamma"]
KERNELS = {
    "signed": (GatherClassFit(SignedLogisticLoss(), target, ONE), RANDOM.choice([-1.0, 1.0], N)),
    "soft": (GatherClassFit(LogisticLoss(), target, ONE), RANDOM.random(N)),
    "classes": (GatherClassFit(SoftmaxLoss(), target, THREE), RANDOM.dirichlet(np.ones(3), N)),
    "gamma": (GatherFamilyFit(*GAMMA, target, ONE, 0.5), RANDOM.gamma(2.0, 1.0, N)),
}


def block_of(y, weight=None):
    offset = OFFSET[:, None] * np.arange(y.shape[1]) if y.ndim == 2 else OFFSET
    return Block(np.empty((N, 1)), y, weight, 0, None, offset)


def check_equal(one, other):
    for field in FIELDS:
        np.testing.assert_allclose(getattr(one, field), getattr(other, field), rtol=1e-12)


def test_signed_labels_have_the_sums_of_their_shares():
    kernel, y = KERNELS["signed"]
    plain = GatherClassFit(LogisticLoss(), target, kernel.activation)
    check_equal(kernel(block_of(y)), plain(block_of((y + 1) / 2)))


@pytest.mark.parametrize("name", ["signed", "soft", "classes"])
def test_targets_and_a_loss_that_is_known_have_all_sums(name):
    kernel, y = KERNELS[name]
    weight = 0.5 + np.arange(N) % 3
    found = kernel(block_of(y, weight))
    targets = GatherClassTargets(kernel.loss, target)(block_of(y, weight))
    assert targets.loss == targets.log_likelihood == 0.0
    check_equal(targets.with_loss(found.loss), found)
    assert found.loss == -found.log_likelihood


def test_the_loss_of_a_family_is_what_is_minimised():
    kernel, t = KERNELS["gamma"]
    found = kernel(block_of(t))
    assert found.has_offset
    wanted = kernel.loss.value(0.3 + OFFSET, t).sum()
    assert found.loss == pytest.approx(wanted, rel=1e-12)


def test_the_deviance_of_soft_labels_is_twice_a_divergence():
    kernel, t = KERNELS["classes"]
    found = kernel(block_of(t))
    a = np.array([0.3, 0.0, -1.0]) + OFFSET[:, None] * np.arange(3)
    log_p = a - np.logaddexp.reduce(a, axis=1)[:, None]
    assert found.deviance == pytest.approx(2 * (xlogy(t, t) - t * log_p).sum(), rel=1e-12)
    assert found.log_likelihood == pytest.approx((t * log_p).sum(), rel=1e-12)
    np.testing.assert_allclose(found.mean, t.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.mean_offset, OFFSET.mean() * np.arange(3), rtol=1e-12)
