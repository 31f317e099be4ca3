"""Draws from the exact posterior by Hamiltonian Monte Carlo, many chains at once.

Conventions: C chains, p free parameters w (p,). Chains move in coordinates z that the Laplace fit
makes white, w = centre + Vz with VVᵀ its covariance, so that z is about standard normal. With
velocities v ~ N(0, 1) and H = -ln p(z) + ½ vᵀv, a trajectory of leapfrog steps of length ε is
accepted with probability min(1, exp(H - H')), for each chain separately. The steps split H into
that of a standard normal density, which moves exactly on circles, and the rest, which is small
where the Laplace fit is good: then one step is a whole trajectory. One evaluation of the gradient
serves all chains.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, cast

import numpy as np
from scipy.special import logsumexp

from posteriori.arguments import as_generator, check_count
from posteriori.errors import ConvergenceWarning, warn
from posteriori.linalg import cholesky
from posteriori.posterior.log_posterior import LogPosterior
from posteriori.rows.threads import one_blas_thread
from posteriori.statistics.many_parameters import ROWS, GatherManyLosses
from posteriori.typing import Array

N_CHAINS = 16

_SHORTEST = 20
"""Draws of a chain that diagnostics need."""

_WINDOWS = 30, 40, 30
"""Trajectories of warm-up; after each window but the last, its draws give new white coordinates if
steps are short."""

_ACCEPTANCE, _LEAST_LOG = 0.8, math.log(0.01)
"""Mean acceptance that the step size is adapted to, and the least logarithm of one of a chain."""

_LENGTH = 1.8
"""Length of a trajectory: a little more than the quarter period of a Gaussian, so that successive
draws are negatively correlated."""

_MOST_STEPS = 32

_RHAT, _ENOUGH = 1.01, 400
"""The largest R-hat of chains that agree, and the effective draws that are enough."""

_LONGEST, _MOST_DRAWS = 8, 16_000
"""Chains that do not agree become at most so many times as long, or have so many draws together."""

_EVIDENCE_POINTS = 2000
_BATCH = 2**22
"""Numbers in the parameter vectors that are evaluated in one pass."""


class Density(Protocol):
    """ln p of many parameter vectors up to a constant; -∞ where there is no density."""

    def log_density(self, W: Array) -> Array:
        """ln p (m,) of the rows of W (m, p)."""
        ...

    def with_gradient(self, W: Array) -> tuple[Array, Array]:
        """The same, and its gradients (m, p)."""
        ...


@dataclass(frozen=True, eq=False)
class PosteriorDensity:
    """ln p(t|w) + ln p(w) at many w, by one pass over the rows.

    >>> from posteriori import LogisticRegression
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]
    >>> model = LogisticRegression(prior=1.0).fit(X, y)
    >>> density = PosteriorDensity(model._inference.objective)
    >>> density.log_density(np.array([[0.0, 0.0], [0.0, 1.0]])).round(4)
    array([-2.7726, -2.7476])
    """

    objective: LogPosterior

    def log_density(self, W: Array) -> Array:
        """ln p (m,), without what the loss leaves out of -ln p(t|w)."""
        size = max(1, _BATCH // W.shape[1])
        parts = [self._at(W[low : low + size], False)[0] for low in range(0, len(W), size)]
        return np.concatenate(parts)

    def with_gradient(self, W: Array) -> tuple[Array, Array]:
        """ln p (m,) and its gradients (m, p)."""
        value, gradient = self._at(W, True)
        return value, cast(Array, gradient)

    def _at(self, W: Array, with_gradients: bool) -> tuple[Array, Array | None]:
        objective, to = self.objective, self.objective.coordinates
        free = W.reshape(len(W), to.c, to.k)
        vectors = free if to.basis is None else free @ to.basis.T
        kernel = GatherManyLosses(
            objective.columns,
            objective.standard,
            objective.loss,
            objective.target,
            objective.standard.outward(to.contrasts @ vectors),
            with_gradients,
        )
        entries = ROWS * len(objective.columns.schema)
        losses = objective.rows.map_sum(kernel, block_entries=entries)
        prior_gradient = objective.penalty.times(vectors - objective.penalty.mean)
        prior = 0.5 * ((vectors - objective.penalty.mean) * prior_gradient).sum(axis=(1, 2))
        with np.errstate(over="ignore", invalid="ignore"):
            value = -objective.factor * losses.values - prior
            value = np.where(np.isnan(value), -np.inf, value)
            if losses.gradients is None:
                return value, None
            inward = objective.standard.inward(losses.gradients)
            slopes = objective.factor * (to.contrasts.T @ inward) + prior_gradient
            slopes = slopes if to.basis is None else slopes @ to.basis
        return value, -slopes.reshape(len(W), -1)


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws (chains, steps, p) of Markov chains."""

    values: Array

    @property
    def pooled(self) -> Array:
        """Draws of all chains together, as rows."""
        return self.values.reshape(-1, self.values.shape[2])

    @cached_property
    def mean(self) -> Array:
        """Of the draws (p,)."""
        return self.pooled.mean(axis=0)

    @cached_property
    def covariance(self) -> Array:
        """Of the draws (p, p)."""
        return np.atleast_2d(np.cov(self.pooled, rowvar=False))

    def sample(self, n: int = 1, random_state: Any = None) -> Array:
        """`n` of the draws, as rows."""
        check_count("n", n, "draws")
        pooled = self.pooled
        return pooled[as_generator(random_state).choice(len(pooled), n, replace=n > len(pooled))]

    @cached_property
    def diagnostics(self) -> dict[str, Array]:
        """R-hat and effective sample sizes of the free parameters."""
        return diagnostics(self.values)

    def worst(self) -> int | None:
        """The parameter farthest from R-hat 1.01 and enough effective draws; None if all have."""
        found, enough = self.diagnostics, min(_ENOUGH, len(self.pooled) / 4)
        size = np.minimum(found["ess_bulk"], found["ess_tail"])
        with np.errstate(invalid="ignore"):
            excess = np.maximum((found["rhat"] - 1) / (_RHAT - 1), enough / size)
        excess = np.where(np.isnan(excess), np.inf, excess)
        return int(excess.argmax()) if excess.max() > 1 else None


