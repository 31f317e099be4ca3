"""Markov chains: R-hat, effective sizes and the error of the mean."""

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import norm, rankdata

from posteriori.errors import InfiniteValueError, MissingValueError, ParameterError, ShapeError
from posteriori.posterior.chains import (
    effective_size_bulk,
    effective_size_tail,
    mean_error,
    split_rhat,
)

MEASURES = [split_rhat, effective_size_bulk, effective_size_tail, mean_error]
SIZES = [effective_size_bulk, effective_size_tail]


def autoregressive(chains, steps, factors, seed):
    """x_t = φ x_{t-1} + noise, with variance 1/(1 - φ²) from the start on."""
    random = np.random.default_rng(seed)
    noise = random.normal(size=(chains, steps, len(factors)))
    noise[:, 0] /= np.sqrt(1 - np.square(factors))
    filtered = [lfilter([1], [1, -phi], noise[..., j], axis=1) for j, phi in enumerate(factors)]
    return np.stack(filtered, axis=2)


def mixed_bag():
    """Independent, sticky, alternating, disagreeing and whole-numbered draws; odd steps."""
    noise = np.random.default_rng(2021).normal(size=(4, 251, 5))
    factors = [0.0, 0.9, -0.5, 0.5, 0.3]
    filtered = [lfilter([1.0], [1.0, -phi], noise[..., j], axis=1) for j, phi in enumerate(factors)]
    draws = np.stack(filtered, axis=2)
    draws[1, :, 3] += 1.5
    draws[..., 4] = np.round(3 * np.exp(draws[..., 4]))
    return draws


# Columns: rhat, ess "bulk", ess "tail" with prob (0.05, 0.95), mcse "mean" of each parameter of
# mixed_bag(), by arviz-stats 0.8.0; arviz 0.23.4 gives the same.
ARVIZ = [
    [1.0006500857033223, 1050.3607960415986, 997.1162805976228, 0.0309041020909363],
    [1.083405659635357, 54.62952116147808, 130.2909657028635, 0.31772260833278554],
    [1.0018531111615867, 3000.0, 766.7030098498698, 0.020736039041656724],
    [1.2100131436775625, 14.450385191445962, 73.14176692132128, 0.3430184669019769],
    [1.0034793967337663, 522.2321699387928, 647.7123401394788, 0.3259696508875305],
]


@pytest.mark.parametrize(("place", "measure"), list(enumerate(MEASURES)))
def test_all_measures_are_those_of_arviz(place, measure):
    np.testing.assert_allclose(measure(mixed_bag()), [row[place] for row in ARVIZ], rtol=1e-8)


def slow_halves(chains):
    n = len(chains[0]) // 2
    return [c[:n] for c in chains] + [c[-n:] for c in chains]


def slow_scores(halves):
    ranks = rankdata(np.concatenate(halves))
    scores = norm.ppf((ranks - 3 / 8) / (len(ranks) + 1 / 4))
    return np.split(scores, len(halves))


def slow_rhat(halves):
    n, m = len(halves[0]), len(halves)
    means = [sum(half) / n for half in halves]
    middle = sum(means) / m
    between = n / (m - 1) * sum((mean - middle) ** 2 for mean in means)
    within = sum(
        sum((x - mean) ** 2 for x in half) / (n - 1)
        for half, mean in zip(halves, means, strict=True)
    )
    within /= m
    return np.sqrt(((n - 1) / n * within + between / n) / within)


def slow_autocovariance(half, lag):
    mean, n = sum(half) / len(half), len(half)
    return sum((half[s] - mean) * (half[s + lag] - mean) for s in range(n - lag)) / n


def slow_size(halves):
    n, m = len(halves[0]), len(halves)
    within = np.mean([np.var(half, ddof=1) for half in halves])
    total = within * (n - 1) / n + np.var([np.mean(half) for half in halves], ddof=1)
    if total == 0:
        return np.inf

    def rho(lag):
        if lag == 0:
            return 1.0
        return 1 - (within - np.mean([slow_autocovariance(h, lag) for h in halves])) / total

    pairs, lag = [], 0
    while lag + 4 <= n - 1 and rho(lag) + rho(lag + 1) > 0:
        pair = rho(lag) + rho(lag + 1)
        pairs.append(min([pair, *pairs[-1:]]))
        lag += 2
    tau = -1 + 2 * sum(pairs) + max(rho(lag), 0)
    return n * m / max(tau, 1 / np.log10(n * m))


