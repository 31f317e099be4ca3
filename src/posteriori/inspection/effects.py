"""Effects in units of probability: predictions, comparisons and slopes, with intervals.

Coefficients are in units of log odds; a reader wants to know by how much a probability changes.
That depends on the row, so it is averaged over rows, or computed for chosen ones. All three return
a data frame with the same columns: at_... (the values chosen), term, contrast, row, class,
estimate, std_error, statistic, p_value, conf_low, conf_high, where they apply.

Conventions: n rows, K means a row (one for two classes, that of the second; one for a number),
A activations a row, q parameters each, Θ (A, q) for standardised columns with covariance VVᵀ, V_m
(A, q) being a column of the root. A row φ has activations a = Θφ and means μ(a). With M = ∂μ/∂a
(K, A) and B = ∂²μ/∂a² (K, A, A), the slope in column j, of scale c_j, is s_j = Mθ_j/c_j. Along V_m,
which moves the activations by d_m = V_mφ, the derivatives are

    ∂μ = M d_m,    c_j ∂s_j = B θ_j d_m + M v_mj.

The standard error of an estimate is the length of its derivatives. Arrays (..., 1 + m) have an
estimate, then these derivatives, or its values in m draws of the parameters, or nothing (m = 0):
averages and differences of estimates are those of these arrays. J effects of n rows are
(n, J, K, 1 + m), their sums by the weights of the rows (J, K, 1 + m).
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from posteriori.arguments import check_fraction, either, is_number
from posteriori.design.matrix import Design
from posteriori.errors import (
    ColumnNameError,
    InferenceError,
    LevelError,
    MissingValueError,
    ParameterError,
)
from posteriori.inspection.results import check_has_columns, offset_argument
from posteriori.likelihood.links import Link, Logit
from posteriori.likelihood.log_arithmetic import quiet
from posteriori.posterior.activations import (
    ActivationGaussian,
    MeanInterval,
    check_inside,
    ends_of_one,
)
from posteriori.posterior.coefficient_table import CoefficientMap
from posteriori.posterior.inference import Inference
from posteriori.posterior.log_posterior import WIDE
from posteriori.posterior.predictive import PredictionKernel, quantile_ends, some_draws
from posteriori.rows.block import Block
from posteriori.rows.features import Table, as_frame, read_features
from posteriori.rows.frames import (
    Change,
    Changes,
    add_to,
    as_pickable,
    backend_of,
    changed_features,
    changed_table,
    entries_of,
    make_frame,
    pick_rows,
    set_to,
)
from posteriori.rows.in_memory import MemoryRows
from posteriori.rows.schema import Column, Schema, known_levels
from posteriori.rows.target import read_weight
from posteriori.typing import Array, Codes, Labels

ChangeLike: TypeAlias = float | Literal["sd", "iqr", "minmax"] | tuple[float, float]
"""So much more, one standard deviation more, from the lower to the upper quartile, from the
smallest entry to the largest, or from one value to another."""

At: TypeAlias = Literal["mean"] | Mapping[str, Any] | None
"""The rows as they are, the typical row, or the rows with these values in some columns."""

Kind = Literal["mean", "difference", "derivative"]
"""What is estimated: means, or changes of means."""

_QUANTILES = {"iqr": ("q1 to q3", 0.25, 0.75), "minmax": ("min to max", 0.0, 1.0)}
"""The name of a change from one quantile to another."""

_PART_ENTRIES = 2**22
"""Numbers in the widest temporary."""

_CHECKED_ROWS = 1000
"""Rows by which probabilities are checked to be smooth."""

_MOVED = 1e-3
"""The change of a probability by a column that matters."""

_UNDETERMINED = 1e-6
"""The share of a derivative that may be in directions that the rows of the fit do not determine."""

_NUMBERS = {
    1: ("estimate",),
    4: ("estimate", "std_error", "conf_low", "conf_high"),
    6: ("estimate", "std_error", "statistic", "p_value", "conf_low", "conf_high"),
}
"""The columns of a result, by their number."""

# --- Means and slopes of some rows ----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ProbabilityEstimates:
    """The probabilities of any classifier, without standard errors."""

    model: Any

    entries = 1
    row_interval = None

    def means(self, X: Any, weight: Array | None = None) -> Array:
        """The probabilities (n, K, 1), of two classes that of the second; or their weighted sum."""
        p = np.asarray(self.model.predict_proba(X), dtype=np.float64)
        return _summed((p[:, 1:] if p.shape[1] == 2 else p)[..., None], weight)

    def table(self, found: Array, kind: Kind) -> Array:
        """The estimates alone."""
        return found


@dataclass(frozen=True, eq=False)
class DeltaEstimates:
    """Means at the coefficients of a fit by likelihood, with errors by the delta method.

    The last columns of the root in `at` are directions that no row of the fit determines.
    More than 5,000 coefficients have no covariance, an empty root, and no errors.
    """

    inference: Inference
    link: Link
    at: ActivationGaussian
    row_interval: MeanInterval | None

    @classmethod
    def of(cls, model: Any, level: float) -> "DeltaEstimates":
        """Those of a fit, with intervals that cover with probability `level`."""
        inference = model._inference
        coef_map, w = inference.coefficient_map, inference.w
        link = Logit() if coef_map.coordinates.n_activations > 1 else model._link()
        if coef_map.coordinates.size > WIDE:
            at = ActivationGaussian.of(coef_map, w, np.empty((len(w), 0)))
            return cls(inference, link, at, None)
        interval = MeanInterval.of(inference, link, level)
        return cls(inference, link, interval.activations, interval)

    @property
    def coef_map(self) -> CoefficientMap:
        return self.inference.coefficient_map

    @property
    def entries(self) -> int:
        """Numbers that a row needs."""
        return max(self.at.entries, 1)

    def means(self, block: Block, weight: Array | None = None) -> Array:
        """The means (n, K, 1 + m), or their weighted sum (K, 1 + m)."""
        design, a = self._activations_of(block)
        value = _summed(_means_of(self.link, a[..., None]), weight)
        M = _slopes_of(self.link, a[..., None])[..., 0]
        return np.concatenate([value, self._moved(design, M, weight)], axis=-1)

    def slopes(self, block: Block, columns: Codes, weight: Array | None = None) -> Array:
        """Slopes (n, J, K, 1 + m) in J design columns in the user's units, or their sum."""
        design, a = self._activations_of(block)
        places = columns + self.coef_map.standard.intercept
        theta, root = (each[:, places] for each in (self.at.theta, self.at.root))
        M = _slopes_of(self.link, a[..., None])[..., 0]
        # M moves by B d_m.
        B = self._second(a, M).reshape(len(a), -1, a.shape[1])
        dM, M = self._moved(design, B, weight), _summed(M, weight)
        dM = dM.reshape(*M.shape, -1)
        moved = np.einsum("...kam,aj->...jkm", dM, theta) + np.einsum("...ka,ajm->...jkm", M, root)
        value = np.einsum("...ka,aj->...jk", M, theta)[..., None]
        unit = self.coef_map.one_unit[places]
        return np.concatenate([value, moved], axis=-1) / unit[:, None, None]

    def _activations_of(self, block: Block) -> tuple[Design, Array]:
        design = self.coef_map.design(block)
        a = self.coef_map.activations(design, self.at.theta, block)
        if a.shape[1] == 1:
            check_inside(self.link, a[:, 0], block)
        return design, a

    def _moved(self, design: Design, slopes: Array, weight: Array | None) -> Array:
        """How far functions with `slopes` (n, K, A) move along the root (n, K, m), or the sum."""
        root = self.at.root
        if weight is None or not root.size:
            return _summed(slopes @ self.coef_map.along(design, root), weight)
        phi, weighted = design.array(), weight[:, None, None] * slopes
        if self.coef_map.standard.intercept:
            phi = np.insert(phi, 0, 1.0, axis=1)
        return np.tensordot(np.tensordot(weighted, phi, (0, 0)), root, 2)

    @quiet
    def _second(self, a: Array, M: Array) -> Array:
        """B (n, K, A, A)."""
        if a.shape[1] == 1:
            return self.link.second_derivative(a[:, 0])[:, None, None, None]
        p = _means_of(self.link, a[..., None])
        rest = np.eye(a.shape[1]) - p.swapaxes(1, 2)
        return M[:, :, None] * rest[..., None] - p[..., None] * M[:, None]

    @quiet
    def table(self, found: Array, kind: Kind) -> Array:
        """Estimate, standard error and the ends of an interval (..., 4); changes with a test.

        The interval of a mean is computed on the scale of the link.
        """
        if self.row_interval is None:
            return found
        value, p = found[..., 0], found.shape[-1] - self.row_interval.n_undetermined
        error, lost = (np.linalg.norm(each, axis=-1) for each in (found[..., 1:p], found[..., p:]))
        if p < found.shape[-1]:  # a mean that is certain has no derivatives at all
            error = np.where(lost >= _UNDETERMINED * (lost + error), np.inf, error)
        away = self.row_interval.quantile * error
        if kind != "mean":
            statistic = np.where(np.isinf(error) | (value == 0), 0.0, value / error)
            tests = [statistic, self.inference.p_values(statistic)]
            return np.stack([value, error, *tests, value - away, value + away], axis=-1)
        a = self.link.activation(value).ravel()
        away = np.where(error > 0, away / abs(self.link.slope(a)).reshape(away.shape), 0.0)
        ends = ends_of_one(self.link, a, away.ravel()).reshape(*value.shape, 2)
        # A mean at the end of its range has no finite activation.
        ends = np.where(np.isnan(ends), value[..., None], ends)
        return np.concatenate([np.stack([value, error], axis=-1), ends], axis=-1)


