"""A Gaussian over very many parameters, known by draws of it.

Conventions: p variables, mean m (p,); S draws m + z_s, and the root V (p, S) = (z_1 ... z_S) / √S,
so that VVᵀ is the covariance as the draws have it. It has no bias, and variances have the relative
standard error √(2/S), along any direction.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from posteriori.arguments import as_generator, check_count
from posteriori.typing import Array


@dataclass(frozen=True, eq=False)
class DrawnGaussian:
    """N(m, VVᵀ) with V (p, S), S draws having been made of it.

    >>> DrawnGaussian(np.zeros(2), np.array([[3.0, 4.0], [0.0, 1.0]])).standard_deviation
    array([5., 1.])
    """

    mean: Array
    root: Array

    def __reduce__(self) -> Any:
        """Without what is computed from the parts."""
        return type(self), (self.mean, self.root)

    @property
    def n_draws(self) -> int:
        """S."""
        return self.root.shape[1]

    @property
    def told(self) -> str:
        """What it is, in words."""
        return f"{self.n_draws} draws"

    @property
    def error(self) -> float:
        """The relative standard error of a standard deviation."""
        return float((2 * self.n_draws) ** -0.5)

    @cached_property
    def standard_deviation(self) -> Array:
        """Of each variable (p,)."""
        return np.sqrt(np.square(self.root).sum(axis=1))

    def sample(self, n: int = 1, random_state: Any = None) -> Array:
        """`n` draws m + Vε, ε being standard normal, as rows (n, p)."""
        check_count("n", n, "draws")
        white = as_generator(random_state).standard_normal((n, self.n_draws))
        return self.mean + white @ self.root.T
