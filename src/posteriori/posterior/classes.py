"""From log joint densities to class probabilities (4.57)-(4.63), in log space."""

import numpy as np

from posteriori.typing import Array


def log_normaliser(log_joint: Array) -> Array:
    """ln Σ_k exp(a_k), row by row: ln p(x) where a_k = ln p(x|C_k) p(C_k).

    >>> log_normaliser(np.log([[0.2, 0.3]]))
    array([-0.69314718])
    """
    top = log_joint.max(axis=1)
    shifted = np.exp(log_joint - top[:, None])
    return top + np.log(shifted.sum(axis=1))


def probabilities(activation: Array) -> Array:
    """The normalised exponential (4.62).

    >>> probabilities(np.array([[0.0, np.log(3.0)], [1e4, -1e4]]))
    array([[0.25, 0.75],
           [1.  , 0.  ]])
    """
    p = _below_largest(activation)
    np.exp(p, out=p)
    p /= p.sum(axis=1, keepdims=True)
    return p


def log_probabilities(activation: Array) -> Array:
    """Its logarithm, exact where the probability itself underflows.

    >>> log_probabilities(np.array([[0.0, -1e4]]))
    array([[     0., -10000.]])
    """
    shifted = _below_largest(activation)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def _below_largest(activation: Array) -> Array:
    """How far each activation is below the largest of its row; -inf beyond the doubles."""
    with np.errstate(over="ignore"):
        return activation - activation.max(axis=1, keepdims=True)
