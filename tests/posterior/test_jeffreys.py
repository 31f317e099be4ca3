"""Jeffreys' prior: Firth's estimates, against closed forms and optima at 50 digits."""

from dataclasses import replace
from functools import partial

import mpmath as mp
import numpy as np
import pytest
from jeffreys_oracle import (
    exact_logistic,
    exact_probit,
    exact_softmax,
    optimum,
    penalised_logistic,
    penalised_probit,
    penalised_softmax,
    with_ones,
)
from scipy import sparse
from scipy.special import expit, log_softmax

from posteriori import LogisticRegression
from posteriori.design.columns import Columns
from posteriori.errors import ParameterError
from posteriori.likelihood.logistic import LogisticLoss, SignedLogisticLoss
from posteriori.likelihood.noise import NoisyClassLoss
from posteriori.likelihood.probit import ProbitLoss
from posteriori.likelihood.softmax import SoftmaxLoss
from posteriori.models.fitting import Problem, prepare
from posteriori.models.targets import coded, of_many, second_of_two, signs
from posteriori.posterior.jeffreys import jeffreys_levels, with_jeffreys
from posteriori.rows.in_memory import read_rows
from posteriori.rows.threads import one_blas_thread
from posteriori.solve.first_order import coordinate, gradient
from posteriori.solve.newton import newton
from posteriori.solve.sequential import sequential


class Fit:
    """A fit with Jeffreys' prior: Θ (K, q) in the user's units, and what follows from it."""

    def __init__(self, X, y, weight=None, loss=None, intercept=True, offset=None):
        rows = replace(read_rows(X, y, weight), offset=offset)
        K = len(rows.classes)
        self.K = K
        loss = loss or (SignedLogisticLoss() if K == 2 else SoftmaxLoss())
        two = signs if isinstance(loss, SignedLogisticLoss) else second_of_two
        rows, target = coded(rows, two if K == 2 else of_many(K), once=K == 2)
        activations = 1 if K == 2 else K
        problem = Problem(
            rows, Columns(rows.schema), loss, target, activations, intercept, None, 1e-4
        )
        with one_blas_thread():
            prepared = prepare(problem)
            levels = jeffreys_levels(prepared.levels)
            self.levels, self.objective = levels, levels[-1]
            self.solution = newton(levels, prepared.start)
            assert self.solution.converged
            self.w = self.solution.parameters
            self.inference, self.penalised = self.objective.conclude(self.w, prepared.dependent)
        standard = self.objective.standard
        self.theta = standard.to_user(self.objective.coordinates.expand(self.w))

    @property
    def errors(self):
        return self.inference.standard_errors()

    @property
    def contrasts(self):
        """What `errors` belong to."""
        return self.theta[0] if self.K == 2 else (self.theta[1:] - self.theta[0]).ravel()

    def log_odds(self, X):
        return (self.theta[:, 0] + X @ self.theta[:, 1:].T).squeeze()


def random_rows(n, d, seed):
    return np.random.default_rng(seed).standard_normal((n, d))


def separated_rows():
    X = random_rows(14, 2, 1)
    return X, (X[:, 0] + 0.5 * X[:, 1] > 0.1).astype(int)


def quasi_separated_rows():
    """Whenever the first column is one, so is the class."""
    flag = np.repeat([0.0, 1.0], [14, 6])
    X = np.column_stack([flag, random_rows(20, 1, 2)[:, 0]])
    return X, np.where(flag == 1, 1, np.arange(20) % 3 == 0).astype(int)


def overlapping_rows():
    X = random_rows(25, 2, 3) * [1.0, 10.0] + [3.0, -40.0]
    return X, np.arange(25) % 2


def three_classes(apart):
    X = random_rows(18, 2, 4)
    y = np.digitize(X[:, 0], [-0.4, 0.4])
    return X, y if apart else (y + (np.arange(18) % 4 == 0)) % 3


