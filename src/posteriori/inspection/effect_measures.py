"""Means of rows and their slopes in the columns, with what the coefficients' uncertainty makes of
them.

Conventions: n rows, K means a row (one for two classes, that of the second; one for a number),
A activations a row, q parameters each, Θ (A, q) for standardised columns, p free parameters with
covariance SSᵀ. A row φ has activations a = Θφ and means μ(a). With M = ∂μ/∂a (K, A) and the bends
B = ∂²μ/∂a² (K, A, A), the slope in design column j, of scale c_j, is s_j = M θ_j / c_j, and

    dμ = M dΘ φ,    c_j ds_j = (B θ_j) dΘ φ + M dθ_j.

Put the columns of S for dΘ, and the length of what comes out is the standard error: the delta
method. All of it is linear, so that averages and differences have the averages and differences.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias, get_args

import numpy as np
from scipy.linalg import null_space

from posteriori.arguments import check_choice, check_fraction
from posteriori.design.matrix import Design
from posteriori.errors import ParameterError
from posteriori.likelihood.links import PROBABILITY_LINKS, Link, ProbabilityLink
from posteriori.likelihood.log_arithmetic import quiet
from posteriori.likelihood.softmax import probabilities
from posteriori.posterior.activations import (
    ActivationGaussian,
    DiagonalActivations,
    FromDraws,
    FromGaussian,
    check_inside,
    ends_of_one,
    lengths,
    root_of,
    split_block,
    standardised,
)
from posteriori.posterior.coefficient_posterior import Posterior
from posteriori.posterior.coefficient_table import CoefficientMap
from posteriori.posterior.gaussian import DiagonalGaussian
from posteriori.posterior.inference import Inference
from posteriori.posterior.log_posterior import WIDE
from posteriori.posterior.predictive import (
    average_link_logs,
    average_logs,
    class_intervals,
    drawn_ends,
    drawn_link_ends,
    extended_probit_logs,
    kappa_logs,
    monte_carlo_logs,
    probability_interval,
    quadrature_logs,
    quantile_ends,
)
from posteriori.rows.block import Block
from posteriori.typing import Array, Codes

PredictiveName = Literal["auto", "probit", "quadrature", "monte_carlo"]

PredictionKernel = Callable[[Block], Array]

_DRAWS = 1000
"""Draws of a Gaussian over the coefficients, and those that effects are computed from."""


def read_predictive(name: str, n_classes: int) -> str:
    """The name, or what "auto" stands for."""
    check_choice("predictive", name, get_args(PredictiveName))
    if n_classes > 2 and name == "quadrature":
        raise ParameterError(
            f"predictive='quadrature' is for two classes; there are {n_classes}.",
            "Use 'monte_carlo', 'probit' or 'auto'.",
        )
    if name != "auto":
        return name
    return "quadrature" if n_classes == 2 else "monte_carlo"


def log_kernel(posterior: Posterior, method: str, link: ProbabilityLink) -> PredictionKernel:
    """A block of rows to ln p(C_k|x) (n, K), by a `method` other than "auto".

    Of a posterior that was drawn from, the draws themselves are averaged over.
    """
    is_binary = posterior.shown.coordinates.n_activations == 1
    if posterior.chains is not None or (is_binary and method == "monte_carlo"):
        function = partial(average_link_logs, link) if is_binary else average_logs
        chains = posterior.chains
        draws = some_draws(posterior) if chains is None else chains.pooled
        return FromDraws.of(posterior.shown, draws, function)
    activations = _activations(posterior)
    if not is_binary:
        by_classes = extended_probit_logs if method == "probit" else monte_carlo_logs
        return FromGaussian(activations, by_classes)
    logs = kappa_logs if method == "probit" else quadrature_logs
    return FromGaussian(activations, lambda mean, variance: _both(logs(mean, variance)))


def interval_kernel(posterior: Posterior, level: float, link: ProbabilityLink) -> PredictionKernel:
    """A block of rows to the ends (n, 2) or (n, K, 2) of intervals for the probability itself."""
    check_fraction("level", level)
    is_binary = posterior.shown.coordinates.n_activations == 1
    if posterior.chains is not None:
        ends = (
            partial(drawn_link_ends, link, level=level)
            if is_binary
            else partial(drawn_ends, level=level)
        )
        return FromDraws.of(posterior.shown, posterior.chains.pooled, ends)
    if is_binary:
        return FromGaussian(
            _activations(posterior),
            lambda mean, variance: probability_interval(mean, np.sqrt(variance), level, link),
        )
    return FromGaussian(_activations(posterior), partial(class_intervals, level=level))


def _activations(posterior: Posterior) -> ActivationGaussian | DiagonalActivations:
    gaussian = posterior.gaussian
    if isinstance(gaussian, DiagonalGaussian):
        return DiagonalActivations.of(posterior.shown, gaussian.mean, 1 / gaussian.precision)
    return ActivationGaussian.of(posterior.shown, gaussian.mean, gaussian.root)


def some_draws(posterior: Posterior) -> Array:
    """About 1,000 draws (S, p) of the free parameters, the same ones every time."""
    if posterior.chains is None:
        return posterior.free_sample(_DRAWS, random_state=0)
    pooled = posterior.chains.pooled
    return pooled[:: max(1, len(pooled) // _DRAWS)]


def _both(logs: tuple[Array, Array]) -> Array:
    """Logarithms of the first and the second class, from those of the second and the rest."""
    return np.stack([logs[1], logs[0]], axis=1)


_OUTSIDE = 1e-6
"""How much of what moves a value may lie in directions that are not determined."""

_FAINT = 1e-300
"""Where the mean of a row is certain, its slope in the activation may be too small for a double;
but it still is that of what the rows do not determine."""


Kernel: TypeAlias = "Callable[[Block], Moved]"


@dataclass(frozen=True, eq=False)
class Moved:
    """Values (..., K), and how far each moves (..., K, m): along m directions, or in m draws."""

    value: Array
    moved: Array

    def __add__(self, other: "Moved") -> "Moved":
        return Moved(self.value + other.value, self.moved + other.moved)

    def __mul__(self, factor: float) -> "Moved":
        return Moved(factor * self.value, factor * self.moved)

    def summed(self, weight: Array | None) -> "Moved":
        """The weighted sum over the first axis."""
        if weight is None:
            return Moved(self.value.sum(axis=0), self.moved.sum(axis=0))
        return Moved(np.tensordot(weight, self.value, 1), np.tensordot(weight, self.moved, 1))


@dataclass(frozen=True, eq=False)
class Total:
    """Sums over rows, and the weight of these."""

    weight: float
    sums: Moved

    def __add__(self, other: "Total") -> "Total":
        return Total(self.weight + other.weight, self.sums + other.sums)

    @property
    def average(self) -> Moved:
        return self.sums * (1 / self.weight)


class Measure(ABC):
    """What a fit says of the means of rows, and how sure it is.

    `has_errors` says whether anything is known of the uncertainty.
    """

    shown: CoefficientMap
    has_errors: bool = True

    @property
    @abstractmethod
    def entries(self) -> int:
        """Numbers that a row needs."""

    @abstractmethod
    def means(self, block: Block) -> Moved:
        """Means (n, K) of rows."""

    @abstractmethod
    def slopes(self, block: Block, places: Codes) -> Moved:
        """Their slopes (n, J, K) in J design columns, in the user's units."""

    @abstractmethod
    def judged(self, found: Moved) -> Array:
        """Estimate, standard error and both ends of an interval (..., K, 4)."""

    @abstractmethod
    def judged_means(self, found: Moved) -> Array:
        """The same of averages of means, with ends that a mean can have."""

    @property
    def sum_entries(self) -> int:
        """Numbers that a row needs in sums."""
        return self.entries

    @property
    def n_means(self) -> int:
        """K."""
        return self.shown.coordinates.n_activations

    def parts(self, block: Block) -> Iterator[Block]:
        """A block in parts that there is room for."""
        return split_block(block, self.entries)

    def derived(self, found: Moved) -> Moved:
        """Slopes that were taken by differences of means over small steps."""
        return found

    def total_means(self, block: Block) -> Moved:
        """The weighted sum (K,) of the means of rows."""
        return self.means(block).summed(block.weight)

    def total_slopes(self, block: Block, places: Codes) -> Moved:
        """The weighted sum (J, K) of the slopes of rows."""
        return self.slopes(block, places).summed(block.weight)

    def total(self, block: Block, of_part: Kernel) -> Total:
        """Sums of a block, some rows at a time."""
        parts = [of_part(part) for part in split_block(block, self.sum_entries)]
        n = block.X.shape[0] if block.weight is None else float(block.weight.sum())
        return Total(n, sum(parts[1:], start=parts[0]))


