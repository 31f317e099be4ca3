"""The variational bound against brute-force integrals, and the laws its iteration must keep."""

from dataclasses import replace
from itertools import combinations

import mpmath
import numpy as np
import pytest
from scipy.linalg import helmert
from scipy.special import logsumexp, softmax

from posteriori.design.columns import Columns
from posteriori.design.standardise import Standard
from posteriori.errors import ParameterError
from posteriori.likelihood.binary import BinaryLoss
from posteriori.likelihood.logistic import LogisticLoss, SignedLogisticLoss
from posteriori.likelihood.sigmoids import Logit, Probit
from posteriori.likelihood.softmax import SoftmaxLoss
from posteriori.posterior.objective import Coordinates, LogPosterior
from posteriori.posterior.priors import Penalty, flat
from posteriori.posterior.variational import variational
from posteriori.posterior.variational_evidence import precision_update, variational_evidence
from posteriori.rows.in_memory import read_rows
from posteriori.solve.newton import newton
from posteriori.solve.solution import Status
from posteriori.statistics.variational_bound import bound_curvature


def second(block):
    return block.y[:, 1]


def whole(block):
    return block.y


def problem(X, T, precision, mean=0.0, weight=None, offset=None, standard=None):
    """The objective of soft labels T (n, K), whose columns are taken as they are."""
    d, K = X.shape[1], T.shape[1]
    standard = standard or Standard(np.zeros(d), np.ones(d), False)
    q = d + standard.intercept
    rows = replace(read_rows(X, T, weight, list(range(K))), offset=offset)
    precision = np.asarray(precision, dtype=float)
    if precision.ndim < 2:
        precision = np.broadcast_to(precision, (q,))
    return LogPosterior(
        rows,
        Columns(rows.schema),
        standard,
        LogisticLoss() if K == 2 else SoftmaxLoss(),
        second if K == 2 else whole,
        Penalty(np.broadcast_to(mean, (q,)).astype(float), precision, proper=True),
        Coordinates(1 if K == 2 else K, q),
        1e-10,
    )


