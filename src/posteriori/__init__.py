"""Probabilistic linear classification, from the data to the decision."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from posteriori.models.fisher import FisherDiscriminant
    from posteriori.models.gaussian import GaussianClassifier
    from posteriori.models.least_squares import LeastSquaresClassifier
    from posteriori.models.multiclass import OneVersusOne, OneVersusRest
    from posteriori.models.naive_bayes import NaiveBayes
    from posteriori.rows.threads import threads

__version__ = "0.1.0.dev0"

_HOMES = {
    "FisherDiscriminant": "posteriori.models.fisher",
    "GaussianClassifier": "posteriori.models.gaussian",
    "LeastSquaresClassifier": "posteriori.models.least_squares",
    "NaiveBayes": "posteriori.models.naive_bayes",
    "OneVersusOne": "posteriori.models.multiclass",
    "OneVersusRest": "posteriori.models.multiclass",
    "threads": "posteriori.rows.threads",
}
"""Where each public name lives; a name is imported when it is first asked for."""

__all__ = [
    "FisherDiscriminant",
    "GaussianClassifier",
    "LeastSquaresClassifier",
    "NaiveBayes",
    "OneVersusOne",
    "OneVersusRest",
    "threads",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'posteriori' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
