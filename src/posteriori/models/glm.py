"""Generalised linear models (4.3.6): families of the target with links, fit and predictions."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import r2_score
from sklearn.utils import RegressorTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from posteriori.arguments import either
from posteriori.design.columns import Columns
from posteriori.errors import DomainError, LabelError, ParameterError, ScaleError
from posteriori.likelihood.binary_losses import SignedLogisticLoss
from posteriori.likelihood.glm_families import GLM_FAMILIES, BarrierLoss, glm_loss
from posteriori.likelihood.linear_activations import Linear
from posteriori.likelihood.links import (
    LINKS,
    PROBABILITY_LINKS,
    Domain,
    Link,
    PositiveIdentity,
    ProbabilityLink,
)
from posteriori.likelihood.loss import ClassLoss, Loss
from posteriori.likelihood.softmax import SoftmaxLoss
from posteriori.models.base import anywhere
from posteriori.models.binary_links import LinkedClassifier
from posteriori.models.fitting import Prepared, Problem
from posteriori.models.likelihood_model import Solver
from posteriori.models.linear import Hyperplane
from posteriori.models.scoring import (
    MOST_STEPS,
    choice,
    divided,
    multiplied,
    scored,
    with_dispersion,
)
from posteriori.models.separation import CERTAIN, shows_overlap, support_of, warn_of_zero_means
from posteriori.posterior.evidence import Chosen
from posteriori.posterior.inference import Inference
from posteriori.posterior.log_posterior import LogPosterior
from posteriori.posterior.priors import GaussianPrior, PriorLike, PriorName
from posteriori.rows.block import Block, Rows
from posteriori.rows.in_memory import MemoryRows, read_real_rows
from posteriori.rows.scan import as_source, is_source
from posteriori.rows.schema import HandleUnknown, Schema
from posteriori.rows.source import FitRows
from posteriori.solve.objective import Iteration, Solution, Status
from posteriori.solve.separation import Separation, unseparated
from posteriori.statistics.glm_domain import (
    CountRows,
    GatherLogLevel,
    GatherTargetRange,
    RowCount,
    offset_range,
)
from posteriori.statistics.goodness_of_fit import Fitted, GatherFamilyFit, GatherTargetMean
from posteriori.statistics.local_quadratic import Information, Target
from posteriori.statistics.separation_margins import Support
from posteriori.typing import Array, Labels

_SMALLEST, _LARGEST = 1e-280, 1e280
"""Squares and second derivatives that can be summed and inverted."""


@dataclass(frozen=True)
class Mechanism:
    """A family and a link by name.

    >>> Mechanism("exponential", "reciprocal").domain
    Domain(low=0.0, high=inf)
    """

    family: str
    link: str

    @property
    def loss(self) -> Loss:
        """-ln p(t|a)."""
        return glm_loss(self.family, self.link)

    @property
    def domain(self) -> Domain:
        """The activations whose mean a target of this family can have."""
        if self.family == "bernoulli":
            return PROBABILITY_LINKS[self.link].domain
        return self.mean_link.domain

    @property
    def mean_link(self) -> Link:
        """The link of a target that is a number, with the ends that its means have."""
        if self.link == "identity" and self.family != "gaussian":
            return PositiveIdentity()
        return LINKS[self.link]

    @property
    def reaches_its_ends(self) -> bool:
        """Whether the likelihood of a row can be more than zero at an end of the domain."""
        return self.domain.is_bounded and self.family in ("poisson", "bernoulli")

    @property
    def zero_lies_at(self) -> float:
        """The sign of the activations whose mean tends to zero; 0 where some have mean zero."""
        return {"log": -1.0, "reciprocal": 1.0}.get(self.link, 0.0)


def read_mechanism(family: str, link: str) -> Mechanism:
    """The family and link that the user named."""
    if family == "categorical":
        if link not in ("canonical", "softmax"):
            raise ParameterError(
                f"A categorical target cannot have the link {link!r}.",
                "Choose 'canonical', which is 'softmax'.",
            )
        return Mechanism("bernoulli", "logit")
    if not isinstance(family, str) or family not in GLM_FAMILIES:
        raise ParameterError(
            f"family={family!r} is not understood.",
            f"Use {either([*GLM_FAMILIES, 'categorical'])} ('bernoulli' is the binomial family; "
            "counts of groups are shares with sample_weight).",
        )
    glm_loss(family, link)
    return Mechanism(family, GLM_FAMILIES[family].canonical if link == "canonical" else link)


def check_targets(rows: Rows, target: Target, mechanism: Mechanism, prior: PriorLike) -> None:
    """An error that names a target which the family cannot have, or targets that are all zero."""
    family = GLM_FAMILIES[mechanism.family]
    found = rows.map_sum(GatherTargetRange(family, target))
    row, value = found.bad
    if np.isfinite(row):
        raise DomainError(
            f"Row {row:.0f} of y is {value:g}; targets of the {family.name} family "
            f"are {family.domain}.",
            "Drop such rows, or choose a family that has them.",
        )
    _check_size(found.largest, mechanism)
    if family.name != "gaussian" and found.largest <= 0 and not isinstance(prior, GaussianPrior):
        raise DomainError(
            "All targets are zero, and so is the best mean, which no distribution of the "
            f"{family.name} family has.",
            "Pass rows with other targets, or a GaussianPrior that holds the intercept too.",
        )


def _check_size(size: float, mechanism: Mechanism) -> None:
    """An error where squares or the information of a target of this size leave the doubles."""
    loss = mechanism.loss
    sizes = [float(loss.information(loss.activation(np.array([size])))[0])]
    if mechanism.link != "log":
        sizes.append(size * size)
    if size > 0 and not (min(sizes) > _SMALLEST and max(sizes) < _LARGEST):
        raise ScaleError(
            f"With targets as {'large' if size > 1 else 'small'} as {size:.3g}, the squares "
            "and second derivatives do not fit in a double.",
            f"{'Divide' if size > 1 else 'Multiply'} y by a large number.",
        )


def check_inside(activation: Array, mechanism: Mechanism) -> None:
    """An error that names the first row whose activation (n,) has no mean."""
    domain = mechanism.domain
    inside = (activation > domain.low) & (activation < domain.high)
    if mechanism.reaches_its_ends:
        inside |= (activation == domain.low) | (activation == domain.high)
    if inside.all():
        return
    row = int(np.argmin(inside))
    raise DomainError(
        f"Row {row} has the activation {activation[row]:.6g}; in the {mechanism.family} family "
        f"with the {mechanism.link} link only those {domain.words} have a mean.",
        "The fit does not reach so far: drop the row, or fit with a link that has no ends.",
    )


def check_means(mean: Array) -> None:
    """An error that names the first row whose mean is beyond all doubles."""
    if not np.isfinite(mean).all():
        raise ScaleError(
            f"The mean of row {int(np.argmin(np.isfinite(mean)))} does not fit in a double.",
            "Look at its entries: they lie far beyond those of the fit.",
        )


CLASSES = ("bernoulli", "categorical")
"""Families whose target is a class."""


def classifies(model: "GLM") -> bool:
    """Whether the target is a class."""
    return model.family in CLASSES


_LARGEST_SPAN = 30.0
"""Offsets of a log link that differ by more leave no digits for the rows with the smaller means."""

_COUNTED = 100.0
"""Counts a parameter from which on the optimum of a subsample is a good start."""

_TINY = 1e-290
"""Below this a sum of squares has lost digits."""

_PATIENCE = 10
"""Steps after which an optimum inside the domain has usually been found."""

_HEIGHTS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
"""Heights of the barrier, in units of the usual loss of a row."""

_FINE = 1e-4
"""Tolerances beside heights: a row at an end is curved by about one over the height."""

_NEAR = 1e-5
"""Rows this close to an end, as a part of the usual size of activations, lie at it."""


Divergence = Callable[[LogPosterior, Array], bool]
"""Whether coefficients diverge from some parameters on."""


class Solved(NamedTuple):
    """The optimum, and the rows that lie at an end of the domain there."""

    solution: Solution[Array, Iteration]
    edge: RowCount = RowCount(0, np.inf)


def solve_glm(
    prepared: Prepared,
    mechanism: Mechanism,
    max_iter: int | None,
    check_separation: Callable[[], bool] | None = None,
    diverges: Divergence | None = None,
) -> Solved:
    """The optimum, inside the domain or at an end of it.

    The objective is divided by the dispersion, so that tolerances are standard errors.
    `check_separation` is that of the solvers; `diverges` decides whether coefficients diverge.
    """
    prepared = _with_enough(_with_offsets(prepared, mechanism), mechanism)
    dispersion = _dispersion(prepared, mechanism)
    levels = [divided(level, dispersion) for level in prepared.levels]
    found = _solve(
        replace(prepared, levels=levels), mechanism, max_iter, check_separation, diverges
    )
    if not np.isfinite(found.solution.value):
        raise ScaleError(
            "No coefficients were found with which the likelihood of every row is more than zero "
            f"for a double: with the {mechanism.link} link some means are too large or too small.",
            "Use smaller offsets and targets, or smaller entries of the columns.",
        )
    return found._replace(solution=multiplied(found.solution, dispersion))


def _with_offsets(prepared: Prepared, mechanism: Mechanism) -> Prepared:
    """With the intercept that is best for the offsets as the start, where that has a formula."""
    objective = prepared.objective
    if mechanism.link != "log" or mechanism.family == "bernoulli":
        return prepared
    low, high = offset_range(objective.rows)
    if high - low > _LARGEST_SPAN:
        raise ScaleError(
            f"The offsets lie between {low:.6g} and {high:.6g}: with the log link, means that "
            f"differ by a factor of exp({high - low:.4g}) cannot be fitted together.",
            "An offset is the logarithm of an exposure: check that it is, and drop rows with "
            "exposures that are next to nothing beside a typical one.",
        )
    power = cast(Loss, objective.loss).log_power
    if power is None or high == low or not objective.standard.intercept:
        return prepared
    found = objective.rows.map_sum(GatherLogLevel(objective.target, power)).intercept
    start = prepared.start.copy()
    start[0] = found if np.isfinite(found) else start[0]
    return replace(prepared, start=start)


def _with_enough(prepared: Prepared, mechanism: Mechanism) -> Prepared:
    """Without the subsamples that count too little: coefficients found there lead astray."""
    if mechanism.family != "poisson" or len(prepared.levels) == 1:
        return prepared
    mean = prepared.levels[0].rows.map_sum(GatherTargetMean(prepared.objective.target)).mean[0]
    needed = _COUNTED * prepared.objective.coordinates.size
    enough = [level for level in prepared.levels[:-1] if mean * level.n_rows > needed]
    return replace(prepared, levels=[*enough, prepared.objective])


def _dispersion(prepared: Prepared, mechanism: Mechanism) -> float:
    """Pearson's χ²/n at the start on some of the rows; one at most where the family has one."""
    family = GLM_FAMILIES[mechanism.family]
    if family.name == "bernoulli":
        return 1.0
    some = prepared.levels[0]
    fitted = Fitted(some.kernel(prepared.start))
    found = some.rows.map_sum(GatherFamilyFit(mechanism.loss, family, some.target, fitted))
    dispersion = found.pearson / found.weight
    if not _TINY < dispersion < np.inf:
        return 1.0
    return min(dispersion, 1.0) if family.dispersion_fixed else dispersion


