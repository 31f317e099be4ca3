"""Any source gives the fit in memory, in as few passes, and names what is wrong and where."""

from functools import partial, reduce
from io import StringIO
from itertools import permutations
from operator import add

import dask
import numpy as np
import pandas as pd
import polars as pl
import pyarrow.dataset as pads
import pytest
from numpy.testing import assert_allclose
from rich.console import Console
from sources import (
    CUTS,
    FEATURES,
    FRAME,
    KINDS,
    PLAIN,
    N,
    assert_same,
    csv,
    dask_frame,
    delayed,
    fit,
    in_memory,
    ipc,
    over,
    parquet,
    parts,
    table,
)

from posteriori import (
    GLM,
    Adaline,
    FisherDiscriminant,
    GaussianClassifier,
    LeastSquaresClassifier,
    LogisticRegression,
    NaiveBayes,
    Perceptron,
    errors,
    scan,
    threads,
)
from posteriori.rows.block import Rows
from posteriori.rows.schema import Batch, Column
from posteriori.rows.source import Bar, Step, inspect_batch


class _Stream:
    """What hands out its rows by Arrow's protocol, as DuckDB does, and is nothing else known."""

    def __init__(self, rows):
        self._rows = rows

    def __arrow_c_stream__(self, requested_schema=None):
        return self._rows.__arrow_c_stream__(requested_schema)


