"""What the discriminative classifiers share: from labels to a linear function of the columns.

Conventions: n rows, K classes, d design columns. Two classes have one activation, positive for
the second class; more have one each.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, Self, cast, get_args

from posteriori.arguments import check_choice, check_count, check_flag, check_fraction
from posteriori.design.columns import Columns
from posteriori.errors import (
    ConvergenceWarning,
    RankDeficiencyWarning,
    warn,
)
from posteriori.likelihood.link import ProbabilityLink
from posteriori.likelihood.logistic import SignedLogisticLoss
from posteriori.likelihood.loss import ClassLoss, Loss
from posteriori.models.choosing import ChosenPrior, with_chosen_prior
from posteriori.models.doubt import no_separation, separation_of, shows_overlap
from posteriori.models.fitting import Prepared, Problem, prepare
from posteriori.models.inferring import Inferring
from posteriori.models.predicting import LinearProbabilities, linear_function
from posteriori.models.separated import certain_margin, limit, warn_of_separation
from posteriori.models.targets import coded, of_many, second_of_two, signs
from posteriori.posterior.chosen_prior import Chosen, as_prior
from posteriori.posterior.inference import Inference
from posteriori.posterior.jeffreys import JeffreysPosterior, jeffreys_levels
from posteriori.posterior.objective import LogPosterior
from posteriori.posterior.priors import GaussianPrior, PriorLike, PriorName, check_prior
from posteriori.rows.rows import Rows
from posteriori.rows.schema import Unseen
from posteriori.rows.source import FitRows
from posteriori.rows.threads import one_blas_thread
from posteriori.solve.separation import Separation
from posteriori.solve.solution import Iteration, Solution, Status
from posteriori.solve.solvers import choose, solve
from posteriori.statistics.local_quadratic import Information
from posteriori.typing import Array, Labels

Solver = Literal["auto", "newton", "gradient", "coordinate", "sequential"]

_WITH_ANY_PRIOR = (
    "Set prior='jeffreys', or a number such as prior=1.0, for finite coefficients; or drop the "
    "columns."
)
WITH_A_NUMBER = "Set a number such as prior=1.0 for finite coefficients; or drop the columns."
"""What helps against separation where Jeffreys' prior is not to be had, as in `partial_fit`."""


