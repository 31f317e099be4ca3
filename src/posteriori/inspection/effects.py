"""Effects in units of probability: predictions, comparisons and slopes, with intervals.

Coefficients are in units of log odds; what a reader wants to know is by how much a probability
changes. That depends on the row, so it is averaged over rows, or given for chosen ones.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np
from scipy.special import ndtr
from sklearn.utils.validation import check_is_fitted

from posteriori.arguments import check_flag, check_fraction, either, is_number
from posteriori.errors import ColumnNameError, InferenceError, LevelError, ParameterError
from posteriori.inspection.effect_measures import (
    DeltaMeasure,
    DrawnMeasure,
    Measure,
    interval_kernel,
    log_kernel,
    read_predictive,
    some_draws,
)
from posteriori.inspection.effect_rows import (
    BlackBoxPopulation,
    Entry,
    FormulaPopulation,
    MeasuredPopulation,
    Population,
    softmax_weights,
)
from posteriori.posterior.activations import FromDraws, MeanInterval
from posteriori.rows.block import Block
from posteriori.rows.changes import Change, Changes, add_to, set_to
from posteriori.rows.features import Table, as_frame, read_features
from posteriori.rows.formula import Formula
from posteriori.rows.frames import backend_of, make_frame
from posteriori.rows.in_memory import MemoryRows
from posteriori.rows.scan import is_source
from posteriori.rows.schema import Column, Schema, known_levels
from posteriori.typing import Array, Labels

ChangeName = Literal["sd", "iqr", "minmax"]
ChangeLike: TypeAlias = float | ChangeName | tuple[float, float]
"""So much more, one standard deviation more, from quartile to quartile, from the smallest entry to
the largest, or from one value to another."""

_SAID: dict[str, str] = {
    "sd": "its standard deviation says nothing",
    "iqr": "the way between its quartiles says nothing",
    "minmax": "its range says nothing",
}
"""Of changes that the rows are to tell, what tells nothing where they do not."""

At: TypeAlias = Literal["mean"] | Mapping[str, Any] | None
"""The rows as they are, the typical row, or the rows with these values in some columns."""


@dataclass(frozen=True)
class Contrast:
    """Two ways in which a column is changed, to be compared, and what to call them."""

    column: int
    label: str
    low: Changes
    high: Changes


@dataclass(frozen=True)
class Place:
    """A population to look at, with changes made to it first; `labels` say which."""

    labels: dict[str, Any]
    population: Population
    changes: Changes = ()


def read_columns(schema: Schema, columns: Any) -> list[int]:
    """Positions of the columns named, by one name or several; of all for None.

    >>> read_columns(Schema.of_names(["age", "bmi"]), "bmi")
    [1]
    >>> read_columns(Schema.of_names(["age", "bmi"]), ["bmi", "weight"])
    Traceback (most recent call last):
    posteriori.errors.ColumnNameError: 'weight' is no column of the rows. Use 'age' or 'bmi'. [P105]
    """
    if columns is None:
        return list(range(len(schema)))
    names = [columns] if isinstance(columns, str) or np.ndim(columns) == 0 else list(columns)
    return [_position(schema, name) for name in names]


def _position(schema: Schema, name: Any) -> int:
    is_place = isinstance(name, int | np.integer) and not isinstance(name, bool)
    if is_place and not schema.named and 0 <= name < len(schema):
        return int(name)
    if not isinstance(name, str) or name not in schema.names:
        known = schema.names
        more = f" (and {len(known) - 8} more)" if len(known) > 8 else ""
        raise ColumnNameError(
            f"{name!r} is no column of the rows.", f"Use {either(known[:8])}{more}."
        )
    return schema.names.index(name)


def numeric_columns(schema: Schema, columns: Any) -> list[int]:
    """Those of the columns named that have slopes; an error if one was named that has none."""
    places = read_columns(schema, columns)
    numeric = [j for j in places if schema.columns[j].kind == "numeric"]
    if columns is not None and len(numeric) < len(places):
        j = next(j for j in places if schema.columns[j].kind != "numeric")
        raise ParameterError(
            f"There is no slope in {schema.describe(j)}, which is {schema.columns[j].kind}.",
            "Use comparisons, which set one level beside another.",
        )
    if not numeric:
        raise ParameterError("None of the columns is numeric.", "Use comparisons.")
    return numeric


def read_contrasts(people: Population, columns: Any, change: ChangeLike) -> list[Contrast]:
    """What is compared in each of the columns named."""
    _check_change(change)
    places = read_columns(people.schema, columns)
    found = [contrast for j in places for contrast in _contrasts(people, j, change)]
    if not found:
        raise ParameterError(
            "None of the columns has two levels to compare.", "Name columns that change."
        )
    return found


def _contrasts(people: Population, j: int, change: ChangeLike) -> list[Contrast]:
    column = people.schema.columns[j]
    if column.kind == "numeric":
        return [_of_numbers(people, j, change)]
    levels = (False, True) if column.kind == "boolean" else column.levels
    return [
        Contrast(j, f"{levels[0]} to {levels[code]}", [set_to(j, 0)], [set_to(j, code)])
        for code in range(1, len(levels))
    ]


def _of_numbers(people: Population, j: int, change: ChangeLike) -> Contrast:
    if is_number(change):
        return Contrast(j, f"{change:+g}", (), [add_to(j, float(change))])
    entry = people.entry(j)
    _check_varies(entry, change)
    if change == "sd":
        return Contrast(j, "+1 sd", (), [add_to(j, entry.deviation)])
    if change == "iqr":
        ends, label = (entry.quantile(0.25), entry.quantile(0.75)), "q1 to q3"
    elif change == "minmax":
        ends, label = (entry.quantile(0.0), entry.quantile(1.0)), "min to max"
    else:
        low, high = change  # type: ignore[misc]
        ends, label = (float(low), float(high)), f"{low:g} to {high:g}"
    return Contrast(j, label, [set_to(j, ends[0])], [set_to(j, ends[1])])


def _check_varies(entry: Entry, change: ChangeLike) -> None:
    """An error where a change that the entries are to tell would be none."""
    name = f"{entry.name[0].upper()}{entry.name[1:]}"
    if isinstance(change, str) and entry.quantile(0.0) == entry.quantile(1.0):
        problem = f"{name} does not vary in these rows, so {_SAID[change]}."
    elif change == "iqr" and entry.quantile(0.25) == entry.quantile(0.75):
        problem = f"{name} has equal quartiles in these rows, so {_SAID[change]}."
    else:
        return
    raise ParameterError(problem, "Pass change=(low, high), or more rows.")


def _check_change(change: Any) -> None:
    if isinstance(change, str) and change in get_args(ChangeName):
        return
    numbers = change if isinstance(change, tuple | list) and len(change) == 2 else (change, 1.0)
    if not all(is_number(value) and np.isfinite(value) for value in numbers):
        raise ParameterError(
            f"change={change!r} is not understood.",
            "Use a number, 'sd', 'iqr', 'minmax', or a pair (low, high).",
        )


def read_places(people: Population, at: At) -> list[Place]:
    """The populations that `at` stands for, one for each combination of the values it gives."""
    if at is None:
        return [Place({}, people)]
    if isinstance(at, str) and at == "mean":
        return [Place({}, people.typical())]
    if not isinstance(at, Mapping) or not at:
        raise ParameterError(
            f"at={at!r} is not understood.", "Use 'mean', or a dict of columns and values."
        )
    columns = [_position(people.schema, name) for name in at]
    choices = [_listed(values) for values in at.values()]
    if not all(choices):
        raise ParameterError("at= has a column without a value.", "Give one value or several.")
    return [
        Place(
            {f"at_{name}": value for name, value in zip(at, values, strict=True)},
            people,
            [_set(people.schema, j, value) for j, value in zip(columns, values, strict=True)],
        )
        for values in product(*choices)
    ]


def _listed(values: Any) -> Sequence[Any]:
    if isinstance(values, str) or np.ndim(values) == 0:
        return [values]
    return list(values)


def _set(schema: Schema, j: int, value: Any) -> Change:
    """The column set to a value that the user gave."""
    column = schema.columns[j]
    if column.kind == "categorical":
        return set_to(j, _code(column, value))
    is_flag = isinstance(value, bool | np.bool_)
    number = is_flag if column.kind == "boolean" else is_number(value) and np.isfinite(value)
    if not number:
        what = "True or False" if column.kind == "boolean" else "a finite number"
        raise ParameterError(
            f"at= sets {schema.describe(j)} to {value!r}.", f"Give {what}, or a list of them."
        )
    return set_to(j, float(value))


def _code(column: Column, level: Any) -> int:
    if level not in column.levels:
        raise LevelError(
            f"at= sets column '{column.name}' to {level!r}, which the fit never saw.",
            known_levels(column.levels),
        )
    return column.levels.index(level)


Ends: TypeAlias = Callable[[Block], Array] | None


@dataclass(frozen=True, eq=False)
class Survey:
    """The rows to ask about, the classes (None for a number), and how to hand answers back.

    `p_values` says how probable a larger statistic is, either sign, if there is no effect.
    """

    population: Population
    classes: Labels | None
    backend: str | None
    p_values: Callable[[Array], Array]


def survey(model: Any, X: Any, level: float) -> Survey:
    """What is needed to tell of the effects of a fitted model on rows X, or on those of its fit."""
    check_is_fitted(model)
    _check_in_memory(X)
    classes = getattr(model, "classes_", None)
    backend = (None if X is None else backend_of(X)) or getattr(model, "_frame_backend", None)
    inference = getattr(model, "_inference", None)
    if inference is None:
        return Survey(_black_box(model, X), classes, backend, _normal)
    measured = _measured(model, level)
    return Survey(_population(model, X, *measured), classes, backend, inference.p_values)


def _population(model: Any, X: Any, measure: Measure, ends: Ends) -> Population:
    if X is None:
        return MeasuredPopulation(_rows_of_fit(model), measure, ends)
    rows = model._new_rows(X)
    if model.formula_ is None:
        return MeasuredPopulation(rows, measure, ends)
    return FormulaPopulation(rows, measure, ends, X, _data(X, model.formula_), model._new_rows)


def _measured(model: Any, level: float) -> tuple[Measure, Ends]:
    """How a model with an `Inference` tells of means, and of an interval for each."""
    link, posterior = model._link(), getattr(model, "posterior_", None)
    if posterior is None:
        measure = DeltaMeasure.of(model._inference, link, level)
        known = measure.has_errors
        return measure, MeanInterval.of(model._inference, link, level) if known else None
    method = read_predictive(model.predictive, len(model.classes_))
    logs, draws = log_kernel(posterior, method, link), some_draws(posterior)
    theta = FromDraws.of(posterior.shown, draws, np.asarray).theta

    def predictive(block: Block) -> Array:
        found = np.exp(logs(block))
        return found if found.shape[1] > 2 else found[:, 1:]

    measure_by_draws = DrawnMeasure(posterior.shown, theta, link, level, predictive)
    return measure_by_draws, interval_kernel(posterior, level, link)


def _black_box(model: Any, X: Any) -> Population:
    name = type(model).__name__
    if not hasattr(model, "predict_proba"):
        raise ParameterError(
            f"{name} gives no probabilities, so there are no effects on them.",
            "Use a model that has predict_proba, such as LogisticRegression.",
        )
    if X is None:
        raise _no_rows(name)
    formula = getattr(model, "formula_", None)
    if formula is not None:
        model._new_rows(X)
        return BlackBoxPopulation(X, _data(X, formula), model)
    table = read_features(X, getattr(model, "schema_", None), name)
    return BlackBoxPopulation(X, table, model, softmax_weights(model))


def _data(X: Any, formula: Formula) -> Table:
    """The columns of the user's frame that a formula uses."""
    frame = cast(Any, as_frame(X))
    return read_features(frame.select(formula.schema.names).to_native(), formula.schema)


