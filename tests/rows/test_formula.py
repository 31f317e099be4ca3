"""Formulas give the design matrices of formulaic and of statsmodels, from every data frame."""

import pickle
import re
import sys

import dask
import dask.dataframe as dd
import formulaic
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

from posteriori import (
    GLM,
    GaussianClassifier,
    LogisticRegression,
    NaiveBayes,
    scan,
)
from posteriori.design.columns import Columns
from posteriori.errors import (
    ColumnNameError,
    ColumnTypeError,
    LevelError,
    MissingValueError,
    ParameterError,
    ShapeError,
)
from posteriori.rows import formula as formula_module
from posteriori.rows.block import Block
from posteriori.rows.features import read_features
from posteriori.rows.formula import read_formula

N = 120
RANDOM = np.random.default_rng(1)
FRAME = pd.DataFrame(
    {
        "sick": RANDOM.choice(["no", "yes"], N),
        "age": RANDOM.integers(20, 80, N).astype(np.int8),
        "bmi": RANDOM.normal(25, 3, N),
        "region": RANDOM.choice(["west", "east", "north"], N),
        "year": RANDOM.integers(2009, 2013, N),
        "smokes": RANDOM.random(N) < 0.3,
        "blood pressure": RANDOM.normal(120, 10, N),
    },
    index=range(1000, 1000 + N),
)
LIBRARIES = {
    "pandas": lambda frame: frame,
    "polars": lambda frame: pl.DataFrame(dict(frame.items())),
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}
FORMULAS = [
    "age + C(region) + age:bmi",
    "region * bmi",
    "C(year):bmi + C(year)",
    "0 + region + bmi",
    "(age + bmi + region) ** 2",
    "C(region, contr.sum) + C(year, contr.treatment(2010))",
    "log(bmi) + np.sqrt(age) + I(bmi ** 2)",
    "bs(bmi, df=5) + poly(age, 2) + center(bmi)",
    "`blood pressure` + C(region):C(year)",
    "{bmi / age} + 2:bmi + region",
]


def design_of(X):
    """The design matrix of the features, by the names of its columns."""
    table = read_features(X)
    columns = Columns(table.schema)
    values = columns.design(Block(table.cut(0, table.n_rows), None, None, 0)).array()
    return dict(zip(columns.names, values.T, strict=True))


def assert_same_design(X, expected, rtol=1e-12):
    found = design_of(X)
    assert set(found) == set(expected.columns) - {"Intercept"}
    for name, values in found.items():
        np.testing.assert_allclose(values, expected[name].to_numpy(float), rtol, err_msg=name)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("right", FORMULAS)
def test_the_design_is_that_of_formulaic(right, library):
    expected = formulaic.model_matrix(right, FRAME.astype({"age": float}).reset_index(drop=True))
    rows = read_formula(f"sick ~ {right}", LIBRARIES[library](FRAME))
    assert_same_design(rows.X, expected)
    assert rows.formula.intercept == ("Intercept" in expected.columns)
    assert rows.formula.names == tuple(rows.X.columns)
    terms = [
        list(dict.fromkeys(re.sub(r"\[T\.[^]]*\]$", "", name) for name in names))
        for names in (rows.X.columns, expected.columns.drop("Intercept", errors="ignore"))
    ]
    assert terms[0] == terms[1]


@pytest.mark.parametrize("library", LIBRARIES)
def test_new_rows_are_coded_as_in_the_fit_whatever_the_library(library):
    few = np.flatnonzero(FRAME.region == "north")[:5]
    new = LIBRARIES[library](FRAME.drop(columns="sick").iloc[few])
    for right in FORMULAS:
        rows = read_formula(f"sick ~ {right}", FRAME)
        found = pickle.loads(pickle.dumps(rows.formula)).apply(new)
        index = FRAME.index[few] if library == "pandas" else pd.RangeIndex(5)
        expected = rows.X.iloc[few].set_axis(index)
        pd.testing.assert_frame_equal(found, expected, rtol=1e-12, check_index_type=False)


def test_state_is_that_of_the_fit_and_columns_that_are_not_used_do_not_matter():
    frame = FRAME.assign(year=np.nan)
    rows = read_formula("sick ~ center(bmi) + bs(age, df=4) + I(age ** 4)", frame)
    shifted = rows.formula.apply(frame.assign(bmi=FRAME.bmi + 100))
    np.testing.assert_allclose(shifted["center(bmi)"], rows.X["center(bmi)"] + 100, rtol=1e-12)
    np.testing.assert_array_equal(rows.X["I(age ** 4)"], FRAME.age.astype(float) ** 4)


def test_a_factor_that_stands_alone_stays_a_column_of_levels():
    rows = read_formula("sick ~ region + C(year) + bmi", FRAME)
    assert list(rows.X.columns) == ["region", "C(year)", "bmi"]
    assert list(rows.X["region"].cat.categories) == ["T.east", "T.north", "T.west"]
    assert list(rows.X["C(year)"].cat.categories) == ["T.2009", "T.2010", "T.2011", "T.2012"]
    assert len(design_of(rows.X)) == 1 + 2 + 3
    in_full = ("region[east]", "region[north]", "region[west]")
    assert read_formula("sick ~ 0 + region", FRAME).formula.names == in_full
    assert read_formula("sick ~ 0 + 2:bmi + region", FRAME).X.shape[1] == 4


