"""What the user names, as a pyarrow dataset whose types hold what any of its files has."""

import json
from importlib import import_module
from typing import Any, NamedTuple

from posteriori.errors import ColumnTypeError, ParameterError, SourceError
from posteriori.rows.chunk import Roles
from posteriori.rows.csv import CsvFiles, csv_format
from posteriori.rows.paths import FORMATS, files_in, format_of, separator_of


def read_dataset(source: Any, format: str | None, roles: Roles) -> Any:
    """A path, a glob, a folder, a list of files or a dataset, as a pyarrow dataset or CSV files.

    The types of a dataset are the user's word; those of CSV files are ours to widen.
    """
    try:
        datasets = import_module("pyarrow.dataset")
    except ImportError as error:
        raise ParameterError(
            "Files are read by pyarrow, which is not installed.",
            "Install it: pip install 'posteriori[files]'.",
        ) from error
    if isinstance(source, datasets.Dataset):
        return source
    if format is not None and format not in FORMATS.values():
        raise ParameterError(
            f"format={format!r} is not known.", "Use 'parquet', 'csv' or 'ipc', or leave it out."
        )
    paths = files_in(source, format)
    kind: Any = format or format_of(paths)
    is_csv = kind == "csv"
    if is_csv:
        kind = csv_format(separator_of(paths))
    names = [str(path) for path in paths]
    try:
        found = datasets.dataset(names, format=kind, partitioning="hive")
        # Of all files: the first may have no rows to tell types by.
        every = {name: datasets.dataset(name, format=kind).schema for name in names}
        whole, mixed = _unified(found.schema, every, is_csv)
        if not is_csv:
            whole = _without(whole, mixed, roles)
        dataset = datasets.dataset(names, format=kind, partitioning="hive", schema=whole)
    except (OSError, UnicodeDecodeError, import_module("pyarrow").ArrowException) as error:
        raise SourceError(
            f"{str(source)!r} cannot be read: {error}.",
            "Look at the path and the format; text must be written in UTF-8.",
        ) from error
    return CsvFiles(dataset, {each.column: each.error for each in mixed}) if is_csv else dataset


class Clash(NamedTuple):
    """A column of which two files hold what has no type in common."""

    column: str
    one: tuple[str, Any]
    other: tuple[str, Any]

    def error(self) -> SourceError:
        (file, held), (second, found) = self.one, self.other
        return SourceError(
            f"Column '{self.column}' holds {held} in {file}, and {found} in {second}.",
            "Write it alike in all files, or leave it out of columns; in CSV files it is read as "
            "text if categories names its levels.",
        )


def _unified(found: Any, every: dict[str, Any], is_csv: bool) -> tuple[Any, list[Clash]]:
    """All columns, each of the type that holds what any of the files has of it.

    Those that have none are text, and told of. `found` has the columns that folders name, too.
    """
    pyarrow = import_module("pyarrow")
    held: dict[str, dict[Any, str]] = {name: {} for name in found.names}
    for file, schema in {**every, "the names of folders": found}.items():
        for field in schema:
            held.setdefault(field.name, {}).setdefault(field.type, file)
    types, mixed = {}, []
    for name, kinds in held.items():
        kind = _common(list(kinds), is_csv)
        if kind is None:
            mixed.append(_clash(name, kinds, is_csv))
        types[name] = pyarrow.string() if kind is None else kind
    return pyarrow.schema(list(types.items()), metadata=found.metadata), mixed


def _clash(name: str, found: dict[Any, str], is_csv: bool) -> Clash:
    pairs = (
        (one, other) for one in found for other in found if _common([one, other], is_csv) is None
    )
    one, other = next(pairs)
    return Clash(name, (found[one], one), (found[other], other))


def _common(kinds: list[Any], is_csv: bool) -> Any:
    """The type for values of all these types; None where there is none."""
    pyarrow, types = import_module("pyarrow"), import_module("pyarrow.types")
    kinds = list(dict.fromkeys(plain_type(kind) for kind in kinds if kind != pyarrow.null()))
    if len(kinds) < 2:
        return kinds[0] if kinds else pyarrow.null()
    if all(map(_is_text, kinds)):
        return pyarrow.string()
    if all(types.is_integer(kind) or types.is_floating(kind) for kind in kinds):
        fields = [pyarrow.schema([("one", kind)]) for kind in kinds]
        return pyarrow.unify_schemas(fields, promote_options="permissive").field(0).type
    if all(types.is_integer(k) or types.is_floating(k) or types.is_decimal(k) for k in kinds):
        return pyarrow.float64()
    truth_or_text = all(_is_text(kind) or types.is_boolean(kind) for kind in kinds)
    return pyarrow.string() if is_csv and truth_or_text else None


def plain_type(kind: Any) -> Any:
    """A type that all the rest knows how to read, for one that holds the same values."""
    pyarrow, types = import_module("pyarrow"), import_module("pyarrow.types")
    if types.is_decimal(kind) and not types.is_decimal128(kind):
        return pyarrow.float64()
    return pyarrow.string() if str(kind) == "string_view" else kind


def _is_text(kind: Any) -> bool:
    types = import_module("pyarrow.types")
    inner = kind.value_type if types.is_dictionary(kind) else kind
    return str(inner) in ("string", "large_string", "string_view")


def _without(schema: Any, mixed: list[Clash], roles: Roles) -> Any:
    """Without columns that have no type; an error where one of them is needed."""
    needed = roles.needed(without_index(schema, roles))
    for each in mixed:
        if each.column in needed:
            raise each.error()
        schema = schema.remove(schema.get_field_index(each.column))
    return schema


def without_index(schema: Any, roles: Roles) -> list[str]:
    """The names of columns, but for an index of pandas that nobody has asked for."""
    told = json.loads((schema.metadata or {}).get(b"pandas", b"{}")).get("index_columns", ())
    asked = {*roles.targets, roles.weight, roles.offset, *(roles.columns or ())}
    return [name for name in schema.names if name not in told or name in asked]


def check_types(schema: Any, roles: Roles) -> None:
    """An error for a feature that is neither a number nor a level, before any row is read."""
    types = import_module("pyarrow.types")
    for name in filter(None, (*roles.targets, roles.weight, roles.offset)):
        if types.is_nested(schema.field(name).type):
            raise ColumnTypeError(
                f"Column '{name}' holds {schema.field(name).type}, several values a row.",
                "Write one value a row; shares of classes are a column for each class.",
            )
    for name in roles.features(schema.names):
        kind = schema.field(name).type
        inner = kind.value_type if types.is_dictionary(kind) else kind
        known = (
            types.is_integer,
            types.is_floating,
            types.is_decimal,
            types.is_boolean,
            types.is_string,
            types.is_large_string,
            types.is_null,
        )
        if not any(is_it(inner) for is_it in known):
            raise ColumnTypeError(
                f"Column '{name}' holds {kind}, which is neither a number nor a level.",
                "Leave it out of columns, or write it as numbers or strings"
                + (", in UTF-8." if types.is_binary(inner) else "."),
            )
