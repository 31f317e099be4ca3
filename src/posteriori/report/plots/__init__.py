"""Plots of fitted models, by matplotlib (extra `plots`).

Every function draws on the Axes `ax`, or on those of a new figure, and returns the Axes.

>>> from posteriori.report import plots
>>> sorted(plots.__all__)[-3:]
['prior_and_posterior', 'reject_curve', 'residuals']
"""

from posteriori.report.plots.coefficients import (
    convergence,
    evidence_curve,
    forest,
    prior_and_posterior,
)
from posteriori.report.plots.evaluation import calibration, confusion, reject_curve, residuals
from posteriori.report.plots.regions import (
    class_densities,
    decision_regions,
    density_ellipses,
    posterior_surface,
)

__all__ = [
    "calibration",
    "class_densities",
    "confusion",
    "convergence",
    "decision_regions",
    "density_ellipses",
    "evidence_curve",
    "forest",
    "posterior_surface",
    "prior_and_posterior",
    "reject_curve",
    "residuals",
]
