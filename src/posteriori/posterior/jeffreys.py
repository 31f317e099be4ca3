"""Jeffreys' prior |I(w)|^½, with I the expected information: Firth's reduction of bias.

The mode of likelihood times prior solves Firth's (1993) adjusted score equations. It is finite
where the classes can be separated (Kosmidis and Firth 2021), and depends neither on the units of
the columns nor on which class is the reference.

Conventions: p free parameters w (p,). I (p, p) is that of w, the intercepts included.
"""

from dataclasses import dataclass, fields, replace
from typing import ClassVar, NamedTuple, cast

import numpy as np
from scipy.linalg import lapack

from posteriori.errors import ParameterError
from posteriori.linalg import cholesky, unit_diagonal
from posteriori.posterior.inference import Inference
from posteriori.posterior.log_posterior import WIDE, LogPosterior
from posteriori.solve.objective import Curvature, Local
from posteriori.statistics.local_quadratic import Information
from posteriori.typing import Array, Codes

_STEPS, _FACTORS = 0.003 * np.array([-2, -1, 1, 2]), np.array([1, -8, 8, -1]) / (12 * 0.003)
"""Steps along a direction, in standard errors, and the weights of the gradients there in a central
difference of fourth order, which is accurate to ten digits."""

_TOLERANCE = 1e-9
"""Standard errors from the optimum: scoring converges linearly, a digit in three steps."""

_MOST_OPERATIONS = 1e10
"""The most operations of one evaluation with several classes: about ten seconds."""


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

    An evaluation is a pass for I and a pass for the leverages. With "expected" `information` the
    Hessian is I, at no further cost; with "observed" it is the Hessian itself, by 4p more
    evaluations.
    """

    has_exact_hessian: ClassVar[bool] = False

    def __call__(self, w: Array, hessian: Curvature) -> Local:
        here = self._evaluate(w)
        if here is None:
            return Local(np.inf, np.zeros(len(w)), np.eye(len(w)))
        if hessian != "full":
            return Local(here.value, here.gradient, None)
        observed = self.information == "observed"
        curved = self._hessian(w, here) if observed else here.information
        return Local(here.value, here.gradient, curved)

    def conclude(
        self, w: Array, dependent: Codes, information: Information = "expected"
    ) -> tuple[Inference, float]:
        """Inference at the optimum w, and the penalised log-likelihood ln p(t|w) + ½ ln|I|.

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

    def _log_units(self, dependent: Codes) -> float:
        """½ ln|I| in the user's units less that in free parameters of standardised columns."""
        coordinates, K = self.coordinates, self.coordinates.n_activations
        of_columns = np.log(np.delete(self.standard.scale, dependent)).sum()
        return float(coordinates.c * of_columns - 0.5 * coordinates.k * np.log(K))

    def _evaluate(self, w: Array) -> _Evaluation | None:
        """None where I is singular to working precision, as it is for extreme coefficients."""
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
        directions, _ = lapack.dtrtri(here.root, lower=1)
        changes = []
        for direction in directions:
            near = [self._evaluate(w + step * direction) for step in _STEPS * self.unit]
            gradients = [each.gradient for each in near if each is not None]
            if len(gradients) < len(_STEPS):
                return here.information
            changes.append(_FACTORS / self.unit @ np.stack(gradients))
        whitened = np.stack(changes) @ directions.T
        whitened = (whitened + whitened.T) / 2
        if cholesky(whitened) is None:
            return here.information
        return cast(Array, here.root @ whitened @ here.root.T)


def with_jeffreys(plain: LogPosterior) -> JeffreysPosterior:
    """The objective with Jeffreys' prior in place of none."""
    if plain.is_wide:
        raise ParameterError(
            f"prior='jeffreys' needs the information matrix of all {plain.coordinates.size} "
            f"parameters; {WIDE} is the most.",
            "Fit fewer columns, or set prior to a number.",
        )
    K, p = plain.coordinates.n_activations, plain.coordinates.size
    if K > 1 and plain.n_rows * K**2 * p > _MOST_OPERATIONS:
        raise ParameterError(
            f"prior='jeffreys' with {K} classes and {p} parameters would take too long.",
            "Fit fewer columns, or set prior to a number.",
        )
    given = {each.name: getattr(plain, each.name) for each in fields(plain)}
    return JeffreysPosterior(**given | {"information": "expected", "tolerance": _TOLERANCE})
