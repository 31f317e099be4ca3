"""Fisher's linear discriminant for two and more classes (4.1.4, 4.1.6)."""

from typing import Any, Literal, cast

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from posteriori.decision.priors import log_priors
from posteriori.design.columns import Columns
from posteriori.errors import LabelError, ParameterError, warn
from posteriori.models.base import ProbabilisticClassifier
from posteriori.models.from_sums import ClassifierFromSums
from posteriori.models.geometry import LinearCoefficients
from posteriori.posterior.linear import Linear
from posteriori.rows.block import Features
from posteriori.rows.rows import Rows
from posteriori.rows.source import FitRows
from posteriori.solve.covariance import Shrinkage, check_shrinkage
from posteriori.solve.direct import fisher_directions
from posteriori.solve.group_covariance import Divisor, group_covariances
from posteriori.statistics.column_moments import gather
from posteriori.statistics.moments import GatherMoments, Moments
from posteriori.typing import Array, Labels


class FisherDiscriminant(
    LinearCoefficients,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClassifierFromSums,
    ProbabilisticClassifier,
):
    """The directions that separate the class means most, for the spread within the classes.

    Maximises J = Tr{(W S_W Wᵀ)⁻¹ (W S_B Wᵀ)} (4.50) by S_B w = λ S_W w; there are at most K - 1
    directions. With two classes w ∝ S_W⁻¹(m_2 - m_1) (4.30).

    Parameters
    ----------
    n_components : int or None
        How many directions to keep; by default all, min(K - 1, d).
    threshold : "gaussian" or "midpoint"
        Rows are classified on the projection, by Gaussians fitted there: means and shares of the
        classes, and the variance they have in common, so that there is one threshold between two
        classes; or by the nearest projected mean, which for two classes is the midpoint.
    shrinkage : None, "auto" or a number from 0 to 1
        As in `GaussianClassifier`.

    Attributes
    ----------
    scalings_ (d, components) with wᵀ(S_W/(n-K))w = 1 (over n where weights sum to n <= K);
    eigenvalues_; criterion_ (J of (4.50), with
    S_B as in (4.46)); means_ (K, d); xbar_ (d,), the mean of all rows; threshold_ (two classes:
    where the projection changes sides); coef_, intercept_, classes_, priors_, n_parameters_,
    statistics_.

    With all components and the Gaussian threshold the probabilities are those of
    `GaussianClassifier()`; with fewer they are those of the reduced-rank model.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> model = FisherDiscriminant().fit(X, y)
    >>> model.transform(X).shape, model.eigenvalues_.round(3), round(model.criterion_, 3)
    ((178, 2), array([9.082, 4.128]), 13.21)
    """

    means_: Array
    xbar_: Array
    priors_: Array
    scalings_: Array
    eigenvalues_: Array
    criterion_: float
    threshold_: float
    _linear: Linear
    _projection: Linear
    _statistic_types = (Moments,)

    def __init__(
        self,
        *,
        n_components: int | None = None,
        threshold: Literal["gaussian", "midpoint"] = "gaussian",
        shrinkage: Shrinkage = None,
    ) -> None:
        self.n_components = n_components
        self.threshold = threshold
        self.shrinkage = shrinkage

    def _fit_rows(self, rows: FitRows) -> None:
        K, d = len(cast(Labels, rows.classes)), len(Columns(rows.schema).names)
        self._check_components(min(K - 1, d), f"{K} classes in {d} columns")
        super()._fit_rows(rows)

    def _gather(self, rows: Rows) -> Moments:
        classes, columns = cast(Labels, rows.classes), Columns(rows.schema)
        self._check_parameters()
        columns.check_covariance(type(self).__name__)
        kernel = GatherMoments(columns, classes, (None,) * len(classes))
        return cast(Moments, gather(rows, kernel))

    def _adopt(self, statistics: Any) -> None:
        super()._adopt(statistics.pooled() if isinstance(statistics, Moments) else statistics)

    def _estimate(self, statistic: Moments) -> None:
        self._check_parameters()
        moments, K = statistic.with_vacant_classes_centred(), int(np.count_nonzero(statistic.count))
        kept = self._components(K, moments.mean.shape[1])
        n, mean, _ = moments.total()
        # Weights may sum to any number; where it leaves no freedom, the variance is over all n.
        divisor, freedom = ("unbiased", n - K) if n > K else ("ml", n)
        within = group_covariances(moments, self.shrinkage, cast(Divisor, divisor))
        for caveat in within.caveats:
            warn(caveat)
        between = np.sqrt(moments.count)[:, None] * (moments.mean - mean)
        found = fisher_directions(within.factors[0], between, freedom)
        scalings = found.scalings[:, :kept] / moments.unit[:, None]
        centres = (moments.mean - mean) @ found.scalings[:, :kept]
        if len(centres) == 2 and centres[1, 0] < centres[0, 0]:
            scalings, centres = -scalings, -centres
        self.means_, self.xbar_ = moments.mean * moments.unit, mean * moments.unit
        self.priors_ = moments.count / n
        self.scalings_, self.eigenvalues_ = scalings, found.eigenvalues[:kept]
        self.criterion_ = float(self.eigenvalues_.sum())
        self._projection = Linear.about(self.xbar_, scalings, np.zeros(kept))
        self._classify(centres, (n - freedom) / n)

    def _check_parameters(self) -> None:
        check_shrinkage(self.shrinkage)
        if self.threshold not in ("gaussian", "midpoint"):
            raise ParameterError(
                f"threshold={self.threshold!r} is not understood.",
                "Use 'gaussian' or 'midpoint'.",
            )

    def _check_components(self, most: int, whose: str) -> None:
        """An error where more directions are asked for than there can be."""
        asked = self.n_components
        if asked is not None and not (isinstance(asked, int | np.integer) and 1 <= asked <= most):
            raise ParameterError(
                f"n_components={asked!r}, but {whose} have 1 to {most} directions.",
                "Ask for no more, or leave it out.",
            )

    def _components(self, n_seen: int, n_columns: int) -> int:
        """The number of directions; an error while too few classes have rows."""
        self._check_components(n_columns, f"{n_columns} columns")
        least = 2 if self.n_components is None else int(self.n_components) + 1
        if n_seen < least:
            raise LabelError(
                f"There are rows of {n_seen} class{'es' * (n_seen > 1)}, and "
                f"{least - 1} direction{'s' * (least > 2)} between classes need {least} of them.",
                "Pass rows of more classes.",
            )
        return min(n_seen - 1, n_columns) if self.n_components is None else least - 1

    def _classify(self, centres: Array, lost: float) -> None:
        """Gaussians on the projection: centres (K, m) and the variance in common."""
        variance = 1 - lost  # the projection has (n-K)-variance one; by maximum likelihood, this
        logs = log_priors(self.priors_)
        if self.threshold == "midpoint":
            logs = np.where(self.priors_ > 0, 0.0, -np.inf)
        bias = logs - 0.5 * (centres**2).sum(axis=1) / variance
        self._linear = Linear.about(self.xbar_, self.scalings_ @ centres.T / variance, bias)
        if len(centres) == 2:
            gap = centres[1, 0] - centres[0, 0]
            with np.errstate(divide="ignore", invalid="ignore"):
                shift = variance * (logs[0] - logs[1]) / gap
            self.threshold_ = float(centres.mean() + shift)
        else:
            self.__dict__.pop("threshold_", None)

    def _activations(self, X: Features) -> Array:
        return self._linear.of_rows(X, self.schema_)

    def transform(self, X: Any) -> Array:
        """The projection wᵀ(x - m) of each row onto each direction, (n, components)."""
        self._known_classes()
        return self._evaluate(
            X,
            lambda z: z,
            self.scalings_.shape[1],
            lambda rows: self._projection.of_rows(rows, self.schema_),
        )

    @property
    def _n_features_out(self) -> int:
        return self.scalings_.shape[1]

    _estimates = "the directions onto which rows are projected, scalings_"

    def _parameter_columns(self) -> dict[str, list[Any]]:
        terms, components = Columns(self.schema_).names, self.scalings_.shape[1]
        return {
            "term": list(terms) * components,
            "component": np.repeat(np.arange(1, components + 1), len(terms)).tolist(),
            "estimate": self.scalings_.T.ravel().tolist(),
        }

    def _linear_function(self) -> Linear:
        self._known_classes()
        return self._linear

    @property
    def n_parameters_(self) -> int:
        """Class means and shared covariance of the rows, and priors, as a Gaussian model has."""
        self._known_classes()
        K, d = self.means_.shape
        return K * d + d * (d + 1) // 2 + K - 1
