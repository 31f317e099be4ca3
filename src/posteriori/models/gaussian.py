"""Gaussian class-conditional densities (4.2.1-4.2.2)."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from scipy.special import xlogy

from posteriori.arguments import check_choice
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
from posteriori.linalg import read_only
from posteriori.models.from_statistics import FromStatistics
from posteriori.rows.block import Features, FitRows, Rows
from posteriori.solve.closed_form import (
    EMParameters,
    Estimate,
    Shrinkage,
    check_shrinkage,
    diagonal_estimate,
    full_estimate,
    incomplete_estimate,
    isotropic_estimate,
)
from posteriori.statistics.column_moments import ColumnMoments, GatherColumnMoments, gather
from posteriori.statistics.moments import (
    ExpectedMoments,
    GatherExpectedMoments,
    GatherMoments,
    Moments,
)
from posteriori.typing import Array, Codes, Labels

Sharing = Literal["shared", "full", "diagonal", "isotropic"] | Sequence[Sequence[Any]]


class Quadratic(NamedTuple):
    """Activations xᵀ A_k x + b_kᵀ x + c_k: `matrix` (K, d, d), `linear` (K, d), `constant` (K,)."""

    matrix: Array
    linear: Array
    constant: Array


class GaussianClassifier(FromStatistics):
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
        How far correlations are shrunk towards zero (covariance "shared", "full" or groups).
        "auto" is the oracle approximating shrinkage of Chen et al. (2010) on the correlations.
        None shrinks nothing unless the covariance is singular: then redundant columns are left out
        of the densities and, if that does not suffice, "auto" is used, with a
        `SingularCovarianceWarning` that names the columns. With 0.0 a singular covariance is a
        `SingularCovarianceError`.
    estimate : "ml" or "unbiased"
        Divide the scatter of a group by its number of rows (4.78), or by that number less its
        number of classes. scikit-learn 1.9's LDA, QDA and GaussianNB divide as "ml" does.

    Attributes
    ----------
    means_ (K, d), covariances_ ((d, d) when shared, else (K, d, d)), priors_ (K,), classes_,
    class_count_ (K,), shrinkage_ (one number per group), log_likelihood_ (of the rows and their
    labels, (4.71)), n_parameters_, statistics_; `coef_`, `intercept_` where all boundaries are
    linear, else `quadratic_`; after a fit to rows with missing entries `n_iter_`, `converged_`
    and `log_likelihood_trace_`.

    Missing entries (NaN) are integrated out in prediction. In fitting, "diagonal" and
    "isotropic" use the entries present, and the others expectation-maximisation. Categorical
    columns enter in treatment coding; their entries cannot be missing.

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
    _allows_missing = _is_generative = True
    _statistic_types = (Moments, ColumnMoments)

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

    def _is(self, *kinds: str) -> bool:
        """Whether the covariance is one of these kinds."""
        return isinstance(self.covariance, str) and self.covariance in kinds

    def _check_parameters(self, classes: Labels) -> None:
        check_choice("estimate", self.estimate, ("ml", "unbiased"))
        check_shrinkage(self.shrinkage)
        if not self._is("diagonal", "isotropic"):
            groups_of(self.covariance, classes)
        elif self.shrinkage is not None:
            raise ParameterError(
                f"shrinkage is for correlations, and covariance={self.covariance!r} has none.",
                "Leave it out.",
            )

    def _fit_rows(self, rows: FitRows) -> None:
        for name in ("n_iter_", "converged_", "log_likelihood_trace_"):
            self.__dict__.pop(name, None)
        self._check_parameters(self.classes_)
        if not isinstance(self.covariance, str):
            _check_groups(self.covariance, self.classes_)
        try:
            super()._fit_rows(rows)
        except MissingValueError:
            if self._is("diagonal", "isotropic"):
                raise
            self._statistics = None
            self._fit_incomplete(rows)
            self._prepare()

    def _gather(self, rows: Rows, before: Any = None) -> Moments | ColumnMoments:
        classes, columns = cast(Labels, rows.classes), Columns(rows.schema)
        if self._is("diagonal", "isotropic"):
            return cast(ColumnMoments, gather(rows, GatherColumnMoments(columns, classes)))
        return gather_moments(rows, self, pooled=self._is("shared"))

    def _convert(self, statistics: Moments | ColumnMoments) -> Moments | ColumnMoments:
        """Moments of each class by itself serve any covariance, others the one they are for."""
        diagonal, shared = self._is("diagonal", "isotropic"), self._is("shared")
        if isinstance(statistics, ColumnMoments) and diagonal:
            return statistics
        if isinstance(statistics, Moments) and (shared or not statistics.pooled):
            if diagonal:
                return statistics.by_column()
            return statistics.pool() if shared else statistics
        raise StatisticsError(
            f"These statistics are not for covariance={self.covariance!r}.",
            "Use the covariance of the fits they come from, or statistics of covariance='full'.",
        )

    def _estimate(self, statistic: Moments | ColumnMoments) -> None:
        if isinstance(statistic, Moments):
            count, groups = statistic.count, groups_of(self.covariance, statistic.classes)
            estimate = full_estimate(statistic, groups, self.shrinkage, self.estimate)
        else:
            count = statistic.class_count
            of_columns = isotropic_estimate if self._is("isotropic") else diagonal_estimate
            estimate = of_columns(statistic, self.estimate)
        self._set_estimate(estimate, count)

    def _set_estimate(self, estimate: Estimate, count: Array) -> None:
        self._set_priors(count)
        self._densities = estimate.densities
        self.means_ = read_only(estimate.densities.mean)
        self.shrinkage_ = read_only(estimate.shrinkage)
        self.log_likelihood_ = estimate.log_likelihood + float(xlogy(count, self.priors_).sum())
        for caveat in estimate.caveats:
            warn(caveat)

    def _fit_incomplete(self, rows: Rows) -> None:
        """Rows with missing entries: expectation-maximisation."""
        classes, columns = cast(Labels, rows.classes), Columns(rows.schema)
        groups = groups_of(self.covariance, classes)

        def expect(centre: Array, scale: Array, now: EMParameters) -> ExpectedMoments:
            return rows.map_sum(
                GatherExpectedMoments(
                    columns, classes, groups, centre, scale, now.mean, now.covariance
                )
            )

        sums = gather(rows, GatherColumnMoments(columns, classes))
        estimate, solution = incomplete_estimate(
            sums, groups, expect, self.shrinkage, self.estimate
        )
        self._set_estimate(estimate, sums.class_count)
        labels = self.log_likelihood_ - estimate.log_likelihood
        self.log_likelihood_trace_ = read_only(np.array(solution.trace) + labels)
        self.n_iter_, self.converged_ = len(solution.trace), solution.converged
        if not solution.converged:
            warn(
                ConvergenceWarning(
                    f"{solution.status.value} ({self.n_iter_} steps of expectation-maximisation).",
                    "Set shrinkage='auto', or use covariance='diagonal'.",
                )
            )

    def _prepare(self) -> None:
        self._linear = self._densities.linear(self._log_priors)

    def _log_density(self, X: Features) -> Array:
        return self._densities.log_density(X, Columns(self.schema_))

    def _marginal(self, X: Features) -> Array:
        found = self._densities.log_density(X, Columns(self.schema_), missing=True)
        return found + self._log_priors

    def _draw(self, k: int, n: int, random: np.random.Generator) -> Array:
        if self.schema_.categorical:
            raise ParameterError(
                "A Gaussian cannot be sampled in categorical columns: "
                f"{self.schema_.describe_all(self.schema_.categorical)}.",
                "Use NaiveBayes.",
            )
        return self._densities.draw(k, n, random)

    @property
    def covariances_(self) -> Array:
        """Σ (d, d) where all classes share it, else Σ_k (K, d, d)."""
        self._known_classes()
        return self._densities.covariances()

    @property
    def n_parameters_(self) -> int:
        """Means, covariances and priors: d(d+5)/2 + 1 for two classes that share Σ."""
        self._known_classes()
        return self._densities.n_parameters + len(self.classes_) - 1

    _estimates = "means of the classes, sd their standard deviations"

    def _parameter_columns(self) -> dict[str, list[Any]]:
        terms, K = Columns(self.schema_).names, len(self.classes_)
        sd = self._densities.deviations()
        count = self.class_count_[:, None]
        std_error = np.divide(sd, np.sqrt(count), out=np.full(sd.shape, np.inf), where=count > 0)
        return {
            "term": list(terms) * K,
            "class": np.repeat(self.classes_, len(terms)).tolist(),
            "estimate": self.means_.ravel().tolist(),
            "std_error": std_error.ravel().tolist(),
            "sd": sd.ravel().tolist(),
        }

    def _not_linear(self) -> NotLinearError:
        return NotLinearError(
            f"The boundaries under covariance={self.covariance!r} are not linear.",
            "See quadratic_, or use covariance='shared'.",
        )

    @property
    def quadratic_(self) -> Quadratic:
        """xᵀA_k x + b_kᵀx + c_k = ln p(x|C_k) p(C_k), where boundaries are not linear."""
        self._known_classes()
        if self._linear is not None:
            raise NotLinearError("All boundaries are linear.", "See coef_ and intercept_.")
        matrix, linear, constant = self._densities.quadratic()
        return Quadratic(matrix, linear, constant + self._log_priors)


def gather_moments(rows: Rows, model: Any, *, pooled: bool) -> Moments:
    """Class means, and the scatter within each class, or within all of them."""
    columns = Columns(rows.schema)
    columns.check_covariance(type(model).__name__)
    return cast(Moments, gather(rows, GatherMoments(columns, cast(Labels, rows.classes), pooled)))


def groups_of(covariance: Sharing, classes: Labels) -> Codes:
    """For each class the number of the group that shares its covariance.

    >>> groups_of([["a", "c"]], np.array(["a", "b", "c"]))
    array([0, 1, 0])
    """
    labels, lists = classes.tolist(), (list, tuple, set, frozenset, np.ndarray)
    if isinstance(covariance, str) and covariance in ("shared", "full"):
        return np.arange(len(labels)) * int(covariance == "full")
    if not isinstance(covariance, lists) or not all(isinstance(g, lists) for g in covariance):
        raise ParameterError(
            f"covariance={covariance!r} is not understood.",
            "Use 'shared', 'full', 'diagonal', 'isotropic' or a list of lists of labels.",
        )
    home = {label: g for g, group in enumerate(covariance) for label in group}
    if len(home) < sum(map(len, covariance)):
        raise ParameterError("covariance lists a class twice.", "Put each class into one group.")
    keys = [(home.get(label), None if label in home else label) for label in labels]
    order = list(dict.fromkeys(keys))
    return np.array([order.index(key) for key in keys])


def _check_groups(covariance: Sequence[Sequence[Any]], classes: Labels) -> None:
    """An error where groups name a class that no row has."""
    labels = classes.tolist()
    unknown = [label for group in covariance for label in group if label not in labels]
    if unknown:
        raise ParameterError(
            f"covariance lists {unknown[0]!r}, which is no class of y.",
            f"The classes are {labels[:8]}.",
        )
