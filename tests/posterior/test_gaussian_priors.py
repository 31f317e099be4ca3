"""Priors as users write them: numbers, vectors, matrices, units, and what is refused."""

import re

import numpy as np
import pytest

from posteriori import GLM, LogisticRegression
from posteriori.design.standardise import Standard
from posteriori.errors import ParameterError
from posteriori.posterior.priors import GaussianPrior, read_prior

STANDARD = Standard(np.array([2.0, -1.0]), np.array([4.0, 0.5]), True)
THETA = np.array([[0.3, 1.0, -2.0]])
A = np.array([[2.0, 0.1, 0.0], [0.1, 1.0, 0.3], [0.0, 0.3, 4.0]])
ENERGIES = {  # prior, ½(θ - m)ᵀA(θ - m) at θ in the user's units, whether it is proper for slopes
    "none": (None, 0.0, False),
    "a precision of every slope": (3.0, 0.5 * 3.0 * (1.0 + 4.0), True),
    "a precision a column": (GaussianPrior([1.0, 5.0], [0.5, 0.0]), 0.5 * (0.25 + 20.0), True),
    "one column": (GaussianPrior([1.0, 0.0]), 0.5, False),
    "one direction": (GaussianPrior(np.ones((2, 2))), 0.5, False),
    "the intercept": (GaussianPrior(0.0, 0.0, 2.0, 0.1), 0.04, False),
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


@pytest.mark.parametrize("model", [LogisticRegression, GLM])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"precision": "a"}, "precision of the prior, 'a', is not made of real numbers"),
        ({"precision": np.inf}, "precision of the prior is not finite"),
        ({"precision": -1}, "precision of the prior is negative"),
        ({"precision": [1, 2, 3]}, "precision of the prior has 3 numbers, but there are 2 columns"),
        ({"precision": [[1.0, 2.0], [0.0, 1.0]]}, "not symmetric"),
        ({"precision": [[1.0, 2.0], [2.0, 1.0]]}, "eigenvalues"),
        ({"precision": np.eye(5)}, "shape (5, 5)"),
        ({"precision": np.eye(3), "intercept_precision": 1.0}, "given twice"),
        ({"mean": "a"}, "mean of the prior, 'a', is not made of real numbers"),
        ({"mean": [1.0]}, "has 1 numbers"),
        ({"mean": [0.0, np.nan]}, "of the prior must be a finite number, or one for each of the 2"),
        ({"intercept_mean": None}, "intercept_mean=None is not a mean. Use a finite number."),
        ({"intercept_precision": -1}, "intercept_precision=-1 is not a precision. Use a finite"),
        ({"units": "metric"}, "units='metric' is not understood. Use 'original' or 'standardised'"),
    ],
    ids=str,
)
def test_an_argument_of_a_prior_that_cannot_be_used_is_named(model, given, message):
    with pytest.raises(ParameterError, match=re.escape(message)):
        model(prior=GaussianPrior(**given)).fit([[0.0, 1.0], [1.0, 0.0], [2.0, 5.0]], [0, 1, 0])
