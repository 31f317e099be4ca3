"""Pictures, by matplotlib (extra `plots`): all of them by one import.

Every function draws on the `ax` it is given, or on a new one, and gives the Axes back.

>>> from posteriori.report import plots
>>> sorted(plots.__all__)[-3:]
['prior_and_posterior', 'reject_curve', 'residuals']
"""

from posteriori.report.calibration import calibration
from posteriori.report.coefficients import forest
from posteriori.report.decisions import confusion, reject_curve
from posteriori.report.densities import class_densities, density_ellipses
from posteriori.report.palette import COLOURS, LINES, MARKERS, class_colours
from posteriori.report.posteriors import evidence_curve, prior_and_posterior
from posteriori.report.regions import decision_regions, posterior_surface
from posteriori.report.residuals import residuals
from posteriori.report.trace import plot_trace as convergence

__all__ = [
    "COLOURS",
    "LINES",
    "MARKERS",
    "calibration",
    "class_colours",
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