def draw(K, n, d, scale=1.0, seed=0):
    """Columns and labels, some of them soft."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    p = softmax(scale * X @ random.normal(size=(d, K)), axis=1)
    T = np.array([random.multinomial(1, each) for each in p], dtype=float)
    T[::5] = 0.9 * T[::5] + 0.1 / K
    return X, T


def laplace(f):
    w = newton([f], np.zeros(f.coordinates.size)).parameters
    return w, f(w, "full").hessian


def solved(f, **options):
    return variational(f, *laplace(f), **options)


def contrasts(K):
    return np.array([[-0.5], [0.5]]) if K == 2 else helmert(K).T


def log_joint(X, T, precision, W, mean=0.0):
    """ln p(t, w) for many w (..., c, d), written out."""
    a = np.einsum("nd,kc,...cd->...nk", X, contrasts(T.shape[1]), W)
    likelihood = ((T * a).sum(-1) - logsumexp(a, axis=-1)).sum(-1)
    precision = np.broadcast_to(precision, W.shape[-1:])
    prior = 0.5 * np.log(precision / (2 * np.pi)) - 0.5 * precision * (W - mean) ** 2
    return likelihood + prior.sum((-1, -2))


def integrated(X, T, precision, mean=0.0):
    """ln p(t), mean and covariance of the exact posterior of two parameters, by a grid."""
    shape = (1, 2) if T.shape[1] == 2 else (2, 1)
    axis = np.linspace(-8, 8, 161) / np.sqrt(np.min(precision))
    W = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
    logs = np.concatenate(
        [log_joint(X, T, precision, part.reshape(-1, *shape), mean) for part in W]
    )
    cell = 2 * np.log(axis[1] - axis[0])
    share, W = softmax(logs), W.reshape(-1, 2)
    return logsumexp(logs) + cell, share @ W, np.cov(W.T, aweights=share, ddof=0)


def pair_loss(d, variance, own, lead):
    return own * np.logaddexp(0, np.hypot(d, np.sqrt(variance))) - 0.5 * (
        own * np.hypot(d, np.sqrt(variance)) + lead * d
    )


def written_out(X, T, precision, m, S, prior_mean=0.0, weight=1.0, offset=None):
    """L(q) by plain formulas, rows and parameters in full."""
    n, d = X.shape
    K = T.shape[1]
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
    P = np.diag(np.tile(np.broadcast_to(precision, (d,)), B.shape[1]))
    away = m - prior_mean
    logs = np.linalg.slogdet(S)[1] + np.linalg.slogdet(P)[1]
    kl = 0.5 * (np.trace(P @ S) + away @ P @ away - len(m) - logs)
    rows = by_pairs if K == 2 else np.minimum(by_pairs, fixed)
    return -(weight * rows).sum() - kl


CASES = [
    (K, n, scale, precision)
    for K in (2, 3)
    for n, scale in [(1, 1.0), (4, 3.0), (15, 1.0), (60, 0.3)]
    for precision in (0.25, 1.0, 9.0)
]


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("K", "n", "scale", "precision"), CASES)
def test_the_bound_is_below_the_evidence(K, n, scale, precision, seed):
    X, T = draw(K, n, 2 if K == 2 else 1, scale, seed)
    exact, *_ = integrated(X, T, precision)
    found = solved(problem(X, T, precision))
    assert found.status is Status.CONVERGED
    assert exact - 2.5 < found.bound < exact


@pytest.mark.parametrize("K", [2, 3])
def test_a_sharp_prior_leaves_no_gap(K):
    X, T = draw(K, 20, 2 if K == 2 else 1)
    gaps = []
    for precision in (10.0, 100.0, 1000.0):
        exact, *_ = integrated(X, T, precision)
        gaps.append(exact - solved(problem(X, T, precision)).bound)
    assert 0 < gaps[2] < 0.3 * gaps[1] < 0.09 * gaps[0] < 0.09
    assert gaps[2] < (1e-4 if K == 2 else 5e-3)


def test_many_uncertain_rows_leave_a_small_gap():
    X, T = draw(2, 200, 2, scale=0.0)
    exact, mean, covariance = integrated(X, T, 1.0)
    found = solved(problem(X, T, 1.0))
    assert 0 < exact - found.bound < 0.04
    deviation = np.sqrt(np.diagonal(covariance))
    np.testing.assert_allclose(found.posterior.mean, mean, atol=0.03 * deviation.min())
    np.testing.assert_allclose(found.posterior.standard_deviation, deviation, rtol=0.03)


@pytest.mark.parametrize(("K", "ratio"), [(2, 0.85), (3, 0.7)])
def test_moments_are_near_the_exact_ones_and_the_spread_is_no_larger(K, ratio):
    X, T = draw(K, 30, 2 if K == 2 else 1)
    _, mean, covariance = integrated(X, T, 1.0)
    found = solved(problem(X, T, 1.0)).posterior
    deviation = np.sqrt(np.diagonal(covariance))
    assert (abs(found.mean - mean) < 0.25 * deviation).all()
    assert (found.standard_deviation < deviation).all()
    assert (found.standard_deviation > ratio * deviation).all()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("K", "d"), [(2, 1), (2, 3), (3, 2), (4, 2)])
def test_the_fixed_point_is_stationary_and_has_the_bound_of_the_formulas(K, d, weighted):
    X, T = draw(K, 25, d, seed=K + d)
    random = np.random.default_rng(1)
    weight = random.uniform(0.5, 2.0, 25) if weighted else None
    offset = random.normal(size=(25, K)) if weighted else None
    given = offset if K > 2 or offset is None else offset[:, 1] - offset[:, 0]
    precision = np.linspace(0.3, 2.0, d)
    f = problem(X, T, precision, weight=weight, offset=given)
    found = solved(f, tol=1e-16)
    q, p = found.posterior, f.coordinates.size

    def bound(m, S):
        return written_out(X, T, precision, m, S, 0.0, 1.0 if weight is None else weight, offset)

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


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("K", "scale"), [(2, 1.0), (2, 5.0), (3, 1.0), (3, 5.0), (5, 3.0)])
def test_the_bound_never_falls_from_any_start(K, scale, seed):
    X, T = draw(K, 40, 3, scale, seed)
    f = problem(X, T, 0.05)
    random = np.random.default_rng(seed)
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
        assert len(ends[0].trace) < 40


def test_too_few_steps_are_said():
    X, T = draw(2, 40, 3, 5.0)
    f = problem(X, T, 0.05)
    found = solved(f, max_iter=2)
    assert found.status is Status.MAX_ITERATIONS
    assert len(found.trace) == 3


@pytest.mark.parametrize("K", [2, 3])
def test_a_weight_is_a_row_that_often(K):
    X, T = draw(K, 20, 2)
    times = np.random.default_rng(2).integers(0, 4, size=20)
    weighted = solved(problem(X, T, 0.5, weight=times.astype(float)), tol=1e-15)
    repeated = solved(problem(np.repeat(X, times, 0), np.repeat(T, times, 0), 0.5), tol=1e-15)
    assert weighted.bound == pytest.approx(repeated.bound, rel=1e-12)
    for name in ("mean", "precision"):
        ours, theirs = getattr(weighted.posterior, name), getattr(repeated.posterior, name)
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)


def test_a_soft_label_is_both_labels_in_part():
    X, T = draw(2, 20, 2)
    T = np.column_stack([0.3 + 0 * X[:, 0], 0.7 + 0 * X[:, 0]])
    both = problem(
        np.vstack([X, X]), np.repeat(np.eye(2), 20, axis=0), 1.0, weight=T.T.ravel().copy()
    )
    assert solved(problem(X, T, 1.0)).bound == pytest.approx(solved(both).bound, rel=1e-12)


def test_two_classes_of_a_softmax_are_those_of_the_sigmoid():
    X, T = draw(2, 30, 2)
    two = solved(problem(X, T, 0.5))
    f = replace(problem(X, T, 1.0), loss=SoftmaxLoss(), target=whole, coordinates=Coordinates(2, 2))
    many = solved(f)
    assert many.bound == pytest.approx(two.bound, rel=1e-11)
    sign = contrasts(3)[0, 0]  # helmert's first contrast is the first class less the second
    np.testing.assert_allclose(
        many.posterior.mean, -np.sign(sign) * two.posterior.mean / np.sqrt(2), atol=1e-6
    )


def test_losses_that_write_labels_differently_have_one_answer():
    X, T = draw(2, 30, 2)
    T = T.round()
    f = problem(X, T, 1.0)
    signed = replace(f, loss=SignedLogisticLoss(), target=lambda block: 2 * block.y[:, 1] - 1)
    linked = replace(f, loss=BinaryLoss(Logit()))
    bounds = [solved(each).bound for each in (f, signed, linked)]
    np.testing.assert_allclose(bounds, bounds[0], rtol=1e-13)


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("centre", [1.0, 1e6])
def test_centring_and_scaling_are_those_of_the_columns(K, centre):
    Z, T = draw(K, 30, 2)
    ones = np.ones((30, 1))
    by_hand = solved(problem(np.hstack([ones, Z]), T, [0.1, 1.0, 2.0]))
    standard = Standard(np.array([centre, -1.0]), np.array([2.0, 0.01]), True)
    X = standard.centre + standard.scale * Z
    found = solved(problem(X, T, [0.1, 1.0, 2.0], standard=standard))
    assert found.bound == pytest.approx(by_hand.bound, rel=1e-9)
    np.testing.assert_allclose(found.posterior.mean, by_hand.posterior.mean, atol=1e-6)


def test_an_offset_is_a_shift_of_the_intercept_and_of_its_prior():
    X, T = draw(2, 30, 1)
    X = np.hstack([np.ones((30, 1)), X])
    plain = solved(problem(X, T, [0.3, 1.0], mean=[0.7, 0.0]))
    f = problem(X, T, [0.3, 1.0], mean=[-1.3, 0.0], offset=np.full(30, 2.0))
    moved = solved(f)
    assert moved.bound == pytest.approx(plain.bound, rel=1e-12)
    shift = np.array([2.0, 0.0])
    np.testing.assert_allclose(moved.posterior.mean + shift, plain.posterior.mean, atol=1e-7)


def test_a_prior_with_correlations_and_a_mean():
    X, T = draw(2, 30, 2)
    P = np.array([[2.0, 0.9], [0.9, 1.0]])
    L = np.linalg.cholesky(P)
    found = solved(problem(X, T, P, mean=[0.5, -1.0]))
    # With v = Lᵀw the prior is standard normal about Lᵀm₀, and rows are L⁻¹φ.
    white = solved(problem(np.linalg.solve(L, X.T).T, T, 1.0, mean=L.T @ [0.5, -1.0]))
    assert found.bound == pytest.approx(white.bound, rel=1e-12)
    np.testing.assert_allclose(L.T @ found.posterior.mean, white.posterior.mean, atol=1e-7)


@pytest.mark.parametrize("K", [2, 3])
def test_separated_classes_have_a_finite_answer(K):
    X = np.linspace(-1, 1, 30)[:, None]
    T = np.eye(K)[np.repeat(np.arange(K), 30 // K)]
    X = np.hstack([np.ones((30, 1)), X]) if K == 2 else X
    found = solved(problem(X, T, 0.25))
    assert found.status is Status.CONVERGED
    assert found.bound < integrated(X, T, 0.25)[0]
    assert np.isfinite(found.posterior.mean).all()


@pytest.mark.parametrize("K", [2, 3])
def test_more_columns_than_rows(K):
    X, T = draw(K, 6, 20)
    found = solved(problem(X, T, 1.0))
    assert found.status is Status.CONVERGED
    assert (np.diff(found.trace) > 0).all()
    q = found.posterior
    assert found.bound == pytest.approx(written_out(X, T, 1.0, q.mean, q.covariance), rel=1e-11)
    assert found.bound > 6 * np.log(1 / K) - 10


@pytest.mark.parametrize("K", [2, 3])
def test_a_prior_that_leaves_nothing_free_gives_the_likelihood_of_its_mean(K):
    X, T = draw(K, 20, 2)
    found = solved(problem(X, T, 1e12))
    assert found.bound == pytest.approx(20 * np.log(1 / K), abs=1e-9)
    assert abs(found.posterior.mean).max() < 1e-10


@pytest.mark.parametrize("K", [2, 3])
def test_huge_weights_leave_the_spread_of_the_bound_not_that_of_the_start(K):
    X, T = draw(K, 40, 2, 2.0)
    f = problem(X, T, 1.0, weight=np.full(40, 1e8))
    found = solved(f).posterior
    if K == 2:
        a = X @ found.mean
        expected = np.eye(2) + (X.T * (1e8 * np.tanh(a / 2) / (2 * a))) @ X
        np.testing.assert_allclose(found.precision, expected, rtol=1e-6)
    assert np.linalg.eigvalsh(found.precision - laplace(f)[1]).min() > 0


@pytest.mark.parametrize("K", [2, 3])
def test_a_prior_that_says_next_to_nothing(K):
    X, T = draw(K, 100, 2, seed=3)
    found, wide = (solved(problem(X, T, precision)) for precision in (1e-12, 1e-10))
    assert found.status is Status.CONVERGED
    np.testing.assert_allclose(found.posterior.mean, wide.posterior.mean, rtol=1e-6)
    c = K - 1
    assert wide.bound - found.bound == pytest.approx(2 * c * np.log(10.0), abs=1e-6)


@pytest.mark.parametrize("precision", [1e-12, 1e-6, 1.0])
def test_columns_that_are_all_but_equal(precision):
    X, T = draw(2, 300, 2)
    near = X + 1e-9 * np.random.default_rng(0).normal(size=X.shape)
    found = solved(problem(np.hstack([X, near]), T, precision))
    assert (np.diff(found.trace) > 0).all()
    # As w + w' has half the precision, and w - w' that of its prior.
    single = solved(problem(X, T, precision / 2))
    assert found.bound == pytest.approx(single.bound, abs=1e-6 if precision > 1e-9 else 0.1)
    assert found.status is Status.CONVERGED or precision < 1e-9


def test_activations_beyond_all_bounds_keep_their_digits():
    X = np.array([[1e9], [1e9], [-1e9]])
    T = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    f = problem(X, T, 1.0, mean=1.0)
    found = variational(f, np.ones(1), 1e30 * np.eye(1))
    assert np.isfinite(found.trace).all()
    assert found.trace[0] == pytest.approx(0.5 * (1 - np.log(1e30) - 1e-30), rel=1e-12)


@pytest.mark.parametrize("xi", [*np.logspace(-12, 4, 33), 0.1, 1.0, 3.0])
def test_the_curvature_of_the_bound_to_all_digits(xi):
    with mpmath.workdps(50):
        exact = mpmath.tanh(mpmath.mpf(xi) / 2) / (4 * mpmath.mpf(xi))
    assert bound_curvature(np.array([xi]))[0] == pytest.approx(float(exact), rel=4e-16)


def test_the_curvature_of_the_bound_at_its_ends():
    found = bound_curvature(np.array([0.0, 5e-324, 1e-300, 1e308, np.inf]))
    np.testing.assert_array_equal(found[:3], 0.125)
    np.testing.assert_allclose(found[3:], 0.0, atol=1e-300)


@pytest.mark.parametrize("penalty", [flat(2), Penalty(np.zeros(2), np.array([0.0, 1.0]), True)])
def test_an_improper_prior_is_an_error(penalty):
    X, T = draw(2, 20, 2)
    f = replace(problem(X, T, 1.0), penalty=penalty)
    with pytest.raises(ParameterError, match="evidence needs a proper prior"):
        variational(f, np.zeros(2), np.eye(2))


def test_other_links_are_an_error():
    X, T = draw(2, 20, 2)
    f = replace(problem(X, T, 1.0), loss=BinaryLoss(Probit()))
    with pytest.raises(ParameterError, match="logistic sigmoid or the softmax"):
        variational(f, np.zeros(2), np.eye(2))


def test_a_factor_stands_for_more_rows():
    X, T = draw(3, 20, 2)
    twice = solved(replace(problem(X, T, 1.0), factor=2.0))
    rows = solved(problem(X, T, 1.0, weight=np.full(20, 2.0)))
    assert twice.bound == pytest.approx(rows.bound, rel=1e-12)


@pytest.mark.parametrize("K", [2, 3])
def test_the_chosen_precision_has_the_largest_bound(K):
    X, T = draw(K, 60, 3, seed=4)
    X = np.hstack([np.ones((60, 1)), X])
    f = problem(X, T, [0.01, 1.0, 1.0, 1.0])
    found = variational_evidence(f, np.array([-1, 0, 0, 0]), *laplace(f), tol=1e-14)
    alpha = found.penalty.precision
    assert alpha[0] == 0.01
    assert alpha[1] == alpha[2] == alpha[3]
    q = found.posterior
    at, below, above = (
        variational(problem(X, T, [0.01, *(factor * alpha[1:])]), q.mean, q.precision).bound
        for factor in (1.0, 0.97, 1.03)
    )
    assert at == pytest.approx(found.bound, abs=1e-8)
    assert at > max(below, above)
    assert below == pytest.approx(above, abs=0.1 * (at - below) + 1e-9)


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_columns_that_say_nothing_are_given_up(K, seed):
    random = np.random.default_rng(seed)
    X = random.normal(size=(300, 4))
    p = softmax(X[:, :2] @ np.array([[2.0, 0.0, -2.0], [-2.0, 2.0, 0.0]]), axis=1)
    T = np.array([random.multinomial(1, each) for each in p], dtype=float)
    T = T if K == 3 else np.column_stack([T[:, 0], T[:, 1:].sum(axis=1)])
    f = problem(X, T, 1.0)
    found = variational_evidence(f, np.arange(4), *laplace(f))
    assert found.status is Status.CONVERGED
    assert (np.diff(found.trace) > 0).all()
    assert (found.penalty.precision[:2] < 20).all()
    assert (found.penalty.precision[2:] > 3 * found.penalty.precision[:2].max()).all()
    alone = problem(X[:, :2], T, 1.0)
    fewer = variational_evidence(alone, np.arange(2), *laplace(alone))
    assert found.bound > fewer.bound - (1e-6 if K == 2 else 1e-3)  # which has several maxima


def test_the_update_of_precisions_is_over_all_contrasts():
    mean, variance = np.arange(6.0), np.arange(6.0) / 10
    found = precision_update(mean, np.diag(variance), np.array([1, -1, 0]))
    np.testing.assert_allclose(found, [2 / (4 + 0.2 + 25 + 0.5), 2 / (0 + 0 + 9 + 0.3)], rtol=1e-14)


def test_groups_must_fit_the_prior():
    X, T = draw(2, 20, 2)
    f = problem(X, T, np.eye(2))
    with pytest.raises(ParameterError, match="without correlations"):
        variational_evidence(f, np.array([0, 0]), np.zeros(2), np.eye(2))
    with pytest.raises(ParameterError, match="a group for each of 2"):
        variational_evidence(problem(X, T, 1.0), np.array([0]), np.zeros(2), np.eye(2))
