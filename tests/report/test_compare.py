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
    FixedThresholdClassifier,
    GroupKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_predict,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from posteriori import (
    GLM,
    BayesianLogisticRegression,
    FisherDiscriminant,
    GaussianClassifier,
    LeastSquaresClassifier,
    LogisticRegression,
    NaiveBayes,
    compare,
)
from posteriori.errors import (
    LabelError,
    ParameterError,
    ShapeError,
    SingularCovarianceWarning,
)

WINE, KINDS = load_wine(return_X_y=True)
CELLS, TUMOURS = load_breast_cancer(return_X_y=True)
CELLS = CELLS[:, :5]
FOLDS = StratifiedKFold(4, shuffle=True, random_state=1)
BLANK = ["log_evidence", "bic", "aic"]


def row(table, name):
    return table.set_index("model").loc[name]


def test_scores_are_those_of_predictions_for_rows_held_back():
    model = LogisticRegression(prior=1.0)
    found = row(compare({"ours": model}, CELLS, TUMOURS, folds=FOLDS), "ours")
    proba = cross_val_predict(model, CELLS, TUMOURS, cv=FOLDS, method="predict_proba")
    own = -np.log(proba[np.arange(len(TUMOURS)), TUMOURS])
    assert found.log_score == pytest.approx(log_loss(TUMOURS, proba), rel=1e-12)
    assert found.log_score_error == pytest.approx(own.std(ddof=1) / np.sqrt(len(own)), rel=1e-12)
    assert found.brier == pytest.approx(brier_score_loss(TUMOURS, proba[:, 1]), rel=1e-12)
    assert found.accuracy == np.mean(proba.argmax(axis=1) == TUMOURS)


def test_any_classifier_of_scikit_learn_takes_part():
    theirs = make_pipeline(StandardScaler(), Theirs())
    found = row(compare({"theirs": theirs}, WINE, KINDS, folds=FOLDS), "theirs")
    proba = cross_val_predict(theirs, WINE, KINDS, cv=FOLDS, method="predict_proba")
    assert found.log_score == pytest.approx(log_loss(KINDS, proba), rel=1e-10)
    assert found[BLANK].isna().all()
    assert "no likelihood of its own" in found.note


def test_the_difference_is_paired_with_the_best():
    models = {"full": GaussianClassifier(covariance="full"), "naive": NaiveBayes()}
    table = compare(models, WINE, KINDS, folds=FOLDS)
    assert table.log_score.is_monotonic_increasing
    losses = {}
    for name, model in models.items():
        proba = cross_val_predict(model, WINE, KINDS, cv=FOLDS, method="predict_proba")
        losses[name] = -np.log(proba[np.arange(len(KINDS)), KINDS])
    best, worse = table.model
    away = losses[worse] - losses[best]
    assert row(table, best).difference == row(table, best).difference_error == 0
    assert row(table, worse).difference == pytest.approx(away.mean(), rel=1e-9)
    expected = away.std(ddof=1) / np.sqrt(len(away))
    assert row(table, worse).difference_error == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        GaussianClassifier(),
        GaussianClassifier(covariance="full", shrinkage="auto"),
        GaussianClassifier(covariance="diagonal"),
        GaussianClassifier(covariance="isotropic", estimate="unbiased"),
        GaussianClassifier(covariance=[[0, 2]], priors=[0.2, 0.3, 0.5]),
    ],
    ids=repr,
)
def test_sums_shared_by_gaussian_models_change_no_answer(model):
    table = compare([model], WINE, KINDS, folds=FOLDS)
    # scikit-learn's log_loss would cut off probabilities below 1e-16.
    logs = cross_val_predict(model, WINE, KINDS, cv=FOLDS, method="predict_log_proba")
    expected = -logs[np.arange(len(KINDS)), KINDS].mean()
    assert table.log_score[0] == pytest.approx(expected, rel=1e-9)


def test_rows_with_gaps_are_compared_too():
    gaps = WINE.copy()
    gaps[::7, 2] = np.nan
    models = [GaussianClassifier(), GaussianClassifier(covariance="diagonal")]
    table = compare(models, gaps, KINDS, folds=FOLDS)
    for model in models:
        proba = cross_val_predict(model, gaps, KINDS, cv=FOLDS, method="predict_proba")
        found = row(table, " ".join(repr(model).split()))
        assert found.log_score == pytest.approx(log_loss(KINDS, proba), rel=1e-9)