class DiscriminativeClassifier(Inferring, LinearProbabilities):
    """A classifier p(C|x) = f(wᵀφ(x)), fitted by maximum likelihood or with a prior on w."""

    prior: PriorLike | PriorName
    solver: Solver
    fit_intercept: bool
    tol: float
    max_iter: int | None

    solution_: Solution[Array, Iteration]
    solver_: str
    solver_reason_: str
    n_iter_: int
    converged_: bool
    prior_: Any
    prior_reason_: str
    _separation: Separation | None

    _information: Information = "observed"
    _jeffreys_errors: Information = "expected"

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
        columns of soft labels; a data frame names its own. A fit that fails leaves the estimator
        as it was.
        """
        return self._fit_to(lambda: with_offset(self._read(X, y, sample_weight, classes), offset))

    @abstractmethod
    def _loss(self, n_classes: int, soft: bool) -> Loss | ClassLoss:
        """The model of the labels: a `Loss` for two classes, else a `ClassLoss`."""

    @abstractmethod
    def _link(self) -> ProbabilityLink:
        """For two classes, the probability of the second as a function of the activation."""

    def _fit_rows(self, rows: FitRows) -> None:
        self._check_parameters()
        self._finish(self._adapted(prepare(self._problem(rows))), _WITH_ANY_PRIOR)

    def _first_prior(self) -> PriorLike:
        """The Gaussian prior to start with."""
        if self.prior == "jeffreys":
            return None
        return GaussianPrior(units="standardised") if isinstance(self.prior, str) else self.prior

    def _adapted(self, prepared: Prepared) -> Prepared:
        """With the prior that was asked for by a name."""
        self.__dict__.pop("prior_", None)
        self.__dict__.pop("prior_reason_", None)
        if self.prior == "jeffreys":
            return replace(prepared, levels=jeffreys_levels(prepared.levels))
        return self._with_chosen_prior(prepared) if isinstance(self.prior, str) else prepared

    def _with_chosen_prior(self, prepared: Prepared) -> Prepared:
        """With the precisions of greatest evidence."""
        return self._adopted(with_chosen_prior(prepared, cast(Chosen, self.prior), self._solve))

    def _adopted(self, chosen: ChosenPrior) -> Prepared:
        self.prior_, self.prior_reason_ = as_prior(chosen.prepared.objective), chosen.how
        return chosen.prepared

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
            self._first_prior(),
            self.tol,
            self._information,
        )

    def _finish(self, prepared: Prepared, remedies: str = WITH_A_NUMBER) -> None:
        """Solve, and keep what predictions and inference need.

        `remedies` are those for classes that can be separated.
        """
        objective = prepared.objective
        if len(prepared.dependent):
            columns = objective.columns.as_schema().describe_all(prepared.dependent)
            _warn_of_rank(columns, len(prepared.dependent))
        self._separation = None
        self.__dict__.pop("penalised_log_likelihood_", None)
        solution, determined = self._without_doubt(prepared, self._solve_last(prepared)), None
        if solution.status is Status.SEPARATED:
            found = limit(
                objective,
                cast(Separation, self._separation),
                solution,
                self._certain(),
                self.max_iter,
                self.solver_ == "newton",
            )
            solution, determined = found.solution, found.directions
            warn_of_separation(cast(Separation, self._separation), remedies)
        elif not solution.converged:
            _warn_of_end(solution, self.max_iter)
        self.solution_ = solution
        self.n_iter_ = max(len(solution.trace), 1)
        self.converged_ = solution.converged
        self._inference = self._infer(prepared, solution)
        if determined is not None:
            self._inference.determined = determined
        self._linear = linear_function(objective, solution.parameters)

    def _solve_last(self, prepared: Prepared) -> Solution[Array, Iteration]:
        """The parameters that make the objective with the prior chosen smallest."""
        return self._solve(prepared)

    def _solve(self, prepared: Prepared) -> Solution[Array, Iteration]:
        """The parameters that make the objective smallest."""
        objective = prepared.objective
        self.solver_, self.solver_reason_ = choose(
            objective, objective.coordinates.size, self.solver
        )
        if self.solver_ == "gradient" and _is_nearly_flat(objective):
            self.solver_ = "newton"
            self.solver_reason_ = (
                "columns are nearly combinations of others, a direction that gradients do not find"
            )
        return solve(
            self.solver_,
            prepared.levels,
            prepared.start,
            max_iter=self.max_iter,
            suspicion=self._suspicion(objective),
            hessian=prepared.hessian,
        )

    def _suspicion(self, objective: LogPosterior) -> Callable[[], bool] | None:
        """What to ask when coefficients may run to infinity; nothing where a prior holds them."""
        if objective.penalty.proper or self.prior == "jeffreys":
            return None

        return lambda: self._is_separated(objective)

    def _is_separated(self, objective: LogPosterior, guess: Array | None = None) -> bool:
        """Whether coefficients run to infinity, by linear programs that look at `guess` first.

        A prior on some of the columns leaves it to the others; what all of them together can do
        is found when it is asked for.
        """
        partly = bool(objective.penalty.precision.any())
        found = separation_of(objective, len(self.classes_), guess, within_prior=partly)
        self._separation = None if partly and found.kind == "none" else found
        return found.kind != "none"

    def _without_doubt(
        self, prepared: Prepared, solution: Solution[Array, Iteration]
    ) -> Solution[Array, Iteration]:
        """The solution; its status is that of separated classes if it hid that they are."""
        objective = prepared.objective
        is_known = self._separation is not None or solution.status is Status.SEPARATED
        if is_known or not self._proves_overlap(objective):
            return solution
        if shows_overlap(prepared.levels, solution):
            if not objective.penalty.precision.any():
                self._separation = no_separation(objective)
            return solution
        is_separated = self._is_separated(objective, solution.parameters)
        return replace(solution, status=Status.SEPARATED) if is_separated else solution

    def _certain(self) -> float:
        """An activation at which a class is certain."""
        return certain_margin(self._link())

    def _infer(self, prepared: Prepared, solution: Solution[Array, Iteration]) -> Inference:
        """What the optimum says of its own uncertainty."""
        objective = prepared.objective
        if isinstance(objective, JeffreysPosterior):
            found, self.penalised_log_likelihood_ = objective.conclude(
                solution.parameters, prepared.dependent, self._jeffreys_errors
            )
            return found
        return Inference(objective, solution.parameters, solution.value)

    def _check_parameters(self) -> None:
        """An error for an argument that is not what it may be."""
        check_prior(self.prior)
        check_choice("solver", self.solver, get_args(Solver))
        check_flag("fit_intercept", self.fit_intercept)
        check_fraction("tol", self.tol)
        check_count("max_iter", self.max_iter, "steps", none=True)
        check_choice("unseen", self.unseen, get_args(Unseen))

    def _caveats(self) -> tuple[str, ...]:
        status = self.solution_.status
        found = super()._caveats()
        if status is Status.SEPARATED:
            found = ("the classes can be separated (see separation_)",)
        if self._inference.shown.dependent:
            found = (*found, "some columns depend on others")
        return found

    @property
    def separation_(self) -> Separation:
        """Whether the classes can be separated, and by which columns: decided by linear programs.

        A maximum of the likelihood proves that they cannot. With a prior, the programs are solved
        when this is first asked for: it is the labels that are told of, not the fit.
        """
        self._known_classes()
        if self._separation is None:
            self._separation = self._find_separation()
        return self._separation

    def _find_separation(self) -> Separation:
        with one_blas_thread():
            return separation_of(self._inference.objective, len(self.classes_))

    def _proves_overlap(self, objective: LogPosterior) -> bool:
        """Whether there can be a maximum only because the classes overlap."""
        return not (objective.penalty.proper or self.prior == "jeffreys")

    @property
    def n_parameters_(self) -> int:
        """Free numbers: an intercept and a slope a column, for each class but one."""
        self._known_classes()
        return self._inference.n_parameters


def with_offset(rows: FitRows, offset: Any) -> FitRows:
    """The rows with what the user adds to their activations; as they are where that is None."""
    return rows if offset is None else rows.with_offset(offset)


def _is_nearly_flat(objective: LogPosterior) -> bool:
    return isinstance(objective, JeffreysPosterior) and objective.is_nearly_flat


def _warn_of_rank(columns: str, n_columns: int) -> None:
    warn(
        RankDeficiencyWarning(
            f"{columns[0].upper()}{columns[1:]} can be computed from the other columns, or never "
            f"change{'s' * (n_columns == 1)}. Of all coefficients with the same likelihood those "
            "of smallest norm were taken.",
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
