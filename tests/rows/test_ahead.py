"""Sums along with the first look are those of a pass of their own."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from posteriori import (
    FisherDiscriminant,
    GaussianClassifier,
    LeastSquaresClassifier,
    LogisticRegression,
    NaiveBayes,
    scan,
)
from posteriori.errors import (
    Interrupted,
    LabelError,
    MissingValueError,
    ParameterError,
    ShapeError,
)
from posteriori.rows.files import FileRows

FILES = 7
N = 700
RANDOM = np.random.default_rng(8)
FRAME = pd.DataFrame(RANDOM.normal(size=(N, 3)), columns=list("abc"))
FRAME["f"] = np.array(["u", "v", "w"])[RANDOM.integers(3, size=N)]
FRAME["y"] = np.array(["no", "so", "yes"])[RANDOM.integers(3, size=N)]
FRAME["w"] = RANDOM.integers(1, 4, size=N).astype(float)
FRAME.loc[FRAME["y"] == "yes", "a"] += 1
SECOND = FRAME.index // (N // FILES) == 1
"""Rows of the second file, of which nothing is seen before all are looked at."""

MODELS = [
    GaussianClassifier(),
    GaussianClassifier(covariance="full"),
    GaussianClassifier(covariance="diagonal"),
    NaiveBayes(),
    LeastSquaresClassifier(),
    FisherDiscriminant(),
]
IDS = ["shared", "full", "diagonal", "naive", "squares", "fisher"]
EVERY_MODEL = pytest.mark.parametrize("model", MODELS, ids=IDS)


@pytest.fixture
def write(tmp_path):
    def written(frame):
        for i, part in enumerate(np.split(np.arange(len(frame)), FILES)):
            frame.iloc[part].to_parquet(tmp_path / f"{i}.parquet", index=False)
        return tmp_path

    return written


def _scan(folder, columns=("a", "b", "c", "f"), **given):
    return scan(folder, "y", weight="w", columns=list(columns), **given)


def _answers(model, frame=FRAME, columns=("a", "b", "c", "f")):
    how = getattr(model, "predict_proba", None) or model.decision_function
    return how(frame[list(columns)])


@EVERY_MODEL
def test_a_fit_takes_one_pass_and_gives_the_same_bits(model, write):
    folder = write(FRAME)
    rows, looked_at = _scan(folder), _scan(folder, cache=False)
    _ = looked_at.look
    expected = _answers(model.fit(looked_at))
    found = model.fit(rows)
    assert found.passes_.passes == 1
    np.testing.assert_array_equal(_answers(found), expected)
    assert rows.look.lengths == looked_at.look.lengths
    assert rows.look.weight == looked_at.look.weight == FRAME["w"].sum()
    found = model.fit(rows)
    assert found.passes_.passes == 1
    np.testing.assert_array_equal(_answers(found), expected)


SURPRISES = {
    "class": FRAME.assign(y=np.where(SECOND, "zz", FRAME["y"])),
    "level": FRAME.assign(f=np.where(SECOND, "z", FRAME["f"])),
    "class that has no weight elsewhere": FRAME.assign(
        y=np.where(FRAME.index % 5 == 0, "zz", FRAME["y"]),
        w=np.where((FRAME.index % 5 == 0) & ~SECOND, 0.0, FRAME["w"]),
    ),
}


@pytest.mark.parametrize("surprise", SURPRISES)
@EVERY_MODEL
def test_what_a_few_rows_do_not_show_is_found_in_the_look(model, surprise, write):
    frame = SURPRISES[surprise]
    found = model.fit(_scan(write(frame)))
    assert found.passes_.passes == 2
    ours = _answers(found)
    columns = frame[["a", "b", "c", "f"]]
    expected = type(model)(**model.get_params()).fit(columns, frame["y"], frame["w"])
    assert found.classes_.tolist() == expected.classes_.tolist()
    np.testing.assert_allclose(ours, _answers(expected), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("labels", ["text", "numbers", "far apart"])
@pytest.mark.parametrize("weight", [None, "w"])
def test_numbers_that_a_few_rows_have_shown_are_not_looked_at_again(
    labels, weight, write, monkeypatch
):
    """What is learnt of them is what a look learns."""
    frame = FRAME.copy()
    if labels != "text":
        numbers = {"no": -3, "so": 5, "yes": 7 if labels == "numbers" else 10**9}
        frame["y"] = frame["y"].map(numbers)
    frame.loc[(frame["y"] == frame["y"].max()) & SECOND, "y"] = frame["y"].min()
    folder = write(frame.drop(columns="f"))
    given = {"target": "y", "weight": weight, "columns": ["a", "b", "c"]}
    expected = scan(folder, **given).look
    looked, look_at = [], FileRows._look_at
    monkeypatch.setattr(
        FileRows, "_look_at", lambda self, *args: (looked.append(args[0]), look_at(self, *args))[1]
    )
    rows = scan(folder, **given)
    GaussianClassifier().fit(rows)
    assert len(looked) == 3  # a glimpse
    found = rows.look
    assert [(seen.name, seen.kind) for seen in found.columns] == [
        (seen.name, seen.kind) for seen in expected.columns
    ]
    assert found.named == expected.named
    assert found.lengths == expected.lengths
    assert found.weight == expected.weight
    for name in ("labels", "weight", "count"):
        ours, theirs = (getattr(look.labels, name) for look in (found, expected))
        assert ours.dtype == theirs.dtype
        assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("weight", [0.0, 2.0])
@pytest.mark.parametrize("label", [None, np.nan, np.inf, 0.5])
def test_labels_are_read_of_rows_without_weight_too(label, weight, write):
    frame = FRAME.assign(y=FRAME["y"].map({"no": 0.0, "so": 1.0, "yes": 2.0}))
    row = np.flatnonzero(SECOND)[30]
    frame.loc[row, ["y", "w"]] = label, weight
    folder = write(frame)
    for model in (GaussianClassifier(), LogisticRegression()):
        with pytest.raises(LabelError, match=r"[Rr]ow 30\b"):
            model.fit(_scan(folder, "abc"))


@EVERY_MODEL
def test_rows_that_are_sorted_by_class(model, write):
    """Of the first, the middle and the last file each has another class, and some have one."""
    frame = FRAME.sort_values("y", ignore_index=True)
    found = model.fit(_scan(write(frame)))
    assert found.passes_.passes == 1
    expected = type(model)(**model.get_params())
    expected.fit(frame[["a", "b", "c", "f"]], frame["y"], frame["w"])
    np.testing.assert_allclose(_answers(found), _answers(expected), rtol=1e-9, atol=1e-12)


def test_entries_that_are_missing_are_for_a_fit_that_can_do_without(write):
    frame = FRAME.assign(b=np.where(FRAME.index == 150, np.nan, FRAME["b"]))
    columns = ("a", "b", "c")
    found = GaussianClassifier().fit(_scan(write(frame), columns))
    assert found.n_iter_ > 1
    expected = GaussianClassifier().fit(frame[list(columns)], frame["y"], frame["w"])
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9)
    with pytest.raises(MissingValueError, match="first in row 150, column 'b'"):
        LeastSquaresClassifier().fit(_scan(write(frame), columns))


def test_columns_too_large_to_be_squared_are_summed_again(write):
    frame = FRAME.assign(a=FRAME["a"] * 1e160)
    found = GaussianClassifier().fit(_scan(write(frame), "abc"))
    assert found.passes_.passes == 3
    expected = GaussianClassifier().fit(frame[list("abc")], frame["y"], frame["w"])
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9)


def test_what_is_wrong_is_told_as_in_a_look(write):
    folder = write(FRAME.assign(y=FRAME["y"].where(~SECOND)))
    errors = []
    for ask in (GaussianClassifier().fit, lambda rows: rows.classes):
        with pytest.raises(LabelError) as error:
            ask(_scan(folder))
        errors.append(str(error.value))
    assert errors[0] == errors[1]
    with pytest.raises(ShapeError, match="no rows"):
        GaussianClassifier().fit(_scan(write(FRAME.iloc[:0])))


def test_parameters_are_held_against_all_classes(write):
    """A few rows do not have them all, and with these the priors would be an error."""
    frame = SURPRISES["class"]
    priors = {"no": 0.1, "so": 0.2, "yes": 0.3, "zz": 0.4}
    found = GaussianClassifier(priors=priors).fit(_scan(write(frame)))
    assert found.priors_.tolist() == [0.1, 0.2, 0.3, 0.4]
    with pytest.raises(ParameterError, match="priors"):
        GaussianClassifier(priors={"no": 0.5, "maybe": 0.5}).fit(_scan(write(frame)))


def test_nothing_is_left_of_a_fit_that_fails(write):
    rows, model = _scan(write(FRAME.assign(y="no")), "abc"), GaussianClassifier()
    with pytest.raises(LabelError):
        model.fit(rows)
    assert vars(model) == vars(GaussianClassifier())
    assert rows.look.n_rows == N


def test_rows_with_two_sides_are_summed_by_these(write):
    frame = FRAME.assign(y=(FRAME["y"] == "no").astype(int))
    found = GaussianClassifier().fit(_scan(write(frame), "abc").comparing([1, 0]))
    expected = GaussianClassifier().fit(frame[list("abc")], 1 - frame["y"], frame["w"])
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9)


def test_a_stop_at_the_very_first_is_told_like_any_other(write):
    def stop(step):
        raise KeyboardInterrupt

    with pytest.raises(Interrupted, match="Stopped in pass 1"):
        GaussianClassifier().fit(_scan(write(FRAME), progress=stop))


def test_a_stop_while_a_few_rows_are_read_is_told(write, monkeypatch):
    def stop(*args):
        raise KeyboardInterrupt

    rows, model = _scan(write(FRAME)), GaussianClassifier()
    monkeypatch.setattr(FileRows, "_look_at", stop)
    with pytest.raises(Interrupted, match=r"Stopped before the first pass\. What was"):
        model.fit(rows)
    assert vars(model) == vars(GaussianClassifier())


def test_fits_at_the_same_time_have_their_own_sums(write):
    models = [GaussianClassifier(), LeastSquaresClassifier(), NaiveBayes(), FisherDiscriminant()]
    folder = write(FRAME)
    for _ in range(5):
        rows = _scan(folder)
        with ThreadPoolExecutor(4) as pool:
            found = [pool.submit(clone(model).fit, rows) for model in models]
            answers = [_answers(each.result()) for each in found]
        for model, ours in zip(models, answers, strict=True):
            np.testing.assert_array_equal(ours, _answers(model.fit(rows)))


def test_nothing_is_kept_on_disk_for_one_pass_but_for_the_next(write):
    rows = _scan(write(FRAME), "abc")
    GaussianClassifier().fit(rows)
    assert rows.spool.find(0, N) is None
    LogisticRegression().fit(rows)
    assert sum(table.num_rows for _, table in rows.spool.find(0, N)) == N
    rows = _scan(write(FRAME), "abc", cache=True)
    GaussianClassifier().fit(rows)
    assert sum(table.num_rows for _, table in rows.spool.find(0, N)) == N
