"""Naive Bayes: right numbers, families side by side, what is missing, unseen or degenerate."""

import tracemalloc

import mpmath as mp
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks

from posteriori.errors import (
    DomainError,
    InfiniteValueError,
    MissingValueError,
    NotLinearError,
    ParameterError,
    ScaleError,
    SingularCovarianceWarning,
    StatisticsError,
)
from posteriori.models.gaussian import GaussianClassifier
from posteriori.models.naive_bayes import NaiveBayes

mp.mp.dps = 50
rng = np.random.default_rng(3)
N, K = 240, 3
Y = rng.choice(K, N, p=[0.5, 0.3, 0.2])
SOFT = rng.dirichlet(np.full(K, 0.5), N)
W = rng.choice([0.0, 0.5, 1.0, 3.0], N)
RATE = np.array([[0.2, 0.5, 0.8], [0.7, 0.4, 0.5], [0.5, 0.9, 0.1]])
DATA = {
    "gaussian": rng.normal(3 * RATE[Y], 0.5 + RATE[Y]),
    "bernoulli": (rng.random((N, 3)) < RATE[Y]).astype(float),
    "categorical": rng.binomial(3, RATE[Y]).astype(float),
    "poisson": rng.poisson(4 * RATE[Y]).astype(float),
    "exponential": rng.exponential(2 * RATE[Y]),
}
LINEAR = ("bernoulli", "poisson", "exponential", "gaussian")
MIX = {0: "gaussian", 1: "bernoulli", 2: "categorical", 3: "poisson", 4: "exponential"}
MIXED = np.column_stack([DATA[name][:, 0] for name in MIX.values()])

families = pytest.mark.parametrize("family", DATA)
labels = pytest.mark.parametrize("y", [Y, SOFT], ids=["hard", "soft"])
weights = pytest.mark.parametrize("weight", [None, W], ids=["unweighted", "weighted"])


def same(a, b, tol=1e-9):
    np.testing.assert_allclose(a, b, rtol=tol, atol=tol)


@parametrize_with_checks([NaiveBayes()])
@pytest.mark.filterwarnings("ignore::posteriori.errors.SingularCovarianceWarning")
def test_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


# --- right numbers ---


def exact_log_density(family, column, share, x, pseudocount):
    """ln p(x|C_k) of one entry at 50 digits, from a column and each row's share in the class."""
    pairs = [(mp.mpf(float(v)), mp.mpf(float(s))) for v, s in zip(column, share, strict=True)]
    pairs = [(v, s) for v, s in pairs if not mp.isnan(v)]
    n, a, x = sum(s for _, s in pairs), mp.mpf(pseudocount), mp.mpf(float(x))
    mean = sum(v * s for v, s in pairs) / n
    if family == "gaussian":
        variance = sum(s * (v - mean) ** 2 for v, s in pairs) / n
        return -((x - mean) ** 2) / (2 * variance) - mp.log(2 * mp.pi * variance) / 2
    if family in ("bernoulli", "categorical"):
        n_states = 2 if family == "bernoulli" else len({v for v, _ in pairs})
        hits = sum(s for v, s in pairs if v == x)
        return mp.log((hits + a) / (n + a * n_states))
    if family == "poisson":
        return x * mp.log(mean) - mean - mp.loggamma(x + 1)
    return -x / mean - mp.log(mean)


def exact_posterior(names, X, share, rows, pseudocount=1.0):
    out = []
    for i in rows:
        joint = [
            mp.log(share[:, k].sum() / share.sum())
            + sum(
                exact_log_density(name, X[:, j], share[:, k], X[i, j], pseudocount)
                for j, name in enumerate(names)
                if not np.isnan(X[i, j])
            )
            for k in range(K)
        ]
        total = mp.log(sum(map(mp.exp, joint)))
        out.append([*(float(mp.exp(a - total)) for a in joint), float(total)])
    return np.array(out)


@labels
@weights
@pytest.mark.parametrize("holes", [False, True], ids=["whole", "holes"])
@pytest.mark.parametrize("family", [*DATA, "mixed"])
def test_posteriors_are_those_of_mpmath(family, y, weight, holes):
    n = 40
    X = (MIXED if family == "mixed" else DATA[family])[:n].copy()
    if holes:
        X[np.random.default_rng(0).random(X.shape) < 0.15] = np.nan
        X[3] = np.nan
    names = list(MIX.values()) if family == "mixed" else [family] * 3
    share = np.eye(K)[y[:n]] if y.ndim == 1 else y[:n]
    w = None if weight is None else weight[:n]
    share = share if w is None else share * w[:, None]
    model = NaiveBayes(family=MIX if family == "mixed" else family).fit(X, y[:n], w)
    rows = [0, 3, 5, 17, 39]
    expected = exact_posterior(names, X, share, rows)
    same(model.predict_proba(X[rows]), expected[:, :K])
    same(model.score_samples(X[rows]), expected[:, K])
    same(model.predict_log_proba(X[rows]), np.log(expected[:, :K]))


