"""scikit-learn's LinearDiscriminantAnalysis. All its solvers divide by n, as `estimate="ml"`."""

from functools import partial

from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from benchmarks.contender import Contender

RIVAL = Contender(
    "LDA",
    {
        solver: partial(LinearDiscriminantAnalysis, solver=solver)
        for solver in ("svd", "lsqr", "eigen")
    },
)
