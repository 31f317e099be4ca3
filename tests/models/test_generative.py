"""What generative models refuse, forget and accept when fitted to rows or to statistics."""

import numpy as np
import pandas as pd
import pytest

from posteriori import FisherDiscriminant, GaussianClassifier, NaiveBayes
from posteriori.errors import (
    LabelError,
    MissingValueError,
    ParameterError,
    StatisticsError,
    WeightError,
)
from posteriori.rows.features import read_features
from posteriori.rows.in_memory import MemoryRows, read_rows

RANDOM = np.random.default_rng(8)
Y = np.arange(90) % 3
X = RANDOM.normal(size=(90, 4)) + Y[:, None]


@pytest.mark.parametrize("covariance", ["shared", "full", "diagonal", "isotropic", [[0, 1]]])
def test_weights_that_sum_to_one_have_no_unbiased_estimate(covariance):
    weight = np.full(90, 1 / 90)
    with pytest.raises(WeightError, match="leave nothing"):
        GaussianClassifier(covariance=covariance, estimate="unbiased").fit(X, Y, weight)
    plain = GaussianClassifier(covariance=covariance).fit(X, Y)
    weighted = GaussianClassifier(covariance=covariance).fit(X, Y, weight)
    np.testing.assert_allclose(weighted.predict_proba(X), plain.predict_proba(X), rtol=1e-10)


@pytest.mark.parametrize("covariance", ["shared", "full"])
def test_weights_that_sum_to_one_have_no_unbiased_estimate_with_missing_entries(covariance):
    holed, weight = X.copy(), np.full(90, 1 / 90)
    holed[::7, 1] = np.nan
    with pytest.raises(WeightError, match="leave nothing"):
        GaussianClassifier(covariance=covariance, estimate="unbiased").fit(holed, Y, weight)
    plain = GaussianClassifier(covariance=covariance, estimate="unbiased").fit(holed, Y)
    ml = GaussianClassifier(covariance=covariance).fit(holed, Y)
    divisor = 90 / 87 if covariance == "shared" else 30 / 29
    np.testing.assert_allclose(plain.covariances_, ml.covariances_ * divisor, rtol=1e-9)


@pytest.mark.parametrize("size", [1e-90, 1e-3, 1 / 90, 1.0, 1e3])
def test_fisher_does_not_depend_on_the_unit_of_the_weights(size):
    plain = FisherDiscriminant().fit(X, Y)
    found = FisherDiscriminant().fit(X, Y, np.full(90, size))
    np.testing.assert_allclose(found.predict_proba(X), plain.predict_proba(X), rtol=1e-9)
    ratio = found.scalings_ / plain.scalings_
    np.testing.assert_allclose(ratio, np.broadcast_to(ratio[0], ratio.shape), rtol=1e-9)


def test_other_priors_leave_no_stale_likelihood():
    model = GaussianClassifier().fit(X, Y)
    assert not hasattr(model.with_priors([0.1, 0.1, 0.8]), "log_likelihood_")
    assert hasattr(model, "log_likelihood_")


@pytest.mark.parametrize("model", [GaussianClassifier(), NaiveBayes()])
def test_rows_come_with_their_labels(model):
    rows = read_rows(X, Y)
    plain = type(model)().fit(X, Y).predict_proba(X)
    np.testing.assert_array_equal(model.fit(rows).predict_proba(X), plain)
    added = type(model)().partial_fit(rows).predict_proba(X)
    np.testing.assert_allclose(added, plain, rtol=1e-12)
    with pytest.raises(ParameterError, match="Pass the rows alone"):
        model.fit(rows, Y)
    with pytest.raises(LabelError, match="without labels"):
        model.fit(MemoryRows(read_features(X)))


def test_statistics_of_other_kinds_are_refused():
    gauss = GaussianClassifier().fit(X, Y).statistics_
    naive = NaiveBayes().fit(X, Y).statistics_
    for other in (naive, 3, None):
        with pytest.raises(StatisticsError, match="cannot be added"):
            gauss + other
        with pytest.raises(StatisticsError, match="cannot be fitted to"):
            GaussianClassifier.from_statistics(other)
    with pytest.raises(StatisticsError, match="NaiveBayes cannot be fitted to Moments"):
        NaiveBayes.from_statistics(gauss)


def test_the_order_in_which_a_group_is_listed_does_not_matter():
    a = GaussianClassifier(covariance=[[0, 1]]).fit(X[:45], Y[:45]).statistics_
    b = GaussianClassifier(covariance=[[1, 0]]).fit(X[45:], Y[45:]).statistics_
    merged = GaussianClassifier.from_statistics(a + b, covariance=[[1, 0]])
    pooled = GaussianClassifier(covariance=[[0, 1]]).fit(X, Y)
    np.testing.assert_allclose(merged.predict_proba(X), pooled.predict_proba(X), rtol=1e-10)


def test_a_missing_level_is_not_called_a_missing_number():
    frame = pd.DataFrame({"a": X[:, 0], "s": ["u", "v", None] * 30})
    with pytest.raises(MissingValueError, match=r"contains NaN \(first in row 2, column 's'"):
        GaussianClassifier().fit(frame, Y)
    assert NaiveBayes().fit(frame, Y).score(frame, Y) > 0.3


def test_a_failed_fit_leaves_the_model_as_it_was():
    model = GaussianClassifier().fit(X, Y)
    before = model.predict_proba(X)
    with pytest.raises(ParameterError, match="priors"):
        model.set_params(priors=[0.5, 0.4]).fit(X[:, :2], Y)
    np.testing.assert_array_equal(model.predict_proba(X), before)