SOURCES = {
    "Parquet": parquet,
    "CSV": csv,
    "CSV, first file empty": lambda p: csv(p, parts(PLAIN, [0, 0, 100, N])),
    "TSV, zipped": lambda p: csv(p, ending=".tsv.gz", separator="\t"),
    "Arrow": ipc,
    "pyarrow dataset in memory": lambda p: pads.dataset(table()),
    "pyarrow record batch": lambda p: table().to_batches()[0],
    "pandas, backwards": lambda p: PLAIN.iloc[::-1],
    "stream of polars": lambda p: _Stream(pl.from_pandas(PLAIN)),
    "Dask frame": dask_frame,
    "delayed frames": delayed,
    "delayed pyarrow tables": lambda p: delayed(p, map(table, parts())),
    "one delayed frame": lambda p: delayed(p, [PLAIN])[0],
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_any_source_gives_the_fit_in_memory(tmp_path, source):
    rows = scan(source(tmp_path), "y").discover()
    assert isinstance(rows, Rows)
    assert rows.n_rows == N
    assert_same(LogisticRegression(tol=1e-8).fit(rows), in_memory())


def test_columns_and_classes_are_an_error_before_discovery(tmp_path):
    for name, kind in KINDS.items():
        rows = scan(kind(tmp_path / name), "y")
        for name in ("schema", "classes", "n_rows", "soft"):
            with pytest.raises(errors.SourceError, match=r"not known yet.* Call discover\(\)"):
                getattr(rows, name)
        assert rows.log.passes == 0
        assert rows.discover().discover().classes.tolist() == ["no", "yes"]
        assert rows.log.passes == 1


# Roles of columns.

ROLES = {
    "weights": {"weight": "times"},
    "weights that are booleans": {"weight": "often"},
    "whole weights that are zero in whole parts": {"weight": "late"},
    "weights of zero for all of a class, which is absent": {"weight": "often", "target": "label"},
    "offsets": {"offset": "push"},
    "weights and offsets": {"weight": "times", "offset": "push"},
    "soft labels of two classes": {"target": ["rest", "half"], "weight": "times"},
    "soft labels of three classes": {"target": ["low", "middle", "high"], "weight": "late"},
    "soft labels that are named": {"target": ["low", "middle", "high"], "classes": [7, 3, 5]},
    "a list of one target": {"target": ["y"]},
}


@over("Parquet", "CSV", "Dask frame")
@pytest.mark.parametrize("roles", ROLES.values(), ids=ROLES)
def test_weights_offsets_and_soft_labels_are_columns(tmp_path, kind, roles):
    found = fit(kind(tmp_path, parts(FRAME)), **{"columns": FEATURES, **roles})
    target = roles.get("target", "y")
    names = {"sample_weight": "weight", "offset": "offset"}
    given = {name: FRAME[roles[role]] for name, role in names.items() if role in roles}
    y, classes = FRAME["y"] if target == ["y"] else FRAME[target], roles.get("classes")
    if classes:
        y, given = y.to_numpy(), {"classes": classes}
    assert_same(found, in_memory(y=y, **given))
    assert found.classes_.tolist() == sorted(["no", "yes"] if y.ndim == 1 else classes or target)


@over("Parquet", "CSV", "delayed")
def test_the_same_rows_serve_labels_and_numbers(tmp_path, kind):
    rows = scan(kind(tmp_path, parts(FRAME)), "count", weight="times", columns=["size"])
    X, y, weight = FRAME[["size"]], FRAME["count"], FRAME["times"]
    assert_same(LogisticRegression(tol=1e-8).fit(rows), in_memory(X, y, sample_weight=weight))
    assert rows.with_numbers().discovered is rows.discovered
    numbers = GLM(family="poisson", tol=1e-8).fit(rows)
    expected = GLM(family="poisson", tol=1e-8).fit(X, y, weight)
    for name in ("coef_", "intercept_", "coef_covariance_"):
        assert_allclose(getattr(numbers, name), getattr(expected, name), rtol=1e-9, atol=1e-10)


def test_features_are_the_columns_named_or_all_that_are_nothing_else(tmp_path):
    for kind in (parquet, dask_frame):
        source = kind(tmp_path, parts(FRAME[[*PLAIN.columns, "times", "push"]]))
        assert_same(fit(source, columns=["old", "colour"]), in_memory(FRAME[["old", "colour"]]))
        rows = scan(source, "y", weight="times", offset="push").discover()
        assert rows.schema.names == tuple(FEATURES)
        plain = scan(source).discover()
        assert plain.schema.names == (*FEATURES, "y", "times", "push")
        assert plain.classes is None


# Parts that differ.


@over("Parquet", "CSV", "delayed")
@pytest.mark.parametrize("name", ["size", "colour"])
@pytest.mark.parametrize("place", [0, 2])
def test_a_part_may_have_no_entry_in_a_column(tmp_path, kind, name, place):
    first, last = CUTS[place : place + 2]
    inside = (np.arange(N) >= first) & (np.arange(N) < last)
    holes = PLAIN.assign(**{name: PLAIN[name].mask(inside, None)})
    source = kind(tmp_path, parts(holes))
    found = NaiveBayes().fit(scan(source, "y"))
    expected = NaiveBayes().fit(holes[FEATURES], holes["y"])
    assert found.schema_ == expected.schema_ == in_memory().schema_
    both = (model.predict_proba(PLAIN[FEATURES]) for model in (found, expected))
    assert_allclose(*both, rtol=0, atol=1e-10)
    with pytest.raises(errors.MissingValueError, match=rf"row {first}, column '{name}'"):
        fit(source)


ORDER, CLASSES = ["red", "blue", "green"], ["yes", "no"]


@pytest.mark.parametrize("ordered", [False, True])
@over("Parquet", "Arrow", "Dask frame", "delayed")
def test_levels_and_classes_of_categoricals_keep_their_order(tmp_path, kind, ordered):
    declared = [pd.CategoricalDtype(own, ordered) for own in (ORDER, CLASSES)]
    frame = PLAIN.astype(dict(zip(["colour", "y"], declared, strict=True)))
    frame = frame.sort_values("y", ascending=False)
    expected = in_memory(frame[FEATURES], frame["y"])
    assert expected.schema_.columns[3].levels == tuple(ORDER)
    assert expected.classes_.tolist() == CLASSES
    by_class = parts(frame, [0, (frame["y"] == "no").sum(), N])
    assert [part["y"].unique().tolist() for part in by_class] == [["no"], ["yes"]]
    assert_same(fit(kind(tmp_path, by_class)), expected)
    assert_same(fit(frame), expected)
    enums = {"colour": pl.Enum(ORDER), "y": pl.Enum(CLASSES)}
    assert_same(fit(pl.from_pandas(PLAIN).cast(enums)), expected)


# Passes.

FROM_SUMS = [GaussianClassifier, NaiveBayes, LeastSquaresClassifier, FisherDiscriminant]


@over("Parquet", "CSV", "delayed")
@pytest.mark.parametrize("model", FROM_SUMS)
def test_models_from_sums_read_once_though_a_class_and_a_level_are_in_the_last_part_alone(
    tmp_path, kind, model
):
    random, last = np.random.default_rng(5), np.arange(N) >= CUTS[-2]
    frame = PLAIN[["size", "count"]].assign(
        colour=np.where(last, random.choice(["amber", "blue", "red"], N), PLAIN["colour"]),
        y=np.where(last, random.choice(["maybe", "no", "yes"], N), PLAIN["y"]),
        w=np.where(np.arange(N) < CUTS[1], 0.0, FRAME["half"]),  # the first part has no weight
    )
    found = model().fit(scan(kind(tmp_path, parts(frame)), "y", weight="w"))
    features = frame[["size", "count", "colour"]]
    expected = model().fit(features, frame["y"], frame["w"])
    assert found.passes_.passes == 1
    assert found.classes_.tolist() == ["maybe", "no", "yes"]
    assert found.schema_ == expected.schema_
    names = [name for name in ("coef_", "intercept_", "means_") if hasattr(expected, name)]
    assert names or model is NaiveBayes
    for name in names:
        assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-10, atol=1e-10)
    both = (each.decision_function(features) for each in (found, expected))
    assert_allclose(*both, rtol=1e-10, atol=1e-10)


