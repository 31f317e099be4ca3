"""Approximate posteriors beside exact ones, by integration over a grid, on small real data."""

import importlib.util
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import expit

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs" / "approximations.md").read_text(encoding="utf-8")

LAPLACE = 0.1
"""How far Laplace's ln p(t) is from the exact one, at most, where the prior is not weak."""

MANY = 4.0
"""Monte Carlo errors that an estimate may be off."""


def load():
    path = ROOT / "examples" / "approximations.py"
    spec = importlib.util.spec_from_file_location("approximations", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclasses look for their types
    spec.loader.exec_module(module)
    return module


example = load()


@cache
def problem(title):
    return example.PROBLEMS[title]()


@cache
def truth(title):
    return example.exact(problem(title))


@cache
def model(title, inference):
    return problem(title).fit(inference)


def answer(title, inference):
    return example.answer(problem(title), model(title, inference))


PLAIN = pytest.mark.parametrize("title", ["Grades", "Separated"])
QUICK = pytest.mark.parametrize("title", [name for name in example.PROBLEMS if name != "Sepals"])
"""All but one of three coefficients and many rows."""


def test_the_grid_gives_what_adaptive_quadrature_does():
    found = problem("One coefficient")
    grid = example.Grid.of(found)
    top = float(grid.log_density(np.array([[3.2]]))[0])

    def moment(function):
        def integrand(w):
            return np.exp(grid.log_density(np.array([[w]]))[0] - top) * function(w)

        return quad(integrand, -3.0, 12.0, points=[2.0, 4.0], epsabs=1e-12, epsrel=1e-12)[0]

    total = moment(lambda w: 1.0)
    mean = moment(lambda w: w) / total
    sd = np.sqrt(moment(lambda w: (w - mean) ** 2) / total)
    p = [moment(lambda w, x=x: expit(w * x)) / total for x in (0.5, 3.0)]
    assert_allclose(
        truth("One coefficient").numbers, [np.log(total) + top, mean, sd, *p], rtol=1e-9
    )


@QUICK
def test_the_prior_is_that_of_the_model(title):
    found, slopes = problem(title), 0.01 if "weak" in title else 1.0
    intercept = [0.01] if found.fit_intercept else []
    precision = example.Grid.of(found).precision
    assert_allclose(precision, [*intercept, *[slopes] * len(found.columns)], rtol=1e-12)


@QUICK
def test_the_variational_bound_is_below_the_evidence_and_its_posterior_too_narrow(title):
    found = answer(title, "variational")
    assert found.log_evidence < truth(title).log_evidence
    assert (found.sd < truth(title).sd).all()


@PLAIN
def test_laplace_is_near_the_evidence_and_its_mode_within_a_third_of_a_deviation(title):
    found, exact = answer(title, "laplace"), truth(title)
    assert_allclose(found.log_evidence, exact.log_evidence, rtol=0, atol=LAPLACE)
    assert (abs(found.mean - exact.mean) < exact.sd / 3).all()
    assert_allclose(found.sd, exact.sd, rtol=0.1)


@QUICK
def test_a_variational_fit_that_is_too_narrow_is_not_good(title):
    found = model(title, "variational").approximation_check_
    assert found.word != "good"


def test_laplace_is_far_off_on_separated_data_with_a_weak_prior():
    found, exact = (
        answer("Separated, with a weak prior", "laplace"),
        truth("Separated, with a weak prior"),
    )
    assert exact.log_evidence - found.log_evidence > 2 * LAPLACE
    assert exact.mean[1] - found.mean[1] > exact.sd[1]
    assert found.probability[1] < 0.99 < 1 - 1e-7 < exact.probability[1]


@PLAIN
def test_monte_carlo_is_right_within_its_errors(title):
    exact, found = truth(title), answer(title, "monte_carlo")
    errors = example.errors(problem(title), model(title, "monte_carlo"))
    for name in ("mean", "sd", "probability"):
        off = getattr(found, name) - getattr(exact, name)
        assert (abs(off) < MANY * getattr(errors, name)).all(), name
    assert_allclose(found.log_evidence, exact.log_evidence, rtol=0, atol=LAPLACE)


@PLAIN
def test_the_docs_have_the_numbers_of_the_example(title):
    """But for those by Monte Carlo, and k-hat."""
    section = DOCS.split(f"### {title}\n")[1].split("###")[0]
    columns = [truth(title), answer(title, "laplace"), answer(title, "variational")]
    names = example.names(problem(title))
    numbers = np.column_stack([each.numbers for each in columns])
    for name, row in zip(names, numbers, strict=True):
        assert example.line(name, row, np.nan).removesuffix("|") in section
