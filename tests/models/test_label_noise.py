"""Labels that may be wrong: rates that are known or estimated."""

import numpy as np
import pytest
from noisy_fits import (
    Fit,
    best_of_many,
    clean_fit,
    exact_minus_log_likelihood,
    labels_with_flips,
    minus_log_likelihood,
    polished,
)
from oracle import exact
from scipy.optimize import minimize
from scipy.special import expit, softmax

from posteriori import LogisticRegression
from posteriori.errors import (
    IdentifiabilityWarning,
    InferenceError,
    ParameterError,
    SeparationWarning,
)
from posteriori.models.label_noise import (
    read_label_noise,
    uniform_transition,
)
from posteriori.solve.objective import Status


@pytest.mark.parametrize("label_noise", [(0.05, 0.2), "estimate"])
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


def test_three_classes_have_the_optimum_of_their_likelihood():
    random = np.random.default_rng(5)
    X, vectors = random.standard_normal((150, 2)), np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    y = (X @ vectors.T + random.gumbel(size=(150, 3))).argmax(axis=1)
    y[::10] = (y[::10] + 1) % 3
    fit, T = Fit(X, y, 0.1), uniform_transition(0.1, 3)

    def value(v):
        contrasts = np.vstack([np.zeros(3), v.reshape(2, 3)])
        q = softmax(contrasts[:, 0] + X @ contrasts[:, 1:].T, axis=1) @ T
        return -np.log(q[np.arange(150), y]).sum()

    rough = best_of_many(value, 6, seed=6, tries=15)
    assert fit.solution.value == pytest.approx(rough.fun, abs=1e-6)
    np.testing.assert_allclose((fit.theta[1:] - fit.theta[0]).ravel(), rough.x, atol=1e-3)


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


def test_no_wrong_labels_are_estimated_where_the_fit_without_is_best():
    X, y, _ = labels_with_flips(400, (0.0, 0.0), seed=0, slopes=np.array([1.0, 2.0]))
    fit = Fit(X, y, "estimate")
    assert fit.rate == 0.0
    assert fit.rate_error is None
    np.testing.assert_allclose(fit.theta, clean_fit(X, y), rtol=1e-8, atol=1e-10)
    s = expit(fit.theta[0, 0] + X @ fit.theta[0, 1:])
    design = np.column_stack([np.ones(len(X)), X])
    information = design.T @ (design * (s * (1 - s))[:, None])
    np.testing.assert_allclose(fit.inference.covariance(), np.linalg.inv(information), rtol=1e-7)
    np.testing.assert_array_equal(fit.wrong(X, y), np.zeros(len(X)))


def test_robust_errors_with_an_estimated_rate_are_an_error_that_says_so():
    X, y, _ = labels_with_flips(300, (0.1, 0.1), seed=24)
    with pytest.raises(InferenceError, match="rate of wrong labels that is estimated"):
        Fit(X, y, "estimate").inference.covariance("robust")
    assert np.isfinite(Fit(X, y, 0.1).inference.covariance("robust")).all()


def test_a_rate_that_the_data_cannot_tell_is_a_warning():
    """Two groups have two probabilities, whatever the rate: no data tell it from the rest."""
    X = np.repeat([[0.0], [1.0]], 50, axis=0)
    y = np.concatenate([np.repeat([0, 1], [35, 15]), np.repeat([0, 1], [10, 40])])
    with pytest.warns(IdentifiabilityWarning, match=r"how many labels are wrong.*W206"):
        fit = Fit(X, y, "estimate")
    s = expit(fit.theta[0, 0] + X[:, 0] * fit.theta[0, 1])
    p = fit.rate + (1 - 2 * fit.rate) * s
    np.testing.assert_allclose(p[[0, 50]], [0.3, 0.8], rtol=1e-5)


@pytest.mark.parametrize("label_noise", [0.1, "estimate"])
def test_classes_that_can_be_separated_but_for_wrong_labels_are_a_warning(label_noise):
    X = np.random.default_rng(25).standard_normal((300, 2))
    y = (X[:, 0] > 0).astype(int)
    y[::11] = 1 - y[::11]
    with pytest.warns(SeparationWarning, match="Apart from rows .* coefficients of columns 0, 1"):
        fit = Fit(X, y, label_noise)
    assert fit.solution.status is Status.DIVERGED
    assert 10 < abs(fit.theta).max() < 1e6
    assert fit.wrong(X, y)[::11].min() > 0.5
    assert fit.errors[1] == np.inf
    assert Fit(X, y, label_noise, prior=1.0).errors.max() < 1.0


@pytest.mark.parametrize(
    ("label_noise", "n_classes", "message"),
    [
        ("estimate", 3, "for two classes; y has 3"),
        (0.5, 2, "label_noise=0.5 .* less than 0.5"),
        (0.7, 3, "less than 0.667"),
        ((0.6, 0.5), 2, r"label_noise=\(0.6, 0.5\)"),
        ((0.1, 0.2), 3, "in 3 classes"),
        *((wrong, 2, "label_noise=") for wrong in ("guess", -0.1, None, (0.1, "x"), np.ones(3))),
    ],
)
def test_rates_that_cannot_be_are_errors_that_say_so(label_noise, n_classes, message):
    with pytest.raises(ParameterError, match=message):
        read_label_noise(label_noise, n_classes)
    assert read_label_noise((0.0, 0.0), 2) is None


@pytest.mark.parametrize("label_noise", [0.1, (0.1, 0.1)])
def test_wrong_labels_far_out_do_not_determine_the_fit(label_noise):
    X, y, _ = labels_with_flips(300, (0.1, 0.1), seed=3, slopes=np.array([2.0, -1.0]))
    X[:12] *= 30
    y[:12] = X[:12] @ [2.0, -1.0] < 0
    found = Fit(X, y, label_noise).theta[0]
    near = Fit(X[12:], y[12:], label_noise).theta[0]
    np.testing.assert_allclose(found[1:], near[1:], rtol=0.15)
    assert np.sign(clean_fit(X, y)[0, 1:]).tolist() != [1.0, -1.0]


@pytest.mark.parametrize("label_noise", [0.1, (0.05, 0.2), "estimate"])
def test_separable_classes_are_named_and_have_infinite_errors(label_noise):
    X = np.random.default_rng(0).normal(size=(100, 2))
    model = LogisticRegression(label_noise=label_noise)
    with pytest.warns(SeparationWarning, match="coefficients of column.* diverge"):
        model.fit(X, X[:, 0] > 0)
    assert not model.converged_
    assert abs(model.coef_).max() < 1e5
    assert np.isinf(model.tidy()["std_error"]).any()
