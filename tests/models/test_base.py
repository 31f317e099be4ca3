"""What all models share: data frames with categorical columns, datasets on disk and in Dask."""

import signal
import subprocess
import sys

import dask
import fsspec
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import statsmodels.api as sm
from pyarrow import csv, dataset, parquet
from scipy import sparse
from sklearn.base import clone

from posteriori import (
    GLM,
    Adaline,
    BayesianLogisticRegression,
    FisherDiscriminant,
    GaussianClassifier,
    GaussianPrior,
    LeastSquaresClassifier,
    LogisticRegression,
    NaiveBayes,
    Perceptron,
    ProbitRegression,
    ThresholdRegression,
    scan,
)
from posteriori.errors import Interrupted, RankDeficiencyWarning, ShapeError, SourceError
from posteriori.models import fitting
from posteriori.rows import files
from posteriori.statistics import row_stream
from posteriori.statistics.row_stream import RowStream

unconverged = pytest.mark.filterwarnings("ignore::posteriori.errors.ConvergenceWarning")

N = 400
RANDOM = np.random.default_rng(5)
AGE = RANDOM.normal(50, 10, N)
SMOKES = RANDOM.random(N) < 0.3
REGION = RANDOM.choice(["north", "south", "east"], N)
GRADE = RANDOM.choice(["low", "mid", "high"], N)
ACTIVATION = 0.05 * (AGE - 50) + 0.7 * SMOKES + 0.8 * (REGION == "south") - 0.5 * (GRADE == "low")
Y = (RANDOM.random(N) < 1 / (1 + np.exp(-ACTIVATION))).astype(int)
Y3 = (Y + RANDOM.integers(0, 2, N)).clip(max=2)
DOSE = RANDOM.normal(size=N)
PLAIN = {"region": REGION, "age": AGE, "grade": GRADE, "smokes": SMOKES, "dose": DOSE}
FRAME = pd.DataFrame(PLAIN)
GRADES = ["low", "mid", "high"]


def by_hand(grades):
    """In the place of each factor, a column of zeros and ones for each level but the first."""
    region = [level == REGION for level in ("north", "south")]
    grade = [level == GRADE for level in grades[1:]]
    return np.column_stack([*region, AGE, *grade, SMOKES, DOSE]).astype(np.float64)


def names(grades):
    grade = [f"grade[{level}]" for level in grades[1:]]
    return ["region[north]", "region[south]", "age", *grade, "smokes", "dose"]


X, NAMES = by_hand(sorted(GRADES)), names(sorted(GRADES))
PASSES = {"shuffle": False, "max_epochs": 3}
MODELS = {
    "logistic": (LogisticRegression(), Y),
    "Jeffreys": (LogisticRegression(prior="jeffreys"), Y),
    "softmax": (LogisticRegression(), Y3),
    "threshold": (ThresholdRegression(noise="laplace"), Y),
    "poisson": (GLM(family="poisson"), Y3),
    "least squares": (LeastSquaresClassifier(), Y3),
    "perceptron": (Perceptron(**PASSES), Y),
    "adaline": (Adaline(**PASSES), Y),
}


