"""Parameters, pages and reprs of fitted models, in numbers."""

import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import statsmodels.api as sm
from laws.samples import frame_of, rows_for
from numpy.testing import assert_allclose
from registry import ENTRIES
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB

from posteriori import (
    GLM,
    BayesianLogisticRegression,
    CalibratedClassifier,
    DecidingClassifier,
    FisherDiscriminant,
    GaussianClassifier,
    LeastSquaresClassifier,
    LogisticRegression,
    NaiveBayes,
    NoveltyDetector,
    OneVersusOne,
    OneVersusRest,
    Perceptron,
    ProbitRegression,
)
from posteriori.errors import (
    ColumnNameError,
    ConvergenceWarning,
    LabelError,
    ParameterError,
    PosterioriWarning,
    SeparationWarning,
)
from posteriori.inspection.results import augment
from posteriori.rows.in_memory import MemoryRows

SPECTOR = sm.datasets.spector.load_pandas()
X, Y = SPECTOR.exog, SPECTOR.endog.astype(int).to_numpy()
IRIS = load_iris(as_frame=True)
FLOWERS = IRIS.data + np.random.default_rng(0).normal(size=IRIS.data.shape)
KINDS = IRIS.target_names[IRIS.target]
FITS = [
    (LogisticRegression(), (X, Y)),
    (LogisticRegression(prior=1.0), (FLOWERS, KINDS)),
    (LogisticRegression(), (FLOWERS, KINDS)),
]


def test_odds_ratios_and_their_intervals_are_those_of_statsmodels():
    found = LogisticRegression(tol=1e-10).fit(X, Y).tidy(odds_ratios=True)
    theirs = sm.Logit(Y, sm.add_constant(X)).fit(disp=0, tol=1e-12)
    assert_allclose(found["estimate"], np.exp(theirs.params), rtol=1e-8)
    ends = np.exp(theirs.conf_int())
    assert_allclose(found[["conf_low", "conf_high"]], ends, rtol=1e-8)
    assert_allclose(found["std_error"], theirs.bse, rtol=1e-8)
    assert_allclose(found["p_value"], theirs.pvalues, rtol=1e-8)


@pytest.mark.parametrize(
    "model", [ProbitRegression(), GLM(family="poisson"), GLM(family="bernoulli", link="cloglog")]
)
def test_odds_ratios_of_other_links_are_an_error(model):
    with pytest.raises(ParameterError, match="no logarithms of odds ratios"):
        model.fit(X, Y).tidy(odds_ratios=True)


@pytest.mark.parametrize("reference", ["setosa", "versicolor", "virginica"])
def test_contrasts_are_with_whichever_class_is_asked_for(reference):
    labels = [reference, *sorted(set(KINDS) - {reference})]
    codes = np.array([labels.index(kind) for kind in KINDS])
    theirs = sm.MNLogit(codes, sm.add_constant(FLOWERS)).fit(disp=0, tol=1e-12)
    found = LogisticRegression(tol=1e-10).fit(FLOWERS, KINDS).tidy(reference=reference)
    assert found["class"].unique().tolist() == labels[1:]
    assert_allclose(found["estimate"], theirs.params.to_numpy().T.ravel(), rtol=1e-8)
    assert_allclose(found["std_error"], theirs.bse.to_numpy().T.ravel(), rtol=1e-8)
    page = LogisticRegression().fit(FLOWERS, KINDS).summary(reference=reference)
    assert f"{labels[1]} against {reference}" in str(page)


def test_a_posterior_has_contrasts_and_odds_ratios_too():
    model = BayesianLogisticRegression().fit(FLOWERS, KINDS)
    found = model.tidy(reference="virginica").set_index(["class", "term"])["estimate"]
    first = model.tidy().set_index(["class", "term"])["estimate"]
    assert found["setosa", "petal width (cm)"] == pytest.approx(
        -first["virginica", "petal width (cm)"], rel=1e-12
    )
    ratio = model.tidy(odds_ratios=True).set_index(["class", "term"])["estimate"]
    assert_allclose(np.log(ratio), first, rtol=1e-10)


