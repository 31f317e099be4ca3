"""Draws by Hamiltonian Monte Carlo, many chains at once: one gradient call serves them all.

Conventions: C chains, p parameters, positions z (C, p) in white coordinates, velocities v (C, p),
standard normal before each trajectory. H = -ln p(z) + ½ vᵀv; a trajectory of n leapfrog steps of
length ε is accepted with probability min(1, exp(H - H')), for each chain by itself.

Positions and velocities lie on grids, and every change of theirs is rounded to these. Leapfrog
steps can still be taken back, to the last bit, so that draws are those of the density on the grid.
As a gradient changes velocities by whole grains, rounding errors of it are forgotten at once, where
they would grow with every trajectory. So draws are the same, but for last digits, if rows come in
another order, or twice in place of weight two, or on another machine.
"""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from posteriori.linalg import cholesky
from posteriori.posterior.independence import Pilot, Proposals
from posteriori.typing import Array

_TARGET = 0.8
"""Mean acceptance that steps are made short enough for."""

_LENGTH = 1.8
"""Length of a trajectory: a little more than a quarter of a turn, after which a Gaussian has
forgotten where it began; draws then lie to and fro, and means are found from fewer of them."""

_JITTER = 0.3
"""Trajectories are shorter or longer by up to this share, so that none leads back for ever."""

_SHORT, _SHORTER = 0.2, 5.0
"""Share of trajectories whose steps are so many times shorter: by them a chain leaves a place where
the density is steep, and where it would stand still else."""

_MOST_STEPS = 32
"""Leapfrog steps of a trajectory at most, where the density asks for very short ones."""

_WINDOWS = 30, 50, 30
"""Steps of warm-up; after each but the last, draws give new white coordinates."""

_WIDER = 1.5
"""Starts are this much wider than the Laplace fit."""

_LEAST_CHANCE = 0.01
"""Chances of less count as this much in a harmonic mean."""

_DIVERGENT = -1000.0
"""An exp(H - H') of less than e to this is no rounding of a trajectory, but a fall out of it."""

_HALVINGS = 60

_GRAIN, _SPEED_GRAIN = 2.0**-32, 2.0**-10
"""Grains of positions and velocities. Equal velocities make equal positions, so that these may be
as fine as doubles carry; those must be coarse beside the rounding errors of gradients."""

_SIZES = 64
"""ln ε is a whole number over this."""


class Place(NamedTuple):
    """Where chains are: z (C, p), ln p (C,) and its gradient (C, p)."""

    z: Array
    log_density: Array
    gradient: Array


@dataclass
class StepSize:
    """ε by dual averaging, so that the mean acceptance is 0.8 (Hoffman and Gelman 2014).

    ln ε_t = μ - (√t/γ) h, h being the mean of what acceptance lacked; `mean` averages them. Both
    are rounded to a 64th, as no finer size is known.

    >>> size = StepSize(1.0)
    >>> for _ in range(200):
    ...     size.update(1 - 0.5 * size.now)
    >>> round(size.mean, 1)
    0.4
    """

    now: float

    def __post_init__(self) -> None:
        self._middle, self._lack, self._count, self._log_mean = math.log(self.now), 0.0, 0, 0.0

    def update(self, acceptance: float) -> None:
        """Hear how many trajectories of length `now` were accepted."""
        self._count += 1
        share = 1 / (self._count + 10)
        self._lack += share * (_TARGET - acceptance - self._lack)
        log_now = self._middle - math.sqrt(self._count) / 0.05 * self._lack
        self._log_mean += self._count**-0.75 * (log_now - self._log_mean)
        self.now = _size(log_now)

    @property
    def mean(self) -> float:
        """The ε to go on with."""
        return _size(self._log_mean) if self._count else self.now


def _size(logarithm: float) -> float:
    return math.exp(round(_SIZES * logarithm) / _SIZES)


