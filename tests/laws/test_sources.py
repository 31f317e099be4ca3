"""The same rows in memory of any kind give the same predictions."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from registry import FOUR
from samples import (
    NAMES,
    assert_same_outputs,
    frame_of,
    mixed_columns,
    outputs,
    over,
    over_sources,
    pandas_of,
    rounded,
    rows_for,
)
from scipy import sparse

from posteriori.errors import ColumnNameError, ColumnNameWarning


def _strided(X):
    wide = np.full((2 * len(X), 3 * X.shape[1]), np.nan)
    wide[::2, 1::3] = X
    return wide[::2, 1::3]


def _backwards(X):
    return np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]


def _unsorted_csr(X):
    """Entries out of order, some of them in two pieces, and zeros stored."""
    whole = sparse.coo_array(np.ones_like(X))
    rows, columns = whole.coords
    order = np.random.default_rng(0).permutation(len(rows))
    half = X[rows, columns][order] / 2
    twice = [np.concatenate([part[order]] * 2) for part in (rows, columns)]
    return sparse.coo_array((np.concatenate([half] * 2), tuple(twice)), shape=X.shape)


UNNAMED = {
    "Fortran": np.asfortranarray,
    "strided": _strided,
    "backwards": _backwards,
    "float32": lambda X: X.astype(np.float32),
    "float16 columns as objects": lambda X: X.astype(object),
    "big-endian": lambda X: X.astype(">f8"),
    "lists": lambda X: X.tolist(),
    "CSR": sparse.csr_array,
    "CSC": sparse.csc_array,
    "COO": sparse.coo_array,
    "COO in pieces": _unsorted_csr,
    "memory view": lambda X: memoryview(np.ascontiguousarray(X)),
}


NAMED = {
    "pandas": frame_of,
    "pandas nullable": lambda X: frame_of(X).astype("Float64"),
    "pandas Arrow": lambda X: frame_of(X).astype("double[pyarrow]"),
    "pandas with an index": lambda X: frame_of(X).set_index(np.arange(len(X))[::-1] * 2),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
    "pyarrow": lambda X: pa.table(dict(zip(NAMES, X.T, strict=True))),
    "pyarrow in chunks": lambda X: pa.concat_tables(
        [pa.table(dict(zip(NAMES, part.T, strict=True))) for part in np.array_split(X, 3)]
    ),
}


@over(entries=FOUR)
@over_sources(UNNAMED | NAMED)
def test_any_array_and_any_frame_give_the_same(entry, source):
    X, y, new = rounded(entry)
    plain = entry.make([0, 1, 2]).fit(X, y)
    model = entry.make([0, 1, 2]).fit(source(X), y)
    if source in NAMED.values():
        assert model.feature_names_in_.tolist() == NAMES
        plain = entry.make([0, 1, 2]).fit(frame_of(X), y)
        new = frame_of(new)
    expected = outputs(plain, new)
    assert_same_outputs(expected, outputs(model, new))
    assert_same_outputs(expected, outputs(plain, source(np.asarray(new))))


@over(entries=FOUR)
@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint16, bool])
def test_whole_numbers_of_any_type(entry, dtype):
    if dtype is bool and "family" in entry.estimator.get_params():
        pytest.skip("booleans have a family of their own")
    rows = rows_for(entry)
    base = 2 if dtype is bool else 100
    X, new = (np.abs(np.round(part)) % base for part in (rows.X, rows.new))
    expected = outputs(entry.make(rows.classes).fit(X, rows.y), new)
    model = entry.make(rows.classes).fit(X.astype(dtype), rows.y)
    assert_same_outputs(expected, outputs(model, new))
    assert_same_outputs(expected, outputs(model, new.astype(dtype)))


@over(entries=FOUR)
@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_columns_go_by_name_in_any_order_and_among_others(entry, kind):
    rows = rows_for(entry)
    model, new = entry.make(rows.classes).fit(frame_of(rows.X), rows.y), frame_of(rows.new)
    expected = outputs(model, new)
    more = new.assign(rent=1.0)[["rent", *NAMES[::-1]]]
    assert_same_outputs(expected, outputs(model, kind(more)), tolerance=0)
    wrong = {"'age'": new.drop(columns="age"), "'agee'": new.rename(columns={"age": "agee"})}
    for name, frame in wrong.items():
        with pytest.raises(ColumnNameError, match=name):
            model.predict(kind(frame))
    with pytest.warns(ColumnNameWarning, match="feature names"):
        found = model.decision_function(np.asfortranarray(rows.new))  # as frames have them
    np.testing.assert_array_equal(found, expected["decision_function"])


MIXED = {
    "pandas strings": pandas_of,
    "pandas objects": lambda c: pandas_of(c, object),
    "pandas categories": lambda c: pandas_of(c, "category"),
    "pandas Arrow strings": lambda c: pandas_of(c, "string[pyarrow]"),
    "array of objects": lambda c: pandas_of(c).to_numpy(dtype=object),
    "polars strings": pl.DataFrame,
    "polars categories": lambda c: pl.DataFrame(c).cast({"colour": pl.Categorical}),
    "polars enum": lambda c: pl.DataFrame(c).cast({"colour": pl.Enum(["blue", "green", "red"])}),
    "pyarrow strings": pa.table,
    "pyarrow dictionary": lambda c: pa.table(
        {**c, "colour": pa.array(c["colour"]).dictionary_encode()}
    ),
}


@over(entries=FOUR)
@pytest.mark.parametrize("source", MIXED.values(), ids=MIXED)
def test_frames_of_numbers_booleans_and_levels(entry, source):
    (y, columns), (_, new) = mixed_columns(entry, 120, 0), mixed_columns(entry, 30, 1)
    plain = entry.make([0, 1, 2]).fit(pandas_of(columns), y)
    expected = outputs(plain, pandas_of(new))
    model = entry.make([0, 1, 2]).fit(source(columns), y)
    assert_same_outputs(expected, outputs(model, source(new)))
    if not isinstance(source(new), np.ndarray):  # which has no names
        assert_same_outputs(expected, outputs(plain, source(new)))


LABELS = {
    "list": list,
    "pandas": pd.Series,
    "pandas category": lambda y: pd.Series(y, dtype="category"),
    "pandas odd index": lambda y: pd.Series(y, index=np.arange(len(y))[::-1]),
    "polars": pl.Series,
    "polars categories": lambda y: pl.Series(y, dtype=pl.Categorical),
    "pyarrow": lambda y: pa.chunked_array([pa.array(y[:10]), pa.array(y[10:])]),
    "pyarrow array": pa.array,
    "objects": lambda y: np.array(y, dtype=object),
}


@over(entries=FOUR)
@pytest.mark.parametrize("source", LABELS.values(), ids=LABELS)
def test_labels_and_weights_from_any_source(entry, source):
    rows = rows_for(entry)
    names = ["ja", "nein", "weiß nicht"][: len(rows.classes)]
    y, weight = [names[k] for k in rows.y], np.linspace(0.5, 2, len(rows.X))
    plain = entry.make(names).fit(rows.X, np.array(y), sample_weight=weight)
    kinds = {pd.Series, pl.Series, pa.array, list}
    given = source(weight) if source in kinds else weight
    model = entry.make(names).fit(rows.X, source(y), sample_weight=given)
    assert_same_outputs(outputs(plain, rows.new), outputs(model, rows.new), tolerance=0)
    assert model.predict(rows.new).tolist() == plain.predict(rows.new).tolist()
