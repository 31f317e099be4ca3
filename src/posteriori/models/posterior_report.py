"""What a fitted posterior tells of itself: coefficients, evidence, trust, and its draws."""

from dataclasses import replace
from typing import Any, get_args

import numpy as np

from posteriori.arguments import check_choice
from posteriori.errors import InferenceError
from posteriori.models.averaged import AveragedClassifier
from posteriori.models.posteriors import Earlier, Found
from posteriori.models.verdict import (
    Verdict,
    after_updates,
    verdict_on,
    verdict_on_chains,
    verdict_on_many,
)
from posteriori.posterior.arviz import to_arviz
from posteriori.posterior.chains import effective_size_bulk, effective_size_tail, split_rhat
from posteriori.posterior.coefficients import Intervals
from posteriori.posterior.drawn_gaussian import DrawnGaussian
from posteriori.posterior.evidence import Evidence
from posteriori.posterior.inference import Errors
from posteriori.posterior.page import About, glance_of
from posteriori.posterior.summary import Summary, fact_text, number_text
from posteriori.rows.frames import make_frame
from posteriori.rows.source import FitRows

_METHODS = {
    "laplace": "Laplace's approximation",
    "variational": "a variational bound",
    "monte_carlo": "Monte Carlo",
}
_ERRORS = {
    "laplace": "Estimates are the mode of the posterior, standard errors its standard deviations "
    "by the curvature there.",
    "variational": "Estimates and standard errors are mean and standard deviations of the "
    "Gaussian with the largest bound; they tend to be too small.",
    "monte_carlo": "Estimates and standard errors are mean and standard deviations of the draws.",
}

_LAST = "Likelihoods, deviances and criteria are those of the rows of the last fit"
_ALL = "; the log evidence is that of all rows, those before being known by a Gaussian"


