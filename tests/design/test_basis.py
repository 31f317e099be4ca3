"""Basis functions against 50 digits and against their definitions; where centres go."""

import mpmath as mp
import numpy as np
import pytest
from oracle import doubles, exact
from scipy.spatial.distance import cdist

from posteriori.design.basis import (
    Gaussians,
    Sigmoids,
    even_axes,
    given_points,
    given_steps,
    grid,
    grid_spacing,
    middles,
    rates,
    scattered,
    spacing,
    step_spacing,
)
from posteriori.errors import MissingValueError, ParameterError, ScaleError, ShapeError
from posteriori.rows.schema import Schema

RANDOM = np.random.default_rng(4)


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
    found = Gaussians(centres, rate, X.mean(axis=0)).values(X)
    np.testing.assert_allclose(found, exact_gaussians(X, centres, rate), rtol=1e-12)


def test_gaussians_agree_with_the_distances_of_all_pairs():
    X, centres = RANDOM.normal(size=(300, 4)), RANDOM.normal(size=(30, 4))
    rate = np.full(4, 1 / 1.3)
    found = Gaussians(centres, rate, np.zeros(4)).values(X)
    np.testing.assert_allclose(found, np.exp(-(cdist(X, centres) ** 2) / (2 * 1.3**2)), rtol=1e-12)


@pytest.mark.parametrize("shift", [0.0, 1e3, 1e8])
def test_narrow_functions_far_from_the_origin_keep_their_digits(shift):
    # The rows lie a million widths from the origin, and half a width from their centres.
    centres = shift + np.array([[-50.0, 10.0], [0.0, 20.0], [70.0, -30.0]])
    X = np.repeat(centres, 4, axis=0) + RANDOM.normal(0, 5e-5, (12, 2))
    rate = np.array([1e4, 2e4])
    found = Gaussians(centres, rate, centres.mean(axis=0)).values(X)
    expected = exact_gaussians(X, centres, rate)
    assert (expected.max(axis=1) > 1e-4).all()
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_rows_near_and_far_in_one_block_are_told_apart():
    X = np.array([[0.0], [1e3], [0.1], [1e6], [1e300], [-1e308]])
    centres = np.array([[0.0], [1e3], [1e6 + 0.5]])
    found = Gaussians(centres, np.ones(1), np.zeros(1)).values(X)
    np.testing.assert_allclose(found, exact_gaussians(X, centres, np.ones(1)), rtol=1e-13)
    np.testing.assert_array_equal(found[4:], 0.0)


def test_a_gaussian_is_one_at_its_centre_and_never_more():
    X = RANDOM.normal(size=(500, 6)) * 5
    found = Gaussians(X, np.full(6, 0.7), X.mean(axis=0)).values(X)
    np.testing.assert_allclose(np.diagonal(found), 1.0, rtol=1e-12)
    assert found.max() <= 1.0


def test_a_rate_of_zero_leaves_a_column_out():
    X, centres = RANDOM.normal(size=(20, 3)), RANDOM.normal(size=(4, 3))
    rate = np.array([1.0, 0.0, 2.0])
    found = Gaussians(centres, rate, np.zeros(3)).values(X * [1, 1e200, 1])
    keep = [0, 2]
    alone = Gaussians(centres[:, keep], rate[keep], np.zeros(2)).values(X[:, keep])
    np.testing.assert_allclose(found, alone, rtol=1e-15)
    far = Gaussians(centres, 1e3 * rate, np.zeros(3)).values(X * [1, 1e200, 1])
    np.testing.assert_allclose(far, exact_gaussians(X, centres, 1e3 * rate), rtol=1e-12)


def test_the_origin_changes_nothing():
    X, centres = RANDOM.normal(size=(50, 5)), RANDOM.normal(size=(9, 5))
    values = [
        Gaussians(centres, np.ones(5), origin).values(X) for origin in (X.mean(axis=0), X[0] + 3)
    ]
    np.testing.assert_allclose(*values, rtol=1e-12)


def test_sigmoids_agree_with_fifty_digits():
    X = RANDOM.normal(2, 3, (50, 3))
    column, centres = np.array([0, 0, 1, 2, 2]), RANDOM.normal(2, 3, 5)
    rate = np.array([0.1, 3.0, 40.0, 1.0, 7.0])
    found = Sigmoids(column, centres, rate).values(X)
    np.testing.assert_allclose(found, exact_sigmoids(X, column, centres, rate), rtol=5e-13)


def test_sigmoids_of_far_rows_are_zero_and_one():
    found = Sigmoids(np.zeros(2, int), np.array([-1.0, 1.0]), np.array([1e5, 1e5])).values(
        np.array([[-1e300], [0.0], [1e308]])
    )
    np.testing.assert_array_equal(found, [[0, 0], [1, 0], [1, 1]])


