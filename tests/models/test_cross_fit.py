"""Cross-fitting on datasets on disk and in Dask: folds by row number, and named errors."""

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
from sklearn.metrics import log_loss
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
    threads,
)
from posteriori.decision.calibration import likeliest_slope
from posteriori.errors import (
    DataError,
    IdentifiabilityWarning,
    Interrupted,
    LabelError,
    MissingValueError,
    ParameterError,
    ScaleError,
)
from posteriori.models.cross_fit import out_of_fold
from posteriori.models.novelty import rarity
from posteriori.models.wrapper import read_pickable
from posteriori.rows.in_memory import read_rows
from posteriori.statistics import calibration
from posteriori.statistics.calibration import CountFolds, RowFolds

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
    NoveltyDetector(GaussianClassifier(covariance="full"), false_positive_rate=0.05),
]
NESTED = [
    CalibratedClassifier(OneVersusOne(estimator=LogisticRegression())),
    CalibratedClassifier(CalibratedClassifier(GaussianClassifier(), folds=2), method="platt"),
    OneVersusOne(estimator=CalibratedClassifier(LogisticRegression())),
]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "model", [*MODELS, *(pytest.param(each, marks=pytest.mark.slow) for each in NESTED)], ids=str
)
def test_sources_with_the_same_row_numbers_agree(model, classes, tmp_path):
    """To 1e-10, on any number of threads; and their log score is near that of stratified folds."""
    parts = parts_of(frame_of(classes))
    whole = pd.concat(parts)
    X, y, w = (whole[name].to_numpy() for name in (NAMES, "y", "w"))
    p = clone(model).fit(X, y, w).predict_proba(X)
    expected = None
    for given in elsewhere(parts, tmp_path):
        with threads(2 if expected is None else 1):
            found = clone(model).fit(*given)
        named = hasattr(found, "feature_names_in_")
        everything = learnt(found, whole[NAMES] if named else X)
        expected = expected or everything
        assert_same(everything, expected)
        assert found.passes_.passes > 5
    score, in_memory = (
        log_loss(y, each, sample_weight=w) for each in (everything["predict_proba"], p)
    )
    assert score == pytest.approx(in_memory, rel=0.01)


@pytest.mark.parametrize("random_state", [None, 4])
def test_the_folds_of_a_source_are_hashes_of_the_row_number(random_state, tmp_path):
    """By the same folds, given to fits in memory."""
    frame = frame_of(2)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=400)
    kept = np.flatnonzero(frame["w"] > 0)
    X, y, w = (frame[name].to_numpy()[kept] for name in (NAMES, "y", "w"))
    folds = RowFolds(5, random_state or 0).of(kept)
    rows = read_pickable(X, y, w, "The model")

    def held_out(inner, method):
        return out_of_fold(rows, inner, lambda fitted, X: getattr(fitted, method)(X), folds)

    source = scan(tmp_path / "rows.parquet", "y", weight="w")
    model = CalibratedClassifier(LogisticRegression(tol=1e-8), random_state=random_state)
    logs = held_out(LogisticRegression(tol=1e-8), "predict_log_proba")
    b = likeliest_slope(read_rows(logs, y, w), w.sum())
    assert_allclose(model.fit(source).temperature_, 1 / b, rtol=1e-10)
    model = NoveltyDetector(NaiveBayes(), random_state=random_state).fit(source)
    expected = rarity(read_rows(held_out(NaiveBayes(), "score_samples")[:, None], y, w), 0.01)
    assert_allclose(model.threshold_, expected.threshold, rtol=1e-10)
    assert_allclose(model._rarity.levels, expected.levels, rtol=1e-10)


