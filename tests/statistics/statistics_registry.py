"""The statistics that exist, how each is gathered, and what it must equal.

A new statistic is tested by one more line in `STATISTICS`: its kernel, and a plain formula for its
fields from all rows at once (X, soft labels T, weights w).
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np

from posteriori.design.columns import Columns
from posteriori.rows.in_memory import MemoryRows, read_rows
from posteriori.rows.schema import Schema
from posteriori.statistics.column_moments import GatherColumnMoments
from posteriori.statistics.moments import GatherMoments

Formula = Callable[[np.ndarray, np.ndarray, np.ndarray], dict[str, np.ndarray]]


@dataclass(frozen=True)
class Entry:
    """How to make the kernel from a schema and classes, and the formula of what it gathers."""

    make: Callable[[Columns, np.ndarray], Any]
    formula: Formula

    def kernel(self, schema: Schema, classes: np.ndarray) -> Any:
        return self.make(Columns(schema), classes)

    def of(self, X: Any, y: Any, weight: Any = None, classes: Any = None, **options: Any) -> Any:
        """The statistic of rows in memory."""
        rows = read_rows(X, y, weight, classes)
        return rows.map_sum(self.of_rows(rows), **options)

    def of_rows(self, rows: MemoryRows) -> Any:
        return self.kernel(rows.schema, rows.classes)


def class_moments(X: np.ndarray, T: np.ndarray, w: np.ndarray) -> tuple[Any, Any, Any]:
    weight = T * w[:, None]
    count = weight.sum(0)
    mean = np.array(
        [np.average(X, axis=0, weights=v) if v.any() else np.zeros(X.shape[1]) for v in weight.T]
    )
    scatter = np.array([((X - m).T * v) @ (X - m) for v, m in zip(weight.T, mean, strict=True)])
    return count, mean, scatter


def moments(pooled: bool) -> Entry:
    def formula(X: np.ndarray, T: np.ndarray, w: np.ndarray) -> dict[str, np.ndarray]:
        count, mean, scatter = class_moments(X, T, w)
        return {
            "count": count,
            "mean": mean,
            "scatter": scatter.sum(0, keepdims=True) if pooled else scatter,
        }

    return Entry(partial(GatherMoments, pooled=pooled), formula)


def column_formula(X: np.ndarray, T: np.ndarray, w: np.ndarray) -> dict[str, np.ndarray]:
    count, mean, scatter = class_moments(X, T, w)
    return {
        "class_count": count,
        "count": np.repeat(count[:, None], X.shape[1], axis=1),
        "mean": mean,
        "scatter": np.einsum("kii->ki", scatter),
    }


STATISTICS: dict[str, Entry] = {
    "moments, pooled": moments(pooled=True),
    "moments, by class": moments(pooled=False),
    "column moments": Entry(GatherColumnMoments, column_formula),
}


def numbers(statistic: Any) -> dict[str, np.ndarray]:
    """Every number a statistic holds, by the name of its field; labels and columns left out."""
    values = {field.name: getattr(statistic, field.name) for field in fields(statistic)}
    return {
        name: np.asarray(value)
        for name, value in values.items()
        if isinstance(value, float | np.ndarray) and name != "classes"
    }


def assert_same(a: Any, b: Any, rtol: float = 1e-10) -> None:
    """Two statistics of the same rows: the same classes, and numbers that agree."""
    assert a.classes.tolist() == b.classes.tolist()
    assert_numbers(a, numbers(b), rtol)


def assert_numbers(statistic: Any, expected: dict[str, np.ndarray], rtol: float = 1e-10) -> None:
    found = numbers(statistic)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        size = abs(value).max(initial=0)
        np.testing.assert_allclose(
            found[name], value, rtol=rtol, atol=rtol * size, err_msg=name, strict=True
        )
