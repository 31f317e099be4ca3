"""The Laplace approximation of any density: right numbers, changes of variables, named errors."""

import math
import pickle
import warnings

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import expit, log_expit

from posteriori.errors import InferenceError, ParameterError, PosterioriError, ShapeError
from posteriori.posterior.gaussian import Gaussian
from posteriori.posterior.laplace import laplace

HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)


def figure(z):
    """exp(-z²/2) σ(20z + 4), as in Figure 4.14."""
    return -(z**2) / 2 + log_expit(20 * z + 4)


DERIVATIVES_OF_IT = (
    lambda z: -z + 20 * expit(-20 * z - 4),
    lambda z: -1 - 400 * expit(20 * z + 4) * expit(-20 * z - 4),
)


@pytest.mark.parametrize("start", [0.0, 30.0, -1e4])
@pytest.mark.parametrize(
    ("gradient", "hessian", "tolerance"),
    [(False, False, 1e-8), (True, False, 1e-9), (False, True, 2e-8), (True, True, 1e-13)],
)
def test_figure_4_14_has_the_numbers_of_mpmath(gradient, hessian, tolerance, start):
    with mp.workdps(50):  # (4.126), (4.128), (4.135)
        z = mp.findroot(lambda z: -z + 20 / (1 + mp.exp(20 * z + 4)), 0.07)
        s = 1 / (1 + mp.exp(-20 * z - 4))
        A = 1 + 400 * s * (1 - s)
        log_z = float(-(z**2) / 2 + mp.log(s) + mp.log(2 * mp.pi / A) / 2)
    chosen = zip((gradient, hessian), DERIVATIVES_OF_IT, strict=True)
    q = laplace(figure, start, *(f if given else None for given, f in chosen))
    assert_allclose(q.mode, [float(z)], rtol=0, atol=tolerance)
    assert_allclose(q.precision, [[float(A)]], rtol=tolerance)
    assert q.log_normaliser == pytest.approx(log_z, abs=tolerance)


def gaussian(p, seed=0):
    random = np.random.default_rng(seed)
    root, mean = random.normal(size=(p, p)), random.normal(size=p)
    return mean, root @ root.T + 0.1 * np.eye(p)


@pytest.mark.parametrize("given", [0, 1, 2])
def test_a_gaussian_is_its_own_approximation(given):
    p = 5
    mean, A = gaussian(p)
    derivatives = (lambda z: -A @ (z - mean), lambda z: -A)[:given]
    q = laplace(lambda z: 7.0 - 0.5 * (z - mean) @ A @ (z - mean), np.zeros(p), *derivatives)
    tolerance = 1e-12 if given == 2 else 1e-8
    assert_allclose(q.mean, mean, atol=1e-12 if given else 1e-9)
    assert_allclose(q.precision, A, rtol=tolerance, atol=tolerance)
    assert_allclose(q.covariance, np.linalg.inv(A), rtol=1e-11 if given == 2 else 1e-7)
    exact = 7.0 + p * HALF_LOG_2PI - 0.5 * np.linalg.slogdet(A)[1]
    assert q.log_normaliser == pytest.approx(exact, abs=tolerance)


@pytest.mark.parametrize(
    ("a", "b", "side", "bounds"),
    [(3.5, 2.0, 1, (0, None)), (0.3, 5e6, -1, [(None, 0)]), (200.0, 1e-7, 1, (0, None))],
)
def test_a_gamma_density_in_the_log_gives_stirlings_formula(a, b, side, bounds):
    q = laplace(lambda z: (a - 1) * np.log(side * z) - b * side * z, float(side), bounds=bounds)
    assert_allclose(q.mode, [side * a / b], rtol=1e-8)
    assert_allclose(q.mean, [side * np.log(a / b)], atol=1e-8)
    assert_allclose(q.precision, [[a]], rtol=1e-6)
    stirling = a * np.log(a / b) - a + 0.5 * np.log(2 * np.pi / a)
    assert q.log_normaliser == pytest.approx(stirling, abs=1e-7)


