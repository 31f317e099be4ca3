"""Proper scores of probabilities, the logarithmic and the Brier score, and their decomposition.

Both are proper: no probabilities have a better expected score than the true ones. Smaller is
better. They are decomposed by isotonic regression, which needs no bins and no smoothing
(Dimitriadis, Gneiting and Jordan, 2021).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression
from scipy.special import xlogy

from posteriori.arguments import check_choice
from posteriori.decision.probabilities import Labelled, Result, read_labelled
from posteriori.errors import ImpossibleClassWarning, ParameterError, warn
from posteriori.typing import Array


def pool(predicted: Array, happened: NDArray[np.bool_], weight: Array) -> tuple[Array, Array]:
    """Isotonic regression of an event: rows pooled so that its rate increases with the prediction.

    For each pool (m,) the weight of its rows in which the event happened, and of those in which it
    did not.

    >>> pool(np.array([0.1, 0.4, 0.6, 0.9]), np.array([0, 1, 0, 1], bool), np.ones(4))
    (array([0., 1., 1.]), array([1., 1., 0.]))
    """
    levels, place = np.unique(predicted, return_inverse=True)
    hits = np.bincount(place, weight * happened, len(levels))
    misses = np.bincount(place, weight * ~happened, len(levels))
    total = hits + misses
    starts = isotonic_regression(hits / total, weights=total).blocks[:-1]
    return np.add.reduceat(hits, starts), np.add.reduceat(misses, starts)


ScoreName = Literal["brier", "log"]


@dataclass(frozen=True)
class Score(Result):
    """The mean score of the rows and its standard error, infinite for less than two rows."""

    value: float
    std_error: float

    def __float__(self) -> float:
        return self.value


@dataclass(frozen=True)
class Decomposition(Result):
    """A score = reliability - resolution + uncertainty.

    `reliability` is what recalibration would gain, zero for a calibrated model; `resolution` is
    what the recalibrated model gains over the class frequencies, zero for one that does not
    discriminate; `uncertainty` is the score of the class frequencies, whatever the model.
    """

    score: float
    reliability: float
    resolution: float
    uncertainty: float


def log_score(y: Any, proba: Any, *, classes: Any = None, sample_weight: Any = None) -> Score:
    """The logarithmic score: the mean of -ln p(C_t|x), with t the class that occurred.

    `proba` is (n, K) with a column a class, in the order of `classes` (by default of the labels),
    or (n,) for the second of two. A weight counts how often its row occurred.
    A class that occurred although it was given the probability zero makes the score infinite;
    a warning then names the row.

    >>> score = log_score(["no", "yes", "yes"], [0.2, 0.9, 0.6])
    >>> round(score.value, 4), round(score.std_error, 4)
    (0.2798, 0.1204)
    """
    return _log(read_labelled(y, proba, classes, sample_weight))


def brier_score(y: Any, proba: Any, *, classes: Any = None, sample_weight: Any = None) -> Score:
    """The Brier score: the mean of Σ_k (p_k - t_k)², with t_k one for the class that occurred.

    For two classes half of that, (p - t)² of the second: from zero to one, as is usual (and as
    scikit-learn's brier_score_loss has it by default); for more classes from zero to two.
    `proba`, `classes` and `sample_weight` are as for `log_score`.

    >>> score = brier_score(["no", "yes", "yes"], [0.2, 0.9, 0.6])
    >>> round(score.value, 4), round(score.std_error, 4)
    (0.07, 0.0458)
    """
    return _brier(read_labelled(y, proba, classes, sample_weight))


def decompose_score(
    y: Any,
    proba: Any,
    *,
    score: ScoreName = "brier",
    classes: Any = None,
    sample_weight: Any = None,
) -> Decomposition:
    """The decomposition score = reliability - resolution + uncertainty.

    With S̄(r) the score of the isotonic recalibration of the predictions and S̄(π) that of the
    class frequencies: reliability = S̄ - S̄(r), resolution = S̄(π) - S̄(r), uncertainty = S̄(π)
    (Dimitriadis, Gneiting and Jordan, 2021). There are no bins, and no term is negative.

    The Brier score of more than two classes is the sum over the classes of the scores of each
    against the rest, and so are its parts. The logarithmic score is not such a sum: for more than
    two classes it is an error.
    An infinite logarithmic score (see `log_score`) has an infinite reliability.

    >>> parts = decompose_score([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9])
    >>> round(parts.reliability, 4), round(parts.resolution, 4), parts.uncertainty
    (0.06, 0.125, 0.25)
    """
    check_choice("score", score, list(_SCORES))
    rows = read_labelled(y, proba, classes, sample_weight)
    if score == "log" and rows.n_classes > 2:
        raise ParameterError(
            f"The logarithmic score of {rows.n_classes} classes is not a sum over the classes.",
            "Use score='brier', or one class against the rest: y == label with proba[:, k].",
        )
    mean, impurity = _SCORES[score]
    events = range(1 if rows.n_classes == 2 else 0, rows.n_classes)
    pools = [pool(rows.probability[:, k], rows.codes == k, rows.weight) for k in events]
    total = rows.weight.sum()
    value = mean(rows).value
    recalibrated = sum(impurity(hits, misses) for hits, misses in pools) / total
    shares = sum(impurity(hits.sum(), misses.sum()) for hits, misses in pools) / total
    return Decomposition(
        value,
        max(0.0, float(value - recalibrated)),
        max(0.0, float(shares - recalibrated)),
        float(shares),
    )


def _log(rows: Labelled) -> Score:
    own = rows.own
    impossible = own == 0
    if impossible.any():
        first = int(impossible.argmax())
        label = rows.classes.tolist()[rows.codes[first]]
        warn(
            ImpossibleClassWarning(
                f"Row {rows.row[first]} is of class {label!r}, which proba gives the probability "
                f"zero ({impossible.sum()} such rows in all): the logarithmic score is infinite.",
                "Use the Brier score, or a model that gives no class probability zero.",
            )
        )
    with np.errstate(divide="ignore"):
        return mean_score(-np.log(own), rows.weight)


def _brier(rows: Labelled) -> Score:
    happened = np.arange(rows.n_classes) == rows.codes[:, None]
    squares = ((rows.probability - happened) ** 2).sum(axis=1)
    return mean_score(squares / 2 if rows.n_classes == 2 else squares, rows.weight)


def mean_score(values: Array, weight: Array) -> Score:
    """The mean and its standard error, of rows that occurred `weight` times."""
    total = weight.sum()
    mean = weight @ values / total
    if not np.isfinite(mean) or total <= 1:
        return Score(float(mean), np.inf)
    variance = weight @ (values - mean) ** 2 / (total - 1)
    return Score(float(mean), float(np.sqrt(variance / total)))


def _gini(hits: Array, misses: Array) -> float:
    """The sum of (r - t)², where all rows are given their rate r."""
    return float(np.sum(hits * misses / (hits + misses)))


def _entropy(hits: Array, misses: Array) -> float:
    """The sum of -ln r for the hits and -ln(1 - r) for the misses, with their rate r."""
    total = hits + misses
    return -float(np.sum(xlogy(hits, hits / total) + xlogy(misses, misses / total)))


_SCORES: dict[ScoreName, tuple[Callable[[Labelled], Score], Callable[[Array, Array], float]]] = {
    "brier": (_brier, _gini),
    "log": (_log, _entropy),
}
"""A score, and its sum over the rows of a pool that are all given their rate."""
