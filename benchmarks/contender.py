"""What takes part in a benchmark: ours or a rival."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from benchmarks.data.forms import as_made


@dataclass(frozen=True)
class Contender:
    """An estimator in one or more variants (solvers); the fastest of them counts.

    `variants` maps the name of a variant to a function that makes the unfitted estimator.
    """

    name: str
    variants: Mapping[str, Callable[[], Any]]

    def label(self, variant: str) -> str:
        return f"{self.name} {variant}".strip()


@dataclass(frozen=True, eq=False)
class Solver:
    """A rival's way to an optimum, with its settings from the loosest to the tightest.

    `new(**setting)` makes the unfitted estimator; `form` is the form in which it wants X.
    """

    name: str
    new: Callable[..., Any]
    settings: tuple[Mapping[str, float], ...]
    form: Callable[[Any], Any] = as_made

    def at(self, setting: Mapping[str, float]) -> Callable[[], Any]:
        return partial(self.new, **setting)

    def label(self, setting: Mapping[str, float]) -> str:
        return " ".join([self.name, *(f"{name}={value:.3g}" for name, value in setting.items())])


def imported(path: str) -> Any:
    """What stands at a dotted path, imported only now: it may not be installed."""
    module, _, name = path.rpartition(".")
    try:
        return getattr(import_module(module), name)
    except AttributeError as missing:
        raise ImportError(f"there is no {path}") from missing


def lazy(path: str, /, **settings: Any) -> Any:
    """An estimator by its dotted path."""
    return imported(path)(**settings)
