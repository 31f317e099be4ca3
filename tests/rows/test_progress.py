"""What is shown of passes over rows: a bar on a screen, a line for each pass elsewhere."""

from io import StringIO

from rich.console import Console

from posteriori.rows.progress import Bar, Passes


def _three_passes(**screen):
    """What is shown of a pass over rows whose number is not known, of another, and of a third that
    is given up."""
    out = StringIO()
    passes = Passes(Bar(Console(file=out, width=80, **screen)))
    for n_rows, objective in ((None, 1234.5), (30_000, None), (50_000, None)):
        passes.begin(n_rows)
        for _ in range(3):
            passes.advance(10_000)
        passes.end()
        passes.objective = objective
    return out.getvalue()


def test_a_line_a_pass_where_there_is_no_screen():
    lines = "pass 1: 30,000 rows\npass 2 objective 1234.5: 30,000 rows\npass 3: 30,000 rows\n"
    assert _three_passes() == lines


def test_a_bar_on_a_screen_is_gone_when_the_pass_is_over():
    shown = _three_passes(force_terminal=True)
    assert "pass 1" in shown
    assert "pass 2 objective 1234.5" in shown
    assert "30,000 rows" in shown
    assert shown.endswith("\x1b[2K")  # the line is wiped
