"""Gaussian class-conditional densities (4.2.1-4.2.2)."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from scipy.special import xlogy

from posteriori.decision.class_priors import PriorsLike
from posteriori.design.columns import Columns
from posteriori.errors import (
    ConvergenceWarning,
    MissingValueError,
    NotLinearError,
    ParameterError,
    StatisticsError,
    warn,
)
from posteriori.likelihood.class_densities import DiagonalGaussians, FullGaussians
from posteriori.likelihood.linear_activations import Linear
from posteriori.models.from_statistics import GenerativeClassifier
from posteriori.models.linear import Hyperplane
from posteriori.rows.block import Block, Features, Rows
from posteriori.rows.source import FitRows
from posteriori.solve.closed_form import (
    EMParameters,
    Estimate,
    diagonal_estimate,
    full_estimate,
    incomplete_estimate,
    isotropic_estimate,
)
from posteriori.solve.covariance import Shrinkage, check_shrinkage
from posteriori.statistics.column_moments import ColumnMoments, GatherColumnMoments, gather
from posteriori.statistics.expected_moments import ExpectedMoments, GatherExpectedMoments
from posteriori.statistics.moments import GatherMoments, Moments
from posteriori.typing import Array, Labels

Sharing = Literal["shared", "full", "diagonal", "isotropic"] | Sequence[Sequence[Any]]


class Quadratic(NamedTuple):
    """Activations xᵀ A_k x + b_kᵀ x + c_k: `matrix` (K, d, d), `linear` (K, d), `constant` (K,)."""

    matrix: Array
    linear: Array
    constant: Array


class GaussianClassifier(GenerativeClassifier):
    """Classes with Gaussian densities, fitted by maximum likelihood in one pass over the rows.

    p(x|C_k) = N(x|μ_k, Σ_k) (4.64), so ln p(C_k|x) is quadratic in x, and linear between classes
    with one covariance: w_k = Σ⁻¹μ_k, w_k0 = -½ μ_kᵀΣ⁻¹μ_k + ln p(C_k) (4.68)-(4.70).

    Parameters
    ----------
    covariance : "shared", "full", "diagonal", "isotropic", or a list of lists of labels
        One covariance for all classes; one a class; one a class with independent columns; one
        λI for all (000); or groups of classes that share one, classes not listed having their
        own (Figure 4.11).
    priors : dict from label to probability, or sequence in the order of the classes
        By default the shares of the classes (4.73).
    shrinkage : None, "auto" or a number from 0 to 1
        How far correlations are drawn towards zero (covariance "shared", "full" or groups).
        "auto" is the oracle approximating shrinkage of Chen et al. (2010) on the correlations.
        None shrinks nothing unless the covariance is singular: then redundant columns are left
        out and, if that is not enough, "auto" is used, with a `SingularCovarianceWarning` that
        names the columns. 0.0 makes a singular covariance a `SingularCovarianceError`.
    estimate : "ml" or "unbiased"
        Divide the scatter of a group by its number of rows (4.78), or by that number less its
        number of classes. scikit-learn 1.9's LDA, QDA and GaussianNB divide as "ml" does.

    Attributes
    ----------
    means_ (K, d), covariances_ ((d, d) when shared, else (K, d, d)), priors_ (K,), classes_,
    shrinkage_ (a number a group), log_likelihood_ (of the rows and their labels, (4.71)),
    n_parameters_, statistics_ ; `coef_`, `intercept_` where all boundaries are linear, else
    `quadratic_`; after a fit to rows with missing entries `n_iter_`, `converged_` and
    `log_likelihood_trace_`.

    Rows with missing entries (NaN) are used for what they have: in prediction they are
    integrated out exactly, in fitting too for "diagonal" and "isotropic", and by
    expectation-maximisation for the others. Categorical columns enter in treatment coding; a
    level cannot be missing.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> model = GaussianClassifier().fit(X, y)
    >>> model.predict_proba(X[:1]).round(6)
    array([[1., 0., 0.]])
    >>> X[0, 3:] = float("nan")
    >>> model.predict_proba(X[:1]).round(3)
    array([[0.972, 0.001, 0.027]])
    >>> model.with_priors([0.01, 0.01, 0.98]).predict_proba(X[:1]).round(3)
    array([[0.229, 0.   , 0.771]])
    """

    means_: Array
    shrinkage_: Array
    log_likelihood_: float
    _densities: FullGaussians | DiagonalGaussians
    _linear: Linear | None
    _statistic_types = (Moments, ColumnMoments)
    _why_no_sums = (
        "the model is not fitted, or was fitted by expectation-maximisation to rows with missing "
        "entries, whose sums are not known."
    )

    def __init__(
        self,
        *,
        covariance: Sharing = "shared",
        priors: PriorsLike | None = None,
        shrinkage: Shrinkage = None,
        estimate: Literal["ml", "unbiased"] = "ml",
    ) -> None:
        self.covariance = covariance
        self.priors = priors
        self.shrinkage = shrinkage
        self.estimate = estimate

    def _is_diagonal(self) -> bool:
        return isinstance(self.covariance, str) and self.covariance in ("diagonal", "isotropic")

    def _check_parameters(self, classes: Labels) -> None:
        if self.estimate not in ("ml", "unbiased"):
            raise ParameterError(
                f"estimate={self.estimate!r} is not understood.", "Use 'ml' or 'unbiased'."
            )
        check_shrinkage(self.shrinkage)
        if self._is_diagonal() and self.shrinkage is not None:
            raise ParameterError(
                f"shrinkage has no meaning for covariance={self.covariance!r}, which has no "
                "correlations.",
                "Leave it out.",
            )
        if not self._is_diagonal():
            sharing_of(self.covariance, classes)

    def _fit_rows(self, rows: FitRows) -> None:
        for name in ("n_iter_", "converged_", "log_likelihood_trace_"):
            self.__dict__.pop(name, None)
        self._check_parameters(cast(Labels, rows.classes))
        check_groups(self.covariance, cast(Labels, rows.classes))
        try:
            super()._fit_rows(rows)
        except MissingValueError:
            if self._is_diagonal():
                raise
            self._statistics = None
            self._fit_incomplete(rows)
            self._prepare()

    def _gather(self, rows: Rows) -> Moments | ColumnMoments:
        classes = cast(Labels, rows.classes)
        self._check_parameters(classes)
        columns = Columns(rows.schema)
        if self._is_diagonal():
            return cast(ColumnMoments, gather(rows, GatherColumnMoments(columns, classes)))
        columns.check_covariance(type(self).__name__)
        sharing = sharing_of(self.covariance, classes)
        return cast(Moments, gather(rows, GatherMoments(columns, classes, sharing)))

    def _sums_so_far(self) -> Any:
        before = super()._sums_so_far()
        if before is None and hasattr(self, "schema_"):
            raise StatisticsError(
                f"This {type(self).__name__} was fitted by expectation-maximisation to rows with "
                "missing entries, and those rows are gone.",
                "Fit to all rows at once, or use covariance='diagonal'.",
            )
        return before

    def _gather_batch(self, rows: Rows) -> Moments | ColumnMoments:
        try:
            return self._gather(rows)
        except MissingValueError as error:
            raise StatisticsError(
                f"{error.problem} Rows with missing entries cannot be added exactly under "
                f"covariance={self.covariance!r}.",
                "Call fit with all rows at once, or use covariance='diagonal'.",
            ) from error

    def _adopt(self, statistics: Any) -> None:
        super()._adopt(self._own(statistics) if isinstance(statistics, Moments) else statistics)

    def _own(self, sums: Moments) -> Moments | ColumnMoments:
        """Those of this covariance; sums of each class by itself have all of them."""
        if len(set(sums.sharing)) < len(sums.classes):
            return sums
        if self._is_diagonal():
            return sums.by_column()
        self._check_parameters(sums.classes)
        return sums.regrouped(sharing_of(self.covariance, sums.classes))

    def _estimate(self, statistic: Moments | ColumnMoments) -> None:
        self._check_parameters(statistic.classes)
        if isinstance(statistic, ColumnMoments):
            fits = self._is_diagonal()
            count = statistic.class_count
        else:
            fits = not self._is_diagonal() and statistic.sharing == sharing_of(
                self.covariance, statistic.classes
            )
            count = statistic.count
        if not fits:
            raise StatisticsError(
                f"These statistics were not gathered for covariance={self.covariance!r}.",
                "Use the covariance setting of the fits they come from; those of covariance='full' "
                "serve any.",
            )
        self._set_priors(count)
        self._adopt_estimate(self._densities_from(statistic), count)

    def _densities_from(self, statistic: Moments | ColumnMoments) -> Estimate:
        if isinstance(statistic, Moments):
            return full_estimate(statistic, self.shrinkage, self.estimate)
        if self.covariance == "isotropic":
            return isotropic_estimate(statistic, self.estimate)
        return diagonal_estimate(statistic, self.estimate)

    def _adopt_estimate(self, estimate: Estimate, count: Array) -> None:
        self._densities = estimate.densities
        self.means_ = estimate.densities.means
        self.shrinkage_ = estimate.shrinkage
        self.log_likelihood_ = estimate.log_likelihood + float(xlogy(count, self.priors_).sum())
        for caveat in estimate.caveats:
            warn(caveat)

    def _fit_incomplete(self, rows: Rows) -> None:
        """Rows with missing entries: expectation-maximisation."""
        classes, columns = cast(Labels, rows.classes), Columns(rows.schema)
        sharing = sharing_of(self.covariance, classes)

        def expect(centre: Array, scale: Array, now: EMParameters) -> ExpectedMoments:
            return rows.map_sum(
                GatherExpectedMoments(
                    columns, classes, sharing, centre, scale, now.mean, now.covariance
                )
            )

        sums = gather(rows, GatherColumnMoments(columns, classes))
        self._set_priors(sums.class_count)
        estimate, solution = incomplete_estimate(
            sums, sharing, expect, self.shrinkage, self.estimate
        )
        self._adopt_estimate(estimate, sums.class_count)
        labels = self.log_likelihood_ - estimate.log_likelihood
        self.log_likelihood_trace_ = np.array(solution.trace) + labels
        self.n_iter_ = len(solution.trace)
        self.converged_ = solution.converged
        if not solution.converged:
            warn(
                ConvergenceWarning(
                    f"{solution.status.value} ({self.n_iter_} steps of expectation-maximisation).",
                    "Much is missing: set shrinkage='auto', or use covariance='diagonal'.",
                )
            )

    def _prepare(self) -> None:
        self._linear = self._densities.linear(self._log_priors)

    def _activations(self, X: Features) -> Array:
        if self._linear is not None:
            return self._linear.of_rows(X, self.schema_)
        return self._log_joint(X)

    def _log_density(self, X: Features) -> Array:
        return self._by_parts(self._densities.log_density, X)

    def _marginal(self, X: Features) -> Array:
        return self._by_parts(self._densities.marginal_log_density, X) + self._log_priors

    def _by_parts(self, function: Callable[[Array], Array], X: Features) -> Array:
        """A function of design rows; sparse and coded rows are filled in a few at a time."""
        if isinstance(X, np.ndarray):
            return function(X)
        columns = Columns(self.schema_)
        parts = columns.dense_parts(Block(X, None, None, 0))
        return np.concatenate([function(columns.design(part).array()) for part in parts])

    def _draw(self, k: int, n: int, random: np.random.Generator) -> Array:
        if self.schema_.categorical:
            raise ParameterError(
                f"A Gaussian has no levels to draw for "
                f"{self.schema_.describe_all(self.schema_.categorical)}.",
                "Use NaiveBayes to sample categorical columns.",
            )
        return self._densities.draw(k, n, random)

    @property
    def covariances_(self) -> Array:
        """Σ (d, d) where all classes share it, else Σ_k (K, d, d)."""
        self._known_classes()
        return self._densities.covariances()

    @property
    def n_parameters_(self) -> int:
        """Means, covariances and priors: M(M+5)/2 + 1 for two classes that share Σ."""
        self._known_classes()
        return self._densities.n_parameters + len(self.classes_) - 1

    _estimates = "means of the classes, sd their standard deviations"

    def _parameter_columns(self) -> dict[str, list[Any]]:
        terms, K = Columns(self.schema_).names, len(self.classes_)
        spread = np.sqrt(np.diagonal(self.covariances_, axis1=-2, axis2=-1))
        spread = np.broadcast_to(spread, self.means_.shape)
        found: dict[str, list[Any]] = {
            "term": list(terms) * K,
            "class": np.repeat(self.classes_, len(terms)).tolist(),
            "estimate": self.means_.ravel().tolist(),
        }
        count = self._class_count()
        if count is not None:
            seen = np.sqrt(np.where(count > 0, count, np.inf))[:, None]
            found["std_error"] = np.where(seen < np.inf, spread / seen, np.inf).ravel().tolist()
        return found | {"sd": spread.ravel().tolist()}

    def _linear_function(self) -> Linear:
        self._known_classes()
        if self._linear is None:
            raise NotLinearError(
                f"The boundaries under covariance={self.covariance!r} are not linear.",
                "See quadratic_, or use covariance='shared'.",
            )
        return self._linear

    @property
    def quadratic_(self) -> Quadratic:
        """xᵀA_k x + b_kᵀx + c_k = ln p(x|C_k) p(C_k), where boundaries are not linear."""
        self._known_classes()
        if self._linear is not None:
            raise NotLinearError("All boundaries are linear.", "See coef_ and intercept_.")
        return quadratic_of(self._densities, self._log_priors)

    def hyperplane(self, first: Any = None, second: Any = None) -> Hyperplane:
        """The boundary between two classes (4.10), where they share a covariance."""
        self._known_classes()
        if self._linear is not None or not isinstance(self._densities, FullGaussians):
            return super().hyperplane(first, second)
        labels = self.classes_.tolist()
        pair = [labels.index(label) for label in (first, second) if label in labels]
        groups = self._densities.groups[pair]
        if len(pair) < 2 or groups[0] != groups[1]:
            return super().hyperplane(first, second)
        inside = FullGaussians(
            self.means_[pair], (self._densities.factors[groups[0]],), np.zeros(2, dtype=np.intp)
        )
        linear = cast(Linear, inside.linear(self._log_priors[pair]))
        coef, intercept = linear.coefficients()
        return Hyperplane(-coef[0], -float(intercept[0]))


def quadratic_of(densities: FullGaussians | DiagonalGaussians, log_priors: Array) -> Quadratic:
    """The quadratic activations written out."""
    whiteners = [factor.whitener() for factor in densities.factors]
    if isinstance(densities, FullGaussians):
        whiteners = [whiteners[g] for g in densities.groups]
    white = [mean @ A for mean, A in zip(densities.means, whiteners, strict=True)]
    return Quadratic(
        np.array([-0.5 * A @ A.T for A in whiteners]),
        np.array([A @ m for A, m in zip(whiteners, white, strict=True)]),
        densities.constants + log_priors - 0.5 * np.array([m @ m for m in white]),
    )


def _is_list_of_lists(value: object) -> bool:
    lists = (list, tuple, set, frozenset, np.ndarray)
    return isinstance(value, lists) and all(isinstance(group, lists) for group in value)


def sharing_of(covariance: Sharing, classes: Labels) -> tuple[Hashable, ...]:
    """For each class the group whose covariance it shares: None for all, itself for its own.

    >>> sharing_of([["a", "b"]], np.array(["a", "b", "c"]))
    (('a', 'b'), ('a', 'b'), 'c')
    """
    labels = classes.tolist()
    if isinstance(covariance, str):
        if covariance == "shared":
            return (None,) * len(labels)
        if covariance == "full":
            return tuple(labels)
    if not _is_list_of_lists(covariance):
        raise ParameterError(
            f"covariance={covariance!r} is not understood.",
            "Use 'shared', 'full', 'diagonal', 'isotropic' or a list of lists of labels.",
        )
    groups = [tuple(sorted(group, key=repr)) for group in covariance]
    listed = [label for group in groups for label in group]
    if len(set(listed)) < len(listed):
        raise ParameterError("covariance lists a class twice.", "Put each class into one group.")
    home = {label: group for group in groups for label in group}
    return tuple(home.get(label, label) for label in labels)


def check_groups(covariance: Sharing, classes: Labels) -> None:
    """An error where groups name a class that no row has."""
    labels = classes.tolist()
    listed = [] if isinstance(covariance, str) else [c for group in covariance for c in group]
    unknown = [label for label in listed if label not in labels]
    if unknown:
        raise ParameterError(
            f"covariance lists {unknown[0]!r}, which is no class of y.",
            f"The classes are {labels[:8]}.",
        )
