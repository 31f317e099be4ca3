"""The page of a fit: what it says, how wide it is, and that HTML is escaped."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import statsmodels.api as sm
from models.noisy_fits import labels_with_flips
from sklearn.datasets import load_iris

from posteriori import GLM, GaussianClassifier, GaussianPrior, LogisticRegression
from posteriori.errors import RankDeficiencyWarning, SeparationWarning
from posteriori.inspection.summary import Summary, TextTable
from posteriori.posterior import log_posterior as objectives
from posteriori.posterior.coefficient_table import Coefficients

SPECTOR = sm.datasets.spector.load_pandas()
X, Y = SPECTOR.exog, SPECTOR.endog.astype(int).to_numpy()

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


def spector():
    return LogisticRegression().fit(X, Y)


def iris(prior=1.0):
    data = load_iris(as_frame=True)
    noisy = data.data + np.random.default_rng(0).normal(size=data.data.shape)
    return LogisticRegression(prior=prior).fit(noisy, data.target_names[data.target])


def test_the_page_is_what_statisticians_know():
    assert str(spector().summary()) == PAGE


def test_many_classes_have_a_block_each():
    text = str(iris().summary(level=0.9))
    assert "versicolor against setosa\n  intercept" in text
    assert "virginica against setosa\n  intercept" in text
    assert text.count("  petal width (cm)") == 2
    assert "[0.05" in text
    assert "0.95]" in text


def test_numbers_on_the_page_are_those_of_tidy():
    model = iris()
    found = model.tidy(errors="robust")
    lines = str(model.summary(errors="robust")).splitlines()
    rows = [line for line in lines if re.match(r"  \w", line)]
    assert len(rows) == len(found) == 10
    for line, (_, row) in zip(rows, found.iterrows(), strict=True):
        cells = line.split()[-6:]
        for cell, name in zip(
            cells,
            ["estimate", "std_error", "statistic", "p_value", "conf_low", "conf_high"],
            strict=True,
        ):
            if cell != "<0.0001":
                decimals = len(cell.partition(".")[2])
                assert float(cell) == pytest.approx(row[name], abs=0.51 * 10.0**-decimals)
            else:
                assert row[name] < 1e-4


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        (None, "fitted by maximum likelihood"),
        (0.0, "fitted by maximum likelihood"),
        (2.0, "precision 2 "),
        (GaussianPrior(precision=1.0), "Gaussian "),
    ],
)
def test_the_page_says_how_the_fit_was_made(prior, words):
    text = str(iris(prior).summary())
    assert words in text
    mode = bool(prior)
    assert ("fitted by posterior mode" in text) is mode
    assert ("posterior standard deviations" in text) is mode


@pytest.mark.parametrize(
    ("errors", "words"),
    [
        ("robust", "robust (sandwich, HC0)"),
        ("observed", "observed information"),
        ("expected", "expected information"),
    ],
)
def test_the_page_says_which_errors_it_shows(errors, words):
    assert words in str(spector().summary(errors=errors))
    assert words not in str(spector().summary())


def test_dependent_columns_are_named_at_the_foot():
    with pytest.warns(RankDeficiencyWarning):
        model = LogisticRegression().fit(X.assign(twice=2 * X["GPA"], flat=1.0), Y)
    note = str(model.summary()).split("* ")[-1]
    assert note.startswith("GPA, twice, flat depend on each other linearly")


def test_html_is_escaped_and_has_every_number():
    frame = X.rename(columns={"GPA": "<b>GPA</b>", "TUCE": 'a & "b"'})
    model = LogisticRegression().fit(frame, np.array(["<no>", "yes & so"])[Y])
    html = model.summary()._repr_html_()
    assert "<b>GPA</b>" not in html
    assert "&lt;b&gt;GPA&lt;/b&gt;" in html
    assert "yes &amp; so against &lt;no&gt;" in html
    for text in ("-13.021", "4.931", "Null deviance", "41.18"):
        assert text in html
    many = iris().summary()._repr_html_()
    assert '<th colspan="7">virginica against setosa</th>' in many
    assert "<li>Standard errors are posterior standard deviations" in many


def test_jeffreys_errors_are_not_called_posterior():
    text = str(LogisticRegression(prior="jeffreys").fit(X, Y).summary())
    assert "Prior                        jeffreys" in text
    assert "expected information, without the prior" in text
    assert "posterior standard deviations" not in text


@pytest.mark.parametrize("prior", [None, "jeffreys"])
def test_profile_intervals_come_with_likelihood_ratio_tests(prior):
    model = LogisticRegression(prior=prior).fit(X, Y)
    table, page = model.tidy(intervals="profile"), model.summary(intervals="profile")
    np.testing.assert_array_equal(page.to_frame()["p_value"], table["p_value"])
    excluded = (table["conf_low"] > 0) | (table["conf_high"] < 0)
    assert list(excluded) == list(table["p_value"] < 0.05)
    assert (table["p_value"] != model.tidy()["p_value"]).all()
    for text in (str(page), page.latex()):
        assert "likelihood ratio" in " ".join(text.split())
        assert f"{table['p_value'][1]:.4f}" in text


def test_rates_of_wrong_labels_are_on_the_page():
    X, y, _ = labels_with_flips(300, (0.1, 0.1), seed=3, slopes=np.array([2.5, -1.0]))
    model = LogisticRegression(label_noise="estimate").fit(X, y)
    rate = re.escape(f"{model.label_noise_:.4g} (s.e. {model.label_noise_error_:.4g})")
    assert re.search(f"^Wrong labels +{rate} ", str(model.summary()), re.MULTILINE)
    page = str(LogisticRegression(label_noise=(0.05, 0.1)).fit(X, y).summary())
    assert re.search("^Wrong labels +0.05, 0.1 ", page, re.MULTILINE)
    assert "Wrong labels" not in str(LogisticRegression().fit(X, y).summary())


def test_one_coefficient_runs_and_two_run():
    one = pd.DataFrame({"a": [-2.0, -1, 0, 0, 1, 2, 0, 0], "b": [1.0, 2, 1, 2, 1, 3, 3, 4]})
    two = pd.DataFrame({"a": [1.0, 3, 5, 0, 2, 4, 6, 1], "b": [2.0, 4, 6, 1, 1, 3, 5, 0]})
    with pytest.warns(SeparationWarning):
        page = LogisticRegression().fit(one, [0, 0, 0, 1, 1, 1, 0, 1]).summary()
    assert "The coefficient of a diverges" in " ".join(str(page).split())
    with pytest.warns(SeparationWarning):
        page = LogisticRegression().fit(two, [0] * 4 + [1] * 4).summary()
    assert "The coefficients of a, b diverge" in " ".join(str(page).split())


def test_repr_is_the_page():
    page = spector().summary()
    assert repr(page) == str(page) == page.text()


def test_latex_has_the_cells_of_the_page_and_escapes_names():
    frame = X.rename(columns={"GPA": "100 % [a_b]"})
    latex = LogisticRegression().fit(frame, Y).summary().latex()
    assert r"100 \% {[}a\_b] & 2.826 & 1.263 & 2.24 & 0.0252 & 0.351 & 5.301 \\" in latex
    rows = [line for line in latex.splitlines() if line.endswith(r"\\")]
    assert {line.count(" & ") for line in rows} == {3, 6}


def test_a_page_of_odds_ratios_says_so():
    page = LogisticRegression().fit(X, Y).summary(odds_ratios=True)
    assert "odds ratio" in str(page)
    assert re.search(r"GPA +16\.880", str(page))
    assert "logarithm of the odds ratio" in page._repr_html_()


@pytest.mark.parametrize("model", [LogisticRegression(prior=1.0), GLM(family="poisson", prior=1.0)])
def test_a_page_without_standard_errors_has_the_estimates_and_says_why(model, monkeypatch):
    monkeypatch.setattr(objectives, "WIDE", 3)
    page = str(model.fit(X, Y).summary())
    assert f"{np.atleast_2d(model.coef_)[0, 0]:#.4g}" in page
    assert "No standard errors: With 4 parameters" in page


def test_names_are_never_shortened():
    name = "a name that goes on " * 5
    labels = np.array(["no " * 10, "yes " * 10])[Y]
    page = LogisticRegression().fit(X.rename(columns={"GPA": name}), labels).summary()
    for text in (page.text(), page.latex(), page._repr_html_()):
        assert name in text
        assert f"{max(labels)} against {min(labels)}" in text
    assert len({len(line) for line in str(page).splitlines() if line.startswith("=")}) == 1


def test_a_summary_has_its_numbers_as_a_frame():
    model = iris()
    pd.testing.assert_frame_equal(model.summary().to_frame(), model.tidy())
    other = GaussianClassifier().fit(X, Y)
    pd.testing.assert_frame_equal(other.summary().to_frame(), other.tidy())
    assert isinstance(model.summary().to_frame("polars"), pl.DataFrame)


def test_what_is_not_finite_can_be_printed_and_long_tables_end_early():
    numbers = np.array([np.inf, np.nan, 0.0, -1e300])
    found = Coefficients(tuple("abcd"), None, *[numbers] * 3, np.full(4, np.nan), *[numbers] * 2)
    text = str(Summary("Title", ((), ()), TextTable.of_coefficients(found, 0.95, "z")))
    assert re.search("a +inf +inf +inf +nan +inf +inf", text)
    assert "-1.0000e+300" in text
    found = Coefficients(tuple(map(str, range(450))), None, *[np.ones(450)] * 6)
    text = str(Summary("Title", ((), ()), TextTable.of_coefficients(found, 0.95, "z")))
    assert "250 more rows: see to_frame()." in text
    assert len(text.splitlines()) < 210
