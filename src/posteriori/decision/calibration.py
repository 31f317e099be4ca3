"""Whether events happen as often as the probabilities said: curve, error, test and residuals.

The residual t - μ of a single row is mostly noise. Averaged over a bin of rows with similar
predictions it has, if the model is right, the mean zero and the standard error √(Σ w Var t) / Σ w;
95 % of the bins lie within two (Gelman and Hill 2007, section 5.6). Temperature scaling is
softmax(b ln p), 1/b being the temperature.
"""

from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import bdtrc, betaincinv, betaln, ndtr, softmax, xlog1py, xlogy

from posteriori.arguments import check_choice, check_count, check_fraction
from posteriori.decision.decide import most_probable
from posteriori.decision.probabilities import Labelled, Result, read_labelled
from posteriori.typing import Array, Codes

# --- Bins -----------------------------------------------------------------------------------------

_EDGE = 1e-9  # of a bin, by which a row on its edge may miss it
OUTSIDE = 0.0455  # chance that an average lies more than two standard errors from zero


@dataclass(frozen=True, eq=False)
class BinnedResiduals(Result):
    """For bins (m,) of `n` rows: means of predictions and targets, and a standard error.

    `n` is the sum of the weights, `place` the mean of what the rows were sorted by, and `std_error`
    that of the mean target if the predictions are right.
    """

    n: Array
    place: Array
    predicted: Array
    observed: Array
    std_error: Array

    _columns = ("n", "place", "predicted", "observed", "std_error", "z")

    @property
    def gap(self) -> Array:
        """The mean residual of each bin; zero where it is rounding."""
        gap = self.observed - self.predicted
        gap[abs(gap) <= 1e-12 * abs(self.predicted)] = 0.0
        return gap

    @property
    def z(self) -> Array:
        """Mean residuals in standard errors; infinite where there should be none at all."""
        gap = self.gap
        certain = np.where(gap == 0, 0.0, np.copysign(np.inf, gap))
        return np.divide(gap, self.std_error, out=certain, where=self.std_error > 0)

    @property
    def outside(self) -> NDArray[np.bool_]:
        """Which bins lie more than two standard errors from zero."""
        return abs(self.z) > 2

    @property
    def share(self) -> float:
        """The share of such bins."""
        return float(self.outside.mean())

    @property
    def p_value(self) -> float:
        """The chance of so many such bins, or more, if the model is right."""
        m, k = len(self.n), int(self.outside.sum())
        return 1.0 if k == 0 else float(bdtrc(k - 1, m, OUTSIDE))

    @property
    def worst(self) -> int:
        """The bin that is farthest from zero."""
        return int(abs(self.z).argmax())


