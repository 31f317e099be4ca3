"""Probabilistic linear classification, from the data to the decision."""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.1.0.dev0"


def _public_names() -> dict[str, str]:
    """The module of each public name, by the imports of the stub beside this file."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [each for each in stub.body if isinstance(each, ast.ImportFrom)]
    return {alias.name: str(each.module) for each in imports for alias in each.names}


_MODULES = _public_names()

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    """A public name, whose module is imported when it is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module 'posteriori' has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