def slow_measures(chains):
    halves = slow_halves(chains)
    median = np.median(np.concatenate(halves))
    folded = [np.abs(half - median) for half in halves]
    low, high = np.quantile(chains, [0.05, 0.95])
    return [
        max(slow_rhat(slow_scores(halves)), slow_rhat(slow_scores(folded))),
        slow_size(slow_scores(halves)),
        min(slow_size(slow_halves((chains <= q).astype(float))) for q in (low, high)),
        np.std(chains, ddof=1) / np.sqrt(slow_size(halves)),
    ]


@pytest.mark.parametrize("chains", [1, 3])
@pytest.mark.parametrize("steps", [10, 11, 12, 13, 40, 61])
def test_all_measures_follow_the_formulas_of_the_paper(chains, steps):
    draws = autoregressive(chains, steps, [0.0, 0.8, -0.3, 0.99], seed=steps)
    draws[..., 3] += 5 * np.arange(chains)[:, None]
    draws = np.concatenate([draws, np.round(draws[..., :2])], axis=2)
    wanted = np.array([slow_measures(draws[..., j]) for j in range(draws.shape[2])])
    found = np.stack([measure(draws) for measure in MEASURES], axis=1)
    np.testing.assert_allclose(found, wanted, rtol=1e-10)


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9, -0.3, -0.5])
def test_sizes_and_errors_are_those_known_of_autoregressive_chains(phi):
    draws = autoregressive(16, 4000, [phi] * 8, seed=1)
    known = 16 * 4000 * (1 - phi) / (1 + phi)
    assert effective_size_bulk(draws).mean() == pytest.approx(known, rel=0.04)
    error = np.sqrt(1 / (1 - phi**2) / known)
    assert mean_error(draws).mean() == pytest.approx(error, rel=0.03)


def test_the_error_of_the_mean_is_the_spread_of_means_over_runs():
    runs = autoregressive(4 * 500, 400, [0.7], seed=2).reshape(500, 4, 400)
    claimed = mean_error(np.moveaxis(runs, 0, -1))
    assert np.sqrt(np.square(claimed).mean()) == pytest.approx(
        runs.mean(axis=(1, 2)).std(), rel=0.1
    )


def test_rhat_is_close_to_one_for_independent_draws():
    draws = np.random.default_rng(3).normal(size=(4, 1000, 50))
    found = split_rhat(draws)
    assert found.max() < 1.01
    assert found.min() > 0.999


def test_rhat_tells_shifted_wider_and_wandering_chains():
    draws = np.random.default_rng(4).normal(size=(4, 1000, 3))
    draws[0, :, 0] += 3.0
    draws[0, :, 1] *= 5.0
    draws[..., 2] += np.linspace(0, 3, 1000)
    assert (split_rhat(draws) > [1.4, 1.2, 1.2]).all()


def test_rhat_of_one_chain_compares_its_halves():
    draws = np.random.default_rng(5).normal(size=(1, 1000, 2))
    draws[0, 500:, 1] += 3.0
    found = split_rhat(draws)
    assert found[0] == pytest.approx(1.0, abs=0.01)
    assert found[1] > 1.8


def test_a_chain_of_four_steps_has_an_rhat():
    draws = np.array([[0.0, 1.0, 2.0, 3.0]])[..., None]
    assert split_rhat(draws)[0] == pytest.approx(
        slow_rhat(slow_scores(slow_halves(draws[..., 0]))), rel=1e-12
    )


def test_nothing_is_claimed_of_a_parameter_that_never_moves():
    draws = np.random.default_rng(6).normal(size=(4, 100, 3))
    draws[..., 1] = 0.1
    for measure in MEASURES:
        found = measure(draws)
        np.testing.assert_array_equal(np.isnan(found), [False, True, False])
        np.testing.assert_array_equal(found[::2], measure(draws[..., ::2]))


def test_chains_that_stand_still_in_different_places_disagree_without_end():
    draws = np.broadcast_to([[[0.1]], [[0.7]], [[0.3]]], (3, 100, 1))
    assert split_rhat(draws)[0] == np.inf
    assert effective_size_bulk(draws)[0] == pytest.approx(3, rel=0.1)
    assert mean_error(draws)[0] > 0.1


