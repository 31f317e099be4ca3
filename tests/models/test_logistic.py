"""Logistic and softmax regression: the numbers of other libraries, and of the mathematics."""

import mpmath
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.linear_model import LogisticRegression as Rival

from posteriori import GaussianPrior, LogisticRegression
from posteriori.errors import (
    LevelError,
    MissingValueError,
    ParameterError,
    RankDeficiencyWarning,
    ShapeError,
)

CANCER_X, CANCER_Y = load_breast_cancer(return_X_y=True)
CANCER_X = CANCER_X[:, [0, 1, 4, 5]]
IRIS_X, IRIS_Y = load_iris(return_X_y=True)
IRIS_X = IRIS_X + np.random.default_rng(0).normal(size=IRIS_X.shape)
WINE_X, WINE_Y = load_wine(return_X_y=True)


def parameters(model):
    """Intercepts and slopes, as contrasts with the first class."""
    theta = np.column_stack([model.intercept_, model.coef_])
    return theta if len(theta) == 1 else theta[1:] - theta[:1]


def simulated(n, d, n_classes, seed=0, spread=1.0):
    random = np.random.default_rng(seed)
    X = random.normal(random.normal(size=d), random.random(d) + 0.5, (n, d))
    W = spread * random.normal(size=(n_classes, d)) / np.sqrt(d)
    a = (X - X.mean(axis=0)) @ W.T + 0.3 * random.normal(size=n_classes)
    y = (a + random.gumbel(size=a.shape)).argmax(axis=1)
    return X, y


def test_two_classes_equal_statsmodels():
    ours = LogisticRegression().fit(CANCER_X, CANCER_Y)
    theirs = sm.Logit(CANCER_Y, sm.add_constant(CANCER_X)).fit(disp=0, tol=1e-13)
    np.testing.assert_allclose(parameters(ours)[0], theirs.params, rtol=1e-8)
    np.testing.assert_allclose(ours.coef_covariance_, theirs.cov_params(), rtol=1e-8)
    assert ours.log_likelihood_ == pytest.approx(theirs.llf, rel=1e-12)
    np.testing.assert_allclose(ours.predict_proba(CANCER_X)[:, 1], theirs.predict(), rtol=1e-8)
    assert ours.converged_
    assert ours.n_parameters_ == 5


def test_many_classes_equal_statsmodels():
    ours = LogisticRegression().fit(IRIS_X, IRIS_Y)
    theirs = sm.MNLogit(IRIS_Y, sm.add_constant(IRIS_X)).fit(disp=0, tol=1e-13)
    np.testing.assert_allclose(parameters(ours).T, theirs.params, rtol=1e-8)
    np.testing.assert_allclose(ours.coef_covariance_, theirs.cov_params(), rtol=1e-8)
    assert ours.log_likelihood_ == pytest.approx(theirs.llf, rel=1e-12)
    np.testing.assert_allclose(ours.predict_proba(IRIS_X), theirs.predict(), rtol=1e-8)
    np.testing.assert_allclose(ours.coef_.sum(axis=0), 0.0, atol=1e-12)


def test_weights_equal_statsmodels_on_repeated_rows():
    weight = np.random.default_rng(1).integers(0, 4, len(CANCER_Y))
    ours = LogisticRegression().fit(CANCER_X, CANCER_Y, sample_weight=weight)
    X, y = np.repeat(CANCER_X, weight, axis=0), np.repeat(CANCER_Y, weight)
    theirs = sm.Logit(y, sm.add_constant(X)).fit(disp=0, tol=1e-13)
    np.testing.assert_allclose(parameters(ours)[0], theirs.params, rtol=1e-8)
    np.testing.assert_allclose(ours.coef_covariance_, theirs.cov_params(), rtol=1e-8)
    assert ours.log_likelihood_ == pytest.approx(theirs.llf, rel=1e-12)


