"""A fit on one page: facts, a table of coefficients, and notes, as text, HTML or LaTeX."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby, zip_longest
from textwrap import wrap
from typing import Any

import numpy as np

from posteriori.posterior.coefficient_table import Coefficients

_NARROWEST, _WIDEST = 78, 88
"""Characters of a line."""

_GAP = "  "
_INDENT = "  "
_SHORTEST_TERM = 16
"""What is left of a long name where the numbers take most of the line."""

_MOST_ROWS = 200
"""Coefficients that are listed; `tidy()` has all."""

_DIGITS = 4
"""Digits of a standard error; the numbers beside it have as many decimals."""

_LARGE, _SMALL = 1e6, 1e-4
"""Numbers beyond these are written with a power of ten."""

Facts = Sequence[tuple[str, str]]


@dataclass(frozen=True, eq=False)
class Listing:
    """A table of parameters, column by column; the first has their names.

    Where there is a column `class`, the rows of each class go together under its label.
    """

    columns: Mapping[str, Sequence[Any]]

    @property
    def names(self) -> tuple[str, ...]:
        """The headings of the columns, the first having none."""
        return ("", *(name.replace("_", " ") for name in list(self.columns)[1:] if name != "class"))

    def cells(self) -> list[list[str]]:
        """The columns as text, as many rows as a page lists."""
        first, *rest = (
            [_cell(value) for value in values[:_MOST_ROWS]]
            for name, values in self.columns.items()
            if name != "class"
        )
        return [first, *map(_aligned, rest)]

    def headings(self) -> list[str]:
        """The heading that each row goes under."""
        return [f"class {label}" for label in self.columns.get("class", ())]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))


def _cell(value: Any) -> str:
    """A value as text: numbers with four digits, nothing for None."""
    if value is None:
        return ""
    return f"{value:#.4g}".rstrip(".") if isinstance(value, float) else str(value)


@dataclass(frozen=True, eq=False, repr=False)
class Summary:
    """What `summary()` gives: printed as text, shown as HTML in a notebook, and `latex()`.

    `facts` are two columns of names and values, `statistic` says what the statistic is called
    ("z" or "t"), `reference` is the class that others are compared with, if there are several.
    """

    title: str
    facts: tuple[Facts, Facts]
    coefficients: Coefficients | Listing
    level: float = 0.95
    statistic: str = "z"
    reference: Any = None
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return self.text()

    def __str__(self) -> str:
        return self.text()

    def text(self) -> str:
        """The page in plain characters, 78 to 88 a line."""
        table = _Table.of(self)
        width = table.width
        lines = [self.title, "=" * width, *_beside(*self.facts, width), "-" * width]
        lines.append(table.line(table.names))
        for heading, rows in table.blocks:
            lines += ["-" * width, *([heading] if heading else []), *map(table.line, rows)]
        lines.append("=" * width)
        if table.hidden:
            lines.append(table.hidden)
        for note in self.notes:
            lines += wrap(note, width, subsequent_indent="  ", initial_indent="* ")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The same page for a notebook."""
        table = _Table.of(self, whole_terms=True)
        facts = "".join(_html_facts(*pair) for pair in zip_longest(*self.facts, fillvalue=("", "")))
        head = "".join(f"<th>{escape(name)}</th>" for name in table.names)
        body = "".join(_html_block(heading, rows) for heading, rows in table.blocks)
        notes = [*([table.hidden] if table.hidden else []), *self.notes]
        listed = "".join(f"<li>{escape(note)}</li>" for note in notes)
        return (
            f"<div><p><b>{escape(self.title)}</b></p><table>{facts}</table>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            f"<ul>{listed}</ul></div>"
        )

    def latex(self) -> str:
        """The same page as two tables and a list for a LaTeX document, without packages."""
        table = _Table.of(self, whole_terms=True)
        facts = [
            f"{_tex(a)} & {_tex(b)} & {_tex(c)} & {_tex(d)} \\\\"
            for (a, b), (c, d) in zip_longest(*self.facts, fillvalue=("", ""))
        ]
        rows = [f"{' & '.join(map(_tex, table.names))} \\\\"]
        for heading, block in table.blocks:
            rows.append("\\hline")
            if heading:
                rows.append(f"\\multicolumn{{{len(table.names)}}}{{l}}{{{_tex(heading)}}} \\\\")
            rows += [f"{' & '.join(_tex(cell.strip()) for cell in row)} \\\\" for row in block]
        notes = [*([table.hidden] if table.hidden else []), *self.notes]
        lines = [
            f"\\noindent\\textbf{{{_tex(self.title)}}}\\par\\medskip",
            *_tabular("lrlr", facts),
            *_tabular("l" + "r" * (len(table.names) - 1), rows),
            *(f"\\noindent {_tex(note)}\\par" for note in notes),
        ]
        return "\n".join(lines)