def test_a_beta_density_by_the_logit():
    a, b, low, width = 5.0, 8.0, -3.0, 10.0
    high = low + width
    q = laplace(
        lambda z: (a - 1) * np.log((z - low) / width) + (b - 1) * np.log((high - z) / width),
        low + width / 2,
        bounds=(low, high),
    )
    assert_allclose(q.mode, [low + width * a / (a + b)], rtol=1e-9)
    assert_allclose(q.precision, [[a * b / (a + b)]], rtol=1e-8)
    top = a * np.log(a / (a + b)) + b * np.log(b / (a + b)) + np.log(width)
    expected = top + HALF_LOG_2PI - 0.5 * np.log(a * b / (a + b))
    assert q.log_normaliser == pytest.approx(expected, abs=1e-8)


FREE, START = (None, None), [0.0, 1.0, 0.0]
BOUNDS = [FREE, (0, None), (-1, 1)]
CENTRE, B = np.array([3.0, 0.5, 0.3]), np.array([[2.0, 0.5, 0.3], [0.5, 1.0, 0.2], [0.3, 0.2, 4.0]])


def mixed(z):
    """A truncated Gaussian, times a power of its second variable."""
    return 2 * np.log(z[1]) - 0.5 * (z - CENTRE) @ B @ (z - CENTRE)


@pytest.mark.parametrize("given", [1, 2])
def test_given_derivatives_pass_through_the_change_of_variables(given):
    derivatives = (
        lambda z: np.array([0.0, 2 / z[1], 0.0]) - B @ (z - CENTRE),
        lambda z: np.diag([0.0, -2 / z[1] ** 2, 0.0]) - B,
    )
    plain = laplace(mixed, START, bounds=BOUNDS)
    q = laplace(mixed, START, *derivatives[:given], bounds=BOUNDS)
    assert_allclose(q.mean, plain.mean, atol=1e-9)
    assert_allclose(q.precision, plain.precision, rtol=1e-6, atol=1e-6)
    assert q.log_normaliser == pytest.approx(plain.log_normaliser, abs=1e-7)


FAR_STARTS = {  # log density, start, mode, covariance
    "convex tail": (lambda z: -2 * np.log1p((z - 5) ** 2 / 3), 1e5, 5.0, 0.75),
    "logs of negative numbers": (lambda z: 2 * np.log(z) - z, 30.0, 2.0, 2.0),
    "overflow of Python's numbers": (lambda z: z - math.exp(z), -20.0, 0.0, 1.0),
}


@pytest.mark.parametrize("case", FAR_STARTS)
def test_far_starts_lead_to_the_mode_without_warnings(case):
    log_density, start, mode, covariance = FAR_STARTS[case]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        q = laplace(log_density, start)
    assert_allclose(q.mode, mode, atol=1e-8)
    assert_allclose(q.covariance, covariance, rtol=1e-7)


def test_draws_densities_and_intervals_are_those_of_a_mirrored_lognormal_and_a_normal():
    q = laplace(lambda z: 4 * np.log(-z[0]) + z[0] - z[1] ** 2, [-1, 1], bounds=[(None, 0), FREE])
    tau, normal = stats.lognorm(np.sqrt(0.2), scale=5.0), stats.norm(0, np.sqrt(0.5))
    points = np.array([[-2.0, 0.3], [-9.0, -1.0], [1.0, 0.0]])
    expected = tau.logpdf(-points[:, 0]) + normal.logpdf(points[:, 1])
    assert_allclose(q.log_density(points), expected, rtol=1e-7)
    assert q.log_density(points[0]) == pytest.approx(expected[0])
    low, high = tau.interval(0.9)
    assert_allclose(q.interval(0.9), [(-high, -low), normal.interval(0.9)], rtol=1e-7)
    draws = q.sample(20_000, random_state=0)
    assert stats.kstest(-draws[:, 0], tau.cdf).pvalue > 0.01
    assert stats.kstest(draws[:, 1], normal.cdf).pvalue > 0.01
    assert_array_equal(pickle.loads(pickle.dumps(q)).sample(20_000, 0), draws)
    with pytest.raises(ShapeError, match=r"shape \(3,\) for 2 variables"):
        q.log_density([1.0, 2.0, 3.0])
    with pytest.raises(ParameterError, match="level=1"):
        q.interval(1)


def on_half_line(log_density):
    return lambda z: log_density(z) if z >= 0 else -np.inf


