"""Basis functions as scikit-learn transformers: where the centres are, and the values."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from scipy.special import expit
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError

from posteriori import GaussianBasis, SigmoidBasis, threads
from posteriori.errors import (
    ColumnNameError,
    ColumnTypeError,
    MissingValueError,
    ParameterError,
    ShapeError,
)

BOTH = pytest.mark.parametrize("kind", [GaussianBasis, SigmoidBasis])
KINDS = pytest.mark.parametrize(
    "basis",
    [
        GaussianBasis(),
        GaussianBasis(centres=3, placement="grid", units="original"),
        SigmoidBasis(),
        SigmoidBasis(centres=[-1.0, 0.0, 2.0], width=0.5, units="original"),
    ],
    ids=str,
)


def some_rows(n=200, d=3, seed=0):
    random = np.random.default_rng(seed)
    return random.normal(size=(n, d)) * [1.0, 10.0, 0.1][:d] + [0.0, 50.0, -2.0][:d]


@pytest.mark.parametrize(("units", "width"), [("standardised", None), ("original", 8.0)])
def test_gaussians_are_functions_of_the_distance(units, width):
    X, new = some_rows(), some_rows(seed=1)
    basis = GaussianBasis(centres=15, width=width, units=units).fit(X)
    unit = X.std(axis=0) if units == "standardised" else 1.0
    step = (new[:, None, :] - basis.centres_) / unit / basis.width_
    expected = np.exp(-0.5 * np.square(step).sum(axis=2))
    np.testing.assert_allclose(basis.transform(new), expected, 1e-11)


def test_centres_are_not_rows_of_the_data_unless_given():
    X = some_rows(400)
    basis = GaussianBasis().fit(X)
    letter = pickle.dumps(basis)
    assert not {*map(tuple, basis.centres_)} & {*map(tuple, X)}
    assert not any(row.tobytes() in letter for row in X)
    assert len(np.unique(basis.centres_, axis=0)) == 40
    np.testing.assert_array_equal(GaussianBasis(centres=X[:6]).fit(X).centres_, X[:6])
    for n, expected in ((3, 2), (60, 10), (450, 45), (4000, 100)):
        assert len(GaussianBasis().fit(some_rows(n)).centres_) == expected
    assert len(GaussianBasis().fit(np.tile(some_rows(7), (30, 1))).centres_) == 4
    one, same, other = (SigmoidBasis(random_state=s).fit(some_rows(30_000)) for s in (0, 0, 1))
    np.testing.assert_array_equal(one.centres_, same.centres_)
    assert (one.centres_[0] != other.centres_[0]).any()


def test_the_width_is_the_spacing_of_the_centres():
    line = np.linspace(0.0, 10.0, 101)[:, None]
    on_grid = GaussianBasis(centres=5, placement="grid", units="original").fit(line)
    np.testing.assert_allclose(on_grid.centres_[:, 0], [1, 3, 5, 7, 9])
    assert on_grid.width_ == pytest.approx(2.0)
    given = GaussianBasis(centres=[0.0, 1.0, 3.0, 7.0], units="original").fit(line)
    assert given.width_ == pytest.approx(1.5)
    assert GaussianBasis(centres=1, units="original").fit(line).width_ == pytest.approx(line.std())
    assert GaussianBasis(centres=[[4.0]]).fit(line).width_ == pytest.approx(1.0)


def test_constant_columns_are_left_out():
    X = np.column_stack([np.linspace(0, 4, 50), np.linspace(0, 8, 50), np.full(50, 3.0)])
    basis = GaussianBasis(centres=2, placement="grid").fit(X)
    np.testing.assert_allclose(basis.centres_, [[1, 2, 3], [1, 6, 3], [3, 2, 3], [3, 6, 3]])
    narrow = GaussianBasis(centres=X[:5, :2]).fit(X[:, :2])
    wide = GaussianBasis(centres=X[:5]).fit(X)
    X[:, 2] = 1e9
    np.testing.assert_allclose(wide.transform(X), narrow.transform(X[:, :2]), rtol=1e-12)
    np.testing.assert_array_equal(GaussianBasis().fit_transform(np.ones((4, 2))), 1.0)
    with pytest.raises(ParameterError, match="would have 1e\\+06 centres"):
        GaussianBasis(centres=1000, placement="grid").fit(X[:, :2])


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
    wide = SigmoidBasis(width=0.3).fit(X)
    np.testing.assert_allclose(wide.width_, 0.3 * X.std(axis=0), rtol=1e-12)
    assert [len(steps) for steps in wide.centres_] == [5, 5, 5]
    np.testing.assert_array_equal(SigmoidBasis(width=0.3, units="original").fit(X).width_, 0.3)
    single = SigmoidBasis(centres=1, placement="grid").fit(X)
    np.testing.assert_allclose(single.width_, 0.5 * X.std(axis=0), rtol=1e-12)
    np.testing.assert_allclose(np.ravel(single.centres_), (X.min(axis=0) + X.max(axis=0)) / 2)
    # Equal sigmoids count once, and a constant column gives a half.
    X = np.column_stack([np.repeat([0.0, 1.0], 50), np.full(100, 7.0)])
    basis = SigmoidBasis(centres=4).fit(X)
    assert [len(steps) for steps in basis.centres_] == [2, 1]
    np.testing.assert_array_equal(basis.transform(X + 1)[:, 2], 0.5)
    names = basis.get_feature_names_out(["a", "b"]).tolist()
    out = basis.set_output(transform="pandas").transform(pd.DataFrame(X))
    assert out.columns.tolist() == basis.get_feature_names_out().tolist()
    assert names == ["a_sigmoid0", "a_sigmoid1", "b_sigmoid0"]


@KINDS
def test_containers_blocks_threads_and_copies_give_the_same_values(basis):
    X = some_rows(30_000)
    X[np.abs(X - X.mean(axis=0)) < 0.5 * X.std(axis=0)] = 0.0
    few, names = X[:500], list("abc")
    fitted = clone(basis).fit(few)
    expected = fitted.transform(few)
    for make in (
        sparse.csr_array,
        lambda X: pd.DataFrame(X, columns=names),
        lambda X: pl.DataFrame(X, schema=names),
    ):
        found = clone(basis).fit(make(few)).transform(make(few))
        np.testing.assert_allclose(found, expected, rtol=1e-10)
    with threads(1):
        whole = fitted.transform(X)
    with threads(2):
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).transform(X), whole)
    np.testing.assert_allclose(expected, whole[:500], rtol=1e-12)
    np.testing.assert_array_equal(clone(fitted).fit_transform(few), expected)
    with pytest.raises(NotFittedError):
        clone(fitted).transform(X)


@BOTH
def test_columns_are_numbers_with_the_names_of_the_fit(kind):
    frame = pd.DataFrame(some_rows(50), columns=["a", "b", "c"])
    fitted = kind().fit(frame)
    np.testing.assert_array_equal(fitted.transform(frame[["c", "a", "b"]]), fitted.transform(frame))
    with pytest.raises(ColumnNameError, match="missing since fit time: 'b'"):
        fitted.transform(frame.drop(columns="b"))
    gaps = frame.copy()
    gaps.loc[31, "b"] = np.nan
    for method in (fitted.transform, kind().fit):
        with pytest.raises(MissingValueError, match="row 31, column 'b'"):
            method(gaps)
    assert not hasattr(fitted.fit(frame.to_numpy()), "feature_names_in_")
    frame = pd.DataFrame({"a": [1.0, 2.0], "colour": ["red", "blue"]})
    with pytest.raises(ColumnTypeError, match=f"{kind.__name__} needs numbers.*'colour'"):
        kind(centres=1).fit(frame)
    beside = make_column_transformer((kind(centres=1), ["a"]), remainder="passthrough")
    assert beside.fit_transform(frame)[1, -1] == "blue"


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"placement": "random"}, ParameterError, "placement='random'"),
        ({"units": "metres"}, ParameterError, "units='metres'"),
        ({"centres": 0}, ParameterError, "centres=0 is not a number of centres"),
        ({"centres": 2.5}, ParameterError, "centres=2.5 is not a number of centres"),
        ({"centres": True}, ParameterError, "centres=True is not a number of centres"),
        ({"width": True}, ParameterError, "width=True is out of range"),
        ({"width": 0.0}, ParameterError, "width=0.0 is out of range"),
        ({"centres": [[np.nan] * 3]}, ValueError, "Input centres contains NaN"),
        ({"centres": "many"}, ParameterError, "centres='many' is not a number of centres"),
        ({"centres": [[1.0, 2.0]]}, ShapeError, r"centres has shape \(1, 2\), but X has 3 columns"),
        ({"centres": np.empty((0, 3))}, ValueError, "0 sample"),
    ],
)
@BOTH
def test_wrong_settings_are_named(kind, settings, error, message):
    with pytest.raises(error, match=message):
        kind(**settings).fit(some_rows(20))


def test_given_centres_are_read_by_name_or_by_place():
    X = pd.DataFrame(some_rows(20, 2), columns=["a", "b"])
    named = pd.DataFrame({"b": [2, 4], "a": [1, 3]})
    expected = [[1.0, 2.0], [3.0, 4.0]]
    np.testing.assert_array_equal(GaussianBasis(centres=named).fit(X).centres_, expected)
    np.testing.assert_array_equal(GaussianBasis(centres=expected).fit(X).centres_, expected)
    one = GaussianBasis(centres=[1, 2]).fit(X[["a"]])
    np.testing.assert_array_equal(one.centres_, [[1.0], [2.0]])
    np.testing.assert_array_equal(SigmoidBasis(centres=[1, 2]).fit(X).centres_, [[1, 2]] * 2)
    by_column = SigmoidBasis(centres=[[1, 2], [3, 4]]).fit(X)
    np.testing.assert_array_equal(by_column.centres_, [[1, 3], [2, 4]])
    with pytest.raises(MissingValueError, match="row 1, column 'b'"):
        GaussianBasis(centres=pd.DataFrame({"a": [1.0, 2.0], "b": [0.0, np.nan]})).fit(X)


def test_kmeans_centres_are_the_means_of_their_points():
    random = np.random.default_rng(4)
    clusters = np.array([[0.0, 0.0], [0.0, 10.0], [10.0, 0.0], [30.0, 30.0]])
    points = np.repeat(clusters, 50, axis=0) + random.normal(0, 0.3, (200, 2))
    means = points.reshape(4, 50, 2).mean(axis=1)
    for seed in range(3):
        found = GaussianBasis(centres=4, random_state=seed).fit(points).centres_
        order = np.lexsort((found[:, 1], found[:, 0].round()))
        np.testing.assert_allclose(found[order], means[[0, 1, 2, 3]], rtol=1e-9)
    many = GaussianBasis(centres=20).fit(points)
    unit = points.std(axis=0)
    nearest = cdist(points / unit, many.centres_ / unit).argmin(axis=1)
    for j in range(20):
        mean = points[nearest == j].mean(axis=0)
        np.testing.assert_allclose(many.centres_[j], mean, rtol=1e-9, atol=1e-9)
    gap = cdist(many.centres_ / unit, many.centres_ / unit) + np.diag(np.full(20, np.inf))
    assert many.width_ == pytest.approx(np.median(gap.min(axis=1)), rel=1e-12)
    with pytest.raises(ParameterError, match=r"Most centres coincide .* Pass the width"):
        GaussianBasis(centres=np.zeros((3, 2))).fit(points)
