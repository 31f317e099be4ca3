"""Importance weights: Pareto fits, smoothing, and what k-hat says."""

import numpy as np
import pytest
from scipy.stats import genpareto, norm, t

from posteriori.errors import InfiniteValueError, MissingValueError, ParameterError, ShapeError
from posteriori.posterior.importance import ParetoTail, pareto_fit, smoothed, trust


def ratios(size):
    random = np.random.default_rng(2024)
    return 0.6 * random.exponential(size=size) + 0.1 * random.normal(size=size)


# Draws: k-hat, effective size, and the smallest, 20th largest, second largest and largest log
# weight, by psislw of arviz 0.23.4; arviz-stats 0.8.0 gives the same for 100 and 400 draws, and
# rounds 3√S down for 1000.
ARVIZ = {
    100: (
        0.6251279448765118,
        46.21552688805508,
        [-5.534222792423929, -4.494754741544285, -2.8004686629565674, -2.5445420521110407],
    ),
    400: (
        0.38447795250149525,
        191.91392739626224,
        [-7.008095793379212, -5.005816184133393, -3.765406611447934, -3.671514009396131],
    ),
    1000: (
        0.49777787088013037,
        290.64799092527556,
        [-8.003665260470719, -5.392279420535805, -4.006040336362891, -3.4424208983240754],
    ),
}


@pytest.mark.parametrize("size", [100, 400, 1000])
def test_weights_are_those_of_arviz(size):
    k_hat, effective_size, some = ARVIZ[size]
    found = smoothed(ratios(size))
    assert found.k_hat == pytest.approx(k_hat, rel=1e-8)
    assert found.effective_size == pytest.approx(effective_size, rel=1e-8)
    np.testing.assert_allclose(np.sort(found.log_weights)[[0, -20, -2, -1]], some, rtol=1e-8)


def slow_fit(x):
    """Zhang and Stephens (2009), with the prior of Vehtari et al. (2024), term by term."""
    n = len(x)
    m = 30 + int(n**0.5)
    quartile = x[int(n / 4 + 0.5) - 1]
    grid = [1 / x[-1] + (1 - (m / (j - 0.5)) ** 0.5) / (3 * quartile) for j in range(1, m + 1)]

    def log_likelihood(theta):
        k = sum(np.log(1 - theta * xi) for xi in x) / n
        return n * (np.log(-theta / k) - k - 1)

    values = [log_likelihood(theta) for theta in grid]
    weights = [1 / sum(np.exp(other - value) for other in values) for value in values]
    theta = sum(w * th for w, th in zip(weights, grid, strict=True))
    k = sum(np.log(1 - theta * xi) for xi in x) / n
    return (n * k + 5) / (n + 10), -k / theta


def slow_weights(log_ratios):
    raw = np.exp(log_ratios)
    S = len(raw)
    M = int(np.ceil(min(0.2 * S, 3 * S**0.5)))
    order = sorted(range(S), key=lambda s: raw[s])
    cut, largest = raw[order[S - M - 1]], max(raw)
    k, sigma = slow_fit([raw[s] - cut for s in order[S - M :]])
    weights = raw.copy()
    for z, s in enumerate(order[S - M :], start=1):
        quantile = genpareto.ppf((z - 0.5) / M, k, loc=cut, scale=sigma)
        weights[s] = min(quantile, largest)
    return weights / sum(weights), k


@pytest.mark.parametrize("size", [25, 26, 99, 225, 226, 1001])
def test_smoothing_follows_the_formulas_of_the_paper(size):
    logs = np.random.default_rng(size).normal(size=size)
    wanted, k = slow_weights(logs)
    found = smoothed(logs)
    np.testing.assert_allclose(np.exp(found.log_weights), wanted, rtol=1e-10)
    assert found.k_hat == pytest.approx(k, rel=1e-10)
    assert found.effective_size == pytest.approx(1 / np.square(wanted).sum(), rel=1e-10)


def without_prior(fit, n):
    return (fit.shape * (n + 10) - 5) / n


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
@pytest.mark.parametrize("k", [-0.4, 0.0, 0.3, 0.7, 1.2])
def test_the_fit_finds_the_shape_and_scale_of_exact_quantiles(k, scale):
    n = 20_000
    exact = genpareto.ppf((np.arange(n) + 0.5) / n, k, scale=scale)
    fit = pareto_fit(exact)
    assert without_prior(fit, n) == pytest.approx(k, abs=5e-3)
    assert fit.scale == pytest.approx(scale, rel=5e-3)