A = np.outer([1.0, 2.0, -3.0], [1.0, 2.0, -3.0]) + np.diag([0.0, 0.0, 5.0])  # of rank two
INCREASES, NOT_POSITIVE = "still increases, ends or has a kink", "not positive definite along"
NO_PARABOLA = "not the parabola of its derivatives along variable 0"
AT_THE_EDGE = f"support of the density ends|{NO_PARABOLA}"
NO_MODE = {  # message, start, log density, derivatives
    "valley": (NOT_POSITIVE, 0.0, lambda z: np.logaddexp(-((z + 3) ** 2), -((z - 3) ** 2))),
    "flat": (f"{NOT_POSITIVE} variable 0", [0.0, 1.0], lambda z: -(z[1] ** 2)),
    "rank": (".", np.ones(3), lambda z: 1e6 - z @ A @ z / 2, lambda z: -A @ z, lambda z: -A),
    "improper": (INCREASES, [0.0, 1.0], lambda z: z[0] - z[1] ** 2),
    "bounded": (INCREASES, 0.0, log_expit, lambda z: expit(-z), lambda z: -expit(z) * expit(-z)),
    "quartic": (NO_PARABOLA, 1.0, lambda z: -(z**4), lambda z: -4 * z**3, lambda z: -12 * z**2),
    "half": (AT_THE_EDGE, 1.0, on_half_line(lambda z: -(z**2)), lambda z: -2 * z, lambda z: -2.0),
    "kink": (NO_PARABOLA, 1.0, lambda z: -abs(z)),
}


@pytest.mark.parametrize("case", NO_MODE)
def test_where_there_is_no_mode_an_error_says_so(case):
    message, start, log_density, *derivatives = NO_MODE[case]
    for given in [derivatives, []] if derivatives else [[]]:
        with pytest.raises(InferenceError, match=message) as caught:
            laplace(log_density, start, *given)
        assert "From the start z = [" in str(caught.value)
        assert "add a prior" in caught.value.remedy


def square(z):
    return -0.5 * z @ z


NOT_FINITE, TWO = "not finite at the start", [1.0, 2.0]
WRONG = {  # message, arguments
    "nan": (NOT_FINITE, lambda z: np.nan, 1.0),
    "part": (r"gradient gave .* of shape \(2,\)", square, TWO, lambda z: -z[:1]),
    "gradient": (NOT_FINITE, square, TWO, lambda z: z * np.nan),
    "number": (r"shape \(2, 2\)", square, TWO, None, lambda z: -1.0),
    "starts": (r"shape \(2, 1\)", square, [[1.0], [2.0]]),
    "start out of bounds": ("inside the bounds", square, TWO, None, None, (1, None)),
    "order": ("low < high", square, TWO, None, None, (3, 0)),
}


@pytest.mark.parametrize("case", WRONG)
def test_arguments_that_cannot_be_used_are_named(case):
    message, *arguments = WRONG[case]
    with pytest.raises(PosterioriError, match=message) as caught:
        laplace(*arguments)
    assert isinstance(caught.value, ValueError)


DERIVATIVES = {  # start, gradient, Hessian
    "sign": (TWO, lambda z: z, None),
    "Hessian": ([0.0, 0.0], None, lambda z: -2 * np.eye(2)),
    "asymmetric": (TWO, None, lambda z: [[-1, 0.1], [0, -1]]),
}


@pytest.mark.parametrize("given", DERIVATIVES.values(), ids=DERIVATIVES)
def test_wrong_derivatives_are_found(given):
    with pytest.raises(InferenceError, match="check the derivatives"):
        laplace(square, *given)


def test_a_gaussian_gives_moments_density_and_draws():
    mean, A = gaussian(4, seed=5)
    q, covariance = Gaussian.of(mean, A), np.linalg.inv(A)
    assert_allclose(q.precision, A, rtol=1e-12)
    assert_allclose(q.covariance, covariance, rtol=1e-9)
    x = np.random.default_rng(0).normal(size=(3, 4))
    expected = stats.multivariate_normal(mean, covariance).logpdf(x)
    assert_allclose(q.log_density(x), expected, rtol=1e-12)
    with pytest.raises(InferenceError, match="not positive definite"):
        Gaussian.of(np.zeros(2), np.ones((2, 2)))
    white = (q.sample(100_000, np.random.RandomState(0)) - mean) @ q.precision_cholesky
    assert_allclose(white.mean(axis=0), 0.0, atol=0.02)
    assert_allclose(np.cov(white.T), np.eye(4), atol=0.02)
