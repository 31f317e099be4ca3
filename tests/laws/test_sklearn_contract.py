"""scikit-learn's own checks, once for each class."""

import pytest
from registry import ESTIMATORS
from sklearn.utils.estimator_checks import parametrize_with_checks


# Some of the checks fit to fewer rows than columns, which gives a warning.
@pytest.mark.filterwarnings("ignore::posteriori.errors.PosterioriWarning")
@parametrize_with_checks(ESTIMATORS)
def test_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)