def test_a_level_that_only_one_fold_has_is_known_to_the_others():
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"size": random.normal(size=90), "colour": ["blue", "red", "red"] * 30})
    frame.loc[7, "colour"] = "teal"
    y = (frame["size"] + random.logistic(size=90) > 0).astype(int)
    models = [LogisticRegression(prior=1.0), NaiveBayes(), GaussianClassifier(shrinkage=0.1)]
    with pytest.warns(SingularCovarianceWarning, match=r"colour\[teal\]' never change"):
        table = compare(models, frame, y)
    assert table["log_score"].notna().all()
    assert (table["log_score"] < np.log(2)).all()


def test_criteria_are_those_of_the_fit_to_all_rows():
    models = {"mode": LogisticRegression(), "mean": BayesianLogisticRegression()}
    table = compare(models, CELLS, TUMOURS, folds=FOLDS)
    for name, model in models.items():
        fitted = model.fit(CELLS, TUMOURS)
        assert row(table, name).aic == pytest.approx(fitted.aic_, rel=1e-12)
        assert row(table, name).bic == pytest.approx(fitted.bic_, rel=1e-12)
        assert row(table, name).n_parameters == 6
    assert row(table, "mean").log_evidence == pytest.approx(models["mean"].log_evidence_, rel=1e-12)
    assert np.isnan(row(table, "mode").log_evidence)
    assert "Evidence needs a proper prior" in row(table, "mode").note


def test_a_density_of_x_is_not_compared_with_a_conditional_likelihood():
    both = compare({"p(t|x)": LogisticRegression(), "p(x,t)": GaussianClassifier()}, CELLS, TUMOURS)
    assert np.isfinite(row(both, "p(t|x)").bic)
    assert row(both, "p(x,t)")[BLANK].isna().all()
    assert "p(x, t), those of other models of p(t|x)" in row(both, "p(x,t)").note
    alone = compare({"p(x,t)": GaussianClassifier(), "naive": NaiveBayes()}, CELLS, TUMOURS)
    fitted = GaussianClassifier().fit(CELLS, TUMOURS)
    aic = 2 * (fitted.n_parameters_ - fitted.log_likelihood_)
    assert row(alone, "p(x,t)").aic == pytest.approx(aic, rel=1e-10)
    assert np.isfinite(row(alone, "naive").aic)


def test_a_mass_function_is_not_compared_with_a_density():
    counts = np.floor(abs(CELLS[:, :2]))
    models = {"gauss": GaussianClassifier(), "counts": NaiveBayes(family="poisson")}
    table = compare(models, counts, TUMOURS)
    blank = [np.isnan(row(table, name).aic) for name in models]
    assert sorted(blank) == [False, True]


def test_a_model_without_probabilities_has_its_accuracy_at_the_end():
    models = [LeastSquaresClassifier(), LogisticRegression(prior=1.0)]
    table = compare(models, CELLS, TUMOURS, folds=FOLDS)
    last = table.iloc[-1]
    assert last.model == "LeastSquaresClassifier()"
    right = cross_val_predict(models[0], CELLS, TUMOURS, cv=FOLDS) == TUMOURS
    assert last.accuracy == right.mean()
    assert last[["log_score", "difference", "brier", "calibration_error"]].isna().all()
    assert last.note.startswith("gives no probabilities")


def test_two_of_a_kind_have_names_of_their_own():
    table = compare([NaiveBayes(), NaiveBayes()], CELLS, TUMOURS)
    assert sorted(table.model) == ["NaiveBayes()", "NaiveBayes() #2"]
    assert table.log_score[0] == table.log_score[1]


def test_a_weight_is_a_row_repeated_and_weight_zero_none():
    weight = np.tile([1, 2, 0], len(KINDS))[: len(KINDS)]
    models = {"a": GaussianClassifier(), "b": LogisticRegression(prior=1.0)}
    folds = np.arange(len(KINDS)) % 4
    weighted = compare(models, WINE, KINDS, folds=folds, sample_weight=weight)
    again = np.repeat(np.arange(len(KINDS)), weight)
    repeated = compare(models, WINE[again], KINDS[again], folds=folds[again])
    numbers = ["log_score", "log_score_error", "difference", "brier", "accuracy", "bic"]
    assert list(weighted.model) == list(repeated.model)
    assert_allclose(weighted[numbers].to_numpy(float), repeated[numbers].to_numpy(float), rtol=1e-6)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_the_table_is_of_the_kind_that_was_handed_in(kind):
    X = kind({f"x{j}": WINE[:, j] for j in range(4)})
    table = compare({"shared": GaussianClassifier(), "fisher": FisherDiscriminant()}, X, KINDS)
    assert type(table) is kind
    assert set(table["model"]) == {"shared", "fisher"}