def test_values_are_written_where_they_are_asked_for():
    X = RANDOM.normal(size=(6, 2))
    out = np.full((10, 4), 7.0)
    functions = Gaussians(RANDOM.normal(size=(4, 2)), np.ones(2), np.zeros(2))
    assert np.shares_memory(functions.fill(X, out[2:8]), out)
    np.testing.assert_array_equal(out[2:8], functions.values(X))
    np.testing.assert_array_equal(out[[0, 1, 8, 9]], 7.0)
    steps = Sigmoids(np.array([0, 1, 1, 0]), np.zeros(4), np.ones(4))
    steps.fill(X, out[2:8])
    np.testing.assert_array_equal(out[2:8], steps.values(X))


def test_middles_divide_the_range_evenly():
    np.testing.assert_allclose(middles(-1.0, 3.0, 4), [-0.5, 0.5, 1.5, 2.5])
    np.testing.assert_array_equal(middles(-1.0, 3.0, 1), [1.0])
    np.testing.assert_array_equal(middles(5.0, 5.0, 4), [5.0])
    assert np.isfinite(middles(-1.5e308, 1.5e308, 3)).all()


def test_a_grid_has_every_combination_and_the_spacing_of_its_axes():
    axes = even_axes(np.array([0.0, 0.0, 1.0]), np.array([4.0, 9.0, 1.0]), 2)
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
        chosen = scattered(points, np.ones(400, int), 4, np.random.RandomState(seed))
        assert sorted(chosen // 100) == [0, 1, 2, 3]


def test_as_many_scattered_points_as_there_are_points_are_all_of_them():
    points = RANDOM.normal(size=(5, 2))
    np.testing.assert_array_equal(scattered(points, np.ones(5, int), 5, None), np.arange(5))


def test_points_of_no_weight_are_not_taken():
    points, count = RANDOM.normal(size=(200, 2)), np.repeat([0, 1], 100)
    assert (scattered(points, count, 30, np.random.RandomState(0)) >= 100).all()


def test_spacing_is_the_median_distance_to_the_nearest_neighbour():
    points = RANDOM.normal(size=(40, 3))
    distance = cdist(points, points) + np.diag(np.full(40, np.inf))
    assert spacing(points, np.ones(3)) == pytest.approx(np.median(distance.min(axis=1)), rel=1e-12)
    assert spacing(points[:1], np.array([3.0, 4.0])) == 5.0
    assert spacing(points[:1], np.empty(0)) == 1.0
    with pytest.raises(ParameterError, match=r"Most centres coincide .* Pass the width"):
        spacing(np.zeros((3, 2)), np.ones(2))


def test_steps_that_coincide_are_one_step():
    assert step_spacing(np.array([1.0, 1.0, 4.0]), 9.0) == 3.0
    assert step_spacing(np.array([1.0, 1.0]), 9.0) == 9.0


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
    np.testing.assert_array_equal(given_points([[1, 2], [3, 4]], schema), expected)
    frame = pd.DataFrame({"b": [2, 4], "a": [1, 3]})
    np.testing.assert_array_equal(given_points(frame, schema), expected)
    np.testing.assert_array_equal(given_points([1, 2], Schema.unnamed(1)), [[1.0], [2.0]])
    with pytest.raises(MissingValueError, match="row 1, column 'b'"):
        given_points(pd.DataFrame({"a": [1.0, 2.0], "b": [0.0, np.nan]}), schema)


@pytest.mark.parametrize("centres", [[1.0, 2.0], [[1.0]], [[[1.0, 2.0]]], np.empty((0, 2))])
def test_centres_of_another_shape_are_refused(centres):
    with pytest.raises(ShapeError, match=r"centres has shape .* X has 2 columns.*\(m, 2\)"):
        given_points(centres, Schema.unnamed(2))


def test_steps_are_given_for_all_columns_alike_or_one_by_one():
    np.testing.assert_array_equal(given_steps([1, 2], 3), [[1, 2]] * 3)
    np.testing.assert_array_equal(given_steps([[1, 2], [3, 4]], 2), [[1, 3], [2, 4]])
    for wrong in (np.zeros((2, 3)), np.zeros(0), np.zeros((1, 2, 2)), 1.5):
        with pytest.raises(ShapeError, match="X has 2 columns"):
            given_steps(wrong, 2)


@pytest.mark.parametrize("centres", ["many", [[1.0, "x"]], [[1.0, np.nan]], [[np.inf, 0.0]]])
def test_centres_that_are_no_finite_numbers_are_refused(centres):
    with pytest.raises(ParameterError, match="centres"):
        given_points(centres, Schema.unnamed(2))
