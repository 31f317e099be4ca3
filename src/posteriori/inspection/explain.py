"""What each column contributes to the log odds of one row, as text, HTML or a frame."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from posteriori.decision.probabilities import class_place
from posteriori.design.columns import Columns
from posteriori.errors import (
    DomainError,
    NotLinearError,
    ParameterError,
    ShapeError,
)
from posteriori.inspection.effects import last_step
from posteriori.inspection.results import (
    Summary,
    TextTable,
    check_has_columns,
    offset_argument,
    predicted_log_probabilities,
)
from posteriori.likelihood.linear_activations import Linear
from posteriori.rows.block import check_finite
from posteriori.rows.features import Table, as_frame, read_features
from posteriori.rows.frames import backend_of, entries_of, make_frame
from posteriori.rows.in_memory import MemoryRows
from posteriori.rows.schema import HandleUnknown
from posteriori.rows.target import read_offset
from posteriori.typing import Array, Labels

_MOST = 50
"""Columns that are printed; `to_frame()` has all."""

_AVERAGED = (
    "The contributions are those of the mean coefficients. The probability is an average over "
    "their posterior, and less extreme than these log odds."
)


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """What `explain` gives: baseline + Σ contributions = total, printed or shown in a notebook.

    `scale` says what is added up: "log odds", or the "activation" of another link or of a model
    without probabilities. It is that of class `label` against class `against` (both None for a
    model of a number). `baseline` is its value for `reference`, in words. `terms`, `values` and
    `contributions` are in the order of their size. `mean` is the probability of `label`, or the
    mean of a number; None where a model gives none.
    """

    scale: str
    label: Any
    against: Any
    reference: str
    baseline: float
    terms: tuple[str, ...]
    values: tuple[Any, ...]
    contributions: tuple[float, ...]
    mean: float | None
    notes: tuple[str, ...] = ()
    backend: str | None = None

    @property
    def total(self) -> float:
        """The log odds, or the activation, of the row."""
        return self.baseline + sum(self.contributions)

    @property
    def cumulative(self) -> tuple[float, ...]:
        """The baseline and the contributions up to each one."""
        return tuple(accumulate(self.contributions, initial=self.baseline))[1:]

    @property
    def probability(self) -> float | None:
        """That of `label`; None for a number, or a model that gives none."""
        return None if self.label is None else self.mean

    def to_frame(self, backend: str | None = None) -> Any:
        """A data frame with the columns term, value, contribution and cumulative.

        The values are numbers if all of them are, else text.
        """
        is_text = not all(isinstance(value, float) for value in self.values)
        columns: dict[str, list[Any]] = {
            "term": list(self.terms),
            "value": [_text(value) if is_text else value for value in self.values],
            "contribution": list(self.contributions),
            "cumulative": list(self.cumulative),
        }
        return make_frame(columns, backend or self.backend)

    def __repr__(self) -> str:
        return self.summary().text()

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    def summary(self) -> Summary:
        """The table as text, HTML or LaTeX: the baseline, the columns, and the total."""
        title, what, start = f"{self.scale.capitalize()} of", "Mean", f"{self.baseline:.4g}"
        if self.label is not None:
            title += f" {self.label} against {self.against}, for"
            what = f"Probability of {self.label}"
        notes = [] if self.mean is None else [f"{what}: {self.mean:.4g}"]
        each = zip(self.terms, self.values, self.contributions, self.cumulative, strict=True)
        rows = [(term, _text(v), f"{c:+.4g}", f"{total:.4g}") for term, v, c, total in each]
        rows = [(f"baseline ({self.reference})", "", start, start), *rows[:_MOST]]
        rows.append(("total", "", "", f"{self.total:.4g}"))
        names = ("", "value", "contribution", "cumulative")
        table = TextTable(names, rows, {}, total=len(self.terms) + 2)
        return Summary(f"{title} one row", (), table, [*notes, *self.notes])


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def explain(
    model: Any, x: Any, *, label: Any = None, against: Any = None, offset: Any = None
) -> Explanation:
    """The contribution of each column to the log odds of one row, by a fitted linear model.

    ln p(C_k|x)/p(C_l|x) = w₀ + wᵀm + Σ_j w_j (x_j - m_j), with m the mean row: the parts add up to
    the log odds, exactly. A categorical column is one part. Links other than the logit and models
    without probabilities have their activation instead of log odds. m is where the fit centred its
    columns, on their means or (of very many rows) those of a sample; models without means
    begin at zero. For `NaiveBayes` the baseline is the ratio of the priors, and a column adds
    ln p(x_j|C_k) - ln p(x_j|C_l), nothing where it is missing. For `BayesianLogisticRegression` w
    is the mean of the posterior, and the averaged probability is less extreme.

    Parameters
    ----------
    model : a linear model, also of scikit-learn, `NaiveBayes`, or a `Pipeline` that ends with one,
        whose columns are then those that the steps before it make.
    x : one row: a frame or array with one row, a dict, or one entry a column.
    label, against : the classes whose odds are explained
        By default the second of two classes against the first; of more, the most probable class
        of the row against the next.
    offset : that of the row, for models with offsets: a number or, for more than two classes, one
        a class. It is a contribution of its own.

    >>> from posteriori import LogisticRegression
    >>> X = [[0.0, 3.0], [1.0, 1.0], [2.0, 0.0], [3.0, 2.0], [4.0, 4.0], [5.0, 1.0]]
    >>> model = LogisticRegression(prior=1.0).fit(X, [0, 0, 1, 0, 1, 1])
    >>> model.explain([4.0, 1.0])
    Log odds of 1 against 0, for one row
    ==============================================================================
                                                   value  contribution  cumulative
    ------------------------------------------------------------------------------
    baseline (the mean row)                                   -0.02405    -0.02405
    x0                                                 4        +1.226       1.202
    x1                                                 1       +0.2028       1.404
    total                                                                    1.404
    ==============================================================================
    * Probability of 1: 0.8029
    """
    last, transform = last_step(model)
    check_is_fitted(last)
    check_has_columns(last)
    X, rows = _one_row(model, last, transform, x)
    baseline, added, reference = _parts(last, rows)
    names, values = list(rows.schema.names), _values(rows.table)
    if model is not last and not rows.schema.named:
        with suppress(AttributeError, ValueError):  # a step may have no names
            names = list(model[:-1].get_feature_names_out())
    given = offset_argument(last, offset)
    if given:
        own = np.reshape(offset, 1 if len(baseline) == 1 else (1, -1))
        given["offset"] = own = read_offset(own, 1, len(baseline))
        names, values = [*names, "offset"], [*values, own[0].tolist()]
        added = np.vstack([added, own.reshape(1, -1)])
    classes = getattr(last, "classes_", None)
    if len(baseline) == 1:  # one activation: that of the second class, or of the number
        baseline, added = np.append(0.0, baseline), np.insert(added, 0, 0.0, axis=1)
    if classes is None and (label is not None or against is not None):
        raise ParameterError(
            "The target is a number, and has no classes.", "Leave label and against out."
        )
    k, j = 1, 0
    if classes is not None:
        k, j = _two(classes, baseline + added.sum(axis=0), label, against)
    parts = np.vstack([baseline, added])
    with np.errstate(invalid="ignore"):
        parts = parts[:, k] - parts[:, j]
    if not np.isfinite(parts).all():
        which = [reference, *names][int((~np.isfinite(parts)).argmax())]
        raise DomainError(
            f"The contribution of {which} is infinite: one of the classes has the prior or the "
            "density zero there, or the entry is too large.",
            "Fit with a pseudocount, name another class, or look at the entry.",
        )
    lines = sorted(zip(names, values, parts[1:].tolist(), strict=True), key=lambda x: -abs(x[2]))
    terms, entries, contributions = zip(*lines, strict=True) if lines else ((), (), ())
    label, against = (None, None) if classes is None else classes[[k, j]].tolist()
    scale, mean = "activation", None
    if hasattr(last, "predict_proba"):
        logs = predicted_log_probabilities(last, X, **given)[0]
        mean = float(np.exp(logs[k]))
        if hasattr(last, "posterior_") or np.isclose(logs[k] - logs[j], parts.sum(), rtol=1e-6):
            scale = "log odds"
    elif classes is None:
        mean = float(last.predict(X, **given)[0])
    about = scale, label, against, reference, float(parts[0])
    notes = (_AVERAGED,) if hasattr(last, "posterior_") else ()
    backend = backend_of(x) or getattr(last, "_frame_backend", None)
    return Explanation(*about, terms, entries, contributions, mean, notes, backend)


def _one_row(
    model: Any, last: Any, transform: Callable[[Any], Any], x: Any
) -> tuple[Any, MemoryRows]:
    """The row as the last step of the model takes it, and as it is read."""
    ours, names = hasattr(last, "_new_rows"), getattr(model, "feature_names_in_", None)
    if getattr(last, "formula_", None) is not None:
        names = last.formula_.schema.names
    X = transform(_as_table(x, names, getattr(last, "_frame_backend", None)))
    rows = last._new_rows(X) if ours else MemoryRows(read_features(X, None, type(last).__name__))
    if rows.n_rows != 1:
        raise ShapeError(f"x has {rows.n_rows} rows.", "Explain one row at a time: X[:1].")
    return X, rows


def _as_table(x: Any, names: Sequence[str] | None, backend: str | None) -> Any:
    """A row in any form as a table; `names` are those of a model's columns, if they have some."""
    if as_frame(x) is not None:
        return x
    if hasattr(x, "items"):  # a dict or a Series
        return make_frame({name: [value] for name, value in x.items()}, backend)
    if np.ndim(x) != 1:
        return x
    if names is None:
        return [list(x)]
    if len(x) != len(names):
        raise ShapeError(
            f"x has {len(x)} entries, but the model has {len(names)} columns.",
            "Pass one entry a column.",
        )
    return make_frame({name: [value] for name, value in zip(names, x, strict=True)}, backend)


