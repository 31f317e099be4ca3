"""One analysis, from data to probabilities with intervals: which tumours are malignant?

569 breast tumours with 30 measurements each; the data come with scikit-learn. Two thirds are fitted
to, and one third is judged.
"""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from rich.console import Console
from rich.table import Table
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
from posteriori.report.plots import COLOURS, MARKERS, convergence, decision_regions

PICTURES = Path("demo")
COLUMNS = ["mean radius", "mean texture", "mean smoothness"]
SHOWN = 8

console = Console(soft_wrap=True)


def main() -> None:
    data = load_breast_cancer(as_frame=True)
    X, y = data.data, data.target_names[data.target]
    fitted, judged, labels, truth = train_test_split(X, y, test_size=1 / 3, random_state=0)
    with_all_columns(fitted, labels)
    model = LogisticRegression().fit(fitted[COLUMNS], labels)
    say("1. Three columns: the table that statisticians read", str(model.summary()))
    judge(model, judged[COLUMNS], truth)
    doubt_the_labels(fitted[COLUMNS], labels)
    PICTURES.mkdir(exist_ok=True)
    save("tumour_curves", lambda ax: draw_curves(ax, fitted[["mean radius"]], labels))
    save("tumour_regions", lambda ax: draw_regions(ax, fitted[COLUMNS[:2]], labels))
    save("tumour_trace", lambda ax: draw_trace(ax, fitted, labels))


def say(title: str, text: str) -> None:
    console.print(f"\n[bold]{title}[/bold]\n")
    console.print(text, markup=False, highlight=False)


def with_all_columns(X: pd.DataFrame, y: np.ndarray) -> None:
    """Maximum likelihood in all columns has no answer, and says so; a prior has one."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = LogisticRegression().fit(X, y)
    firth = LogisticRegression(prior="jeffreys").fit(X, y)
    say(
        "0. All 30 columns: more than the likelihood can bear",
        "\n".join(f"{each.category.__name__}: {each.message}" for each in caught)
        + f"\n\nseparation_.kind: {model.separation_.kind}. Largest coefficient, in standard "
        f"deviations of its column: {largest(model, X):,.0f} by maximum likelihood, "
        f"{largest(firth, X):.1f} with prior='jeffreys'.",
    )


def largest(model: LogisticRegression, X: pd.DataFrame) -> float:
    return float(abs(model.coef_ * X.std().to_numpy()).max())


def judge(model: LogisticRegression, X: pd.DataFrame, truth: np.ndarray) -> None:
    """Probabilities of new rows; those whose interval leaves the class open are set apart."""
    probability, ends = model.predict_proba(X)[:, 1], model.predict_interval(X)
    right = model.predict(X) == truth
    is_open = (ends[:, 0] < 0.5) & (ends[:, 1] > 0.5)
    table = Table(title="2. New tumours: probability of being malignant")
    for heading in ("tumour", "probability", "95 % interval", "truth", ""):
        table.add_column(heading, justify="left" if heading == "truth" else "right")
    for i in np.flatnonzero(is_open)[: SHOWN // 2].tolist() + list(range(SHOWN // 2)):
        table.add_row(
            str(X.index[i]),
            f"{probability[i]:.3f}",
            f"{ends[i, 0]:.3f} to {ends[i, 1]:.3f}",
            truth[i],
            "look again" if is_open[i] else "",
        )
    console.print()
    console.print(table)
    console.print(
        f"{len(X)} tumours: of {(~is_open).sum()} whose interval lies on one side of ½, "
        f"{right[~is_open].mean():.1%} are judged right; of the {is_open.sum()} others, "
        f"{right[is_open].mean():.0%}.",
        highlight=False,
    )


def doubt_the_labels(X: pd.DataFrame, y: np.ndarray) -> None:
    """One label in twenty is flipped; the fit says how many, and which."""
    flipped = np.random.default_rng(0).random(len(y)) < 0.05
    found = np.where(flipped, np.where(y == "benign", "malignant", "benign"), y)
    model = LogisticRegression(label_noise="estimate").fit(X, found)
    suspects = np.argsort(-model.mislabelled_probability(X, found))[:10]
    say(
        "3. The same with wrong labels",
        f"{flipped.mean():.1%} of the labels were flipped on purpose; the fit finds "
        f"{model.label_noise_:.1%} ± {model.label_noise_error_:.1%}. Of the ten labels that it "
        f"suspects most, {flipped[suspects].sum()} are among those flipped.",
    )


def save(name: str, draw: Callable[[Axes], None]) -> None:
    fig, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
    draw(ax)
    path = PICTURES / f"{name}.png"
    fig.savefig(path, dpi=150)
    plt.close(fig)
    console.print(f"{ax.get_title()}: {path}", highlight=False)


def draw_curves(ax: Axes, X: pd.DataFrame, y: np.ndarray) -> None:
    """Three curves of the probability in one column, the logistic one with its interval."""
    new = pd.DataFrame({"mean radius": np.linspace(X.min().item(), X.max().item(), 300)})
    curves: list[tuple[str, Any, str, str]] = [
        ("logistic, with its 95 % interval", LogisticRegression(), "-", COLOURS[0]),
        ("probit", ProbitRegression(), "--", COLOURS[5]),
        ("Student's noise, 2 degrees", ThresholdRegression(noise=t(2)), ":", "black"),
    ]
    for name, model, line, colour in curves:
        model.fit(X, y)
        ax.plot(new, model.predict_proba(new)[:, 1], line, color=colour, label=name)
    logistic = curves[0][1]
    ax.fill_between(new["mean radius"], *logistic.predict_interval(new).T, alpha=0.25, lw=0)
    for k, (label, height, side) in enumerate((("benign", -0.06, 0.99), ("malignant", 1.06, 0.01))):
        radius = X.loc[y == label, "mean radius"]
        jitter = np.random.default_rng(0).uniform(-0.03, 0.03, len(radius))
        ax.scatter(
            radius, height + jitter, s=12, alpha=0.6, color=COLOURS[k], marker=MARKERS[k], lw=0
        )
        where = {"xycoords": ("axes fraction", "data"), "va": "center"}
        ax.annotate(label, (side, height), ha="left" if k else "right", **where)
    ax.set(
        title="How the probability of being malignant rises with the radius",
        xlabel="mean radius",
        ylabel="probability of being malignant",
        yticks=np.linspace(0, 1, 6),
    )
    ax.legend(loc="center right")


def draw_regions(ax: Axes, X: pd.DataFrame, y: np.ndarray) -> None:
    """A boundary that is curved, by Gaussian basis functions."""
    held = LogisticRegression(prior=GaussianPrior(precision=1.0, units="standardised"))
    decision_regions(
        make_pipeline(GaussianBasis(centres=15, width=1.5), held).fit(X, y), X, y, ax=ax
    )
    ax.set_title("Logistic regression on 15 Gaussian bumps, paler where it is less sure")


def draw_trace(ax: Axes, X: pd.DataFrame, y: np.ndarray) -> None:
    """How the fit to all columns, with a prior, got to its optimum."""
    model = LogisticRegression(prior=1.0).fit(X, y)
    convergence(model, against="passes", ax=ax)
    ax.set(
        title="Newton's steps in 30 columns, with prior=1.0",
        ylabel="distance from the optimum",
    )


if __name__ == "__main__":
    mpl.use("agg")
    main()
