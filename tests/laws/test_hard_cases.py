"""Bad input is a named error that says where; unusual input has predictions without NaN."""

import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from registry import FOUR
from samples import has_proba, outputs, over, rows_for
from scipy import sparse

from posteriori import GaussianClassifier, LeastSquaresClassifier, NaiveBayes
from posteriori.errors import (
    ColumnNameError,
    ColumnTypeError,
    IdentifierColumnError,
    InfiniteValueError,
    LabelError,
    LevelError,
    MissingValueError,
    PosterioriWarning,
    ScaleError,
    ShapeError,
    SingularCovarianceError,
    WeightError,
)

OURS = pytest.mark.filterwarnings("ignore::posteriori.errors.PosterioriWarning")
ROWS = rows_for(FOUR[0])
X, Y = ROWS.X, ROWS.y


def changed(values, place, value, dtype=None):
    found = np.array(values, dtype=dtype)
    found[place] = value
    return found


def frame(**columns):
    return pd.DataFrame(X, columns=list("abcd")).assign(**columns)


days = pd.date_range("2024-01-01", periods=len(X))
NAN, INF = changed(X, (3, 1), np.nan), changed(X, (3, 1), np.inf)
ONES = np.ones(len(X))
# name: X, y, error, words of the message
BAD_ROWS = {
    "inf": (INF, Y, InfiniteValueError, "row 3, column 'x1'|row 3, column 1"),
    "inf in a sparse matrix": (sparse.csr_array(INF), Y, InfiniteValueError, "row 3, column 1"),
    "inf in a frame": (frame(b=INF[:, 1]), Y, InfiniteValueError, "row 3, column 'b'"),
    "complex": (X + 1j, Y, ColumnTypeError, "Complex"),
    "dates": (frame(c=days), Y, ColumnTypeError, "Column 'c' is a date"),
    "numbers and text": (frame(b=[*X[1:, 1], "many"]), Y, ColumnTypeError, "'b'"),
    "one name twice": (pd.DataFrame(X, columns=list("abba")), Y, ColumnNameError, "'a'"),
    "an identifier": (
        pd.DataFrame({"id": [f"u{i}" for i in range(200)]}),
        np.arange(200) % 2,
        IdentifierColumnError,
        "'id'",
    ),
    "indices that differ": (pd.DataFrame(X), pd.Series(Y)[::-1], ShapeError, "not aligned"),
    "a lazy frame": (pl.DataFrame(X).lazy(), Y, ColumnTypeError, "collect"),
    "no rows": (X[:0], Y[:0], ShapeError, "0 sample"),
    "no columns": (X[:, :0], Y, ShapeError, "0 feature"),
    "one dimension": (X[:, 0], Y, ShapeError, "reshape"),
    "one class": (X, np.full(len(Y), "ja"), LabelError, "one class, 'ja'"),
    "fewer labels than rows": (X, Y[:-1], ShapeError, "90 rows.*89"),
    "no labels": (X, None, LabelError, "y"),
    "NaN among labels": (X, changed(Y, 4, np.nan, float), LabelError, "row 4"),
    "continuous labels": (X, changed(Y, 4, 0.5, float), LabelError, "row 4.*0.5"),
    "labels without order": (X, changed(Y, 4, "a", object), LabelError, "sorted"),
}
BAD_WEIGHTS = {
    "weights of zero": (X, Y, WeightError, "every row", ONES * 0),
    "a negative weight": (X, Y, WeightError, "row 4.*-1", changed(ONES, 4, -1.0)),
    "a weight of NaN": (X, Y, WeightError, "row 4.*nan", changed(ONES, 4, np.nan)),
    "weights of another length": (X, Y, ShapeError, r"\(89,\)", ONES[1:]),
}


@OURS
@over(entries=FOUR)
@pytest.mark.parametrize("case", (BAD_ROWS | BAD_WEIGHTS).values(), ids=BAD_ROWS | BAD_WEIGHTS)
def test_bad_rows_and_weights_are_refused_by_name(entry, case):
    rows, y, error, words, *weight = case
    with pytest.raises(error, match=f"(?is){words}.*\\[P\\d+\\]$"):
        entry.make([]).fit(rows, y, *weight)


@over(entries=FOUR[:2])
def test_missing_entries_are_named_in_fitting_and_prediction(entry):
    model = entry.make([]).fit(X, Y)
    for rows in (NAN, sparse.csr_array(NAN), np.ma.masked_array(X, np.isnan(NAN))):
        for refused in (lambda rows: entry.make([]).fit(rows, Y), model.predict):
            with pytest.raises(MissingValueError, match=r"(?i)row 3, column ('x)?1"):
                refused(rows)


