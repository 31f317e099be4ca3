"""Priors as users write them: numbers, vectors, matrices, units, and what is refused."""

import numpy as np
import pytest

from posteriori.design.standardise import Standard
from posteriori.errors import ParameterError
from posteriori.posterior.priors import GaussianPrior, read_prior

STANDARD = Standard(np.array([2.0, -1.0]), np.array([4.0, 0.5]), True)
THETA = np.array([[0.3, 1.0, -2.0]])


def energy(prior, theta=THETA):
    """½(θ - m)ᵀA(θ - m) at θ in the user's units."""
    return read_prior(prior, STANDARD).value(STANDARD.from_user(theta))


def test_a_number_is_a_precision_on_every_slope_and_none_on_the_intercept():
    assert energy(3.0) == pytest.approx(0.5 * 3.0 * (1.0 + 4.0), rel=1e-14)
    assert energy(None) == 0.0


def test_a_vector_has_one_precision_a_column():
    prior = GaussianPrior(precision=[1.0, 5.0], mean=[0.5, 0.0])
    assert energy(prior) == pytest.approx(0.5 * (0.25 + 5 * 4.0), rel=1e-14)


def test_the_intercept_has_its_own_precision_and_mean():
    prior = GaussianPrior(precision=0.0, intercept_precision=2.0, intercept_mean=0.1)
    assert energy(prior) == pytest.approx(0.04, rel=1e-13)


def test_a_matrix_with_a_row_more_has_the_intercept_first():
    A = np.array([[2.0, 0.1, 0.0], [0.1, 1.0, 0.3], [0.0, 0.3, 4.0]])
    assert energy(GaussianPrior(precision=A)) == pytest.approx(
        0.5 * THETA[0] @ A @ THETA[0], rel=1e-13
    )


def test_standardised_units_are_for_centred_and_scaled_columns():
    prior = GaussianPrior(precision=2.0, units="standardised")
    assert energy(prior) == pytest.approx(16.0 + 1.0, rel=1e-13)


def test_only_a_prior_that_holds_every_slope_is_proper():
    assert read_prior(1.0, STANDARD).proper
    assert not read_prior(0.0, STANDARD).proper
    assert not read_prior(GaussianPrior(precision=[1.0, 0.0]), STANDARD).proper
    assert not read_prior(GaussianPrior(precision=np.ones((2, 2))), STANDARD).proper


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        ("ridge", "not understood"),
        (True, "not understood"),
        (-1.0, "not a precision"),
        (np.inf, "not a precision"),
        (GaussianPrior(precision=[1.0, 2.0, 3.0]), "has 3 numbers, but there are 2 columns"),
        (GaussianPrior(mean=[1.0]), "has 1 numbers"),
        (GaussianPrior(precision=-1.0), "negative"),
        (GaussianPrior(precision=[[1.0, 2.0], [0.0, 1.0]]), "not symmetric"),
        (GaussianPrior(precision=[[1.0, 2.0], [2.0, 1.0]]), "eigenvalues"),
        (GaussianPrior(precision=np.eye(5)), r"shape \(5, 5\)"),
        (GaussianPrior(precision=np.eye(3), intercept_precision=1.0), "given twice"),
        (GaussianPrior(precision=np.nan), "not finite"),
        (GaussianPrior(mean=np.inf), "finite"),
        (GaussianPrior(units="metric"), "units='metric'"),
    ],
)
def test_what_cannot_be_a_prior_is_named(prior, words):
    with pytest.raises(ParameterError, match=words):
        read_prior(prior, STANDARD)


def test_a_prior_on_the_intercept_holds_no_slope():
    standard = Standard(np.array([3.0, -2.0]), np.array([1.0, 2.0]), True)
    prior = GaussianPrior(precision=[1.0, 0.0], intercept_precision=1.0)
    assert not read_prior(prior, standard).proper
    assert read_prior(GaussianPrior(precision=[1.0, 0.5], intercept_precision=1.0), standard).proper