def test_fifty_digits_agree():
    X, y = CANCER_X[:60, :2] / 10, CANCER_Y[:60]
    ours = LogisticRegression(prior=0.5, tol=1e-7).fit(X, y)
    with mpmath.workdps(50):
        rows = [[mpmath.mpf(1), *map(mpmath.mpf, row)] for row in X.tolist()]

        def gradient(*w):
            p = [1 / (1 + mpmath.exp(-mpmath.fdot(w, row))) for row in rows]
            return [
                mpmath.fsum((p[n] - int(y[n])) * rows[n][j] for n in range(60))
                + (mpmath.mpf("0.5") * w[j] if j else 0)
                for j in range(3)
            ]

        exact = mpmath.findroot(gradient, parameters(ours)[0].tolist())
        exact = np.array([float(value) for value in exact])
    np.testing.assert_allclose(parameters(ours)[0], exact, rtol=1e-12)


@pytest.mark.parametrize(("X", "y"), [(CANCER_X, CANCER_Y), (IRIS_X, IRIS_Y), (WINE_X, WINE_Y)])
def test_a_precision_is_the_inverse_of_scikit_learns_c(X, y):
    ours = LogisticRegression(prior=0.25).fit(X, y)
    theirs = Rival(C=4.0, tol=1e-10, max_iter=100_000, solver="newton-cholesky").fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_gaussian_prior_is_added_to_the_likelihood(n_classes):
    X, y = simulated(80, 2, n_classes, seed=4)
    A = np.array([[2.0, 0.5], [0.5, 1.0]])
    mean = np.array([1.0, -0.5])
    ours = LogisticRegression(prior=GaussianPrior(precision=A, mean=mean)).fit(X, y)

    def energy(flat):
        theta = flat.reshape(-1, 3)
        a = X @ theta[:, 1:].T + theta[:, 0]
        a = np.column_stack([np.zeros(len(a)), a]) if n_classes == 2 else a
        away = theta[:, 1:] - mean
        likelihood = (np.logaddexp.reduce(a, axis=1) - a[np.arange(len(y)), y]).sum()
        return likelihood + 0.5 * np.einsum("ki,ij,kj->", away, A, away)

    size = 3 if n_classes == 2 else 9
    best = minimize(energy, np.zeros(size), tol=1e-12, options={"gtol": 1e-9}).x.reshape(-1, 3)
    best = best if n_classes == 2 else best[1:] - best[:1]
    np.testing.assert_allclose(parameters(ours), best, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_soft_labels_are_rows_of_each_class_with_their_shares_as_weights(n_classes):
    X, y = simulated(150, 3, n_classes, seed=2)
    random = np.random.default_rng(0)
    soft = 0.7 * np.eye(n_classes)[y] + 0.3 * random.dirichlet(np.ones(n_classes), len(y))
    ours = LogisticRegression().fit(X, soft)
    apart = LogisticRegression().fit(
        np.repeat(X, n_classes, axis=0),
        np.tile(np.arange(n_classes), len(X)),
        sample_weight=soft.ravel(),
    )
    np.testing.assert_allclose(parameters(ours), parameters(apart), rtol=1e-8)


def test_grouped_counts_are_fractions_with_trials_as_weights():
    X, y = simulated(400, 1, 2, seed=3)
    X = np.round(X, 0)
    groups, place = np.unique(X[:, 0], return_inverse=True)
    trials = np.bincount(place)
    share = np.bincount(place, y) / trials
    grouped = LogisticRegression().fit(
        groups[:, None], np.column_stack([1 - share, share]), sample_weight=trials
    )
    single = LogisticRegression().fit(X, y)
    np.testing.assert_allclose(parameters(grouped), parameters(single), rtol=1e-9)
    np.testing.assert_allclose(grouped.coef_covariance_, single.coef_covariance_, rtol=1e-9)


def test_an_offset_is_a_column_whose_coefficient_is_one():
    X, y = simulated(300, 2, 2, seed=5)
    offset = np.random.default_rng(6).normal(size=300)
    ours = LogisticRegression().fit(X, y, offset=offset)
    theirs = sm.GLM(y, sm.add_constant(X), family=sm.families.Binomial(), offset=offset).fit(
        tol=1e-13
    )
    np.testing.assert_allclose(parameters(ours)[0], theirs.params, rtol=1e-8)
    np.testing.assert_allclose(
        ours.predict_proba(X, offset=offset)[:, 1], theirs.fittedvalues, rtol=1e-8
    )


@pytest.mark.parametrize("offset", [np.ones(5), np.ones((300, 2))])
def test_an_offset_of_the_wrong_shape_is_named(offset):
    X, y = simulated(300, 2, 2)
    with pytest.raises(ShapeError, match="offset has shape"):
        LogisticRegression().fit(X, y, offset=offset)


def test_without_intercept_equals_statsmodels():
    ours = LogisticRegression(fit_intercept=False).fit(CANCER_X, CANCER_Y)
    theirs = sm.Logit(CANCER_Y, CANCER_X).fit(disp=0, tol=1e-13)
    np.testing.assert_allclose(ours.coef_[0], theirs.params, rtol=1e-8)
    np.testing.assert_allclose(ours.coef_covariance_, theirs.cov_params(), rtol=1e-8)
    assert ours.intercept_[0] == 0.0


@pytest.mark.parametrize(("n", "d", "n_classes"), [(40_000, 6, 2), (40_000, 60, 2), (40_000, 4, 5)])
def test_a_start_from_a_sample_ends_at_the_same_optimum(n, d, n_classes):
    X, y = simulated(n, d, n_classes)
    ours = LogisticRegression(tol=1e-6).fit(X, y)
    assert ours.solution_.trace[0].row_fraction < 0.2
    residual = ours.predict_proba(X) - np.eye(n_classes)[y]
    score = (np.column_stack([np.ones(n), X]).T @ residual)[:, 1:].T.ravel()
    assert score @ ours.coef_covariance_ @ score < 1e-5**2  # squared standard errors


def test_dependent_columns_share_the_coefficient_of_smallest_norm():
    y = (IRIS_Y == 1).astype(int)
    X = np.column_stack([IRIS_X, IRIS_X[:, 0] + IRIS_X[:, 1], np.ones(150)])
    with pytest.warns(RankDeficiencyWarning, match="Columns 4, 5"):
        ours = LogisticRegression().fit(X, y)
    plain = LogisticRegression().fit(IRIS_X, y)
    np.testing.assert_allclose(ours.predict_proba(X), plain.predict_proba(IRIS_X), rtol=1e-9)
    # Adding a multiple of (1, 1, 0, 0, -1) changes nothing, so the answer is at right angles to it.
    assert ours.coef_[0] @ [1, 1, 0, 0, -1, 0] == pytest.approx(0.0, abs=1e-9)
    assert ours.coef_[0, 5] == 0.0
    assert ours.n_parameters_ == 5


@pytest.mark.parametrize("scale", [1e-150, 1e-8, 1e150])
def test_the_unit_of_a_column_changes_no_probability(scale):
    X, y = simulated(120, 3, 2)
    plain = LogisticRegression().fit(X, y).predict_proba(X)
    X = X * [scale, 1.0, 1.0]
    np.testing.assert_allclose(LogisticRegression().fit(X, y).predict_proba(X), plain, rtol=1e-8)


def test_a_column_far_from_zero_loses_no_digits():
    X, y = simulated(120, 3, 2)
    plain = LogisticRegression().fit(X, y).predict_proba(X)
    X = X + np.array([1e8, 0.0, -1e7])
    np.testing.assert_allclose(LogisticRegression().fit(X, y).predict_proba(X), plain, rtol=1e-6)


def test_factors_equal_their_indicators():
    random = np.random.default_rng(3)
    levels = np.array(["low", "mid", "top"])[random.integers(0, 3, 300)]
    x = random.normal(size=300)
    y = (x + (levels == "top") + random.logistic(size=300) > 0).astype(int)
    frame = pd.DataFrame({"level": pd.Categorical(levels), "x": x})
    ours = LogisticRegression().fit(frame, y)
    plain = LogisticRegression().fit(np.column_stack([levels == "mid", levels == "top", x]), y)
    np.testing.assert_allclose(ours.coef_, plain.coef_, rtol=1e-9)
    np.testing.assert_allclose(ours.coef_covariance_, plain.coef_covariance_, rtol=1e-8)


def test_an_unseen_level_is_an_error_or_the_reference():
    frame = pd.DataFrame({"f": pd.Categorical(list("aabbab") * 9), "x": np.arange(54.0) % 7})
    y = (np.arange(54) * 7 % 5 > 2).astype(int)
    new = pd.DataFrame({"f": ["z", "a"], "x": [1.0, 1.0]})
    with pytest.raises(LevelError, match="'f'"):
        LogisticRegression(prior=1.0).fit(frame, y).predict_proba(new)
    found = (
        LogisticRegression(prior=1.0, handle_unknown="reference").fit(frame, y).predict_proba(new)
    )
    np.testing.assert_array_equal(found[0], found[1])


def test_activations_beyond_exp_have_exact_logarithms():
    model = LogisticRegression(prior=1e-3).fit([[-1.0], [-0.5], [0.5], [1.0]], [0, 1, 0, 1])
    x = np.array([[1e5]])
    a = model.decision_function(x)[0]
    assert abs(a) > 700
    log_p = model.predict_log_proba(x)[0]
    np.testing.assert_allclose(sorted(log_p), [-abs(a), 0.0], rtol=1e-12)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"prior": "flat"}, "prior='flat'"),
        ({"prior": -1}, "not a precision"),
        ({"tol": 0.0}, "tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"handle_unknown": "ignore"}, "handle_unknown"),
    ],
)
def test_a_setting_that_cannot_be_honoured_is_named(settings, words):
    with pytest.raises(ParameterError, match=words):
        LogisticRegression(**settings).fit(IRIS_X, IRIS_Y)