BAD_NEW = {
    "inf": (INF, InfiniteValueError, "row 3, column ('x)?1"),
    "too few columns": (X[:, :3], ShapeError, "3 features.*4 features"),
    "one dimension": (X[0], ShapeError, "reshape"),
    "no rows": (X[:0], ShapeError, "0 sample"),
    "text": (np.full(X.shape, "many"), ColumnTypeError, "x0.*categorical.*numeric"),
}


@over(entries=FOUR)
@pytest.mark.parametrize("case", BAD_NEW.values(), ids=BAD_NEW)
def test_bad_new_rows_are_refused_by_name(entry, case):
    rows, error, words = case
    model = entry.make([]).fit(X, Y)
    for name in ("predict", "decision_function", "predict_proba", "score_samples"):
        if hasattr(model, name):
            with pytest.raises(error, match=f"(?is){words}"):
                getattr(model, name)(rows)


def check_outputs(model, rows):
    """No NaN, and probabilities that sum to one."""
    for name, values in outputs(model, rows).items():
        assert not np.isnan(values).any(), name
        if name == "predict_proba":
            assert (values >= 0).all()
            np.testing.assert_allclose(values.sum(axis=1), 1, rtol=0, atol=1e-12)


UNUSUAL = {
    "a constant column": lambda X, y: (changed(X, np.s_[:, 1], 1.0), y),
    "a column that says the class": lambda X, y: (np.c_[X, y == 0], y),
    "a sum of other columns": lambda X, y: (np.c_[X, X[:, 0] + X[:, 2]], y),
    "a class with one row": lambda X, y: (X, changed(np.where(y == 0, 1, y), 6, 0)),
    "more columns than rows": lambda X, y: (X[:80].reshape(8, 40), np.arange(8) % (y.max() + 1)),
    "a single column": lambda X, y: (X[:, :1], y),
    "two rows": lambda X, y: (X[:2], [0, 1]),
    "numbers of 1e100": lambda X, y: (X * 1e100, y),
    "unicode labels": lambda X, y: (X, np.array(["é", "ß", "日本"])[y]),
}


@OURS
@over(lambda entry: entry.kind == "real")
@pytest.mark.parametrize("change", UNUSUAL.values(), ids=UNUSUAL)
def test_unusual_rows_have_predictions(entry, change):
    rows = rows_for(entry)
    given, y = change(rows.X, rows.y)
    check_outputs(entry.make([]).fit(given, y), given[:20])


@over(lambda entry: entry.kind == "real")
def test_a_row_far_from_every_class_is_predicted_or_named(entry):
    rows = rows_for(entry)
    model = entry.make(rows.classes).fit(rows.X, rows.y)
    rows.new[4] = [1e308, -1e308, 1e308, -1e308]
    try:
        check_outputs(model, rows.new)
    except ScaleError:
        with pytest.raises(ScaleError, match=r"(?i)row 4"):
            outputs(model, rows.new)


def test_rows_that_are_all_the_same_are_an_error_or_have_the_priors():
    same = np.ones((6, 2))
    with pytest.raises(SingularCovarianceError):
        GaussianClassifier().fit(same, [0, 1] * 3)
    with pytest.warns(PosterioriWarning):
        assert LeastSquaresClassifier().fit(same, [0, 1] * 3).predict(same).tolist() == [0] * 6


@over(lambda entry: entry.levels and entry.kind == "real")
def test_levels_are_those_of_the_fit(entry):
    rows = rows_for(entry)
    table = pd.DataFrame(rows.X, columns=list("abcd"))
    levels = table.assign(d=np.array(["low", "mid", "high"])[np.arange(len(table)) % 3])
    model = entry.make(rows.classes).fit(levels, rows.y)
    with pytest.raises(ColumnTypeError, match="'d'"):
        model.predict(table)
    with pytest.raises(ColumnTypeError, match="'d'"):
        entry.make(rows.classes).fit(table, rows.y).predict(levels)
    for level, error in (("huge", LevelError), (None, MissingValueError)):
        levels.loc[3, "d"] = level
        if isinstance(model, NaiveBayes):
            check_outputs(model, levels)
            continue
        with pytest.raises(error, match=r"(?i)row 3.* column 'd'"):
            model.predict(levels)


@over(lambda entry: entry.kind == "real", has_proba)
def test_columns_that_are_left_out_are_named(entry):
    """A constant column gives no warning, or one that names it, and changes no probability."""
    rows = rows_for(entry)
    wide = np.insert(rows.X, 2, 7.0, axis=1)
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        model = entry.make(rows.classes).fit(wide, rows.y)
    plain = entry.make(rows.classes).fit(rows.X, rows.y)
    for one in given:
        assert issubclass(one.category, PosterioriWarning)
        assert re.search(r"column (2|'x2')", str(one.message), re.IGNORECASE)
        assert one.filename == __file__, "the warning points at the caller"
    found, expected = model.predict_proba(wide), plain.predict_proba(rows.X)
    if given:
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
