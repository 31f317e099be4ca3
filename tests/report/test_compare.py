"""Models side by side, against scikit-learn's cross-validation and by hand."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.linear_model import LogisticRegression as Theirs
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import (
    GroupKFold,
    PredefinedSplit,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_predict,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from posteriori import (
    GLM,
    BayesianLogisticRegression,
    CalibratedClassifier,
    GaussianClassifier,
    LeastSquaresClassifier,
    LogisticRegression,
    NaiveBayes,
    compare,
    scan,
)
from posteriori.errors import (
    ColumnTypeError,
    LabelError,
    ParameterError,
)

WINE, KINDS = load_wine(return_X_y=True)
CELLS, TUMOURS = load_breast_cancer(return_X_y=True)
CELLS = CELLS[:, :5]
COUNTS = np.floor(abs(CELLS[:, :2]))
FOLDS = StratifiedKFold(4, shuffle=True, random_state=1)
BLANK = ["log_evidence", "bic", "aic"]


def table(models, X=CELLS, y=TUMOURS, **settings):
    return compare(models, X, y, **{"cv": FOLDS, **settings}).to_frame()


def row(frame, name):
    return frame.set_index("model").loc[name]


def losses_by_hand(model, X, y, cv=FOLDS, **given):
    """ln p and predictions by scikit-learn."""
    proba = cross_val_predict(model, X, y, cv=cv, method="predict_proba", **given)
    return -np.log(proba[np.arange(len(y)), y]), proba


def test_scores_and_paired_differences_are_those_of_scikit_learns_cross_validation():
    models = {
        "ours": LogisticRegression(prior=1.0),
        "theirs": make_pipeline(StandardScaler(), Theirs()),
    }
    found = table(models)
    by_hand = {name: losses_by_hand(model, CELLS, TUMOURS) for name, model in models.items()}
    root = np.sqrt(len(TUMOURS))
    for name, (losses, proba) in by_hand.items():
        line = row(found, name)
        assert line.log_score == pytest.approx(losses.mean(), rel=1e-12)
        assert line.std_error == pytest.approx(losses.std(ddof=1) / root, rel=1e-12)
        assert line.brier == pytest.approx(brier_score_loss(TUMOURS, proba[:, 1]), rel=1e-12)
        assert line.accuracy == np.mean(proba.argmax(axis=1) == TUMOURS)
    best, worse = found.model
    assert row(found, best).log_score < row(found, worse).log_score
    away = by_hand[worse][0] - by_hand[best][0]
    assert row(found, best).difference == row(found, best).difference_std_error == 0
    assert row(found, worse).difference == pytest.approx(away.mean(), rel=1e-9)
    error = away.std(ddof=1) / root
    assert row(found, worse).difference_std_error == pytest.approx(error, rel=1e-9)
    assert row(found, "theirs")[BLANK].isna().all()
    assert "no likelihood of its own" in row(found, "theirs").note
    polars = table(models, pl.DataFrame({f"c{j}": column for j, column in enumerate(CELLS.T)}))
    assert isinstance(polars, pl.DataFrame)
    assert_allclose(polars["log_score"], found.log_score, rtol=1e-9)


# --- Formulas -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def frame():
    random = np.random.default_rng(3)
    age, region = random.normal(size=200), random.choice(["north", "south"], 200)
    sick = np.where(random.logistic(size=200) < age + age**2 - 1, "yes", "no")
    return pd.DataFrame({"age": age, "region": region, "sick": sick})


def test_a_model_fitted_by_a_formula_is_compared_by_its_formula(frame):
    formulas = {"line": "sick ~ age", "square": "sick ~ age + I(age**2)"}
    model = LogisticRegression(prior=1.0)
    found = table(
        {name: clone(model).fit(text, frame) for name, text in formulas.items()}, frame, None
    )
    assert found.model.tolist() == ["square", "line"]
    square = pd.DataFrame({"age": frame.age, "square": frame.age**2})
    for name, X in {"line": frame[["age"]], "square": square}.items():
        expected = table([model], X, frame["sick"])
        assert row(found, name).log_score == pytest.approx(expected.log_score[0], rel=1e-6)
        assert row(found, name).accuracy == expected.accuracy[0]


def test_formulas_need_their_frame_and_their_target(frame):
    model = LogisticRegression(prior=1.0).fit("sick ~ age", frame)
    other = LogisticRegression(prior=1.0).fit("region ~ age", frame)
    array = frame[["age"]].to_numpy()
    for models, X, y, error, words in (
        ([model], array, frame["sick"], ColumnTypeError, "'sick ~ age' names columns"),
        ([CalibratedClassifier(model)], array, frame["sick"], ColumnTypeError, "columns"),
        ([model], frame, frame["region"], LabelError, "has another target than y"),
        ([model, other], frame, None, LabelError, "than y or the other formulas"),
        ([model, NaiveBayes()], frame, None, ParameterError, "has no formula"),
    ):
        with pytest.raises(error, match=words):
            compare(models, X, y)


# --- Evidence, BIC and AIC ------------------------------------------------------------------------


def test_criteria_are_those_of_the_fit_to_all_rows_for_likelihoods_of_the_classes():
    models = {"mode": LogisticRegression(), "mean": BayesianLogisticRegression()}
    found = table(models | {"density": GaussianClassifier()})
    for name, model in models.items():
        fitted = model.fit(CELLS, TUMOURS)
        assert row(found, name).aic == pytest.approx(fitted.aic_, rel=1e-12)
        assert row(found, name).bic == pytest.approx(fitted.bic_, rel=1e-12)
        assert row(found, name).n_parameters == 6
    assert row(found, "mean").log_evidence == pytest.approx(models["mean"].log_evidence_, rel=1e-12)
    assert np.isnan(row(found, "mode").log_evidence)
    assert "Evidence needs a proper prior" in row(found, "mode").note
    assert row(found, "density")[BLANK].isna().all()
    assert "its likelihood is p(x, t), not p(t|x)" in row(found, "density").note


# --- Rows, weights and folds ----------------------------------------------------------------------


def test_a_weight_is_a_row_repeated_and_weight_zero_none():
    weight = np.tile([1, 2, 0], len(KINDS))[: len(KINDS)]
    models = {"a": GaussianClassifier(), "b": LogisticRegression(prior=1.0)}
    fold, kept = np.arange(len(KINDS)) % 4, weight > 0
    weighted = table(models, WINE, KINDS, cv=PredefinedSplit(fold[kept]), sample_weight=weight)
    again = np.repeat(np.arange(len(KINDS)), weight)
    repeated = table(models, WINE[again], KINDS[again], cv=PredefinedSplit(fold[again]))
    numbers = ["log_score", "std_error", "difference", "brier", "accuracy"]
    assert list(weighted.model) == list(repeated.model)
    assert_allclose(weighted[numbers].to_numpy(float), repeated[numbers].to_numpy(float), rtol=1e-6)


def test_groups_and_time_ordered_folds_are_those_of_the_splitter():
    groups, model = np.arange(len(TUMOURS)) // 100, NaiveBayes()
    found = table([model], cv=GroupKFold(6), groups=groups)
    losses, _ = losses_by_hand(model, CELLS, TUMOURS, GroupKFold(6), groups=groups)
    assert found.log_score[0] == pytest.approx(losses.mean(), rel=1e-10)
    losses = [
        log_loss(TUMOURS[test], NaiveBayes().fit(CELLS[a], TUMOURS[a]).predict_proba(CELLS[test]))
        for a, test in TimeSeriesSplit(3).split(CELLS)
    ]
    found = table([model], cv=TimeSeriesSplit(3))
    assert found.log_score[0] == pytest.approx(np.mean(losses), rel=1e-10)


def test_a_class_that_a_fold_lacks_has_probability_zero_in_it():
    y = np.array(["a"] * 10 + ["b"] * 10 + ["c"] * 3)
    X = np.random.default_rng(0).normal(size=(23, 2))
    fold, weight = np.array([0, 1] * 10 + [1, 1, 1]), np.ones(23)
    weight[[0, 20]] = 0
    models, folds = {"naive": NaiveBayes(), "theirs": Theirs()}, PredefinedSplit(fold[weight > 0])
    found = table(models, X, y, cv=folds, sample_weight=weight)
    assert np.isinf(found.log_score).all()
    assert found.difference_std_error.isna().all()
    assert all("row 21 has the probability zero" in note for note in found.note)


def test_a_model_without_probabilities_has_its_accuracy_at_the_end():
    found = table([LeastSquaresClassifier(), NaiveBayes(), NaiveBayes()])
    assert found.model.tolist() == ["NaiveBayes()", "NaiveBayes() #2", "LeastSquaresClassifier()"]
    last = found.iloc[-1]
    predicted = cross_val_predict(LeastSquaresClassifier(), CELLS, TUMOURS, cv=FOLDS)
    assert last.accuracy == np.mean(predicted == TUMOURS)
    assert last[["log_score", "difference", "brier", "calibration_error"]].isna().all()
    assert last.note.startswith("gives no probabilities")


# --- Text, HTML and errors ------------------------------------------------------------------------


def test_the_comparison_is_a_text_and_an_html_table():
    name = "a model with a name that is longer than any page is wide, which is not shortened at all"
    found = compare({name: LogisticRegression(prior=1.0), "<naive>": NaiveBayes()}, CELLS, TUMOURS)
    text, html = repr(found), found._repr_html_()
    assert text.splitlines()[0] == "Cross-validation of 569 rows, 5 folds"
    assert text.splitlines()[2].split()[:4] == ["log", "score", "std", "error"]
    for each in found.to_frame().itertuples():
        assert f"{each.model} " in text
        assert all(f"{each.log_score:.4f}" in page for page in (text, html))
    assert "* <naive>: no evidence, BIC or AIC" in text
    assert "<td>&lt;naive&gt;</td>" in html


PIPE = make_pipeline(Theirs())


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"models": []}, ParameterError, "no models"),
        ({"models": {"a": 3}}, ParameterError, "3 is not a classifier"),
        ({"models": [GLM(family="poisson")]}, ParameterError, "not a classifier"),
        ({"cv": RepeatedStratifiedKFold(n_splits=2, n_repeats=2)}, ParameterError, "than once"),
        ({"X": "cells.csv"}, ParameterError, "To read files, pass scan"),
        ({"X": scan(pd.DataFrame({"a": [0, 1]}))}, ParameterError, "rows in memory.* a sample"),
        ({"y": None}, LabelError, "requires y"),
        ({"y": np.eye(2)[TUMOURS]}, LabelError, "soft labels"),
        ({"models": {"p": PIPE}, "sample_weight": np.ones(569)}, ValueError, "sample_weight"),
    ],
)
def test_what_cannot_be_compared_is_a_named_error(given, error, words):
    given = {"models": [NaiveBayes()], "X": CELLS, "y": TUMOURS, **given}
    with pytest.raises(error, match=words):
        compare(**given)


def test_an_error_in_a_fold_names_the_model():
    with pytest.raises(ParameterError) as caught:
        compare({"odd": NaiveBayes(family="nonsense")}, CELLS, TUMOURS)
    assert caught.value.__notes__ == ["This was model 'odd'."]
