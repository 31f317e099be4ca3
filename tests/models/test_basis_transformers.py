"""Basis functions as scikit-learn transformers: where the centres go, and what comes out."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_moons
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.estimator_checks import parametrize_with_checks

from posteriori import FisherDiscriminant, LeastSquaresClassifier, threads
from posteriori.errors import (
    ColumnNameError,
    ColumnTypeError,
    InfiniteValueError,
    MissingValueError,
    ParameterError,
    ScaleError,
    ShapeError,
)
from posteriori.models.basis import GaussianBasis, SigmoidBasis

BOTH = [GaussianBasis, SigmoidBasis]
KINDS = [
    GaussianBasis(),
    GaussianBasis(centres=3, placement="grid", units="original"),
    GaussianBasis(centres=4, width=0.7),
    SigmoidBasis(),
    SigmoidBasis(centres=3, placement="grid"),
    SigmoidBasis(centres=[-1.0, 0.0, 2.0], width=0.5, units="original"),
]


def some_rows(n=200, d=3, seed=0):
    random = np.random.default_rng(seed)
    return random.normal(size=(n, d)) * [1.0, 10.0, 0.1][:d] + [0.0, 50.0, -2.0][:d]


def brute_force(basis, X, unit):
    step = (X[:, None, :] - basis.centres_) / unit / basis.width_
    return np.exp(-0.5 * np.square(step).sum(axis=2))


@parametrize_with_checks(
    [
        GaussianBasis(),
        GaussianBasis(centres=2, placement="grid"),
        SigmoidBasis(),
        SigmoidBasis(placement="grid"),
    ]
)
def test_transformers_keep_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


def test_gaussians_measure_distances_in_standard_deviations():
    X, new = some_rows(), some_rows(seed=1)
    basis = GaussianBasis(centres=15).fit(X)
    np.testing.assert_allclose(basis.transform(new), brute_force(basis, new, X.std(axis=0)), 1e-12)


def test_gaussians_measure_distances_as_they_are_if_asked():
    X, new = some_rows(), some_rows(seed=1)
    basis = GaussianBasis(centres=X[:6], width=8.0, units="original").fit(X)
    np.testing.assert_array_equal(basis.centres_, X[:6])
    np.testing.assert_allclose(basis.transform(new), brute_force(basis, new, np.ones(3)), 1e-12)


def test_centres_on_data_are_distinct_rows_of_the_data():
    X = some_rows()
    centres = GaussianBasis(centres=40).fit(X).centres_
    assert len(np.unique(centres, axis=0)) == 40
    assert {*map(tuple, centres)} <= {*map(tuple, X)}


def test_the_order_of_the_rows_does_not_matter():
    X = some_rows(300)
    shuffled = np.random.default_rng(2).permutation(X)
    a, b = GaussianBasis().fit(X), GaussianBasis().fit(shuffled)
    np.testing.assert_array_equal(a.centres_, b.centres_)
    np.testing.assert_allclose(a.transform(X), b.transform(X), rtol=1e-11)


@pytest.mark.parametrize("basis", KINDS[:1] + KINDS[2:5], ids=str)
@pytest.mark.parametrize("factor", [3.7, 1e150, 1e-150])
def test_units_and_origins_of_the_columns_do_not_matter(basis, factor):
    X, scale = some_rows(100), np.array([factor, 1.0, 1 / factor])
    expected = clone(basis).fit_transform(X)
    np.testing.assert_allclose(clone(basis).fit_transform(X * scale), expected, rtol=1e-9)
    shifted = clone(basis).fit_transform(X + np.array([1e6, -1e7, 1e5]))
    np.testing.assert_allclose(shifted, expected, rtol=1e-5, atol=1e-8)


def test_the_width_is_the_spacing_of_the_centres():
    line = np.linspace(0.0, 10.0, 101)[:, None]
    on_grid = GaussianBasis(centres=5, placement="grid", units="original").fit(line)
    np.testing.assert_allclose(on_grid.centres_[:, 0], [1, 3, 5, 7, 9])
    assert on_grid.width_ == pytest.approx(2.0)
    given = GaussianBasis(centres=[0.0, 1.0, 3.0, 7.0], units="original").fit(line)
    assert given.width_ == pytest.approx(1.5)
    assert GaussianBasis(centres=1, units="original").fit(line).width_ == pytest.approx(line.std())
    assert GaussianBasis(centres=[[4.0]]).fit(line).width_ == pytest.approx(1.0)


def test_a_grid_spans_the_columns_and_takes_constant_ones_once():
    X = np.column_stack([np.linspace(0, 4, 50), np.linspace(0, 8, 50), np.full(50, 3.0)])
    basis = GaussianBasis(centres=2, placement="grid").fit(X)
    np.testing.assert_allclose(basis.centres_, [[1, 2, 3], [1, 6, 3], [3, 2, 3], [3, 6, 3]])
    with pytest.raises(ParameterError, match="would have 1e\\+06 centres"):
        GaussianBasis(centres=1000, placement="grid").fit(X[:, :2])


def test_by_default_a_tenth_of_the_rows_are_centres():
    for n, expected in ((3, 3), (60, 10), (450, 45), (4000, 100)):
        assert len(GaussianBasis().fit(some_rows(n)).centres_) == expected
    assert len(GaussianBasis().fit(np.tile(some_rows(7), (30, 1))).centres_) == 7
    assert len(GaussianBasis(placement="grid").fit(some_rows(50, 2)).centres_) == 25


def test_more_centres_than_distinct_rows_are_refused():
    X = np.tile(some_rows(6), (5, 1))
    with pytest.raises(ParameterError, match="centres=7, but X has 6 distinct rows"):
        GaussianBasis(centres=7).fit(X)


def test_a_constant_column_is_left_out_of_the_distances():
    X = some_rows(100, 2)
    wider = np.column_stack([X, np.full(100, 0.1)])
    basis = GaussianBasis(centres=X[:5]).fit(X)
    with_it = GaussianBasis(centres=wider[:5]).fit(wider)
    wider[:, 2] = 1e9
    np.testing.assert_allclose(with_it.transform(wider), basis.transform(X), rtol=1e-12)
    np.testing.assert_array_equal(GaussianBasis().fit_transform(np.ones((4, 2))), 1.0)


def test_sigmoids_are_steps_of_each_column():
    X, new = some_rows(), some_rows(seed=1)
    basis = SigmoidBasis(centres=4).fit(X)
    expected = [
        expit((new[:, [k]] - basis.centres_[k]) / basis.width_[k]) for k in range(X.shape[1])
    ]
    np.testing.assert_allclose(basis.transform(new), np.hstack(expected), rtol=1e-12)
    for k in range(3):
        np.testing.assert_allclose(
            basis.centres_[k], np.quantile(X[:, k], [0.125, 0.375, 0.625, 0.875])
        )
        assert basis.width_[k] == pytest.approx(np.median(np.diff(basis.centres_[k])) / 2)


def test_sigmoids_have_the_width_that_is_asked_for():
    X = some_rows()
    standard = SigmoidBasis(width=0.3).fit(X)
    np.testing.assert_allclose(standard.width_, 0.3 * X.std(axis=0), rtol=1e-12)
    np.testing.assert_array_equal(SigmoidBasis(width=0.3, units="original").fit(X).width_, 0.3)
    single = SigmoidBasis(centres=1, placement="grid").fit(X)
    np.testing.assert_allclose(single.width_, 0.5 * X.std(axis=0), rtol=1e-12)
    np.testing.assert_allclose(np.ravel(single.centres_), (X.min(axis=0) + X.max(axis=0)) / 2)


def test_a_column_has_five_sigmoids_by_default():
    X = some_rows(d=2)
    np.testing.assert_array_equal(
        SigmoidBasis().fit_transform(X), SigmoidBasis(centres=5).fit_transform(X)
    )
    assert [len(steps) for steps in SigmoidBasis().fit(X).centres_] == [5, 5]


def test_equal_sigmoids_are_kept_once_and_a_constant_column_gives_a_half():
    X = np.column_stack([np.repeat([0.0, 1.0], 50), np.full(100, 7.0)])
    basis = SigmoidBasis(centres=4).fit(X)
    assert [len(steps) for steps in basis.centres_] == [2, 1]
    np.testing.assert_array_equal(basis.transform(X + 1)[:, 2], 0.5)
    assert list(basis.get_feature_names_out(["a", "b"])) == [
        "a_sigmoid0",
        "a_sigmoid1",
        "b_sigmoid0",
    ]


@pytest.mark.parametrize("basis", KINDS, ids=str)
def test_every_source_gives_the_same_values(basis):
    X = some_rows(120)
    X[np.abs(X - X.mean(axis=0)) < 0.5 * X.std(axis=0)] = 0.0
    fitted = clone(basis).fit(X)
    expected = fitted.transform(X)
    names = list("abc")
    sources = [
        np.asfortranarray(X),
        sparse.csr_array(X),
        sparse.csc_matrix(X),
        pd.DataFrame(X, columns=names),
        pl.DataFrame(X, schema=names),
    ]
    for source in sources:
        np.testing.assert_allclose(clone(basis).fit(source).transform(source), expected, rtol=1e-10)
    np.testing.assert_array_equal(fitted.transform(sparse.csr_array(X)), expected)


@pytest.mark.parametrize("basis", KINDS, ids=str)
def test_blocks_and_threads_do_not_change_a_bit(basis):
    X = some_rows(60_000)
    fitted = clone(basis).fit(X[:500])
    with threads(1):
        expected = fitted.transform(X)
    with threads(2):
        np.testing.assert_array_equal(fitted.transform(X), expected)
    np.testing.assert_allclose(fitted.transform(X[-100:]), expected[-100:], rtol=1e-12)


def test_centres_are_placed_by_a_sample_of_many_rows():
    X = some_rows(30_000)
    a, b = GaussianBasis(centres=20).fit(X), GaussianBasis(centres=20).fit(X)
    np.testing.assert_array_equal(a.centres_, b.centres_)
    other = GaussianBasis(centres=20, random_state=1).fit(X)
    assert (other.centres_ != a.centres_).any()
    quantiles = np.array(SigmoidBasis(centres=3).fit(X).centres_)
    spread = X.std(axis=0)[:, None]
    assert (abs(quantiles - np.quantile(X, [1 / 6, 1 / 2, 5 / 6], axis=0).T) / spread < 0.05).all()


@pytest.mark.parametrize("kind", BOTH)
def test_an_entry_that_is_no_number_is_named_by_row_and_column(kind):
    frame = pd.DataFrame(some_rows(50), columns=["a", "b", "c"])
    fitted = kind().fit(frame)
    frame.loc[31, "b"] = np.nan
    with pytest.raises(MissingValueError, match="row 31, column 'b'"):
        fitted.transform(frame)
    with pytest.raises(MissingValueError, match="row 31, column 'b'"):
        kind().fit(frame)
    frame.loc[30, "c"] = np.inf
    with pytest.raises(InfiniteValueError, match="row 30, column 'c'"):
        fitted.transform(frame)


@pytest.mark.parametrize("kind", BOTH)
def test_columns_of_levels_are_refused_by_name(kind):
    frame = pd.DataFrame({"a": [1.0, 2.0], "colour": ["red", "blue"]})
    with pytest.raises(ColumnTypeError, match=f"{kind.__name__} needs numbers.*'colour'"):
        kind().fit(frame)
    beside = make_column_transformer((kind(), ["a"]), remainder="passthrough")
    assert beside.fit_transform(frame)[1, -1] == "blue"


@pytest.mark.parametrize("kind", BOTH)
def test_columns_are_those_of_the_fit(kind):
    frame = pd.DataFrame(some_rows(50), columns=["a", "b", "c"])
    fitted = kind().fit(frame)
    np.testing.assert_array_equal(fitted.feature_names_in_, ["a", "b", "c"])
    assert fitted.n_features_in_ == 3
    np.testing.assert_array_equal(fitted.transform(frame[["c", "a", "b"]]), fitted.transform(frame))
    with pytest.raises(ColumnNameError, match="missing since fit time: 'b'"):
        fitted.transform(frame.drop(columns="b"))
    with pytest.raises(ShapeError, match="X has 2 features"):
        kind().fit(frame.to_numpy()).transform(np.ones((4, 2)))
    refitted = fitted.fit(frame.to_numpy())
    assert not hasattr(refitted, "feature_names_in_")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_the_output_can_be_a_data_frame(library):
    frame = pd.DataFrame(some_rows(20, 2), columns=["a", "b"], index=range(100, 120))
    gaussian = GaussianBasis(centres=3).set_output(transform=library).fit(frame)
    out = gaussian.transform(frame)
    assert list(out.columns) == ["gaussianbasis0", "gaussianbasis1", "gaussianbasis2"]
    sigmoid = SigmoidBasis(centres=2).set_output(transform=library).fit(frame)
    steps = sigmoid.transform(frame)
    assert list(steps.columns) == ["a_sigmoid0", "a_sigmoid1", "b_sigmoid0", "b_sigmoid1"]
    assert isinstance(steps, {"pandas": pd, "polars": pl}[library].DataFrame)
    np.testing.assert_array_equal(
        steps.to_numpy(), sigmoid.set_output(transform="default").transform(frame)
    )


@pytest.mark.parametrize("basis", KINDS, ids=str)
def test_a_fitted_basis_survives_pickling_and_cloning(basis):
    X = some_rows(50)
    fitted = clone(basis).fit(X)
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(fitted)).transform(X), fitted.transform(X)
    )
    np.testing.assert_array_equal(clone(fitted).fit_transform(X), fitted.transform(X))
    with pytest.raises(NotFittedError):
        clone(fitted).transform(X)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"placement": "random"}, "placement='random' is not known"),
        ({"units": "metres"}, "units='metres' is not known"),
        ({"centres": 0}, "centres=0 is too few"),
        ({"centres": np.int64(-2)}, "centres=-2 is too few"),
        ({"centres": True}, "centres=True is not a number"),
        ({"width": True}, "width=True is not a width"),
        ({"width": 0.0}, "width=0.0 is not a width"),
        ({"width": np.inf}, "width=inf is not a width"),
        ({"width": "wide"}, "width='wide' is not a width"),
        ({"centres": [[np.nan] * 3]}, "centres holds NaN"),
    ],
)
@pytest.mark.parametrize("kind", BOTH)
def test_settings_that_cannot_be_honoured_are_named(kind, settings, message):
    with pytest.raises(ParameterError, match=message):
        kind(**settings).fit(some_rows(20))


def test_a_fit_that_fails_leaves_the_basis_as_it_was():
    X = some_rows(50)
    basis = GaussianBasis(centres=5).fit(X)
    before = basis.transform(X)
    with pytest.raises(ParameterError):
        basis.set_params(centres=51).fit(X)
    with pytest.raises(ScaleError, match="in columns 0, 1, 2"):
        basis.set_params(centres=5, width=1e-310).fit(X)
    np.testing.assert_array_equal(basis.transform(X), before)


def test_moons_are_told_apart_by_a_linear_model_of_gaussians():
    X, y = make_moons(600, noise=0.15, random_state=0)
    train, test = slice(0, 400), slice(400, 600)

    def score(*steps):
        model = make_pipeline(*steps, LeastSquaresClassifier()).fit(X[train], y[train])
        return model.score(X[test], y[test])

    straight, bumps = score(), score(GaussianBasis())
    cubic = score(PolynomialFeatures(3, include_bias=False))
    assert straight < 0.9
    assert bumps > 0.985
    assert bumps >= cubic


def test_a_ring_is_told_apart_by_sigmoids_of_each_column():
    X = np.random.default_rng(0).normal(size=(1000, 2))
    y = np.square(X).sum(axis=1) > 1.4
    model = make_pipeline(SigmoidBasis(), FisherDiscriminant()).fit(X, y)
    assert FisherDiscriminant().fit(X, y).score(X, y) < 0.6
    assert model.score(X, y) > 0.95


def test_the_number_of_centres_can_be_searched():
    X, y = make_moons(200, noise=0.2, random_state=0)
    model = make_pipeline(GaussianBasis(), LeastSquaresClassifier())
    search = GridSearchCV(model, {"gaussianbasis__centres": [1, 20]}).fit(X, y)
    assert search.best_params_ == {"gaussianbasis__centres": 20}
    assert search.best_score_ > 0.93


@pytest.mark.slow
def test_memory_beside_the_output_is_bounded():
    code = """
import resource
import numpy as np
from posteriori.models.basis import GaussianBasis
X = np.random.default_rng(0).normal(size=(400_000, 1))
basis = GaussianBasis(centres=100).fit(X[:1000])
basis.transform(X[:20_000])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
out = basis.transform(X)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print((after - before) / 1024 - out.nbytes / 2**20)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(run.stdout) < 60
