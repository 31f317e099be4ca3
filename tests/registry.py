"""Every estimator that exists, for the laws that all of them keep.

A new model is tested by adding a line here: the laws in tests/laws walk `ENTRIES`, scikit-learn's
checks walk `ESTIMATORS`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sklearn.base import clone

from posteriori import (
    GLM,
    Adaline,
    FisherDiscriminant,
    GaussianBasis,
    GaussianClassifier,
    LeastSquaresClassifier,
    LogisticRegression,
    NaiveBayes,
    OneVersusOne,
    OneVersusRest,
    Perceptron,
    ProbitRegression,
    SigmoidBasis,
)

Kind = Literal["real", "bits", "levels", "counts", "positive", "mixed"]
Freedom = Literal["scale", "zoom", "shift", "weight"]

UNITS: tuple[Freedom, ...] = ("scale", "zoom", "shift")
ALL: tuple[Freedom, ...] = (*UNITS, "weight")


@dataclass(frozen=True, eq=False)
class Entry:
    """An estimator, and what a law has to know of it that it cannot ask of it.

    kind: the columns it is made for. most_classes: 2 for models of two classes only.
    freedom: what changes no probability of it: the unit of a column, one unit of all of them, the
    origin of a column, or the unit of the weights. levels: whether it takes categorical columns
    beside numbers. recovers: whether a fit to its own samples finds it again (a fixed shrinkage,
    say, shrinks once more).
    for_classes: the estimator, where a parameter names classes. contract: whether scikit-learn's
    checks are for it; they hand in any numbers, up to three classes that lie in a plane, and want
    these told apart.
    """

    estimator: Any
    kind: Kind = "real"
    freedom: tuple[Freedom, ...] = ALL
    most_classes: int | None = None
    levels: bool = True
    recovers: bool = True
    for_classes: Callable[[Sequence[Any]], Any] | None = None
    contract: bool = True

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
    Entry(LogisticRegression(prior=1.0), freedom=("shift",), recovers=False),
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
    Entry(OneVersusRest()),
    Entry(OneVersusOne()),
    Entry(OneVersusRest(estimator=LeastSquaresClassifier())),
    Entry(OneVersusOne(estimator=FisherDiscriminant())),
    Entry(OneVersusOne(estimator=NaiveBayes())),
]

UNLAWFUL = [
    LogisticRegression(),
    ProbitRegression(),
    GLM(),
    GLM(family="poisson"),
    GLM(family="bernoulli"),
    GLM(family="categorical"),
    Perceptron(),
    Perceptron(averaged=True),
    Adaline(),
    GaussianBasis(),
    GaussianBasis(centres=2, placement="grid"),
    SigmoidBasis(),
    SigmoidBasis(placement="grid"),
]
"""Kept out of the laws: transformers, regressors, and fits without an end on rows that are easy, or
not possible, to part."""

ESTIMATORS = [*(entry.estimator for entry in ENTRIES if entry.contract), *UNLAWFUL]
