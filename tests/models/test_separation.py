"""Maximum likelihood where the classes can be separated: found, named, with right numbers."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine

from posteriori import (
    GLM,
    GaussianPrior,
    LogisticRegression,
    Mixture,
    ProbitRegression,
    ThresholdRegression,
)
from posteriori.errors import ConvergenceWarning, SeparationWarning
from posteriori.solve import separation as solve_separation

pytestmark = pytest.mark.filterwarnings("ignore::posteriori.errors.RankDeficiencyWarning")

IRIS_X, IRIS_Y = load_iris(return_X_y=True)


def one_sided(n=200, seed=0):
    """Rows with a flag that is only ever seen with the second class."""
    random = np.random.default_rng(seed)
    X = np.column_stack([random.normal(size=n), random.integers(0, 2, n)])
    y = (X[:, 0] + random.logistic(size=n) > 0) | (X[:, 1] == 1)
    return X, y.astype(int)


def test_rows_that_are_not_separated_get_the_fit_that_they_have_alone():
    X, y = one_sided()
    with pytest.warns(SeparationWarning, match="some of the rows .* by 'x1'"):
        model = LogisticRegression().fit(X, y)
    open_rows = X[:, 1] == 0
    alone = LogisticRegression().fit(X[open_rows][:, :1], y[open_rows])
    assert model.separation_.kind == "quasi"
    assert model.separation_.columns == ("x1",)
    np.testing.assert_array_equal(model.separation_.directions, [1.0])
    np.testing.assert_allclose(model.coef_[0, 0], alone.coef_[0, 0], rtol=1e-8)
    np.testing.assert_allclose(model.intercept_, alone.intercept_, rtol=1e-8)
    assert model.log_likelihood_ == pytest.approx(alone.log_likelihood_, rel=1e-12)
    np.testing.assert_array_equal(model.predict_proba(X[~open_rows])[:, 1], 1.0)
    found = model.coef_covariance_
    np.testing.assert_allclose(found[:2, :2], alone.coef_covariance_, rtol=1e-7)
    assert found[2, 2] == np.inf
    assert not np.isnan(found).any()


def test_a_factor_with_pure_levels_has_the_fit_of_the_other_levels():
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"f": random.integers(0, 60, 600), "x": random.normal(size=600)})
    frame["f"] = frame["f"].astype(str)
    y = (frame["x"] + random.logistic(size=600) > 0).astype(int)
    y[frame["f"].isin(["0", "7", "33"])] = 1
    pure = y.groupby(frame["f"]).transform("nunique") == 1
    with pytest.warns(SeparationWarning):
        found = LogisticRegression().fit(frame, y).tidy().set_index("term")
    alone = LogisticRegression().fit(frame[~pure], y[~pure]).tidy().set_index("term")
    assert np.isinf(found.loc["f[7]", "std_error"])
    columns = ["estimate", "std_error"]
    np.testing.assert_allclose(found.loc["x", columns], alone.loc["x", columns], rtol=1e-6)


def test_with_many_classes_those_that_overlap_keep_their_fit():
    with pytest.warns(SeparationWarning):
        model = LogisticRegression().fit(IRIS_X, IRIS_Y)
    rest = IRIS_Y > 0
    alone = LogisticRegression().fit(IRIS_X[rest], IRIS_Y[rest])
    assert model.separation_.kind == "quasi"
    assert model.log_likelihood_ == pytest.approx(alone.log_likelihood_, rel=1e-9)
    np.testing.assert_allclose(
        model.predict_proba(IRIS_X[rest])[:, 1:], alone.predict_proba(IRIS_X[rest]), atol=1e-8
    )
    np.testing.assert_allclose(model.predict_proba(IRIS_X[~rest])[:, 0], 1.0, rtol=1e-15)


@pytest.mark.parametrize("prior", [1.0, "jeffreys"])
def test_a_prior_keeps_coefficients_finite_and_still_tells_of_the_separation(prior):
    X, y = one_sided()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LogisticRegression(prior=prior).fit(X, y)
    assert abs(model.coef_).max() < 10
    assert model.separation_.kind == "quasi"


def test_nearly_separated_classes_have_their_finite_maximum():
    x = np.concatenate([np.linspace(-1, 0.0, 50), np.linspace(0.02, 1, 50), [0.05, -0.05]])
    y = np.concatenate([np.zeros(50), np.ones(50), [0, 1]]).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LogisticRegression().fit(x[:, None], y)
    residual = model.predict_proba(x[:, None])[:, 1] - y
    np.testing.assert_allclose([residual.sum(), residual @ x], 0.0, atol=1e-9)
    assert model.separation_.kind == "none"


BUMPS = Mixture([0.4, 0.6], [stats.norm(-1, 0.5), stats.norm(1.5, 1)])
LINKED = {
    "logit": LogisticRegression(),
    "cloglog": GLM(family="bernoulli", link="cloglog"),
    "largest of many": ThresholdRegression(noise="gumbel_r"),
    "one end": ThresholdRegression(noise="expon"),
    "two bumps": ThresholdRegression(noise=BUMPS),
    "heavy tails": ThresholdRegression(noise="cauchy"),
    "probit": ProbitRegression(),
    "two ends": ThresholdRegression(noise="uniform"),
}
linked = pytest.mark.parametrize("model", LINKED.values(), ids=LINKED)


@linked
def test_rows_have_probability_one_with_every_link(model):
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = (X[:, 0] + 0.5 * X[:, 1] > 0.3).astype(int)
    with pytest.warns(SeparationWarning, match="all rows"):
        model = clone(model).fit(X, y)
    assert model.separation_.kind == "complete"
    assert not model.converged_
    np.testing.assert_allclose(model.predict_proba(X)[np.arange(60), y], 1.0, rtol=1e-15)
    assert model.log_likelihood_ == pytest.approx(0.0, abs=1e-13)
    assert model.score(X, y) == 1.0


def fitted(model, *args, **given):
    """The fit, and whether it warned of separation."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(*args, **given)
    return model, any(isinstance(w.message, SeparationWarning) for w in caught)


