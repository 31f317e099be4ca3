"""Fisher's linear discriminant (4.1.4, 4.1.6), and least squares for classification (4.1.3)."""

from typing import Any, Literal, cast

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from posteriori.arguments import check_choice, check_count, check_number
from posteriori.decision.class_priors import log_priors
from posteriori.design.columns import Columns
from posteriori.errors import (
    LabelError,
    ParameterError,
    RankDeficiencyWarning,
    warn,
)
from posteriori.likelihood.feature_families import CONSTANT
from posteriori.likelihood.linear_activations import Linear
from posteriori.linalg import read_only
from posteriori.models.from_statistics import FromStatistics
from posteriori.models.gaussian import gather_moments
from posteriori.rows.block import Rows
from posteriori.solve.closed_form import (
    Divisor,
    Shrinkage,
    check_shrinkage,
    fisher_directions,
    group_covariances,
    least_squares,
)
from posteriori.statistics.moments import Moments
from posteriori.typing import Array, Labels


class FisherDiscriminant(ClassNamePrefixFeaturesOutMixin, TransformerMixin, FromStatistics):
    """The directions that separate the class means most, relative to the spread within classes.

    Maximises J = Tr{(W S_W Wᵀ)⁻¹ (W S_B Wᵀ)} (4.50) by S_B w = λ S_W w; there are at most K - 1
    directions. With two classes w ∝ S_W⁻¹(m_2 - m_1) (4.30).

    Parameters
    ----------
    n_components : int or None
        The number of directions; by default all, min(K - 1, d).
    threshold : "gaussian" or "midpoint"
        "gaussian": rows are classified by Gaussians with a shared variance, fitted to the
        projected rows. "midpoint": by the nearest projected mean.
    shrinkage : None, "auto" or a number from 0 to 1
        As in `GaussianClassifier`.

    Attributes
    ----------
    scalings_ (d, components) with wᵀ(S_W/(n-K))w = 1 (S_W/n where weights sum to n <= K);
    eigenvalues_; criterion_ (J of (4.50), with S_B as in (4.46)); means_ (K, d); xbar_ (d,), the
    mean of all rows; threshold_ (two classes: the boundary on the projection); coef_, intercept_,
    classes_, class_count_, priors_, n_parameters_, statistics_.

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

    def _gather(self, rows: Rows, before: Any = None) -> Moments:
        return gather_moments(rows, self, pooled=True)

    def _convert(self, statistics: Moments) -> Moments:
        return statistics.pool()

    def _estimate(self, statistic: Moments) -> None:
        moments, K = statistic.with_vacant_classes_centred(), int(np.count_nonzero(statistic.count))
        kept = self._n_directions(K, moments.mean.shape[1])
        n, mean, _ = moments.total()
        # Weights may sum to K or less: then the variance is the scatter over n.
        divisor, freedom = ("unbiased", n - K) if n > K else ("ml", n)
        groups = np.zeros(len(moments.classes), dtype=np.intp)
        within = group_covariances(moments, groups, self.shrinkage, cast(Divisor, divisor))
        for caveat in within.caveats:
            warn(caveat)
        between = np.sqrt(moments.count)[:, None] * (moments.mean - mean)
        scalings, eigenvalues = fisher_directions(within.factors[0], between, freedom)
        scalings = scalings[:, :kept]
        centres = (moments.mean - mean) @ scalings
        if len(centres) == 2 and centres[1, 0] < centres[0, 0]:
            scalings, centres = -scalings, -centres
        self.class_count_, self.priors_ = read_only(moments.count), read_only(moments.count / n)
        self.means_, self.xbar_ = read_only(moments.mean), read_only(mean)
        self.scalings_, self.eigenvalues_ = read_only(scalings), read_only(eigenvalues[:kept])
        self.criterion_ = float(self.eigenvalues_.sum())
        self._projection = Linear.about(self.xbar_, scalings, np.zeros(kept))
        self._classify(centres, freedom / n)

    def _classify(self, centres: Array, variance: float) -> None:
        """Gaussians on the projection: their means (K, m), and their variance by (4.78)."""
        logs = log_priors(self.priors_)
        if self.threshold == "midpoint":
            logs = np.where(self.priors_ > 0, 0.0, -np.inf)
        bias = logs - 0.5 * (centres**2).sum(axis=1) / variance
        self._linear = Linear.about(self.xbar_, self.scalings_ @ centres.T / variance, bias)
        self.__dict__.pop("threshold_", None)
        if len(centres) == 2:
            with np.errstate(divide="ignore", invalid="ignore"):
                shift = variance * (logs[0] - logs[1]) / (centres[1, 0] - centres[0, 0])
            self.threshold_ = float(centres.mean() + shift)

    def _check_parameters(self, classes: Labels) -> None:
        check_shrinkage(self.shrinkage)
        check_choice("threshold", self.threshold, ("gaussian", "midpoint"))
        check_count("n_components", self.n_components, "directions", none=True)

    def _n_directions(self, K: int, d: int) -> int:
        """The number of directions; an error while too few classes have rows."""
        most = min(K - 1, d)
        wanted = most if self.n_components is None else int(self.n_components)
        if not 1 <= wanted <= most:
            error = ParameterError if wanted > d else LabelError
            given = "" if self.n_components is None else f", not n_components={wanted}"
            raise error(
                f"Rows of {K} class{'es' * (K > 1)} in {d} column{'s' * (d > 1)} have at most "
                f"{most} directions between classes{given}.",
                "Use a smaller n_components, None for all, or rows of more classes.",
            )
        return wanted

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

    @property
    def n_parameters_(self) -> int:
        """Class means and shared covariance of the rows, and priors, as a Gaussian model has."""
        self._known_classes()
        K, d = self.means_.shape
        return K * d + d * (d + 1) // 2 + K - 1


class LeastSquaresClassifier(FromStatistics):
    """One linear function per class, fitted to coded labels by least squares, in closed form.

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
    coef_ (1, d) for two classes, else (K, d); intercept_; classes_; class_count_; n_parameters_;
    statistics_.

    Where columns depend linearly on others, the coefficients are those of smallest norm, with a
    `RankDeficiencyWarning` that names the columns.

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

    _statistic_types = (Moments,)
    _has_probabilities = False

    def __init__(
        self, *, coding: Literal["one-of-k", "fisher"] = "one-of-k", ridge: float = 0.0
    ) -> None:
        self.coding = coding
        self.ridge = ridge

    def _gather(self, rows: Rows, before: Any = None) -> Moments:
        return gather_moments(rows, self, pooled=True)

    def _convert(self, statistics: Moments) -> Moments:
        return statistics.pool()

    def _estimate(self, statistic: Moments) -> None:
        """The normal equations (4.16) for coded targets, about the means."""
        code = self._code(statistic)
        n, mean, scatter = statistic.total()
        cross = ((statistic.mean - mean) * statistic.count[:, None]).T @ code  # ΦᵀT
        constant = np.sqrt(np.diagonal(scatter) / n) <= CONSTANT * abs(mean)
        weights, dependent = least_squares(scatter, cross, float(self.ridge), constant)
        if len(dependent) and self.ridge == 0:
            names = Columns(statistic.schema).as_schema().describe_all(dependent)
            warn(
                RankDeficiencyWarning(
                    f"{names[0].upper()}{names[1:]} {'are' if len(dependent) > 1 else 'is'} "
                    "constant, or can be computed from the other columns. The coefficients are "
                    "the least squares solution of smallest norm.",
                    "Drop such columns, or set ridge to a small positive number.",
                )
            )
        self.class_count_ = read_only(statistic.count)
        self._linear = Linear.about(mean, weights, statistic.count / n @ code)

    def _check_parameters(self, classes: Labels) -> None:
        check_choice("coding", self.coding, ("one-of-k", "fisher"))
        if self.coding == "fisher" and len(classes) > 2:
            raise ParameterError(
                f"coding='fisher' is for two classes; y has {len(classes)}.",
                "Use coding='one-of-k', or FisherDiscriminant.",
            )
        check_number("ridge", self.ridge)

    def _code(self, moments: Moments) -> Array:
        """The targets as a map of the 1-of-K code (K, outputs)."""
        if self.coding == "one-of-k":
            return np.eye(len(moments.classes))
        if len(moments.classes) < 2 or not moments.count.all():
            seen = moments.classes[moments.count > 0].tolist()
            raise LabelError(
                f"Fisher's code N/N_k needs rows of two classes, and all rows are of {seen[0]!r}.",
                "Pass rows of both classes.",
            )
        first, second = moments.count.sum() / moments.count  # N/N_k (4.31)
        return np.array([[first / 2, -first / 2], [-second / 2, second / 2]])

    def predict_targets(self, X: Any) -> Array:
        """The fitted targets y(x): (n, K), rows summing to one (4.18); (n,) with Fisher's code."""
        if self.coding == "fisher":
            return self.decision_function(X)
        return self._evaluate(X, lambda y: y, len(self._known_classes()))

    @property
    def intercept_(self) -> Array:
        """(1,), or (K,) summing to one as the targets do (4.18)."""
        centred, K = super().intercept_, len(self.classes_)
        return read_only(centred + 1 / K) if K > 2 else centred

    @property
    def n_parameters_(self) -> int:
        """Free numbers: one function less than classes, as their sum is fixed."""
        d, K = self._linear_function().weights.shape
        return (d + 1) * (K - 1)
