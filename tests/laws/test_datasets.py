"""The same rows in files and in Dask give the fit in memory, however they are cut."""

from contextlib import suppress
from functools import cache, partial

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from registry import AROUND, CROSS_FITTED, ENTRIES, FOUR
from samples import (
    NAMES,
    allows_missing,
    assert_same_outputs,
    frame_of,
    mixed_columns,
    outputs,
    over,
    over_sources,
    pandas_of,
    rounded,
    rows_for,
    takes_soft_labels,
)
from scipy import sparse

from posteriori import scan
from posteriori.errors import PosterioriError


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def _exact(entry, classes):
    """The estimator with what makes its fit exact."""
    return entry.make(classes).set_params(**entry.exactly)


def _cut(frame, by):
    """Chunks of the sorted rows, of unequal size and in another order.

    Some have one value alone of what they are sorted by; the first and one in the middle are empty.
    """
    ordered = frame.sort_values(by, kind="stable")
    a, b, c, d = (ordered.iloc[part] for part in np.split(np.arange(len(frame)), [1, 8, 40]))
    assert b[by].nunique() == 1 < ordered[by].nunique()
    return [frame.iloc[:0], c, a, frame.iloc[:0], d, b]


def _in_order_of(chunks):
    """The rows as the chunks have them."""
    return pd.concat(chunks, ignore_index=True)


def _table(part):
    return pa.Table.from_pandas(part, preserve_index=False)


def _files(folder, chunks, ending, write):
    for i, part in enumerate(chunks):
        write(part, folder / f"{i}.{ending}")
    return folder


def _parquet(folder, chunks):
    return _files(
        folder, chunks, "parquet", lambda a, path: pq.write_table(_table(a), path, row_group_size=5)
    )


def _delayed(chunks):
    return [dask.delayed(part, pure=False) for part in chunks]


FRAMES = {
    "Parquet": _parquet,
    "CSV": lambda folder, chunks: _files(
        folder, chunks, "csv", lambda part, path: part.to_csv(path, index=False)
    ),
    "Arrow": lambda folder, chunks: _files(
        folder, chunks, "arrow", lambda part, path: feather.write_feather(_table(part), path)
    ),
    "polars": lambda folder, chunks: pl.concat(map(pl.from_pandas, chunks), rechunk=False),
    "Dask data frame": lambda folder, chunks: dd.from_delayed(_delayed(chunks), meta=chunks[0]),
    "delayed frames": lambda folder, chunks: _delayed(chunks),
}


def _dask_arrays(chunks):
    """Cut along columns too."""
    whole, lengths = pd.concat(chunks), tuple(map(len, chunks))
    X = da.from_array(whole[NAMES].to_numpy(), chunks=(lengths, (3, 1)))
    return X, da.from_array(whole["y"].to_numpy(), chunks=(lengths,))


def _sparse_blocks(chunks):
    X, y = _dask_arrays(chunks)
    return X.rechunk({1: -1}).map_blocks(sparse.csr_array), y


def _scanned(make):
    return lambda folder, chunks: (scan(make(folder, chunks), target="y"),)


SOURCES = {name: _scanned(make) for name, make in FRAMES.items()} | {
    "Dask arrays": lambda folder, chunks: _dask_arrays(chunks),
    "Dask array of sparse blocks": lambda folder, chunks: _sparse_blocks(chunks),
}


FEW = {name: FRAMES[name] for name in ("Parquet", "CSV", "polars", "Dask data frame")}


def _learnt(model):
    """All numbers that a fit has found, with standard errors where there are any."""
    found = {}
    for name in dir(model):
        if name.endswith("_") and not name.startswith("_"):
            with suppress(AttributeError, PosterioriError):
                value = getattr(model, name)
                if isinstance(value, float | np.ndarray) and np.asarray(value).dtype == float:
                    found[name] = value
    for errors in ("model", "robust") if hasattr(model, "coef_covariance_") else ():
        found[errors] = model.tidy(errors=errors).select_dtypes(float).to_numpy()
    return found