def binned_residuals(
    predicted: Array,
    observed: Array,
    variance: Array,
    weight: Array,
    *,
    along: Array | None = None,
    bins: int | None = None,
) -> BinnedResiduals:
    """Bins of rows (n,) with these means, targets, variances of the target, and weights.

    Rows are sorted by their predictions, or by `along`, and divided into `bins` of similar size:
    by default √n for 100 rows or more, 10 for more than 10, else n/2 (Gelman and Hill). Rows with
    equal values stay together.

    >>> p, t = np.repeat([0.2, 0.6], 50), np.tile([0.0, 1.0], 50)
    >>> found = binned_residuals(p, t, p * (1 - p), np.ones(100))
    >>> found.observed, found.z.round(2)
    (array([0.5, 0.5]), array([ 5.3 , -1.44]))
    """
    order, rows = predicted if along is None else along, float(weight.sum())
    if bins is None:
        few = max(int(rows) // 2, 1)
        bins = int(np.sqrt(rows)) if rows >= 100 else 10 if rows > 10 else few
    bin_of_row = bins_of(order, weight, bins)

    def total(values: Any) -> Array:
        return cast(Array, np.bincount(bin_of_row, weight * values))

    n = total(1.0)
    place, mean, rate = (total(values) / n for values in (order, predicted, observed))
    return BinnedResiduals(n, place, mean, rate, np.sqrt(total(variance)) / n)


def bins_of(order: Array, weight: Array, bins: int) -> Codes:
    """The bin of each row (n,), for rows sorted by `order`.

    >>> bins_of(np.array([0.3, 0.1, 0.3, 0.9]), np.ones(4), 2)
    array([1, 0, 1, 1])
    """
    place = np.unique(order, return_inverse=True)[1]
    total = np.bincount(place, weight)
    middle = (np.cumsum(total) - total / 2) / total.sum()
    bin_of_level = (middle * bins + _EDGE).astype(np.intp)
    return np.unique(bin_of_level, return_inverse=True)[1][place]


# --- Temperature ----------------------------------------------------------------------------------


def fit_inverse_temperature(activation: Array, codes: Codes, weight: Array) -> float:
    """The b >= 0 under which softmax(b a) makes the classes that occurred most probable.

    The derivative of the log likelihood, Σ w (a_t - Σ_k p_k a_k), decreases with b, so there is
    one root at most. The estimate is zero if the derivative is negative at zero: the activations
    point away from the classes that occurred. It is infinite if no row has a larger activation for
    another class than for its own, as the derivative then stays above zero.

    >>> from scipy.special import softmax
    >>> a = np.log([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9], [0.1, 0.9]])
    >>> b = fit_inverse_temperature(a, np.array([0, 1, 1, 1]), np.ones(4))
    >>> softmax(b * a, axis=1)[0].round(12)  # right three times in four
    array([0.75, 0.25])
    """
    below = activation - activation.max(axis=1, keepdims=True)
    own = np.take_along_axis(below, codes[:, None], axis=1)[:, 0]
    weight = weight / weight.sum()

    def negative_derivative(b: float) -> float:
        p = softmax(b * below, axis=1)
        return float(weight @ ((p * below).sum(axis=1) - own))

    if negative_derivative(0.0) >= 0:
        return 0.0
    if own.min() == 0:
        return np.inf
    high = 1 / -below.mean()
    while negative_derivative(high) < 0:
        high *= 2
    return float(brentq(negative_derivative, 0.0, high, xtol=1e-300, rtol=1e-15))


# --- Calibration of probabilities -----------------------------------------------------------------

_NORMAL = 1e8  # variance from which on a binomial is normal to the digits that its logs have
_SMALLEST_P = 1e-9  # below it, the binomial is a Poisson distribution to all digits that matter
_UNIT_ROUNDING = 8 * np.finfo(np.float64).eps


def _calibration_bins(
    predicted: Array, happened: NDArray[np.bool_], weight: Array, bins: int | None
) -> BinnedResiduals:
    """Bins of an event with these probabilities.

    By default the cube root of the number of rows, which balances the bias from averaging within
    bins against the noise of small bins. Weights that are whole numbers count rows.
    """
    if bins is None:
        rows = float(weight.sum())
        whole = rows < 2**53 and (weight == np.rint(weight)).all()
        bins = max(1, round((rows if whole else len(weight)) ** (1 / 3)))
    observed, variance = happened.astype(np.float64), predicted * (1 - predicted)
    return binned_residuals(predicted, observed, variance, weight, bins=bins)


def exact_interval(rate: Array, n: Array, level: float) -> tuple[Array, Array]:
    """Clopper and Pearson's interval for a probability, from a rate among n rows.

    Its ends are the probabilities under which a rate as large, or as small, has the chance
    (1 - level)/2; its coverage is at least `level`.

    >>> low, high = exact_interval(np.array([0.0, 0.5]), np.array([10.0, 10.0]), 0.95)
    >>> low.round(4), high.round(4)
    (array([0.    , 0.1871]), array([0.3085, 0.8129]))
    """
    tail, hits = (1 - level) / 2, rate * n
    misses = n - hits
    low, high = np.zeros_like(rate), np.ones_like(rate)
    some, lacking = hits > 0, misses > 0
    low[some] = betaincinv(hits[some], misses[some] + 1, tail)
    high[lacking] = betaincinv(hits[lacking] + 1, misses[lacking], 1 - tail)
    return low, high


def mean_gap_by_chance(bins: BinnedResiduals) -> Array:
    """The mean of |observed - predicted| in each bin, if the predictions are right.

    The number of events is approximated by a binomial distribution with its mean and variance:
    E|X - Np| = 2ν C(N, ν) p^ν (1 - p)^(N - ν + 1), with ν the first integer above Np (De Moivre);
    by a normal distribution if the variance is large.
    """
    expected = bins.n * np.minimum(bins.predicted, 1 - bins.predicted)
    variance = (bins.std_error * bins.n) ** 2
    found = np.sqrt(2 * variance / np.pi)
    exact = (variance > 0) & (variance <= _NORMAL)
    mean = expected[exact]
    p = np.maximum(1 - np.minimum(variance[exact], mean) / mean, _SMALLEST_P)
    N = mean / p
    ν = np.floor(mean) + 1
    log_choose = -np.log1p(N) - betaln(N - ν + 1, ν + 1)
    log_mean = np.log(2 * ν) + log_choose + xlogy(ν, p) + xlog1py(N - ν + 1, -p)
    found[exact] = np.exp(log_mean)
    return found / bins.n


@dataclass(frozen=True, eq=False)
class ReliabilityCurve(Result):
    """What was predicted for the class `label`, and what was observed, in bins (m,) of `n` rows.

    `low` and `high` are Clopper and Pearson's confidence interval for the probability of each bin,
    one bin at a time, at the given `level`.
    """

    label: Any
    level: float
    predicted: Array
    observed: Array
    low: Array
    high: Array
    n: Array

    _columns = ("predicted", "observed", "low", "high", "n")


@dataclass(frozen=True)
class CalibrationError(Result):
    """How far observed rates are from predicted probabilities.

    `expected` is the mean of |observed - predicted| over the rows, bin by bin. It is positive by
    chance alone: for a calibrated model with the same predictions its mean is `expected_by_chance`.
    `z` is Spiegelhalter's statistic, standard normal for a calibrated model, and `p_value` its
    two-sided p-value. z is positive where the Brier score is worse than the model itself expects,
    as for an overconfident model, and negative where it is better.
    """

    expected: float
    expected_by_chance: float
    z: float
    p_value: float


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
    """How often the class `label` occurred among rows with similar predictions.

    The rows are sorted by their predictions and divided into `bins` of equal size (by default the
    cube root of the number of rows); rows with equal predictions stay together. Each rate has an
    exact confidence interval, which covers `predicted` if the model is calibrated.

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
    predicted, happened = rows.probability[:, k], rows.codes == k
    found = _calibration_bins(predicted, happened, rows.weight, bins)
    low, high = exact_interval(found.observed, found.n, level)
    name = rows.classes.tolist()[k]
    return ReliabilityCurve(name, level, found.predicted, found.observed, low, high, found.n)


def calibration_error(
    y: Any,
    proba: Any,
    *,
    kind: Literal["top", "classwise"] = "top",
    bins: int | None = None,
    classes: Any = None,
    sample_weight: Any = None,
) -> CalibrationError:
    """The expected calibration error Σ_b (n_b/n) |observed_b - predicted_b|, and that of chance.

    With kind="top" the event is that the most probable class occurs, and the prediction its
    probability; with "classwise" every class is an event, and the errors are averaged over the
    classes. Bins and the other arguments are those of `reliability_curve`. The sum of the weights
    counts as the number of rows: it does not change `expected`, but `expected_by_chance`.

    >>> y, proba = [0, 0, 0, 1, 0, 1, 1, 1], [0.1, 0.1, 0.2, 0.2, 0.7, 0.7, 0.8, 0.8]
    >>> error = calibration_error(y, proba, kind="classwise", bins=2)
    >>> round(error.expected, 4), round(error.expected_by_chance, 4)
    (0.05, 0.1563)
    >>> round(error.p_value, 3)
    0.852
    """
    check_choice("kind", kind, ["top", "classwise"])
    check_count("bins", bins, "bins", none=True)
    rows = read_labelled(y, proba, classes, sample_weight)
    p = rows.probability
    events = [(p[:, k], rows.codes == k) for k in range(p.shape[1])]
    if kind == "top":
        events = [(p.max(axis=1), rows.codes == most_probable(p))]
    found = [_calibration_bins(*event, rows.weight, bins) for event in events]
    return CalibrationError(
        float(np.mean([np.average(abs(each.gap), weights=each.n) for each in found])),
        float(np.mean([np.average(mean_gap_by_chance(each), weights=each.n) for each in found])),
        *spiegelhalter_test(rows),
    )


def spiegelhalter_test(rows: Labelled) -> tuple[float, float]:
    """z and p-value of Spiegelhalter's test (1986): is the Brier score what the model expects?

    For a calibrated model Σ_k (p_k - t_k)² has mean 1 - q and variance 4 Σ_k p_k (p_k - q)²,
    with q = Σ_k p_k²; z is the sum of the scores less that of the means, over the root of the sum
    of the variances. z is zero where all classes are equally probable in every row, and infinite
    where an impossible class occurred and nothing else varies.

    >>> z, p_value = spiegelhalter_test(read_labelled([0, 1, 0, 0], [0.1, 0.2, 0.3, 0.1]))
    >>> round(z, 4), round(p_value, 4)
    (0.4402, 0.6598)
    """
    p = rows.probability / rows.probability.sum(axis=1, keepdims=True)
    surplus = p - (p**2).sum(axis=1, keepdims=True)
    surplus[abs(surplus) < _UNIT_ROUNDING] = 0.0
    own = np.take_along_axis(surplus, rows.codes[:, None], axis=1)[:, 0]
    excess = -(rows.weight @ own)
    spread = np.sqrt(rows.weight @ (p * surplus**2).sum(axis=1))
    with np.errstate(divide="ignore"):
        z = float(excess / spread) if excess else 0.0
    return z, float(2 * ndtr(-abs(z)))
