"""What `make demo` runs: the numbers it tells, and the pictures it makes."""

import importlib.util
import re
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


def test_the_decisions_are_those_that_the_demo_tells(told, monkeypatch):
    decisions = load("decisions")
    monkeypatch.setattr(decisions, "console", Console(soft_wrap=True))
    decisions.main()
    text = told()
    # Some folds are sampled by Monte Carlo, whose draws depend on the last bits of the processor.
    scores = re.search(r"Bayesian logistic +([\d.]+) +[\d.]+ +([\d.]+) +([\d.]+)", text).groups()
    assert [float(score) for score in scores] == pytest.approx([0.1843, 0.0032, 0.0090], abs=1.5e-3)
    assert "Decisions('operate': 62, 'wait': 54, rejected: 74; mean expected loss 0.208" in text
    assert "realised: 0.182 a row" in text
    for name in ("decisions_calibration", "decisions_rejecting", "decisions_confusion"):
        check_picture(name, (787, 1050))


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
        "Perceptron │ 28 │ 0.961 │ –",
        "Logistic on Gaussian bumps │ 36 │ 0.978 │ -0.073",
    ):
        assert line in text
    check_picture("decision_regions", (787, 1050))


def test_three_hospitals_have_one_model_and_no_row_leaves(told, monkeypatch):
    hospitals = load("hospitals")
    monkeypatch.setattr(hospitals, "console", Console(soft_wrap=True))
    hospitals.main()
    text = told()
    for name, rows, malignant, least in (
        ("city", 350, 144, 15_000),
        ("town", 169, 65, 7_000),
        ("village", 50, 3, 2_000),
    ):
        line = rf"{name} │ {rows} │ {malignant} │ ([\d,]+) │ ([\d,]+) │ 0 │"
        of_rows, of_sums = (int(n.replace(",", "")) for n in re.search(line, text).groups())
        assert of_rows > least
        assert of_sums < 2_000
    for name, right in (
        ("GaussianClassifier", "93.0%"),
        ("FisherDiscriminant", "93.0%"),
        ("LeastSquaresClassifier", "93.0%"),
        ("NaiveBayes", "93.1%"),
    ):
        digits = re.search(rf"{name}: {right} right, less than 1e-(\d+) apart", text)
        assert int(digits.group(1)) >= 10
    assert "The village sends the sums of 3 malignant tumours." in text
    assert int(re.search(r"relative error of less than 1e-(\d+)\.", text).group(1)) >= 10
    assert re.search(r"city │ 350 │ 1.124 ± 0.177 │ [\d,]+ │ 0 │", text)
    assert re.search(r"village │ 569 │ 1.206 ± 0.141 │ [\d,]+ │ 0 │", text)
    assert "all rows at once │ 569 │ 1.247 ± 0.153" in text
    assert "up to 0.27 standard deviations from that of all rows" in text
    assert "probabilities up to 0.035." in text
    assert "of precision 0.21; all rows would have chosen 0.20." in text


def test_figure_4_14_is_drawn_as_the_text_says(told):
    load("laplace_figure").main()
    assert "Mode 0.077480, precision 2.543589" in told()
    check_picture("laplace", (600, 1500))
