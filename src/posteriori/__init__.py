"""Probabilistic linear classification, from the data to the decision."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from posteriori.likelihood.threshold import Mixture
    from posteriori.models.basis import GaussianBasis, SigmoidBasis
    from posteriori.models.bayesian import BayesianLogisticRegression
    from posteriori.models.fisher import FisherDiscriminant
    from posteriori.models.gaussian import GaussianClassifier
    from posteriori.models.glm import GLM
    from posteriori.models.least_squares import LeastSquaresClassifier
    from posteriori.models.logistic import LogisticRegression
    from posteriori.models.multiclass import OneVersusOne, OneVersusRest
    from posteriori.models.naive_bayes import NaiveBayes
    from posteriori.models.perceptron import Adaline, Perceptron
    from posteriori.models.probit import ProbitRegression
    from posteriori.models.threshold import ThresholdRegression
    from posteriori.posterior.laplace import laplace
    from posteriori.posterior.priors import GaussianPrior
    from posteriori.rows.scan import scan
    from posteriori.rows.threads import threads

__version__ = "0.1.0.dev0"

_HOMES = {
    "Adaline": "posteriori.models.perceptron",
    "BayesianLogisticRegression": "posteriori.models.bayesian",
    "FisherDiscriminant": "posteriori.models.fisher",
    "GLM": "posteriori.models.glm",
    "GaussianBasis": "posteriori.models.basis",
    "GaussianClassifier": "posteriori.models.gaussian",
    "GaussianPrior": "posteriori.posterior.priors",
    "LeastSquaresClassifier": "posteriori.models.least_squares",
    "LogisticRegression": "posteriori.models.logistic",
    "Mixture": "posteriori.likelihood.threshold",
    "NaiveBayes": "posteriori.models.naive_bayes",
    "OneVersusOne": "posteriori.models.multiclass",
    "OneVersusRest": "posteriori.models.multiclass",
    "Perceptron": "posteriori.models.perceptron",
    "ProbitRegression": "posteriori.models.probit",
    "SigmoidBasis": "posteriori.models.basis",
    "ThresholdRegression": "posteriori.models.threshold",
    "laplace": "posteriori.posterior.laplace",
    "scan": "posteriori.rows.scan",
    "threads": "posteriori.rows.threads",
}
"""Where each public name lives; a name is imported when it is first asked for."""

__all__ = [
    "GLM",
    "Adaline",
    "BayesianLogisticRegression",
    "FisherDiscriminant",
    "GaussianBasis",
    "GaussianClassifier",
    "GaussianPrior",
    "LeastSquaresClassifier",
    "LogisticRegression",
    "Mixture",
    "NaiveBayes",
    "OneVersusOne",
    "OneVersusRest",
    "Perceptron",
    "ProbitRegression",
    "SigmoidBasis",
    "ThresholdRegression",
    "laplace",
    "scan",
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
