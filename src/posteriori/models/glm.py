"""Generalised linear models (4.3.6): families of the target with links, fit and predictions."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import d2_tweedie_score
from sklearn.utils import RegressorTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from posteriori.arguments import names_of_others
from posteriori.errors import (
    BoundaryWarning,
    DomainError,
    ParameterError,
    ScaleError,
    warn,
)
from posteriori.likelihood.binary_losses import SignedLogisticLoss
from posteriori.likelihood.glm_families import (
    GLM_FAMILIES,
    BarrierLoss,
    PowerVarianceLoss,
    TargetFamily,
    glm_loss,
)
from posteriori.likelihood.links import (
    PROBABILITY_LINKS,
    Domain,
    Link,
)
from posteriori.likelihood.loss import ClassLoss, Loss
from posteriori.likelihood.softmax import SoftmaxLoss
from posteriori.models.base import anywhere
from posteriori.models.binary_links import check_prior_and_domain
from posteriori.models.fitting import Prepared
from posteriori.models.likelihood_fit import (
    A_NUMBER,
    ANY_PRIOR,
    Plan,
    Solver,
    dispersion_of,
    solver_of,
)
from posteriori.models.likelihood_model import LikelihoodModel
from posteriori.models.scoring import Solved, choice, scored
from posteriori.models.separation import SeparationSearch, Solve
from posteriori.posterior.activations import check_inside
from posteriori.posterior.log_posterior import LogPosterior
from posteriori.posterior.priors import GaussianPrior, PriorLike, PriorName
from posteriori.rows.block import Block, FitRows, Rows
from posteriori.rows.in_memory import MemoryRows, read_real_rows
from posteriori.rows.scan import as_source
from posteriori.rows.schema import HandleUnknown
from posteriori.rows.source import SourceRows
from posteriori.solve.objective import Iteration, Solution, Status
from posteriori.statistics.glm_domain import first_row, offset_range, target_range
from posteriori.statistics.goodness_of_fit import Fitted, GatherTargetMean
from posteriori.statistics.local_quadratic import Information
from posteriori.typing import Array

_SMALLEST, _LARGEST = 1e-100, 1e100
"""Sizes of targets whose squares and second derivatives can be summed and inverted."""


@dataclass(frozen=True)
class Target:
    """A family and a link by name.

    >>> Target("exponential", "reciprocal").domain
    Domain(low=0.0, high=inf)
    """

    family: str
    link: str

    @property
    def loss(self) -> Loss:
        """-ln p(t|a)."""
        return glm_loss(self.family, self.link)

    @property
    def mean_link(self) -> Link:
        """The link with the ends that the means of this family have."""
        if self.is_class:
            return PROBABILITY_LINKS[self.link]
        return cast(PowerVarianceLoss, self.loss).link

    @property
    def domain(self) -> Domain:
        """The activations whose mean a target of this family can have."""
        return self.mean_link.domain

    @property
    def is_class(self) -> bool:
        """Whether the target is a class."""
        return self.family == "bernoulli"


def read_target(family: str, link: str) -> Target:
    """The family and link that the user named."""
    if family == "categorical":
        if link not in ("canonical", "softmax"):
            raise ParameterError(
                f"A categorical target cannot have the link {link!r}.",
                "Choose 'canonical', which is 'softmax'.",
            )
        return Target("bernoulli", "logit")
    glm_loss(family, link)
    return Target(family, GLM_FAMILIES[family].canonical if link == "canonical" else link)


def check_targets(rows: Rows, family: TargetFamily, prior: Any) -> None:
    """An error that names a target which the family cannot have, or targets that are all zero."""
    largest, row = target_range(rows, family)
    if np.isfinite(row):
        raise DomainError(
            f"Row {row:.0f} of y is outside the domain of the {family.name} family: targets must "
            f"be {family.domain}.",
            "Drop such rows, or choose a family that has them.",
        )
    if largest > 0 and not _SMALLEST < largest < _LARGEST:
        raise ScaleError(
            f"The largest target has the size {largest:.3g}, whose square does not fit in a "
            "double.",
            f"{'Divide' if largest > 1 else 'Multiply'} y by a large number.",
        )
    if family.name != "gaussian" and largest <= 0 and not isinstance(prior, GaussianPrior):
        raise DomainError(
            "All targets are zero, and so is the best mean, which no distribution of the "
            f"{family.name} family has.",
            "Pass rows with other targets, or a GaussianPrior on the intercept too.",
        )


def check_means(mean: Array) -> None:
    """An error that names the first row whose mean overflows."""
    if not np.isfinite(mean).all():
        raise ScaleError(
            f"The mean of row {int(np.argmin(np.isfinite(mean)))} does not fit in a double.",
            "Check its entries: they are far outside the range of those of the fit.",
        )


CLASSES = ("bernoulli", "categorical")
"""Families whose target is a class."""


def classifies(model: "GLM") -> bool:
    """Whether the target is a class."""
    return model.family in CLASSES


_for_classes = available_if(classifies)
"""Methods that a model of numbers lacks."""

_LARGEST_SPAN = 30.0
"""Offsets of a log link that differ by more leave no digits for the rows with the smaller means."""

_WITH_ENDS = ("poisson", "bernoulli")
"""Families in which the likelihood of a row can be more than zero at an end of the domain."""

_HEIGHTS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
"""Heights of the barrier, in units of the usual loss of a row."""

_FINE = 1e-4
"""Tolerances as a part of heights: the curvature of a row at an end is about 1/height."""

_NEAR = 1e-5
"""Rows this close to an end, as a part of the usual size of activations, lie at it."""


def solver_of_target(target: Target, max_iter: int | None, convex: Solve) -> Solve:
    """The optimum, inside the domain or at an end of it; `convex` solves what is a logistic fit.

    Tolerances are multiplied by the root of the dispersion at the start: they are standard errors.
    """

    def optimum(prepared: Prepared, search: SeparationSearch) -> Solved:
        objective, family = prepared.objective, GLM_FAMILIES[target.family]
        if isinstance(objective.loss, ClassLoss | SignedLogisticLoss):
            return convex(prepared, search)
        if target.link == "log" and not target.is_class:
            _check_offsets(objective.rows)
        levels = prepared.levels
        if not target.is_class:
            dispersion = dispersion_of(levels[0], prepared.start, family)
            unit = np.sqrt(min(dispersion, 1.0) if family.dispersion_fixed else dispersion)
            if 0 < unit < np.inf:
                levels = [replace(level, tolerance=unit * level.tolerance) for level in levels]
        solution = scored(levels, prepared.start, max_iter, search.callback(objective))
        edge, is_settled = "", solution.converged or solution.status is Status.SEPARATED
        if not is_settled and target.domain.is_bounded and target.family in _WITH_ENDS:
            solution, edge = _at_the_ends(levels[-1], target, prepared.start, max_iter, search)
        if not np.isfinite(solution.value):
            raise ScaleError(
                "No coefficients were found with which the likelihood of every row is more than "
                f"zero: with the {target.link} link some means are too large or too small.",
                "Use smaller offsets and targets, or smaller entries of the columns.",
            )
        return Solved(solution, *choice(objective), edge)

    return optimum


def _check_offsets(rows: Rows) -> None:
    """An error for means that cannot be fitted together, with the log link."""
    low, high = offset_range(rows)
    if high - low > _LARGEST_SPAN:
        raise ScaleError(
            f"The offsets lie between {low:.6g} and {high:.6g}: with the log link, means that "
            f"differ by a factor of exp({high - low:.4g}) cannot be fitted together.",
            "An offset is the logarithm of an exposure: check that it is, and drop rows whose "
            "exposures are negligible beside a typical one.",
        )


def _at_the_ends(
    objective: LogPosterior,
    target: Target,
    w: Array,
    max_iter: int | None,
    search: SeparationSearch,
) -> tuple[Solution[Array, Iteration], str]:
    """The optimum at an end of the domain, where no derivative vanishes, by ever lower barriers.

    With a sentence on the rows that lie at an end.
    """
    size, trace = 1.0, list[Iteration]()
    if not target.is_class:  # of counts, whose link is the identity
        size = float(objective.rows.map_sum(GatherTargetMean(objective.target)).mean[0])
    for height in _HEIGHTS:
        loss = BarrierLoss(cast(Loss, objective.loss), target.domain, height * size)
        tolerance = min(objective.tolerance, _FINE * height)
        level = replace(objective, loss=loss, tolerance=tolerance)
        solution = scored([level], w, max_iter)
        w, trace = solution.parameters, [*trace, *solution.trace]
    solution = replace(solution, value=objective(w, "none").value, trace=tuple(trace))
    if search.may_diverge(objective) and search.diverges(objective, w):
        return replace(solution, status=Status.SEPARATED), ""
    activation, ends = Fitted(objective.kernel(w)), np.array(target.domain)

    def at_an_end(block: Block) -> NDArray[np.bool_]:
        distance = abs(activation(block)[:, None] - ends).min(axis=1)
        return cast(NDArray[np.bool_], distance < _NEAR * size)

    row = first_row(objective.rows, at_an_end)
    if row == np.inf:
        return solution, ""
    sentence = (
        f"The likelihood is largest where row {row:.0f}, and perhaps others, lies at the boundary "
        f"of the means that the {target.family} family with the {target.link} link can have. "
        "Standard errors are not valid there."
    )
    warn(BoundaryWarning(sentence, "Use the canonical link, or a prior."))
    return solution, sentence


FamilyName = Literal["gaussian", "bernoulli", "categorical", "poisson", "exponential", "gamma"]


class GLM(LikelihoodModel):
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
    handle_unknown : "error" or "reference"
        What to do at prediction with a level of a factor that was not in the fit.

    Attributes
    ----------
    coef_ (d,) and intercept_, a number; for classes (1, d) or (K, d) as in `LogisticRegression`,
    and classes_. dispersion_: Pearson's χ²/(n - parameters) for gaussian and gamma targets, else
    one. n_iter_, converged_, solution_, n_parameters_; coef_covariance_ by the expected second
    derivative, log_likelihood_, deviance_; null_deviance_, which is infinite where there is no
    intercept and the offsets alone have no mean of the family. separation_: the coefficients that
    diverge; its `kind` is "none" where there are none. Where there are some, and no prior keeps
    them finite, converged_ is False.

    `score` is D², the explained share of the deviance, as in the generalised linear models of
    scikit-learn; for classes it is the accuracy.

    Where a link has means that the family cannot have (identity, reciprocal; for classes log), the
    fit stays in the domain, and warns if the likelihood is largest at its boundary. New rows
    outside the domain are an error that names them.

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

    family: str
    link: str
    _target: Target

    solver: Solver = "auto"
    _information: Information = "expected"

    @property
    def _binary_only(self) -> bool:  # type: ignore[override]
        return self.family == "bernoulli"

    def _link(self) -> Any:
        return self._target.mean_link

    @property
    def coef_(self) -> Array:
        """w: (d,) for a number; for classes (1, d), or (K, d), summing to zero."""
        weights = super().coef_
        return weights if classifies(self) else weights[0]

    @property
    def intercept_(self) -> Any:
        """w₀: a number; for classes (1,) or (K,)."""
        bias = super().intercept_
        return bias if classifies(self) else float(bias[0])

    @anywhere
    def predict(self, X: Any, offset: Any = None) -> Any:
        """The mean E[t|x] (n,); for classes the most probable one."""
        if classifies(self):
            return super().predict(X, offset)
        check_is_fitted(self)
        mean = self._evaluate_with(X, offset, lambda a: self._link().mean(a[:, 0]))
        check_means(mean)
        return mean

    def _predicted(self, block: Block) -> Array:
        """The probabilities of a block's rows (n, K), or their means (n,)."""
        if classifies(self):
            return super()._predicted(block)
        a = self._block_activations(block)[:, 0]
        check_inside(self._link(), a, block)
        mean = self._link().mean(a)
        check_means(mean)
        return mean

    def _variance(self, mean: Array) -> Array:
        """That of targets with these means: s V(μ)."""
        dispersion = self._fitted_inference().goodness.dispersion
        return dispersion * GLM_FAMILIES[self.family].variance(mean)

    def _evaluate_with(
        self, X: Any, offset: Any, link: Callable[[Array], Array], width: int | None = None
    ) -> Array:
        if not self._target.domain.is_bounded:
            return super()._evaluate_with(X, offset, link, width)
        activation = super()._evaluate_with(X, offset, lambda a: a, 1)
        check_inside(self._link(), activation[:, 0])
        return link(activation)

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """D², the explained share of the deviance (for gaussian targets R²); accuracy of classes.

        D² = 1 - dev(y, μ) / dev(y, ȳ), as in the generalised linear models of scikit-learn.
        """
        if classifies(self):
            return super().score(X, y, sample_weight, offset)
        power = cast(PowerVarianceLoss, self._target.loss).power
        mean = self.predict(X, offset=offset)
        return float(d2_tweedie_score(y, mean, sample_weight=sample_weight, power=power))

    decision_function = _for_classes(LikelihoodModel.decision_function)
    predict_proba = _for_classes(LikelihoodModel.predict_proba)
    predict_log_proba = _for_classes(LikelihoodModel.predict_log_proba)
    hyperplane = _for_classes(LikelihoodModel.hyperplane)
    signed_distance = _for_classes(LikelihoodModel.signed_distance)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if classifies(self):
            return tags
        tags.estimator_type = "regressor"
        tags.classifier_tags, tags.regressor_tags = None, RegressorTags()
        has_any_mean = self.family == "gaussian" and self.link in ("canonical", "identity")
        tags.target_tags.positive_only = not has_any_mean
        return tags

    @names_of_others
    def __init__(
        self,
        *,
        family: FamilyName = "gaussian",
        link: str = "canonical",
        prior: PriorLike | PriorName = None,
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int | None = None,
        handle_unknown: HandleUnknown = "error",
    ) -> None:
        self.family = family
        self.link = link
        self.prior = prior
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.handle_unknown = handle_unknown

    def _read(self, X: Any, y: Any, sample_weight: Any, classes: Any, **reading: Any) -> FitRows:
        self._target = read_target(self.family, self.link)
        return super()._read(X, y, sample_weight, classes, **reading)

    def _read_source(
        self, X: Any, y: Any, sample_weight: Any, classes: Any, **reading: Any
    ) -> SourceRows:
        if self._target.is_class:
            return super()._read_source(X, y, sample_weight, classes, **reading)
        rows = as_source(X, y, sample_weight, classes, "GLM").with_numbers()
        with rows.fitting():
            rows.discover().check_text()
        return rows

    def _make_rows(
        self, X: Any, y: Any, sample_weight: Any, classes: Any, **reading: Any
    ) -> MemoryRows:
        if self._target.is_class:
            return super()._make_rows(X, y, sample_weight, classes, **reading)
        if classes is not None:
            raise ParameterError(
                f"A {self.family} target has no classes.",
                "Leave out classes, or use family='categorical'.",
            )
        return read_real_rows(X, y, sample_weight, model=type(self).__name__)

    def _plan(self, rows: FitRows) -> Plan:
        target, family = self._target, None
        check_prior_and_domain(self.prior, target.domain)
        if not target.is_class:
            if self.prior == "jeffreys":
                raise ParameterError(
                    "prior='jeffreys' is for targets that are classes.",
                    "Use None, a number or a GaussianPrior.",
                )
            family = GLM_FAMILIES[target.family]
            check_targets(rows, family, self.prior)
        n_classes = 2 if rows.classes is None else len(rows.classes)
        convex = solver_of("auto", self.tol, self.max_iter)
        problem = self._problem(rows, self._loss(n_classes, rows.soft))
        return Plan(
            replace(problem, domain=target.domain),
            self.prior,
            solver_of_target(target, self.max_iter, convex),
            SeparationSearch(
                zero_means=target.link == "log",
                has_limits=target.link not in ("identity", "reciprocal"),
            ),
            self._link(),
            family,
            remedies=A_NUMBER if target.domain.is_bounded else ANY_PRIOR,
            max_iter=self.max_iter,
        )

    def _loss(self, n_classes: int, soft: bool) -> Loss | ClassLoss:
        if n_classes > 2:
            return SoftmaxLoss()
        if self._target.link == "logit" and not soft:
            return SignedLogisticLoss()
        return self._target.loss

    def _summary_facts(self) -> tuple[tuple[str, str], ...]:
        link = "softmax" if self.family == "categorical" else self._target.link
        return (*super()._summary_facts(), ("Family", self.family), ("Link", link))

    @property
    def dispersion_(self) -> float:
        """s of (4.118): one, or Pearson's χ² over the degrees of freedom left."""
        return self._fitted_inference().goodness.dispersion
