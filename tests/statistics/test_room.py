"""Statistics for ends and zeros: any split of the rows gives what all of them give."""

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
    GatherFarthest,
    GatherRoom,
    GatherTargetRange,
    GatherTightest,
)
from posteriori.statistics.separation_margins import GatherDistinct

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


KERNELS = {
    "room": GatherRoom(COLUMNS, Domain(-1.0, 3.0), target),
    "room along a direction": GatherRoom(COLUMNS, Domain(low=0.5), target, np.array([1.0, 2.0])),
    "room of labels": GatherRoom(COLUMNS, Domain(0.0, 1.0, by_label=True), target),
    "edge": GatherEdge(lambda b: b.offset, [0.5, -0.5], 0.2),
    "no edge": GatherEdge(lambda b: b.offset, [99.0], 0.2),
    "distinct": GatherDistinct(lambda b: np.column_stack([b.y, b.y > 1])),
    "range": GatherTargetRange(GLM_FAMILIES["poisson"], target),
    "range with bad ones": GatherTargetRange(GLM_FAMILIES["gamma"], target),
}


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("cuts", [[1], [20], [39], [7, 8, 30]], ids=str)
def test_any_split_of_the_rows_is_the_pooled_statistic(kernel, cuts):
    whole, parts = vars(kernel(block())), vars(sum(map(kernel, blocks(cuts))))
    for name, value in whole.items():
        np.testing.assert_array_equal(parts[name], value, err_msg=name)


def test_the_room_is_where_all_activations_are_inside():
    room = KERNELS["room along a direction"](block())
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
    kernel = GatherFarthest(glm_loss("gaussian"), lambda b: b.y * 1e-200, lambda b: b.offset * 0)
    assert sum(map(kernel, blocks([11]))).distance == T.max() * 1e-200


def test_an_edge_counts_its_rows_and_names_the_first():
    found = KERNELS["edge"](block())
    near = np.flatnonzero(np.minimum(abs(OFFSET - 0.5), abs(OFFSET + 0.5)) < 0.2)
    assert (found.n_rows, found.first) == (len(near), near[0])
    assert KERNELS["no edge"](block()).n_rows == 0


def test_the_first_impossible_target_is_named():
    found = KERNELS["range with bad ones"](block())
    assert found.bad_row == np.flatnonzero(T == 0)[0]
    assert found.bad_value == 0.0
    assert found.largest == T.max()
    assert KERNELS["range"](block()).bad_row == -1