def saturated_rows():
    return random_rows(5, 4, 6), np.array([0, 1, 1, 0, 1])


@pytest.mark.parametrize("rows", [separated_rows, quasi_separated_rows, overlapping_rows])
@pytest.mark.parametrize(
    ("loss", "rough", "fine"),
    [
        (SignedLogisticLoss(), penalised_logistic, exact_logistic),
        (ProbitLoss(), penalised_probit, exact_probit),
    ],
    ids=["logistic", "probit"],
)
def test_two_classes_have_the_optimum_of_the_penalised_likelihood(rows, loss, rough, fine):
    X, y = rows()
    fit = Fit(X, y, loss=loss)
    centre, scale = X.mean(axis=0), X.std(axis=0)
    best, value, hessian = optimum(rough, fine, with_ones((X - centre) / scale), y, 3)
    slopes = best[1:] / scale
    np.testing.assert_allclose(fit.theta[0, 1:], slopes, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(fit.theta[0, 0], best[0] - slopes @ centre, rtol=1e-8)
    assert fit.penalised == pytest.approx(value + np.log(scale).sum(), rel=1e-10)
    observed = np.diag(fit.inference.covariance("observed"))[1:]
    np.testing.assert_allclose(observed, np.diag(np.linalg.inv(-hessian))[1:] / scale**2, rtol=1e-4)


@pytest.mark.parametrize(
    "apart",
    [
        pytest.param(True, id="separated"),
        pytest.param(False, id="overlapping", marks=pytest.mark.slow),
    ],
)
def test_three_classes_have_the_optimum_of_the_penalised_likelihood(apart):
    X, y = three_classes(apart)
    fit = Fit(X, y)
    t = np.eye(3)[y]
    best, value, _ = optimum(penalised_softmax, exact_softmax, with_ones(X), t, 6)
    np.testing.assert_allclose(fit.contrasts, best, rtol=1e-8, atol=1e-9)
    assert fit.penalised == pytest.approx(value, rel=1e-10)


@pytest.mark.parametrize("table", [(7, 3, 2, 8), (5, 0, 4, 6), (5, 0, 0, 4), (1, 0, 0, 1)])
def test_a_table_of_two_by_two_gets_half_a_row_in_each_cell(table):
    """Firth (1993): in a saturated model ½ is added to every cell; 0 counts for half a row too."""
    X = np.array([[0.0], [0.0], [1.0], [1.0]])
    fit = Fit(X, [0, 1, 0, 1], weight=np.array(table, dtype=float))
    n00, n01, n10, n11 = np.array(table) + 0.5
    first, second = np.log(n01 / n00), np.log(n11 / n10)
    np.testing.assert_allclose(fit.theta[0], [first, second - first], rtol=1e-9, atol=1e-9)
    # I of a group of n rows is n p(1 - p).
    variance = [
        1 / ((n - 1) * p * (1 - p))
        for n, p in [(n00 + n01, n01 / (n00 + n01)), (n10 + n11, n11 / (n10 + n11))]
    ]
    errors = np.sqrt([variance[0], variance[0] + variance[1]])
    np.testing.assert_allclose(fit.errors, errors, rtol=1e-8)


def test_as_many_parameters_as_rows_give_three_to_one_for_every_label():
    """(1 + ½) / (1 + 1), whatever the columns: complete separation in every direction."""
    X, y = saturated_rows()
    np.testing.assert_allclose(Fit(X, y).log_odds(X), np.log(3) * (2 * y - 1), rtol=1e-7)


def test_as_many_parameters_as_rows_and_three_classes_give_three_fifths_to_every_label():
    """(1 + ½) / (1 + 3/2)."""
    X, y = random_rows(4, 3, 7), np.array([0, 1, 2, 1])
    p = np.exp(log_softmax(Fit(X, y).log_odds(X), axis=1))
    np.testing.assert_allclose(p, np.where(np.eye(3)[y] == 1, 0.6, 0.2), rtol=1e-7)


def test_a_level_alone_is_the_log_odds_of_counts_and_a_half():
    fit = Fit(np.ones((9, 1)), np.repeat([0, 1], [7, 2]), intercept=False)
    np.testing.assert_allclose(fit.theta, [[np.log(2.5 / 7.5)]], rtol=1e-9)


def test_a_probit_level_alone_solves_its_equation():
    """With |I|^½ = f/√(F(1 - F)), the derivative of 2 ln F + 7 ln(1 - F) + ln|I|^½ is zero."""
    y = np.repeat([0, 1], [7, 2])
    fit = Fit(np.ones((9, 1)), y, loss=ProbitLoss(), intercept=False)

    def slope(a):
        p, f = mp.ncdf(a), mp.npdf(a)
        return 1.5 * f / p - 6.5 * f / (1 - p) - a

    assert fit.theta[0, 0] == pytest.approx(float(mp.findroot(slope, -0.6)), rel=1e-9)


@pytest.mark.parametrize(
    ("rows", "loss"),
    [
        (separated_rows, None),
        (quasi_separated_rows, ProbitLoss()),
        (partial(three_classes, True), None),
        (partial(three_classes, False), None),
    ],
)
def test_units_and_origins_of_columns_change_no_probability(rows, loss):
    X, y = rows()
    scale, shift = np.array([1e-90, 1e60]), np.array([3e4, -70.0])
    plain, moved = Fit(X, y, loss=loss), Fit((X + shift) * scale, y, loss=loss)
    np.testing.assert_allclose(moved.theta[:, 1:] * scale, plain.theta[:, 1:], rtol=1e-6)
    expected = plain.theta[:, 0] - plain.theta[:, 1:] @ shift
    np.testing.assert_allclose(moved.theta[:, 0], expected, rtol=1e-6)
    units = (len(plain.contrasts) // 3) * np.log(scale).sum()
    assert moved.penalised == pytest.approx(plain.penalised + units, abs=1e-6)


@pytest.mark.parametrize("rows", [quasi_separated_rows, partial(three_classes, True)])
def test_a_weight_is_the_row_repeated(rows):
    X, y = rows()
    times = np.arange(len(y)) % 3 + 1
    weighted, repeated = Fit(X, y, times), Fit(np.repeat(X, times, 0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.theta, repeated.theta, rtol=1e-9)
    np.testing.assert_allclose(weighted.errors, repeated.errors, rtol=1e-9)
    assert weighted.penalised == pytest.approx(repeated.penalised, rel=1e-11)


def test_exchanging_two_classes_changes_the_sign():
    X, y = separated_rows()
    one, other = Fit(X, y), Fit(X, 1 - y)
    np.testing.assert_allclose(one.theta, -other.theta, rtol=1e-8)
    assert one.penalised == pytest.approx(other.penalised, rel=1e-11)


@pytest.mark.parametrize("order", [(1, 0, 2), (2, 0, 1), (2, 1, 0)])
def test_it_does_not_matter_which_class_comes_first(order):
    X, y = three_classes(apart=True)
    one, other = Fit(X, y), Fit(X, np.array(order)[y])
    np.testing.assert_allclose(one.theta, other.theta[list(order)], rtol=1e-7, atol=1e-9)
    assert one.penalised == pytest.approx(other.penalised, rel=1e-10)


def test_two_classes_by_softmax_are_those_by_the_logistic_function():
    """The information of the contrasts is what counts, not how many activations there are."""
    X, y = quasi_separated_rows()
    binary = Fit(X, y)
    rows, target = coded(read_rows(X, y), of_many(2), once=False)
    problem = Problem(rows, Columns(rows.schema), SoftmaxLoss(), target, 2, True, None, 1e-4)
    prepared = prepare(problem)
    objective = with_jeffreys(prepared.objective)
    w = newton([objective], prepared.start).parameters
    theta = objective.standard.to_user(objective.coordinates.expand(w))
    np.testing.assert_allclose(theta[1] - theta[0], binary.theta[0], rtol=1e-8)
    penalised = objective.conclude(w, prepared.dependent)[1]
    assert penalised == pytest.approx(binary.penalised, rel=1e-10)


@pytest.mark.parametrize("rows", [overlapping_rows, partial(three_classes, False)])
def test_a_column_that_others_give_changes_no_probability_and_no_likelihood(rows):
    X, y = rows()
    double = np.column_stack([X, X[:, 0] - 2 * X[:, 1], np.ones(len(X))])
    plain, deficient = Fit(X, y), Fit(double, y)
    np.testing.assert_allclose(deficient.log_odds(double), plain.log_odds(X), rtol=1e-7, atol=1e-8)
    assert deficient.penalised == pytest.approx(plain.penalised, rel=1e-9)


@pytest.mark.parametrize("rows", [overlapping_rows, partial(three_classes, False)])
def test_sparse_rows_and_offsets_of_zero_give_the_same_fit(rows):
    X, y = rows()
    fit = Fit(X, y)
    np.testing.assert_allclose(Fit(sparse.csr_array(X), y).theta, fit.theta, rtol=1e-7)
    zero = np.zeros(len(y) if fit.K == 2 else (len(y), fit.K))
    np.testing.assert_allclose(Fit(X, y, offset=zero).theta, fit.theta, rtol=1e-12)


def test_soft_labels_are_shares_of_rows():
    X, y = quasi_separated_rows()
    soft = np.column_stack([1 - 0.2 - 0.6 * y, 0.2 + 0.6 * y])
    both = np.concatenate([X, X])
    shares = Fit(both, np.repeat([0, 1], len(y)), soft.T.ravel())
    np.testing.assert_allclose(Fit(X, soft, loss=LogisticLoss()).theta, shares.theta, rtol=1e-8)


def test_many_rows_start_from_some_of_them_and_end_at_the_same_optimum():
    X = random_rows(20_000, 3, 8)
    noise = np.random.default_rng(9).logistic(size=len(X))
    y = (noise < X @ [1.0, -0.5, 0.0]).astype(int)
    fit = Fit(X, y)
    assert fit.solution.trace[0].share < 1
    design, p = with_ones(X), expit(fit.log_odds(X))
    r = p * (1 - p)
    inverse = np.linalg.inv(design.T @ (design * r[:, None]))
    h = r * np.einsum("ni,ij,nj->n", design, inverse, design)
    score = design.T @ (y - p + h * (0.5 - p))  # Firth (1993)
    assert np.sqrt(score @ inverse @ score) < 1e-6


@pytest.mark.parametrize("rows", [quasi_separated_rows, partial(three_classes, True)])
def test_gradient_and_hessian_are_those_of_the_value(rows):
    fit = Fit(*rows())
    w = 0.8 * fit.w
    local = fit.objective(w, "full")
    h, eye = 1e-4, np.eye(len(w))
    values = [fit.objective(w + s * h * e, "none").value for e in eye for s in (1, -1)]
    slopes = [(up - down) / (2 * h) for up, down in zip(values[::2], values[1::2], strict=True)]
    np.testing.assert_allclose(local.gradient, slopes, rtol=1e-6, atol=1e-7)
    bends = [
        (fit.objective(w + h * e, "none").gradient - fit.objective(w - h * e, "none").gradient)
        / (2 * h)
        for e in eye
    ]
    np.testing.assert_allclose(local.hessian, bends, rtol=1e-3, atol=1e-3)


def test_rows_of_high_leverage_do_not_slow_the_solver_down():
    """Fisher scoring alone needs hundreds of steps here."""
    X = np.vstack([random_rows(100, 2, 0), [[50.0, 50.0]]])
    fit = Fit(X, np.r_[X[:100, 0] > 0, False].astype(int))
    assert len(fit.solution.trace) < 15


@pytest.mark.parametrize("solver", [newton, gradient, coordinate])
def test_solvers_that_know_a_diagonal_alone_reach_the_same_optimum(solver):
    fit = Fit(*quasi_separated_rows())
    local = fit.objective(fit.w, "diagonal")
    expected = replace(fit.objective, information="expected")(fit.w, "full").hessian
    np.testing.assert_array_equal(local.hessian, np.diagonal(expected))
    found = solver([fit.objective], np.zeros(3))
    assert found.converged
    np.testing.assert_allclose(found.parameters, fit.w, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("solver", [newton, sequential])
@pytest.mark.parametrize(("n", "seed"), [(300, 3), (300, 4), (600, 1)])
def test_columns_that_nearly_depend_on_others_end_where_rounding_begins(solver, n, seed):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4))
    X[:, 3] = X[:, 2] + 1e-4 * random.normal(size=n)
    W = random.normal(size=(3, 5))
    fit = Fit(X, (X[:, :3] @ W + random.gumbel(size=(n, 5))).argmax(axis=1))
    # The information has lost 8 of 16 digits: 1e-7 standard errors can be told, 1e-9 cannot.
    assert 1e-8 < fit.objective.tolerance < 1e-6
    found = solver(fit.levels, np.zeros(len(fit.w)))
    assert found.converged
    assert len(found.trace) < 40
    moved = found.parameters - fit.w
    information = replace(fit.objective, information="expected")(fit.w, "full").hessian
    assert np.sqrt(moved @ information @ moved) < 10 * fit.objective.tolerance


def test_columns_that_do_not_depend_on_others_are_fitted_to_the_last_digits():
    assert Fit(*overlapping_rows()).objective.tolerance == 1e-11


def test_the_log_likelihood_is_without_the_prior():
    X, y = quasi_separated_rows()
    fit = Fit(X, y)
    p = expit(fit.log_odds(X))
    assert fit.inference.goodness.log_likelihood == pytest.approx(
        np.log(np.where(y, p, 1 - p)).sum()
    )


def test_a_singular_information_is_an_error_that_says_so():
    X, y = separated_rows()
    fit = Fit(X, y)
    with pytest.raises(ParameterError, match=r"information matrix is singular.*\[P301\]"):
        fit.objective.conclude(1e4 * fit.w, np.empty(0, dtype=int))


@pytest.mark.parametrize("seed", range(3))
def test_gradients_leave_nearly_dependent_columns_to_newton(seed):
    random = np.random.default_rng(seed)
    X = random.normal(size=(300, 4))
    X[:, 3] = X[:, 2] + 1e-5 * random.normal(size=300)
    y = (X @ random.normal(size=(4, 5)) + random.gumbel(size=(300, 5))).argmax(axis=1)
    newton = LogisticRegression(prior="jeffreys", solver="newton").fit(X, y)
    other = LogisticRegression(prior="jeffreys", solver="gradient").fit(X, y)
    assert other.solver_ == "newton"
    assert "nearly combinations" in other.solver_reason_
    np.testing.assert_allclose(other.predict_proba(X), newton.predict_proba(X), atol=1e-6)


def test_too_many_columns_are_an_error_that_says_so():
    X = sparse.csr_array(np.eye(2100))
    rows, target = coded(read_rows(X, np.arange(2100) % 2), signs, once=True)
    loss = SignedLogisticLoss()
    problem = Problem(rows, Columns(rows.schema), loss, target, 1, True, None, 1e-4)
    with pytest.raises(ParameterError, match="2101 parameters; 2100 is the most"):
        with_jeffreys(prepare(problem).objective)


def test_wrong_labels_of_several_classes_are_an_error_that_says_so():
    fit = Fit(*three_classes(apart=False))
    plain = replace(fit.objective, loss=NoisyClassLoss(0.8 * np.eye(3) + 0.2 / 3))
    with pytest.raises(ParameterError, match="labels of several classes that may be wrong"):
        with_jeffreys(plain)