@pytest.mark.parametrize(
    "make",
    [
        lambda fitted: CalibratedClassifier(fitted),
        lambda fitted: CalibratedClassifier(fitted, method="platt"),
        lambda fitted: NoveltyDetector(fitted, false_positive_rate=0.1),
    ],
)
@pytest.mark.parametrize("n", [100, 1_000])
def test_a_frozen_estimator_is_asked_about_rows_elsewhere(make, n, tmp_path, monkeypatch):
    monkeypatch.setattr(calibration, "MOST", 500)
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
        csv, parquet = (
            clone(model).fit(scan(tmp_path / name, "y")).temperature_
            for name in ("rows.csv", "rows.parquet")
        )
        assert_allclose(csv, parquet, rtol=1e-10)
        in_memory = clone(model).fit(frame.drop(columns="y"), frame["y"]).temperature_
        assert_allclose(parquet, in_memory, rtol=0.2)


def test_a_class_in_one_fold_is_unknown_where_it_is_held_out(tmp_path):
    frame = frame_of(2, 300).drop(columns="w")
    frame.loc[30, "y"] = 7
    frame.to_parquet(tmp_path / "rows.parquet")
    model = CalibratedClassifier(LogisticRegression(prior=1.0))
    with pytest.warns(IdentifiabilityWarning, match=r"All rows of class 7 are in one fold"):
        found = clone(model).fit(scan(tmp_path / "rows.parquet", "y"))
    assert found.classes_.tolist() == [0, 1, 7]
    assert np.isfinite(found.predict_log_proba(frame[NAMES])).all()
    frame[frame["y"] != 1].to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(LabelError, match=r"All rows of class 7 are in one fold \(it has 1\)"):
        clone(model).fit(scan(tmp_path / "rows.parquet", "y"))


def test_rows_without_weight_may_hold_anything(tmp_path):
    frame = frame_of(2, 400)
    frame["w"] = np.where(frame["w"] == 0, 0.0, 1.0)
    frame.to_parquet(tmp_path / "plain.parquet")
    frame.loc[frame["w"] == 0, "a"] = np.nan
    frame.loc[frame["w"] == 0, "y"] = 9
    frame.to_parquet(tmp_path / "broken.parquet")
    for model in (CalibratedClassifier(LogisticRegression()), NoveltyDetector(NaiveBayes())):
        name = "temperature_" if isinstance(model, CalibratedClassifier) else "threshold_"
        plain, broken = (
            clone(model).fit(scan(tmp_path / f"{kind}.parquet", "y", weight="w"))
            for kind in ("plain", "broken")
        )
        assert_allclose(getattr(broken, name), getattr(plain, name), rtol=1e-10)
        assert broken.classes_.tolist() == [0, 1]


def test_weight_and_number_of_each_class_in_each_fold_are_counted():
    frame = frame_of(3)
    kept, folds = frame["w"] > 0, RowFolds(4, 9)
    rows = read_rows(frame[NAMES], frame["y"], frame["w"])
    found = rows.map_sum(CountFolds(folds, 3), block_entries=1000)
    for k in range(3):
        for f in range(4):
            own = kept & (frame["y"] == k) & (folds.of(np.arange(N)) == f)
            assert found.weight[k, f] == pytest.approx(frame["w"][own].sum(), rel=1e-12)
            assert found.count[k, f] == own.sum()


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
    with pytest.raises(ParameterError, match="which have targets and weights of their own"):
        CalibratedClassifier(NaiveBayes()).fit(rows(target="y"), [0, 1])


