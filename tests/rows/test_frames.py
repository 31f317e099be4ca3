"""Tables go back to the user in the kind of frame that came in."""

import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from posteriori.errors import ColumnNameError
from posteriori.rows.frames import backend_of, make_frame

COLUMNS = {"term": ["a", "b"], "class": [1, 2], "estimate": [0.5, float("inf")]}
MAKERS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


@pytest.mark.parametrize("backend", MAKERS)
def test_the_library_of_a_frame_is_known_and_used_again(backend):
    assert backend_of(MAKERS[backend](COLUMNS)) == backend
    made = make_frame(COLUMNS, backend)
    assert type(made) is type(MAKERS[backend](COLUMNS))
    assert {name: list(np.asarray(made[name])) for name in COLUMNS} == COLUMNS


@pytest.mark.parametrize("X", [np.ones((2, 2)), [[1.0]], sparse.csr_array((2, 2)), None, "y ~ x"])
def test_what_is_no_frame_has_no_library(X):
    assert backend_of(X) is None


def test_without_a_liking_the_first_library_that_is_there_is_used(monkeypatch):
    assert isinstance(make_frame(COLUMNS, None), pd.DataFrame)
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert isinstance(make_frame(COLUMNS, None), pl.DataFrame)
    monkeypatch.setitem(sys.modules, "polars", None)
    assert isinstance(make_frame(COLUMNS, None), pa.Table)
    assert isinstance(make_frame(COLUMNS, "polars"), pa.Table)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert make_frame(COLUMNS, None) == COLUMNS


def test_columns_of_one_name_are_an_error():
    with pytest.raises(ColumnNameError, match="same name, 'a'"):
        backend_of(pd.DataFrame(np.ones((1, 2)), columns=["a", "a"]))
