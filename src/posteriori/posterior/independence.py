"""Draws by the independence sampler: proposals that do not depend on where a chain is.

Conventions: C chains, p parameters, z (C, p) white. A proposal z' ~ q is accepted with probability
min(1, r(z')/r(z)), r = p/q being the ratio of the density wanted to that of the proposals. After
each such step a chain at z tries -z, accepted with probability min(1, r(-z)/r(z)), as q is even:
what one draw has too much of the next has too little of, so that means are found from fewer draws.

All densities can be had beforehand, in one pass over the rows; the chains then only choose.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from posteriori.posterior.importance import smoothed
from posteriori.posterior.many import White
from posteriori.typing import Array, Codes

_PILOT = 256
"""Draws by which the proposals are judged and moved to the mean of the density."""

_FEWEST_DEGREES, _DEGREES = 4.0, 10.0
"""Degrees of freedom of the proposals: at least, and at most besides for each parameter."""

_LEFT = 1e-3
"""Share of chains that may not have moved yet when the warm-up ends."""

_LONGEST_WARMUP = 50

_DECIMALS = 3
"""Of the mean of the density, in standard deviations."""


@dataclass(frozen=True, eq=False)
class Proposals:
    """Student's t about the origin of white coordinates, with ν degrees of freedom.

    ln q(z) = -½ (ν + p) ln(1 + zᵀz/ν). A log-concave density falls at least exponentially along
    every ray and q does not, so that p/q has a bound; a Gaussian would have none, as the loss grows
    like a straight line far from the data. Where the density is Gaussian, ln p/q varies by about
    p/ν: ν grows with p², then with p, so that some one in twenty of the proposals is lost by it.
    """

    white: White

    @property
    def p(self) -> int:
        return len(self.white.centre)

    @property
    def degrees(self) -> float:
        """ν."""
        return _FEWEST_DEGREES + min(0.5 * self.p**2, _DEGREES * self.p)

    def draw(self, n: int, random: np.random.Generator) -> Array:
        """Proposals (n, p)."""
        z = random.standard_normal((n, self.p))
        return z / np.sqrt(random.chisquare(self.degrees, (n, 1)) / self.degrees)

    def log_ratio(self, z: Array, log_density: Array) -> Array:
        """ln p - ln q (n,) up to a constant."""
        squares = np.square(z).sum(axis=1)
        return log_density + 0.5 * (self.degrees + self.p) * np.log1p(squares / self.degrees)


@dataclass(frozen=True, eq=False)
class Pilot:
    """What a few draws say of the proposals: k-hat of their ratios, and how many are accepted.

    `white` are coordinates about the mean of the density, z (n, p) the draws in them, and
    `log_density` (n,) and `log_weights` (n,) belong to these.
    """

    white: White
    z: Array
    log_density: Array
    log_weights: Array
    k_hat: float
    acceptance: float

    @property
    def n_warmup(self) -> int:
        """Proposals after which all but a thousandth of the chains have moved."""
        stay = np.clip(1 - self.acceptance, 1e-3, 1 - 1e-3)
        return int(min(np.ceil(np.log(_LEFT) / np.log(stay)), _LONGEST_WARMUP))


def look_ahead(white: White, random: np.random.Generator) -> Pilot:
    """A pilot run: each draw z has its mirror image -z, which makes the mean of few draws good."""
    proposals = Proposals(white)
    half = proposals.draw(_PILOT // 2, random)
    z = np.concatenate([half, -half])
    log_density = white.log_density(z)
    if not np.isfinite(log_density).any():
        return Pilot(white, z, log_density, np.full(len(z), -np.log(len(z))), np.inf, 0.0)
    ratios = proposals.log_ratio(z, log_density)
    found = smoothed(ratios)
    weights = np.exp(found.log_weights)
    # No finer than the draws can tell: rounding errors of the densities do not reach the centre.
    mean = np.round(weights @ z, _DECIMALS)
    moved = white.about(mean, np.eye(len(mean)))
    acceptance = mean_acceptance(ratios, weights)
    return Pilot(moved, z - mean, log_density, found.log_weights, found.k_hat, acceptance)


def mean_acceptance(log_ratios: Array, weights: Array) -> float:
    """E min(1, r(z')/r(z)) over z ~ p, z' ~ q, from draws of q and their weights.

    >>> mean_acceptance(np.log([1.0, 3.0]), np.array([0.25, 0.75]))
    0.75
    """
    with np.errstate(invalid="ignore"):
        chance = np.exp(np.minimum(log_ratios[:, None] - log_ratios, 0.0))
    # A draw of weight zero is never where a chain is.
    return float(np.where(weights > 0, chance, 0.0).mean(axis=0) @ weights)


class IndependentChains:
    """Chains that choose among proposals about the mean of the density, from a pilot run."""

    method: Literal["independence"] = "independence"
    n_divergent = 0

    def __init__(self, pilot: Pilot, n_chains: int, random: np.random.Generator) -> None:
        self.white, self.n_warmup = pilot.white, 2 * pilot.n_warmup
        self.n_chains = n_chains
        self._proposals, self._random = Proposals(pilot.white), random
        starts = random.choice(len(pilot.z), n_chains, p=np.exp(pilot.log_weights))
        self._z = pilot.z[starts]
        self._ratio = self._proposals.log_ratio(self._z, pilot.log_density[starts])
        self._mirrored = self._proposals.log_ratio(self._z, self.white.log_density(-self._z))
        self._ratios: list[Array] = []
        self._n_accepted = 0
        self.n_evaluations = n_chains
        self.advance(self.n_warmup)
        self._n_accepted = 0

    def advance(self, steps: int) -> Array:
        """The next draws of the chains (C, steps, p), in white coordinates; `steps` is even."""
        C, p = self._z.shape
        z = self._proposals.draw(C * steps // 2, self._random)
        log_density = self.white.log_density(np.concatenate([z, -z]))
        ratios = self._proposals.log_ratio(np.concatenate([z, z]), log_density)
        self.n_evaluations += len(ratios)
        self._ratios.append(ratios)
        with np.errstate(invalid="ignore"):  # from one point without density to another
            taken, sign = self._choose(ratios.reshape(2, C, steps // 2))
        places = np.concatenate([self._z[:, None], z.reshape(C, steps // 2, p)], axis=1)
        draws = sign[..., None] * np.take_along_axis(places, taken[..., None], axis=1)
        self._z = draws[:, -1]
        return draws

    def _choose(self, ratios: Array) -> tuple[Codes, Array]:
        """Where each chain is after each step (C, steps): 0 its start, i + 1 proposal i; and the
        sign, from the ratios of proposals and of their mirror images (2, C, steps/2)."""
        _, C, rounds = ratios.shape
        jumps = np.log(self._random.random((rounds, 2, C)))
        taken, signs = np.zeros((C, 2 * rounds), dtype=np.intp), np.empty((C, 2 * rounds))
        here, sign = np.zeros(C, dtype=np.intp), np.ones(C)
        now, other = self._ratio, self._mirrored
        for i in range(rounds):
            accepted = jumps[i, 0] < ratios[0, :, i] - now
            here, sign = np.where(accepted, i + 1, here), np.where(accepted, 1.0, sign)
            now = np.where(accepted, ratios[0, :, i], now)
            other = np.where(accepted, ratios[1, :, i], other)
            taken[:, 2 * i], signs[:, 2 * i] = here, sign
            turned = jumps[i, 1] < other - now
            now, other = np.where(turned, other, now), np.where(turned, now, other)
            sign = np.where(turned, -sign, sign)
            taken[:, 2 * i + 1], signs[:, 2 * i + 1] = here, sign
            self._n_accepted += int(accepted.sum()) + int(turned.sum())
        self._ratio, self._mirrored = now, other
        return taken, signs

    @property
    def n_proposals(self) -> int:
        """Since the warm-up."""
        return sum(map(len, self._ratios[1:]))

    @property
    def acceptance(self) -> float:
        """The share of proposals that were accepted since the warm-up."""
        return self._n_accepted / max(self.n_proposals, 1)

    @property
    def k_hat(self) -> float:
        """That of the ratios of all proposals."""
        return smoothed(np.concatenate(self._ratios)).k_hat
