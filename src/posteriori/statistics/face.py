"""How far to go along a separating ray, until only the rows on its face have a say.

As the coefficients run along the ray, the probability of a separated row's own class goes to one.
What is left of the likelihood is that of the rows on the face, where the classes that the ray
does not rule out have the same activation along it. Its maximum θ is finite, and θ + t ray comes as
close to the supremum of the whole likelihood as one likes.
"""

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

from posteriori.rows.block import Block
from posteriori.statistics.margins import PairsOf, Ray, pieces
from posteriori.statistics.statistic import Statistic
from posteriori.typing import Array


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
