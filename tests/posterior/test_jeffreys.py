"""Jeffreys' prior: Firth's estimates, against closed forms and optima at 50 digits."""

from functools import partial

import numpy as np
import pytest
from jeffreys_oracle import exact_logistic, exact_probit, exact_softmax, optimum, with_ones
from scipy import sparse

from posteriori import LogisticRegression, ProbitRegression
from posteriori.errors import ParameterError, RankDeficiencyWarning
from posteriori.solve.newton import scoring


def fit(X, y, weight=None, model=LogisticRegression, **settings):
    return model(prior="jeffreys", **settings).fit(X, y, sample_weight=weight)


def theta_of(model):
    """Intercept and slopes of the second class, or the contrasts of the others with the first."""
    theta = np.column_stack([model.intercept_, model.coef_])
    return theta[0] if len(theta) == 1 else (theta[1:] - theta[0]).ravel()


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


@pytest.mark.parametrize("rows", [separated_rows, quasi_separated_rows, overlapping_rows])
@pytest.mark.parametrize(
    ("model", "value_of"),
    [(LogisticRegression, exact_logistic), (ProbitRegression, exact_probit)],
    ids=["logistic", "probit"],
)
def test_two_classes_have_the_optimum_of_the_penalised_likelihood(rows, model, value_of):
    X, y = rows()
    found = fit(X, y, model=model)
    centre, scale = X.mean(axis=0), X.std(axis=0)
    near = np.r_[found.intercept_ + found.coef_[0] @ centre, found.coef_[0] * scale].round(3)
    best, value, hessian = optimum(value_of, with_ones((X - centre) / scale), y, near)
    slopes = best[1:] / scale
    np.testing.assert_allclose(found.coef_[0], slopes, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.intercept_, best[0] - slopes @ centre, rtol=1e-8)
    assert found.penalised_log_likelihood_ == pytest.approx(value + np.log(scale).sum(), rel=1e-10)
    observed = np.diag(found._inference.covariance("observed"))[1:]
    np.testing.assert_allclose(observed, np.diag(np.linalg.inv(-hessian))[1:] / scale**2, rtol=1e-4)


@pytest.mark.parametrize("apart", [True, False])
def test_three_classes_have_the_optimum_of_the_penalised_likelihood(apart):
    X, y = three_classes(apart)
    found = fit(X, y)
    best, value, _ = optimum(exact_softmax, with_ones(X), np.eye(3)[y], theta_of(found).round(3))
    np.testing.assert_allclose(theta_of(found), best, rtol=1e-8, atol=1e-9)
    assert found.penalised_log_likelihood_ == pytest.approx(value, rel=1e-10)


@pytest.mark.parametrize("table", [(7, 3, 2, 8), (5, 0, 0, 4)])
def test_a_table_of_two_by_two_gets_half_a_row_in_each_cell(table):
    """Firth (1993): in a saturated model ½ is added to every cell; 0 counts for half a row too."""
    X = np.array([[0.0], [0.0], [1.0], [1.0]])
    found = fit(X, [0, 1, 0, 1], np.array(table, dtype=float))
    n00, n01, n10, n11 = np.array(table) + 0.5
    first, second = np.log(n01 / n00), np.log(n11 / n10)
    np.testing.assert_allclose(theta_of(found), [first, second - first], rtol=1e-9, atol=1e-9)
    size, p = np.array([n00 + n01, n10 + n11]), np.array([n01 / (n00 + n01), n11 / (n10 + n11)])
    variance = 1 / ((size - 1) * p * (1 - p))  # I of a group of n rows is n p(1 - p)
    errors = np.sqrt([variance[0], variance[0] + variance[1]])
    np.testing.assert_allclose(found.tidy()["std_error"], errors, rtol=1e-8)


@pytest.mark.parametrize("rows", [overlapping_rows, partial(three_classes, False)])
def test_a_column_that_others_give_changes_no_probability_and_no_likelihood(rows):
    X, y = rows()
    double = np.column_stack([X, X[:, 0] - 2 * X[:, 1], np.ones(len(X))])
    plain = fit(X, y)
    with pytest.warns(RankDeficiencyWarning):
        deficient = fit(double, y)
    gaps = deficient.decision_function(double), plain.decision_function(X)
    np.testing.assert_allclose(*gaps, rtol=1e-7, atol=1e-8)
    assert deficient.penalised_log_likelihood_ == pytest.approx(
        plain.penalised_log_likelihood_, rel=1e-9
    )


def test_many_rows_start_from_some_of_them_and_end_at_the_same_optimum():
    X = random_rows(20_000, 3, 8)
    noise = np.random.default_rng(9).logistic(size=len(X))
    y = (noise < X @ [1.0, -0.5, 0.0]).astype(int)
    design, p = with_ones(X), fit(X, y).predict_proba(X)[:, 1]
    r = p * (1 - p)
    inverse = np.linalg.inv(design.T @ (design * r[:, None]))
    h = r * np.einsum("ni,ij,nj->n", design, inverse, design)
    score = design.T @ (y - p + h * (0.5 - p))  # Firth (1993)
    assert np.sqrt(score @ inverse @ score) < 1e-6


def test_columns_that_nearly_depend_on_others_end_where_rounding_begins():
    random = np.random.default_rng(3)
    X = random.normal(size=(300, 4))
    X[:, 3] = X[:, 2] + 1e-4 * random.normal(size=300)
    W = random.normal(size=(3, 5))
    model = fit(X, (X[:, :3] @ W + random.gumbel(size=(300, 5))).argmax(axis=1))
    objective, w = model._inference.objective, model._inference.w
    # The information has lost 8 of 16 digits: steps of 1e-7 standard errors are right, of 1e-9 not.
    found = scoring(objective, np.zeros(len(w)))
    assert found.converged
    assert len(found.trace) < 40
    moved = found.parameters - w
    assert np.sqrt(moved @ objective(w, "full").hessian @ moved) < 1e-6


def test_a_singular_information_is_an_error_that_says_so():
    inference = fit(*separated_rows())._inference
    with pytest.raises(ParameterError, match=r"information matrix is singular.*\[P301\]"):
        inference.objective.conclude(1e4 * inference.w, np.empty(0, dtype=int))


@pytest.mark.parametrize(
    ("rows", "settings", "words"),
    [
        ((sparse.eye_array(5000), np.arange(5000) % 2), {}, "5001 parameters; 5000 is the most"),
        (three_classes(False), {"label_noise": 0.2}, "cannot be combined with label_noise"),
        (separated_rows(), {"solver": "gradient"}, "Use solver='auto'"),
    ],
    ids=lambda value: str(value)[:20] if isinstance(value, str) else "",
)
def test_what_it_cannot_be_combined_with_is_named(rows, settings, words):
    with pytest.raises(ParameterError, match=words):
        fit(*rows, **settings)