@dataclass(frozen=True, eq=False)
class PosteriorEstimates:
    """Predictive means of a Bayesian model, with standard deviations and quantiles of draws.

    `theta` (A, q, S) has draws of the parameters for standardised columns.
    """

    model: Any
    theta: Array
    level: float
    row_interval: PredictionKernel

    @classmethod
    def of(cls, model: Any, level: float) -> "PosteriorEstimates":
        """Those of a fitted model with a posterior."""
        posterior = model.posterior_
        theta = posterior.coefficient_map.expand(some_draws(posterior).T)
        return cls(model, theta, level, model._interval_kernel(level))

    @property
    def coef_map(self) -> CoefficientMap:
        return cast(CoefficientMap, self.model.posterior_.coefficient_map)

    @property
    def entries(self) -> int:
        """Numbers that a row needs."""
        A, _, S = self.theta.shape
        return A * A * S

    def means(self, block: Block, weight: Array | None = None) -> Array:
        """The means (n, K, 1 + S), or their weighted sum (K, 1 + S)."""
        p = self.model._predicted(block)
        p = p[:, 1:] if p.shape[1] == 2 else p
        drawn = _means_of(self.model._link(), self._drawn(block))
        return _summed(np.concatenate([p[..., None], drawn], axis=-1), weight)

    def slopes(self, block: Block, columns: Codes, weight: Array | None = None) -> Array:
        """Slopes (n, J, K, 1 + S) in J design columns in the user's units, or their sum."""
        places = columns + self.coef_map.standard.intercept
        M = _summed(_slopes_of(self.model._link(), self._drawn(block)), weight)
        drawn = np.einsum("...kas,ajs->...jks", M, self.theta[:, places])
        drawn /= self.coef_map.one_unit[places][:, None, None]
        return np.concatenate([drawn.mean(axis=-1, keepdims=True), drawn], axis=-1)

    def _drawn(self, block: Block) -> Array:
        """The activations (n, A, S)."""
        return self.coef_map.activations(self.coef_map.design(block), self.theta, block)

    def table(self, found: Array, kind: Kind) -> Array:
        """Estimate, standard deviation and the ends of an interval (..., 4)."""
        value, drawn = found[..., 0], found[..., 1:]
        if kind == "derivative":  # predictive means may have small jumps
            value = drawn.mean(axis=-1)
        both = np.stack([value, drawn.std(axis=-1, ddof=1)], axis=-1)
        return np.concatenate([both, quantile_ends(drawn, self.level)], axis=-1)


