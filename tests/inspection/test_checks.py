"""Checks as values, as text, as HTML and as a frame."""

import pickle

import pytest

from posteriori.errors import ParameterError
from posteriori.inspection.checks import Check, Checks

CHECKS = Checks(
    "Model",
    (
        Check("convergence", "good", "It converged."),
        Check("collinearity", "bad", "Columns <a> & b are alike. " * 6, {"largest": 40.0}),
        Check("trust", "not checked", "Not checked: there is no posterior."),
    ),
)


def test_checks_are_a_sequence_that_knows_names():
    assert len(CHECKS) == 3
    assert [check.name for check in CHECKS] == ["convergence", "collinearity", "trust"]
    assert CHECKS[1] is CHECKS["collinearity"]
    assert CHECKS[-1] is CHECKS["trust"]
    assert CHECKS[:2] == (CHECKS[0], CHECKS[1])
    assert CHECKS["collinearity"].values["largest"] == 40.0


def test_a_name_that_is_not_there_is_an_error_that_lists_the_others():
    with pytest.raises(ParameterError, match="Use 'convergence', 'collinearity' or 'trust'"):
        CHECKS["leverage"]


def test_the_worst_word_is_that_of_all():
    assert CHECKS.worst == "bad"
    assert Checks("Model", CHECKS[:1]).worst == "good"
    assert Checks("Model", CHECKS[2:]).worst == "not checked"
    assert Checks("Model", ()).worst == "not checked"


def test_the_text_keeps_to_88_characters():
    lines = repr(CHECKS).splitlines()
    assert lines[0] == "Model: 1 bad, 1 good, 1 not checked"
    assert max(map(len, lines)) == 88
    assert lines[2] == "good         convergence   It converged."
    assert lines[3].startswith("bad          collinearity  Columns <a> & b are alike.")
    assert lines[4].startswith(" " * 27)
    assert str(CHECKS) == repr(CHECKS)


def test_html_is_escaped():
    page = CHECKS._repr_html_()
    assert "Columns &lt;a&gt; &amp; b are alike." in page
    assert page.count("<tr>") == 3


@pytest.mark.parametrize("backend", ["pandas", "polars"])
def test_a_frame_has_a_row_a_check(backend):
    frame = CHECKS.to_frame(backend)
    assert type(frame).__module__.startswith(backend)
    assert list(frame.columns) == ["check", "word", "sentence"]
    assert list(frame["word"]) == ["good", "bad", "not checked"]
    assert len(Checks("Model", ()).to_frame(backend)) == 0


def test_checks_survive_pickle():
    assert repr(pickle.loads(pickle.dumps(CHECKS))) == repr(CHECKS)
