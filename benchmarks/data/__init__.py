"""The data of the benchmarks: made from a fixed seed, so that every run sees the same rows.

`make(name, shrink)` gives (X, y); `formed(name, shrink, form)` gives X in another form.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from scipy import sparse

from benchmarks.data.classes import Data, bits, correlated, iris, rare_bits
from benchmarks.data.factors import factors_and_bits, factors_and_counts
from benchmarks.data.forms import as_made
from benchmarks.data.targets import many_classes, two_classes
from benchmarks.data.words import words

FEW = 1_000
"""Data sets are not shrunk below this many rows."""

CORRELATION = 0.9

HELD_OUT = 20_000
"""Rows at the end of data that have some to be predicted."""


@dataclass(frozen=True)
class Maker:
    """How many rows a data set has, and how to make that many."""

    rows: int
    make: Callable[[int], Data]


def _dense(rows: int, columns: int) -> dict[str, Maker]:
    """Two classes, once with independent and once with strongly correlated columns."""
    size = f"{rows:,} x {columns:,}"
    return {
        f"{size} independent": Maker(rows, partial(two_classes, columns=columns)),
        f"{size} correlated": Maker(
            rows, partial(two_classes, columns=columns, correlation=CORRELATION)
        ),
    }


def _held_out(rows: int, columns: int, correlation: float = 0.0) -> dict[str, Maker]:
    """Two classes, with more rows at the end on which to judge a fit to the others."""
    kind = "correlated" if correlation else "independent"
    return {
        f"{rows:,} x {columns} {kind}, {HELD_OUT:,} held out": Maker(
            rows + HELD_OUT, partial(two_classes, columns=columns, correlation=correlation)
        )
    }


DATA = {
    "500,000 x 50": Maker(500_000, partial(correlated, columns=50)),
    "100,000 x 200": Maker(100_000, partial(correlated, columns=200)),
    "500,000 x 100 bits": Maker(500_000, partial(bits, columns=100)),
    "200,000 x 10,000 sparse bits": Maker(200_000, partial(rare_bits, columns=10_000)),
    "iris, 150 x 4": Maker(150, iris),
    **_dense(100_000, 10),
    **_dense(100_000, 50),
    **_dense(1_000_000, 20),
    **_dense(200_000, 200),
    **_dense(50_000, 500),
    **_dense(1_000, 20),
    **_dense(200_000, 30),
    **_dense(200_000, 50),
    **_dense(20_000, 20),
    **_dense(20_000, 30),
    **_held_out(20_000, 30),
    **_held_out(20_000, 30, CORRELATION),
    **_held_out(200_000, 50),
    "100,000 x 50, 5 classes": Maker(100_000, partial(many_classes, columns=50, classes=5)),
    "50,000 x 20, 20 classes": Maker(50_000, partial(many_classes, columns=20, classes=20)),
    "100,000 x 50,000 words": Maker(100_000, partial(words, columns=50_000, entries=100)),
    "600,000 factors, two classes": Maker(600_000, factors_and_bits),
    "600,000 factors, counts": Maker(600_000, factors_and_counts),
}


@lru_cache(maxsize=1)
def make(name: str, shrink: int = 1) -> Data:
    """The data set `name` with its rows divided by `shrink`; the last one is cached."""
    maker = DATA[name]
    return maker.make(max(maker.rows // shrink, min(maker.rows, FEW)))


def formed(name: str, shrink: int, form: Callable[[Any], Any]) -> Data:
    """The same with X in another form; the last one is cached."""
    X, y = make(name, shrink)
    return (X if form is as_made else _changed(name, shrink, form)), y


@lru_cache(maxsize=1)
def _changed(name: str, shrink: int, form: Callable[[Any], Any]) -> Any:
    return form(make(name, shrink)[0])


def size_in_bytes(X: Any) -> int:
    """What X itself takes."""
    if sparse.issparse(X):
        return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    if hasattr(X, "memory_usage"):
        return int(X.memory_usage(index=False).sum())
    return X.nbytes
