"""Verdicts on predictions beside what happened: residuals and calibration."""

from typing import Any, cast

import numpy as np
from sklearn.base import is_regressor

from posteriori.decision.calibration import CalibrationError, calibration_error
from posteriori.decision.residuals import OUTSIDE, BinnedResiduals, binned_residuals
from posteriori.errors import InferenceError
from posteriori.models.fit_checks import not_checked, where_possible
from posteriori.models.seen import Outcomes, Seen
from posteriori.posterior.checks import Check, Word
from posteriori.posterior.summary import p_text

_UNLIKELY, _VERY_UNLIKELY = 0.01, 1e-4
"""p-values that are to be looked at, and that are too small."""

_SMALL = 0.01
"""A calibration error that does no harm, however sure it is that there is one."""

_FEWEST = 10
"""Rows whose averages say something."""

_TOO_FEW = f"it takes {_FEWEST} rows or more, by their weights"

_FLATTERED = " These are the rows of the fit, which flatter it: pass others, X and y."


@where_possible("residuals")
def residuals(model: Any, seen: Seen) -> Check:
    """Whether targets are on average what was predicted, wherever one looks."""
    if seen.outcomes is None:
        return not_checked("residuals", seen.why)
    if seen.outcomes.weight.sum() < _FEWEST:
        return not_checked("residuals", _TOO_FEW)
    found = _binned(model, seen.outcomes)
    chances = [min(each.p_value * len(found), 1.0) for each in found]
    k = int(np.argmin(chances))
    worst, label = found[k], _label(model, k)
    values = {
        "share_outside": worst.share,
        "p_value": chances[k],
        "label": label,
        "predicted": worst.predicted,
        "observed": worst.observed,
        "z": worst.z,
        "n": worst.n,
    }
    return Check("residuals", _word(chances[k]), _told(worst, label, chances[k], seen), values)


def _word(p_value: float) -> Word:
    return "bad" if p_value < _VERY_UNLIKELY else "look" if p_value < _UNLIKELY else "good"


def _binned(model: Any, outcomes: Outcomes) -> list[BinnedResiduals]:
    """Of the second of two classes, of each of more, or of the number."""
    p, t, weight = outcomes.predicted, outcomes.happened, outcomes.weight
    if p.ndim == 1:
        variance = model._variance(p)
        if not (variance > 0).all():
            raise InferenceError("The fit meets every target.", "Fit fewer columns.")
        return [binned_residuals(p, t.astype(np.float64), variance, weight)]
    K = p.shape[1]
    return [
        binned_residuals(p[:, k], (t == k).astype(np.float64), p[:, k] * (1 - p[:, k]), weight)
        for k in ([1] if K == 2 else range(K))
    ]


def _label(model: Any, k: int) -> Any:
    if is_regressor(model):
        return None
    labels = model.classes_.tolist()
    return labels[1] if len(labels) == 2 else labels[k]


def _told(found: BinnedResiduals, label: Any, p_value: float, seen: Seen) -> str:
    m, worst = len(found.n), found.worst
    what = "" if label is None else f" of class {label!r}"
    told = (
        f"{int(found.outside.sum())} of {m} bins of like predictions{what} lie more than two "
        f"standard errors from what was predicted, where {m * OUTSIDE:.1f} are expected"
    )
    farthest = (
        f"where {found.predicted[worst]:.3g} was predicted, {found.observed[worst]:.3g} was "
        f"observed ({found.n[worst]:.4g} rows)"
    )
    if p_value >= _UNLIKELY:
        return f"{told}{_sampled(seen)}."
    return (
        f"{told}{_sampled(seen)} (p {p_text(p_value)}). The farthest: {farthest}. A column may act "
        "by a curve or with another: add a power, a basis or a product."
    )


def _sampled(seen: Seen) -> str:
    outcomes = cast(Outcomes, seen.outcomes)
    return f" (in a sample of {len(outcomes.weight):,} rows)" if outcomes.sampled else ""


@where_possible("calibration")
def calibration(model: Any, seen: Seen) -> Check:
    """Whether classes occur as often as their probabilities say."""
    if is_regressor(model):
        return not_checked("calibration", "the target is a number, not a class")
    if seen.outcomes is None:
        return not_checked("calibration", seen.why)
    outcomes = seen.outcomes
    if outcomes.weight.sum() < _FEWEST:
        return not_checked("calibration", _TOO_FEW)
    labels = np.arange(outcomes.predicted.shape[1])
    found = calibration_error(
        outcomes.happened, outcomes.predicted, classes=labels, sample_weight=outcomes.weight
    )
    p_value = found.spiegelhalter.p_value
    values = {
        "p_value": p_value,
        "z": found.spiegelhalter.z,
        "expected_error": found.expected,
        "expected_by_chance": found.expected_by_chance,
        "of_fit": seen.of_fit,
    }
    word = _word(p_value)
    if word == "bad" and found.expected < _SMALL:
        word = "look"
    told = _calibration_told(found, word, _sampled(seen))
    return Check("calibration", word, told + (_FLATTERED if seen.of_fit else ""), values)


def _calibration_told(found: CalibrationError, word: Word, sampled: str) -> str:
    error = (
        f"probabilities differ from rates by {found.expected:.2g} on average{sampled}, where "
        f"chance makes {found.expected_by_chance:.2g}"
    )
    p = p_text(found.spiegelhalter.p_value)
    if word == "good":
        return f"Classes occur as often as predicted: {error} (Spiegelhalter's p {p})."
    if found.spiegelhalter.z > 0:
        return (
            f"The model is too sure of itself: {error} (Spiegelhalter's p {p}). Wrap it in a "
            "CalibratedClassifier, or drop columns that repeat each other."
        )
    return (
        f"The model is less sure than it might be: {error} (Spiegelhalter's p {p}). Wrap it in a "
        "CalibratedClassifier, or weaken the prior."
    )
