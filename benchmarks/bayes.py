"""What is measured of posteriors and of priors chosen by the evidence: `run(scale)` gives one row.

Where a call takes seconds, fewer turns are taken than in the other cases.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.accuracy import timed_fit
from benchmarks.contender import Contender
from benchmarks.data import HELD_OUT, make
from benchmarks.data.classes import Data
from benchmarks.draws import AGREE, largest_z, n_effective
from benchmarks.measures import Comparison, Scale
from benchmarks.result import Result, duration
from benchmarks.timing import two_threads

NO_WORSE = 1.001
"""What a log score may be, as a multiple of the rival's."""

FEW_TURNS = 2

WARM = 10.0
"""A first fit that takes fewer seconds is repeated: it may have started processes."""


class WithPosterior(Comparison):
    """Time to fit and to give posterior and evidence, over the time to find the mode alone."""

    what = "fit with posterior / mode alone,"

    def run(self, scale: Scale) -> Result:
        ours, rival = only_variant(self.ours), only_variant(self.rival)
        X, y = make(self.data, scale.shrink)
        times = scale.best_times(
            {"ours": lambda: with_posterior(ours, X, y), "rival": lambda: rival().fit(X, y)}
        )
        return self.row(
            duration(times["ours"]),
            f"{duration(times['rival'])} (mode alone)",
            times["ours"] / times["rival"],
        )


class AgainstSearch(Comparison):
    """Time to choose the prior and fit; and the mean -ln p of rows held out, called log score."""

    what = "fit with prior chosen by"

    def run(self, scale: Scale) -> Result:
        train, test = split(make(self.data, scale.shrink), HELD_OUT // scale.shrink)
        ours, rival = quickest(self.ours, train), quickest(self.rival, train)
        times = fewer(scale).best_times(
            {"ours": lambda: ours.new().fit(*train), "rival": lambda: rival.new().fit(*train)}
        )
        our_score, their_score = log_score(ours.model, *test), log_score(rival.model, *test)
        return self.row(
            f"{duration(times['ours'])}, log score {our_score:.5f}",
            f"{duration(times['rival'])}, log score {their_score:.5f} ({rival.label})",
            times["rival"] / times["ours"],
            valid=our_score <= NO_WORSE * their_score,
        )


class DrawsPerSecond(Comparison):
    """Effective draws a second, of the coefficient with fewest, as a multiple of the rival's.

    Ours pays for the fit too, the rival for its warm-up. No value counts if they do not agree.
    """

    what = "effective draws a second,"

    def run(self, scale: Scale) -> Result:
        X, y = make(self.data, scale.shrink)
        ours, rival = most_effective(self.ours, X, y), most_effective(self.rival, X, y)
        times = fewer(scale).best_times(
            {side.label: partial(draws_of, side.new, X, y) for side in (ours, rival)}
        )
        our_seconds, their_seconds = times[ours.label], times[rival.label]
        apart = largest_z(ours.draws, rival.draws)
        return self.row(
            f"{_rate(ours.n_effective, our_seconds)}; |z| {apart:.1f} at most",
            f"{_rate(rival.n_effective, their_seconds)} ({rival.label})",
            (ours.n_effective / our_seconds) / (rival.n_effective / their_seconds),
            valid=apart <= AGREE,
        )


@dataclass(frozen=True)
class Quickest:
    """The variant of a contender whose fit took least, and that fit."""

    label: str
    new: Callable[[], Any]
    model: Any
    seconds: float


def quickest(contender: Contender, data: Data) -> Quickest:
    tried = [
        Quickest(contender.label(variant), new, *_warm_fit(new, data))
        for variant, new in contender.variants.items()
    ]
    return min(tried, key=lambda entry: entry.seconds)


def _warm_fit(new: Callable[[], Any], data: Data) -> tuple[Any, float]:
    model, seconds = timed_fit(new, *data)
    return timed_fit(new, *data) if seconds < WARM else (model, seconds)


@dataclass(frozen=True)
class Sampler:
    """A variant of a contender, its draws, and how many effective ones they are."""

    label: str
    new: Callable[[], Any]
    draws: np.ndarray
    n_effective: float
    seconds: float


def most_effective(contender: Contender, X: Any, y: Any) -> Sampler:
    """The variant with most effective draws a second."""
    tried = [
        _sampler(contender.label(variant), new, X, y) for variant, new in contender.variants.items()
    ]
    return max(tried, key=lambda entry: entry.n_effective / entry.seconds)


def _sampler(label: str, new: Callable[[], Any], X: Any, y: Any) -> Sampler:
    model, seconds = timed_fit(new, X, y)
    draws = _draws(model)
    return Sampler(label, new, draws, n_effective(draws), seconds)


def draws_of(new: Callable[[], Any], X: Any, y: Any) -> np.ndarray:
    """Draws (chains, steps, coefficients) of the model, fitted now."""
    return _draws(new().fit(X, y))


def _draws(model: Any) -> np.ndarray:
    """Ours has them in its posterior."""
    return model.posterior_.draws if hasattr(model, "posterior_") else model.draws_


def only_variant(contender: Contender) -> Callable[[], Any]:
    (new,) = contender.variants.values()
    return new


def fewer(scale: Scale) -> Scale:
    """The scale for calls that take seconds."""
    return replace(scale, turns=min(scale.turns, FEW_TURNS), seconds=0.0)


def with_posterior(new: Callable[[], Any], X: Any, y: Any) -> Any:
    """The fitted model, with its covariance and evidence computed."""
    model = new().fit(X, y)
    _ = model.posterior_.covariance, model.log_evidence_
    return model


def split(data: Data, held_out: int) -> tuple[Data, Data]:
    """All rows but the last, and these."""
    X, y = data
    return (X[:-held_out], y[:-held_out]), (X[-held_out:], y[-held_out:])


def log_score(model: Any, X: Any, y: np.ndarray) -> float:
    """The mean of -ln p of the class that each row has; classes are their own codes."""
    with two_threads(), warnings.catch_warnings(action="ignore"):
        log_p = model.predict_log_proba(X)
    return float(-np.take_along_axis(log_p, y[:, None], axis=1).mean())


def _rate(size: float, seconds: float) -> str:
    return f"{size / seconds:,.0f} ({size:,.0f} in {duration(seconds)})"
