"""Jeffreys' prior |I(w)|^½, with I the expected information: Firth's reduction of bias.

The mode of likelihood times prior solves Firth's (1993) adjusted score equations. It is finite
where the classes can be separated (Kosmidis and Firth 2021), and depends neither on the units of
the columns nor on which class is the reference.

Conventions: p free parameters w (p,). I (p, p) is that of w, the intercepts included.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
from scipy.linalg import lapack

from posteriori.design.standardise import Standard
from posteriori.errors import ParameterError
from posteriori.likelihood.loss import ClassLoss
from posteriori.likelihood.softmax import SoftmaxLoss
from posteriori.linalg import cholesky, unit_diagonal
from posteriori.posterior.inference import Inference
from posteriori.posterior.objective import WIDE, LogPosterior
from posteriori.solve.local import Curvature, Local
from posteriori.statistics.local_quadratic import Information
from posteriori.typing import Array, Codes

_STEP = 1e-4
"""Standard errors to either side of the gradients whose differences make the Hessian."""

_FINER, _FINEST = 1e-3, 1e-11
"""How much nearer to the optimum than without the prior, as the rate of the last steps is not known
as well; and how near it makes sense to go."""

_EPSILON = float(np.finfo(np.float64).eps)

_DIGITS = 4.0
"""Standard errors, in units of what doubles round off over the least curvature of any direction
beside that of its parameters alone, below which a gradient is rounding: ten times what is seen."""

_FLAT = 1e-8
"""Standard errors, as a tolerance, that tell of a direction which gradients alone do not find."""

_ROUGH, _DAMPING = 0.3, 0.01
"""Without the prior: standard errors from the optimum, over √p, and a precision on the slopes."""

_NEAR = 3.0
"""Columns whose mean is this many deviations from zero are centred number by number."""


@dataclass(frozen=True, eq=False)
class _Centred(Standard):
    """Columns that are centred before they are summed already where they are not far from zero.

    Otherwise I would lose more digits than ln|I| and its gradient can do without.
    """

    @cached_property
    def moves(self) -> bool:
        return bool((abs(self.centre) / _NEAR > self.scale).any()) or super().moves


class _Evaluation(NamedTuple):
    """-ln p(t|w) - ½ ln|I|, its second term, its gradient; and I with its root: I = root rootᵀ."""

    value: float
    prior: float
    gradient: Array
    information: Array
    root: Array


@dataclass(frozen=True, eq=False)
class JeffreysPosterior(LogPosterior):
    """-ln p(t|w) - ½ ln|I(w)| of rows; a solver's `Objective`.

    An evaluation is a pass for I and a pass for the leverages; the Hessian costs 2p more of them.
    I in place of it, as in Fisher scoring, may take hundreds of steps where rows have high
    leverage. `information` says what is given as the Hessian: "observed" all of it, "expected" I.
    """

    def __call__(self, w: Array, hessian: Curvature) -> Local:
        here = self._evaluate(w)
        if here is None:
            return Local(np.inf, np.zeros(len(w)), None)
        return Local(here.value, here.gradient, self._curvature(w, here, hessian))

    def _curvature(self, w: Array, here: _Evaluation, hessian: Curvature) -> Array | None:
        if hessian == "none":
            return None
        if hessian == "diagonal":
            return np.diagonal(here.information).copy()
        return self._hessian(w, here) if self.information == "observed" else here.information

    @cached_property
    def price(self) -> float:
        return 2.0 * self.coordinates.size

    def conclude(
        self, w: Array, dependent: Codes, information: Information = "expected"
    ) -> tuple[Inference, float]:
        """What the optimum w says, and the penalised log-likelihood ln p(t|w) + ½ ln|I|.

        Standard errors of "expected" information are those of I⁻¹, as logistf and brglm report
        them; those of "observed" are by the curvature of the penalised likelihood. Here |I| is in
        the units of the columns, of contrasts with one class (whichever), without the columns that
        depend on others.
        """
        here = self._evaluate(w)
        if here is None:
            raise ParameterError(
                "prior='jeffreys' cannot be honoured: the information matrix is singular, so that "
                "some combination of coefficients is not determined by the data.",
                "Drop columns that are almost combinations of others, or set prior to a number.",
            )
        like_this = replace(self, information=information)
        inference = Inference(like_this, w, here.value, prior=here.prior)
        return inference, self._log_units(dependent) - here.value

    def without_jeffreys(self) -> LogPosterior:
        """-ln p(t|w) alone, in the same parameters."""
        return LogPosterior(**_fields(self))

    def _log_units(self, dependent: Codes) -> float:
        """½ ln|I| in the user's units less that in free parameters of standardised columns."""
        coordinates, K = self.coordinates, self.coordinates.n_activations
        of_columns = np.log(np.delete(self.standard.scale, dependent)).sum()
        return float(coordinates.c * of_columns - 0.5 * coordinates.k * np.log(K))

    def rounding(self) -> float:
        """Standard errors from the optimum, about, that rounding makes of none.

        Where columns are nearly combinations of others, leverages have lost digits in I⁻¹, and
        steps below this lead nowhere, however many are taken.
        """
        origin = np.zeros(self.coordinates.size)
        information = cast(Array, self.likelihood(origin, "full", "expected").hessian)
        matrix, _ = unit_diagonal(information)
        if not np.isfinite(matrix).all():
            return 0.0
        flattest = max(float(np.linalg.eigvalsh(matrix).min(initial=1.0)), _EPSILON)
        return _DIGITS * _EPSILON / flattest

    @property
    def is_nearly_flat(self) -> bool:
        """Whether columns are so nearly combinations of others that rounding sets the tolerance."""
        return self.tolerance > _FLAT

    def _evaluate(self, w: Array) -> _Evaluation | None:
        """None where I is singular to working precision, as it is far out."""
        found = self.likelihood(w, "full", "expected")
        information = cast(Array, found.hessian)
        matrix, scale = unit_diagonal(information)
        lower = cholesky(matrix) if np.isfinite(matrix).all() else None
        if lower is None:
            return None
        inverse, _ = lapack.dtrtri(lower, lower=1)
        leverage = self.leverage(w, inverse / scale, "expected")
        half_log = float(np.log(np.diagonal(lower) * scale).sum())
        # Leverages sum to p but for the rounding of I: what they miss of it is what ln|I| misses.
        half_log += 0.5 * (leverage.total - len(w))
        return _Evaluation(
            found.value - half_log,
            -half_log,
            found.gradient - self.coordinates.contract(self.standard.inward(leverage.gradient)),
            information,
            lower * scale[:, None],
        )

    def _hessian(self, w: Array, here: _Evaluation) -> Array:
        """By differences of gradients along directions whose standard error is one.

        Where that is not positive definite, as it is at every maximum, I.
        """
        inverse, _ = lapack.dtrtri(here.root, lower=1)
        changes = []
        for direction in inverse:
            up, down = (self._evaluate(w + step * direction) for step in (_STEP, -_STEP))
            if up is None or down is None:
                return here.information
            changes.append((up.gradient - down.gradient) / (2 * _STEP))
        whitened = np.stack(changes) @ inverse.T
        whitened = (whitened + whitened.T) / 2
        if cholesky(whitened) is None:
            return here.information
        return cast(Array, here.root @ whitened @ here.root.T)


