"""Effects in units of probability: predictions, comparisons and slopes, with intervals.

Coefficients are in units of log odds; a reader wants to know by how much a probability changes.
That depends on the row, so it is averaged over rows, or computed for chosen ones. All three return
a data frame with the same columns: at_... (the values chosen), term, contrast, row, class,
estimate, std_error, statistic, p_value, conf_low, conf_high, where they apply.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from posteriori.arguments import check_flag, check_fraction, either, is_number
from posteriori.errors import (
    ColumnNameError,
    InferenceError,
    LevelError,
    MissingValueError,
    ParameterError,
)
from posteriori.inspection.mean_estimates import (
    DeltaEstimates,
    Estimates,
    Kind,
    PosteriorEstimates,
    ProbabilityEstimates,
)
from posteriori.inspection.results import offset_argument
from posteriori.rows.block import Block, is_source
from posteriori.rows.features import Table, as_frame, read_features
from posteriori.rows.frames import (
    Change,
    Changes,
    add_to,
    as_pickable,
    backend_of,
    changed_features,
    changed_table,
    count_rows,
    entries_of,
    make_frame,
    pick_rows,
    set_to,
)
from posteriori.rows.in_memory import MemoryRows
from posteriori.rows.schema import Schema, known_levels
from posteriori.rows.target import read_offset, read_weight
from posteriori.typing import Array, Labels

ChangeName = Literal["sd", "iqr", "minmax"]
ChangeLike: TypeAlias = float | ChangeName | tuple[float, float]
"""So much more, one standard deviation more, from the lower to the upper quartile, from the
smallest entry to the largest, or from one value to another."""

At: TypeAlias = Literal["mean"] | Mapping[str, Any] | None
"""The rows as they are, the typical row, or the rows with these values in some columns."""

_PART_ENTRIES = 2**22
"""Numbers in the widest temporary."""

_FOUR_STEPS = ((8, 1), (-8, -1), (-1, 2), (1, -2))
"""Twelve times the derivative at zero: factors, and the steps at which values are taken."""

_CHECKED_ROWS = 1000
"""Rows by which probabilities are checked to be smooth."""

_MOVED = 1e-3
"""The change of a probability by a column that matters."""


@dataclass(frozen=True, eq=False)
class EffectColumn:
    """The finite entries of a column, and the weights of their rows.

    >>> column = EffectColumn(np.array([1.0, 2.0, 6.0]), np.ones(3))
    >>> column.mean, round(column.deviation, 3), column.quantile(0.5)
    (3.0, 2.646, 2.0)
    """

    values: Array
    weight: Array

    @property
    def mean(self) -> float:
        return float(np.average(self.values, weights=self.weight))

    @property
    def deviation(self) -> float:
        """The standard deviation, a weight of two being two rows; zero for one row."""
        freedom = self.weight.sum() - 1
        squares = self.weight @ np.square(self.values - self.mean)
        return float(np.sqrt(squares / freedom)) if freedom > 0 else 0.0

    def quantile(self, share: float) -> float:
        """The smallest entry up to which there is this share of the weight."""
        order = np.argsort(self.values)
        below = np.cumsum(self.weight[order])
        place = np.searchsorted(below, share * below[-1] * (1 - 1e-12))
        return float(self.values[order][min(place, len(order) - 1)])

    @property
    def most_frequent(self) -> float:
        """The entry with most weight, the smallest of several; a missing level is none."""
        levels, places = np.unique(self.values, return_inverse=True)
        return float(levels[np.bincount(places, self.weight * (self.values >= 0)).argmax()])

    @property
    def spread(self) -> float:
        """The standard deviation or, where that is zero, the size of the entries."""
        return self.deviation or float(abs(self.values).max()) or 1.0

    @property
    def small_step(self) -> float:
        """A step h over which differences of the fourth order stand for derivatives.

        In standard deviations, h⁴ and rounding divided by h are alike; positive entries stay so.
        """
        step, smallest = self.spread * np.finfo(np.float64).eps ** 0.2, float(self.values.min())
        return min(step, 0.02 * smallest) if smallest > 0 else step


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
    weight: Array | None = None
    offset: Array | None = None
    X: Any = None
    read: Callable[[Any], MemoryRows] | None = None
    classes: Labels | None = None
    backend: str | None = None
    changes: Changes = ()
    labels: Mapping[str, Any] = field(default_factory=dict)

    @property
    def schema(self) -> Schema:
        return self.table.schema

    def column(self, j: int) -> EffectColumn:
        values = np.asarray(entries_of(self.table, j), dtype=np.float64)
        weight = np.ones(len(values)) if self.weight is None else self.weight
        present = np.isfinite(values) & (weight > 0)
        if not present.any():
            raise MissingValueError(
                f"All entries of {self.schema.describe(j)} are missing.", "Pass rows with some."
            )
        return EffectColumn(values[present], weight[present])

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
        weight = np.ones(n) if self.weight is None else self.weight
        found = []
        for low in range(0, n, size):
            part = partial(self.part, low, min(low + size, n))
            if average:
                found.append(effect(part, weight[low : low + size]))
                continue
            rows = estimates.table(effect(part, None), kind)
            if kind == "mean" and estimates.row_interval is not None:
                rows[..., 2:] = estimates.row_interval(part()).reshape(*rows.shape[:-1], 2)
            found.append(rows)
        if not average:
            return np.concatenate(found)
        return estimates.table(sum(found) / weight.sum(), kind)

    def typical(self) -> "EffectRows":
        """One row: means of numbers, most frequent levels and booleans."""
        changes = []
        for j, column in enumerate(self.schema.columns):
            entries = self.column(j)
            is_number = column.kind == "numeric"
            changes.append(set_to(j, entries.mean if is_number else entries.most_frequent))
        table, X, offset = Table(self.table.cut(0, 1), self.schema), self.X, self.offset
        if X is not None:
            X = pick_rows(X, np.arange(1))
        if offset is not None:
            offset = np.average(offset, axis=0, weights=self.weight)[None]
        return replace(self, table=table, weight=None, offset=offset, X=X, changes=changes)


_ESTIMATED: tuple[str, ...] = ("estimate", "std_error", "conf_low", "conf_high")
_TESTED = ("estimate", "std_error", "statistic", "p_value", "conf_low", "conf_high")

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
            (*n, K, _), size = each.shape, each[..., 0].size
            labels = {**place.labels, **term}
            repeated = {name: [value] * size for name, value in labels.items()}
            if n:
                repeated["row"] = np.repeat(np.arange(n[0]), K).tolist()
            if rows.classes is not None:
                repeated["class"] = rows.classes[-K:].tolist() * (size // K)
            for name, values in repeated.items():
                columns.setdefault(name, []).extend(values)
            tables.append(each.reshape(size, -1))
    numbers, names = np.concatenate(tables).T, _ESTIMATED
    if kind != "mean" and isinstance(rows.estimates, DeltaEstimates) and len(numbers) > 1:
        numbers, names = rows.estimates.tested(numbers), _TESTED
    out = dict(zip(names, numbers.tolist(), strict=False))
    return make_frame(columns | out, rows.backend)


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
    rows = _effect_rows(model, X, level, average, sample_weight, offset)

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
    rows = _effect_rows(model, X, level, average, sample_weight, offset)
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
    rows = _effect_rows(model, X, level, average, sample_weight, offset)
    places = _numeric_columns(rows.schema, columns)
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
    if not hasattr(last, "predict_interval"):
        raise ParameterError(
            f"{type(last).__name__} has no predict_interval.",
            "Use a model fitted by likelihood, such as LogisticRegression.",
        )
    return cast(Array, last.predict_interval(transform(X), level=level, **given))


def last_step(model: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The last step of a pipeline and the transformation before it; any other model by itself."""
    if not isinstance(model, Pipeline):
        return model, lambda X: X
    check_is_fitted(model)
    return model[-1], model[:-1].transform if len(model) > 1 else lambda X: X


