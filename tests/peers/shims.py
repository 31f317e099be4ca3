"""Models of posteriori with the constructors and the fitted attributes of scikit-learn's."""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any

import numpy as np
from sklearn import discriminant_analysis, linear_model, naive_bayes
from sklearn.base import BaseEstimator
from sklearn.utils.class_weight import compute_sample_weight

import posteriori as ours

SOLVERS = {"lbfgs": "gradient", "newton-cholesky": "newton", "newton-cg": "newton-cg"}

SHIMS: dict[type, type] = {}
"""The shim of each class of scikit-learn."""


def _constructor(peer: type) -> Callable[..., None]:
    """A constructor with the parameters of another class, kept as attributes."""
    expected = signature(peer.__init__)

    def __init__(self: Any, *args: Any, **given: Any) -> None:
        bound = expected.bind(self, *args, **given)
        bound.apply_defaults()
        vars(self).update(list(bound.arguments.items())[1:])

    __init__.__signature__ = expected
    return __init__


class Shim(BaseEstimator):
    """An estimator with the parameters of a peer; `fitted_` is the model of posteriori."""

    def __init_subclass__(cls, peer: type | None = None) -> None:
        super().__init_subclass__()
        if peer is not None:
            cls.__init__ = _constructor(peer)
            SHIMS[peer] = cls

    def _model(self, y: Any, weight: np.ndarray) -> Any:
        """The model for rows with these targets and weights."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight)
        X = self._as_ours(X)
        self.fitted_ = self._model(y, weight).fit(X, y, sample_weight=sample_weight)
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "fitted_" not in vars(self):
            raise AttributeError(name)
        found = getattr(self.fitted_, name)
        return wraps(found)(lambda X: found(self._as_ours(X))) if callable(found) else found

    def _as_ours(self, X: Any) -> Any:
        return X

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        return self.fitted_.score(self._as_ours(X), y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        return self._model([0], np.ones(1)).__sklearn_tags__()


class LogisticRegression(Shim, peer=linear_model.LogisticRegression):
    def _model(self, y: Any, weight: np.ndarray) -> Any:
        return ours.LogisticRegression(
            prior=None if np.isinf(self.C) else 1 / self.C,
            solver=SOLVERS.get(self.solver, "auto"),
            fit_intercept=self.fit_intercept,
            tol=self.tol,
            max_iter=self.max_iter,
        )

    @property
    def n_iter_(self) -> np.ndarray:
        return np.array([self.fitted_.n_iter_])

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        if self.class_weight is not None:
            own = compute_sample_weight(self.class_weight, y)
            sample_weight = own if sample_weight is None else own * sample_weight
        return super().fit(X, y, sample_weight)


class _Regressor(Shim):
    """A GLM with logarithmic link; alpha is per row, a prior for all rows together."""

    def _model(self, y: Any, weight: np.ndarray) -> Any:
        return ours.GLM(
            family=self.family,
            link="log",
            prior=self.alpha * weight.sum() or None,
            fit_intercept=self.fit_intercept,
            tol=self.tol,
            max_iter=self.max_iter,
        )


class PoissonRegressor(_Regressor, peer=linear_model.PoissonRegressor):
    _get_loss = linear_model.PoissonRegressor._get_loss
    family = "poisson"


class GammaRegressor(_Regressor, peer=linear_model.GammaRegressor):
    _get_loss = linear_model.GammaRegressor._get_loss
    family = "gamma"


class LinearDiscriminantAnalysis(Shim, peer=discriminant_analysis.LinearDiscriminantAnalysis):
    def _model(self, y: Any, weight: np.ndarray) -> Any:
        return ours.GaussianClassifier(priors=self.priors, shrinkage=self.shrinkage)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        if self.solver == "svd" and self.shrinkage is not None:
            raise NotImplementedError
        if self.covariance_estimator is not None:
            raise ValueError
        fisher = ours.FisherDiscriminant(n_components=self.n_components, shrinkage=self.shrinkage)
        self.fisher_ = fisher.fit(X, y)
        n, K = len(y), len(self.fisher_.classes_)
        self.scale_ = np.sqrt(n / (n - K))  # from the unbiased to the maximum likelihood estimate
        return super().fit(X, y, sample_weight)

    def transform(self, X: Any) -> Any:
        if self.solver == "lsqr":
            raise NotImplementedError
        return self.fisher_.transform(X) * self.scale_

    @property
    def explained_variance_ratio_(self) -> np.ndarray:
        return self.fisher_.eigenvalues_ / self.fisher_.eigenvalues_.sum()

    @property
    def covariance_(self) -> np.ndarray:
        if self.solver == "svd" and not self.store_covariance:
            raise AttributeError
        return self.covariances_


class QuadraticDiscriminantAnalysis(Shim, peer=discriminant_analysis.QuadraticDiscriminantAnalysis):
    def _model(self, y: Any, weight: np.ndarray) -> Any:
        return ours.GaussianClassifier(
            covariance="full", priors=self.priors, shrinkage=self.shrinkage
        )

    @property
    def covariance_(self) -> np.ndarray:
        if not self.store_covariance:
            raise AttributeError
        return self.covariances_


class _NaiveBayes(Shim):
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        if "fitted_" not in vars(self):
            self.fitted_ = self._model(y, np.ones(1))
        self.fitted_.partial_fit(self._as_ours(X), y, classes, sample_weight)
        return self

    def predict_joint_log_proba(self, X: Any) -> np.ndarray:
        return self.predict_log_proba(X) + self.score_samples(X)[:, None]

    def _parameters(self, name: str) -> np.ndarray:
        """A parameter of all columns, (K, d)."""
        return np.column_stack([each[name] for each in self.fitted_.parameters_.values()])


class GaussianNB(_NaiveBayes, peer=naive_bayes.GaussianNB):
    def _model(self, y: Any, weight: np.ndarray) -> Any:
        return ours.NaiveBayes(family="gaussian", priors=self.priors)

    @property
    def theta_(self) -> np.ndarray:
        return self._parameters("mean")

    @property
    def var_(self) -> np.ndarray:
        return self._parameters("sd") ** 2

    @property
    def class_prior_(self) -> np.ndarray:
        return self.fitted_.priors_


class BernoulliNB(_NaiveBayes, peer=naive_bayes.BernoulliNB):
    def _model(self, y: Any, weight: np.ndarray) -> Any:
        K, priors = len(np.unique(y)), self.class_prior
        priors = priors if self.fit_prior else np.full(K, 1 / K)
        return ours.NaiveBayes(family="bernoulli", pseudocount=self.alpha, priors=priors)

    def _as_ours(self, X: Any) -> np.ndarray:
        return (np.asarray(X) > self.binarize) * 1.0

    @property
    def class_log_prior_(self) -> np.ndarray:
        return np.log(self.fitted_.priors_)

    @property
    def feature_log_prob_(self) -> np.ndarray:
        return np.log(self._parameters("probability"))

    @property
    def feature_count_(self) -> np.ndarray:
        total = self.class_count_[:, None]
        return self._parameters("probability") * (total + 2 * self.alpha) - self.alpha
