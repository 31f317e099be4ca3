"""From the user's columns to columns of the design matrix."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import get_args

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from posteriori.design.matrix import Coded, Dense, Design, Sparse, Stacked
from posteriori.errors import LevelError, ParameterError, ShapeError
from posteriori.rows.block import MISSING, UNSEEN, Block, Mixed, check_finite, split_rows
from posteriori.rows.schema import HandleUnknown, Schema, known_levels
from posteriori.typing import Codes

_DENSE_ENTRIES = 2**19
"""Numbers of a part of a block that is filled in."""

_MOST_WITH_FACTORS, _MOST_COVARIANCES = 3_000, 20_000
"""Design columns whose covariances are kept, with factors and without: 72 MB and 3.2 GB, several
times in a fit."""


@dataclass(frozen=True)
class Columns:
    """How the columns of a schema enter the design matrix: in their order.

    A factor with L levels gives L - 1 columns, the first level being the reference. A level that
    the schema lacks is an error or, with `handle_unknown="reference"`, taken for the reference
    level: its row gets zeros in all columns of the factor. A missing level is an error either way.

    >>> from posteriori.rows.schema import Column
    >>> schema = Schema((Column("f", "categorical", ("a", "b", "c")),), named=True)
    >>> codes = np.array([[2], [UNSEEN]], dtype=np.int32)
    >>> block = Block(Mixed(np.empty((2, 0)), codes), None, None, 0)
    >>> Columns(schema, handle_unknown="reference").design(block).array()
    array([[0., 1.], [0., 0.]])
    """

    schema: Schema
    handle_unknown: HandleUnknown = "error"

    def __post_init__(self) -> None:
        if self.handle_unknown not in get_args(HandleUnknown):
            raise ParameterError(
                f"handle_unknown={self.handle_unknown!r} is not understood.",
                "Use 'error' or 'reference'.",
            )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the design columns; a level l of factor f is called f[l]."""
        return tuple(chain.from_iterable(self._each))

    @cached_property
    def _each(self) -> list[list[str]]:
        return [
            [f"{column.name}[{level}]" for level in column.levels[1:]]
            if column.kind == "categorical"
            else [column.name]
            for column in self.schema.columns
        ]

    @cached_property
    def positions(self) -> list[Codes]:
        """For each column of the schema, the positions of its design columns."""
        widths = list(map(len, self._each))
        return np.split(np.arange(sum(widths)), np.cumsum(widths)[:-1])

    @cached_property
    def numeric(self) -> Codes:
        """Positions in the design of the numeric and boolean columns."""
        if not self.schema.categorical:
            return np.arange(len(self.schema))
        return np.array([self.positions[j][0] for j in self.schema.numeric], dtype=np.intp)

    def as_schema(self) -> Schema:
        """The design columns as a schema of their own, for messages that name them."""
        if not self.schema.categorical:
            return self.schema
        return Schema.of_names(self.names)

    def design(self, block: Block) -> Design:
        """Φ without intercept for the rows of a block."""
        X = block.X
        if not len(self.schema):
            return Dense(np.empty((X.shape[0], 0)))
        if not isinstance(X, Mixed):
            return Sparse(X) if isinstance(X, sparse.csr_array) else Dense(X)
        parts: list[Design] = [Dense(X.numeric)] if X.numeric.shape[1] else []
        positions = [self.numeric] if parts else []
        for q, j in enumerate(self.schema.categorical):
            codes = X.codes[:, q]
            if codes.min(initial=0) < 0:
                codes = self._without_gaps(block, X, q)
            parts.append(Coded(codes, len(self.schema.columns[j].levels)))
            positions.append(self.positions[j])
        return Stacked(parts, positions)

    def dense_parts(self, block: Block) -> Iterator[Block]:
        """The block in parts whose design may be filled in: few rows of sparse or coded columns."""
        if isinstance(block.X, np.ndarray):
            return iter([block])
        return split_rows(block, max(1, _DENSE_ENTRIES // max(len(self.names), 1)))

    def check_covariance(self, model: str) -> None:
        """An error where there are so many columns that their covariances do not fit."""
        n, categorical = len(self.names), self.schema.categorical
        most = _MOST_WITH_FACTORS if categorical else _MOST_COVARIANCES
        if n <= most:
            return
        why = f"{model} needs the covariances of all {n:,} columns of the design matrix"
        widest = max(categorical, key=lambda j: len(self.positions[j]), default=None)
        if widest is None:
            raise ShapeError(
                f"{why}, which are {8 * n**2 / 2**30:,.0f} GiB; {most:,} columns are the most.",
                "Use fewer columns, or a model without covariances, such as LogisticRegression "
                "with a prior or GaussianClassifier(covariance='diagonal').",
            )
        column = self.schema.columns[widest]
        raise ShapeError(
            f"Column '{column.name}' has {len(column.levels):,} levels, and {why}; with factors, "
            f"{most:,} are the most.",
            "Merge rare levels, or use LogisticRegression or NaiveBayes.",
        )

    def _without_gaps(self, block: Block, X: Mixed, q: int) -> NDArray[np.int32]:
        """Codes of the q-th factor with unseen levels as the reference, or the error they are."""
        if (X.codes == MISSING).any():
            check_finite(block, self.schema)
        codes, j = X.codes[:, q], self.schema.categorical[q]
        if self.handle_unknown == "reference":
            return np.maximum(codes, 0)
        row = block.row(int(np.argmax(codes == UNSEEN)))
        unseen = X.unseen[q] if X.unseen else None
        level = f"the level {unseen.level!r}" if unseen and unseen.row == row else "a level"
        raise LevelError(
            f"Row {{row}} has {level} in {self.schema.describe(j)}, which was not in the fit.",
            known_levels(self.schema.columns[j].levels),
            row,
        )