@dataclass(frozen=True, eq=False)
class DeltaMeasure(Measure):
    """Means at the coefficients found, with errors by the delta method.

    The last `n_open` directions are those that the rows of the fit do not determine: what depends
    on them has an infinite standard error. Rows whose class is certain hardly do so in an average
    with others, which has the error of the others. Of very many coefficients no covariance is
    kept, and there are no directions at all.
    """

    activations: ActivationGaussian
    link: Link
    quantile: float
    n_open: int = 0
    has_errors: bool = True

    @classmethod
    def of(cls, inference: Inference, link: Link, level: float) -> "DeltaMeasure":
        """That of a fit, with intervals for a share `level` of the probability."""
        shown, w, determined = inference.shown, inference.w, inference.determined
        known = shown.coordinates.size <= WIDE
        root = root_of(inference.free_covariance()) if known else np.empty((len(w), 0))
        n_open = 0
        if known and determined is not None:
            undetermined = null_space(determined.T)
            n_open, root = undetermined.shape[1], np.hstack([root, undetermined])
        activations = ActivationGaussian.of(shown, w, root)
        if shown.coordinates.n_activations > 1:
            link = PROBABILITY_LINKS["logit"]
        return cls(activations, link, inference.quantile(level), n_open, known)

    @property
    def shown(self) -> CoefficientMap:  # type: ignore[override]
        return self.activations.shown

    @property
    def entries(self) -> int:
        A, m = len(self.activations.theta), self.activations.root.shape[-1]
        return A * A * max(m, A)

    @property
    def sum_entries(self) -> int:
        return len(self.activations.theta) ** 3

    def means(self, block: Block) -> Moved:
        design, a = self._activations(block)
        value, M = self._first(a)
        return Moved(value, M @ self.activations.deviations(design))

    def slopes(self, block: Block, places: Codes) -> Moved:
        design, a = self._activations(block)
        D = self.activations.deviations(design)
        M, B = self._first(a)[1], self._second(a)
        bent = np.einsum("nkab,nbm->nkam", B, D)
        return self._sloped(M, bent, places)

    def total_means(self, block: Block) -> Moved:
        design, a = self._activations(block)
        value, M = _weighted(block, *self._first(a))
        moved = np.einsum("kaq,aqm->km", self._pulled(design, M), self.activations.root)
        return Moved(value.sum(axis=0), moved)

    def total_slopes(self, block: Block, places: Codes) -> Moved:
        design, a = self._activations(block)
        M, B = _weighted(block, self._first(a)[1], self._second(a))
        bent = np.einsum("kabq,bqm->kam", self._pulled(design, B), self.activations.root)
        return self._sloped(M.sum(axis=0), bent, places)

    @quiet
    def _sloped(self, M: Array, bent: Array, places: Codes) -> Moved:
        """Slopes from M (..., K, A) and from B dΘ φ (..., K, A, m)."""
        theta, root = self.activations.theta[:, places], self.activations.root[:, places]
        unit = self.shown.one_unit[places]
        value = np.einsum("...ka,aj->...jk", M, theta)
        moved = np.einsum("...kam,aj->...jkm", bent, theta)
        moved += np.einsum("...ka,ajm->...jkm", M, root)
        return Moved(value / unit[:, None], moved / unit[:, None, None])

    def _activations(self, block: Block) -> tuple[Design, Array]:
        design = standardised(self.shown, block)
        a = self.activations.mean(design, block)
        if a.shape[1] == 1:
            check_inside(self.link, a[:, 0], block)
        return design, a

    @quiet
    def _first(self, a: Array) -> tuple[Array, Array]:
        """μ (n, K) and M (n, K, A)."""
        K = a.shape[1]
        if K == 1:
            p, M = self.link.mean(a[:, 0])[:, None], self.link.slope(a[:, 0])[:, None, None]
        else:
            p = probabilities(a)
            M = p[:, :, None] * away_from(p)
        return p, M + _FAINT * away_from(np.full((1, K), 1 / (K + 1))) if self.n_open else M

    @quiet
    def _second(self, a: Array) -> Array:
        """B (n, K, A, A)."""
        if a.shape[1] == 1:
            return self.link.bend(a[:, 0])[:, None, None, None]
        p = probabilities(a)
        away = away_from(p)
        shared = p[:, :, None] * away
        return p[:, :, None, None] * (away[..., None] * away[:, :, None] - shared[:, None])

    def _pulled(self, design: Design, weights: Array) -> Array:
        """Σ weights φ (..., q) over rows, the weights being (n, ...)."""
        flat = weights.reshape(len(weights), -1)
        pulled = design.transpose_times(flat)
        if self.shown.standard.intercept:
            pulled = np.vstack([flat.sum(axis=0), pulled])
        return pulled.T.reshape(*weights.shape[1:], -1)

    @quiet
    def judged(self, found: Moved) -> Array:
        error = self._errors(found.moved)
        away = self.quantile * error
        return np.stack([found.value, error, found.value - away, found.value + away], axis=-1)

    @quiet
    def judged_means(self, found: Moved) -> Array:
        """The ends are those of the link at the average, as in `predict_interval`."""
        error, value = self._errors(found.moved).ravel(), found.value.ravel()
        a = self.link.activation(value)
        away = np.where(error > 0, self.quantile * error / abs(self.link.slope(a)), 0.0)
        known = np.isfinite(a) & ~np.isnan(away)
        ends = ends_of_one(self.link, np.where(known, a, 0.0), np.where(known, away, 0.0))
        # At an end of the means themselves there is no link to go by.
        ends = np.where(known[:, None], ends, value[:, None])
        columns = np.column_stack([value, error, ends])
        return columns.reshape(*found.value.shape, 4)

    def _errors(self, moved: Array) -> Array:
        """The lengths (..., K) of vectors (..., K, m), infinite where they are not determined."""
        m = moved.shape[-1] - self.n_open
        flat = moved.reshape(math.prod(moved.shape[:-1]), 1, moved.shape[-1])
        error, lost = lengths(flat[..., :m])[:, 0], lengths(flat[..., m:])[:, 0]
        error = np.where(lost > _OUTSIDE * (lost + error), np.inf, error)
        return error.reshape(moved.shape[:-1])


