"""Leverages, and the gradient of ½ ln|I|, against hat matrices and differences."""

from itertools import product

import numpy as np
import pytest

from posteriori.design.columns import Columns
from posteriori.design.standardise import Standard
from posteriori.likelihood.binary_losses import LogisticLoss
from posteriori.likelihood.glm_families import glm_loss
from posteriori.likelihood.softmax import SoftmaxLoss
from posteriori.rows.in_memory import read_rows
from posteriori.statistics import leverage
from posteriori.statistics.leverage import GatherLeverage
from posteriori.statistics.local_quadratic import GatherQuadratic

PROBIT = glm_loss("bernoulli", "probit")
RANDOM = np.random.default_rng(3)
X = RANDOM.normal([0.0, 1.0, -1.0], 1.0, (40, 3))
WEIGHT = RANDOM.uniform(0.5, 3.0, 40)
DESIGN = np.column_stack([np.ones(40), X])


def gathered(loss, theta, directions, kind):
    rows = read_rows(X, np.arange(40) % 2, WEIGHT)
    columns = Columns(rows.schema)
    standard = Standard(np.zeros(3), np.ones(3), True)
    at = GatherQuadratic(columns, standard, loss, lambda block: block.y, theta, "none", kind)
    return rows.map_sum(GatherLeverage(at, directions), block_entries=30)


def information(loss, theta, kind):
    """I of one activation, or of all K, as a matrix."""
    a = DESIGN @ theta.T
    if len(theta) == 1:
        observed = loss.curvature(a[:, 0], np.arange(40) % 2)
        r = loss.information(a[:, 0]) if kind == "expected" else observed
        return DESIGN.T @ (DESIGN * (WEIGHT * r)[:, None])
    A = loss.information(a) * WEIGHT[:, None, None]
    size = theta.size
    return np.einsum("nkl,ni,nj->kilj", A, DESIGN, DESIGN).reshape(size, size)


@pytest.mark.parametrize(
    ("loss", "K", "kind"),
    [
        *product((LogisticLoss(), PROBIT), [1], ["expected", "observed"]),
        *((SoftmaxLoss(), K, "expected") for K in (2, 3, 5)),
    ],
)
def test_the_gradient_is_that_of_half_the_log_determinant(loss, K, kind, monkeypatch):
    monkeypatch.setattr(leverage, "_PART_ENTRIES", 50)  # not all directions at once
    theta = RANDOM.normal(0, 0.7, (K, 4))
    free = np.kron(np.eye(K)[:, int(K > 1) :], np.eye(4))  # against the first of several classes

    def free_information(theta):
        return free.T @ information(loss, theta, kind) @ free

    inverse = np.linalg.inv(free_information(theta))
    roots = np.linalg.cholesky(inverse).T @ free.T
    found = gathered(loss, theta, roots.reshape(-1, K, 4), kind)
    assert found.total == pytest.approx(free.shape[1], rel=1e-12)
    steps = 1e-5 * np.eye(4 * K).reshape(-1, K, 4)
    logs = [[np.linalg.slogdet(free_information(theta + s))[1] for s in (v, -v)] for v in steps]
    expected = [0.5 * (up - down) / 2e-5 for up, down in logs]
    rtol = 1e-7 if K == 1 else 1e-6
    np.testing.assert_allclose(found.gradient.ravel(), expected, rtol=rtol, atol=1e-9)
