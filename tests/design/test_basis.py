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
    midpoints,
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


@pytest.mark.parametrize("d", [1, 3, 20])
def test_gaussians_agree_with_fifty_digits(d):
    X, centres = RANDOM.normal(3, 2, (40, d)), RANDOM.normal(3, 2, (7, d))
    rate = RANDOM.uniform(0.2, 3, d) / np.sqrt(d)
    found = values(Gaussians(centres, rate), X)
    np.testing.assert_allclose(found, exact_gaussians(X, centres, rate), rtol=1e-12)


def test_gaussians_agree_with_the_distances_of_all_pairs():
    X, centres = RANDOM.normal(size=(300, 4)), RANDOM.normal(size=(30, 4))
    rate = np.full(4, 1 / 1.3)
    found = values(Gaussians(centres, rate), X)
    np.testing.assert_allclose(found, np.exp(-(cdist(X, centres) ** 2) / (2 * 1.3**2)), rtol=1e-12)


@pytest.mark.parametrize("shift", [0.0, 1e3, 1e8])
def test_narrow_functions_far_from_the_origin_keep_their_digits(shift):
    # The rows lie a million widths from the origin, and half a width from their centres.
    centres = shift + np.array([[-50.0, 10.0], [0.0, 20.0], [70.0, -30.0]])
    X = np.repeat(centres, 4, axis=0) + RANDOM.normal(0, 5e-5, (12, 2))
    rate = np.array([1e4, 2e4])
    found = values(Gaussians(centres, rate), X)
    expected = exact_gaussians(X, centres, rate)
    assert (expected.max(axis=1) > 1e-4).all()
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_rows_near_and_far_in_one_block_are_told_apart():
    X = np.array([[0.0], [1e3], [0.1], [1e6], [1e300], [-1e308]])
    centres = np.array([[0.0], [1e3], [1e6 + 0.5]])
    found = values(Gaussians(centres, np.ones(1)), X)
    np.testing.assert_allclose(found, exact_gaussians(X, centres, np.ones(1)), rtol=1e-13)
    np.testing.assert_array_equal(found[4:], 0.0)


def test_a_gaussian_is_one_at_its_centre_and_never_more():
    X = RANDOM.normal(size=(500, 6)) * 5
    found = values(Gaussians(X, np.full(6, 0.7)), X)
    np.testing.assert_allclose(np.diagonal(found), 1.0, rtol=1e-12)
    assert found.max() <= 1.0


def test_a_rate_of_zero_leaves_a_column_out():
    X, centres = RANDOM.normal(size=(20, 3)), RANDOM.normal(size=(4, 3))
    rate = np.array([1.0, 0.0, 2.0])
    found = values(Gaussians(centres, rate), X * [1, 1e200, 1])
    keep = [0, 2]
    alone = values(Gaussians(centres[:, keep], rate[keep]), X[:, keep])
    np.testing.assert_allclose(found, alone, rtol=1e-15)
    far = values(Gaussians(centres, 1e3 * rate), X * [1, 1e200, 1])
    np.testing.assert_allclose(far, exact_gaussians(X, centres, 1e3 * rate), rtol=1e-12)


def test_sigmoids_agree_with_fifty_digits():
    X = RANDOM.normal(2, 3, (50, 3))
    column, centres = np.array([0, 0, 1, 2, 2]), RANDOM.normal(2, 3, 5)
    rate = np.array([0.1, 3.0, 40.0, 1.0, 7.0])
    found = values(Sigmoids(column, centres, rate), X)
    np.testing.assert_allclose(found, exact_sigmoids(X, column, centres, rate), rtol=5e-13)


def test_sigmoids_of_far_rows_are_zero_and_one():
    steps = Sigmoids(np.zeros(2, int), np.array([-1.0, 1.0]), np.array([1e5, 1e5]))
    found = values(steps, np.array([[-1e300], [0.0], [1e308]]))
    np.testing.assert_array_equal(found, [[0, 0], [1, 0], [1, 1]])