def _effect_rows(
    model: Any, X: Any, level: float, average: Any, sample_weight: Any, offset: Any
) -> EffectRows:
    """The rows and the estimates for the effects of a fitted model."""
    check_fraction("level", level)
    check_flag("average", average)
    check_is_fitted(model)
    if is_source(X):
        raise ParameterError(
            "Effects are computed for rows in memory, and X is read batch by batch.",
            "Pass a sample of the rows.",
        )
    if X is None and not (sample_weight is None and offset is None):
        raise ParameterError("sample_weight or offset was given without X.", "Pass X too.")
    last, transform = last_step(model)
    backend = (None if X is None else backend_of(X)) or getattr(last, "_frame_backend", None)
    estimates, own = _estimates(model, last, level), None
    if X is None:
        X, own = _rows_of_fit(model)
        weight, offset = own.weight, own.offset
    else:
        n = count_rows(as_pickable(X))
        weight = read_weight(sample_weight, n)
        if isinstance(estimates, ProbabilityEstimates):
            offset_argument(model, offset)
        else:
            own, A = (
                last._new_rows(transform(X)),
                estimates.coefficient_map.coordinates.n_activations,
            )
            offset = None if offset is None else read_offset(offset, n, A)
    is_direct = own is not None and last is model and last.formula_ is None
    table = own.table if own is not None and is_direct else user_table(model, X)
    rows = EffectRows(estimates, table, weight, offset, backend=backend)
    if hasattr(last, "classes_"):
        rows = replace(rows, classes=last.classes_)
    if is_direct:
        return rows
    read = None if own is None else lambda new: last._new_rows(transform(new))
    return replace(rows, X=as_pickable(X), read=read)


