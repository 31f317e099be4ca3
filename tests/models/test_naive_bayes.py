"""Naive Bayes: right numbers, families side by side, missing entries and degenerate columns."""

import tracemalloc

import mpmath as mp
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB
from sklearn.utils import get_tags

from posteriori import NaiveBayes
from posteriori.errors import (
    DomainError,
    NotLinearError,
    ParameterError,
    ScaleError,
    SingularCovarianceWarning,
)

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
MIX = {0: "gaussian", 1: "bernoulli", 2: "categorical", 3: "poisson", 4: "exponential"}
DATA["mixed"] = np.column_stack([DATA[name][:, 0] for name in MIX.values()])

of_each_data = pytest.mark.parametrize("data", DATA)
weights = pytest.mark.parametrize("weight", [None, W], ids=["unweighted", "weighted"])


def family_of(data):
    return MIX if data == "mixed" else data


def same(a, b, tol=1e-9):
    np.testing.assert_allclose(a, b, rtol=tol, atol=tol)


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


@of_each_data
@pytest.mark.parametrize("y", [Y, SOFT], ids=["hard", "soft"])
@pytest.mark.parametrize("gaps", [False, True], ids=["whole", "gaps"])
def test_posteriors_are_those_of_mpmath(data, y, gaps):
    n = 40
    X = DATA[data][:n].copy()
    if gaps:
        X[np.random.default_rng(0).random(X.shape) < 0.15] = np.nan
        X[3] = np.nan
    names = list(MIX.values()) if data == "mixed" else [data] * 3
    share = (np.eye(K)[y[:n]] if y.ndim == 1 else y[:n]) * W[:n, None]
    model = NaiveBayes(family=family_of(data)).fit(X, y[:n], W[:n])
    rows = [0, 3, 17, 39]
    expected = exact_posterior(names, X, share, rows)
    same(model.predict_proba(X[rows]), expected[:, :K])
    same(model.score_samples(X[rows]), expected[:, K])
    same(model.predict_log_proba(X[rows]), np.log(expected[:, :K]))


@weights
@pytest.mark.parametrize("alpha", [0.3, 1.0])
def test_numbers_are_those_of_scikit_learn(alpha, weight):
    X = DATA["bernoulli"]
    ours = NaiveBayes(family="bernoulli", pseudocount=alpha).fit(X, Y, weight)
    theirs = BernoulliNB(alpha=alpha).fit(X, Y, weight)
    same(ours.predict_proba(X), theirs.predict_proba(X))
    same(ours.parameters_["x1"]["probability"], np.exp(theirs.feature_log_prob_[:, 1]))
    X = DATA["categorical"]
    ours = NaiveBayes(family="categorical", pseudocount=alpha).fit(X, Y, weight)
    theirs = CategoricalNB(alpha=alpha, min_categories=4).fit(X, Y, weight)
    same(ours.predict_proba(X), theirs.predict_proba(X))
    X = DATA["gaussian"]
    ours = NaiveBayes().fit(X, Y, weight)
    same(ours.predict_proba(X), GaussianNB(var_smoothing=0).fit(X, Y, weight).predict_proba(X))


@pytest.mark.parametrize(
    ("family", "n_parameters"),
    [("bernoulli", 9), ("poisson", 9), ("exponential", 9), ("gaussian", 18), ("categorical", 27)],
)
def test_parameters_are_counted_and_families_without_negative_entries_are_tagged(
    family, n_parameters
):
    model = NaiveBayes(family=family, pseudocount=0.0).fit(DATA[family], Y)
    assert model.n_parameters_ == n_parameters + K - 1
    assert model.families_ == (family,) * 3
    positive = family in ("bernoulli", "poisson", "exponential")
    assert get_tags(model).input_tags.positive_only == positive
    assert get_tags(NaiveBayes(family={"a": family})).input_tags.positive_only == positive
    with pytest.raises(ParameterError, match="pseudocount=-1"):
        model.set_params(pseudocount=-1).fit(DATA[family], Y)


