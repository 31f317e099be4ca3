"""`partial_fit` of logistic regression: batch by batch, and nearly as good as all rows at once."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from posteriori import LogisticRegression
from posteriori.errors import (
    ColumnNameError,
    ConvergenceWarning,
    DataError,
    InferenceError,
    LabelError,
    LevelError,
    MissingValueError,
    ParameterError,
    SeparationWarning,
    ShapeError,
)
from posteriori.posterior.priors import GaussianPrior
from posteriori.rows.in_memory import read_rows


def draw(n, d=4, n_classes=2, seed=0):
    """Rows in units of their own, and labels from the model."""
    random = np.random.default_rng(seed)
    Z = random.normal(size=(n, d))
    W = random.normal(size=(d, n_classes)) / np.sqrt(d)
    a = Z @ W + 0.3 * random.normal(size=n_classes)
    y = (a + random.gumbel(size=(n, n_classes))).argmax(axis=1)
    return 10.0 ** np.arange(d) * (Z + 3 * random.normal(size=d)), y


def in_batches(X, y, size, model=None, order=None, **settings):
    """The model after batches of `size` rows."""
    model = LogisticRegression(**settings) if model is None else model
    order = np.arange(len(y)) if order is None else order
    for low in range(0, len(y), size):
        part = order[low : low + size]
        model.partial_fit(X[part], y[part], classes=np.unique(y))
    return model


def numbers(model):
    """Coefficients in the order of `coef_covariance_`."""
    W = np.column_stack([model.intercept_, model.coef_])
    return (W if len(W) == 1 else W[1:] - W[0]).ravel()


def apart(model, other):
    """How many standard errors of `other` each coefficient of `model` is off."""
    return abs(numbers(model) - numbers(other)) / np.sqrt(np.diagonal(other.coef_covariance_))


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("size", [50, 300, 2000])
def test_many_batches_end_a_small_fraction_of_a_standard_error_from_the_fit(n_classes, size):
    X, y = draw(8000, n_classes=n_classes)
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
    X = X / 10.0 ** np.arange(4)
    whole = LogisticRegression(prior=prior, tol=1e-6).fit(X, y)
    model = LogisticRegression(prior=prior, tol=1e-6).partial_fit(X, y)
    assert apart(model, whole).max() < 1e-7
    np.testing.assert_allclose(model.coef_covariance_, whole.coef_covariance_, rtol=1e-6)


# The first of batches of one row has one class alone, and says so.
@pytest.mark.filterwarnings("ignore:No row is of one of the classes")
@pytest.mark.parametrize("size", [1, 7, 60])
def test_as_long_as_rows_are_few_each_batch_gives_the_fit_to_all_so_far(size):
    X, y = draw(99)  # 20 rows for each of 5 parameters are kept
    seen = LogisticRegression(prior=1e-6).fit(X, y)
    model = in_batches(X, y, size, prior=1e-6)
    assert apart(model, seen).max() < 1e-7
    assert model.log_likelihood_ == pytest.approx(seen.log_likelihood_, rel=1e-10)


def test_the_order_of_batches_hardly_matters():
    X, y = draw(6000)
    whole = LogisticRegression().fit(X, y)
    there = in_batches(X, y, 200)
    back = in_batches(X, y, 200, order=np.arange(6000)[::-1])
    assert (
        abs(numbers(there) - numbers(back)) / np.sqrt(np.diagonal(whole.coef_covariance_))
    ).max() < 0.1


def test_a_large_batch_after_a_small_one_counts_both():
    X, y = draw(5000)
    model = LogisticRegression().partial_fit(X[:100], y[:100]).partial_fit(X[100:], y[100:])
    assert apart(model, LogisticRegression().fit(X, y)).max() < 1e-2


def test_rows_sorted_by_class_are_said_to_come_in_a_bad_order():
    X, y = draw(4000)
    order = np.argsort(y, kind="stable")
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        in_batches(X, y, 200, order=order)
    messages = [str(each.message) for each in given]
    assert any("do not determine all coefficients" in message for message in messages)
    assert any("unlike the rows before" in message for message in messages)


@pytest.mark.parametrize("first", [150, 1500])
@pytest.mark.parametrize("size", [pytest.param(1, marks=pytest.mark.slow), 20, 400])
def test_rows_in_random_order_bring_no_warning(first, size):
    X, y = draw(first + 400, seed=5)
    model = LogisticRegression().partial_fit(X[:first], y[:first])
    in_batches(X[first:], y[first:], size, model=model)
    assert model.converged_


@pytest.mark.parametrize("size", [100, 3000])
def test_a_weight_of_two_is_the_row_twice(size):
    X, y = draw(6000)
    weight = 1 + np.arange(6000) % 2
    weighted, repeated = LogisticRegression(), LogisticRegression()
    for low in range(0, 6000, size):
        part = np.arange(low, low + size)
        weighted.partial_fit(X[part], y[part], sample_weight=weight[part])
        repeated.partial_fit(X[np.repeat(part, weight[part])], y[np.repeat(part, weight[part])])
    whole = LogisticRegression().fit(X, y, sample_weight=weight)
    assert apart(weighted, whole).max() < 0.1
    assert apart(repeated, whole).max() < 0.1


def test_a_weight_of_zero_is_no_row():
    X, y = draw(2000)
    weight = (np.arange(2000) % 3 > 0).astype(float)
    X[weight == 0] *= 1e6
    kept = weight > 0
    model, other = LogisticRegression(), LogisticRegression()
    model.partial_fit(X[:1200], y[:1200], sample_weight=weight[:1200])
    model.partial_fit(X[1200:], y[1200:], sample_weight=weight[1200:])
    other.partial_fit(X[:1200][kept[:1200]], y[:1200][kept[:1200]])
    other.partial_fit(X[1200:][kept[1200:]], y[1200:][kept[1200:]])
    whole = LogisticRegression().fit(X[kept], y[kept])
    assert apart(model, whole).max() < 0.05
    assert apart(other, whole).max() < 0.05


def test_the_prior_counts_once():
    X, y = draw(3000)
    X = X / 10.0 ** np.arange(4)
    model = in_batches(X, y, 100, prior=100.0)
    whole = LogisticRegression(prior=100.0).fit(X, y)
    free = LogisticRegression().fit(X, y)
    assert apart(model, whole).max() < 0.1
    assert apart(free, whole).max() > 1.0


def test_a_fit_counts_as_the_first_batch():
    X, y = draw(4000)
    model = LogisticRegression().fit(X[:2000], y[:2000])
    model.partial_fit(X[2000:], y[2000:])
    assert apart(model, LogisticRegression().fit(X, y)).max() < 0.05


def test_a_fit_forgets_the_batches_before():
    X, y = draw(3000)
    model = in_batches(X[:2000], y[:2000], 500).fit(X[2000:], y[2000:])
    fresh = LogisticRegression().fit(X[2000:], y[2000:])
    np.testing.assert_array_equal(model.coef_, fresh.coef_)
    assert model.log_likelihood_ == fresh.log_likelihood_
    model.partial_fit(X[:1000], y[:1000])
    fresh.partial_fit(X[:1000], y[:1000])
    np.testing.assert_array_equal(model.coef_, fresh.coef_)


def test_soft_labels_and_labels_may_come_in_turns():
    X, y = draw(2400)
    soft = np.eye(2)[y]
    model = LogisticRegression()
    for k, low in enumerate(range(0, 2400, 200)):
        part = slice(low, low + 200)
        model.partial_fit(X[part], soft[part] if k % 2 else y[part], classes=[0, 1])
    np.testing.assert_allclose(numbers(model), numbers(in_batches(X, y, 200)), rtol=1e-8)


@pytest.mark.parametrize("kind", ["csr", "frame", "list", "turns"])
def test_batches_of_any_kind_give_the_same(kind):
    X, y = draw(1500)
    names = ["a", "b", "c", "d"]

    def made(part, k):
        if kind == "csr" or (kind == "turns" and k % 2):
            return sparse.csr_array(part)
        if kind == "frame":
            return pd.DataFrame(part, columns=names)
        return part.tolist() if kind == "list" else part

    model = LogisticRegression()
    for k, low in enumerate(range(0, 1500, 100)):
        model.partial_fit(made(X[low : low + 100], k), y[low : low + 100])
    np.testing.assert_allclose(numbers(model), numbers(in_batches(X, y, 100)), rtol=1e-6)


def test_rows_of_their_own_can_be_batches():
    X, y = draw(1500)
    model = LogisticRegression()
    for part in np.array_split(np.arange(1500), 5):
        model.partial_fit(read_rows(X[part], y[part]))
    np.testing.assert_allclose(numbers(model), numbers(in_batches(X, y, 300)), rtol=1e-10)


def test_factors_keep_the_levels_of_the_first_batch():
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "shop": random.choice(["a", "b", "c"], 3000),
            "price": random.normal(size=3000),
        }
    )
    y = random.random(3000) < 1 / (1 + np.exp(-frame["price"] - (frame["shop"] == "b")))
    model = LogisticRegression()
    for low in range(0, 3000, 300):
        model.partial_fit(frame[low : low + 300], y[low : low + 300])
    assert apart(model, LogisticRegression().fit(frame, y)).max() < 0.1
    strange = frame[:10].assign(shop="z")
    with pytest.raises(LevelError, match="shop"):
        model.partial_fit(strange, y[:10])


def test_the_formula_of_a_fit_holds_for_batches():
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"x": random.normal(size=2000), "z": random.normal(size=2000)})
    frame["y"] = random.random(2000) < 1 / (1 + np.exp(-frame["x"] * frame["z"]))
    model = LogisticRegression().fit("y ~ x * z", frame[:1000])
    model.partial_fit(frame[1000:], frame["y"][1000:])
    assert apart(model, LogisticRegression().fit("y ~ x * z", frame)).max() < 0.05
    with pytest.raises(ParameterError, match="formula"):
        model.partial_fit("y ~ x", frame)


def test_without_an_intercept_there_is_none():
    X, y = draw(2000)
    model = in_batches(X, y, 200, fit_intercept=False)
    whole = LogisticRegression(fit_intercept=False).fit(X, y)
    assert model.intercept_.tolist() == [0.0]
    errors = np.sqrt(np.diagonal(whole.coef_covariance_))
    assert (abs(model.coef_ - whole.coef_)[0] / errors).max() < 0.1


def test_columns_far_from_zero_lose_no_digits():
    X, y = draw(4000)
    moved = X + 1e7 * X.std(axis=0)
    here, there = in_batches(X, y, 400), in_batches(moved, y, 400)
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-6)
    np.testing.assert_allclose(there.predict_proba(moved), here.predict_proba(X), atol=1e-7)


def test_predictions_and_intervals_are_there_after_each_batch():
    X, y = draw(1500)
    model = LogisticRegression()
    for low in range(0, 1500, 300):
        model.partial_fit(X[low : low + 300], y[low : low + 300])
        proba = model.predict_proba(X[:5])
        np.testing.assert_allclose(proba.sum(axis=1), 1.0)
        ends = model.predict_interval(X[:5])
        assert ((ends[:, 0] < proba[:, 1]) & (proba[:, 1] < ends[:, 1])).all()
        assert model.tidy().shape == (5, 7)
        assert model.n_parameters_ == 5
        assert model.converged_


def test_what_needs_the_rows_says_that_they_are_gone():
    X, y = draw(2000)
    model = in_batches(X, y, 500)
    for ask in (
        lambda: model.log_likelihood_,
        lambda: model.bic_,
        lambda: model.log_evidence_,
        lambda: model.separation_,
        lambda: model.tidy(errors="robust"),
        lambda: model.tidy(intervals="profile"),
    ):
        with pytest.raises(InferenceError, match="partial_fit does not keep the rows"):
            ask()


def test_a_copy_by_pickle_goes_on_as_the_original():
    X, y = draw(2400)
    for first in (200, 1200):
        model = in_batches(X[:first], y[:first], 200)
        other = pickle.loads(pickle.dumps(model))
        for each in (model, other):
            in_batches(X[first:], y[first:], 400, model=each)
        np.testing.assert_array_equal(numbers(model), numbers(other))
        np.testing.assert_array_equal(model.coef_covariance_, other.coef_covariance_)


def test_a_clone_has_seen_nothing():
    X, y = draw(1000)
    assert not hasattr(clone(in_batches(X, y, 500)), "classes_")


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


def test_columns_must_keep_their_names():
    X, y = draw(1000)
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = LogisticRegression().partial_fit(frame[:500], y[:500])
    again = LogisticRegression().partial_fit(frame[:500], y[:500])
    model.partial_fit(frame[500:], y[500:])
    again.partial_fit(frame[500:][list("dcba")], y[500:])
    np.testing.assert_array_equal(model.coef_, again.coef_)
    with pytest.raises(ColumnNameError, match="'e'"):
        model.partial_fit(frame.rename(columns={"d": "e"}), y)


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
    with pytest.raises(AttributeError, match="has no attribute 'partial_fit'") as caught:
        LogisticRegression(prior="jeffreys").partial_fit(X, y)
    assert isinstance(caught.value.__cause__, ParameterError)
    assert "prior='jeffreys' looks at all rows at once" in str(caught.value.__cause__)
    for noise in (0.1, (0.1, 0.2), np.array([0.1, 0.2]), "estimate"):
        model = LogisticRegression(label_noise=noise)
        assert not hasattr(model, "partial_fit")
        with pytest.raises(AttributeError) as caught:
            model.partial_fit(X, y)
        assert isinstance(caught.value.__cause__, ParameterError)
        assert "Use label_noise=0.0, or fit." in str(caught.value.__cause__)
    model = LogisticRegression(label_noise=(0.0, 0.0)).partial_fit(X, y)
    np.testing.assert_array_equal(model.coef_, LogisticRegression().partial_fit(X, y).coef_)
    with pytest.raises(ParameterError, match="5001 parameters, which are too many"):
        LogisticRegression().partial_fit(np.ones((4, 5000)), [0, 1, 0, 1])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_while_rows_are_few_offsets_give_the_fit_with_offsets(n_classes):
    X, y = draw(60, n_classes=n_classes)
    shape = (60,) if n_classes == 2 else (60, n_classes)
    offset = np.random.default_rng(1).normal(size=shape)
    model = LogisticRegression(prior=1.0)
    for part in (slice(0, 20), slice(20, 40), slice(40, 60)):
        model.partial_fit(X[part], y[part], classes=np.unique(y), offset=offset[part])
    whole = LogisticRegression(prior=1.0).fit(X, y, offset=offset)
    np.testing.assert_allclose(numbers(model), numbers(whole), rtol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("size", [70, 1000])
def test_an_offset_that_is_linear_in_the_columns_is_taken_off_the_coefficients(n_classes, size):
    X, y = draw(4000, n_classes=n_classes)
    X = X / 10.0 ** np.arange(4)
    w = np.random.default_rng(1).normal(size=(4, n_classes))
    shift = (w[:, 1] if n_classes == 2 else w - w.mean(axis=1, keepdims=True)) / 2
    plain, model = LogisticRegression(tol=1e-8), LogisticRegression(tol=1e-8)
    for low in range(0, 4000, size):
        part = slice(low, low + size)
        plain.partial_fit(X[part], y[part], classes=np.unique(y))
        model.partial_fit(X[part], y[part], classes=np.unique(y), offset=X[part] @ shift)
    np.testing.assert_allclose(model.coef_ + shift.T, plain.coef_, atol=1e-7)
    np.testing.assert_allclose(model.intercept_, plain.intercept_, atol=1e-7)


@pytest.mark.parametrize("size", [100, 1000])
@pytest.mark.parametrize("given", ["first", "second"])
def test_rows_without_an_offset_have_zeros(size, given):
    X, y = draw(4000)
    batch = (np.arange(4000) // size) % 2
    noise = np.random.default_rng(1).normal(size=4000)
    offset = np.where(batch == (given == "second"), noise, 0.0)
    model, explicit = LogisticRegression(), LogisticRegression()
    for low in range(0, 4000, size):
        part = slice(low, low + size)
        own = offset[part] if offset[part].any() else None
        model.partial_fit(X[part], y[part], classes=[0, 1], offset=own)
        explicit.partial_fit(X[part], y[part], classes=[0, 1], offset=offset[part])
    np.testing.assert_array_equal(numbers(model), numbers(explicit))
    assert apart(model, LogisticRegression().fit(X, y)).max() > 1.0


@pytest.mark.parametrize("given", ["first", "second"])
def test_kept_rows_with_and_without_an_offset_are_joined(given):
    X, y = draw(60)
    offset = np.where((np.arange(60) < 30) == (given == "first"), 1.5, 0.0)
    model = LogisticRegression(prior=1.0)
    for part in (slice(0, 30), slice(30, 60)):
        own = offset[part] if offset[part].any() else None
        model.partial_fit(X[part], y[part], classes=[0, 1], offset=own)
    whole = LogisticRegression(prior=1.0).fit(X, y, offset=offset)
    np.testing.assert_allclose(numbers(model), numbers(whole), rtol=1e-9)


def test_an_offset_of_the_wrong_shape_is_named_and_changes_nothing():
    X, y = draw(200)
    model = LogisticRegression().partial_fit(X, y)
    before = model.coef_
    with pytest.raises(ShapeError, match=r"offset has shape \(3,\)"):
        model.partial_fit(X, y, offset=np.zeros(3))
    np.testing.assert_array_equal(model.coef_, before)
    with pytest.raises(DataError, match="The offset of row 7 is not finite"):
        model.partial_fit(X, y, offset=np.where(np.arange(200) == 7, np.nan, 0.0))


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


def test_a_column_that_changes_only_later_is_learnt_later():
    random = np.random.default_rng(0)
    X = random.normal(size=(6000, 2))
    X[:2000, 1] = 0.0
    y = (random.random(6000) < 1 / (1 + np.exp(-X.sum(axis=1)))).astype(int)
    model = LogisticRegression()
    with pytest.warns() as given:
        model.partial_fit(X[:2000], y[:2000])
    assert any(isinstance(each.message, ConvergenceWarning) for each in given)
    assert not model.converged_
    with pytest.raises(InferenceError):
        _ = model.coef_covariance_
    with pytest.warns(ConvergenceWarning, match="unlike the rows before"):
        model.partial_fit(X[2000:2500], y[2000:2500])
    for low in range(2500, 6000, 500):
        model.partial_fit(X[low : low + 500], y[low : low + 500])
    assert model.converged_
    assert apart(model, LogisticRegression().fit(X, y)).max() < 0.2


def test_batches_with_weights_of_zero_are_learnt_from_to_the_end():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(5000, 3)), random.integers(0, 3, 5000)
    weight = random.integers(0, 3, 5000) * 1.0
    model = LogisticRegression(prior=1.0)
    for low in range(0, 5000, 100):
        part = slice(low, low + 100)
        model.partial_fit(X[part], y[part], [0, 1, 2], weight[part])
    whole = LogisticRegression(prior=1.0).fit(X, y, weight)
    errors = np.sqrt(np.diagonal(whole.coef_covariance_)).mean()
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=0.1 * errors)
