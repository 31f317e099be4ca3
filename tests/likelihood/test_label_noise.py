"""Labels that may be wrong: the rates at which they are, and whose label it is (4.117)."""

from functools import partial

import mpmath as mp
import numpy as np
import pytest
from losses_registry import noisy
from scipy.optimize import minimize
from scipy.special import expit, softmax

from posteriori.errors import ParameterError
from posteriori.likelihood.logistic import LogisticLoss
from posteriori.likelihood.noise import NoisyClassLoss, NoisyLogisticLoss
from posteriori.likelihood.softmax import SoftmaxLoss

A = np.array([-1e4, -700.0, -40.0, -6.0, -1.1, 0.3, 2.0, 9.0, 40.0, 700.0, 1e4])
FLIPS = [(0.1, 0.05), (1e-3, 0.3), (0.2, 0.2)]
T3 = np.array([[0.8, 0.15, 0.05], [0.0, 0.9, 0.1], [0.3, 0.3, 0.4]])
every_flip = pytest.mark.parametrize("flips", FLIPS)


def value(t, a, first, second):
    """-ln p(t|a) from the definition."""
    return -t * noisy(1 - second, first, a) - (1 - t) * noisy(second, 1 - first, a)


def rows():
    a, t = np.meshgrid(A, [0.0, 1.0, 0.3])
    return a.ravel(), t.ravel()


def partials(flips, order):
    """A derivative in (a, ε₀, ε₁) of all rows."""
    with mp.workdps(60):
        points = [(mp.mpf(a), *map(mp.mpf, flips), t) for a, t in zip(*rows(), strict=True)]
        return [float(mp.diff(partial(value, t), point, order)) for *point, t in points]


@every_flip
def test_flip_gradient_is_the_derivative_in_both_rates(flips):
    found = NoisyLogisticLoss(*flips).flip_gradient(*rows())
    for i, order in enumerate([(0, 1, 0), (0, 0, 1)]):
        np.testing.assert_allclose(found[:, i], partials(flips, order), 1e-12, 1e-40)


@every_flip
def test_flip_curvature_is_the_second_derivative_in_both_rates(flips):
    found = NoisyLogisticLoss(*flips).flip_curvature(*rows())
    for (i, j), order in {(0, 0): (0, 2, 0), (0, 1): (0, 1, 1), (1, 1): (0, 0, 2)}.items():
        np.testing.assert_allclose(found[:, i, j], partials(flips, order), 1e-12, 1e-40)
        np.testing.assert_array_equal(found[:, i, j], found[:, j, i])


@every_flip
def test_flip_cross_is_the_mixed_derivative(flips):
    found = NoisyLogisticLoss(*flips).flip_cross(*rows())
    for i, order in enumerate([(1, 1, 0), (1, 0, 1)]):
        np.testing.assert_allclose(found[:, i], partials(flips, order), 1e-12, 1e-40)


@every_flip
def test_expected_score_of_the_rates_is_zero(flips):
    loss = NoisyLogisticLoss(*flips)
    a = np.linspace(-8, 8, 17)
    mean = loss.mean(a)[:, None]
    score = mean * loss.flip_gradient(a, np.ones(17)) + (1 - mean) * loss.flip_gradient(a, 0 * a)
    np.testing.assert_allclose(score, 0, atol=1e-14)


@every_flip
def test_wrong_labels_are_found_by_bayes(flips):
    first, second = flips
    loss, a = NoisyLogisticLoss(*flips), np.linspace(-5, 5, 11)
    p = expit(a)
    joint = {1: (first * (1 - p), (1 - second) * p), 0: (second * p, (1 - first) * (1 - p))}
    for t, (wrong, right) in joint.items():
        found = loss.wrong_label_probability(a, np.full(11, float(t)))
        np.testing.assert_allclose(found, wrong / (wrong + right), rtol=1e-13)
    half = loss.wrong_label_probability(a, np.full(11, 0.5))
    sides = [loss.wrong_label_probability(a, np.full(11, t)) for t in (0.0, 1.0)]
    np.testing.assert_allclose(half, np.mean(sides, axis=0), rtol=1e-13)


def test_without_noise_no_label_is_wrong_and_the_loss_is_logistic():
    loss, (a, t) = NoisyLogisticLoss(0.0, 0.0), rows()
    plain = LogisticLoss()
    for name in ("value", "gradient", "curvature"):
        found, expected = getattr(loss, name)(a, t), getattr(plain, name)(a, t)
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-16)
    assert (loss.wrong_label_probability(a, t) == 0).all()
    assert loss.convex
    assert not NoisyLogisticLoss(0.0, 1e-9).convex


def test_outliers_lose_their_pull():
    loss = NoisyLogisticLoss(0.1, 0.02)
    a, t = np.array([-1e4, 1e4]), np.array([1.0, 0.0])
    np.testing.assert_allclose(loss.value(a, t), -np.log([0.1, 0.02]), rtol=1e-15)
    assert loss.gradient(a, t).tolist() == [0.0, 0.0]
    np.testing.assert_allclose(loss.wrong_label_probability(a, t), 1, rtol=1e-15)


