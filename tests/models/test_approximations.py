"""Approximate posteriors compared with exact ones, integrated on a grid, on small real data."""

import importlib.util
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import dblquad

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs" / "approximations.md").read_text(encoding="utf-8")


def load():
    path = ROOT / "examples" / "approximations.py"
    spec = importlib.util.spec_from_file_location("approximations", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # for its dataclasses
    spec.loader.exec_module(module)
    return module


example = load()
PROBLEMS = example.problems()
WEAK = "Separated, with a weak prior"
SMALL = pytest.mark.parametrize("title", ["Tumours", "Separated", WEAK])
"""Those with two coefficients."""


@cache
def exact(title):
    return example.exact(PROBLEMS[title])


@cache
def model(title, inference):
    return PROBLEMS[title].fit(inference)


def approximate(title, inference):
    return example.approximate(PROBLEMS[title], model(title, inference))


def test_the_grid_agrees_with_adaptive_quadrature():
    density = PROBLEMS["Tumours"].log_density

    def integrand(slope, intercept):
        return np.exp(density(np.array([[intercept, slope]]))[0] + 10)

    mass = dblquad(integrand, -9, 1, -6, 3, epsabs=1e-7, epsrel=1e-7)[0]
    assert_allclose(exact("Tumours")[0], np.log(mass) - 10, rtol=1e-5)


@SMALL
def test_approximations_miss_the_exact_posterior_as_the_docs_say(title):
    found, truth = approximate(title, "variational"), exact(title)
    assert found[0] < truth[0]  # a bound
    assert (found[3:5] < truth[3:5]).all()  # and too narrow
    assert model(title, "variational").approximation_check_.word != "good"
    found = approximate(title, "laplace")
    if title == WEAK:
        assert truth[0] - found[0] > 0.2
        assert found[-1] < 0.99 < 1 - 1e-7 < truth[-1]
        return
    assert_allclose(found[0], truth[0], rtol=0, atol=0.1)
    assert_allclose(found[3:5], truth[3:5], rtol=0.1)


def test_monte_carlo_is_right_within_its_errors():
    errors = example.errors(PROBLEMS["Separated"], model("Separated", "monte_carlo"))
    off = approximate("Separated", "monte_carlo") - exact("Separated")
    assert (abs(off) < 4 * errors).all()


@SMALL
def test_the_docs_have_the_numbers_of_the_example(title):
    """Those that are not drawn at random."""
    section = DOCS.split(f"### {title}\n")[1].split("\n#")[0]
    columns = [exact(title), approximate(title, "laplace"), approximate(title, "variational")]
    for name, *values in zip(PROBLEMS[title].names, *columns, strict=True):
        cells = " | ".join(example.written(name, value) for value in values)
        assert f"| {name} | {cells} |" in section
