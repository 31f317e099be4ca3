"""Every classifier on the wine data: parameters, accuracy, log score and time; and a picture.

178 wines of three cultivars, 13 measurements each; the data come with scikit-learn. Accuracy and
log score (the mean log probability given to the true class: 0 is perfect, ln(1/3) = -1.10 is
guessing) are those of rows left out by 5-fold cross-validation, the same folds for every model.
The cultivars can be separated, so the models fitted by likelihood have a prior.
"""

from pathlib import Path
from time import perf_counter
from typing import Any

import matplotlib as mpl
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import t
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline

from posteriori import (
    GLM,
    Adaline,
    FisherDiscriminant,
    GaussianBasis,
    GaussianClassifier,
    GaussianPrior,
    LeastSquaresClassifier,
    LogisticRegression,
    NaiveBayes,
    OneVersusOne,
    OneVersusRest,
    Perceptron,
    ProbitRegression,
    SigmoidBasis,
    ThresholdRegression,
)
from posteriori.report.plots import decision_regions

PICTURE = Path("demo") / "decision_regions.png"
FITS, SECONDS = 10, 0.5
NOTHING = "–"
PRIOR = GaussianPrior(precision=1.0, units="standardised")

MODELS: dict[str, Any] = {
    "Least squares": LeastSquaresClassifier(),
    "Fisher discriminant": FisherDiscriminant(n_components=2),
    "Gaussian, shared covariance": GaussianClassifier(covariance="shared"),
    "Gaussian, two classes share": GaussianClassifier(covariance=[[0, 1], [2]]),
    "Gaussian, full covariances": GaussianClassifier(covariance="full"),
    "Gaussian, full, shrunk": GaussianClassifier(covariance="full", shrinkage="auto"),
    "Gaussian, diagonal": GaussianClassifier(covariance="diagonal"),
    "Gaussian, isotropic": GaussianClassifier(covariance="isotropic"),
    "Naive Bayes": NaiveBayes(family="auto"),
    "Logistic": LogisticRegression(prior=PRIOR),
    "Logistic, Jeffreys' prior": LogisticRegression(prior="jeffreys"),
    "Logistic, some labels wrong": LogisticRegression(prior=PRIOR, label_noise=0.02),
    "Logistic on Gaussian bumps": make_pipeline(GaussianBasis(), LogisticRegression(prior=PRIOR)),
    "Logistic on sigmoid steps": make_pipeline(SigmoidBasis(), LogisticRegression(prior=PRIOR)),
    "GLM, categorical": GLM(family="categorical", prior=PRIOR),
    "Perceptron": Perceptron(random_state=0),
    "Perceptron, averaged": Perceptron(averaged=True, random_state=0),
    "Adaline": Adaline(random_state=0),
    "One versus rest, Gaussian": OneVersusRest(estimator=GaussianClassifier()),
    "One versus rest, probit": OneVersusRest(estimator=ProbitRegression(prior=PRIOR)),
    "One versus one, Gaussian": OneVersusOne(estimator=GaussianClassifier()),
    "One versus one, Student's t": OneVersusOne(
        estimator=ThresholdRegression(noise=t(3), prior=PRIOR)
    ),
}

Folds = list[tuple[np.ndarray, np.ndarray]]


def main() -> None:
    wine = load_wine()
    X, y = wine.data, wine.target
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    console = Console()
    console.print(table(X, y, folds))
    draw(X, wine.target_names[y])
    console.print(
        f"Decision regions in the plane of the first two Fisher components: {PICTURE}",
        soft_wrap=True,
    )


def table(X: np.ndarray, y: np.ndarray, folds: Folds) -> Table:
    """One line a model."""
    found = Table(title="Wine: 178 rows, 13 columns, 3 classes; 5-fold cross-validation")
    found.add_column("model")
    for heading in ("parameters", "accuracy", "log score", "ms per fit"):
        found.add_column(heading, justify="right")
    for name, model in MODELS.items():
        accuracy, log_score = cross_validate(model, X, y, folds)
        found.add_row(
            name,
            parameters(clone(model).fit(X, y)),
            f"{accuracy:.3f}",
            NOTHING if log_score is None else f"{log_score:.3f}",
            f"{milliseconds_per_fit(model, X, y):.2f}",
        )
    return found


def parameters(model: Any) -> str:
    """Their number, where the model or the last step of a pipeline knows it."""
    last = model[-1] if isinstance(model, Pipeline) else model
    return str(getattr(last, "n_parameters_", NOTHING))


def cross_validate(
    model: Any, X: np.ndarray, y: np.ndarray, folds: Folds
) -> tuple[float, float | None]:
    """Accuracy and log score on the rows left out; no log score without probabilities."""
    right = np.empty(len(y))
    log_proba = np.empty(len(y))
    for train, test in folds:
        fitted = clone(model).fit(X[train], y[train])
        right[test] = fitted.predict(X[test]) == y[test]
        if hasattr(fitted, "predict_proba"):
            proba = fitted.predict_proba(X[test])
            log_proba[test] = np.log(proba[np.arange(len(test)), y[test]])
    return right.mean(), log_proba.mean() if hasattr(fitted, "predict_proba") else None


def milliseconds_per_fit(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """The best of several fits to all rows."""
    times: list[float] = []
    while len(times) < FITS and sum(times) < SECONDS:
        fresh = clone(model)
        start = perf_counter()
        fresh.fit(X, y)
        times.append(perf_counter() - start)
    return 1000 * min(times)


def draw(X: np.ndarray, y: np.ndarray) -> None:
    """Full covariances, one a class, fitted in the plane of the first two Fisher components."""
    plane = FisherDiscriminant(n_components=2).fit(X, y)
    Z = plane.transform(X)
    ax = decision_regions(GaussianClassifier(covariance="full").fit(Z, y), Z, y)
    ax.set(
        title="Wine: the class chosen, paler where it is less sure",
        xlabel="first Fisher component",
        ylabel="second Fisher component",
    )
    PICTURE.parent.mkdir(exist_ok=True)
    ax.figure.savefig(PICTURE, dpi=150)


if __name__ == "__main__":
    mpl.use("agg")
    main()
