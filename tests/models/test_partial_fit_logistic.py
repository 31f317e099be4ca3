"""`partial_fit` of logistic regression: batch by batch, and nearly as good as all rows at once."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from posteriori import LogisticRegression
from posteriori.errors import (
    ColumnNameError,
    InferenceError,
    LabelError,
    LevelError,
    MissingValueError,
    ParameterError,
    SeparationWarning,
)
from posteriori.posterior.priors import GaussianPrior


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


def test_rows_sorted_by_class_are_said_to_come_in_a_bad_order():
    X, y = draw(4000)
    order = np.argsort(y, kind="stable")
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        in_batches(X, y, 200, order=order)
    messages = [str(each.message) for each in given]
    assert any("do not determine all coefficients" in message for message in messages)
    assert any("differs from the rows before" in message for message in messages)


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
    assert "prior='jeffreys' needs all rows at once" in str(caught.value.__cause__)
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
