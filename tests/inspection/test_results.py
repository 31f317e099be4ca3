"""Parameters, summaries, reprs and augmented rows of fitted models."""

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
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB

from posteriori import (
    GLM,
    CalibratedClassifier,
    DecidingClassifier,
    FisherDiscriminant,
    GaussianClassifier,
    GaussianPrior,
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
    ParameterError,
    PosterioriWarning,
    RankDeficiencyWarning,
    SeparationWarning,
)
from posteriori.inspection.results import Summary, TextTable, augment
from posteriori.posterior import log_posterior as objectives
from posteriori.posterior.coefficient_table import Coefficients

SPECTOR = sm.datasets.spector.load_pandas()
X, Y = SPECTOR.exog, SPECTOR.endog.astype(int).to_numpy()
IRIS = load_iris(as_frame=True)
FLOWERS = IRIS.data + np.random.default_rng(0).normal(size=IRIS.data.shape)
KINDS = IRIS.target_names[IRIS.target]


def test_odds_ratios_and_their_intervals_are_those_of_statsmodels():
    found = LogisticRegression(tol=1e-10).fit(X, Y).tidy(odds_ratios=True)
    theirs = sm.Logit(Y, sm.add_constant(X)).fit(disp=0, tol=1e-12)
    assert_allclose(found["estimate"], np.exp(theirs.params), rtol=1e-8)
    ends = np.exp(theirs.conf_int())
    assert_allclose(found[["conf_low", "conf_high"]], ends, rtol=1e-8)
    assert_allclose(found["std_error"], theirs.bse, rtol=1e-8)
    assert_allclose(found["p_value"], theirs.pvalues, rtol=1e-8)
    cloglog = GLM(family="bernoulli", link="cloglog")
    for other in (ProbitRegression(), GLM(family="poisson"), cloglog):
        with pytest.raises(ParameterError, match="not logarithms of odds ratios"):
            other.fit(X, Y).tidy(odds_ratios=True)


def test_contrasts_are_with_whichever_class_is_asked_for():
    labels = ["virginica", "setosa", "versicolor"]
    codes = np.array([labels.index(kind) for kind in KINDS])
    theirs = sm.MNLogit(codes, sm.add_constant(FLOWERS)).fit(disp=0, tol=1e-12)
    model = LogisticRegression(tol=1e-10).fit(FLOWERS, KINDS)
    found = model.tidy(reference="virginica")
    assert found["class"].unique().tolist() == labels[1:]
    assert_allclose(found["estimate"], theirs.params.to_numpy().T.ravel(), rtol=1e-8)
    assert_allclose(found["std_error"], theirs.bse.to_numpy().T.ravel(), rtol=1e-8)
    assert "setosa against virginica" in str(model.summary(reference="virginica"))
    for given, words in (
        ({"reference": "rose"}, "no class 'rose'"),
        ({"positive": "setosa"}, "more than two classes"),
    ):
        with pytest.raises(ParameterError, match=words):
            model.summary(**given)


def test_classifiers_of_pairs_are_listed_one_by_one():
    found = OneVersusOne(estimator=LogisticRegression(prior=1.0)).fit(FLOWERS, KINDS).tidy()
    pairs = [("versicolor", "setosa"), ("virginica", "setosa"), ("virginica", "versicolor")]
    assert found["classifier"].unique().tolist() == [f"{a} against {b}" for a, b in pairs]
    one = LogisticRegression(prior=1.0).fit(FLOWERS[50:], KINDS[50:])
    assert_allclose(found["estimate"].iloc[-4:], one.coef_[0], rtol=1e-8)
    curved = OneVersusRest(estimator=GaussianClassifier(covariance="full")).fit(FLOWERS, KINDS)
    assert "not all of its classifiers are linear" in repr(curved)


