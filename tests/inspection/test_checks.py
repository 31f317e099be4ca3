"""What looks wrong with a fit, in words, on every model."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from laws.samples import rows_for
from registry import ENTRIES
from sklearn.frozen import FrozenEstimator
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

NO_ITERATION = "The fit has no iteration, or does not report its convergence."
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
    assert "meets every target" in exact["residuals"].sentence


def test_models_around_others_are_checked_by_rows_that_are_given():
    for model in (OneVersusOne(LogisticRegression()), CalibratedClassifier(GaussianClassifier())):
        model.fit(X, MANY)
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
@pytest.mark.parametrize("source", ["array", "dask"])
def test_the_rows_of_the_fit_give_what_they_give_when_passed(y, source):
    model, rows, labels = LogisticRegression().fit(X, y), X, y
    if source == "dask":
        array = pytest.importorskip("dask.array")
        rows, labels = array.from_array(X, chunks=(70, 3)), array.from_array(y, chunks=70)
    of_fit, given = model.check(), model.check(rows, labels)
    for name, key in (
        ("calibration", "p_value"),
        ("residuals", "p_value"),
        ("collinearity", "indices"),
        ("influence", "distances"),
    ):
        np.testing.assert_allclose(of_fit[name].values[key], given[name].values[key], rtol=1e-7)
    expected = calibration_error(y, model.predict_proba(X)).p_value
    assert given["calibration"].values["p_value"] == pytest.approx(expected, rel=1e-7)
    assert "optimistic" in of_fit["calibration"].sentence
    assert "optimistic" not in given["calibration"].sentence
    for checks, name in ((of_fit, "fit"), (given, "X")):
        assert [checks[each].rows for each in ("collinearity", "residuals")] == [name] * 2
        assert checks["influence"].rows == "fit"
    assert str(given["C107"]).endswith("[C107, rows of X]")


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
    assert checks["calibration"].values["error"].z > 0
    assert "overconfident" in checks["calibration"].sentence
    assert checks["collinearity"].values["largest"] == np.inf
    assert NaiveBayes().fit(X, Y).check(NEW, NEW_Y)["calibration"].word == "good"
    random = np.random.default_rng(4)
    x = random.uniform(-2, 2, size=(2000, 1))
    y = (random.uniform(size=2000) < 1 / (1 + np.exp(-(x[:, 0] + x[:, 0] ** 2 - 1)))).astype(int)
    bent = LogisticRegression().fit(x, y).check()["residuals"]
    assert bent.word == "bad"
    assert bent.values["bins"].share > 0.3
    straight = LogisticRegression().fit(np.column_stack([x, x**2]), y).check()["residuals"]
    assert straight.word == "good"


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
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    with pytest.warns(SeparationWarning):
        model = LogisticRegression().fit(frame[["b"]], (X[:, 1] > 0).astype(int))
    checks = model.check()
    assert checks["separation"].word == checks["convergence"].word == "bad"
    assert "b" in checks["separation"].values["columns"]
    assert checks["separation"].values["kind"] == "complete"
    held = LogisticRegression(prior=1.0).fit(frame[["b"]], (X[:, 1] > 0).astype(int)).check()
    assert held["separation"].word == "good"
    assert "Not needed" in held["separation"].sentence


def test_a_fit_that_was_stopped_says_so():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stopped = LogisticRegression(solver="gradient", max_iter=1).fit(X, Y).check()
        mistaken = Perceptron(max_epochs=2, random_state=0).fit(X, Y).check()
        inside = OneVersusRest(estimator=Perceptron(max_epochs=2, random_state=0)).fit(X, MANY)
    assert stopped["convergence"].word == "bad"
    assert "max_iter" in stopped["convergence"].sentence
    assert "max_epochs" in mistaken["convergence"].sentence
    assert "3 of 3 inner fits did not converge" in inside.check()["convergence"].sentence
    for inner, said in (
        (GaussianNB(), f"Not checked: {NO_ITERATION}"),
        (FrozenEstimator(GaussianClassifier().fit(X, Y)), f"Not checked: {NO_ITERATION}"),
        (LogisticRegression(), "The iteration converged."),
    ):
        assert CalibratedClassifier(inner).fit(X, Y).check()["convergence"].sentence == said


def test_a_copy_without_rows_says_what_to_pass():
    model = pickle.loads(pickle.dumps(LogisticRegression().fit(X, Y)))
    checks = model.check()
    for name in ("collinearity", "residuals", "calibration"):
        assert "Pass X and y" in checks[name].sentence
    assert checks["influence"].word == "not checked"
    assert checks["separation"].word == "good"
    assert model.check(X, Y)["calibration"].word != "not checked"


def test_files_give_what_memory_gives(tmp_path, monkeypatch):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame.assign(y=Y).to_parquet(tmp_path / "rows.parquet", row_group_size=50)
    rows = scan(tmp_path / "rows.parquet", target="y")
    memory, files = (LogisticRegression().fit(*given).check() for given in ((frame, Y), (rows,)))
    for name, key in (
        ("collinearity", "indices"),
        ("influence", "distances"),
        ("residuals", "p_value"),
        ("calibration", "p_value"),
    ):
        np.testing.assert_allclose(files[name].values[key], memory[name].values[key], rtol=1e-6)
    assert GaussianClassifier().fit(frame, Y).check(rows)["calibration"].word == "good"
    monkeypatch.setattr("posteriori.inspection.checks._MOST", 100)
    sampled = LogisticRegression().fit(rows).check()
    for name in ("residuals", "calibration"):
        assert "in a sample of" in sampled[name].sentence


def test_what_cannot_be_checked_is_named():
    model = LogisticRegression().fit(X, Y)
    with pytest.raises(ParameterError, match="without X"):
        model.check(y=Y)
    with pytest.raises(ParameterError, match="no check called 'trust'"):
        model.check(ignore=["convergence", "trust"])
    with pytest.raises(ParameterError, match="has no offsets"):
        NaiveBayes().fit(X, Y).check(X, Y, offset=np.ones(N))
    with pytest.raises(ShapeError):
        model.check(X, Y[:-1])
    with pytest.raises(LabelError):
        model.check(X, np.full(N, "strange"))
    unlabelled, one, gaps = model.check(NEW), model.check(X[:1], Y[:1]), X.copy()
    assert unlabelled["calibration"].sentence == "Not checked: y was not passed. Pass X and y."
    assert one["calibration"].sentence.endswith("There are too few rows. Pass 10 rows or more.")
    gaps[3, 1] = np.nan
    found = GaussianClassifier().fit(X, Y).check(gaps, Y)
    assert "Some entries are missing" in found["collinearity"].sentence


@pytest.mark.parametrize("kind", ["counts", "groups"])
def test_overdispersion_is_called_that(kind):
    """Pearson chi2/df is that of statsmodels, and residuals do not take it for curvature."""
    random = np.random.default_rng(1)
    x, noise = random.normal(size=(400, 2)), random.normal(size=400)
    for spread, word in ((0.0, "good"), (1.0, "bad")):
        a = x @ [0.3, -0.2] + spread * noise
        if kind == "counts":
            y, weight = random.poisson(np.exp(1 + a)), None
            model, family = GLM(family="poisson", tol=1e-10), sm.families.Poisson()
            theirs = sm.GLM(y, sm.add_constant(x), family=family).fit(tol=1e-12)
        else:
            share = random.binomial(20, 1 / (1 + np.exp(-a))) / 20
            y, weight = np.column_stack([1 - share, share]), np.full(400, 20.0)
            model, family = LogisticRegression(tol=1e-10), sm.families.Binomial()
            theirs = sm.GLM(share, sm.add_constant(x), family=family, var_weights=weight)
            theirs = theirs.fit(tol=1e-12)
        checks = model.fit(x, y, sample_weight=weight).check()
        found = checks["dispersion"]
        assert found.word == word
        ratio = theirs.pearson_chi2 / theirs.df_resid
        assert found.values["dispersion"] == pytest.approx(ratio, rel=1e-8)
        assert ("errors='robust'" in found.sentence) == (word == "bad")
        assert checks["residuals"].word == "good"
    assert LogisticRegression().fit(X, Y).check()["dispersion"].word == "not checked"


def test_offsets_of_the_fit_and_of_rows_that_are_passed_count():
    offset = 2.0 * RANDOM.normal(size=N)
    y = (RANDOM.uniform(size=N) < 1 / (1 + np.exp(-(X[:, 0] + offset)))).astype(int)
    model = LogisticRegression().fit(X, y, offset=offset)
    expected = calibration_error(y, model.predict_proba(X, offset=offset))
    for checks in (model.check(), model.check(X, y, offset=offset)):
        found = checks["calibration"].values["error"].expected
        assert found == pytest.approx(expected.expected, rel=1e-9)


def test_checks_have_text_html_and_a_frame():
    checks = Checks(
        "Model",
        (
            Check("convergence", "good", "It converged."),
            Check("collinearity", "bad", "Columns <a> & b are alike. " * 6, {"largest": 40.0}),
            Check("approximation", "not checked", "Not checked: there is no posterior."),
        ),
    )
    assert checks["collinearity"] is checks["C103"] is list(checks)[1]
    assert (len(checks), checks.worst) == (3, "bad")
    lines = repr(checks).splitlines()
    assert lines[0] == "Model: 1 bad, 1 good, 1 not checked"
    assert max(map(len, lines)) <= 88
    assert lines[2] == "good         convergence    It converged. [C101]"
    assert lines[3].startswith("bad          collinearity   Columns <a> & b are alike.")
    assert "Columns &lt;a&gt; &amp; b" in checks._repr_html_()
    frame = checks.to_frame("polars")
    assert list(frame.columns) == ["check", "code", "word", "sentence", "rows"]
    assert list(frame["word"]) == ["good", "bad", "not checked"]
    left = LogisticRegression().fit(X, Y).check(ignore=["influence", "C107"])
    assert [c.name for c in left] == [n for n in NAMES if n not in ("influence", "calibration")]
