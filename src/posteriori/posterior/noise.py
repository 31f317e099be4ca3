"""A rate of wrong labels (4.117) that is estimated together with the coefficients.

Conventions: p free parameters w (p,); labels of both classes are flipped with one probability ε;
F(w, ε) = -ln p(t|w, ε) - ln p(w).
"""

from dataclasses import dataclass, fields, replace
from typing import NoReturn, cast

import numpy as np

from posteriori.errors import InferenceError
from posteriori.likelihood.logistic import LogisticLoss
from posteriori.likelihood.noise import NoisyLogisticLoss
from posteriori.posterior.inference import Inference, inverse_of
from posteriori.posterior.objective import BLOCK_ENTRIES, LogPosterior
from posteriori.solve.local import Curvature, Local
from posteriori.statistics.label_noise import FlipSums, GatherFlips
from posteriori.statistics.local_quadratic import Information
from posteriori.typing import Array

MOST = 0.5 - 1e-6
"""The largest rate; at one half labels say nothing."""

_NEAR = 1e-7
"""Standard errors from the best rate at which one more step has all digits."""

_LEVEL = 1e-15
"""Bounds as close together as this are one."""


@dataclass(frozen=True, eq=False)
class NoiseProfile(LogPosterior):
    """f(w) = min F(w, ε) over 0 <= ε < ½; a solver's `Objective`.

    p(t|a) is linear in ε, so that F is convex in it and has one minimum. There, by the envelope
    theorem, ∇f = ∂F/∂w, and the Hessian is F_ww - F_wε F_εw / F_εε: its inverse is the covariance
    of w where ε is estimated, too. At the boundary ε = 0 both are those without noise.

    `rate` is where the search for ε starts.
    """

    rate: float = 0.1

    @classmethod
    def of(cls, plain: LogPosterior) -> "NoiseProfile":
        """The same rows, columns and prior, with a rate of wrong labels besides."""
        return cls(**{each.name: getattr(plain, each.name) for each in fields(plain)})

    def __call__(self, w: Array, hessian: Curvature) -> Local:
        rate, found = self._best(w)
        local = LogPosterior.__call__(self.at(rate), w, hessian)
        if found is None or hessian != "full":
            return local
        if self.information == "expected":
            found = self._flips(w, rate, "expected")
        cross = self._contracted(found)
        curved = cast(Array, local.hessian) - np.outer(cross, cross) / found.curvature
        # Below zero by rounding, or where f is not convex: not definite in either case.
        np.fill_diagonal(curved, np.maximum(np.diagonal(curved), 0.0))
        return local._replace(hessian=curved)

    def at(self, rate: float) -> "NoiseProfile":
        """The same, with this rate in its loss and as the start of searches."""
        if rate == 0:
            return replace(self, loss=LogisticLoss())
        return replace(self, loss=NoisyLogisticLoss(rate, rate), rate=rate)

    def best_rate(self, w: Array) -> float:
        """The ε that makes F(w, ε) smallest."""
        return self._best(w)[0]

    def rate_error(self, w: Array) -> float | None:
        """The standard error of the best ε, by the joint curvature; infinite where that is flat.

        None at the boundary ε = 0, where the likelihood is no parabola, and with more parameters
        than a Hessian can have.
        """
        rate, found = self._best(w)
        if found is None or self.is_wide:
            return None
        observed = replace(self.at(rate), information="observed")
        hessian = cast(Array, LogPosterior.__call__(observed, w, "full").hessian)
        cross = self._contracted(found)
        joint = np.block([[hessian, cross[:, None]], [cross, np.array([found.curvature])]])
        try:
            return float(np.sqrt(inverse_of(joint)[-1, -1]))
        except InferenceError:
            return np.inf

    def _best(self, w: Array) -> tuple[float, FlipSums | None]:
        """The best ε by Newton steps between bounds, and the sums there; none at an end."""
        low, high, rate = 0.0, MOST, self.rate
        inner: set[float] = set()
        while True:
            found = self._flips(w, rate, "observed")
            low, high = (low, rate) if found.slope > 0 else (rate, high)
            step = -found.slope / found.curvature if found.curvature > 0 else 0.0
            if abs(step) * np.sqrt(found.curvature) <= _NEAR or high - low <= _LEVEL:
                return float(np.clip(rate + step, low, high)), found
            if low < rate + step < high:
                rate = rate + step
                continue
            end = low if step < 0 else high
            if end in (0.0, MOST) and end not in inner:
                if (self._flips(w, end, "observed").slope < 0) == (end == MOST):
                    return end, None
                inner.add(end)
            rate = (low + high) / 2

    def _flips(self, w: Array, rate: float, information: Information) -> FlipSums:
        kernel = GatherFlips(replace(self.kernel(w), information=information), rate)
        found = self.rows.map_sum(kernel, block_entries=BLOCK_ENTRIES)
        return found.times(self.factor)

    def _contracted(self, found: FlipSums) -> Array:
        return self.coordinates.contract(self.standard.inward(found.cross))


class NoisyInference(Inference):
    """The inference of coefficients that were estimated together with a rate of wrong labels."""

    def _scores(self, objective: LogPosterior) -> NoReturn:
        raise InferenceError(
            "Robust standard errors cannot be combined with a rate of wrong labels that is "
            "estimated.",
            "Pass the rate that was found as label_noise, or use other standard errors.",
        )
