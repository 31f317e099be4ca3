"""CSV files, in which a column may turn out to hold more than its first rows show."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from importlib import import_module
from io import BytesIO
from typing import Any, NamedTuple, TypeVar

from posteriori.errors import SourceError

T = TypeVar("T")

_MISFIT = re.compile(
    r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to .+?: invalid value '(.*)'",
    re.DOTALL,
)
"""How pyarrow tells of a value that is not of the type of its column."""

_NEWLINES = "newlines_in_values"
"""What pyarrow names where lines were cut within quotes."""


class Widened(Exception):
    """A column has got a wider type, or lines another end: read again."""


def until_types_hold(read: Callable[[], T]) -> T:
    """What `read` gives, begun again as often as a column gets a wider type."""
    while True:
        try:
            return read()
        except Widened:
            continue


def csv_format(separator: str, newlines: bool = False) -> Any:
    """How text is cut into values. An empty entry is missing, in a column of text as in others."""
    csv = import_module("pyarrow.csv")
    return import_module("pyarrow.dataset").CsvFileFormat(
        csv.ParseOptions(delimiter=separator, newlines_in_values=newlines),
        convert_options=csv.ConvertOptions(strings_can_be_null=True),
    )


class CsvFiles:
    """A dataset of CSV files whose types grow with what is read.

    pyarrow learns types from the first megabyte of each file. Where a later value does not fit,
    its column gets a wider type for all who hold these files, and `Widened` tells them to begin
    again. So files whose first megabyte tells the truth are read no more than once. `mixed` has the
    errors of columns that hold text in some files, unless they are to be read as text.
    """

    def __init__(self, dataset: Any, mixed: Mapping[str, Callable[[], SourceError]]) -> None:
        self._dataset, self._mixed = dataset, mixed

    @property
    def schema(self) -> Any:
        return self._dataset.schema

    @property
    def files(self) -> list[str]:
        return self._dataset.files

    def declare_doubles(self, names: Iterable[str]) -> None:
        """Take whole numbers in these columns for doubles, which they are used as anyway."""
        pyarrow = import_module("pyarrow")
        whole = [name for name in names if self.schema.field(name).type == pyarrow.int64()]
        self._declare(dict.fromkeys(whole, pyarrow.float64()))

    def with_text(self, names: Collection[str]) -> "CsvFiles":
        """The same files, these columns of theirs read as they are written."""
        if not names:
            return self
        text = import_module("pyarrow").string()
        written = {
            name for file in self._dataset.get_fragments() for name in file.physical_schema.names
        }
        types = {name: text for name in names if name in written}
        if all(self.schema.field(name).type == text and name not in self._mixed for name in types):
            return self
        mixed = {name: error for name, error in self._mixed.items() if name not in types}
        found = CsvFiles(self._dataset, mixed)
        found._declare(types)
        return found

    def to_batches(self, columns: list[str], **options: Any) -> Iterator[Any]:
        """As of a dataset, but file by file: pyarrow does not say in which one it has failed."""
        for name in columns:
            if name in self._mixed:
                raise self._mixed[name]()
        invalid = import_module("pyarrow").ArrowInvalid
        for file in self._dataset.get_fragments():
            try:
                yield from file.to_batches(schema=self.schema, columns=columns, **options)
            except invalid as error:
                if (
                    _NEWLINES in str(error)
                    and not self._dataset.format.parse_options.newlines_in_values
                ):
                    self._allow_newlines()
                    raise Widened from error
                misfit = _Misfit.of(file, str(error))
                if misfit is None:
                    raise SourceError(
                        f"The file {file.path} cannot be read: {error}.", "Correct it there."
                    ) from error
                self._make_room(misfit)
                raise Widened from error

    def _make_room(self, misfit: "_Misfit") -> None:
        """The type that holds the value too; an error if there is none."""
        held = self.schema.field(misfit.column).type
        wider = _wider(held, _type_of(misfit.value))
        if wider is None:
            raise misfit.error(held)
        self._declare({misfit.column: wider})

    def _declare(self, types: dict[str, Any]) -> None:
        pyarrow, datasets = import_module("pyarrow"), import_module("pyarrow.dataset")
        old = self._dataset
        fields = [field.with_type(types.get(field.name, field.type)) for field in old.schema]
        self._dataset = datasets.FileSystemDataset(
            list(old.get_fragments()), pyarrow.schema(fields), old.format, old.filesystem
        )

    def _allow_newlines(self) -> None:
        """Look for quotes before lines are cut, which takes longer."""
        old = self._dataset
        format = csv_format(old.format.parse_options.delimiter, newlines=True)
        fragments = [
            format.make_fragment(file.path, file.filesystem, file.partition_expression)
            for file in old.get_fragments()
        ]
        self._dataset = import_module("pyarrow.dataset").FileSystemDataset(
            fragments, old.schema, format, old.filesystem
        )


class _Misfit(NamedTuple):
    """A value that is not of the type of its column, and where it stands."""

    path: str
    line: str | None
    column: str
    value: str

    @classmethod
    def of(cls, file: Any, message: str) -> "_Misfit | None":
        """From what pyarrow says; None if it speaks of something else."""
        found = _MISFIT.search(message)
        if found is None:
            return None
        place, line, value = found.groups()
        return cls(file.path, line, file.physical_schema.names[int(place)], value)

    def error(self, held: Any) -> SourceError:
        line = "" if self.line is None else f", line {int(self.line):,},"
        is_number = str(held) in ("int64", "double")
        return SourceError(
            f"The file {self.path}{line} has {self.value!r} in column '{self.column}', which "
            f"holds {'numbers' if is_number else held} elsewhere.",
            "Correct the value, or leave it empty if it is missing; if the column is meant to be "
            "text, name its levels by categories, or scan a pyarrow dataset in which it is a "
            "string.",
        )


def _wider(held: Any, found: Any) -> Any:
    """The type for values of both; None where numbers would become text by a slip of the pen."""
    pyarrow = import_module("pyarrow")
    if found == pyarrow.null():
        return None
    if held == pyarrow.null():
        return found
    if held == pyarrow.bool_():
        return pyarrow.string()
    # A whole number that does not fit is too large.
    is_wider = held == pyarrow.int64() and found == pyarrow.float64()
    return pyarrow.float64() if is_wider else None


def _type_of(value: str) -> Any:
    """The type that pyarrow would have learnt, had the value stood in the first rows."""
    csv = import_module("pyarrow.csv")
    text = 'value\n"{}"\n'.format(value.replace('"', '""'))
    lines = csv.ParseOptions(newlines_in_values=True)
    return csv.read_csv(BytesIO(text.encode()), parse_options=lines).schema.types[0]
