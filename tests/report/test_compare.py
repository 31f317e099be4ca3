"""Models side by side, against scikit-learn's cross-validation and by hand."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
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
    LevelError,
    ParameterError,
    ShapeError,
)

WINE, KINDS = load_wine(return_X_y=True)
CELLS, TUMOURS = load_breast_cancer(return_X_y=True)
CELLS = CELLS[:, :5]
FOLDS = StratifiedKFold(4, shuffle=True, random_state=1)
BLANK = ["log_evidence", "bic", "aic"]


def table(models, X=CELLS, y=TUMOURS, **settings):
    return compare(models, X, y, **{"cv": FOLDS, **settings}).to_frame()


def row(frame, name):
    return frame.set_index("model").loc[name]


def test_scores_are_those_of_scikit_learns_cross_validation():
    model = LogisticRegression(prior=1.0)
    found = row(table({"ours": model}), "ours")
    proba = cross_val_predict(model, CELLS, TUMOURS, cv=FOLDS, method="predict_proba")
    own = -np.log(proba[np.arange(len(TUMOURS)), TUMOURS])
    assert found.log_score == pytest.approx(log_loss(TUMOURS, proba), rel=1e-12)
    assert found.std_error == pytest.approx(own.std(ddof=1) / np.sqrt(len(own)), rel=1e-12)
    assert found.brier == pytest.approx(brier_score_loss(TUMOURS, proba[:, 1]), rel=1e-12)
    assert found.accuracy == np.mean(proba.argmax(axis=1) == TUMOURS)


def test_any_classifier_of_scikit_learn_takes_part():
    theirs = make_pipeline(StandardScaler(), Theirs())
    found = row(table({"theirs": theirs}, WINE, KINDS), "theirs")
    proba = cross_val_predict(theirs, WINE, KINDS, cv=FOLDS, method="predict_proba")
    assert found.log_score == pytest.approx(log_loss(KINDS, proba), rel=1e-10)
    assert found[BLANK].isna().all()
    assert "no likelihood of its own" in found.note


def test_the_difference_is_paired_with_the_best():
    models = {"full": GaussianClassifier(covariance="full"), "naive": NaiveBayes()}
    found = table(models, WINE, KINDS)
    assert found.log_score.is_monotonic_increasing
    losses = {}
    for name, model in models.items():
        proba = cross_val_predict(model, WINE, KINDS, cv=FOLDS, method="predict_proba")
        losses[name] = -np.log(proba[np.arange(len(KINDS)), KINDS])
    best, worse = found.model
    away = losses[worse] - losses[best]
    assert row(found, best).difference == row(found, best).difference_std_error == 0
    assert row(found, worse).difference == pytest.approx(away.mean(), rel=1e-9)
    error = away.std(ddof=1) / np.sqrt(len(away))
    assert row(found, worse).difference_std_error == pytest.approx(error, rel=1e-9)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_a_level_in_one_fold_only_is_an_error_or_the_reference(kind):
    random = np.random.default_rng(0)
    size, colour = random.normal(size=90), ["blue", "red", "red"] * 30
    colour[7] = "teal"
    y = (size + random.logistic(size=90) > 0).astype(int)
    X = kind({"size": size, "colour": colour})
    with pytest.raises(LevelError, match=r"'teal' .* set handle_unknown='reference'"):
        table([LogisticRegression(prior=1.0)], X, y)
    found = table([LogisticRegression(prior=1.0, handle_unknown="reference")], X, y)
    assert type(found) is kind
    assert found["log_score"][0] < np.log(2)


# --- Formulas -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def frame():
    random = np.random.default_rng(3)
    age, region = random.normal(size=200), random.choice(["north", "south"], 200)
    sick = np.where(random.logistic(size=200) < age + age**2 - 1, "yes", "no")
    return pd.DataFrame({"age": age, "region": region, "sick": sick})


def test_a_model_fitted_by_a_formula_is_compared_by_its_formula(frame):
    formulas = {"line": "sick ~ age", "square": "sick ~ age + I(age**2) + region"}
    fitted = {
        name: LogisticRegression(prior=1.0).fit(text, frame) for name, text in formulas.items()
    }
    found = table(fitted, frame, frame["sick"])
    assert found.model.tolist() == ["square", "line"]
    columns = {
        "line": frame[["age"]],
        "square": pd.DataFrame(
            {"age": frame.age, "square": frame.age**2, "south": frame.region == "south"}
        ).astype(float),
    }
    for name, X in columns.items():
        expected = table([LogisticRegression(prior=1.0)], X, frame["sick"])
        assert row(found, name).log_score == pytest.approx(expected.log_score[0], rel=1e-6)
        assert row(found, name).accuracy == expected.accuracy[0] < 0.9
    assert table(fitted, frame, None).log_score.tolist() == found.log_score.tolist()


def test_formulas_need_their_frame_and_their_target(frame):
    model = LogisticRegression(prior=1.0).fit("sick ~ age", frame)
    other = LogisticRegression(prior=1.0).fit("region ~ age", frame)
    array = frame[["age"]].to_numpy()
    for models, X, y, error, words in (
        ({"a": model}, array, frame["sick"], ColumnTypeError, "'sick ~ age' names columns"),
        ({"a": CalibratedClassifier(model)}, array, frame["sick"], ColumnTypeError, "columns"),
        ({"a": model}, frame, frame["region"], LabelError, "has another target than y"),
        ({"a": model, "b": other}, frame, None, LabelError, "than y or the other formulas"),
        ({"a": model, "b": NaiveBayes()}, frame, None, ParameterError, "'b' has no formula"),
    ):
        with pytest.raises(error, match=words):
            compare(models, X, y)


# --- Evidence, BIC and AIC ------------------------------------------------------------------------


def test_criteria_are_those_of_the_fit_to_all_rows():
    models = {"mode": LogisticRegression(), "mean": BayesianLogisticRegression()}
    found = table(models)
    for name, model in models.items():
        fitted = model.fit(CELLS, TUMOURS)
        assert row(found, name).aic == pytest.approx(fitted.aic_, rel=1e-12)
        assert row(found, name).bic == pytest.approx(fitted.bic_, rel=1e-12)
        assert row(found, name).n_parameters == 6
    assert row(found, "mean").log_evidence == pytest.approx(models["mean"].log_evidence_, rel=1e-12)
    assert np.isnan(row(found, "mode").log_evidence)
    assert "Evidence needs a proper prior" in row(found, "mode").note


def test_a_density_of_x_is_not_compared_with_a_conditional_likelihood():
    both = table({"p(t|x)": LogisticRegression(), "p(x,t)": GaussianClassifier()})
    assert np.isfinite(row(both, "p(t|x)").bic)
    assert row(both, "p(x,t)")[BLANK].isna().all()
    assert "p(x, t), those of other models of p(t|x)" in row(both, "p(x,t)").note
    alone = table({"p(x,t)": GaussianClassifier(), "naive": NaiveBayes()})
    fitted = GaussianClassifier().fit(CELLS, TUMOURS)
    aic = 2 * (fitted.n_parameters_ - fitted.log_likelihood_)
    assert row(alone, "p(x,t)").aic == pytest.approx(aic, rel=1e-10)
    assert np.isfinite(row(alone, "naive").aic)


def test_a_mass_function_is_not_compared_with_a_density():
    counts = np.floor(abs(CELLS[:, :2]))
    models = {"gauss": GaussianClassifier(), "counts": NaiveBayes(family="poisson")}
    found = table(models, counts)
    assert sorted(np.isnan(row(found, name).aic) for name in models) == [False, True]


# --- Rows, weights and folds ----------------------------------------------------------------------


def test_a_weight_is_a_row_repeated_and_weight_zero_none():
    weight = np.tile([1, 2, 0], len(KINDS))[: len(KINDS)]
    models = {"a": GaussianClassifier(), "b": LogisticRegression(prior=1.0)}
    fold, kept = np.arange(len(KINDS)) % 4, weight > 0
    weighted = table(models, WINE, KINDS, cv=PredefinedSplit(fold[kept]), sample_weight=weight)
    again = np.repeat(np.arange(len(KINDS)), weight)
    repeated = table(models, WINE[again], KINDS[again], cv=PredefinedSplit(fold[again]))
    numbers = ["log_score", "std_error", "difference", "brier", "accuracy", "bic"]
    assert list(weighted.model) == list(repeated.model)
    assert_allclose(weighted[numbers].to_numpy(float), repeated[numbers].to_numpy(float), rtol=1e-6)


def test_groups_and_time_ordered_folds_are_those_of_the_splitter():
    groups, model = np.arange(len(TUMOURS)) // 100, NaiveBayes()
    found = table([model], cv=GroupKFold(6), groups=groups)
    given = {"cv": GroupKFold(6), "groups": groups, "method": "predict_proba"}
    proba = cross_val_predict(model, CELLS, TUMOURS, **given)
    assert found.log_score[0] == pytest.approx(log_loss(TUMOURS, proba), rel=1e-10)
    folds = list(TimeSeriesSplit(3).split(CELLS))
    losses = [
        log_loss(TUMOURS[test], NaiveBayes().fit(CELLS[a], TUMOURS[a]).predict_proba(CELLS[test]))
        for a, test in folds
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
    models = [LeastSquaresClassifier(), LogisticRegression(prior=1.0)]
    last = table(models).iloc[-1]
    assert last.model == "LeastSquaresClassifier()"
    assert last.accuracy == np.mean(
        cross_val_predict(models[0], CELLS, TUMOURS, cv=FOLDS) == TUMOURS
    )
    assert last[["log_score", "difference", "brier", "calibration_error"]].isna().all()
    assert last.note.startswith("gives no probabilities")


def test_two_equal_models_have_different_names():
    found = table([NaiveBayes(), NaiveBayes()])
    assert sorted(found.model) == ["NaiveBayes()", "NaiveBayes() #2"]
    assert found.log_score[0] == found.log_score[1]


def test_each_fit_is_reported():
    told = []
    table({"a": NaiveBayes()}, cv=2, progress=told.append)
    assert told == ["a, fold 1 of 2", "a, fold 2 of 2", "a, all rows"]


# --- Text, HTML and errors ------------------------------------------------------------------------


def test_the_comparison_is_a_text_and_an_html_table():
    name = "a model with a name that is longer than any page is wide, which is not shortened at all"
    found = compare({name: LogisticRegression(prior=1.0), "<naive>": NaiveBayes()}, CELLS, TUMOURS)
    text, html, frame = repr(found), found._repr_html_(), found.to_frame()
    assert text.splitlines()[0] == "Cross-validation of 569 rows, 5 folds"
    assert text.splitlines()[2].split()[:4] == ["log", "score", "std", "error"]
    for each in frame.itertuples():
        assert f"{each.model} " in text
        assert all(f"{each.log_score:.4f}" in page for page in (text, html))
    assert "* <naive>: log_evidence: the parameters have no prior" in text
    assert "<th>&lt;naive&gt;</th>" in html


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"models": []}, ParameterError, "no models"),
        ({"models": {"a": 3}}, ParameterError, "3 is not a classifier"),
        ({"models": [GLM(family="poisson")]}, ParameterError, "not a classifier"),
        ({"cv": 1}, ValueError, "n_splits=1"),
        ({"cv": RepeatedStratifiedKFold(n_splits=2, n_repeats=2)}, ParameterError, "than once"),
        ({"X": "cells.csv"}, ParameterError, "rows in memory, and X is a str"),
        ({"y": None}, LabelError, "y is missing"),
        ({"y": np.eye(2)[TUMOURS]}, LabelError, "soft labels"),
        ({"y": TUMOURS[:4]}, ShapeError, "569"),
        (
            {"models": {"p": make_pipeline(Theirs())}, "sample_weight": np.ones(569)},
            ValueError,
            "sample_weight",
        ),
    ],
)
def test_what_cannot_be_compared_is_a_named_error(given, error, words):
    given = {"models": [NaiveBayes()], "X": CELLS, "y": TUMOURS, **given}
    with pytest.raises(error, match=words):
        compare(**given)


def test_a_source_is_an_error_with_the_remedy(tmp_path):
    pd.DataFrame(CELLS).assign(y=TUMOURS).to_csv(tmp_path / "cells.csv", index=False)
    with pytest.raises(ParameterError, match=r"rows in memory.* a sample of the rows"):
        compare([NaiveBayes()], scan(tmp_path / "cells.csv", target="y"))


def test_an_error_in_a_fold_names_the_model():
    with pytest.raises(ParameterError) as caught:
        compare({"odd": NaiveBayes(family="nonsense")}, CELLS, TUMOURS)
    assert caught.value.__notes__ == ["This was model 'odd'."]
