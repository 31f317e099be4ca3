"""Logistic and softmax regression: the numbers of other libraries, and of the mathematics."""

import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.optimize import minimize
from scipy.sparse import csr_array
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.linear_model import LogisticRegression as Rival

from posteriori import GaussianPrior, LogisticRegression
from posteriori.errors import (
    ColumnNameError,
    InferenceError,
    LabelError,
    LevelError,
    MissingValueError,
    ParameterError,
    RankDeficiencyWarning,
    SeparationWarning,
    ShapeError,
)

CANCER_X, CANCER_Y = load_breast_cancer(return_X_y=True)
CANCER_X = CANCER_X[:, [0, 1, 4, 5]]
IRIS_X, IRIS_Y = load_iris(return_X_y=True)
IRIS_X = IRIS_X + np.random.default_rng(0).normal(size=IRIS_X.shape)
WINE_X, WINE_Y = load_wine(return_X_y=True)


def numbers(model):
    """Intercepts and slopes, as contrasts with the first class, in the order of the covariance."""
    theta = np.column_stack([model.intercept_, model.coef_])
    return (theta if len(theta) == 1 else theta[1:] - theta[:1]).ravel()


def apart(model, other):
    """How many standard errors of `other` each coefficient of `model` is off."""
    return abs(numbers(model) - numbers(other)) / np.sqrt(np.diagonal(other.coef_covariance_))


def draw(n, d=4, n_classes=2, seed=0, unit=1.0):
    """Rows in columns of different size, and labels from the model."""
    random = np.random.default_rng(seed)
    Z = random.normal(size=(n, d))
    a = Z @ random.normal(size=(d, n_classes)) / np.sqrt(d) + 0.3 * random.normal(size=n_classes)
    y = (a + random.gumbel(size=(n, n_classes))).argmax(axis=1)
    return unit ** np.arange(d) * (Z + 3 * random.normal(size=d)), y


