"""Laws of the losses with an activation a class, against mpmath out to activations of ±1e4."""

import mpmath as mp
import numpy as np
import pytest
from scipy.special import softmax

from posteriori.likelihood.logistic import LogisticLoss
from posteriori.likelihood.noise import NoisyClassLoss
from posteriori.likelihood.softmax import SoftmaxLoss, log_probabilities, probabilities

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
        [-1e4, 1e4, -3.0],
        [1e4, 1e4 - 1.5, 1e4 - 4.0],
    ]
)
TARGETS = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.2, 0.5, 0.3]])


def rows():
    """Each row of activations with each target."""
    a, t = np.repeat(ACTIVATIONS, len(TARGETS), axis=0), np.tile(TARGETS, (len(ACTIVATIONS), 1))
    return a, t


def exact(name, a, t, digits=9000):
    """-Σ t ln q, its gradient and its second derivatives, from the definitions at many digits."""
    with mp.workdps(digits):
        e = [mp.exp(mp.mpf(v) - mp.mpf(max(a))) for v in a]
        p = [v / mp.fsum(e) for v in e]
        T = [[mp.mpf(v) for v in row] for row in MATRICES[name]]
        q = [mp.fsum(p[j] * T[j][k] for j in range(3)) for k in range(3)]
        r = [[p[j] * T[j][k] / q[k] for k in range(3)] for j in range(3)]
        step = [[r[j][k] - p[j] for k in range(3)] for j in range(3)]
        value = -mp.fsum(t[k] * mp.log(q[k]) for k in range(3) if t[k])
        gradient = [-mp.fsum(t[k] * step[j][k] for k in range(3)) for j in range(3)]
        information = [
            [mp.fsum(q[k] * step[i][k] * step[j][k] for k in range(3)) for j in range(3)]
            for i in range(3)
        ]
        return float(value), np.array(gradient, float), np.array(information, float)


@pytest.mark.slow
@every_loss
def test_value_gradient_and_information_are_exact(name):
    loss, (a, t) = LOSSES[name], rows()
    found = [exact(name, *row) for row in zip(a, t, strict=True)]
    value, gradient, information = zip(*found, strict=True)
    np.testing.assert_allclose(loss.value(a, t), value, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(loss.gradient(a, t), gradient, rtol=1e-12, atol=5e-16)
    np.testing.assert_allclose(loss.information(a), information, rtol=1e-12, atol=5e-16)


@every_loss
def test_gradient_is_the_derivative_of_the_value(name):
    loss, (a, t) = LOSSES[name], rows()
    for j, unit in enumerate(1e-5 * np.eye(3)):
        slope = (loss.value(a + unit, t) - loss.value(a - unit, t)) / 2e-5
        near = abs(a).max(axis=1) < 100
        np.testing.assert_allclose(loss.gradient(a, t)[near, j], slope[near], atol=1e-8)


@every_loss
def test_curvature_is_the_derivative_of_the_gradient(name):
    loss, (a, t) = LOSSES[name], rows()
    near = abs(a).max(axis=1) < 100
    a, t = a[near], t[near]
    for j, unit in enumerate(1e-5 * np.eye(3)):
        slope = (loss.gradient(a + unit, t) - loss.gradient(a - unit, t)) / 2e-5
        np.testing.assert_allclose(loss.curvature(a, t)[:, :, j], slope, atol=1e-9)


@every_loss
def test_information_is_the_expected_curvature(name):
    loss, a = LOSSES[name], ACTIVATIONS[:3]
    q = softmax(a, axis=1) @ MATRICES[name]
    labels = [np.tile(label, (len(a), 1)) for label in np.eye(3)]
    expected = sum(q[:, k, None, None] * loss.curvature(a, t) for k, t in enumerate(labels))
    np.testing.assert_allclose(loss.information(a), expected, rtol=1e-11, atol=1e-15)


@every_loss
def test_a_shift_of_all_activations_changes_nothing(name):
    loss, (a, t) = LOSSES[name], rows()
    np.testing.assert_allclose(loss.value(a + 64, t), loss.value(a, t), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(loss.gradient(a, t).sum(axis=1), 0, atol=1e-15)
    np.testing.assert_allclose(loss.curvature(a, t).sum(axis=2), 0, atol=1e-15)


@every_loss
def test_information_is_positive_semidefinite(name):
    found = LOSSES[name].information(ACTIVATIONS)
    assert np.linalg.eigvalsh(found).min() > -1e-15
    np.testing.assert_array_equal(found, found.swapaxes(1, 2))


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


@every_loss
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("own", [0.0, 6.0, 14.0])
def test_sums_of_activations_that_lie_together_are_exact(name, weighted, own):
    random = np.random.default_rng(7)
    t = np.eye(3)[random.integers(0, 3, 60)]
    a = np.asfortranarray(random.uniform(-7, 7, (60, 3)) * (own == 0) + own * t)
    t[:4] = TARGETS[-1] if own == 0 else t[:4]
    weight = random.uniform(0.5, 2, len(a)) if weighted else np.ones(len(a))
    told = (exact(name, *row, digits=60) for row in zip(a, t, strict=True))
    value, slope, _ = zip(*told, strict=True)
    total, gradient = LOSSES[name].sum_and_gradient(
        a.copy("K"), np.asfortranarray(t), weight if weighted else None
    )
    assert total == pytest.approx(weight @ value, rel=2e-13)
    np.testing.assert_allclose(gradient, weight[:, None] * slope, rtol=1e-12, atol=1e-15)


def test_two_classes_are_the_logistic_case():
    margin, t = np.array([-800.0, -3.0, 0.0, 1.5, 40.0, 1e4]), np.array([1.0, 0, 0.4, 1, 1, 0])
    a, T = np.column_stack([np.zeros(6), margin]), np.column_stack([1 - t, t])
    softmax_loss, logistic = SoftmaxLoss(), LogisticLoss()
    np.testing.assert_allclose(softmax_loss.value(a, T), logistic.value(margin, t), rtol=1e-14)
    found = softmax_loss.gradient(a, T)[:, 1]
    np.testing.assert_allclose(found, logistic.gradient(margin, t), rtol=1e-14, atol=2e-16)
    found = softmax_loss.information(a)[:, 1, 1]
    np.testing.assert_allclose(found, logistic.information(margin), rtol=1e-14)


@pytest.mark.parametrize("K", [2, 5, 40])
def test_many_classes_agree_with_scipy(K):
    a = 20 * np.random.default_rng(K).standard_normal((50, K))
    np.testing.assert_allclose(probabilities(a), softmax(a, axis=1), rtol=1e-12)
    np.testing.assert_allclose(np.exp(log_probabilities(a)), softmax(a, axis=1), rtol=1e-12)


@every_loss
def test_no_finite_activation_is_not_a_number(name):
    loss = LOSSES[name]
    a = np.array([[1.7e308, -1.7e308, 0.0], [1e200, 1e200, -1e200], [0.0, -0.0, 1e-300]])
    for t in np.eye(3):
        t = np.tile(t, (3, 1))
        for found in (loss.value(a, t), loss.gradient(a, t), loss.curvature(a, t)):
            assert not np.isnan(found).any()
        total, gradient = loss.sum_and_gradient(a.copy(), t, None)
        assert not np.isnan(total)
        assert not np.isnan(gradient).any()
    assert not np.isnan(loss.information(a)).any()
