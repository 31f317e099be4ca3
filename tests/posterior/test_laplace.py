"""The Laplace approximation of any density: right numbers, changes of variables, named errors."""

import math
import pickle
import warnings

import mpmath as mp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betaln, expit, gammaln, log_expit

from posteriori.errors import InferenceError, ParameterError, PosterioriError, ShapeError
from posteriori.posterior.laplace import laplace
from posteriori.posterior.normal_posterior import Gaussian

HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)


def figure(z):
    """exp(-z²/2) σ(20z + 4), as in Figure 4.14."""
    return -(z**2) / 2 + log_expit(20 * z + 4)


def figure_gradient(z):
    return -z + 20 * expit(-20 * z - 4)


def figure_hessian(z):
    return -1 - 400 * expit(20 * z + 4) * expit(-20 * z - 4)


def figure_by_mpmath():
    """Mode, precision and ln Z of (4.126), (4.128) and (4.135) with 50 digits."""
    with mp.workdps(50):
        z = mp.findroot(lambda z: -z + 20 / (1 + mp.exp(20 * z + 4)), 0.07)
        s = 1 / (1 + mp.exp(-20 * z - 4))
        A = 1 + 400 * s * (1 - s)
        log_z = -(z**2) / 2 + mp.log(s) + mp.log(2 * mp.pi / A) / 2
        return float(z), float(A), float(log_z)


GIVEN = {
    "nothing": ((), 1e-8),
    "gradient": ((figure_gradient,), 1e-9),
    "hessian": ((None, figure_hessian), 2e-8),
    "both": ((figure_gradient, figure_hessian), 1e-13),
}


@pytest.mark.parametrize("start", [0.0, 1.0, -3.0, 30.0, -1e4])
@pytest.mark.parametrize("given", GIVEN)
def test_figure_4_14_has_the_numbers_of_mpmath(given, start):
    derivatives, tolerance = GIVEN[given]
    q = laplace(figure, start, *derivatives)
    mode, A, log_z = figure_by_mpmath()
    np.testing.assert_allclose(q.mode, [mode], rtol=0, atol=tolerance)
    np.testing.assert_allclose(q.precision, [[A]], rtol=tolerance)
    assert q.log_normaliser == pytest.approx(log_z, abs=tolerance)


def test_figure_4_14_by_quadrature_has_the_constant_that_the_docs_tell():
    exact = np.log(quad(lambda z: np.exp(figure(z)), -10, 10, points=[-0.2], epsabs=1e-13)[0])
    assert round(exact, 4) == 0.3724
    assert round(laplace(figure, 0.0).log_normaliser, 4) == 0.4453


def gaussian(p, seed=0):
    random = np.random.default_rng(seed)
    root, mean = random.normal(size=(p, p)), random.normal(size=p)
    return mean, root @ root.T + 0.1 * np.eye(p)


