"""What the tests of plots share."""

import matplotlib as mpl

mpl.use("agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="session")
def iris():
    X, y = load_iris(return_X_y=True, as_frame=True)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


@pytest.fixture(scope="session")
def mails():
    """Columns of all kinds, and two classes."""
    random = np.random.default_rng(1)
    y = np.where(random.random(200) < 0.4, "spam", "ham")
    X = {
        "links": random.poisson(np.where(y == "spam", 4.0, 1.0)),
        "sender": np.where(random.random(200) < 0.6, "unknown", "friend"),
        "wait": random.exponential(np.where(y == "spam", 1.0, 3.0)),
        "html": random.random(200) < np.where(y == "spam", 0.9, 0.4),
        "size": random.normal(size=200),
    }
    return pd.DataFrame(X), y


@pytest.fixture(scope="session")
def legend():
    """The words in the legend of Axes."""
    return lambda ax: [text.get_text() for text in ax.get_legend().get_texts()]
