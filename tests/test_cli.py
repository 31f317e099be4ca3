"""The command line: output, errors and exit codes."""

import subprocess
import sys
from inspect import signature

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet
from sklearn.datasets import load_breast_cancer

import posteriori
from posteriori import GaussianClassifier, LogisticRegression, scan
from posteriori.__main__ import main
from posteriori.cli import MODELS, cli
from posteriori.errors import Interrupted

OTHER = ["rows", "-t", "benign", "--predict", "rows.csv"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Rows in three Parquet files and one of CSV."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    frame = pd.DataFrame({"radius": X["mean radius"], "texture": X["mean texture"], "benign": y})
    (tmp_path / "rows").mkdir()
    for part in range(3):
        frame[200 * part : 200 * (part + 1)].to_parquet(tmp_path / f"rows/part-{part}.parquet")
    frame["size"] = np.where(frame["radius"] > 14, "big", "small")
    frame["twice"] = 2.0
    frame.to_csv(tmp_path / "rows.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(capsys):
    """Run a command: its exit code, standard output and standard error."""

    def ran(*arguments):
        with pytest.raises(SystemExit) as end:
            cli(list(map(str, arguments)), prog_name="posteriori")
        printed = capsys.readouterr()
        return end.value.code, printed.out, printed.err

    return ran


def test_the_summary_is_printed_and_progress_is_on(folder, run):
    code, out, err = run("fit", "rows", "--target", "benign")
    model = LogisticRegression().fit(scan(folder / "rows", "benign"))
    assert (code, out) == (0, f"{model.summary()}\n")
    lines = err.splitlines()
    assert lines[0] == "pass 1: 569 rows"
    files = sorted((folder / "rows").iterdir())
    assert run("fit", *files, "-t", "benign", "--quiet") == (0, out, "")
    assert len(lines) >= model.passes_.passes
    assert lines[-1].startswith(f"pass {len(lines)} objective {-model.log_likelihood_:.8g}:")


def test_a_progress_bar_is_drawn_on_a_terminal(folder, run, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # which makes rich take anything for a screen
    code, out, err = run("fit", "rows", "-t", "benign")
    assert code == 0
    assert "━" in err
    assert "569 rows" in err
    assert "━" not in out


def test_models_take_parameters_columns_weights_and_levels(folder, run):
    given = ["-m", "gaussianclassifier", "--set", "covariance=full", "--set", "shrinkage=0.5"]
    _, out, _ = run("fit", "rows.csv", "-t", "benign", "-c", "radius", "--weight", "twice", *given)
    rows = scan(folder / "rows.csv", "benign", columns=["radius"], weight="twice")
    model = GaussianClassifier(covariance="full", shrinkage=0.5).fit(rows)
    assert out == f"{model.summary()}\n"
    columns = ["-c", "radius", "-c", "size", "--levels", "size=small,big"]
    _, out, _ = run("fit", "rows.csv", "-t", "benign", *columns)
    levels = {"size": ["small", "big"]}
    rows = scan(folder / "rows.csv", "benign", columns=["radius", "size"], categories=levels)
    assert out == f"{LogisticRegression().fit(rows).summary()}\n"
    assert "size[big]" in out


@pytest.mark.parametrize("model", ["LogisticRegression", "LeastSquaresClassifier"])
def test_predictions_for_other_rows_are_written_to_a_file(model, folder, run):
    to = "predictions.parquet"
    code, _, err = run("fit", *OTHER, "-m", model, "--to", to)
    assert code == 0
    assert err.endswith("Predictions are in predictions.parquet\n")
    fitted = getattr(posteriori, model)().fit(scan(folder / "rows", "benign"))
    frame = pd.read_csv("rows.csv")[["radius", "texture"]]
    answer = getattr(fitted, "predict_proba", fitted.predict)
    found = parquet.read_table(to).to_pandas().to_numpy()
    np.testing.assert_allclose(found.squeeze(), answer(frame), rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nothing"], 1, "Error: There is no file 'nothing'."),
        (["rows"], 1, "are without labels. Name their target."),
        (["rows", "-t", "benign", "--set", "prior=odd"], 1, "Error: prior='odd' is not"),
        (["rows", "-t", "benign", "--set", "priors=1"], 2, "Invalid parameter 'priors' for"),
        (["rows", "-t", "benign", "--set", "prior"], 2, "'prior' is not of the form NAME=VALUE."),
        (["rows", "-t", "benign", "--levels", "size"], 2, "--levels: 'size' is not of the form"),
        (["rows", "-t", "benign", "-m", "Forest"], 2, "'Forest' is not one of"),
        (["rows", "-t", "benign", "--set", "tol=1", "--set", "tol=2"], 2, "'tol' is given twice."),
        (["rows", "-t", "benign", "--to", "x"], 2, "--predict and --to go together"),
        ([*OTHER, "--to", "rows.csv"], 1, "to='rows.csv' is one of the files"),
        ([*OTHER, "--to", "no/p.parquet"], 1, "is not a file in an existing folder"),
        ([], 2, "Missing argument 'SOURCE...'"),
    ],
)
def test_an_error_is_one_line_without_a_traceback(arguments, code, words, folder, run):
    before = {path: path.read_bytes() for path in folder.rglob("*.*")}
    ended, out, err = run("fit", *arguments)
    assert (ended, out) == (code, "")
    assert {path: path.read_bytes() for path in folder.rglob("*.*")} == before
    assert "pass 2" not in err
    assert words in " ".join(err.split())
    assert "Traceback" not in err


def test_a_warning_is_one_line_on_standard_error(folder, run):
    columns = ["-c", "radius", "-c", "twice"]  # which is constant
    code, out, err = run("fit", "rows.csv", "-t", "benign", *columns, "--quiet")
    assert code == 0
    assert "radius" in out
    assert err.startswith("Warning: ")
    assert err.count("\n") == 1


def test_an_interrupted_fit_prints_its_pass_and_row(folder, run, monkeypatch):
    def fit(self, rows):
        raise Interrupted("Stopped in pass 3, row 200 of 569.", "Fit again.")

    monkeypatch.setattr(LogisticRegression, "fit", fit)
    code, out, err = run("fit", "rows", "-t", "benign")
    assert (code, out) == (130, "")
    assert err == "Stopped in pass 3, row 200 of 569.\n"


def test_help_imports_neither_scikit_learn_nor_a_frame_library():
    code = "import sys, posteriori.__main__ as m\ntry: m.main()\nfinally: print(*sys.modules)"
    command = [sys.executable, "-c", code, "fit", "--help"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Usage: posteriori" in run.stdout
    heavy = {"sklearn", "scipy", "pandas", "polars", "pyarrow", "narwhals", "matplotlib"}
    assert not heavy & set(run.stdout.split())


def test_every_model_that_needs_no_other_is_known():
    models = {name: getattr(posteriori, name) for name in posteriori.__all__}
    predict = {name for name, model in models.items() if hasattr(model, "predict")}
    around = {name for name in predict if "estimator" in signature(models[name]).parameters}
    assert predict - around == set(MODELS)


def test_without_click_the_remedy_is_printed(monkeypatch):
    monkeypatch.setitem(sys.modules, "click", None)
    monkeypatch.delitem(sys.modules, "posteriori.cli")
    with pytest.raises(SystemExit, match=r"needs click, .*pip install 'posteriori\[cli,files\]'"):
        main()