def test_a_target_can_be_an_expression():
    np.testing.assert_allclose(read_formula("log(bmi) ~ age", FRAME).y, np.log(FRAME.bmi))
    for left in ("I(sick == 'yes')", "{sick == 'yes'}"):
        np.testing.assert_array_equal(read_formula(f"{left} ~ age", FRAME).y, FRAME.sick == "yes")
    spaced = read_formula("`blood pressure` ~ age", FRAME).y
    np.testing.assert_array_equal(spaced, FRAME["blood pressure"])


@pytest.mark.parametrize("library", LIBRARIES)
def test_an_intercept_alone_is_the_null_model(library):
    data = LIBRARIES[library](FRAME)
    share = (FRAME.sick == "yes").mean()
    model = LogisticRegression().fit("sick ~ 1", data)
    assert model.coef_.shape == (1, 0)
    np.testing.assert_allclose(model.intercept_, np.log(share / (1 - share)), rtol=1e-10)
    np.testing.assert_allclose(model.predict_proba(data[:3])[:, 1], share, rtol=1e-10)
    np.testing.assert_allclose(model.deviance_, model.null_deviance_, rtol=1e-12)
    mean = GLM(family="poisson").fit("age ~ 1", data)
    np.testing.assert_allclose(mean.intercept_, np.log(FRAME.age.astype(float).mean()), rtol=1e-10)
    with pytest.raises(ShapeError, match="needs a column"):
        NaiveBayes().fit("sick ~ 1", data)


def test_a_dot_stands_for_all_other_columns():
    rows = read_formula("sick ~ . - year", FRAME)
    assert rows.formula.names == ("age", "bmi", "region", "smokes", "blood pressure")
    np.testing.assert_array_equal(rows.X["smokes"], FRAME.smokes)


def test_a_column_can_be_named_in_quotes():
    rows = read_formula("sick ~ Q('blood pressure') + Q('region'):age", FRAME)
    by_ticks = read_formula("sick ~ `blood pressure` + region:age", FRAME)
    np.testing.assert_array_equal(rows.X.to_numpy(), by_ticks.X.to_numpy())
    np.testing.assert_array_equal(rows.formula.apply(FRAME).to_numpy(), rows.X.to_numpy())
    with pytest.raises(ColumnNameError, match="names 'blood', which is neither a column"):
        read_formula("sick ~ Q('blood')", FRAME)


@pytest.mark.parametrize(
    ("column", "right", "level", "first"),
    [
        ("region", "region", "south", "east"),
        ("region", "C(region, contr.sum) + bmi", "south", "east"),
        ("year", "C(year)", 1999, 2009),
        ("year", "C(year):bmi", 2020, 2009),
        ("year", "C(year, contr.sum)", 2010.5, 2009),
    ],
)
def test_an_unseen_level_is_an_error_or_taken_for_the_first_level(column, right, level, first):
    formula = read_formula(f"sick ~ {right}", FRAME).formula
    new, known = (
        FRAME.assign(**{column: FRAME[column].where(FRAME.index % 7 > 0, value)})
        for value in (level, first)
    )
    found = formula.apply(new, handle_unknown="reference")
    pd.testing.assert_frame_equal(found, formula.apply(known), rtol=1e-12)
    levels = "'east', 'north', 'west'" if column == "region" else "2009, 2010, 2011, 2012"
    words = rf"Row 1 has the level {level!r}(\.0)? in column '{column}', .* {levels};"
    with pytest.raises(LevelError, match=words):
        formula.apply(new)


@pytest.mark.parametrize("library", LIBRARIES)
def test_missing_entries_are_named_and_no_row_is_dropped(library):
    for column, right in (("bmi", "log(bmi)"), ("region", "region"), ("year", "C(year)")):
        gap = FRAME.assign(**{column: FRAME[column].where(FRAME.index != 1042)})
        new = LIBRARIES[library](gap)
        with pytest.raises(MissingValueError, match=rf"row 42, column '{column}'.*drops none"):
            read_formula(f"sick ~ age + {right}", new)
        formula = read_formula(f"sick ~ age + {right}", FRAME).formula
        with pytest.raises(MissingValueError, match=rf"row 42, column '{column}'"):
            formula.apply(new)