Estimates = ProbabilityEstimates | DeltaEstimates | PosteriorEstimates


@quiet
def _means_of(link: Link, a: Array) -> Array:
    """μ (n, K, S) of S activations (n, A, S) of each row: by the link, or for A > 1 the softmax."""
    if a.shape[1] == 1:
        return link.mean(a.ravel()).reshape(a.shape)
    raised = np.exp(a - a.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


@quiet
def _slopes_of(link: Link, a: Array) -> Array:
    """M (n, K, A, S) of the same; ∂p_k/∂a_j = p_k(δ_kj - p_j) (4.106).

    >>> _slopes_of(Logit(), np.log([[[1.0], [3.0]]]))[0, ..., 0]
    array([[ 0.1875, -0.1875],
           [-0.1875,  0.1875]])
    """
    if a.shape[1] == 1:
        return link.slope(a.ravel()).reshape(a.shape)[:, :, None]
    p = _means_of(link, a)
    return p[:, :, None] * (np.eye(a.shape[1])[..., None] - p[:, None])


def _summed(values: Array, weight: Array | None) -> Array:
    """Values (n, ...) as they are, or their weighted sum (...)."""
    return values if weight is None else np.tensordot(weight, values, 1)


# --- Rows with changes of columns -----------------------------------------------------------------


Part = Callable[..., Any]
"""Some rows with changes of columns, as the estimates take them: part() or part(changes)."""

Effect = Callable[[Part, Array | None], Array]
"""J estimates of some rows (n, J, K, 1 + m), or their sums by the weights of rows (J, K, 1 + m)."""


@dataclass(frozen=True, eq=False)
class EffectRows:
    """Rows with columns that can be changed, and a model's estimates.

    After a formula, in a pipeline, and for other models the columns are those of X, which the model
    reads by `read`, or itself if that is None. `changes` are made first; `labels` say which values
    were chosen. The model has these `classes`, and gives frames of the `backend`.
    """

    estimates: Estimates
    table: Table
    weight: Array
    offset: Array | None
    classes: Labels | None
    backend: str | None
    X: Any = None
    read: Callable[[Any], MemoryRows] | None = None
    changes: Changes = ()
    labels: Mapping[str, Any] = field(default_factory=dict)

    @property
    def schema(self) -> Schema:
        return self.table.schema

    def column(self, j: int) -> tuple[Array, Array]:
        """The entries of a column, or codes of its levels, without missing ones, and weights."""
        values = np.asarray(entries_of(self.table, j), dtype=np.float64)
        present = np.isfinite(values) & (self.weight > 0)
        if j in self.schema.categorical:
            present &= values >= 0
        if not present.any():
            raise MissingValueError(
                f"All entries of {self.schema.describe(j)} are missing.", "Pass rows with some."
            )
        return values[present], self.weight[present]

    def deviation(self, j: int) -> float:
        """The standard deviation of a column, a weight of two being two rows; zero for one row."""
        values, weight = self.column(j)
        squares = weight @ np.square(values - np.average(values, weights=weight))
        return float(np.sqrt(squares / (weight.sum() - 1))) if weight.sum() > 1 else 0.0

    def quantile(self, j: int, share: float) -> float:
        """The smallest entry up to which there is this share of the weight."""
        values, weight = self.column(j)
        order = np.argsort(values)
        below = np.cumsum(weight[order])
        return float(values[order][np.searchsorted(below, share * below[-1] * (1 - 1e-12))])

    def small_step(self, j: int) -> float:
        """A step h over which a difference stands for a derivative: positive entries stay so.

        In standard deviations, h² and rounding divided by h are alike.
        """
        values, _ = self.column(j)
        spread = self.deviation(j) or float(abs(values).max()) or 1.0
        step, smallest = spread * np.finfo(np.float64).eps ** (1 / 3), float(values.min())
        return min(step, 0.02 * smallest) if smallest > 0 else step

    def part(self, low: int, high: int, changes: Changes = ()) -> Any:
        """Some of the rows with these changes, as the estimates take them."""
        features, changes = self.table.cut(low, high), [*self.changes, *changes]
        if self.X is None:
            features = changed_features(features, self.schema, changes)
        else:
            X = pick_rows(self.X, np.arange(low, high))
            X = changed_table(X, Table(features, self.schema), changes)
            if self.read is None:
                return X
            features = self.read(X).table.cut(0, high - low)
        offset = None if self.offset is None else self.offset[low:high]
        return Block(features, None, None, low, None, offset)

    def evaluate(self, effect: Effect, average: bool, kind: Kind) -> Array:
        """The table (J, K, c) of the average effects, or that of each row (n, J, K, c)."""
        estimates, n = self.estimates, self.table.n_rows
        size = max(_PART_ENTRIES // estimates.entries, 1)
        spans = [(low, min(low + size, n)) for low in range(0, n, size)]
        parts = [partial(self.part, *span) for span in spans]
        if average:
            weights = [self.weight[low:high] for low, high in spans]
            total = sum(map(effect, parts, weights))
            return estimates.table(cast(Array, total / self.weight.sum()), kind)
        tables = [estimates.table(effect(part, None), kind) for part in parts]
        if kind == "mean" and estimates.row_interval is not None:
            for part, table in zip(parts, tables, strict=True):
                table[..., 2:] = estimates.row_interval(part()).reshape(*table.shape[:-1], 2)
        return np.concatenate(tables)


Contrast: TypeAlias = tuple[int, str, Changes, Changes]
"""A column, the name of a comparison, and the two changes that are compared."""


def _frame(
    rows: EffectRows, at: At, average: bool, effect: Effect, terms: Sequence[Any], kind: Kind
) -> Any:
    """Effects as a data frame; `terms` are further labels of each of the J effects."""
    columns: dict[str, list[Any]] = {}
    tables = []
    for place in _places(rows, at):
        found = place.evaluate(effect, average or at is not None, kind)
        for j, term in enumerate(terms):
            each = found[..., j, :, :]
            (*n, K, width), size = each.shape, each[..., 0].size
            repeated = {name: [value] * size for name, value in (place.labels | term).items()}
            if n:
                repeated["row"] = np.repeat(np.arange(n[0]), K).tolist()
            if rows.classes is not None:
                repeated["class"] = rows.classes[-K:].tolist() * (size // K)
            for name, values in repeated.items():
                columns.setdefault(name, []).extend(values)
            tables.append(each.reshape(size, width))
    numbers = np.concatenate(tables).T
    return make_frame(
        columns | dict(zip(_NUMBERS[len(numbers)], numbers.tolist(), strict=True)), rows.backend
    )


# --- Predictions, comparisons and slopes ----------------------------------------------------------


def predictions(
    model: Any,
    X: Any = None,
    *,
    at: At = None,
    average: bool = False,
    level: float = 0.95,
    sample_weight: Any = None,
    offset: Any = None,
) -> Any:
    """Probabilities with intervals, row by row, averaged, or at chosen values.

    The standard error of a mean μ(w) is √(gᵀCg), with g = ∂μ/∂w and C the covariance of the
    coefficients (the delta method); intervals are computed on the scale of the link, within zero
    and one, as `predict_interval` does.

    Parameters
    ----------
    model : any fitted classifier with `predict_proba`, or a `GLM` of numbers
        Models fitted by likelihood have standard errors and intervals; so has a scikit-learn
        `Pipeline` that ends with one. For `BayesianLogisticRegression` they are standard deviations
        and quantiles of draws of the posterior. Other models (`GaussianClassifier`, `NaiveBayes`,
        those of scikit-learn) and fits with more than 5,000 coefficients have estimates alone.
    X : rows in memory
        None for the rows of the fit, with their weights and offsets, if the model has kept them.
    at : None, "mean" or {column: value or list of values}
        The rows as they are. One row: means of numbers, most frequent levels and booleans. Or all
        rows with these values in some columns, averaged, one line for each combination.
    average : whether to average over rows, which `at` always does.
    level : the coverage probability of the intervals.
    sample_weight, offset : weights in averages, and offsets, of the rows X.

    Returns
    -------
    A data frame of the kind that the model was fitted to, with the columns at_... or row, class,
    estimate, std_error, conf_low, conf_high. Of two classes the second is shown.

    >>> from posteriori import LogisticRegression
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 1, 0, 1, 1]
    >>> model = LogisticRegression().fit(X, y)
    >>> predictions(model, at={"x0": [1, 4]}).round(3)
       at_x0  class  estimate  std_error  conf_low  conf_high
    0      1      1     0.139      0.213     0.005      0.840
    1      4      1     0.861      0.213     0.160      0.995
    """
    rows = _effect_rows(model, X, level, sample_weight, offset)

    def means(part: Part, weight: Array | None) -> Array:
        return np.expand_dims(rows.estimates.means(part(), weight), -3)

    return _frame(rows, at, average, means, [{}], "mean")


def comparisons(
    model: Any,
    X: Any = None,
    *,
    columns: Any = None,
    change: ChangeLike = 1.0,
    at: At = None,
    average: bool = True,
    level: float = 0.95,
    sample_weight: Any = None,
    offset: Any = None,
) -> Any:
    """The change of probabilities when a column changes and all others stay as they are.

    E[μ(x with x_j = high) - μ(x with x_j = low)], averaged over rows, with errors by the delta
    method. Rows, models and `at` are those of `predictions`; intervals are the estimate and so many
    standard errors to either side.

    Parameters
    ----------
    columns : a name or several; all by default.
    change : a number, "sd", "iqr", "minmax", or (low, high), for numeric columns
        So much more than each row has; a standard deviation more; from the lower quartile to the
        upper one; from the smallest entry to the largest; from low to high. A boolean is changed
        from False to True, a categorical column from its first level to each of the others.
    average : whether to average over rows, which `at` always does.

    Returns
    -------
    A data frame with the columns (at_...), term, contrast, (row), class, estimate, std_error,
    statistic, p_value, conf_low, conf_high.

    >>> from posteriori import LogisticRegression
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 1, 0, 1, 1]
    >>> found = comparisons(LogisticRegression().fit(X, y), change="iqr")
    >>> found[["term", "contrast", "class", "estimate", "std_error"]].round(3)
      term  contrast  class  estimate  std_error
    0   x0  q1 to q3      1     0.721      0.328
    """
    rows = _effect_rows(model, X, level, sample_weight, offset)
    contrasts, means = _contrasts(rows, columns, change), rows.estimates.means

    def differences(part: Part, weight: Array | None) -> Array:
        ends = [(part(high), part(low)) for *_, low, high in contrasts]
        found = [means(high, weight) - means(low, weight) for high, low in ends]
        return np.stack(found, axis=-3)

    names = rows.schema.names
    terms = [{"term": names[j], "contrast": label} for j, label, *_ in contrasts]
    return _frame(rows, at, average, differences, terms, "difference")


def slopes(
    model: Any,
    X: Any = None,
    *,
    columns: Any = None,
    at: At = None,
    average: bool = True,
    level: float = 0.95,
    sample_weight: Any = None,
    offset: Any = None,
) -> Any:
    """The change of probabilities with each unit of a numeric column: marginal effects.

    ∂μ/∂x_j = M w_j with M = ∂μ/∂a, the derivative through the link at the row's activation: for
    two classes p(1 - p) w_j. They are averaged over rows, with errors by the delta method, whose
    derivatives in w are exact. After a fit by a formula, in a pipeline, and for models that have
    only `predict_proba`, derivatives in x_j are differences over small steps; it is an error if the
    probabilities change in steps, as those of trees do. Rows, models and `at` are those of
    `predictions`.

    Parameters
    ----------
    columns : a name or several of numeric columns; all of these by default
        `comparisons` has boolean and categorical ones.
    average : whether to average over rows, which `at` always does.

    Returns
    -------
    A data frame with the columns (at_...), term, (row), class, estimate, std_error, statistic,
    p_value, conf_low, conf_high.

    >>> from posteriori import LogisticRegression
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 1, 0, 1, 1]
    >>> found = slopes(LogisticRegression().fit(X, y))
    >>> found[["term", "class", "estimate", "std_error", "conf_low", "conf_high"]].round(3)
      term  class  estimate  std_error  conf_low  conf_high
    0   x0      1     0.159      0.022     0.115      0.202
    """
    rows = _effect_rows(model, X, level, sample_weight, offset)
    kinds, places = [column.kind for column in rows.schema.columns], _places_of(rows, columns)
    others = [j for j in places if kinds[j] != "numeric"]
    if others and (columns is not None or len(others) == len(places)):
        raise ParameterError(
            f"There is no slope in {rows.schema.describe(others[0])}, which is {kinds[others[0]]}.",
            "Use comparisons, which compare one level with another.",
        )
    places = [j for j in places if j not in others]
    terms = [{"term": rows.schema.names[j]} for j in places]
    return _frame(rows, at, average, _slope_effect(rows, places), terms, "derivative")


def predict_interval(model: Any, X: Any, level: float = 0.95, **given: Any) -> Array:
    """`model.predict_interval(X, level)`, also of the last step of a scikit-learn `Pipeline`.

    `given` are its further arguments, such as `offset`.

    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from posteriori import LogisticRegression
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 1, 0, 1, 1]
    >>> model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    >>> predict_interval(model, [[2.5]]).round(3)
    array([[0.099, 0.901]])
    """
    last, transform = last_step(model)
    return cast(Array, last.predict_interval(transform(X), level=level, **given))


def last_step(model: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The last step of a pipeline and the transformation before it; any other model by itself."""
    if not isinstance(model, Pipeline):
        return model, lambda X: X
    check_is_fitted(model)
    return model[-1], model[:-1].transform if len(model) > 1 else lambda X: X


def _effect_rows(model: Any, X: Any, level: float, sample_weight: Any, offset: Any) -> EffectRows:
    """The rows and the estimates for the effects of a fitted model."""
    check_fraction("level", level)
    check_is_fitted(model)
    if X is None and not (sample_weight is None and offset is None):
        raise ParameterError("sample_weight or offset was given without X.", "Pass X too.")
    last, transform = last_step(model)
    backend = (None if X is None else backend_of(X)) or getattr(last, "_frame_backend", None)
    has_errors = hasattr(last, "_inference")
    estimates: Estimates = ProbabilityEstimates(model)
    if has_errors:
        kind = PosteriorEstimates if hasattr(last, "posterior_") else DeltaEstimates
        estimates = kind.of(last, level)
    if X is None:
        X, rows = _rows_of_fit(model)
        table = rows.table if X is None else user_table(model, X)
    else:
        table = user_table(model, X)
        offset_argument(last, offset)
        rows = last._rows_with(transform(X), offset) if has_errors else MemoryRows(table)
        rows = replace(rows, weight=read_weight(sample_weight, rows.n_rows))
    weight = np.ones(rows.n_rows) if rows.weight is None else rows.weight
    found = EffectRows(
        estimates, table, weight, rows.offset, getattr(last, "classes_", None), backend
    )
    if has_errors and last is model and last.formula_ is None:
        return found
    read = (lambda new: last._new_rows(transform(new))) if has_errors else None
    return replace(found, X=as_pickable(X), read=read)


def user_table(model: Any, X: Any) -> Table:
    """The columns of X; after a fit by a formula, those that it uses."""
    check_has_columns(model)
    formula, schema = getattr(model, "formula_", None), getattr(model, "schema_", None)
    if formula is not None:
        X, schema = cast(Any, as_frame(X)).select(formula.schema.names).to_native(), formula.schema
    return read_features(X, schema, type(model).__name__)


def _rows_of_fit(model: Any) -> tuple[Any, MemoryRows]:
    """The data of the formula of a fit, if any, and the rows that the model was fitted to."""
    rows, formula = None, getattr(model, "formula_", None)
    with suppress(AttributeError, InferenceError):  # no likelihood, or a copy without rows
        rows = model._inference.objective.rows
    updated = hasattr(model, "_earlier") and model._earlier.n_fits
    lost = updated or (formula is not None and formula.data is None)
    if rows is None or not rows.in_memory or lost:
        raise ParameterError(
            f"This {type(model).__name__} has not kept in memory the rows that it was fitted to.",
            "Pass X: the rows to average over.",
        )
    model._inference.goodness.check_rows()
    return None if formula is None else formula.data, rows


def _slope_effect(rows: EffectRows, columns: Sequence[int]) -> Effect:
    """Slopes (..., J, K, 1 + m) of some rows."""
    estimates = rows.estimates
    if isinstance(estimates, ProbabilityEstimates):
        for j in columns:
            _check_smooth(rows, estimates, j)
    elif rows.X is None:
        positions = estimates.coef_map.columns.positions
        places = np.concatenate([positions[j] for j in columns])
        return lambda part, weight: estimates.slopes(part(), places, weight)
    steps = [(j, rows.small_step(j)) for j in columns]

    def by_differences(part: Part, weight: Array | None) -> Array:
        found = []
        for j, h in steps:
            up, down = (estimates.means(part([add_to(j, s)]), weight) for s in (h, -h))
            found.append((up - down) / (2 * h))
        return np.stack(found, axis=-3)

    return by_differences


def _check_smooth(rows: EffectRows, estimates: ProbabilityEstimates, j: int) -> None:
    """An error if probabilities change in steps with a column.

    They then stay equal over a tiny step in most rows in which they move over a large one.
    """
    n = min(rows.table.n_rows, _CHECKED_ROWS)

    def moved(step: float) -> Array:
        up, down = (estimates.means(rows.part(0, n, [add_to(j, s)])) for s in (step, -step))
        return cast(Array, abs(up - down).max(axis=(1, 2)))

    matters = moved(2 * (rows.deviation(j) or 1.0)) > _MOVED
    still = matters & (moved(rows.small_step(j)) == 0)
    if still.sum() > 0.5 * matters.sum():
        raise ParameterError(
            f"The probabilities of {type(estimates.model).__name__} change in steps, so that they "
            "have no slopes.",
            "Use comparisons, with a change of your own.",
        )


def _as_list(values: Any) -> list[Any]:
    """One value, or several."""
    return [values] if isinstance(values, str) or np.ndim(values) == 0 else list(values)


def position_of(column: Any, names: Sequence[str]) -> int:
    """The position of a column by its name, or by its number.

    >>> position_of("age", ["name", "age"]), position_of(0, ["name", "age"])
    (1, 0)
    """
    if is_number(column) and column in range(len(names)):
        return int(column)
    if column not in names:
        raise ColumnNameError(f"There is no column {column!r}.", f"Use {either(names[:8])}.")
    return list(names).index(column)


def _places_of(rows: EffectRows, columns: Any) -> list[int]:
    """Positions of the columns named, by one name or several; of all for None."""
    names = rows.schema.names
    return [position_of(name, names) for name in (names if columns is None else _as_list(columns))]


def _levels(column: Column) -> tuple[Any, ...]:
    """The levels of a categorical or boolean column."""
    return (False, True) if column.kind == "boolean" else column.levels


def _contrasts(rows: EffectRows, columns: Any, change: ChangeLike) -> list[Contrast]:
    """What is compared in each of the columns named."""
    found: list[Contrast] = []
    for j in _places_of(rows, columns):
        column = rows.schema.columns[j]
        if column.kind == "numeric":
            found.append((j, *_numeric_change(rows, j, change)))
            continue
        levels = _levels(column)
        found += [
            (j, f"{levels[0]} to {levels[code]}", [set_to(j, 0)], [set_to(j, code)])
            for code in range(1, len(levels))
        ]
    if not found:
        raise ParameterError(
            "None of the columns has two levels to compare.", "Name columns that change."
        )
    return found


def _numeric_change(
    rows: EffectRows, j: int, change: ChangeLike
) -> tuple[str, list[Change], list[Change]]:
    """The name of a change of a numeric column, and the two changes that are compared."""
    label, value, quantiles = "", cast(Any, change), _QUANTILES.get(str(change))
    if change == "sd":
        label, value = "+1 sd", rows.deviation(j)
    elif quantiles is not None:
        label, *shares = quantiles
        value = [rows.quantile(j, share) for share in shares]
    is_pair = isinstance(value, tuple | list) and len(value) == 2
    low, high = value if is_pair else (0.0, value)
    if not all(is_number(end) and np.isfinite(end) for end in (low, high)):
        raise ParameterError(
            f"change={change!r} is not understood.",
            "Use a number, 'sd', 'iqr', 'minmax', or a pair (low, high).",
        )
    if low == high:
        raise ParameterError(
            f"change={change!r} is no change of {rows.schema.describe(j)} in these rows.",
            "Pass change=(low, high), or more rows.",
        )
    if is_pair:
        return label or f"{low:g} to {high:g}", [set_to(j, low)], [set_to(j, high)]
    return label or f"{high:+g}", [], [add_to(j, float(high))]


def _places(rows: EffectRows, at: At) -> list[EffectRows]:
    """The rows that `at` stands for, one for each combination of the values it gives."""
    if at is None:
        return [rows]
    if isinstance(at, str) and at == "mean":
        return [_typical(rows)]
    if not isinstance(at, Mapping) or not at:
        raise ParameterError(
            f"at={at!r} is not understood.", "Use 'mean', or a dict of columns and values."
        )
    choices = []
    for name, values in at.items():
        j = position_of(name, rows.schema.names)
        choices.append([(value, _set_value(rows.schema, j, value)) for value in _as_list(values)])
    found = []
    for each in product(*choices):
        labels = {f"at_{name}": value for name, (value, _) in zip(at, each, strict=True)}
        found.append(replace(rows, labels=labels, changes=[change for _, change in each]))
    return found


def _typical(rows: EffectRows) -> EffectRows:
    """One row: means of numbers, most frequent levels and booleans."""
    changes = []
    for j, column in enumerate(rows.schema.columns):
        values, weight = rows.column(j)
        if column.kind == "numeric":
            changes.append(set_to(j, float(np.average(values, weights=weight))))
        else:
            changes.append(set_to(j, int(np.bincount(values.astype(np.intp), weight).argmax())))
    offset = rows.offset
    if offset is not None:
        offset = np.average(offset, axis=0, weights=rows.weight)[None]
    table = Table(rows.table.cut(0, 1), rows.schema)
    X = None if rows.X is None else pick_rows(rows.X, np.arange(1))
    return replace(rows, table=table, weight=np.ones(1), offset=offset, X=X, changes=changes)


def _set_value(schema: Schema, j: int, value: Any) -> Change:
    """The column set to a value that the user gave."""
    column = schema.columns[j]
    if column.kind == "numeric":
        if not (is_number(value) and np.isfinite(value)):
            raise ParameterError(
                f"at= sets {schema.describe(j)} to {value!r}.",
                "Give a finite number, or a list of them.",
            )
        return set_to(j, float(value))
    if value not in _levels(column):
        raise LevelError(
            f"at= sets {schema.describe(j)} to {value!r}, which was not in the fit.",
            known_levels(_levels(column)),
        )
    return set_to(j, _levels(column).index(value))
