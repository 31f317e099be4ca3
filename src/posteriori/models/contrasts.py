"""What effects are asked of: columns, what they are changed by, and the values to look at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from posteriori.arguments import either, is_number
from posteriori.errors import ColumnNameError, LevelError, ParameterError
from posteriori.models.populations import Population
from posteriori.models.typical import Entry
from posteriori.rows.changes import Change, Changes, add_to, set_to
from posteriori.rows.schema import Column, Schema, known_levels

ChangeName = Literal["sd", "iqr", "minmax"]
ChangeLike: TypeAlias = float | ChangeName | tuple[float, float]
"""So much more, one standard deviation more, from quartile to quartile, from the smallest entry to
the largest, or from one value to another."""

_SAID: dict[str, str] = {
    "sd": "its standard deviation says nothing",
    "iqr": "the way between its quartiles says nothing",
    "minmax": "its range says nothing",
}
"""Of changes that the rows are to tell, what tells nothing where they do not."""

At: TypeAlias = Literal["mean"] | Mapping[str, Any] | None
"""The rows as they are, the typical row, or the rows with these values in some columns."""


@dataclass(frozen=True)
class Contrast:
    """Two ways in which a column is changed, to be compared, and what to call them."""

    column: int
    label: str
    low: Changes
    high: Changes


@dataclass(frozen=True)
class Place:
    """A population to look at, with changes made to it first; `labels` say which."""

    labels: dict[str, Any]
    population: Population
    changes: Changes = ()


def read_columns(schema: Schema, columns: Any) -> list[int]:
    """Positions of the columns named, by one name or several; of all for None.

    >>> read_columns(Schema.of_names(["age", "bmi"]), "bmi")
    [1]
    >>> read_columns(Schema.of_names(["age", "bmi"]), ["bmi", "weight"])
    Traceback (most recent call last):
    posteriori.errors.ColumnNameError: 'weight' is no column of the rows. Use 'age' or 'bmi'. [P105]
    """
    if columns is None:
        return list(range(len(schema)))
    names = [columns] if isinstance(columns, str) or np.ndim(columns) == 0 else list(columns)
    return [_position(schema, name) for name in names]


def _position(schema: Schema, name: Any) -> int:
    is_place = isinstance(name, int | np.integer) and not isinstance(name, bool)
    if is_place and not schema.named and 0 <= name < len(schema):
        return int(name)
    if not isinstance(name, str) or name not in schema.names:
        known = schema.names
        more = f" (and {len(known) - 8} more)" if len(known) > 8 else ""
        raise ColumnNameError(
            f"{name!r} is no column of the rows.", f"Use {either(known[:8])}{more}."
        )
    return schema.names.index(name)


def numeric_columns(schema: Schema, columns: Any) -> list[int]:
    """Those of the columns named that have slopes; an error if one was named that has none."""
    places = read_columns(schema, columns)
    numeric = [j for j in places if schema.columns[j].kind == "numeric"]
    if columns is not None and len(numeric) < len(places):
        j = next(j for j in places if schema.columns[j].kind != "numeric")
        raise ParameterError(
            f"There is no slope in {schema.describe(j)}, which is {schema.columns[j].kind}.",
            "Use comparisons, which set one level beside another.",
        )
    if not numeric:
        raise ParameterError("None of the columns is numeric.", "Use comparisons.")
    return numeric


def read_contrasts(people: Population, columns: Any, change: ChangeLike) -> list[Contrast]:
    """What is compared in each of the columns named."""
    _check_change(change)
    places = read_columns(people.schema, columns)
    found = [contrast for j in places for contrast in _contrasts(people, j, change)]
    if not found:
        raise ParameterError(
            "None of the columns has two levels to compare.", "Name columns that change."
        )
    return found


def _contrasts(people: Population, j: int, change: ChangeLike) -> list[Contrast]:
    column = people.schema.columns[j]
    if column.kind == "numeric":
        return [_of_numbers(people, j, change)]
    levels = (False, True) if column.kind == "boolean" else column.levels
    return [
        Contrast(j, f"{levels[0]} to {levels[code]}", [set_to(j, 0)], [set_to(j, code)])
        for code in range(1, len(levels))
    ]


def _of_numbers(people: Population, j: int, change: ChangeLike) -> Contrast:
    if is_number(change):
        return Contrast(j, f"{change:+g}", (), [add_to(j, float(change))])
    entry = people.entry(j)
    _check_varies(entry, change)
    if change == "sd":
        return Contrast(j, "+1 sd", (), [add_to(j, entry.deviation)])
    if change == "iqr":
        ends, label = (entry.quantile(0.25), entry.quantile(0.75)), "q1 to q3"
    elif change == "minmax":
        ends, label = (entry.quantile(0.0), entry.quantile(1.0)), "min to max"
    else:
        low, high = change  # type: ignore[misc]
        ends, label = (float(low), float(high)), f"{low:g} to {high:g}"
    return Contrast(j, label, [set_to(j, ends[0])], [set_to(j, ends[1])])


def _check_varies(entry: Entry, change: ChangeLike) -> None:
    """An error where a change that the entries are to tell would be none."""
    name = f"{entry.name[0].upper()}{entry.name[1:]}"
    if isinstance(change, str) and entry.quantile(0.0) == entry.quantile(1.0):
        problem = f"{name} does not vary in these rows, so {_SAID[change]}."
    elif change == "iqr" and entry.quantile(0.25) == entry.quantile(0.75):
        problem = f"{name} has equal quartiles in these rows, so {_SAID[change]}."
    else:
        return
    raise ParameterError(problem, "Pass change=(low, high), or more rows.")


def _check_change(change: Any) -> None:
    if isinstance(change, str) and change in get_args(ChangeName):
        return
    numbers = change if isinstance(change, tuple | list) and len(change) == 2 else (change, 1.0)
    if not all(is_number(value) and np.isfinite(value) for value in numbers):
        raise ParameterError(
            f"change={change!r} is not understood.",
            "Use a number, 'sd', 'iqr', 'minmax', or a pair (low, high).",
        )


def read_places(people: Population, at: At) -> list[Place]:
    """The populations that `at` stands for, one for each combination of the values it gives."""
    if at is None:
        return [Place({}, people)]
    if isinstance(at, str) and at == "mean":
        return [Place({}, people.typical())]
    if not isinstance(at, Mapping) or not at:
        raise ParameterError(
            f"at={at!r} is not understood.", "Use 'mean', or a dict of columns and values."
        )
    columns = [_position(people.schema, name) for name in at]
    choices = [_listed(values) for values in at.values()]
    if not all(choices):
        raise ParameterError("at= has a column without a value.", "Give one value or several.")
    return [
        Place(
            {f"at_{name}": value for name, value in zip(at, values, strict=True)},
            people,
            [_set(people.schema, j, value) for j, value in zip(columns, values, strict=True)],
        )
        for values in product(*choices)
    ]


def _listed(values: Any) -> Sequence[Any]:
    if isinstance(values, str) or np.ndim(values) == 0:
        return [values]
    return list(values)


def _set(schema: Schema, j: int, value: Any) -> Change:
    """The column set to a value that the user gave."""
    column = schema.columns[j]
    if column.kind == "categorical":
        return set_to(j, _code(column, value))
    is_flag = isinstance(value, bool | np.bool_)
    number = is_flag if column.kind == "boolean" else is_number(value) and np.isfinite(value)
    if not number:
        what = "True or False" if column.kind == "boolean" else "a finite number"
        raise ParameterError(
            f"at= sets {schema.describe(j)} to {value!r}.", f"Give {what}, or a list of them."
        )
    return set_to(j, float(value))


def _code(column: Column, level: Any) -> int:
    if level not in column.levels:
        raise LevelError(
            f"at= sets column '{column.name}' to {level!r}, which the fit never saw.",
            known_levels(column.levels),
        )
    return column.levels.index(level)
