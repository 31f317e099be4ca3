"""From probabilities to actions: which tumours to operate on, and what that costs.

569 breast tumours; the data come with scikit-learn. Waiting with a malignant tumour costs 50,
operating on a benign one 1, and another test 0.4.
"""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
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


def main() -> None:
    data = load_breast_cancer(as_frame=True)
    X, y = data.data[COLUMNS], data.target_names[data.target]
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=1 / 3, random_state=0)
    models = {
        "Bayesian logistic": BayesianLogisticRegression(random_state=0),
        "logistic": LogisticRegression(),
        "Gaussian": GaussianClassifier(covariance="full"),
        "naive Bayes": NaiveBayes(),
        "naive Bayes, calibrated": CalibratedClassifier(NaiveBayes()),
    }
    table = compare(models, X_train, y_train)
    print(f"0. Five-fold cross-validation\n\n{table}")

    model = BayesianLogisticRegression(random_state=0).fit(X_train, y_train)
    print(f"\n1. Checks\n\n{model.check(X_test, y_test)}")
    rule = DecidingClassifier(model, loss=LOSS, reject_cost=TEST).fit(X_train, y_train)
    print(f"\n2. Decisions\n\n{rule.decide(X_test)}")
    print(f"realised loss: {-rule.score(X_test, y_test):.3f} per row")
    print(f"\n3. Explanation of the first one\n\n{model.explain(X_test[:1])}\n")

    PICTURES.mkdir(exist_ok=True)
    proba, actions = model.predict_proba(X_test), rule.predict(X_test)
    costs: dict[str, Any] = {"loss": LOSS, "reject_cost": TEST}
    save("decisions_calibration", plots.calibration(y_test, proba, label="malignant"))
    save(
        "decisions_rejecting",
        plots.reject_curve(y_test, proba, classes=model.classes_, **costs),
    )
    save("decisions_confusion", plots.confusion(y_test, actions, **costs))


def save(name: str, ax: plt.Axes) -> None:
    path = PICTURES / f"{name}.png"
    ax.figure.savefig(path, dpi=150)
    plt.close(ax.figure)
    print(path)


if __name__ == "__main__":
    mpl.use("agg")
    main()
