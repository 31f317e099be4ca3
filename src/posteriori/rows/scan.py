"""Paths, formats and schemas of the user's data as a source that every model fits to: `scan`."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from glob import escape, glob
from importlib import import_module
from importlib.util import find_spec
from os import PathLike
from typing import Any, cast

import narwhals.stable.v1 as nw

from posteriori.errors import ColumnNameError, ColumnTypeError, ParameterError, SourceError
from posteriori.rows.block import is_dask
from posteriori.rows.dask import dask_rows, scan_dask
from posteriori.rows.features import are_names, as_frame
from posteriori.rows.files import FileRows, IpcCache, file_stamp, row_groups
from posteriori.rows.schema import Roles, listed
from posteriori.rows.source import Bar, PassLog, SourceRows

_FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".arrow": "ipc",
    ".ipc": "ipc",
    ".feather": "ipc",
}
"""The formats that are read, by the endings of names."""

_NO_SOURCE = (
    "Pass a path, a glob, a folder, a list of files, a pyarrow dataset or table, or a data frame."
)


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
        data frame, delayed frames. Hidden files and an index of pandas are left out.
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
    progress : True shows a bar for each pass; a function is called with a `Step`, which has the
        number of the pass, the rows read so far, and seconds.

    >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
    >>> from posteriori import LogisticRegression
    >>> table = pa.table({"x": [0.0, 1.0, 2.0, 3.0], "y": ["no", "yes", "no", "yes"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(table, f"{folder}/part-0.parquet")
    ...     model = LogisticRegression(prior=1.0).fit(scan(folder, target="y"))
    >>> model.classes_, model.coef_.round(3)
    (array(['no', 'yes'], dtype=object), array([[0.453]]))
    """
    roles = Roles(
        _as_names("target", [target] if isinstance(target, str) else target) or (),
        _as_names("weight", weight),
        _as_names("offset", offset),
        _as_names("columns", columns),
        {name: tuple(dict.fromkeys(map(str, own))) for name, own in dict(categories or {}).items()},
        tuple(dtypes or ()),
    )
    log = PassLog(listener=Bar() if progress is True else progress or None)
    if is_dask(source):
        if cache is not True or dtypes is not None:
            raise ParameterError(
                "cache and dtypes are for files, but the source is a Dask collection.",
                "Leave them out; source.persist() keeps what its workers have read.",
            )
        return scan_dask(source, roles, soft_classes=classes, log=log)
    folder = None
    if isinstance(cache, str | PathLike):
        folder = os.path.abspath(os.path.expanduser(cache))
    if not isinstance(cache, bool) and not (folder and os.path.isdir(folder)):
        raise ParameterError(
            f"cache={cache!r} is neither True, False nor an existing folder.",
            "Leave it out, or name a folder with room for what is read.",
        )
    if isinstance(source, str | PathLike | list | tuple):
        dataset, declared = _open_files(source, format, roles, dtypes)
        decoded = IpcCache(folder, enabled=cache is not False)
    else:
        dataset = _open_table(source)
        declared, decoded = _declared_levels(dataset), IpcCache(enabled=False)
    features = roles.features(_without_index(dataset.schema, dataset.schema.names, roles))
    files, groups = getattr(dataset, "files", ()), row_groups(dataset)
    return FileRows(
        replace(roles, columns=tuple(features), declared=declared),
        dataset,
        groups,
        {path: file_stamp(path) for path in files if os.path.exists(path)},
        decoded,
        soft_classes=classes,
        log=log,
        n_expected=None if groups is None else sum(part.n_rows for part in groups),
    )


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


def _as_names(role: str, names: Any) -> Any:
    """The name of a column or, for the target and the features, a tuple of names."""
    several = role in ("target", "columns")
    if names is None or (isinstance(names, str) and role != "columns"):
        return names
    is_list = isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
    if several and is_list and (names or role == "columns"):
        return tuple(names)
    raise ParameterError(
        f"{role} does not name columns, and is of type {type(names).__name__}.",
        f"Name a column of the source by a string{', or a list of names' if several else ''}.",
    )


# Tables in memory.


