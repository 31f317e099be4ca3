"""A table of nasty inputs, each with the answer or the named error that it must give.

No NaN comes out of any answer; every failure is a `PosterioriError` whose message names the
column, the class or the row. Warnings are ours alone: any other one is an error here.
"""

import contextlib
import datetime
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from registry import ENTRIES, Entry
from samples import Rows, allows_missing, answers, has_proba, is_generative, over, rows_for
from scipy import sparse

from posteriori.errors import (
    ColumnNameError,
    ColumnTypeError,
    DomainError,
    IdentifierColumnError,
    InfiniteValueError,
    LabelError,
    LevelError,
    MissingValueError,
    ParameterError,
    PosterioriError,
    PosterioriWarning,
    RankDeficiencyWarning,
    ScaleError,
    ShapeError,
    SingularCovarianceError,
    SingularCovarianceWarning,
    WeightError,
)

Given = dict[str, Any]
OURS = pytest.mark.filterwarnings("ignore::posteriori.errors.PosterioriWarning")
COUNTED_ELSEWHERE = "Rows are counted among those of the two classes being compared."


def always(entry: Entry) -> bool:
    return True


def is_real(entry: Entry) -> bool:
    return entry.kind == "real"


def needs_all(entry: Entry) -> bool:
    return not allows_missing(entry)


@dataclass(frozen=True)
class Bad:
    """Something that cannot be fitted: the error it gives, and what the message says."""

    name: str
    give: Callable[[Rows], Given]
    error: type[PosterioriError]
    says: tuple[str, ...] = ()
    to: Callable[[Entry], bool] = always


@dataclass(frozen=True)
class Odd:
    """Something that can be fitted, perhaps with a warning of ours.

    unless: who cannot, and the error they give. may: errors that a model is free to give.
    """

    name: str
    give: Callable[[Rows], Given]
    to: Callable[[Entry], bool] = always
    unless: dict[Callable[[Entry], bool], type[PosterioriError]] = field(default_factory=dict)
    may: tuple[type[PosterioriError], ...] = ()
    shape: dict[str, int] = field(default_factory=dict)


def entry_at(value: Any, row: int = 3, column: int = 1) -> Callable[[Rows], Given]:
    def give(rows: Rows) -> Given:
        X = rows.X.copy()
        X[row, column] = value
        X[row + 2, column] = value
        return {"X": X, "y": rows.y}

    return give


def column(make: Callable[[Rows], Any], place: int = 1) -> Callable[[Rows], Given]:
    def give(rows: Rows) -> Given:
        X = rows.X.copy()
        X[:, place] = make(rows)
        return {"X": X, "y": rows.y}

    return give


def frame(rows: Rows, **columns: Any) -> Given:
    return {"X": pd.DataFrame(rows.X, columns=list("abcd")).assign(**columns), "y": rows.y}


def weights(make: Callable[[int], Any]) -> Callable[[Rows], Given]:
    return lambda rows: {"X": rows.X, "y": rows.y, "sample_weight": make(len(rows.X))}


def labels(make: Callable[[np.ndarray], Any]) -> Callable[[Rows], Given]:
    return lambda rows: {"X": rows.X, "y": make(rows.y)}


def with_one(value: Any) -> Callable[[int], np.ndarray]:
    def make(n: int) -> np.ndarray:
        weight = np.ones(n)
        weight[4] = value
        return weight

    return make


def label_at(value: Any, dtype: Any) -> Callable[[np.ndarray], np.ndarray]:
    def make(y: np.ndarray) -> np.ndarray:
        y = y.astype(dtype)
        y[4] = value
        return y

    return make


def days(n: int) -> list[datetime.date]:
    return [datetime.date(2024, 1, 1) + datetime.timedelta(i) for i in range(n)]