def diagnostics(draws: Array) -> dict[str, Array]:
    """R-hat (split, rank-normalised), effective sample sizes and the error of the mean, each (p,).

    >>> draws = np.random.default_rng(0).normal(size=(4, 1000, 2))
    >>> draws[0, :, 1] += 1.0
    >>> found = diagnostics(draws)
    >>> found["rhat"].round(2), bool(found["ess_bulk"][0] > 3000)
    (array([1.  , 1.09]), True)
    """
    from arviz_stats.base import array_stats

    axes = {"chain_axis": 0, "draw_axis": 1}
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            "rhat": np.asarray(array_stats.rhat(draws, **axes)),
            "ess_bulk": np.asarray(array_stats.ess(draws, **axes)),
            "ess_tail": np.asarray(
                array_stats.ess(draws, method="tail", prob=(0.05, 0.95), **axes)
            ),
            "mcse_mean": np.asarray(array_stats.mcse(draws, **axes)),
        }


def pareto_k(log_ratios: Array) -> float:
    """k-hat of importance ratios, whose moments up to 1/k are finite; -inf if they are equal.

    >>> x = np.random.default_rng(0).exponential(size=10_000)
    >>> abs(pareto_k(0.2 * x) - 0.2) < 0.1, pareto_k(np.zeros(100))
    (True, -inf)
    """
    from arviz_stats.base import array_stats

    if np.ptp(log_ratios) < 1e-8:
        return -np.inf
    return float(array_stats.psislw(-log_ratios)[1])