def _solve(
    prepared: Prepared,
    mechanism: Mechanism,
    max_iter: int | None,
    check_separation: Callable[[], bool] | None,
    diverges: Divergence | None,
) -> Solved:
    if mechanism.reaches_its_ends:
        return _to_the_ends(prepared, mechanism, max_iter, diverges)
    solution = scored(prepared.levels, prepared.start, max_iter, check_separation)
    if not solution.converged and mechanism == Mechanism("exponential", "identity"):
        edge = _edge(prepared.objective, solution, mechanism)
        if edge.n_rows:
            raise DomainError(
                f"The likelihood has no bound: it grows as the mean of {edge}, with target zero, "
                "goes to zero.",
                "Drop such rows, or use the log link.",
            )
    return Solved(solution)


def _to_the_ends(
    prepared: Prepared, mechanism: Mechanism, max_iter: int | None, diverges: Divergence | None
) -> Solved:
    """The optimum where it may lie at an end, at which no derivative vanishes.

    If Newton's method does not converge, it is that of the loss with ever lower barriers.
    """
    most = min(max_iter or MOST_STEPS, _PATIENCE)
    solution = scored(prepared.levels, prepared.start, most)
    if solution.converged:
        return Solved(solution)
    objective, trace = prepared.objective, solution.trace
    size = _size(objective, mechanism)
    w = guess = prepared.start
    for height in _HEIGHTS:
        loss = BarrierLoss(mechanism.loss, mechanism.domain, height * size)
        tolerance = min(objective.tolerance, _FINE * height)
        level = replace(objective, loss=loss, tolerance=tolerance)
        start = guess if np.isfinite(level(guess, "none").value) else w
        solution = scored([level], start, max_iter, close=height < _HEIGHTS[0])
        # The optimum moves in proportion to the height, which is a tenth at the next one.
        guess = solution.parameters + (solution.parameters - w) / 10
        w, trace = solution.parameters, (*trace, *solution.trace)
    solution = replace(solution, value=objective(w, "none").value, trace=trace)
    edge = _edge(objective, solution, mechanism)
    if (edge.n_rows or not solution.converged) and diverges and diverges(objective, w):
        # Rows lie at an end, or steps go on, only because coefficients diverge: that is said.
        return Solved(replace(solution, status=Status.SEPARATED))
    if not edge.n_rows:  # the optimum is inside after all
        solution = scored(prepared.levels, w, max_iter, close=True)
    return Solved(solution, edge)