BAD = [
    Bad("NaN", entry_at(np.nan), MissingValueError, ("row 3", "column 1"), needs_all),
    Bad(
        "NaN in a frame",
        lambda r: frame(r, c=np.where(np.arange(len(r.X)) == 5, np.nan, r.X[:, 2])),
        MissingValueError,
        ("row 5", "column 'c'"),
        needs_all,
    ),
    Bad(
        "null in polars",
        lambda r: {"X": pl.DataFrame({"a": r.X[:, 0], "b": [None, *r.X[1:, 1]]}), "y": r.y},
        MissingValueError,
        ("row 0", "column 'b'"),
        needs_all,
    ),
    Bad(
        "NaN in a sparse matrix",
        lambda r: {**entry_at(np.nan)(r), "X": sparse.csr_array(entry_at(np.nan)(r)["X"])},
        MissingValueError,
        ("row 3", "column 1"),
        needs_all,
    ),
    Bad(
        "a masked entry",
        lambda r: {"X": np.ma.masked_array(r.X, np.arange(r.X.size).reshape(r.X.shape) == 9),
                   "y": r.y},
        MissingValueError,
        ("row 2", "column 1"),
        needs_all,
    ),
    Bad("inf", entry_at(np.inf), InfiniteValueError, ("row 3", "column 1")),
    Bad("-inf", entry_at(-np.inf), InfiniteValueError, ("row 3", "column 1")),
    Bad(
        "inf in a sparse matrix",
        lambda r: {**entry_at(np.inf)(r), "X": sparse.csc_array(entry_at(np.inf)(r)["X"])},
        InfiniteValueError,
        ("row 3", "column 1"),
    ),
    Bad(
        "inf in a frame",
        lambda r: frame(r, b=np.where(np.arange(len(r.X)) == 5, np.inf, r.X[:, 1])),
        InfiniteValueError,
        ("row 5", "column 'b'"),
    ),
    Bad("a class of nothing but gaps", column(lambda r: np.where(r.y == 1, np.nan, r.X[:, 1])),
        MissingValueError, ("column 1",), is_real),
    Bad("a column of nothing but gaps", column(lambda r: np.nan), MissingValueError,
        ("column 1",), is_real),
    Bad("complex", lambda r: {"X": r.X + 1j, "y": r.y}, ColumnTypeError, ("Complex",)),
    Bad("complex objects", lambda r: {"X": (r.X + 1j).astype(object), "y": r.y},
        ColumnTypeError, ("Complex",)),
    Bad("complex and sparse", lambda r: {"X": sparse.csr_array(r.X + 1j), "y": r.y},
        ColumnTypeError, ("Complex",)),
    Bad("dates", lambda r: frame(r, c=pd.to_datetime(days(len(r.X)))), ColumnTypeError,
        ("Column 'c' is a date", "days since a reference date")),
    Bad("dates as text", lambda r: frame(r, c=list(map(str, days(len(r.X))))), ColumnTypeError,
        ("Column 'c' is text that looks like dates",)),
    Bad("an identifier", lambda r: {"X": pd.DataFrame({"id": [f"u{i}" for i in range(200)]}),
                                    "y": np.arange(200) % 2}, IdentifierColumnError, ("'id'",)),
    Bad("indices that differ", lambda r: {"X": pd.DataFrame(r.X), "y": pd.Series(r.y)[::-1]},
        ShapeError, ("not aligned",)),
    Bad("an array of dates", lambda r: {"X": np.array([days(len(r.X))], dtype="M8[D]").T, "y": r.y},
        ColumnTypeError, ("Column 'x0' is a date",)),
    Bad("durations", lambda r: frame(r, c=pd.to_timedelta(np.arange(len(r.X)))), ColumnTypeError,
        ("'c'",)),
    Bad("lists in a column", lambda r: {"X": pl.DataFrame({"a": r.X[:, 0], "b": [[1]] * len(r.X)}),
                                        "y": r.y}, ColumnTypeError, ("'b'",)),
    Bad("numbers and strings", lambda r: frame(r, b=[*r.X[1:, 1], "many"]), ColumnTypeError,
        ("'b'", "str")),
    Bad("a lazy frame", lambda r: {"X": pl.DataFrame(r.X).lazy(), "y": r.y}, ColumnTypeError,
        ("collect",)),
    Bad("names and numbers for names",
        lambda r: {"X": pd.DataFrame(r.X, columns=["a", 1, 2, 3]), "y": r.y}, ColumnNameError),
    Bad("one name twice", lambda r: {"X": pd.DataFrame(r.X, columns=list("abba")), "y": r.y},
        ColumnNameError, ("'a'",)),
    Bad("no rows", lambda r: {"X": r.X[:0], "y": r.y[:0]}, ShapeError, ("0 sample",)),
    Bad("no rows in a frame", lambda r: {"X": pd.DataFrame(r.X[:0]), "y": r.y[:0]}, ShapeError,
        ("0 sample",)),
    Bad("no columns", lambda r: {"X": r.X[:, :0], "y": r.y}, ShapeError, ("0 feature",)),
    Bad("one dimension", lambda r: {"X": r.X[:, 0], "y": r.y}, ShapeError, ("reshape",)),
    Bad("three dimensions", lambda r: {"X": r.X[:, :, None], "y": r.y}, ShapeError, ("3D",)),
    Bad("a number", lambda r: {"X": 3.0, "y": r.y}, ShapeError),
    Bad("ragged rows", lambda r: {"X": [[1.0, 2.0], [3.0]], "y": [0, 1]}, ShapeError),
    Bad("one row", lambda r: {"X": r.X[:1], "y": r.y[:1]}, LabelError, ("one class, 0",)),
    Bad("one class", labels(lambda y: np.full(len(y), "ja")), LabelError, ("one class, 'ja'",)),
    Bad("one class of positive weight",
        lambda r: {"X": r.X, "y": r.y, "sample_weight": (r.y == 1).astype(float)},
        LabelError, ("one class, 1",)),
    Bad("fewer labels than rows", labels(lambda y: y[:-1]), ShapeError, ("90 rows", "89")),
    Bad("no labels", labels(lambda y: None), LabelError, ("y",)),
    Bad("NaN among labels", labels(label_at(np.nan, float)), LabelError, ("row 4",)),
    Bad("inf among labels", labels(label_at(np.inf, float)), LabelError, ("row 4",)),
    Bad("None among labels", labels(label_at(None, object)), LabelError, ("row 4",)),
    Bad("pandas.NA among labels",
        labels(lambda y: pd.Series(label_at(pd.NA, object)(y), dtype="Int64")),
        LabelError, ("row 4",)),
    Bad("null among polars labels",
        labels(lambda y: pl.Series([*y[:4].tolist(), None, *y[5:].tolist()])),
        LabelError, ("row 4",)),
    Bad("NaT among labels", labels(label_at(np.datetime64("NaT"), "M8[D]")),
        LabelError, ("row 4",)),
    Bad("continuous labels", labels(label_at(0.5, float)), LabelError, ("row 4", "0.5")),
    Bad("complex labels", labels(lambda y: y + 1j), LabelError),
    Bad("labels without order", labels(label_at("a", object)), LabelError, ("sorted",)),
    Bad("labels in three dimensions", labels(lambda y: y[:, None, None]), ShapeError, ("3 dim",)),
    Bad("weights of zero", weights(np.zeros), WeightError, ("every row",)),
    Bad("a negative weight", weights(with_one(-1.0)), WeightError, ("row 4", "-1")),
    Bad("a weight of NaN", weights(with_one(np.nan)), WeightError, ("row 4", "nan")),
    Bad("an infinite weight", weights(with_one(np.inf)), WeightError, ("row 4", "inf")),
    Bad("weights of another length", weights(lambda n: np.ones(n - 1)), ShapeError, ("(89,)",)),
    Bad("weights of 1e307", weights(lambda n: np.full(n, 1e307)), WeightError,
        ("too large", "inf")),
    Bad("weights of 1e-308", weights(lambda n: np.full(n, 1e-308)), WeightError,
        ("too small", "9e-307")),
    Bad("weights in words", weights(lambda n: np.full(n, "much")), WeightError),
    Bad("weights in a matrix", weights(lambda n: np.ones((n, 2))), ShapeError),
]  # fmt: skip


