"""What looks wrong with a fit, in words, on every model."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from laws.samples import rows_for
from registry import ENTRIES
from sklearn.naive_bayes import GaussianNB

from posteriori import (
    GLM,
    BayesianLogisticRegression,
    CalibratedClassifier,
    GaussianClassifier,
    GaussianPrior,
    LogisticRegression,
    NaiveBayes,
    OneVersusOne,
    OneVersusRest,
    Perceptron,
    calibration_error,
    scan,
)
from posteriori.errors import LabelError, ParameterError, SeparationWarning, ShapeError
from posteriori.inspection.checks import Check, Checks

NAMES = [
    "convergence",
    "separation",
    "collinearity",
    "influence",
    "dispersion",
    "residuals",
    "calibration",
    "approximation",
]
RANDOM = np.random.default_rng(3)
N = 240
X = RANDOM.normal(size=(N, 3))
Y = (RANDOM.uniform(size=N) < 1 / (1 + np.exp(-(X @ [1.0, -0.5, 0.3] + 0.2)))).astype(int)
MANY = RANDOM.integers(3, size=N)
NEW = RANDOM.normal(size=(N, 3))
NEW_Y = (RANDOM.uniform(size=N) < 1 / (1 + np.exp(-(NEW @ [1.0, -0.5, 0.3] + 0.2)))).astype(int)


@pytest.mark.parametrize("entry", ENTRIES, ids=str)
def test_every_model_can_be_checked(entry):
    rows = rows_for(entry, n=60)
    model = entry.make(rows.classes).fit(rows.X, rows.y)
    of_fit, given = model.check(), model.check(rows.X, rows.y)
    for checks in (of_fit, given):
        assert [check.name for check in checks] == NAMES
        assert not any(" nan" in check.sentence for check in checks)
        assert all(check.sentence.endswith(".") for check in checks)
    assert given["collinearity"].word != "not checked"
    has_chances = hasattr(model, "predict_proba")
    assert (given["calibration"].word != "not checked") == has_chances
    assert (given["residuals"].word != "not checked") == has_chances
    if not hasattr(model, "_inference"):
        assert "Pass X and y" in of_fit["residuals"].sentence


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_regressors_can_be_checked(family):
    target = np.exp(X @ [0.3, -0.2, 0.1]) * RANDOM.gamma(3.0, 1 / 3, size=N)
    target = RANDOM.poisson(target).astype(float) if family == "poisson" else target
    model = GLM(family=family).fit(X, target)
    for checks in (model.check(), model.check(X, target)):
        assert checks["influence"].word == "good"
        assert checks["residuals"].word == "good"
        assert checks["calibration"].sentence == "Not checked: The target is a number, not a class."
    exact = GLM().fit(X, np.zeros(N)).check()
    assert "meets every target" in exact["influence"].sentence
    assert exact["residuals"].word == "good"


def test_models_around_others_are_checked_by_rows_that_are_given():
    model = OneVersusOne(LogisticRegression()).fit(X, MANY)
    assert model.check()["calibration"].word == "not checked"
    found = model.check(X, MANY)
    expected = calibration_error(MANY, model.predict_proba(X), classes=model.classes_)
    assert found["calibration"].values["error"].expected == pytest.approx(expected.expected)
    assert "check() of each" in found["separation"].sentence


def test_outliers_and_collinear_columns_are_named():
    far, y = X.copy(), Y.copy()
    far[17], y[17] = [25.0, 0.0, 0.0], 0
    found = LogisticRegression().fit(far, y).check()["influence"]
    assert (found.word, found.values["rows"][0]) == ("bad", 17)
    assert "row 17" in found.sentence
    frame = pd.DataFrame(X, columns=["height", "age", "mass"])
    frame["metres"] = frame["height"] + 0.01 * RANDOM.normal(size=N)
    found = LogisticRegression().fit(frame, Y).check()["collinearity"]
    assert found.word == "bad"
    assert set(found.values["dependencies"][0].columns) == {"height", "metres"}
    assert "'metres'" in found.sentence
    assert "set a prior" in found.sentence
    checks = LogisticRegression().fit(X, Y).check()
    assert checks["influence"].word == checks["collinearity"].word == "good"


@pytest.mark.parametrize("y", [Y, MANY], ids=["two", "many"])
def test_the_rows_of_the_fit_give_what_they_give_when_passed(y, tmp_path, monkeypatch):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame.assign(y=y).to_parquet(tmp_path / "rows.parquet", row_group_size=50)
    files = LogisticRegression().fit(scan(tmp_path / "rows.parquet", target="y"))
    model = LogisticRegression().fit(frame, y)
    of_fit, of_files, given = model.check(), files.check(), model.check(frame, y)
    for name, key in (
        ("calibration", "p_value"),
        ("residuals", "p_value"),
        ("collinearity", "indices"),
        ("influence", "distances"),
    ):
        for found in (of_fit, of_files):
            expected = given[name].values[key]
            np.testing.assert_allclose(found[name].values[key], expected, rtol=1e-6)
    expected = calibration_error(y, model.predict_proba(frame)).p_value
    assert given["calibration"].values["p_value"] == pytest.approx(expected, rel=1e-7)
    assert "optimistic" in of_fit["calibration"].sentence
    for checks, name in ((of_fit, "fit"), (given, "X")):
        assert [checks[each].rows for each in ("collinearity", "residuals")] == [name] * 2
        assert checks["influence"].rows == "fit"
    assert str(given["C107"]).endswith("[C107, rows of X]")
    monkeypatch.setattr("posteriori.inspection.checks._MOST", 100)
    found = files.check()["calibration"].values["p_value"]
    assert found != of_files["calibration"].values["p_value"]  # of a sample


def test_rows_of_the_fit_do_not_judge_a_prior_or_many_coefficients():
    few = "fewer than 10 rows for each coefficient. Pass other rows, X and y."
    partial = GaussianPrior(precision=[1.0, 0.0, 0.0])
    for model, n, weight, is_judged in (
        (LogisticRegression(prior=partial), N, 1, False),
        (BayesianLogisticRegression(), N, 1, False),
        (LogisticRegression(), 39, 1, False),
        (LogisticRegression(), 40, 1, True),
        (LogisticRegression(), 20, 2, True),
    ):
        model.fit(X[:n], Y[:n], sample_weight=np.full(n, weight))
        of_fit, given = model.check(), model.check(X, Y)
        for name in ("residuals", "calibration"):
            assert (of_fit[name].word != "not checked") == is_judged
            assert of_fit[name].sentence.endswith(few) != is_judged
            assert given[name].word != "not checked"
        assert of_fit["collinearity"].word != "not checked"


def test_overconfidence_and_curves_are_found():
    doubled, new = np.repeat(X, 6, axis=1), np.repeat(NEW, 6, axis=1)
    checks = NaiveBayes().fit(doubled, Y).check(new, NEW_Y)
    assert checks["calibration"].word == "bad"
    assert "overconfident" in checks["calibration"].sentence
    assert checks["collinearity"].values["largest"] == np.inf
    assert NaiveBayes().fit(X, Y).check(NEW, NEW_Y)["calibration"].word == "good"
    x = RANDOM.uniform(-2, 2, size=(2000, 1))
    y = RANDOM.uniform(size=2000) < 1 / (1 + np.exp(-(x[:, 0] + x[:, 0] ** 2 - 1)))
    for columns, word in ((x, "bad"), (np.column_stack([x, x**2]), "good")):
        assert LogisticRegression().fit(columns, y).check()["residuals"].word == word


def test_counts_of_groups_are_as_many_rows():
    """Shares of trials with their number as the weight give what the single trials give."""
    x = np.repeat(np.linspace(-1, 1, 12), 20)[:, None]
    y = (RANDOM.uniform(size=240) < 1 / (1 + np.exp(-x[:, 0]))).astype(int)
    share = y.reshape(12, 20).mean(axis=1)
    single = LogisticRegression().fit(x, y).check()
    soft = np.column_stack([1 - share, share])
    grouped = LogisticRegression().fit(x[::20], soft, sample_weight=np.full(12, 20.0)).check()
    for name in ("calibration", "residuals"):
        expected = single[name].values["p_value"]
        assert grouped[name].values["p_value"] == pytest.approx(expected)


def test_columns_that_separate_the_classes_are_named():
    frame, y = pd.DataFrame(X[:, 1:2], columns=["b"]), X[:, 1] > 0
    with pytest.warns(SeparationWarning):
        checks = LogisticRegression().fit(frame, y).check()
    assert checks["separation"].word == checks["convergence"].word == "bad"
    assert "b" in checks["separation"].values["columns"]
    assert checks["separation"].values["kind"] == "complete"
    regularised = LogisticRegression(prior=1.0).fit(frame, y).check()["separation"]
    assert regularised.word == "good"
    assert "Not needed" in regularised.sentence


def test_a_fit_that_was_stopped_says_so():
    stopped = Perceptron(max_epochs=2, random_state=0)
    for model, rows, y, words in (
        (LogisticRegression(solver="gradient", max_iter=1), X, Y, "max_iter"),
        (stopped, X, Y, "max_epochs"),
        (OneVersusRest(stopped), X, MANY, "3 of 3 inner fits did not converge"),
        (CalibratedClassifier(GaussianNB()), X, Y, "Not checked: The fit has no iteration"),
        (CalibratedClassifier(LogisticRegression()), X, Y, "The iteration converged."),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = model.fit(rows, y).check()["convergence"]
        assert words in found.sentence


def test_a_copy_without_rows_says_what_to_pass():
    model = pickle.loads(pickle.dumps(LogisticRegression().fit(X, Y)))
    checks = model.check()
    for name in ("collinearity", "residuals", "calibration"):
        assert "Pass X and y" in checks[name].sentence
    assert checks["influence"].word == "not checked"
    assert checks["separation"].word == "good"
    assert model.check(X, Y)["calibration"].word != "not checked"


def test_what_cannot_be_checked_is_named():
    model, gaps = LogisticRegression().fit(X, Y), X.copy()
    for given, error, words in (
        ({"y": Y}, ParameterError, "without X"),
        ({"ignore": ["convergence", "trust"]}, ParameterError, "no check called 'trust'"),
        ({"X": X, "y": Y[:-1]}, ShapeError, "240"),
        ({"X": X, "y": np.full(N, "strange")}, LabelError, "strange"),
        ({"X": scan(pd.DataFrame(X, columns=list("abc")))}, ParameterError, "data in memory"),
    ):
        with pytest.raises(error, match=words):
            model.check(**given)
    with pytest.raises(ParameterError, match="has no offsets"):
        NaiveBayes().fit(X, Y).check(X, Y, offset=np.ones(N))
    unlabelled, one = model.check(NEW), model.check(X[:1], Y[:1])
    assert unlabelled["calibration"].sentence == "Not checked: y was not passed. Pass X and y."
    assert one["calibration"].sentence.endswith("There are too few rows. Pass 10 rows or more.")
    gaps[3, 1] = np.nan
    found = GaussianClassifier().fit(X, Y).check(gaps, Y)
    assert "row 3" in found["collinearity"].sentence


@pytest.mark.parametrize("kind", ["counts", "groups"])
@pytest.mark.parametrize(("spread", "word"), [(0.0, "good"), (1.0, "bad")])
def test_overdispersion_is_called_that(kind, spread, word):
    """Pearson chi2/df is that of statsmodels, and residuals do not take it for curvature."""
    random = np.random.default_rng(1)
    x = random.normal(size=(400, 2))
    a, weight = x @ [0.3, -0.2] + spread * random.normal(size=400), None
    if kind == "counts":
        y = theirs = random.poisson(np.exp(1 + a))
        model, family = GLM(family="poisson", tol=1e-10), sm.families.Poisson()
    else:
        theirs = random.binomial(20, 1 / (1 + np.exp(-a))) / 20
        y, weight = np.column_stack([1 - theirs, theirs]), np.full(400, 20.0)
        model, family = LogisticRegression(tol=1e-10), sm.families.Binomial()
    theirs = sm.GLM(theirs, sm.add_constant(x), family=family, var_weights=weight).fit(tol=1e-12)
    checks = model.fit(x, y, sample_weight=weight).check()
    found, ratio = checks["dispersion"], theirs.pearson_chi2 / theirs.df_resid
    assert (found.word, checks["residuals"].word) == (word, "good")
    assert found.values["dispersion"] == pytest.approx(ratio, rel=1e-8)
    assert ("errors='robust'" in found.sentence) == (word == "bad")


def test_offsets_of_the_fit_and_of_rows_that_are_passed_count():
    offset = 2.0 * RANDOM.normal(size=N)
    y = (RANDOM.uniform(size=N) < 1 / (1 + np.exp(-(X[:, 0] + offset)))).astype(int)
    model = LogisticRegression().fit(X, y, offset=offset)
    expected = calibration_error(y, model.predict_proba(X, offset=offset))
    for checks in (model.check(), model.check(X, y, offset=offset)):
        found = checks["calibration"].values["error"].expected
        assert found == pytest.approx(expected.expected, rel=1e-9)


def test_checks_have_text_html_and_a_frame():
    found = (
        Check("convergence", "good", "It converged."),
        Check("collinearity", "bad", "Columns <a> & b are alike. " * 6, {"largest": 40.0}),
        Check("approximation", "not checked", "Not checked: there is no posterior."),
    )
    checks = Checks("Model", found)
    assert checks["collinearity"] is checks["C103"] is list(checks)[1]
    lines = repr(checks).splitlines()
    assert lines[0] == "Model: 1 bad, 1 good, 1 not checked"
    assert max(map(len, lines)) <= 88
    assert lines[2] == "good         convergence    It converged. [C101]"
    assert "Columns &lt;a&gt; &amp; b" in checks._repr_html_()
    frame = checks.to_frame("polars")
    assert list(frame.columns) == ["check", "code", "word", "sentence", "rows"]
    assert list(frame["word"]) == ["good", "bad", "not checked"]
    left = LogisticRegression().fit(X, Y).check(ignore=["influence", "C107"])
    assert [c.name for c in left] == [n for n in NAMES if n not in ("influence", "calibration")]
