"""What is measured of decisions and of comparisons: `run(scale)` gives one row."""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, RidgeClassifier
from sklearn.model_selection import StratifiedKFold, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB

import posteriori
from benchmarks.data import make
from benchmarks.measures import Scale
from benchmarks.result import Result, Target, duration, result

CLASSES = ACTIONS = 10
COLUMNS = 20
FOLDS = 5
FEW_TURNS = 2
SCORES = ["neg_log_loss", "neg_brier_score", "accuracy"]


@dataclass(frozen=True)
class DecideTime:
    """The time of decisions over that of the probabilities that they are made by."""

    n_rows: int
    target: Target | None = None
    name = "decide / predict_proba"
    data = "1,000,000 rows, 10 classes, 10 actions"

    def run(self, scale: Scale) -> Result:
        random = np.random.default_rng(0)
        X = random.normal(size=(self.n_rows // scale.shrink, COLUMNS))
        slopes = random.normal(size=(COLUMNS, CLASSES)) / 3
        y = (X @ slopes + random.gumbel(size=(len(X), CLASSES))).argmax(axis=1)
        model = posteriori.LogisticRegression(prior=1.0).fit(X[:20_000], y[:20_000])
        proba, loss = model.predict_proba(X), random.random((CLASSES, ACTIONS))
        with warnings.catch_warnings(action="ignore"):
            times = scale.best_times(
                {
                    "decide": lambda: posteriori.decide(proba, loss),
                    "proba": lambda: model.predict_proba(X),
                }
            )
        return result(
            self.name,
            self.data,
            duration(times["decide"]),
            f"{duration(times['proba'])} (predict_proba)",
            times["decide"] / times["proba"],
            self.target,
        )


def _ours() -> dict[str, Any]:
    return {
        "logistic": posteriori.LogisticRegression(prior=1.0),
        "likely": posteriori.LogisticRegression(),
        "chosen prior": posteriori.LogisticRegression(prior="evidence"),
        "one against rest": posteriori.OneVersusRest(
            estimator=posteriori.LogisticRegression(prior=1.0)
        ),
        "shared": posteriori.GaussianClassifier(),
        "full": posteriori.GaussianClassifier(covariance="full"),
        "diagonal": posteriori.GaussianClassifier(covariance="diagonal"),
        "least squares": posteriori.LeastSquaresClassifier(),
    }


def _theirs() -> dict[str, Any]:
    quick = {"solver": "newton-cholesky"}
    return {
        "logistic": LogisticRegression(**quick),
        "likely": LogisticRegression(C=np.inf, **quick),
        "chosen prior": LogisticRegressionCV(Cs=10, cv=5, **quick),
        "one against rest": OneVsRestClassifier(LogisticRegression(**quick)),
        "shared": LinearDiscriminantAnalysis(solver="lsqr"),
        "full": QuadraticDiscriminantAnalysis(),
        "diagonal": GaussianNB(),
        "least squares": RidgeClassifier(alpha=1e-9),
    }


@dataclass(frozen=True)
class CompareTime:
    """`compare` of eight models against `cross_validate` of their counterparts.

    Ours also fits each model to all rows, for its evidence, BIC and AIC.
    """

    data: str
    target: Target | None = None
    without_search: bool = False

    @property
    def name(self) -> str:
        left_out = " without the one whose prior is searched" if self.without_search else ""
        return f"compare eight models{left_out}"

    def run(self, scale: Scale) -> Result:
        X, y = make(self.data, scale.shrink)
        ours, theirs = _ours(), _theirs()
        if self.without_search:
            del ours["chosen prior"], theirs["chosen prior"]
        folds = StratifiedKFold(FOLDS)
        few = replace(scale, turns=min(scale.turns, FEW_TURNS))
        times = few.best_times(
            {
                "ours": lambda: posteriori.compare(ours, X, y, cv=FOLDS),
                "theirs": lambda: [_validated(model, X, y, folds) for model in theirs.values()],
            }
        )
        return result(
            self.name,
            self.data,
            duration(times["ours"]),
            f"{duration(times['theirs'])} (cross_validate)",
            times["theirs"] / times["ours"],
            self.target,
        )


def _validated(model: Any, X: Any, y: Any, folds: Any) -> Any:
    scores = SCORES if hasattr(model, "predict_proba") else ["accuracy"]
    return cross_validate(model, X, y, cv=folds, scoring=scores)