def _tabular(columns: str, rows: list[str]) -> list[str]:
    begin = f"\\noindent\\begin{{tabular}}{{{columns}}}"
    return [begin, "\\hline", *rows, "\\hline", "\\end{tabular}\\par\\medskip"]


def _tex(text: str) -> str:
    r"""Plain text for LaTeX.

    >>> print(_tex("a_b < 50 % & more…"))
    a\_b $<$ 50 \% \& more\ldots{}
    """
    return "".join(_TEX.get(character, character) for character in text)


_TEX = {
    "\\": r"\textbackslash{}",
    "…": r"\ldots{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "[": "{[}",
    "<": "$<$",
    ">": "$>$",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


def _html_facts(*pairs: tuple[str, str]) -> str:
    cells = (f"<th>{escape(name)}</th><td>{escape(value)}</td>" for name, value in pairs)
    return f"<tr>{''.join(cells)}</tr>"


def _html_block(heading: str, rows: list[list[str]]) -> str:
    width = len(rows[0]) if rows else 1
    first = f'<tr><th colspan="{width}">{escape(heading)}</th></tr>' if heading else ""
    return first + "".join(map(_html_row, rows))


def _html_row(cells: Sequence[str]) -> str:
    style = "text-align: right; white-space: pre; font-family: monospace"
    numbers = "".join(f'<td style="{style}">{escape(cell)}</td>' for cell in cells[1:])
    return f"<tr><th>{escape(cells[0].strip())}</th>{numbers}</tr>"


@dataclass(frozen=True, eq=False)
class _Table:
    """Cells of the table of coefficients, block by block: a heading, and rows of cells."""

    names: tuple[str, ...]
    blocks: list[tuple[str, list[list[str]]]]
    widths: list[int]
    hidden: str

    @classmethod
    def of(cls, summary: Summary, whole_terms: bool = False) -> "_Table":
        """That of a page; with names at their whole length, if it need not fit into a line."""
        found = summary.coefficients
        if isinstance(found, Listing):
            names, (terms, *columns), headings = found.names, found.cells(), found.headings()
            total, rest = len(found), ""
        else:
            names, columns = _coefficient_cells(found, summary)
            terms, total, rest = list(found.terms[:_MOST_ROWS]), len(found.terms), " coefficients"
            headings = [f"{label} against {summary.reference}" for label in found.classes or ()]
        terms = [_INDENT + term for term in terms] if headings else terms
        widths = _widths(names[1:], columns)
        if not whole_terms:
            terms = [shortened(term, max(_room(widths), _SHORTEST_TERM)) for term in terms]
        first = max(map(len, (names[0], *terms)))
        widths = [max(first, _room(widths) - _WIDEST + _NARROWEST), *widths]
        rows = [list(row) for row in zip(terms, *columns, strict=True)]
        blocks = [("", rows)]
        if headings:
            groups = groupby(zip(headings, rows, strict=False), key=lambda pair: pair[0])
            blocks = [
                (shortened(heading, _NARROWEST), [row for _, row in part])
                for heading, part in groups
            ]
        left = total - len(rows)
        hidden = f"... and {left} more{rest}: see tidy()." if left else ""
        return cls(names, blocks, widths, hidden)

    @property
    def width(self) -> int:
        """That of a line."""
        return sum(self.widths) + len(_GAP) * (len(self.widths) - 1)

    def line(self, cells: Sequence[str]) -> str:
        """A row as text."""
        numbers = map(str.rjust, cells[1:], self.widths[1:])
        return _GAP.join([cells[0].ljust(self.widths[0]), *numbers]).rstrip()


def _widths(names: Sequence[str], columns: list[list[str]]) -> list[int]:
    return [max(map(len, (name, *cells))) for name, cells in zip(names, columns, strict=True)]


def _room(widths: list[int]) -> int:
    """What columns of these widths leave of the widest line for the names."""
    return _WIDEST - sum(widths) - len(_GAP) * len(widths)


def _coefficient_cells(
    found: Coefficients, summary: Summary
) -> tuple[tuple[str, ...], list[list[str]]]:
    """Headings and columns of numbers, with powers of ten where the line would be too long."""
    tail = (1 - summary.level) / 2
    estimate = "odds ratio" if found.odds_ratios else "estimate"
    ends = f"[{tail:.4g}", f"{1 - tail:.4g}]"
    tests = () if found.statistic is None else (summary.statistic, "p")
    names = ("", estimate, "std error", *tests, *ends)
    columns = _numbers(found, powers=False)
    if _room(_widths(names[1:], columns)) < _SHORTEST_TERM:
        columns = _numbers(found, powers=True)
    return names, columns


def _numbers(found: Coefficients, powers: bool) -> list[list[str]]:
    """The columns of numbers as text, all with `powers` of ten or only where need be."""
    four = (found.estimate, found.std_error, found.conf_low, found.conf_high)
    n = min(len(found.terms), _MOST_ROWS)
    rows = [_row([float(column[i]) for column in four], powers) for i in range(n)]
    estimate, error, low, high = (_aligned(list(column)) for column in zip(*rows, strict=True))
    if found.statistic is None or found.p_value is None:
        return [estimate, error, low, high]
    statistic = [f"{z:.2f}" if abs(z) < 1e5 else f"{z:.2e}" for z in found.statistic[:n]]
    return [estimate, error, statistic, [p_text(p) for p in found.p_value[:n]], low, high]


def _row(numbers: list[float], powers: bool) -> list[str]:
    """Estimate, error and ends with the decimals that the error deserves."""
    estimate, error = numbers[:2]
    unit = next((v for v in (error, abs(estimate)) if np.isfinite(v) and v > 0), 1.0)
    largest = max((abs(v) for v in numbers if np.isfinite(v)), default=0.0)
    if powers or largest >= _LARGE or unit < _SMALL:
        return [f"{v:.{_DIGITS}e}" for v in numbers]
    decimals = max(_DIGITS - 1 - int(np.floor(np.log10(unit))), 0)
    return [f"{v:.{decimals}f}" for v in numbers]


def _aligned(cells: list[str]) -> list[str]:
    """Cells padded at the right, so that their points stand under each other.

    Powers of ten, and what is not a number, stay at the right.

    >>> _aligned(["-39.17", "0.3726", "1.000e-09"])
    ['-39.17  ', '0.3726', '1.000e-09']
    """
    plain = [bool(cell) and not set(cell) - set("0123456789.-") for cell in cells]
    decimals = [len(cell.partition(".")[2]) for cell in cells]
    most = max((own for own, is_plain in zip(decimals, plain, strict=True) if is_plain), default=0)
    return [
        cell + " " * (most - own) if is_plain else cell
        for cell, own, is_plain in zip(cells, decimals, plain, strict=True)
    ]


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
    if np.isfinite(value) and value == round(value) and abs(value) < 1e15:
        return f"{value:.0f}"
    return f"{value:.2f}" if abs(value) >= 1 else f"{value:.4g}"


def fact_text(value: float) -> str:
    """The same for what is only by chance a whole number.

    >>> fact_text(-73.0652), fact_text(6.0), fact_text(0.01234)
    ('-73.07', '6.00', '0.01234')
    """
    is_whole = np.isfinite(value) and value == round(value) and abs(value) < 1e15
    return f"{value:.2f}" if is_whole else number_text(value)


def shortened(name: str, most: int) -> str:
    """A long name without its middle.

    >>> shortened("mean fractal dimension of the nucleus", 20)
    'mean frac…he nucleus'
    """
    if len(name) <= most:
        return name
    tail = most // 2
    return f"{name[: most - tail - 1]}…{name[-tail:]}"


def _beside(left: Facts, right: Facts, width: int) -> list[str]:
    """Two columns of facts, names at the left and values at the right of each."""
    half = (width - 4) // 2
    return [
        f"{_fact(a, half)}    {_fact(b, width - 4 - half)}".rstrip()
        for a, b in zip_longest(left, right, fillvalue=("", ""))
    ]


def _fact(fact: tuple[str, str], width: int) -> str:
    name, value = fact
    value = shortened(value, width - len(name) - 1)
    return f"{name}{value.rjust(width - len(name))}"
