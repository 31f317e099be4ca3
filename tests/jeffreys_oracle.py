"""The penalised likelihood ln p + ½ ln|I| from its definition, at 50 digits.

Conventions: `design` has the ones of the intercept; t (n,) is zero or one, or (n, K) one of K; w
has the parameters of the second class, or the contrasts of the others with the first, class by
class.
"""

from functools import partial
from itertools import product

import mpmath as mp
import numpy as np
from oracle import doubles, exact


def _exact_binary(mean, slope, design, t, w):
    """With p = mean(a) and dp/da = slope(a, p)."""
    value, information = mp.mpf(0), mp.zeros(len(w))
    for row, label in zip(design, t, strict=True):
        p = mean(row @ w)
        value += mp.log(p if label else 1 - p)
        x = mp.matrix(list(row))
        information += slope(row @ w, p) ** 2 / (p * (1 - p)) * x * x.T
    return value + mp.log(mp.det(information)) / 2


exact_logistic = partial(_exact_binary, lambda a: 1 / (1 + mp.exp(-a)), lambda a, p: p * (1 - p))
exact_probit = partial(_exact_binary, mp.ncdf, lambda a, p: mp.npdf(a))


def exact_softmax(design, t, w):
    K, q = t.shape[1], design.shape[1]
    vectors = w.reshape(K - 1, q)
    value, information = mp.mpf(0), mp.zeros(len(w))
    for row, label in zip(design, t, strict=True):
        e = [mp.mpf(1), *(mp.exp(row @ v) for v in vectors)]
        p = [x / sum(e) for x in e]
        value += mp.log(p[int(np.argmax(label))])
        for k in range(K - 1):
            for j in range(K - 1):
                A = p[k + 1] * (int(k == j) - p[j + 1])
                for a, b in product(range(q), repeat=2):
                    information[k * q + a, j * q + b] += A * row[a] * row[b]
    return value + mp.log(mp.det(information)) / 2


def optimum(exact_value, design, t, start):
    """The maximum by Newton's method at 50 digits from a start: place, value and Hessian."""
    labels = t if np.ndim(t) == 2 else [bool(label) for label in t]
    f, w = partial(exact_value, exact(design), labels), exact(start)
    for _ in range(4):
        gradient, hessian = _derivatives(f, w)
        w = w - np.array(list(mp.lu_solve(hessian, gradient)), dtype=object)
    assert max(abs(float(x)) for x in mp.lu_solve(hessian, gradient)) < 1e-12
    assert np.linalg.eigvalsh(doubles(hessian.tolist())).max() < 0
    return doubles(w), float(f(w)), doubles(hessian.tolist())


def _derivatives(f, w):
    """By central differences, which at 50 digits leave 20 or more right."""
    h, size = mp.mpf(10) ** -12, len(w)
    steps = [h * np.array([int(i == j) for j in range(size)], dtype=object) for i in range(size)]
    up, down, here = [f(w + s) for s in steps], [f(w - s) for s in steps], f(w)
    gradient = mp.matrix([(a - b) / (2 * h) for a, b in zip(up, down, strict=True)])
    hessian = mp.zeros(size)
    for i in range(size):
        hessian[i, i] = (up[i] + down[i] - 2 * here) / h**2
        for j in range(i):
            both = f(w + steps[i] + steps[j]) + here - up[i] - up[j]
            hessian[i, j] = hessian[j, i] = both / h**2
    return gradient, hessian


def with_ones(X):
    return np.column_stack([np.ones(len(X)), X])