def _check_says(error: BaseException, parts: tuple[str, ...]) -> None:
    text = str(error)
    elsewhere = COUNTED_ELSEWHERE in getattr(error, "__notes__", [])
    for part in parts:
        place = part.split()[-1]
        if part.startswith("row ") and elsewhere:
            assert re.search(r"row \d+", text, re.IGNORECASE), text
        elif part.startswith("column ") and place.isdigit():
            assert re.search(rf"column ({place}\b|'x{place}')", text, re.IGNORECASE), text
        else:
            assert part.lower() in text.lower(), text
    assert re.search(r"\[P\d+\]$", text)


def _applied(table):
    return [
        pytest.param(entry, case, id=f"{case.name}-{entry}")
        for case in table
        for entry in ENTRIES
        if case.to(entry)
    ]


@OURS
@pytest.mark.parametrize(("entry", "case"), _applied(BAD))
def test_bad_rows_are_refused_by_name(entry, case):
    rows = rows_for(entry)
    model = entry.make(rows.classes)
    with pytest.raises(case.error) as caught:
        model.fit(**case.give(rows))
    _check_says(caught.value, case.says)


BAD_NEW = [
    Bad("NaN", entry_at(np.nan), MissingValueError, ("row 3", "column 1"), needs_all),
    Bad("inf", entry_at(np.inf), InfiniteValueError, ("row 3", "column 1")),
    Bad("-inf", entry_at(-np.inf), InfiniteValueError, ("row 3", "column 1")),
    Bad("inf among NaN",
        lambda r: {"X": np.where(np.isinf(entry_at(np.inf)(r)["X"]), np.inf, np.nan)},
        InfiniteValueError, ("row 3", "column 1")),
    Bad("complex", lambda r: {"X": r.X + 1j}, ColumnTypeError),
    Bad("too few columns", lambda r: {"X": r.X[:, :3]}, ShapeError, ("3 features", "4 features")),
    Bad("too many columns", lambda r: {"X": np.hstack([r.X, r.X])}, ShapeError, ("8 features",)),
    Bad("too few sparse columns", lambda r: {"X": sparse.csr_array(r.X[:, :3])}, ShapeError),
    Bad("one dimension", lambda r: {"X": r.X[0]}, ShapeError, ("reshape",)),
    Bad("no rows", lambda r: {"X": r.X[:0]}, ShapeError, ("0 sample",)),
    Bad("words for numbers", lambda r: {"X": np.full(r.X.shape, "many")}, ColumnTypeError,
        ("x0", "categorical", "numeric")),
    Bad("numbers and strings", lambda r: {"X": [[*row[:3], "many"] for row in r.X.tolist()]},
        ColumnTypeError, ("x3",)),
]  # fmt: skip


