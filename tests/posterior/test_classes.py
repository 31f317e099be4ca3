"""From log joint densities to probabilities, against mpmath."""

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracle import doubles, exact

from posteriori.posterior.classes import log_normaliser, log_probabilities, probabilities

RANDOM = np.random.default_rng(3)
ACTIVATIONS = np.concatenate(
    [
        RANDOM.normal(size=(6, 4)),
        RANDOM.normal(size=(6, 4), scale=300.0),
        RANDOM.normal(size=(6, 4)) - 1e5,
        RANDOM.normal(size=(6, 4)) + 1e5,
    ]
)


def exact_log_normaliser(row):
    return mp.log(sum(map(mp.exp, exact(row))))


def test_the_log_normaliser_is_the_log_of_the_sum_of_exponentials():
    expected = doubles([exact_log_normaliser(row) for row in ACTIVATIONS])
    assert_allclose(log_normaliser(ACTIVATIONS), expected, rtol=1e-14)


def test_probabilities_are_the_normalised_exponentials():
    expected = [[mp.exp(a - exact_log_normaliser(row)) for a in exact(row)] for row in ACTIVATIONS]
    assert_allclose(probabilities(ACTIVATIONS), doubles(expected), rtol=1e-13, atol=1e-300)


def test_log_probabilities_are_exact_where_probabilities_underflow():
    expected = [[a - exact_log_normaliser(row) for a in exact(row)] for row in ACTIVATIONS]
    assert_allclose(log_probabilities(ACTIVATIONS), doubles(expected), rtol=1e-13, atol=1e-15)
    assert_allclose(log_probabilities(np.array([[0.0, -1e9]])), [[0.0, -1e9]], rtol=1e-15)


def test_rows_of_probabilities_sum_to_one():
    assert_allclose(probabilities(ACTIVATIONS).sum(axis=1), 1.0, rtol=1e-15)


@pytest.mark.parametrize("shift", [-700.0, 1e3, 1e6])
def test_a_constant_of_the_row_drops_out(shift):
    near = np.round(ACTIVATIONS[:6] * 2**10) / 2**10
    assert_array_equal(probabilities(near + shift), probabilities(near))


def test_a_class_that_cannot_occur_has_probability_zero():
    activation = np.array([[0.0, -np.inf, np.log(3.0)]])
    assert_allclose(probabilities(activation), [[0.25, 0.0, 0.75]], rtol=1e-15)
    assert_array_equal(log_probabilities(activation)[0, 1], -np.inf)
    assert_allclose(log_normaliser(activation), np.log(4.0), rtol=1e-15)


def test_the_argument_is_left_alone():
    activation = np.array([[1.0, 2.0]])
    for function in (probabilities, log_probabilities, log_normaliser):
        function(activation)
    assert_array_equal(activation, [[1.0, 2.0]])
