"""The curvature of the probit for hard labels, against 120 digits out to margins of ±1e4."""

import mpmath as mp
import numpy as np
import pytest

from posteriori.likelihood.probit import ProbitLoss
from posteriori.likelihood.sigmoids import Probit

MARGINS = np.concatenate(
    [
        np.linspace(-8.0, 37.0, 721),
        np.linspace(-4.2, -3.8, 81),
        -(10.0 ** np.linspace(0.5, 4.0, 81)),
        10.0 ** np.linspace(-12.0, 1.5, 61),
    ]
)


def exact(margin):
    """r(r + m) with r = φ(m)/Φ(m)."""
    with mp.workdps(120):
        m = mp.mpf(float(margin))
        r = mp.exp(-m * m / 2) / mp.sqrt(2 * mp.pi) / (mp.erfc(-m / mp.sqrt(2)) / 2)
        return float(r * (r + m))


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_the_curvature_of_hard_labels_is_exact(label):
    sign = 2 * label - 1
    found = ProbitLoss().curvature(sign * MARGINS, np.full(len(MARGINS), label))
    np.testing.assert_allclose(found, [exact(m) for m in MARGINS], rtol=1e-13)


def test_certain_labels_have_no_curvature():
    far = np.array([40.0, 1e4, 1e200, np.inf])
    assert (ProbitLoss().curvature(far, np.ones(4)) == 0.0).all()
    assert (ProbitLoss().curvature(-far, np.zeros(4)) == 0.0).all()


def test_hard_and_soft_labels_have_the_same_curvature():
    a = np.linspace(-9.0, 9.0, 181)
    t = np.tile([0.0, 1.0], 91)[:181]
    rise, fall = Probit().bends(a)
    np.testing.assert_allclose(ProbitLoss().curvature(a, t), np.where(t, rise, fall), rtol=1e-13)


def test_activations_are_left_as_they_were():
    a, t = np.array([0.5, -7.0, 2.0]), np.array([1.0, 1.0, 0.0])
    before = a.copy()
    ProbitLoss().curvature(a, t)
    assert (a == before).all()