def test_a_formula_gives_the_numbers_of_statsmodels():
    random = np.random.default_rng(9)
    frame = pd.DataFrame(
        {
            "sick": random.integers(0, 2, 200),
            "age": random.normal(50, 10, 200),
            "region": random.choice(["north", "south", "west"], 200),
        }
    )
    text = "sick ~ age + C(region) + age:C(region)"
    ours = LogisticRegression().fit(text, frame)
    theirs = sm.Logit.from_formula(text, frame).fit(disp=0, tol=1e-13)
    np.testing.assert_allclose(ours.predict_proba(frame)[:, 1], theirs.predict(frame), rtol=1e-8)
    assert ours.log_likelihood_ == pytest.approx(theirs.llf, rel=1e-12)


def test_a_formula_can_leave_out_the_intercept():
    frame = pd.DataFrame({"y": CANCER_Y, "a": CANCER_X[:, 0], "b": CANCER_X[:, 2]})
    ours = LogisticRegression().fit("y ~ a + b - 1", frame)
    theirs = sm.Logit(CANCER_Y, frame[["a", "b"]]).fit(disp=0, tol=1e-13)
    np.testing.assert_allclose(ours.coef_[0], theirs.params, rtol=1e-8)


def test_a_bad_entry_of_a_row_that_was_sampled_is_named_by_its_own_number():
    X, y = simulated(40_000, 2, 2)
    X[5_000:5_016, 1] = np.nan
    with pytest.raises(MissingValueError, match=r"row 5000, column 1"):
        LogisticRegression().fit(X, y)


SOLVERS = ["newton", "gradient", "coordinate", "sequential"]


@pytest.mark.parametrize("size", [1e-6, 1e-12, 1e-90, 1e6, 1e90])
@pytest.mark.parametrize("solver", SOLVERS)
def test_without_a_prior_the_size_of_the_weights_changes_no_coefficient(solver, size):
    X, y = simulated(300, 3, 2)
    weight = 1.0 + np.arange(300) % 3
    plain = LogisticRegression(solver=solver).fit(X, y, weight)
    sized = LogisticRegression(solver=solver).fit(X, y, weight * size)
    assert sized.converged_
    # SciPy's L-BFGS-B stops where the objective is level to its last digits.
    within = 1e-6 if solver == "gradient" else 1e-9
    np.testing.assert_allclose(sized.coef_, plain.coef_, rtol=within)
