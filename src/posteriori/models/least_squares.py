"""Least squares for classification (4.1.3), and Fisher's discriminant by it (4.1.5)."""

from typing import Any, Literal, cast

import numpy as np

from posteriori.design.columns import Columns
from posteriori.errors import (
    LabelError,
    ParameterError,
    RankDeficiencyWarning,
    ScaleError,
    warn,
)
from posteriori.models.from_sums import ClassifierFromSums
from posteriori.models.geometry import LinearGeometry
from posteriori.posterior.linear import Linear
from posteriori.rows.block import Features
from posteriori.rows.rows import Rows
from posteriori.solve.covariance import CONSTANT
from posteriori.solve.direct import LeastSquares, least_squares
from posteriori.statistics.column_moments import gather
from posteriori.statistics.moments import GatherMoments, Moments
from posteriori.typing import Array, Labels

_INFINITE = 1e300
"""A penalty that leaves nothing of a coefficient, and can still be added to."""


class LeastSquaresClassifier(LinearGeometry, ClassifierFromSums):
    """One linear function a class, fitted to coded labels by least squares, in closed form.

    Minimises ½ Σ_n |y(x_n) - t_n|² (4.15), so W = (ΦᵀΦ)⁻¹ΦᵀT (4.16); a row goes to the class of
    the largest y_k(x). The y_k sum to one but can leave [0, 1]: they are no probabilities, so
    there is no `predict_proba`; see `predict_targets`, or use a model that has probabilities.

    Parameters
    ----------
    coding : "one-of-k" or "fisher"
        Targets 0 and 1 in one function a class; or, for two classes, one function with targets
        -N/N_1 and N/N_2 (4.31), whose direction is Fisher's and whose threshold is the mean of
        all rows (4.37).
    ridge : float
        Added to the diagonal of ΦᵀΦ, the intercept excepted, in the units of the columns.

    Attributes
    ----------
    coef_ (1, d) for two classes, else (K, d); intercept_; classes_; n_parameters_; statistics_.

    Columns that depend on others get the coefficients of smallest norm, with a
    `RankDeficiencyWarning` that names them.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> model = LeastSquaresClassifier().fit(X, y)
    >>> model.predict_targets(X[:1]).round(3)
    array([[ 1.09 ,  0.027, -0.116]])
    >>> model.score(X, y)
    1.0
    """

    _linear: Linear
    _statistic_types = (Moments,)

    def __init__(
        self, *, coding: Literal["one-of-k", "fisher"] = "one-of-k", ridge: float = 0.0
    ) -> None:
        self.coding = coding
        self.ridge = ridge

    def _gather(self, rows: Rows) -> Moments:
        classes = cast(Labels, rows.classes)
        self._check_parameters(classes)
        columns = Columns(rows.schema)
        columns.check_covariance(type(self).__name__)
        kernel = GatherMoments(columns, classes, (None,) * len(classes))
        return cast(Moments, gather(rows, kernel))

    def _adopt(self, statistics: Any) -> None:
        super()._adopt(statistics.pooled() if isinstance(statistics, Moments) else statistics)

    def _estimate(self, statistic: Moments) -> None:
        self._check_parameters(statistic.classes)
        code = self._code(statistic)
        solution = self._solve(statistic, code)
        columns = Columns(statistic.schema).as_schema()
        if len(solution.dependent) and self.ridge == 0:
            self._warn_of(columns.describe_all(solution.dependent), len(solution.dependent))
        with np.errstate(over="ignore"):
            weights = solution.coefficients / statistic.unit[:, None]
        if not np.isfinite(weights).all():
            j = int(np.argmax(~np.isfinite(weights).all(axis=1)))
            raise ScaleError(
                f"The coefficients of {columns.describe(j)} do not fit in a double.",
                "Multiply the column by a large number.",
            )
        n, mean, _ = statistic.total()
        bias = statistic.count / n @ code
        self._linear = Linear.about(mean * statistic.unit, weights, bias)

    def _solve(self, moments: Moments, code: Array) -> LeastSquares:
        """The normal equations (4.16) for coded targets, in the units of the statistic."""
        n, mean, scatter = moments.total()
        cross = ((moments.mean - mean) * moments.count[:, None]).T  # ΦᵀT about the means
        spread = np.sqrt(np.diagonal(scatter) / n)
        with np.errstate(over="ignore"):
            penalty = np.minimum((np.sqrt(self.ridge) / moments.unit) ** 2, _INFINITE)
        return least_squares(scatter, cross @ code, penalty, spread <= CONSTANT * abs(mean))

    def _check_parameters(self, classes: Labels) -> None:
        if self.coding not in ("one-of-k", "fisher"):
            raise ParameterError(
                f"coding={self.coding!r} is not understood.", "Use 'one-of-k' or 'fisher'."
            )
        if self.coding == "fisher" and len(classes) > 2:
            raise ParameterError(
                f"coding='fisher' is for two classes; y has {len(classes)}.",
                "Use coding='one-of-k', or FisherDiscriminant.",
            )
        if not (isinstance(self.ridge, int | float | np.number) and 0 <= self.ridge < np.inf):
            raise ParameterError(
                f"ridge={self.ridge!r} is out of range.", "Use a number that is not negative."
            )

    def _code(self, moments: Moments) -> Array:
        """The targets as a map of the 1-of-K code (K, outputs)."""
        if self.coding == "one-of-k":
            return np.eye(len(moments.classes))
        if len(moments.classes) < 2:
            raise LabelError(
                f"Fisher's code is for two classes; there are rows of "
                f"{moments.classes.tolist()[0]!r} alone.",
                "Pass rows of both classes.",
            )
        if not moments.count.all():
            raise LabelError(
                f"Class {moments.classes.tolist()[int(moments.count.argmin())]!r} has no rows, so "
                "Fisher's code N/N_k is infinite.",
                "Pass rows of both classes.",
            )
        first, second = moments.count.sum() / moments.count  # N/N_k (4.31)
        return np.array([[first / 2, -first / 2], [-second / 2, second / 2]])

    def _warn_of(self, columns: str, n_columns: int) -> None:
        warn(
            RankDeficiencyWarning(
                f"{columns[0].upper()}{columns[1:]} can be computed from the other columns, or "
                f"never change{'s' * (n_columns == 1)}. Of all least squares answers the one of "
                "smallest norm was taken.",
                "Drop such columns, or set ridge to a small positive number.",
            )
        )

    def _activations(self, X: Features) -> Array:
        return self._linear.of_rows(X, self.schema_)

    def predict_targets(self, X: Any) -> Array:
        """The fitted targets y(x): (n, K), rows summing to one (4.18); (n,) with Fisher's code."""
        if self.coding == "fisher":
            return self.decision_function(X)
        return self._evaluate(X, lambda y: y, len(self._known_classes()))

    @property
    def coef_(self) -> Array:
        """(1, d): second less first of two classes; else (K, d), which sums to zero over K."""
        weights = self._fitted().weights.T
        return weights[1:] - weights[:1] if len(weights) == 2 else weights.copy()

    @property
    def intercept_(self) -> Array:
        """(1,) or (K,)."""
        linear = self._fitted()
        bias = (
            linear.bias if linear.centre is None else linear.bias - linear.centre @ linear.weights
        )
        return bias[1:] - bias[:1] if len(bias) == 2 else bias.copy()

    def _fitted(self) -> Linear:
        self._known_classes()
        return self._linear

    @property
    def n_parameters_(self) -> int:
        """Free numbers: one function less than classes, as their sum is fixed."""
        d, K = self._fitted().weights.shape
        return (d + 1) * (K - 1)