def test_a_reference_that_is_no_class_is_an_error():
    model = LogisticRegression(prior=1.0).fit(FLOWERS, KINDS)
    with pytest.raises(ParameterError, match="no class 'rose'"):
        model.tidy(reference="rose")
    with pytest.raises(ParameterError, match="more than two classes"):
        LogisticRegression().fit(X, Y).summary(reference=1)


def test_classes_of_a_gaussian_are_told_by_their_means():
    model = GaussianClassifier(covariance="full").fit(FLOWERS, KINDS)
    found = model.tidy().set_index(["class", "term"])
    one = FLOWERS[KINDS == "setosa"]["petal width (cm)"]
    row = found.loc["setosa", "petal width (cm)"]
    assert row.estimate == pytest.approx(one.mean(), rel=1e-12)
    assert row.sd == pytest.approx(one.std(ddof=0), rel=1e-12)
    assert row.std_error == pytest.approx(one.std(ddof=0) / np.sqrt(50), rel=1e-12)


def test_levels_of_naive_bayes_are_told_by_their_probabilities():
    colour = pd.DataFrame({"colour": ["red", "red", "blue", "red"], "size": [1.0, 2.0, 3.0, 5.0]})
    found = NaiveBayes(pseudocount=0.0).fit(colour, ["a", "a", "b", "b"]).tidy()
    chosen = found[(found["term"] == "colour") & (found["class"] == "b")]
    assert chosen[["parameter", "estimate"]].values.tolist() == [["blue", 0.5], ["red", 0.5]]
    means = found[(found["parameter"] == "mean")]["estimate"].tolist()
    assert means == [1.5, 4.0]


def test_directions_of_fisher_are_told_by_component():
    model = FisherDiscriminant().fit(FLOWERS, KINDS)
    found = model.tidy()
    second = found[found["component"] == 2]["estimate"]
    assert_allclose(second, model.scalings_[:, 1], rtol=1e-14)
    assert model.glance()["n_obs"][0] == 150


def test_linear_models_tell_their_coefficients():
    model = LeastSquaresClassifier().fit(FLOWERS, KINDS)
    found = model.tidy()
    W = np.column_stack([model.intercept_, model.coef_])
    assert_allclose(found["estimate"], W.ravel(), rtol=1e-14)
    assert found["class"].tolist() == np.repeat(model.classes_, 5).tolist()
    assert found["term"].tolist()[:2] == ["intercept", "sepal length (cm)"]


def test_classifiers_of_pairs_are_told_one_by_one():
    model = OneVersusOne(estimator=LogisticRegression(prior=1.0)).fit(FLOWERS, KINDS)
    found = model.tidy()
    assert found["classifier"].unique().tolist() == [
        "versicolor against setosa",
        "virginica against setosa",
        "virginica against versicolor",
    ]
    one = LogisticRegression(prior=1.0).fit(FLOWERS[50:], KINDS[50:])
    assert_allclose(found["estimate"].iloc[-4:], one.coef_[0], rtol=1e-8)
    curved = OneVersusRest(estimator=GaussianClassifier(covariance="full")).fit(FLOWERS, KINDS)
    assert "not all of its classifiers are linear" in repr(curved)
    assert "see estimators_" in str(curved.summary())


@pytest.mark.parametrize("wrapper", [DecidingClassifier, CalibratedClassifier, NoveltyDetector])
def test_what_is_around_another_model_tells_of_that(wrapper):
    inner = GaussianClassifier().fit(FLOWERS, KINDS)
    model = wrapper(GaussianClassifier())
    model.fit(FLOWERS, KINDS)
    assert model.tidy().equals(inner.tidy())
    assert str(model.summary()).startswith(f"{wrapper.__name__}, fitted")
    assert "4 columns, 3 classes" in repr(model)
    table = model.augment(FLOWERS, KINDS)
    assert_allclose(table["p_virginica"], model.predict_proba(FLOWERS)[:, 2], rtol=1e-9)
    mean = model.predictions(FLOWERS, average=True)["estimate"]
    assert_allclose(mean, model.predict_proba(FLOWERS).mean(axis=0), rtol=1e-9)
    assert model.check(FLOWERS, KINDS)["calibration"].word in ("good", "look", "bad")
    forest = wrapper(GaussianNB()).fit(FLOWERS, KINDS) if wrapper is not NoveltyDetector else model
    assert forest is model or "in estimator_" in repr(forest)


