"""The command line: what it prints, where, and how it ends."""

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
    """Run a command: how it ends, what it prints, and what else it says."""

    def ran(*arguments):
        with pytest.raises(SystemExit) as end:
            cli(list(map(str, arguments)), prog_name="posteriori")
        said = capsys.readouterr()
        return end.value.code, said.out, said.err

    return ran


def test_the_summary_is_printed_and_progress_is_on(folder, run):
    code, out, err = run("fit", "rows", "--target", "benign")
    model = LogisticRegression().fit(scan(folder / "rows", "benign"))
    assert (code, out) == (0, f"{model.summary()}\n")
    told = err.splitlines()
    assert told[0] == "pass 1: 569 rows"
    assert run("fit", "rows", "-t", "benign", "--quiet") == (0, out, "")
    assert len(told) >= model.passes_.passes
    assert told[-1].startswith(f"pass {len(told)} objective {-model.log_likelihood_:.8g}:")


def test_a_bar_is_drawn_where_there_is_a_screen(folder, run, monkeypatch):
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


def test_several_files_are_one_source(folder, run):
    files = sorted((folder / "rows").iterdir())
    assert run("fit", *files, "-t", "benign") == run("fit", "rows", "-t", "benign")


@pytest.mark.parametrize("model", ["LogisticRegression", "LeastSquaresClassifier"])
def test_other_rows_are_answered_in_a_file(model, folder, run):
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
        (["rows", "-t", "ill"], 1, "Error: target='ill' is not among the columns."),
        (["rows"], 1, "are without labels. Name their target."),
        (
            ["rows", "-t", "benign", "--set", "prior=odd"],
            1,
            "Error: prior='odd' is not",
        ),
        (["rows", "-t", "benign", "--set", "priors=1"], 2, "Invalid parameter 'priors' for"),
        (["rows", "-t", "benign", "--set", "prior"], 2, "'prior' is not of the form NAME=VALUE."),
        (["rows", "-t", "benign", "--levels", "size"], 2, "--levels: 'size' is not of the form"),
        (["rows", "-t", "benign", "-m", "Forest"], 2, "'Forest' is not one of"),
        (["rows", "-t", "benign", "--set", "tol=1", "--set", "tol=2"], 2, "'tol' is given twice."),
        (["rows", "-t", "benign", "--set", "prior={[]: 1}"], 1, "Error: prior='{[]: 1}' is not"),
        (["rows", "-t", "benign", "--to", "x"], 2, "--predict and --to go together"),
        ([*OTHER, "--to", "rows.csv"], 1, "to='rows.csv' is one of the files"),
        ([*OTHER, "--to", "no/p.parquet"], 1, "is not a file in a folder that is there."),
        ([], 2, "Missing argument 'SOURCE...'"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(arguments, code, words, folder, run):
    before = {path: path.read_bytes() for path in folder.rglob("*.*")}
    ended, out, err = run("fit", *arguments)
    assert (ended, out) == (code, "")
    assert {path: path.read_bytes() for path in folder.rglob("*.*")} == before
    assert "pass 2" not in err
    assert words in " ".join(err.split())
    assert "Traceback" not in err


def test_warnings_are_told_and_end_nothing(folder, run):
    frame = pd.read_csv("rows.csv").assign(same=lambda rows: 2 * rows["radius"])
    frame.to_csv("same.csv", index=False)
    code, out, err = run("fit", "same.csv", "-t", "benign", "-c", "radius", "-c", "same", "--quiet")
    assert code == 0
    assert "radius" in out
    assert err.startswith("Warning: ")
    assert err.count("\n") == 1


def test_a_fit_that_is_stopped_says_how_far_it_got(folder, run, monkeypatch):
    def fit(self, rows):
        raise Interrupted("Stopped in pass 3, row 200 of 569.", "Fit again.")

    monkeypatch.setattr(LogisticRegression, "fit", fit)
    code, out, err = run("fit", "rows", "-t", "benign")
    assert (code, out) == (130, "")
    assert err == "Stopped in pass 3, row 200 of 569.\n"


def test_help_imports_neither_scikit_learn_nor_a_frame_library():
    code = "import sys, posteriori.__main__ as m\ntry: m.main()\nfinally: print(*sys.modules)"
    for arguments in (["--help"], ["fit", "--help"]):
        command = [sys.executable, "-c", code, *arguments]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        assert "Usage: posteriori" in run.stdout
        heavy = {"sklearn", "scipy", "pandas", "polars", "pyarrow", "narwhals", "matplotlib"}
        assert not heavy & set(run.stdout.split())


def test_every_model_that_needs_no_other_is_known():
    models = {name: getattr(posteriori, name) for name in posteriori.__all__}
    plain = {
        name
        for name, each in models.items()
        if hasattr(each, "predict") and "estimator" not in signature(each).parameters
    }
    assert plain == set(MODELS)


def test_without_click_the_remedy_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "click", None)
    monkeypatch.delitem(sys.modules, "posteriori.cli")
    with pytest.raises(SystemExit, match=r"needs click, .*pip install 'posteriori\[cli,files\]'"):
        main()
