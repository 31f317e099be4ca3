"""Every estimator that exists, for the laws that all of them keep."""

from posteriori import (
    FisherDiscriminant,
    GaussianClassifier,
    LeastSquaresClassifier,
)

ESTIMATORS = [
    LeastSquaresClassifier(),
    LeastSquaresClassifier(ridge=0.1),
    FisherDiscriminant(),
    FisherDiscriminant(threshold="midpoint", shrinkage="auto"),
    GaussianClassifier(),
    GaussianClassifier(covariance="full"),
    GaussianClassifier(covariance="diagonal", estimate="unbiased"),
    GaussianClassifier(covariance="isotropic"),
    GaussianClassifier(shrinkage="auto"),
]