def jeffreys_levels(levels: Sequence[LogPosterior]) -> list[LogPosterior]:
    """The objective with Jeffreys' prior, after those without it, which cost far less.

    `levels` have no prior, on ever more rows. They lead near the optimum, and their Hessian is
    the metric to start from. A small precision keeps the last from running away.
    """
    rough = _ROUGH * np.sqrt(levels[-1].coordinates.size)
    held = replace(levels[-1], damping=_DAMPING, tolerance=rough)
    return [*levels[:-1], held, with_jeffreys(levels[-1])]


def with_jeffreys(plain: LogPosterior) -> JeffreysPosterior:
    """The objective on all rows, with Jeffreys' prior in place of none."""
    if isinstance(plain.loss, ClassLoss) and not isinstance(plain.loss, SoftmaxLoss):
        raise ParameterError(
            "prior='jeffreys' cannot be combined with labels of several classes that may be wrong.",
            "Use label_noise=0.0 or another prior.",
        )
    if plain.is_wide:
        raise ParameterError(
            f"prior='jeffreys' needs the information matrix of all {plain.coordinates.size} "
            f"parameters; {WIDE} is the most.",
            "Fit fewer columns, or set prior to a number.",
        )
    given = _fields(plain)
    given["standard"] = _Centred(
        plain.standard.centre, plain.standard.scale, plain.standard.intercept
    )
    given["tolerance"] = max(_FINER * plain.tolerance, _FINEST)
    posterior = JeffreysPosterior(**given)
    return replace(posterior, tolerance=max(posterior.tolerance, posterior.rounding()))


def _fields(objective: LogPosterior) -> dict[str, Any]:
    return {each.name: getattr(objective, each.name) for each in fields(objective)}