@pytest.mark.parametrize("wrapper", [DecidingClassifier, CalibratedClassifier, NoveltyDetector])
def test_tables_of_wrappers_are_those_of_the_model_inside(wrapper):
    inner = GaussianClassifier().fit(FLOWERS, KINDS)
    model = wrapper(GaussianClassifier()).fit(FLOWERS, KINDS)
    assert model.tidy().equals(inner.tidy())
    assert str(model.summary()).startswith(f"{wrapper.__name__}, fitted")
    p = model.predict_proba(FLOWERS)
    assert_allclose(model.augment(FLOWERS, KINDS)["p_virginica"], p[:, 2], rtol=1e-9)
    mean = model.predictions(FLOWERS, average=True)["estimate"]
    assert_allclose(mean, p.mean(axis=0), rtol=1e-9)


def test_a_repr_says_what_was_fitted_and_what_to_bear_in_mind():
    words = r"<LogisticRegression\(prior=1.0\), fitted: 3 columns, 2 classes, converged in \d .*>"
    assert re.fullmatch(words, repr(LogisticRegression(prior=1.0).fit(X, Y)))
    with pytest.warns(SeparationWarning):
        apart = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    assert "the classes can be separated" in repr(apart)


def test_augmented_rows_keep_their_kind_and_their_index():
    model = LogisticRegression(prior=1.0).fit(FLOWERS, KINDS)
    assert model.augment(FLOWERS.iloc[[7, 3]]).index.tolist() == [7, 3]
    assert isinstance(model.augment(pl.from_pandas(FLOWERS)), pl.DataFrame)
    bare = Perceptron(averaged=True).fit(X.to_numpy(), Y).augment(X.to_numpy())
    assert list(bare.columns) == ["x0", "x1", "x2", "predicted"]
    theirs = GaussianNB().fit(FLOWERS, KINDS)
    losses = augment(theirs, FLOWERS, KINDS)["log_loss"]
    assert_allclose(losses.mean(), log_loss(KINDS, theirs.predict_proba(FLOWERS)))
    with pytest.raises(ColumnNameError, match="'predicted' already"):
        model.augment(FLOWERS.assign(predicted=1))
    soft = np.column_stack([1 - 0.25 * Y, 0.25 * Y])
    model = LogisticRegression().fit(X, Y)
    expected = -(soft * model.predict_log_proba(X)).sum(axis=1)
    assert_allclose(model.augment(X, soft)["log_loss"], expected, rtol=1e-12)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_tables_come_in_the_frame_of_the_fit(make):
    model, plain = LogisticRegression().fit(make(X.to_dict("list")), Y), LogisticRegression()
    for table in (model.tidy(), model.glance()):
        assert type(table) is type(make({"a": [1]}))
    p_values = plain.fit(X, Y).tidy()["p_value"]
    assert_allclose(np.asarray(model.tidy()["p_value"]), p_values, rtol=1e-12)


@pytest.mark.parametrize("entry", ENTRIES, ids=str)
def test_every_model_has_tables_a_summary_and_augmented_rows(entry):
    rows = rows_for(entry, n=60)
    X = frame_of(rows.X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PosterioriWarning)
        model = entry.make(rows.classes).fit(X, rows.y)
    assert next(iter(model.tidy().columns)) == "term"
    assert np.isfinite(model.tidy()["estimate"]).all()
    assert model.glance()["n_parameters"].item() == model.n_parameters_
    page = model.summary()
    assert str(page).startswith(f"{type(model).__name__}, fitted")
    assert page.latex().count("begin{tabular}") == page.latex().count("end{tabular}") == 2
    assert f"4 columns, {len(rows.classes)} classes" in repr(model)
    table = model.augment(X, rows.y)
    assert table[X.columns.tolist()].equals(X)
    assert (table["predicted"].to_numpy() == model.predict(X)).all()
    if not hasattr(model, "predict_proba"):
        assert list(table.columns) == [*X.columns, "predicted"]
        return
    proba, own = model.predict_proba(X), np.searchsorted(model.classes_, rows.y)
    shown = table[[f"p_{label}" for label in model.classes_]].to_numpy()
    assert_allclose(shown, proba, rtol=1e-9, atol=1e-300)
    right = proba[np.arange(len(own)), own]
    assert_allclose(np.exp(-table["log_loss"]), right, rtol=1e-9, atol=1e-300)


