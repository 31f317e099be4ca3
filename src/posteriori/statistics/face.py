"""What a separating ray leaves open: the rows on which a fit still has something to find.

As the coefficients run along the ray, the probability of a separated row's own class goes to one.
What is left of the likelihood is that of the rows on the face, where the classes that the ray
does not rule out have the same activation along it. Its maximum θ is finite, and θ + t ray comes as
close to the supremum of the whole likelihood as one likes.

With two classes a row is on the face or it is not. With more, a row may be left with some of the
classes: it is on the face as long as these are two or more, and `Face.allowed` says which. A kernel
for the face has to leave the others out of its softmax, as if their activations were -∞.
"""

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, Generic, TypeVar

import numpy as np

from posteriori.rows.block import Block, take_block
from posteriori.rows.rows import Kernel
from posteriori.statistics.margins import OPEN, PairsOf, Ray, pieces
from posteriori.statistics.pairs import Mask
from posteriori.statistics.statistic import Statistic
from posteriori.typing import Array

S = TypeVar("S")


@dataclass(frozen=True, eq=False)
class Face:
    """The rows and classes that a ray leaves open."""

    ray: Ray

    def allowed(self, block: Block) -> Mask:
        """The classes that the ray does not rule out (n, K): those of the largest activation."""
        found = [self._allowed(piece) for piece in pieces(self.ray.coordinates, block)]
        return np.concatenate(found)

    def _allowed(self, block: Block) -> Mask:
        coordinates = self.ray.coordinates
        activation = coordinates.times(coordinates.design(block), self.ray.theta)
        activation *= coordinates.shortening(block)
        if activation.shape[1] == 1:
            activation = np.column_stack([np.zeros(len(activation)), activation[:, 0]])
        return activation >= activation.max(axis=1, keepdims=True) - OPEN

    def part(self, block: Block) -> Block:
        """The rows of a block for which two classes or more are allowed."""
        return take_block(block, np.flatnonzero(self.allowed(block).sum(axis=1) > 1))


@dataclass(frozen=True, eq=False)
class OnFace(Generic[S]):
    """A kernel for the rows on the face only: the others are dropped before it sees them."""

    kernel: Kernel[S]
    face: Face

    def __call__(self, block: Block) -> S:
        return self.kernel(self.face.part(block))


@dataclass(frozen=True, eq=False)
class Reach(Statistic):
    """The smallest t with margins of θ + t ray that are large enough on all separated pairs."""

    t: float

    def __add__(self, other: "Reach") -> "Reach":
        return Reach(max(self.t, other.t))


@dataclass(frozen=True, eq=False)
class GatherReach:
    """The kernel: how far to go from θ (p, c), in the units of the columns, along the ray of
    `pairs`, until all pairs that it separates have a margin."""

    pairs: PairsOf
    theta: Array
    margin: float

    def __call__(self, block: Block) -> Reach:
        ray: Any = self.pairs.ray
        return reduce(add, map(self._reach, pieces(ray.coordinates, block)))

    def _reach(self, block: Block) -> Reach:
        ray: Any = self.pairs.ray
        pairs, is_open = self.pairs(block)
        here = Ray(ray.coordinates, ray.coordinates.standard(self.theta)).margins(block, pairs)
        separated = ~is_open & pairs.all()
        lacking = self.margin - here[separated]
        return Reach(float((lacking / ray.margins(block, pairs)[separated]).max(initial=0.0)))
