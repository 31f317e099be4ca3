"""Predictive probabilities: integrals over uncertain activations, two classes and more."""

from functools import partial
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, log_expit, log_softmax, ndtr, ndtri, softmax

from posteriori import LogisticRegression
from posteriori.errors import ParameterError, ScaleError
from posteriori.likelihood.link import LocatedLink
from posteriori.likelihood.sigmoids import (
    Cauchit,
    Cloglog,
    Laplace,
    Logit,
    Loglog,
    Probit,
    Student,
)
from posteriori.posterior.activation_gaussian import ActivationGaussian, FromDraws, FromGaussian
from posteriori.posterior.intervals import root_of
from posteriori.posterior.predictive import (
    _trapezoidal,
    kappa_logs,
    kappa_probability,
    link_logs,
    link_probability,
    probability_interval,
    quadrature_logs,
    quadrature_probability,
)
from posteriori.posterior.predictive_classes import (
    average_link,
    average_link_logs,
    average_logs,
    average_probabilities,
    class_intervals,
    drawn_ends,
    drawn_link_ends,
    extended_probit,
    extended_probit_logs,
    monte_carlo_logs,
    monte_carlo_probability,
)
from posteriori.rows.in_memory import read_new_rows

LINKS = [Logit(), Probit(), Cloglog(), Loglog(), Cauchit(), Laplace(), Student(3.0)]
MEANS = np.array([0.0, 1e-3, 1.0, 5.0, 30.0, 1e3, 1e4])
DEVIATIONS = np.array([1e-6, 1e-2, 0.3, 1.0, 3.0, 10.0, 100.0, 1e3, 1e4])


def grid(means, deviations):
    mean, deviation = np.meshgrid(means, deviations)
    return mean.ravel(), deviation.ravel()


def exact(m, s):
    """p at -m at 50 digits: by the trapezoidal rule, or as a step and what is left of σ."""
    with mpmath.workdps(50):
        m, s = mpmath.mpf(m), mpmath.mpf(s)
        if s > 100:
            normal = mpmath.npdf
            rest = mpmath.quad(
                lambda a: (normal(a, m, s) - normal(a, -m, s)) / (1 + mpmath.exp(a)),
                [0, 2, 6, 15, 40, 100, 200],
            )
            return mpmath.ncdf(-m / s) + rest
        step, peak = min(mpmath.mpf(1) / 5, mpmath.mpf("0.5") / s), min(s, m / s)
        n = int(10 / step)
        points = [peak + i * step for i in range(-n, n + 1)]
        terms = [mpmath.exp(-z * z / 2) / (1 + mpmath.exp(m - s * z)) for z in points]
        return mpmath.fsum(terms) * step / mpmath.sqrt(2 * mpmath.pi)


def by_quad(link, mean, deviation):
    def integrand(a):
        density = np.exp(-(((a - mean) / deviation) ** 2) / 2) / deviation / np.sqrt(2 * np.pi)
        return float(link.mean(np.array([a]))[0]) * density

    ends = {mean + k * deviation for k in (-9, -3, 0, 3, 9)}
    ends |= {a for a in (-40, -10, -3, -1, 0, 1, 3, 10, 40) if abs(a - mean) < 9 * deviation}
    ends = sorted(ends)
    pieces = pairwise(ends)
    return sum(quad(integrand, *piece, epsabs=1e-14, epsrel=1e-12)[0] for piece in pieces)


def by_product(mean, covariance, step=0.02, reach=6.5):
    """K = 3 by the trapezoidal rule over two contrasts."""
    z = np.arange(-reach, reach + step, step)
    weight = np.exp(-z * z / 2)
    T = np.array([[1.0, -1.0, 0.0], [1.0, 0.0, -1.0]])
    root = np.linalg.cholesky(T @ covariance @ T.T)
    d = (T @ mean)[:, None, None] + np.einsum("ij,jkl->ikl", root, np.array(np.meshgrid(z, z)))
    p = softmax(np.stack([np.zeros_like(d[0]), -d[0], -d[1]]), axis=0)
    return (p * np.outer(weight, weight)).sum(axis=(1, 2)) / weight.sum() ** 2


def random_activations(n, K, size, seed=0):
    random = np.random.default_rng(seed)
    root = size * random.normal(size=(n, K, K + 2)) / np.sqrt(K + 2)
    return 2 * random.normal(size=(n, K)), root @ root.swapaxes(1, 2)