RANDOM = np.random.default_rng(1)
MANY = {
    "auto": (RANDOM.normal(size=(50, 400)), RANDOM.integers(0, 2, 50), LogisticRegression()),
    "gradient": (
        RANDOM.normal(size=(60, 300)), RANDOM.integers(0, 2, 60),
        LogisticRegression(solver="gradient"),
    ),
    "three classes": (
        RANDOM.normal(size=(60, 120)), RANDOM.integers(0, 3, 60), LogisticRegression(),
    ),
    "wine": (*load_wine(return_X_y=True), GLM(family="categorical")),
}  # fmt: skip


@pytest.mark.parametrize("name", MANY)
def test_many_columns_or_classes_that_are_separated_are_certain(name):
    X, y, model = MANY[name]
    model, warned = fitted(model, X, y)
    assert warned
    assert model.separation_.kind == "complete"
    assert not model.converged_
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
def test_a_prior_on_slopes_does_not_hold_the_intercept_of_a_class_without_rows(solver):
    random = np.random.default_rng(1)
    X = random.normal(size=(60, 2))
    soft = np.eye(3)[(X[:, 0] + random.logistic(size=60) > 0).astype(int)]
    model = LogisticRegression(prior=1.0, solver=solver)
    with pytest.warns(
        SeparationWarning, match="prior on the intercepts too: .*intercept_precision"
    ):
        model.fit(X, soft)
    assert model.separation_.columns == ("intercept",)
    # Each of two classes has half of the difference: |V|² = ½ |w|².
    alone = LogisticRegression(prior=0.5, solver=solver).fit(X, soft[:, 1] > 0)
    proba = model.predict_proba(X)
    held = GaussianPrior(1.0, intercept_precision=0.01)
    assert LogisticRegression(prior=held).fit(X, soft).converged_
    np.testing.assert_allclose(proba[:, :2], alone.predict_proba(X), rtol=1e-6)
    assert proba[:, 2].max() < 1e-15


def test_a_prior_on_some_columns_leaves_the_others_free_to_diverge():
    X, y = one_sided()
    model, warned = fitted(LogisticRegression(prior=GaussianPrior(precision=[1.0, 0.0])), X, y)
    assert warned
    assert model.separation_.columns == ("x1",)
    near = LogisticRegression(prior=GaussianPrior(precision=[1.0, 1e-9])).fit(X, y)
    np.testing.assert_allclose(model.coef_[0, 0], near.coef_[0, 0], rtol=1e-6)
    _, warned = fitted(LogisticRegression(prior=GaussianPrior(precision=[0.0, 1.0])), X, y)
    assert not warned


def test_the_message_names_the_columns():
    X, y = np.array([[1.0], [2.0], [3.0], [4.0]]), [0, 0, 1, 1]
    with pytest.warns(SeparationWarning, match=r"already by 'intercept', 'x0' alone"):
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


def test_a_column_without_an_intercept_whose_program_is_badly_scaled_has_its_maximum():
    X, y = np.array([[0.0], [0.0], [1e6], [1.0], [2.0]]), np.array([0, 1, 1, 0, 1])
    model = LogisticRegression(fit_intercept=False).fit(X, y)
    residual = y - model.predict_proba(X)[:, 1]
    assert model.separation_.kind == "none"
    assert X[:, 0] @ residual == pytest.approx(0.0, abs=1e-9)


def test_a_search_that_does_not_decide_ends_with_a_warning_and_a_remedy(monkeypatch):
    monkeypatch.setattr(solve_separation, "_WORK", 1e3)
    random = np.random.default_rng(0)
    X, y = random.normal(size=(300, 3)), random.integers(0, 100, 300)
    with pytest.warns(ConvergenceWarning, match="not decided.*prior=1.0"):
        model = LogisticRegression().fit(X, y)
    assert model.separation_.kind == "undecided"
    assert not model.converged_
    assert model.n_iter_ < 30
