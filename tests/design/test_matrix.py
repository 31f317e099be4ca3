"""Every design has the products of the matrix that it stands for."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse

from posteriori.design.matrix import Coded, Dense, Design, Sparse, Stacked

rng = np.random.default_rng(4)
N = 60
NUMBERS = rng.normal(size=(N, 3)) * [1.0, 50.0, 0.01] + [0.0, 3.0, -1.0]
THIN = NUMBERS * (rng.uniform(size=NUMBERS.shape) < 0.3)
FILLED = np.column_stack([THIN[:, 0], NUMBERS[:, :2]])
CODES = rng.integers(0, 4, size=N).astype(np.int32)
OTHER = rng.integers(0, 3, size=N).astype(np.int32)
ONE_LEVEL = Coded(np.zeros(N, dtype=np.int32), 1)
for _rows in (NUMBERS, THIN, CODES, OTHER):
    _rows.flags.writeable = False  # a design leaves its numbers alone


def hot(codes: np.ndarray, levels: int) -> np.ndarray:
    """The 0/1 matrix that a factor stands for."""
    return (codes[:, None] == np.arange(1, levels)).astype(float)


ORDER = np.array([5, 0, 9, 1, 2, 3, 10, 4, 8, 6, 7])
STACKED = np.empty((N, 11))
STACKED[:, ORDER] = np.hstack([NUMBERS, hot(CODES, 4), THIN, hot(OTHER, 3)])
STACK = Stacked(
    [Dense(NUMBERS), Coded(CODES, 4), Sparse(sparse.csr_array(THIN)), Coded(OTHER, 3), ONE_LEVEL],
    np.split(ORDER, [3, 6, 9, 11]),
)
PLAIN: dict[str, tuple[Design, np.ndarray]] = {
    "dense": (Dense(NUMBERS), NUMBERS),
    "sparse": (Sparse(sparse.csr_array(THIN)), THIN),
    "sparse with columns without zeros": (Sparse(sparse.csr_array(FILLED)), FILLED),
    "coded": (Coded(CODES, 4), hot(CODES, 4)),
    "coded, level absent": (Coded(OTHER, 6), hot(OTHER, 6)),
    "coded, one level": (ONE_LEVEL, np.zeros((N, 0))),
    "stacked": (STACK, STACKED),
}
DESIGNS = dict(PLAIN)
for _name, (_design, _matrix) in PLAIN.items():
    _centre = np.linspace(-1.0, 4.0, _matrix.shape[1])
    _scale = np.geomspace(0.1, 10.0, _matrix.shape[1])
    _standardised = _design.shifted(_centre).scaled(_scale)
    DESIGNS[f"{_name}, standardised"] = _standardised, (_matrix - _centre) / _scale
WEIGHTS = rng.choice([0.0, 0.25, 1.0, 3.0], size=N)


def close(found: np.ndarray, expected: np.ndarray, size: float = 1.0) -> None:
    """Equal to 1e-12 of the terms that were added up."""
    assert isinstance(found, np.ndarray)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * max(size, 1e-3))


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("shape", [(), (1,), (3,)])
def test_products_are_those_of_the_matrix(name, shape):
    design, matrix = DESIGNS[name]
    assert design.shape == matrix.shape
    close(design.array(), matrix)
    w, r = rng.normal(size=(matrix.shape[1], *shape)), rng.normal(size=(N, *shape))
    close(design.times(w), matrix @ w, (abs(matrix) @ abs(w)).max(initial=0))
    close(design.transpose_times(r), matrix.T @ r, (abs(matrix).T @ abs(r)).max(initial=0))


@pytest.mark.parametrize("name", DESIGNS)
def test_squares_are_the_diagonal_of_the_sandwich(name):
    design, matrix = DESIGNS[name]
    squares = (matrix**2).T @ WEIGHTS
    size = squares.max(initial=0)
    close(design.sandwich(WEIGHTS), (matrix.T * WEIGHTS) @ matrix, size)
    close(design.squares(WEIGHTS), squares, size)


@pytest.mark.parametrize(("a", "b"), list(product(DESIGNS, DESIGNS)))
def test_cross_is_the_product_of_any_two_designs(a, b):
    (left, A), (right, B) = DESIGNS[a], DESIGNS[b]
    size = ((abs(A).T * WEIGHTS) @ abs(B)).max(initial=0)
    close(left.cross(WEIGHTS, right), (A.T * WEIGHTS) @ B, size)


@pytest.mark.parametrize("spreads", [1e3, 1e8])
@pytest.mark.parametrize("kind", [Dense, lambda X: Sparse(sparse.csr_array(X))])
def test_the_sandwich_of_numbers_far_from_zero_keeps_its_digits(kind, spreads):
    X = rng.normal(size=(200, 3)) * [1.0, 1e-3, 70.0]
    X += spreads * np.array([1.0, -1e-3, 70.0])
    weight = rng.uniform(0.5, 2.0, size=200)
    centre = np.average(X, axis=0, weights=weight)
    near = (X - X[0]) - (centre - X[0])  # the differences from a row are exact
    exact = (near.T * weight) @ near
    found = kind(X).shifted(centre).sandwich(weight)
    size = np.sqrt(np.outer(np.diagonal(exact), np.diagonal(exact)))
    assert (abs(found - exact) / size).max() < 1e-7
