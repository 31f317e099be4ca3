"""Probabilities under class priors other than those of the training data, and estimates of them.

Conventions: n rows, K classes; p (n, K) are the probabilities under the old priors.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import nnls
from scipy.special import chdtrc

from posteriori.decision.probabilities import (
    Probabilities,
    Result,
    places_of,
    read_numbers,
    read_proba,
)
from posteriori.errors import (
    ConvergenceWarning,
    IdentifiabilityWarning,
    ParameterError,
    ProbabilityError,
    ShapeError,
    warn,
)
from posteriori.likelihood.softmax import probabilities
from posteriori.rows.schema import listed
from posteriori.typing import Array, Labels

PriorsLike = Mapping[Any, float] | Sequence[float] | Array


def read_priors(priors: PriorsLike, classes: Labels, name: str = "priors") -> Array:
    """Priors given by label or in the order of the classes, checked.

    >>> read_priors({"b": 0.9, "a": 0.1}, np.array(["a", "b"]))
    array([0.1, 0.9])
    """
    values = _by_class(priors, classes, name)
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise ParameterError(f"{name} must be finite and not negative.", "Give probabilities.")
    if abs(values.sum() - 1) > 1e-8:
        raise ParameterError(
            f"{name} sum to {values.sum():.10g}, not to one.", "Divide them by their sum."
        )
    return values


def _by_class(numbers: PriorsLike, classes: Labels, name: str) -> Array:
    """One number a class, given by label or in the order of the classes, (K,)."""
    if isinstance(numbers, Mapping):
        keys = list(numbers)
        places = places_of(classes.tolist(), keys, name, "class")
        numbers = [numbers[keys[place]] for place in places]
    values = read_numbers(numbers, name).astype(np.float64)
    if values.shape != classes.shape:
        raise ParameterError(
            f"{name} has shape {values.shape} for {len(classes)} classes.",
            "Give one number a class, in the order of classes_, or a dict from label to number.",
        )
    return values


def log_priors(priors: Array) -> Array:
    """ln p(C_k); -inf for a class that cannot occur."""
    with np.errstate(divide="ignore"):
        return np.log(priors)


def adjust_priors(proba: Any, old: PriorsLike, new: PriorsLike, classes: Any = None) -> Array:
    """The probabilities of the same classifier under other class priors.

    p(C_k|x) is proportional to p(x|C_k) π_k, and the densities do not change: the new probabilities
    are proportional to p_k new_k / old_k.

    proba : (n, K), a data frame with a column a class, or (n,) for the second of two classes; the
        result has the same shape, its columns in the order of `classes`.
    old, new : priors by class, or in the order of the classes.
    classes : labels of the columns of proba; by default their names, else 0, 1, ...

    >>> adjust_priors([0.5, 0.9], old=[0.5, 0.5], new=[0.99, 0.01]).round(4)
    array([0.01  , 0.0833])
    """
    given = read_proba(proba, classes)
    before = read_priors(old, given.classes, "old")
    after = read_priors(new, given.classes, "new")
    weight = log_ratio(before, after, given.classes)
    p = reweigh(_possible(given, before), weight)
    return p[:, 1] if given.single else p


def undo_sampling(proba: Any, rates: PriorsLike, classes: Any = None) -> Array:
    """The probabilities before classes were subsampled, or repeated, to train the classifier.

    If a share rate_k < 1 of the rows of class k was kept, or each was repeated rate_k > 1 times,
    the probabilities without that are proportional to p_k / rate_k. Only ratios of rates matter.

    proba : (n, K), a data frame with a column a class, or (n,) for the second of two classes; the
        result has the same shape, its columns in the order of `classes`.
    rates : by class, or in the order of the classes.
    classes : labels of the columns of proba; by default their names, else 0, 1, ...

    One in a hundred honest payments was kept, and all frauds:

    >>> undo_sampling([0.5, 0.9], rates=[0.01, 1.0]).round(4)
    array([0.0099, 0.0826])
    """
    given = read_proba(proba, classes)
    values = _by_class(rates, given.classes, "rates")
    if not (np.isfinite(values).all() and (values > 0).all()):
        raise ParameterError(
            f"rates={values.tolist()} must be finite and above zero.",
            "Give the share of the rows kept, or how often each was repeated; leave out classes "
            "of which no row was kept.",
        )
    p = reweigh(given.values, -np.log(values))
    return p[:, 1] if given.single else p


def log_ratio(old: Array, new: Array, classes: Labels) -> Array:
    """ln(new_k / old_k); -inf for a class that can no longer occur, or never could."""
    lost = (old == 0) & (new > 0)
    if lost.any():
        label = classes.tolist()[int(lost.argmax())]
        raise ParameterError(
            f"Class {label!r} has prior zero in old, but not in new.",
            "Fit the classifier to rows of this class, or give it prior zero in new.",
        )
    with np.errstate(invalid="ignore"):
        return np.where(new > 0, log_priors(new) - log_priors(old), -np.inf)


def reweigh(p: Array, log_weight: Array) -> Array:
    """p_k exp(log_weight_k), made to sum to one."""
    with np.errstate(divide="ignore"):
        return probabilities(weighed_logs(np.log(p), log_weight))


def weighed_logs(log_p: Array, log_weight: Array) -> Array:
    """ln p_k + log_weight_k; an error for rows in which no class is possible."""
    activation = log_p + log_weight
    lost = np.isneginf(activation).all(axis=1)
    if lost.any():
        raise ProbabilityError(
            f"Row {int(lost.argmax())} of proba can only be of classes whose prior is now zero.",
            "Give some class that is possible there a prior above zero.",
        )
    return activation


def _possible(given: Probabilities, old: Array) -> Array:
    """The probabilities, checked; an error if a row may be of a class that could not occur."""
    p = given.values
    strange = (p > 0) & (old == 0)
    if strange.any():
        row, k = np.argwhere(strange)[0].tolist()
        raise ProbabilityError(
            f"Row {row} of proba has probability {p[row, k]:.4g} for class "
            f"{given.classes.tolist()[k]!r}, whose prior in old is zero.",
            "Pass the priors that the classifier was trained with as old.",
        )
    return p


_MOST_STEPS = 100
# A Newton step that changes the density of no row by more than this share of it is the last: the
# next would be its square. Priors of classes with equal densities are not identified and may move.
_STEP_TOLERANCE = 1e-11
_ROUNDING = 1e-14  # relative rounding error of a mean of logarithms
_RIDGE = 1e-13  # of the trace of the information, added to it: directions without information
_LEVEL = 0.05
_IGNORANCE = 12**-0.5  # the standard deviation of a uniform distribution on (0, 1)


@dataclass(frozen=True, eq=False, repr=False)
class EstimatedPriors(Result):
    """Class priors estimated from rows without labels, and a test of whether they changed.

    priors : (K,) the estimates, in the order of `classes`.
    std_error : (K,) by the observed information; far above one where the rows have none.
    statistic, p_value : the likelihood ratio test of no change, by chi² with `df` degrees.
    n_iter, converged : the number of Newton steps, and whether they converged.
    """

    priors: Array
    std_error: Array
    statistic: float
    df: int
    p_value: float
    n_iter: int
    converged: bool
    classes: Labels

    _columns = ("classes", "priors", "std_error")

    @property
    def verdict(self) -> str:
        """The result of the test at the level of 0.05: "changed", or "no change shown"."""
        return "changed" if self.p_value < _LEVEL else "no change shown"

    def __repr__(self) -> str:
        each = zip(self.classes.tolist(), self.priors, self.std_error, strict=True)
        parts = [f"{label!r}: {prior:.4g} ± {error:.2g}" for label, prior, error in each]
        shown = ", ".join([*parts[:6], "..."] if len(parts) > 6 else parts)
        return f"EstimatedPriors({shown}; {self.verdict}, p = {self.p_value:.3g})"


def estimate_priors(proba: Any, old: PriorsLike, classes: Any = None) -> EstimatedPriors:
    """The class priors of the rows, from their probabilities under the priors `old`.

    They maximise Σ_n ln Σ_k p_nk π_k / old_k (Saerens, Latinne and Decaestecker, 2002), by Newton's
    method for π ≥ 0. The probabilities are taken as exact: errors of a poor fit remain, whatever
    the number of rows.

    Standard errors are those of the observed information of all classes. For a class with the
    estimate zero they measure how far from zero the prior may be. A prior that is zero in `old`
    stays zero.

    proba : (n, K), a data frame with a column a class, or (n,) for the second of two classes.
    old : priors by class, or in the order of the classes.
    classes : labels of the columns of proba; by default their names, else 0, 1, ...

    >>> x = np.random.default_rng(1).normal(np.repeat([0.0, 2.0], [900, 100]))
    >>> estimate_priors(1 / (1 + np.exp(2 - 2 * x)), old=[0.5, 0.5])
    EstimatedPriors(0: 0.9169 ± 0.014, 1: 0.08311 ± 0.014; changed, p = 3.54e-98)
    """
    given = read_proba(proba, classes)
    if not len(given.values):
        raise ShapeError("proba has no rows.", "Pass at least one row.")
    before = read_priors(old, given.classes, "old")
    p, live = _possible(given, before), before > 0
    W = reweigh(p[:, live], -np.log(before[live]))
    pi, n_iter, converged = _most_likely(W, before[live])
    if not converged:
        warn(
            ConvergenceWarning(
                f"The estimates of the priors did not converge in {n_iter} steps.",
                "Take them with care: some classes may have nearly equal densities.",
            )
        )
    statistic = 2 * max(0.0, _log_likelihood(W, pi) - _log_likelihood(W, before[live]))
    df = int(live.sum()) - 1
    p_value = float(chdtrc(df, statistic)) if df else 1.0
    priors, errors = np.zeros(len(live)), np.zeros(len(live))
    priors[live], errors[live] = pi, _std_errors(W, pi)
    unknown = given.classes[errors > _IGNORANCE].tolist()
    if unknown:
        warn(
            IdentifiabilityWarning(
                f"The rows have almost no information about the priors of {listed(unknown)}: the "
                "probabilities hardly differ from row to row, or these classes have equal "
                "densities.",
                "Use more rows or a better classifier, or give the priors to adjust_priors.",
            )
        )
    return EstimatedPriors(priors, errors, statistic, df, p_value, n_iter, converged, given.classes)


def _most_likely(W: Array, start: Array) -> tuple[Array, int, bool]:
    """π of largest likelihood, the number of steps, and whether they converged."""
    pi = np.maximum(start, 1e-9)  # no row is next to impossible at the start
    pi = pi / pi.sum()
    for step in range(1, _MOST_STEPS + 1):
        following = _newton_step(W, pi)
        moved = abs(W @ (following - pi) / (W @ pi)).max()
        pi = following
        if moved <= _STEP_TOLERANCE:
            return pi, step, True
    return pi, _MOST_STEPS, False


def _information(W: Array, pi: Array) -> Array:
    """Minus the mean second derivatives of the log-likelihood, (K, K), with a small ridge."""
    ratio = W / (W @ pi)[:, None]
    found = ratio.T @ ratio / len(W)
    return found + _RIDGE * np.trace(found) * np.eye(len(pi))


def _newton_step(W: Array, pi: Array) -> Array:
    """A step to the maximum over y ≥ 0 of the quadratic approximation at π of mean ln Wy - Σ y.

    The maximum of that function on y ≥ 0 is that of the likelihood on the simplex: it sums to one.
    With information H = LLᵀ, y minimises |Lᵀ(y - π) - L⁻¹(score - 1)|. The step is halved until the
    function does not decrease.
    """
    L, score = np.linalg.cholesky(_information(W, pi)), W.T @ (1 / (W @ pi)) / len(W)
    goal = L.T @ pi + solve_triangular(L, score - 1, lower=True)
    y = nnls(L.T, goal, maxiter=100 * len(pi))[0]

    def mean_gain(y: Array) -> float:
        return _log_likelihood(W, y) / len(W) - float(y.sum())

    now = mean_gain(pi)
    for share in 0.5 ** np.arange(34):
        following = pi + share * (y - pi)
        if mean_gain(following) >= now - _ROUNDING * (1 + abs(now)):
            return following / following.sum()
    return pi


def _log_likelihood(W: Array, pi: Array) -> float:
    """Σ_n ln Σ_k W_nk π_k; -inf if a row is impossible."""
    with np.errstate(divide="ignore"):
        return float(np.log(W @ pi).sum())


def _std_errors(W: Array, pi: Array) -> Array:
    """√ of the diagonal of Z(ZᵀIZ)⁻¹Zᵀ, with Z a basis of what sums to zero; I the information."""
    K = len(pi)
    Z = np.linalg.qr(np.column_stack([np.ones(K), np.eye(K)[:, 1:]]))[0][:, 1:]
    covariance = Z @ np.linalg.inv(Z.T @ _information(W, pi) @ Z * len(W)) @ Z.T
    return np.sqrt(np.diag(covariance))
