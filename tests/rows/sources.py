"""The same rows in memory, in files and in Dask, and the fits to them that must agree."""

from functools import cache
from itertools import pairwise

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from posteriori import LogisticRegression, scan

N = 240
FEATURES = ["size", "count", "old", "colour"]
CUTS = (0, 10, 10, 100, N)
"""Parts of 10, 0, 90 and 140 rows."""


def _frame():
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": random.normal(size=N),
            "count": random.integers(0, 5, N),
            "old": random.uniform(size=N) < 0.4,
            "colour": np.array(["blue", "green", "red"], dtype=object)[random.integers(0, 3, N)],
        }
    )
    odds = frame["size"] + 0.3 * frame["count"] - frame["old"] + (frame["colour"] == "red")
    yes = random.uniform(size=N) < 1 / (1 + np.exp(-odds))
    frame["y"] = np.array(["no", "yes"], dtype=object)[yes.astype(int)]
    frame["times"] = random.choice([0.0, 0.5, 2.0], size=N)
    frame["often"] = frame["times"] > 0
    frame["label"] = frame["y"].where(frame["often"], "maybe")
    frame["late"] = np.where(np.arange(N) < 100, 0, 2)  # no weight in whole parts
    frame["push"] = random.normal(size=N)
    frame["events"] = random.poisson(np.exp(0.5 * frame["size"]))
    frame["half"] = random.uniform(size=N)
    frame["rest"] = 1 - frame["half"]
    frame[["low", "middle", "high"]] = random.dirichlet(np.ones(3), size=N)
    return frame


FRAME = _frame()
PLAIN = FRAME[[*FEATURES, "y"]]


def parts(frame=PLAIN, cuts=CUTS):
    return [frame.iloc[low:high] for low, high in pairwise(cuts)]


def table(frame=PLAIN):
    is_table = isinstance(frame, pa.Table)
    return frame if is_table else pa.Table.from_pandas(frame, preserve_index=False)


def _written(folder, frames, ending, write):
    folder.mkdir(parents=True, exist_ok=True)
    for i, frame in enumerate(frames):
        write(frame, folder / f"part-{i}{ending}")
    return folder


def parquet(folder, frames=None, row_group_size=60):
    """A folder with a Parquet file for each part."""

    def write(frame, path):
        pq.write_table(table(frame), path, row_group_size=row_group_size)

    return _written(folder / "a", parts() if frames is None else frames, ".parquet", write)


def csv(folder, frames=None, ending=".csv", separator=","):
    def write(frame, path):
        frame.to_csv(path, index=False, sep=separator)

    return _written(folder / "a", parts() if frames is None else frames, ending, write)


def ipc(folder, frames=None):
    def write(frame, path):
        feather.write_feather(table(frame), path, chunksize=50)

    return _written(folder / "a", parts() if frames is None else frames, ".arrow", write)


def delayed(folder=None, frames=None):
    """Delayed frames of Dask."""
    frames = parts() if frames is None else frames
    return [dask.delayed(frame, pure=False) for frame in frames]


def dask_frame(folder=None, frames=None):
    frames = parts() if frames is None else frames
    return dd.from_delayed(delayed(None, frames), meta=frames[0].iloc[:0])


KINDS = {"Parquet": parquet, "CSV": csv, "Arrow": ipc, "Dask frame": dask_frame, "delayed": delayed}


def over(*names):
    """A test with each of these kinds of sources: functions of a folder and parts of the rows."""
    return pytest.mark.parametrize("kind", [KINDS[name] for name in names], ids=names)


def fit(source, target="y", **given):
    return LogisticRegression(tol=1e-8).fit(scan(source, target, **given))


@cache
def _plain_fit():
    return LogisticRegression(tol=1e-8).fit(FRAME[FEATURES], FRAME["y"])


def in_memory(X=None, y=None, **given):
    """The fit to the same rows in memory."""
    if X is None and y is None and not given:
        return _plain_fit()
    X, y = FRAME[FEATURES] if X is None else X, FRAME["y"] if y is None else y
    return LogisticRegression(tol=1e-8).fit(X, y, **given)


def assert_same(found, expected, tolerance=1e-10):
    assert found.classes_.tolist() == expected.classes_.tolist()
    assert found.schema_ == expected.schema_
    for name in ("coef_", "intercept_", "coef_covariance_", "log_likelihood_", "null_deviance_"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), rtol=tolerance, atol=tolerance
        )
