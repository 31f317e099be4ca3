"""The table of coefficients: estimates, errors, tests and intervals, as plain values."""

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from posteriori.arguments import check_choice
from posteriori.errors import ParameterError
from posteriori.posterior.inference import Errors, Inference
from posteriori.typing import Array, Labels

Intervals = Literal["wald", "profile"]
"""Estimate and so many standard errors to either side, or by the profile of the likelihood."""


@dataclass(frozen=True, eq=False)
class Coefficients:
    """One entry a coefficient shown; `classes` is None unless there are more than two of them.

    statistic: estimate / std_error, a z or, where a dispersion is estimated, a t. p_value: the
    probability of a larger one, either sign, if the coefficient were zero. They are zero and one
    where there is nothing to test: an infinite standard error, or a column that never changes.
    `reference` is the class that others are compared with, if there are several. `odds_ratios` says
    that estimate and ends are e to the power of coefficients; std_error stays that of the
    coefficient, the logarithm of the ratio.
    """

    terms: tuple[str, ...]
    classes: tuple[Any, ...] | None
    estimate: Array
    std_error: Array
    statistic: Array
    p_value: Array
    conf_low: Array
    conf_high: Array
    reference: Any = None
    odds_ratios: bool = False

    def as_odds_ratios(self) -> "Coefficients":
        """By what the odds are multiplied, where a column grows by one."""
        with np.errstate(over="ignore", under="ignore"):
            ratio, low, high = np.exp([self.estimate, self.conf_low, self.conf_high])
        return replace(self, estimate=ratio, conf_low=low, conf_high=high, odds_ratios=True)

    def columns(self) -> dict[str, list[Any]]:
        """The table, column by column."""
        out: dict[str, list[Any]] = {"term": list(self.terms)}
        if self.classes is not None:
            out["class"] = list(self.classes)
        numbers = ("estimate", "std_error", "statistic", "p_value", "conf_low", "conf_high")
        return out | {name: getattr(self, name).tolist() for name in numbers}


def coefficients_of(
    inference: Inference,
    labels: Labels | None,
    level: float = 0.95,
    errors: Errors = "model",
    intervals: Intervals = "wald",
) -> Coefficients:
    """The coefficients of a fit; `labels` are its classes."""
    quantile = inference.quantile(level)
    _check_intervals(intervals, errors)
    estimate, error = inference.estimates, inference.standard_errors(errors)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        statistic = np.where(np.isinf(error) | (estimate == 0), 0.0, estimate / error)
        ends = np.stack([estimate - quantile * error, estimate + quantile * error], axis=1)
    if intervals == "profile":
        ends = inference.profile(level)
    shown = inference.shown
    classes = reference = None
    if labels is not None and shown.coordinates.n_activations > 1:
        classes = tuple(np.repeat(labels[shown.others], len(shown.terms)).tolist())
        reference = labels.tolist()[shown.reference]
    return Coefficients(
        shown.terms * shown.n_contrasts,
        classes,
        estimate,
        error,
        statistic,
        inference.p_values(statistic),
        ends[:, 0],
        ends[:, 1],
        reference,
    )


def _check_intervals(intervals: Intervals, errors: Errors) -> None:
    check_choice("intervals", intervals, get_args(Intervals))
    if intervals == "profile" and errors == "robust":
        raise ParameterError(
            "intervals='profile' and errors='robust' exclude each other: a profile of the "
            "likelihood has no standard errors.",
            "Use intervals='wald' with errors='robust', or another kind of errors.",
        )
