"""scikit-learn's QuadraticDiscriminantAnalysis. Both solvers divide by n_k, as `estimate="ml"`."""

from functools import partial

from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

from benchmarks.contender import Contender

RIVAL = Contender(
    "QDA",
    {solver: partial(QuadraticDiscriminantAnalysis, solver=solver) for solver in ("svd", "eigen")},
)