@weights
@pytest.mark.parametrize("alpha", [0.3, 1.0])
def test_bernoulli_is_that_of_scikit_learn(alpha, weight):
    X = DATA["bernoulli"]
    ours = NaiveBayes(family="bernoulli", pseudocount=alpha).fit(X, Y, weight)
    rival = BernoulliNB(alpha=alpha).fit(X, Y, weight)
    same(ours.predict_proba(X), rival.predict_proba(X))
    same(ours.parameters_["x1"]["probability"], np.exp(rival.feature_log_prob_[:, 1]))


@weights
def test_categorical_is_that_of_scikit_learn(weight):
    X = DATA["categorical"]
    ours = NaiveBayes(family="categorical", pseudocount=0.7).fit(X, Y, weight)
    rival = CategoricalNB(alpha=0.7, min_categories=4).fit(X, Y, weight)
    same(ours.predict_proba(X), rival.predict_proba(X))


@weights
def test_gaussian_is_that_of_scikit_learn_and_of_diagonal_covariances(weight):
    X = DATA["gaussian"]
    ours = NaiveBayes().fit(X, Y, weight)
    rival = GaussianNB(var_smoothing=0).fit(X, Y, weight)
    same(ours.predict_proba(X), rival.predict_proba(X))
    diagonal = GaussianClassifier(covariance="diagonal").fit(X, Y, weight)
    same(ours.score_samples(X), diagonal.score_samples(X))


@families
def test_estimates_are_readable(family):
    model = NaiveBayes(family=family, pseudocount=0.0).fit(DATA[family], Y)
    found = model.parameters_["x2"]
    rows = [DATA[family][k == Y, 2] for k in range(K)]
    means = [r.mean() for r in rows]
    if family == "categorical":
        means = found["probability"] @ np.array(found["levels"])
        same(means, [r.mean() for r in rows])
    else:
        same(found["probability" if family == "bernoulli" else "mean"], means)
    if family == "gaussian":
        same(found["sd"], [r.std() for r in rows])
    assert model.families_ == (family,) * 3
    same(model.class_count_, np.bincount(Y))
    same(model.priors_, np.bincount(Y) / N)


@pytest.mark.parametrize(
    ("family", "shared", "number"),
    [("bernoulli", False, 9), ("poisson", False, 9), ("exponential", False, 9),
     ("gaussian", False, 18), ("gaussian", True, 12), ("categorical", False, 27)],
)  # fmt: skip
def test_parameters_are_counted_as_in_the_source(family, shared, number):
    model = NaiveBayes(family=family, shared_scale=shared).fit(DATA[family], Y)
    assert model.n_parameters_ == number + K - 1


# --- the linear form ---


@pytest.mark.parametrize("family", LINEAR)
@pytest.mark.parametrize("two", [False, True], ids=["three classes", "two classes"])
def test_linear_form_is_the_ratio_of_densities(family, two):
    X, y = (DATA[family][Y < 2], Y[Y < 2]) if two else (DATA[family], Y)
    model = NaiveBayes(family=family, shared_scale=True).fit(X, y)
    linear = X @ model.coef_.T + model.intercept_
    joint = model._log_density(X) + np.log(model.priors_)
    if two:
        assert model.coef_.shape == (1, 3)
        same(linear[:, 0], joint[:, 1] - joint[:, 0])
        same(linear[:, 0], model.decision_function(X))
        same(model.signed_distance(X), linear[:, 0] / np.linalg.norm(model.coef_))
    else:
        same(linear - linear[:, :1], joint - joint[:, :1])
        same(model.coef_.sum(0), 0)
        same(model.intercept_.sum(), 0)


