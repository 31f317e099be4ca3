"""A density known up to a constant, as its user wrote it, in coordinates without bounds.

Conventions: z (p,) the user's variables, u (p,) the coordinates without bounds of
`posteriori.posterior.unbounded`; F(u) = ln f(z(u)) + Σ ln dz/du, with gradient g and Hessian H.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from posteriori.errors import ParameterError, ShapeError
from posteriori.posterior.differences import along, axis_lengths, of_gradients, of_values
from posteriori.posterior.unbounded import Space
from posteriori.solve.local import Local
from posteriori.typing import Array

_SYMMETRIC = 1e-6
"""How much H_ij and H_ji may differ, beside the root of H_ii H_jj and their own size."""

_AGREE = 1e-4
"""How much a given derivative may differ from the one by differences, beside its own size."""

_NOISY = 100.0
"""Rounding errors of a second difference that it is allowed to be off by."""


@dataclass(frozen=True, eq=False)
class Density:
    """F, with derivatives by the functions given, or by differences where there are none.

    `scalar`: the functions are handed a plain number, because the start was one.

    >>> density = Density(lambda z: -z[0], None, None, Space.of((0, None), 1))
    >>> density.value(np.zeros(1)), density.local(np.zeros(1)).hessian.round(8)
    (-1.0, array([[-1.]]))
    """

    function: Callable[[Any], Any]
    gradient: Callable[[Any], Any] | None
    hessian: Callable[[Any], Any] | None
    space: Space
    scalar: bool = False

    def value(self, u: Array) -> float:
        """F(u); -∞ beyond the support, and where doubles cannot tell z from a bound."""
        z = self.space.outward(u)
        if not self.space.inside(z).all():
            return -np.inf
        found = self._number(z)
        if found == np.inf:
            raise ParameterError(
                f"The log density is infinite at {self.named(u)}.",
                "A density with a pole has no Laplace approximation; look at the formula, or at "
                "whether the variable should have bounds.",
            )
        return -np.inf if np.isnan(found) else found + float(self.space.slope(u).log.sum())

    def local(self, u: Array, V: Array | None = None) -> Local | None:
        """F, g and H; None where they are not to be had, beyond the support or close to its end.

        Differences are taken along the columns of V, which should be about a standard deviation
        long; without it, along axes as long as F changes by about one.
        """
        here = self.value(u)
        if here == -np.inf:
            return None
        g = None if self.gradient is None else self.slope(u)
        if g is not None and self.hessian is not None:
            return Local(here, g, self._curvature(u, g))
        V = np.diag(axis_lengths(self.value, u, here)) if V is None else V
        if g is not None:
            within = of_gradients(self._slope_or_nan, u, here, V)
            return Local(here, g, _outward(within, V)) if np.isfinite(within).all() else None
        found = of_values(self.value, u, here, V)
        if found is None:
            return None
        slope = cast(Array, np.linalg.solve(V.T, found.first))
        given = self.hessian is not None
        H = self._curvature(u, slope) if given else _outward(found.second, V)
        return Local(here, slope, H)

    def slope(self, u: Array) -> Array:
        """g by the gradient given: dz/du ∇ln f + dl/du."""
        z, (log, first, _) = self.space.outward(u), self.space.slope(u)
        given = self._given("gradient", cast(Callable[[Any], Any], self.gradient), z, (len(u),))
        return given * np.exp(log) + first

    def _slope_or_nan(self, u: Array) -> Array:
        return self.slope(u) if self.value(u) > -np.inf else np.full(len(u), np.nan)

    def _curvature(self, u: Array, g: Array) -> Array:
        """H by the Hessian given; with z' = exp(l), z'' ∇ln f is (g - l')l'."""
        z, (log, first, second) = self.space.outward(u), self.space.slope(u)
        p, factor = len(u), np.exp(log)
        H = self._given("Hessian", cast(Callable[[Any], Any], self.hessian), z, (p, p))
        root = np.sqrt(abs(np.diagonal(H)))
        size = np.multiply.outer(root, root)
        i, j = np.unravel_index((abs(H - H.T) - _SYMMETRIC * (size + abs(H))).argmax(), H.shape)
        if abs(H[i, j] - H[j, i]) > _SYMMETRIC * (size[i, j] + abs(H[i, j])):
            raise ParameterError(
                f"The Hessian at {self.named(u)} is not symmetric: its entries ({i}, {j}) and "
                f"({j}, {i}) are {H[i, j]:.6g} and {H[j, i]:.6g}.",
                "Correct the function, or leave it out: differences will take its place.",
            )
        within = 0.5 * (H + H.T) * factor * factor[:, None]
        return within + np.diag((g - first) * first + second)

    def check_derivatives(self, u: Array) -> None:
        """An error unless the derivatives given are those of F, along one direction at u."""
        here = self.value(u)
        if here == -np.inf or (self.gradient is None and self.hessian is None):
            return
        lengths = axis_lengths(self.value, u, here)
        v = lengths * np.random.default_rng(0).uniform(0.5, 1.0, len(u))
        slope, curvature, rounding = along(self.value, u, here, v)
        if self.gradient is not None:
            parts = self.slope(u) * v
            size = abs(parts).sum() + abs(slope)
            self._compare("gradient", u, float(parts.sum()), slope, size, rounding)
        local = self.local(u) if self.hessian is not None else None
        if local is not None:
            H = cast(Array, local.hessian)
            size = float(abs(v) @ abs(H) @ abs(v)) + abs(curvature)
            self._compare("Hessian", u, float(v @ H @ v), curvature, size, rounding)

    def named(self, u: Array) -> str:
        """The user's variables at a point, for messages."""
        z = ", ".join(f"{each:.6g}" for each in self.space.outward(u))
        return f"z = {z}" if len(u) == 1 else f"z = ({z})"

    def _compare(
        self, what: str, u: Array, given: float, seen: float, size: float, rounding: float
    ) -> None:
        if abs(given - seen) > _AGREE * (size + 1.0) + _NOISY * rounding:
            raise ParameterError(
                f"The {what} does not belong to the log density: along one direction at "
                f"{self.named(u)} it says {given:.6g}, and differences of the log density "
                f"{seen:.6g}.",
                "Correct the function, or leave it out: differences will take its place.",
            )

    def _number(self, z: Array) -> float:
        """What the log density gives at z."""
        try:
            with np.errstate(all="ignore"):
                found = self.function(self._handed(z))
        except OverflowError:  # of Python's numbers, where NumPy's would become infinite
            return np.nan
        if np.size(found) != 1:
            raise ShapeError(
                f"The log density gave an array of shape {np.shape(found)}.",
                "Return one number, the log density of one point z.",
            )
        try:
            return float(np.asarray(found).item())
        except (TypeError, ValueError):
            raise ParameterError(
                f"The log density gave {found!r}, which is not a number.", "Return one number."
            ) from None

    def _given(
        self, what: str, function: Callable[[Any], Any], z: Array, shape: tuple[int, ...]
    ) -> Array:
        """What a derivative gives at z, in its shape."""
        with np.errstate(all="ignore"):
            found = np.asarray(function(self._handed(z)), dtype=np.float64)
        if found.shape != shape and not (found.size == 1 and len(z) == 1):
            raise ShapeError(
                f"The {what} gave an array of shape {found.shape} for {len(z)} variables.",
                f"Return one of shape {shape}.",
            )
        if not np.isfinite(found).all():
            raise ParameterError(
                f"The {what} has entries that are not finite at z = {z.tolist()}, where the log "
                "density is.",
                "Correct the function, or leave it out: differences will take its place.",
            )
        return found.reshape(shape)

    def _handed(self, z: Array) -> Any:
        return float(z[0]) if self.scalar else z


def _outward(within: Array, V: Array) -> Array:
    """H of VᵀHV."""
    half = np.linalg.solve(V.T, within)
    return np.linalg.solve(V.T, half.T)