def test_columns_that_are_all_left_out_say_nothing():
    found = values(Gaussians(np.zeros((3, 2)), np.zeros(2)), RANDOM.normal(size=(4, 2)))
    np.testing.assert_array_equal(found, np.ones((4, 3)))


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_gaussians_do_not_depend_on_the_unit_of_a_column(size):
    X, centres = RANDOM.normal(size=(20, 2)), RANDOM.normal(size=(4, 2))
    rate, unit = np.array([1.3, 0.6]), np.array([1.0, size])
    expected = exact_gaussians(X, centres, rate)
    found = values(Gaussians(centres * unit, rate / unit), X * unit)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_middles_divide_the_range_evenly():
    np.testing.assert_allclose(midpoints(-1.0, 3.0, 4), [-0.5, 0.5, 1.5, 2.5])
    np.testing.assert_array_equal(midpoints(-1.0, 3.0, 1), [1.0])
    np.testing.assert_array_equal(midpoints(5.0, 5.0, 4), [5.0])
    assert np.isfinite(midpoints(-1.5e308, 1.5e308, 3)).all()


def test_a_grid_has_every_combination_and_the_spacing_of_its_axes():
    axes = grid_axes(np.array([0.0, 0.0, 1.0]), np.array([4.0, 9.0, 1.0]), 2)
    np.testing.assert_array_equal(
        grid(axes), [[1, 2.25, 1], [1, 6.75, 1], [3, 2.25, 1], [3, 6.75, 1]]
    )
    assert grid_spacing(axes, np.array([1.0, 4.5, np.inf])) == pytest.approx(np.sqrt(2.5))
    assert grid_spacing([np.ones(1)], np.ones(1)) is None


def test_a_grid_of_too_many_centres_is_refused():
    axes = [np.arange(5.0)] * 6
    with pytest.raises(ParameterError, match=r"6 columns would have 1\.56e\+04 .*'data'"):
        grid(axes)


def test_scattered_points_cover_every_cluster():
    clusters = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [30.0, 30.0]])
    points = np.repeat(clusters, 100, axis=0) + RANDOM.normal(0, 0.3, (400, 2))
    for seed in range(20):
        chosen = kmeans_centres(points, np.ones(400, int), 4, np.random.RandomState(seed))
        assert sorted(chosen // 100) == [0, 1, 2, 3]


def test_as_many_scattered_points_as_there_are_points_are_all_of_them():
    points = RANDOM.normal(size=(5, 2))
    np.testing.assert_array_equal(kmeans_centres(points, np.ones(5, int), 5, None), np.arange(5))


def test_points_of_no_weight_are_not_taken():
    points, count = RANDOM.normal(size=(200, 2)), np.repeat([0, 1], 100)
    assert (kmeans_centres(points, count, 30, np.random.RandomState(0)) >= 100).all()


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


def test_steps_that_coincide_are_one_step():
    assert column_spacing(np.array([1.0, 1.0, 4.0]), 9.0) == 3.0
    assert column_spacing(np.array([1.0, 1.0]), 9.0) == 9.0


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


@pytest.mark.parametrize("centres", [[1.0, 2.0], [[1.0]], [[[1.0, 2.0]]], np.empty((0, 2))])
def test_centres_of_another_shape_are_refused(centres):
    with pytest.raises(ShapeError, match=r"centres has shape .* X has 2 columns.*\(m, 2\)"):
        read_centres(centres, Schema.unnamed(2))


def test_steps_are_given_for_all_columns_alike_or_one_by_one():
    np.testing.assert_array_equal(read_column_centres([1, 2], 3), [[1, 2]] * 3)
    np.testing.assert_array_equal(read_column_centres([[1, 2], [3, 4]], 2), [[1, 3], [2, 4]])
    for wrong in (np.zeros((2, 3)), np.zeros(0), np.zeros((1, 2, 2)), 1.5):
        with pytest.raises(ShapeError, match="X has 2 columns"):
            read_column_centres(wrong, 2)


@pytest.mark.parametrize("centres", ["many", [[1.0, "x"]], [[1.0, np.nan]], [[np.inf, 0.0]]])
def test_centres_that_are_no_finite_numbers_are_refused(centres):
    with pytest.raises(ParameterError, match="centres"):
        read_centres(centres, Schema.unnamed(2))