def test_rates_are_recovered_from_labels():
    random = np.random.default_rng(0)
    a = 3 * random.standard_normal(40_000)
    truth = random.random(len(a)) < expit(a)
    flip = np.where(truth, 0.12, 0.05)
    t = (truth ^ (random.random(len(a)) < flip)).astype(float)

    def objective(flips):
        loss = NoisyLogisticLoss(*flips)
        return loss.value(a, t).sum(), loss.flip_gradient(a, t).sum(axis=0)

    found = minimize(objective, [0.2, 0.2], jac=True, bounds=[(1e-6, 0.49)] * 2).x
    spread = np.linalg.inv(NoisyLogisticLoss(*found).flip_curvature(a, t).sum(axis=0))
    errors = np.sqrt(np.diag(spread))
    assert (errors < 0.005).all()
    assert (abs(found - [0.05, 0.12]) < 3 * errors).all()


def test_means_beyond_the_flips_have_no_activation():
    found = NoisyLogisticLoss(0.1, 0.2).activation(np.array([0.05, 0.1, 0.45, 0.8, 0.9]))
    assert np.isnan(found).tolist() == [True, False, False, False, True]
    np.testing.assert_allclose(found[1:4], [-np.inf, 0.0, np.inf], atol=1e-15)


@pytest.mark.parametrize("flips", [(-0.1, 0.2), (0.5, 0.5), (0.0, np.nan), (1.2, 0.0)])
def test_flips_that_cannot_be_are_an_error(flips):
    with pytest.raises(ParameterError, match="flipped with probabilities"):
        NoisyLogisticLoss(*flips)


def test_two_classes_with_a_transition_matrix_are_the_binary_case():
    first, second = 0.1, 0.25
    binary = NoisyLogisticLoss(first, second)
    classes = NoisyClassLoss([[1 - first, first], [second, 1 - second]])
    margin, t = np.linspace(-9, 9, 13), np.linspace(0, 1, 13)
    a, T = np.column_stack([np.zeros(13), margin]), np.column_stack([1 - t, t])
    same = partial(np.testing.assert_allclose, rtol=1e-10, atol=1e-15)
    same(classes.value(a, T), binary.value(margin, t))
    same(classes.gradient(a, T)[:, 1], binary.gradient(margin, t))
    same(classes.curvature(a, T)[:, 1, 1], binary.curvature(margin, t))
    same(classes.information(a)[:, 1, 1], binary.information(margin))
    wrong = binary.wrong_label_probability(margin, t)
    same(classes.wrong_label_probability(a, T), wrong)


def test_a_transition_that_changes_nothing_is_the_softmax():
    random = np.random.default_rng(1)
    a, t = 5 * random.standard_normal((20, 4)), random.dirichlet(np.ones(4), 20)
    noisy_loss, plain = NoisyClassLoss(np.eye(4)), SoftmaxLoss()
    same = partial(np.testing.assert_allclose, rtol=1e-12, atol=1e-15)
    same(noisy_loss.value(a, t), plain.value(a, t))
    same(noisy_loss.gradient(a, t), plain.gradient(a, t))
    same(noisy_loss.curvature(a, t), plain.curvature(a, t))
    same(noisy_loss.information(a), plain.information(a))
    assert (noisy_loss.wrong_label_probability(a, t) == 0).all()


def test_true_classes_are_found_by_bayes():
    a = np.array([[0.3, -1.0, 2.0], [1.0, 1.0, -4.0]])
    joint = softmax(a, axis=1)[:, :, None] * T3
    loss = NoisyClassLoss(T3)
    given = joint / joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(loss.true_class_probabilities(a), given, rtol=1e-13)
    label = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    wrong = [1 - given[0, 1, 1], 1 - given[1, 2, 2]]
    np.testing.assert_allclose(loss.wrong_label_probability(a, label), wrong, rtol=1e-13)


def test_transitions_that_never_happen_stay_in_log_space():
    loss = NoisyClassLoss([[1.0, 0.0], [0.5, 0.5]])
    a, t = np.array([[0.0, -1e4]]), np.array([[0.0, 1.0]])
    np.testing.assert_allclose(loss.value(a, t), 1e4 + np.log(2), rtol=1e-15)
    np.testing.assert_allclose(loss.gradient(a, t), [[1.0, -1.0]], rtol=1e-15)


def test_a_label_that_nothing_gets_is_impossible():
    loss = NoisyClassLoss([[1.0, 0.0], [1.0, 0.0]])
    a = np.array([[0.2, 0.7]])
    assert loss.value(a, np.array([[0.0, 1.0]])) == np.inf
    np.testing.assert_allclose(loss.value(a, np.array([[1.0, 0.0]])), 0, atol=1e-15)
    np.testing.assert_allclose(loss.information(a), 0, atol=1e-15)
    np.testing.assert_allclose(loss.gradient(a, np.array([[1.0, 0.0]])), 0, atol=1e-15)


@pytest.mark.parametrize(
    ("transition", "words"),
    [
        (np.ones((2, 3)) / 3, "a row and a column for each class"),
        ([[1.1, -0.1], [0.0, 1.0]], "no negative entry"),
        ([[0.9, 0.1], [0.2, 0.7]], "Row 1 of the transition matrix sums to 0.9"),
    ],
)
def test_transitions_that_cannot_be_are_an_error(transition, words):
    with pytest.raises(ParameterError, match=words):
        NoisyClassLoss(transition)
