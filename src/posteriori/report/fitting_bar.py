"""How far a comparison has come, told to a callable or shown as a bar."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from posteriori.errors import ParameterError
from posteriori.report.held_out import Fitting

Listener = Callable[[Fitting], object]


@contextmanager
def read_listener(progress: Any) -> Iterator[Listener | None]:
    """What the user asked for: nothing, a bar that is gone at the end, or a function."""
    if progress is None or progress is False:
        yield None
    elif progress is True:
        with _bar() as listener:
            yield listener
    elif callable(progress):
        yield progress
    else:
        raise ParameterError(
            f"progress={progress!r} is neither True, False nor callable.",
            "Pass True for a bar, or a function of a posteriori.report.held_out.Fitting.",
        )


@contextmanager
def _bar() -> Iterator[Listener]:
    try:
        rich = import_module("rich.progress")
    except ImportError as error:
        raise ParameterError(
            "The bar is drawn by rich, which is not installed.",
            "Install it: pip install 'posteriori[cli]'; or pass a function as progress.",
        ) from error
    columns = rich.TextColumn("{task.description}"), rich.BarColumn(), rich.TimeRemainingColumn()
    with rich.Progress(*columns, transient=True) as bar:
        task = bar.add_task("")

        def tell(fitting: Fitting) -> None:
            bar.update(task, description=str(fitting), completed=fitting.fits, total=fitting.n_fits)

        yield tell
