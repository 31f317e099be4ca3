"""A summary: facts, a table and notes, as text, HTML or LaTeX."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import groupby, zip_longest
from textwrap import wrap
from typing import Any

import numpy as np

from posteriori.errors import printable
from posteriori.posterior.coefficient_table import Coefficients
from posteriori.rows.frames import make_frame
from posteriori.typing import Array

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

    `facts` are two columns of names and values.
    """

    title: str
    facts: tuple[Facts, Facts]
    table: TextTable
    notes: Sequence[str] = field(default=())

    def __repr__(self) -> str:
        return self.text()

    def to_frame(self, backend: str | None = None) -> Any:
        """The numbers of the table as a frame of "pandas", "polars" or "pyarrow"."""
        return make_frame(self.table.numbers, backend)

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
        if any(self.facts):
            lines += [*_beside(*self.facts, width), "-" * width]
        lines.append(line(names))
        for heading, part in blocks:
            lines += ["-" * width, *([heading] if indent else [])]
            lines += [line([indent + row[0], *row[1:]]) for row in part]
        lines.append("=" * width)
        for note in self._all_notes():
            lines += wrap(note, width, subsequent_indent="  ", initial_indent="* ")
        return printable("\n".join(lines))

    def _all_notes(self) -> list[str]:
        left = self.table.total - len(self.table.rows)
        return [*([f"{left} more rows: see to_frame()."] if left > 0 else []), *self.notes]

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        facts = "".join(
            f"<tr>{''.join(f'<th>{escape(n)}</th><td>{escape(v)}</td>' for n, v in pair)}</tr>"
            for pair in zip_longest(*self.facts, fillvalue=("", ""))
        )
        head = "".join(f"<th>{escape(name)}</th>" for name in self.table.names)
        style, body = "text-align: right; white-space: pre; font-family: monospace", ""
        for heading, rows in self.table.blocks:
            if heading:
                body += f'<tr><th colspan="{len(self.table.names)}">{escape(heading)}</th></tr>'
            for term, *cells in rows:
                numbers = "".join(f'<td style="{style}">{escape(cell)}</td>' for cell in cells)
                body += f"<tr><th>{escape(term)}</th>{numbers}</tr>"
        notes = "".join(f"<li>{escape(note)}</li>" for note in self._all_notes())
        return (
            f"<div><p><b>{escape(self.title)}</b></p><table>{facts}</table>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            f"<ul>{notes}</ul></div>"
        )

    def latex(self) -> str:
        """The same as two tables and a list for a LaTeX document, without packages."""
        pairs = zip_longest(*self.facts, fillvalue=("", ""))
        facts = [_tex_row((*left, *right)) for left, right in pairs]
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


def _beside(left: Facts, right: Facts, width: int) -> list[str]:
    """Two columns of facts, names at the left and values at the right of each."""
    half = (width - 4) // 2
    return [
        f"{name} {value.rjust(half - len(name) - 1)}    "
        f"{other} {found.rjust(width - half - len(other) - 5)}".rstrip()
        for (name, value), (other, found) in zip_longest(left, right, fillvalue=("", ""))
    ]


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
    """A fact that is a number: whole ones as they are, others with six digits or two decimals.

    >>> number_text(569.0), number_text(-73.0652), number_text(1234567.891), number_text(0.01234)
    ('569', '-73.07', '1234567.89', '0.01234')
    """
    return f"{value:.0f}" if value == np.round(value) else fact_text(value)


def fact_text(value: float) -> str:
    """The same for what is only by chance a whole number.

    >>> fact_text(-73.0652), fact_text(6.0), fact_text(0.01234)
    ('-73.07', '6.00', '0.01234')
    """
    return f"{value:.2f}" if value == 0 or abs(value) >= 1 else f"{value:.4g}"
