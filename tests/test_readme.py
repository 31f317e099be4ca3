"""The Python in the README runs, and prints what the README shows beneath it.

The examples of a section (`##`) are run one after the other, as a reader would type them. What one
of them prints, warns of or raises is the text block after it, but for the breaks of long lines.
"""

import contextlib
import io
import re
import warnings
from pathlib import Path

import matplotlib as mpl
import pytest

import posteriori
from posteriori.errors import PosterioriError

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")

SECTIONS = {
    part.splitlines()[0].lstrip("# "): part
    for part in re.split(r"(?m)^(?=## )", README)
    if "```python\n" in part
}
EXAMPLE = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.DOTALL)


def printed_by(code: str, space: dict) -> str:
    """What the reader sees: what is printed, warnings, and the error that ends it."""
    seen = io.StringIO()

    def show(message, category, *_, **__):
        print(f"{category.__name__}: {message}", file=seen)

    with warnings.catch_warnings(), contextlib.redirect_stdout(seen):
        warnings.simplefilter("always")
        warnings.showwarning = show
        try:
            exec(code, space)
        except PosterioriError as error:
            print(f"{type(error).__name__}: {error}", file=seen)
    return seen.getvalue()


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    mpl.use("agg")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("section", SECTIONS)
def test_examples_print_what_the_readme_shows(section):
    space: dict = {"__name__": "readme"}
    for code, shown in EXAMPLE.findall(SECTIONS[section]):
        printed = printed_by(code, space)
        assert printed.split() == shown.split(), f"\n{printed}"


def test_every_public_name_has_an_example():
    code = "".join(code for code, _ in EXAMPLE.findall(README))
    assert [name for name in posteriori.__all__ if not re.search(rf"\b{name}\(", code)] == []


def test_every_link_within_the_readme_leads_somewhere():
    headings = re.findall(r"(?m)^#+ (.*)$", README)
    anchors = {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
    links = set(re.findall(r"\]\(#([^)]*)\)", README))
    assert links <= anchors


def test_every_file_the_readme_links_to_is_there():
    root = Path(__file__).parents[1]
    links = [link for link in re.findall(r"\]\(([^)#][^)]*)\)", README) if "://" not in link]
    assert [link for link in links if not (root / link).exists()] == []
