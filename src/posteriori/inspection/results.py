"""The results of a fit: its parameters, its one-row table, its summary, its rows with predictions.

`tidy`, `glance`, `summary` and `augment` serve every fitted model, `augment` those of scikit-learn
too. `glance_of` and `summary_of` are those of models fitted by likelihood. A `Summary` has facts, a
table and notes, as text, HTML or LaTeX.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from inspect import signature
from itertools import groupby, zip_longest
from textwrap import wrap
from typing import Any, cast

import narwhals.stable.v1 as nw
import numpy as np
from sklearn.utils.validation import check_is_fitted

from posteriori.design.columns import Columns
from posteriori.errors import ColumnNameError, ParameterError, printable
from posteriori.likelihood.log_arithmetic import times
from posteriori.posterior.coefficient_table import INTERCEPT, Coefficients
from posteriori.posterior.inference import Errors, Inference, Intervals
from posteriori.rows.features import as_frame
from posteriori.rows.frames import as_pickable, make_frame
from posteriori.rows.schema import listed
from posteriori.rows.target import as_vector, read_target, read_weight
from posteriori.typing import Array, Labels

# --- The summary as text, HTML and LaTeX ----------------------------------------------------------

_WIDTH = 78
"""Characters of a line; more if the names of the terms need them."""

_MOST_ROWS = 200
"""Rows of a table that are printed; `to_frame()` has all."""

_DIGITS = 4
"""Digits of a standard error; the numbers beside it have as many decimals."""

_LARGE, _SMALL = 1e6, 1e-4
"""Numbers beyond these are written with a power of ten."""

Facts = Sequence[tuple[str, str]]


@dataclass(frozen=True, eq=False)
class TextTable:
    """Columns of text with their `names`, and the numbers behind them for `to_frame`.

    Consecutive rows with the same heading make a block. `total` counts the rows that there are.
    """

    names: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Mapping[str, Sequence[Any]]
    headings: Sequence[str] = ()
    total: int = 0

    @property
    def blocks(self) -> list[tuple[str, list[Sequence[str]]]]:
        """A heading and the rows of cells under it."""
        pairs = zip_longest(self.headings[: len(self.rows)], self.rows, fillvalue="")
        grouped = groupby(pairs, key=lambda pair: str(pair[0]))
        return [(heading, [row for _, row in part]) for heading, part in grouped] or [("", [])]

    @classmethod
    def of_parameters(cls, numbers: Mapping[str, Sequence[Any]]) -> "TextTable":
        """A table of any parameters, of which the first column names them."""
        names = [name for name in numbers if name != "class"]
        cells = [[_cell(value) for value in numbers[name][:_MOST_ROWS]] for name in names]
        rows = list(zip(cells[0], *map(aligned, cells[1:]), strict=True))
        headings = [f"class {label}" for label in numbers.get("class", ())]
        titles = ("", *(name.replace("_", " ") for name in names[1:]))
        return cls(titles, rows, numbers, headings, len(numbers[names[0]]))

    @classmethod
    def of_coefficients(cls, found: Coefficients, level: float, statistic: str) -> "TextTable":
        """The table of coefficients, whose statistic is called "z" or "t"."""
        tail, n = (1 - level) / 2, min(len(found.terms), _MOST_ROWS)
        four = np.stack([found.estimate, found.std_error, found.conf_low, found.conf_high], axis=1)
        first, error, low, high = map(aligned, zip(*map(_with_decimals, four[:n]), strict=True))
        columns: list[Sequence[str]] = [found.terms[:n], first, error, low, high]
        names = ["", "odds ratio" if found.odds_ratios else "estimate", "std error"]
        names[2] += " (log)" * found.odds_ratios
        names += [f"[{tail:.4g}", f"{1 - tail:.4g}]"]
        if found.statistic is not None and found.p_value is not None:
            z = [f"{z:.2f}" if abs(z) < 1e5 else f"{z:.2e}" for z in found.statistic[:n]]
            columns[3:3] = [z, [p_text(p) for p in found.p_value[:n]]]
            names[3:3] = [statistic, "p"]
        headings = [f"{label} against {found.reference}" for label in found.classes or ()]
        rows = list(zip(*columns, strict=True))
        return cls(names, rows, found.columns(), headings, len(found.terms))


@dataclass(frozen=True, eq=False, repr=False)
class Summary:
    """What `summary()` returns: printed as text, shown as HTML in a notebook, and `latex()`.

    `facts` are names and values, shown in two columns; frames are by default of the `backend`.
    """

    title: str
    facts: Facts
    table: TextTable
    notes: Sequence[str] = ()
    backend: str | None = None

    def __repr__(self) -> str:
        return self.text()

    def to_frame(self, backend: str | None = None) -> Any:
        """The numbers of the table as a frame of "pandas", "polars" or "pyarrow"."""
        return make_frame(self.table.numbers, backend or self.backend)

    def text(self) -> str:
        """The summary in plain characters, 78 a line or more if long names need them."""
        names, blocks = self.table.names, self.table.blocks
        indent = "  " if any(heading for heading, _ in blocks) else ""
        rows = [[indent + row[0], *row[1:]] for _, part in blocks for row in part]
        widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
        rest = sum(widths[1:]) + 2 * (len(widths) - 1)
        widths[0] = max(widths[0], _WIDTH - rest)
        width = widths[0] + rest

        def line(cells: Sequence[str]) -> str:
            numbers = map(str.rjust, cells[1:], widths[1:])
            return "  ".join([cells[0].ljust(widths[0]), *numbers]).rstrip()

        lines = [self.title, "=" * width]
        if self.facts:
            half = (width - 4) // 2
            for left, right in self._beside():
                ends = (*left, half), (*right, width - half - 4)
                facts = [f"{name} {value.rjust(w - len(name) - 1)}" for name, value, w in ends]
                lines.append("    ".join(facts).rstrip())
            lines.append("-" * width)
        lines.append(line(names))
        for heading, part in blocks:
            lines += ["-" * width, *([heading] if indent else [])]
            lines += [line([indent + row[0], *row[1:]]) for row in part]
        lines.append("=" * width)
        for note in self._all_notes():
            lines += wrap(note, width, subsequent_indent="  ", initial_indent="* ")
        return printable("\n".join(lines))

    def _beside(self) -> Iterable[tuple[tuple[str, str], tuple[str, str]]]:
        """The facts of the left and of the right column, line by line."""
        half = (len(self.facts) + 1) // 2
        return zip_longest(self.facts[:half], self.facts[half:], fillvalue=("", ""))

    def _all_notes(self) -> list[str]:
        left = self.table.total - len(self.table.rows)
        return [*([f"{left} more rows: see to_frame()."] if left > 0 else []), *self.notes]

    def _repr_html_(self) -> str:
        """The same for a notebook."""

        def row(cells: Iterable[str]) -> str:
            return f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"

        facts = "".join(row([*left, *right]) for left, right in self._beside())
        body = row(self.table.names)
        for heading, rows in self.table.blocks:
            body += "".join(map(row, [[heading], *rows] if heading else rows))
        notes = "".join(f"<li>{escape(note)}</li>" for note in self._all_notes())
        style = "text-align: right; white-space: pre; font-family: monospace"
        return (
            f"<div><p><b>{escape(self.title)}</b></p><table>{facts}</table>"
            f'<table style="{style}">{body}</table><ul>{notes}</ul></div>'
        )

    def latex(self) -> str:
        """The same as two tables and a list for a LaTeX document, without packages."""
        facts = [_tex_row((*left, *right)) for left, right in self._beside()]
        rows, width = [_tex_row(self.table.names)], len(self.table.names)
        for heading, part in self.table.blocks:
            rows.append("\\hline")
            if heading:
                rows.append(f"\\multicolumn{{{width}}}{{l}}{{{_tex(heading)}}} \\\\")
            rows += map(_tex_row, part)
        lines = [f"\\noindent\\textbf{{{_tex(self.title)}}}\\par\\medskip"]
        for columns, body in (("lrlr", facts), ("l" + "r" * (width - 1), rows)):
            lines += [f"\\noindent\\begin{{tabular}}{{{columns}}}", "\\hline", *body, "\\hline"]
            lines.append("\\end{tabular}\\par\\medskip")
        return "\n".join([*lines, *(f"\\noindent {_tex(n)}\\par" for n in self._all_notes())])


def _tex_row(cells: Sequence[str]) -> str:
    return f"{' & '.join(_tex(cell.strip()) for cell in cells)} \\\\"


def _tex(text: str) -> str:
    r"""Plain text for LaTeX.

    >>> print(_tex("a_b < 50 % & more"))
    a\_b $<$ 50 \% \& more
    """
    return text.translate(_TEX)


_TEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "[": "{[}",
        "<": "$<$",
        ">": "$>$",
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    }
)


def _cell(value: Any) -> str:
    """A value as text: numbers with four digits, nothing for None."""
    if value is None:
        return ""
    return f"{value:#.4g}".rstrip(".") if isinstance(value, float) else str(value)


def _with_decimals(numbers: Array) -> list[str]:
    """Estimate, error and ends with the decimals that the error deserves."""
    sizes = abs(numbers)
    unit = next((v for v in (sizes[1], sizes[0]) if np.isfinite(v) and v > 0), 1.0)
    if sizes.max(initial=0.0, where=np.isfinite(sizes)) >= _LARGE or unit < _SMALL:
        return [f"{v:.{_DIGITS}e}" for v in numbers]
    decimals = max(_DIGITS - 1 - int(np.floor(np.log10(unit))), 0)
    return [f"{v:.{decimals}f}" for v in numbers]


def aligned(cells: Sequence[str]) -> list[str]:
    """Cells padded at the right, so that their points stand under each other.

    Powers of ten, and what is not a number, stay at the right.

    >>> aligned(["-39.17", "0.3726", "1.000e-09"])
    ['-39.17  ', '0.3726', '1.000e-09']
    """
    decimals = [
        len(cell.partition(".")[2]) if cell and not set(cell) - set("0123456789.-") else None
        for cell in cells
    ]
    most = max((own for own in decimals if own is not None), default=0)
    pairs = zip(cells, decimals, strict=True)
    return [cell if own is None else cell + " " * (most - own) for cell, own in pairs]


def p_text(p: float) -> str:
    """A probability with four decimals.

    >>> p_text(0.04321), p_text(3e-9)
    ('0.0432', '<0.0001')
    """
    return "<0.0001" if p < 1e-4 else f"{p:.4f}"


def number_text(value: float) -> str:
    """A fact: whole numbers as they are, others with two decimals or four digits; yes or no.

    >>> number_text(569.0), number_text(-73.0652), number_text(0.01234), number_text(True)
    ('569', '-73.07', '0.01234', 'yes')
    """
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if value == np.round(value):
        return f"{value:.0f}"
    return f"{value:.2f}" if abs(value) >= 1 else f"{value:.4g}"


# --- Tables ---------------------------------------------------------------------------------------

_HEADINGS = {
    "n_obs": "Rows",
    "n_iter": "Steps",
    "log_likelihood": "Log-likelihood",
    "deviance": "Deviance",
    "null_deviance": "Null deviance",
    "aic": "AIC",
    "bic": "BIC",
    "dispersion": "Dispersion",
}

_ERRORS: dict[Errors, str] = {
    "model": "",
    "observed": "Standard errors by the observed information.",
    "expected": "Standard errors by the expected information.",
    "robust": "Standard errors are robust (sandwich, HC0).",
}

_POSTERIOR = (
    "Standard errors are posterior standard deviations, by the curvature of the log posterior at "
    "its mode."
)
_RATIOS = "Standard errors are those of the logarithm of the odds ratio."
_PROFILE = (
    "Intervals and p-values by the profile likelihood: the statistic is the signed root of the "
    "likelihood ratio."
)
_JEFFREYS = "Standard errors by the expected information, without the prior, as is usual."


@dataclass(frozen=True, eq=False)
class About:
    """What a summary says of a fit beside its likelihood.

    prior: in words, empty for none. labels: the classes, None for a target that is a number.
    facts: further lines of the page, notes: further footnotes. method: how the coefficients were
    found, if not simply by the largest likelihood or posterior; errors: what the standard errors
    of the model then are. is_posterior: the fit is a posterior distribution, without tests and
    criteria.
    """

    name: str
    prior: str
    labels: Labels | None
    solver: str
    n_iter: int
    converged: bool
    facts: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    method: str = ""
    errors: str = ""
    is_posterior: bool = False


def glance_of(inference: Inference, about: About) -> dict[str, list[Any]]:
    """One number a name, as a table of one row."""
    goodness = inference.goodness
    found: dict[str, Any] = {
        "n_obs": _whole(goodness.n_obs),
        "n_parameters": inference.n_parameters,
        "log_likelihood": goodness.log_likelihood,
        "deviance": goodness.deviance,
        "null_deviance": goodness.null_deviance,
    }
    if not about.is_posterior:
        found |= {"aic": goodness.aic, "bic": goodness.bic}
    if goodness.estimates_dispersion:
        found["dispersion"] = goodness.dispersion
    found |= {"converged": about.converged, "n_iter": about.n_iter, "solver": about.solver}
    return {name: [value] for name, value in found.items()}


def _whole(weight: float) -> float:
    """A number of rows, as an integer if it is one."""
    return int(weight) if weight == int(weight) else weight


def summary_of(
    inference: Inference,
    about: About,
    level: float,
    errors: Errors,
    odds_ratios: bool = False,
    intervals: Intervals = "wald",
) -> Summary:
    """The summary of a fit by likelihood."""
    coefficients = inference.table(about.labels, level, errors, intervals)
    coefficients = coefficients.as_odds_ratios() if odds_ratios else coefficients
    coefficients = coefficients.as_posterior() if about.is_posterior else coefficients
    goodness, names = inference.goodness, [] if about.labels is None else about.labels.tolist()
    steps = f"{about.n_iter} step{'s' * (about.n_iter != 1)}"
    facts = [("Rows", number_text(goodness.n_obs)), ("Parameters", str(inference.n_parameters))]
    facts += [*([("Prior", about.prior)] if about.prior else []), *about.facts]
    if len(names) == 2:
        facts.append(("Class", f"{names[1]} against {names[0]}"))
    elif names:
        facts.append(("Classes", ", ".join(map(str, names))))
    facts += [("Solver", f"{about.solver}, {steps}"), ("Converged", number_text(about.converged))]
    facts += [
        (_HEADINGS[name], number_text(value))
        for name, (value,) in glance_of(inference, about).items()
        if name in _HEADINGS and name not in ("n_obs", "n_iter")
    ]
    notes = [*_notes(inference, about, errors), *about.notes]
    notes += [_RATIOS] * odds_ratios + [_PROFILE] * (intervals == "profile")
    method = about.method or ("posterior mode" if about.prior else "maximum likelihood")
    statistic = "t" if goodness.estimates_dispersion else "z"
    table = TextTable.of_coefficients(coefficients, level, statistic)
    return Summary(f"{about.name}, fitted by {method}", facts, table, notes)


def _notes(inference: Inference, about: About, errors: Errors) -> list[str]:
    notes, goodness = [], inference.goodness
    dependent = inference.coefficient_map.dependent
    if about.prior and errors != "robust":
        jeffreys = about.prior == "jeffreys" and errors == "model"
        usual = _JEFFREYS if jeffreys else _POSTERIOR
        notes.append(about.errors if about.errors and errors == "model" else usual)
    if _ERRORS[errors]:
        notes.append(_ERRORS[errors])
    if goodness.estimates_dispersion:
        notes.append(
            f"t with {number_text(goodness.freedom)} degrees of freedom: the dispersion "
            "is Pearson's estimate."
        )
    if dependent:
        notes.append(
            f"{listed(dependent)} depend on each other linearly, or are constant: of all "
            "coefficients with the same likelihood these have the smallest norm."
        )
    return notes


def tidy(model: Any) -> Any:
    """The parameters of a fitted model as a frame of the kind that it was fitted to."""
    check_is_fitted(model)
    return make_frame(model._parameter_columns(), model._frame_backend)


def glance(model: Any) -> Any:
    """The fit as a frame with one row."""
    check_is_fitted(model)
    columns = {name: [value] for name, value in _known_facts(model).items()}
    return make_frame(columns, model._frame_backend)


def summary(model: Any) -> Summary:
    """The fit on one page."""
    check_is_fitted(model)
    facts = [
        (_HEADINGS.get(name, name.removeprefix("n_").capitalize()), number_text(value))
        for name, value in _known_facts(model).items()
    ]
    facts += passes_text(model)
    notes = [f"Estimates are {model._estimates}."] if model._estimates else []
    notes += [f"{caveat[0].upper()}{caveat[1:]}." for caveat in model._caveats()]
    return Summary(
        f"{type(model).__name__}, fitted",
        facts,
        TextTable.of_parameters(model._parameter_columns()),
        notes,
    )


def _known_facts(model: Any) -> dict[str, Any]:
    """Names and values of what is known of a fit."""
    n_obs, classes = model._n_obs(), getattr(model, "classes_", None)
    value, k = getattr(model, "log_likelihood_", None), getattr(model, "n_parameters_", None)
    found: dict[str, Any] = {
        "n_obs": None if n_obs is None else _whole(n_obs),
        "n_columns": getattr(model, "n_features_in_", None),
        "n_classes": None if classes is None else len(classes),
        "n_parameters": k,
    }
    if value is not None and k is not None:
        bic = None if n_obs is None else float(k * np.log(n_obs) - 2 * value)
        found |= {"log_likelihood": value, "aic": 2.0 * (k - value), "bic": bic}
    for name in ("converged", "n_iter"):
        found[name] = getattr(model, f"{name}_", None)
    return {name: value for name, value in found.items() if value is not None}


def passes_text(model: Any) -> tuple[tuple[str, str], ...]:
    """The number of passes over a source; nothing for rows in memory."""
    log = getattr(model, "passes_", None)
    return () if log is None else (("Passes", str(log)),)


def linear_columns(model: Any) -> dict[str, list[Any]]:
    """`coef_` and `intercept_` of a linear model: term, class (for more than two), estimate."""
    slopes = np.atleast_2d(model.coef_)
    if hasattr(model, "schema_"):
        terms = Columns(model.schema_).names
    else:
        given = getattr(model, "feature_names_in_", range(model.n_features_in_))
        terms = tuple(name if isinstance(name, str) else f"x{name}" for name in given)
    W = np.column_stack([np.broadcast_to(model.intercept_, len(slopes)), slopes])
    columns = {"term": [INTERCEPT, *terms] * len(W), "estimate": W.ravel().tolist()}
    if len(slopes) == 1:
        return columns
    labels = np.repeat(model.classes_, W.shape[1]).tolist()
    return {"term": columns["term"], "class": labels, "estimate": columns["estimate"]}


def augment(
    model: Any, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None
) -> Any:
    """The rows of X with the predictions of any fitted model, as a frame of the kind that X is."""
    check_is_fitted(model)
    added = _added(model, X, y, offset_argument(model, offset))
    if sample_weight is not None:
        weight = read_weight(sample_weight, len(next(iter(added.values()))))
        added["sample_weight"] = cast(Array, weight).tolist()
    frame = as_frame(X)
    if frame is None:
        rows = as_pickable(X)
        table = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)
        own = {f"x{j}": column.tolist() for j, column in enumerate(table.T)}
        return make_frame(own | added, getattr(model, "_frame_backend", None))
    clash = [name for name in added if name in frame.columns]
    if clash:
        raise ColumnNameError(
            f"X has a column '{clash[0]}' already, which augment would add.",
            "Rename that column, and fit again.",
        )
    native = nw.get_native_namespace(frame)
    columns = [nw.new_series(name, found, backend=native) for name, found in added.items()]
    return frame.with_columns(*columns).to_native()


def check_has_columns(model: Any) -> None:
    """An error for a model of the intercept alone."""
    schema = getattr(model, "schema_", None)
    if schema is not None and not len(schema):
        raise ParameterError(
            f"This {type(model).__name__} has an intercept and no columns.",
            "Use predict, predict_proba and predict_interval, or fit with at least one column.",
        )


def offset_argument(model: Any, offset: Any) -> dict[str, Any]:
    """The offset as a further argument of `predict`; an error if the model takes none."""
    if offset is None:
        return {}
    if "offset" not in signature(model.predict).parameters:
        raise ParameterError(
            f"{type(model).__name__} has no offsets.",
            "Leave offset out, or fit a model with offsets, such as LogisticRegression.",
        )
    return {"offset": offset}


def _added(model: Any, X: Any, y: Any, given: dict[str, Any]) -> dict[str, list[Any]]:
    """The columns that `augment` adds; `given` are further arguments of `predict`."""
    found = np.asarray(model.predict(X, **given))
    labels = getattr(model, "classes_", None)
    if labels is None:
        added = {"fitted": found.tolist()}
        if y is not None:
            added["residual"] = (as_vector(y).astype(np.float64) - found).tolist()
        return added
    added = {"predicted": found.tolist()}
    if not hasattr(model, "predict_proba"):
        return added
    logs = predicted_log_probabilities(model, X, **given)
    for label, column in zip(labels.tolist(), np.exp(logs).T, strict=True):
        added[f"p_{label}"] = column.tolist()
    if y is not None:
        _, codes = read_target(y, len(logs), known=labels)
        shares = cast(Array, codes if codes.ndim == 2 else np.eye(len(labels))[codes])
        added["log_loss"] = (-times(shares, logs).sum(axis=1)).tolist()
    return added


def predicted_log_probabilities(model: Any, X: Any, **given: Any) -> Array:
    """By `predict_log_proba` where there is one, which is finite below 1e-308."""
    with np.errstate(divide="ignore"):
        if hasattr(model, "predict_log_proba"):
            return np.asarray(model.predict_log_proba(X, **given))
        return np.log(model.predict_proba(X, **given))
