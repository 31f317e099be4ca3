"""Labels that may be wrong (4.117): the model draws the true class, and that draws the label.

Two classes: of the rows that are of the first class, a share ε₀ is labelled second; of those of
the second, a share ε₁ is labelled first. K classes: the label has the probabilities in that row
of a transition matrix which belongs to the true class.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit

from posteriori.errors import ParameterError
from posteriori.likelihood.arithmetic import quiet, times
from posteriori.likelihood.binary import BinaryLoss
from posteriori.likelihood.link import ProbabilityLink
from posteriori.likelihood.loss import ClassLoss
from posteriori.likelihood.softmax import log_probabilities, probabilities, with_rows_of_sum_zero
from posteriori.typing import Array

_ROUNDING = 1e-9
"""How far from one a sum of probabilities may be."""


class NoisyLogit(ProbabilityLink):
    """p(t = 1|a) = (1 - ε₁)σ(a) + ε₀(1 - σ(a)) (4.117).

    Given its label t, a row is truly of the second class with probability σ(a + c_t), where
    c₁ = ln (1 - ε₁)/ε₀ and c₀ = ln ε₁/(1 - ε₀). The derivative of ln p(t|a) is
    σ(a + c_t) - σ(a) = (1 - exp(-c_t)) σ(a + c_t) σ(-a), where nothing cancels.
    """

    @quiet
    def __init__(self, flip_first: float, flip_second: float) -> None:
        if not (flip_first >= 0 and flip_second >= 0 and flip_first + flip_second < 1):
            raise ParameterError(
                f"Labels cannot be flipped with probabilities {flip_first} and {flip_second}.",
                "Give two numbers of zero or more whose sum is less than one.",
            )
        self.flip_first, self.flip_second = flip_first, flip_second
        self.log_concave = flip_first == flip_second == 0
        self._log_flip_first, self._log_flip_second = np.log(flip_first), np.log(flip_second)
        self._log_keep_first, self._log_keep_second = np.log1p(-flip_first), np.log1p(-flip_second)
        self.shift_second = self._log_keep_second - self._log_flip_first  # c₁
        self.shift_first = self._log_flip_second - self._log_keep_first  # c₀

    def mean(self, a: Array) -> Array:
        return (1 - self.flip_second) * expit(a) + self.flip_first * expit(-a)

    @quiet
    def activation(self, mean: Array) -> Array:
        return np.log(mean - self.flip_first) - np.log(1 - self.flip_second - mean)

    @quiet
    def logs(self, a: Array) -> tuple[Array, Array]:
        second, first = log_expit(a), log_expit(-a)
        return (
            np.logaddexp(self._log_keep_second + second, self._log_flip_first + first),
            np.logaddexp(self._log_flip_second + second, self._log_keep_first + first),
        )

    def rates(self, a: Array) -> tuple[Array, Array]:
        second, first = self.shift_second, self.shift_first
        return (
            -np.expm1(-second) * expit(a + second) * expit(-a),
            -np.expm1(first) * expit(a) * expit(-a - first),
        )

    def bends(self, a: Array) -> tuple[Array, Array]:
        rise, fall = self.rates(a)
        return (
            rise * (expit(a) - expit(-a - self.shift_second)),
            fall * (expit(-a) - expit(a + self.shift_first)),
        )


class NoisyLogisticLoss(BinaryLoss):
    """-t ln p(t = 1|a) - (1 - t) ln p(t = 0|a), where labels are flipped with known probabilities.

    `flip_first` = ε₀ is the probability that a row of the first class is labelled second,
    `flip_second` = ε₁ that of the reverse. The loss of a row far on the wrong side is -ln ε and
    no more, so that outliers lose their pull. What `flip_` methods give are derivatives in
    (ε₀, ε₁), to estimate both.

    >>> loss = NoisyLogisticLoss(0.1, 0.2)
    >>> loss.value(np.array([-1e4, 1e4]), np.array([1.0, 0.0])) == -np.log([0.1, 0.2])
    array([ True,  True])
    >>> loss.wrong_label_probability(np.array([0.0]), np.array([1.0]))
    array([0.11111111])
    """

    def __init__(self, flip_first: float, flip_second: float) -> None:
        self.noise = NoisyLogit(flip_first, flip_second)
        super().__init__(self.noise)

    def wrong_label_probability(self, a: Array, t: Array) -> Array:
        """p(the true class is the other one | a, t); for a soft label its average over t."""
        return t * expit(-a - self.noise.shift_second) + (1 - t) * expit(a + self.noise.shift_first)

    @quiet
    def flip_gradient(self, a: Array, t: Array) -> Array:
        """∂value/∂(ε₀, ε₁) (n, 2)."""
        second, first = self._flip_scores(a)
        return -(times(t, second) + times(1 - t, first)).T

    @quiet
    def flip_curvature(self, a: Array, t: Array) -> Array:
        """∂²value/∂(ε₀, ε₁)² (n, 2, 2)."""
        second, first = (scores[:, None] * scores for scores in self._flip_scores(a))
        return np.moveaxis(times(t, second) + times(1 - t, first), -1, 0)

    @quiet
    def flip_cross(self, a: Array, t: Array) -> Array:
        """∂²value/∂a∂(ε₀, ε₁) (n, 2)."""
        noise = self.noise
        product = log_expit(a) + log_expit(-a)
        second, first = (np.exp(product - 2 * log_label) for log_label in noise.logs(a))
        by_first = times(t * (1 - noise.flip_second), second)
        by_first -= times((1 - t) * noise.flip_second, first)
        by_second = times(t * noise.flip_first, second)
        by_second -= times((1 - t) * (1 - noise.flip_first), first)
        return np.stack([by_first, by_second], axis=-1)

    def _flip_scores(self, a: Array) -> tuple[Array, Array]:
        """∂ ln p(t|a)/∂(ε₀, ε₁) (2, n), of the label second and of the label first."""
        log_classes = np.stack([log_expit(-a), log_expit(a)])
        sign = np.array([[1.0], [-1.0]])
        second, first = (np.exp(log_classes - log_label) for log_label in self.noise.logs(a))
        return sign * second, -sign * first


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
        _check_transition(self.transition)
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


def _check_transition(transition: Array) -> None:
    square = transition.ndim == 2 and len(set(transition.shape)) == 1
    if not square or not (transition >= 0).all():
        raise ParameterError(
            "A transition matrix has a row and a column for each class, and no negative entry.",
            "Give the probability of each label (column) for each true class (row).",
        )
    if (abs(transition.sum(axis=1) - 1) > _ROUNDING).any():
        row = int(np.argmax(abs(transition.sum(axis=1) - 1)))
        raise ParameterError(
            f"Row {row} of the transition matrix sums to {transition[row].sum():.6g}.",
            "Each row must sum to one: it has the probabilities of the labels of one class.",
        )
