"""Laws of the losses with an activation a class, against mpmath out to activations of ±1e3."""

import mpmath as mp
import numpy as np
import pytest
from oracle import doubles
from oracle import exact as many_digits

from posteriori.likelihood.binary_losses import LogisticLoss, NoisyLogisticLoss
from posteriori.likelihood.softmax import (
    NoisyClassLoss,
    SoftmaxLoss,
    log_normaliser,
    log_probabilities,
    probabilities,
)

TRANSITION = np.array([[0.8, 0.15, 0.05], [0.1, 0.9, 0.0], [0.25, 0.25, 0.5]])
LOSSES = {"softmax": SoftmaxLoss(), "label noise": NoisyClassLoss(TRANSITION)}
MATRICES = {"softmax": np.eye(3), "label noise": TRANSITION}
every_loss = pytest.mark.parametrize("name", LOSSES)

ACTIVATIONS = np.array(
    [
        [0.3, -1.2, 0.8],
        [4.0, 4.0, 4.0],
        [-30.0, 2.0, 9.0],
        [700.0, -700.0, 0.5],
        [-1e3, 1e3, -3.0],
        [1e3, 1e3 - 1.5, 1e3 - 4.0],
    ]
)
TARGETS = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.2, 0.5, 0.3]])


def rows():
    """Each row of activations with each target."""
    a, t = np.repeat(ACTIVATIONS, len(TARGETS), axis=0), np.tile(TARGETS, (len(ACTIVATIONS), 1))
    return a, t


def exact(name, a, t):
    """-Σ t ln q, its gradient and its information, from the definitions at many digits."""
    with mp.workdps(1000):
        e = np.array([mp.exp(mp.mpf(v) - mp.mpf(max(a))) for v in a])
        p, T = e / e.sum(), many_digits(MATRICES[name])
        q = p @ T
        step = p[:, None] * T / q - p[:, None]
        value = -sum(t[k] * mp.log(q[k]) for k in range(3) if t[k])
        return doubles(value), doubles(-step @ t), doubles((step * q) @ step.T)


@every_loss
def test_value_gradient_and_information_are_exact(name):
    loss, (a, t) = LOSSES[name], rows()
    found = [exact(name, *row) for row in zip(a, t, strict=True)]
    value, gradient, information = zip(*found, strict=True)
    np.testing.assert_allclose(loss.value(a, t), value, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(loss.gradient(a, t), gradient, rtol=1e-12, atol=5e-16)
    np.testing.assert_allclose(loss.information(a), information, rtol=1e-12, atol=5e-16)


@every_loss
def test_the_curvature_is_the_derivative_of_the_gradient(name):
    loss, (a, t) = LOSSES[name], rows()
    near = abs(a).max(axis=1) < 100
    a, t = a[near], t[near]
    for j, unit in enumerate(1e-5 * np.eye(3)):
        slope = (loss.gradient(a + unit, t) - loss.gradient(a - unit, t)) / 2e-5
        np.testing.assert_allclose(loss.curvature(a, t)[:, :, j], slope, atol=1e-9)


@every_loss
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("confident", [False, True])
@pytest.mark.parametrize("copies", [0, 1, 20])
def test_sums_are_those_of_the_rows(name, weighted, confident, copies):
    loss = LOSSES[name]
    a, t = (np.tile(v, (copies, 1)) for v in rows())
    if confident:
        a, t = a + 60 * np.eye(3)[t.argmax(axis=1)], np.eye(3)[t.argmax(axis=1)]
        a, t = a[loss.value(a, t) < 1e-3], t[loss.value(a, t) < 1e-3]
    weight = np.random.default_rng(0).uniform(0.5, 2, len(a)) if weighted else None
    ones = np.ones(len(a)) if weight is None else weight
    total, gradient = loss.sum_and_gradient(a.copy(), t, weight)
    assert total == pytest.approx(ones @ loss.value(a, t), rel=1e-12)
    np.testing.assert_allclose(gradient, ones[:, None] * loss.gradient(a, t), rtol=1e-13)


RANDOM = np.random.default_rng(3)
WIDE = np.concatenate(
    [
        RANDOM.normal(size=(6, 4)),
        RANDOM.normal(size=(6, 4), scale=300.0),
        RANDOM.normal(size=(6, 4)) - 1e5,
        RANDOM.normal(size=(6, 4)) + 1e5,
    ]
)


def test_probabilities_and_their_logarithms_are_exact():
    before = WIDE.copy()
    logs = [mp.log(sum(map(mp.exp, many_digits(row)))) for row in WIDE]
    np.testing.assert_allclose(log_normaliser(WIDE), doubles(logs), rtol=1e-14)
    rows = [[a - log for a in many_digits(row)] for row, log in zip(WIDE, logs, strict=True)]
    np.testing.assert_allclose(log_probabilities(WIDE), doubles(rows), rtol=1e-13, atol=1e-15)
    found, expected = probabilities(WIDE), doubles([[mp.exp(a) for a in row] for row in rows])
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-300)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-15)
    np.testing.assert_array_equal(WIDE, before)


def test_a_class_that_cannot_occur_has_probability_zero():
    activation = np.array([[0.0, -np.inf, np.log(3.0)]])
    np.testing.assert_allclose(probabilities(activation), [[0.25, 0.0, 0.75]], rtol=1e-15)
    assert log_probabilities(activation)[0, 1] == -np.inf
    np.testing.assert_allclose(log_normaliser(activation), np.log(4.0), rtol=1e-15)
    target = np.array([[0.0, 0.0, 1.0]])
    total, gradient = SoftmaxLoss().sum_and_gradient(activation.copy(), target, None)
    assert total == pytest.approx(np.log(4 / 3), rel=1e-15)
    np.testing.assert_allclose(gradient, [[0.25, 0.0, -0.25]], rtol=1e-15)


NOISE = NoisyClassLoss([[0.9, 0.1], [0.25, 0.75]])


@pytest.mark.parametrize(
    ("classes", "binary", "far", "rtol"),
    [
        (SoftmaxLoss(), LogisticLoss(), [-800.0, 40.0, 1e4], 1e-14),
        (NOISE, NoisyLogisticLoss(0.1, 0.25), [], 1e-10),
    ],
)
def test_two_classes_are_the_binary_case(classes, binary, far, rtol):
    margin = np.concatenate([np.linspace(-9, 9, 13), far])
    t = np.linspace(0, 1, len(margin))
    a, T = np.column_stack([0 * margin, margin]), np.column_stack([1 - t, t])
    pairs = [
        (classes.value(a, T), binary.value(margin, t)),
        (classes.gradient(a, T)[:, 1], binary.gradient(margin, t)),
        (classes.curvature(a, T)[:, 1, 1], binary.curvature(margin, t)),
        (classes.information(a)[:, 1, 1], binary.information(margin)),
    ]
    if classes is NOISE:
        wrong = (each.wrong_label_probability for each in (classes, binary))
        pairs.append((next(wrong)(a, T), next(wrong)(margin, t)))
    for found, expected in pairs:
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-15)