@over("Parquet", "CSV", "delayed")
def test_the_bits_are_the_same_on_any_number_of_threads_and_the_next_time(tmp_path, kind):
    source = kind(tmp_path, parts(FRAME))
    rows = scan(source, "y", weight="times", columns=FEATURES)
    first = LogisticRegression(tol=1e-8).fit(rows)
    for n in (1, 2, 3):
        again = scan(source, "y", weight="times", columns=FEATURES)
        with threads(n), dask.config.set(scheduler="synchronous" if n == 1 else "threads"):
            for each in (rows, again):
                assert_same(LogisticRegression(tol=1e-8).fit(each), first, tolerance=0)


# What can be wrong.

NAMED_WRONGLY = [
    ({"target": "z"}, r"target='z' is not among the columns. They are 'size', 'count', 'old'"),
    ({"target": ["y", "z"]}, "target='z'"),
    ({"columns": ["size", "sise"]}, "columns='sise'"),
    ({"columns": ["size", "size"]}, "Column 'size' is named twice"),
    ({"weight": "count", "offset": "count"}, "Column 'count' is named twice"),
]


@pytest.mark.parametrize(("given", "message"), NAMED_WRONGLY)
def test_a_column_that_is_not_there_or_named_twice_is_an_error(tmp_path, given, message):
    for kind in (parquet, dask_frame):
        with pytest.raises(errors.ColumnNameError, match=message):
            scan(kind(tmp_path), **{"target": "y", **given})
    with pytest.raises(errors.ColumnNameError, match=message):
        scan(delayed(), **{"target": "y", **given}).discover()


UNUSABLE = [
    ("y", None, errors.LabelError),
    ("y", 0.5, errors.LabelError),
    ("w", -1.0, errors.WeightError),
    ("size", np.nan, errors.MissingValueError),
    ("size", np.inf, errors.InfiniteValueError),
    ("colour", None, errors.MissingValueError),
    ("push", np.nan, errors.DataError),
    ("events", np.nan, errors.DomainError),
    ("half", 0.9, errors.LabelError),
]


@over("Parquet", "CSV", "delayed")
@pytest.mark.parametrize("row", [0, 123])
@pytest.mark.parametrize(("name", "value", "error"), UNUSABLE)
def test_a_value_that_cannot_be_used_is_named_with_its_place_and_row(
    tmp_path, kind, name, value, error, row
):
    frame = FRAME.assign(w=1.0).astype({"events": float})
    if name == "y" and isinstance(value, float):
        frame["y"] = (FRAME["y"] == "yes").astype(float)
    frame.loc[[row, 200], name] = value  # the first is named
    target = {"events": "events", "half": ["half", "rest"]}.get(name, "y")
    roles = {"weight": "w", "offset": "push", "columns": ["size", "colour"]}
    rows = scan(kind(tmp_path, parts(frame)), target, **roles)
    with pytest.raises(error) as caught:
        (GLM(family="poisson") if name == "events" else LogisticRegression()).fit(rows)
    number, problem = 0 if row == 0 else 3, caught.value.problem
    place = f"part-{number}.{'csv' if kind is csv else 'parquet'}: "
    if kind is delayed:
        # The rows of earlier chunks are counted by the first pass, which reads labels and weights.
        first_pass = row and name in ("y", "w", "half")
        there = " (rows counted from 0 there)" if first_pass else ""
        place, row = f"chunk {number}{there}: ", 23 if first_pass else row
    assert place in problem
    assert f"row {row}" in problem.lower()
    if name in ("size", "colour"):
        assert f"column '{name}'" in problem


@over("Parquet", "CSV", "delayed")
def test_rows_that_no_model_can_be_fitted_to_are_an_error(tmp_path, kind):
    for frame, given, error, message in [
        (PLAIN.assign(w="much"), {"weight": "w"}, errors.WeightError, "does not hold numbers"),
        (PLAIN.assign(w=0.0), {"weight": "w"}, errors.WeightError, "zero in every row"),
        (PLAIN.assign(y="yes"), {}, errors.LabelError, "two classes at least; y has one cla"),
        (PLAIN[:0], {}, errors.ShapeError, "no rows"),
        (PLAIN, {"target": None}, errors.LabelError, "without labels"),
    ]:
        with pytest.raises(error, match=message):
            fit(kind(tmp_path, parts(frame)), **given)
    with pytest.raises(errors.LabelError, match="no target"):
        GLM(family="poisson").fit(scan(kind(tmp_path)))
    with pytest.raises(errors.DomainError, match="values of type str, not numbers"):
        GLM(family="poisson").fit(scan(kind(tmp_path), "y"))
    with pytest.raises(errors.ParameterError, match="targets and weights of their own"):
        LogisticRegression().fit(scan(kind(tmp_path), "y"), FRAME["y"])
    with pytest.raises(errors.ParameterError, match="A source is not accepted here"):
        FisherDiscriminant().fit(scan(kind(tmp_path), "y")).transform(scan(kind(tmp_path)))


