"""Whether events happen as often as the probabilities said: curve, error and test."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from posteriori.arguments import check_choice, check_count, check_fraction
from posteriori.decision.bins import (
    Bins,
    exact_interval,
    make_bins,
    mean_gap_by_chance,
    mean_square_gap,
)
from posteriori.decision.isotonic import Pools, pool
from posteriori.decision.labelled import Labelled, read_labelled
from posteriori.decision.rule import most_probable
from posteriori.rows.frames import make_frame
from posteriori.typing import Array

Kind = Literal["top", "classwise"]
Event = tuple[Array, NDArray[np.bool_]]
"""The predictions of an event, and where it happened."""

_ROUNDING = 8 * np.finfo(np.float64).eps


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """What was predicted for the class `label`, and what was observed, in bins (m,) of `n` rows.

    `low` and `high` are Clopper and Pearson's confidence interval for the probability of each bin,
    one bin at a time, at the given `level`. `isotonic` is the curve that needs no bins: the rates
    of rows pooled until they rise with the prediction.
    """

    label: Any
    level: float
    predicted: Array
    observed: Array
    low: Array
    high: Array
    n: Array
    isotonic: Pools

    def to_frame(self, backend: str | None = None) -> Any:
        """A row a bin: predicted, observed, low, high, n; of "pandas", "polars" or "pyarrow"."""
        names = ("predicted", "observed", "low", "high", "n")
        return make_frame({name: getattr(self, name).tolist() for name in names}, backend)


@dataclass(frozen=True)
class Spiegelhalter:
    """A test of calibration: `z`, standard normal for a calibrated model, and its p-value.

    The p-value is two-sided. z is above zero where the score is worse than the model itself
    expects, as it is for one that is too sure; below zero where it is better.
    """

    z: float
    p_value: float


@dataclass(frozen=True)
class CalibrationError:
    """How far rates are from probabilities.

    `expected` is the mean of |observed - predicted| over the rows, bin by bin. Chance alone keeps
    it from zero: a calibrated model with the same predictions has `expected_by_chance` on average.
    `mean_square` is the mean of (observed - predicted)² less what chance adds to it; having no
    bias it may fall below zero, and `root_mean_square` is zero then. Bins that hold no more than
    one row (by weight) are left out of it; both are None if no other is there.
    """

    expected: float
    expected_by_chance: float
    mean_square: float | None
    spiegelhalter: Spiegelhalter

    @property
    def root_mean_square(self) -> float | None:
        if self.mean_square is None:
            return None
        return float(np.sqrt(max(0.0, self.mean_square)))


def reliability_curve(
    y: Any,
    proba: Any,
    *,
    label: Any = None,
    level: float = 0.95,
    bins: int | None = None,
    classes: Any = None,
    sample_weight: Any = None,
) -> ReliabilityCurve:
    """How often the class `label` occurred among rows of like predictions.

    The rows are put into `bins` of equal size in the order of their predictions (by default as many
    as the cube root of the number of rows); rows of one prediction stay together. Around each
    rate is an exact confidence interval; on a calibrated model it holds `predicted`.

    `label` is by default the second of two classes. `proba` is (n, K) with a column a class, in
    the order of `classes` (by default of the labels), or (n,) for the second of two. A weight
    counts how often its row occurred.

    >>> y, proba = [0, 0, 0, 1, 0, 1, 1, 1], [0.1, 0.1, 0.2, 0.2, 0.7, 0.7, 0.8, 0.8]
    >>> reliability_curve(y, proba, bins=2).to_frame("pandas").round(3)
       predicted  observed    low   high    n
    0       0.15      0.25  0.006  0.806  4.0
    1       0.75      0.75  0.194  0.994  4.0
    """
    check_fraction("level", level)
    check_count("bins", bins, "bins", none=True)
    rows = read_labelled(y, proba, classes, sample_weight)
    k = rows.place(label)
    predicted, happened = _of_class(rows, k)
    found = make_bins(predicted, happened, rows.weight, bins)
    low, high = exact_interval(found.observed, found.n, level)
    return ReliabilityCurve(
        rows.classes.tolist()[k],
        level,
        found.predicted,
        found.observed,
        low,
        high,
        found.n,
        pool(predicted, happened, rows.weight),
    )


def calibration_error(
    y: Any,
    proba: Any,
    *,
    kind: Kind = "top",
    bins: int | None = None,
    classes: Any = None,
    sample_weight: Any = None,
) -> CalibrationError:
    """The expected calibration error Σ_b (n_b/n) |observed_b - predicted_b|, and that of chance.

    With kind="top" the event is that the most probable class occurs, and the prediction its
    probability; with "classwise" every class is an event, and the errors are averaged over the
    classes. Bins are those of `reliability_curve`, and so are the other arguments. Where weights
    are fractions the mean error does not depend on their units, but what chance makes does: their
    sum counts as the number of rows.

    >>> y, proba = [0, 0, 0, 1, 0, 1, 1, 1], [0.1, 0.1, 0.2, 0.2, 0.7, 0.7, 0.8, 0.8]
    >>> error = calibration_error(y, proba, kind="classwise", bins=2)
    >>> round(error.expected, 4), round(error.expected_by_chance, 4)
    (0.05, 0.1563)
    >>> round(error.spiegelhalter.p_value, 3)
    0.852
    """
    check_choice("kind", kind, ["top", "classwise"])
    check_count("bins", bins, "bins", none=True)
    rows = read_labelled(y, proba, classes, sample_weight)
    found = [make_bins(*event, rows.weight, bins) for event in _events(rows, kind)]
    return CalibrationError(
        float(np.mean([_mean_over_rows(each, abs(each.gap)) for each in found])),
        float(np.mean([_mean_over_rows(each, mean_gap_by_chance(each)) for each in found])),
        _mean_square(found),
        _spiegelhalter(rows),
    )


def spiegelhalter(
    y: Any, proba: Any, *, classes: Any = None, sample_weight: Any = None
) -> Spiegelhalter:
    """Spiegelhalter's test of calibration (1986): is the Brier score what the model itself expects?

    Of a calibrated model Σ_k (p_k - t_k)² has the mean 1 - q and the variance 4 Σ_k p_k (p_k - q)²,
    with q = Σ_k p_k²; z is the sum of the scores less that of the means, over the root of the sum
    of the variances. Where no class could be told from another, z is zero; where one occurred
    that was impossible and nothing else varies, z is infinite.

    >>> spiegelhalter([0, 1, 0, 0], [0.1, 0.2, 0.3, 0.1])
    Spiegelhalter(z=0.4402..., p_value=0.6597...)
    """
    return _spiegelhalter(read_labelled(y, proba, classes, sample_weight))


def _spiegelhalter(rows: Labelled) -> Spiegelhalter:
    p = rows.probability / rows.probability.sum(axis=1, keepdims=True)
    surplus = p - (p**2).sum(axis=1, keepdims=True)
    surplus[abs(surplus) < _ROUNDING] = 0.0
    own = np.take_along_axis(surplus, rows.codes[:, None], axis=1)[:, 0]
    excess = -(rows.weight @ own)
    spread = np.sqrt(rows.weight @ (p * surplus**2).sum(axis=1))
    if spread > 0:
        z = float(excess / spread)
    else:
        z = float(np.copysign(np.inf, excess)) if excess else 0.0
    return Spiegelhalter(z, float(2 * ndtr(-abs(z))))


def _events(rows: Labelled, kind: Kind) -> list[Event]:
    if kind == "classwise":
        return [_of_class(rows, k) for k in range(rows.n_classes)]
    top = most_probable(rows.probability)
    return [(rows.probability.max(axis=1), rows.codes == top)]


def _of_class(rows: Labelled, k: int) -> Event:
    return rows.probability[:, k], rows.codes == k


def _mean_square(events: list[Bins]) -> float | None:
    """The mean over those events of which it can be told."""
    told = [square for each in events if (square := mean_square_gap(each)) is not None]
    return float(np.mean(told)) if told else None


def _mean_over_rows(bins: Bins, values: Array) -> float:
    return float(bins.n @ values / bins.n.sum())
