"""Inference from its definitions at 50 digits: any link for two classes, softmax for K.

Conventions: rows φ (the intercept first, if there is one), weights, offsets and targets are lists;
parameters w a list of numbers of 50 digits. Two classes have t, the share of the second, and one
activation a row; K classes have shares (K,) and contrasts with the first class, class by class.
"""

from functools import cache

import mpmath as mp
import numpy as np

mp.mp.dps = 50

_ROUNDING = mp.mpf(10) ** -30
"""A step that changes nothing of what is compared."""


def logistic(a):
    F, rest = 1 / (1 + mp.exp(-a)), 1 / (1 + mp.exp(a))
    return F, rest, F * rest, F * rest * (rest - F)


def normal(a):
    f = mp.npdf(a)
    return mp.ncdf(a), mp.ncdf(-a), f, -a * f


def cauchy(a):
    f, turn = 1 / (mp.pi * (1 + a * a)), mp.atan(a) / mp.pi
    return mp.mpf(1) / 2 + turn, mp.mpf(1) / 2 - turn, f, -2 * a * f / (1 + a * a)


class Binary:
    """-ln p(t|a) for p(t = 1) = F(a), from F, 1 - F, the density and its slope."""

    K = 2

    def __init__(self, link):
        self.link = link

    def activations(self, row, w, offset):
        return [mp.fdot(row, w) + offset]

    def value(self, a, t):
        F, rest, _, _ = self.link(a[0])
        return -_times(t, mp.log(F)) - _times(1 - t, mp.log(rest))

    def saturated(self, t):
        return _entropy(t) + _entropy(1 - t)

    def hard_labels(self, t):
        return [(1 - t, 0), (t, 1)]

    def derivatives(self, a, t):
        F, rest, f, slope = self.link(a[0])
        gradient = -t * f / F + (1 - t) * f / rest
        observed = t * ((f / F) ** 2 - slope / F)
        observed += (1 - t) * ((f / rest) ** 2 + slope / rest)
        return [gradient], [[observed]], [[f * f / (F * rest)]]

    def log_odds(self, a):
        """What an interval is made of, and its slopes in the free activations."""
        return [(a[0], [mp.mpf(1)])]

    def mean(self, a):
        return self.link(a)[0]


class Softmax:
    """-ln p(t|a) for K classes, the first activation being zero."""

    def __init__(self, K):
        self.K = K

    def activations(self, row, w, offset):
        q = len(row)
        own = [mp.fdot(row, w[k * q : (k + 1) * q]) for k in range(self.K - 1)]
        given = offset if isinstance(offset, list) else [offset] * self.K
        return [o + a for o, a in zip(given, [mp.mpf(0), *own], strict=True)]

    def probabilities(self, a):
        e = [mp.exp(v) for v in a]
        return [v / sum(e) for v in e]

    def value(self, a, t):
        return -sum(_times(s, mp.log(p)) for s, p in zip(t, self.probabilities(a), strict=True))

    def saturated(self, t):
        return sum(map(_entropy, t))

    def hard_labels(self, t):
        return [(t[k], [int(j == k) for j in range(self.K)]) for k in range(self.K)]

    def derivatives(self, a, t):
        p, free = self.probabilities(a), range(1, self.K)
        curved = [[p[k] * (int(k == j) - p[j]) for j in free] for k in free]
        return [p[k] - t[k] for k in free], curved, curved

    def log_odds(self, a):
        p, found = self.probabilities(a), []
        for k in range(self.K):
            slopes = [mp.mpf(1) if j == k else -p[j] / (1 - p[k]) for j in range(1, self.K)]
            found.append((mp.log(p[k] / (1 - p[k])), slopes))
        return found

    def mean(self, a):
        return 1 / (1 + mp.exp(-a))


def _times(t, value):
    return t * value if t else mp.mpf(0)


def _entropy(t):
    return t * mp.log(t) if t else mp.mpf(0)


