"""Which family each column has: chosen by the user, or from the column's type."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from posteriori.errors import ParameterError
from posteriori.likelihood.families import FAMILIES
from posteriori.rows.schema import Kind, Schema

FamilyLike: TypeAlias = str | Mapping[Any, str]
"""The name of a family, "auto", or names by column name or place."""

_BY_KIND: dict[Kind, str] = {
    "boolean": "bernoulli",
    "categorical": "categorical",
    "numeric": "gaussian",
}


def read_families(family: FamilyLike, schema: Schema) -> tuple[str, ...]:
    """The family of each column.

    >>> read_families({"y": "poisson"}, Schema.of_names(["x", "y"]))
    ('gaussian', 'poisson')
    """
    if not isinstance(family, Mapping):
        for j in schema.categorical or [0]:
            _check_name(family, schema, j)
        if family != "auto":
            return (family,) * len(schema)
        family = {}
    chosen = {_place(key, schema): name for key, name in family.items()}
    if len(chosen) < len(family):
        raise ParameterError("family names a column twice.", "Name each column once.")
    for j, name in chosen.items():
        _check_name(name, schema, j)
    return tuple(_resolve(chosen.get(j, "auto"), c.kind) for j, c in enumerate(schema.columns))


def _resolve(name: str, kind: Kind) -> str:
    return _BY_KIND[kind] if name == "auto" else name


def _place(key: object, schema: Schema) -> int:
    if isinstance(key, int | np.integer) and 0 <= key < len(schema):
        return int(key)
    if isinstance(key, str) and key in schema.names:
        return schema.names.index(key)
    raise ParameterError(
        f"family names a column {key!r}, which is not there.",
        f"The columns are {schema.describe_all(range(len(schema)))}.",
    )


def _check_name(name: object, schema: Schema, j: int) -> None:
    if not isinstance(name, str) or (name != "auto" and name not in FAMILIES):
        raise ParameterError(
            f"There is no family {name!r}.", f"Choose 'auto' or one of {sorted(FAMILIES)}."
        )
    if schema.columns[j].kind == "categorical" and name not in ("auto", "categorical"):
        raise ParameterError(
            f"{schema.describe(j).capitalize()} holds levels, which cannot be {name}.",
            "Turn it into numbers, or choose 'categorical' or 'auto' for it.",
        )