@pytest.mark.parametrize(("X", "y"), [(CANCER_X, CANCER_Y), (IRIS_X, IRIS_Y), (WINE_X, WINE_Y)])
def test_a_precision_is_the_inverse_of_scikit_learns_c(X, y):
    ours = LogisticRegression(prior=0.25).fit(X, y)
    theirs = Rival(C=4.0, tol=1e-10, max_iter=100_000, solver="newton-cholesky").fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_gaussian_prior_is_added_to_the_likelihood(n_classes):
    X, y = draw(80, 2, n_classes, seed=4)
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
    np.testing.assert_allclose(numbers(ours), best.ravel(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("offset", [np.ones(5), np.ones((300, 2))])
def test_an_offset_of_the_wrong_shape_is_named(offset):
    X, y = draw(300, 2)
    with pytest.raises(ShapeError, match="offset has shape"):
        LogisticRegression().fit(X, y, offset=offset)


@pytest.mark.parametrize(("n", "d", "n_classes"), [(40_000, 6, 2), (40_000, 60, 2), (40_000, 4, 5)])
def test_a_start_from_a_sample_ends_at_the_same_optimum(n, d, n_classes):
    X, y = draw(n, d, n_classes)
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
    # A multiple of (1, 1, 0, 0, -1) changes nothing: the smallest vector is orthogonal to it.
    assert ours.coef_[0] @ [1, 1, 0, 0, -1, 0] == pytest.approx(0.0, abs=1e-9)
    assert ours.coef_[0, 5] == 0.0
    assert ours.n_parameters_ == 5


def test_activations_beyond_exp_have_exact_logarithms():
    model = LogisticRegression(prior=1e-3).fit([[-1.0], [-0.5], [0.5], [1.0]], [0, 1, 0, 1])
    x = np.array([[1e5]])
    a = model.decision_function(x)[0]
    assert abs(a) > 700
    log_p = model.predict_log_proba(x)[0]
    np.testing.assert_allclose(sorted(log_p), [-abs(a), 0.0], rtol=1e-12)


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
    np.testing.assert_allclose(ours.coef_covariance_, theirs.cov_params(), rtol=1e-8)
    assert ours.intercept_[0] == 0.0


def test_a_bad_entry_of_a_row_that_was_sampled_is_named_by_its_own_number():
    X, y = draw(40_000, 2)
    X[5_000:5_016, 1] = np.nan
    with pytest.raises(MissingValueError, match=r"row 5000, column 1"):
        LogisticRegression().fit(X, y)


SOLVERS = ["newton", "gradient", "coordinate", "sequential"]


@pytest.mark.parametrize("size", [1e-6, 1e6])
@pytest.mark.parametrize("solver", SOLVERS)
def test_without_a_prior_the_size_of_the_weights_changes_no_coefficient(solver, size):
    X, y = draw(300, 3)
    weight = 1.0 + np.arange(300) % 3
    plain = LogisticRegression(solver=solver).fit(X, y, weight)
    sized = LogisticRegression(solver=solver).fit(X, y, weight * size)
    assert sized.converged_
    # SciPy's L-BFGS-B stops where the objective is level to its last digits.
    within = 1e-6 if solver == "gradient" else 1e-9
    np.testing.assert_allclose(sized.coef_, plain.coef_, rtol=within)


@pytest.mark.parametrize("size", [1e-100, 1e-12])
def test_the_size_of_the_weights_changes_no_fit_that_starts_on_a_subsample(size):
    random = np.random.default_rng(0)
    X = random.normal(size=(100_000, 5))
    y = X[:, 0] + random.logistic(size=len(X)) > 0
    plain, sized = (LogisticRegression().fit(X, y, np.full(len(X), w)) for w in (1.0, size))
    np.testing.assert_allclose(sized.coef_, plain.coef_, rtol=1e-10)


@pytest.mark.parametrize("solver", ["newton", "newton-cg"])
def test_sparse_columns_far_from_zero_lose_no_digits(solver):
    random = np.random.default_rng(0)
    X = random.normal(size=(500, 3)) * [1.0, 1.0, 0.0] + [0.0, 1e8, 0.0]
    X[::7, 2] = random.normal(size=72)
    y = X[:, 0] + X[:, 1] - 1e8 + random.logistic(size=500) > 0
    model = LogisticRegression(prior=1.0, solver=solver)
    expected = model.fit(X, y).decision_function(X)
    found = model.fit(csr_array(X), y).decision_function(csr_array(X))
    np.testing.assert_allclose(found, expected, atol=1e-10)


# Batches.


def in_batches(X, y, size, order=None, offset=None, **settings):
    """A model after batches of `size` rows."""
    model = LogisticRegression(**settings)
    order = np.arange(len(y)) if order is None else order
    for low in range(0, len(y), size):
        part = order[low : low + size]
        given = {} if offset is None else {"offset": offset[part]}
        model.partial_fit(X[part], y[part], classes=np.unique(y), **given)
    return model


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("size", [50, 1000])
def test_many_batches_end_a_small_fraction_of_a_standard_error_from_the_fit(n_classes, size):
    X, y = draw(5000, n_classes=n_classes, unit=10.0)
    whole = LogisticRegression().fit(X, y)
    model = in_batches(X, y, size)
    assert apart(model, whole).max() < 0.05
    ratio = np.diagonal(model.coef_covariance_) / np.diagonal(whole.coef_covariance_)
    np.testing.assert_allclose(ratio, 1.0, atol=0.02)
    np.testing.assert_allclose(model.predict_proba(X), whole.predict_proba(X), atol=0.002)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("prior", [None, 2.0, GaussianPrior(precision=5.0, mean=0.3)])
def test_one_batch_of_all_rows_is_the_fit(n_classes, prior):
    X, y = draw(5000, n_classes=n_classes)
    whole = LogisticRegression(prior=prior, tol=1e-6).fit(X, y)
    model = LogisticRegression(prior=prior, tol=1e-6).partial_fit(X, y)
    assert apart(model, whole).max() < 1e-7
    np.testing.assert_allclose(model.coef_covariance_, whole.coef_covariance_, rtol=1e-6)


# The first of batches of one row has one class alone, and says so.
@pytest.mark.filterwarnings("ignore:No row is of one of the classes")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("size", [1, 60])
def test_as_long_as_rows_are_few_each_batch_gives_the_fit_to_all_so_far(size, n_classes):
    X, y = draw(99, n_classes=n_classes, unit=10.0)  # 20 rows for each of 5 parameters are kept
    shape = (99,) if n_classes == 2 else (99, n_classes)
    offset = np.random.default_rng(1).normal(size=shape)
    whole = LogisticRegression(prior=1e-6).fit(X, y, offset=offset)
    model = in_batches(X, y, size, offset=offset, prior=1e-6)
    assert apart(model, whole).max() < 1e-7
    assert model.log_likelihood_ == pytest.approx(whole.log_likelihood_, rel=1e-10)


def test_rows_sorted_by_class_give_warnings_about_their_order():
    X, y = draw(4000)
    order = np.argsort(y, kind="stable")
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        in_batches(X, y, 200, order=order)
    messages = [str(each.message) for each in given]
    assert any("do not determine all coefficients" in message for message in messages)
    assert any("differs from the rows before" in message for message in messages)


def test_the_prior_counts_once():
    X, y = draw(3000)
    model = in_batches(X, y, 100, prior=100.0)
    whole = LogisticRegression(prior=100.0).fit(X, y)
    free = LogisticRegression().fit(X, y)
    assert apart(model, whole).max() < 0.1
    assert apart(free, whole).max() > 1.0


def test_factors_keep_the_levels_of_the_first_batch():
    random = np.random.default_rng(0)
    price, shop = random.normal(size=3000), random.choice(["a", "b", "c"], 3000)
    frame = pd.DataFrame({"shop": shop, "price": price})
    y = random.random(3000) < 1 / (1 + np.exp(-price - (shop == "b")))
    model = LogisticRegression()
    for low in range(0, 3000, 300):
        model.partial_fit(frame[low : low + 300], y[low : low + 300])
    assert apart(model, LogisticRegression().fit(frame, y)).max() < 0.1
    with pytest.raises(LevelError, match="shop"):
        model.partial_fit(frame[:10].assign(shop="z"), y[:10])
    with pytest.raises(ColumnNameError, match="'price'"):
        model.partial_fit(frame.rename(columns={"price": "cost"}), y)


def test_what_needs_the_rows_is_an_error_after_partial_fit():
    X, y = draw(2000)
    model = in_batches(X, y, 500)
    for ask in (
        lambda: model.log_likelihood_,
        lambda: model.log_evidence_,
        lambda: model.separation_,
        lambda: model.tidy(errors="robust"),
        lambda: model.tidy(intervals="profile"),
    ):
        with pytest.raises(InferenceError, match="partial_fit does not keep the rows"):
            ask()


def test_a_batch_that_fails_leaves_the_model_as_it_was():
    X, y = draw(2000)
    for first in (100, 1500):
        model = in_batches(X[:first], y[:first], first)
        before = numbers(model)
        spoilt = X[:20].copy()
        spoilt[3, 2] = np.nan
        with pytest.raises(MissingValueError, match=r"row 3, column 2"):
            model.partial_fit(spoilt, y[:20])
        with pytest.raises(LabelError, match="7"):
            model.partial_fit(X[:20], np.full(20, 7))
        with pytest.raises(ValueError, match=r"4 features|columns"):
            model.partial_fit(X[:20, :3], y[:20])
        np.testing.assert_array_equal(numbers(model), before)


def test_the_first_batch_names_the_classes():
    X, y = draw(500, n_classes=3)
    with pytest.raises(LabelError, match="two classes"):
        LogisticRegression().partial_fit(X[y == 0], y[y == 0])
    model = LogisticRegression(prior=GaussianPrior(intercept_precision=1.0))
    model.partial_fit(X[y < 2], y[y < 2], classes=[0, 1, 2])
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.predict_proba(X[:3]).shape == (3, 3)
    with pytest.raises(ParameterError, match=r"\[0, 1\] are not those of the first batch"):
        model.partial_fit(X[y < 2], y[y < 2], classes=[0, 1])


def test_settings_that_need_all_rows_at_once_are_errors():
    X, y = draw(100)
    for settings, words in [
        ({"prior": "jeffreys"}, "prior='jeffreys' needs all rows at once"),
        ({"label_noise": (0.1, 0.2)}, "Use label_noise=0.0, or fit."),
        ({"label_noise": "estimate"}, "Use label_noise=0.0, or fit."),
    ]:
        with pytest.raises(AttributeError, match="has no attribute 'partial_fit'") as caught:
            LogisticRegression(**settings).partial_fit(X, y)
        assert isinstance(caught.value.__cause__, ParameterError)
        assert words in str(caught.value.__cause__)
    assert hasattr(LogisticRegression(label_noise=(0.0, 0.0)), "partial_fit")
    with pytest.raises(ParameterError, match="5001 parameters, which are too many"):
        LogisticRegression().partial_fit(np.ones((4, 5000)), [0, 1, 0, 1])


def test_classes_that_can_still_be_separated_are_named_and_do_no_harm_later():
    random = np.random.default_rng(3)
    X = random.normal(size=(3000, 2))
    y = (random.random(3000) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(int)
    first = np.flatnonzero((y == 1) == (X[:, 0] > 0))[:12]
    rest = np.setdiff1d(np.arange(3000), first)
    model = LogisticRegression()
    with pytest.warns(SeparationWarning):
        model.partial_fit(X[first], y[first])
    for part in np.array_split(rest, 10):
        model.partial_fit(X[part], y[part])
    order = np.concatenate([first, rest])
    assert apart(model, LogisticRegression().fit(X[order], y[order])).max() < 0.1
