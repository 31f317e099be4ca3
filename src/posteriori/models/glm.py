"""Generalised linear models (4.3.6): E[t|x] = f(wᵀφ(x)), t from an exponential family."""

from dataclasses import replace
from typing import Any, Literal, cast

from sklearn.utils.validation import check_is_fitted

from posteriori.design.columns import Columns
from posteriori.errors import LabelError, ParameterError
from posteriori.likelihood.glm import GLM_FAMILIES
from posteriori.likelihood.link import ProbabilityLink
from posteriori.likelihood.links import PROBABILITY_LINKS
from posteriori.likelihood.logistic import SignedLogisticLoss
from posteriori.likelihood.loss import ClassLoss, Loss
from posteriori.likelihood.softmax import SoftmaxLoss
from posteriori.models.choosing import with_dispersion
from posteriori.models.discriminative import WITH_A_NUMBER, Solver
from posteriori.models.doubt import no_separation
from posteriori.models.edges import in_words
from posteriori.models.either import RegressorOrClassifier, classifies
from posteriori.models.fitting import Prepared, Problem
from posteriori.models.glm_solving import running, solve_glm, warn_of_running
from posteriori.models.mechanism import Mechanism, check_targets, read_mechanism
from posteriori.models.running import find_running
from posteriori.models.scoring import choice
from posteriori.posterior.chosen_prior import Chosen
from posteriori.posterior.inference import Inference
from posteriori.posterior.objective import LogPosterior
from posteriori.posterior.priors import PriorLike, PriorName, flat
from posteriori.rows.block import Block
from posteriori.rows.in_memory import MemoryRows, read_real_rows
from posteriori.rows.rows import Rows
from posteriori.rows.scan import as_source, is_source
from posteriori.rows.schema import Unseen
from posteriori.rows.source import FitRows
from posteriori.solve.separation import Separation
from posteriori.solve.solution import Iteration, Solution, Status
from posteriori.statistics.local_quadratic import Information
from posteriori.typing import Array, Labels

FamilyName = Literal["gaussian", "bernoulli", "categorical", "poisson", "exponential", "gamma"]


