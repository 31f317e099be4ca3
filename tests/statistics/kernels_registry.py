"""Every kernel that exists, with rows to try it on: the laws of sums walk `KERNELS`.

A new statistic is tested by one more line here, and a test says so where the line is missing.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from posteriori.design.columns import Columns
from posteriori.design.standardise import Standard
from posteriori.likelihood.binary_losses import LogisticLoss
from posteriori.likelihood.glm_families import GLM_FAMILIES, glm_loss
from posteriori.likelihood.softmax import SoftmaxLoss
from posteriori.rows.block import Block, take_block
from posteriori.rows.schema import Schema
from posteriori.statistics.column_moments import GatherColumnMoments
from posteriori.statistics.discrete_counts import (
    GatherByFamily,
    GatherCounts,
    GatherSums,
)
from posteriori.statistics.goodness_of_fit import (
    Fitted,
    GatherClassTargets,
    GatherFamilyFit,
    GatherTargetMean,
)
from posteriori.statistics.label_noise import GatherFlips
from posteriori.statistics.leverage import GatherInfluence, GatherLeverage
from posteriori.statistics.local_quadratic import (
    GatherHessianDiagonal,
    GatherHessianProduct,
    GatherProducts,
    GatherQuadratic,
    GatherScores,
)
from posteriori.statistics.many_parameters import GatherManyLosses
from posteriori.statistics.moments import GatherExpectedMoments, GatherMoments
from posteriori.statistics.row_sample import TakeSample
from posteriori.statistics.separation_margins import (
    GatherMargins,
    GatherStepLength,
    MarginGradient,
    Pairs,
)
from posteriori.statistics.variational_bound import GatherBound

N, D, K = 60, 3, 3
RANDOM = np.random.default_rng(5)
X = RANDOM.normal([0.0, 2.0, -1.0], 1.0, size=(N, D))
COUNTS = RANDOM.poisson(1.5, size=(N, D)).astype(float)
GAPS = np.where(RANDOM.uniform(size=(N, D)) < 0.2, np.nan, X)
CODES = RANDOM.integers(K, size=N)
SHARES = RANDOM.dirichlet(np.ones(K), size=N)
TWO = RANDOM.integers(2, size=N).astype(float)
COUNTED = RANDOM.poisson(1.5, size=N).astype(float)
OFFSET = 0.1 * RANDOM.normal(size=N)


@dataclass(frozen=True, eq=False)
class Entry:
    """A kernel and its rows.

    weighs: whether a weight of two is the row twice; others ask which rows there are, not how
    often. ordered: whether rows are handed on in the order in which they come. view: what to look
    at, where one value can be written in several ways.
    """

    kernel: Any
    y: np.ndarray
    X: np.ndarray = field(default_factory=lambda: X)
    weighs: bool = True
    ordered: bool = False
    view: Callable[[Any], Any] = lambda found: found

    def block(self, **given: Any) -> Block:
        """All rows, with weights unless others are given."""
        weight = 0.5 + np.arange(N) % 3
        is_one = self.y.dtype.kind == "f" and self.y.ndim == 1
        offset = OFFSET if is_one else OFFSET[:, None] * np.arange(K)
        return Block(self.X, self.y, given.get("weight", weight), 0, None, offset)

    def parts(self, cuts: list[int]) -> list[Any]:
        """The statistics of the rows between the cuts."""
        return [self.kernel(part) for part in split(self.block(), cuts)]

    def numbers(self, found: Any) -> list[np.ndarray]:
        """All that the statistic says, in numbers."""
        return list(_numbers(self.view(found)))


def split(block: Block, cuts: list[int]) -> Iterator[Block]:
    """Blocks of consecutive rows."""
    for low, high in zip([0, *cuts], [*cuts, N], strict=True):
        yield replace(take_block(block, np.arange(low, high)), start=low, kept=None)


def _numbers(value: Any) -> Iterator[np.ndarray]:
    if isinstance(value, sparse.sparray):
        value = value.toarray()
    if isinstance(value, Schema | None):
        return
    if is_dataclass(value):
        value = tuple(getattr(value, each.name) for each in fields(value))
    if isinstance(value, tuple):
        for part in value:
            yield from _numbers(part)
    else:
        yield np.asarray(value)


def _target(block: Block) -> Any:
    return block.y


def _one_hot(block: Block) -> Any:
    return np.eye(K)[block.y]


def _soft(block: Block) -> Any:
    return 0.8 * np.eye(K)[block.y] + 0.2 / K


SCHEMA = Schema.unnamed(D)
COLUMNS = Columns(SCHEMA)
CLASSES = np.arange(K)
STANDARD = Standard(np.zeros(D), np.ones(D), True)
TWO_CLASSES = GatherQuadratic(
    COLUMNS, STANDARD, LogisticLoss(), _target, RANDOM.normal(size=(1, D + 1)), "full"
)
MANY_CLASSES = GatherQuadratic(
    COLUMNS, STANDARD, SoftmaxLoss(), _one_hot, RANDOM.normal(size=(K, D + 1)), "full"
)
PAIRS = Pairs(COLUMNS, STANDARD, lambda block: _one_hot(block) > 0, K)
RAY, DIRECTION = RANDOM.normal(size=(2, K, D + 1))
FAMILIES = ("gaussian", "poisson", "categorical")


def _positive(block: Block) -> Any:
    return block.y + 0.5


def _sorted_constraints(found: Any) -> Any:
    order = np.argsort(found.violated.slack, kind="stable")
    return tuple(part[order] for part in found.violated), found.n_open, found.least_clear


KERNELS: dict[str, Entry] = {
    "moments": Entry(GatherMoments(COLUMNS, CLASSES, pooled=False), CODES),
    "moments, soft": Entry(GatherMoments(COLUMNS, CLASSES, pooled=False), SHARES),
    "column moments, soft": Entry(GatherColumnMoments(COLUMNS, CLASSES), SHARES),
    "column moments, gaps": Entry(GatherColumnMoments(COLUMNS, CLASSES), CODES, GAPS),
    "counts, soft": Entry(GatherCounts(SCHEMA, CLASSES), SHARES, COUNTS),
    "column moments": Entry(GatherColumnMoments(COLUMNS, CLASSES), CODES),
    "expected moments": Entry(
        GatherExpectedMoments(
            COLUMNS, CLASSES, np.array([0, 1, 0]), np.zeros(D), np.ones(D), np.zeros((K, D)),
            np.array([np.eye(D), np.eye(D) + 0.5]),
        ),
        CODES,
        GAPS,
    ),
    "moments, pooled": Entry(GatherMoments(COLUMNS, CLASSES, pooled=True), CODES),
    "products": Entry(GatherProducts(COLUMNS, STANDARD), CODES),
    "column moments, all rows": Entry(GatherColumnMoments(COLUMNS, np.zeros(1)), CODES),
    "counts": Entry(GatherCounts(SCHEMA, CLASSES), CODES, COUNTS),
    "sums": Entry(GatherSums(SCHEMA, CLASSES), CODES),
    "sums of what is there": Entry(GatherSums(SCHEMA, CLASSES), CODES, GAPS),
    "by family": Entry(GatherByFamily(SCHEMA, FAMILIES, CLASSES), CODES, COUNTS),
    "target mean": Entry(GatherTargetMean(_target), TWO),
    "local quadratic": Entry(TWO_CLASSES, TWO),
    "local quadratic, many classes": Entry(MANY_CLASSES, CODES),
    "local quadratic, diagonal": Entry(replace(MANY_CLASSES, hessian="diagonal"), CODES),
    "many losses": Entry(
        GatherManyLosses(
            COLUMNS, STANDARD, LogisticLoss(), _target, RANDOM.normal(size=(4, 1, D + 1)), True
        ),
        TWO,
    ),
    "scores": Entry(GatherScores(TWO_CLASSES), TWO),
    "scores, many classes": Entry(GatherScores(MANY_CLASSES), CODES),
    "leverage": Entry(
        GatherLeverage(TWO_CLASSES, RANDOM.normal(size=(D + 1, 1, D + 1))), TWO
    ),
    "leverage, many classes": Entry(
        GatherLeverage(MANY_CLASSES, RANDOM.normal(size=(2 * (D + 1), K, D + 1))), CODES
    ),
    "hessian product": Entry(
        GatherHessianProduct(TWO_CLASSES, RANDOM.normal(size=(1, D + 1))), TWO
    ),
    "hessian product, many classes": Entry(
        GatherHessianProduct(MANY_CLASSES, RANDOM.normal(size=(K, D + 1))), CODES
    ),
    "hessian diagonal, many": Entry(
        GatherHessianDiagonal(MANY_CLASSES, RANDOM.normal(size=(K, K - 1))), CODES
    ),
    "quadratic bound": Entry(GatherBound(TWO_CLASSES, RANDOM.normal(size=(1, 5, D + 1))), TWO),
    "quadratic bound, many classes": Entry(
        GatherBound(MANY_CLASSES, RANDOM.normal(size=(3, 5, D + 1))), CODES
    ),
    "flips": Entry(GatherFlips(TWO_CLASSES, 0.1), TWO),
    "class targets": Entry(GatherClassTargets(LogisticLoss(), _target), TWO),
    "class targets, soft": Entry(GatherClassTargets(SoftmaxLoss(), _soft), CODES),
    "family fit": Entry(
        GatherFamilyFit(
            glm_loss("gamma", "log"), GLM_FAMILIES["gamma"], _positive, Fitted(TWO_CLASSES)
        ),
        COUNTED,
    ),
    "one row in seven": Entry(
        TakeSample(7), CODES, weighs=False, ordered=True, view=lambda s: s.rows(SCHEMA, None)
    ),
    "margins": Entry(
        GatherMargins(PAIRS, DIRECTION, RAY, 0.0, 7),
        CODES,
        weighs=False,
        view=_sorted_constraints,
    ),
    "gradient of margins": Entry(MarginGradient(PAIRS, RAY), CODES, weighs=False),
    "step to a margin": Entry(
        GatherStepLength(PAIRS, DIRECTION, RAY, RAY, 40.0), CODES, weighs=False
    ),
    "influence": Entry(
        GatherInfluence(TWO_CLASSES, 0.1 * RANDOM.normal(size=(D + 1, 1, D + 1)), 4.0),
        TWO,
        weighs=False,
        ordered=True,
    ),
    "influence, many classes": Entry(
        GatherInfluence(MANY_CLASSES, 0.1 * RANDOM.normal(size=(2 * (D + 1), K, D + 1)), 8.0),
        CODES,
        weighs=False,
        ordered=True,
    ),
}  # fmt: skip
