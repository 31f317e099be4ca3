"""Every estimator that exists, for the laws that all of them keep.

A new model is tested by adding a line here: the laws in tests/laws walk `ENTRIES`, scikit-learn's
checks walk `ESTIMATORS`.
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

Kind = Literal["real", "bits", "levels", "counts", "positive", "mixed"]
Freedom = Literal["scale", "zoom", "shift", "weight"]

UNITS: tuple[Freedom, ...] = ("scale", "zoom", "shift")
ALL: tuple[Freedom, ...] = (*UNITS, "weight")


@dataclass(frozen=True, eq=False)
class Entry:
    """An estimator, and what a law has to know of it that it cannot ask of it.

    kind: the columns it is made for. strays: the share of rows that lie among those of any class;
    maximum likelihood has no end unless classes overlap. most_classes: 2 for models of two classes
    only. freedom: what changes no probability of it: the unit of a column, one unit of all of them,
    the origin of a column, or the unit of the weights. exactly: what makes a fit exact whose
    precision depends on the unit of the weights. levels: whether it takes categorical columns
    beside numbers. recovers: whether a fit to its own samples finds it again (a fixed shrinkage,
    say, shrinks once more). for_classes: the estimator, where a parameter names classes.
    log_probability: ln p(C₂|x) of two classes as a function of the activation. averages: whether
    probabilities are averages over coefficients, and no function of `coef_`. from_rows: whether
    it fits to datasets on disk and on clusters, which estimators around others do not.
    contract: whether scikit-learn's checks are for it; they hand in any numbers, up to three
    classes that lie in a plane, and want these told apart.
    """

    estimator: Any
    kind: Kind = "real"
    strays: float = 0.0
    freedom: tuple[Freedom, ...] = ALL
    most_classes: int | None = None
    levels: bool = True
    recovers: bool = True
    for_classes: Callable[[Sequence[Any]], Any] | None = None
    contract: bool = True
    from_rows: bool = True
    averages: bool = False
    log_probability: Callable[[Any], Any] = log_expit
    exactly: dict[str, Any] = field(default_factory=dict)

    def make(self, classes: Sequence[Any]) -> Any:
        """A new estimator for rows of these classes."""
        if self.for_classes is not None:
            return self.for_classes(list(classes))
        return clone(self.estimator)

    def __str__(self) -> str:
        return " ".join(repr(self.estimator).split())


def _first_two_share(classes: Sequence[Any]) -> GaussianClassifier:
    return GaussianClassifier(covariance=[list(classes[:2])])


ENTRIES = [
    Entry(LeastSquaresClassifier()),
    Entry(LeastSquaresClassifier(ridge=0.1), freedom=("shift",)),
    Entry(LeastSquaresClassifier(coding="fisher"), most_classes=2, contract=False),
    Entry(FisherDiscriminant()),
    Entry(FisherDiscriminant(n_components=1), contract=False),
    Entry(FisherDiscriminant(threshold="midpoint", shrinkage="auto"), freedom=UNITS),
    Entry(GaussianClassifier()),
    Entry(GaussianClassifier(covariance="full")),
    Entry(GaussianClassifier(covariance="full", shrinkage=0.2), recovers=False),
    Entry(GaussianClassifier(covariance="diagonal", estimate="unbiased"), freedom=UNITS),
    Entry(GaussianClassifier(covariance="isotropic"), freedom=("zoom", "shift", "weight")),
    Entry(GaussianClassifier(shrinkage="auto"), freedom=UNITS),
    Entry(GaussianClassifier(covariance=[[0, 1]]), for_classes=_first_two_share, contract=False),
    # Fits are exact to so many standard errors, which grow as the weights shrink.
    Entry(LogisticRegression(), strays=0.3, exactly={"tol": 1e-8}),
    Entry(
        GLM(family="bernoulli", link="probit"),
        freedom=UNITS,
        strays=0.3,
        most_classes=2,
        log_probability=log_ndtr,
    ),
    # What the prior weighs against grows with the weights; Jeffreys' has no units of its own.
    Entry(LogisticRegression(prior="jeffreys"), freedom=UNITS),
    Entry(LogisticRegression(prior="evidence"), freedom=UNITS, strays=0.3, recovers=False),
    Entry(
        BayesianLogisticRegression(inference="laplace"),
        freedom=UNITS,
        strays=0.3,
        recovers=False,
        averages=True,
    ),
    Entry(
        BayesianLogisticRegression(prior="jeffreys", inference="laplace"),
        freedom=UNITS,
        averages=True,
    ),
    # A prior in the units of the columns changes with them.
    Entry(LogisticRegression(prior=1.0), freedom=("shift",), recovers=False),
    Entry(GLM(family="categorical", prior=1.0), freedom=("shift",)),
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
    Entry(Perceptron(averaged=True, random_state=0)),
    Entry(Adaline(random_state=0)),
    Entry(NaiveBayes()),
    Entry(NaiveBayes(family="gaussian", shared_scale=True), levels=False),
    Entry(NaiveBayes(family="bernoulli"), kind="bits", freedom=(), levels=False, contract=False),
    Entry(NaiveBayes(family="categorical"), kind="levels", freedom=()),
    Entry(
        NaiveBayes(family="poisson"),
        kind="counts",
        freedom=("weight",),
        levels=False,
        contract=False,
    ),
    Entry(
        NaiveBayes(family="exponential"),
        kind="positive",
        freedom=("scale", "zoom", "weight"),
        levels=False,
        contract=False,
    ),
    Entry(
        NaiveBayes(family={0: "gaussian", 1: "poisson", 2: "bernoulli", 3: "exponential"}),
        kind="mixed",
        freedom=(),
        levels=False,
        contract=False,
    ),
    Entry(OneVersusRest(), from_rows=False),
    Entry(OneVersusOne(), from_rows=False),
    Entry(OneVersusRest(estimator=LeastSquaresClassifier()), from_rows=False, contract=False),
    Entry(OneVersusOne(estimator=FisherDiscriminant()), from_rows=False, contract=False),
    Entry(OneVersusOne(estimator=NaiveBayes()), from_rows=False, contract=False),
]

SOLVERS = ("newton", "gradient", "coordinate", "sequential")

UNLAWFUL = [
    *(LogisticRegression(solver=name) for name in SOLVERS),
    BayesianLogisticRegression(inference="variational"),
    ProbitRegression(),
    ThresholdRegression(),
    GLM(),
    GLM(link="log"),
    GLM(family="poisson"),
    GLM(family="poisson", link="identity"),
    GLM(family="gamma"),
    GLM(family="exponential", link="log"),
    GLM(family="bernoulli"),
    GLM(family="categorical"),
    Perceptron(),
    Adaline(),
    GaussianBasis(),
    GaussianBasis(centres=2, placement="grid"),
    SigmoidBasis(),
    SigmoidBasis(placement="grid"),
]
"""Kept out of the laws: transformers, regressors, fits without an end on rows that are easy, or not
possible, to part, and answers with Monte Carlo error or with bounds that have several maxima."""

ESTIMATORS = [*(entry.estimator for entry in ENTRIES if entry.contract), *UNLAWFUL]

SLOW = [
    LogisticRegression(label_noise=0.05, prior=1.0),
    LogisticRegression(prior="ard"),
    ProbitRegression(prior="evidence"),
    GLM(prior="evidence"),
    BayesianLogisticRegression(prior="ard", inference="laplace"),
    *(
        BayesianLogisticRegression(prior=prior, inference=name, n_draws=400, random_state=0)
        for name in ("monte_carlo", "auto")
        for prior in (1.0, "evidence")
    ),
]
"""Of the rows that scikit-learn checks with, many can be separated: chains for them are long."""


def inexact_weights(estimator: Any) -> dict[str, str]:
    """Models of which weights are not repeated rows to 1e-7, as scikit-learn checks; and why."""
    if isinstance(estimator, CalibratedClassifier | NoveltyDetector):
        reason = "repeated rows are in several folds"
    elif getattr(estimator, "inference", None) in ("monte_carlo", "auto"):
        reason = "draws differ by their Monte Carlo error"
    else:
        return {}
    return {
        f"check_sample_weight_equivalence_on_{name}_data": reason for name in ("dense", "sparse")
    }


AROUND = [
    Entry(OneVersusRest(estimator=OneVersusOne(estimator=GaussianClassifier()))),
    Entry(DecidingClassifier(FisherDiscriminant(), reject_cost=0.3)),
]
"""Estimators around others, which keep the laws of predictions."""

CROSS_FITTED = [
    Entry(CalibratedClassifier(NaiveBayes())),
    Entry(CalibratedClassifier(GaussianClassifier(), method="platt", cv=3)),
    Entry(
        CalibratedClassifier(OneVersusRest(estimator=LogisticRegression(prior=1.0))),
        exactly={"estimator__estimator__tol": 1e-8},
    ),
    Entry(OneVersusOne(estimator=CalibratedClassifier(GaussianClassifier(), cv=3))),
    Entry(NoveltyDetector(GaussianClassifier(covariance="full"), false_positive_rate=0.1)),
    Entry(DecidingClassifier(CalibratedClassifier(FisherDiscriminant()), reject_cost=0.3)),
]
"""Estimators that learn from predictions for held-out rows. Folds depend on the order of rows, so
these keep the laws of predictions alone."""
