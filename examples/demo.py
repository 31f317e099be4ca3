"""Every classifier on the wine data: 178 wines of three cultivars, 13 measurements.

Scores are those of 5-fold cross-validation. The cultivars can be separated, so the models fitted by
likelihood have a prior.
"""

from pathlib import Path
from typing import Any

import matplotlib as mpl
from scipy.stats import t
from sklearn.base import clone
from sklearn.datasets import load_wine
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
    compare,
)
from posteriori.report.plots import decision_regions

PICTURE = Path("demo") / "decision_regions.png"
PRIOR = GaussianPrior(precision=1.0, units="standardised")
GROUPS = [["class_0", "class_1"], ["class_2"]]
STUDENT = ThresholdRegression(noise=t(3), prior=PRIOR)

MODELS: dict[str, Any] = {
    "Least squares": LeastSquaresClassifier(),
    "Fisher discriminant": FisherDiscriminant(n_components=2),
    "Gaussian, shared covariance": GaussianClassifier(covariance="shared"),
    "Gaussian, two classes share": GaussianClassifier(covariance=GROUPS),
    "Gaussian, full covariances": GaussianClassifier(covariance="full"),
    "Gaussian, full, shrunk": GaussianClassifier(covariance="full", shrinkage="auto"),
    "Gaussian, diagonal": GaussianClassifier(covariance="diagonal"),
    "Gaussian, isotropic": GaussianClassifier(covariance="isotropic"),
    "Naive Bayes": NaiveBayes(family="auto"),
    "Logistic": LogisticRegression(prior=PRIOR),
    "Logistic, Jeffreys prior": LogisticRegression(prior="jeffreys"),
    "Logistic, label noise": LogisticRegression(prior=PRIOR, label_noise=0.02),
    "Logistic, Gaussian basis": make_pipeline(GaussianBasis(), LogisticRegression(prior=PRIOR)),
    "Logistic, sigmoid basis": make_pipeline(SigmoidBasis(), LogisticRegression(prior=PRIOR)),
    "GLM, categorical": GLM(family="categorical", prior=PRIOR),
    "Perceptron": Perceptron(random_state=0),
    "Perceptron, averaged": Perceptron(averaged=True, random_state=0),
    "Adaline": Adaline(random_state=0),
    "One versus rest, probit": OneVersusRest(estimator=ProbitRegression(prior=PRIOR)),
    "One versus one, Student's t": OneVersusOne(estimator=STUDENT),
}


def main() -> None:
    wine = load_wine(as_frame=True)
    X, y = wine.data, wine.target_names[wine.target]
    table = compare(MODELS, X, y)[["model", "accuracy", "log_score"]]
    table["parameters"] = [parameters(clone(MODELS[name]).fit(X, y)) for name in table["model"]]
    print("Wine: 178 rows, 13 columns, 3 classes; 5-fold cross-validation\n")
    print(table.round(3).to_string(index=False))
    draw(X, y)
    print(f"\nDecision regions in the plane of the first two Fisher components: {PICTURE}")


def parameters(model: Any) -> int | None:
    """Their number, of the last step of a pipeline; None where a model does not have it."""
    last = model[-1] if isinstance(model, Pipeline) else model
    return getattr(last, "n_parameters_", None)


def draw(X: Any, y: Any) -> None:
    """Full covariances, fitted in the plane of the first two Fisher components."""
    Z = FisherDiscriminant(n_components=2).fit(X, y).transform(X)
    ax = decision_regions(GaussianClassifier(covariance="full").fit(Z, y), Z, y)
    ax.set(
        title="Wine: predicted class, paler where it is less certain",
        xlabel="first Fisher component",
        ylabel="second Fisher component",
    )
    PICTURE.parent.mkdir(exist_ok=True)
    ax.figure.savefig(PICTURE, dpi=150)


if __name__ == "__main__":
    mpl.use("agg")
    main()
