"""Prior and posterior, the evidence curve, and the trace of a fit."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.integrate import trapezoid
from scipy.special import log_expit
from sklearn.datasets import load_iris

from posteriori import (
    BayesianLogisticRegression,
    GaussianPrior,
    LeastSquaresClassifier,
    LogisticRegression,
)
from posteriori.errors import InferenceError, ParameterError
from posteriori.report.plots import convergence, evidence_curve, prior_and_posterior
from posteriori.report.plots.posterior import Trace
from posteriori.solve.objective import Iteration, Solution, Status


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(3)
    X = random.normal([5.0, -2.0], [2.0, 0.1], (80, 2))
    return X, random.random(80) < 1 / (1 + np.exp(2.5 - 0.5 * X[:, 0]))


def curves(ax):
    """The two lines by the first word of their labels."""
    return {line.get_label().split(":")[0]: line for line in ax.get_lines()[:2]}


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_the_prior_of_a_slope_is_in_the_units_of_its_column(rows):
    X, y = rows
    prior = GaussianPrior(4.0, mean=[0.3, -0.2], intercept_precision=0.25, units="standardised")
    model = BayesianLogisticRegression(prior=prior).fit(X, y)
    for j, mean in enumerate(prior.mean):
        line = curves(prior_and_posterior(model, f"x{j}"))["prior"]
        sd = X[:, j].std()
        expected = stats.norm.pdf(line.get_xdata(), mean / sd, 0.5 / sd)
        assert_allclose(line.get_ydata(), expected, rtol=1e-7)


def test_the_prior_of_the_intercept_is_that_of_columns_as_they_are(rows):
    X, y = rows
    model = BayesianLogisticRegression(
        prior=GaussianPrior(4.0, intercept_precision=0.25, units="standardised")
    ).fit(X, y)
    # b = b' - Σ_j w_j m_j/s_j with b' ~ N(0, 4) and w_j ~ N(0, 1/4).
    ratio = X.mean(axis=0) / X.std(axis=0)
    sd = np.sqrt(4 + (ratio**2).sum() / 4)
    line = curves(prior_and_posterior(model, "intercept"))["prior"]
    assert_allclose(line.get_ydata(), stats.norm.pdf(line.get_xdata(), 0, sd), rtol=1e-7)


def test_a_prior_in_original_units_is_drawn_as_it_was_given(rows):
    model = BayesianLogisticRegression(prior=GaussianPrior(4.0, mean=1.0)).fit(*rows)
    line = curves(prior_and_posterior(model, "x1"))["prior"]
    assert_allclose(line.get_ydata(), stats.norm.pdf(line.get_xdata(), 1, 0.5), rtol=1e-7)


def test_a_precision_that_is_a_matrix_is_inverted(rows):
    matrix = np.array([[2.0, 1.5], [1.5, 3.0]])
    model = BayesianLogisticRegression(prior=GaussianPrior(matrix)).fit(*rows)
    line = curves(prior_and_posterior(model, "x0"))["prior"]
    sd = np.sqrt(np.linalg.inv(matrix)[0, 0])
    assert_allclose(line.get_ydata(), stats.norm.pdf(line.get_xdata(), 0, sd), rtol=1e-6)


def test_the_posterior_is_the_gaussian_of_the_table(rows):
    model = BayesianLogisticRegression().fit(*rows)
    ax = prior_and_posterior(model, "x0")
    line, table = curves(ax)["posterior"], model.tidy()
    estimate, error = table["estimate"][1], table["std_error"][1]
    assert_allclose(line.get_ydata(), stats.norm.pdf(line.get_xdata(), estimate, error), rtol=1e-6)
    assert_allclose(trapezoid(line.get_ydata(), line.get_xdata()), 1, rtol=1e-3)
    assert legend(ax)[1] == f"posterior: mean {estimate:.3g}, sd {error:.3g}"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("coefficient of x0", "density")


def test_draws_are_a_histogram(rows):
    model = BayesianLogisticRegression(inference="monte_carlo", n_draws=500, random_state=0)
    model.fit(*rows)
    ax = prior_and_posterior(model, "x0")
    outline = ax.patches[0].get_xy()
    draws = model.posterior_.draws[..., 1].ravel()
    height, edges = np.histogram(draws, 30, density=True)
    assert_allclose(outline[:, 0].min(), edges[0])
    assert_allclose(outline[:, 1].max(), height.max())
    assert legend(ax)[1].startswith("posterior: mean")


def test_classes_have_the_prior_of_contrasts_that_sum_to_zero():
    X, y = load_iris(return_X_y=True)
    model = BayesianLogisticRegression(prior=2.0).fit(X, y)
    ax = prior_and_posterior(model, "x2", label=1)
    # θ = BV with BBᵀ = I - 11ᵀ/3, so that each class has 2/3 of the variance.
    found = curves(ax)
    x = found["prior"].get_xdata()
    assert_allclose(found["prior"].get_ydata(), stats.norm.pdf(x, 0, np.sqrt(2 / 3 / 2)), rtol=1e-7)
    mean, sd = model.coef_[1, 2], np.sqrt(model.posterior_.covariance[5 + 3, 5 + 3])
    assert_allclose(found["posterior"].get_ydata(), stats.norm.pdf(x, mean, sd), rtol=1e-6)
    assert ax.get_xlabel() == "coefficient of x2, class 1"


def test_after_an_update_the_prior_is_the_posterior_before(rows):
    X, y = rows
    model = BayesianLogisticRegression(prior=1.0).fit(X[:40], y[:40])
    before = curves(prior_and_posterior(model, "x0"))["posterior"]
    model.update(X[40:], y[40:])
    after = curves(prior_and_posterior(model, "x0"))["prior"]
    mean = before.get_xdata()[before.get_ydata().argmax()]
    assert_allclose(after.get_xdata()[after.get_ydata().argmax()], mean, atol=0.02)
    assert_allclose(after.get_ydata().max(), before.get_ydata().max(), rtol=1e-3)


def test_what_has_no_prior_or_posterior_is_named(rows):
    model = BayesianLogisticRegression().fit(*rows)
    with pytest.raises(ParameterError, match="no term 'age'"):
        prior_and_posterior(model, "age")
    with pytest.raises(ParameterError, match="LogisticRegression has no posterior"):
        prior_and_posterior(LogisticRegression().fit(*rows), "x0")
    with pytest.raises(ParameterError, match="has no posterior"):
        prior_and_posterior(BayesianLogisticRegression(), "x0")
    with pytest.raises(ParameterError, match="those of True"):
        prior_and_posterior(model, "x0", label=False)
    with pytest.raises(InferenceError, match="Jeffreys"):
        prior_and_posterior(BayesianLogisticRegression(prior="jeffreys").fit(*rows), "x0")


def laplace_evidence(x, t, precision):
    """ln p(t) by Laplace's approximation (4.137), of a standardised column, by plain Newton."""
    Phi = np.column_stack([np.ones_like(x), (x - x.mean()) / x.std()])
    A0, w = np.diag([0.01, precision]), np.zeros(2)
    for _ in range(50):
        p = 1 / (1 + np.exp(-Phi @ w))
        A = A0 + (Phi.T * (p * (1 - p))) @ Phi
        w -= np.linalg.solve(A, A0 @ w - Phi.T @ (t - p))
    sign = np.where(t, 1, -1)
    fit = log_expit(sign * (Phi @ w)).sum() - w @ A0 @ w / 2
    return fit + (np.linalg.slogdet(A0)[1] - np.linalg.slogdet(A)[1]) / 2