def _estimates(model: Any, last: Any, level: float) -> Estimates:
    """The estimates by a fitted model with this last step."""
    inference = getattr(last, "_inference", None)
    if inference is None:
        if not hasattr(model, "predict_proba"):
            raise ParameterError(
                f"{type(model).__name__} gives no probabilities, so there are no effects on them.",
                "Use a model that has predict_proba, such as LogisticRegression.",
            )
        return ProbabilityEstimates(model)
    if hasattr(last, "posterior_"):
        return PosteriorEstimates.of(last, level)
    return DeltaEstimates.of(inference, last._link(), level)


def user_table(model: Any, X: Any) -> Table:
    """The columns of X; after a fit by a formula, those that it uses."""
    formula, schema = getattr(model, "formula_", None), getattr(model, "schema_", None)
    if formula is not None:
        X, schema = cast(Any, as_frame(X)).select(formula.schema.names).to_native(), formula.schema
    return read_features(X, schema, type(model).__name__)


def _rows_of_fit(model: Any) -> tuple[Any, MemoryRows]:
    """The data of the formula of a fit, if any, and the rows that the model was fitted to."""
    try:
        rows, formula = model._inference.objective.rows, model.formula_
    except (AttributeError, InferenceError):
        raise _no_rows(model) from None
    earlier = getattr(model, "_earlier", None)
    updated = earlier is not None and earlier.n_fits
    data = None if formula is None else formula.data
    if updated or not rows.in_memory or (data is None and formula is not None):
        raise _no_rows(model)
    model._inference.goodness.check_rows()
    return data, rows


def _no_rows(model: Any) -> ParameterError:
    return ParameterError(
        f"This {type(model).__name__} has not kept in memory the rows that it was fitted to.",
        "Pass X: the rows to average over.",
    )


def _slope_effect(rows: EffectRows, columns: Sequence[int]) -> Effect:
    """Slopes (..., J, K, 1 + m) of some rows."""
    estimates = rows.estimates
    if rows.X is None and not isinstance(estimates, ProbabilityEstimates):
        positions = estimates.coefficient_map.columns.positions
        places = np.concatenate([positions[j] for j in columns])
        return lambda part, weight: estimates.slopes(part(), places, weight)
    if isinstance(estimates, ProbabilityEstimates):
        for j in columns:
            _check_smooth(rows, estimates, j)
    steps = [(j, rows.column(j).small_step) for j in columns]

    def by_differences(part: Part, weight: Array | None) -> Array:
        found = []
        for j, h in steps:
            near = [estimates.means(part([add_to(j, k * h)]), weight) for _, k in _FOUR_STEPS]
            # The factors add up to zero: equal means make a slope of exactly zero.
            each = [c * (mean - near[0]) for (c, _), mean in zip(_FOUR_STEPS, near, strict=True)]
            found.append(sum(each) / (12 * h))
        return np.stack(found, axis=-3)

    return by_differences


def _check_smooth(rows: EffectRows, estimates: ProbabilityEstimates, j: int) -> None:
    """An error if probabilities change in steps with a column.

    They then stay equal over a tiny step in most rows in which they move over a large one.
    """
    column, n = rows.column(j), min(rows.table.n_rows, _CHECKED_ROWS)

    def moved(step: float) -> Array:
        up, down = (estimates.means(rows.part(0, n, [add_to(j, s)])) for s in (step, -step))
        return cast(Array, abs(up - down).max(axis=(1, 2)))

    matters = moved(2 * column.spread) > _MOVED
    still = matters & (moved(column.small_step / 100) == 0)
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


def _column_places(schema: Schema, columns: Any) -> list[int]:
    """Positions of the columns named, by one name or several; of all for None."""
    if columns is None:
        return list(range(len(schema)))
    return [position_of(name, schema.names) for name in _as_list(columns)]


