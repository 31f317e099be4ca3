"""What `make demo` runs: the numbers that it prints, and the pictures."""

import importlib.util
import re
from pathlib import Path

import matplotlib as mpl
import matplotlib.image as images
import pytest

# Matplotlib warns where the place of a legend takes more than a second, as on a busy machine.
pytestmark = pytest.mark.filterwarnings("ignore:Creating legend with loc:UserWarning")

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
def printed(capsys):
    return lambda: " ".join(capsys.readouterr().out.split())


def check_picture(name):
    """It is there, and something was drawn in it."""
    assert images.imread(Path("demo") / f"{name}.png")[..., :3].std() > 0.05


def test_the_tumours(printed):
    load("tumours").main()
    text = printed()
    assert "SeparationWarning: The classes of all rows" in text
    assert "separation_.kind: complete" in text
    assert "mean radius 1.3092 0.1691 7.74 <0.0001 0.9777 1.6407" in text
    assert "172 intervals exclude 0.5: accuracy 96.5%" in text
    assert "18 intervals contain 0.5: accuracy 55.6%" in text
    assert "4.5% of the labels were flipped. Estimated rate: 7.0% ± 2.6%." in text
    assert "10 of the ten most suspect labels were flipped" in text
    check_picture("tumour_curves")
    check_picture("tumour_regions")


def test_the_decisions(printed):
    load("decisions").main()
    text = printed()
    # Some folds are sampled by Monte Carlo, whose draws depend on the last bits of the processor.
    scores = re.search(r"Bayesian logistic ([\d.]+) [\d.]+ ([\d.]+)", text).groups()
    assert [float(score) for score in scores] == pytest.approx([0.1843, 0.0032], abs=1.5e-3)
    assert "Decisions('operate': 62, 'wait': 54, rejected: 74; mean expected loss 0.208" in text
    assert "realised loss: 0.182 per row" in text
    for name in ("decisions_calibration", "decisions_rejecting", "decisions_confusion"):
        check_picture(name)


def test_the_wines(printed, monkeypatch):
    demo = load("demo")
    few = ("Gaussian, shared covariance", "Logistic", "Perceptron", "Logistic, Gaussian basis")
    monkeypatch.setattr(demo, "MODELS", {name: demo.MODELS[name] for name in few})
    demo.main()
    text = printed()
    for row in (
        "Gaussian, shared covariance 0.994 0.027 132",
        "Logistic 0.983 0.063 28",
        "Perceptron 0.961 NaN 28",
        "Logistic, Gaussian basis 0.983 0.076 36",
    ):
        assert row in text
    check_picture("decision_regions")


def test_the_hospitals_merge_their_statistics_exactly_and_send_no_row(printed):
    load("hospitals").main()
    text = printed()
    pattern = r"(\w+): accuracy ([\d.]+)%, equal to 1e-10, messages of at most ([\d,]+) "
    models = {name: (float(share), size) for name, share, size in re.findall(pattern, text)}
    sums = ("GaussianClassifier", "FisherDiscriminant", "LeastSquaresClassifier", "NaiveBayes")
    assert [models[name][0] for name in sums] == [93.0, 93.0, 93.0, 93.1]
    assert max(int(size.replace(",", "")) for _, size in models.values()) < 2_000
    assert "city: radius 1.124 ± 0.177" in text
    assert "village: radius 1.206 ± 0.141" in text
    assert "all rows: radius 1.247 ± 0.153; probabilities differ by 0.035 at most" in text
    assert re.findall(r"(\d+) numbers of rows in", text) == ["0"] * 7
