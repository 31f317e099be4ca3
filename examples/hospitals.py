"""Three hospitals, one model, and no row leaves: what travels is sums, or a posterior.

The 569 breast tumours that come with scikit-learn are dealt out to three sites. The smallest has
three malignant tumours and none of coarse texture. Each hands out bytes alone: a pickle of sums
over its rows, or of the posterior that it was sent and has learnt more for.
"""

import pickle
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer

from posteriori import (
    BayesianLogisticRegression,
    FisherDiscriminant,
    GaussianClassifier,
    LeastSquaresClassifier,
    NaiveBayes,
)
from posteriori.errors import PosterioriWarning

NUMBERS = ["mean radius", "mean smoothness", "mean concavity", "worst symmetry"]
FEW = 10
"""Rows of a class below which its sums come close to being rows."""

console = Console(soft_wrap=True)


@dataclass(frozen=True, eq=False)
class Hospital:
    """A site that owns its rows; its methods hand out bytes, and no row is in them."""

    name: str
    rows: pd.DataFrame
    labels: np.ndarray

    def sums(self, kind: type[Any]) -> bytes:
        """The statistics of the rows for a model of this kind."""
        with warnings.catch_warnings():
            # Few rows may not make a model yet; their sums are all that is wanted.
            warnings.simplefilter("ignore", PosterioriWarning)
            return pickle.dumps(kind().partial_fit(self.rows, self.labels).statistics_)

    def begin(self) -> bytes:
        """A posterior from these rows alone."""
        return pickle.dumps(BayesianLogisticRegression().fit(self.rows, self.labels))

    def learn(self, letter: bytes) -> bytes:
        """The posterior that was sent, after these rows too: what it was is their prior."""
        return pickle.dumps(pickle.loads(letter).update(self.rows, self.labels))

    def entries_in(self, letter: bytes) -> int:
        """How many numbers of these rows stand in a letter, bit for bit."""
        numbers = np.unique(self.rows[NUMBERS].to_numpy())
        return sum(number.tobytes() in letter for number in numbers[numbers != 0])


def main() -> None:
    X, y = tumours()
    hospitals = deal_out(X, y)
    sums = send_sums(hospitals)
    fit_together(sums, X, y)
    tell_what_sums_reveal(hospitals, sums[GaussianClassifier])
    pass_on_a_posterior(hospitals, X, y)


def tumours() -> tuple[pd.DataFrame, np.ndarray]:
    """Four measurements, and the texture in three levels."""
    data = load_breast_cancer(as_frame=True)
    texture = pd.cut(
        data.data["mean texture"], [0, 16, 24, 99], labels=["fine", "medium", "coarse"]
    )
    X = data.data[NUMBERS].assign(texture=texture.astype(str))
    return X, data.target_names[data.target]


def deal_out(X: pd.DataFrame, y: np.ndarray) -> list[Hospital]:
    """Most tumours to the city, fewer to the town, and few to the village, hardly one malignant."""
    order = np.random.default_rng(0).permutation(len(X))
    ill, coarse = y[order] == "malignant", X["texture"].to_numpy()[order] == "coarse"
    village = np.concatenate([order[ill & ~coarse][:3], order[~ill & ~coarse][:47]])
    others = order[~np.isin(order, village)]
    places = {"city": others[:350], "town": others[350:], "village": village}
    return [Hospital(name, X.iloc[rows], y[rows]) for name, rows in places.items()]


def say(title: str, text: str) -> None:
    console.print(f"\n[bold]{title}[/bold]\n")
    console.print(text, markup=False, highlight=False)


def send_sums(hospitals: list[Hospital]) -> dict[type[Any], list[Any]]:
    """What each site sends for models of each kind, and how much that is."""
    kinds = (GaussianClassifier, LeastSquaresClassifier, NaiveBayes)
    letters = {kind: [site.sums(kind) for site in hospitals] for kind in kinds}
    table = Table(title="1. What leaves a hospital: sums over its rows, in bytes")
    for heading in (
        "hospital",
        "tumours",
        "malignant",
        "bytes of rows",
        "of sums",
        "entries found",
    ):
        table.add_column(heading, justify="left" if heading == "hospital" else "right")
    for site, letter in zip(hospitals, letters[GaussianClassifier], strict=True):
        table.add_row(
            site.name,
            str(len(site.rows)),
            str((site.labels == "malignant").sum()),
            f"{len(pickle.dumps((site.rows, site.labels))):,}",
            f"{len(letter):,}",
            str(site.entries_in(letter)),
        )
    console.print()
    console.print(table)
    console.print("Entries found: numbers of its rows that stand in what a hospital sends.")
    return {kind: [pickle.loads(one) for one in sent] for kind, sent in letters.items()}


