"""The variational bound against its formulas written out, and the convergence of its iteration."""

from dataclasses import replace
from itertools import combinations

import mpmath
import numpy as np
import pytest
from objectives import log_posterior
from scipy.linalg import helmert
from scipy.special import logsumexp, softmax

from posteriori.design.standardise import Standard
from posteriori.errors import ParameterError
from posteriori.likelihood.binary_losses import BinaryLoss
from posteriori.likelihood.links import Probit
from posteriori.posterior.priors import Penalty, flat
from posteriori.posterior.variational import variational
from posteriori.solve.newton import newton
from posteriori.solve.objective import Status
from posteriori.statistics.variational_bound import bound_curvature


def problem(X, T, precision, mean=0.0, weight=None, offset=None, standard=None):
    """The objective of soft labels T (n, K) with a proper prior on its q parameters a class."""
    q = X.shape[1] + (standard is not None)
    precision = np.asarray(precision, dtype=float)
    if precision.ndim < 2:
        precision = np.broadcast_to(precision, (q,))
    penalty = Penalty(np.broadcast_to(mean, (q,)).astype(float), precision, proper=True)
    return log_posterior(X, T, penalty, weight, offset, standard)


def draw(K, n, d, scale=1.0, seed=0):
    """Columns and labels, some of them soft."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    p = softmax(scale * X @ random.normal(size=(d, K)), axis=1)
    T = random.multinomial(1, p).astype(float)
    T[::5] = 0.9 * T[::5] + 0.1 / K
    return X, T


def laplace(f):
    w = newton([f], np.zeros(f.coordinates.size)).parameters
    return w, f(w, "full").hessian


def solved(f, **options):
    return variational(f, *laplace(f), **options)


def contrasts(K):
    return np.array([[-0.5], [0.5]]) if K == 2 else helmert(K).T


def pair_loss(d, variance, own, lead):
    xi = np.hypot(d, np.sqrt(variance))
    return own * np.logaddexp(0, xi) - 0.5 * (own * xi + lead * d)


def written_out(X, T, precision, m, S, prior_mean=0.0, weight=1.0, offset=None):
    """L(q) by plain formulas, rows and parameters in full."""
    n, K = T.shape
    B = contrasts(K)
    J = np.einsum("kc,nd->nkcd", B, X).reshape(n, K, -1)
    shift = 0.0 if offset is None else offset
    a, V = J @ m + shift, J @ S @ J.transpose(0, 2, 1)
    by_pairs, variances = np.zeros(n), np.zeros(n)
    for k, j in combinations(range(K), 2):
        variance = V[:, k, k] + V[:, j, j] - 2 * V[:, k, j]
        by_pairs += pair_loss(a[:, k] - a[:, j], variance, T[:, k] + T[:, j], T[:, k] - T[:, j])
        variances += variance
    fixed = logsumexp(a, axis=1) - (T * a).sum(1) + variances / (4 * K)
    P = np.kron(np.eye(B.shape[1]), precision if np.ndim(precision) == 2 else np.diag(precision))
    away = m - prior_mean
    logs = np.linalg.slogdet(S)[1] + np.linalg.slogdet(P)[1]
    kl = 0.5 * (np.trace(P @ S) + away @ P @ away - len(m) - logs)
    rows = by_pairs if K == 2 else np.minimum(by_pairs, fixed)
    return -(weight * rows).sum() - kl


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("K", "d"), [(2, 1), (2, 3), (3, 2), (4, 2)])
def test_the_fixed_point_is_stationary_and_has_the_bound_of_the_formulas(K, d, weighted):
    X, T = draw(K, 25, d, seed=K + d)
    random = np.random.default_rng(1)
    weight = random.uniform(0.5, 2.0, 25) if weighted else None
    offset = random.normal(size=(25, K)) if weighted else None
    given = offset if K > 2 or offset is None else offset[:, 1] - offset[:, 0]
    P = np.linspace(0.3, 2.0, d)
    m0 = 0.5 if K == 2 else 0.0
    if K == 2:  # with correlations and a mean
        P = np.diag(P) + 0.2
    f = problem(X, T, P, mean=m0, weight=weight, offset=given)
    found = solved(f, tol=1e-16)
    q, p = found.posterior, f.coordinates.size

    def bound(m, S):
        return written_out(X, T, P, m, S, m0, 1.0 if weight is None else weight, offset)

    assert found.bound == pytest.approx(bound(q.mean, q.covariance), rel=1e-11)
    steps = 1e-4 * q.root.T
    for step in steps:
        rise = bound(q.mean + step, q.covariance) - bound(q.mean - step, q.covariance)
        assert abs(rise / 2e-4) < 1e-5
    for i, j in combinations(range(p + 1), 2):
        bend = 1e-4 * (np.outer(q.root[:, i], q.root[:, j - 1]))
        bend = bend + bend.T
        rise = bound(q.mean, q.covariance + bend) - bound(q.mean, q.covariance - bend)
        assert abs(rise / 2e-4) < 1e-5


@pytest.mark.parametrize(("K", "scale"), [(2, 5.0), (3, 5.0)])
def test_the_bound_never_falls_from_any_start(K, scale):
    f = problem(*draw(K, 40, 3, scale), 0.05)
    random = np.random.default_rng(0)
    p = f.coordinates.size
    root = random.normal(size=(p, p))
    starts = [laplace(f), (3 * random.normal(size=p), root @ root.T + np.eye(p))]
    ends = [variational(f, *start, max_iter=2000) for start in starts]
    for found in ends:
        assert (np.diff(found.trace) > 0).all()
        assert found.trace[-1] == found.bound
        assert found.status is Status.CONVERGED
    if K == 2:
        assert ends[0].bound == pytest.approx(ends[1].bound, abs=1e-6)
    assert solved(f, max_iter=2).status is Status.MAX_ITERATIONS


@pytest.mark.parametrize(("K", "centre"), [(2, 1e6), (3, 1.0)])
def test_centring_and_scaling_are_those_of_the_columns(K, centre):
    Z, T = draw(K, 30, 2)
    by_hand = solved(problem(np.column_stack([np.ones(30), Z]), T, [0.1, 1.0, 2.0]))
    standard = Standard(np.array([centre, -1.0]), np.array([2.0, 0.01]), True)
    X = standard.centre + standard.scale * Z
    found = solved(problem(X, T, [0.1, 1.0, 2.0], standard=standard))
    assert found.bound == pytest.approx(by_hand.bound, rel=1e-9)
    np.testing.assert_allclose(found.posterior.mean, by_hand.posterior.mean, atol=1e-6)


@pytest.mark.parametrize("xi", [*np.logspace(-12, 4, 33), 0.1, 1.0, 3.0])
def test_the_curvature_of_the_bound_to_all_digits(xi):
    with mpmath.workdps(50):
        exact = mpmath.tanh(mpmath.mpf(xi) / 2) / (4 * mpmath.mpf(xi))
    assert bound_curvature(np.array([xi]))[0] == pytest.approx(float(exact), rel=4e-16)


X2, T2 = draw(2, 20, 2)
PLAIN = problem(X2, T2, 1.0)
WRONG = {  # objective, message
    "flat prior": (replace(PLAIN, penalty=flat(2)), "evidence needs a proper prior"),
    "half a prior": (
        replace(PLAIN, penalty=Penalty(np.zeros(2), np.array([0.0, 1.0]), True)),
        "evidence needs a proper prior",
    ),
    "link": (replace(PLAIN, loss=BinaryLoss(Probit())), "logistic sigmoid or the softmax"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_has_no_bound_is_an_error(name):
    f, words = WRONG[name]
    with pytest.raises(ParameterError, match=words):
        variational(f, np.zeros(2), np.eye(2))