@pytest.mark.parametrize("k", [-0.3, 0.2, 0.6, 1.0])
def test_the_fit_finds_the_shape_of_draws_within_its_error(k):
    n, repeats = 2000, 150
    draws = genpareto.rvs(k, size=(repeats, n), random_state=3)
    found = np.array([without_prior(pareto_fit(np.sort(row)), n) for row in draws])
    error = (1 + k) / np.sqrt(n)
    assert found.mean() == pytest.approx(k, abs=0.01)
    assert found.std() == pytest.approx(error, rel=0.2)


@pytest.mark.parametrize("k", [-0.7, 0.0, 0.4])
def test_quantiles_are_those_of_the_pareto_distribution(k):
    p = np.linspace(0.01, 0.99, 7)
    wanted = genpareto.ppf(p, k, scale=3.0)
    np.testing.assert_allclose(ParetoTail(k, 3.0).quantiles(p), wanted, rtol=1e-12)


@pytest.mark.parametrize("rate", [0.9, 0.6, 0.3])
def test_k_hat_of_exponential_draws_for_a_slower_rate_is_one_less_the_rate(rate):
    # r = rate exp((1 - rate) x), so that P(r > t) = (t/rate)^(-1/(1 - rate)).
    x = np.random.default_rng(4).exponential(size=100_000)
    found = smoothed((1 - rate) * x)
    assert found.k_hat == pytest.approx(1 - rate, abs=3 * (2 - rate) / np.sqrt(949))


@pytest.mark.parametrize("width", [1.1, 1.3, 1.6])
def test_k_hat_of_normal_draws_for_a_wider_normal_is_known(width):
    # ln r = x²(1 - 1/width²)/2 and P(x² > u) falls as exp(-u/2).
    x = np.random.default_rng(5).normal(size=100_000)
    found = smoothed(norm.logpdf(x, scale=width) - norm.logpdf(x))
    assert found.k_hat == pytest.approx(1 - 1 / width**2, abs=0.15)


def test_k_hat_of_normal_draws_for_heavy_tails_is_on_its_way_to_one():
    # d ln r/d(-ln P) rises to one; the tail begins at x with P(|draw| > x) = 949/100,000.
    x = np.random.default_rng(6).normal(size=100_000)
    found = smoothed(t.logpdf(x, 2) - norm.logpdf(x))
    start = norm.isf(949 / 200_000)
    slope = (start - 3 * start / (2 + start**2)) * norm.sf(start) / norm.pdf(start)
    assert slope < found.k_hat < 1
    assert trust(found.k_hat, 100_000).word != "good"


def test_draws_with_heavy_tails_serve_for_a_normal_distribution():
    # The ratio is bounded, and touches its bound as a parabola: k = -2.
    x = t.rvs(5, size=100_000, random_state=7)
    found = smoothed(norm.logpdf(x) - t.logpdf(x, 5))
    assert found.k_hat == pytest.approx(-2.0, abs=0.3)
    weights = np.exp(found.log_weights)
    assert weights @ x**2 == pytest.approx(1.0, abs=0.02)


def test_smoothing_brings_the_mean_of_heavy_ratios_closer():
    x = np.random.default_rng(8).exponential(size=(500, 100))
    plain = np.exp(0.7 * x)
    plain = (plain * x).sum(axis=1) / plain.sum(axis=1)
    smooth = np.array([np.exp(smoothed(0.7 * row).log_weights) @ row for row in x])
    truth = 1 / 0.3
    assert np.square(smooth - truth).mean() < np.square(plain - truth).mean()


def test_weights_sum_to_one_keep_their_order_and_the_largest_does_not_grow():
    logs = np.random.default_rng(9).normal(scale=3, size=500)
    found = smoothed(logs).log_weights
    assert np.exp(found).sum() == pytest.approx(1.0, rel=1e-12)
    assert (np.diff(found[np.argsort(logs)]) >= 0).all()
    smallest = logs.argmin()
    assert np.ptp(found) <= logs.max() - logs[smallest] + 1e-12


@pytest.mark.parametrize("constant", [-1e5, 1e5])
def test_a_common_constant_does_not_matter(constant):
    logs = np.random.default_rng(10).normal(size=500)
    found, wanted = smoothed(logs + constant), smoothed(logs)
    np.testing.assert_allclose(found.log_weights, wanted.log_weights, rtol=1e-8)
    assert found.k_hat == pytest.approx(wanted.k_hat, rel=1e-6)


def test_the_ratios_handed_in_are_left_as_they_are():
    logs = np.random.default_rng(11).normal(size=500)
    before = logs.copy()
    smoothed(logs)
    np.testing.assert_array_equal(logs, before)


