"""scikit-learn's own checks: every one that it yields; cross-fitted models excepted."""

import pytest
from registry import ESTIMATORS, SLOW, different_folds
from sklearn.utils.estimator_checks import parametrize_with_checks


# Some of the checks fit to fewer rows than columns, which we do with a warning.
@pytest.mark.filterwarnings("ignore::posteriori.errors.PosterioriWarning")
@parametrize_with_checks(ESTIMATORS)
def test_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::posteriori.errors.PosterioriWarning")
@parametrize_with_checks(SLOW, expected_failed_checks=different_folds)
def test_keeps_the_contract_of_scikit_learn_in_time(estimator, check):
    check(estimator)
