"""Summaries of fits: facts, numbers, notes, and how they are printed."""

import re

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from models.noisy_fits import labels_with_flips
from sklearn.datasets import load_iris

from posteriori import GLM, GaussianPrior, LogisticRegression
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


def test_the_summary_has_the_usual_layout():
    assert str(spector().summary()) == PAGE


def test_numbers_of_the_summary_are_those_of_tidy():
    model = iris()
    found, page = model.tidy(errors="robust"), model.summary(errors="robust")
    rows = [line for line in str(page).splitlines() if re.match(r"  \w", line)]
    assert len(rows) == len(found) == 10
    for line, (_, row) in zip(rows, found.iterrows(), strict=True):
        for cell, value in zip(line.split()[-6:], row[2:], strict=True):
            decimals = len(cell.partition(".")[2])
            shown = 0.0 if cell == "<0.0001" else float(cell)
            assert shown == pytest.approx(value, abs=1.01 * 10.0**-decimals)
    pd.testing.assert_frame_equal(page.to_frame(), found)


def test_the_summary_says_how_the_fit_was_made():
    for prior, words in (
        (None, "likelihood"),
        (2.0, "precision 2 "),
        (GaussianPrior(), "Gaussian "),
    ):
        text = str(iris(prior).summary())
        assert words in text
        assert ("fitted by posterior mode" in text) is (prior is not None)
        assert ("posterior standard deviations" in text) is (prior is not None)


def test_html_and_latex_are_escaped_and_have_every_number():
    name = "<b>GPA</b> 100 % [a_b] " * 5
    model = LogisticRegression().fit(
        X.rename(columns={"GPA": name}), np.array(["<no>", "yes & so"])[Y]
    )
    page = model.summary()
    html, latex = page._repr_html_(), page.latex()
    assert name in page.text()
    assert "<b>GPA</b>" not in html
    assert "&lt;b&gt;GPA&lt;/b&gt; 100 % [a_b]" in html
    assert "yes &amp; so against &lt;no&gt;" in html
    for text in ("-13.021", "4.931", "Null deviance", "41.18"):
        assert text in html
        assert text in latex
    assert r"100 \% {[}a\_b]" in latex
    assert r" & 2.826 & 1.263 & 2.24 & 0.0252 & 0.351 & 5.301 \\" in latex
    many = iris().summary()._repr_html_()
    assert '<th colspan="7">virginica against setosa</th>' in many
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


@pytest.mark.parametrize("prior", [None, "jeffreys"])
def test_profile_intervals_come_with_likelihood_ratio_tests(prior):
    model = LogisticRegression(prior=prior).fit(X, Y)
    page = model.summary(intervals="profile")
    table = page.to_frame()
    pd.testing.assert_frame_equal(table, model.tidy(intervals="profile"))
    excluded = (table["conf_low"] > 0) | (table["conf_high"] < 0)
    assert list(excluded) == list(table["p_value"] < 0.05)
    assert "likelihood ratio" in " ".join(str(page).split())


def test_rates_of_wrong_labels_are_shown():
    X, y, _ = labels_with_flips(300, (0.1, 0.1), seed=3, slopes=np.array([2.5, -1.0]))
    model = LogisticRegression(label_noise="estimate").fit(X, y)
    rate = re.escape(f"{model.label_noise_:.4g} (s.e. {model.label_noise_error_:.4g})")
    assert re.search(f"^Wrong labels +{rate} ", str(model.summary()), re.MULTILINE)
    page = str(LogisticRegression(label_noise=(0.05, 0.1)).fit(X, y).summary())
    assert re.search("^Wrong labels +0.05, 0.1 ", page, re.MULTILINE)
    assert "Wrong labels" not in str(LogisticRegression().fit(X, y).summary())


def test_a_summary_of_odds_ratios_says_that_errors_are_on_the_log_scale():
    page = LogisticRegression().fit(X, Y).summary(odds_ratios=True)
    assert re.search("odds ratio +std error [(]log[)]", str(page))
    assert re.search(r"GPA +16\.880 +1\.263", str(page))
    assert "logarithm of the odds ratio" in page._repr_html_()


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
