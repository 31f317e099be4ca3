"""How far rows may move inside a domain, which lie at its ends, and targets outside of it."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from posteriori.design.columns import Columns
from posteriori.likelihood.domain import Domain
from posteriori.likelihood.glm import GLM_FAMILIES, glm_loss
from posteriori.rows.block import Block
from posteriori.rows.schema import Schema
from posteriori.statistics.glm_domain import (
    GatherEdge,
    GatherLargestResidual,
    GatherRoom,
    GatherTargetRange,
    GatherTightest,
)

RANDOM = np.random.default_rng(0)
X = RANDOM.uniform(1, 2, size=(40, 2))
T = RANDOM.poisson(1.0, 40).astype(float)
OFFSET = RANDOM.normal(size=40)
COLUMNS = Columns(Schema.unnamed(2))


def target(block):
    return block.y


def block(low=0, high=40):
    part = slice(low, high)
    return Block(X[part], T[part], None, low, None, OFFSET[part])


def blocks(cuts):
    edges = [0, *cuts, 40]
    return [block(*pair) for pair in pairwise(edges)]


EDGE = GatherEdge(lambda b: b.offset, [0.5, -0.5], 0.2)


def test_the_room_is_where_all_activations_are_inside():
    room = GatherRoom(COLUMNS, Domain(low=0.5), target, np.array([1.0, 2.0]))(block())
    along = X @ [1.0, 2.0]
    for s in (room.low * 1.0000001, room.low + 1.0):
        assert room.has(s)
        assert (s * along + OFFSET > 0.5).all()
    assert not (room.low * 0.9999999 * along + OFFSET > 0.5).all()
    assert room.high == np.inf
    row = room.low_row
    assert room.low * along[row] + OFFSET[row] == pytest.approx(0.5)


def test_the_tightest_rows_are_those_closest_to_an_end():
    theta = np.array([1.0, -0.5])
    kernel = GatherTightest(COLUMNS, Domain(-1.0, 3.0), target, theta, 5)
    found = sum(map(kernel, blocks([7, 20])))
    a = X @ theta + OFFSET
    room = np.minimum(a + 1.0, 3.0 - a)
    order = np.argsort(room)[:5]
    np.testing.assert_allclose(found.room, room[order], rtol=1e-13)
    np.testing.assert_array_equal(found.rows, X[order])
    np.testing.assert_array_equal(found.low, -1.0 - OFFSET[order])
    np.testing.assert_array_equal(found.high, 3.0 - OFFSET[order])


def test_the_farthest_target_is_found_where_its_square_is_nothing():
    kernel = GatherLargestResidual(
        glm_loss("gaussian"), lambda b: b.y * 1e-200, lambda b: b.offset * 0
    )
    assert sum(map(kernel, blocks([11]))).value == T.max() * 1e-200


def test_an_edge_counts_its_rows_and_names_the_first():
    found = EDGE(block())
    near = np.flatnonzero(np.minimum(abs(OFFSET - 0.5), abs(OFFSET + 0.5)) < 0.2)
    assert (found.n_rows, found.first) == (len(near), near[0])
    assert replace(EDGE, ends=[99.0])(block()).n_rows == 0


def test_the_first_impossible_target_is_named():
    found = GatherTargetRange(GLM_FAMILIES["gamma"], target)(block())
    assert found.bad_row == np.flatnonzero(T == 0)[0]
    assert found.bad_value == 0.0
    assert found.largest == T.max()
    assert GatherTargetRange(GLM_FAMILIES["poisson"], target)(block()).bad_row == -1