def test_a_label_that_a_frozen_estimator_does_not_know_is_named(rows):
    frame = frame_of(2, 400)
    fitted = NaiveBayes().fit(frame[NAMES], frame["y"] + 5)
    with pytest.raises(LabelError, match=r"rows.parquet: Row 0 of y is 0.*classes given, 5, 6"):
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
def test_a_row_that_cannot_be_predicted_is_called_by_its_number(place, tmp_path):
    """Whether it was taken out of a fold, or of rows with a weight."""
    frame = frame_of(2, 300).assign(w=1.0)
    frame["t"] = np.where(np.arange(300) == place, "rare", "usual")
    frame.loc[[0, 5, 200], "w"] = 0.0
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=100)
    model = CalibratedClassifier(NaiveBayes(pseudocount=0.0))
    with pytest.raises(ScaleError, match=rf"^Row {place} has density zero"):
        clone(model).fit(frame[[*NAMES, "t"]], frame["y"], frame["w"])
    with pytest.raises(ScaleError, match=rf"rows\.parquet: Row {place} has density zero"):
        clone(model).fit(scan(tmp_path / "rows.parquet", "y", weight="w"))
    frozen = FrozenEstimator(LogisticRegression().fit(frame[NAMES], frame["y"]))
    frame.loc[place, "b"] = np.nan
    frame.drop(columns="t").to_parquet(tmp_path / "rows.parquet", row_group_size=100)
    with pytest.raises(MissingValueError, match=rf"rows\.parquet.*row {place}\b"):
        CalibratedClassifier(frozen).fit(scan(tmp_path / "rows.parquet", "y", weight="w"))


def test_rows_none_of_which_can_be_predicted_are_an_error_too(tmp_path):
    frame = frame_of(2, 300).assign(w=1.0)
    frozen = FrozenEstimator(LogisticRegression().fit(frame[NAMES], frame["y"]))
    frame[NAMES] = np.nan
    frame.loc[:4, "w"] = 0.0
    frame.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(MissingValueError, match=r"rows\.parquet: .* row 5\b"):
        CalibratedClassifier(frozen).fit(scan(tmp_path / "rows.parquet", "y", weight="w"))


@pytest.mark.parametrize("kind", ["levels with gaps", "decimals"])
def test_columns_of_any_kind(kind, tmp_path):
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
    table, model = frame.select("a", "t"), CalibratedClassifier(NaiveBayes())
    expected = clone(model).fit(other, X["y"]).temperature_
    for given in (table, table.to_arrow()):
        assert_allclose(clone(model).fit(given, X["y"]).temperature_, expected, rtol=1e-10)
    expected = clone(model).fit(scan(frame, "y")).temperature_
    found = clone(model).fit(scan(tmp_path / "rows.parquet", "y")).temperature_
    assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("kind", [sparse.coo_matrix, sparse.csc_matrix])
def test_sparse_chunks_of_any_kind(kind):
    frame = frame_of(2, 300)
    X = da.from_array(frame[NAMES].to_numpy(), chunks=(100, 3))
    y = da.from_array(frame["y"].to_numpy(), chunks=100)
    model = CalibratedClassifier(GaussianClassifier())
    expected = clone(model).fit(X, y).temperature_
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


def test_text_of_digits_in_csv_is_text_for_a_frozen_model_where_the_user_says_so(tmp_path):
    frame = frame_of(2, 300).drop(columns="w")
    frame["t"] = np.random.default_rng(0).choice(["1", "2", "3"], 300)
    frame["y"] = np.where(frame["y"] == 1, "10", "20")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    X, y, text = frame[[*NAMES, "t"]], frame["y"], {"t": "string", "y": "string"}
    inner = OneVersusRest(estimator=LogisticRegression(prior=1.0)).fit(X, y)
    model = CalibratedClassifier(FrozenEstimator(inner))
    expected = clone(model).fit(X, y).temperature_
    found = model.fit(scan(tmp_path / "rows.csv", "y", dtypes=text))
    assert_allclose(found.temperature_, expected, rtol=1e-10)
    rows = scan(tmp_path / "rows.csv", "y", dtypes=text)
    path = found.predict_proba(rows, to=tmp_path / "p.parquet")
    assert_allclose(pd.read_parquet(path).to_numpy(), found.predict_proba(X), rtol=1e-10)
    others = FrozenEstimator(SklearnLogistic().fit(frame[NAMES], y))
    rows = scan(tmp_path / "rows.csv", "y", columns=NAMES, dtypes=text)
    found = CalibratedClassifier(others).fit(rows)
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
    model = NoveltyDetector(GaussianClassifier(), false_positive_rate=0.1).fit(rows(target="y"))
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