@OURS
@pytest.mark.parametrize(("entry", "case"), _applied(BAD_NEW))
def test_bad_new_rows_are_refused_by_name(entry, case):
    rows = rows_for(entry)
    model = entry.make(rows.classes).fit(rows.X, rows.y)
    for name in ("predict", "decision_function", "predict_proba", "score_samples", "transform"):
        if hasattr(model, name):
            with pytest.raises(case.error) as caught:
                getattr(model, name)(case.give(rows)["X"])
            _check_says(caught.value, case.says)


def one_row_of_a_class(rows: Rows) -> Given:
    y = np.where(rows.y == 0, 1, rows.y)
    y[6] = 0
    return {"X": rows.X, "y": y}


def wide(rows: Rows) -> Given:
    X = np.hstack([rows.X[i : i + 8] for i in range(0, 40, 8)])
    return {"X": X, "y": np.arange(8) % len(rows.classes)}


def many_classes(rows: Rows) -> Given:
    return {"X": rows.X, "y": np.arange(len(rows.X)) % 500}


def large_integers(step: int) -> Callable[[Rows], Given]:
    """A frame with one column of integers whose last digits doubles do not hold."""
    return lambda r: frame(r, b=2**62 + np.round(r.X[:, 1] * 3).astype(np.int64) * step)


