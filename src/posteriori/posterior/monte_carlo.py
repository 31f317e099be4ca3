"""Draws from the exact posterior, by chains in coordinates that the Laplace fit makes white.

Conventions: p free parameters w (p,), draws (chains, steps, p); w = mode + L⁻ᵀz with L the lower
Cholesky factor of the precision of the Laplace fit (4.132), so that z is about standard normal.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from posteriori.arguments import as_generator, check_choice, check_count
from posteriori.errors import ConvergenceWarning, warn
from posteriori.linalg import solve_lower
from posteriori.posterior.chains import effective_size_bulk, effective_size_tail, split_rhat
from posteriori.posterior.hamiltonian import HamiltonianChains
from posteriori.posterior.importance import trust
from posteriori.posterior.independence import IndependentChains, Pilot, look_ahead
from posteriori.posterior.many import Densities, White
from posteriori.typing import Array

Method: TypeAlias = Literal["auto", "independence", "hamiltonian"]

_RHAT = 1.01
"""R-hat from which on chains do not agree."""

_ENOUGH = 400
"""Effective draws that are enough, or a quarter of those asked for where these are few."""

_LONGEST = 8, 16_000
"""Chains that do not agree are made this many times as long, and have at least so many draws."""

_LONG = 2, 4000
"""The same for the independence sampler, where Hamiltonian steps can take its place."""

_FEW, _MANY = 4, 16
"""Chains of independent proposals, which cost the same however many; and of Hamiltonian steps,
where many make the products large."""

_SHORTEST = 20
"""Steps of a chain, that it can be judged by."""

_WORTH = 8
"""Independent proposals that cost as much as a Hamiltonian step, its warm-up included."""

_USABLE, _ACCEPTED = 0.7, 0.3
"""k-hat and acceptance of the pilot run up to which, and from which on, proposals are worth it."""


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws of Markov chains, and what is known of them.

    values: (chains, steps, p). method: "independence" or "hamiltonian". acceptance: the share of
    proposals accepted. k_hat: that of the ratios of the density to the proposals. n_warmup: steps
    of each chain that were left out. n_evaluations: densities that the chains computed, with the
    gradient or without. n_divergent: trajectories that fell out of the density; none is accepted.
    """

    values: Array
    method: Literal["independence", "hamiltonian"]
    acceptance: float
    k_hat: float
    n_warmup: int
    n_evaluations: int
    n_divergent: int

    @property
    def pooled(self) -> Array:
        """Draws of all chains together, as rows."""
        return self.values.reshape(-1, self.values.shape[2])

    @cached_property
    def rhat(self) -> Array:
        """How far chains differ (p,); 1 where they agree."""
        return split_rhat(self.values)

    @cached_property
    def effective_size(self) -> Array:
        """The smaller (p,) of those for the middle and for the tails of the distribution."""
        return np.minimum(self.effective_size_bulk, self.effective_size_tail)

    @cached_property
    def effective_size_bulk(self) -> Array:
        """Independent draws (p,) that say as much of the middle of the distribution."""
        return effective_size_bulk(self.values)

    @cached_property
    def effective_size_tail(self) -> Array:
        """Independent draws (p,) that say as much of its 5% and 95% quantiles."""
        return effective_size_tail(self.values)

    def worst(self, enough: float) -> int | None:
        """The parameter farthest from R-hat 1.01 and `enough` effective draws; None if all do.

        One that never moved counts as the worst.
        """
        excess = np.maximum((self.rhat - 1) / (_RHAT - 1), enough / self.effective_size)
        excess = np.where(np.isnan(excess), np.inf, excess)
        return int(excess.argmax()) if excess.max() > 1 else None


