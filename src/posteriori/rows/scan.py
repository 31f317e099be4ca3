"""Paths, formats and schemas of the user's data as a source that every model fits to: `scan`."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any, cast

import narwhals.stable.v1 as nw

from posteriori.errors import ColumnNameError, ColumnTypeError, ParameterError, SourceError
from posteriori.rows.arrow import is_arrow
from posteriori.rows.batch import Roles
from posteriori.rows.categories import declared_levels
from posteriori.rows.dask import dask_rows, is_dask, scan_dask
from posteriori.rows.features import as_frame
from posteriori.rows.files import FileRows, FileStamp, csv_doubles
from posteriori.rows.ipc_cache import IpcCache, read_cache
from posteriori.rows.progress import Passes, read_progress
from posteriori.rows.source import SourceRows

_FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".arrow": "ipc",
    ".ipc": "ipc",
    ".feather": "ipc",
}
"""The formats that are read, by the endings of names."""


def scan(
    source: Any,
    target: str | Sequence[str] | None = None,
    *,
    weight: str | None = None,
    offset: str | None = None,
    columns: Sequence[str] | None = None,
    categories: Mapping[str, Sequence[Any]] | None = None,
    dtypes: Mapping[str, str] | None = None,
    classes: Any = None,
    format: str | None = None,
    cache: bool | str | PathLike[str] = True,
    progress: Any = False,
) -> SourceRows:
    """A dataset that is read when it is needed, however many rows it has.

    Every model fits to it: `model.fit(scan("trips/", target="tip"))`. Types, levels of
    categorical columns and classes are found in a first pass when a model is fitted, and
    checked in every later one. In CSV files an empty entry is missing, as are NA, NaN and null;
    whole numbers are read as doubles, and the type of a column is that of its first megabyte.

    Parameters
    ----------
    source : a path, a glob, a folder (with hive partitions), a list of files, a pyarrow dataset
        or table, a pandas or polars frame, a DuckDB relation (which is read into memory); a Dask
        data frame, delayed frames. Hidden files are left out, and an index of pandas is no column.
    target : the column of class labels, or of numbers; several columns with the probability of
        each class, which name the classes.
    weight, offset : columns of row weights, and of numbers added to the activations.
    columns : the features; all columns that are nothing else, if they are not given.
    categories : the levels of text columns, in order, the first being the reference; without
        them they are those that occur, sorted or in the order in which a frame declares them.
        In CSV files these columns are read as text.
    dtypes : types of columns of CSV files, by name: `{"zip": "string"}`.
    classes : what columns of soft labels are called, where their names do not say it.
    format : "parquet", "csv" or "ipc", where the names of the files do not say it.
    cache : True keeps decoded batches for later passes in a temporary, memory-mapped file, if they
        fit in half of the free disk space; a folder keeps them there; False reads the files in
        each pass. The file can be read by its owner alone, and is gone with the source and the
        models that were fitted to it.
    progress : True shows a bar for each pass; a function is called with where the pass is.

    >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
    >>> from posteriori import LogisticRegression
    >>> table = pa.table({"x": [0.0, 1.0, 2.0, 3.0], "y": ["no", "yes", "no", "yes"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(table, f"{folder}/part-0.parquet")
    ...     model = LogisticRegression(prior=1.0).fit(scan(folder, target="y"))
    >>> model.classes_, model.coef_.round(3)
    (array(['no', 'yes'], dtype=object), array([[0.453]]))
    """
    roles = _read_roles(target, weight, offset, columns, categories)
    if classes is not None and len(roles.targets) < 2:
        raise ParameterError(
            "classes names columns of soft labels, but the target is not made of several columns.",
            "Leave classes out.",
        )
    if is_dask(source) or (isinstance(source, list | tuple) and any(map(is_dask, source))):
        if cache is not True or dtypes is not None:
            raise ParameterError(
                "cache and dtypes are for files, but the source is a Dask collection.",
                "Leave them out; source.persist() keeps what its workers have read.",
            )
        return scan_dask(source, roles, classes, progress)
    found, declared = _read_table(source)
    kept = read_cache(cache)
    if found is None:
        dataset, is_csv = _read_files(source, format, roles, dtypes)
        declared = _declared_in_files(dataset)
    else:
        dataset, is_csv, kept = found, False, IpcCache(kept.folder, enabled=False)
    features = roles.features(_without_index(dataset.schema, roles))
    roles = replace(roles, columns=tuple(features))
    if is_csv:
        dataset = csv_doubles(dataset, roles)
    _check_types(dataset.schema, roles)
    files = getattr(dataset, "files", ())
    stamps = tuple(FileStamp.of(path) for path in files if os.path.exists(path))
    passes = Passes(read_progress(progress))
    return FileRows(
        roles, dataset, stamps, declared, kept, is_csv, soft_classes=classes, progress=passes
    )


def is_scanned(X: Any) -> bool:
    """Whether X is what `scan` returns."""
    return isinstance(X, SourceRows)


def is_source(X: Any) -> bool:
    """Whether X is read batch by batch: rows of `scan`, or a Dask collection."""
    return is_scanned(X) or is_dask(X)


def as_source(X: Any, y: Any, sample_weight: Any, classes: Any, model: str) -> SourceRows:
    """What `fit` was given, as a source: rows of `scan` alone, or Dask collections.

    `classes` names columns of soft labels.
    """
    if is_dask(X):
        return dask_rows(X, y, sample_weight, classes=classes)
    if y is not None or sample_weight is not None or classes is not None:
        raise ParameterError(
            f"{model} was given rows of scan(), which have targets and weights of their own, and "
            "others.",
            "Pass the rows alone; name target and weight in scan().",
        )
    return cast(SourceRows, X)


# Arguments.


def _read_roles(target: Any, weight: Any, offset: Any, columns: Any, categories: Any) -> Roles:
    """The roles of columns, named by strings."""
    if target is not None and not isinstance(target, str | Sequence):
        raise ColumnNameError(
            f"target={target!r} is not the name of a column.",
            "Name the columns with strings: frame.columns = frame.columns.astype(str).",
        )
    return Roles(
        target if target is None or isinstance(target, str) else _names("target", target, 1),
        _name("weight", weight),
        _name("offset", offset),
        None if columns is None else _names("columns", columns),
        _levels(categories),
    )


def _names(what: str, names: Any, least: int = 0) -> tuple[str, ...]:
    """Several columns by name."""
    found = (None,) if isinstance(names, str) or not isinstance(names, Iterable) else tuple(names)
    if len(found) < least or not all(isinstance(name, str) for name in found):
        raise ParameterError(
            f"{what}={names!r} does not name columns.", f"Pass a list of names: {what}=['a', 'b']."
        )
    return found


def _name(what: str, name: Any) -> str | None:
    """One column by name."""
    if name is not None and not isinstance(name, str):
        raise ParameterError(
            f"{what} is a {type(name).__name__}, not the name of a column.",
            f"Write {what} as a column of the source, and name it.",
        )
    return name


def _levels(categories: Any) -> dict[str, tuple[str, ...]]:
    """The levels of columns, each once."""
    if categories is None:
        return {}
    if not isinstance(categories, Mapping):
        raise ParameterError(
            f"categories is a {type(categories).__name__}, not a mapping of columns to levels.",
            "Pass the levels of each column: categories={'size': ['small', 'big']}.",
        )
    found = {name: tuple(map(str, levels)) for name, levels in categories.items()}
    for name, levels in found.items():
        twice = [level for level, times in Counter(levels).items() if times > 1]
        if twice:
            raise ParameterError(
                f"categories has the level {twice[0]!r} of column '{name}' twice.",
                "Name each level once.",
            )
    return found


# Tables in memory.


def _read_table(source: Any) -> tuple[Any, dict[str, tuple[Any, ...]]]:
    """A frame or table as a dataset, and the orders of levels it declares; None for paths."""
    if isinstance(source, str | PathLike | list | tuple):
        return None, {}
    pyarrow, datasets = _pyarrow()
    if isinstance(source, datasets.Dataset):
        return source, {}
    if is_arrow(source) and type(source).__name__ == "RecordBatch":
        source = pyarrow.Table.from_batches([source])
    frame = as_frame(source)
    try:
        if frame is not None:
            odd = [name for name in frame.columns if not isinstance(name, str)]
            if odd:
                raise ColumnNameError(
                    f"The column name {odd[0]!r} is not a string.",
                    "Rename the columns: frame.columns = frame.columns.astype(str).",
                )
            declared = {name: declared_levels(frame[name]) for name in frame.columns}
            table = nw.maybe_reset_index(frame).to_arrow()  # an index of pandas is no column
        elif hasattr(type(source), "__arrow_c_stream__"):  # such as a relation of DuckDB
            declared = {}
            table = pyarrow.RecordBatchReader.from_stream(source).read_all()
        else:
            raise ParameterError(
                f"A {type(source).__name__} is not a source of rows.",
                "Pass a path, a glob, a folder, a list of files, a pyarrow dataset or table, or a "
                "data frame.",
            )
    except (pyarrow.ArrowException, OverflowError, TypeError) as error:
        raise ColumnTypeError(
            f"The frame has a column that Arrow cannot hold: {error}.",
            "Leave the column out of the frame, or convert it to numbers or text.",
        ) from error
    fields = [each.with_type(_plain_type(each.type)) for each in table.schema]
    whole = pyarrow.schema(fields, metadata=table.schema.metadata)
    return datasets.dataset(table.cast(whole)), {n: own for n, own in declared.items() if own}


def _pyarrow() -> tuple[Any, Any]:
    """pyarrow and its datasets; an error that tells a missing package from a broken one."""
    if find_spec("pyarrow") is None:
        raise ParameterError(
            "Files are read by pyarrow, which is not installed.",
            "Install it: pip install 'posteriori[files]'.",
        )
    try:
        return import_module("pyarrow"), import_module("pyarrow.dataset")
    except ImportError as error:
        raise ParameterError(
            f"Files are read by pyarrow, which is installed but cannot be loaded: {error}.",
            "Install it anew: pip install --force-reinstall pyarrow.",
        ) from error


# Files.


def _read_files(source: Any, format: str | None, roles: Roles, dtypes: Any) -> tuple[Any, bool]:
    """Files as a pyarrow dataset with one type a column, and whether they are CSV."""
    pyarrow, datasets = _pyarrow()
    if format is not None and format not in _FORMATS.values():
        raise ParameterError(
            f"format={format!r} is not known.", "Use 'parquet', 'csv' or 'ipc', or leave it out."
        )
    paths = _files_in(source, format)
    kind: Any = format or _format_of(paths)
    is_csv = kind == "csv"
    if dtypes is not None and not is_csv:
        raise ParameterError(
            f"dtypes is for CSV files; {kind} files have types of their own.",
            "Leave it out, or write the files with other types.",
        )
    if is_csv:
        kind = _csv_format(_separator_of(paths), paths)
    names = [str(path) for path in paths]
    try:
        found = datasets.dataset(names, format=kind, partitioning="hive")
        schemas = {name: datasets.dataset(name, format=kind).schema for name in names}
        text = dict.fromkeys(roles.categories if is_csv else (), pyarrow.string())
        types = text | _read_types(dtypes)
        schema = _unified(found.schema, schemas, roles, types, is_csv)
        return datasets.dataset(names, format=kind, partitioning="hive", schema=schema), is_csv
    except (OSError, UnicodeDecodeError, pyarrow.ArrowException) as error:
        raise SourceError(
            f"{str(source)!r} cannot be read: {str(error).rstrip('.')}.",
            "Look at the path and the format; text must be written in UTF-8.",
        ) from error


def _declared_in_files(dataset: Any) -> dict[str, tuple[str, ...]]:
    """The order of levels that the first file declares: ordered dictionaries, pandas categories."""
    types, schema = import_module("pyarrow.types"), dataset.schema
    pandas = json.loads((schema.metadata or {}).get(b"pandas", b"{}")).get("columns", ())
    written = {each["name"] for each in pandas if each["pandas_type"] == "categorical"}
    kinds = {each.name: each.type for each in schema if types.is_dictionary(each.type)}
    names = [name for name, kind in kinds.items() if kind.ordered or name in written]
    first = dataset.head(1, columns=names) if names else None
    if first is None or not first.num_rows:
        return {}
    return {
        name: tuple(map(str, first.column(name).chunk(0).dictionary.to_pylist())) for name in names
    }


def _csv_format(separator: str, paths: Sequence[Path]) -> Any:
    """How text is cut into values. An empty entry is missing, in a column of text as in others."""
    csv = import_module("pyarrow.csv")
    # To look for line breaks within quotes takes time: where there are quotes at all.
    has_quotes = any(_begins_with_quotes(path) for path in paths)
    return import_module("pyarrow.dataset").CsvFileFormat(
        csv.ParseOptions(delimiter=separator, newlines_in_values=has_quotes),
        convert_options=csv.ConvertOptions(strings_can_be_null=True),
    )


def _begins_with_quotes(path: Path) -> bool:
    """Whether the first megabyte of a file has a quotation mark."""
    with import_module("pyarrow").input_stream(str(path)) as file:
        return b'"' in file.read(2**20)


def _read_types(dtypes: Any) -> dict[str, Any]:
    """Arrow types by the names that the user gave them."""
    pyarrow = import_module("pyarrow")
    try:
        return {name: pyarrow.type_for_alias(kind) for name, kind in dict(dtypes or {}).items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise ParameterError(
            f"dtypes={dtypes!r} is not understood: {error}.",
            "Pass the types of columns by name: dtypes={'zip': 'string'}.",
        ) from error


def _unified(
    found: Any, schemas: Mapping[str, Any], roles: Roles, given: Mapping[str, Any], is_csv: bool
) -> Any:
    """One type a column, which holds what any of the files has; partitions are in `found`.

    An error where a needed column has no such type, or a file lacks it.
    """
    pyarrow = import_module("pyarrow")
    fields = {each.name: each for schema in schemas.values() for each in schema}
    names = list(dict.fromkeys([*found.names, *fields]))
    whole = pyarrow.schema([(name, pyarrow.null()) for name in names], metadata=found.metadata)
    needed = set(roles.needed(_without_index(whole, roles)))
    types = {}
    for name in names:
        if name not in fields:  # a partition
            types[name] = found.field(name).type
            continue
        held = {
            file: schema.field(name).type
            for file, schema in schemas.items()
            if name in schema.names
        }
        if name in needed and len(held) < len(schemas):
            lacking = next(file for file in schemas if file not in held)
            raise SourceError(
                f"The file {lacking} has no column '{name}', which other files have.",
                "Add it there, leave the file out, or leave the column out of columns.",
            )
        kind = given[name] if name in given else _common(list(held.values()), is_csv)
        if kind is None and name in needed:
            first, *rest = held.items()
            other = next(each for each in rest if _common([first[1], each[1]], is_csv) is None)
            raise SourceError(
                f"Column '{name}' is {first[1]} in {first[0]}, and {other[1]} in {other[0]}.",
                "Write it alike in all files, or leave it out of columns"
                + (f"; or scan with dtypes={{{name!r}: 'string'}}." if is_csv else "."),
            )
        if kind is not None:
            types[name] = kind
    return pyarrow.schema(list(types.items()), metadata=found.metadata)


def _common(kinds: list[Any], is_csv: bool) -> Any:
    """The type for values of all these types; None where there is none."""
    pyarrow, types = import_module("pyarrow"), import_module("pyarrow.types")
    kinds = list(dict.fromkeys(_plain_type(kind) for kind in kinds if kind != pyarrow.null()))
    if len(kinds) < 2:
        return kinds[0] if kinds else pyarrow.null()
    if all(map(_is_text, kinds)):
        return pyarrow.string()
    if all(types.is_integer(kind) or types.is_floating(kind) for kind in kinds):
        fields = [pyarrow.schema([("one", kind)]) for kind in kinds]
        return pyarrow.unify_schemas(fields, promote_options="permissive").field(0).type
    if all(types.is_integer(k) or types.is_floating(k) or types.is_decimal(k) for k in kinds):
        return pyarrow.float64()
    text_or_boolean = all(_is_text(kind) or types.is_boolean(kind) for kind in kinds)
    return pyarrow.string() if is_csv and text_or_boolean else None


def _plain_type(kind: Any) -> Any:
    """A type that narwhals and NumPy read, for one that holds the same values."""
    pyarrow, types = import_module("pyarrow"), import_module("pyarrow.types")
    if types.is_decimal(kind) and not types.is_decimal128(kind):
        return pyarrow.float64()
    return pyarrow.string() if str(kind) == "string_view" else kind


def _is_text(kind: Any) -> bool:
    inner = kind.value_type if import_module("pyarrow.types").is_dictionary(kind) else kind
    return str(inner) in ("string", "large_string", "string_view")


def _without_index(schema: Any, roles: Roles) -> list[str]:
    """The names of columns, but for an index of pandas that nobody has named."""
    index = json.loads((schema.metadata or {}).get(b"pandas", b"{}")).get("index_columns", ())
    named = {*roles.others, *(roles.columns or ())}
    return [name for name in schema.names if name not in index or name in named]


def _check_types(schema: Any, roles: Roles) -> None:
    """An error for a column that no model can use, before any row is read."""
    types = import_module("pyarrow.types")
    for name in roles.others:
        if types.is_nested(schema.field(name).type):
            raise ColumnTypeError(
                f"Column '{name}' holds {schema.field(name).type}, several values a row.",
                "Write one value a row; soft labels are a column for each class.",
            )
    for name in roles.columns or ():
        kind = schema.field(name).type
        inner = kind.value_type if types.is_dictionary(kind) else kind
        if types.is_temporal(inner):
            raise ColumnTypeError(
                f"Column '{name}' is a date.",
                "Convert it to a number (for example days since a reference date) or leave it out "
                "of columns.",
            )
        known = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean, _is_text)
        if not (any(is_it(inner) for is_it in known) or types.is_null(inner)):
            raise ColumnTypeError(
                f"Column '{name}' holds {kind}, which is neither numeric nor text.",
                "Leave it out of columns, or write it as numbers or text"
                + (", in UTF-8." if types.is_binary(inner) else "."),
            )


def _files_in(source: Any, format: str | None) -> list[Path]:
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
            f"A {type(source).__name__} is not a source of rows.",
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
    named = [path for path in found if _suffix_of(path) in _FORMATS]
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


def _format_of(paths: Sequence[Path]) -> str:
    """The format that the names say."""
    found = {_FORMATS[suffix] for path in paths if (suffix := _suffix_of(path)) in _FORMATS}
    if len(found) != 1:
        raise ParameterError(
            f"The names of the files say {'several formats' if found else 'no format'}"
            f"{': ' + ', '.join(sorted(found)) if found else ''}.",
            "Pass format='parquet', 'csv' or 'ipc', and files of that format alone.",
        )
    return found.pop()


def _separator_of(paths: Sequence[Path]) -> str:
    """What values are separated by in files of text."""
    has_tabs = {_suffix_of(path) == ".tsv" for path in paths}
    if len(has_tabs) > 1:
        raise ParameterError(
            "Some of the files are separated by tabs, by their names, and others by commas.",
            "Scan files of one kind.",
        )
    return "\t" if has_tabs.pop() else ","


def _suffix_of(path: Path) -> str:
    """The ending that tells the format, before that of a compression."""
    return path.with_suffix("").suffix if path.suffix in (".gz", ".bz2", ".zst") else path.suffix
