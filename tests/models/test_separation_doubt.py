"""Fits that look converged though classes are separated, against linear programs of all rows."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog
from sklearn.datasets import load_digits, load_wine

from posteriori import GLM, GaussianPrior, LogisticRegression, ProbitRegression
from posteriori.errors import RankDeficiencyWarning, SeparationWarning
from posteriori.models import doubt

pytestmark = pytest.mark.filterwarnings("ignore::posteriori.errors.RankDeficiencyWarning")


def truth(X, y, K, held=None):
    """The kind of separation, by one linear program in the margins of all pairs of all rows."""
    rows = np.column_stack([np.ones(len(X)), X])
    p = rows.shape[1]
    unit = np.eye(K)
    pairs = [
        np.outer(unit[c] - unit[k], row).ravel()
        for row, c in zip(rows, y, strict=True)
        for k in range(K)
        if k != c
    ]
    m = len(pairs)
    free = np.ones(p, dtype=bool) if held is None else ~np.asarray(held)
    ends = [(None, None) if free[j] else (0, 0) for _ in range(K) for j in range(p)]
    found = linprog(
        np.r_[np.zeros(K * p), -np.ones(m)],
        A_ub=np.hstack([-np.array(pairs), np.eye(m)]),
        b_ub=np.zeros(m),
        bounds=ends + [(0, 1)] * m,
    )
    clear = int((found.x[K * p :] > 0.5).sum())
    return "none" if clear == 0 else "complete" if clear == m else "quasi"


def fitted(model, *args, **given):
    """The fit, and whether it warned of separation."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(*args, **given)
    return model, any(isinstance(w.message, SeparationWarning) for w in caught)


@pytest.mark.parametrize(
    ("n", "d", "K", "solver"),
    [
        (100, 2500, 2, "auto"),
        (60, 300, 2, "newton"),
        (60, 300, 2, "gradient"),
        (60, 120, 3, "auto"),
    ],
)
def test_rows_that_are_linearly_independent_are_separated(n, d, K, solver):
    random = np.random.default_rng(1)
    X, y = random.normal(size=(n, d)), random.integers(0, K, n)
    model, warned = fitted(LogisticRegression(solver=solver), X, y)
    assert warned
    assert model.separation_.kind == "complete"
    assert not model.converged_
    np.testing.assert_allclose(model.predict_proba(X)[np.arange(n), y], 1.0, rtol=1e-14)
    assert model.log_likelihood_ == pytest.approx(0.0, abs=1e-12)


def test_sparse_rows_that_are_linearly_independent_are_separated():
    random = np.random.default_rng(1)
    X = sparse.random(100, 600, 0.1, random_state=random, format="csr")
    y = random.integers(0, 2, 100)
    assert np.linalg.matrix_rank(X.toarray()) == 100
    model, warned = fitted(LogisticRegression(), X, y)
    assert warned
    assert model.separation_.kind == "complete"
    assert model.score(X, y) == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("model", [LogisticRegression(), GLM(family="categorical")])
@pytest.mark.parametrize("load", [load_wine, load_digits])
def test_many_classes_that_are_separated_are_certain(model, load):
    X, y = load(return_X_y=True)
    model, warned = fitted(model, X, y)
    assert warned
    assert model.separation_.kind == "complete"
    np.testing.assert_allclose(model.predict_proba(X)[np.arange(len(y)), y], 1.0, rtol=1e-14)
    assert model.log_likelihood_ == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("labels", ["soft", "batch"])
def test_one_class_alone_is_certain(labels):
    X = np.array([[1.0, 1.0], [-1, -3], [1, 1], [0, -1], [0, -1], [-1, -3]])
    model = LogisticRegression()
    soft, one = np.tile([0.0, 1.0, 0.0], (6, 1)), np.ones(6, dtype=int)
    with pytest.warns(SeparationWarning, match="No row is of one of the classes"):
        _ = model.fit(X, soft) if labels == "soft" else model.partial_fit(X, one, classes=[0, 1, 2])
    assert model.separation_.kind == "complete"
    np.testing.assert_allclose(model.predict_proba(X), np.tile([0.0, 1.0, 0.0], (6, 1)), atol=1e-15)


@pytest.mark.parametrize("solver", ["newton", "gradient", "coordinate", "sequential"])
@pytest.mark.parametrize("n", [60, 5000])
def test_a_prior_on_slopes_does_not_hold_the_intercept_of_a_class_without_rows(solver, n):
    random = np.random.default_rng(1)
    X = random.normal(size=(n, 2))
    soft = np.eye(3)[(X[:, 0] + random.logistic(size=n) > 0).astype(int)]
    model = LogisticRegression(prior=1.0, solver=solver)
    with pytest.warns(SeparationWarning, match="hold the intercepts too: .*intercept_precision"):
        model.fit(X, soft)
    assert model.separation_.columns == ("intercept",)
    # Each of two classes has half of the difference: |V|² = ½ |w|².
    alone = LogisticRegression(prior=0.5, solver=solver).fit(X, soft[:, 1] > 0)
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba[:, :2], alone.predict_proba(X), rtol=1e-6)
    assert proba[:, 2].max() < 1e-15


