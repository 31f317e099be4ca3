"""Bayesian logistic regression by brute force: Newton steps in NumPy, and sums over grids.

The prior is N(0, 1/a) on slopes and N(0, 10²) on the intercept of centred columns.
"""

import numpy as np
from scipy.linalg import null_space
from scipy.special import expit, log_expit, logsumexp, softmax

INTERCEPT = 10.0**-2


def centred(X):
    """Columns (n, q) about their means, after a column of ones."""
    return np.column_stack([np.ones(len(X)), X - X.mean(axis=0)])


def to_user(X):
    """The matrix that makes coefficients of columns as they are from those of centred ones."""
    out = np.eye(X.shape[1] + 1)
    out[0, 1:] = -X.mean(axis=0)
    return out


def two_classes(X, y, a, weight=None):
    """Mean and covariance by Laplace's approximation (4.142)-(4.143), intercept first."""
    Phi, t = centred(X), np.asarray(y, dtype=float)
    r = np.ones(len(X)) if weight is None else weight
    prior = np.diag([INTERCEPT, *np.full(X.shape[1], a)])
    w = np.zeros(Phi.shape[1])
    for _ in range(50):
        p = expit(Phi @ w)
        A = prior + (Phi * (r * p * (1 - p))[:, None]).T @ Phi
        w = w - np.linalg.solve(A, prior @ w + Phi.T @ (r * (p - t)))
    M = to_user(X)
    return M @ w, M @ np.linalg.inv(A) @ M.T


def many_classes(X, y, a):
    """The same for K classes that sum to zero, class by class."""
    K, d = int(np.max(y)) + 1, X.shape[1]
    prior = np.kron(np.eye(K), np.diag([INTERCEPT, *np.full(d, a)]))
    M = np.kron(np.eye(K), to_user(X))
    mean, covariance = _softmax_mode(centred(X), y, prior, np.zeros(len(prior)))
    return M @ mean, M @ covariance @ M.T


def updated(X, y, mean, covariance):
    """The posterior of K classes whose prior is N(mean, covariance), which sum to zero."""
    Phi = np.column_stack([np.ones(len(X)), X])
    return _softmax_mode(Phi, y, np.linalg.pinv(covariance), mean)


def _softmax_mode(Phi, y, prior, centre):
    """Mode and covariance of classes that sum to zero, with a prior of this precision and mean."""
    T = np.eye(int(np.max(y)) + 1)[np.asarray(y)]
    K, q = T.shape[1], Phi.shape[1]
    E = np.kron(null_space(np.ones((1, K))), np.eye(q))
    v = centre = E.T @ centre
    for _ in range(50):
        gradient, H = _softmax_sums(Phi, T, (E @ v).reshape(K, q))
        A = E.T @ (H + prior) @ E
        v = v - np.linalg.solve(A, E.T @ gradient + E.T @ prior @ E @ (v - centre))
    return E @ v, E @ np.linalg.inv(A) @ E.T


def _softmax_sums(Phi, T, theta):
    """Gradient (Kq,) and Hessian (Kq, Kq) of -ln p(t|θ), as in (4.109)-(4.110)."""
    P = softmax(Phi @ theta.T, axis=1)
    R = np.einsum("nk,kl->nkl", P, np.eye(len(theta))) - np.einsum("nk,nl->nkl", P, P)
    H = np.einsum("nkl,ni,nj->kilj", R, Phi, Phi, optimize=True)
    return ((P - T).T @ Phi).ravel(), H.reshape(theta.size, theta.size)


def on_a_grid(x, y, a, n_points=500):
    """ln p(t) of an intercept and one slope, their values (m, 2) on a grid, and the weight of each.

    Values are those for the column as it is.
    """
    sign, z = np.where(np.asarray(y) == 1, 1.0, -1.0), x - x.mean()
    axes = [np.linspace(-r, r, n_points) for r in (9 * INTERCEPT**-0.5, 9 * a**-0.5)]
    b, w = (g.ravel() for g in np.meshgrid(*axes, indexing="ij"))
    logs = -0.5 * (INTERCEPT * b**2 + a * w**2) + 0.5 * np.log(INTERCEPT * a) - np.log(2 * np.pi)
    for one, side in zip(z, sign, strict=True):
        logs += log_expit(side * (b + w * one))
    cell, total = sum(np.log(axis[1] - axis[0]) for axis in axes), logsumexp(logs)
    return float(total + cell), np.column_stack([b - w * x.mean(), w]), np.exp(logs - total)
