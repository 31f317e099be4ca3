"""What looks wrong with a fit, in words: a verdict on each subject, as text, HTML or a frame."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from textwrap import wrap
from typing import Any, Literal, get_args, overload

from posteriori.arguments import either
from posteriori.errors import ParameterError
from posteriori.posterior.summary import shortened
from posteriori.rows.frames import make_frame

Word = Literal["not checked", "good", "look", "bad"]
"""What a check says, from nothing to the worst."""

_WORDS: tuple[Word, ...] = get_args(Word)

_WIDTH = 88
"""Characters of a line."""

_GAP = "  "

_MOST = 40
"""Characters of the name of a model in the title."""


@dataclass(frozen=True, eq=False)
class Check:
    """A verdict: "good", "look" (into it), "bad", or "not checked"; a sentence; and its numbers.

    The sentence says what was found, in which column or row, and what to do about it.

    >>> Check("collinearity", "good", "The columns can be told apart.", {"largest": 3.2})
    Check(name='collinearity', word='good', sentence='The columns can be told apart.')
    """

    name: str
    word: Word
    sentence: str
    values: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, eq=False, repr=False)
class Checks(Sequence[Check]):
    """What `check()` gives: all checks of a model, in order, or one by its name.

    >>> checks = Checks("Model", (Check("convergence", "good", "The iteration converged."),))
    >>> checks
    Model: 1 good
    ========================================================================================
    good         convergence   The iteration converged.
    >>> checks["convergence"].word, len(checks), checks.worst
    ('good', 1, 'good')
    """

    title: str
    found: tuple[Check, ...]

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[Check]:
        return iter(self.found)

    @overload
    def __getitem__(self, key: int | str) -> Check: ...

    @overload
    def __getitem__(self, key: slice) -> tuple[Check, ...]: ...

    def __getitem__(self, key: int | str | slice) -> Check | tuple[Check, ...]:
        if not isinstance(key, str):
            return self.found[key]
        names = [check.name for check in self.found]
        if key not in names:
            raise ParameterError(f"There is no check called {key!r}.", f"Use {either(names)}.")
        return self.found[names.index(key)]

    @property
    def worst(self) -> Word:
        """The worst of the verdicts."""
        words = [check.word for check in self.found]
        return max(words, key=_WORDS.index, default="not checked")

    def to_frame(self, backend: str | None = None) -> Any:
        """A row a check: check, word, sentence; of "pandas", "polars" or "pyarrow"."""
        rows = [(check.name, check.word, check.sentence) for check in self.found]
        columns = zip(*rows, strict=True) if rows else ([], [], [])
        names = ("check", "word", "sentence")
        return make_frame(dict(zip(names, map(list, columns), strict=True)), backend)

    def __repr__(self) -> str:
        return self.text()

    def text(self) -> str:
        """The verdicts in plain characters, at most 88 a line."""
        lines = [self._heading(), "=" * _WIDTH]
        for check in self.found:
            lines += _lines(check)
        return "\n".join(lines)

    def _heading(self) -> str:
        words = [check.word for check in self.found]
        counts = [f"{words.count(word)} {word}" for word in reversed(_WORDS) if word in words]
        return f"{shortened(self.title, _MOST)}: {', '.join(counts) or 'nothing checked'}"

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        rows = "".join(map(_html_row, self.found))
        return f"<div><p><b>{escape(self._heading())}</b></p><table>{rows}</table></div>"


def _lines(check: Check) -> list[str]:
    words, names = max(map(len, _WORDS)), len("collinearity")
    start = check.word.ljust(words) + _GAP + check.name.ljust(names) + _GAP
    parts = wrap(check.sentence, _WIDTH - len(start)) or [""]
    return [start + parts[0], *(" " * len(start) + part for part in parts[1:])]


def _html_row(check: Check) -> str:
    colour = {"bad": "#b00020", "look": "#8a6100", "good": "#1b6e2c"}.get(check.word, "#666666")
    style = f'style="color: {colour}; white-space: nowrap"'
    return (
        f"<tr><td {style}><b>{escape(check.word)}</b></td><th>{escape(check.name)}</th>"
        f'<td style="text-align: left">{escape(check.sentence)}</td></tr>'
    )