class HamiltonianChains:
    """Chains that start wider than the Laplace fit and learn ε and the covariance in a warm-up.

    Nothing is learned after it: each step then leaves the density as it is.
    """

    method: Literal["hamiltonian"] = "hamiltonian"
    n_warmup = sum(_WINDOWS)

    def __init__(self, pilot: Pilot, n_chains: int, random: np.random.Generator) -> None:
        self.white, self.k_hat, self.n_chains = pilot.white, pilot.k_hat, n_chains
        self._random = random
        self.n_evaluations = self.n_divergent = self.n_proposals = 0
        self._accepted = 0.0
        self._size = len(pilot.white.centre) ** -0.25
        self._place = self._start(n_chains)
        self._warm_up()
        self.n_divergent = self.n_proposals = 0
        self._accepted = 0.0

    @property
    def acceptance(self) -> float:
        """The mean chance of trajectories to be accepted, since the warm-up."""
        return self._accepted / max(self.n_proposals, 1)

    @property
    def step_size(self) -> float:
        """ε in white coordinates."""
        return self._size

    def advance(self, steps: int) -> Array:
        """The next draws of the chains (C, steps, p), in white coordinates."""
        draws = np.empty((len(self._place.z), steps, self._place.z.shape[1]))
        for i in range(steps):
            self._step()
            draws[:, i] = self._place.z
        return draws

    def _start(self, n_chains: int) -> Place:
        """Wide of the mode, but nearer to it where there is no density."""
        z = _rounded(_WIDER * Proposals(self.white).draw(n_chains, self._random), _GRAIN)
        for _ in range(_HALVINGS):
            place = self._at(z)
            lost = ~np.isfinite(place.log_density) | ~np.isfinite(place.gradient).all(axis=1)
            if not lost.any():
                break
            z = np.where(lost[:, None], _rounded(0.5 * z, _GRAIN), z)
        return place

    def _at(self, z: Array) -> Place:
        self.n_evaluations += len(z)
        with np.errstate(all="ignore"):
            return Place(z, *self.white.with_gradient(z))

    def _warm_up(self) -> None:
        for i, steps in enumerate(_WINDOWS):
            draws, size = np.empty((steps, *self._place.z.shape)), StepSize(self._size)
            is_last = i + 1 == len(_WINDOWS)
            for j in range(steps):
                self._size = size.now
                chance = self._step()
                size.update(float(chance.mean() if is_last else _harmonic_mean(chance)))
                draws[j] = self._place.z
            self._size = size.mean
            if not is_last:
                self._whiten(draws[steps // 2 :].reshape(-1, draws.shape[2]))

    def _whiten(self, draws: Array) -> None:
        """Make these draws (n, p) white; if they are few, keep near to the old coordinates."""
        n, p = draws.shape
        mean = draws.mean(axis=0)
        away = draws - mean
        root = cholesky((away.T @ away + p * np.eye(p)) / (n + p))
        if root is None:  # draws too far apart for doubles
            return
        self.white = self.white.about(mean, root)
        moved = np.linalg.solve(root, (self._place.z - mean).T).T
        self._place = self._at(_rounded(moved, _GRAIN))

    def _step(self) -> Array:
        """One trajectory of every chain; the chances of them to be accepted (C,)."""
        random, here = self._random, self._place
        v = _rounded(random.standard_normal(here.z.shape), _SPEED_GRAIN)
        length = _LENGTH * (1 + _JITTER * random.uniform(-1, 1)) / self._size
        is_short = random.random() < _SHORT
        chance_of_each = random.random(len(v))
        with np.errstate(all="ignore"):
            size = self._size / (_SHORTER if is_short else 1.0)
            there, speed = self._trajectory(v, size, round(min(max(length, 1), _MOST_STEPS)))
            gain = there.log_density - here.log_density
            gain += 0.5 * (np.square(v) - np.square(speed)).sum(axis=1)
            gain = np.where(np.isnan(gain), -np.inf, gain)
            chance = np.exp(np.minimum(gain, 0.0))
        accepted = chance_of_each < chance
        self._place = Place(
            np.where(accepted[:, None], there.z, here.z),
            np.where(accepted, there.log_density, here.log_density),
            np.where(accepted[:, None], there.gradient, here.gradient),
        )
        self.n_divergent += int((gain < _DIVERGENT).sum())
        self.n_proposals += len(v)
        self._accepted += float(chance.sum())
        return chance

    def _trajectory(self, v: Array, size: float, steps: int) -> tuple[Place, Array]:
        """Leapfrog steps from where the chains are: the end, and the velocities there."""
        place = self._place
        v = v + _rounded(0.5 * size * place.gradient, _SPEED_GRAIN)
        for i in range(steps):
            place = self._at(place.z + _rounded(size * v, _GRAIN))
            time = size if i + 1 < steps else 0.5 * size
            v = v + _rounded(time * place.gradient, _SPEED_GRAIN)
        return place, v


def _rounded(values: Array, grain: float) -> Array:
    """The nearest points of a grid; that of -x is the opposite of that of x."""
    return grain * np.rint(values / grain)


def _harmonic_mean(chance: Array) -> float:
    """A mean of chances that is small if one of them is: no chain may be left where it cannot move.

    >>> round(_harmonic_mean(np.array([0.9, 0.9, 0.9, 0.0])), 2)
    0.04
    """
    return float(1 / (1 / np.maximum(chance, _LEAST_CHANCE)).mean())
