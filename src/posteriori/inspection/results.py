"""The results of a fit: its summary and its one-row table."""

from dataclasses import dataclass
from typing import Any

from posteriori.inspection.summary import Summary, fact_text, number_text
from posteriori.posterior.fit_statistics import FitStatistics
from posteriori.posterior.inference import Errors, Inference, Intervals
from posteriori.typing import Labels

_LISTED = 8
"""Names that a note lists."""

_KINDS: dict[Errors, str] = {
    "model": "",
    "observed": "Standard errors by the observed information.",
    "expected": "Standard errors by the expected information.",
    "robust": "Standard errors are robust (sandwich, HC0).",
}


_POSTERIOR = (
    "Standard errors are posterior standard deviations, by the curvature of the log posterior at "
    "its mode."
)
_RATIOS = "Standard errors are those of the logarithm of the odds ratio."
_PROFILE = (
    "Intervals and p-values by the profile likelihood: the statistic is the signed root of the "
    "likelihood ratio."
)
_JEFFREYS = "Standard errors by the expected information, without the prior, as is usual."


@dataclass(frozen=True, eq=False)
class About:
    """What a model says of a fit that its likelihood does not know.

    prior: in words, empty for none. labels: the classes, None for a target that is a number.
    facts: further lines of the page, notes: further footnotes. method: how the coefficients were
    found, if not simply by the largest likelihood or posterior; errors: what the standard errors
    of the model then are. is_posterior: the fit is a posterior distribution, without tests and
    criteria.
    """

    name: str
    prior: str
    labels: Labels | None
    solver: str
    n_iter: int
    converged: bool
    facts: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    method: str = ""
    errors: str = ""
    is_posterior: bool = False


def glance_of(inference: Inference, about: About) -> dict[str, list[Any]]:
    """One number a name, as a table of one row."""
    goodness = inference.goodness
    weight = goodness.n_obs
    found: dict[str, Any] = {
        "n_obs": int(weight) if weight == int(weight) else weight,
        "n_parameters": inference.n_parameters,
        "log_likelihood": goodness.log_likelihood,
        "deviance": goodness.deviance,
        "null_deviance": goodness.null_deviance,
    }
    if not about.is_posterior:
        found |= {"aic": goodness.aic, "bic": goodness.bic}
    if goodness.estimates_dispersion:
        found["dispersion"] = goodness.dispersion
    found |= {"converged": about.converged, "n_iter": about.n_iter, "solver": about.solver}
    return {name: [value] for name, value in found.items()}


def summary_of(
    inference: Inference,
    about: About,
    level: float,
    errors: Errors,
    odds_ratios: bool = False,
    intervals: Intervals = "wald",
) -> Summary:
    """The page of a fit."""
    coefficients = inference.table(about.labels, level, errors, intervals)
    coefficients = coefficients.as_odds_ratios() if odds_ratios else coefficients
    coefficients = coefficients.as_posterior() if about.is_posterior else coefficients
    return Summary(
        f"{about.name}, fitted by {_method(about)}",
        (_left(inference, about), _right(inference.goodness, about)),
        coefficients,
        level,
        "t" if inference.goodness.estimates_dispersion else "z",
        coefficients.reference,
        (
            *_notes(inference, about, errors),
            *about.notes,
            *([_RATIOS] * odds_ratios),
            *([_PROFILE] * (intervals == "profile")),
        ),
    )


def _method(about: About) -> str:
    return about.method or ("posterior mode" if about.prior else "maximum likelihood")


def _left(inference: Inference, about: About) -> list[tuple[str, str]]:
    facts = [("Rows", number_text(inference.goodness.n_obs))]
    facts.append(("Parameters", number_text(inference.n_parameters)))
    if about.prior:
        facts.append(("Prior", about.prior))
    facts += about.facts
    if about.labels is not None:
        facts.append(_classes(list(map(str, about.labels.tolist()))))
    steps = f"{about.n_iter} step" + ("" if about.n_iter == 1 else "s")
    facts.append(("Solver", f"{about.solver}, {steps}"))
    facts.append(("Converged", "yes" if about.converged else "no"))
    return facts


def _classes(names: list[str]) -> tuple[str, str]:
    if len(names) == 2:
        return "Class", f"{names[1]} against {names[0]}"
    return "Classes", ", ".join(names)


def _right(goodness: FitStatistics, about: About) -> list[tuple[str, str]]:
    facts = [
        ("Log-likelihood", goodness.log_likelihood),
        ("Deviance", goodness.deviance),
        ("Null deviance", goodness.null_deviance),
    ]
    if not about.is_posterior:
        facts += [("AIC", goodness.aic), ("BIC", goodness.bic)]
    if goodness.estimates_dispersion:
        facts.append(("Dispersion", goodness.dispersion))
    return [(name, fact_text(value)) for name, value in facts]


def _notes(inference: Inference, about: About, errors: Errors) -> list[str]:
    notes, goodness = [], inference.goodness
    if about.prior and errors != "robust":
        jeffreys = about.prior == "jeffreys" and errors == "model"
        usual = _JEFFREYS if jeffreys else _POSTERIOR
        notes.append(about.errors if about.errors and errors == "model" else usual)
    if _KINDS[errors]:
        notes.append(_KINDS[errors])
    if goodness.estimates_dispersion:
        notes.append(
            f"t with {number_text(goodness.freedom)} degrees of freedom: the dispersion "
            "is Pearson's estimate."
        )
    if inference.shown.dependent:
        notes.append(
            f"{listed(inference.shown.dependent)} depend on each other linearly, or never "
            "change: of all coefficients with the same likelihood those of smallest norm are shown."
        )
    return notes


def listed(names: tuple[str, ...]) -> str:
    """Names with commas, the first few of many."""
    rest = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + rest