def test_each_fit_is_told():
    told = []
    compare({"a": NaiveBayes()}, CELLS, TUMOURS, folds=3, progress=told.append)
    assert [str(each) for each in told] == [
        "a, fold 1 of 3",
        "a, fold 2 of 3",
        "a, fold 3 of 3",
        "a, all rows",
    ]
    assert [(each.fits, each.n_fits) for each in told] == [(0, 4), (1, 4), (2, 4), (3, 4)]


def test_a_class_that_a_fold_has_all_rows_of_is_impossible_elsewhere():
    y = np.array(["a"] * 10 + ["b"] * 10 + ["c"] * 2)
    X = np.random.default_rng(0).normal(size=(22, 2))
    folds = np.array([0, 1] * 10 + [1, 1])
    table = compare({"naive": NaiveBayes()}, X, y, folds=folds)
    assert np.isinf(table.log_score[0])
    assert "gave row 20 the probability zero" in table.note[0]


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"models": []}, ShapeError, "no models"),
        ({"models": {"a": 3}}, ParameterError, "3 is no classifier"),
        ({"models": [GLM(family="poisson")]}, ParameterError, "no classifier"),
        ({"folds": "a"}, ParameterError, "folds='a'"),
        ({"folds": list(FOLDS.split(CELLS, TUMOURS))}, ParameterError, "not understood"),
        ({"folds": RepeatedStratifiedKFold(n_splits=2, n_repeats=2)}, ParameterError, "twice"),
        ({"models": [NaiveBayes]}, ParameterError, "no classifier"),
        ({"folds": 1}, ParameterError, "=1 holds out no rows"),
        ({"folds": [0, 1]}, ShapeError, "2 labels for 569 rows"),
        ({"folds": ShuffleSplit(1, random_state=0)}, ParameterError, "leave out row"),
        ({"progress": 7}, ParameterError, "progress=7"),
        ({"y": None}, LabelError, "y"),
        ({"y": TUMOURS[:4]}, ShapeError, "569"),
        (
            {"models": {"p": make_pipeline(Theirs())}, "sample_weight": np.ones(569)},
            ParameterError,
            "p takes none",
        ),
    ],
)
def test_what_cannot_be_compared_is_a_named_error(given, error, words):
    given = {"models": [NaiveBayes()], "X": CELLS, "y": TUMOURS, **given}
    with pytest.raises(error, match=words):
        compare(**given)


def test_accuracy_is_that_of_the_rule_of_the_model():
    model = FixedThresholdClassifier(LogisticRegression(prior=1.0), threshold=0.95)
    table = compare(model, CELLS, TUMOURS, folds=FOLDS)
    right = cross_val_predict(model, CELLS, TUMOURS, cv=FOLDS) == TUMOURS
    assert table.accuracy[0] == right.mean()


def test_rows_of_weight_zero_keep_their_place_in_notes():
    y = np.array(["a"] * 10 + ["b"] * 10 + ["c"] * 3)
    X = np.random.default_rng(0).normal(size=(23, 2))
    folds, weight = np.array([0, 1] * 10 + [1, 1, 1]), np.ones(23)
    weight[[0, 20]] = 0
    table = compare({"naive": NaiveBayes()}, X, y, folds=folds, sample_weight=weight)
    assert "gave row 21 the probability zero" in table.note[0]


def test_densities_of_other_columns_are_not_compared():
    counts = np.column_stack([CELLS[:, 0], np.floor(CELLS[:, 1])])
    models = {"one": NaiveBayes(family={0: "gaussian", 1: "poisson"}), "none": NaiveBayes()}
    table = compare(models, counts, TUMOURS)
    assert table.bic.isna().sum() == 1


def test_an_error_in_a_fold_says_which():
    with pytest.raises(ParameterError) as caught:
        compare({"odd": NaiveBayes(family="nonsense")}, CELLS, TUMOURS)
    assert caught.value.__notes__ == ["This was odd, fitted to all rows but those of fold 1."]


def test_groups_stay_together_by_a_splitter_of_ones_own():
    folds = np.arange(len(TUMOURS)) // 100
    by_label = compare([NaiveBayes()], CELLS, TUMOURS, folds=folds)
    groups = list(GroupKFold(6).split(CELLS, TUMOURS, folds))

    class Groups:
        def split(self, X, y):
            return groups

    assert compare([NaiveBayes()], CELLS, TUMOURS, folds=Groups()).log_score[0] == pytest.approx(
        by_label.log_score[0], rel=1e-12
    )