@pytest.mark.parametrize("p", [1, 2, 5])
@pytest.mark.parametrize("given", [0, 1, 2])
def test_a_gaussian_is_its_own_approximation(p, given):
    mean, A = gaussian(p)
    derivatives = (lambda z: -A @ (z - mean), lambda z: -A)[:given]
    q = laplace(lambda z: 7.0 - 0.5 * (z - mean) @ A @ (z - mean), np.zeros(p), *derivatives)
    tolerance = 1e-12 if given == 2 else 1e-8
    np.testing.assert_allclose(q.mean, mean, atol=1e-12 if given else 1e-9)
    np.testing.assert_allclose(q.precision, A, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(q.covariance, np.linalg.inv(A), rtol=1e-11 if given == 2 else 1e-7)
    exact = 7.0 + p * HALF_LOG_2PI - 0.5 * np.linalg.slogdet(A)[1]
    assert q.log_normaliser == pytest.approx(exact, abs=tolerance)


@pytest.mark.parametrize("rho", [0.999, 1 - 1e-6, 1 - 1e-9])
def test_strong_correlations_lose_few_digits_by_differences(rho):
    A = np.array([[1.0, -rho], [-rho, 1.0]]) / (1 - rho**2)
    q = laplace(lambda z: -0.5 * (z - 1) @ A @ (z - 1), [0.0, 0.0])
    np.testing.assert_allclose(q.mean, 1.0, rtol=1e-8)
    exact = 2 * HALF_LOG_2PI + 0.5 * np.log1p(-(rho**2))
    assert q.log_normaliser == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize("unit", [1e-100, 1e-8, 1e8, 1e100])
@pytest.mark.parametrize("given", [True, False])
def test_units_change_nothing_but_the_units(unit, given):
    derivatives = (
        (lambda z: figure_gradient(z / unit) / unit, lambda z: figure_hessian(z / unit) / unit**2)
        if given
        else ()
    )
    q, plain = laplace(lambda z: figure(z / unit), unit, *derivatives), laplace(figure, 1.0)
    np.testing.assert_allclose(q.mode / unit, plain.mode, rtol=3e-8)
    expected = plain.log_normaliser + np.log(unit)
    assert q.log_normaliser == pytest.approx(expected, abs=1e-7)


def skewed(z):
    """A density that is no Gaussian, with correlated variables."""
    return -np.exp(z[0]) + 3 * z[0] - 0.5 * (z[1] - z[0]) ** 2 + log_expit(z[2] - z[1]) - z[2] ** 2


def test_linear_maps_of_the_variables_map_the_approximation():
    random = np.random.default_rng(1)
    M, shift = random.normal(size=(3, 3)) + 2 * np.eye(3), random.normal(size=3)
    plain = laplace(skewed, np.zeros(3))
    mapped = laplace(lambda z: skewed(M @ z + shift), np.zeros(3))  # x = Mz + shift
    np.testing.assert_allclose(M @ mapped.mean + shift, plain.mean, atol=1e-8)
    np.testing.assert_allclose(M @ mapped.covariance @ M.T, plain.covariance, atol=1e-6)
    volume = np.linalg.slogdet(M)[1]
    assert mapped.log_normaliser == pytest.approx(plain.log_normaliser - volume, abs=1e-6)


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (3.5, 2.0), (0.3, 5e6), (200.0, 1e-7)])
def test_a_gamma_density_in_the_log_gives_stirlings_formula(a, b):
    q = laplace(lambda tau: (a - 1) * np.log(tau) - b * tau, 1.0, bounds=(0, None))
    np.testing.assert_allclose(q.mode, [a / b], rtol=1e-8)
    np.testing.assert_allclose(q.mean, [np.log(a / b)], atol=1e-8)
    np.testing.assert_allclose(q.precision, [[a]], rtol=1e-6)
    stirling = a * np.log(a / b) - a + 0.5 * np.log(2 * np.pi / a)
    assert q.log_normaliser == pytest.approx(stirling, abs=1e-7)
    if a >= 1:
        assert abs(q.log_normaliser - gammaln(a) + a * np.log(b)) < 1 / (11 * a)


def test_a_variable_below_a_bound_mirrors_one_above():
    above = laplace(lambda z: 2 * np.log(z - 1) - z, 2.0, bounds=(1, None))
    below = laplace(lambda z: 2 * np.log(-1 - z) + z, -2.0, bounds=(None, -1))
    np.testing.assert_allclose(below.mode, -above.mode, rtol=1e-9)
    np.testing.assert_allclose(below.precision, above.precision, rtol=1e-8)
    assert below.log_normaliser == pytest.approx(above.log_normaliser, abs=1e-9)
    one, other = above.marginal(0), below.marginal(0)
    np.testing.assert_allclose([other.mean, other.sd], [-one.mean, one.sd], rtol=1e-8)
    np.testing.assert_allclose(other.ppf([0.1, 0.7]), -one.ppf([0.9, 0.3]), rtol=1e-8)


@pytest.mark.parametrize(("low", "width"), [(0.0, 1.0), (-3.0, 10.0)])
def test_a_beta_density_by_the_logit(low, width):
    a, b = 5.0, 8.0

    def log_density(z):
        share = (z - low) / width
        return (a - 1) * np.log(share) + (b - 1) * np.log1p(-share)

    q = laplace(log_density, low + width / 2, bounds=(low, low + width))
    np.testing.assert_allclose(q.mode, [low + width * a / (a + b)], rtol=1e-9)
    np.testing.assert_allclose(q.precision, [[a * b / (a + b)]], rtol=1e-8)
    top = a * np.log(a / (a + b)) + b * np.log(b / (a + b)) + np.log(width)
    expected = top + HALF_LOG_2PI - 0.5 * np.log(a * b / (a + b))
    assert q.log_normaliser == pytest.approx(expected, abs=1e-8)
    assert q.log_normaliser == pytest.approx(betaln(a, b) + np.log(width), abs=0.03)