@unconverged
@pytest.mark.parametrize("name", MODELS)
def test_every_model_takes_factors_as_zeros_and_ones(name):
    estimator, target = MODELS[name]
    model, hand = clone(estimator).fit(FRAME, target), clone(estimator).fit(X, target)
    np.testing.assert_allclose(model.coef_, hand.coef_, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(model.intercept_, hand.intercept_, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(
        np.asarray(model.predict(pl.DataFrame(PLAIN)), dtype=float),
        np.asarray(hand.predict(X), dtype=float),
        rtol=1e-12,
    )
    assert model.n_parameters_ == hand.n_parameters_
    assert model.coef_names_.tolist() == NAMES
    assert hand.coef_names_.tolist() == [f"x{j}" for j in range(7)]


def test_levels_that_are_declared_keep_their_order_and_one_without_rows_has_no_column():
    places = ["east", "north", "nowhere", "south"]
    frame = FRAME.assign(region=pd.Categorical(REGION, places), grade=pd.Categorical(GRADE, GRADES))
    model, hand = LogisticRegression().fit(frame, Y), LogisticRegression().fit(by_hand(GRADES), Y)
    assert model.coef_names_.tolist() == names(GRADES)
    np.testing.assert_allclose(model.coef_, hand.coef_, rtol=1e-12)


def test_coefficients_and_errors_are_those_of_statsmodels():
    dummies = [pd.get_dummies(FRAME[[name]], drop_first=True) for name in FRAME]
    design = sm.add_constant(pd.concat(dummies, axis=1).astype(float))
    found = sm.Logit(Y, design).fit(disp=0, tol=1e-14)
    model = LogisticRegression().fit(FRAME, Y)
    np.testing.assert_allclose(model.coef_[0], found.params[1:], rtol=1e-8)
    np.testing.assert_allclose(model.coef_covariance_, found.cov_params(), rtol=1e-7)
    table = model.tidy()
    assert table["term"].tolist() == ["intercept", *NAMES]
    np.testing.assert_allclose(table["estimate"], found.params, rtol=1e-8)
    np.testing.assert_allclose(table["std_error"], found.bse, rtol=1e-8)


SUMMED = [LeastSquaresClassifier, FisherDiscriminant, GaussianClassifier]


@pytest.mark.parametrize("kind", SUMMED)
def test_sums_of_parts_with_different_levels_keep_the_order_of_columns(kind):
    hand = kind().fit(X, Y)
    first = (REGION != "south") & (GRADE != "low")
    parts = [kind().partial_fit(FRAME[rows], Y[rows]) for rows in (first, ~first)]
    in_turn = kind().partial_fit(FRAME[first], Y[first]).partial_fit(FRAME[~first], Y[~first])
    added = kind().from_statistics(parts[0].statistics_ + parts[1].statistics_)
    for model in (in_turn, added):
        assert model.coef_names_.tolist() == NAMES
        np.testing.assert_allclose(model.coef_, hand.coef_, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(model.predict(FRAME[FRAME.columns[::-1]]), hand.predict(X))


def test_precisions_belong_to_columns_in_the_users_order():
    prior = GaussianPrior(np.array([1.0, 2.0, 30.0, 4.0, 5.0, 6.0, 700.0]))
    model, hand = (LogisticRegression(prior=prior).fit(rows, Y) for rows in (FRAME, X))
    np.testing.assert_allclose(model.coef_, hand.coef_, rtol=1e-10)
    ard, swapped = (
        LogisticRegression(prior="ard").fit(frame, Y)
        for frame in (FRAME, FRAME[["age", "dose", "smokes", "region", "grade"]])
    )
    moved = [NAMES.index(name) for name in swapped.coef_names_]
    np.testing.assert_allclose(swapped.coef_, ard.coef_[:, moved], rtol=1e-5, atol=1e-7)


def test_a_factor_that_repeats_another_is_named():
    frame = FRAME.assign(place=[f"the {region}" for region in REGION])
    with pytest.warns(RankDeficiencyWarning, match=r"'place\[the north\]', 'place\[the south\]'"):
        model = LogisticRegression().fit(frame, Y)
    without = LogisticRegression().fit(FRAME, Y)
    np.testing.assert_allclose(model.predict_proba(frame), without.predict_proba(FRAME), rtol=1e-9)


@unconverged
@pytest.mark.parametrize(
    "kind",
    [LogisticRegression, ProbitRegression, ThresholdRegression, GLM, Perceptron, Adaline],
)
def test_an_unseen_level_can_be_taken_for_the_reference(kind):
    model = kind(handle_unknown="reference").fit(FRAME, Y)
    new, known = (FRAME.head(3).assign(region=["north", r, "east"]) for r in ("west", "east"))
    for ask in ("predict", "decision_function", "predict_interval"):
        if hasattr(model, ask):
            found, expected = (getattr(model, ask)(rows) for rows in (pl.DataFrame(new), known))
            np.testing.assert_array_equal(found, expected)


MANY_LEVELS = """
import resource
import numpy as np, pandas as pd
from posteriori import LogisticRegression
random = np.random.default_rng(0)
codes, effect = random.integers(0, 5000, 100_000), random.normal(size=5000)
levels = [f"level {i:04d}" for i in range(5000)]
f, x = pd.Categorical.from_codes(codes, levels), random.normal(size=100_000)
X, y = pd.DataFrame({"f": f, "x": x}), random.logistic(size=100_000) < effect[codes] + x
model = LogisticRegression(prior=1.0).fit(X, y)
model.predict(X)
assert np.corrcoef(model.coef_[0, :-1], effect[1:])[0, 1] > 0.8
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def test_a_factor_of_5000_levels_fits_in_a_gigabyte():
    script = [sys.executable, "-c", MANY_LEVELS]
    found = subprocess.run(script, check=True, timeout=120, capture_output=True, text=True)
    assert int(found.stdout) < 1000


@pytest.mark.parametrize("kind", SUMMED)
def test_covariances_of_too_many_levels_or_columns_are_a_named_limit(kind):
    levels = np.array([f"{i}" for i in range(3001)])
    frame = pd.DataFrame({"x": np.arange(9003.0) % 7, "Site": pd.Categorical(np.tile(levels, 3))})
    with pytest.raises(ShapeError, match=r"Column 'Site' has 3,001 levels.* 3,001 columns.*3,000"):
        kind().fit(frame, np.arange(9003) % 2)
    wide = sparse.random(50, 20_001, 1e-3, "csr", random_state=0)
    with pytest.raises(ShapeError, match=r"20,001 columns.*3 GiB; 20,000 columns are the most"):
        kind().fit(wide, np.arange(50) % 2)


# Datasets on disk and in Dask.


RANDOM_DISK = np.random.default_rng(0)
N_DISK = 3000
X_DISK = RANDOM_DISK.normal(size=(N_DISK, 3))
Y_DISK = np.array(["no", "so", "yes"])[
    (X_DISK @ RANDOM_DISK.normal(size=(3, 3)) + RANDOM_DISK.gumbel(size=(N_DISK, 3))).argmax(axis=1)
]
SHARES = np.column_stack([X_DISK[:, 0] < 0, X_DISK[:, 0] >= 0]) * 0.75 + 0.125
WEIGHT = RANDOM_DISK.integers(0, 3, N_DISK).astype(float)
TABLE = pa.table(
    {"a": X_DISK[:, 0], "b": X_DISK[:, 1], "c": X_DISK[:, 2], "y": Y_DISK}
    | {"no": SHARES[:, 0], "yes": SHARES[:, 1], "w": WEIGHT, "side": np.sign(X_DISK[:, 0])}
)
FEATURES = ["a", "b", "c"]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "rows").mkdir()
    for part, first in enumerate(range(0, N_DISK, 700)):
        name = tmp_path / "rows" / f"part-{part}.parquet"
        parquet.write_table(TABLE.slice(first, 700), name, row_group_size=300)
    return tmp_path / "rows"


def written(path):
    table = parquet.read_table(path)
    return table.column_names, np.column_stack([column.to_numpy() for column in table.columns])


@pytest.mark.parametrize("model", [LogisticRegression(), NaiveBayes()])
def test_predictions_in_a_file_are_those_in_memory(model, folder, tmp_path):
    model.fit(scan(folder, "y", columns=FEATURES))
    rows, frame = scan(folder, columns=["c", "a", "b"]), TABLE.select(FEATURES).to_pandas()
    names, found = written(model.predict_proba(rows, to=tmp_path / "p.parquet"))
    assert names == ["probability_no", "probability_so", "probability_yes"]
    np.testing.assert_array_equal(found, model.predict_proba(frame))
    names, found = written(model.predict(rows, to=tmp_path / "labels.parquet"))
    assert names == ["prediction"]
    assert found[:, 0].tolist() == model.predict(frame).tolist()


def test_a_fit_reports_how_often_it_read_its_rows(folder):
    rows = scan(folder, "y", columns=FEATURES)
    model = GaussianClassifier().fit(rows)
    assert model.passes_.passes == 1  # discovery and the sums at once
    assert 8 * 3 * N_DISK <= model.passes_.bytes_read < 3 * 8 * 3 * N_DISK
    assert GaussianClassifier().fit(rows).passes_.passes == 1
    assert "Passes" in str(LogisticRegression().fit(rows).summary())
    assert not hasattr(model.fit(X_DISK, Y_DISK), "passes_")


def test_files_of_another_file_system_are_read_by_a_dataset(folder):
    there = fsspec.filesystem("memory")
    for path in folder.iterdir():
        there.pipe(f"/store/{path.name}", path.read_bytes())
    source = dataset.dataset("/store", filesystem=there, format="parquet")
    model = GaussianClassifier().fit(scan(source, "y", columns=FEATURES))
    expected = GaussianClassifier().fit(X_DISK, Y_DISK)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-10)
    there.rm("/store/part-2.parquet")
    with pytest.raises(SourceError, match=r"part-2\.parquet"):
        model.fit(scan(source, "y", columns=FEATURES))


def test_progress_is_reported_in_every_pass(folder):
    steps = []
    rows = scan(folder, "y", columns=FEATURES, progress=steps.append)
    model = LogisticRegression(prior=1.0).fit(rows)
    numbers = sorted({step.number for step in steps})
    assert numbers == list(range(1, model.passes_.passes + 1))
    for number in numbers:
        own = [step for step in steps if step.number == number]
        assert [step.rows for step in own][:1] == [0]
        assert own[-1].rows == own[-1].n_rows == N_DISK
        assert own[-1].seconds > 0
    assert steps[-1].objective == pytest.approx(-model.log_likelihood_, rel=0.1)


def test_an_interrupted_fit_leaves_the_model_as_it_was(folder):
    model = LogisticRegression().fit(X_DISK, Y_DISK)
    before = model.coef_.copy()

    def stop(step):
        if step.number == 3 and step.rows:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted, match=r"Stopped in pass 3, row \d"):
        model.fit(scan(folder, "y", columns=FEATURES, progress=stop))
    np.testing.assert_array_equal(model.coef_, before)
    assert not issubclass(Interrupted, Exception)


@unconverged
def test_an_interrupt_between_epochs_reports_the_last_pass(folder, monkeypatch):
    model = Perceptron(averaged=True, max_epochs=3).fit(X_DISK, Y_DISK)
    before, epochs, segments = model.coef_.copy(), [], RowStream.segments

    def stop(self, random=None):
        epochs.append(random is not None)
        if sum(epochs) == 2:
            signal.raise_signal(signal.SIGINT)
        return segments(self, random)

    monkeypatch.setattr(RowStream, "segments", stop)
    with pytest.raises(Interrupted, match=r"Stopped after pass \d, .*The estimator is as it was"):
        model.fit(scan(folder, "y", columns=FEATURES))
    np.testing.assert_array_equal(model.coef_, before)


def test_more_rows_may_come_from_files(folder):
    rows, more = scan(folder, "y", columns=FEATURES), TABLE.slice(0, 1000)
    further = scan(more, "y", columns=FEATURES)
    here, there = (BayesianLogisticRegression(prior=1.0) for _ in range(2))
    there.fit(rows).update(further)
    here.fit(X_DISK, Y_DISK).update(X_DISK[:1000], Y_DISK[:1000])
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-6)
    assert there.log_evidence_ == pytest.approx(here.log_evidence_, rel=1e-9)
    batches = GaussianClassifier().partial_fit(rows).partial_fit(further)
    both = GaussianClassifier().fit(
        np.concatenate([X_DISK, X_DISK[:1000]]), np.concatenate([Y_DISK, Y_DISK[:1000]])
    )
    np.testing.assert_allclose(batches.coef_, both.coef_, rtol=1e-9)


def _parquet(folder):
    return folder


def _csv(folder):
    csv.write_csv(parquet.read_table(folder), folder.parent / "rows.csv")
    return folder.parent / "rows.csv"


def _dask(folder):
    return [dask.delayed(pd.read_parquet)(part) for part in sorted(folder.iterdir())]


@pytest.mark.parametrize("source", [_parquet, _csv, _dask])
@pytest.mark.parametrize(
    ("model", "weighted"), [(LogisticRegression(), True), (BayesianLogisticRegression(), False)]
)
def test_iterations_are_those_in_memory(model, weighted, source, folder, monkeypatch):
    """On the same subsamples, at the usual tolerance, which leaves differences between others."""
    monkeypatch.setattr(fitting, "_SMALLEST_SAMPLE", 100)
    monkeypatch.setattr(fitting, "_SMALL", 0)
    here = clone(model).fit(TABLE.select(FEATURES), Y_DISK, WEIGHT if weighted else None)
    rows = scan(source(folder), "y", weight="w" if weighted else None, columns=FEATURES)
    there = clone(model).fit(rows)
    if weighted:  # the last of the fits that choose a prior starts where the one before it ended
        assert here.solution_.trace[0].row_fraction < 0.2
    assert there.n_iter_ == here.n_iter_
    # Columns without an effect have coefficients near zero, with the rounding of others.
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-12, atol=1e-15)
    errors = (np.diag(each.coef_covariance_) for each in (there, here))
    np.testing.assert_allclose(*errors, rtol=1e-11)
    assert there.log_likelihood_ == pytest.approx(here.log_likelihood_, rel=1e-13)


@unconverged
@pytest.mark.parametrize(
    ("model", "target", "weighted", "source"),
    [
        (Perceptron(averaged=True, shuffle=False, max_epochs=3), "y", False, _dask),
        (Perceptron(shuffle=False, max_epochs=2), ["no", "yes"], True, _csv),
        (Adaline(shuffle=False, max_epochs=4), "y", True, _parquet),
    ],
)
def test_rows_are_visited_in_their_order_from_any_source(
    model, target, weighted, source, folder, monkeypatch
):
    y, weight = Y_DISK if target == "y" else SHARES, WEIGHT if weighted else None
    here = clone(model).fit(TABLE.select(FEATURES).to_pandas(), y, weight)
    monkeypatch.setattr(row_stream, "LAID_OUT", 0)
    monkeypatch.setattr(files, "BATCH_ENTRIES", 4 * 700)
    rows = scan(source(folder), target, weight="w" if weighted else None, columns=FEATURES)
    there = clone(model).fit(rows)
    assert there.n_updates_ == here.n_updates_
    assert there.n_iter_ == here.n_iter_
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-10)
    np.testing.assert_allclose(there.intercept_, here.intercept_, rtol=1e-10, atol=1e-12)
    assert there.passes_.passes > there.n_iter_


def test_rows_of_a_source_are_shuffled_batch_by_batch(folder, monkeypatch):
    """Epochs are others than in memory, and end at a solution all the same."""
    monkeypatch.setattr(row_stream, "LAID_OUT", 0)
    monkeypatch.setattr(files, "BATCH_ENTRIES", 4 * 700)
    rows, frame = scan(folder, "y", columns=FEATURES), TABLE.select(FEATURES)
    model = Adaline(random_state=0, tol=1e-3)
    found = [clone(model).fit(rows).decision_function(frame) for _ in range(2)]
    np.testing.assert_array_equal(*found)
    here = clone(model).fit(frame, Y_DISK).decision_function(frame)
    assert 1e-6 < abs(found[0] - here).max() < 5e-3
    expected = LeastSquaresClassifier().fit(frame, Y_DISK).decision_function(frame)
    np.testing.assert_allclose(found[0], expected, atol=5e-3)
    perceptron = Perceptron(random_state=0).fit(scan(folder, "side", columns=["a", "b", "yes"]))
    assert perceptron.converged_
    assert perceptron.score(TABLE.select(["a", "b", "yes"]), np.sign(X_DISK[:, 0])) == 1.0
