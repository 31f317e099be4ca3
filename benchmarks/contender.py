"""What takes part in a benchmark: ours or a rival."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Contender:
    """An estimator in one or more variants (solvers); the fastest of them counts.

    `variants` maps the name of a variant to a function that makes the unfitted estimator.
    """

    name: str
    variants: Mapping[str, Callable[[], Any]]

    def label(self, variant: str) -> str:
        return f"{self.name} {variant}".strip()