def sample_posterior(
    target: Densities,
    mode: Array,
    factor: Array,
    n_draws: int = 4000,
    n_chains: int | None = None,
    random_state: Any = None,
    *,
    method: Method = "auto",
    names: Sequence[str] | None = None,
) -> Draws:
    """Draws from the density of `target`, exact but for Monte Carlo error.

    Where few draws of Student's t about the Laplace fit say that it fits, the draws are proposals
    of that kind, accepted with probability min(1, r'/r), r = p/q (Metropolis and Hastings), each
    followed by its mirror image. They need no gradient, and are all computed in one pass. Elsewhere
    chains move by Hamiltonian steps.

    If chains do not agree after `n_draws` (R-hat above 1.01, or fewer than 400 effective draws of a
    parameter) they go on, to eight times as many, or 16,000; then a warning says which it is.

    Parameters
    ----------
    target : ln p of many points, and its gradients.
    mode : (p,), factor : (p, p)
        The mode, and the lower Cholesky factor L of the precision there, A = LLᵀ.
    n_draws : int
        Draws of all chains together.
    n_chains : int, optional
        4 for the independence sampler and 16 for Hamiltonian steps, if it is not given.
    random_state : None, int, Generator or RandomState
        With the same number the draws are the same, to the last bit.
    method : "auto", "independence" or "hamiltonian"
    names : one a parameter, for the warning.

    >>> from posteriori import LogisticRegression
    >>> from posteriori.linalg import cholesky
    >>> from posteriori.posterior.many import ManyDensities
    >>> X = np.random.default_rng(0).normal(size=(300, 1))
    >>> y = X[:, 0] + np.random.default_rng(1).logistic(size=300) > 0
    >>> model = LogisticRegression(prior=1.0).fit(X, y)
    >>> objective, w = model._inference.objective, model.solution_.parameters
    >>> factor = cholesky(objective(w, "full").hessian)
    >>> draws = sample_posterior(ManyDensities(objective), w, factor, random_state=0)
    >>> draws.method, bool(draws.effective_size.min() > 3000)
    ('independence', True)
    """
    check_count("n_draws", n_draws, "draws")
    if n_chains is not None:
        check_count("n_chains", n_chains, "chains")
    check_choice("method", method, get_args(Method))
    white = White(target, mode, solve_lower(factor, np.eye(len(mode))).T)
    run = _Run(white, n_draws, n_chains, as_generator(random_state))
    found = run.by(method)
    if (worst := found.worst(run.enough)) is not None:
        _warn(found, worst, names)
    return found


@dataclass(frozen=True, eq=False)
class _Run:
    """Chains of at least so many draws, on until there are enough effective ones."""

    white: White
    n_draws: int
    n_chains: int | None
    random: np.random.Generator

    @property
    def enough(self) -> float:
        return min(_ENOUGH, self.n_draws / 4)

    def by(self, method: Method) -> Draws:
        """Draws by the independence sampler if it is good, or else by Hamiltonian steps."""
        pilot = look_ahead(self.white, self.random)
        if method == "independence" or (method == "auto" and _is_promising(pilot)):
            chains = IndependentChains(pilot, self.n_chains or _FEW, self.random)
            found = self._draw(chains, _LONG if method == "auto" else _LONGEST)
            if method == "independence" or self._is_good(found):
                return found
        return self._draw(HamiltonianChains(pilot, self.n_chains or _MANY, self.random), _LONGEST)

    def _is_good(self, found: Draws) -> bool:
        """Whether ratios have a variance, and Hamiltonian steps would not do more for the time."""
        n = len(found.pooled)
        known = trust(found.k_hat, n).word == "good"
        return known and found.worst(max(self.enough, n / _WORTH)) is None

    def _draw(self, chains: IndependentChains | HamiltonianChains, limit: tuple[int, int]) -> Draws:
        """The draws asked for; twice as many where these are not enough, and so on."""
        times, least = limit
        z = chains.advance(self._steps(chains.n_chains))
        most = max(times * z.shape[1], least // chains.n_chains)
        while True:
            found = _draws_of(chains, z)
            if found.worst(self.enough) is None or z.shape[1] >= most:
                return found
            z = np.concatenate([z, chains.advance(z.shape[1])], axis=1)

    def _steps(self, n_chains: int) -> int:
        """An even number, as proposals come with their mirror images."""
        return max(2 * -(-self.n_draws // (2 * n_chains)), _SHORTEST)


def _draws_of(chains: IndependentChains | HamiltonianChains, z: Array) -> Draws:
    return Draws(
        chains.white.outward(z),
        chains.method,
        chains.acceptance,
        chains.k_hat,
        chains.n_warmup,
        chains.n_evaluations,
        chains.n_divergent,
    )


def _is_promising(pilot: Pilot) -> bool:
    return pilot.k_hat <= _USABLE and pilot.acceptance >= _ACCEPTED


def _warn(found: Draws, worst: int, names: Sequence[str] | None) -> None:
    name = f"parameter {worst}" if names is None else names[worst]
    chains, steps, _ = found.values.shape
    warn(
        ConvergenceWarning(
            f"After {steps} steps of {chains} chains the draws of {name} do not agree: R-hat is "
            f"{found.rhat[worst]:.3f}, and they are worth {found.effective_size[worst]:.0f} "
            "independent ones.",
            "Ask for more draws, give the coefficients a narrower prior, or leave out columns "
            "that depend on others.",
        )
    )