def is_isotropic(entry: Entry) -> bool:
    """Whether one variance has to come from rows of their own."""
    return entry.estimator.get_params().get("covariance") == "isotropic"


def is_unbiased(entry: Entry) -> bool:
    """Whether the divisor is less than the sum of the weights."""
    return entry.estimator.get_params().get("estimate") == "unbiased"


def inverts_units(entry: Entry) -> bool:
    """Whether it needs the reciprocal of a spread; what has units of its own does not.

    That is a ridge, a prior in numbers, or one variance.
    """
    settings = entry.estimator.get_params()
    in_units = settings.get("ridge") or isinstance(settings.get("prior"), float)
    return not (is_isotropic(entry) or in_units)


def needs_all_information(entry: Entry) -> bool:
    """Whether it holds the information matrix of all coefficients, which 500 classes overfill."""
    return entry.estimator.get_params().get("prior") == "jeffreys"


def takes_many_classes(entry: Entry) -> bool:
    """Whether 500 classes take seconds.

    Not for a classifier a pair, nor without a prior, where most of the coefficients run away; and
    GLM does what LogisticRegression does.
    """
    return not (entry.most_classes or entry.strays or "OneVersus" in str(entry)) and (
        "GLM" not in str(entry)
    )


def has_dict(entry: Entry) -> bool:
    return entry.kind == "mixed"


ODD = [
    Odd("a constant column", column(lambda r: 1.0)),
    Odd("a column of zeros", column(lambda r: 0.0),
        unless={lambda e: e.kind == "positive": DomainError}),
    Odd("a column constant in a class", column(lambda r: np.where(r.y == 0, 1.0, r.X[:, 1]))),
    Odd("a column that says the class", column(lambda r: (r.y == 0) * 1.0),
        unless={lambda e: e.kind == "positive": DomainError}),
    Odd("one column twice", lambda r: {"X": r.X[:, [0, 1, 2, 1]], "y": r.y},
        to=lambda e: not has_dict(e)),
    Odd("a column that is the sum of others",
        column(lambda r: r.X[:, 0] + r.X[:, 2]), to=is_real),
    Odd("a class with one row", one_row_of_a_class, shape={"classes": 3}),
    Odd("more columns than rows", wide, to=lambda e: not has_dict(e)),
    Odd("500 classes", many_classes, shape={"n": 1500}, to=takes_many_classes,
        unless={needs_all_information: ParameterError}),
    Odd("a single column", lambda r: {"X": r.X[:, :1], "y": r.y}, to=lambda e: not has_dict(e)),
    Odd("two rows", lambda r: {"X": r.X[:2], "y": [0, 1]},
        unless={is_isotropic: SingularCovarianceError}),
    Odd("numbers of 1e308", column(lambda r: np.where(r.y + r.X[:, 1] > 3, 1e308, -1e308)),
        to=is_real),
    Odd("all numbers of 1e307", lambda r: {"X": r.X * (1e307 / abs(r.X).max()), "y": r.y},
        to=is_real),
    Odd("one number of 1e308", lambda r: {"X": np.where(np.arange(r.X.size).reshape(r.X.shape) == 9,
                                                        1e308, r.X), "y": r.y},
        to=is_real, may=(ScaleError,)),
    Odd("numbers of 1e-310", column(lambda r: r.X[:, 1] * 1e-310), to=is_real,
        unless={inverts_units: ScaleError}),
    Odd("integers near 2**62, millions apart", large_integers(10**6), to=is_real),
    Odd("integers near 2**62, ones apart", large_integers(1), to=is_real, may=(ScaleError,)),
    Odd("rows all the same", lambda r: {"X": np.ones_like(r.X), "y": r.y},
        may=(SingularCovarianceError,)),
    Odd("unicode names", lambda r: {"X": r.X, "y": np.array(["é", "ß", "日本"])[r.y]}),
    Odd("empty strings for names", lambda r: {"X": r.X, "y": np.array(["", " ", "  "])[r.y]}),
    Odd("weights of 1e-90", lambda r: {"X": r.X, "y": r.y,
                                       "sample_weight": np.full(len(r.X), 1e-90)},
        unless={is_unbiased: WeightError}),
    Odd("weights of 1e90", lambda r: {"X": r.X, "y": r.y,
                                      "sample_weight": np.full(len(r.X), 1e90)}),
    Odd("weights of all sizes", lambda r: {"X": r.X, "y": r.y,
                                           "sample_weight": np.geomspace(1e-20, 1, len(r.X))},
        unless={is_unbiased: WeightError}),
]  # fmt: skip


