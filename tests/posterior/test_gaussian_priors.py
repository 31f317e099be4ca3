"""Priors as users write them: numbers, vectors, matrices, units, and what is refused."""

import numpy as np
import pytest

from posteriori.design.standardise import Standard
from posteriori.errors import ParameterError
from posteriori.posterior.priors import GaussianPrior, read_prior

STANDARD = Standard(np.array([2.0, -1.0]), np.array([4.0, 0.5]), True)
THETA = np.array([[0.3, 1.0, -2.0]])
A = np.array([[2.0, 0.1, 0.0], [0.1, 1.0, 0.3], [0.0, 0.3, 4.0]])
ENERGIES = {  # prior, ½(θ - m)ᵀA(θ - m) at θ in the user's units, whether it holds every slope
    "none": (None, 0.0, False),
    "zero": (0.0, 0.0, False),
    "a precision of every slope": (3.0, 0.5 * 3.0 * (1.0 + 4.0), True),
    "a precision a column": (GaussianPrior([1.0, 5.0], [0.5, 0.0]), 0.5 * (0.25 + 20.0), True),
    "one column": (GaussianPrior([1.0, 0.0]), 0.5, False),
    "one direction": (GaussianPrior(np.ones((2, 2))), 0.5, False),
    "the intercept": (GaussianPrior(0.0, 0.0, 2.0, 0.1), 0.04, False),
    "the intercept, one column": (GaussianPrior([1.0, 0.0], 0.0, 1.0), 0.545, False),
    "the intercept, both columns": (GaussianPrior([1.0, 0.5], 0.0, 1.0), 1.545, True),
    "a matrix with the intercept": (GaussianPrior(A), 0.5 * THETA[0] @ A @ THETA[0], True),
    "standardised columns": (GaussianPrior(2.0, units="standardised"), 16.0 + 1.0, True),
}


@pytest.mark.parametrize("name", ENERGIES)
def test_a_prior_has_the_energy_of_its_definition(name):
    prior, energy, proper = ENERGIES[name]
    penalty = read_prior(prior, STANDARD)
    value, _ = penalty.value_and_gradient(STANDARD.from_user(THETA))
    assert value == pytest.approx(energy, rel=1e-13)
    assert penalty.proper == proper


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
