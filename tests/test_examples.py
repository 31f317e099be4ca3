"""What `make demo` runs: the numbers it tells, and the pictures it makes."""

import importlib.util
from pathlib import Path

import matplotlib as mpl
import matplotlib.image as images
import pytest
from rich.console import Console

EXAMPLES = Path(__file__).parents[1] / "examples"


def load(name):
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    mpl.use("agg")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def told(capsys):
    return lambda: " ".join(capsys.readouterr().out.split())


def check_picture(name, size):
    """It is there, and something was drawn in it."""
    picture = images.imread(Path("demo") / f"{name}.png")[..., :3]
    assert picture.shape[:2] == size
    assert picture.std() > 0.05


def test_the_tumours_are_judged_as_the_demo_tells(told, monkeypatch):
    tumours = load("tumours")
    monkeypatch.setattr(tumours, "console", Console(soft_wrap=True))
    tumours.main()
    text = told()
    assert "SeparationWarning: The classes of all rows" in text
    assert "separation_.kind: complete" in text
    assert "mean radius 1.3092 0.1691 7.74 <0.0001 0.9777 1.6407" in text
    assert (
        "190 tumours: of 172 whose interval lies on one side of ½, 96.5% are judged right; of the "
        "18 others, 56%."
    ) in text
    assert "4.5% of the labels were flipped on purpose; the fit finds 7.0% ± 2.6%." in text
    assert "10 are among those flipped" in text
    for name in ("tumour_curves", "tumour_regions", "tumour_trace"):
        check_picture(name, (675, 1050))


def test_the_table_of_wines_has_the_numbers_of_each_model(told, monkeypatch):
    demo = load("demo")
    monkeypatch.setattr(demo, "FITS", 1)
    few = ("Gaussian, shared covariance", "Logistic", "Perceptron", "Logistic on Gaussian bumps")
    monkeypatch.setattr(demo, "MODELS", {name: demo.MODELS[name] for name in few})
    demo.main()
    text = told()
    for line in (
        "Gaussian, shared covariance │ 132 │ 0.994 │ -0.027",
        "Logistic │ 28 │ 0.983 │ -0.063",
        "Perceptron │ 28 │ 0.949 │ –",
        "Logistic on Gaussian bumps │ 36 │ 0.978 │ -0.073",
    ):
        assert line in text
    check_picture("decision_regions", (787, 1050))


def test_figure_4_14_is_drawn_as_the_text_says(told):
    load("laplace_figure").main()
    assert "Mode 0.077480, precision 2.543589" in told()
    check_picture("laplace", (600, 1500))