@cache
def _in_memory(entry):
    X, y, new = rounded(entry, n=60)
    frame = _in_order_of(_cut(frame_of(X).assign(y=y), "y"))
    plain = _exact(entry, sorted(set(y.tolist()))).fit(frame[NAMES], frame["y"].to_numpy())
    return plain, outputs(plain, frame_of(new)) | _learnt(plain)


@over(entries=FOUR)
@over_sources(SOURCES)
def test_files_and_dask_give_the_fit_in_memory(entry, source, tmp_path):
    X, y, new = rounded(entry, n=60)
    plain, expected = _in_memory(entry)
    model = _exact(entry, plain.classes_.tolist())
    model.fit(*source(tmp_path, _cut(frame_of(X).assign(y=y), "y")))
    assert model.classes_.tolist() == plain.classes_.tolist()
    if model.schema_.named:
        assert model.schema_ == plain.schema_
        new = frame_of(new)
    assert_same_outputs(expected, outputs(model, new) | _learnt(model))


@over(entries=[*ENTRIES, *AROUND, *CROSS_FITTED])
def test_predictions_for_dask_arrays_are_those_in_memory(entry):
    X, y, new = rounded(entry, n=60)
    model = _exact(entry, sorted(set(y.tolist()))).fit(X, y)
    names = ["predict", "decision_function", "predict_proba", "predict_log_proba", "score_samples"]
    on_cluster = da.from_array(new, chunks=((0, 7, 0, 18), (3, 1)))
    for name in filter(partial(hasattr, model), names):
        expected, found = getattr(model, name)(new), getattr(model, name)(on_cluster)
        assert found.shape == expected.shape
        if name == "predict":
            assert found.compute().tolist() == expected.tolist()
        else:
            np.testing.assert_allclose(found.compute(), expected, rtol=1e-10, atol=1e-10)


@over(entries=FOUR)
@over_sources(FEW)
def test_numbers_booleans_levels_and_weights_of_files_and_dask(entry, source, tmp_path):
    """Not all chunks have all levels."""
    (y, columns), (_, new) = mixed_columns(entry, 120, 0), mixed_columns(entry, 30, 1)
    weight = np.random.default_rng(6).choice([0.0, 0.5, 2.0], size=len(y))
    frame, new = pandas_of(columns), pandas_of(new)
    chunks = _cut(frame.assign(y=y, often=weight), "colour")
    rows = _in_order_of(chunks)
    plain = _exact(entry, [0, 1, 2])
    plain.fit(rows[list(columns)], rows["y"].to_numpy(), sample_weight=rows["often"].to_numpy())
    model = _exact(entry, [0, 1, 2]).fit(scan(source(tmp_path, chunks), "y", weight="often"))
    assert model.schema_ == plain.schema_
    assert_same_outputs(outputs(plain, new), outputs(model, new))


@over(entries=FOUR)
@over_sources(FEW)
def test_gaps_and_soft_labels_of_files_and_dask(entry, source, tmp_path):
    """In the chunk of one row, columns have no entry at all."""
    rows = rows_for(entry, n=60, classes=2)
    X, names, target = rows.X.copy(), ["ja", "nein"], "ja"
    frame = pd.DataFrame(np.eye(2)[rows.y], columns=names)
    if allows_missing(entry):
        X[::20, 0] = X[0, 1] = np.nan
    if takes_soft_labels(entry):
        frame, target = 0.8 * frame + 0.1, names
    new, frame = frame_of(rows.new), pd.concat([frame_of(X), frame], axis=1)
    chunks = _cut(frame if target == names else frame.drop(columns="nein"), "ja")
    whole = _in_order_of(chunks)
    plain = _exact(entry, names).fit(whole[NAMES], whole[target])
    model = _exact(entry, names).fit(scan(source(tmp_path, chunks), target))
    assert model.classes_.tolist() == plain.classes_.tolist()
    assert_same_outputs(outputs(plain, new), outputs(model, new))