def fit_together(sums: dict[type[Any], list[Any]], X: pd.DataFrame, y: np.ndarray) -> None:
    """The models of all sums, beside those of all rows, which no hospital could fit."""
    lines = []
    for kind in (GaussianClassifier, FisherDiscriminant, LeastSquaresClassifier, NaiveBayes):
        # Fisher's discriminant needs what Gaussian classes need.
        parts = sums[GaussianClassifier if kind is FisherDiscriminant else kind]
        together, pooled = kind.from_statistics(sum(parts)), kind().fit(X, y)
        gap = abs(together.decision_function(X) - pooled.decision_function(X)).max()
        lines.append(f"{kind.__name__}: {together.score(X, y):.1%} right, {bound(gap)} apart")
    say(
        "2. One model of all three, and how far its answers are from the fit to all rows",
        "\n".join(lines) + "\n\nThe village never saw a coarse texture: levels and classes that a "
        "site lacks are filled in where sums are added.",
    )


def bound(gap: float) -> str:
    """The least power of ten above a small number: the last digits depend on the machine."""
    return f"less than 1e{int(np.ceil(np.log10(gap)))}" if gap else "nothing"


def tell_what_sums_reveal(hospitals: list[Hospital], sums: list[Any]) -> None:
    """Which classes of a site are so small that their sums come close to being rows."""
    found = [
        f"The {site.name} sends the sums of {count:.0f} {label} tumours."
        for site, sent in zip(hospitals, sums, strict=True)
        for label, count in zip(sent.classes, sent.count, strict=True)
        if count < FEW
    ]
    village, sent = hospitals[-1], sums[-1]
    ill = village.rows.loc[village.labels == "malignant", NUMBERS].to_numpy()
    k = sent.classes.tolist().index("malignant")
    third = sent.count[k] * sent.mean[k, : len(NUMBERS)] - ill[:-1].sum(axis=0)
    error = abs(third / ill[-1] - 1).max()
    say(
        "3. What the sums reveal",
        "Of each class: how many tumours, the mean of every column, the shares of the levels; and "
        "how columns vary together. Of a hundred tumours that says next to nothing about any one "
        "of them. Of few it does:\n\n"
        + "\n".join(found)
        + "\n\nWho knows two of three malignant tumours has the "
        f"third by subtraction: its numbers come out with a relative error of {bound(error)}. The "
        "sums of one tumour are the tumour, and so is the difference of sums sent before and after "
        "it came. Hold back classes with few rows; or let the sums go round, each site adding its "
        "own, so that only those of the first are seen alone.",
    )


def pass_on_a_posterior(hospitals: list[Hospital], X: pd.DataFrame, y: np.ndarray) -> None:
    """Logistic regression has no such sums: its posterior goes from site to site instead."""
    table = Table(title="4. A posterior on its way")
    for heading in ("after", "tumours", "coefficient of radius", "bytes", "entries found"):
        table.add_column(heading, justify="left" if heading == "after" else "right")
    letters: list[bytes] = []
    for site in hospitals:
        letters.append(site.learn(letters[-1]) if letters else site.begin())
        seen = sum(len(each.rows) for each in hospitals[: len(letters)])
        known = sum(each.entries_in(letters[-1]) for each in hospitals)
        table.add_row(
            site.name, str(seen), radius(letters[-1]), f"{len(letters[-1]):,}", str(known)
        )
    pooled = BayesianLogisticRegression().fit(X, y)
    table.add_row("all rows at once", str(len(X)), radius(pickle.dumps(pooled)), "", "")
    console.print()
    console.print(table)
    compare_posteriors(pickle.loads(letters[0]), pickle.loads(letters[-1]), pooled, X)


def radius(letter: bytes) -> str:
    posterior = pickle.loads(letter).posterior_
    return f"{posterior.mean[1]:.3f} ± {posterior.covariance[1, 1] ** 0.5:.3f}"


def compare_posteriors(
    first: BayesianLogisticRegression,
    last: BayesianLogisticRegression,
    pooled: BayesianLogisticRegression,
    X: pd.DataFrame,
) -> None:
    """How far the posterior that travelled is from that of all rows, and why."""
    deviation = np.sqrt(np.diagonal(pooled.posterior_.covariance))
    steps = abs(last.posterior_.mean - pooled.posterior_.mean) / deviation
    gap = abs(last.predict_proba(X) - pooled.predict_proba(X)).max()
    console.print(
        f"\nThe posterior that travelled ends up to {steps.max():.2f} standard deviations from "
        f"that of all rows, its probabilities up to {gap:.3f}. Unlike sums it is not exact: what "
        "each site hands on is a Gaussian, Laplace's approximation. (The prior is the one that the "
        f"city's rows chose, of precision {first.prior_.precision:.2f}; all rows would have chosen "
        f"{pooled.prior_.precision:.2f}.) So begin where there are most rows, and with fit: "
        "partial_fit keeps the first rows, in pickles too. A posterior tells less of a tumour than "
        "sums do, but who has it from before and after a site with a handful of rows can tell "
        "something of these.",
        highlight=False,
    )


if __name__ == "__main__":
    main()
