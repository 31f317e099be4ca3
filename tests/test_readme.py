"""The Python in the README and in docs/ runs, and prints what the text block after it contains.

The examples of a section (`##`) run one after the other in one namespace. Output is what a block
prints, warns of or raises; line breaks do not matter, and `...` stands for any text.
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

ROOT = Path(__file__).parents[1]
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
}
SECTIONS = {
    f"{page}: {part.splitlines()[0].lstrip('# ')}": part
    for page, text in PAGES.items()
    for part in re.split(r"(?m)^(?=## )", text)
    if "```python\n" in part
}
EXAMPLE = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.DOTALL)
CODE_BLOCK = re.compile(r"```.*?```", re.DOTALL)


def printed_by(code: str, space: dict) -> str:
    """What is printed, warnings, and the error that ends the block."""
    output = io.StringIO()

    def show(message, category, *_, **__):
        print(f"{category.__name__}: {message}", file=output)

    with warnings.catch_warnings(), contextlib.redirect_stdout(output):
        warnings.simplefilter("always")
        warnings.showwarning = show
        try:
            exec(code, space)
        except PosterioriError as error:
            print(f"{type(error).__name__}: {error}", file=output)
    return output.getvalue()


def matches(printed: str, expected: str) -> bool:
    """Whether the words are equal, `...` in the expected text being any number of them."""
    parts = [re.escape(" ".join(part.split())) for part in re.split(r"(?m)^\.\.\.$", expected)]
    pattern = r".*".join(parts)
    return re.fullmatch(pattern, " ".join(printed.split())) is not None


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    headings = re.findall(r"(?m)^#+ (.*)$", CODE_BLOCK.sub("", text))
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    mpl.use("agg")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("section", SECTIONS)
def test_examples_print_what_the_page_contains(section):
    space: dict = {"__name__": "page"}
    for code, expected in EXAMPLE.findall(SECTIONS[section]):
        printed = printed_by(code, space)
        assert matches(printed, expected), f"\n{printed}"


def test_an_output_that_differs_does_not_match():
    assert matches("a b\nc d", "a b\n...\nd\n")
    assert not matches("a b\nc d", "a b\n...\ne\n")
    assert not matches("a b c", "a b")


def test_every_public_name_has_an_example():
    code = "".join(code for text in PAGES.values() for code, _ in EXAMPLE.findall(text))
    assert [name for name in posteriori.__all__ if not re.search(rf"\b{name}\(", code)] == []


def test_the_readme_has_at_most_200_lines():
    assert len(PAGES["README.md"].splitlines()) <= 200


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_to_a_file_and_a_heading(page):
    links = re.findall(r"\]\(([^)]*)\)", CODE_BLOCK.sub("", PAGES[page]))
    broken = []
    for link in links:
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (ROOT / page).parent / name if name else ROOT / page
        found = target.exists()
        if found and anchor:
            found = anchor in anchors(target.read_text(encoding="utf-8"))
        if not found:
            broken.append(link)
    assert broken == []
