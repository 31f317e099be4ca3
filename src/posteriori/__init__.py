"""Probabilistic linear classification, from the data to the decision."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from posteriori.decision.calibration import calibration_error, reliability_curve
    from posteriori.decision.class_priors import adjust_priors, estimate_priors, undo_sampling
    from posteriori.decision.decide import decide
    from posteriori.decision.scores import brier_score, decompose_score, log_score
    from posteriori.inspection.effects import comparisons, predict_interval, predictions, slopes
    from posteriori.inspection.explain import explain
    from posteriori.likelihood.cdf_links import Mixture
    from posteriori.models.basis import GaussianBasis, SigmoidBasis
    from posteriori.models.bayesian import BayesianLogisticRegression
    from posteriori.models.binary_links import ProbitRegression, ThresholdRegression
    from posteriori.models.calibrated import CalibratedClassifier
    from posteriori.models.deciding import DecidingClassifier
    from posteriori.models.discriminants import FisherDiscriminant, LeastSquaresClassifier
    from posteriori.models.gaussian import GaussianClassifier
    from posteriori.models.glm import GLM
    from posteriori.models.logistic import LogisticRegression
    from posteriori.models.multiclass import OneVersusOne, OneVersusRest
    from posteriori.models.naive_bayes import NaiveBayes
    from posteriori.models.novelty import NoveltyDetector
    from posteriori.models.perceptron import Adaline, Perceptron
    from posteriori.posterior.laplace import laplace
    from posteriori.posterior.priors import GaussianPrior
    from posteriori.report.compare import compare
    from posteriori.rows.scan import scan
    from posteriori.rows.threads import threads

__version__ = "0.1.0.dev0"

_HOMES = {
    "Adaline": "posteriori.models.perceptron",
    "BayesianLogisticRegression": "posteriori.models.bayesian",
    "CalibratedClassifier": "posteriori.models.calibrated",
    "DecidingClassifier": "posteriori.models.deciding",
    "FisherDiscriminant": "posteriori.models.discriminants",
    "GLM": "posteriori.models.glm",
    "GaussianBasis": "posteriori.models.basis",
    "GaussianClassifier": "posteriori.models.gaussian",
    "GaussianPrior": "posteriori.posterior.priors",
    "LeastSquaresClassifier": "posteriori.models.discriminants",
    "LogisticRegression": "posteriori.models.logistic",
    "Mixture": "posteriori.likelihood.cdf_links",
    "NaiveBayes": "posteriori.models.naive_bayes",
    "NoveltyDetector": "posteriori.models.novelty",
    "OneVersusOne": "posteriori.models.multiclass",
    "OneVersusRest": "posteriori.models.multiclass",
    "Perceptron": "posteriori.models.perceptron",
    "ProbitRegression": "posteriori.models.binary_links",
    "SigmoidBasis": "posteriori.models.basis",
    "ThresholdRegression": "posteriori.models.binary_links",
    "adjust_priors": "posteriori.decision.class_priors",
    "brier_score": "posteriori.decision.scores",
    "calibration_error": "posteriori.decision.calibration",
    "compare": "posteriori.report.compare",
    "comparisons": "posteriori.inspection.effects",
    "decide": "posteriori.decision.decide",
    "decompose_score": "posteriori.decision.scores",
    "estimate_priors": "posteriori.decision.class_priors",
    "explain": "posteriori.inspection.explain",
    "laplace": "posteriori.posterior.laplace",
    "log_score": "posteriori.decision.scores",
    "predict_interval": "posteriori.inspection.effects",
    "predictions": "posteriori.inspection.effects",
    "reliability_curve": "posteriori.decision.calibration",
    "scan": "posteriori.rows.scan",
    "slopes": "posteriori.inspection.effects",
    "threads": "posteriori.rows.threads",
    "undo_sampling": "posteriori.decision.class_priors",
}
"""Where each public name lives; a name is imported when it is first asked for."""

__all__ = [
    "GLM",
    "Adaline",
    "BayesianLogisticRegression",
    "CalibratedClassifier",
    "DecidingClassifier",
    "FisherDiscriminant",
    "GaussianBasis",
    "GaussianClassifier",
    "GaussianPrior",
    "LeastSquaresClassifier",
    "LogisticRegression",
    "Mixture",
    "NaiveBayes",
    "NoveltyDetector",
    "OneVersusOne",
    "OneVersusRest",
    "Perceptron",
    "ProbitRegression",
    "SigmoidBasis",
    "ThresholdRegression",
    "adjust_priors",
    "brier_score",
    "calibration_error",
    "compare",
    "comparisons",
    "decide",
    "decompose_score",
    "estimate_priors",
    "explain",
    "laplace",
    "log_score",
    "predict_interval",
    "predictions",
    "reliability_curve",
    "scan",
    "slopes",
    "threads",
    "undo_sampling",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'posteriori' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