def _parts(model: Any, rows: MemoryRows) -> tuple[Array, Array, str]:
    """Where the activations begin (A,), what the columns add (columns, A), and of which row."""
    block = rows.block()
    if hasattr(model, "_column_densities"):
        return model._log_priors, model._column_densities(block.X), "the class priors"
    if hasattr(model, "_linear_function"):
        linear = model._linear_function()
    elif hasattr(model, "coef_"):
        linear = Linear(np.atleast_2d(model.coef_).T, np.atleast_1d(model.intercept_), None)
    else:
        raise NotLinearError(
            f"{type(model).__name__} has no columns whose contributions add up.",
            "Explain a linear model that has coef_, or NaiveBayes.",
        )
    centre = getattr(model, "xbar_", None)
    if hasattr(model, "_inference"):
        centre = model._inference.coefficient_map.standard.centre
    elif hasattr(model, "means_") and hasattr(model, "priors_"):
        centre = model.priors_ @ model.means_ if np.isfinite(model.means_).all() else None
    reference = "all columns zero" if centre is None else "the mean row"
    centre = np.zeros(len(linear.weights)) if centre is None else centre
    check_finite(block, rows.schema)
    unknown: HandleUnknown = getattr(model, "handle_unknown", "error")
    columns = Columns(rows.schema, unknown)
    each = (columns.design(block).array()[0] - centre)[:, None] * linear.weights
    with np.errstate(invalid="ignore"):
        baseline = linear(centre[None])[0]
    return baseline, np.stack([each[at].sum(axis=0) for at in columns.positions]), reference


def _two(classes: Labels, a: Array, label: Any, against: Any) -> tuple[int, int]:
    """The places of the two classes; `a` has an activation a class."""
    wanted = label, against
    chosen = [None if each is None else class_place(each, classes) for each in wanted]
    if label is not None and label == against:
        raise ParameterError(f"Class {label!r} has no odds against itself.", "Name two classes.")
    default = [1, 0] if len(classes) == 2 else np.argsort(-a, kind="stable").tolist()
    free = [k for k in default if k not in chosen]
    k, j = (free.pop(0) if one is None else one for one in chosen)
    return k, j


def _values(table: Table) -> list[Any]:
    """The entries of a row: numbers, booleans, levels, or a word for what is missing."""
    found: list[Any] = []
    for j, column in enumerate(table.schema.columns):
        entry = entries_of(table, j)[0]
        if column.kind == "categorical":
            unseen = "missing" if column.unseen is None else column.unseen.level
            found.append(column.levels[entry] if entry >= 0 else unseen)
        else:
            is_flag = column.kind == "boolean"
            found.append("missing" if np.isnan(entry) else bool(entry) if is_flag else float(entry))
    return found
