"""Basis functions against 50 digits and against their definitions; where centres go."""

import mpmath as mp
import numpy as np
import pytest
from oracle import doubles, exact
from scipy.spatial.distance import cdist

from posteriori.design.basis import (
    Gaussians,
    Sigmoids,
    column_spacing,
    grid,
    grid_axes,
    grid_spacing,
    kmeans_centres,
    neighbour_spacing,
    rates,
    read_centres,
    read_column_centres,
)
from posteriori.errors import MissingValueError, ParameterError, ScaleError, ShapeError
from posteriori.rows.schema import Schema

RANDOM = np.random.default_rng(4)


def values(functions, X):
    return functions.fill(X, np.empty((len(X), functions.n_functions)))


def exact_gaussians(X, centres, rate):
    """exp(-½ Σ rate² (x - μ)²) with 50 digits (n, m)."""
    step = (exact(X)[:, None, :] - exact(centres)) * exact(rate)
    return doubles(np.vectorize(mp.exp, otypes=[object])(-(step**2).sum(axis=2) / 2))


def exact_sigmoids(X, column, centres, rate):
    a = (exact(X)[:, column] - exact(centres)) * exact(rate)
    return doubles(np.vectorize(lambda v: 1 / (1 + mp.exp(-v)), otypes=[object])(a))


@pytest.mark.parametrize(("d", "unit"), [(1, 1.0), (3, 1.0), (20, 1.0), (3, 1e-200), (3, 1e200)])
def test_gaussians_agree_with_fifty_digits(d, unit):
    X, centres = RANDOM.normal(3, 2, (40, d)), RANDOM.normal(3, 2, (7, d))
    rate, units = RANDOM.uniform(0.2, 3, d) / np.sqrt(d), np.r_[unit, np.ones(d - 1)]
    found = values(Gaussians(centres * units, rate / units), X * units)
    np.testing.assert_allclose(found, exact_gaussians(X, centres, rate), rtol=1e-12)


def test_a_rate_of_zero_leaves_a_column_out():
    X, centres = RANDOM.normal(size=(20, 3)), RANDOM.normal(size=(4, 3))
    rate = np.array([1.0, 0.0, 2.0])
    found = values(Gaussians(centres, rate), X * [1, 1e200, 1])
    keep = [0, 2]
    alone = values(Gaussians(centres[:, keep], rate[keep]), X[:, keep])
    np.testing.assert_allclose(found, alone, rtol=1e-15)
    far = values(Gaussians(centres, 1e3 * rate), X * [1, 1e200, 1])
    np.testing.assert_allclose(far, exact_gaussians(X, centres, 1e3 * rate), rtol=1e-12)
    np.testing.assert_array_equal(values(Gaussians(centres, np.zeros(3)), X), np.ones((20, 4)))


def test_sigmoids_agree_with_fifty_digits():
    X = RANDOM.normal(2, 3, (50, 3))
    column, centres = np.array([0, 0, 1, 2, 2]), RANDOM.normal(2, 3, 5)
    rate = np.array([0.1, 3.0, 40.0, 1.0, 7.0])
    found = values(Sigmoids(column, centres, rate), X)
    np.testing.assert_allclose(found, exact_sigmoids(X, column, centres, rate), rtol=5e-13)


def test_a_grid_has_every_combination_and_the_spacing_of_its_axes():
    axes = grid_axes(np.array([0.0, 0.0, 1.0]), np.array([4.0, 9.0, 1.0]), 2)
    np.testing.assert_array_equal(
        grid(axes), [[1, 2.25, 1], [1, 6.75, 1], [3, 2.25, 1], [3, 6.75, 1]]
    )
    assert grid_spacing(axes, np.array([1.0, 4.5, np.inf])) == pytest.approx(np.sqrt(2.5))
    assert grid_spacing([np.ones(1)], np.ones(1)) is None
    with pytest.raises(ParameterError, match=r"6 columns would have 1\.56e\+04 .*'data'"):
        grid([np.arange(5.0)] * 6)


