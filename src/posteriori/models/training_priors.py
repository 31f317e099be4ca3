"""The class priors that the probabilities of a fitted model rest on, whatever is around it."""

from collections.abc import Iterator, Mapping
from inspect import signature
from typing import Any, cast

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.pipeline import Pipeline
from sklearn.utils.class_weight import compute_class_weight, compute_sample_weight

from posteriori.decision.priors import read_priors
from posteriori.errors import ParameterError
from posteriori.models.calibrated import CalibratedClassifier
from posteriori.rows.target import read_target, read_weight
from posteriori.typing import Array, Codes, Labels

_BALANCES_WEIGHTS = (
    (LogisticRegression, LogisticRegressionCV)
    if "sample_weight" in signature(compute_class_weight).parameters
    else ()
)
"""Models that balance the weights of the classes; all others of scikit-learn balance their rows."""


def training_priors(fitted: Any, classes: Labels, y: Any, sample_weight: Any) -> Array:
    """The priors of the model, (K,): its own, or the shares of the classes in its rows.

    The share of class k is W_k c_k over the sum of all, with W_k the weight of its rows and c_k
    the class weight. Searches, pipelines and other wrappers are looked into.

    >>> from sklearn.naive_bayes import GaussianNB
    >>> model = GaussianNB(priors=[0.3, 0.7]).fit([[0], [1], [2], [3]], [0, 1, 0, 1])
    >>> training_priors(model, np.array([0, 1]), None, None)
    array([0.3, 0.7])
    """
    layers = list(_layers(fitted))
    for model in layers:
        if (own := _own_priors(model, classes)) is not None:
            return own
    if any(isinstance(model, FrozenEstimator) for model in layers):
        raise ParameterError(
            f"priors was given, but {type(layers[-1]).__name__} is frozen and keeps no priors: the "
            "shares of the classes in the rows that it was fitted to are not known.",
            "Use a model that keeps its priors_, or pass the estimator unfitted.",
        )
    if y is None:
        raise ParameterError(
            "priors was given, but the priors of the training rows are not known without labels y.",
            "Pass X and y, or use a model that keeps its priors_.",
        )
    return _shares(_weighing(layers), classes, y, sample_weight)


def _layers(fitted: Any) -> Iterator[Any]:
    """The model and what is inside it, from the outside in, as far as the probabilities go."""
    model = fitted
    while model is not None:
        yield model
        model = None if _recalibrated(model) else _inside(model)


def _recalibrated(model: Any) -> bool:
    """Whether the probabilities are those of the rows, whatever the model inside took for them."""
    calibrated = isinstance(model, CalibratedClassifier | CalibratedClassifierCV)
    return calibrated and model.method != "temperature"


def _inside(model: Any) -> Any:
    if isinstance(model, FrozenEstimator):
        return model.estimator
    if isinstance(model, Pipeline):
        return model.steps[-1][1]
    return getattr(model, "best_estimator_", getattr(model, "estimator_", None))


def _own_priors(model: Any, classes: Labels) -> Array | None:
    if hasattr(model, "training_priors_"):  # has put others in their place
        return read_priors(model.priors, classes)
    for name in ("priors_", "class_prior_"):
        if (own := getattr(model, name, None)) is not None:
            return np.asarray(own, dtype=np.float64)
    logs = getattr(model, "class_log_prior_", None)
    return None if logs is None else np.exp(logs)


def _weighing(layers: list[Any]) -> Any:
    """The outermost model with weights of classes; without any, the innermost."""
    for model in layers:
        if getattr(model, "class_weight", None) is not None:
            return model
    _check_nothing_hidden(layers[-1])
    return layers[-1]


def _check_nothing_hidden(model: Any) -> None:
    """An error if a model that cannot be looked into holds one with weights of classes."""
    if _recalibrated(model) or not hasattr(model, "get_params"):
        return
    for name, value in model.get_params().items():
        if name.endswith("__class_weight") and value is not None:
            raise ParameterError(
                f"priors was given, but what {name}={value!r} makes of the training priors of "
                f"{type(model).__name__} is not known.",
                "Leave class_weight out, or wrap the estimator in a CalibratedClassifier with "
                "method='platt'.",
            )


def _shares(model: Any, classes: Labels, y: Any, sample_weight: Any) -> Array:
    """The share of each class in y, by weight."""
    labels, codes = read_target(y, len(y))
    given = read_weight(sample_weight, len(codes))
    weight = np.ones(len(codes)) if given is None else given
    if codes.ndim == 2:
        total = cast(Array, codes).T @ weight
    else:
        total = _total(model, labels, cast(Codes, codes), weight)
    count = dict(zip(labels.tolist(), (total / total.sum()).tolist(), strict=True))
    return np.array([count.get(label, 0.0) for label in classes.tolist()])


def _total(model: Any, labels: Labels, codes: Codes, weight: Array) -> Array:
    """W_k c_k, up to a factor; where the weights are balanced c_k is 1/W_k, so that all are one."""
    class_weight = getattr(model, "class_weight", None)
    _check_class_weight(class_weight)
    total = cast(Array, np.bincount(codes, weight, len(labels)))
    if class_weight is None:
        return total
    if class_weight == "balanced" and isinstance(model, _BALANCES_WEIGHTS):
        return (total > 0).astype(np.float64)
    rows = weight * compute_sample_weight(class_weight, labels[codes])
    return cast(Array, np.bincount(codes, rows, len(labels)))


def _check_class_weight(class_weight: Any) -> None:
    known = class_weight is None or isinstance(class_weight, Mapping)
    if not known and not (isinstance(class_weight, str) and class_weight == "balanced"):
        raise ParameterError(
            f"priors was given, but what class_weight={class_weight!r} makes of the training "
            "priors is not known.",
            "Use class_weight='balanced', a dict from label to weight, or None.",
        )
