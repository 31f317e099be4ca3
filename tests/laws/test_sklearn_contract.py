"""scikit-learn's own checks: every one that it yields; `inexact_weights` has the exceptions."""

import pytest
from registry import ESTIMATORS, SLOW, inexact_weights
from sklearn.utils.estimator_checks import parametrize_with_checks


# Some of the checks fit to fewer rows than columns, which we do with a warning.
@pytest.mark.filterwarnings("ignore::posteriori.errors.PosterioriWarning")
@parametrize_with_checks(ESTIMATORS)
def test_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::posteriori.errors.PosterioriWarning")
@parametrize_with_checks(SLOW, expected_failed_checks=inexact_weights)
def test_keeps_the_contract_of_scikit_learn_in_time(estimator, check):
    check(estimator)
