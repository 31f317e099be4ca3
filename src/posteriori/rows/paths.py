"""Which files a path, a glob, a folder or a list of them means, and what format they have."""

from collections.abc import Sequence
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
    """The files that are named, and those in folders whose names say a format that is read."""
    paths = _paths(source)
    found = [path for each in paths for path in ([each] if each.is_file() else _inside(each))]
    if format is not None:
        return found
    named = [path for path in found if path in paths or suffix_of(path) in FORMATS]
    return named or found


def _paths(source: Any) -> list[Path]:
    """The files and folders that are named, in order."""
    if isinstance(source, list | tuple):
        paths = [path for each in source for path in _paths(each)]
    elif any(sign in str(source) for sign in "*?["):
        path = Path(str(source)).expanduser()
        anchor = Path(path.anchor) if path.anchor else Path()
        paths = sorted(anchor.glob(str(path.relative_to(anchor) if path.anchor else path)))
    else:
        paths = [Path(source).expanduser()]
    missing = [path for path in paths if not path.exists()]
    if missing or not paths:
        raise SourceError(
            f"There is no file {str(missing[0] if missing else source)!r}.",
            "Look at the path; a folder is read with all files in it.",
        )
    return paths


def _inside(folder: Path) -> list[Path]:
    """Files in a folder and those below it, without hidden ones and marks of success."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    below = ((path, path.relative_to(folder).parts) for path in files)
    return [path for path, parts in below if not any(part[0] in "._" for part in parts)]


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


def suffix_of(path: Path) -> str:
    """The ending that tells the format, before that of a compression."""
    return path.with_suffix("").suffix if path.suffix in (".gz", ".bz2", ".zst") else path.suffix
