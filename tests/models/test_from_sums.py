"""Sites that keep their rows, and batches that are let go: the sums make the fit to all rows."""

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
    ParameterError,
    StatisticsError,
)

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
WEIGHT = RANDOM.uniform(0.2, 3.0, size=N)
SITES = [slice(0, 70), slice(70, 150), slice(150, N)]

MODELS = [
    LeastSquaresClassifier(),
    LeastSquaresClassifier(ridge=0.5),
    FisherDiscriminant(),
    FisherDiscriminant(n_components=1),
    FisherDiscriminant(threshold="midpoint", shrinkage=0.1),
    GaussianClassifier(),
    GaussianClassifier(covariance="full"),
    GaussianClassifier(covariance="diagonal"),
    NaiveBayes(),
]
TWO = [LeastSquaresClassifier(coding="fisher"), *MODELS]

# A site alone may lack levels that others have, which a full covariance of few rows feels.
pytestmark = pytest.mark.filterwarnings("ignore::posteriori.errors.SingularCovarianceWarning")

over = pytest.mark.parametrize("model", MODELS, ids=str)
over_two = pytest.mark.parametrize("model", TWO, ids=str)


def answers(model, rows):
    names = ("predict_proba", "predict_targets", "transform", "decision_function")
    return {name: getattr(model, name)(rows) for name in names if hasattr(model, name)}


def assert_same(found, whole, rows=X, tolerance=1e-10):
    if isinstance(whole, NaiveBayes):  # has its levels in the order in which they came
        assert set(found.schema_.columns[1].levels) == set(whole.schema_.columns[1].levels)
    else:
        assert found.schema_ == whole.schema_
    assert_array_equal(found.classes_, whole.classes_)
    assert found.n_parameters_ == whole.n_parameters_
    assert_array_equal(found.predict(rows), whole.predict(rows))
    ours, theirs = answers(found, rows), answers(whole, rows)
    assert ours.keys() == theirs.keys()
    for name, values in theirs.items():
        assert_allclose(ours[name], values, rtol=tolerance, atol=tolerance, err_msg=name)


def sums_of(model, sites=SITES, rows=X, y=Y, weight=WEIGHT):
    return [
        clone(model).partial_fit(rows[s], y[s], sample_weight=weight[s]).statistics_ for s in sites
    ]


def from_sums(model, sums):
    return type(model).from_statistics(sums, **model.get_params(deep=False))


@over
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_sites_with_other_classes_and_levels_make_the_fit_to_all_rows(model, order):
    whole = clone(model).fit(X, Y, sample_weight=WEIGHT)
    sums = sums_of(model)
    assert_same(from_sums(model, sum(sums[i] for i in order)), whole)
    assert_same(from_sums(model, sums[order[0]] + (sums[order[1]] + sums[order[2]])), whole)
    batches = clone(model)
    for i in order:
        batches.partial_fit(X[SITES[i]], Y[SITES[i]], sample_weight=WEIGHT[SITES[i]])
    assert_same(batches, whole)


@pytest.mark.filterwarnings("ignore::posteriori.errors.IdentifiabilityWarning")
@over_two
def test_sites_that_have_one_of_two_classes_each_make_the_fit_to_all_rows(model):
    y, site = Y == "low", np.where(Y == "low", 0, 1 + (np.arange(N) > 120))
    sites = [site == i for i in range(3)]
    whole = clone(model).fit(X, y, sample_weight=WEIGHT)
    sums = sums_of(model, sites, y=y)
    assert_same(from_sums(model, sum(sums)), whole)


@over
def test_the_letters_hold_no_rows(model):
    """A statistic, and a model, have a size that does not depend on the number of rows."""
    numbers = X[["x", "z", "w"]].to_numpy()
    for made in (clone(model).fit(X, Y), clone(model).fit(X, Y).statistics_):
        letter = pickle.dumps(made)
        assert sum(number.tobytes() in letter for number in numbers.ravel()) == 0
        assert len(letter) < 8000


def test_a_posterior_holds_no_rows_unless_partial_fit_keeps_them():
    numbers = X[["x", "z", "w"]].to_numpy()
    y, model = Y == "mid", BayesianLogisticRegression()

    def entries(letter):
        return sum(number.tobytes() in letter for number in numbers.ravel())

    letter = pickle.dumps(model.fit(X[:70], y[:70]))
    assert entries(letter) == 0
    known = X["s"].isin(["b", "d"]).to_numpy() & (np.arange(N) >= 70)
    assert entries(pickle.dumps(pickle.loads(letter).update(X[known], y[known]))) == 0
    kept = BayesianLogisticRegression().partial_fit(X[:70], y[:70], classes=[False, True])
    assert entries(pickle.dumps(kept)) == 210


@over
def test_a_copy_by_pickle_learns_on_as_the_model_does(model):
    first, rest = SITES[0], slice(70, N)
    here = clone(model).fit(X[first], Y[first])
    there = pickle.loads(pickle.dumps(here))
    assert not hasattr(clone(here), "statistics_")
    for each in (here, there):
        each.partial_fit(X[rest], Y[rest])
    assert_same(there, here, tolerance=0)
    assert_same(here, clone(model).fit(X, Y))


@pytest.mark.parametrize("covariance", ["shared", "full", [["high", "low"]]])
def test_fishers_discriminant_can_be_had_from_gaussian_sums(covariance):
    sums = [
        GaussianClassifier(covariance=covariance).partial_fit(X[s], Y[s]).statistics_ for s in SITES
    ]
    found, whole = FisherDiscriminant.from_statistics(sums[0] + sums[1]), FisherDiscriminant()
    assert_same(found.partial_fit(X[SITES[2]], Y[SITES[2]]), whole.fit(X, Y))
    shared = GaussianClassifier.from_statistics(found.statistics_)
    assert_same(shared, GaussianClassifier().fit(X, Y))


