"""What the discriminative classifiers share: from labels to a linear function of the columns.

Conventions: n rows, K classes, d design columns. Two classes have one activation, positive for
the second class; more have one each.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, Self, cast

import numpy as np

from posteriori.decide.rule import most_probable
from posteriori.design.columns import Columns
from posteriori.errors import (
    ConvergenceWarning,
    ParameterError,
    RankDeficiencyWarning,
    ScaleError,
    warn,
)
from posteriori.likelihood.link import ProbabilityLink
from posteriori.likelihood.logistic import SignedLogisticLoss
from posteriori.likelihood.loss import ClassLoss, Loss
from posteriori.models.base import ProbabilisticClassifier
from posteriori.models.fitting import Prepared, Problem, prepare
from posteriori.models.geometry import LinearCoefficients
from posteriori.models.inferring import Inferring
from posteriori.models.separated import (
    certain_margin,
    limit,
    no_separation,
    separation_of,
    warn_of_separation,
)
from posteriori.models.targets import coded, of_many, second_of_two, signs
from posteriori.posterior.classes import log_probabilities, probabilities
from posteriori.posterior.inference import Inference
from posteriori.posterior.jeffreys import JeffreysPosterior, jeffreys_levels
from posteriori.posterior.linear import Linear
from posteriori.posterior.objective import LogPosterior
from posteriori.posterior.priors import PriorLike
from posteriori.rows.block import Features
from posteriori.rows.memory import MemoryRows
from posteriori.rows.offsets import read_offset
from posteriori.rows.rows import Rows
from posteriori.rows.schema import Unseen
from posteriori.rows.threads import one_blas_thread
from posteriori.solve.separation import Separation
from posteriori.solve.solution import Iteration, Solution, Status
from posteriori.solve.solvers import choose, solve
from posteriori.statistics.local_quadratic import Information
from posteriori.typing import Array, Labels

Solver = Literal["auto", "newton", "gradient", "coordinate", "sequential"]


class DiscriminativeClassifier(Inferring, LinearCoefficients, ProbabilisticClassifier):
    """A classifier p(C|x) = f(wᵀφ(x)), fitted by maximum likelihood or with a prior on w."""

    prior: PriorLike | Literal["jeffreys"]
    solver: Solver
    fit_intercept: bool
    tol: float
    max_iter: int | None
    unseen: Unseen

    solution_: Solution[Array, Iteration]
    solver_: str
    solver_reason_: str
    n_iter_: int
    converged_: bool
    _linear: Linear
    _separation: Separation | None

    _information: Information = "observed"

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        classes: Any = None,
        offset: Any = None,
    ) -> Self:
        """Fit to rows X (n, d) and class labels y (n,), or to a `Rows` with both.

        X: array, sparse matrix or data frame; or a formula, with the data frame as y, as in
        fit("sick ~ age + C(region)", frame). y: labels of any sortable kind, or an (n, K)
        matrix of soft labels whose rows sum to one; counts of groups are fractions with the
        trials as `sample_weight`. A weight of w counts as the row repeated w times. `offset`
        (n,) is added to the activations; for more than two classes (n, K). `classes` names the
        columns of soft labels. A fit that fails leaves the estimator as it was.
        """
        return self._fit_to(lambda: self._read_with_offset(X, y, sample_weight, classes, offset))

    def _read_with_offset(self, X: Any, y: Any, weight: Any, classes: Any, offset: Any) -> Rows:
        rows = self._read(X, y, weight, classes)
        if offset is None:
            return rows
        if not isinstance(rows, MemoryRows):
            raise ParameterError("Rows have offsets of their own.", "Pass the rows alone.")
        K = 2 if rows.classes is None else len(rows.classes)
        return replace(rows, offset=read_offset(offset, rows.n_rows, 1 if K == 2 else K))

    @abstractmethod
    def _loss(self, n_classes: int, soft: bool) -> Loss | ClassLoss:
        """The model of the labels: a `Loss` for two classes, else a `ClassLoss`."""

    @abstractmethod
    def _link(self) -> ProbabilityLink:
        """For two classes, the probability of the second as a function of the activation."""

    def _fit_rows(self, rows: Rows) -> None:
        self._check_parameters()
        self._finish(self._adapted(prepare(self._problem(rows))))

    def _adapted(self, prepared: Prepared) -> Prepared:
        """With Jeffreys' prior, where it was asked for."""
        if self.prior != "jeffreys":
            return prepared
        return replace(prepared, levels=jeffreys_levels(prepared.levels))

    def _problem(self, rows: Rows) -> Problem:
        K = len(cast(Labels, rows.classes))
        loss = self._loss(K, rows.soft)
        if K > 2:
            rows, target = coded(rows, of_many(K), once=False)
        else:
            signed = isinstance(loss, SignedLogisticLoss)
            rows, target = coded(rows, signs if signed else second_of_two, once=True)
        return Problem(
            rows,
            Columns(rows.schema, unseen=self.unseen),
            loss,
            target,
            1 if K == 2 else K,
            self.fit_intercept and (self.formula_ is None or self.formula_.intercept),
            None if self.prior == "jeffreys" else self.prior,
            self.tol,
            self._information,
        )

    def _finish(self, prepared: Prepared) -> None:
        """Solve, and keep what predictions and inference need."""
        objective = prepared.objective
        if len(prepared.dependent):
            _warn_of_rank(objective.columns.as_schema().describe_all(prepared.dependent))
        self._separation = None
        self.__dict__.pop("penalised_log_likelihood_", None)
        solution, determined = self._solve(prepared), None
        if solution.status is Status.SEPARATED:
            found = limit(
                objective,
                cast(Separation, self._separation),
                solution,
                self._certain(),
                self.max_iter,
            )
            solution, determined = found.solution, found.directions
            warn_of_separation(cast(Separation, self._separation))
        elif not solution.converged:
            _warn_of_end(solution, self.max_iter)
        self.solution_ = solution
        self.n_iter_ = max(len(solution.trace), 1)
        self.converged_ = solution.converged
        self._inference = self._infer(prepared, solution)
        if determined is not None:
            self._inference.determined = determined
        if self._separation is None and self._proves_overlap(objective):
            self._separation = no_separation(objective)
        self._linear = _linear_function(objective, solution.parameters)

    def _solve(self, prepared: Prepared) -> Solution[Array, Iteration]:
        """The parameters that make the objective smallest."""
        objective = prepared.objective
        self.solver_, self.solver_reason_ = choose(
            objective, objective.coordinates.size, self.solver
        )
        return solve(
            self.solver_,
            prepared.levels,
            prepared.start,
            max_iter=self.max_iter,
            suspicion=self._suspicion(objective),
        )

    def _suspicion(self, objective: LogPosterior) -> Callable[[], bool] | None:
        """What to ask when coefficients may run to infinity; nothing where a prior holds them."""
        if objective.penalty.proper or self.prior == "jeffreys":
            return None

        def is_separated() -> bool:
            self._separation = separation_of(objective, len(self.classes_))
            return self._separation.kind != "none"

        return is_separated

    def _certain(self) -> float:
        """An activation at which a class is certain."""
        return certain_margin(self._link())

    def _infer(self, prepared: Prepared, solution: Solution[Array, Iteration]) -> Inference:
        """What the optimum says of its own uncertainty."""
        objective = prepared.objective
        if isinstance(objective, JeffreysPosterior):
            found, self.penalised_log_likelihood_ = objective.conclude(
                solution.parameters, prepared.dependent
            )
            return found
        return Inference(objective, solution.parameters, solution.value)

    def _check_parameters(self) -> None:
        if not 0 < self.tol < 1:
            raise ParameterError(f"tol={self.tol!r} is out of range.", "Use a number below one.")
        if self.max_iter is not None and not self.max_iter >= 1:
            raise ParameterError(f"max_iter={self.max_iter!r} is no count.", "Use one or more.")

    @property
    def separation_(self) -> Separation:
        """Whether the classes can be separated, and by which columns: decided by linear programs.

        A maximum likelihood fit that converged proves that they cannot. With a prior, the programs
        are solved when this is first asked for.
        """
        self._known_classes()
        if self._separation is None:
            self._separation = self._find_separation()
        return self._separation

    def _find_separation(self) -> Separation:
        with one_blas_thread():
            return separation_of(self._inference.objective, len(self.classes_))

    def _proves_overlap(self, objective: LogPosterior) -> bool:
        """Whether the fit has a maximum only because the classes overlap."""
        held = objective.penalty.proper or self.prior == "jeffreys"
        return self.converged_ and not held

    def _linear_function(self) -> Linear:
        self._known_classes()
        return self._linear

    def _activations(self, X: Features) -> Array:
        return self._linear.of_rows(X, self.schema_, self.unseen)

    def decision_function(self, X: Any, offset: Any = None) -> Array:
        """Activations (n, K); for two classes (n,), positive where the second is chosen."""
        if len(self._known_classes()) > 2:
            return self._evaluate_with(X, offset, lambda a: a, len(self.classes_))
        return self._evaluate_with(X, offset, lambda a: a[:, 0])

    def predict_proba(self, X: Any, offset: Any = None) -> Array:
        """p(C_k|x) of each row and class (n, K); rows sum to one."""
        return self._evaluate_with(X, offset, self._probabilities, len(self._known_classes()))

    def predict_log_proba(self, X: Any, offset: Any = None) -> Array:
        """ln p(C_k|x), finite where the probability itself underflows."""
        return self._evaluate_with(X, offset, self._log_probabilities, len(self._known_classes()))

    def predict(self, X: Any, offset: Any = None) -> Labels:
        """The most probable class of each row."""
        self._known_classes()
        codes = self._evaluate_with(X, offset, self._codes)
        return self.classes_[codes.astype(np.intp)]

    def _evaluate_with(
        self, X: Any, offset: Any, link: Callable[[Array], Array], width: int | None = None
    ) -> Array:
        """`link` of the activations, to which the offset is added first."""
        if offset is None:
            return self._evaluate(X, link, width)
        K = self._linear.weights.shape[1]
        activation = self._evaluate(X, lambda a: a, K)
        added = read_offset(offset, len(activation), K)
        return link(activation + added.reshape(len(activation), -1))

    def _probabilities(self, activation: Array) -> Array:
        if activation.shape[1] > 1:
            return probabilities(activation)
        link, a = self._link(), activation[:, 0]
        out = np.empty((len(a), 2))
        out[:, 0], out[:, 1] = link.complement(a), link.mean(a)
        return out

    def _log_probabilities(self, activation: Array) -> Array:
        if activation.shape[1] > 1:
            return log_probabilities(activation)
        link, a = self._link(), activation[:, 0]
        return np.stack([link.log_complement(a), link.log_mean(a)], axis=1)

    def _codes(self, activation: Array) -> Array:
        if activation.shape[1] > 1:
            return most_probable(activation).astype(np.float64)
        link, a = self._link(), activation[:, 0]
        return (link.log_mean(a) > link.log_complement(a)).astype(np.float64)

    @property
    def n_parameters_(self) -> int:
        """Free numbers: an intercept and a slope a column, for each class but one."""
        self._known_classes()
        return self._inference.n_parameters


