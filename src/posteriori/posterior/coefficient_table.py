"""The coefficients in the user's units, from the free parameters of the solvers; and their table.

Conventions: p free parameters w (p,); K activations a row, q parameters each, Θ (K, q) for
standardised columns. The coefficients are the q parameters in the user's units, the intercept
first; for K > 1 the contrasts with one class, the first by default, (K-1)q of them, class by class.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from posteriori.design.columns import Columns
from posteriori.design.matrix import Design
from posteriori.design.standardise import Standard
from posteriori.errors import ScaleError
from posteriori.posterior.log_posterior import Coordinates, LogPosterior
from posteriori.rows.block import Block, check_finite
from posteriori.typing import Array

INTERCEPT = "intercept"
"""What the intercept is called among the terms."""

_SHARED = 1e-8
"""A coefficient made of others by more than this shares in a dependence of columns."""


@dataclass(frozen=True, eq=False)
class CoefficientMap:
    """The linear map from free parameters to coefficients in the user's units.

    It is taken in two steps, so that no square of a unit overflows: first to columns that are
    scaled but not centred, then by `unit` to the user's. `reference` is the class that others are
    compared with.
    """

    columns: Columns
    standard: Standard
    coordinates: Coordinates
    reference: int = 0

    @classmethod
    def of(cls, objective: LogPosterior) -> "CoefficientMap":
        """That of an objective."""
        return cls(objective.columns, objective.standard, objective.coordinates)

    @property
    def terms(self) -> tuple[str, ...]:
        """The names of one activation's parameters (q,)."""
        first = (INTERCEPT,) if self.standard.intercept else ()
        return (*first, *self.columns.names)

    @property
    def names(self) -> list[str]:
        """The names of all coefficients, for messages."""
        if self.coordinates.n_activations == 1:
            return [repr(term) for term in self.terms]
        return [f"{term!r} (class {k + 1})" for k in self.others for term in self.terms]

    @property
    def others(self) -> list[int]:
        """The classes that are compared with the reference."""
        return [k for k in range(self.coordinates.n_activations) if k != self.reference]

    @property
    def n_contrasts(self) -> int:
        """How many blocks of q coefficients there are."""
        return max(self.coordinates.n_activations - 1, 1)

    @cached_property
    def unit(self) -> Array:
        """What parameters for scaled columns are divided by."""
        return np.tile(self.one_unit, self.n_contrasts)

    @property
    def one_unit(self) -> Array:
        """The same of one activation (q,)."""
        return np.concatenate([np.ones(int(self.standard.intercept)), self.standard.scale])

    @cached_property
    def directions(self) -> Array:
        """The rows m with mᵀw = a parameter for scaled columns, one a coefficient."""
        return self._scaled(np.eye(self.coordinates.size)).T

    def estimates(self, w: Array) -> Array:
        """The parameters themselves."""
        with np.errstate(over="ignore"):
            return self._scaled(w[None, :])[0] / self.unit

    def covariance(self, free: Array) -> Array:
        """Their covariance from that of the free ones (p, p)."""
        scaled = self.directions @ free @ self.directions.T
        with np.errstate(over="ignore"):
            return (scaled + scaled.T) / 2 / self.unit / self.unit[:, None]

    def standard_errors(self, free: Array) -> Array:
        """The roots of its diagonal, which fit in doubles where the squares do not."""
        variance = np.einsum("ij,ij->i", self.directions @ free, self.directions)
        with np.errstate(over="ignore"):
            return np.sqrt(np.maximum(variance, 0.0)) / self.unit

    def independent_errors(self, variance: Array, contrasts: Array | None = None) -> Array:
        """The same where free parameters are independent, with these variances (p,).

        `contrasts` (k, c) makes the vectors of the table from the free ones.
        """
        if contrasts is None:
            B = self.coordinates.contrasts
            contrasts = B if len(B) == 1 else B[self.others] - B[self.reference]
        found = contrasts**2 @ variance.reshape(self.coordinates.c, -1)
        if self.standard.intercept:
            found[:, 0] += found[:, 1:] @ (self.standard.centre / self.standard.scale) ** 2
        with np.errstate(over="ignore"):
            return (np.sqrt(found) / self.one_unit).ravel()

    @property
    def dependent(self) -> tuple[str, ...]:
        """Columns whose coefficients the rows do not determine separately."""
        basis = self.coordinates.basis
        if basis is None:
            return ()
        alone = (abs(abs(basis).max(axis=1, initial=0.0) - 1) < _SHARED) & (
            abs(basis).sum(axis=1) < 1 + _SHARED
        )
        return tuple(
            term
            for term, free in zip(self.terms, alone, strict=True)
            if not free and term != INTERCEPT
        )

    def design(self, block: Block) -> Design:
        """The design of a block in centred, scaled columns, without the intercept."""
        found = self.columns.design(block)
        return found.shifted(self.standard.centre).scaled(self.standard.scale)

    def times(self, design: Design, theta: Array) -> Array:
        """φᵀθ of each row, for θ (q,) or (q, k)."""
        if not self.standard.intercept:
            return design.times(theta)
        return design.times(theta[1:]) + theta[0]

    def along(self, design: Design, theta: Array) -> Array:
        """Θφ of each row: (n, K) for Θ (K, q), (n, K, k) for k of them, (K, q, k)."""
        return np.stack([self.times(design, each) for each in theta], axis=1)

    def activations(self, design: Design, theta: Array, block: Block) -> Array:
        """The same with the offsets; an error if an activation is too large for a double."""
        a = self.along(design, theta)
        self.check_doubles(a, block)
        if block.offset is not None:
            a += block.offset.reshape(a.shape[:2] + (1,) * (a.ndim - 2))
        return a

    def check_doubles(self, values: Array, block: Block) -> None:
        """An error for the first row of a block with values (n, ...) that are not finite."""
        finite = np.isfinite(values).reshape(len(values), -1).all(axis=1)
        if not finite.all():
            check_finite(block, self.columns.schema)
            raise ScaleError(
                f"The activations of row {block.row(int(np.argmin(finite)))} do not fit in a "
                "double: an entry is too large for the coefficients.",
                "Look at its entries; drop the row, or divide the column by a large number.",
            )

    def expand(self, directions: Array) -> Array:
        """Directions (p, k) of the free parameters as (K, q, k) of Θ."""
        size = self.coordinates.n_activations, self.coordinates.q, directions.shape[1]
        expanded = [self.coordinates.expand(column) for column in directions.T]
        return np.stack(expanded, axis=-1) if expanded else np.empty(size)

    def _scaled(self, w: Array) -> Array:
        """Parameters for scaled columns, of k vectors w (k, p)."""
        scale, intercept = self.standard.scale, self.standard.intercept
        scaled = Standard(self.standard.centre / scale, np.ones_like(scale), intercept)
        thetas = np.array([self.coordinates.expand(one) for one in w])
        theta = scaled.to_user(thetas.reshape(len(w), *self.coordinates.shape))
        if theta.shape[1] > 1:
            theta = theta[:, self.others] - theta[:, [self.reference]]
        elif self.reference == 1:  # of two classes: the first against the second
            theta = -theta
        return theta.reshape(len(w), theta.shape[1] * theta.shape[2])