def test_kmeans_centres_are_the_means_of_their_points():
    clusters = np.array([[0.0, 0.0], [0.0, 10.0], [10.0, 0.0], [30.0, 30.0]])
    points = np.repeat(clusters, 50, axis=0) + RANDOM.normal(0, 0.3, (200, 2))
    unit = np.array([2.0, 0.5])
    means = points.reshape(4, 50, 2).mean(axis=1)
    for seed in range(5):
        centres = kmeans_centres(points, unit, 4, np.random.RandomState(seed))
        found = centres[np.lexsort((centres[:, 1], centres[:, 0].round()))]
        np.testing.assert_allclose(found, means[np.lexsort((means[:, 1], means[:, 0].round()))])
    many = kmeans_centres(points, unit, 20, np.random.RandomState(0))
    nearest = cdist(points / unit, many / unit).argmin(axis=1)
    for j in range(20):
        np.testing.assert_allclose(many[j], points[nearest == j].mean(axis=0), rtol=1e-9, atol=1e-9)
    few = kmeans_centres(points[:5], unit, 5, np.random.RandomState(0))
    np.testing.assert_allclose(np.sort(few, axis=0), np.sort(points[:5], axis=0))
    constant = np.column_stack([points, np.full(200, 7.0)])
    with_it = kmeans_centres(constant, np.r_[unit, np.inf], 4, np.random.RandomState(0))
    np.testing.assert_array_equal(with_it[:, 2], 7.0)
    with pytest.raises(ParameterError, match="centres=7, but X has 1 distinct rows"):
        kmeans_centres(np.ones((9, 2)), unit, 7, None)


def test_spacing_is_the_median_distance_to_the_nearest_neighbour():
    points = RANDOM.normal(size=(40, 3))
    distance = cdist(points, points) + np.diag(np.full(40, np.inf))
    assert neighbour_spacing(points, np.ones(3)) == pytest.approx(
        np.median(distance.min(axis=1)), rel=1e-12
    )
    assert neighbour_spacing(points[:1], np.array([3.0, 4.0])) == 5.0
    assert neighbour_spacing(points[:1], np.empty(0)) == 1.0
    with pytest.raises(ParameterError, match=r"Most centres coincide .* Pass the width"):
        neighbour_spacing(np.zeros((3, 2)), np.ones(2))
    assert column_spacing(np.array([1.0, 1.0, 4.0]), 9.0) == 3.0


def test_a_width_that_doubles_cannot_turn_into_a_rate_is_named_by_column():
    schema = Schema.of_names(["a", "b", "c"])
    np.testing.assert_array_equal(rates(np.array([2.0, np.inf, 1e300]), schema), [0.5, 0.0, 1e-300])
    for bad in (0.0, 1e-310, 1.7e308):
        with pytest.raises(ScaleError, match="in column 'b'"):
            rates(np.array([1.0, bad, np.inf]), schema)


def test_given_centres_are_read_by_name_or_by_place():
    pd = pytest.importorskip("pandas")
    schema = Schema.of_names(["a", "b"])
    expected = [[1.0, 2.0], [3.0, 4.0]]
    np.testing.assert_array_equal(read_centres([[1, 2], [3, 4]], schema), expected)
    frame = pd.DataFrame({"b": [2, 4], "a": [1, 3]})
    np.testing.assert_array_equal(read_centres(frame, schema), expected)
    np.testing.assert_array_equal(read_centres([1, 2], Schema.unnamed(1)), [[1.0], [2.0]])
    with pytest.raises(MissingValueError, match="row 1, column 'b'"):
        read_centres(pd.DataFrame({"a": [1.0, 2.0], "b": [0.0, np.nan]}), schema)


@pytest.mark.parametrize(
    ("centres", "error", "words"),
    [
        ([1.0, 2.0], ShapeError, r"centres has shape .* X has 2 columns.*\(m, 2\)"),
        ([[1.0]], ShapeError, "X has 2 columns"),
        (np.empty((0, 2)), ShapeError, "X has 2 columns"),
        ("many", ParameterError, "centres='many' is not understood"),
        ([[1.0, "x"]], ParameterError, "centres"),
        ([[np.inf, 0.0]], ParameterError, "centres holds NaN or infinity"),
    ],
)
def test_centres_that_cannot_be_used_are_refused(centres, error, words):
    with pytest.raises(error, match=words):
        read_centres(centres, Schema.unnamed(2))


def test_steps_are_given_for_all_columns_alike_or_one_by_one():
    np.testing.assert_array_equal(read_column_centres([1, 2], 3), [[1, 2]] * 3)
    np.testing.assert_array_equal(read_column_centres([[1, 2], [3, 4]], 2), [[1, 3], [2, 4]])
    for wrong in (np.zeros((2, 3)), np.zeros(0), np.zeros((1, 2, 2)), 1.5):
        with pytest.raises(ShapeError, match="X has 2 columns"):
            read_column_centres(wrong, 2)
