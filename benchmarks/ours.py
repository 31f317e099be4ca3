"""Our own models."""

from functools import partial

from benchmarks.contender import Contender, lazy
from benchmarks.draws import DRAWS, INTERCEPT_PRECISION, SLOPE_PRECISION
from benchmarks.problem import PRIOR
from posteriori import GaussianClassifier, GaussianPrior, NaiveBayes

SHARED = Contender("shared", {"": partial(GaussianClassifier, covariance="shared")})
FULL = Contender("full", {"": partial(GaussianClassifier, covariance="full")})
DIAGONAL = Contender("diagonal", {"": partial(GaussianClassifier, covariance="diagonal")})
BERNOULLI = Contender("bernoulli", {"": partial(NaiveBayes, family="bernoulli", pseudocount=1.0)})


def _discriminative(name: str, model: str, **settings: object) -> Contender:
    """Imported when it is made, so that the other cases do not depend on it."""
    return Contender(name, {"": partial(lazy, f"posteriori.{model}", **settings)})


LOGISTIC = _discriminative("logistic", "LogisticRegression", prior=PRIOR)
SOFTMAX = _discriminative("softmax", "LogisticRegression", prior=PRIOR)
BINOMIAL_GLM = _discriminative("binomial GLM", "GLM", family="bernoulli", prior=PRIOR)
POISSON_GLM = _discriminative("Poisson GLM", "GLM", family="poisson", prior=PRIOR)
LIKELY_LOGISTIC = _discriminative("logistic, no prior", "LogisticRegression")
LIKELY_PROBIT = _discriminative("probit, no prior", "ProbitRegression")

SLOPES_AND_INTERCEPT = GaussianPrior(
    SLOPE_PRECISION, intercept_precision=INTERCEPT_PRECISION, units="standardised"
)
LAPLACE = _discriminative("laplace", "BayesianLogisticRegression", prior=PRIOR)
EVIDENCE = _discriminative("evidence", "BayesianLogisticRegression", prior="evidence")
MONTE_CARLO = _discriminative(
    "monte carlo",
    "BayesianLogisticRegression",
    prior=SLOPES_AND_INTERCEPT,
    inference="monte_carlo",
    n_draws=DRAWS,
    random_state=0,
)
