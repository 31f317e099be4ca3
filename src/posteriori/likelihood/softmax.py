"""K classes by the softmax function (4.104)-(4.110), with labels that may be wrong (4.117).

Conventions: a (n, K), an activation a class, minus infinity for one that cannot occur; t (n, K),
rows summing to one.
"""

from functools import reduce

import numpy as np
from numpy.typing import ArrayLike

from posteriori.likelihood.log_arithmetic import quiet, sum_of_logs, times
from posteriori.likelihood.loss import ClassLoss
from posteriori.typing import Array

_SHORT = 32
"""Rows of fewer classes are searched column by column."""

_ENOUGH = 1e-3
"""A mean loss above this needs no care for probabilities close to one."""


@quiet
def log_normaliser(a: Array) -> Array:
    """ln Σ_k exp(a_k) (n,): ln p(x) where a_k = ln p(x|C_k) p(C_k) (4.63).

    >>> log_normaliser(np.log([[0.2, 0.3]]))
    array([-0.69314718])
    """
    return _largest(a) + np.log(_row_sums(np.exp(below_largest(a))))


@quiet
def below_largest(a: Array) -> Array:
    """a less the largest activation of its row (n, K); -inf beyond the doubles."""
    return a - _largest(a)[:, None]


@quiet
def log_probabilities(a: Array) -> Array:
    """ln p (n, K), exact where p itself underflows.

    >>> log_probabilities(np.array([[0.0, -1e4]]))
    array([[     0., -10000.]])
    """
    shifted = below_largest(a)
    return shifted - _log_sums(np.exp(shifted))[:, None]


@quiet
def probabilities(a: Array) -> Array:
    """p_k = exp(a_k) / Σ_j exp(a_j) (4.104).

    >>> probabilities(np.array([[0.0, np.log(3.0)]]))
    array([[0.25, 0.75]])
    """
    p = np.exp(below_largest(a))
    p /= _row_sums(p)[:, None]
    return p


class SoftmaxLoss(ClassLoss):
    """-Σ_k t_k ln p_k (4.108) = ln Σ_j exp(a_j) - Σ_k t_k a_k.

    The derivative is p - t (4.109), the curvature diag(p) - ppᵀ (4.110), for every t.

    >>> loss, a, t = SoftmaxLoss(), np.array([[0.0, np.log(3.0)]]), np.array([[1.0, 0.0]])
    >>> loss.value(a, t), loss.gradient(a, t)
    (array([1.38629436]), array([[-0.75,  0.75]]))
    """

    @quiet
    def value(self, a: Array, t: Array) -> Array:
        return self.value_and_gradient(a, t)[0]

    def gradient(self, a: Array, t: Array) -> Array:
        p = probabilities(a)
        p -= t
        return p

    @quiet
    def value_and_gradient(self, a: Array, t: Array) -> tuple[Array, Array]:
        shifted = below_largest(a)
        p = np.exp(shifted)
        value = _log_sums(p) - times(t, shifted).sum(axis=1)
        p /= _row_sums(p)[:, None]
        p -= t
        return value, p

    def curvature(self, a: Array, t: Array) -> Array:
        return self.information(a)

    def information(self, a: Array) -> Array:
        p = probabilities(a)
        return with_rows_of_sum_zero(-p[:, :, None] * p[:, None, :])

    @quiet
    def sum_and_gradient(self, a: Array, t: Array, weight: Array | None) -> tuple[float, Array]:
        a -= _largest(a)[:, None]
        own = np.einsum("nk,nk->n", a, t)
        if np.isnan(own).any():  # zero times an activation beyond the doubles
            own = times(t, a).sum(axis=1)
        p = np.exp(a, out=a)
        sums = _row_sums(p)
        total = sum_of_logs(sums) - float(own.sum()) if weight is None else 0.0
        if total < _ENOUGH * len(p):
            value = _log_sums(p) - own
            total = float(value.sum() if weight is None else weight @ value)
        p /= sums[:, None]
        p -= t
        if weight is not None:
            p *= weight[:, None]
        return total, p