def away_from(p: Array) -> Array:
    """δ_kj - p_j (n, K, K): the derivatives of ln p_k in the activations (4.106).

    >>> away_from(np.array([[0.25, 0.75]]))[0]
    array([[ 0.75, -0.75], [-0.25,  0.25]])
    """
    return np.eye(p.shape[1]) - p[:, None, :]


def _weighted(block: Block, *values: Array) -> list[Array]:
    """Values (n, ...) times the weights of their rows."""
    if block.weight is None:
        return list(values)
    return [(value.T * block.weight).T for value in values]


@dataclass(frozen=True, eq=False)
class DrawnMeasure(Measure):
    """Means by `predictive`, with deviations and quantiles of draws.

    `theta` (A, S, q) has draws of the parameters for standardised columns; `predictive` gives the
    means (n, K) of a block, with the coefficients integrated out.
    """

    shown: CoefficientMap
    theta: Array
    link: Link
    level: float
    predictive: Callable[[Block], Array]

    @property
    def entries(self) -> int:
        A, S, _ = self.theta.shape
        return A * A * S

    def means(self, block: Block) -> Moved:
        drawn = FromDraws(self.shown, self.theta, self._drawn_means)(block)
        return Moved(self.predictive(block), drawn)

    def slopes(self, block: Block, places: Codes) -> Moved:
        return self._sloped(self._drawn_firsts(block), places)

    def total_slopes(self, block: Block, places: Codes) -> Moved:
        M = self._drawn_firsts(block)
        M = M.sum(axis=0) if block.weight is None else np.tensordot(block.weight, M, 1)
        return self._sloped(M, places)

    @quiet
    def _sloped(self, M: Array, places: Codes) -> Moved:
        """Slopes from draws of M (..., K, A, S)."""
        unit = self.shown.one_unit[places]
        drawn = np.einsum("...kas,asj->...jks", M, self.theta[..., places]) / unit[:, None, None]
        return Moved(drawn.mean(axis=-1), drawn)

    def _drawn_firsts(self, block: Block) -> Array:
        """Draws (n, K, A, S) of ∂μ/∂a."""
        return FromDraws(self.shown, self.theta, self._firsts)(block)

    @quiet
    def _drawn_means(self, a: Array) -> Array:
        if a.shape[1] == 1:
            return self.link.mean(a.ravel()).reshape(a.shape)
        raised = np.exp(a - a.max(axis=1, keepdims=True))
        return raised / raised.sum(axis=1, keepdims=True)

    @quiet
    def _firsts(self, a: Array) -> Array:
        if a.shape[1] == 1:
            return self.link.slope(a.ravel()).reshape(a.shape)[:, :, None]
        p = self._drawn_means(a)
        away = np.eye(p.shape[1])[None, :, :, None] - p[:, None]
        return p[:, :, None] * away

    def derived(self, found: Moved) -> Moved:
        """By the draws alone: predictive means of many classes have steps of their own."""
        return Moved(found.moved.mean(axis=-1), found.moved)

    def judged(self, found: Moved) -> Array:
        deviation = found.moved.std(axis=-1, ddof=1)
        ends = quantile_ends(found.moved, self.level)
        return np.concatenate([np.stack([found.value, deviation], axis=-1), ends], axis=-1)

    def judged_means(self, found: Moved) -> Array:
        return self.judged(found)