X = np.random.default_rng(3).normal(3.0, 2.0, 50)


def of_normal(z):
    """Mean and precision of normal data; and a third variable between -1 and 1, tied to them."""
    rest = X - z[0]
    return 25 * np.log(z[1]) - 0.5 * z[1] * rest @ rest - (z[2] - 0.1 * z[0]) ** 2


def of_normal_gradient(z):
    rest, tie = X - z[0], z[2] - 0.1 * z[0]
    return np.array(
        [z[1] * rest.sum() + 0.2 * tie, 25 / z[1] - 0.5 * rest @ rest, -2 * tie],
    )


def of_normal_hessian(z):
    total = (X - z[0]).sum()
    return np.array(
        [[-50 * z[1] - 0.02, total, 0.2], [total, -25 / z[1] ** 2, 0.0], [0.2, 0.0, -2.0]]
    )


def test_given_derivatives_pass_through_the_change_of_variables():
    bounds, start = [None, (0, None), (-1, 1)], [0.0, 1.0, 0.0]
    plain = laplace(of_normal, start, bounds=bounds)
    for derivatives in ((of_normal_gradient,), (of_normal_gradient, of_normal_hessian)):
        q = laplace(of_normal, start, *derivatives, bounds=bounds)
        np.testing.assert_allclose(q.mean, plain.mean, atol=1e-9)
        np.testing.assert_allclose(q.precision, plain.precision, rtol=1e-6, atol=1e-6)
        assert q.log_normaliser == pytest.approx(plain.log_normaliser, abs=1e-7)


def mixture(z):
    parts = [np.log(0.3) - (z[0] + 3) ** 2 / 2, np.log(0.7) - np.log(0.5) - 2 * (z[0] - 3) ** 2]
    return np.logaddexp(*parts) - HALF_LOG_2PI


def test_several_starts_lead_to_modes_sorted_by_their_mass():
    q = laplace(mixture, [[-5.0], [5.0], [-1.0], [1.0], [-2.9]])
    np.testing.assert_allclose([each.mode[0] for each in q.modes], [3.0, -3.0], atol=1e-6)
    np.testing.assert_allclose(
        [each.log_normaliser for each in q.modes], np.log([0.7, 0.3]), atol=1e-6
    )
    assert q.modes[0] is q
    assert q.others == q.modes[1:]
    assert laplace(mixture, [-5.0]).mode[0] == pytest.approx(-3.0, abs=1e-6)


def test_a_start_that_leads_to_no_mode_is_an_error_though_others_do():
    with pytest.raises(InferenceError, match="From the start z = 0 the climb led to z = "):
        laplace(lambda z: np.logaddexp(-((z[0] + 3) ** 2), -((z[0] - 3) ** 2)), [[1.0], [0.0]])


def test_a_needle_is_not_taken_for_the_mode_with_most_mass():
    def log_density(z):
        return float(np.logaddexp(3 - 0.5 * (1e3 * (z[0] - 5)) ** 2, -0.5 * z[0] ** 2))

    q = laplace(log_density, [[5.0001], [0.5]])
    np.testing.assert_allclose([each.mode[0] for each in q.modes], [0.0, 5.0], atol=1e-6)


def test_starts_in_tails_that_curve_upwards_lead_to_the_mode():
    q = laplace(lambda z: -2 * np.log1p((z - 5) ** 2 / 3), 1e5)
    np.testing.assert_allclose(q.mode, [5.0], atol=1e-8)
    np.testing.assert_allclose(q.precision, [[4 / 3]], rtol=1e-8)


def test_a_banana_is_climbed_to_its_end():
    def log_density(z):
        return -((1 - z[0]) ** 2) / 2 - 100 * (z[1] - z[0] ** 2) ** 2

    q = laplace(log_density, [[-1.2, 1.0], [10.0, -10.0]])
    assert len(q.modes) == 1
    np.testing.assert_allclose(q.mean, [1.0, 1.0], atol=1e-8)
    np.testing.assert_allclose(q.covariance, [[1.0, 2.0], [2.0, 4.005]], rtol=1e-7)


