"""What all pictures have in common."""

import inspect

import matplotlib as mpl

mpl.use("agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import load_iris

from posteriori import BayesianLogisticRegression, GaussianClassifier
from posteriori.report import plots
from posteriori.report.trace import plot_trace

X, CODES = load_iris(return_X_y=True)
y = np.array(["setosa", "versicolor", "virginica"])[CODES]
GAUSSIAN = GaussianClassifier().fit(X, y)
BAYES = BayesianLogisticRegression(prior=1.0).fit(X, y)
PROBA = BAYES.predict_proba(X)

DRAWN = {
    "calibration": lambda ax: plots.calibration(y, PROBA, label="versicolor", ax=ax),
    "class_densities": lambda ax: plots.class_densities(GAUSSIAN, X, y, column=2, ax=ax),
    "confusion": lambda ax: plots.confusion(y, BAYES.predict(X), loss=1 - np.eye(3), ax=ax),
    "convergence": lambda ax: plots.convergence(BAYES, ax=ax),
    "decision_regions": lambda ax: plots.decision_regions(
        BAYES, X, y, columns=(2, 3), resolution=20, ax=ax
    ),
    "density_ellipses": lambda ax: plots.density_ellipses(GAUSSIAN, X, y, columns=(0, 1), ax=ax),
    "evidence_curve": lambda ax: plots.evidence_curve(X, y, precisions=[0.1, 1.0], ax=ax),
    "forest": lambda ax: plots.forest(BAYES, ax=ax),
    "posterior_surface": lambda ax: plots.posterior_surface(
        BAYES, X, y, label="virginica", plane="fisher", resolution=20, ax=ax
    ),
    "prior_and_posterior": lambda ax: plots.prior_and_posterior(
        BAYES, "x2", label="virginica", ax=ax
    ),
    "reject_curve": lambda ax: plots.reject_curve(y, PROBA, reject_cost=0.2, ax=ax),
    "residuals": lambda ax: plots.residuals(BAYES, X, y, label="versicolor", ax=ax),
}


def test_every_picture_is_among_these():
    functions = {name for name in plots.__all__ if inspect.isfunction(getattr(plots, name))}
    assert functions - {"class_colours"} == set(DRAWN)
    assert plots.convergence is plot_trace


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_is_drawn_on_the_axes_given_which_it_names_and_gives_back(name):
    _, ax = plt.subplots()
    assert DRAWN[name](ax) is ax
    assert len(plt.get_fignums()) == 1
    assert inspect.signature(getattr(plots, name)).parameters["ax"].kind.name == "KEYWORD_ONLY"
    assert ax.get_xlabel()
    assert ax.get_ylabel() or name == "forest"  # where the terms name themselves


@pytest.mark.parametrize("name", DRAWN)
def test_all_of_a_picture_lies_in_a_figure_of_640_x_480_points(name):
    figure, ax = plt.subplots(figsize=(6.4, 4.8), layout="constrained")
    DRAWN[name](ax)
    figure.draw_without_rendering()
    drawn = figure.get_tightbbox()  # in inches
    assert min(drawn.x0, drawn.y0) >= -0.01
    assert drawn.x1 <= 6.41
    assert drawn.y1 <= 4.81
