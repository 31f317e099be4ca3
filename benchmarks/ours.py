"""Our own models."""

from functools import partial

from benchmarks.contender import Contender
from posteriori import GaussianClassifier, NaiveBayes

SHARED = Contender("shared", {"": partial(GaussianClassifier, covariance="shared")})
FULL = Contender("full", {"": partial(GaussianClassifier, covariance="full")})
DIAGONAL = Contender("diagonal", {"": partial(GaussianClassifier, covariance="diagonal")})
BERNOULLI = Contender("bernoulli", {"": partial(NaiveBayes, family="bernoulli", pseudocount=1.0)})