def test_a_repr_says_what_was_fitted_and_what_to_bear_in_mind():
    assert repr(LogisticRegression(prior=1.0)) == "LogisticRegression(prior=1.0)"
    plain = repr(LogisticRegression(prior=1.0).fit(X, Y))
    steps = r"converged in \d+ steps?"
    assert re.fullmatch(
        rf"<LogisticRegression\(prior=1.0\), fitted: 3 columns, 2 classes, {steps}>", plain
    )
    with pytest.warns(SeparationWarning):
        apart = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    assert "the classes can be separated" in repr(apart)
    with pytest.warns(ConvergenceWarning):
        short = LogisticRegression(max_iter=1, tol=1e-12).fit(FLOWERS, KINDS)
    assert "did not converge" in repr(short)


def test_rows_of_a_number_come_back_with_residuals():
    counts = np.arange(150) % 4
    model = GLM(family="poisson").fit(FLOWERS, counts)
    table = model.augment(FLOWERS, counts)
    assert_allclose(table["residual"], counts - model.predict(FLOWERS), rtol=1e-14)
    assert list(model.augment(FLOWERS).columns)[-1] == "fitted"


def test_augmented_rows_keep_their_kind_and_their_index():
    part = FLOWERS.iloc[[7, 3]]
    model = LogisticRegression(prior=1.0).fit(FLOWERS, KINDS)
    assert model.augment(part).index.tolist() == [7, 3]
    other = pl.DataFrame({name: FLOWERS[name].to_numpy() for name in FLOWERS})
    assert isinstance(LogisticRegression(prior=1.0).fit(other, KINDS).augment(other), pl.DataFrame)
    bare = Perceptron(averaged=True).fit(X.to_numpy(), Y).augment(X.to_numpy())
    assert list(bare.columns) == ["x0", "x1", "x2", "predicted"]


def test_a_column_that_is_called_as_an_answer_is_not_overwritten():
    named = X.rename(columns={"PSI": "predicted"})
    with pytest.raises(ColumnNameError, match="'predicted' already"):
        LogisticRegression().fit(named, Y).augment(named)


def test_labels_that_are_no_classes_are_an_error():
    model = LogisticRegression().fit(X, Y)
    with pytest.raises(LabelError):
        model.augment(X, np.full(len(X), 7))
    with pytest.raises(LabelError, match="soft"):
        model.augment(X, np.full((len(X), 2), 0.5))


@pytest.mark.parametrize("ask", ["tidy", "glance", "summary"])
def test_a_model_that_is_not_fitted_has_nothing_to_tell(ask):
    with pytest.raises(NotFittedError):
        getattr(NaiveBayes(), ask)()


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_tables_come_in_the_frame_of_the_fit(make):
    model = LogisticRegression().fit(make(X.to_dict("list")), Y)
    for table in (model.tidy(), model.glance()):
        assert type(table) is type(make({"a": [1]}))
    plain = LogisticRegression().fit(X, Y).tidy()
    names = model.tidy().column_names if make is pa.table else list(model.tidy().columns)
    assert names == list(plain.columns)
    np.testing.assert_allclose(np.asarray(model.tidy()["p_value"]), plain["p_value"], rtol=1e-12)


def test_glance_has_one_row():
    found = LogisticRegression().fit(X, Y).glance()
    assert list(found.columns) == [
        "n_obs",
        "n_parameters",
        "log_likelihood",
        "deviance",
        "null_deviance",
        "aic",
        "bic",
        "converged",
        "n_iter",
        "solver",
    ]
    assert len(found) == 1
    assert found["n_obs"].item() == 32
    assert found["converged"].item()
    assert found["solver"].item() == "newton"


def test_all_tables_of_a_fit_cost_one_hessian_and_a_sum_of_targets(monkeypatch):
    models, kernels, map_sum = (
        [clone(model).fit(*rows) for model, rows in FITS],
        [],
        MemoryRows.map_sum,
    )

    def counted(rows, kernel, **settings):
        kernels.append(type(kernel).__name__)
        return map_sum(rows, kernel, **settings)

    monkeypatch.setattr(MemoryRows, "map_sum", counted)
    for model in models:
        assert len(model.tidy()) == len(model.summary().to_frame())
        assert np.isfinite(model.glance()["aic"]).all()
        assert sorted(kernels) == ["GatherClassTargets", "GatherQuadratic"]
        kernels.clear()


