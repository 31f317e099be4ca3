"""Fits to labels that may be wrong: the right optima, with the right standard errors."""

from dataclasses import replace

import numpy as np
import pytest
from noisy_fits import (
    LEVEL,
    SLOPES,
    Fit,
    best_of_many,
    clean_fit,
    exact_minus_log_likelihood,
    labels_with_flips,
    minus_log_likelihood,
    polished,
    prepared_rows,
)
from oracle import exact
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit, softmax

from posteriori import LogisticRegression
from posteriori.models.label_noise import NoiseProfile, uniform_transition


@pytest.mark.slow
@pytest.mark.parametrize("rates", [(0.1, 0.1), (0.05, 0.2), (0.0, 0.15)])
def test_known_rates_have_the_optimum_of_their_likelihood(rates):
    X, y, _ = labels_with_flips(80, rates, seed=1, slopes=np.array([2.0, -1.0]))
    fit = Fit(X, y, rates[0] if rates[0] == rates[1] else rates)
    assert fit.rate == (rates[0] if rates[0] == rates[1] else rates)
    assert fit.rate_error is None
    rough = best_of_many(lambda v: minus_log_likelihood(v, rates, X, y), 3, seed=2)
    assert fit.solution.value == pytest.approx(rough.fun, abs=1e-6)

    def exact_value(v):
        return exact_minus_log_likelihood(v, exact(rates), exact(X), y)

    best, hessian = polished(exact_value, rough.x)
    np.testing.assert_allclose(fit.theta[0], best, rtol=1e-8)
    np.testing.assert_allclose(fit.inference.covariance(), np.linalg.inv(hessian), rtol=1e-8)


@pytest.mark.slow
def test_an_estimated_rate_has_the_joint_optimum_and_the_joint_standard_errors():
    X, y, _ = labels_with_flips(100, (0.1, 0.1), seed=3, slopes=np.array([2.5, -1.0]))
    fit = Fit(X, y, "estimate")

    def exact_value(v):
        return exact_minus_log_likelihood(v[:-1], (v[-1], v[-1]), exact(X), y)

    best, hessian = polished(exact_value, [*fit.theta[0], fit.rate])
    np.testing.assert_allclose(fit.theta[0], best[:-1], rtol=1e-8)
    assert fit.rate == pytest.approx(best[-1], rel=1e-8)
    joint = np.linalg.inv(hessian)
    np.testing.assert_allclose(fit.inference.covariance(), joint[:-1, :-1], rtol=1e-8)
    assert fit.rate_error == pytest.approx(np.sqrt(joint[-1, -1]), rel=1e-8)
    assert (fit.errors > np.sqrt(np.diag(np.linalg.inv(hessian[:-1, :-1])))).all()

    def joint_value(v):
        rate = 0.5 * expit(v[-1])
        return minus_log_likelihood(v[:-1], (rate, rate), X, y)

    found = best_of_many(joint_value, 4, seed=4)
    assert abs(found.x).max() > 1e3 or fit.solution.value <= found.fun + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("label_noise", [0.1, (0.05, 0.2), "estimate"])
def test_weights_and_offsets_have_the_numbers_of_fifty_digits(label_noise):
    X, y, _ = labels_with_flips(120, (0.1, 0.1), seed=8, slopes=np.array([2.0]))
    random = np.random.default_rng(9)
    weight, offset = 0.5 + random.integers(0, 3, 120), random.normal(size=120)
    model = LogisticRegression(label_noise=label_noise)
    model.fit(X, y, sample_weight=weight, offset=offset)
    estimated = label_noise == "estimate"
    given = () if estimated else exact(np.broadcast_to(label_noise, 2))
    rows = np.column_stack([X, offset])

    def exact_value(v):
        rates = (v[-1], v[-1]) if estimated else given
        theta = np.array([v[0], v[1], exact(1.0)[()]], dtype=object)
        each = [
            exact_minus_log_likelihood(theta, rates, [x], [t])
            for x, t in zip(exact(rows), y, strict=True)
        ]
        return exact(weight) @ np.array(each, dtype=object)

    start = [model.intercept_[0], model.coef_[0, 0], *([model.label_noise_] if estimated else [])]
    best, hessian = polished(exact_value, start)
    joint = np.linalg.inv(hessian)
    found = model.tidy()
    np.testing.assert_allclose(found["estimate"], best[:2], rtol=1e-8)
    np.testing.assert_allclose(found["std_error"], np.sqrt(np.diag(joint))[:2], rtol=1e-8)
    assert model.log_likelihood_ == pytest.approx(-float(exact_value(exact(best))), rel=1e-12)
    rates = np.broadcast_to(best[-1] if estimated else label_noise, 2)
    if estimated:
        assert model.label_noise_ == pytest.approx(best[-1], rel=1e-8)
        assert model.label_noise_error_ == pytest.approx(np.sqrt(joint[-1, -1]), rel=1e-8)
    # By Bayes' rule: p(true class, label) over p(label).
    a = best[0] + X[:, 0] * best[1] + offset
    right = np.where(y == 1, (1 - rates[1]) * expit(a), (1 - rates[0]) * expit(-a))
    wrong = np.where(y == 1, rates[0] * expit(-a), rates[1] * expit(a))
    told = model.mislabelled_probability(X, y, offset=offset)
    np.testing.assert_allclose(told, wrong / (right + wrong), rtol=1e-7)
    assert abs(told - model.mislabelled_probability(X, y)).max() > 0.1


