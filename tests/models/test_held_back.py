"""Rows held back wherever they lie: the same folds, the same answers, and what cannot be done."""

import pickle
from decimal import Decimal

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression as SklearnLogistic
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from posteriori import (
    CalibratedClassifier,
    DecidingClassifier,
    GaussianClassifier,
    LogisticRegression,
    NaiveBayes,
    NoveltyDetector,
    OneVersusOne,
    OneVersusRest,
    scan,
)
from posteriori.errors import (
    DataError,
    IdentifiabilityWarning,
    Interrupted,
    LabelError,
    MissingValueError,
    ParameterError,
    ScaleError,
)
from posteriori.models import fitting
from posteriori.models.folds import deal, deal_out
from posteriori.models.meta import Training
from posteriori.rows import look
from posteriori.rows.digests import row_lots
from posteriori.statistics import lots, ordered

N = 1_500
NAMES = ["a", "b", "c"]


def frame_of(classes=3, n=N, seed=1):
    """Numbers, a label, and weights of which some are zero."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    scores = X @ random.normal(size=(3, classes)) + random.gumbel(size=(n, classes))
    weight = random.choice([0.0, 1.0, 2.5], size=n)
    return pd.DataFrame(X, columns=NAMES).assign(y=scores.argmax(axis=1), w=weight)


def parts_of(frame):
    """Of unequal sizes, one of them empty and one with one class alone."""
    ordered_rows = frame.sort_values("y", kind="stable")
    cuts = [0, 0, 5, 301, 900]
    return [ordered_rows.iloc[part] for part in np.split(np.arange(len(frame)), cuts)]


def elsewhere(parts, folder):
    """Arguments of `fit` for the same rows in files, delayed frames and Dask arrays."""
    whole = pd.concat(parts)
    for i, part in enumerate(parts):
        part.to_parquet(folder / f"{i}.parquet", row_group_size=400)
    whole.to_csv(folder / "all.csv", index=False)
    delayed = [dask.delayed(part, pure=False) for part in parts]
    yield (scan(folder / "*.parquet", "y", weight="w"),)
    yield (scan(folder / "all.csv", "y", weight="w"),)
    yield (scan(delayed, "y", weight="w"),)
    X, y, w = (whole[what].to_numpy() for what in (NAMES, "y", "w"))
    cuts = (700, 0, N - 700)
    yield tuple(da.from_array(each, chunks=(cuts, 3)[: each.ndim]) for each in (X, y, w))


def learnt(model, X):
    """All that the fit has found beside the estimator."""
    found = {"predict_proba": model.predict_proba(X)}
    if isinstance(model, NoveltyDetector):
        kept = model._rarity
        return {**found, "levels": kept.levels, "below": kept.below, "end": model.threshold_}
    if isinstance(model, OneVersusOne):
        return {**found, "temperature": [each.temperature_ for each in model.estimators_]}
    found["zero"] = model._zero
    if model.method == "temperature":
        return {**found, "temperature": model.temperature_}
    mapping = model.calibrator_
    errors = np.diag(mapping.coef_covariance_)
    return {**found, "coef": mapping.coef_, "intercept": mapping.intercept_, "errors": errors}


def assert_same(found, expected):
    for name, value in expected.items():
        assert_allclose(found[name], value, rtol=1e-10, atol=1e-14, err_msg=name)


MODELS = [
    CalibratedClassifier(LogisticRegression()),
    CalibratedClassifier(NaiveBayes(), method="platt", folds=3, random_state=4),
    NoveltyDetector(GaussianClassifier(covariance="full"), false_alarm=0.05),
]
NESTED = [
    CalibratedClassifier(OneVersusOne(estimator=LogisticRegression())),
    CalibratedClassifier(CalibratedClassifier(GaussianClassifier(), folds=2), method="platt"),
    OneVersusOne(estimator=CalibratedClassifier(LogisticRegression())),
]


@pytest.mark.parametrize(("classes", "few"), [(2, True), (3, False)])
@pytest.mark.parametrize(
    "model", [*MODELS, *(pytest.param(each, marks=pytest.mark.slow) for each in NESTED)], ids=str
)
def test_the_answer_is_that_in_memory(model, classes, few, tmp_path, monkeypatch):
    """With all rows dealt out evenly, and at the usual tolerance; then with samples of them."""
    if not few:
        monkeypatch.setattr(lots, "FEW", 300)
        monkeypatch.setattr(ordered, "MOST", 128)
        monkeypatch.setattr(look, "SAMPLE_ENTRIES", 2**10)
        monkeypatch.setattr(fitting, "_SMALL", 0)
    parts = parts_of(frame_of(classes))
    whole = pd.concat(parts)
    X = whole[NAMES].to_numpy()
    expected = learnt(clone(model).fit(X, whole["y"], whole["w"]), X[:200])
    for given in elsewhere(parts, tmp_path):
        found = clone(model).fit(*given)
        asked = whole[NAMES][:200] if hasattr(found, "feature_names_in_") else X[:200]
        assert_same(learnt(found, asked), expected)
        assert found.passes_.passes > 5


@pytest.mark.parametrize(
    "make",
    [
        lambda fitted: CalibratedClassifier(fitted),
        lambda fitted: CalibratedClassifier(fitted, method="platt"),
        lambda fitted: NoveltyDetector(fitted, false_alarm=0.1),
    ],
)
@pytest.mark.parametrize("n", [100, 1_000])
def test_a_frozen_estimator_is_asked_about_rows_elsewhere(make, n, tmp_path, monkeypatch):
    monkeypatch.setattr(ordered, "MOST", 500)
    parts = parts_of(frame_of(2))
    whole, first = pd.concat(parts), frame_of(2)[:n]
    model = make(FrozenEstimator(NaiveBayes().fit(first[NAMES], first["y"])))
    expected = learnt(clone(model).fit(whole[NAMES], whole["y"], whole["w"]), whole[NAMES][:200])
    *in_files, in_dask = elsewhere(parts, tmp_path)
    for given in in_files:
        assert_same(learnt(clone(model).fit(*given), whole[NAMES][:200]), expected)
    unnamed = make(FrozenEstimator(NaiveBayes().fit(first[NAMES].to_numpy(), first["y"])))
    X = whole[NAMES].to_numpy()[:200]
    assert_same(learnt(unnamed.fit(*in_dask), X), expected)


def test_an_estimator_of_others_that_comes_fitted_is_asked_too(tmp_path):
    frame = frame_of(3)
    frame.to_parquet(tmp_path / "rows.parquet")
    fitted = SklearnLogistic().fit(frame[NAMES], frame["y"])
    model = CalibratedClassifier(FrozenEstimator(fitted))
    expected = clone(model).fit(frame[NAMES], frame["y"]).temperature_
    found = model.fit(scan(tmp_path / "rows.parquet", "y", columns=NAMES))
    assert_allclose(found.temperature_, expected, rtol=1e-10)


def test_a_frozen_density_needs_no_target(tmp_path):
    frame = frame_of(2)
    frame[NAMES].to_parquet(tmp_path / "rows.parquet")
    frame.assign(y=frame["a"] / 3).to_parquet(tmp_path / "numbers.parquet")
    fitted = FrozenEstimator(GaussianClassifier().fit(frame[NAMES][:500], frame["y"][:500]))
    expected = NoveltyDetector(fitted).fit(frame[NAMES]).threshold_
    for rows in (
        scan(tmp_path / "rows.parquet"),
        scan(tmp_path / "numbers.parquet", "y", columns=NAMES),
    ):
        assert_allclose(NoveltyDetector(fitted).fit(rows).threshold_, expected, rtol=1e-12)


def test_text_and_levels_that_one_row_alone_has(tmp_path):
    random = np.random.default_rng(0)
    frame = frame_of(2, 300).drop(columns="w")
    frame["colour"] = random.choice(["red", "green"], 300)
    frame.loc[17, "colour"] = "blue"
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    inner = OneVersusRest(estimator=LogisticRegression(prior=1.0))
    for model in (CalibratedClassifier(NaiveBayes()), CalibratedClassifier(inner)):
        expected = clone(model).fit(frame.drop(columns="y"), frame["y"]).temperature_
        for name in ("rows.csv", "rows.parquet"):
            found = clone(model).fit(scan(tmp_path / name, "y"))
            assert_allclose(found.temperature_, expected, rtol=1e-10)


def test_a_class_of_one_row_is_unknown_where_that_is_held_back(tmp_path):
    frame = frame_of(2, 300).drop(columns="w")
    frame.loc[30, "y"] = 7
    frame.to_parquet(tmp_path / "rows.parquet")
    model = CalibratedClassifier(LogisticRegression(prior=1.0))
    with pytest.warns(IdentifiabilityWarning, match=r"Class 7 has no two different rows"):
        expected = clone(model).fit(frame[NAMES], frame["y"]).predict_proba(frame[NAMES])
    with pytest.warns(IdentifiabilityWarning, match=r"Class 7 has no two different rows"):
        found = clone(model).fit(scan(tmp_path / "rows.parquet", "y"))
    assert found.classes_.tolist() == [0, 1, 7]
    assert_allclose(found.predict_proba(frame[NAMES]), expected, rtol=1e-10)


def test_rows_without_weight_may_hold_anything(tmp_path):
    frame = frame_of(2, 400)
    broken = frame.assign(w=np.where(frame["w"] == 0, 0.0, 1.0))
    broken.loc[broken["w"] == 0, "a"] = np.nan
    broken.loc[broken["w"] == 0, "y"] = 9
    kept = broken[broken["w"] > 0]
    broken.to_parquet(tmp_path / "rows.parquet")
    for model in (CalibratedClassifier(LogisticRegression()), NoveltyDetector(NaiveBayes())):
        name = "temperature_" if isinstance(model, CalibratedClassifier) else "threshold_"
        expected = getattr(clone(model).fit(kept[NAMES], kept["y"]), name)
        found = clone(model).fit(scan(tmp_path / "rows.parquet", "y", weight="w"))
        assert_allclose(getattr(found, name), expected, rtol=1e-10)
        assert found.classes_.tolist() == [0, 1]


# --- Folds ------------------------------------------------------------------------------------


@pytest.mark.parametrize("few", [2**12, 300])
def test_weight_and_number_in_each_fold_are_counted(few, monkeypatch):
    monkeypatch.setattr(lots, "FEW", few)
    random = np.random.default_rng(2)
    X, codes = random.normal(size=(900, 2)).round(1), random.choice(3, 900, p=[0.1, 0.3, 0.6])
    weight = random.integers(1, 4, 900).astype(float)
    rows = Training(X, np.arange(3), codes, weight)
    fold = deal(rows, 4, 1)
    key = int(np.random.default_rng(1).integers(2**63))
    found = deal_out(rows.as_numbers(row_lots(X, key)), 4, rows.classes)
    for k in range(3):
        for f in range(4):
            own = (codes == k) & (fold == f)
            assert found.weight[k, f] == weight[own].sum()
            assert found.count[k, f] == own.sum()


@pytest.mark.parametrize("few", [2**12, 100])
@pytest.mark.parametrize(("outer", "inner"), [(2, 2), (5, 5), (2, 4), (3, 6), (6, 3)])
def test_folds_within_folds_have_their_share(outer, inner, few, monkeypatch):
    monkeypatch.setattr(lots, "FEW", few)
    random = np.random.default_rng(0)
    X, codes = random.normal(size=(6_000, 2)), random.integers(2, size=6_000)
    rows = Training(X, np.arange(2), codes, None)
    fold = deal(rows, outer, None)
    for f in range(outer):
        left = rows.pick(np.flatnonzero(fold != f))
        found = deal(left, inner, None)
        for k in range(2):
            share = np.bincount(found[left.codes == k], minlength=inner) * inner / len(found) * 2
            assert abs(share - 1).max() < 0.25


def test_folds_within_folds_are_the_same_in_files(tmp_path, monkeypatch):
    monkeypatch.setattr(lots, "FEW", 100)
    frame = frame_of(2, 1_000).drop(columns="w")
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=300)
    model = CalibratedClassifier(CalibratedClassifier(GaussianClassifier(), folds=2), folds=2)
    expected = clone(model).fit(frame[NAMES], frame["y"]).temperature_
    found = clone(model).fit(scan(tmp_path / "rows.parquet", "y")).temperature_
    assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("few", [2**12, 300])
def test_rows_in_float32_are_in_the_same_folds(few, monkeypatch):
    monkeypatch.setattr(lots, "FEW", few)
    random = np.random.default_rng(2)
    X, codes = random.normal(size=(2_000, 3)), random.choice(3, 2_000, p=[0.1, 0.3, 0.6])
    X[:, 1] = X[:, 1].round(1)
    X[1_900:] = X[:100] * (1 + 1e-10)  # which float32 takes for equal
    rows, single = (Training(each, np.arange(3), codes, None) for each in (X, X.astype("f4")))
    assert_array_equal(deal(single, 5, None), deal(rows, 5, None))


@pytest.mark.parametrize("few", [2**12, 300])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_files_in_float32_give_the_same_within_its_precision(model, few, tmp_path, monkeypatch):
    monkeypatch.setattr(lots, "FEW", few)
    frame = frame_of().drop(columns="w")
    single = frame.astype(dict.fromkeys(NAMES, np.float32))
    single.to_parquet(tmp_path / "rows.parquet")
    expected = learnt(clone(model).fit(frame[NAMES], frame["y"]), frame[NAMES])
    found = learnt(clone(model).fit(scan(tmp_path / "rows.parquet", "y")), frame[NAMES])
    for name, value in expected.items():
        assert_allclose(found[name], value, rtol=2e-5, atol=2e-5, err_msg=name)


@pytest.mark.parametrize("few", [2**12, 1_000])
@pytest.mark.parametrize("heaped", [4_000, 1_500])
def test_rows_that_float32_cannot_tell_apart_are_dealt_out_too(heaped, few, monkeypatch):
    monkeypatch.setattr(lots, "FEW", few)
    times = 1.7e9 + np.arange(4_000.0)[:, None] / 100
    times[heaped:] /= 1e6
    rows = Training(times, np.array([0]), np.zeros(4_000, dtype=int), None)
    share = np.bincount(deal(rows, 5, None), minlength=5) / 4_000
    assert abs(share - 0.2).max() < 4 * np.sqrt(0.16 / 4_000)


def test_many_rows_are_dealt_out_by_chance_and_equal_ones_together(monkeypatch):
    monkeypatch.setattr(lots, "FEW", 1_000)
    X = np.random.default_rng(0).normal(size=(20_000, 2))
    rows = Training(np.tile(X, (2, 1)), np.array([0]), np.zeros(40_000, dtype=int), None)
    fold = deal(rows, 5, None)
    assert_array_equal(fold[:20_000], fold[20_000:])
    share = np.bincount(fold[:20_000]) / 20_000
    assert abs(share - 0.2).max() < 4 * np.sqrt(0.16 / 20_000)
    assert share.std() > 0


# --- What cannot be done ----------------------------------------------------------------------


@pytest.fixture
def rows(tmp_path):
    frame_of(2, 400).to_parquet(tmp_path / "rows.parquet")
    return lambda **given: scan(tmp_path / "rows.parquet", columns=NAMES, **given)


@pytest.mark.parametrize(
    ("model", "given", "error", "words"),
    [
        (
            CalibratedClassifier(SklearnLogistic()),
            {"target": "y"},
            ParameterError,
            r"LogisticRegression does not fit to a source of rows\..*FrozenEstimator",
        ),
        (
            NoveltyDetector(KernelDensity()),
            {"target": "y"},
            ParameterError,
            "KernelDensity does not fit to a source",
        ),
        (
            CalibratedClassifier(NaiveBayes()),
            {},
            LabelError,
            "CalibratedClassifier needs a label a row",
        ),
        (
            CalibratedClassifier(NaiveBayes()),
            {"target": ["y", "w"]},
            DataError,
            "is not a probability distribution",
        ),
        (
            CalibratedClassifier(LogisticRegression()),
            {"target": "y", "offset": "w"},
            ParameterError,
            "CalibratedClassifier knows no offsets",
        ),
    ],
)
def test_what_cannot_be_honoured_is_an_error(model, given, error, words, rows):
    with pytest.raises(error, match=words):
        model.fit(rows(**given))
    assert not hasattr(model, "estimator_")


def test_rows_have_labels_of_their_own(rows):
    with pytest.raises(ParameterError, match="which have labels and weights of their own"):
        CalibratedClassifier(NaiveBayes()).fit(rows(target="y"), [0, 1])


def test_a_label_that_a_frozen_estimator_does_not_know_is_named(rows):
    frame = frame_of(2, 400)
    fitted = NaiveBayes().fit(frame[NAMES], frame["y"] + 5)
    with pytest.raises(LabelError, match=r"In rows 0 to 399.*not among the classes given, 5, 6"):
        CalibratedClassifier(FrozenEstimator(fitted)).fit(rows(target="y"))


def test_an_interrupted_fit_leaves_the_model_as_it_was(rows):
    model = CalibratedClassifier(NaiveBayes()).fit(rows(target="y"))
    before = dict(vars(model))
    passes = model.passes_.passes

    def stop_late(report):
        if report.number == passes - 1:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted, match=rf"pass {passes - 1}"):
        model.fit(rows(target="y", progress=stop_late))
    assert vars(model) == before


def test_passes_are_those_of_the_log(tmp_path):
    frame_of(2, 400).to_parquet(tmp_path / "rows.parquet")
    for model in (
        CalibratedClassifier(LogisticRegression()),
        NoveltyDetector(GaussianClassifier()),
        OneVersusRest(estimator=CalibratedClassifier(NaiveBayes())),
        DecidingClassifier(LogisticRegression()),
        GaussianClassifier(),
    ):
        rows = scan(tmp_path / "rows.parquet", "y", columns=NAMES)
        assert model.fit(rows).passes_.passes == rows.log.passes
        page = " ".join(str(model.summary()).split())
        assert f"Passes {model.passes_}" in page
        assert "Passes" not in str(
            model.fit(frame_of(2, 400)[NAMES], frame_of(2, 400)["y"]).summary()
        )


@pytest.mark.parametrize("place", [3, 123, 299])
def test_a_row_without_an_answer_is_called_by_its_number(place, tmp_path):
    """Whether it was picked out of a fold, or of rows with a weight."""
    frame = frame_of(2, 300).assign(w=1.0)
    frame["t"] = np.where(np.arange(300) == place, "rare", "usual")
    frame.loc[[0, 5, 200], "w"] = 0.0
    frame.to_parquet(tmp_path / "rows.parquet")
    model = CalibratedClassifier(NaiveBayes(pseudocount=0.0))
    rows = scan(tmp_path / "rows.parquet", "y", weight="w")
    with pytest.raises(ScaleError, match=rf"^Row {place} has density zero"):
        clone(model).fit(frame[[*NAMES, "t"]], frame["y"], frame["w"])
    with pytest.raises(ScaleError, match=rf"In rows 0 to 299.*: Row {place} has density zero"):
        clone(model).fit(rows)
    gap = frame[NAMES].copy()
    gap.iloc[place, 1] = np.nan
    gap.assign(y=frame["y"], w=frame["w"]).to_parquet(tmp_path / "gap.parquet")
    frozen = FrozenEstimator(LogisticRegression().fit(frame[NAMES], frame["y"]))
    with pytest.raises(MissingValueError, match=rf"In rows 0 to 299.*row {place}\b"):
        CalibratedClassifier(frozen).fit(scan(tmp_path / "gap.parquet", "y", weight="w"))


def test_rows_none_of_which_has_an_answer_are_an_error_too(tmp_path):
    frame = frame_of(2, 300).assign(w=1.0)
    frozen = FrozenEstimator(LogisticRegression().fit(frame[NAMES], frame["y"]))
    frame[NAMES] = np.nan
    frame.loc[:4, "w"] = 0.0
    frame.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(MissingValueError, match="In rows 0 to 299"):
        CalibratedClassifier(frozen).fit(scan(tmp_path / "rows.parquet", "y", weight="w"))


@pytest.mark.parametrize("kind", ["levels with gaps", "decimals"])
def test_columns_of_any_kind_are_dealt_out_alike(kind, tmp_path):
    random = np.random.default_rng(0)
    X = frame_of(2, 300)
    frame = pl.DataFrame({"a": X["a"].to_numpy(), "y": X["y"].to_numpy()})
    if kind == "decimals":
        values = [Decimal(int(v)) / 10_000 for v in random.integers(10**6, size=300)]
        frame = frame.with_columns(pl.Series("t", values, dtype=pl.Decimal(12, 4)))
        other = pd.DataFrame({"a": X["a"], "t": values})
    else:
        levels = random.choice(["u", "v", None], size=300).tolist()
        frame = frame.with_columns(pl.Series("t", levels, dtype=pl.Categorical))
        other = pd.DataFrame({"a": X["a"], "t": levels})
    frame.write_parquet(tmp_path / "rows.parquet")
    model = CalibratedClassifier(NaiveBayes())
    expected = clone(model).fit(other, X["y"]).temperature_
    table = frame.select("a", "t")
    for given in (
        (table, X["y"]),
        (table.to_arrow(), X["y"]),
        (scan(frame, "y"),),
        (scan(tmp_path / "rows.parquet", "y"),),
    ):
        assert_allclose(clone(model).fit(*given).temperature_, expected, rtol=1e-10)


@pytest.mark.parametrize("kind", [sparse.coo_matrix, sparse.csc_matrix])
def test_sparse_chunks_of_any_kind(kind):
    frame = frame_of(2, 300)
    X = da.from_array(frame[NAMES].to_numpy(), chunks=(100, 3))
    y = da.from_array(frame["y"].to_numpy(), chunks=100)
    model = CalibratedClassifier(GaussianClassifier())
    expected = clone(model).fit(frame[NAMES].to_numpy(), frame["y"]).temperature_
    assert_allclose(model.fit(X.map_blocks(kind), y).temperature_, expected, rtol=1e-10)


@pytest.mark.parametrize("model", [CalibratedClassifier, NoveltyDetector])
def test_a_frozen_model_of_others_that_knows_columns_by_name(model, tmp_path):
    frame = frame_of(2, 300)
    frame["t"] = np.random.default_rng(0).choice(["u", "v"], 300)
    frame.to_parquet(tmp_path / "rows.parquet")
    names = make_column_transformer((OneHotEncoder(), ["t"]), remainder="passthrough")
    last = GaussianMixture() if model is NoveltyDetector else SklearnLogistic()
    X, y = frame[[*NAMES, "t"]], frame["y"]
    made = model(FrozenEstimator(make_pipeline(names, last).fit(X, y)))
    rows = scan(tmp_path / "rows.parquet", "y", columns=[*NAMES, "t"])
    what = "threshold_" if model is NoveltyDetector else "temperature_"
    expected = clone(made).fit(X, y)
    found = clone(made).fit(rows)
    assert_allclose(getattr(found, what), getattr(expected, what), rtol=1e-10)
    method = "p_value" if model is NoveltyDetector else "predict_proba"
    path = getattr(found, method)(rows, to=tmp_path / "answers.parquet")
    answers = pd.read_parquet(path).to_numpy()
    assert_allclose(answers.reshape(300, -1), getattr(found, method)(X).reshape(300, -1))


def test_text_of_digits_in_csv_is_read_as_the_frozen_model_knows_it(tmp_path):
    frame = frame_of(2, 300).drop(columns="w")
    frame["t"] = np.random.default_rng(0).choice(["1", "2", "3"], 300)
    frame["y"] = np.where(frame["y"] == 1, "10", "20")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    X, y = frame[[*NAMES, "t"]], frame["y"]
    inner = OneVersusRest(estimator=LogisticRegression(prior=1.0)).fit(X, y)
    model = CalibratedClassifier(FrozenEstimator(inner))
    expected = clone(model).fit(X, y).temperature_
    found = model.fit(scan(tmp_path / "rows.csv", "y"))
    assert_allclose(found.temperature_, expected, rtol=1e-10)
    path = found.predict_proba(scan(tmp_path / "rows.csv", "y"), to=tmp_path / "p.parquet")
    assert_allclose(pd.read_parquet(path).to_numpy(), found.predict_proba(X), rtol=1e-10)
    others = FrozenEstimator(SklearnLogistic().fit(frame[NAMES], y))
    found = CalibratedClassifier(others).fit(scan(tmp_path / "rows.csv", "y", columns=NAMES))
    expected = CalibratedClassifier(others).fit(frame[NAMES], y)
    assert_allclose(found.temperature_, expected.temperature_, rtol=1e-10)


def test_a_label_of_a_row_without_weight_may_be_unknown_to_a_frozen_estimator():
    frame = frame_of(2, 300).assign(w=1.0)
    fitted = FrozenEstimator(LogisticRegression().fit(frame[NAMES], frame["y"]))
    expected = CalibratedClassifier(fitted).fit(frame[NAMES][4:], frame["y"][4:]).temperature_
    frame.loc[:3, "y"], frame.loc[:3, "w"] = 77, 0.0
    found = CalibratedClassifier(fitted).fit(frame[NAMES], frame["y"], frame["w"])
    assert_allclose(found.temperature_, expected, rtol=1e-12)
    frame.loc[9, "y"] = 77
    with pytest.raises(LabelError, match="Row 9 of y is 77"):
        CalibratedClassifier(fitted).fit(frame[NAMES], frame["y"], frame["w"])


def test_decisions_around_others_are_told_of_levels_and_refuse_sources(rows):
    frame = frame_of(2, 300).assign(t="usual")
    frame.loc[17, "t"] = "rare"
    X, y = frame[[*NAMES, "t"]], frame["y"]
    inner = DecidingClassifier(LogisticRegression(prior=1.0))
    assert CalibratedClassifier(inner).fit(X, y).temperature_ > 0
    foreign = DecidingClassifier(SklearnLogistic())
    for model in (foreign, OneVersusRest(estimator=foreign), CalibratedClassifier(foreign)):
        with pytest.raises(ParameterError, match="does not fit to a source of rows"):
            model.fit(rows(target="y"))


def test_what_was_fitted_to_files_can_be_sent_away(rows):
    X = frame_of(2, 400)[NAMES]
    for model in (
        CalibratedClassifier(NaiveBayes(), method="platt").fit(rows(target="y")),
        NoveltyDetector(NaiveBayes()).fit(rows(target="y")),
    ):
        copy = pickle.loads(pickle.dumps(model))
        assert_array_equal(copy.predict_proba(X), model.predict_proba(X))
        assert copy.passes_.passes == model.passes_.passes


def test_what_is_novel_is_told_wherever_rows_lie(rows, tmp_path):
    X = frame_of(2, 400)[NAMES]
    model = NoveltyDetector(GaussianClassifier(), false_alarm=0.1).fit(rows(target="y"))
    for name, column in (("is_novel", "novel"), ("p_value", "p_value")):
        expected = getattr(model, name)(X)
        path = getattr(model, name)(rows(), to=tmp_path / f"{name}.parquet")
        found = pd.read_parquet(path)[column]
        assert found.dtype == expected.dtype
        assert_array_equal(found, expected)
        in_dask = getattr(model, name)(dd.from_pandas(X, npartitions=3))
        assert in_dask.dtype == expected.dtype
        assert_array_equal(in_dask.compute(), expected)
    assert 0.05 < model.is_novel(X).mean() < 0.2
