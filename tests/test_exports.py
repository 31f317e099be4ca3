"""The public names, and what importing them costs."""

import subprocess
import sys
from inspect import signature

import pytest

import posteriori

HEAVY = ["sklearn", "pandas", "polars", "pyarrow", "matplotlib", "dask"]


def fresh(code):
    """What a new interpreter prints."""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout.strip()


@pytest.mark.parametrize("name", posteriori.__all__)
def test_a_public_name_can_be_imported_and_is_documented(name):
    value = getattr(posteriori, name)
    assert value.__name__ == name
    assert value.__module__.startswith("posteriori.")
    assert value.__doc__
    assert name in dir(posteriori)


def test_an_unknown_name_is_an_attribute_error_that_names_it():
    with pytest.raises(AttributeError, match="module 'posteriori' has no attribute 'Nonsense'"):
        _ = posteriori.Nonsense


def test_a_prediction_to_a_file_has_its_argument_in_the_signature():
    for model in (posteriori.LogisticRegression, posteriori.GaussianClassifier, posteriori.GLM):
        for name in ("predict", "predict_proba"):
            parameter = signature(getattr(model, name)).parameters["to"]
            assert (parameter.kind.name, parameter.default) == ("KEYWORD_ONLY", None)


def test_importing_posteriori_imports_nothing_heavy():
    loaded = fresh("import sys, posteriori; print(*sorted(sys.modules))").split()
    assert not set(HEAVY) & set(loaded)


def test_a_model_brings_no_data_frame_library_and_no_plots():
    code = "import sys; from posteriori import GaussianClassifier, threads; print(*sys.modules)"
    loaded = fresh(code).split()
    assert "sklearn" in loaded
    assert not {"polars", "matplotlib", "dask"} & set(loaded)


def test_decide_is_the_function_whatever_was_imported_before():
    code = (
        "import posteriori.decision.decide, posteriori; print(posteriori.decide([0.2, 0.9]).code)"
    )
    assert fresh(code) == "[0 1]"


def test_the_version_is_that_of_the_package():
    from importlib.metadata import version

    assert posteriori.__version__ == version("posteriori")
