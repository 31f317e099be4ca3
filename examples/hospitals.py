"""Three hospitals fit one model without exchanging rows.

The 569 breast tumours that come with scikit-learn are divided among three sites. The smallest has
three malignant tumours, and none with a coarse texture. A site sends bytes: statistics of its rows,
or a posterior.
"""

import pickle
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
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


@dataclass(frozen=True, eq=False)
class Hospital:
    """A site; its methods return bytes that contain no row."""

    name: str
    X: pd.DataFrame
    y: np.ndarray

    def statistics(self, model: type[Any]) -> bytes:
        """The statistics of the rows for a kind of model."""
        with warnings.catch_warnings():
            # Few rows may not determine a model; only their statistics are needed.
            warnings.simplefilter("ignore", PosterioriWarning)
            return pickle.dumps(model().partial_fit(self.X, self.y).statistics_)

    def update(self, message: bytes | None) -> bytes:
        """The posterior after these rows, given the posterior of the sites before."""
        if message is None:
            return pickle.dumps(BayesianLogisticRegression(random_state=0).fit(self.X, self.y))
        return pickle.dumps(pickle.loads(message).update(self.X, self.y))

    def n_revealed(self, message: bytes) -> int:
        """How many numbers of the rows occur in a message, bit by bit."""
        numbers = np.unique(self.X[NUMBERS].to_numpy())
        return sum(number.tobytes() in message for number in numbers[numbers != 0])


def main() -> None:
    data = load_breast_cancer(as_frame=True)
    texture = pd.cut(
        data.data["mean texture"], [0, 16, 24, 99], labels=["fine", "medium", "coarse"]
    )
    X = data.data[NUMBERS].assign(texture=texture.astype(str))
    y = data.target_names[data.target]
    hospitals = divide(X, y)
    merge_statistics(hospitals, X, y)
    pass_posterior(hospitals, X, y)


def divide(X: pd.DataFrame, y: np.ndarray) -> list[Hospital]:
    """350 rows to the city, 169 to the town, 50 to the village."""
    order = np.random.default_rng(0).permutation(len(X))
    malignant, coarse = y[order] == "malignant", X["texture"].to_numpy()[order] == "coarse"
    village = np.concatenate([order[malignant & ~coarse][:3], order[~malignant & ~coarse][:47]])
    others = order[~np.isin(order, village)]
    sites = {"city": others[:350], "town": others[350:], "village": village}
    return [Hospital(name, X.iloc[rows], y[rows]) for name, rows in sites.items()]


def merge_statistics(hospitals: list[Hospital], X: pd.DataFrame, y: np.ndarray) -> None:
    """Models of the added statistics, compared with fits to all rows."""
    print("1. Statistics are added; the result equals a fit to all rows\n")
    for model in (GaussianClassifier, FisherDiscriminant, LeastSquaresClassifier, NaiveBayes):
        messages = [site.statistics(model) for site in hospitals]
        revealed = sum(
            site.n_revealed(message) for site, message in zip(hospitals, messages, strict=True)
        )
        merged = model.from_statistics(sum(map(pickle.loads, messages)))
        pooled = model().fit(X, y)
        gap = abs(merged.decision_function(X) - pooled.decision_function(X)).max()
        size = max(map(len, messages))
        print(
            f"{model.__name__}: accuracy {merged.score(X, y):.1%}, "
            f"{'equal to 1e-10' if gap < 1e-10 else f'{gap:.0e} apart'}, "
            f"messages of at most {size:,} bytes, {revealed} numbers of rows in them"
        )
    village = hospitals[-1]
    few = pickle.loads(village.statistics(GaussianClassifier))
    counts = dict(zip(few.classes.tolist(), few.count.tolist(), strict=True))
    print(
        f"\nThe village has {counts['malignant']:.0f} malignant tumours. Whoever knows two of them "
        "can compute the third from their mean: do not send statistics of classes with few rows."
    )


def pass_posterior(hospitals: list[Hospital], X: pd.DataFrame, y: np.ndarray) -> None:
    """The posterior of a logistic regression goes from site to site."""
    print("\n2. A posterior goes from site to site (an approximation)\n")
    message: bytes | None = None
    for site in hospitals:
        message = site.update(message)
        model = pickle.loads(message)
        revealed = sum(each.n_revealed(message) for each in hospitals)
        print(f"{site.name}: radius {radius(model)}, {revealed} numbers of rows in the message")
    pooled = BayesianLogisticRegression(random_state=0).fit(X, y)
    gap = abs(model.predict_proba(X) - pooled.predict_proba(X)).max()
    print(f"all rows: radius {radius(pooled)}; probabilities differ by {gap:.3f} at most")


def radius(model: BayesianLogisticRegression) -> str:
    """The coefficient of the radius."""
    posterior = model.posterior_
    return f"{posterior.mean[1]:.3f} ± {posterior.standard_deviation[1]:.3f}"


if __name__ == "__main__":
    main()