def _open_table(source: Any) -> Any:
    """A frame or table as a dataset."""
    pyarrow, datasets = _pyarrow()
    if isinstance(source, datasets.Dataset):
        return source
    frame = as_frame(source)
    if frame is None and not hasattr(type(source), "__arrow_c_stream__"):
        raise ParameterError(f"A {type(source).__name__} is not a source of rows.", _NO_SOURCE)
    if frame is not None and not are_names(list(frame.columns)):
        raise ColumnNameError(
            f"The column name {frame.columns[0]!r} is not a string.",
            "Rename the columns: frame.columns = frame.columns.astype(str).",
        )
    try:
        if frame is None:  # such as a relation of DuckDB
            table = pyarrow.RecordBatchReader.from_stream(source).read_all()
        else:
            table = nw.maybe_reset_index(frame).to_arrow()  # without the index of pandas
    except (pyarrow.ArrowException, OverflowError, TypeError) as error:
        raise ColumnTypeError(
            f"The frame has a column that Arrow cannot hold: {error}.",
            "Leave the column out of the frame, or convert it to numbers or text.",
        ) from error
    return datasets.dataset(table)


def _pyarrow() -> tuple[Any, Any]:
    """pyarrow and pyarrow.dataset; an error says whether it is missing or cannot be loaded."""
    try:
        return import_module("pyarrow"), import_module("pyarrow.dataset")
    except ImportError as error:
        problem, remedy = "is not installed", "Install it: pip install 'posteriori[files]'."
        if find_spec("pyarrow") is not None:
            problem = f"is installed but cannot be loaded: {error}"
            remedy = "Install it anew: pip install --force-reinstall pyarrow."
        raise ParameterError(f"Files are read by pyarrow, which {problem}.", remedy) from error


def _pandas_metadata(schema: Any, key: str) -> list[Any]:
    """What pandas has written about columns or the index; nothing where it has not."""
    return list(json.loads((schema.metadata or {}).get(b"pandas", b"{}")).get(key, ()))


def _without_index(schema: Any, names: Sequence[str], roles: Roles) -> list[str]:
    """The names of columns, without an index of pandas unless the user named it."""
    index = [name for name in _pandas_metadata(schema, "index_columns") if isinstance(name, str)]
    hidden = set(index).difference(roles.others, roles.columns or ())
    return [name for name in names if name not in hidden]


# Files.


def _open_files(
    source: Any, format: str | None, roles: Roles, dtypes: Any
) -> tuple[Any, dict[str, tuple[str, ...]]]:
    """Files as a dataset with one type a column, and the orders of levels that they declare."""
    pyarrow, datasets = _pyarrow()
    paths = _find_files(source, format)
    endings = {_suffix(path) for path in paths}
    kinds = {format} if format else {_FORMATS[end] for end in endings if end in _FORMATS}
    if len(kinds) != 1:
        found = f"several formats: {', '.join(sorted(kinds))}" if kinds else "no format"
        raise ParameterError(
            f"The names of the files say {found}.",
            "Pass format='parquet', 'csv' or 'ipc', and files of one kind alone.",
        )
    kind: Any = kinds.pop()
    is_csv = kind in ("csv", "tsv")
    if dtypes is not None and not is_csv:
        raise ParameterError(
            f"dtypes is for CSV files; {kind} files have types of their own.",
            "Leave it out, or write the files with other types.",
        )
    if is_csv:
        csv, is_tsv = import_module("pyarrow.csv"), endings == {".tsv"}
        kind = datasets.CsvFileFormat(
            csv.ParseOptions(delimiter="\t" if is_tsv else ",", newlines_in_values=True),
            convert_options=csv.ConvertOptions(strings_can_be_null=True),  # an empty entry
        )
    try:
        found = datasets.dataset(paths, format=kind, partitioning="hive")
        schemas = {each.path: each.physical_schema for each in found.get_fragments()}
        schema = _common_schema(found.schema, schemas, roles, dtypes, is_csv)
        dataset = datasets.dataset(paths, format=kind, partitioning="hive", schema=schema)
        return dataset, _declared_levels(found)
    except (OSError, UnicodeDecodeError, pyarrow.ArrowException) as error:
        raise SourceError(
            f"{str(source)!r} cannot be read: {str(error).rstrip('.')}.",
            "Check the path and the format; text must be written in UTF-8.",
        ) from error


