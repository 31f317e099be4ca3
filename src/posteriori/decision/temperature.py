"""One number that makes probabilities more or less sure: softmax(b ln p), 1/b the temperature."""

from typing import cast

import numpy as np
from scipy.optimize import brentq
from scipy.special import softmax

from posteriori.typing import Array, Codes

_LARGEST = 1e300
"""A slope that is as good as infinite."""


def likeliest_slope(activation: Array, codes: Codes, weight: Array) -> float:
    """The b >= 0 under which softmax(b a) makes the classes that occurred most probable.

    The derivative of the log likelihood, Σ w (a_t - Σ_k p_k a_k), only falls with b, so that there
    is one root at most. The answer is zero if it is negative from the start: the activations
    (n, K), which are finite, point away from the classes that occurred. It is infinite if the
    derivative stays above zero, as every row has its largest activation for its own class.

    >>> a = np.log([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9], [0.1, 0.9]])
    >>> b = likeliest_slope(a, np.array([0, 1, 1, 1]), np.ones(4))
    >>> softmax(b * a, axis=1)[0].round(12)  # right three times in four
    array([0.75, 0.25])
    """
    below = activation - activation.max(axis=1, keepdims=True)
    own = np.take_along_axis(below, codes[:, None], axis=1)[:, 0]

    def minus_derivative(b: float) -> float:
        with np.errstate(over="ignore"):
            p = softmax(b * below, axis=1)
        return float(weight @ ((p * below).sum(axis=1) - own))

    if minus_derivative(0.0) >= 0:
        return 0.0
    if not own.any():
        return np.inf
    high = 1.0
    while minus_derivative(high) < 0:
        high *= 2
        if high > _LARGEST:
            return np.inf
    low = high / 2 if high > 1 else 0.0
    found = brentq(
        minus_derivative, low, high, xtol=1 / _LARGEST, rtol=4 * np.spacing(1.0), maxiter=2000
    )
    return cast(float, found)
