"""What a fit says of itself: evidence, BIC and AIC; and whether two models' can be compared."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from posteriori.errors import InferenceError
from posteriori.models.generative import GenerativeClassifier
from posteriori.models.inferring import Inferring
from posteriori.models.meta import Training
from posteriori.models.naive_bayes import NaiveBayes
from posteriori.models.telling import log_probabilities

_CONDITIONAL = "p(t|x)"
_DENSITY = "p(x, t)"
_DENSITIES = ("gaussian", "exponential")


@dataclass(frozen=True)
class Criteria:
    """ln p(t), BIC, AIC and the number of parameters of a fit; None where there is none.

    `of` says of what density the likelihood is; `reasons` why something is left out.
    """

    of: str | None = None
    log_evidence: float | None = None
    bic: float | None = None
    aic: float | None = None
    n_parameters: int | None = None
    reasons: tuple[str, ...] = ()


def criteria_of(fitted: Any, rows: Training) -> Criteria:
    """The criteria of a model fitted to these rows."""
    n_parameters = getattr(fitted, "n_parameters_", None)
    if isinstance(fitted, Inferring):
        found = replace(_conditional(fitted), n_parameters=n_parameters)
    elif isinstance(fitted, GenerativeClassifier):
        found = _joint(fitted, rows, int(fitted.n_parameters_))
    else:
        reason = "no evidence, BIC or AIC: it has no likelihood of its own"
        found = Criteria(n_parameters=n_parameters, reasons=(reason,))
    return found


def _conditional(fitted: Inferring) -> Criteria:
    evidence, why_no_evidence = _asked(lambda: fitted.log_evidence_)
    bic, why_no_bic = _asked(lambda: fitted.bic_)
    aic, _ = _asked(lambda: fitted.aic_)
    reasons = [f"log_evidence: {why_no_evidence}"] * bool(why_no_evidence)
    reasons += [f"bic, aic: {why_no_bic}"] * bool(why_no_bic)
    return Criteria(_CONDITIONAL, evidence, bic, aic, reasons=tuple(reasons))


def _asked(question: Callable[[], float]) -> tuple[float | None, str]:
    """The answer, or why there is none."""
    try:
        return float(question()), ""
    except InferenceError as error:
        return None, error.problem.rstrip(".")


def _joint(fitted: GenerativeClassifier, rows: Training, k: int) -> Criteria:
    """By ln p(x, t) = ln p(x) + ln p(t|x) of the rows."""
    weight = np.ones(len(rows.codes)) if rows.weight is None else rows.weight
    logs = log_probabilities(fitted, rows.X)
    own = np.take_along_axis(logs, rows.codes[:, None], axis=1)[:, 0]
    value = float(weight @ (fitted.score_samples(rows.X) + own))
    kind = _DENSITY
    if isinstance(fitted, NaiveBayes):
        masses = [j for j, name in enumerate(fitted.families_) if name not in _DENSITIES]
        kind = (
            f"{_DENSITY} with masses of {fitted.schema_.describe_all(masses)}" if masses else kind
        )
    reason = "log_evidence: the parameters have no prior"
    n = float(weight.sum())
    return Criteria(kind, None, k * np.log(n) - 2 * value, 2 * (k - value), k, (reason,))


def comparable(table: Sequence[Criteria]) -> list[Criteria]:
    """The same without those that say nothing beside the others.

    Likelihoods are compared with those of the same kind: p(t|x) if any model has it, else that
    of the first that has one.
    """
    kinds = [found.of for found in table if found.of is not None]
    wanted = _CONDITIONAL if _CONDITIONAL in kinds else next(iter(kinds), None)
    return [found if found.of in (None, wanted) else _blank(found, wanted) for found in table]


def _blank(found: Criteria, wanted: str | None) -> Criteria:
    reason = f"BIC and AIC are of {found.of}, those of other models of {wanted}"
    reasons = (*found.reasons, reason)
    return replace(found, log_evidence=None, bic=None, aic=None, reasons=reasons)
