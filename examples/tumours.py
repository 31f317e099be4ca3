"""One analysis, from the data to probabilities with intervals: which tumours are malignant?

569 breast tumours with 30 measurements each; the data come with scikit-learn. Two thirds are used
for training.
"""

import warnings
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from scipy.stats import t
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from posteriori import (
    GaussianBasis,
    GaussianPrior,
    LogisticRegression,
    ProbitRegression,
    ThresholdRegression,
)
from posteriori.report.plots import decision_regions

PICTURES = Path("demo")
COLUMNS = ["mean radius", "mean texture", "mean smoothness"]


def main() -> None:
    data = load_breast_cancer(as_frame=True)
    X, y = data.data, data.target_names[data.target]
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=1 / 3, random_state=0)
    fit_all_columns(X_train, y_train)
    model = LogisticRegression().fit(X_train[COLUMNS], y_train)
    print(f"\n1. Three columns\n\n{model.summary()}")
    predict(model, X_test[COLUMNS], y_test)
    flip_labels(X_train[COLUMNS], y_train)
    PICTURES.mkdir(exist_ok=True)
    draw_curves(X_train[["mean radius"]], y_train)
    draw_regions(X_train[COLUMNS[:2]], y_train)


def fit_all_columns(X: pd.DataFrame, y: np.ndarray) -> None:
    """Maximum likelihood in all columns has no solution; with Jeffreys prior there is one."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = LogisticRegression().fit(X, y)
    firth = LogisticRegression(prior="jeffreys").fit(X, y)
    print("0. All 30 columns\n")
    for each in caught:
        print(f"{each.category.__name__}: {each.message}")
    print(f"\nseparation_.kind: {model.separation_.kind}. Largest standardised coefficient:")
    for name, fit in (("maximum likelihood", model), ("prior='jeffreys'", firth)):
        print(f"{name}: {abs(fit.coef_ * X.std().to_numpy()).max():,.1f}")


def predict(model: LogisticRegression, X: pd.DataFrame, truth: np.ndarray) -> None:
    """Probabilities and intervals; accuracy by whether the interval contains 0.5."""
    ends = model.predict_interval(X)
    table = pd.DataFrame(
        {"probability": model.predict_proba(X)[:, 1], "low": ends[:, 0], "high": ends[:, 1]},
        index=X.index,
    ).assign(truth=truth)
    correct = model.predict(X) == truth
    undecided = ((ends[:, 0] < 0.5) & (ends[:, 1] > 0.5)).astype(bool)
    print(f"\n2. Probability of being malignant\n\n{table.head(6).round(3)}\n")
    print(f"{(~undecided).sum()} intervals exclude 0.5: accuracy {correct[~undecided].mean():.1%}")
    print(f"{undecided.sum()} intervals contain 0.5: accuracy {correct[undecided].mean():.1%}")


def flip_labels(X: pd.DataFrame, y: np.ndarray) -> None:
    """Some labels are flipped; the fit estimates how many, and finds suspects."""
    flipped = np.random.default_rng(0).random(len(y)) < 0.05
    noisy = np.where(flipped, np.where(y == "benign", "malignant", "benign"), y)
    model = LogisticRegression(label_noise="estimate").fit(X, noisy)
    suspects = np.argsort(-model.mislabelled_probability(X, noisy))[:10]
    print(f"\n3. Wrong labels\n\n{flipped.mean():.1%} of the labels were flipped.")
    print(f"Estimated rate: {model.label_noise_:.1%} ± {model.label_noise_error_:.1%}.")
    print(f"{flipped[suspects].sum()} of the ten most suspect labels were flipped.\n")


def draw_curves(X: pd.DataFrame, y: np.ndarray) -> None:
    """The probability as a function of one column, by three links."""
    radius = X["mean radius"].to_numpy()
    new = pd.DataFrame({"mean radius": np.linspace(radius.min(), radius.max(), 300)})
    _, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for name, model, line in (
        ("logistic, with 95 % interval", LogisticRegression(), "-"),
        ("probit", ProbitRegression(), "--"),
        ("Student's t, 2 degrees of freedom", ThresholdRegression(noise=t(2)), ":"),
    ):
        model.fit(X, y)
        ax.plot(new, model.predict_proba(new)[:, 1], line, label=name)
        if line == "-":
            ax.fill_between(new["mean radius"], *model.predict_interval(new).T, alpha=0.25, lw=0)
    jitter = np.random.default_rng(0).uniform(-0.03, 0.03, len(X))
    ax.scatter(
        radius, np.where(y == "malignant", 1.06, -0.06) + jitter, s=10, alpha=0.5, color="0.4"
    )
    ax.set(xlabel="mean radius", ylabel="probability of being malignant")
    ax.legend(loc="center right")
    save("tumour_curves", ax)


def draw_regions(X: pd.DataFrame, y: np.ndarray) -> None:
    """A curved boundary by Gaussian basis functions."""
    logistic = LogisticRegression(prior=GaussianPrior(precision=1.0, units="standardised"))
    model = make_pipeline(GaussianBasis(centres=15, width=1.5), logistic).fit(X, y)
    ax = decision_regions(model, X, y)
    ax.set_title("Logistic regression on 15 Gaussian basis functions")
    save("tumour_regions", ax)


def save(name: str, ax: Axes) -> None:
    path = PICTURES / f"{name}.png"
    ax.figure.savefig(path, dpi=150)
    plt.close(ax.figure)
    print(path)


if __name__ == "__main__":
    mpl.use("agg")
    main()
