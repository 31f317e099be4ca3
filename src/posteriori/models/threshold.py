"""A noisy threshold (4.112)-(4.113): two classes by the distribution function of any noise."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, cast

import numpy as np
from scipy import stats

from posteriori.errors import ParameterError
from posteriori.likelihood.binary import BinaryLoss
from posteriori.likelihood.link import ProbabilityLink
from posteriori.likelihood.loss import Loss
from posteriori.likelihood.soft_ends import domain_of, ends, softened
from posteriori.likelihood.threshold import ThresholdLoss
from posteriori.models.discriminative import Solver
from posteriori.models.edges import in_words, rows_at, solved
from posteriori.models.fitting import Prepared, Problem
from posteriori.models.linked import LinkedClassifier
from posteriori.models.scoring import choice, scored
from posteriori.posterior.objective import LogPosterior
from posteriori.posterior.priors import PriorLike
from posteriori.rows.rows import Rows
from posteriori.rows.schema import Unseen
from posteriori.solve.solution import Iteration, Solution, Status
from posteriori.statistics.local_quadratic import Information
from posteriori.typing import Array

_NOTHING = 1e-12
"""A loss of all rows together that is no more than rounding."""


class ThresholdRegression(LinkedClassifier):
    """p(C₂|x) = F(wᵀφ(x)), F the distribution function of the noise (4.113).

    A row is of the second class where wᵀφ exceeds a threshold θ, and θ is drawn from the noise
    (4.112), so that F(a) = ∫ p(θ) dθ up to a, as in Figure 4.13. Normal noise is probit regression,
    logistic noise is logistic regression; heavy tails, such as Student's, make the fit robust.

    Parameters
    ----------
    noise : a continuous distribution of SciPy, its name, or a `Mixture`
        `scipy.stats.cauchy`, `scipy.stats.t(3)`, `"gumbel_r"`, or
        `Mixture([0.4, 0.6], [norm(-1, 0.5), norm(1.5, 1)])`.
    prior, fit_intercept, tol, max_iter, unseen
        As in `ProbitRegression`.

    Attributes
    ----------
    coef_ (1, d), intercept_ (1,), classes_; n_iter_, converged_, solution_; coef_covariance_
    (intercept first, by the expected second derivative f²/(F(1 - F))), log_likelihood_;
    n_parameters_.

    `decision_function` is wᵀφ less the median of the noise: positive where the second class is the
    more probable one.

    The fit starts at the quantile of the share of the second class. Unless ln F and ln(1 - F) are
    known to be concave it takes steps of Fisher scoring until it is close, as the likelihood may
    have several maxima, of which it finds one. Noise of bounded support makes rows certain: the
    fit never gives a label probability zero.

    Examples
    --------
    >>> from scipy.stats import cauchy
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = ThresholdRegression(noise=cauchy).fit(X[:, :2], y)
    >>> model.coef_.round(3), model.intercept_.round(3)
    (array([[-1.684, -0.307]]), array([30.769]))
    """

    solver: Solver = "auto"
    _information: Information = "expected"

    def __init__(
        self,
        *,
        noise: Any = "norm",
        prior: PriorLike | Literal["jeffreys"] = None,
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int | None = None,
        unseen: Unseen = "error",
    ) -> None:
        self.noise = noise
        self.prior = prior
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.unseen = unseen

    def _loss(self, n_classes: int, soft: bool) -> Loss:
        return ThresholdLoss(read_noise(self.noise))

    def _make_link(self) -> ProbabilityLink:
        return cast(ThresholdLoss, self._loss(2, False)).link

    def _problem(self, rows: Rows) -> Problem:
        domain = domain_of(self._make_link())
        self._check_prior(domain.is_bounded)
        return replace(super()._problem(rows), domain=domain)

    def _solve(self, prepared: Prepared) -> Solution[Array, Iteration]:
        self.solver_, self.solver_reason_ = choice(prepared.objective)
        link, suspicion = self._fitted_link, self._suspicion(prepared.objective)
        places = ends(link)
        if not places:
            return scored(prepared.levels, prepared.start, self.max_iter, suspicion)
        solution, at_end = solved(
            prepared, lambda width: BinaryLoss(softened(link, width)), self.max_iter, suspicion
        )
        if at_end:
            self._warn_of_ends(prepared.objective, solution, places)
        elif solution.value <= _NOTHING and suspicion is not None and suspicion():
            return replace(solution, status=Status.SEPARATED)  # each label is certain
        return solution

    def _warn_of_ends(
        self,
        objective: LogPosterior,
        solution: Solution[Array, Iteration],
        places: Sequence[float],
    ) -> None:
        low, high = self._fitted_link.activation(np.array([0.25, 0.75]))
        edge = rows_at(objective, solution.parameters, places, high - low)
        if edge.n_rows:
            self._warn_of_edge(
                f"The likelihood is largest where {in_words(edge)} lies at an end of the support "
                "of the noise. It has a kink there, so that standard errors do not hold.",
                "Use noise whose density is smooth for inference.",
            )


def read_noise(noise: Any) -> Any:
    """The distribution of that name, or the one given."""
    if not isinstance(noise, str):
        return noise
    found = getattr(stats, noise, None)
    if not isinstance(found, stats.rv_continuous):
        raise ParameterError(
            f"noise={noise!r} is not the name of a continuous distribution in scipy.stats.",
            "Use a name such as 'norm', 'cauchy' or 'gumbel_r', or a distribution itself.",
        )
    return found