def test_offsets_of_three_classes_are_part_of_bayes_rule():
    random = np.random.default_rng(10)
    X, offset = random.normal(size=(200, 2)), random.normal(size=(200, 3))
    y = (2 * X @ random.normal(size=(2, 3)) + offset + random.gumbel(size=(200, 3))).argmax(axis=1)
    y[:20] = (y[:20] + 1) % 3
    model = LogisticRegression(label_noise=0.1, prior=0.1).fit(X, y, offset=offset)
    p = model.predict_proba(X, offset=offset)
    own = p[np.arange(200), y]
    told = model.mislabelled_probability(X, y, offset=offset)
    wanted = 0.05 * (1 - own) / (0.9 * own + 0.05 * (1 - own))
    np.testing.assert_allclose(told, wanted, rtol=1e-10)


def test_three_classes_have_the_optimum_of_their_likelihood():
    random = np.random.default_rng(5)
    X = random.standard_normal((150, 2))
    vectors = np.array([[0.0, 0.0, 0.0], [0.5, 2.0, 0.0], [-0.5, 0.0, 2.0]])
    a = vectors[:, 0] + X @ vectors[:, 1:].T
    y = (a + random.gumbel(size=a.shape)).argmax(axis=1)
    flipped = random.random(150) < 0.1
    y[flipped] = (y[flipped] + random.integers(1, 3, flipped.sum())) % 3
    fit = Fit(X, y, 0.1)
    T = uniform_transition(0.1, 3)

    def value(v):
        contrasts = np.vstack([np.zeros(3), v.reshape(2, 3)])
        q = softmax(contrasts[:, 0] + X @ contrasts[:, 1:].T, axis=1) @ T
        return -np.log(q[np.arange(150), y]).sum()

    rough = best_of_many(value, 6, seed=6, tries=15)
    assert fit.solution.value == pytest.approx(rough.fun, abs=1e-6)
    np.testing.assert_allclose((fit.theta[1:] - fit.theta[0]).ravel(), rough.x, atol=1e-3)


def test_rows_far_out_with_wrong_labels_do_not_turn_the_fit():
    """A fit from the optimum without noise ends where these rows are taken to be right."""
    X, y, _ = labels_with_flips(300, (0.0, 0.0), seed=7, slopes=np.array([2.0, 0.0]))
    X[:25], y[:25] = X[:25] * 0.3 + [8.0, 4.0], 0
    fit = Fit(X, y, 0.1)

    def value(v):
        return minus_log_likelihood(v, (0.1, 0.1), X, y)

    assert fit.solution.value <= best_of_many(value, 3, seed=8).fun + 1e-6
    trapped = minimize(value, clean_fit(X, y)[0])
    assert trapped.fun > fit.solution.value + 1.0
    assert abs(fit.theta[0, 1] - 2.0) < 3 * fit.errors[1]
    assert fit.wrong(X, y)[:25].min() > 0.95


@pytest.mark.parametrize("label_noise", [(0.05, 0.2), "estimate"])
def test_coefficients_and_rates_are_recovered_within_their_errors(label_noise):
    rates = (0.1, 0.1) if label_noise == "estimate" else label_noise
    X, y, wrong = labels_with_flips(20_000, rates, seed=10)
    fit = Fit(X, y, label_noise)
    truth = np.r_[LEVEL, SLOPES]
    assert (abs(fit.theta[0] - truth) < 3 * fit.errors).all()
    shrunk = clean_fit(X, y)[0]
    assert shrunk[1] < 1.0  # where the slope is 1.5
    if label_noise == "estimate":
        assert abs(fit.rate - 0.1) < 3 * fit.rate_error
        assert fit.rate_error < 0.02
    found = fit.wrong(X, y)
    assert found.mean() == pytest.approx(wrong.mean(), abs=0.015)
    # Among the rows given nine chances in ten or so, nine in ten are wrong.
    likely = found > 0.85
    assert wrong[likely].mean() == pytest.approx(found[likely].mean(), abs=0.07)