def test_families_with_linear_parts_join():
    X = MIXED[:, [4, 1, 3, 0]]
    family = {0: "exponential", 1: "bernoulli", 2: "poisson", 3: "gaussian"}
    model = NaiveBayes(family=family, shared_scale=True).fit(X, Y)
    joint = model._log_density(X) + np.log(model.priors_)
    linear = X @ model.coef_.T + model.intercept_
    same(linear - linear[:, :1], joint - joint[:, :1])
    same(model.predict_proba(X), np.exp(joint - np.logaddexp.reduce(joint, axis=1)[:, None]))


def test_boundaries_that_are_not_linear_say_so():
    with pytest.raises(NotLinearError, match="columns 0, 2"):
        _ = NaiveBayes(family=MIX).fit(MIXED, Y).coef_
    assert not hasattr(NaiveBayes().fit(DATA["gaussian"], Y), "intercept_")
    sure = NaiveBayes(family="bernoulli", pseudocount=0).fit([[0, 1], [1, 1], [0, 0]], [0, 0, 1])
    with pytest.raises(NotLinearError, match="pseudocount"):
        _ = sure.coef_


def test_priors_change_the_intercept_only():
    model = NaiveBayes(family="poisson").fit(DATA["poisson"], Y)
    other = model.with_priors([0.2, 0.2, 0.6])
    same(other.coef_, model.coef_)
    moved = other.intercept_ - model.intercept_ - np.log(other.priors_ / model.priors_)
    same(moved, moved[0])
    fitted = NaiveBayes(family="poisson", priors=[0.2, 0.2, 0.6]).fit(DATA["poisson"], Y)
    same(fitted.predict_proba(DATA["poisson"]), other.predict_proba(DATA["poisson"]))


# --- laws ---


@pytest.mark.parametrize("family", [*DATA, "mixed"])
@pytest.mark.parametrize("parts", [2, 5])
def test_any_split_is_the_pooled_fit(family, parts):
    X, chosen = (MIXED, MIX) if family == "mixed" else (DATA[family], family)
    whole = NaiveBayes(family=chosen).fit(X, Y, W)
    pieces = np.array_split(np.argsort(Y, kind="stable"), parts)
    batches = NaiveBayes(family=chosen)
    for rows in pieces:
        batches.partial_fit(X[rows], Y[rows], sample_weight=W[rows])
    sums = [
        NaiveBayes(family=chosen).partial_fit(X[r], Y[r], sample_weight=W[r]).statistics_
        for r in pieces
    ]
    merged = NaiveBayes.from_statistics(sum(sums))
    for model in (batches, merged):
        same(model.predict_proba(X), whole.predict_proba(X), 1e-10)
        same(model.score_samples(X), whole.score_samples(X), 1e-10)
        assert model.families_ == whole.families_


@families
def test_weight_two_is_the_row_twice(family):
    X, w = DATA[family], np.arange(N) % 3
    weighted = NaiveBayes(family=family).fit(X, Y, w)
    repeated = NaiveBayes(family=family).fit(np.repeat(X, w, axis=0), np.repeat(Y, w))
    same(weighted.predict_proba(X), repeated.predict_proba(X), 1e-10)


@pytest.mark.parametrize("family", [*DATA, "mixed"])
def test_a_fit_to_its_own_samples_recovers_the_model(family):
    X, chosen = (MIXED, MIX) if family == "mixed" else (DATA[family], family)
    model = NaiveBayes(family=chosen).fit(X, Y)
    drawn, y = model.sample(60_000, random_state=0)
    again = NaiveBayes(family=chosen).fit(drawn, y)
    same(again.priors_, model.priors_, 0.02)
    for name, parameters in model.parameters_.items():
        for key in ("mean", "sd", "probability"):
            if key in parameters:
                same(
                    again.parameters_[name][key],
                    parameters[key],
                    0.03 * (1 + parameters[key].max()),
                )


@pytest.mark.parametrize("family", [*DATA, "mixed"])
@pytest.mark.parametrize("shared", [False, True], ids=["own scale", "shared scale"])
def test_sparse_is_dense(family, shared):
    X, chosen = (MIXED, MIX) if family == "mixed" else (DATA[family].copy(), family)
    X = np.where(np.random.default_rng(1).random(X.shape) < 0.4, 0.0, X)
    holes = X.copy()
    holes[::7, 1] = np.nan
    for values in (X, holes):
        for y in (Y, SOFT):
            dense = NaiveBayes(family=chosen, shared_scale=shared).fit(values, y, W)
            thin = clone(dense).fit(sparse.csr_array(values), y, W)
            same(thin.predict_proba(sparse.csc_matrix(values)), dense.predict_proba(values), 1e-10)
            same(thin.score_samples(sparse.coo_array(values)), dense.score_samples(values), 1e-10)


