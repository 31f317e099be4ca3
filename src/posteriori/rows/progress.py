"""Progress of the passes over a source, for a callable or as a bar."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib import import_module
from time import perf_counter
from typing import Any

from posteriori.errors import ParameterError


@dataclass(frozen=True)
class Step:
    """Where a pass is: its number from 1 on, rows read of all (None while that is not known).

    `objective` is what the pass before came to, where it summed one. `seconds` are those of the
    pass so far.
    """

    number: int
    rows: int
    n_rows: int | None
    objective: float | None
    seconds: float

    @property
    def is_last(self) -> bool:
        """Whether the pass is over."""
        return self.rows == self.n_rows

    def __str__(self) -> str:
        of_all = "" if self.n_rows is None else f" of {self.n_rows:,}"
        return f"pass {self.number}, row {self.rows:,}{of_all}"


Listener = Callable[[Step], object]


@dataclass
class Passes:
    """The current pass over the rows, and the function that is called with it."""

    listener: Listener | None = None
    now: Step | None = None
    objective: float | None = None
    _begun: float = field(default_factory=perf_counter)

    def begin(self, n_rows: int | None) -> None:
        """A new pass."""
        number = 1 if self.now is None else self.now.number + 1
        self._begun = perf_counter()
        self.now = Step(number, 0, n_rows, self.objective, 0.0)
        self.advance(0)

    def advance(self, rows: int) -> None:
        """So many rows more have been read."""
        if self.now is not None:
            seconds = perf_counter() - self._begun
            self.now = replace(self.now, rows=self.now.rows + rows, seconds=seconds)
            if self.listener is not None:
                self.listener(self.now)

    def end(self) -> None:
        """The pass is over, or was given up."""
        if isinstance(self.listener, Bar):
            self.listener.end()


def read_progress(progress: Any) -> Listener | None:
    """The `progress` argument of scan: nothing, a bar, or the user's function."""
    if progress is None or progress is False:
        return None
    if progress is True:
        return Bar()
    if callable(progress):
        return progress
    raise ParameterError(
        f"progress={progress!r} is neither True, False nor callable.",
        "Pass True for a bar, or a function of a posteriori.rows.progress.Step.",
    )


class Bar:
    """A bar for each pass, by rich, removed after the pass; one line where there is no terminal."""

    def __init__(self, console: Any = None) -> None:
        try:
            self._rich = import_module("rich.progress")
            self._console = console or import_module("rich.console").Console()
        except ImportError as error:
            raise ParameterError(
                "The bar is drawn by rich, which is not installed.",
                "Install it: pip install 'posteriori[cli]'; or pass a function as progress.",
            ) from error
        self._bar: Any = None
        self._last: Step | None = None

    def __call__(self, step: Step) -> None:
        rich, console = self._rich, self._console
        if step.rows == 0:
            self.end()
            if console.is_jupyter or (console.is_terminal and not console.is_dumb_terminal):
                columns = _title(step), rich.BarColumn(), rich.TimeRemainingColumn()
                count = "{task.completed:,.0f} rows"
                self._bar = rich.Progress(*columns, count, console=console, transient=True)
                self._bar.add_task("", total=step.n_rows)
                self._bar.start()
        self._last = step
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=step.rows)
        if step.is_last:
            self.end()

    def end(self) -> None:
        """Remove the bar; or print the pass as one line where there is none."""
        if self._bar is not None:
            self._bar.stop()
        elif self._last is not None:
            self._console.print(f"{_title(self._last)}: {self._last.rows:,} rows", highlight=False)
        self._bar = self._last = None


def _title(step: Step) -> str:
    """The number of a pass, and the objective of the one before it."""
    objective = "" if step.objective is None else f" objective {step.objective:.8g}"
    return f"pass {step.number}{objective}"