LINEAR = {0: "exponential", 1: "bernoulli", 2: "poisson", 3: "gaussian"}


@pytest.mark.parametrize("family", [*LINEAR.values(), LINEAR], ids=str)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_linear_form_is_the_ratio_of_densities(family, n_classes):
    data = DATA["mixed"][:, [4, 1, 3, 0]] if family is LINEAR else DATA[family]
    rows = n_classes > Y
    X, y = data[rows], Y[rows]
    model = NaiveBayes(family=family, shared_scale=True).fit(X, y)
    linear = X @ model.coef_.T + model.intercept_
    joint = model._log_density(X) + np.log(model.priors_)
    same(model.predict_proba(X), np.exp(joint - np.logaddexp.reduce(joint, axis=1)[:, None]))
    if n_classes == 2:
        same(linear[:, 0], joint[:, 1] - joint[:, 0])
        same(model.signed_distance(X), linear[:, 0] / np.linalg.norm(model.coef_))
    else:
        same(linear - linear[:, :1], joint - joint[:, :1])
    other = model.with_priors(np.arange(1, n_classes + 1) / sum(range(1, n_classes + 1)))
    same(other.coef_, model.coef_)


def test_boundaries_that_are_not_linear_are_named():
    with pytest.raises(NotLinearError, match="columns 0, 2"):
        _ = NaiveBayes(family=MIX).fit(DATA["mixed"], Y).coef_
    sure = NaiveBayes(family="bernoulli", pseudocount=0).fit([[0, 1], [1, 1], [0, 0]], [0, 0, 1])
    with pytest.raises(NotLinearError, match="pseudocount"):
        _ = sure.coef_


@of_each_data
@pytest.mark.parametrize("shared", [False, True], ids=["own scale", "shared scale"])
def test_sparse_rows_give_the_numbers_of_dense_ones(data, shared):
    X = np.where(np.random.default_rng(1).random(DATA[data].shape) < 0.4, 0.0, DATA[data])
    for _ in range(2):
        dense = NaiveBayes(family=family_of(data), shared_scale=shared).fit(X, SOFT, W)
        thin = clone(dense).fit(sparse.csr_array(X), SOFT, W)
        same(thin.predict_proba(sparse.csc_matrix(X)), dense.predict_proba(X), 1e-10)
        same(thin.score_samples(sparse.coo_array(X)), dense.score_samples(X), 1e-10)
        X[::7, 1] = np.nan


