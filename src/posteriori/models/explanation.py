"""The explanation of one row: what each column contributes, largest first, as text or HTML."""

from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import accumulate
from math import fsum
from textwrap import wrap
from typing import Any

from posteriori.posterior.summary import shortened
from posteriori.rows.frames import make_frame

_WIDTH = 78
_LONGEST = 32
"""Characters of a line, and of a name."""

_MOST = 50
"""Columns that are printed; `frame` has all."""


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

    @cached_property
    def total(self) -> float:
        """The log odds, or the activation, of the row."""
        return fsum([self.baseline, *self.contributions])

    @property
    def cumulative(self) -> tuple[float, ...]:
        """The baseline and the contributions up to each one."""
        return tuple(accumulate(self.contributions, initial=self.baseline))[1:]

    @property
    def probability(self) -> float | None:
        """That of `label`; None for a number, or a model that gives none."""
        return None if self.label is None else self.mean

    @property
    def frame(self) -> Any:
        """A data frame with the columns term, value, contribution and cumulative.

        The values are numbers if all of them are, else text.
        """
        is_text = not all(isinstance(value, float) for value in self.values)
        columns: dict[str, list[Any]] = {
            "term": list(self.terms),
            "value": [_text(v) if is_text else v for v in self.values],
            "contribution": list(self.contributions),
            "cumulative": list(self.cumulative),
        }
        return make_frame(columns, self.backend)

    def __repr__(self) -> str:
        rows = self._rows()
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        room = _WIDTH - sum(widths[1:]) - 6
        widths[0] = max(widths[0], room)
        lines = [
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
            for row in rows
        ]
        rule = "-" * (sum(widths) + 6)
        notes = [line for note in self._notes() for line in wrap(note, _WIDTH)]
        return "\n".join([self.title, rule, lines[0], rule, *lines[1:-1], rule, lines[-1], *notes])

    def _repr_html_(self) -> str:
        head, *body = self._rows()
        cells = "".join(f"<th>{escape(cell)}</th>" for cell in head)
        lines = "".join(
            f"<tr><th>{escape(row[0])}</th>"
            + "".join(f'<td style="text-align: right">{escape(cell)}</td>' for cell in row[1:])
            + "</tr>"
            for row in body
        )
        notes = "".join(f"<li>{escape(note)}</li>" for note in self._notes())
        return (
            f"<div><p><b>{escape(self.title)}</b></p><table><thead><tr>{cells}</tr></thead>"
            f"<tbody>{lines}</tbody></table><ul>{notes}</ul></div>"
        )

    @property
    def title(self) -> str:
        """What is explained."""
        what = self.scale.capitalize()
        if self.label is None:
            return f"{what} of one row"
        return f"{what} of {self.label} against {self.against}, for one row"

    def _rows(self) -> list[tuple[str, str, str, str]]:
        """The table as text: a head, the baseline, the columns, and the total."""
        each = zip(self.terms, self.values, self.contributions, self.cumulative, strict=True)
        shown = [
            (shortened(term, _LONGEST), shortened(_text(v), 20), f"{c:+.4g}", f"{sum_:.4g}")
            for term, v, c, sum_ in each
        ][:_MOST]
        start = f"{self.baseline:.4g}"
        return [
            ("", "value", "contribution", "cumulative"),
            (f"baseline ({self.reference})", "", start, start),
            *shown,
            ("total", "", "", f"{self.total:.4g}"),
        ]

    def _notes(self) -> list[str]:
        left = len(self.terms) - _MOST
        more = [f"... and {left} more columns: see frame."] if left > 0 else []
        if self.mean is None:
            return [*more, *self.notes]
        what = "Mean" if self.label is None else f"Probability of {self.label}"
        return [*more, f"{what}: {self.mean:.4g}", *self.notes]


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
