"""Inference from a curvature alone, when the rows it was summed over are gone."""

from functools import cached_property
from typing import NoReturn

from posteriori.errors import InferenceError
from posteriori.posterior.goodness import Goodness
from posteriori.posterior.inference import Errors, Inference, inverse_of
from posteriori.posterior.shown import Shown
from posteriori.typing import Array


class RowlessInference(Inference):
    """What an optimum w and the curvature there say: estimates, standard errors, covariance."""

    def __init__(self, shown: Shown, w: Array, precision: Array) -> None:
        self._objective, self._free = None, {}
        self._precision: Array = precision
        self.w = w
        self.shown = shown
        self.goodness = _NoGoodness(w)

    @property
    def objective(self) -> NoReturn:
        """Not to be had."""
        _rows_are_gone("this")

    @cached_property
    def evidence(self) -> NoReturn:
        """Not to be had."""
        _rows_are_gone("the evidence")

    def without_rows(self) -> Inference:
        """Itself: there are none."""
        return self

    def profile(self, level: float) -> Array:
        """Not to be had."""
        _rows_are_gone("profile intervals")

    def _worked_out(self, errors: Errors) -> Array:
        if errors != "model":
            _rows_are_gone(f"{errors} standard errors")
        return inverse_of(self._precision)


class _NoGoodness(Goodness):
    """How well a fit describes its rows can no longer be told."""

    def __init__(self, w: Array) -> None:
        self._objective, self._w, self._family, self._others = None, w, None, 0

    @cached_property
    def _sums(self) -> NoReturn:
        _rows_are_gone("the likelihood")


def _rows_are_gone(what: str) -> NoReturn:
    raise InferenceError(
        f"partial_fit does not keep the rows, and {what} cannot be had without them.",
        "Use fit with all rows.",
    )
