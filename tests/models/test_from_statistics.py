"""Fits to statistics of several sites and to batches are the fit to all rows."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from posteriori import (
    BayesianLogisticRegression,
    FisherDiscriminant,
    GaussianClassifier,
    LeastSquaresClassifier,
    NaiveBayes,
)
from posteriori.errors import (
    IdentifiabilityWarning,
    LabelError,
    MissingValueError,
    ParameterError,
    StatisticsError,
)
from posteriori.rows.features import read_features
from posteriori.rows.in_memory import MemoryRows, read_rows

RANDOM = np.random.default_rng(21)
N = 240
CLASSES = np.array(["high", "low", "mid"])
CODES = RANDOM.integers(3, size=N)
CODES[:70] = 2 * RANDOM.integers(2, size=70)  # the first site has no row of "low"
Y = CLASSES[CODES]
LEVELS = np.array(["b", "c", "d", "e"])[RANDOM.integers(4, size=N)]
LEVELS[:70] = np.array(["b", "d"])[RANDOM.integers(2, size=70)]
LEVELS[150:] = np.array(["a", "c", "d", "e"])[RANDOM.integers(4, size=N - 150)]  # no "b"
X = pd.DataFrame(
    {
        "x": RANDOM.normal(size=N) + CODES,
        "s": LEVELS,
        "z": 1e3 + RANDOM.normal(size=N) * (1 + CODES) + 0.5 * (LEVELS == "c"),
        "w": RANDOM.normal(size=N) - (CODES == 1),
    }
)
NUMBERS = X[["x", "z", "w"]].to_numpy()
WEIGHT = RANDOM.uniform(0.2, 3.0, size=N)
SITES = [slice(0, 70), slice(70, 150), slice(150, N)]

MODELS = [
    LeastSquaresClassifier(ridge=0.5),
    FisherDiscriminant(),
    FisherDiscriminant(n_components=1, threshold="midpoint", shrinkage=0.1),
    GaussianClassifier(covariance="full"),
    NaiveBayes(),
]
# A site alone may lack levels that others have, which a full covariance of few rows shows.
pytestmark = pytest.mark.filterwarnings("ignore::posteriori.errors.SingularCovarianceWarning")

of_every_model = pytest.mark.parametrize("model", MODELS, ids=str)


def assert_same(found, whole, tolerance=1e-10):
    if isinstance(whole, NaiveBayes):  # its levels are in the order of their first rows
        assert set(found.schema_.columns[1].levels) == set(whole.schema_.columns[1].levels)
    else:
        assert found.schema_ == whole.schema_
    assert_array_equal(found.classes_, whole.classes_)
    assert found.n_parameters_ == whole.n_parameters_
    for name in ("predict_proba", "predict_targets", "transform", "decision_function"):
        if hasattr(whole, name):
            ours, theirs = getattr(found, name)(X), getattr(whole, name)(X)
            assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance, err_msg=name)


def from_sums(model, sums):
    return type(model).from_statistics(sums, **model.get_params(deep=False))


@of_every_model
@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0)])
def test_sites_with_other_classes_and_levels_make_the_fit_to_all_rows(model, order):
    whole, batches, sums = clone(model).fit(X, Y, sample_weight=WEIGHT), clone(model), []
    for s in (SITES[i] for i in order):
        batch = X[s], Y[s], None, WEIGHT[s]
        sums.append(clone(model).partial_fit(*batch).statistics_)
        batches.partial_fit(*batch)
    assert_same(batches, whole)
    assert_same(from_sums(model, sum(sums)), whole)
    assert_same(from_sums(model, sums[0] + (sums[1] + sums[2])), whole)


@pytest.mark.filterwarnings("ignore::posteriori.errors.IdentifiabilityWarning")
@pytest.mark.parametrize("model", [LeastSquaresClassifier(coding="fisher"), *MODELS], ids=str)
def test_sites_that_have_one_of_two_classes_each_make_the_fit_to_all_rows(model):
    y = Y == "low"
    sums = [clone(model).partial_fit(X[y == k], y[y == k]).statistics_ for k in (True, False)]
    assert_same(from_sums(model, sum(sums)), clone(model).fit(X, y))


@of_every_model
def test_statistics_hold_no_rows_and_survive_pickling(model):
    first, rest = SITES[0], slice(70, N)
    fitted = clone(model).fit(X[first], Y[first])
    for made in (fitted, fitted.statistics_):
        letter = pickle.dumps(made)
        assert sum(number.tobytes() in letter for number in NUMBERS.ravel()) == 0
        assert len(letter) < 8000
    there = pickle.loads(pickle.dumps(fitted)).partial_fit(X[rest], Y[rest])
    assert_same(there, fitted.partial_fit(X[rest], Y[rest]), tolerance=0)
    with pytest.raises(AttributeError, match="no statistics_: the model is not fitted"):
        _ = clone(model).statistics_


def test_a_posterior_holds_no_rows_unless_partial_fit_needs_them():
    def entries(model):
        letter = pickle.dumps(model)
        return sum(number.tobytes() in letter for number in NUMBERS.ravel())

    y, model = Y == "mid", BayesianLogisticRegression(inference="laplace")
    assert entries(model.fit(NUMBERS[:70], y[:70])) == 0
    assert entries(model.update(NUMBERS[70:], y[70:])) == 0
    kept = clone(model).partial_fit(NUMBERS[:70], y[:70], classes=[False, True])
    assert entries(kept) == 210


@pytest.mark.parametrize("covariance", ["shared", "full", [["high", "low"]]])
def test_fishers_discriminant_can_be_fitted_to_gaussian_statistics(covariance):
    sums = GaussianClassifier(covariance=covariance).fit(X[:150], Y[:150]).statistics_
    found = FisherDiscriminant.from_statistics(sums).partial_fit(X[150:], Y[150:])
    assert_same(found, FisherDiscriminant().fit(X, Y))
    assert_same(
        GaussianClassifier.from_statistics(found.statistics_), GaussianClassifier().fit(X, Y)
    )


def test_statistics_of_other_kinds_and_columns_are_refused():
    moments, sums = (kind().fit(X, Y).statistics_ for kind in (LeastSquaresClassifier, NaiveBayes))
    with pytest.raises(StatisticsError, match="A Moments and a FamilySums cannot be added"):
        moments + sums
    for kind, other in ((NaiveBayes, moments), (GaussianClassifier, sums)):
        for wrong in (other, 3, None):
            with pytest.raises(StatisticsError, match=f"{kind.__name__} cannot be fitted to"):
                kind.from_statistics(wrong)
    with pytest.raises(StatisticsError, match="different columns"):
        moments + LeastSquaresClassifier().fit(X[["x", "z"]], Y).statistics_


def test_fishers_code_waits_for_the_second_class():
    y, later = (Y == "low").astype(int), Y == "low"
    model = LeastSquaresClassifier(coding="fisher")
    with pytest.warns(IdentifiabilityWarning, match="all rows are of 0. The rows are counted"):
        model.partial_fit(X[~later], y[~later])
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert_same(model.partial_fit(X[later], y[later]), clone(model).fit(X, y))
    with pytest.raises(ParameterError, match="is for two classes; y has 3"):
        model.partial_fit(X[:1], [2])


@pytest.mark.parametrize(
    ("components", "words"),
    [
        (None, "Rows of 1 class in 7 columns have at most 0 directions between classes. "),
        (2, "Rows of 1 class in 7 columns have at most 0 .*, not n_components=2"),
    ],
)
def test_fishers_discriminant_waits_for_enough_classes(components, words):
    model, part = FisherDiscriminant(n_components=components), Y == "low"
    with pytest.warns(IdentifiabilityWarning, match=words):
        model.partial_fit(X[part], Y[part])
    for method in (model.predict, model.transform):
        with pytest.raises(NotFittedError):
            method(X)
    with pytest.raises(LabelError, match=words):
        clone(model).fit(X[part], Y[part], classes=CLASSES)
    assert_same(model.partial_fit(X[~part], Y[~part]), clone(model).fit(X, Y))
    with pytest.raises(ParameterError, match=r"in 3 columns have at most 2 .*, not n_components=4"):
        FisherDiscriminant(n_components=4).partial_fit(NUMBERS, Y)


def test_rows_come_with_their_labels():
    model, rows = GaussianClassifier(), read_rows(X, Y)
    assert_same(clone(model).fit(rows), clone(model).fit(X, Y), tolerance=0)
    assert_same(clone(model).partial_fit(rows), clone(model).fit(X, Y))
    with pytest.raises(ParameterError, match="Pass the rows alone"):
        model.fit(rows, Y)
    with pytest.raises(LabelError, match="without labels"):
        model.fit(MemoryRows(read_features(X)))


def test_a_missing_level_is_not_called_a_missing_number():
    frame = X.assign(s=["u", "v", None] * 80)
    with pytest.raises(MissingValueError, match=r"contains NaN \(first in row 2, column 's'"):
        GaussianClassifier().fit(frame, Y)
    assert NaiveBayes().fit(frame, Y).score(frame, Y) > 0.3
