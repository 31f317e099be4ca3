"""What is shown of passes over rows: a bar on a screen, a line for each pass elsewhere."""

from io import StringIO

from rich.console import Console

from posteriori.rows.progress import Bar, Passes


def _two_passes(**screen):
    """What is shown of a pass over rows whose number is not known, and of one more."""
    out = StringIO()
    passes = Passes(Bar(Console(file=out, width=80, **screen)))
    for n_rows, objective in ((None, 1234.5), (30_000, None)):
        passes.begin(n_rows)
        for _ in range(3):
            passes.advance(10_000)
        passes.end()
        passes.objective = objective
    return out.getvalue()


def test_a_line_a_pass_where_there_is_no_screen():
    assert _two_passes() == "pass 1: 30,000 rows\npass 2 objective 1234.5: 30,000 rows\n"


def test_a_bar_on_a_screen_is_gone_when_the_pass_is_over():
    shown = _two_passes(force_terminal=True)
    assert "pass 1" in shown
    assert "pass 2 objective 1234.5" in shown
    assert "30,000 rows" in shown
    assert shown.endswith("\x1b[2K")  # the line is wiped


def test_a_pass_that_is_given_up_says_how_far_it_came():
    out = StringIO()
    passes = Passes(Bar(Console(file=out)))
    passes.begin(30_000)
    passes.advance(10_000)
    passes.end()
    assert out.getvalue() == "pass 1: 10,000 rows\n"