@OURS
@pytest.mark.parametrize(("entry", "case"), _applied(ODD))
def test_odd_rows_have_an_answer(entry, case):
    rows = rows_for(entry, **case.shape)
    given = case.give(rows)
    model = entry.make(sorted(set(np.asarray(given["y"]).tolist())))
    for cannot, error in case.unless.items():
        if cannot(entry):
            with pytest.raises(error):
                model.fit(**given)
            return
    with contextlib.suppress(case.may):
        check_answers(model.fit(**given), given["X"][:20])


def check_answers(model: Any, X: Any) -> None:
    """No NaN, and probabilities that are some."""
    for name, values in answers(model, X).items():
        assert not np.isnan(values).any(), name
        if name == "predict_proba":
            assert (values >= 0).all()
            np.testing.assert_allclose(values.sum(axis=1), 1, rtol=0, atol=1e-12)
        if name == "score_samples":
            assert np.isfinite(values).all()


LEVELS = ["low", "mid", "high"]


def with_levels(rows: Rows, other: str | None = "low") -> pd.DataFrame:
    """A frame with levels in column d; those of row 3 may be another."""
    d = [LEVELS[i % 3] for i in range(len(rows.X))]
    d[3] = other
    return pd.DataFrame(rows.X[:, :3], columns=list("abc")).assign(d=d)


def takes_levels(entry: Entry) -> bool:
    return entry.levels and entry.kind != "mixed"


def _fitted_to_levels(entry: Entry) -> tuple[Any, Rows]:
    rows = rows_for(entry)
    return entry.make(rows.classes).fit(with_levels(rows), rows.y), rows


def _learns_levels(model: Any) -> bool:
    return any("categorical" in str(v) for v in getattr(model, "families_", ()))


@over(takes_levels)
def test_an_unknown_level_is_smoothed_or_named(entry):
    model, rows = _fitted_to_levels(entry)
    strange = with_levels(rows, "huge")
    inside = getattr(model, "estimators_", [model])[0]
    if _learns_levels(inside):
        check_answers(model, strange)
        return
    with pytest.raises(LevelError) as caught:
        model.predict(strange)
    _check_says(caught.value, ("row 3", "column 'd'"))


@over(takes_levels)
def test_a_missing_level_is_left_out_or_named(entry):
    model, rows = _fitted_to_levels(entry)
    gap = with_levels(rows, None)
    try:
        check_answers(model, gap)
    except MissingValueError as error:
        _check_says(error, ("row 3", "column 'd'"))


@over(takes_levels)
def test_numbers_where_levels_were_are_refused(entry):
    model, rows = _fitted_to_levels(entry)
    for wrong in (rows.X, with_levels(rows).assign(d=1.0)):
        with pytest.raises(ColumnTypeError) as caught:
            model.predict(wrong)
        _check_says(caught.value, ("'d'",))


@over(lambda entry: entry.kind == "real")
def test_levels_where_numbers_were_are_refused(entry):
    rows = rows_for(entry)
    columns = pd.DataFrame(rows.X, columns=list("abcd"))
    model = entry.make(rows.classes).fit(columns, rows.y)
    with pytest.raises(ColumnTypeError, match="'d'"):
        model.predict(columns.assign(d="high"))