def test_the_curve_is_the_evidence_of_each_precision(rows):
    X, y = rows
    ax = evidence_curve(X[:, :1], y, precisions=[10.0, 0.01, 1.0])
    precisions, values = ax.get_lines()[0].get_data()
    assert_allclose(precisions, [0.01, 1.0, 10.0])
    expected = [laplace_evidence(X[:, 0], y, precision) for precision in precisions]
    assert_allclose(values, expected, atol=1e-6)


def test_the_marked_precision_is_the_best(rows):
    X, y = rows
    ax = evidence_curve(X[:, :1], y)
    curve, mark = ax.get_lines()
    best, value = mark.get_xdata()[0], mark.get_ydata()[0]
    assert_allclose(curve.get_xdata()[[0, -1]], [min(best, 1) / 1000, max(best, 1) * 1000])
    assert len(curve.get_xdata()) == 25
    assert curve.get_xdata()[curve.get_ydata().argmax()] == best
    assert_allclose(curve.get_ydata().max(), value, atol=1e-6)
    assert_allclose(value, laplace_evidence(X[:, 0], y, best), atol=1e-6)
    assert ax.get_xscale() == "log"
    assert ax.get_xlabel() == "precision of the prior, for standardised columns"
    assert legend(ax) == ["log evidence", f"chosen: precision {best:.3g}"]


def test_the_estimator_given_is_the_one_that_is_fitted(rows):
    X, y = rows
    bound = BayesianLogisticRegression(inference="variational")
    ax = evidence_curve(X, y, precisions=[1.0], estimator=bound)
    prior = GaussianPrior(1.0, intercept_precision=0.01, units="standardised")
    expected = BayesianLogisticRegression(inference="variational", prior=prior).fit(X, y)
    assert_allclose(ax.get_lines()[0].get_ydata(), [expected.log_evidence_])
    assert bound.prior == "evidence"
    assert not hasattr(bound, "prior_")