@pytest.mark.parametrize("model", [*FROM_SUMS, Perceptron, Adaline])
def test_offsets_are_an_error_for_models_that_have_none(model, tmp_path):
    rows = scan(FRAME, "y", columns=["size"], offset="push")
    fitted = model(averaged=True) if model is Perceptron else model()
    fitted.fit(FRAME[["size"]], FRAME["y"])
    calls = [fitted.fit, partial(fitted.predict, to=tmp_path / "x.parquet")]
    for call in [*calls, getattr(fitted, "partial_fit", fitted.fit)]:
        with pytest.raises(
            errors.ParameterError, match=f"{model.__name__} does not support offsets"
        ):
            call(rows)


# The first pass: batches are added up in any order.

SMALL = pd.DataFrame(
    {
        "size": [1.5, 2.5, np.nan, 4.0, 5.0, 6.0],
        "old": [True, False, True, True, False, False],
        "colour": ["red", "blue", "blue", "green", None, "red"],
    }
)
LABELS = np.array(["no", "yes", "no", "maybe", "yes", "no"], dtype=object)
WEIGHT = np.array([1.0, 2.0, 0.5, 0.0, 1.0, 1.0])


@pytest.mark.parametrize("make", [lambda frame: frame, pl.from_pandas, table])
def test_batches_in_any_order_show_what_all_rows_show(make):
    cuts = (slice(0, 2), slice(2, 3), slice(3, 6))
    batches = [Batch(make(SMALL[i]), LABELS[i], WEIGHT[i], start=i.start) for i in cuts]
    columns = Column("size"), Column("old", "boolean")
    expected = (*columns, Column("colour", "categorical", ("blue", "green", "red")))
    for order in permutations(batches):
        found = reduce(add, map(inspect_batch, order))
        assert found.schema.columns == expected
        assert (found.n_rows, found.weight) == (6, 5.5)
        assert sorted(found.lengths) == [(0, 2), (2, 1), (3, 3)]
        weights = zip(found.labels.labels, found.labels.weight, strict=True)
        assert dict(weights) == {"no": 2.5, "yes": 3.0, "maybe": 0.0}


def test_batches_have_one_kind_a_column_and_one_kind_of_labels():
    def of(values, y=None, name="x"):
        return inspect_batch(Batch(pd.DataFrame({name: values}), y if y is None else np.array(y)))

    empty, numbers, levels = of([None, None]), of([0.5, 1.0]), of(["a", "b"])
    assert (empty + levels).schema.columns[0].levels == ("a", "b")
    assert (of([True, False]) + numbers).schema.columns[0].kind == "numeric"
    many = np.arange(12_000)
    for a, b, error, message in (
        (numbers, levels, errors.ColumnTypeError, "'x' is numeric in some parts"),
        (numbers, of([1.0], name="z"), errors.ColumnNameError, "different columns: 'x' and 'z'"),
        (of([1.0], [1]), of([1.0], ["a"]), errors.LabelError, "cannot be sorted"),
        (
            of(many[:6000], many[:6000]),
            of(many[6000:], many[6000:]),
            errors.LabelError,
            "than 10,000",
        ),
    ):
        with pytest.raises(error, match=message):
            a + b


# Progress.


@pytest.mark.parametrize("is_screen", [False, True])
def test_a_pass_is_a_bar_on_a_screen_and_a_line_elsewhere(is_screen):
    out = StringIO()
    bar = Bar(Console(file=out, width=80, force_terminal=is_screen))
    for number, n_rows, objective in ((1, None, None), (2, 30_000, 1234.5), (3, 50_000, None)):
        for rows in range(0, 30_001, 10_000):
            bar(Step(number, rows, n_rows, objective, 0.0))
        bar.end()
    lines = ["pass 1: 30,000 rows", "pass 2 objective 1234.5: 30,000 rows", "pass 3: 30,000 rows"]
    shown = out.getvalue()
    if is_screen:
        assert all(part in shown for line in lines for part in line.split(": "))
        assert shown.endswith("\x1b[2K")  # the line is wiped
    else:
        assert shown.splitlines() == lines
