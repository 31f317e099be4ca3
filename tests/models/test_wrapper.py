"""Folds, routing of arguments, formulas and errors of the estimators around another one."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression as SklearnLogistic
from sklearn.metrics import get_scorer
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import (
    GroupKFold,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.naive_bayes import GaussianNB

from posteriori import (
    CalibratedClassifier,
    DecidingClassifier,
    GaussianClassifier,
    LogisticRegression,
    NaiveBayes,
    NoveltyDetector,
    OneVersusOne,
    OneVersusRest,
    scan,
)
from posteriori.decision.calibration import fit_inverse_temperature
from posteriori.errors import (
    IdentifiabilityWarning,
    InfiniteValueError,
    ParameterError,
)

RANDOM = np.random.default_rng(2)
N = 300
X = RANDOM.normal(size=(N, 3))
Y = (X @ [1.0, -1.0, 0.5] + RANDOM.logistic(size=N) > 0).astype(int)
Y3 = Y + (X[:, 2] + RANDOM.logistic(size=N) > 1)
WEIGHT = RANDOM.integers(0, 3, N).astype(float)
GROUPS = RANDOM.integers(0, 12, N)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"]).assign(
    colour=np.array(["red", "green", "blue"])[RANDOM.integers(3, size=N)],
    y=np.array(["no", "yes"])[Y],
)
WRAPPERS = [CalibratedClassifier, DecidingClassifier, NoveltyDetector, OneVersusRest, OneVersusOne]


def inverse_temperature(splits, inner, X=X, y=Y, weight=None):
    """By hand: predictions fold by fold, a row predicted r times counting 1/r each time."""
    weight = np.ones(len(y)) if weight is None else weight
    splits = list(splits)
    tests = np.concatenate([test for _, test in splits])
    logs = [
        clone(inner).fit(X[train], y[train], sample_weight=weight[train]).predict_log_proba(X[test])
        for train, test in splits
    ]
    share = weight[tests] / np.bincount(tests)[tests]
    return fit_inverse_temperature(np.concatenate(logs), y[tests], share)


# --- Folds --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cv", "given"),
    [
        (3, {}),
        (GroupKFold(4), {"groups": GROUPS}),
        (RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=1), {}),
        ([(RANDOM.integers(200, size=N), np.arange(200, N))], {}),  # a bootstrap sample
    ],
    ids=lambda value: type(value).__name__,
)
def test_rows_are_held_out_by_the_folds_of_scikit_learn(cv, given):
    inner = LogisticRegression(prior=1.0)
    model = CalibratedClassifier(inner, cv=cv).fit(X, Y, **given)
    numbered = StratifiedKFold(3, shuffle=True, random_state=0)
    splits = cv if isinstance(cv, list) else (numbered if cv == 3 else cv).split(X, Y, **given)
    assert_allclose(1 / model.temperature_, inverse_temperature(splits, inner), rtol=1e-9)
    assert_allclose(model.estimator_.coef_, inner.fit(X, Y).coef_)


def test_rows_of_weight_zero_are_left_out_and_their_groups_with_them():
    kept, inner = np.flatnonzero(WEIGHT), LogisticRegression(prior=1.0)
    model = CalibratedClassifier(inner, cv=GroupKFold(3))
    broken = np.where((WEIGHT == 0)[:, None], np.nan, X)
    found = clone(model).fit(broken, Y, WEIGHT, groups=GROUPS).temperature_
    expected = clone(model).fit(X[kept], Y[kept], WEIGHT[kept], groups=GROUPS[kept]).temperature_
    assert_allclose(found, expected, rtol=1e-10)
    # A list of splits has the numbers of all rows.
    splits = list(StratifiedKFold(4).split(X, Y))
    found = CalibratedClassifier(inner, cv=splits).fit(broken, Y, WEIGHT).temperature_
    used = [tuple(part[WEIGHT[part] > 0] for part in split) for split in splits]
    assert_allclose(1 / found, inverse_temperature(used, inner, weight=WEIGHT), rtol=1e-9)


def test_a_class_without_training_rows_has_probability_zero_there_with_a_warning():
    y = Y3.copy()
    y[7] = 9
    with pytest.warns(IdentifiabilityWarning, match=r"No training row of fold \d is of class 9"):
        model = CalibratedClassifier(GaussianNB()).fit(X, y)
    assert_array_equal(model.classes_, [0, 1, 2, 9])
    assert np.isfinite(model.predict_log_proba(X)).all()
    with pytest.raises(ParameterError, match="cv=5 holds out no rows: the largest class has 1"):
        CalibratedClassifier(GaussianNB()).fit(X[:2], [0, 1])


# --- Levels, row numbers ------------------------------------------------------------------------


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
@pytest.mark.parametrize("inner", [LogisticRegression(prior=1.0), NaiveBayes()], ids=str)
def test_a_level_that_only_held_out_rows_have_is_known(inner, frame):
    rows = FRAME[["a", "colour"]].copy()
    rows.loc[7, "colour"] = "teal"
    rows, splits = frame(rows), list(StratifiedKFold(5).split(X, Y))
    model = CalibratedClassifier(inner, cv=splits).fit(rows, Y)
    logs = []
    for train, test in splits:
        weight = np.isin(np.arange(N), train) * 1.0
        logs.append(clone(inner).fit(rows, Y, weight).predict_log_proba(rows)[test])
    tested = np.concatenate([test for _, test in splits])
    expected = fit_inverse_temperature(np.concatenate(logs), Y[tested], np.ones(N))
    assert_allclose(1 / model.temperature_, expected, rtol=1e-9)


@pytest.mark.parametrize("weight", [None, (np.arange(N) % 4 > 0) * 1.0])
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_row_is_named_by_its_number_among_all(wrapper, weight):
    broken = X.copy()
    broken[77, 1] = np.inf
    with pytest.raises(InfiniteValueError, match=r"row 77\b"):
        wrapper(GaussianClassifier()).fit(broken, Y3, weight)


# --- Formulas -----------------------------------------------------------------------------------


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.from_pandas])
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_formula_is_passed_on_to_an_estimator_of_ours(wrapper, frame):
    rows = frame(FRAME)
    inner = GaussianClassifier() if wrapper is NoveltyDetector else LogisticRegression(prior=1.0)
    model = wrapper(inner).fit("y ~ a + b + colour", rows)
    plain = wrapper(inner).fit(rows[["a", "b", "colour"]], FRAME["y"].to_numpy())
    assert model.classes_.tolist() == ["no", "yes"]
    assert_allclose(
        model.predict_proba(rows), plain.predict_proba(rows[["a", "b", "colour"]]), rtol=1e-6
    )


# --- Routing ------------------------------------------------------------------------------------


class Remembers(SklearnLogistic):
    """Logistic regression that keeps the weights and notes it was fitted with."""

    def fit(self, X, y, sample_weight=None, note=None):
        self.seen_ = sample_weight, note
        return super().fit(X, y, sample_weight)


def test_other_arguments_of_fit_are_passed_on_row_by_row():
    model = OneVersusOne(Remembers()).fit(X, Y3, WEIGHT + 1, note=np.arange(N))
    pair = np.isin(Y3, [0, 2])
    assert_array_equal(model.estimators_[1].seen_[0], WEIGHT[pair] + 1)
    assert_array_equal(model.estimators_[1].seen_[1], np.flatnonzero(pair))
    assert OneVersusRest(Remembers()).fit(X, Y3).estimators_[0].seen_ == (None, None)


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_arguments_are_routed_where_routing_is_enabled(wrapper):
    with sklearn.config_context(enable_metadata_routing=True):
        model = wrapper(Remembers().set_fit_request(sample_weight=True, note=True))
        if wrapper is not NoveltyDetector:
            fitted = model.fit(X, Y, sample_weight=WEIGHT + 1, note=np.arange(N))
            inner = getattr(fitted, "estimator_", None) or fitted.estimators_[0]
            assert_array_equal(inner.seen_[0], WEIGHT + 1)
            assert_array_equal(inner.seen_[1], np.arange(N))
        with pytest.raises(UnsetMetadataPassedError):
            wrapper(Remembers()).fit(X, Y, sample_weight=WEIGHT)


def test_groups_and_weights_reach_the_folds_of_a_calibration_within_cross_validation():
    with sklearn.config_context(enable_metadata_routing=True):
        inner = LogisticRegression(prior=1.0).set_fit_request(sample_weight=True)
        model = CalibratedClassifier(inner, cv=GroupKFold(3)).set_fit_request(sample_weight=True)
        params = {"groups": GROUPS, "sample_weight": WEIGHT + 1}
        scorer = get_scorer("neg_log_loss").set_score_request(sample_weight=False)
        scores = cross_val_score(model, X, Y, cv=GroupKFold(3), params=params, scoring=scorer)
        expected = []
        for train, test in GroupKFold(3).split(X, Y, GROUPS):
            fitted = clone(model).fit(
                X[train], Y[train], sample_weight=WEIGHT[train] + 1, groups=GROUPS[train]
            )
            logs = fitted.predict_log_proba(X[test])
            expected.append(logs[np.arange(len(test)), Y[test]].mean())
    assert_allclose(scores, expected, rtol=1e-8)


# --- Errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_what_a_wrapper_cannot_be_fitted_to_is_an_error_with_the_remedy(wrapper, tmp_path):
    dask = pytest.importorskip("dask.array")
    FRAME.to_parquet(tmp_path / "rows.parquet")
    model = wrapper(GaussianClassifier()).fit(X, Y)
    before = dict(vars(model))
    source = r"does not fit to a dataset on disk.*Frozen"
    for given, words in (
        ({"X": scan(tmp_path, "y")}, source),
        ({"X": dask.from_array(X), "y": dask.from_array(Y)}, source),
        ({"X": X, "y": Y, "offset": X[:, 0]}, "does not take offsets"),
        ({"X": "rows.csv", "y": "y"}, "neither data nor a formula"),
    ):
        with pytest.raises(ParameterError, match=words):
            model.fit(**given)
        assert vars(model) == before
    with pytest.raises(ParameterError, match="GaussianNB takes none"):
        wrapper(GaussianNB()).fit("y ~ a + b", FRAME)


def test_a_model_fitted_to_a_dataset_is_wrapped_frozen(tmp_path):
    FRAME.drop(columns="colour").to_parquet(tmp_path / "rows.parquet")
    rows, names = scan(tmp_path, "y"), ["a", "b", "c"]
    fitted = LogisticRegression().fit(rows)
    model = CalibratedClassifier(FrozenEstimator(fitted)).fit(FRAME[names][:200], FRAME["y"][:200])
    b = fit_inverse_temperature(fitted.predict_log_proba(FRAME[names][:200]), Y[:200], np.ones(200))
    assert_allclose(model.temperature_, 1 / b, rtol=1e-10)
    path = model.predict_proba(rows, to=tmp_path / "p.parquet")
    found = pd.read_parquet(path).to_numpy()
    assert_allclose(found, model.predict_proba(FRAME[names]), rtol=1e-12)


def test_a_density_without_labels_is_cross_fitted_in_shuffled_folds():
    """So that rows in the order of their clusters have the rate of false positives."""
    rows = np.concatenate([RANDOM.normal(size=(200, 2)), RANDOM.normal(size=(200, 2)) + 9])
    model = NoveltyDetector(GaussianMixture(2, random_state=0), false_positive_rate=0.1).fit(rows)
    new = np.concatenate([RANDOM.normal(size=(2000, 2)), RANDOM.normal(size=(2000, 2)) + 9])
    assert 0.05 < model.is_novel(new).mean() < 0.16