@pytest.mark.slow
def test_standard_errors_are_the_spread_of_estimates():
    scores = []
    for seed in range(25):
        X, y, _ = labels_with_flips(1500, (0.1, 0.1), seed, slopes=np.array([2.0]))
        fit = Fit(X, y, "estimate")
        scores.append([(fit.theta[0, 1] - 2.0) / fit.errors[1], (fit.rate - 0.1) / fit.rate_error])
    spread = np.std(scores, axis=0)
    assert (spread > 0.7).all()
    assert (spread < 1.4).all()
    assert (abs(np.mean(scores, axis=0)) < 0.6).all()


def test_three_classes_are_recovered_within_their_errors():
    random = np.random.default_rng(11)
    X = random.standard_normal((20_000, 2))
    truth = np.array([[0.5, 2.0, 0.0], [-0.5, 0.0, 2.0]])
    a = np.column_stack([np.zeros(len(X)), truth[:, 0] + X @ truth[:, 1:].T])
    y = (a + random.gumbel(size=a.shape)).argmax(axis=1)
    flipped = random.random(len(X)) < 0.15
    y[flipped] = (y[flipped] + random.integers(1, 3, flipped.sum())) % 3
    fit = Fit(X, y, 0.15)
    found = (fit.theta[1:] - fit.theta[0]).ravel()
    assert (abs(found - truth.ravel()) < 3.5 * fit.errors).all()
    assert fit.wrong(X, y).mean() == pytest.approx(0.15, abs=0.01)


@pytest.mark.parametrize("information", ["observed", "expected"])
def test_the_profile_has_the_derivatives_of_the_least_over_all_rates(information):
    X, y, _ = labels_with_flips(200, (0.1, 0.1), seed=13)
    prepared, _ = prepared_rows(X, y)
    profile = replace(NoiseProfile.of(prepared.objective), information=information)
    w = np.array([0.3, 1.1, -0.9, 0.2])
    rate = profile.best_rate(w)
    theta = profile.standard.to_user(w[None])[0]
    values = [minus_log_likelihood(theta, (r, r), X, y) for r in (rate - 1e-4, rate, rate + 1e-4)]
    assert values[1] < min(values[0], values[2])
    local = profile(w, "full")
    assert local.value == pytest.approx(values[1], rel=1e-12)
    h, eye = 1e-5, np.eye(4)
    pairs = [(profile(w + h * e, "none"), profile(w - h * e, "none")) for e in eye]
    slopes = [(up.value - down.value) / (2 * h) for up, down in pairs]
    np.testing.assert_allclose(local.gradient, slopes, rtol=1e-6)
    if information == "observed":
        bends = [(up.gradient - down.gradient) / (2 * h) for up, down in pairs]
        np.testing.assert_allclose(local.hessian, bends, rtol=1e-5, atol=1e-5)
    else:
        assert np.linalg.eigvalsh(local.hessian).min() > 0