@pytest.mark.slow
def test_the_integral_is_that_of_fifty_digits_on_both_sides():
    m, s = grid(MEANS, DEVIATIONS)
    p = [exact(*one) for one in zip(m, s, strict=True)]
    log_p = np.array([float(mpmath.log(one)) for one in p])
    log_rest = np.array([float(mpmath.log1p(-one)) for one in p])
    for sign, wanted in ((-1, (log_p, log_rest)), (1, (log_rest, log_p))):
        found = quadrature_logs(sign * m, s**2)
        np.testing.assert_allclose(found[0], wanted[0], rtol=1e-12)
        np.testing.assert_allclose(found[1], wanted[1], rtol=1e-12)
    np.testing.assert_allclose(quadrature_probability(-m, s**2), [float(one) for one in p], 1e-12)
    rest = [float(1 - one) for one in p]
    np.testing.assert_allclose(quadrature_probability(m, s**2), rest, rtol=1e-13)


@pytest.mark.parametrize("link", LINKS, ids=lambda link: type(link).__name__)
def test_every_link_has_the_integral_of_adaptive_quadrature(link):
    mean, deviation = grid([-30.0, -4.0, -0.7, 0.0, 1.0, 3.0, 20.0], [0.05, 0.6, 2.0, 7.0, 60.0])
    wanted = np.array([by_quad(link, *one) for one in zip(mean, deviation, strict=True)])
    found = link_probability(link, mean, deviation**2)
    np.testing.assert_allclose(found, wanted, atol=1e-8, rtol=0)
    log_p, log_rest = link_logs(link, mean, deviation**2)
    np.testing.assert_allclose(np.exp(log_p), wanted, atol=1e-8, rtol=0)
    np.testing.assert_allclose(np.exp(log_rest), 1 - wanted, atol=1e-8, rtol=0)


def test_the_trapezoidal_rule_agrees_with_the_series_however_small_the_probability():
    mean, deviation = grid(np.r_[-MEANS, MEANS], DEVIATIONS)
    for found, wanted in zip(
        _trapezoidal(Logit(), mean, deviation), quadrature_logs(mean, deviation**2), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-300)


def test_a_located_link_moves_and_stretches_the_gaussian():
    mean, variance = np.array([-2.0, 0.5, 4.0]), np.array([0.1, 2.0, 9.0])
    link = LocatedLink(Logit(), 1.0, 2.0)
    found = link_probability(link, mean, variance)
    wanted = [by_quad(link, m, np.sqrt(v)) for m, v in zip(mean, variance, strict=True)]
    np.testing.assert_allclose(found, wanted, rtol=1e-11)


def test_the_probit_has_its_closed_form():
    mean, deviation = grid([-50.0, -1.0, 0.0, 2.0], [0.0, 1.0, 10.0])
    wanted = ndtr(mean / np.sqrt(1 + deviation**2))
    np.testing.assert_allclose(link_probability(Probit(), mean, deviation**2), wanted, rtol=1e-12)


@pytest.mark.parametrize("probability", [kappa_probability, quadrature_probability])
def test_probabilities_are_symmetric_and_rise_with_the_mean(probability):
    half = np.linspace(0, 60, 1201)
    mean = np.concatenate([-half[:0:-1], half])
    for deviation in (0.0, 1e-3, 1.0, 4.0, 50.0, 1e4):
        variance = np.full(len(mean), deviation**2)
        p = probability(mean, variance)
        np.testing.assert_allclose(p + p[::-1], 1.0, rtol=1e-15)
        assert (np.diff(p[mean < 30]) > 0).all()
        assert ((p > 0.5) == (mean > 0)).all()
        assert p[1200] == 0.5


def test_without_uncertainty_the_probability_is_that_of_the_mean():
    mean, zero = np.array([-800.0, -3.0, 0.0, 3.0, 800.0]), np.zeros(5)
    np.testing.assert_allclose(quadrature_probability(mean, zero), expit(mean), rtol=1e-13)
    for logs in (kappa_logs, quadrature_logs, partial(link_logs, Logit())):
        np.testing.assert_allclose(logs(mean, zero)[0], log_expit(mean), rtol=1e-13)
        np.testing.assert_allclose(logs(mean, zero)[1], log_expit(-mean), rtol=1e-13)
    for link in LINKS:
        np.testing.assert_allclose(link_probability(link, mean, zero), link.mean(mean), rtol=1e-12)