@dataclass(frozen=True, eq=False)
class Coefficients:
    """One entry a coefficient; `classes` is None unless there are more than two of them.

    statistic: estimate / std_error or, with profile intervals, the signed root of the likelihood
    ratio; a z or, where a dispersion is estimated, a t. p_value: the probability of a larger one,
    either sign, if the coefficient were zero. They are zero and one where there is nothing to test:
    an infinite standard error, or a column that never changes. Both are None for a posterior, of
    which nothing is tested. `reference` is the class that others
    are compared with, if there are several. `odds_ratios` says that estimate and ends are
    exponentials of coefficients; std_error stays that of the coefficient.
    """

    terms: tuple[str, ...]
    classes: tuple[Any, ...] | None
    estimate: Array
    std_error: Array
    statistic: Array | None
    p_value: Array | None
    conf_low: Array
    conf_high: Array
    reference: Any = None
    odds_ratios: bool = False

    def as_odds_ratios(self) -> "Coefficients":
        """By what the odds are multiplied, where a column grows by one."""
        with np.errstate(over="ignore", under="ignore"):
            ratio, low, high = np.exp([self.estimate, self.conf_low, self.conf_high])
        return replace(self, estimate=ratio, conf_low=low, conf_high=high, odds_ratios=True)

    def columns(self) -> dict[str, list[Any]]:
        """The table, column by column."""
        out: dict[str, list[Any]] = {"term": list(self.terms)}
        if self.classes is not None:
            out["class"] = list(self.classes)
        numbers = ("estimate", "std_error", "statistic", "p_value", "conf_low", "conf_high")
        values = {name: getattr(self, name) for name in numbers}
        return out | {name: each.tolist() for name, each in values.items() if each is not None}

    def as_posterior(self) -> "Coefficients":
        """Without tests."""
        return replace(self, statistic=None, p_value=None)
