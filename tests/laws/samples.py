"""Rows for each kind of model, and what a model can do."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from registry import ENTRIES, Entry
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

NAMES = ["height", "weight", "age", "größe"]


@dataclass(frozen=True)
class Rows:
    """Rows to fit, their labels, and other rows to predict."""

    X: np.ndarray
    y: np.ndarray
    new: np.ndarray

    @property
    def classes(self) -> list[Any]:
        return sorted(set(self.y.tolist()))


def rows_for(
    entry: Entry, n: int = 90, classes: int = 3, d: int = 4, seed: int = 0, new: int = 25
) -> Rows:
    """Rows of the kind the entry is made for, the classes apart but not separated."""
    classes = min(classes, entry.most_classes or classes)
    random = np.random.default_rng([seed, n, classes, d])
    y = np.concatenate([np.arange(classes).repeat(4), random.integers(classes, size=n + new)])
    place = y[: n + new].copy()
    if entry.strays:
        stray = random.uniform(size=n + new) < entry.strays
        place[stray] = random.integers(classes, size=stray.sum())
    X = _DRAW[entry.kind](random, place, d)
    return Rows(X[:n], y[:n], X[n:])


def rounded(entry: Entry, n: int = 90) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows that float32 holds exactly: X, y, and new rows."""
    rows = rows_for(entry, n)
    X, new = (part.astype(np.float32).astype(np.float64) for part in (rows.X, rows.new))
    return X, rows.y, new


def frame_of(X: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(X, columns=NAMES)


def mixed_columns(entry: Entry, n: int, seed: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Labels, and columns of numbers, counts, booleans and levels."""
    classes = entry.most_classes or 3
    random = np.random.default_rng(seed)
    y = random.integers(classes, size=n)
    colour = np.array(["blue", "green", "red"])[(y + random.choice(3, n, p=[0.6, 0.2, 0.2])) % 3]
    return y, {
        "size": random.normal(size=n) + y,
        "count": random.poisson(2.0 + y),
        "old": random.uniform(size=n) < 0.3 + 0.2 * y,
        "colour": colour,
    }


def pandas_of(columns: dict[str, np.ndarray], kind: Any = "str") -> pd.DataFrame:
    """A frame with its levels as columns of this kind."""
    return pd.DataFrame(columns).astype({"colour": kind})


def _real(random: np.random.Generator, y: np.ndarray, d: int) -> np.ndarray:
    means = random.normal(size=(y.max() + 1, d))
    mix = np.eye(d) + 0.4 * random.normal(size=(d, d))
    widen = 1 + 0.3 * np.arange(y.max() + 1)
    return 3.0 + means[y] * 1.5 + (random.normal(size=(len(y), d)) @ mix) * widen[y, None]


def _bits(random: np.random.Generator, y: np.ndarray, d: int) -> np.ndarray:
    chance = random.uniform(0.2, 0.8, size=(y.max() + 1, d))
    return (random.uniform(size=(len(y), d)) < chance[y]).astype(float)


def _counts(random: np.random.Generator, y: np.ndarray, d: int) -> np.ndarray:
    return random.poisson(random.uniform(1.0, 6.0, size=(y.max() + 1, d))[y]).astype(float)


def _positive(random: np.random.Generator, y: np.ndarray, d: int) -> np.ndarray:
    return random.exponential(random.uniform(0.5, 3.0, size=(y.max() + 1, d))[y])


def _mixed(random: np.random.Generator, y: np.ndarray, d: int) -> np.ndarray:
    kinds = (_real, _counts, _bits, _positive)
    return np.hstack([kinds[j % 4](random, y, 1) for j in range(d)])


_DRAW = {"real": _real, "mixed": _mixed}


def has_proba(entry: Entry) -> bool:
    return hasattr(entry.estimator, "predict_proba")


def is_generative(entry: Entry) -> bool:
    return hasattr(entry.estimator, "sample")


def is_from_sums(entry: Entry) -> bool:
    return hasattr(entry.estimator, "from_statistics")


def allows_missing(entry: Entry) -> bool:
    return get_tags(entry.estimator).input_tags.allow_nan


def takes_soft_labels(entry: Entry) -> bool:
    return has_fit_parameter(entry.estimator, "classes")


def has_free(entry: Entry, what: str) -> bool:
    return what in entry.freedom


def is_linear(model: Any) -> bool:
    """Whether a fitted model has linear boundaries."""
    return hasattr(model, "coef_")


def over(*wanted: Any, entries: Sequence[Entry] = ENTRIES) -> Any:
    """Parametrise a law over the entries that fulfil all conditions."""
    chosen = [entry for entry in entries if all(can(entry) for can in wanted)]
    return pytest.mark.parametrize("entry", chosen, ids=str)


def over_sources(sources: dict[str, Any]) -> Any:
    """Parametrise a law over sources."""
    return pytest.mark.parametrize("source", sources.values(), ids=sources)


def fitted(entry: Entry, rows: Rows, **given: Any) -> Any:
    return entry.make(rows.classes).fit(rows.X, rows.y, **given)


def outputs(model: Any, X: Any) -> dict[str, np.ndarray]:
    """All outputs of a fitted model for rows, as numbers."""
    names = ["decision_function", "predict_proba", "predict_log_proba", "score_samples"]
    names += ["predict_targets", "transform", "p_value", "expected_loss"]
    found = {name: getattr(model, name)(X) for name in names if hasattr(model, name)}
    places = {label: k for k, label in enumerate(model.classes_.tolist())}
    found["predict"] = np.array([places.get(label, -1) for label in model.predict(X).tolist()])
    return found


def assert_same_outputs(
    a: dict[str, np.ndarray], b: dict[str, np.ndarray], tolerance: float = 1e-10
) -> None:
    """Alike to `tolerance`, relative to one or to the number; to the last bit where it is 0."""
    assert a.keys() == b.keys()
    for name, expected in a.items():
        if tolerance == 0:
            np.testing.assert_array_equal(b[name], expected, err_msg=name)
        else:
            np.testing.assert_allclose(
                b[name], expected, rtol=tolerance, atol=tolerance, err_msg=name
            )


def assert_same_probabilities(a: Any, b: Any, X: Any, Z: Any = None, tolerance: float = 1e-10):
    """Two models, of rows X and Z (X itself unless given), where both give finite numbers."""
    Z = X if Z is None else Z
    name = "predict_proba" if hasattr(a, "predict_proba") else "decision_function"
    expected, found = getattr(a, name)(X), getattr(b, name)(Z)
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


def names_columns(entry: Entry) -> bool:
    """Whether a parameter speaks of columns by their place."""
    return any(isinstance(value, dict) for value in entry.estimator.get_params().values())