def _rows_of_fit(model: Any) -> MemoryRows:
    """The rows that a model was fitted to, all of them, if they are still there."""
    earlier = getattr(model, "_earlier", None)
    if model.formula_ is not None or (earlier is not None and earlier.n_fits):
        raise _no_rows(type(model).__name__)
    try:
        objective = model._inference.objective
    except InferenceError:
        raise _no_rows(type(model).__name__) from None
    if not objective.rows.in_memory:
        raise _no_rows(type(model).__name__)
    model._inference.goodness.check_rows()
    return objective.rows


def _no_rows(name: str) -> ParameterError:
    return ParameterError(
        f"This {name} has not kept in memory the rows that it was fitted to.",
        "Pass X: the rows to average over.",
    )


def _check_in_memory(X: Any) -> None:
    if is_source(X):
        raise ParameterError(
            "Effects are computed for rows in memory, and X is read batch by batch.",
            "Pass a sample of the rows.",
        )


def _normal(statistic: Array) -> Array:
    return cast(Array, 2 * ndtr(-abs(statistic)))


@dataclass(frozen=True, eq=False)
class Line:
    """What was found under some labels: (K, 4), or (n, K, 4) with one answer a row."""

    labels: dict[str, Any]
    found: Array
    by_row: bool = False

    @property
    def n_entries(self) -> int:
        """Lines of the table."""
        return self.found[..., 0].size


