"""Every design equals the matrix it stands for, whatever is asked of it."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse

from posteriori.design.matrix import Coded, Dense, Design, Scaled, Shifted, Sparse, Stacked

rng = np.random.default_rng(4)
N = 60
NUMBERS = rng.normal(size=(N, 3)) * [1.0, 50.0, 0.01] + [0.0, 3.0, -1.0]
THIN = NUMBERS * (rng.uniform(size=NUMBERS.shape) < 0.3)
CODES = rng.integers(0, 4, size=N).astype(np.int32)
OTHER = rng.integers(0, 3, size=N).astype(np.int32)
CENTRE = np.array([0.5, -2.0, 4.0])
SCALE = np.array([2.0, 0.125, 30.0])
for _rows in (NUMBERS, THIN, CODES, OTHER):
    _rows.flags.writeable = False  # a design leaves its numbers alone


def hot(codes: np.ndarray, levels: int) -> np.ndarray:
    """The 0/1 matrix that a factor stands for."""
    return (codes[:, None] == np.arange(1, levels)).astype(float)


def in_order(*parts: Design) -> Stacked:
    """The columns of one part after those of another."""
    widths = [part.shape[1] for part in parts]
    return Stacked(parts, np.split(np.arange(sum(widths)), np.cumsum(widths)[:-1]))


def stacked() -> Stacked:
    parts = [Dense(NUMBERS), Coded(CODES, 4), Sparse(sparse.csr_array(THIN)), Coded(OTHER, 3)]
    return Stacked(parts, np.split(ORDER, [3, 6, 9]))


ORDER = np.array([5, 0, 9, 1, 2, 3, 10, 4, 8, 6, 7])
STACKED = np.empty((N, 11))
STACKED[:, ORDER] = np.hstack([NUMBERS, hot(CODES, 4), THIN, hot(OTHER, 3)])
WIDE_CENTRE = np.linspace(-1.0, 1.0, STACKED.shape[1])
WIDE_SCALE = np.geomspace(0.1, 10.0, STACKED.shape[1])

DESIGNS: dict[str, tuple[Design, np.ndarray]] = {
    "dense": (Dense(NUMBERS), NUMBERS),
    "dense Fortran": (Dense(np.asfortranarray(NUMBERS)), NUMBERS),
    "sparse": (Sparse(sparse.csr_array(THIN)), THIN),
    "sparse of zeros": (Sparse(sparse.csr_array((N, 2))), np.zeros((N, 2))),
    "coded": (Coded(CODES, 4), hot(CODES, 4)),
    "coded, level absent": (Coded(OTHER, 6), hot(OTHER, 6)),
    "coded, one level": (Coded(np.zeros(N, dtype=np.int32), 1), np.zeros((N, 0))),
    "dense shifted": (Dense(NUMBERS).shifted(CENTRE), NUMBERS - CENTRE),
    "sparse shifted": (Sparse(sparse.csr_array(THIN)).shifted(CENTRE), THIN - CENTRE),
    "sparse without zeros, shifted": (
        Sparse(sparse.csr_array(np.column_stack([THIN[:, 0], NUMBERS[:, :2]]))).shifted(CENTRE),
        np.column_stack([THIN[:, 0], NUMBERS[:, :2]]) - CENTRE,
    ),
    "coded shifted": (Coded(CODES, 4).shifted(CENTRE), hot(CODES, 4) - CENTRE),
    "shifted twice": (
        Shifted(Coded(CODES, 4), CENTRE).shifted(SCALE),
        hot(CODES, 4) - CENTRE - SCALE,
    ),
    "coded scaled": (Scaled(Coded(CODES, 4), SCALE), hot(CODES, 4) / SCALE),
    "scaled, then shifted": (
        Scaled(Coded(CODES, 4), SCALE).shifted(CENTRE),
        hot(CODES, 4) / SCALE - CENTRE,
    ),
    "stacked": (stacked(), STACKED),
    "stacked standardised": (
        Scaled(stacked().shifted(WIDE_CENTRE), WIDE_SCALE),
        (STACKED - WIDE_CENTRE) / WIDE_SCALE,
    ),
    "dense scaled at once": (Dense(NUMBERS).scaled(SCALE), NUMBERS / SCALE),
    "sparse scaled at once": (Sparse(sparse.csr_array(THIN)).scaled(SCALE), THIN / SCALE),
    "stacked scaled at once": (
        stacked().scaled(WIDE_SCALE).shifted(WIDE_CENTRE),
        STACKED / WIDE_SCALE - WIDE_CENTRE,
    ),
    "stacked in a stack": (
        in_order(Dense(np.ones((N, 1))), stacked().shifted(WIDE_CENTRE)),
        np.hstack([np.ones((N, 1)), STACKED - WIDE_CENTRE]),
    ),
    "stack with a factor of one level": (
        in_order(Dense(NUMBERS), Coded(np.zeros(N, dtype=np.int32), 1), Coded(CODES, 4)),
        np.hstack([NUMBERS, hot(CODES, 4)]),
    ),
}
WEIGHTS = rng.choice([0.0, 0.25, 1.0, 3.0], size=N)


def close(found: np.ndarray, expected: np.ndarray, size: float = 1.0) -> None:
    """Equal to 1e-12 of the terms that were added up."""
    assert isinstance(found, np.ndarray)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * max(size, 1e-3))


@pytest.mark.parametrize("name", DESIGNS)
class TestEveryDesign:
    def test_stands_for_its_matrix(self, name):
        design, matrix = DESIGNS[name]
        assert design.shape == matrix.shape
        close(design.array(), matrix)

    @pytest.mark.parametrize("shape", [(), (1,), (3,)])
    def test_times_and_transpose_times_are_products(self, name, shape):
        design, matrix = DESIGNS[name]
        w, r = rng.normal(size=(matrix.shape[1], *shape)), rng.normal(size=(N, *shape))
        close(design.times(w), matrix @ w, (abs(matrix) @ abs(w)).max(initial=0))
        close(design.transpose_times(r), matrix.T @ r, (abs(matrix).T @ abs(r)).max(initial=0))

    def test_sandwich_is_a_product_and_squares_its_diagonal(self, name):
        design, matrix = DESIGNS[name]
        squares = (matrix**2).T @ WEIGHTS
        size = squares.max(initial=0)
        close(design.sandwich(WEIGHTS), (matrix.T * WEIGHTS) @ matrix, size)
        close(design.squares(WEIGHTS), squares, size)

    def test_shifting_takes_the_centre_off_every_row(self, name):
        design, matrix = DESIGNS[name]
        centre = rng.normal(size=matrix.shape[1])
        close(design.shifted(centre).array(), matrix - centre)


@pytest.mark.parametrize(("a", "b"), list(product(DESIGNS, DESIGNS)))
def test_cross_is_the_product_of_any_two_designs(a, b):
    (left, A), (right, B) = DESIGNS[a], DESIGNS[b]
    size = ((abs(A).T * WEIGHTS) @ abs(B)).max(initial=0)
    close(left.cross(WEIGHTS, right), (A.T * WEIGHTS) @ B, size)


@pytest.mark.parametrize("size", [1e-250, 1e250])
def test_numbers_are_divided_by_their_scale_before_they_are_squared(size):
    scale = np.full(3, size)
    for design, matrix in (
        (Dense(NUMBERS * size), NUMBERS),
        (Sparse(sparse.csr_array(THIN * size)), THIN),
        (in_order(Dense(NUMBERS[:, :1] * size), Dense(NUMBERS[:, 1:] * size)), NUMBERS),
    ):
        expected = (matrix.T * WEIGHTS) @ matrix
        close(design.scaled(scale).sandwich(WEIGHTS), expected, abs(expected).max())


@pytest.mark.parametrize("spreads", [1e3, 1e8])
def test_a_dense_sandwich_is_right_far_from_zero(spreads):
    X = rng.normal(size=(200, 3)) * [1.0, 1e-3, 70.0]
    X += spreads * np.array([1.0, -1e-3, 70.0])
    weight = rng.uniform(0.5, 2.0, size=200)
    centre = np.average(X, axis=0, weights=weight)
    near = (X - X[0]) - (centre - X[0])  # the differences from a row are exact
    exact = (near.T * weight) @ near
    for design in (
        Dense(X).shifted(centre),
        in_order(Dense(X[:, :1]), Dense(X[:, 1:])).shifted(centre),
    ):
        found = design.sandwich(weight)
        size = np.sqrt(np.outer(np.diagonal(exact), np.diagonal(exact)))
        assert (abs(found - exact) / size).max() < 1e-7
        np.testing.assert_allclose(np.diagonal(found), np.diagonal(exact), rtol=1e-7)


def test_a_factor_centred_at_its_frequencies_keeps_its_digits():
    centre = hot(CODES, 4).mean(0)
    found = Coded(CODES, 4).shifted(centre).sandwich(np.ones(N))
    exact = (hot(CODES, 4) - centre).T @ (hot(CODES, 4) - centre)
    np.testing.assert_allclose(found, exact, rtol=1e-12)