@pytest.mark.parametrize("link", LINKS, ids=lambda link: type(link).__name__)
def test_with_boundless_uncertainty_nothing_is_known(link):
    mean = np.array([-5.0, 0.0, 5.0])
    for variance in (1e20, 1e300, np.inf):
        found = link_probability(link, mean, np.full(3, variance))
        np.testing.assert_allclose(found, 0.5, atol=1e-8)


def test_a_wide_gaussian_sees_a_step():
    mean, deviation = np.array([-2e5, 3e4]), np.full(2, 1e5)
    found = quadrature_probability(mean, deviation**2)
    np.testing.assert_allclose(found, ndtr(mean / deviation), rtol=1e-8)


def test_the_probit_approximation_is_within_two_percent():
    mean, deviation = grid(np.linspace(0, 60, 301), np.geomspace(1e-2, 1e3, 101))
    error = abs(kappa_probability(mean, deviation**2) - quadrature_probability(mean, deviation**2))
    assert 0.015 < error.max() < 0.02


def test_intervals_hold_the_probability_as_often_as_they_say():
    mean, deviation = np.array([-3.0, 0.4]), np.array([0.5, 2.0])
    draws = mean + deviation * np.random.default_rng(0).normal(size=(200_000, 2))
    for link in (Logit(), Cloglog()):
        low, high = probability_interval(mean, deviation, 0.8, link).T
        p = link.mean(draws.ravel()).reshape(draws.shape)
        np.testing.assert_allclose((p < low).mean(axis=0), 0.1, atol=0.003)
        np.testing.assert_allclose((p > high).mean(axis=0), 0.1, atol=0.003)
    with pytest.raises(ParameterError, match=r"level=1\.5 is out of range"):
        probability_interval(mean, deviation, 1.5, Logit())


@pytest.mark.parametrize("size", [0.5, 2.0])
def test_three_classes_have_the_integral_over_two_contrasts(size):
    mean, covariance = random_activations(12, 3, size)
    wanted = np.array([by_product(*one) for one in zip(mean, covariance, strict=True)])
    np.testing.assert_allclose(monte_carlo_probability(mean, covariance), wanted, atol=2e-3)
    found = monte_carlo_probability(mean, covariance, 2**14)
    np.testing.assert_allclose(found, wanted, atol=1e-4)
    np.testing.assert_allclose(np.exp(monte_carlo_logs(mean, covariance, 2**14)), found, rtol=1e-12)
    np.testing.assert_allclose(extended_probit(mean, covariance), wanted, atol=0.03 * size)


def test_the_closed_form_is_closer_than_probabilities_without_uncertainty():
    mean, covariance = random_activations(300, 5, 1.0)
    wanted = monte_carlo_probability(mean, covariance, 4096)
    ours = abs(extended_probit(mean, covariance) - wanted).mean()
    assert 3 * ours < abs(softmax(mean, axis=1) - wanted).mean()


def test_two_classes_are_one_difference():
    mean, covariance = random_activations(50, 2, 2.0)
    apart = mean[:, 1] - mean[:, 0]
    variance = np.einsum("nij,i,j->n", covariance, [-1.0, 1.0], [-1.0, 1.0])
    closed = extended_probit(mean, covariance)
    np.testing.assert_allclose(closed[:, 1], kappa_probability(apart, variance), rtol=1e-12)
    drawn = monte_carlo_probability(mean, covariance)
    np.testing.assert_allclose(drawn[:, 1], quadrature_probability(apart, variance), atol=2e-4)
    ends = class_intervals(mean, covariance, 0.9, 2**13)
    wanted = probability_interval(apart, np.sqrt(variance), 0.9, Logit())
    np.testing.assert_allclose(ends[:, 1], wanted, atol=1e-3)
    np.testing.assert_allclose(ends[:, 0], 1 - wanted[:, ::-1], atol=1e-3)


@pytest.mark.parametrize("K", [2, 3, 8])
def test_classes_sum_to_one_and_do_not_see_what_they_share(K):
    mean, covariance = random_activations(40, K, 1.5)
    random = np.random.default_rng(1)
    # Adding c to all activations of a row, c of any mean and correlated with them in any way.
    with_all = random.normal(size=(40, 1, K))
    moved = covariance + with_all + with_all.swapaxes(1, 2) + 3.0
    for probability in (extended_probit, monte_carlo_probability):
        p = probability(mean, covariance)
        np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-13)
        np.testing.assert_allclose(probability(mean + 100.0, moved), p, rtol=1e-9)