def effect_table(lines: Sequence[Line], about: Survey, tested: bool = True) -> Any:
    """A frame with the labels, the rows, the classes and the numbers; `tested` against zero."""
    columns: dict[str, list[Any]] = {
        name: [value for line in lines for value in [line.labels[name]] * line.n_entries]
        for name in lines[0].labels
    }
    K = lines[0].found.shape[-2]
    if lines[0].by_row:
        columns["row"] = [
            int(i) for line in lines for i in np.repeat(np.arange(len(line.found)), K)
        ]
    if about.classes is not None:
        labels = about.classes[-K:].tolist()
        columns["class"] = [k for line in lines for k in labels * (line.n_entries // K)]
    numbers = np.concatenate([line.found.reshape(-1, 4) for line in lines])
    return make_frame(columns | _numbers(numbers, about, tested), about.backend)


def _numbers(found: Array, about: Survey, tested: bool) -> dict[str, list[float]]:
    estimate, error, low, high = found.T
    out = {"estimate": estimate.tolist()}
    if not about.population.has_errors:
        return out
    out["std_error"] = error.tolist()
    if tested:
        with np.errstate(divide="ignore", invalid="ignore"):
            statistic = np.where(np.isinf(error) | (estimate == 0), 0.0, estimate / error)
        out["statistic"] = statistic.tolist()
        out["p_value"] = about.p_values(statistic).tolist()
    return out | {"conf_low": low.tolist(), "conf_high": high.tolist()}


def predictions(
    model: Any, X: Any = None, *, at: At = None, average: bool = False, level: float = 0.95
) -> Any:
    """Probabilities with intervals, row by row, averaged, or at chosen values.

    The standard error of a mean μ(w) is √(gᵀCg), with g = ∂μ/∂w and C the covariance of the
    coefficients (the delta method); intervals are taken on the scale of the link, within zero and
    one, as `predict_interval` does.

    Parameters
    ----------
    model : any fitted classifier with `predict_proba`, or a `GLM` of numbers
        Standard errors and intervals are there for models fitted by likelihood. For
        `BayesianLogisticRegression` they are deviations and quantiles of draws of the posterior.
        Other models (`GaussianClassifier`, `NaiveBayes`, those of scikit-learn) have estimates
        alone, and so have fits of more than 5,000 coefficients by likelihood.
    X : rows in memory
        None for those of the fit, with their weights and offsets, if the model has kept them.
        Rows that are passed count alike, and have the offset zero.
    at : None, "mean" or {column: value or list of values}
        The rows as they are. One row: means of numbers, most frequent levels and booleans. Or all
        rows with these values in some columns, averaged, one line for each combination.
    average : whether to average over rows, which `at` always does.
    level : the probability that an interval is to have.

    Returns
    -------
    A data frame of the kind that the model was fitted to, with the columns row or at_..., class,
    estimate, std_error, conf_low, conf_high. Of two classes the second is told of.

    >>> from posteriori import LogisticRegression
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 1, 0, 1, 1]
    >>> model = LogisticRegression().fit(X, y)
    >>> predictions(model, at={"x0": [1, 4]}).round(3)
       at_x0  class  estimate  std_error  conf_low  conf_high
    0      1      1     0.139      0.213     0.005      0.840
    1      4      1     0.861      0.213     0.160      0.995
    """
    about = _survey(model, X, level, average)
    if at is None and not average:
        lines = [Line({}, about.population.each_mean(), by_row=True)]
    else:
        places = read_places(about.population, at)
        lines = [Line(p.labels, p.population.average_means(p.changes)) for p in places]
    return effect_table(lines, about, tested=False)


def comparisons(
    model: Any,
    X: Any = None,
    *,
    columns: Any = None,
    change: ChangeLike = 1.0,
    average: bool = True,
    level: float = 0.95,
) -> Any:
    """By how much probabilities change when a column does, all others staying as they are.

    E[μ(x with x_j = high) - μ(x with x_j = low)], averaged over rows, with errors by the delta
    method. Rows, models and intervals are those of `predictions`, but that an interval is the
    estimate and standard errors to either side.

    Parameters
    ----------
    columns : a name or several; all by default.
    change : a number, "sd", "iqr", "minmax", or (low, high), for numeric columns
        So much more than each row has; a standard deviation more; from the lower quartile to the
        upper one; from the smallest entry to the largest; from low to high. What the rows say of
        a column is an error where it does not vary in them. A boolean is changed
        from False to True, a categorical column from its first level to each of the others.
    average : whether to average over rows; otherwise each row has its own comparison.

    Returns
    -------
    A data frame with the columns term, contrast, (row), class, estimate, std_error, statistic,
    p_value, conf_low, conf_high.

    >>> from posteriori import LogisticRegression
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 1, 0, 1, 1]
    >>> found = comparisons(LogisticRegression().fit(X, y), change="iqr")
    >>> found[["term", "contrast", "class", "estimate", "std_error"]].round(3)
      term  contrast  class  estimate  std_error
    0   x0  q1 to q3      1     0.721      0.328
    """
    about = _survey(model, X, level, average)
    people = about.population
    found = read_contrasts(people, columns, change)
    answer = people.average if average else people.each
    names = people.schema.names
    lines = [
        Line(
            {"term": names[one.column], "contrast": one.label},
            answer([(1.0, one.high), (-1.0, one.low)]),
            by_row=not average,
        )
        for one in found
    ]
    return effect_table(lines, about)


def slopes(
    model: Any,
    X: Any = None,
    *,
    columns: Any = None,
    at: At = None,
    average: bool = True,
    level: float = 0.95,
) -> Any:
    """By how much probabilities change with each unit of a numeric column: marginal effects.

    ∂μ/∂x_j = M w_j with M = ∂μ/∂a, the derivative through the link at the row's activation: for
    two classes p(1 - p) w_j. They are averaged over rows, with errors by the delta method, whose
    derivatives in w are exact; after a fit by a formula, whose columns may be made of x_j in any
    way, differences over small steps stand for derivatives in x_j. So they do for models that are
    known by `predict_proba` alone; it is an error if their probabilities change in steps, as those
    of trees do. Rows, models and `at` are those of `predictions`.

    Parameters
    ----------
    columns : a name or several of numeric columns; all of these by default
        `comparisons` has boolean and categorical ones.
    average : whether to average over rows, which `at` always does.

    Returns
    -------
    A data frame with the columns (row or at_...), term, class, estimate, std_error, statistic,
    p_value, conf_low, conf_high.

    >>> from posteriori import LogisticRegression
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 1, 0, 1, 1]
    >>> found = slopes(LogisticRegression().fit(X, y))
    >>> found[["term", "class", "estimate", "std_error", "conf_low", "conf_high"]].round(3)
      term  class  estimate  std_error  conf_low  conf_high
    0   x0      1     0.159      0.022     0.115      0.202
    """
    about = _survey(model, X, level, average)
    people = about.population
    places = numeric_columns(people.schema, columns)
    terms = [{"term": people.schema.names[j]} for j in places]
    if at is None and not average:
        each = people.each_slope(places)
        lines = [Line(term, each[:, i], by_row=True) for i, term in enumerate(terms)]
        return effect_table(lines, about)
    lines = []
    for place in read_places(people, at):
        found = place.population.average_slopes(places, place.changes)
        lines += [Line(place.labels | term, one) for term, one in zip(terms, found, strict=True)]
    return effect_table(lines, about)


def _survey(model: Any, X: Any, level: float, average: Any) -> Survey:
    check_fraction("level", level)
    check_flag("average", average)
    return survey(model, X, level)