@pytest.mark.parametrize("noise", [0.0, 1e-12])
def test_equal_ratios_give_equal_weights_and_no_tail(noise):
    logs = -3.0 + noise * np.random.default_rng(12).normal(size=200)
    found = smoothed(logs)
    np.testing.assert_allclose(np.exp(found.log_weights), 1 / 200, rtol=1e-10)
    assert found.k_hat == -np.inf
    assert found.effective_size == pytest.approx(200, rel=1e-10)
    assert trust(found.k_hat, 200).word == "good"


def test_ratios_of_zero_have_no_weight():
    logs = np.random.default_rng(13).normal(size=400)
    with_zeros = np.concatenate([logs, np.full(100, -np.inf)])
    found = smoothed(with_zeros)
    np.testing.assert_array_equal(found.log_weights[400:], -np.inf)
    assert np.exp(found.log_weights).sum() == pytest.approx(1.0, rel=1e-12)
    assert found.k_hat == pytest.approx(slow_weights(with_zeros)[1], rel=1e-10)


def test_where_most_ratios_are_zero_the_others_are_the_tail():
    logs = np.concatenate([np.full(480, -np.inf), np.random.default_rng(14).normal(size=20)])
    found = smoothed(logs)
    assert found.k_hat == pytest.approx(slow_fit(np.exp(np.sort(logs[480:])))[0], rel=1e-10)
    assert np.isfinite(found.log_weights[480:]).all()


@pytest.mark.parametrize("base", [0.0, -1000.0, -np.inf])
def test_a_few_ratios_above_all_others_cannot_be_vouched_for(base):
    logs = np.full(500, base)
    logs[:3] = [4.0, 5.0, 6.0]
    found = smoothed(logs)
    assert found.k_hat == np.inf
    assert trust(found.k_hat, 500).word == "useless"
    wanted = np.exp(logs - 6) / np.exp(logs - 6).sum()
    np.testing.assert_allclose(np.exp(found.log_weights), wanted, rtol=1e-12)


@pytest.mark.parametrize("spread", [30.0, 100.0, 1000.0, 1e5])
def test_ratios_of_wildly_different_size_are_useless_but_have_weights(spread):
    found = smoothed(spread * np.random.default_rng(15).normal(size=500))
    assert found.k_hat > 1
    assert np.exp(found.log_weights).sum() == pytest.approx(1.0, rel=1e-12)
    assert 1 <= found.effective_size < 20


def test_draws_that_come_in_equal_copies_have_a_finite_fit():
    logs = np.repeat(np.random.default_rng(16).normal(size=50), 10)
    found = smoothed(logs)
    assert np.isfinite(found.k_hat)
    two = smoothed(np.where(np.arange(500) < 30, 1.0, 0.0))
    assert two.k_hat < 0
    assert trust(two.k_hat, 500).word == "good"


def test_ratios_that_cannot_be_used_are_named():
    logs = np.random.default_rng(17).normal(size=100)
    with pytest.raises(ParameterError, match="24 draws are too few"):
        smoothed(logs[:24])
    with pytest.raises(ShapeError, match=r"\(10, 10\)"):
        smoothed(logs.reshape(10, 10))
    with pytest.raises(ParameterError, match="All ratios are zero"):
        smoothed(np.full(100, -np.inf))
    logs[7] = np.inf
    with pytest.raises(InfiniteValueError, match="draw 7 is infinite"):
        smoothed(logs)
    logs[5] = np.nan
    with pytest.raises(MissingValueError, match="draw 5 is not a number"):
        smoothed(logs)


@pytest.mark.parametrize(
    ("k_hat", "n_draws", "word"),
    [
        (-np.inf, 1000, "good"),
        (0.5, 1000, "good"),
        (0.51, 1000, "usable"),
        (0.66, 1000, "usable"),
        (0.67, 1000, "poor"),
        (0.7, 100_000, "usable"),
        (0.71, 100_000, "poor"),
        (1.0, 1000, "poor"),
        (1.01, 1000, "useless"),
        (np.inf, 1000, "useless"),
        (0.28, 25, "good"),
        (0.29, 25, "poor"),
        (0.0, 1, "poor"),
    ],
)
def test_a_word_for_every_k_hat(k_hat, n_draws, word):
    assert trust(k_hat, n_draws).word == word


def test_the_number_of_draws_wanted_is_enough():
    sentence = trust(0.6, 100).sentence
    assert sentence == "k-hat is 0.60: 100 draws are too few for it; 317 would do."
    assert trust(0.6, 317).word == "usable"
    assert trust(0.6, 316).word == "poor"