def test_a_wide_sparse_matrix_is_never_made_dense():
    X = sparse.random_array((1000, 20_000), density=0.002, format="csr", rng=rng)
    X.data[:] = 1.0
    y = np.arange(1000) % 2
    tracemalloc.start()
    for family in ("bernoulli", "poisson"):
        NaiveBayes(family=family).fit(X, y).predict_proba(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.2 * 8 * 1000 * 20_000


# Types of columns.

TOWNS = np.array(["Bonn", "Kiel", "Ulm"])[rng.integers(0, 3, N)]
FRAME = pd.DataFrame({"height": DATA["mixed"][:, 0], "smokes": Y == 1, "town": TOWNS})
FRAME.loc[rng.random(N) < 0.3, "smokes"] = True
TYPES = ("gaussian", "bernoulli", "categorical")


def test_all_boolean_containers_are_bernoulli_and_the_summary_says_so():
    B, names = DATA["bernoulli"] > 0, ["a", "b", "c"]
    frame = pd.DataFrame(B, columns=names)
    containers = [
        B,
        B.astype(object),
        sparse.csr_array(B),
        frame,
        frame.astype("boolean"),
        pl.DataFrame(B, schema=names),
    ]
    expected = BernoulliNB().fit(B, Y).predict_proba(B)
    for container in containers:
        model = NaiveBayes().fit(container, Y)
        assert model.families_ == ("bernoulli",) * 3
        same(model.predict_proba(container), expected, 1e-12)
    page = " ".join(str(NaiveBayes().fit(FRAME, Y).summary()).split())
    assert "chosen by the type of the column: bernoulli for booleans, categorical for" in page
    numbers = NaiveBayes().fit(B.astype(float), Y)
    assert "gaussian for numbers" in " ".join(str(numbers.summary()).split())


def test_levels_are_smoothed_counts_also_of_states_never_seen():
    model = NaiveBayes(pseudocount=0.5).fit(FRAME[["town"]], Y)
    found, count = model.parameters_["town"], np.bincount(Y)
    for k in range(K):
        hits = [np.sum(TOWNS[k == Y] == level) for level in found["levels"]]
        same(found["probability"][k], (np.array(hits) + 0.5) / (count[k] + 1.5))
    joint = model.priors_ * 0.5 / (count + 1.5)
    unseen = model.predict_proba(pd.DataFrame({"town": ["Rom", None]}))
    same(unseen, [joint / joint.sum(), model.priors_])
    numbers = NaiveBayes(family="categorical", pseudocount=0.5).fit(DATA["categorical"], Y)
    joint = numbers.priors_ * (0.5 / (count + 2)) ** 3
    same(numbers.predict_proba([[9.0, -1.0, 0.5]]), [joint / joint.sum()])
    strict = NaiveBayes(pseudocount=0).fit(FRAME[["town"]], Y)
    with pytest.raises(ScaleError, match="Row 1"):
        strict.predict_proba(pd.DataFrame({"town": ["Ulm", "Rom"]}))


def test_samples_have_the_types_of_the_columns():
    X, y = NaiveBayes().fit(FRAME, Y).sample(5000, random_state=1)
    assert X.dtype == object
    assert {type(v) for v in X[0]} == {float, bool, str}
    assert NaiveBayes().fit(X, y).families_ == TYPES
    bits, _ = NaiveBayes().fit(DATA["bernoulli"] > 0, Y).sample(3, random_state=1)
    assert bits.dtype == bool


# Degenerate columns.


def test_constant_columns_and_classes_of_one_row_are_warned_of():
    X = DATA["gaussian"]
    wide = np.column_stack([X, np.full(N, 0.1)])
    with pytest.warns(SingularCovarianceWarning, match="column 3 never change"):
        model = NaiveBayes().fit(wide, Y)
    same(model.predict_proba(wide), NaiveBayes().fit(X, Y).predict_proba(X))
    X, y = np.vstack([X, [[9.0, 9.0, 9.0]]]), np.append(Y, 3)
    with pytest.warns(SingularCovarianceWarning, match="class 3"):
        model = NaiveBayes().fit(X, y)
    assert np.isfinite(model.predict_log_proba(X)).all()
    assert NaiveBayes(shared_scale=True).fit(X, y).predict(X[-1:]).tolist() == [3]


def test_zero_counts_and_means_without_pseudocount_are_impossible():
    X, y = [[1, 0], [1, 1], [0, 1], [0, 1]], ["a", "a", "b", "b"]
    model = NaiveBayes(family="bernoulli", pseudocount=0).fit(X, y)
    same(model.predict_proba([[1, 1], [0, 1], [np.nan, 1]]), [[1, 0], [0, 1], [1 / 3, 2 / 3]])
    with pytest.raises(ScaleError, match="Row 1"):
        model.predict_proba([[1, 1], [0, 0]])
    model = NaiveBayes(family="poisson").fit([[0], [0], [2], [1]], ["a", "a", "b", "b"])
    low = np.exp(-1.5)
    same(model.predict_proba([[0], [3]]), [[1 / (1 + low), low / (1 + low)], [0, 1]])
    with pytest.raises(DomainError, match="class 'a' in column 0 is zero"):
        NaiveBayes(family="exponential").fit([[0.0], [0.0], [2.0]], ["a", "a", "b"])
