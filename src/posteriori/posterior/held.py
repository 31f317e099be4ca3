"""Newton's step with one linear combination of the parameters held.

Conventions: p parameters w (p,), a function of them with gradient g and Hessian H, m (p,) not zero.
"""

from collections.abc import Callable
from typing import NamedTuple, cast

import numpy as np
from scipy.linalg import lapack

from posteriori.linalg import cholesky
from posteriori.typing import Array

_FLATTEST = 1e-10
"""The least curvature, beside the largest, where not all of it is positive."""


class Held(NamedTuple):
    """step: the d with mᵀd = 0 that makes the parabola smallest. along: the b with mᵀb = 1 and
    bᵀHd = 0 for every such d, the way of the minimum as mᵀw grows. curvature: bᵀHb."""

    step: Array
    along: Array
    curvature: float


def with_one_held(gradient: Array, hessian: Array, m: Array) -> Held:
    """The step of all parameters but mᵀw; H need be positive definite only where mᵀd = 0.

    >>> held = with_one_held(np.array([1.0, 4.0]), np.diag([1.0, 2.0]), np.array([1.0, 0.0]))
    >>> held.step, held.along, held.curvature
    (array([ 0., -2.]), array([1., 0.]), 1.0)
    """
    scale = np.sqrt(abs(np.diagonal(hessian)))
    scale = np.where(scale > 0, scale, 1.0)
    g, H, m = gradient / scale, hessian / scale / scale[:, None], m / scale
    # Householder's reflection takes m to the first axis, which is then held.
    length = float(-np.copysign(np.linalg.norm(m), m[0]))
    mirror = m.copy()
    mirror[0] -= length
    mirror /= np.linalg.norm(mirror)

    def reflect(v: Array) -> Array:
        return v - 2 * np.multiply.outer(mirror, mirror @ v)

    H, g = reflect(reflect(H).T), reflect(g)
    solve = _solver(H[1:, 1:])
    step, along = np.zeros(len(m)), np.ones(len(m))
    step[1:], along[1:] = -solve(g[1:]), -solve(H[1:, 0])
    curvature = float(H[0] @ along) / length**2
    return Held(reflect(step) / scale, reflect(along) / (length * scale), curvature)


def _solver(matrix: Array) -> Callable[[Array], Array]:
    """v to matrix⁻¹v; eigenvalues that are not positive are made so."""
    lower = cholesky(matrix)
    if lower is not None:
        return lambda v: cast(Array, lapack.dpotrs(lower, v, lower=1)[0]) if len(v) else v
    values, vectors = np.linalg.eigh(matrix)
    size = np.maximum(abs(values), _FLATTEST * abs(values).max())
    size = np.where(size > 0, size, 1.0)
    return lambda v: cast(Array, vectors @ ((vectors.T @ v) / size))