def test_draws_that_move_to_and_fro_are_worth_at_most_n_log_n():
    draws = autoregressive(4, 1000, [-0.95], seed=7)
    N = 4000
    assert effective_size_bulk(draws)[0] == pytest.approx(N * np.log10(N), rel=1e-12)
    error = draws.std(ddof=1) / np.sqrt(N * np.log10(N))
    assert mean_error(draws)[0] == pytest.approx(error, rel=1e-12)


def test_a_tail_in_which_all_draws_are_the_same_is_left_out():
    draws = np.random.default_rng(8).normal(size=(4, 500, 1))
    capped = np.minimum(draws, 0.0)
    low = capped <= np.quantile(capped, 0.05)
    wanted = slow_size(slow_halves(low[..., 0].astype(float)))
    assert effective_size_tail(capped)[0] == pytest.approx(wanted, rel=1e-10)


def test_two_values_fold_into_one_and_leave_the_rhat_of_the_bulk():
    draws = np.where(np.arange(200) % 2, 1.0, -1.0).reshape(2, 100, 1)
    halves = slow_halves(draws[..., 0])
    assert split_rhat(draws)[0] == pytest.approx(slow_rhat(slow_scores(halves)), rel=1e-12)


@pytest.mark.parametrize("measure", [split_rhat, *SIZES])
def test_units_do_not_matter(measure):
    draws = mixed_bag()
    np.testing.assert_allclose(measure(2.0**500 * draws), measure(draws), rtol=1e-12)
    np.testing.assert_allclose(measure(2.0**-500 * draws), measure(draws), rtol=1e-12)


@pytest.mark.parametrize("measure", SIZES)
def test_sizes_do_not_depend_on_increasing_transformations(measure):
    draws = mixed_bag()[:, :, :4]
    # Quantiles between two draws are not carried over, the draws below them are.
    np.testing.assert_allclose(measure(np.exp(draws)), measure(draws), rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-200, 1e-150, 1e150, 1e200])
def test_the_error_of_the_mean_has_the_units_of_the_draws(scale):
    draws = mixed_bag()
    np.testing.assert_allclose(mean_error(scale * draws), scale * mean_error(draws), rtol=1e-10)
    np.testing.assert_allclose(mean_error(draws + 1e6), mean_error(draws), rtol=1e-6)


@pytest.mark.parametrize("measure", MEASURES)
def test_the_order_of_chains_does_not_matter(measure):
    draws = mixed_bag()
    np.testing.assert_allclose(measure(draws[[2, 0, 3, 1]]), measure(draws), rtol=1e-12)


@pytest.mark.parametrize("measure", MEASURES)
def test_parameters_are_judged_one_by_one_however_many_there_are(measure):
    draws = np.random.default_rng(9).normal(size=(4, 700, 900))
    picked = [0, 1, 373, 374, 375, 748, 899]
    np.testing.assert_allclose(measure(draws)[picked], measure(draws[..., picked]), rtol=1e-12)


@pytest.mark.parametrize("measure", MEASURES)
def test_no_parameters_have_no_measures(measure):
    assert measure(np.empty((4, 100, 0))).shape == (0,)


@pytest.mark.parametrize("measure", MEASURES)
def test_draws_that_cannot_be_judged_are_named(measure):
    draws = np.random.default_rng(10).normal(size=(2, 50, 3))
    with pytest.raises(ShapeError, match=r"\(2, 50\)"):
        measure(draws[..., 0])
    with pytest.raises(ShapeError, match=r"\(0, 50, 3\)"):
        measure(draws[:0])
    with pytest.raises(ParameterError, match="Chains of 3 steps"):
        measure(draws[:, :3])
    draws[1, 7, 2] = np.inf
    with pytest.raises(InfiniteValueError, match="parameter 2 is infinite"):
        measure(draws)
    draws[0, 9, 1] = np.nan
    with pytest.raises(MissingValueError, match="parameter 1 is not a number"):
        measure(draws)


@pytest.mark.parametrize("measure", [*SIZES, mean_error])
def test_correlations_need_ten_steps(measure):
    with pytest.raises(ParameterError, match="at least 10 steps"):
        measure(np.random.default_rng(11).normal(size=(4, 9, 1)))