def _find_files(source: Any, format: str | None) -> list[str]:
    """The files that are named, and those in folders and globs whose names say a format.

    In folders and globs hidden files are left out, and marks such as `_SUCCESS`.
    """
    found: list[str] = []
    for each in source if isinstance(source, list | tuple) else [source]:
        if not isinstance(each, str | PathLike):
            raise ParameterError(f"A {type(each).__name__} is not a source of rows.", _NO_SOURCE)
        path = os.path.expanduser(os.fspath(each))
        is_there, given = os.path.exists(path), set(path.split(os.sep))
        files: list[str] = []
        for place in [path] if is_there else sorted(glob(path, recursive=True)):
            inside = os.path.join(escape(place), "**")
            files += [place] if os.path.isfile(place) else sorted(glob(inside, recursive=True))
        files = [
            name
            for name in dict.fromkeys(files)
            if os.path.isfile(name)
            and not any(part[:1] == "_" and part not in given for part in name.split(os.sep))
        ]
        if not files:
            what = f"in the folder {path!r}" if is_there else repr(path)
            raise SourceError(f"There is no file {what}.", "Check the path.")
        known = [name for name in files if _suffix(name) in _FORMATS]
        found += known if known and format is None else files
    if not found:
        raise SourceError("There is no file in the list.", "Name at least one.")
    real = list(map(os.path.realpath, found))
    if len(set(real)) < len(real):
        twice = next(name for name in found if real.count(os.path.realpath(name)) > 1)
        raise SourceError(
            f"The file {twice!r} is named twice, by itself or by its folder.",
            "Name each file once.",
        )
    return found


def _suffix(path: str) -> str:
    """The ending of the name, without that of a compression."""
    name, last = os.path.splitext(path)
    return os.path.splitext(name)[1] if last in (".gz", ".bz2", ".zst") else last


def _common_schema(
    found: Any, schemas: Mapping[str, Any], roles: Roles, dtypes: Any, is_csv: bool
) -> Any:
    """The needed columns, each of a type that has the values of all files; `found` has partitions.

    An error where there is no such type, or a file lacks the column.
    """
    pyarrow = import_module("pyarrow")
    given = dict.fromkeys(roles.categories if is_csv else (), pyarrow.string())
    wanted = {name: pyarrow.type_for_alias(kind) for name, kind in dict(dtypes or {}).items()}
    names = dict.fromkeys([*found.names, *(name for own in schemas.values() for name in own.names)])
    for name in wanted.keys() - names.keys():
        raise ColumnNameError(
            f"dtypes has a type for {name!r}, which is not among the columns.",
            f"They are {listed(list(names), 12)}.",
        )
    given |= wanted
    fields = []
    for name in [*roles.features(_without_index(found, list(names), roles)), *roles.others]:
        kinds = {file: own.field(name).type for file, own in schemas.items() if name in own.names}
        if not kinds:  # a partition
            fields.append(found.field(name))
            continue
        if len(kinds) < len(schemas):
            lacking = next(file for file in schemas if file not in kinds)
            raise SourceError(
                f"The file {lacking} has no column '{name}', which other files have.",
                "Add it there, leave the file out, or leave the column out of columns.",
            )
        kind = given.get(name) or _common_type(name, kinds, is_csv)
        is_label = len(roles.targets) == 1 and name == roles.targets[0]
        if is_csv and not is_label and kind in (pyarrow.int64(), pyarrow.null()):
            kind = pyarrow.float64()
        fields.append(pyarrow.field(name, kind))
    return pyarrow.schema(fields, metadata=found.metadata)


def _common_type(name: str, kinds: Mapping[str, Any], is_csv: bool) -> Any:
    """The type for the values of all files. Dictionaries, which may differ, become text."""
    pyarrow, types = import_module("pyarrow"), import_module("pyarrow.types")
    plain = set()
    for kind in kinds.values():
        coded = types.is_dictionary(kind) and not types.is_string_view(kind.value_type)
        plain.add(kind.value_type if coded else kind)  # dictionaries of views are not decoded
    try:
        every = [pyarrow.schema([(name, kind)]) for kind in plain]
        return pyarrow.unify_schemas(every, promote_options="permissive").field(0).type
    except pyarrow.ArrowException as error:
        files = {str(kind): file for file, kind in kinds.items()}
        places = [f"{kind} in {file}" for kind, file in files.items()]
        remedy = f"; or scan with dtypes={{{name!r}: 'string'}}." if is_csv else "."
        raise SourceError(
            f"Column '{name}' is {', and '.join(places[:2])}.",
            f"Write it alike in all files, or leave it out of columns{remedy}",
        ) from error


def _declared_levels(dataset: Any) -> dict[str, tuple[str, ...]]:
    """The order of levels that the first rows declare: ordered dictionaries, pandas categories."""
    schema, types = dataset.schema, import_module("pyarrow.types")
    columns = _pandas_metadata(schema, "columns")
    written = {each["name"] for each in columns if each["pandas_type"] == "categorical"}
    kinds = {each.name: each.type for each in schema if types.is_dictionary(each.type)}
    names = [name for name, kind in kinds.items() if kind.ordered or name in written]
    first = dataset.head(1, columns=names) if names else None
    if first is None or not first.num_rows:
        return {}
    return {
        name: tuple(map(str, first.column(name).chunk(0).dictionary.to_pylist())) for name in names
    }