def test_statistics_of_other_kinds_are_refused():
    moments, sums = (kind().fit(X, Y).statistics_ for kind in (LeastSquaresClassifier, NaiveBayes))
    with pytest.raises(StatisticsError, match="A Moments and a FamilySums cannot be added"):
        moments + sums
    for kind, other in ((NaiveBayes, moments), (LeastSquaresClassifier, sums)):
        for wrong in (other, 3, None):
            with pytest.raises(StatisticsError, match=f"{kind.__name__} cannot be fitted to"):
                kind.from_statistics(wrong)


@over
def test_statistics_of_other_columns_are_refused(model):
    one, other = (clone(model).fit(X[names], Y).statistics_ for names in (["x", "z"], ["x", "w"]))
    with pytest.raises(StatisticsError, match="different columns"):
        one + other


@over_two
def test_an_unfitted_model_has_no_statistics(model):
    with pytest.raises(AttributeError, match="statistics_ is not there: the model is not fitted"):
        _ = clone(model).statistics_


def test_fishers_code_waits_for_the_second_class():
    y, later = (Y == "low").astype(int), Y == "low"
    model = LeastSquaresClassifier(coding="fisher")
    with pytest.warns(IdentifiabilityWarning, match="rows of 0 alone. The rows are kept"):
        model.partial_fit(X[~later], y[~later])
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert_same(model.partial_fit(X[later], y[later]), clone(model).fit(X, y))
    with pytest.warns(IdentifiabilityWarning, match="Class 1 has no rows, so Fisher's code"):
        named = clone(model).partial_fit(X[~later], y[~later], classes=[0, 1])
    with pytest.raises(LabelError, match="Class 1 has no rows"):
        from_sums(model, named.statistics_)
    assert_same(named.partial_fit(X[later], y[later]), clone(model).fit(X, y))
    before = model.predict_targets(X)
    with pytest.raises(ParameterError, match="is for two classes; y has 3"):
        model.partial_fit(X[:1], [2])
    assert_array_equal(model.predict_targets(X), before)


@pytest.mark.parametrize(
    ("components", "said"),
    [
        (None, "rows of 1 class, and 1 direction between classes need 2 of them"),
        (2, "rows of 1 class, and 2 directions between classes need 3 of them"),
    ],
)
def test_fishers_discriminant_waits_for_classes_enough(components, said):
    model, part = FisherDiscriminant(n_components=components), Y == "low"
    with pytest.warns(IdentifiabilityWarning, match=f"{said}. The rows are kept"):
        model.partial_fit(X[part], Y[part])
    for asked in (model.predict, model.transform):
        with pytest.raises(NotFittedError):
            asked(X)
    with pytest.raises(LabelError, match=said):
        from_sums(model, model.statistics_)
    with pytest.raises(LabelError, match=said):
        clone(model).fit(X[part], Y[part], classes=CLASSES)
    assert_same(model.partial_fit(X[~part], Y[~part]), clone(model).fit(X, Y))


def test_more_directions_than_columns_are_an_error_at_once():
    model = FisherDiscriminant(n_components=4)
    with pytest.raises(ParameterError, match="n_components=4, but 3 columns have 1 to 3"):
        model.partial_fit(X[["x", "z", "w"]], Y)
    assert not hasattr(model, "statistics_")


@pytest.mark.parametrize("threshold", ["gaussian", "midpoint"])
@pytest.mark.parametrize("far", [0.0, 1e8])
def test_a_class_without_rows_is_not_there_for_fishers_discriminant(threshold, far):
    rows, there = X[["x", "z", "w"]].to_numpy() + far, Y != "low"
    model = FisherDiscriminant(threshold=threshold)
    plain = clone(model).fit(rows[there], Y[there])
    named = clone(model).partial_fit(rows[there], Y[there], classes=CLASSES)
    found = named.predict_proba(rows)
    assert_array_equal(found[:, 1], 0.0)
    assert_allclose(found[:, [0, 2]], plain.predict_proba(rows), rtol=1e-7, atol=1e-12)
    # Of two classes the direction points to the second; of more its sign is free.
    sign = np.sign(named.scalings_[0] / plain.scalings_[0])
    assert_allclose(named.transform(rows) * sign, plain.transform(rows), rtol=1e-7, atol=1e-9)


def test_least_squares_say_of_one_class_that_it_is_certain():
    part = Y == "low"
    model = LeastSquaresClassifier().partial_fit(X[part], Y[part])
    assert_array_equal(model.predict_targets(X[part]), 1.0)
    assert_array_equal(model.predict(X[part]), "low")
    assert_same(model.partial_fit(X[~part], Y[~part]), LeastSquaresClassifier().fit(X, Y))


def test_soft_labels_go_through_batches():
    soft = RANDOM.dirichlet(np.ones(3), size=N)
    for model in (LeastSquaresClassifier(), FisherDiscriminant()):
        batches = clone(model)
        for s in SITES:
            batches.partial_fit(X[s], soft[s], classes=CLASSES, sample_weight=WEIGHT[s])
        assert_same(batches, clone(model).fit(X, soft, sample_weight=WEIGHT, classes=CLASSES))


@pytest.mark.parametrize("size", [1e-170, 1e170])
def test_columns_too_large_to_be_squared_are_merged_in_their_units(size):
    scaled = X.assign(z=X["z"] * size)
    for model in (LeastSquaresClassifier(), FisherDiscriminant()):
        whole, sums = clone(model).fit(scaled, Y), sums_of(model, rows=scaled, weight=np.ones(N))
        assert_same(from_sums(model, sum(sums)), whole, scaled)
