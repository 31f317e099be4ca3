"""K classes by the softmax function (4.104)-(4.110).

Conventions: a (n, K), an activation a class; t (n, K), rows summing to one.
"""

from functools import reduce

import numpy as np

from posteriori.likelihood.arithmetic import quiet, sum_of_logs, times
from posteriori.likelihood.loss import ClassLoss
from posteriori.typing import Array

_SHORT = 32
"""Rows of fewer classes are searched column by column."""

_ENOUGH = 1e-3
"""A mean loss above this needs no care for probabilities close to one."""

_NEAR = 30.0
"""Activations that differ by no more than this are compared with the last, not with the largest."""


@quiet
def below_largest(a: Array) -> Array:
    """How far each activation is below the largest of its row (n, K); -inf beyond the doubles."""
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
        shifted = below_largest(a)
        return _log_sums(np.exp(shifted)) - times(t, shifted).sum(axis=1)

    def gradient(self, a: Array, t: Array) -> Array:
        p = probabilities(a)
        p -= t
        return p

    def curvature(self, a: Array, t: Array) -> Array:
        return self.information(a)

    def information(self, a: Array) -> Array:
        p = probabilities(a)
        return with_rows_of_sum_zero(-p[:, :, None] * p[:, None, :])

    @quiet
    def sum_and_gradient(self, a: Array, t: Array, weight: Array | None) -> tuple[float, Array]:
        if len(a) and np.ptp(a) <= _NEAR:
            return self._from_last(a, t, weight)
        return self._from_largest(a, t, weight)

    def _from_last(self, a: Array, t: Array, weight: Array | None) -> tuple[float, Array]:
        """With exp(a_k - a_K), which is one for the last class: an exponential less a row."""
        rows, shares = a.T, t.T
        rows -= rows[-1].copy()
        odds = np.exp(rows[:-1])
        sums = np.add.reduce(odds, axis=0)
        sums += 1.0
        if weight is None:
            n, total = float(len(a)), sum_of_logs(sums) - float(np.vdot(rows, shares))
        else:
            seen = np.einsum("kn,kn->n", rows, shares)
            n, total = weight.sum(), float(weight @ (np.log(sums) - seen))
        if total < _ENOUGH * _NEAR * n:
            total = float((self.value(a, t) * (1.0 if weight is None else weight)).sum())
        last = np.reciprocal(sums, out=sums)
        np.multiply(odds, last, out=rows[:-1])
        rows[-1] = last
        return total, _residual(a, t, weight)

    def _from_largest(self, a: Array, t: Array, weight: Array | None) -> tuple[float, Array]:
        a -= _largest(a)[:, None]
        seen = np.einsum("nk,nk->n", a, t)
        if np.isnan(seen).any():  # zero times an activation beyond the doubles
            seen = times(t, a).sum(axis=1)
        p = np.exp(a, out=a)
        sums = _row_sums(p)
        total = _total(p, sums, seen, weight)
        p /= sums[:, None]
        return total, _residual(p, t, weight)


def _residual(p: Array, t: Array, weight: Array | None) -> Array:
    """(p - t) w, written over p."""
    p -= t
    if weight is not None:
        p *= weight[:, None]
    return p


def _total(p: Array, sums: Array, seen: Array, weight: Array | None) -> float:
    """Σ w (ln Σ_j p_j - seen), p not yet divided by its sums."""
    if weight is None:
        total = sum_of_logs(sums) - float(seen.sum())
        careful = total < _ENOUGH * len(sums)
        return float((_log_sums(p) - seen).sum()) if careful else total
    total = float(weight @ (np.log(sums) - seen))
    return float(weight @ (_log_sums(p) - seen)) if total < _ENOUGH * weight.sum() else total


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
