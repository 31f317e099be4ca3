"""What transformers by basis functions share: reading rows, and evaluating them block by block."""

from abc import abstractmethod
from numbers import Real
from typing import Any, Literal, Self, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from posteriori.design.basis import BasisFunctions
from posteriori.errors import ColumnTypeError, ParameterError
from posteriori.rows.block import Block
from posteriori.rows.features import read_features
from posteriori.rows.in_memory import BLOCK_ENTRIES, SERIAL_ENTRIES, MemoryRows
from posteriori.rows.schema import Schema
from posteriori.rows.tables import Table
from posteriori.rows.threads import map_in_order, one_blas_thread
from posteriori.statistics.column_moments import Overview, dense, overview_of
from posteriori.typing import Array

Placement: TypeAlias = Literal["data", "grid"]
Units: TypeAlias = Literal["standardised", "original"]


class BasisTransformer(TransformerMixin, BaseEstimator):
    """Columns of functions of the rows: where they are centred, and how wide they are."""

    centres: int | ArrayLike | None
    placement: Placement
    width: float | None
    units: Units
    random_state: Any

    schema_: Schema
    _basis: BasisFunctions

    def __init__(
        self,
        *,
        centres: int | ArrayLike | None = None,
        placement: Placement = "data",
        width: float | None = None,
        units: Units = "standardised",
        random_state: Any = 0,
    ) -> None:
        self.centres = centres
        self.placement = placement
        self.width = width
        self.units = units
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Place the centres and choose the width by the rows X (n, d); y is not used."""
        self._check_parameters()
        table = self._read(X, None)
        random = check_random_state(self.random_state)
        with one_blas_thread():
            self._place(overview_of(MemoryRows(table, None), random), random)
        self.schema_, self.n_features_in_ = table.schema, len(table.schema)
        if table.schema.named:
            self.feature_names_in_ = np.array(table.schema.names, dtype=object)
        else:
            self.__dict__.pop("feature_names_in_", None)
        return self

    @abstractmethod
    def _place(self, seen: Overview, random: Any) -> None:
        """Set `centres_`, `width_` and the functions, once nothing can fail."""

    def transform(self, X: Any) -> Array:
        """φ(x) of each row, (n, m)."""
        check_is_fitted(self)
        table, schema = self._read(X, self.schema_), self.schema_
        out = np.empty((table.n_rows, self._n_features_out))
        rows = max(1, BLOCK_ENTRIES // max(len(schema), out.shape[1]))

        def write(low: int) -> None:
            high = min(low + rows, table.n_rows)
            block = Block(table.cut(low, high), None, None, low)
            self._basis.fill(dense(block, schema), out[low:high])

        small = len(out) * (len(schema) + out.shape[1]) < SERIAL_ENTRIES
        starts = range(0, table.n_rows, rows)
        if small:
            for low in starts:
                write(low)
        else:
            map_in_order(write, starts)
        return out

    @property
    def _n_features_out(self) -> int:
        return self._basis.n_functions

    def _read(self, X: Any, schema: Schema | None) -> Table:
        table = read_features(X, schema, type(self).__name__)
        if table.schema.categorical:
            raise ColumnTypeError(
                f"{type(self).__name__} needs numbers, but there are levels in "
                f"{table.schema.describe_all(table.schema.categorical)}.",
                "Give it the columns of numbers alone, by make_column_transformer.",
            )
        return table

    def _check_parameters(self) -> None:
        for name, kind in (("placement", Placement), ("units", Units)):
            value, choices = getattr(self, name), get_args(kind)
            if value not in choices:
                raise ParameterError(f"{name}={value!r} is not known.", f"Use one of {choices}.")
        number, width = self._number(), self.width
        if number is not None and number < 1:
            raise ParameterError(f"centres={number} is too few.", "Ask for one or more.")
        known = isinstance(width, Real) and not isinstance(width, bool)
        if width is not None and not (known and 0 < width < np.inf):
            raise ParameterError(f"width={width!r} is not a width.", "Pass a positive number.")

    def _number(self) -> int | None:
        """How many centres are asked for; None where they are given, or left to us."""
        if isinstance(self.centres, bool | np.bool_):
            raise ParameterError(
                f"centres={self.centres} is not a number.", "Pass how many, or where."
            )
        return int(self.centres) if isinstance(self.centres, int | np.integer) else None

    def _unit(self, seen: Overview) -> Array:
        """The length of one in each column (d,)."""
        return seen.spread if self.units == "standardised" else np.ones(len(seen.schema))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