def with_rows_of_sum_zero(found: Array) -> Array:
    """Matrices (n, K, K) whose diagonal is minus the rest of the row; written over.

    Second derivatives of a softmax have no slope along (1, ..., 1). To take their diagonal from
    what is off it loses no digit where a probability is close to one.

    >>> with_rows_of_sum_zero(np.array([[[5.0, -0.5], [-0.25, 7.0]]]))
    array([[[ 0.5 , -0.5 ],
            [-0.25,  0.25]]])
    """
    diagonal = np.einsum("nkk->nk", found)
    diagonal[...] = 0.0
    diagonal[...] = -found.sum(axis=2)
    return found


def _largest(a: Array) -> Array:
    """The largest of each row."""
    return a.max(axis=1) if a.shape[1] > _SHORT else reduce(np.maximum, a.T)


def _row_sums(p: Array) -> Array:
    return p @ np.ones(p.shape[1])


def _log_sums(p: Array) -> Array:
    """ln Σ_k p_k where the largest p of a row is one, exact where the others are almost zero."""
    top = p == 1.0
    return np.log1p(np.where(top, 0.0, p).sum(axis=1) + (top.sum(axis=1) - 1))


class NoisyClassLoss(ClassLoss):
    """-Σ_k t_k ln q_k, where q_k = Σ_j p_j T_jk and p is the softmax of a.

    `transition` T (K, K) has the probability that a row of class j is labelled k. Given the label
    k the true class is j with probability r_jk = p_j T_jk / q_k, and ∂ ln q_k/∂a_j = r_jk - p_j.

    >>> loss = NoisyClassLoss([[0.9, 0.1], [0.2, 0.8]])
    >>> loss.value(np.zeros((1, 2)), np.array([[0.0, 1.0]])), -np.log(0.45)
    (array([0.7985077]), ...0.79850769...)
    >>> loss.wrong_label_probability(np.zeros((1, 2)), np.array([[0.0, 1.0]]))
    array([0.11111111])
    """

    convex = False

    @quiet
    def __init__(self, transition: ArrayLike) -> None:
        self.transition = np.asarray(transition, dtype=np.float64)
        self._log_transition = np.log(self.transition)

    @quiet
    def value(self, a: Array, t: Array) -> Array:
        return -times(t, self._log_labels(a)).sum(axis=1)

    def gradient(self, a: Array, t: Array) -> Array:
        return probabilities(a) - np.einsum("njk,nk->nj", self.true_class_probabilities(a), t)

    def curvature(self, a: Array, t: Array) -> Array:
        p, given = probabilities(a), self.true_class_probabilities(a)
        found = (given * t[:, None, :]) @ given.swapaxes(1, 2)
        found -= p[:, :, None] * p[:, None, :]
        return with_rows_of_sum_zero(found)

    def information(self, a: Array) -> Array:
        step = self.true_class_probabilities(a) - probabilities(a)[:, :, None]
        step *= np.exp(self._log_labels(a) / 2)[:, None, :]
        return step @ step.swapaxes(1, 2)

    def wrong_label_probability(self, a: Array, t: Array) -> Array:
        """p(the true class is another one | a, t); for a soft label its average over t."""
        given = self.true_class_probabilities(a)
        np.einsum("nkk->nk", given)[...] = 0.0
        return np.einsum("njk,nk->n", given, t)

    @quiet
    def true_class_probabilities(self, a: Array) -> Array:
        """r_jk = p(true class j|a, label k) (n, K, K); zero for a label that nothing gets."""
        return np.nan_to_num(np.exp(self._log_joint(a) - self._log_labels(a)[:, None, :]))

    @quiet
    def _log_labels(self, a: Array) -> Array:
        """ln q (n, K)."""
        return np.logaddexp.reduce(self._log_joint(a), axis=1)

    def _log_joint(self, a: Array) -> Array:
        """ln p_j T_jk (n, K, K)."""
        return log_probabilities(a)[:, :, None] + self._log_transition
