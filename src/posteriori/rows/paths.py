"""Which files a path, a glob, a folder or a list of them means, and what format they have."""

from collections import Counter
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from posteriori.errors import ParameterError, SourceError

FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".arrow": "ipc",
    ".ipc": "ipc",
    ".feather": "ipc",
}
"""The formats that are read, by the endings of names."""


def files_in(source: Any, format: str | None) -> list[Path]:
    """The files that are named, and those in folders and globs whose names say a format.

    In folders and globs hidden files are left out, and marks such as `_SUCCESS`.
    """
    sources = source if isinstance(source, list | tuple) else [source]
    if not sources:
        raise SourceError("There is no file in the list.", "Name at least one.")
    found = [path for each in sources for path in _files_of(each, format)]
    twice = [path for path, times in Counter(path.resolve() for path in found).items() if times > 1]
    if twice:
        raise SourceError(
            f"The file {str(twice[0])!r} is named twice, by itself or by its folder.",
            "Name each file once.",
        )
    return found


def _files_of(source: Any, format: str | None) -> list[Path]:
    """The files of one path: itself, or what is in a folder, or fits a glob, in order."""
    if not isinstance(source, str | PathLike):
        raise ParameterError(
            f"A {type(source).__name__} is no source of rows.",
            "Pass a path, a glob, a folder, a list of files, a pyarrow dataset or table, or a data "
            "frame.",
        )
    path = Path(source).expanduser()
    if path.is_file():
        return [path]
    if path.is_dir():
        found = _inside(path)
    elif any(sign in str(path) for sign in "*?["):
        found = _matching(path)
    else:
        raise SourceError(
            f"There is no file {str(path)!r}.",
            "Look at the path; a folder is read with all files in it.",
        )
    if not found:
        what = f"in the folder {str(path)!r}" if path.is_dir() else repr(str(path))
        raise SourceError(f"There is no file {what}.", "Look at the path.")
    named = [path for path in found if suffix_of(path) in FORMATS]
    return found if format is not None or not named else named


def _matching(glob: Path) -> list[Path]:
    """Files that fit a glob, and those in folders that fit it, each once."""
    anchor = Path(glob.anchor) if glob.anchor else Path()
    pattern = glob.relative_to(anchor) if glob.anchor else glob
    hidden = "".join(sign for sign in "._" if not any(p[0] == sign for p in pattern.parts))
    fixed = len(anchor.parts) + next(i for i, p in enumerate(pattern.parts) if set(p) & set("*?["))
    fitting = sorted(anchor.glob(str(pattern)))
    fitting = [path for path in fitting if not _is_hidden(path.parts[fixed:], hidden)]
    return list(
        dict.fromkeys(
            each for path in fitting for each in (_inside(path) if path.is_dir() else [path])
        )
    )


def _inside(folder: Path) -> list[Path]:
    """Files in a folder and those below it."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return [path for path in files if not _is_hidden(path.relative_to(folder).parts)]


def _is_hidden(parts: Iterable[str], signs: str = "._") -> bool:
    return any(part[0] in signs for part in parts)


def format_of(paths: Sequence[Path]) -> str:
    """The format that the names say."""
    found = {FORMATS[suffix] for path in paths if (suffix := suffix_of(path)) in FORMATS}
    if len(found) != 1:
        raise ParameterError(
            f"The names of the files say {'several formats' if found else 'no format'}"
            f"{': ' + ', '.join(sorted(found)) if found else ''}.",
            "Pass format='parquet', 'csv' or 'ipc', and files of that format alone.",
        )
    return found.pop()


def separator_of(paths: Sequence[Path]) -> str:
    """What values are separated by in files of text."""
    has_tabs = {suffix_of(path) == ".tsv" for path in paths}
    if len(has_tabs) > 1:
        raise ParameterError(
            "Some of the files are separated by tabs, by their names, and others by commas.",
            "Scan files of one kind.",
        )
    return "\t" if has_tabs.pop() else ","


def suffix_of(path: Path) -> str:
    """The ending that tells the format, before that of a compression."""
    return path.with_suffix("").suffix if path.suffix in (".gz", ".bz2", ".zst") else path.suffix
