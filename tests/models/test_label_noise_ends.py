"""Labels that may be wrong: what is not there, cannot be told, or must not be asked for."""

import numpy as np
import pytest
from noisy_fits import Fit, clean_fit, labels_with_flips, prepared_rows
from scipy.special import expit, softmax

from posteriori.errors import (
    IdentifiabilityWarning,
    InferenceError,
    ParameterError,
    SeparationWarning,
)
from posteriori.likelihood.binary_losses import NoisyLogisticLoss
from posteriori.likelihood.softmax import NoisyClassLoss
from posteriori.models.label_noise import (
    MOST,
    NoiseProfile,
    read_label_noise,
    uniform_transition,
    wrong_label_probability,
)
from posteriori.solve.newton import newton


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


def test_a_small_rate_is_close_to_none():
    X, y, _ = labels_with_flips(400, (0.0, 0.0), seed=0, slopes=np.array([1.0, 2.0]))
    np.testing.assert_allclose(Fit(X, y, 1e-10).theta, clean_fit(X, y), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(("sign", "expected"), [(1.0, 0.0), (-1.0, MOST)])
def test_the_best_rate_may_lie_at_either_end(sign, expected):
    """With coefficients that say the opposite of the labels, the more are wrong, the better."""
    X, y, _ = labels_with_flips(200, (0.0, 0.0), seed=0)
    prepared, _ = prepared_rows(X, y)
    w = newton(prepared.levels, prepared.start).parameters
    assert NoiseProfile.of(prepared.objective).best_rate(sign * w) == expected


def test_wrong_labels_are_told_by_bayes_rule():
    """p(wrong|label 1) = ε₀ p(C₁) / (ε₀ p(C₁) + (1 - ε₁) p(C₂)), and likewise for label 0."""
    a, rates = np.array([[-1.0], [2.0]]), (0.05, 0.2)
    s = expit(a[:, 0])
    as_second = 0.05 * (1 - s) / (0.05 * (1 - s) + 0.8 * s)
    as_first = 0.2 * s / (0.2 * s + 0.95 * (1 - s))
    loss, classes = NoisyLogisticLoss(*rates), np.array(["no", "yes"])
    for label, expected in (("yes", as_second), ("no", as_first)):
        found = wrong_label_probability(loss, a, [label] * 2, classes)
        np.testing.assert_allclose(found, expected, rtol=1e-13)
    soft = wrong_label_probability(loss, a, np.array([[0.3, 0.7]] * 2), classes)
    np.testing.assert_allclose(soft, 0.7 * as_second + 0.3 * as_first, rtol=1e-13)


def test_wrong_labels_of_three_classes_are_told_by_bayes_rule():
    a = np.array([[0.0, 1.0, -1.0]])
    p = softmax(a, axis=1)[0]
    loss = NoisyClassLoss(uniform_transition(0.2, 3))
    seen = 0.8 * p[2] + 0.1 * (p[0] + p[1])
    found = wrong_label_probability(loss, a, [2], np.arange(3))
    assert found[0] == pytest.approx(0.1 * (p[0] + p[1]) / seen, rel=1e-13)


def test_robust_errors_with_an_estimated_rate_are_an_error_that_says_so():
    X, y, _ = labels_with_flips(300, (0.1, 0.1), seed=24)
    with pytest.raises(InferenceError, match="rate of wrong labels that is estimated"):
        Fit(X, y, "estimate").inference.covariance("robust")
    assert np.isfinite(Fit(X, y, 0.1).inference.covariance("robust")).all()


def test_a_rate_that_the_data_cannot_tell_is_a_warning():
    """Two groups have two probabilities, whatever the rate: no data tell it from the rest."""
    X = np.repeat([[0.0], [1.0]], 50, axis=0)
    y = np.concatenate([np.repeat([0, 1], [35, 15]), np.repeat([0, 1], [10, 40])])
    with pytest.warns(IdentifiabilityWarning, match=r"cannot tell how many labels are wrong.*W206"):
        fit = Fit(X, y, "estimate")
    s = expit(fit.theta[0, 0] + X[:, 0] * fit.theta[0, 1])
    p = fit.rate + (1 - 2 * fit.rate) * s
    np.testing.assert_allclose(p[[0, 50]], [0.3, 0.8], rtol=1e-5)


@pytest.mark.parametrize("label_noise", [0.1, "estimate"])
def test_classes_that_can_be_separated_but_for_wrong_labels_are_a_warning(label_noise):
    X = np.random.default_rng(25).standard_normal((300, 2))
    y = (X[:, 0] > 0).astype(int)
    y[::11] = 1 - y[::11]
    with pytest.warns(SeparationWarning) as caught:
        fit = Fit(X, y, label_noise)
    assert (
        "Apart from rows whose label is taken for wrong, the classes can be separated, or almost: "
        "the coefficients of columns 0, 1 run to infinity"
    ) in str(caught[0].message)
    assert fit.wrong(X, y)[::11].min() > 0.5
    assert fit.errors[1] == np.inf
    assert Fit(X, y, label_noise, prior=1.0).errors.max() < 1.0


@pytest.mark.parametrize(
    ("label_noise", "n_classes", "message"),
    [
        ("guess", 2, "'guess' is not understood"),
        ("estimate", 3, "for two classes; y has 3"),
        (0.5, 2, "less than 0.5"),
        (0.7, 3, "less than 0.667"),
        (-0.1, 2, "out of range"),
        (float("nan"), 2, "out of range"),
        (True, 2, "not a probability"),
        (None, 2, "not a probability"),
        ((0.1, "x"), 2, "not a probability"),
        ((0.1, 0.2), 3, "2 rates; y has 3 classes"),
        ((0.1, 0.2, 0.3), 2, "3 rates; y has 2 classes"),
        ((0.6, 0.5), 2, r"label_noise=\(0.6, 0.5\) is out of range"),
        (np.array(0.1), 2, "not a probability"),
        (np.ones(3), 2, "3 rates; y has 2 classes"),
        ([[0.1], [0.2, 0.3]], 2, "not a probability"),
    ],
)
def test_rates_that_cannot_be_are_errors_that_say_so(label_noise, n_classes, message):
    with pytest.raises(ParameterError, match=message):
        read_label_noise(label_noise, n_classes)


@pytest.mark.parametrize("label_noise", [0, 0.0, (0.0, 0.0), np.float64(0.0)])
def test_rates_of_zero_are_no_noise(label_noise):
    assert read_label_noise(label_noise, 2) is None


def test_transitions_are_uniform():
    np.testing.assert_allclose(
        uniform_transition(0.3, 4), np.where(np.eye(4) == 1, 0.7, 0.1), rtol=1e-15
    )