def test_a_wide_sparse_matrix_is_never_filled_in():
    X = sparse.random_array((4000, 20_000), density=0.002, format="csr", rng=rng)
    X.data[:] = 1.0
    y = np.arange(4000) % 2
    tracemalloc.start()
    for family in ("bernoulli", "poisson"):
        NaiveBayes(family=family).fit(X, y).predict_proba(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.1 * 8 * 4000 * 20_000


def test_missing_entries_are_marginalised_by_brute_force():
    X = DATA["categorical"]
    model = NaiveBayes(family="categorical").fit(X, Y)
    row = X[:1].copy()
    row[0, 1] = np.nan
    filled = np.repeat(row, 4, axis=0)
    filled[:, 1] = model.parameters_["x1"]["levels"]
    same(model.score_samples(row), np.logaddexp.reduce(model.score_samples(filled)))
    assert model.predict_proba(np.full((1, 3), np.nan)) == pytest.approx(model.priors_[None])


# --- data frames, levels ---

TOWNS = np.array(["Bonn", "Kiel", "Ulm"])[rng.integers(0, 3, N)]
FRAME = pd.DataFrame({"height": MIXED[:, 0], "smokes": MIXED[:, 1] > 0, "town": TOWNS})


def test_frames_of_every_library_give_the_same():
    expected = NaiveBayes().fit(FRAME, Y)
    assert expected.families_ == ("gaussian", "bernoulli", "categorical")
    frames = [
        pl.from_pandas(FRAME),
        pa.Table.from_pandas(FRAME),
        FRAME.astype({"town": "category"}),
        FRAME[["town", "smokes", "height"]],
    ]
    for frame in frames:
        model = NaiveBayes().fit(frame, Y)
        same(model.predict_proba(frame), expected.predict_proba(FRAME), 1e-12)
        same(expected.predict_proba(frame), expected.predict_proba(FRAME), 1e-12)


def test_levels_are_smoothed_counts():
    model = NaiveBayes(pseudocount=2.0).fit(FRAME, Y)
    found = model.parameters_["town"]
    for k in range(K):
        hits = [np.sum(TOWNS[k == Y] == level) for level in found["levels"]]
        same(found["probability"][k], (np.array(hits) + 2) / (np.sum(k == Y) + 6))


def test_states_never_seen_have_the_smoothed_probability():
    model = NaiveBayes(pseudocount=0.5).fit(FRAME[["town"]], Y)
    odd = pd.DataFrame({"town": ["Rom", None]})
    count = np.bincount(Y)
    joint = model.priors_ * 0.5 / (count + 1.5)
    same(model.predict_proba(odd), [joint / joint.sum(), model.priors_])
    numbers = NaiveBayes(family="categorical", pseudocount=0.5).fit(DATA["categorical"], Y)
    joint = numbers.priors_ * (0.5 / (count + 2)) ** 3
    same(numbers.predict_proba([[9.0, -1.0, 0.5]]), [joint / joint.sum()])


def test_a_state_impossible_in_every_class_is_an_error():
    strict = NaiveBayes(pseudocount=0).fit(FRAME[["town"]], Y)
    with pytest.raises(ScaleError, match="Row 1"):
        strict.predict_proba(pd.DataFrame({"town": ["Ulm", "Rom"]}))


def test_levels_and_classes_may_grow():
    a, b = FRAME[TOWNS == "Ulm"], FRAME[TOWNS != "Ulm"]
    ya, yb = Y[TOWNS == "Ulm"], Y[TOWNS != "Ulm"]
    model = NaiveBayes().partial_fit(a, ya).partial_fit(b, yb)
    same(model.predict_proba(FRAME), NaiveBayes().fit(FRAME, Y).predict_proba(FRAME), 1e-10)
    names = np.array(["x", "y", "z"])
    first, later = Y == 1, Y != 1
    model = NaiveBayes().partial_fit(FRAME[first], names[Y[first]])
    assert model.predict(FRAME[:3]).tolist() == ["y"] * 3
    model.partial_fit(FRAME[later], names[Y[later]])
    same(model.predict_proba(FRAME), NaiveBayes().fit(FRAME, Y).predict_proba(FRAME), 1e-10)


def test_shards_with_other_levels_merge():
    found = NaiveBayes().fit(FRAME[3:], Y[3:]).statistics_
    small = FRAME[:3].assign(town=["Ulm", "Ulm", "Trier"], height=[1.0, 2.0, 3.0])
    with pytest.warns(SingularCovarianceWarning):
        extra = NaiveBayes().partial_fit(small, [0, 1, 2]).statistics_
    merged = NaiveBayes.from_statistics(extra + found)
    rows = pd.concat([small, FRAME[3:]])
    whole = NaiveBayes().fit(rows, np.concatenate([[0, 1, 2], Y[3:]]))
    same(merged.predict_proba(rows), whole.predict_proba(rows), 1e-10)


def test_samples_have_the_kinds_of_the_columns():
    X, y = NaiveBayes().fit(FRAME, Y).sample(5000, random_state=1)
    assert X.dtype == object
    assert {type(v) for v in X[0]} == {float, bool, str}
    again = NaiveBayes().fit(X, y)
    assert again.families_ == ("gaussian", "bernoulli", "categorical")
    bits, _ = NaiveBayes().fit(DATA["bernoulli"] > 0, Y).sample(3, random_state=1)
    assert bits.dtype == bool


# --- settings ---


def test_statistics_keep_their_families():
    model = NaiveBayes(family="poisson").fit(DATA["poisson"], Y)
    merged = NaiveBayes.from_statistics(model.statistics_)
    merged.partial_fit(DATA["poisson"], Y)
    assert merged.families_ == ("poisson",) * 3
    same(merged.predict_proba(DATA["poisson"]), model.predict_proba(DATA["poisson"]))
    with pytest.raises(StatisticsError, match="column 0 for poisson, not gaussian"):
        NaiveBayes.from_statistics(model.statistics_, family="gaussian")


@pytest.mark.parametrize("pseudocount", [-1, np.nan, np.inf, "one", None])
def test_pseudocounts_that_cannot_be(pseudocount):
    with pytest.raises(ParameterError, match="pseudocount"):
        NaiveBayes(pseudocount=pseudocount).fit(DATA["gaussian"], Y)


# --- hard cases ---


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("scale", [1e150, 1e-150, 1e8, 1e-8])
def test_units_of_gaussian_columns_do_not_matter(shared, scale):
    X = DATA["gaussian"]
    plain = NaiveBayes(shared_scale=shared).fit(X, Y)
    scaled = NaiveBayes(shared_scale=shared).fit(X * [scale, 1.0, 1 / scale], Y)
    found = scaled.predict_proba(X * [scale, 1.0, 1 / scale])
    same(found, plain.predict_proba(X))
    thin = clone(scaled).fit(sparse.csr_array(X * scale), Y)
    same(thin.predict_proba(sparse.csr_array(X * scale)), plain.predict_proba(X))


@pytest.mark.parametrize("scale", [1e150, 1e-150])
def test_units_of_exponential_columns_do_not_matter(scale):
    X = DATA["exponential"]
    plain = NaiveBayes(family="exponential").fit(X, Y).predict_proba(X)
    same(NaiveBayes(family="exponential").fit(X * scale, Y).predict_proba(X * scale), plain)


@pytest.mark.parametrize("shared", [False, True])
def test_gaussian_columns_far_from_zero(shared):
    X = np.round(DATA["gaussian"], 3)
    far = X + 1e8
    near = far - 1e8  # what is left of X after rounding
    plain = NaiveBayes(shared_scale=shared).fit(near, Y)
    same(
        NaiveBayes(shared_scale=shared).fit(far, Y).predict_proba(far),
        plain.predict_proba(near),
        1e-6,
    )
    thin = NaiveBayes(shared_scale=shared).fit(sparse.csr_array(far), Y)
    same(thin.predict_proba(sparse.csr_array(far)), plain.predict_proba(near), 1e-6)


def test_a_constant_column_changes_nothing():
    X = DATA["gaussian"]
    with_constant = np.column_stack([X, np.full(N, 0.1)])
    with pytest.warns(SingularCovarianceWarning, match="column 3 never change"):
        model = NaiveBayes().fit(with_constant, Y)
    same(model.predict_proba(with_constant), NaiveBayes().fit(X, Y).predict_proba(X))


def test_a_class_with_one_row():
    X, y = np.vstack([DATA["gaussian"], [[9.0, 9.0, 9.0]]]), np.append(Y, 3)
    with pytest.warns(SingularCovarianceWarning, match="class 3"):
        model = NaiveBayes().fit(X, y)
    assert np.isfinite(model.predict_log_proba(X)).all()
    shared = NaiveBayes(shared_scale=True).fit(X, y)
    assert shared.predict(X[-1:]).tolist() == [3]


@families
@pytest.mark.parametrize("pseudocount", [0.0, 1.0])
def test_a_class_without_rows_has_probability_zero(family, pseudocount):
    X = DATA[family][Y < 2]
    model = NaiveBayes(family=family, pseudocount=pseudocount)
    model.partial_fit(X, Y[Y < 2], classes=[0, 1, 2])
    found = model.predict_proba(X)
    assert (found[:, 2] == 0).all()
    plain = NaiveBayes(family=family, pseudocount=pseudocount).fit(X, Y[Y < 2])
    same(found[:, :2], plain.predict_proba(X))
    with pytest.raises(ParameterError, match="Class 2 is given a prior"):
        model.with_priors([0.3, 0.3, 0.4])
    later = DATA[family][Y == 2]
    whole = NaiveBayes(family=family, pseudocount=pseudocount).fit(DATA[family], Y)
    same(
        model.partial_fit(later, Y[Y == 2]).predict_proba(DATA[family]),
        whole.predict_proba(DATA[family]),
    )


def test_zero_counts_without_pseudocount_are_impossible():
    X, y = [[1, 0], [1, 1], [0, 1], [0, 1]], ["a", "a", "b", "b"]
    model = NaiveBayes(family="bernoulli", pseudocount=0).fit(X, y)
    same(model.predict_proba([[1, 1], [0, 1], [np.nan, 1]]), [[1, 0], [0, 1], [1 / 3, 2 / 3]])
    with pytest.raises(ScaleError, match="Row 1"):
        model.predict_proba([[1, 1], [0, 0]])


def test_a_poisson_mean_of_zero():
    model = NaiveBayes(family="poisson").fit([[0], [0], [2], [1]], ["a", "a", "b", "b"])
    low = np.exp(-1.5)
    same(model.predict_proba([[0], [3]]), [[1 / (1 + low), low / (1 + low)], [0, 1]])


def test_an_exponential_column_of_zeros_is_an_error():
    with pytest.raises(DomainError, match="class 'a' in column 0 is zero"):
        NaiveBayes(family="exponential").fit([[0.0], [0.0], [2.0]], ["a", "a", "b"])


def test_a_column_missing_in_a_class_is_an_error():
    X = DATA["gaussian"].copy()
    X[Y == 1, 2] = np.nan
    with pytest.raises(MissingValueError, match="Class 1 has no entry in column 2"):
        NaiveBayes().fit(X, Y)


@pytest.mark.parametrize("source", [np.array, sparse.csr_array])
@pytest.mark.parametrize(
    ("family", "value"), [("bernoulli", 0.5), ("poisson", 1.5), ("exponential", -1.0)]
)
def test_entries_outside_the_domain_are_named_in_prediction(source, family, value):
    X = DATA[family].copy()
    model = NaiveBayes(family=family).fit(source(X), Y)
    X[2, 1] = np.nan
    X[4, 1] = value
    with pytest.raises(DomainError, match="Row 4 of column 1"):
        model.predict_proba(source(X))
    with pytest.raises(DomainError, match="Row 0 of column 1"):
        model.score_samples(source(X[4:5]))


@families
def test_infinite_entries_are_named(family):
    model = NaiveBayes(family=family).fit(DATA[family], Y)
    for value in (np.inf, -np.inf):
        X = DATA[family].copy()
        X[6, 2] = value
        with pytest.raises(InfiniteValueError, match="row 6, column 2"):
            model.predict_proba(X)
        with pytest.raises(InfiniteValueError, match="row 6, column 2"):
            NaiveBayes(family=family).fit(X, Y)


def test_rows_beyond_the_doubles_are_an_error():
    model = NaiveBayes().fit(DATA["gaussian"], Y)
    with pytest.raises(ScaleError, match="Row 1"):
        model.predict_proba([[0.0, 0, 0], [1e200, 0, 0]])


def test_more_columns_than_rows_and_duplicate_columns():
    X = rng.integers(0, 2, (8, 50)).astype(float)
    y = np.arange(8) % 2
    same(
        NaiveBayes(family="bernoulli").fit(X, y).predict_proba(X),
        BernoulliNB().fit(X, y).predict_proba(X),
    )
    double = np.column_stack([DATA["gaussian"][:, 0]] * 2)
    same(
        NaiveBayes().fit(double, Y).predict_proba(double),
        GaussianNB(var_smoothing=0).fit(double, Y).predict_proba(double),
    )
