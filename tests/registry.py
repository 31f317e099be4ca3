"""Every estimator class, for the laws that all of them keep.

A new model is tested by adding a line here: the laws in tests/laws go over `ENTRIES`,
scikit-learn's checks over `ESTIMATORS`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from scipy.special import log_expit, log_ndtr
from scipy.stats import cauchy
from sklearn.base import clone

from posteriori import (
    GLM,
    Adaline,
    BayesianLogisticRegression,
    CalibratedClassifier,
    DecidingClassifier,
    FisherDiscriminant,
    GaussianBasis,
    GaussianClassifier,
    LeastSquaresClassifier,
    LogisticRegression,
    NaiveBayes,
    NoveltyDetector,
    OneVersusOne,
    OneVersusRest,
    Perceptron,
    ProbitRegression,
    SigmoidBasis,
    ThresholdRegression,
)

Kind = Literal["real", "mixed"]
Freedom = Literal["scale", "shift", "weight"]

UNITS: tuple[Freedom, ...] = ("scale", "shift")
ALL: tuple[Freedom, ...] = (*UNITS, "weight")


@dataclass(frozen=True, eq=False)
class Entry:
    """An estimator, and what a law has to know of it.

    kind: the columns it is made for. strays: the share of rows that lie among those of any class;
    maximum likelihood diverges unless classes overlap. most_classes: 2 for models of two classes
    only. freedom: what changes no probability of it: the units of the columns, their origins, or
    the unit of the weights. exactly: parameters that make a fit exact whose precision depends on
    the unit of the weights. levels: whether it takes categorical columns. log_probability:
    ln p(C₂|x) of two classes as a function of the activation. averages: whether probabilities are
    averages over coefficients, not a function of `coef_`. from_rows: whether it fits to datasets on
    disk and on clusters, which wrappers do not.
    """

    estimator: Any
    kind: Kind = "real"
    strays: float = 0.0
    freedom: tuple[Freedom, ...] = ALL
    most_classes: int | None = None
    levels: bool = True
    from_rows: bool = True
    averages: bool = False
    log_probability: Callable[[Any], Any] = log_expit
    exactly: dict[str, Any] = field(default_factory=dict)

    def make(self, classes: Sequence[Any]) -> Any:
        """A new estimator for rows of these classes."""
        return clone(self.estimator)

    def __str__(self) -> str:
        return " ".join(repr(self.estimator).split())


ENTRIES = [
    Entry(LeastSquaresClassifier()),
    Entry(FisherDiscriminant()),
    Entry(GaussianClassifier()),
    Entry(GaussianClassifier(covariance="full")),
    Entry(NaiveBayes()),
    Entry(
        NaiveBayes(family={0: "gaussian", 1: "poisson", 2: "bernoulli", 3: "exponential"}),
        kind="mixed",
        freedom=(),
        levels=False,
    ),
    Entry(Perceptron(averaged=True, random_state=0)),
    Entry(Adaline(random_state=0)),
    # Fits are exact to so many standard errors, which grow as the weights shrink.
    Entry(LogisticRegression(), strays=0.3, exactly={"tol": 1e-8}),
    # What the prior weighs against grows with the weights; a prior in the units of the columns
    # changes with them.
    Entry(LogisticRegression(prior="evidence"), freedom=UNITS, strays=0.3),
    Entry(
        GLM(family="bernoulli", link="probit"),
        freedom=UNITS,
        strays=0.3,
        most_classes=2,
        log_probability=log_ndtr,
    ),
    Entry(
        BayesianLogisticRegression(prior=1.0, inference="laplace"),
        freedom=("shift",),
        averages=True,
    ),
    Entry(
        ProbitRegression(prior=1.0),
        freedom=("shift",),
        most_classes=2,
        log_probability=log_ndtr,
    ),
    Entry(
        ThresholdRegression(noise="cauchy", prior=1.0),
        freedom=("shift",),
        most_classes=2,
        log_probability=cauchy.logcdf,
    ),
    Entry(OneVersusRest(estimator=LeastSquaresClassifier()), from_rows=False),
    Entry(OneVersusOne(estimator=FisherDiscriminant()), from_rows=False),
]

FOUR = [
    Entry(LeastSquaresClassifier()),
    Entry(LogisticRegression(prior=1.0)),
    Entry(NaiveBayes()),
    Entry(GaussianClassifier(covariance="full")),
]
"""For laws of input formats and of bad input."""

ESTIMATORS = [
    LeastSquaresClassifier(),
    FisherDiscriminant(),
    GaussianClassifier(),
    NaiveBayes(),
    Perceptron(),
    Adaline(),
    LogisticRegression(),
    ProbitRegression(prior=1.0),
    ThresholdRegression(prior=1.0),
    GLM(),
    GLM(family="bernoulli", prior=1.0),
    BayesianLogisticRegression(prior=1.0, inference="laplace"),
    GaussianBasis(),
    SigmoidBasis(),
]
"""For scikit-learn's checks; those of wrappers are in their own test files."""


AROUND = [
    Entry(OneVersusRest(estimator=OneVersusOne(estimator=GaussianClassifier()))),
    Entry(DecidingClassifier(FisherDiscriminant(), reject_cost=0.3)),
]
"""Wrappers, for the laws of sources."""

CROSS_FITTED = [
    Entry(CalibratedClassifier(NaiveBayes())),
    Entry(NoveltyDetector(GaussianClassifier(covariance="full"), false_positive_rate=0.1)),
]
"""Fits that depend on the order of rows by their folds."""