def sample_posterior(
    density: Density,
    centre: Array,
    root: Array,
    n_draws: int = 4000,
    random_state: Any = None,
    names: Sequence[str] | None = None,
) -> Draws:
    """Draws from a density, exact but for Monte Carlo error.

    `centre` (p,) and V = `root` (p, p) are mean and root of the covariance of a Gaussian near it.
    Chains that do not agree after `n_draws` (R-hat above 1.01, or fewer than 400 effective draws of
    a parameter) continue, to eight times as many or 16,000; then a warning has the worst name.
    The same `random_state` gives the same draws on any number of threads.

    >>> from posteriori import LogisticRegression
    >>> X = np.random.default_rng(0).normal(size=(300, 1))
    >>> y = X[:, 0] + np.random.default_rng(1).logistic(size=300) > 0
    >>> model = LogisticRegression(prior=1.0).fit(X, y)
    >>> density, w = PosteriorDensity(model._inference.objective), model.solution_.parameters
    >>> draws = sample_posterior(density, w, 0.1 * np.eye(2), random_state=0)
    >>> len(draws.values), draws.worst()
    (16, None)
    """
    check_count("n_draws", n_draws, "draws")
    with one_blas_thread():
        chains = _Chains(density, centre, root, as_generator(random_state))
        chains.warm_up()
        values = chains.advance(max(-(-n_draws // N_CHAINS), _SHORTEST))
        most = max(_LONGEST * values.shape[1], _MOST_DRAWS // N_CHAINS)
        while (found := Draws(values)).worst() is not None and values.shape[1] < most:
            values = np.concatenate([values, chains.advance(values.shape[1])], axis=1)
    if (worst := found.worst()) is not None:
        name = f"parameter {worst}" if names is None else names[worst]
        rhat = found.diagnostics["rhat"][worst]
        size = min(found.diagnostics[kind][worst] for kind in ("ess_bulk", "ess_tail"))
        warn(
            ConvergenceWarning(
                f"After {values.shape[1]} steps of {N_CHAINS} chains the draws of {name} do not "
                f"agree: R-hat is {rhat:.3f}, with {size:.0f} effective draws.",
                "Increase n_draws, give the coefficients a narrower prior, or leave out columns "
                "that depend on others.",
            )
        )
    return found


class _Chains:
    """Chains at z (C, p), with ln p (C,) and its gradient (C, p) there."""

    def __init__(
        self, density: Density, centre: Array, root: Array, random: np.random.Generator
    ) -> None:
        self._density, self._centre, self._root, self._random = density, centre, root, random
        self._step = len(centre) ** -0.25
        self._move_to(1.5 * random.standard_normal((N_CHAINS, len(centre))))

    def warm_up(self) -> None:
        """Adapt the step size, and the white coordinates to the covariance of the draws."""
        for window in _WINDOWS[:-1]:
            draws = self._adapt(window)[:, window // 2 :]
            if self._step < 0.5 * _LENGTH:  # else the Laplace fit is better than few draws
                self._whiten(draws.reshape(-1, len(self._centre)))
        self._adapt(_WINDOWS[-1])

    def advance(self, steps: int) -> Array:
        """The next draws of the free parameters (C, steps, p)."""
        draws = np.empty((N_CHAINS, steps, len(self._centre)))
        for i in range(steps):
            self._trajectory()
            draws[:, i] = self._z
        return self._centre + draws @ self._root.T

    def _adapt(self, steps: int) -> Array:
        """Draws (C, steps, p) while the step size moves towards the acceptance wanted.

        Its mean is the harmonic one, which is small if one chain's is: none may stay where the
        density is too steep for the step size.
        """
        draws, sizes = np.empty((N_CHAINS, steps, len(self._centre))), []
        for i in range(steps):
            acceptance = np.exp(np.clip(self._trajectory(), _LEAST_LOG, 0.0))
            accepted = 1 / float((1 / acceptance).mean())
            self._step *= math.exp((accepted - _ACCEPTANCE) / math.sqrt(1 + i / 4))
            self._step = min(self._step, _LENGTH)
            sizes.append(math.log(self._step))
            draws[:, i] = self._z
        self._step = math.exp(sum(sizes[steps // 2 :]) / len(sizes[steps // 2 :]))
        return draws

    def _whiten(self, draws: Array) -> None:
        """Coordinates in which these draws (n, p) are white, shrunk to the old ones."""
        n, p = draws.shape
        mean = draws.mean(axis=0)
        away = draws - mean
        root = cholesky((away.T @ away + p * np.eye(p)) / (n + p))
        if root is None:  # not finite
            return
        moved = np.linalg.solve(root, (self._z - mean).T).T
        self._centre, self._root = self._centre + self._root @ mean, self._root @ root
        self._move_to(moved)

    def _move_to(self, z: Array) -> None:
        self._z = z
        self._value, self._gradient = self._at(z)

    def _at(self, z: Array) -> tuple[Array, Array]:
        with np.errstate(all="ignore"):
            value, gradient = self._density.with_gradient(self._centre + z @ self._root.T)
            return value, gradient @ self._root

    def _trajectory(self) -> Array:
        """Move every chain along a trajectory, if it is accepted; H - H' of each (C,).

        Lengths vary, so that trajectories are not periodic; so do step sizes, as short steps leave
        places where the density is steep.
        """
        random = self._random
        start = v = random.standard_normal(self._z.shape)
        step = self._step * random.uniform(0.5, 1.0) ** (random.random() < 0.25)
        length = _LENGTH * random.uniform(0.7, 1.3)
        n_steps = max(1, min(round(length / step), _MOST_STEPS))
        cos, sin = math.cos(step), math.sin(step)
        chance = np.log(random.random(N_CHAINS))
        z, value, gradient = self._z, self._value, self._gradient
        with np.errstate(all="ignore"):
            for _ in range(n_steps):
                v = v + 0.5 * step * (gradient + z)
                z, v = cos * z + sin * v, cos * v - sin * z
                value, gradient = self._at(z)
                v = v + 0.5 * step * (gradient + z)
            gain = value - self._value + 0.5 * (np.square(start) - np.square(v)).sum(axis=1)
            gain = np.where(np.isnan(gain), -np.inf, gain)
        accepted = chance < gain
        self._z = np.where(accepted[:, None], z, self._z)
        self._value = np.where(accepted, value, self._value)
        self._gradient = np.where(accepted[:, None], gradient, self._gradient)
        return gain


def importance_evidence(
    density: Density, draws: Draws, random: np.random.Generator
) -> tuple[float, float]:
    """ln ∫ p(t, w) dw and its Monte Carlo standard error, from draws of the posterior.

    p(t) ≈ (1/S) Σ_s p(t, w_s)/q(w_s), with w_s ~ q: Student's t with mean and covariance of the
    draws. Its tails are heavier than those of any log-concave density; its degrees of freedom,
    5 + 2p, grow with p, as else its shape in many dimensions would be unlike a Gaussian's.

    >>> class Normal:
    ...     def log_density(self, W):
    ...         return -0.5 * (W**2).sum(axis=1)
    >>> draws = Draws(np.random.default_rng(0).normal(size=(1, 500, 2)))
    >>> value, error = importance_evidence(Normal(), draws, np.random.default_rng(0))
    >>> abs(value - np.log(2 * np.pi)) < 3 * error < 0.05
    True
    """
    from scipy.stats import multivariate_t

    shape = draws.covariance
    near = multivariate_t(draws.mean, shape, 5.0 + 2 * len(shape), allow_singular=True)
    points = np.reshape(near.rvs(_EVIDENCE_POINTS, random), (_EVIDENCE_POINTS, -1))
    logs = density.log_density(points) - near.logpdf(points)
    value = float(logsumexp(logs)) - math.log(_EVIDENCE_POINTS)
    error = float(np.std(np.exp(logs - value))) / math.sqrt(_EVIDENCE_POINTS)
    return value, error