class GLM(RegressorOrClassifier):
    """A generalised linear model: E[t|x] = f(wᵀφ(x)) with t from an exponential family (4.118).

    f is the activation function, its inverse the link (4.120). With the canonical link the
    activation is the natural parameter of the family, up to its sign, and the gradient is
    Σ (μ - t)φ (4.124).

    One estimator for numbers and for classes: with `family="bernoulli"` (two classes) or
    `"categorical"` (any number) it is a scikit-learn classifier, with all that `LogisticRegression`
    has; with the other families it is a regressor whose `predict` is the mean. What belongs to
    classifiers only (`predict_proba`, `decision_function`, `classes_`, ...) a regressor lacks.

    Parameters
    ----------
    family : "gaussian", "bernoulli", "categorical", "poisson", "exponential" or "gamma"
    link : "canonical", or the name of a link that the family can have
        gaussian: identity, log, reciprocal. bernoulli: logit, probit, cloglog, log, identity.
        categorical: softmax. poisson: log, identity. exponential and gamma: reciprocal, log,
        identity. The first of each is the canonical one.
    prior : None, a number or a `GaussianPrior`; for classes also "jeffreys"
        None is maximum likelihood; a number is the precision of every slope. Where the family has
        a dispersion s, the precision is in units of 1/s, as in ridge regression.
    fit_intercept : bool
    tol : float
        The iteration ends within about this many standard errors of the optimum; much nearer
        where that costs little.
    max_iter : int or None
    unseen : "error" or "reference"
        What to do with a level of a factor that the fit never saw.

    Attributes
    ----------
    coef_ (d,) and intercept_, a number; for classes (1, d) or (K, d) as in `LogisticRegression`,
    and classes_. dispersion_: Pearson's χ²/(n - parameters) for gaussian and gamma targets, else
    one. n_iter_, converged_, solution_, n_parameters_; coef_covariance_ by the expected second
    derivative, log_likelihood_, deviance_; null_deviance_, which is infinite where there is no
    intercept and the offsets alone have no mean of the family. separation_: the coefficients that
    run to infinity; its `kind` is "none" where there are none. Where there are some, and no prior
    holds them, converged_ is False: the fit stopped on a way without an end.

    Where a link has means that the family cannot have (identity, reciprocal; for classes log), the
    fit starts inside, stays inside, and warns if the likelihood is largest at the edge. New rows
    beyond the edge are an error that names them.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = GLM(family="gamma", link="log").fit(X[:, :3], y)
    >>> model.coef_.round(3), round(model.dispersion_, 3)
    (array([ 1.051, -0.442,  5.923]), 0.185)
    >>> model.predict(X[:2, :3]).round(1)
    array([213.7, 109.3])
    >>> GLM(family="bernoulli", link="cloglog").fit(X[:, :3], y > 100).predict(X[:2, :3])
    array([ True, False])

    Counts over unequal times, with the logarithm of the times as offset:

    >>> import numpy as np
    >>> count, years, old = [2, 12, 30], [20.0, 40.0, 50.0], [[0.0], [1.0], [1.0]]
    >>> model = GLM(family="poisson").fit(old, count, offset=np.log(years))
    >>> np.exp(model.intercept_).round(3), np.exp(model.coef_).round(3)
    (np.float64(0.1), array([4.667]))
    """

    solver: Solver = "auto"
    _information: Information = "expected"

    def __init__(
        self,
        *,
        family: FamilyName = "gaussian",
        link: str = "canonical",
        prior: PriorLike | PriorName = None,
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int | None = None,
        unseen: Unseen = "error",
    ) -> None:
        self.family = family
        self.link = link
        self.prior = prior
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.unseen = unseen

    # Reading the target, and the problem that it makes.

    def _read(self, X: Any, y: Any, sample_weight: Any, classes: Any, **reading: Any) -> FitRows:
        self._mechanism = read_mechanism(self.family, self.link)
        if classifies(self) or not is_source(X):
            return super()._read(X, y, sample_weight, classes, **reading)
        rows = as_source(X, y, sample_weight, classes, "GLM").with_numbers()
        with rows.fitting():
            return rows.discover()

    def _make_rows(
        self, X: Any, y: Any, sample_weight: Any, classes: Any, **reading: Any
    ) -> MemoryRows:
        if classifies(self):
            return super()._make_rows(X, y, sample_weight, classes, **reading)
        if classes is not None:
            raise ParameterError(
                f"A {self.family} target has no classes.",
                "Leave out classes, or use family='categorical'.",
            )
        return read_real_rows(X, y, sample_weight, model=type(self).__name__)

    def _check_prior(self, has_ends: bool) -> None:
        if self.prior == "jeffreys" and not classifies(self):
            raise ParameterError(
                "prior='jeffreys' is for targets that are classes.",
                "Use None, a number or a GaussianPrior.",
            )
        super()._check_prior(has_ends)

    def _with_chosen_prior(self, prepared: Prepared) -> Prepared:
        family = None if classifies(self) else GLM_FAMILIES[self.family]
        if family is None or family.dispersion_fixed:
            return super()._with_chosen_prior(prepared)
        return self._adopted(
            with_dispersion(prepared, cast(Chosen, self.prior), self._solve, family)
        )

    def _problem(self, rows: Rows) -> Problem:
        self._check_prior(self._mechanism.domain.is_bounded)
        if classifies(self):
            return replace(super()._problem(rows), domain=self._mechanism.domain)
        self._edge = None
        check_targets(
            rows, _target, self._mechanism, None if isinstance(self.prior, str) else self.prior
        )
        return Problem(
            rows,
            Columns(rows.schema, unseen=self.unseen),
            self._mechanism.loss,
            _target,
            1,
            self.fit_intercept and (self.formula_ is None or self.formula_.intercept),
            self._first_prior(),
            self.tol,
            self._information,
            self._mechanism.domain,
        )

    def _loss(self, n_classes: int, soft: bool) -> Loss | ClassLoss:
        if n_classes > 2:
            return SoftmaxLoss()
        if self._mechanism.link == "logit" and not soft:
            return SignedLogisticLoss()
        return self._mechanism.loss

    def _check_classes(self, classes: Labels) -> None:
        if self.family == "bernoulli" and len(classes) > 2:
            raise LabelError(
                "Only binary classification is supported. A bernoulli target is one of two "
                f"classes; y has {len(classes)}.",
                "Use family='categorical'.",
            )

    def _make_link(self) -> ProbabilityLink:
        return PROBABILITY_LINKS[self._mechanism.link]

    # Solving.

    def _solve(self, prepared: Prepared) -> Solution[Array, Iteration]:
        if isinstance(prepared.objective.loss, ClassLoss | SignedLogisticLoss):
            return super()._solve(prepared)
        self.solver_, self.solver_reason_ = choice(prepared.objective)
        suspicion = self._suspicion(prepared.objective) if classifies(self) else None
        solution, edge = solve_glm(prepared, self._mechanism, self.max_iter, suspicion)
        if edge.n_rows:
            self._warn_of_edge(
                f"The likelihood is largest where {in_words(edge)} lies at an end of the means "
                f"that the {self.family} family with the {self._mechanism.link} link can have. "
                "Standard errors do not hold there.",
                "Use the canonical link, or a prior.",
            )
        return solution

    def _finish(self, prepared: Prepared, remedies: str = WITH_A_NUMBER) -> None:
        found = None if self._runs_both_ways else running(prepared, self._mechanism)
        super()._finish(prepared, remedies)
        if found is not None:
            warn_of_running(found)
            self._separation = found.separation
            self._inference.determined = found.determined
            self.solution_ = replace(self.solution_, status=Status.SEPARATED)
            self.converged_ = False

    @property
    def _runs_both_ways(self) -> bool:
        """Whether the mean can come as close as it likes to both classes, in the limit alone."""
        return classifies(self) and self._mechanism.link not in ("log", "identity")

    def _proves_overlap(self, objective: LogPosterior) -> bool:
        return self._runs_both_ways and super()._proves_overlap(objective)

    def _find_separation(self) -> Separation:
        if self._runs_both_ways:
            return super()._find_separation()
        return _running_without_prior(self._inference.objective, self._mechanism)

    def _infer(self, prepared: Prepared, solution: Solution[Array, Iteration]) -> Inference:
        if classifies(self):
            return super()._infer(prepared, solution)
        family = GLM_FAMILIES[self.family]
        return Inference(prepared.objective, solution.parameters, solution.value, family)

    def _summary_facts(self) -> tuple[tuple[str, str], ...]:
        link = "softmax" if self.family == "categorical" else self._mechanism.link
        return (*super()._summary_facts(), ("Family", self.family), ("Link", link))

    @property
    def separation_(self) -> Separation:
        """Which coefficients run to infinity, by linear programs: its `kind`, `columns`, ...

        It is that of the targets and the link, whatever the prior: with one, the programs are
        solved when this is first asked for. With the log link (and for 1/a), only means of zero
        are in the limit alone, so that rows with other targets hold their coefficients; with the
        identity none is, and nothing runs away.
        """
        check_is_fitted(self)
        if self._separation is None:
            self._separation = self._find_separation()
        return self._separation

    @property
    def dispersion_(self) -> float:
        """s of (4.118): one, or Pearson's χ² over the degrees of freedom left."""
        return self._fitted_inference().goodness.dispersion


def _running_without_prior(objective: LogPosterior, mechanism: Mechanism) -> Separation:
    """Which coefficients would run to infinity by the targets alone."""
    sign, free = mechanism.zero_lies_at, replace(objective, penalty=flat(objective.coordinates.q))
    found = None if not sign or objective.is_wide else find_running([free], sign)
    return no_separation(objective) if found is None else found.separation


def _target(block: Block) -> Array:
    return cast(Array, block.y)