def test_a_prior_on_the_intercept_holds_a_class_without_rows():
    X, soft = np.array([[0.0], [1.0], [2.0], [3.0]]), np.eye(3)[[0, 1, 0, 1]]
    model = LogisticRegression(prior=GaussianPrior(intercept_precision=0.01)).fit(X, soft)
    assert model.converged_
    assert model.predict_proba(X)[:, 2].min() > 0.001


def test_a_class_that_the_first_rows_do_not_have_is_held_by_the_prior():
    random = np.random.default_rng(2)
    X = random.normal(size=(30000, 4))
    y = (np.arange(30000) >= 29990).astype(int)
    model = LogisticRegression(prior=1.0).fit(X, np.column_stack([1 - y, y]))
    assert model.converged_
    np.testing.assert_allclose(
        model.coef_, LogisticRegression(prior=1.0).fit(X, y).coef_, rtol=1e-6
    )


@pytest.mark.parametrize(("n", "d"), [(2000, 5), (30000, 10)])
@pytest.mark.parametrize("base", [0.5, 0.002])
@pytest.mark.parametrize(
    "model", [LogisticRegression(), ProbitRegression()], ids=["logit", "probit"]
)
def test_a_flag_that_few_rows_have_is_not_lost_behind_a_long_step(model, n, d, base):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, d))
    y = (X[:, 1] + np.log(base / (1 - base)) + random.logistic(size=n) > 0).astype(int)
    X[:, 0] = 0.0
    X[:3, 0], y[:3] = 1.0, 1
    model, warned = fitted(model, X, y)
    assert warned
    assert model.separation_.kind == "quasi"
    assert model.separation_.columns == ("x0",)
    alone = type(model)().fit(X[3:, 1:], y[3:])
    np.testing.assert_allclose(model.coef_[0, 1:], alone.coef_[0], rtol=1e-5, atol=1e-7)
    assert model.log_likelihood_ == pytest.approx(alone.log_likelihood_, rel=1e-9)


@pytest.mark.parametrize("K", [2, 3])
def test_overlap_of_some_rows_spares_a_pass_over_all_of_them(K, monkeypatch):
    random = np.random.default_rng(1)
    X = random.normal(size=(60_000, 6))
    y = (X[:, :K] + random.gumbel(size=(len(X), K))).argmax(axis=1)
    looks = []
    whole = doubt._least_slope
    monkeypatch.setattr(
        doubt, "_least_slope", lambda part, w: looks.append(part.n_rows) or whole(part, w)
    )
    assert LogisticRegression().fit(X, y).separation_.kind == "none"
    assert len(looks) == 1
    assert looks[0] < 10_000
    X[:, 0] = 0.0  # but for rows that the smaller part need not have
    X[:5, 0], y[:5] = 1.0, 1
    model, warned = fitted(LogisticRegression(), X, y)
    assert warned
    assert model.separation_.columns == ("x0",)


def test_offsets_do_not_hide_a_separation():
    X, y = np.array([[-1.0], [0], [-1], [-1], [-1]]), np.array([2, 1, 1, 0, 1])
    offset = [
        [0.07, 2.55, -0.9],
        [-0.44, -4.8, 1.77],
        [-1.63, 0.21, 5.64],
        [-1.16, -7.07, -3.13],
        [1.36, 2.14, 3.41],
    ]
    model, warned = fitted(LogisticRegression(), X, y, offset=offset)
    assert truth(X, y, 3) == model.separation_.kind == "quasi"
    assert warned
    near = LogisticRegression(prior=1e-12).fit(X, y, offset=offset)
    assert model.log_likelihood_ == pytest.approx(near.log_likelihood_, abs=1e-8)


@pytest.mark.parametrize("seed", range(60))
def test_random_rows_with_offsets_are_told_apart_as_the_program_says(seed):
    random = np.random.default_rng(seed)
    K, d = int(random.choice([2, 3])), int(random.integers(1, 4))
    n = int(random.integers(K + 1, 14))
    X, y = random.integers(-2, 3, size=(n, d)).astype(float), random.integers(K, size=n)
    y[:K] = np.arange(K)
    offset = random.normal(size=(n,) if K == 2 else (n, K)) * random.choice([1, 4, 10])
    solver = str(random.choice(["newton", "gradient", "coordinate"]))
    model, warned = fitted(LogisticRegression(solver=solver), X, y, offset=offset)
    kind = truth(X, y, K)
    assert model.separation_.kind == kind
    assert warned == (kind != "none")
    near, _ = fitted(LogisticRegression(prior=1e-10), X, y, offset=offset)
    assert model.log_likelihood_ >= near.log_likelihood_ - 1e-6
    assert model.log_likelihood_ == pytest.approx(near.log_likelihood_, abs=1e-3)