class Exact:
    """A fit: its optimum `w`, and what follows from it. `precision` is that of each parameter."""

    def __init__(self, loss, rows, target, start, weight=None, offset=None, precision=0.0):
        n = len(rows)
        self.loss, self.rows, self.target = loss, _exact(rows), _exact(target)
        self.weight = _exact(np.ones(n) if weight is None else weight)
        self.offset = _exact(np.zeros(n) if offset is None else offset)
        self.precision = [mp.mpf(float(v)) for v in np.broadcast_to(precision, len(start))]
        self.free = loss.K - 1
        self.w = self._optimum(_exact(start))

    @property
    def n(self):
        return sum(self.weight)

    def _each(self, w):
        for row, t, weight, offset in zip(
            self.rows, self.target, self.weight, self.offset, strict=True
        ):
            if weight:
                yield row, t, weight, self.loss.activations(row, w, offset)

    def log_likelihood(self, w):
        return -sum(weight * self.loss.value(a, t) for _, t, weight, a in self._each(w))

    def _objective(self, w, expected=False):
        """-ln p(t|w) - ln p(w), its gradient and its Hessian."""
        p, q = len(w), len(w) // self.free
        value = sum(h * v * v for h, v in zip(self.precision, w, strict=True)) / 2
        gradient = mp.matrix([h * v for h, v in zip(self.precision, w, strict=True)])
        hessian = mp.diag(self.precision)
        for row, t, weight, a in self._each(w):
            g, observed, information = self.loss.derivatives(a, t)
            curved = information if expected else observed
            value += weight * self.loss.value(a, t)
            for i in range(p):
                pull = weight * row[i % q]
                gradient[i] += pull * g[i // q]
                for j in range(i + 1):
                    hessian[i, j] += pull * curved[i // q][j // q] * row[j % q]
        for i in range(p):
            for j in range(i):
                hessian[j, i] = hessian[i, j]
        return value, gradient, hessian

    def scores(self):
        """Σ w g gᵀ at the optimum, over rows of hard labels: a soft label is a share of each."""
        out = mp.zeros(len(self.w))
        for row, t, weight, a in self._each(self.w):
            for share, label in self.loss.hard_labels(t):
                slopes = self.loss.derivatives(a, label)[0]
                g = mp.matrix([slope * x for slope in slopes for x in row])
                out += weight * share * g * g.T
        return out

    def _optimum(self, w):
        for _ in range(30):
            _, gradient, hessian = self._objective(w)
            step = mp.lu_solve(hessian, gradient)
            w = [v - s for v, s in zip(w, step, strict=True)]
            if max(abs(s) for s in step) < _ROUNDING:
                return w
        raise AssertionError("no optimum")

    @cache  # noqa: B019
    def covariance(self, errors):
        return self._objective(self.w, errors == "expected")[2] ** -1

    def profile_rise(self, j, place):
        """By how much the least objective with w_j fixed at a place is above the optimum."""
        w, start, end = list(self.w), self.w[j], mp.mpf(float(place))
        for part in (*range(1, 7), *[6] * 6):  # in steps to the place, and then Newton's there
            _, gradient, system = self._objective(w)
            for i in range(len(w)):
                system[j, i] = int(i == j)
            gradient[j] = w[j] - (start + (end - start) * part / 6)
            step = mp.lu_solve(system, gradient)
            w = [v - s for v, s in zip(w, step, strict=True)]
        assert max(abs(s) for s in step) < _ROUNDING
        return self._objective(w)[0] - self._objective(self.w)[0]

    def saturated(self):
        return sum(
            w * self.loss.saturated(t) for w, t in zip(self.weight, self.target, strict=True)
        )

    def null_log_likelihood(self):
        """ln p of the best model with the intercepts alone or, without them, with nothing."""
        if any(row[0] != 1 for row in self.rows):
            return self.log_likelihood([mp.mpf(0)] * len(self.w))
        first = [row[:1] for row in self.rows]
        null = Exact(self.loss, first, self.target, [0] * self.free, self.weight, self.offset)
        return null.log_likelihood(null.w)

    def interval(self, row, offset, quantile, errors):
        """Ends for the mean of a row, for each class where there are more than two."""
        row, covariance = _exact(row), self.covariance(errors)
        a = self.loss.activations(row, self.w, mp.mpf(float(offset)))
        found = []
        for middle, slopes in self.loss.log_odds(a):
            m = mp.matrix([s * x for s in slopes for x in row])
            away = quantile * mp.sqrt((m.T * covariance * m)[0])
            found.append([float(self.loss.mean(middle + side * away)) for side in (-1, 1)])
        return found


def _exact(values):
    if np.ndim(values) == 0:
        return mp.mpf(float(values))
    return [_exact(v) for v in values]