def _linear_function(objective: LogPosterior, w: Array) -> Linear:
    standard = objective.standard
    theta = objective.coordinates.expand(w)
    with np.errstate(over="ignore"):
        weights = (theta[:, int(standard.intercept) :] / standard.scale).T
    if not np.isfinite(weights).all():
        j = int(np.argmax(~np.isfinite(weights).all(axis=1)))
        raise ScaleError(
            f"The coefficients of {objective.columns.as_schema().describe(j)} do not fit in a "
            "double.",
            "Multiply the column by a large number.",
        )
    bias = theta[:, 0] if standard.intercept else np.zeros(len(theta))
    return Linear.about(standard.centre, weights, bias)


def _warn_of_rank(columns: str) -> None:
    warn(
        RankDeficiencyWarning(
            f"{columns[0].upper()}{columns[1:]} can be computed from the other columns, or never "
            "change. Of all coefficients with the same likelihood those of smallest norm were "
            "taken.",
            "Drop such columns, or set a prior.",
        )
    )


def _warn_of_end(solution: Solution[Array, Iteration], max_iter: int | None) -> None:
    remedy = (
        f"Raise max_iter ({len(solution.trace) if max_iter is None else max_iter} now)."
        if solution.status is Status.MAX_ITERATIONS
        else "Look at the scales of the columns, or set a prior."
    )
    warn(ConvergenceWarning(solution.status.value, remedy))
