"""Right answers at 50 digits: Gaussian classes computed from the doubles by mpmath.

Arrays of `mpf` are object arrays, so that `@`, sums and means are NumPy's.
"""

import mpmath as mp
import numpy as np

mp.mp.dps = 50


def exact(values):
    """The same numbers with 50 digits."""
    values = np.asarray(values)
    return np.array([mp.mpf(float(v)) for v in values.ravel()], dtype=object).reshape(values.shape)


def doubles(values):
    """Rounded to the nearest doubles."""
    return np.asarray(values).astype(float)


def solve(matrix, right):
    """matrix⁻¹ right (d,)."""
    found = mp.lu_solve(mp.matrix(matrix.tolist()), mp.matrix(right.tolist()))
    return np.array(list(found), dtype=object)


def log_determinant(matrix):
    return mp.log(mp.det(mp.matrix(matrix.tolist()))) if len(matrix) else mp.mpf(0)


def log_normal(x, mean, covariance):
    """ln N(x|mean, covariance) of one row; entries that are NaN are integrated out."""
    o = np.flatnonzero([not mp.isnan(v) for v in x])
    if len(o) == 0:
        return mp.mpf(0)
    step, inner = (x - mean)[o], covariance[np.ix_(o, o)]
    square = step @ solve(inner, step)
    return -(len(o) * mp.log(2 * mp.pi) + log_determinant(inner) + square) / 2


def class_moments(X, share):
    """Weight, mean and scatter of rows that belong to a class by `share` (n,)."""
    X, share = exact(X), exact(share)
    mean = share @ X / share.sum()
    step = X - mean
    return share.sum(), mean, (step * share[:, None]).T @ step


def shares(y, classes, weight=None):
    """Membership of each row in each class (n, K), times its weight."""
    one = (np.asarray(y)[:, None] == np.asarray(classes)).astype(float)
    return one if weight is None else one * np.asarray(weight)[:, None]


class Gaussians:
    """Means, covariances and priors by maximum likelihood from memberships (n, K).

    `kind` is "shared", "full", "diagonal", "isotropic" or groups of class numbers.
    """

    def __init__(self, X, member, kind="shared", unbiased=False, priors=None):
        K, d = member.shape[1], X.shape[1]
        found = [class_moments(X, member[:, k]) for k in range(K)]
        self.count = [count for count, _, _ in found]
        self.means = [mean for _, mean, _ in found]
        n = sum(self.count)
        self.priors = [c / n for c in self.count] if priors is None else list(exact(priors))
        own = {"shared": [range(K)], "isotropic": [range(K)]}.get(kind) if kind in KINDS else kind
        groups = [[k] for k in range(K)] if own is None else own
        self.covariances = [None] * K
        for group in groups:
            taken = len(group) if unbiased else 0
            scatter = sum(found[k][2] for k in group)
            divisor = sum(self.count[k] for k in group) - taken
            covariance = scatter / divisor
            if kind == "isotropic":
                covariance = np.diag([np.trace(scatter) / (d * divisor)] * d)
            if kind == "diagonal":
                covariance = np.diag(np.diagonal(covariance))
            for k in group:
                self.covariances[k] = covariance

    def log_joint(self, X):
        """ln p(x|C_k) p(C_k) (n, K)."""
        X = exact(X)
        columns = [
            [log_normal(x, mean, covariance) + mp.log(prior) for x in X]
            for mean, covariance, prior in zip(
                self.means, self.covariances, self.priors, strict=True
            )
        ]
        return np.array(columns, dtype=object).T

    def log_density(self, X):
        """ln p(x) (n,)."""
        return np.array([mp.log(sum(map(mp.exp, row))) for row in self.log_joint(X)], dtype=object)

    def posteriors(self, X):
        joint = self.log_joint(X)
        total = self.log_density(X)
        return np.vectorize(mp.exp, otypes=[object])(joint - total[:, None])


KINDS = ("shared", "full", "diagonal", "isotropic")


def correlated_rows(n, d, K, seed=0, apart=1.0):
    """Rows of K overlapping classes with correlated columns, and their labels 0..K-1."""
    random = np.random.default_rng(seed)
    y = np.arange(n) % K
    mix = np.eye(d) + 0.6 * random.standard_normal((d, d))
    X = random.standard_normal((n, d)) @ mix + apart * random.standard_normal((K, d))[y]
    return X * (1 + 0.3 * y[:, None]) + 2.0, y
