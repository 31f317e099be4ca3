"""Words in documents: a wide sparse matrix whose columns differ wildly in popularity."""

import numpy as np
from scipy import sparse

from benchmarks.data.classes import SEED, Data
from benchmarks.data.targets import draw_bits

SIGNAL = 3.0
CHUNK = 10_000
SPARE = 1.3
"""Words drawn for each one kept, so that enough different ones are among them."""


def words(rows: int, columns: int, entries: int) -> Data:
    """A logistic target of documents with `entries` different words each, as a CSR matrix.

    The r-th most popular word is drawn in proportion to 1/(r + 10). An entry is the rarity of
    its word (tf-idf of words that occur once); each row has length one.
    """
    rng = np.random.default_rng(SEED)
    popularity = 1.0 / (rng.permutation(columns) + 10.0)
    popularity /= popularity.sum()
    indices = np.concatenate(
        [
            _documents(rng, min(CHUNK, rows - start), entries, popularity)
            for start in range(0, rows, CHUNK)
        ]
    )
    values = -np.log(popularity)[indices]
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    indptr = np.arange(0, indices.size + 1, entries, dtype=np.int32)
    X = sparse.csr_matrix((values.ravel(), indices.ravel(), indptr), shape=(rows, columns))
    return X, draw_bits(rng, X @ rng.normal(scale=SIGNAL, size=columns))


def _documents(
    rng: np.random.Generator, rows: int, entries: int, popularity: np.ndarray
) -> np.ndarray:
    """The first `entries` different words drawn in each row, in order of their column."""
    drawn = rng.choice(popularity.size, (rows, int(SPARE * entries)), p=popularity)
    order = np.argsort(drawn, axis=1, kind="stable")
    by_word = np.take_along_axis(drawn, order, axis=1)
    again = np.zeros(drawn.shape, dtype=bool)
    np.put_along_axis(again, order[:, 1:], by_word[:, 1:] == by_word[:, :-1], axis=1)
    kept = ~again & (np.cumsum(~again, axis=1) <= entries)
    return np.sort(drawn[kept].reshape(rows, entries), axis=1).astype(np.int32)
