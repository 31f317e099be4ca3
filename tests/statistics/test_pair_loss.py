"""The loss of pairs against finite differences, dense matrices, and any cut of the rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from posteriori.design.columns import Columns
from posteriori.rows.in_memory import read_rows
from posteriori.statistics.coordinates import Coordinates, GatherSample, Pairs, by_label
from posteriori.statistics.pair_loss import (
    GatherMarginSizes,
    GatherPairLoss,
    PairHessianProduct,
    SmallMarginForm,
)
from posteriori.statistics.separation_margins import PairsOf, Ray

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(60, 3))
X[3, 1] = 1e5  # long rows count relative to their length


def problem(K, soft, intercept, with_ray=False):
    y = np.arange(60) % K
    shares = np.eye(K)[y]
    shares[5, :2] = shares[9, -2:] = 0.5
    shares[5, 2:] = shares[9, :-2] = 0.0
    rows = read_rows(X, shares if soft else y)
    columns = Columns(rows.schema)
    at = Coordinates.of(rows.map_sum(GatherSample(columns, by_label, 200)), columns, intercept)
    c = 1 if K == 2 else K
    theta = RANDOM.normal(size=(3 + intercept, c))
    return rows, at, PairsOf(by_label, K, Ray(at, 2 * theta) if with_ray else None), theta


CASES = [(2, False, True), (2, True, False), (3, False, False), (3, True, True), (4, True, True)]


@pytest.mark.parametrize("with_ray", [False, True])
@pytest.mark.parametrize(("K", "soft", "intercept"), CASES)
def test_gradient_and_hessian_are_derivatives(K, soft, intercept, with_ray):
    rows, at, pairs, theta = problem(K, soft, intercept, with_ray)
    theta = RANDOM.normal(size=theta.shape)

    def look(t):
        kernel = GatherPairLoss(at, pairs, t.reshape(theta.shape), hessian=True)
        return rows.map_sum(kernel, block_entries=40)

    here, step = look(theta), 1e-5
    units = step * np.eye(theta.size)
    slopes = [(look(theta.ravel() + u).value - look(theta.ravel() - u).value) / 2 for u in units]
    assert_allclose(np.array(slopes) / step, here.gradient.ravel(), rtol=1e-6, atol=1e-6)
    bends = [(look(theta.ravel() + u).gradient - look(theta.ravel() - u).gradient) for u in units]
    bends = np.array([bend.ravel() for bend in bends]) / 2 / step
    assert_allclose(bends, here.curvature, rtol=1e-6, atol=1e-6)
    direction = RANDOM.normal(size=theta.shape)
    product = rows.map_sum(PairHessianProduct(at, pairs, theta, direction))
    assert_allclose(product.ravel(), here.curvature @ direction.ravel(), rtol=1e-9, atol=1e-12)


def test_for_two_classes_it_is_the_logistic_loss():
    rows, at, pairs, theta = problem(2, False, True)
    phi = at.standardise(X)
    phi = phi * at.shortening(next(iter(_blocks(rows))))
    margins = np.where(np.arange(60) % 2 == 1, 1, -1) * (phi @ theta)[:, 0]
    found = rows.map_sum(GatherPairLoss(at, pairs, theta, hessian=False))
    assert_allclose(found.value, np.log1p(np.exp(-margins)).sum(), rtol=1e-12)
    assert_allclose([found.least, found.largest], [margins.min(), margins.max()], rtol=1e-12)
    assert found.hessian is None


def _blocks(rows):
    return rows.map_sum(lambda block: [block])


def test_a_pair_that_must_be_zero_leaves_no_least_margin():
    rows, at, pairs, theta = problem(3, True, True)
    assert rows.map_sum(GatherPairLoss(at, pairs, theta, hessian=False)).least == -np.inf


@pytest.mark.parametrize("K", [2, 3])
def test_moves_and_what_stays_still_are_those_of_all_pairs(K):
    rows, at, pairs, theta = problem(K, False, True)
    (block,) = _blocks(rows)
    phi = at.standardise(X) * at.shortening(block)
    own = Pairs.of(np.arange(60) % K, K)
    size = abs(own.margins(phi @ theta))
    size = np.where(own.all(), size, np.nan)
    moves = rows.map_sum(GatherMarginSizes(at, pairs, theta), block_entries=40)
    assert_allclose(moves.largest, np.nanmax(size), rtol=1e-12)
    assert_allclose(moves.largest_small, np.nanmax(size[size < 0.5]), rtol=1e-12)
    form = rows.map_sum(SmallMarginForm(at, pairs, theta), block_entries=40)
    direction = RANDOM.normal(size=theta.shape)
    along = own.margins(phi @ direction)[size < 0.5]
    assert_allclose(direction.ravel() @ form @ direction.ravel(), (along**2).sum(), rtol=1e-9)
