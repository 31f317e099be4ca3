"""An estimator that is a scikit-learn regressor or a classifier, as the family of its target says.

scikit-learn asks an estimator for its tags and for its methods. Both follow the parameter `family`:
the tags name the kind, and what only classifiers have is there only where `family` is one of
classes.
"""

from collections.abc import Callable
from typing import Any

from sklearn.metrics import r2_score
from sklearn.utils import RegressorTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from posteriori.likelihood.glm import GLM_FAMILIES
from posteriori.likelihood.link import Link
from posteriori.models.anywhere import anywhere
from posteriori.models.geometry import Hyperplane
from posteriori.models.linked import LinkedClassifier
from posteriori.models.mechanism import Mechanism, check_inside, check_means
from posteriori.posterior.linear import Linear
from posteriori.rows.block import Block
from posteriori.rows.schema import Schema
from posteriori.typing import Array, Labels

CLASSES = ("bernoulli", "categorical")
"""Families whose target is a class."""


def classifies(model: "RegressorOrClassifier") -> bool:
    """Whether the target is a class."""
    return model.family in CLASSES


class RegressorOrClassifier(LinkedClassifier):
    """Predicts a mean, or a class, from one activation, or one a class."""

    family: str
    link: str
    _mechanism: Mechanism

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