def _numeric_columns(schema: Schema, columns: Any) -> list[int]:
    """Those of the columns named that have slopes; an error if one was named that has none."""
    places = _column_places(schema, columns)
    others = [j for j in places if schema.columns[j].kind != "numeric"]
    if others and columns is not None:
        raise ParameterError(
            f"There is no slope in {schema.describe(others[0])}, which is "
            f"{schema.columns[others[0]].kind}.",
            "Use comparisons, which compare one level with another.",
        )
    if len(others) == len(places):
        raise ParameterError("None of the columns is numeric.", "Use comparisons.")
    return [j for j in places if j not in others]


def _contrasts(rows: EffectRows, columns: Any, change: ChangeLike) -> list[Contrast]:
    """What is compared in each of the columns named."""
    pair = change if isinstance(change, tuple | list) and len(change) == 2 else (change, 1.0)
    is_name = isinstance(change, str) and change in get_args(ChangeName)
    if not (is_name or all(is_number(value) and np.isfinite(value) for value in pair)):
        raise ParameterError(
            f"change={change!r} is not understood.",
            "Use a number, 'sd', 'iqr', 'minmax', or a pair (low, high).",
        )
    found = []
    for j in _column_places(rows.schema, columns):
        column = rows.schema.columns[j]
        if column.kind == "numeric":
            found.append(_numeric_contrast(rows, j, change))
            continue
        levels = (False, True) if column.kind == "boolean" else column.levels
        found += [
            (j, f"{levels[0]} to {levels[code]}", [set_to(j, 0)], [set_to(j, code)])
            for code in range(1, len(levels))
        ]
    if not found:
        raise ParameterError(
            "None of the columns has two levels to compare.", "Name columns that change."
        )
    return found


def _numeric_contrast(rows: EffectRows, j: int, change: ChangeLike) -> Contrast:
    if is_number(change):
        return j, f"{change:+g}", (), [add_to(j, float(change))]
    if not isinstance(change, str):
        low, high = cast(tuple[float, float], change)
        return j, f"{low:g} to {high:g}", [set_to(j, low)], [set_to(j, high)]
    column = rows.column(j)
    label, low, high = {
        "sd": ("+1 sd", 0.0, column.deviation),
        "iqr": ("q1 to q3", column.quantile(0.25), column.quantile(0.75)),
        "minmax": ("min to max", column.quantile(0.0), column.quantile(1.0)),
    }[change]
    if low == high:
        name = rows.schema.describe(j)
        raise ParameterError(
            f"change={change!r} is no change of {name} in these rows.",
            "Pass change=(low, high), or more rows.",
        )
    if change == "sd":
        return j, label, (), [add_to(j, high)]
    return j, label, [set_to(j, low)], [set_to(j, high)]


def _places(rows: EffectRows, at: At) -> list[EffectRows]:
    """The rows that `at` stands for, one for each combination of the values it gives."""
    if at is None:
        return [rows]
    if isinstance(at, str) and at == "mean":
        return [rows.typical()]
    if not isinstance(at, Mapping) or not at:
        raise ParameterError(
            f"at={at!r} is not understood.", "Use 'mean', or a dict of columns and values."
        )
    choices = []
    for name, values in at.items():
        j = position_of(name, rows.schema.names)
        chosen = [(value, _set_value(rows.schema, j, value)) for value in _as_list(values)]
        if not chosen:
            raise ParameterError("at= has a column without a value.", "Give one value or several.")
        choices.append(chosen)
    found = []
    for each in product(*choices):
        labels = {f"at_{name}": value for name, (value, _) in zip(at, each, strict=True)}
        found.append(replace(rows, labels=labels, changes=[change for _, change in each]))
    return found


def _set_value(schema: Schema, j: int, value: Any) -> Change:
    """The column set to a value that the user gave."""
    column = schema.columns[j]
    if column.kind == "categorical":
        if value not in column.levels:
            raise LevelError(
                f"at= sets column '{column.name}' to {value!r}, which was not in the fit.",
                known_levels(column.levels),
            )
        return set_to(j, column.levels.index(value))
    is_flag = isinstance(value, bool | np.bool_)
    if not (is_flag if column.kind == "boolean" else is_number(value) and np.isfinite(value)):
        what = "True or False" if column.kind == "boolean" else "a finite number"
        raise ParameterError(
            f"at= sets {schema.describe(j)} to {value!r}.", f"Give {what}, or a list of them."
        )
    return set_to(j, float(value))