def _size(objective: LogPosterior, mechanism: Mechanism) -> float:
    """The usual size of activations: the mean target with the identity link, else one."""
    if mechanism.link != "identity":
        return 1.0
    return float(objective.rows.map_sum(GatherTargetMean(objective.target)).mean[0])


def _edge(
    objective: LogPosterior, solution: Solution[Array, Iteration], mechanism: Mechanism
) -> RowCount:
    """The rows at an end of the domain."""
    activation = Fitted(objective.kernel(solution.parameters))
    distance = _NEAR * _size(objective, mechanism)

    def is_near(block: Block) -> NDArray[np.bool_]:
        a = activation(block)
        return np.minimum(abs(a - mechanism.domain.low), abs(a - mechanism.domain.high)) < distance

    return objective.rows.map_sum(CountRows(is_near))


FamilyName = Literal["gaussian", "bernoulli", "categorical", "poisson", "exponential", "gamma"]


class GLM(LinkedClassifier):
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
        What to do with a level of a factor that the fit never saw.

    Attributes
    ----------
    coef_ (d,) and intercept_, a number; for classes (1, d) or (K, d) as in `LogisticRegression`,
    and classes_. dispersion_: Pearson's χ²/(n - parameters) for gaussian and gamma targets, else
    one. n_iter_, converged_, solution_, n_parameters_; coef_covariance_ by the expected second
    derivative, log_likelihood_, deviance_; null_deviance_, which is infinite where there is no
    intercept and the offsets alone have no mean of the family. separation_: the coefficients that
    diverge; its `kind` is "none" where there are none. Where there are some, and no prior
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

    family: str
    link: str
    _mechanism: Mechanism

    solver: Solver = "auto"
    _information: Information = "expected"

    def _remember(self, schema: Schema, classes: Labels) -> None:
        super()._remember(schema, classes)
        if not classifies(self):
            del self.classes_

    def _link(self) -> Link:  # type: ignore[override]
        return super()._link() if classifies(self) else self._mechanism.mean_link

    @property
    def n_parameters_(self) -> int:
        """Free coefficients, the intercept among them."""
        return self._fitted_inference().n_parameters

    def _linear_function(self) -> Linear:
        check_is_fitted(self)
        return self._linear

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
        check_inside(a, self._mechanism)
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
        if not self._mechanism.domain.is_bounded:
            return super()._evaluate_with(X, offset, link, width)
        activation = super()._evaluate_with(X, offset, lambda a: a, 1)
        check_inside(activation[:, 0], self._mechanism)
        return link(activation)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the means; for classes the share that is predicted right."""
        if classifies(self):
            return float(super().score(X, y, sample_weight))
        return float(r2_score(y, self.predict(X), sample_weight=sample_weight))

    @available_if(classifies)  # type: ignore[untyped-decorator]
    @anywhere
    def decision_function(self, X: Any, offset: Any = None) -> Array:
        """Activations less those at which classes are equally probable: (n,) or (n, K)."""
        return super().decision_function(X, offset)

    @available_if(classifies)  # type: ignore[untyped-decorator]
    @anywhere
    def predict_proba(self, X: Any, offset: Any = None) -> Array:
        """p(C_k|x) of each row and class (n, K); rows sum to one."""
        return super().predict_proba(X, offset)

    @available_if(classifies)  # type: ignore[untyped-decorator]
    @anywhere
    def predict_log_proba(self, X: Any, offset: Any = None) -> Array:
        """ln p(C_k|x), finite where the probability underflows; -exp(a) by cloglog may be -inf."""
        return super().predict_log_proba(X, offset)

    @available_if(classifies)  # type: ignore[untyped-decorator]
    def hyperplane(self, first: Any = None, second: Any = None) -> Hyperplane:
        """The boundary between two classes."""
        return super().hyperplane(first, second)

    @available_if(classifies)  # type: ignore[untyped-decorator]
    def signed_distance(self, X: Any, first: Any = None, second: Any = None) -> Array:
        """How far each row lies from the boundary between two classes (n,)."""
        return super().signed_distance(X, first, second)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if classifies(self):
            tags.classifier_tags.multi_class = self.family == "categorical"
            return tags
        tags.estimator_type = "regressor"
        tags.classifier_tags, tags.regressor_tags = None, RegressorTags()
        has_any_mean = self.family == "gaussian" and self.link in ("canonical", "identity")
        tags.target_tags.positive_only = not has_any_mean
        return tags

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

    # Reading the target, and the problem that it makes.

    def _read(self, X: Any, y: Any, sample_weight: Any, classes: Any, **reading: Any) -> FitRows:
        self._mechanism = read_mechanism(self.family, self.link)
        if classifies(self) or not is_source(X):
            return super()._read(X, y, sample_weight, classes, **reading)
        rows = as_source(X, y, sample_weight, classes, "GLM").with_numbers()
        with rows.fitting():
            rows.discover().check_text()
        return rows

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
            Columns(rows.schema, handle_unknown=self.handle_unknown),
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
        diverges = self._diverges if self._proves_overlap(prepared.objective) else None
        check_separation = None if diverges is None else self._check_separation(prepared.objective)
        solution, edge = solve_glm(
            prepared, self._mechanism, self.max_iter, check_separation, diverges
        )
        if edge.n_rows:
            self._warn_of_edge(
                f"The likelihood is largest where {edge} lies at an end of the means "
                f"that the {self.family} family with the {self._mechanism.link} link can have. "
                "Standard errors do not hold there.",
                "Use the canonical link, or a prior.",
            )
        return solution

    @property
    def _zero_lies_at(self) -> float:
        """The sign of activations whose mean tends to zero, where that alone is in the limit."""
        is_probability = classifies(self) and self._mechanism.link not in ("log", "identity")
        return 0.0 if is_probability else self._mechanism.zero_lies_at

    @property
    def _has_limits(self) -> bool:
        """Whether there are targets that a mean can approach in the limit alone."""
        return (classifies(self) and self._mechanism.link != "identity") or self._zero_lies_at != 0

    def _proves_overlap(self, objective: LogPosterior) -> bool:
        return self._has_limits and super()._proves_overlap(objective)

    def _shows_overlap(self, prepared: Prepared, solution: Solution[Array, Iteration]) -> bool:
        known = classifies(self) or GLM_FAMILIES[self.family].dispersion_fixed
        support = self._support(prepared.objective)
        return shows_overlap(prepared.levels, solution, support, known_dispersion=known)

    def _n_classes(self) -> int:
        return 2 if self._zero_lies_at else super()._n_classes()

    def _support(self, objective: LogPosterior) -> Support:
        return support_of(objective, self._zero_lies_at)

    def _find_separation(self) -> Separation:
        if self._has_limits:
            return super()._find_separation()
        return unseparated("none", self._inference.objective.coordinates.shape)

    def _warn_of_separation(self, found: Separation, remedies: str) -> None:
        if not self._zero_lies_at:
            super()._warn_of_separation(found, remedies)
        elif self.family == "exponential":
            names = ", ".join(f"'{name}'" for name in found.columns[:8])
            raise DomainError(
                "The likelihood has no bound: every target of some of the rows is zero, and as "
                f"the coefficients of {names} diverge, their density does, too.",
                "Drop these rows, merge the level with another, or set a prior.",
            )
        else:
            warn_of_zero_means(found)

    def _certain(self, objective: LogPosterior, found: Separation) -> float:
        if not self._zero_lies_at:
            return super()._certain(objective, found)
        # Means that are nothing beside the mean target; 1/a has lost all digits long before.
        mean = abs(objective.rows.map_sum(GatherTargetMean(objective.target)).mean)
        share = CERTAIN if self._mechanism.link == "log" else 1e-7
        return float(abs(self._mechanism.loss.activation(share * mean)).max())

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
        """Which coefficients diverge, by linear programs: its `kind`, `columns`, ...

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


def _target(block: Block) -> Array:
    return cast(Array, block.y)
