"""What `plot_trace` puts on the axes."""

import subprocess
import sys

import matplotlib as mpl

mpl.use("agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

from posteriori import LeastSquaresClassifier, LogisticRegression
from posteriori.errors import ParameterError
from posteriori.report.trace import TraceValues, plot_trace
from posteriori.solve.objective import Iteration, Solution, Status

NOTES = (
    Iteration(90.0, 9.0, 1.0, 0.1, 0.125, True),
    Iteration(50.0, 8.0, 0.25, 0.2, 1.0, True, 3.0),
    Iteration(18.0, 2.0, 1.0, 0.4, 1.0, False, 1.0),
    Iteration(10.5, 1.0, 1.0, 0.5, 1.0, False),
    Iteration(10.0, 0.0, 1.0, 0.6, 1.0, False),
)
SOLUTION = Solution(np.zeros(2), Status.CONVERGED, NOTES, 10.0)


def curves(ax):
    return {line.get_label(): line for line in ax.get_lines()}


def test_the_objective_is_drawn_above_its_minimum():
    line = curves(plot_trace(SOLUTION))["objective above its minimum"]
    np.testing.assert_array_equal(line.get_ydata(), [np.nan, 40.0, 8.0, 0.5, np.nan])
    np.testing.assert_array_equal(line.get_xdata(), [0.1, 0.2, 0.4, 0.5, 0.6])


def test_the_distance_from_the_optimum_is_drawn_at_every_step_that_had_one():
    line = curves(plot_trace(SOLUTION))["standard errors from the optimum"]
    np.testing.assert_array_equal(line.get_ydata(), [9.0, 8.0, 2.0, 1.0, np.nan])


def test_passes_count_the_rows_looked_at_before_each_step():
    ax = plot_trace(SOLUTION, against="passes")
    line = curves(ax)["standard errors from the optimum"]
    np.testing.assert_array_equal(line.get_xdata(), [0.0, 0.125, 3.125, 4.125, 5.125])
    assert ax.get_xlabel() == "passes over the rows"
    assert ax.get_ylabel() == "distance from the optimum"


def test_steps_on_part_of_the_rows_are_hollow():
    line = curves(plot_trace(SOLUTION))["on part of the rows"]
    np.testing.assert_array_equal(line.get_ydata(), [9.0])
    assert line.get_markerfacecolor() == "white"
    whole = Solution(np.zeros(2), Status.CONVERGED, NOTES[1:], 10.0)
    assert "on part of the rows" not in curves(plot_trace(whole))


def test_shortened_steps_have_their_length_beside_them():
    ax = plot_trace(SOLUTION)
    assert [(text.get_text(), text.xy) for text in ax.texts] == [("0.25", (0.2, 8.0))]


def test_the_axis_is_logarithmic_and_the_curves_have_names():
    ax = plot_trace(SOLUTION)
    assert ax.get_yscale() == "log"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "objective above its minimum",
        "standard errors from the optimum",
        "on part of the rows",
    ]


def test_a_given_axes_is_drawn_on():
    _, ax = plt.subplots()
    assert plot_trace(SOLUTION, ax=ax) is ax


@pytest.mark.parametrize("solver", ["newton", "gradient", "coordinate", "sequential"])
def test_the_trace_of_a_fitted_model_is_drawn(solver):
    random = np.random.default_rng(0)
    X = random.normal(size=(3000, 4))
    y = random.random(3000) < 1 / (1 + np.exp(-X.sum(axis=1)))
    model = LogisticRegression(solver=solver).fit(X, y)
    values = TraceValues.of(model.solution_)
    above = values.above[np.isfinite(values.above)]
    assert (np.diff(above) < 0).all()
    # Near the optimum the objective is a parabola: f - min f = ½ decrement².
    near = np.isfinite(values.above) & (values.decrement < 1) & (values.above > 1e-7)
    if solver in ("newton", "coordinate"):
        np.testing.assert_allclose(values.above[near], values.decrement[near] ** 2 / 2, rtol=0.3)
    line = curves(plot_trace(model))["objective above its minimum"]
    np.testing.assert_array_equal(line.get_ydata(), values.above)


def test_an_unknown_clock_is_an_error():
    with pytest.raises(ParameterError, match="'hours'"):
        plot_trace(SOLUTION, against="hours")


def test_a_solution_without_steps_is_an_error():
    for trace in ((), (1.0, 2.0)):
        with pytest.raises(ParameterError, match="no trace of steps"):
            plot_trace(Solution(np.zeros(1), Status.CONVERGED, trace, 1.0))


@pytest.mark.parametrize("model", [LogisticRegression(), LeastSquaresClassifier()])
def test_a_model_without_a_solution_is_an_error_that_names_it(model):
    with pytest.raises(ParameterError, match=f"This {type(model).__name__} has no solution_"):
        plot_trace(model)


def test_matplotlib_is_not_imported_before_something_is_drawn():
    code = "import sys, posteriori.report.trace; print('matplotlib' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
