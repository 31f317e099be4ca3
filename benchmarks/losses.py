"""What the fits make small, row by row: the negative log-likelihood, written once more.

Written apart from the library, because it judges the library too. An activation has shape (n, 1),
or (n, K) for the softmax; y holds class codes or counts.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, gammaln, log_ndtr, log_softmax, softmax


@dataclass(frozen=True)
class Loss:
    """`value(activation, y)` for each row; `mean(activation)`, where the link is canonical."""

    name: str
    value: Callable[[np.ndarray, np.ndarray], np.ndarray]
    mean: Callable[[np.ndarray], np.ndarray] | None = None


def target(y: np.ndarray, outputs: int) -> np.ndarray:
    """y as the mean would be if it were certain: a column, or one column for each class."""
    return y[:, None] if outputs == 1 else np.eye(outputs)[y]


def _logistic(activation: np.ndarray, y: np.ndarray) -> np.ndarray:
    a = activation[:, 0]
    return np.logaddexp(0.0, a) - y * a


def _softmax(activation: np.ndarray, y: np.ndarray) -> np.ndarray:
    return -np.take_along_axis(log_softmax(activation, axis=1), y[:, None], axis=1)[:, 0]


def _probit(activation: np.ndarray, y: np.ndarray) -> np.ndarray:
    return -log_ndtr((2 * y - 1) * activation[:, 0])


def _poisson(activation: np.ndarray, y: np.ndarray) -> np.ndarray:
    a = activation[:, 0]
    return np.exp(a) - y * a + gammaln(y + 1.0)


def _softmax_mean(activation: np.ndarray) -> np.ndarray:
    return softmax(activation, axis=1)


LOGISTIC = Loss("logistic", _logistic, expit)
SOFTMAX = Loss("softmax", _softmax, _softmax_mean)
PROBIT = Loss("probit", _probit)
POISSON = Loss("Poisson", _poisson, np.exp)