def fitted(entry):
    rows = rows_for(entry, n=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PosterioriWarning)
        return entry.make(rows.classes).fit(frame_of(rows.X), rows.y), rows


@pytest.mark.parametrize("entry", ENTRIES, ids=str)
def test_every_model_has_tables_and_a_summary(entry):
    model, rows = fitted(entry)
    name = type(model).__name__
    table = model.tidy()
    assert next(iter(table.columns)) == "term"
    assert np.isfinite(table["estimate"]).all()
    line = model.glance()
    assert len(line) == 1
    assert line["n_parameters"][0] == model.n_parameters_
    page = model.summary()
    assert str(page).startswith(f"{name}, fitted")
    assert "<table>" in page._repr_html_()
    assert page.latex().count("begin{tabular}") == page.latex().count("end{tabular}") == 2
    assert repr(model).startswith(f"<{name}(")
    assert f"4 columns, {len(rows.classes)} classes" in repr(model)


@pytest.mark.parametrize("entry", ENTRIES, ids=str)
def test_augment_adds_predictions_to_the_rows(entry):
    model, rows = fitted(entry)
    X = frame_of(rows.X)
    table = model.augment(X, rows.y)
    assert table[X.columns.tolist()].equals(X)
    assert (table["predicted"].to_numpy() == model.predict(X)).all()
    if not hasattr(model, "predict_proba"):
        assert list(table.columns) == [*X.columns, "predicted"]
        return
    proba = model.predict_proba(X)
    shown = table[[f"p_{label}" for label in model.classes_]].to_numpy()
    np.testing.assert_allclose(shown, proba, rtol=1e-9, atol=1e-300)
    own = np.searchsorted(model.classes_, rows.y)
    np.testing.assert_allclose(
        np.exp(-table["log_loss"]), proba[np.arange(len(own)), own], rtol=1e-9, atol=1e-300
    )


def test_augment_takes_weights_and_offsets():
    offset = np.linspace(-1, 1, 150)
    counts = GLM(family="poisson").fit(FLOWERS, IRIS.target, offset=offset)
    table = counts.augment(FLOWERS, IRIS.target, sample_weight=np.arange(150), offset=offset)
    assert table["sample_weight"].tolist() == list(range(150))
    assert_allclose(table["residual"], IRIS.target - counts.predict(FLOWERS, offset=offset))
    each = np.column_stack([offset, -offset, 0 * offset])
    model = LogisticRegression(prior=1.0).fit(FLOWERS, KINDS, offset=each)
    table = model.augment(FLOWERS, KINDS, offset=each)
    assert_allclose(table["p_setosa"], model.predict_proba(FLOWERS, offset=each)[:, 0])
    with pytest.raises(ParameterError, match="has no offsets"):
        GaussianClassifier().fit(FLOWERS, KINDS).augment(FLOWERS, offset=offset)


def test_models_of_scikit_learn_are_augmented_too():
    model = GaussianNB().fit(FLOWERS, KINDS)
    table = augment(model, FLOWERS, KINDS)
    assert_allclose(table["p_setosa"], model.predict_proba(FLOWERS)[:, 0])
    assert_allclose(table["log_loss"].mean(), log_loss(KINDS, model.predict_proba(FLOWERS)))


def test_scores_take_offsets():
    random = np.random.default_rng(0)
    exposure = np.exp(random.uniform(0, 8, 300))
    x = random.normal(size=(300, 1))
    counts = random.poisson(exposure * np.exp(0.2 * x[:, 0]))
    model = GLM(family="poisson").fit(x, counts, offset=np.log(exposure))
    assert model.score(x, counts, offset=np.log(exposure)) > 0.999
    assert model.score(x, counts) < 0.1
    offset, y = 4 * random.normal(size=300), random.normal(size=300)
    y = y + offset > 0
    classifier = LogisticRegression(prior=1.0).fit(x, y, offset=offset)
    right = classifier.predict(x, offset=offset) == y
    assert classifier.score(x, y, offset=offset) == right.mean()
    assert classifier.score(x, y, np.arange(300), offset) == np.average(
        right, weights=np.arange(300)
    )
