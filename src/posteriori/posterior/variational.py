"""A Gaussian posterior by quadratic bounds on the likelihood (10.6).

Given a proper Gaussian prior p(w) of precision P, every Gaussian q(w) = N(m, A⁻¹) has a bound

    ln p(t) ≥ L(q) = Σ_n w_n E_q[bound of row n] - KL(q || p)

on the evidence, and the best q makes it largest. While each row's bound touches where q has it
touch, the rows are a quadratic in w, with gradient g at m and curvature H. The best q for it is

    A' = P + H,    m' = m + A'⁻¹(g - P(m - m₀)).

L rises by KL(q || q') at least, which is known before the next pass over the rows. A pass gives L,
g and H. As such steps converge linearly, Anderson (1965) acceleration combines the last few; a
combination that does not raise L by as much as the plain step must is discarded.

With `groups`, `variational` also chooses the precisions of the prior by the bound on the evidence.

Conventions: c contrasts (1 for two classes), q parameters each, p = cq free parameters w (p,).
Parameters are in G groups, each with one precision α.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import NamedTuple, cast

import numpy as np

from posteriori.errors import ParameterError
from posteriori.likelihood.binary_losses import BinaryLoss, LogisticLoss
from posteriori.likelihood.softmax import SoftmaxLoss
from posteriori.linalg import cholesky, unit_diagonal
from posteriori.posterior.evidence import grouped_sums, with_precisions
from posteriori.posterior.gaussian import Gaussian
from posteriori.posterior.log_posterior import BLOCK_ENTRIES, WIDE, LogPosterior
from posteriori.posterior.priors import Penalty
from posteriori.solve.objective import Status
from posteriori.statistics.variational_bound import GatherBound
from posteriori.typing import Array, Codes

_REMEMBERED, _NUMBERS = 10, 2**25
"""Steps that are combined, and how many numbers they may have: fewer with many parameters."""

_ROUNDING = 1e-12
"""A rise of less than this share of the bound is rounding."""


_ROUNDS = 20
"""Precisions that are tried on one quadratic; they cost no pass over the rows."""

_LEVEL = 1e-14
"""A rise that is rounding."""

_SHARPEST = 1e12
"""The largest precision, as a multiple of the curvature: the coefficient is then zero."""


@dataclass(frozen=True, eq=False)
class VariationalPosterior:
    """The best Gaussian under the bound, its bound on the log evidence, and the way there.

    `trace` has the bound before the first step and after each; it never falls. `penalty` is the
    prior: that of the objective, or the one that was chosen.
    """

    posterior: Gaussian
    bound: float
    penalty: Penalty
    status: Status
    trace: tuple[float, ...]


def variational(
    objective: LogPosterior,
    mean: Array,
    precision: Array,
    groups: Codes | None = None,
    *,
    tol: float = 1e-10,
    max_iter: int = 500,
) -> VariationalPosterior:
    """The Gaussian q(w) of the largest bound L(q) ≤ ln p(t), with `groups` of L(q, α).

    `mean` (p,) and `precision` (p, p) are the start: a Laplace fit. The iteration ends where
    KL(q || q'), half a step's squared length in standard deviations, is no more than `tol`; where
    rounding hides a rise; or after `max_iter` steps. With more than two classes L may have several
    maxima, a little apart, as rows can take either of two bounds.

    `groups` (q,) numbers the precisions α of the prior from 0 on: parameters of one number share
    one, over all contrasts; those of -1 keep the prior of the objective. Each step then raises
    max_α L(q, α). A coefficient without effect gets a precision so large that it is zero.

    A single row φ = 2 of the second class, with a standard normal prior on its coefficient. The
    evidence is a half, and ln ½ = -0.693.

    >>> from posteriori.design.columns import Columns
    >>> from posteriori.design.standardise import Standard
    >>> from posteriori.posterior.log_posterior import Coordinates
    >>> from posteriori.rows.in_memory import read_rows
    >>> rows = read_rows(np.array([[2.0]]), np.array([[0.0, 1.0]]), None, [0, 1])
    >>> objective = LogPosterior(
    ...     rows, Columns(rows.schema), Standard(np.zeros(1), np.ones(1), False), LogisticLoss(),
    ...     lambda block: block.y[:, 1], Penalty(np.zeros(1), np.ones(1), True),
    ...     Coordinates(1, 1), 1e-8,
    ... )
    >>> found = variational(objective, np.zeros(1), 2 * np.eye(1))
    >>> round(found.bound, 4), found.posterior.mean.round(4), found.posterior.precision.round(4)
    (-0.7448, array([0.5606]), array([[1.7837]]))
    """
    q, given = objective.coordinates.q, objective.penalty.precision
    if groups is not None and (given.ndim != 1 or len(groups) != q or groups.max(initial=-1) < 0):
        raise ParameterError(
            "The evidence cannot choose the precisions of this prior.",
            f"Use a prior without correlations, and a group for each of {q} parameters.",
        )
    return ascend(_Prior(objective, groups), Gaussian.of(mean, precision), tol, max_iter)


class Quadratic(NamedTuple):
    """What rows add to ln p(w): g(w - m) - ½(w - m)ᵀH(w - m), up to a constant."""

    m: Array
    g: Array
    H: Array


class Fit(NamedTuple):
    """The Gaussian that a prior and a quadratic make, and ln of its integral up to a constant."""

    q: Gaussian
    penalty: Penalty
    value: float


@dataclass(frozen=True, eq=False)
class _Prior:
    """The prior of the objective; with `groups` (q,), a precision for each, the best for q."""

    objective: LogPosterior
    groups: Codes | None

    def suited(self, q: Gaussian) -> Penalty:
        """The prior for which L(q) is largest."""
        if self.groups is None:
            return self.objective.penalty
        return self._with(precision_update(self._away(q), q.covariance, self.groups), self.groups)

    def better(self, rows: Quadratic, fit: Fit) -> Fit:
        """The best precisions for one quadratic, or better ones at least."""
        if self.groups is None:
            return fit
        most = _SHARPEST * (1.0 + np.diagonal(rows.H).max(initial=0.0))
        for _ in range(_ROUNDS):
            proposals = self._proposals(fit, most, self.groups)
            tried = (self.fit(rows, self._with(alpha, self.groups)) for alpha in proposals)
            found = next((each for each in tried if each.value > fit.value), fit)
            if found.value - fit.value <= _LEVEL * (1.0 + abs(fit.value)):
                break
            fit = found
        return fit

    def gaussian(self, penalty: Penalty) -> Gaussian:
        """The prior of w: one a contrast; an error where it is not proper."""
        c = self.objective.coordinates.c
        correlation, scale = unit_diagonal(penalty.matrix(c))
        lower = cholesky(correlation)
        if lower is None or self.objective.coordinates.basis is not None:
            raise ParameterError(
                "The evidence needs a proper prior, and some coefficient has none.",
                "Set a positive precision for every column, and intercept_precision too.",
            )
        return Gaussian(penalty.means(c), lower * scale[:, None])

    def fit(self, rows: Quadratic, penalty: Penalty) -> Fit:
        """With this prior."""
        prior = self.gaussian(penalty)
        away = (rows.m - prior.mean) @ prior.precision_cholesky
        q = Gaussian.of(rows.m, prior.precision + rows.H)
        step = (rows.g - prior.precision_cholesky @ away) @ q.root
        value = prior.log_determinant - q.log_determinant + step @ step - away @ away
        return Fit(replace(q, mean=rows.m + q.root @ step), penalty, 0.5 * float(value))

    def _proposals(self, fit: Fit, most: float, groups: Codes) -> Iterator[Array]:
        """Precisions to try next.

        MacKay's α = (M - α Σ S_jj) / Σ m_j² goes far at once but may overshoot; the other cannot.
        """
        away, covariance = self._away(fit.q), fit.q.covariance
        held = np.tile(fit.penalty.precision, self.objective.coordinates.c)
        known = grouped_sums(1.0 - held * np.diagonal(covariance), groups)
        if (known > 0).all():
            with np.errstate(divide="ignore"):
                yield np.minimum(known / grouped_sums(away**2, groups), most)
        yield np.minimum(precision_update(away, covariance, groups), most)

    def _away(self, q: Gaussian) -> Array:
        return q.mean - np.tile(self.objective.penalty.mean, self.objective.coordinates.c)

    def _with(self, alpha: Array, groups: Codes) -> Penalty:
        return replace(with_precisions(self.objective.penalty, groups, alpha), proper=True)


class _Point(NamedTuple):
    """A Gaussian, the prior that suits it, its bound, the plain step, and the least rise by it."""

    q: Gaussian
    penalty: Penalty
    bound: float
    following: Gaussian
    gain: float


def ascend(prior: _Prior, start: Gaussian, tol: float, max_iter: int) -> VariationalPosterior:
    """Steps that raise the bound."""
    _check(prior.objective)
    here = _evaluate(prior, start)
    trace, memory, status = [here.bound], _Memory(start), Status.MAX_ITERATIONS
    for _ in range(max_iter):
        if here.gain <= tol:
            status = Status.CONVERGED
            break
        found = _mixed(prior, here, memory) or _evaluate(prior, here.following)
        if not found.bound > here.bound:  # but for rounding, a plain step raises it
            hidden = here.gain <= max(tol, _ROUNDING * abs(here.bound))
            status = Status.CONVERGED if hidden else Status.STALLED
            break
        here = found
        trace.append(here.bound)
    return VariationalPosterior(here.q, here.bound, here.penalty, status, tuple(trace))


def _evaluate(prior: _Prior, q: Gaussian) -> _Point:
    """One pass over the rows."""
    objective, penalty = prior.objective, prior.suited(q)
    kernel = GatherBound(objective.kernel(q.mean), _roots(objective, q))
    found = objective.rows.map_sum(kernel, block_entries=_block_entries(objective))
    bound = -objective.factor * found.value - divergence(q, prior.gaussian(penalty))
    standard, coordinates = objective.standard, objective.coordinates
    g = -coordinates.contract(standard.inward(found.gradient))
    H = coordinates.contract_matrix(standard.inward_matrix(cast(Array, found.hessian)))
    rows = Quadratic(q.mean, objective.factor * g, objective.factor * H)
    first = prior.fit(rows, penalty)
    following = prior.better(rows, first)
    gain = divergence(q, first.q) + following.value - first.value
    return _Point(q, penalty, bound, following.q, gain)


def divergence(q: Gaussian, other: Gaussian) -> float:
    """KL(q || other) = ½(tr(BA⁻¹) - p + ln|A| - ln|B| + (m - m')ᵀB(m - m')).

    A is the precision of q, m' and B are mean and precision of the other.

    >>> divergence(Gaussian.of(np.zeros(1), np.eye(1)), Gaussian.of(np.ones(1), np.eye(1)))
    0.5
    """
    spread = np.square(other.precision_cholesky.T @ q.root).sum() - len(q.mean)
    distance = np.square((q.mean - other.mean) @ other.precision_cholesky).sum()
    return 0.5 * float(spread + distance + q.log_determinant - other.log_determinant)


def _roots(objective: LogPosterior, q: Gaussian) -> Array:
    """For each pair of classes directions (pairs, q, q) whose squares sum to the variance of
    the difference of their activations."""
    coordinates = objective.coordinates
    B, along = coordinates.contrasts, q.root.reshape(coordinates.c, coordinates.q, -1)
    pairs = [B[k] - B[other] for k, other in combinations(range(len(B)), 2)] or [B[0]]
    roots = [np.linalg.qr(np.tensordot(pair, along, 1).T, mode="r") for pair in pairs]
    return objective.standard.outward(np.stack(roots))


def _block_entries(objective: LogPosterior) -> int:
    """Numbers a block, with room for what each pair of classes needs."""
    K, d = objective.coordinates.n_activations, len(objective.columns.schema)
    return BLOCK_ENTRIES * d // (d + objective.coordinates.q + 3 * K * (K - 1) // 2)


@dataclass
class _Memory:
    """The last steps: means and precisions they led to, and what they changed.

    Changes are measured in the units of the Gaussian `origin`.
    """

    origin: Gaussian
    steps: list[tuple[Array, Array, Array]] = field(default_factory=list)

    def forget(self, origin: Gaussian) -> None:
        self.origin, self.steps = origin, []

    def keep(self, here: _Point) -> None:
        new, root = here.following, self.origin.root
        moved = (new.mean - here.q.mean) @ self.origin.precision_cholesky
        curved = root.T @ (new.precision - here.q.precision) @ root
        step = new.mean, new.precision, np.concatenate([moved, curved.ravel() / np.sqrt(2)])
        most = min(_REMEMBERED, max(_NUMBERS // (2 * curved.size), 2))
        self.steps = [*self.steps[1 - most :], step]

    def mixed(self) -> Gaussian | None:
        """The mean of the steps whose changes together are least; None where it has no spread."""
        means, precisions, changes = (np.stack(each) for each in zip(*self.steps, strict=True))
        apart = changes[:-1] - changes[-1]
        shares = np.linalg.lstsq(apart.T, -changes[-1])[0]
        shares = np.append(shares, 1.0 - shares.sum())
        precision = np.tensordot(shares, precisions, 1)
        matrix, scale = unit_diagonal(precision)
        lower = cholesky(matrix)
        return None if lower is None else Gaussian(shares @ means, lower * scale[:, None])


def _mixed(prior: _Prior, here: _Point, memory: _Memory) -> _Point | None:
    """Where the last steps lead together; None if the plain step is sure to lead further."""
    memory.keep(here)
    mixed = memory.mixed() if len(memory.steps) > 1 else None
    if mixed is None:
        return None
    found = _evaluate(prior, mixed)
    if found.bound >= here.bound + here.gain:
        return found
    memory.forget(here.q)
    return None


def _check(objective: LogPosterior) -> None:
    loss = objective.loss
    is_logistic = isinstance(loss, BinaryLoss) and loss.canonical
    if not (is_logistic or isinstance(loss, LogisticLoss | SoftmaxLoss)):
        raise ParameterError(
            "The variational bound is one on the logistic sigmoid or the softmax function.",
            "Use inference='laplace', and label_noise=0.0 where labels may be wrong.",
        )
    if objective.is_wide:
        raise ParameterError(
            f"The variational bound needs the precision of all {objective.coordinates.size} "
            f"parameters; {WIDE} is the most.",
            "Fit fewer columns.",
        )


def precision_update(mean: Array, covariance: Array, groups: Codes) -> Array:
    """The precision of each group (G,) that makes L largest for one q: α = M / Σ (m_j² + S_jj).

    `mean` (p,) is that of w less that of its prior, `covariance` (p, p); `groups` (q,) is the same
    for each contrast. The sum is over the parameters of a group; those of -1 are in none.

    >>> precision_update(np.array([9.0, 1.0, 2.0]), np.diag([9.0, 1.0, 2.0]), np.array([-1, 0, 0]))
    array([0.25])
    """
    count = grouped_sums(np.ones(len(mean)), groups)
    return count / grouped_sums(mean**2 + np.diagonal(covariance), groups)