@pytest.mark.parametrize("K", [3, 6])
def test_certain_activations_give_the_softmax(K):
    mean, nothing = 300 * random_activations(20, K, 1.0)[0], np.zeros((20, K, K))
    wanted = log_softmax(mean, axis=1)
    np.testing.assert_allclose(extended_probit_logs(mean, nothing), wanted, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(monte_carlo_logs(mean, nothing), wanted, rtol=1e-12, atol=1e-12)
    ends = class_intervals(mean, nothing, 0.9)
    np.testing.assert_allclose(ends[:, :, 0], np.exp(wanted), rtol=1e-10, atol=1e-300)
    np.testing.assert_allclose(ends[:, :, 1], np.exp(wanted), rtol=1e-10, atol=1e-300)


def test_relabelled_classes_have_relabelled_probabilities():
    mean, covariance = random_activations(30, 4, 1.0)
    order = [2, 0, 3, 1]
    other = mean[:, order], covariance[:, order][:, :, order]
    closed = extended_probit(mean, covariance)
    np.testing.assert_allclose(extended_probit(*other), closed[:, order], rtol=1e-12)
    drawn = monte_carlo_probability(mean, covariance, 4096)
    np.testing.assert_allclose(monte_carlo_probability(*other, 4096), drawn[:, order], atol=5e-4)


def test_rows_do_not_depend_on_how_many_there_are():
    mean, covariance = random_activations(700, 3, 1.0)
    for function in (monte_carlo_probability, partial(class_intervals, level=0.9)):
        whole = function(mean, covariance)
        np.testing.assert_allclose(whole[-3:], function(mean[-3:], covariance[-3:]), rtol=1e-10)
    mean, variance = np.linspace(-9, 9, 5000), np.linspace(0, 9, 5000)
    for link in (Logit(), Cloglog()):
        whole = link_probability(link, mean, variance)
        part = link_probability(link, mean[-3:], variance[-3:])
        np.testing.assert_allclose(whole[-3:], part, rtol=1e-12)


def test_class_intervals_are_quantiles_of_plain_draws():
    mean, covariance = random_activations(4, 3, 1.0)
    random = np.random.default_rng(0)
    for m, C, ends in zip(mean, covariance, class_intervals(mean, covariance, 0.9), strict=True):
        p = softmax(random.multivariate_normal(m, C, 200_000), axis=1)
        np.testing.assert_allclose(ends.T, np.quantile(p, [0.05, 0.95], axis=0), atol=0.02)


def fitted(K, n=400, intercept=True):
    random = np.random.default_rng(K)
    X = random.normal(size=(n, 3)) * [1.0, 1e-3, 1e4] + [0.0, 5.0, -1e5]
    signal = (X - X.mean(axis=0)) / X.std(axis=0) @ random.normal(size=(3, K))
    y = (signal + random.gumbel(size=(n, K))).argmax(axis=1)
    model = LogisticRegression(prior=1e-3, fit_intercept=intercept).fit(X, y)
    return model, X


def gaussian_of(model):
    inference = model._inference
    return ActivationGaussian.of(inference.shown, inference.w, root_of(inference.free_covariance()))


def fill(model, X, kernel, *shape):
    return read_new_rows(X, model.schema_, "The model").fill(np.empty((len(X), *shape)), kernel)


def test_moments_of_one_activation_are_those_of_the_coefficients():
    model, X = fitted(2)
    mean = fill(model, X, FromGaussian(gaussian_of(model), lambda mean, variance: mean))
    variance = fill(model, X, FromGaussian(gaussian_of(model), lambda mean, variance: variance))
    np.testing.assert_allclose(mean, model.decision_function(X), rtol=1e-9, atol=1e-9)
    Z = np.column_stack([np.ones(len(X)), X])
    wanted = np.einsum("ni,ij,nj->n", Z, model.coef_covariance_, Z)
    np.testing.assert_allclose(variance, wanted, rtol=1e-4)  # the user's units lose digits
    ends = probability_interval(mean, np.sqrt(variance), 0.95, Logit())
    np.testing.assert_allclose(ends, model.predict_interval(X), rtol=1e-9)


def test_moments_of_classes_are_those_of_contrasts():
    model, X = fitted(3)
    K, activations = 3, gaussian_of(model)
    mean = fill(model, X, FromGaussian(activations, lambda mean, covariance: mean), K)
    covariance = fill(model, X, FromGaussian(activations, lambda mean, cov: cov), K, K)
    np.testing.assert_allclose(mean, model.decision_function(X), rtol=1e-8, atol=1e-8)
    Z = np.column_stack([np.ones(len(X)), X])
    shown = model.coef_covariance_.reshape(2, 4, 2, 4)
    wanted = np.einsum("ni,kilj,nj->nkl", Z, shown, Z)
    T = np.array([[-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]])
    scale = abs(wanted).max()
    np.testing.assert_allclose(T @ covariance @ T.T, wanted, atol=1e-4 * scale)


def test_draws_of_parameters_give_the_same_as_their_gaussian():
    for K in (2, 3):
        model, X = fitted(K)
        inference, activations, X = model._inference, gaussian_of(model), X[:50]
        white = np.random.default_rng(0).normal(size=(20_000, len(inference.w)))
        draws = inference.w + white @ root_of(inference.free_covariance()).T
        of = partial(FromDraws.of, inference.shown, draws)
        if K == 2:
            exactly = fill(model, X, FromGaussian(activations, quadrature_probability))
            wanted = np.stack([1 - exactly, exactly], axis=1)
            average, logs = partial(average_link, Logit()), partial(average_link_logs, Logit())
            ends = fill(model, X, of(partial(drawn_link_ends, Logit(), level=0.9)), 2)
            limits = model.predict_interval(X, 0.9)
        else:
            wanted = fill(model, X, FromGaussian(activations, monte_carlo_probability), K)
            average, logs = average_probabilities, average_logs
            ends = fill(model, X, of(partial(drawn_ends, level=0.9)), K, 2)
            limits = fill(
                model, X, FromGaussian(activations, partial(class_intervals, level=0.9)), K, 2
            )
        p = fill(model, X, of(average), K)
        np.testing.assert_allclose(p, wanted, atol=3e-3)
        np.testing.assert_allclose(np.exp(fill(model, X, of(logs), K)), p, rtol=1e-10)
        np.testing.assert_allclose(ends, limits, atol=1e-2)


@pytest.mark.parametrize("K", [2, 4])
def test_offsets_move_the_mean_and_not_the_variance(K):
    model, X = fitted(K)
    offset = np.random.default_rng(0).normal(size=(len(X), K) if K > 2 else len(X))
    rows = read_new_rows(X, model.schema_, "The model")
    moved = type(rows)(rows.table, offset=offset)
    for i, shape in enumerate([(K,), (K, K)] if K > 2 else [(), ()]):
        kernel = FromGaussian(gaussian_of(model), lambda *moments, i=i: moments[i])
        out = np.empty((len(X), *shape))
        plain, found = rows.fill(out.copy(), kernel), moved.fill(out.copy(), kernel)
        np.testing.assert_allclose(found - plain, 0.0 if i else offset, atol=1e-12)
    inference = model._inference
    draws = np.stack([inference.w, inference.w])
    kernel = FromDraws.of(inference.shown, draws, lambda a: a)
    shape = (len(X), K if K > 2 else 1, 2)
    change = moved.fill(np.empty(shape), kernel) - rows.fill(np.empty(shape), kernel)
    np.testing.assert_allclose(change[..., 0], offset.reshape(shape[:2]), atol=1e-10)


def test_a_fit_without_intercept_has_moments_too():
    model, X = fitted(2, intercept=False)
    variance = fill(model, X, FromGaussian(gaussian_of(model), lambda mean, variance: variance))
    wanted = np.einsum("ni,ij,nj->n", X, model.coef_covariance_, X)
    np.testing.assert_allclose(variance, wanted, rtol=1e-8)


def test_activations_beyond_the_doubles_name_their_row():
    model, X = fitted(2)
    X = X.copy()
    X[7] = 1e308, 1e308, -1e308
    inference = model._inference
    draws = FromDraws.of(inference.shown, inference.w[None], lambda a: a[:, 0, 0])
    for kernel in (FromGaussian(gaussian_of(model), lambda mean, variance: mean), draws):
        with pytest.raises(ScaleError, match="activations of row 7 do not fit in a double"):
            fill(model, X, kernel)


def test_marginalising_does_not_move_the_boundary():
    model, X = fitted(2)
    p = fill(model, X, FromGaussian(gaussian_of(model), quadrature_probability))
    assert ((p > 0.5) == (model.predict(X) == model.classes_[1])).all()
    assert (abs(p - 0.5) <= abs(model.predict_proba(X)[:, 1] - 0.5)).all()


def test_intervals_agree_with_quantiles_of_the_normal():
    ends = probability_interval(np.array([0.3]), np.array([1.2]), 0.9, Probit())
    np.testing.assert_allclose(ndtri(ends[0]), 0.3 + 1.2 * ndtri([0.05, 0.95]), rtol=1e-12)