def test_exchanging_the_classes_changes_signs_and_nothing_else():
    X, y, _ = labels_with_flips(500, (0.1, 0.15), seed=15)
    for rates, exchanged in (((0.05, 0.2), (0.2, 0.05)), ("estimate", "estimate"), (0.1, 0.1)):
        one, other = Fit(X, y, rates), Fit(X, 1 - y, exchanged)
        np.testing.assert_allclose(one.theta, -other.theta, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(one.errors, other.errors, rtol=1e-7)
        if rates == "estimate":
            assert one.rate == pytest.approx(other.rate, rel=1e-8)
            assert one.rate_error == pytest.approx(other.rate_error, rel=1e-7)


def test_exchanging_three_classes_exchanges_their_coefficients():
    random = np.random.default_rng(16)
    X = random.standard_normal((300, 2))
    y = (2 * np.column_stack([np.zeros(300), X]) + random.gumbel(size=(300, 3))).argmax(axis=1)
    order = np.array([2, 0, 1])
    one, other = Fit(X, y, 0.1), Fit(X, order[y], 0.1)
    np.testing.assert_allclose(one.theta, other.theta[order], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("label_noise", [(0.05, 0.2), "estimate"])
def test_a_weight_is_the_row_repeated(label_noise):
    X, y, _ = labels_with_flips(300, (0.05, 0.2), seed=17, slopes=np.array([2.0]))
    times = np.arange(300) % 3 + 1
    weighted = Fit(X, y, label_noise, weight=times)
    repeated = Fit(np.repeat(X, times, axis=0), np.repeat(y, times), label_noise)
    np.testing.assert_allclose(weighted.theta, repeated.theta, rtol=1e-8)
    np.testing.assert_allclose(weighted.errors, repeated.errors, rtol=1e-8)
    assert np.ravel(weighted.rate) == pytest.approx(np.ravel(repeated.rate), rel=1e-8)


@pytest.mark.parametrize("label_noise", [0.1, "estimate"])
def test_units_storage_and_origins_do_not_matter(label_noise):
    X, y, _ = labels_with_flips(300, (0.1, 0.1), seed=18)
    scale, shift = np.array([1e-80, 1.0, 1e80]), np.array([20.0, -3.0, 0.0])
    plain, moved = Fit(X, y, label_noise), Fit((X + shift) * scale, y, label_noise)
    np.testing.assert_allclose(moved.theta[0, 1:] * scale, plain.theta[0, 1:], rtol=1e-6)
    assert moved.rate == pytest.approx(plain.rate, rel=1e-6)
    thin = Fit(sparse.csr_array(X), y, label_noise)
    np.testing.assert_allclose(thin.theta, plain.theta, rtol=1e-7)


@pytest.mark.parametrize("label_noise", [0.1, "estimate"])
def test_many_rows_start_from_some_of_them_and_end_at_the_same_optimum(label_noise):
    X, y, _ = labels_with_flips(40_000, (0.1, 0.1), seed=19)
    fit = Fit(X, y, label_noise)
    assert fit.solution.trace[0].row_fraction < 1
    rate = fit.rate

    def value(v):
        return minus_log_likelihood(v, (rate, rate), X, y)

    h = 1e-4
    slopes = [
        (value(fit.theta[0] + h * e) - value(fit.theta[0] - h * e)) / (2 * h) for e in np.eye(4)
    ]
    assert np.sqrt(np.square(slopes * fit.errors).sum()) < 1e-3
    if label_noise == "estimate":
        up, down = (minus_log_likelihood(fit.theta[0], (r, r), X, y) for r in (rate + h, rate - h))
        assert abs(up - down) / (2 * h) * fit.rate_error < 1e-3


def test_a_prior_holds_the_coefficients():
    X, y, _ = labels_with_flips(100, (0.1, 0.1), seed=20, slopes=np.array([2.0, -1.0]))
    fit = Fit(X, y, 0.1, prior=3.0)
    rough = best_of_many(
        lambda v: minus_log_likelihood(v, (0.1, 0.1), X, y) + 1.5 * (v[1:] @ v[1:]), 3, seed=21
    )
    np.testing.assert_allclose(fit.theta[0], rough.x, atol=1e-4)
    assert fit.solution.value == pytest.approx(rough.fun, abs=1e-8)


def test_an_estimated_rate_is_a_parameter_like_others():
    X, y, _ = labels_with_flips(500, (0.1, 0.1), seed=22)
    known, estimated = Fit(X, y, 0.1), Fit(X, y, "estimate")
    assert estimated.inference.n_parameters == known.inference.n_parameters + 1
    goodness = estimated.inference.goodness
    assert goodness.log_likelihood == pytest.approx(-estimated.solution.value, rel=1e-10)
    assert goodness.log_likelihood >= known.inference.goodness.log_likelihood
    assert goodness.aic == pytest.approx(2 * (5 + estimated.solution.value), rel=1e-10)


def test_profile_intervals_let_the_rate_follow():
    """At an end of the interval the best fit with that slope, and any rate, is worse by 1.92."""
    X, y, _ = labels_with_flips(400, (0.1, 0.1), seed=23, slopes=np.array([2.0]))
    fit = Fit(X, y, "estimate")
    low, high, _ = fit.inference.profile(0.95)[1]
    rise = 3.841458820694124 / 2
    for end in (low, high):
        best = minimize(
            lambda v, end=end: minus_log_likelihood(
                np.array([v[0], end]), (0.5 * expit(v[1]),) * 2, X, y
            ),
            [fit.theta[0, 0], -2.0],
        )
        assert best.fun - fit.solution.value == pytest.approx(rise, abs=1e-4)
