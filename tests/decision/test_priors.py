"""Class priors as the user gives them."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from posteriori.decision.class_priors import log_priors, read_priors
from posteriori.errors import ParameterError

CLASSES = np.array(["ant", "bee", "cat"])


def test_priors_by_label_are_put_in_the_order_of_the_classes():
    assert_array_equal(read_priors({"cat": 0.5, "ant": 0.2, "bee": 0.3}, CLASSES), [0.2, 0.3, 0.5])


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_priors_in_a_sequence_are_taken_in_the_order_of_the_classes(kind):
    assert_array_equal(read_priors(kind([0.2, 0.3, 0.5]), CLASSES), [0.2, 0.3, 0.5])


def test_labels_may_be_numbers():
    assert_array_equal(read_priors({7: 0.25, 3: 0.75}, np.array([3, 7])), [0.75, 0.25])
    keys = {np.int64(7): 0.25, np.int64(3): 0.75}
    assert_array_equal(read_priors(keys, np.array([3, 7])), [0.75, 0.25])


@pytest.mark.parametrize(
    ("priors", "words"),
    [
        ({"ant": 0.5, "bee": 0.5, "dog": 0.0, "cat": 0.0}, "unknown class 'dog'"),
        ({"ant": 0.5, "bee": 0.5}, "no class 'cat'"),
        ([0.5, 0.5], "shape"),
        ([[0.2, 0.3, 0.5]], "shape"),
        ([0.2, 0.3, 0.6], "sum to 1.1"),
        ([0.7, 0.7, -0.4], "negative"),
        ([0.5, 0.5, np.nan], "finite"),
        ([0.5, np.inf, 0.5], "finite"),
        (["a", "b", "c"], "priors"),
        (0.5, "shape"),
        ("equal", "priors"),
    ],
)
def test_priors_that_are_none_are_an_error_that_says_why(priors, words):
    with pytest.raises(ParameterError, match=words):
        read_priors(priors, CLASSES)


def test_a_class_that_cannot_occur_has_log_prior_minus_infinity():
    assert_array_equal(log_priors(np.array([0.0, 1.0])), [-np.inf, 0.0])