def test_the_line_search_backs_off_from_the_end_of_the_support():
    def log_density(z):
        return 2 * np.log(z) - z if z > 0 else -np.inf

    np.testing.assert_allclose(laplace(log_density, 0.01).mode, [2.0], atol=1e-8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nor are logs of negative numbers a matter
        np.testing.assert_allclose(laplace(lambda z: 2 * np.log(z) - z, 30.0).mode, [2.0])


BOUNDS = [None, (0, None), (-1, 1)]


def test_draws_have_the_moments_and_quantiles_of_the_marginals():
    q = laplace(of_normal, [0.0, 1.0, 0.0], bounds=BOUNDS)
    draws = q.sample(200_000, random_state=0)
    inward = np.stack([draws[:, 0], np.log(draws[:, 1]), 2 * np.arctanh(draws[:, 2])], axis=1)
    np.testing.assert_allclose(inward.mean(axis=0), q.mean, atol=0.01)
    np.testing.assert_allclose(np.cov(inward.T), q.covariance, atol=0.02)
    for i in range(3):
        marginal = q.marginal(i)
        assert marginal.mean == pytest.approx(draws[:, i].mean(), abs=0.005)
        assert marginal.sd == pytest.approx(draws[:, i].std(), rel=0.01)
        level = np.array([0.025, 0.25, 0.5, 0.75, 0.975])
        np.testing.assert_allclose(marginal.cdf(np.quantile(draws[:, i], level)), level, atol=3e-3)
        np.testing.assert_allclose(marginal.cdf(marginal.ppf(level)), level, rtol=1e-12)
        assert marginal.ppf(0.5) == pytest.approx(q.mode[i], rel=1e-12)
    np.testing.assert_array_equal(draws[:5], q.sample(200_000, np.random.default_rng(0))[:5])


@pytest.mark.parametrize("i", range(3))
def test_moments_of_marginals_are_those_of_their_densities(i):
    marginal = laplace(of_normal, [0.0, 1.0, 0.0], bounds=BOUNDS).marginal(i)
    low, high = marginal.ppf([1e-15, 1 - 1e-15])
    moments = [
        quad(lambda z, k=k: z**k * marginal.pdf(z), low, high, epsabs=1e-13, limit=200)[0]
        for k in range(3)
    ]
    assert moments[0] == pytest.approx(1.0, abs=1e-10)
    assert marginal.mean == pytest.approx(moments[1], rel=1e-9)
    assert marginal.sd == pytest.approx(np.sqrt(moments[2] - moments[1] ** 2), rel=1e-7)


def test_marginals_end_at_the_bounds():
    marginal = laplace(lambda z: np.log(z), 0.5, bounds=(0, 1)).marginal(-1)
    np.testing.assert_array_equal(marginal.pdf([-1.0, 0.0, 1.0, 2.0]), 0.0)
    np.testing.assert_array_equal(marginal.cdf([-1.0, 0.0, 1.0, 2.0]), [0.0, 0.0, 1.0, 1.0])
    np.testing.assert_array_equal(marginal.ppf([0.0, 1.0]), [0.0, 1.0])
    assert np.isnan(marginal.pdf(np.nan))
    with pytest.raises(ParameterError, match="not all probabilities"):
        marginal.ppf([0.5, 1.1])


def test_the_log_density_of_the_approximation_is_that_of_the_users_variables():
    q = laplace(lambda z: 4 * np.log(z[0]) - z[0] - z[1] ** 2, [1, 1], bounds=[(0, None), None])
    tau, normal = q.marginal(0), q.marginal(1)
    points = np.array([[2.0, 0.3], [9.0, -1.0], [-1.0, 0.0]])
    with np.errstate(divide="ignore"):
        expected = np.log(tau.pdf(points[:, 0])) + np.log(normal.pdf(points[:, 1]))
    np.testing.assert_allclose(q.log_density(points), expected, rtol=1e-9)
    assert q.log_density(points[0]) == pytest.approx(expected[0])
    with pytest.raises(ShapeError, match=r"shape \(3,\) for 2 variables"):
        q.log_density([1.0, 2.0, 3.0])


def test_it_survives_pickling():
    q = laplace(np.vectorize(lambda z: 2 * np.log(z) - z), 1.0, bounds=(0, None))
    again = pickle.loads(pickle.dumps(q))
    np.testing.assert_array_equal(again.sample(3, 0), q.sample(3, 0))
    assert again.log_normaliser == q.log_normaliser


def on_half_line(log_density):
    return lambda z: log_density(z) if z >= 0 else -np.inf


NO_MODE = {
    "saddle": (lambda z: z[0] ** 2 - z[1] ** 2, [0.0, 1.0], "as on a saddle, along variable 0"),
    "valley": (lambda z: np.logaddexp(-((z + 3) ** 2), -((z - 3) ** 2)), 0.0, "curves upwards"),
    "flat": (lambda z: -(z[1] ** 2), [0.0, 1.0], "is flat along variable 0"),
    "ridge": (lambda z: -((z[0] + z[1]) ** 2), [0.0, 1.0], "combination of the variables 0, 1"),
    "constant": (lambda z: 0.0, 1.0, "is flat along variable 0"),
    "improper": (lambda z: z[0] - z[1] ** 2, [0.0, 1.0], "along variable 0, with the log density"),
    "rising": (lambda z: z**2, 0.3, "still rising"),
    "levelling off": (log_expit, 0.0, "still rising"),
    "quartic": (lambda z: -(z**4), 1.0, "is flat|like a parabola"),
    "edge": (on_half_line(lambda z: -z), 1.0, "variable 0: its support ends there"),
    "mode at the edge": (on_half_line(lambda z: -(z**2)), 1.0, "its support ends there"),
    "kink": (lambda z: -abs(z), 1.0, "does not fall like a parabola along variable 0"),
}


def test_where_a_number_of_pythons_overflows_the_climb_goes_another_way():
    """The first step from there is e²⁰ long, and math.exp of that is an OverflowError."""
    overflowed = []

    def log_density(z):
        try:
            return z - math.exp(z)
        except OverflowError:
            overflowed.append(z)
            raise

    found = laplace(log_density, -20.0)
    assert overflowed
    assert found.gaussian.mean[0] == pytest.approx(0, abs=1e-9)
    assert found.gaussian.covariance[0, 0] == pytest.approx(1, rel=1e-7)


@pytest.mark.parametrize("case", NO_MODE)
def test_where_there_is_no_mode_an_error_says_so(case):
    log_density, start, message = NO_MODE[case]
    with pytest.raises(InferenceError, match=message) as caught:
        laplace(log_density, start)
    assert "From the start z = " in str(caught.value)
    assert len(caught.value.remedy) > 20


WITH_DERIVATIVES = {
    "levelling off": (log_expit, lambda z: expit(-z), lambda z: -expit(z) * expit(-z)),
    "quartic": (lambda z: -(z**4), lambda z: -4 * z**3, lambda z: -12 * z**2),
    "edge": (on_half_line(lambda z: -z), lambda z: -1.0, lambda z: 0.0),
    "rising": (lambda z: z, lambda z: 1.0, lambda z: 0.0),
    "constant": (lambda z: 0.0, lambda z: 0.0, lambda z: 0.0),
}


@pytest.mark.parametrize("case", WITH_DERIVATIVES)
@pytest.mark.parametrize("max_iter", [20, 100, 400])
def test_given_derivatives_do_not_hide_that_there_is_no_mode(case, max_iter):
    with pytest.raises(InferenceError):
        laplace(WITH_DERIVATIVES[case][0], 1.0, *WITH_DERIVATIVES[case][1:], max_iter=max_iter)


def square(z):
    return -0.5 * z @ z


WRONG = {
    "nan": ((lambda z: np.nan, 1.0), {}, "not a finite number"),
    "outside": ((lambda z: -np.inf, 1.0), {}, "Start where the density is positive"),
    "pole": ((lambda z: -np.log(z**2), 1.0), {}, "infinite at z = 0"),
    "infinite": ((lambda z: np.inf, 1.0), {}, "infinite at z = 1"),
    "many": ((lambda z: z, [1.0, 2.0]), {}, r"array of shape \(2,\)"),
    "none": ((lambda z: None, 1.0), {}, "gave None"),
    "complex": ((lambda z: 1j, 1.0), {}, "not a number"),
    "sign": ((square, [1.0, 2.0], lambda z: z), {}, "The gradient does not belong"),
    "factor": ((square, [1.0, 2.0], lambda z: -2 * z), {}, "The gradient does not belong"),
    "part": ((square, [1.0, 2.0], lambda z: -z[:1]), {}, r"\(1,\) for 2 variables"),
    "not finite": ((square, [1.0, 2.0], lambda z: z * np.nan), {}, "not finite"),
    "number": ((square, [1.0, 2.0], None, lambda z: -1.0), {}, r"shape \(2, 2\)"),
    "curvature": ((square, [0.0, 0.0], None, lambda z: -2 * np.eye(2)), {}, "The Hessian does not"),
    "lopsided": (
        (square, [1.0, 2.0], None, lambda z: -np.array([[1, 0.1], [0, 1]])),
        {},
        "not symmetric",
    ),
    "start": ((square, "here"), {}, "not a point"),
    "start nan": ((square, [np.nan, 1.0]), {}, "nan for variable 0"),
    "no start": ((square, []), {}, r"shape \(0,\)"),
    "start out of bounds": ((square, [1.0, 2.0]), {"bounds": (1, None)}, "1.0 for variable 0"),
    "bounds": ((square, [1.0, 2.0]), {"bounds": [(0, 1)]}, "not those of 2 variables"),
    "no bounds": ((square, [1.0, 2.0]), {"bounds": 3}, "not those of 2 variables"),
    "no pair": ((square, [1.0, 2.0]), {"bounds": [(0, 1), 3]}, r"bounds\[1\]=3 is not a pair"),
    "no room": ((square, [1.0, 2.0]), {"bounds": (3, 0)}, "leaves no room"),
    "tol": ((square, [1.0, 2.0]), {"tol": 0}, "tol=0"),
    "max_iter": ((square, [1.0, 2.0]), {"max_iter": 0}, "max_iter=0"),
    "no function": ((3.0, [1.0, 2.0]), {}, "not a function"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_is_named(case):
    arguments, settings, message = WRONG[case]
    with pytest.raises(PosterioriError, match=message) as caught:
        laplace(*arguments, **settings)
    assert isinstance(caught.value, ValueError)


def test_a_gradient_that_is_wrong_only_away_from_the_start_is_found_out():
    def gradient(z):
        return -z + 0.1 * (z < 0.9)

    with pytest.raises(ParameterError, match="The gradient does not belong"):
        laplace(square, [1.0], gradient)


def test_no_such_variable_is_named():
    q = laplace(square, [1.0, 2.0])
    for i in (2, -3, 0.5, "a"):
        with pytest.raises(ParameterError, match="no variable"):
            q.marginal(i)


def test_a_gaussian_gives_moments_density_marginals_and_draws():
    mean, A = gaussian(4, seed=5)
    q = Gaussian.of(mean, A)
    covariance = np.linalg.inv(A)
    np.testing.assert_allclose(q.precision, A, rtol=1e-12)
    np.testing.assert_allclose(q.covariance, covariance, rtol=1e-9)
    np.testing.assert_allclose(q.standard_deviation, np.sqrt(np.diag(covariance)), rtol=1e-9)
    part = q.marginal([3, 1])
    np.testing.assert_allclose(part.mean, mean[[3, 1]])
    np.testing.assert_allclose(part.covariance, covariance[np.ix_([3, 1], [3, 1])], rtol=1e-9)
    x = np.random.default_rng(0).normal(size=(3, 4))
    log = 0.5 * np.linalg.slogdet(A)[1] - 4 * HALF_LOG_2PI
    expected = log - 0.5 * np.einsum("ni,ij,nj->n", x - mean, A, x - mean)
    np.testing.assert_allclose(q.log_density(x), expected, rtol=1e-12)
    draws = q.sample(100_000, random_state=np.random.RandomState(0))
    white = (draws - mean) @ q.precision_cholesky
    np.testing.assert_allclose(white.mean(axis=0), 0.0, atol=0.02)
    np.testing.assert_allclose(np.cov(white.T), np.eye(4), atol=0.02)


def test_a_gaussian_without_a_precision_is_an_error():
    with pytest.raises(InferenceError, match="not positive definite"):
        Gaussian.of(np.zeros(2), np.ones((2, 2)))
    with pytest.raises(ParameterError, match="not a seed"):
        Gaussian.of(np.zeros(1), np.eye(1)).sample(1, "x")
    with pytest.raises(ParameterError, match="number of draws"):
        Gaussian.of(np.zeros(1), np.eye(1)).sample(0)
