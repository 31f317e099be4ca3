"""From probabilities to actions: whom to operate on, and what that costs.

569 breast tumours; the data come with scikit-learn. To wait with a malignant one costs 50, to
operate on a benign one 1, and to ask for another test 0.4.
"""

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
from rich.console import Console
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from posteriori import (
    BayesianLogisticRegression,
    CalibratedClassifier,
    DecidingClassifier,
    GaussianClassifier,
    LogisticRegression,
    NaiveBayes,
    compare,
)
from posteriori.report import plots

PICTURES = Path("demo")
COLUMNS = ["mean radius", "mean texture", "mean smoothness", "mean symmetry"]
LOSS = {"malignant": {"operate": 0, "wait": 50}, "benign": {"operate": 1, "wait": 0}}
TEST = 0.4

console = Console(soft_wrap=True)


def main() -> None:
    data = load_breast_cancer(as_frame=True)
    X, y = data.data[COLUMNS], data.target_names[data.target]
    fitted, judged, labels, truth = train_test_split(X, y, test_size=1 / 3, random_state=0)
    models = {
        "Bayesian logistic": BayesianLogisticRegression(),
        "logistic": LogisticRegression(),
        "Gaussian": GaussianClassifier(covariance="full"),
        "naive Bayes": NaiveBayes(),
        "naive Bayes, calibrated": CalibratedClassifier(NaiveBayes()),
    }
    table = compare(models, fitted, labels)
    say("0. Which model: five folds", str(table))

    model = BayesianLogisticRegression().fit(fitted, labels)
    say("1. What may be wrong with it", str(model.check(judged, truth)))
    rule = DecidingClassifier(model, loss=LOSS, reject_cost=TEST).fit(fitted, labels)
    say("2. What to do", f"{rule.decide(judged)}\nrealised: {-rule.score(judged, truth):.3f} a row")
    say("3. Why, for the first of them", str(model.explain(judged[:1])))

    mpl.use("agg")
    PICTURES.mkdir(exist_ok=True)
    proba = model.predict_proba(judged)
    save("decisions_calibration", plots.calibration(truth, proba, label="malignant"))
    save(
        "decisions_rejecting",
        plots.reject_curve(truth, proba, loss=LOSS, reject_cost=TEST, classes=model.classes_),
    )
    actions = rule.predict(judged)
    save("decisions_confusion", plots.confusion(truth, actions, loss=LOSS, reject_cost=TEST))


def say(title: str, text: str) -> None:
    console.print(f"\n[bold]{title}[/bold]\n")
    console.print(text, markup=False, highlight=False)


def save(name: str, ax: plt.Axes) -> None:
    ax.figure.savefig(PICTURES / f"{name}.png", dpi=150)
    plt.close(ax.figure)
    console.print(f"{PICTURES / name}.png")


if __name__ == "__main__":
    main()
