"""What all plots have in common."""

from inspect import signature

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris

from posteriori import BayesianLogisticRegression, GaussianClassifier, NaiveBayes
from posteriori.report import plots

X, CODES = load_iris(return_X_y=True)
y = np.array(["setosa", "versicolor", "virginica"])[CODES]
GAUSSIAN = GaussianClassifier().fit(X, y)
BAYES = BayesianLogisticRegression(prior=1.0).fit(X, y)

NAIVE = NaiveBayes(family={0: "categorical"}).fit(np.round(X[:, :1]), y)
PAIR, LAST = {"columns": (2, 3)}, "virginica"

DRAWN = {
    "calibration": lambda X, y, **w: plots.calibration(y, BAYES.predict_proba(X), label=LAST, **w),
    "class_densities": lambda X, y, **w: plots.class_densities(GAUSSIAN, X, y, column=2, **w),
    "confusion": lambda X, y, **w: plots.confusion(y, BAYES.predict(X), reject_cost=0.5, **w),
    "convergence": lambda X, y, **w: plots.convergence(BAYES, **w),
    "decision_regions": lambda X, y, **w: plots.decision_regions(BAYES, X, y, **PAIR, **w),
    "density_ellipses": lambda X, y, **w: plots.density_ellipses(
        GAUSSIAN, X, y, columns=(0, 1), **w
    ),
    "evidence_curve": lambda X, y, **w: plots.evidence_curve(X, y, precisions=[0.1, 1.0], **w),
    "forest": lambda X, y, **w: plots.forest(BAYES, **w),
    "posterior_surface": lambda X, y, **w: plots.posterior_surface(
        BAYES, X, y, label=LAST, plane="fisher", resolution=20, **w
    ),
    "prior_and_posterior": lambda X, y, **w: plots.prior_and_posterior(
        BAYES, "x2", label=LAST, **w
    ),
    "reject_curve": lambda X, y, **w: plots.reject_curve(
        y, BAYES.predict_proba(X), loss=1 - np.eye(3), reject_cost=0.2, **w
    ),
    "residuals": lambda X, y, **w: plots.residuals(BAYES, X, y, label=LAST, **w),
    "bars": lambda X, y, **w: plots.class_densities(
        NAIVE, np.round(X[:, :1]), y, column=0, weighted=True, **w
    ),
}
WEIGHTED = [n for n in plots.__all__ if "sample_weight" in signature(getattr(plots, n)).parameters]


@pytest.mark.parametrize("name", plots.__all__)
def test_a_picture_is_drawn_on_the_axes_given_and_lies_in_its_figure(name):
    figure, ax = plt.subplots(figsize=(6.4, 4.8), layout="constrained")
    assert DRAWN[name](X, y, ax=ax) is ax
    assert len(plt.get_fignums()) == 1
    assert ax.get_xlabel()
    assert ax.get_ylabel() or name == "forest"  # where the terms name themselves
    # The search for the best place of a legend is slow, with a warning.
    assert ax.get_legend() is None or ax.get_legend()._loc != 0
    figure.draw_without_rendering()
    drawn = figure.get_tightbbox()  # in inches
    assert min(drawn.x0, drawn.y0) >= -0.01
    assert drawn.x1 <= 6.41
    assert drawn.y1 <= 4.81


def numbers(ax):
    """All that is drawn, as numbers."""
    found = []
    for each in [*ax.figure.axes, *ax.child_axes]:
        found += [line.get_xydata() for line in each.get_lines()]
        found += [patch.get_path().vertices for patch in each.patches]
        found += [part.get_offsets() for part in each.collections]
        found += [[float(word) for word in text.get_text().split()[::2]] for text in each.texts]
    return [np.asarray(each, dtype=float) for each in found]


@pytest.mark.parametrize("name", ["bars", *WEIGHTED])
def test_a_weight_is_a_row_repeated_and_weight_zero_none(name):
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    again = np.repeat(np.arange(len(y)), weight)
    repeated = numbers(DRAWN[name](X[again], y[again]))
    weighted = numbers(DRAWN[name](X, y, sample_weight=weight))
    assert len(weighted) == len(repeated) > 0
    for a, b in zip(weighted, repeated, strict=True):
        assert_allclose(a, b, rtol=1e-6, atol=1e-9)


def test_two_plots_on_the_same_axes_share_one_legend(legend):
    X2 = X[:, 2:]
    model = GaussianClassifier().fit(X2, y)
    ax = plots.decision_regions(model, X2, y, resolution=10)
    assert plots.density_ellipses(model, X2, y, ax=ax) is ax
    assert legend(ax) == ["setosa", "versicolor", "virginica"]
    ax = plots.class_densities(GAUSSIAN, column=2)
    plots.class_densities(GAUSSIAN, X, y, column=2, ax=ax)
    assert legend(ax) == ["setosa", "versicolor", "virginica"]
