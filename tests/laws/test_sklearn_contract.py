"""scikit-learn's own checks: every one that it yields."""

import pytest
from registry import ESTIMATORS, SLOW
from sklearn.utils.estimator_checks import parametrize_with_checks

from posteriori import Adaline, Perceptron


def _expected_to_fail(estimator):
    """What scikit-learn expects to fail for its own Perceptron and SGDClassifier too."""
    if not isinstance(estimator, Adaline | Perceptron):
        return {}
    reason = "rows are visited in orders drawn for their numbers"
    return {
        f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")
    }


# Some of the checks fit to fewer rows than columns, which we do with a warning.
@pytest.mark.filterwarnings("ignore::posteriori.errors.PosterioriWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=_expected_to_fail)
def test_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::posteriori.errors.PosterioriWarning")
@parametrize_with_checks(SLOW)
def test_keeps_the_contract_of_scikit_learn_in_time(estimator, check):
    check(estimator)