def test_tables_of_generative_models_have_their_parameters():
    gaussian = GaussianClassifier(covariance="full").fit(FLOWERS, KINDS)
    row = gaussian.tidy().set_index(["class", "term"]).loc["setosa", "petal width (cm)"]
    one = FLOWERS[KINDS == "setosa"]["petal width (cm)"]
    spread = one.std(ddof=0)
    expected = one.mean(), spread, spread / np.sqrt(50)
    assert_allclose([row.estimate, row.sd, row.std_error], expected, rtol=1e-12)
    frame = pd.DataFrame({"colour": ["red", "red", "blue", "red"], "size": [1.0, 2.0, 3.0, 5.0]})
    found = NaiveBayes(pseudocount=0.0).fit(frame, ["a", "a", "b", "b"]).tidy()
    chosen = found[(found["term"] == "colour") & (found["class"] == "b")]
    assert chosen[["parameter", "estimate"]].values.tolist() == [["blue", 0.5], ["red", 0.5]]
    assert found[found["parameter"] == "mean"]["estimate"].tolist() == [1.5, 4.0]
    fisher = FisherDiscriminant().fit(FLOWERS, KINDS)
    found = fisher.tidy()
    second = found[found["component"] == 2]["estimate"]
    assert_allclose(second, fisher.scalings_[:, 1], rtol=1e-14)


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


# --- The summary ----------------------------------------------------------------------------------

PAGE = """\
LogisticRegression, fitted by maximum likelihood
==============================================================================
Rows                               32    Log-likelihood                 -12.89
Parameters                          4    Deviance                        25.78
Class                     1 against 0    Null deviance                   41.18
Solver                newton, 6 steps    AIC                             33.78
Converged                         yes    BIC                             39.64
------------------------------------------------------------------------------
                         estimate  std error      z       p    [0.025   0.975]
------------------------------------------------------------------------------
intercept                -13.021      4.931   -2.64  0.0083  -22.687   -3.356
GPA                        2.826      1.263    2.24  0.0252    0.351    5.301
TUCE                       0.0952     0.1416   0.67  0.5014   -0.1823   0.3726
PSI                        2.379      1.065    2.23  0.0255    0.292    4.465
=============================================================================="""


def test_the_summary_has_the_usual_layout():
    assert str(LogisticRegression().fit(X, Y).summary()) == PAGE


def test_numbers_of_the_summary_are_those_of_tidy():
    model = LogisticRegression(prior=1.0).fit(FLOWERS, KINDS)
    found, page = model.tidy(errors="robust"), model.summary(errors="robust")
    rows = [line for line in str(page).splitlines() if re.match(r"  \w", line)]
    assert len(rows) == len(found) == 10
    for line, (_, row) in zip(rows, found.iterrows(), strict=True):
        for cell, value in zip(line.split()[-6:], row[2:], strict=True):
            decimals = len(cell.partition(".")[2])
            shown = 0.0 if cell == "<0.0001" else float(cell)
            assert shown == pytest.approx(value, abs=1.01 * 10.0**-decimals)
    pd.testing.assert_frame_equal(page.to_frame(), found)