REFUSED: list[tuple[str, type[Exception], str]] = [
    ("sick ~ age +", ParameterError, "Operator `\\+` has insuf"),
    ("sick ~ np.nothing(age)", ParameterError, "has no attribute 'nothing'"),
    ("sick ~ I(region * 2.5)", ParameterError, "unsupported operand"),
    ("~ age", ParameterError, "not of the form 'target ~ terms'"),
    ("age + bmi ~ region", ParameterError, "not of the form 'target ~ terms'"),
    ("C(sick) ~ age", ParameterError, "left side .* gives 2 columns"),
    ("sick ~ age + offset(log(bmi))", ParameterError, r"an offset.*fit\(formula, frame, offset="),
    ("sick ~ 0", ParameterError, "has no terms"),
    ("sick ~ agee", ColumnNameError, "names 'agee'.*'age', 'bmi'"),
    ("sick ~ f(age)", ColumnNameError, "'f', which is neither a column of the frame nor a"),
    ("ill ~ age", ColumnNameError, "names 'ill'"),
    ("sick ~ Intercept", ColumnNameError, "called 'Intercept'.*Rename"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "error", "message"), REFUSED)
def test_errors_of_the_formula_are_named_and_quote_it(text, error, message):
    with pytest.raises(error, match=message) as caught:
        read_formula(text, FRAME.assign(Intercept=2.0))
    assert repr(text) in str(caught.value)
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "data", "error", "message"),
    [
        ("sick ~ age", FRAME.to_numpy(), ColumnTypeError, "ndarray has no names.*Pass a data fr"),
        ("sick ~ age", FRAME.iloc[:0], ShapeError, r"0 sample\(s\)"),
        ("sick ~ C(log(bmi - 25))", FRAME, MissingValueError, "Column 'bmi' .* no value in row"),
        ("sick ~ C(region, levels=['west', 'east'])", FRAME, LevelError, "the level 'north' in"),
    ],
)
def test_data_that_a_formula_cannot_use_are_named(text, data, error, message):
    with pytest.raises(error, match=message):
        read_formula(text, data)


def test_new_rows_have_the_columns_of_the_fit_and_their_kinds():
    formula = read_formula("sick ~ age + region", FRAME).formula
    with pytest.raises(ColumnNameError, match="names 'region'"):
        formula.apply(FRAME.drop(columns="region"))
    with pytest.raises(ColumnTypeError, match="Column 'region' is numeric but was categorical"):
        formula.apply(FRAME.assign(region=1.0))


def test_without_formulaic_the_remedy_is_to_install_it(monkeypatch):
    formula_module._formulaic.cache_clear()
    monkeypatch.setitem(sys.modules, "formulaic", None)
    with pytest.raises(ParameterError, match=r'pip install "posteriori\[formula\]"'):
        read_formula("sick ~ age", FRAME)


# Datasets that are read batch by batch.

ROW_WISE = ["age + region", "C(region) + log(bmi):region", "0 + region + I(age ** 2) + smokes", "."]


@pytest.mark.parametrize("right", ROW_WISE)
@pytest.mark.parametrize("kind", ["Parquet", "Parquet with a target", "Dask", "delayed"])
def test_terms_that_are_made_row_by_row_are_made_of_datasets_on_disk_and_in_dask(
    tmp_path, kind, right
):
    frame = FRAME.reset_index(drop=True)
    parts = [frame[:30], frame[30:31], frame[31:]]
    for i, part in enumerate(parts):
        part.to_parquet(tmp_path / f"{i}.parquet")
    delayed = [dask.delayed(part, pure=False) for part in parts]
    rows = {
        "Parquet": lambda: scan(tmp_path),
        "Parquet with a target": lambda: scan(tmp_path, "sick"),
        "Dask": lambda: dd.from_delayed(delayed, meta=frame[:0]),
        "delayed": lambda: scan(delayed),
    }[kind]()
    found, expected = (
        LogisticRegression(prior=1.0, tol=1e-8).fit(f"sick ~ {right}", data)
        for data in (rows, frame)
    )
    assert found.coef_names_.tolist() == expected.coef_names_.tolist()
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(found.predict_proba(frame), expected.predict_proba(frame), 1e-9)
    if kind == "Parquet":
        to = found.predict_proba(rows, to=tmp_path / "predictions")
        np.testing.assert_allclose(pd.read_parquet(to), expected.predict_proba(frame), 1e-9)


def test_formulas_of_datasets_work_for_numbers_and_models_from_sums():
    for model, left in ((GLM(family="gaussian"), "bmi"), (GaussianClassifier(), "sick")):
        text = f"{left} ~ age + log(year)"
        found, expected = (clone(model).fit(text, data) for data in (scan(FRAME), FRAME))
        np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-8)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        *(
            (f"sick ~ age + {term}", ParameterError, r"is not made row by row.*in memory")
            for term in ("center(bmi)", "I(bmi - bmi.mean())", "C(year)")
        ),
        ("sick ~ 1", ParameterError, "uses no column"),
        ("log(bmi) ~ age", ParameterError, "Name the column of the target"),
        ("region ~ age", ParameterError, "not that of the rows"),
        ("sick ~ bmi", MissingValueError, r"row 42, column 'bmi'.*a formula drops none"),
    ],
)
def test_formulas_that_a_dataset_cannot_use_are_named(text, error, message):
    gap = FRAME.bmi.where(FRAME.index != 1042) if text == "sick ~ bmi" else FRAME.bmi
    with pytest.raises(error, match=message):
        LogisticRegression().fit(text, scan(FRAME.assign(bmi=gap), "sick"))