class PosteriorReport(AveragedClassifier):
    """A classifier with a posterior over its coefficients, found by one of several inferences."""

    inference_: str
    _found: Found
    _laplace_evidence: Evidence
    _earlier: Earlier
    _verdict: Verdict | None
    _weight: float | None

    def tidy(
        self,
        level: float = 0.95,
        errors: Errors = "model",
        intervals: Intervals = "wald",
        *,
        odds_ratios: bool = False,
        reference: Any = None,
    ) -> Any:
        """The coefficients as a frame, as in `LogisticRegression`.

        Errors other than those of the "model", and intervals by "profile", belong to the mode: they
        need inference="laplace".
        """
        self._check_at_mode(errors, intervals)
        return super().tidy(level, errors, intervals, odds_ratios=odds_ratios, reference=reference)

    def summary(
        self,
        level: float = 0.95,
        errors: Errors = "model",
        *,
        odds_ratios: bool = False,
        reference: Any = None,
    ) -> Summary:
        """The fit on one page, to print or to look at in a notebook."""
        self._check_at_mode(errors, "wald")
        found = super().summary(level, errors, odds_ratios=odds_ratios, reference=reference)
        (name, last), *left = found.facts[0]
        if not self._earlier.n_fits or name != "Rows":
            return found
        return replace(found, facts=([("Rows of the last fit", last), *left], found.facts[1]))

    def _check_at_mode(self, errors: Errors, intervals: Intervals) -> None:
        self._known_classes()
        check_choice("errors", errors, get_args(Errors))
        check_choice("intervals", intervals, get_args(Intervals))
        if self.inference_ != "laplace" and (errors, intervals) != ("model", "wald"):
            raise InferenceError(
                f"errors={errors!r} with intervals={intervals!r} is for the mode of the "
                f"posterior; with inference={self.inference_!r} there are its mean and deviations.",
                "Use errors='model' and intervals='wald', or inference='laplace'.",
            )

    def glance(self) -> Any:
        """The fit as a frame with one row, with the evidence and the inference it is by.

        After `update`, n_obs and likelihoods are those of the last of n_fits; log_evidence is
        that of all n_obs_total rows.
        """
        self._known_classes()
        found = glance_of(self._inference, self._about())
        total = self._n_all
        found |= {
            "log_evidence": [self._log_evidence],
            "n_obs_total": [int(total) if total == int(total) else total],
            "n_fits": [self._earlier.n_fits + 1],
            "inference": [self.inference_],
        }
        return make_frame(found, self._frame_backend)

    def _about(self) -> About:
        name, found = self.inference_, super()._about()
        prior = "posterior before" if self._earlier.n_fits else found.prior
        return replace(found, prior=prior, method=_METHODS[name], errors=_ERRORS[name])

    def _summary_facts(self) -> tuple[tuple[str, str], ...]:
        value, facts = self._log_evidence, []
        if self._earlier.n_fits:
            told = f"{number_text(self._n_all)}, {self._earlier.n_fits + 1} fits"
            facts.append(("Rows in all", told))
        if value is not None:
            facts.append(("Log evidence", fact_text(value)))
        if isinstance(self._found.gaussian, DrawnGaussian):
            facts.append(("Posterior", f"known by {self._found.gaussian.told}"))
        return tuple(facts)

    def _summary_notes(self) -> tuple[str, ...]:
        notes = super()._summary_notes()
        if not self._earlier.n_fits:
            return notes
        return (*notes, f"{_LAST}{'' if self._log_evidence is None else _ALL}.")

    def _count(self, rows: FitRows) -> None:
        """Note the weight of rows in memory, whose owner may put others there."""
        if not rows.in_memory:
            self._weight = None
        else:
            self._weight = float(rows.n_rows if rows.weight is None else rows.weight.sum())

    @property
    def _n_last(self) -> float:
        """The weight of the rows of the last fit."""
        return self._inference.goodness.n_obs if self._weight is None else self._weight

    @property
    def _n_all(self) -> float:
        """The weight of all rows so far."""
        return self._earlier.n_obs + self._n_last

    @property
    def evidence_(self) -> Evidence:
        """ln p(t) by Laplace's approximation, in its parts: fit and Occam factor (4.137).

        With Jeffreys' prior there is none, as that is known but for a factor.
        """
        self._known_classes()
        if self._found.log_evidence is None:
            raise _no_evidence()
        if self.inference_ == "laplace":
            return self._inference.evidence
        return self._laplace_evidence

    @property
    def log_evidence_(self) -> float:
        """ln p(t), what is left once the coefficients are integrated out."""
        self._known_classes()
        if self._log_evidence is None:
            raise _no_evidence()
        return self._log_evidence

    @property
    def _log_evidence(self) -> float | None:
        return together(self._earlier.log_evidence, self._found.log_evidence)

    @property
    def trust_(self) -> Verdict:
        """Whether the posterior found is near the exact one, in plain words.

        For a Gaussian it is told by the weights that would make its draws draws of the exact
        posterior: by their tail, k-hat, by how far they move the mean, and by how much they change
        standard deviations; computed when first asked for. Draws of Monte Carlo are exact, if their
        chains agree. After `update` it is the last fit that is told of, and the word is "usable"
        at best: what was lost before cannot be seen without the rows.
        """
        self._known_classes()
        found, earlier = self._last_verdict(), self._earlier
        if not earlier.n_fits:
            return found
        return after_updates(found, earlier.word, self._n_last, self._n_all)

    def _last_verdict(self) -> Verdict:
        if self.posterior_.chains is not None:
            return verdict_on_chains(self.posterior_.chains)
        if self._verdict is None:
            self._verdict = self._judged(self._found)
        return self._verdict

    def _judged(self, found: Found) -> Verdict:
        """How near the Gaussian is to the exact posterior."""
        gaussian, curved = found.gaussian, found.curved
        if isinstance(gaussian, DrawnGaussian) or isinstance(curved, DrawnGaussian):
            return verdict_on_many(self._inference.wide)
        return verdict_on(self._inference.objective, gaussian, curved)

    @property
    def diagnostics_(self) -> Any:
        """Of draws by Monte Carlo, a frame of the kind that the model was fitted to.

        Its columns are term, class (for more than two), mean, sd, rhat (split, rank-normalised;
        one where chains agree), ess_bulk and ess_tail (effective numbers of draws).
        """
        self._known_classes()
        draws = self.posterior_.draws
        return make_frame(
            {
                **self._term_columns(),
                "mean": draws.mean(axis=(0, 1)).tolist(),
                "sd": draws.std(axis=(0, 1), ddof=1).tolist(),
                "rhat": split_rhat(draws).tolist(),
                "ess_bulk": effective_size_bulk(draws).tolist(),
                "ess_tail": effective_size_tail(draws).tolist(),
            },
            self._frame_backend,
        )

    def _term_columns(self) -> dict[str, Any]:
        shown, classes = self.posterior_.shown, self.classes_
        if len(classes) == 2:
            return {"term": list(shown.terms)}
        return {
            "term": [term for _ in classes for term in shown.terms],
            "class": np.repeat(classes, len(shown.terms)).tolist(),
        }

    def to_arviz(self) -> Any:
        """Draws by Monte Carlo for the package arviz: variables `intercept` and `coef`."""
        self._known_classes()
        return to_arviz(self.posterior_, self.classes_)


def together(before: float | None, last: float | None) -> float | None:
    """ln p(t) of all rows; None where that of some is not known.

    >>> together(-10.0, -2.5), together(None, -2.5)
    (-12.5, None)
    """
    return None if before is None or last is None else before + last


def _no_evidence() -> InferenceError:
    return InferenceError(
        "There is no evidence with prior='jeffreys', which is known but for a factor.",
        "Compare such fits by bic_ or aic_, or use another prior.",
    )