@over(lambda entry: not entry.levels)
def test_levels_for_a_family_of_numbers_are_refused(entry):
    rows = rows_for(entry)
    with pytest.raises((ParameterError, ColumnTypeError), match="'d'"):
        entry.make(rows.classes).fit(with_levels(rows), rows.y)


@over(lambda entry: entry.kind not in ("real", "levels"))
def test_entries_outside_the_domain_are_named(entry):
    rows = rows_for(entry)
    model = entry.make(rows.classes).fit(rows.X, rows.y)
    wrong = rows.X.copy()
    wrong[3, 1] = -1.0
    with pytest.raises(DomainError) as caught:
        entry.make(rows.classes).fit(wrong, rows.y)
    _check_says(caught.value, ("row 3", "column 1"))
    for name in ("predict", "predict_proba", "score_samples"):
        with pytest.raises(DomainError) as caught:
            getattr(model, name)(wrong)
        _check_says(caught.value, ("row 3", "column 1"))


@over(has_proba, allows_missing)
def test_a_row_of_gaps_alone_has_an_answer(entry):
    rows = rows_for(entry)
    model = entry.make(rows.classes).fit(rows.X, rows.y)
    check_answers(model, np.full((2, rows.X.shape[1]), np.nan))


@over(is_generative)
@pytest.mark.parametrize(
    "priors",
    [[0.5, 0.6, 0.1], [0.5, 0.5], [-0.5, 1.0, 0.5], [np.nan, 0.5, 0.5], {0: 0.5, 1: 0.5}],
    ids=str,
)
def test_priors_that_are_none_are_refused(entry, priors):
    rows = rows_for(entry)
    model = entry.make(rows.classes).fit(rows.X, rows.y)
    with pytest.raises(ParameterError, match="priors"):
        model.with_priors(priors)
    with pytest.raises(ParameterError, match="priors"):
        entry.make(rows.classes).set_params(priors=priors).fit(rows.X, rows.y)


@OURS
@over(is_generative)
def test_a_class_of_prior_zero_has_an_answer(entry):
    rows = rows_for(entry)
    model = entry.make(rows.classes).set_params(priors=[0.0, 0.3, 0.7]).fit(rows.X, rows.y)
    check_answers(model, rows.new)
    assert (model.predict_proba(rows.new)[:, 0] == 0).all()
    gaps = rows.new.copy()
    gaps[:, 1] = np.nan
    check_answers(model, gaps)


@over(lambda entry: entry.kind == "real")
@pytest.mark.parametrize("size", [1e100, 1e200, 1e308])
def test_a_row_far_from_every_class_is_answered_or_named(entry, size):
    rows = rows_for(entry)
    model = entry.make(rows.classes).fit(rows.X, rows.y)
    far = rows.new.copy()
    far[4] = [size, -size, size, -size]
    for name in ("predict_proba", "decision_function", "score_samples"):
        if not hasattr(model, name):
            continue
        try:
            assert not np.isnan(getattr(model, name)(far)).any()
        except ScaleError as error:
            _check_says(error, ("row 4",))


CONSTANT_WARNS = (SingularCovarianceWarning, RankDeficiencyWarning)


@over(is_real)
def test_what_is_left_out_is_named(entry):
    """A constant column, where it takes part in a covariance: a warning that names it."""
    rows = rows_for(entry)
    X = rows.X.copy()
    X[:, 2] = 7.0
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        entry.make(rows.classes).fit(X, rows.y)
    for one in given:
        assert issubclass(one.category, PosterioriWarning)
        assert isinstance(one.message, CONSTANT_WARNS)
        assert re.search(r"column (2|'x2')", str(one.message), re.IGNORECASE)
        assert one.filename == __file__, "the warning points at the caller"
    plain = entry.make(rows.classes).fit(X[:, [0, 1, 3]], rows.y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = entry.make(rows.classes).fit(X, rows.y)
    name = "predict_proba" if hasattr(plain, "predict_proba") else "decision_function"
    if given:
        np.testing.assert_allclose(
            getattr(model, name)(X), getattr(plain, name)(X[:, [0, 1, 3]]), rtol=0, atol=1e-9
        )