@pytest.mark.parametrize("seed", range(40))
def test_a_prior_on_some_columns_leaves_the_others_to_run(seed):
    random = np.random.default_rng(seed)
    d, n = 3, int(random.integers(4, 12))
    X, y = random.integers(-2, 3, size=(n, d)).astype(float), random.integers(2, size=n)
    y[:2] = [0, 1]
    precision = np.array([1.0, 0.0, 0.0])
    model, warned = fitted(LogisticRegression(prior=GaussianPrior(precision=precision)), X, y)
    kind = truth(X, y, 2, held=[False, True, False, False])
    assert warned == (kind != "none")
    assert model.separation_.kind == (kind if kind != "none" else truth(X, y, 2))
    near = LogisticRegression(prior=GaussianPrior(precision=np.maximum(precision, 1e-9)))
    near.fit(X, y)
    found, known = (m.log_likelihood_ - 0.5 * m.coef_[0, 0] ** 2 for m in (model, near))
    assert found >= known - 1e-6
    assert found == pytest.approx(known, abs=1e-3)


def test_columns_that_depend_on_others_do_not_bend_the_way_out():
    X = [[1.0, 1.0], [-1, -3], [1, 1], [0, -1], [0, -1], [-1, -3]]
    with pytest.warns((SeparationWarning, RankDeficiencyWarning)):
        model = LogisticRegression().fit(X, [0, 1, 0, 0, 0, 0])
    assert model.separation_.kind == "quasi"
    assert model.log_likelihood_ == pytest.approx(-2 * np.log(2), rel=1e-12)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], [0, 0.5, 0, 0, 0, 0.5], atol=1e-9)


def test_no_free_parameter_at_all_is_a_fit_of_one_half():
    model = LogisticRegression(fit_intercept=False).fit([[0, 0], [0, 0]], [0, 1])
    np.testing.assert_array_equal(model.coef_, [[0.0, 0.0]])
    assert model.log_likelihood_ == pytest.approx(-2 * np.log(2), rel=1e-15)
    assert model.separation_.kind == "none"
    assert model.converged_


def test_the_message_names_columns_and_leaves_out_the_intercept():
    X, y = np.array([[1.0], [2.0], [3.0], [4.0]]), [0, 0, 1, 1]
    with pytest.warns(SeparationWarning, match=r"already by 'x0' \(with the intercept\) alone"):
        model = LogisticRegression().fit(X, y)
    assert model.separation_.columns == ("intercept", "x0")
    assert repr(model.separation_) == "Separation(kind='complete', columns=('intercept', 'x0'))"
    with pytest.warns(SeparationWarning, match="already by 'x0' alone"):
        LogisticRegression(fit_intercept=False).fit(X - 2.5, y)


@pytest.mark.filterwarnings("ignore::posteriori.errors.BoundaryWarning")
@pytest.mark.parametrize(("link", "kind"), [("identity", "none"), ("log", "quasi")])
def test_which_coefficients_run_depends_on_the_link_and_not_on_the_prior(link, kind):
    # All of the second level are zeros: ln p of the others is bounded, that of theirs is not.
    X, y = np.array([[0.0], [0], [0], [0], [1], [1], [1]]), [1, 1, 0, 1, 0, 0, 0]
    free, warned = fitted(GLM(family="bernoulli", link=link), X, y)
    held, _ = fitted(GLM(family="bernoulli", link=link, prior=1.0), X, y)
    assert free.separation_.kind == held.separation_.kind == kind
    assert warned == (kind != "none")
    if kind == "quasi":
        assert not free.converged_
        assert free.separation_.columns == held.separation_.columns == ("x0",)
        np.testing.assert_array_equal(held.separation_.directions, [-1.0])


def test_counts_that_are_all_zero_are_told_of_with_a_prior_too():
    X, y = np.array([[0.0], [0], [0], [1], [1]]), [3, 1, 2, 0, 0]
    free, warned = fitted(GLM(family="poisson"), X, y)
    held, silent = fitted(GLM(family="poisson", prior=1.0), X, y)
    assert warned
    assert not silent
    assert not free.converged_
    assert held.converged_
    assert free.separation_.columns == held.separation_.columns == ("x0",)
    assert free.intercept_ == pytest.approx(np.log(2), rel=1e-9)
