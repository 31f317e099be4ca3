"""A Gaussian posterior by quadratic bounds on the likelihood (10.6).

Given a proper Gaussian prior p(w) of precision P, every Gaussian q(w) = N(m, A⁻¹) has a bound

    ln p(t) ≥ L(q) = Σ_n w_n E_q[bound of row n] - KL(q || p)

on the evidence, and the best q makes it largest. With each row's bound tangent where it is best for
q, the rows are a quadratic in w, with gradient g at m and curvature H. The best q for it is

    A' = P + H,    m' = m + A'⁻¹(g - P(m - m₀)).

L rises by KL(q || q') at least, which is known before the next pass over the rows. A pass gives L,
g and H. As such steps converge linearly, Anderson (1965) acceleration combines the last few; a
combination that does not raise L by as much as the plain step must is discarded.

Conventions: c contrasts (1 for two classes), q parameters each, p = cq free parameters w (p,).
"""

from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import NamedTuple, cast

import numpy as np

from posteriori.errors import ParameterError
from posteriori.likelihood.binary_losses import BinaryLoss, LogisticLoss
from posteriori.likelihood.softmax import SoftmaxLoss
from posteriori.linalg import cholesky, unit_diagonal
from posteriori.posterior.gaussian import Gaussian
from posteriori.posterior.log_posterior import BLOCK_ENTRIES, LogPosterior
from posteriori.solve.objective import Status
from posteriori.statistics.variational_bound import GatherBound
from posteriori.typing import Array

_REMEMBERED, _NUMBERS = 10, 2**25
"""Steps that are combined, and how many numbers they may have: fewer with many parameters."""

_ROUNDING = 1e-12
"""A rise of less than this share of the bound is rounding."""


@dataclass(frozen=True, eq=False)
class VariationalPosterior:
    """The best Gaussian under the bound, its bound on the log evidence, and the way there.

    `trace` has the bound before the first step and after each; it never falls.
    """

    posterior: Gaussian
    bound: float
    status: Status
    trace: tuple[float, ...]


def variational(
    objective: LogPosterior,
    mean: Array,
    precision: Array,
    *,
    tol: float = 1e-10,
    max_iter: int = 500,
) -> VariationalPosterior:
    """The Gaussian q(w) of the largest bound L(q) ≤ ln p(t).

    `mean` (p,) and `precision` (p, p) are the start: a Laplace fit. The iteration ends where
    KL(q || q'), half a step's squared length in standard deviations, is no more than `tol`; where
    rounding hides a rise; or after `max_iter` steps. With more than two classes L may have several
    maxima, a little apart, as rows can take either of two bounds.

    A single row φ = 2 of the second class, with a standard normal prior on its coefficient. The
    evidence is a half, and ln ½ = -0.693.

    >>> from posteriori.design.columns import Columns
    >>> from posteriori.design.standardise import Standard
    >>> from posteriori.posterior.log_posterior import Coordinates
    >>> from posteriori.posterior.priors import Penalty
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
    _check(objective)
    prior = _prior_of(objective)
    here = _evaluate(objective, prior, Gaussian.of(mean, precision))
    trace, memory, status = [here.bound], _Memory(here.q), Status.MAX_ITERATIONS
    for _ in range(max_iter):
        if here.gain <= tol:
            status = Status.CONVERGED
            break
        mixed, found = memory.mixed(here), None
        if mixed is not None:
            found = _evaluate(objective, prior, mixed)
            if found.bound < here.bound + here.gain:  # the plain step is sure to lead further
                memory, found = _Memory(here.q), None
        found = found or _evaluate(objective, prior, here.following)
        if not found.bound > here.bound:  # but for rounding, a plain step raises it
            hidden = here.gain <= max(tol, _ROUNDING * abs(here.bound))
            status = Status.CONVERGED if hidden else Status.STALLED
            break
        here = found
        trace.append(here.bound)
    return VariationalPosterior(here.q, here.bound, status, tuple(trace))


def _prior_of(objective: LogPosterior) -> Gaussian:
    """The prior of w; an error where it is not proper."""
    c = objective.coordinates.c
    correlation, scale = unit_diagonal(objective.penalty.matrix(c))
    lower = cholesky(correlation)
    if lower is None or objective.coordinates.basis is not None:
        raise ParameterError(
            "The evidence needs a proper prior, and some coefficient has none.",
            "Set a positive precision for every column, and intercept_precision too.",
        )
    return Gaussian(objective.penalty.means(c), lower * scale[:, None])


class _Point(NamedTuple):
    """A Gaussian, its bound, the plain step from it, and by how much that raises the bound."""

    q: Gaussian
    bound: float
    following: Gaussian
    gain: float


def _evaluate(objective: LogPosterior, prior: Gaussian, q: Gaussian) -> _Point:
    """One pass over the rows."""
    kernel = GatherBound(objective.kernel(q.mean), _roots(objective, q))
    found = objective.rows.map_sum(kernel, block_entries=_block_entries(objective))
    bound = -objective.factor * found.value - divergence(q, prior)
    standard, coordinates = objective.standard, objective.coordinates
    g = -objective.factor * coordinates.contract(standard.inward(found.gradient))
    H = coordinates.contract_matrix(standard.inward_matrix(cast(Array, found.hessian)))
    away = (q.mean - prior.mean) @ prior.precision_cholesky
    following = Gaussian.of(q.mean, prior.precision + objective.factor * H)
    step = following.root @ ((g - prior.precision_cholesky @ away) @ following.root)
    following = replace(following, mean=q.mean + step)
    return _Point(q, bound, following, divergence(q, following))


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

    def mixed(self, here: _Point) -> Gaussian | None:
        """The mean of the last steps whose changes together are least; None if there is none."""
        new, root = here.following, self.origin.root
        moved = (new.mean - here.q.mean) @ self.origin.precision_cholesky
        curved = root.T @ (new.precision - here.q.precision) @ root
        step = new.mean, new.precision, np.concatenate([moved, curved.ravel() / np.sqrt(2)])
        most = min(_REMEMBERED, max(_NUMBERS // (2 * curved.size), 2))
        self.steps = [*self.steps[1 - most :], step]
        means, precisions, changes = (np.stack(each) for each in zip(*self.steps, strict=True))
        apart = changes[:-1] - changes[-1]
        if not len(apart):
            return None
        shares = np.linalg.lstsq(apart.T, -changes[-1])[0]
        shares = np.append(shares, 1.0 - shares.sum())
        matrix, scale = unit_diagonal(np.tensordot(shares, precisions, 1))
        lower = cholesky(matrix)
        return None if lower is None else Gaussian(shares @ means, lower * scale[:, None])


def _check(objective: LogPosterior) -> None:
    loss = objective.loss
    is_logistic = isinstance(loss, BinaryLoss) and loss.canonical
    if not (is_logistic or isinstance(loss, LogisticLoss | SoftmaxLoss)):
        raise ParameterError(
            "The variational bound is one on the logistic sigmoid or the softmax function.",
            "Use inference='laplace', and label_noise=0.0 where labels may be wrong.",
        )