@pytest.mark.parametrize(
    ("model", "given", "words"),
    [
        (
            LogisticRegression(prior=2.0),
            {},
            "posterior mode .*precision 2 .*posterior sta",
        ),
        (LogisticRegression(prior=GaussianPrior()), {}, "Gaussian "),
        (LogisticRegression(), {"intervals": "profile"}, "signed root of the likelihood ratio"),
        (LogisticRegression(), {"odds_ratios": True}, r"GPA +16.880 +1.263.*of the odds ratio"),
        (LogisticRegression(label_noise=(0.05, 0.1)), {}, "Wrong labels +0.05, 0.1 "),
        (LogisticRegression(label_noise="estimate"), {}, r"Wrong labels +[\d.e-]+ \(s.e. "),
    ],
)
@pytest.mark.filterwarnings("ignore::posteriori.errors.PosterioriWarning")
def test_the_summary_says_how_the_fit_was_made(model, given, words):
    page = model.fit(X, Y).summary(**given)
    assert re.search(words, " ".join(str(page).split("\n")))
    pd.testing.assert_frame_equal(page.to_frame(), model.tidy(**given))


def test_html_and_latex_are_escaped_and_have_every_number():
    name = "<b>GPA</b> 100 % [a_b] " * 5
    labels = np.array(["<no>", "yes & so"])[Y]
    page = LogisticRegression().fit(X.rename(columns={"GPA": name}), labels).summary()
    html, latex = page._repr_html_(), page.latex()
    assert name in page.text()
    assert "&lt;b&gt;GPA&lt;/b&gt; 100 % [a_b]" in html
    assert "yes &amp; so against &lt;no&gt;" in html
    for text in ("-13.021", "4.931", "Null deviance", "41.18"):
        assert text in html
        assert text in latex
    assert r"100 \% {[}a\_b]" in latex
    assert r" & 2.826 & 1.263 & 2.24 & 0.0252 & 0.351 & 5.301 \\" in latex
    many = LogisticRegression(prior=1.0).fit(FLOWERS, KINDS).summary()._repr_html_()
    assert "<td>virginica against setosa</td>" in many
    assert "<li>Standard errors are posterior standard deviations" in many


def test_notes_name_dependent_columns_and_coefficients_that_diverge():
    with pytest.warns(RankDeficiencyWarning):
        model = LogisticRegression().fit(X.assign(twice=2 * X["GPA"], flat=1.0), Y)
    note = str(model.summary()).split("* ")[-1]
    assert note.startswith("'GPA', 'twice', 'flat' depend on each other linearly")
    one = pd.DataFrame({"a": [-2.0, -1, 0, 0, 1, 2, 0, 0], "b": [1.0, 2, 1, 2, 1, 3, 3, 4]})
    with pytest.warns(SeparationWarning):
        page = LogisticRegression().fit(one, [0, 0, 0, 1, 1, 1, 0, 1]).summary()
    assert "The coefficient of 'a' diverges" in " ".join(str(page).split())


@pytest.mark.parametrize("model", [LogisticRegression(prior=1.0), GLM(family="poisson", prior=1.0)])
def test_a_summary_without_standard_errors_has_the_estimates_and_says_why(model, monkeypatch):
    monkeypatch.setattr(objectives, "WIDE", 3)
    page = str(model.fit(X, Y).summary())
    assert f"{np.atleast_2d(model.coef_)[0, 0]:#.4g}" in page
    assert "No standard errors: With 4 parameters" in page


def test_what_is_not_finite_can_be_printed_and_long_tables_end_early():
    numbers = np.array([np.inf, np.nan, 0.0, -1e300])
    found = Coefficients(tuple("abcd"), None, *[numbers] * 3, np.full(4, np.nan), *[numbers] * 2)
    text = str(Summary("Title", (), TextTable.of_coefficients(found, 0.95, "z")))
    assert re.search("a +inf +inf +inf +nan +inf +inf", text)
    assert "-1.0000e+300" in text
    found = Coefficients(tuple(map(str, range(450))), None, *[np.ones(450)] * 6)
    text = str(Summary("Title", (), TextTable.of_coefficients(found, 0.95, "z")))
    assert "250 more rows: see to_frame()." in text
    assert len(text.splitlines()) < 210
