"""scikit-learn's LogisticRegressionCV: ten penalties, five folds, on standardised columns.

Folds run in two processes, or one after the other with two threads in the products.
"""

from functools import partial

from sklearn.linear_model import LogisticRegressionCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.contender import Contender

PENALTIES = 10
FOLDS = 5


def _new(solver: str, n_jobs: int) -> Pipeline:
    search = LogisticRegressionCV(
        Cs=PENALTIES,
        l1_ratios=(0.0,),
        cv=FOLDS,
        scoring="neg_log_loss",
        solver=solver,
        n_jobs=n_jobs,
        use_legacy_attributes=False,
    )
    return make_pipeline(StandardScaler(), search)


RIVAL = Contender(
    "LogisticRegressionCV",
    {
        f"{solver} n_jobs={n_jobs}": partial(_new, solver, n_jobs)
        for solver in ("newton-cholesky", "lbfgs")
        for n_jobs in (1, 2)
    },
)
