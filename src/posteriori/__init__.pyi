"""Probabilistic linear classification, from the data to the decision.

The one table of public names: type checkers read it, and `__init__.py` imports from it on demand.
"""

from posteriori.decision.calibration import calibration_error as calibration_error
from posteriori.decision.calibration import reliability_curve as reliability_curve
from posteriori.decision.class_priors import adjust_priors as adjust_priors
from posteriori.decision.class_priors import estimate_priors as estimate_priors
from posteriori.decision.class_priors import undo_sampling as undo_sampling
from posteriori.decision.decide import decide as decide
from posteriori.decision.scores import brier_score as brier_score
from posteriori.decision.scores import decompose_score as decompose_score
from posteriori.decision.scores import log_score as log_score
from posteriori.inspection.effects import comparisons as comparisons
from posteriori.inspection.effects import predict_interval as predict_interval
from posteriori.inspection.effects import predictions as predictions
from posteriori.inspection.effects import slopes as slopes
from posteriori.inspection.explain import explain as explain
from posteriori.likelihood.cdf_links import Mixture as Mixture
from posteriori.models.basis import GaussianBasis as GaussianBasis
from posteriori.models.basis import SigmoidBasis as SigmoidBasis
from posteriori.models.bayesian import BayesianLogisticRegression as BayesianLogisticRegression
from posteriori.models.binary_links import ProbitRegression as ProbitRegression
from posteriori.models.binary_links import ThresholdRegression as ThresholdRegression
from posteriori.models.calibrated import CalibratedClassifier as CalibratedClassifier
from posteriori.models.deciding import DecidingClassifier as DecidingClassifier
from posteriori.models.discriminants import FisherDiscriminant as FisherDiscriminant
from posteriori.models.discriminants import LeastSquaresClassifier as LeastSquaresClassifier
from posteriori.models.gaussian import GaussianClassifier as GaussianClassifier
from posteriori.models.glm import GLM as GLM
from posteriori.models.logistic import LogisticRegression as LogisticRegression
from posteriori.models.multiclass import OneVersusOne as OneVersusOne
from posteriori.models.multiclass import OneVersusRest as OneVersusRest
from posteriori.models.naive_bayes import NaiveBayes as NaiveBayes
from posteriori.models.novelty import NoveltyDetector as NoveltyDetector
from posteriori.models.perceptron import Adaline as Adaline
from posteriori.models.perceptron import Perceptron as Perceptron
from posteriori.posterior.laplace import laplace as laplace
from posteriori.posterior.priors import GaussianPrior as GaussianPrior
from posteriori.report.compare import compare as compare
from posteriori.rows.scan import scan as scan
from posteriori.rows.threads import threads as threads

__version__: str
