"""A frame of categorical columns and one number, as in insurance: eight factors, 322 levels."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmarks.data.classes import SEED, Data
from benchmarks.data.targets import draw_bits

LEVELS = (2, 4, 6, 11, 22, 40, 87, 150)
EFFECT = 0.3
RATE = 0.3


def factors_and_bits(rows: int) -> Data:
    """A logistic target of the factors and the number."""
    rng = np.random.default_rng(SEED)
    frame, effect = _frame(rng, rows)
    return frame, draw_bits(rng, effect)


def factors_and_counts(rows: int) -> Data:
    """A Poisson target of the factors and the number."""
    rng = np.random.default_rng(SEED)
    frame, effect = _frame(rng, rows)
    return frame, rng.poisson(RATE * np.exp(effect))


def _frame(rng: np.random.Generator, rows: int) -> tuple[pd.DataFrame, np.ndarray]:
    """The frame, and the sum of the effects in each row."""
    number = rng.normal(size=rows)
    effect = EFFECT * number
    columns = {"number": number}
    for levels, codes in _codes(rng, rows):
        names = [f"level {level}" for level in range(levels)]
        columns[f"factor of {levels}"] = pd.Categorical.from_codes(codes, names)
        effect += rng.normal(scale=EFFECT, size=levels)[codes]
    return pd.DataFrame(columns), effect


def _codes(rng: np.random.Generator, rows: int) -> Iterator[tuple[int, np.ndarray]]:
    """For each factor its number of levels and a level for each row, the first ones common."""
    for levels in LEVELS:
        popularity = 1.0 / (np.arange(levels) + 3.0)
        codes = rng.choice(levels, rows, p=popularity / popularity.sum())
        yield levels, codes.astype(np.int16)