def test_what_has_no_evidence_is_named(rows):
    with pytest.raises(ParameterError, match="LogisticRegression has no evidence"):
        evidence_curve(*rows, estimator=LogisticRegression())
    for bad in ([], [0.0], [1.0, np.inf], ["a"]):
        with pytest.raises(ParameterError, match="precisions"):
            evidence_curve(*rows, precisions=bad)


# --- Convergence ----------------------------------------------------------------------------------

NOTES = (
    Iteration(90.0, 9.0, 1.0, 0.1, 0.125, True),
    Iteration(50.0, 8.0, 0.25, 0.2, 1.0, True, 3.0),
    Iteration(18.0, 2.0, 1.0, 0.4, 1.0, False, 1.0),
    Iteration(10.5, 1.0, 1.0, 0.5, 1.0, False),
    Iteration(10.0, 0.0, 1.0, 0.6, 1.0, False),
)
SOLUTION = Solution(np.zeros(2), Status.CONVERGED, NOTES, 10.0)


def lines_of(ax):
    return {line.get_label(): line for line in ax.get_lines()}


def test_the_objective_is_drawn_above_its_minimum():
    line = lines_of(convergence(SOLUTION))["objective above its minimum"]
    assert_array_equal(line.get_ydata(), [np.nan, 40.0, 8.0, 0.5, np.nan])
    assert_array_equal(line.get_xdata(), [0.1, 0.2, 0.4, 0.5, 0.6])


def test_the_distance_from_the_optimum_is_drawn_at_every_step_that_had_one():
    line = lines_of(convergence(SOLUTION))["standard errors from the optimum"]
    assert_array_equal(line.get_ydata(), [9.0, 8.0, 2.0, 1.0, np.nan])


def test_passes_count_the_rows_looked_at_before_each_step():
    ax = convergence(SOLUTION, against="passes")
    line = lines_of(ax)["standard errors from the optimum"]
    assert_array_equal(line.get_xdata(), [0.0, 0.125, 3.125, 4.125, 5.125])
    assert ax.get_xlabel() == "passes over the rows"
    assert ax.get_ylabel() == "distance from the optimum"


def test_steps_on_part_of_the_rows_are_hollow():
    line = lines_of(convergence(SOLUTION))["on a subsample of the rows"]
    assert_array_equal(line.get_ydata(), [9.0])
    assert line.get_markerfacecolor() == "white"
    whole = Solution(np.zeros(2), Status.CONVERGED, NOTES[1:], 10.0)
    assert "on a subsample of the rows" not in lines_of(convergence(whole))


def test_shortened_steps_have_their_length_beside_them():
    ax = convergence(SOLUTION)
    assert [(text.get_text(), text.xy) for text in ax.texts] == [("0.25", (0.2, 8.0))]


@pytest.mark.parametrize("solver", ["newton", "gradient", "coordinate", "sequential"])
def test_the_trace_of_a_fitted_model_is_drawn(solver):
    random = np.random.default_rng(0)
    X = random.normal(size=(3000, 4))
    y = random.random(3000) < 1 / (1 + np.exp(-X.sum(axis=1)))
    model = LogisticRegression(solver=solver).fit(X, y)
    values = Trace.of(model.solution_)
    above = values.above[np.isfinite(values.above)]
    assert (np.diff(above) < 0).all()
    # Near the optimum the objective is a parabola: f - min f = ½ decrement².
    near = np.isfinite(values.above) & (values.decrement < 1) & (values.above > 1e-7)
    if solver in ("newton", "coordinate"):
        assert_allclose(values.above[near], values.decrement[near] ** 2 / 2, rtol=0.3)
    line = lines_of(convergence(model))["objective above its minimum"]
    assert_array_equal(line.get_ydata(), values.above)


def test_an_unknown_axis_is_an_error():
    with pytest.raises(ParameterError, match="'hours'"):
        convergence(SOLUTION, against="hours")


def test_a_solution_without_steps_is_an_error():
    for trace in ((), (1.0, 2.0)):
        with pytest.raises(ParameterError, match="no trace of steps"):
            convergence(Solution(np.zeros(1), Status.CONVERGED, trace, 1.0))


@pytest.mark.parametrize("model", [LogisticRegression(), LeastSquaresClassifier()])
def test_a_model_without_a_solution_is_an_error_that_names_it(model):
    with pytest.raises(ParameterError, match=f"This {type(model).__name__} has no solution_"):
        convergence(model)
