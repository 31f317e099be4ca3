"""Readers of the loss of each action in each class, and of the cost of rejecting a row.

Conventions: n rows, K classes, A actions; losses (K, A), or (n, K, A) where rows have their own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np

from posteriori.decision.probabilities import own_names, places_of, read_names, read_numbers
from posteriori.errors import (
    DataError,
    InfiniteValueError,
    MissingValueError,
    ParameterError,
    ShapeError,
)
from posteriori.rows.features import as_frame
from posteriori.rows.target import as_vector
from posteriori.typing import Array, Labels

# An array, a data frame with a row a class and a column an action, or {class: {action: loss}}.
LossLike = Any


@dataclass(frozen=True, eq=False)
class Loss:
    """Losses (K, A) or (n, K, A), and the actions; `zero_one` if each error costs one."""

    values: Array
    actions: Labels
    zero_one: bool = False

    @property
    def shared(self) -> bool:
        """Whether all rows have the same losses."""
        return self.values.ndim == 2


def read_loss(loss: LossLike, classes: Labels, n_rows: int | None, actions: Any = None) -> Loss:
    """The losses with their rows in the order of the classes; None is one for each error.

    `n_rows` is None where no row may have losses of its own.

    >>> read_loss({1: {"go": 9, "stop": 0}, 0: {"go": 0, "stop": 1}}, np.arange(2), None).values
    array([[0., 1.],
           [9., 0.]])
    """
    names: list[Any] | None = None
    if loss is None:
        values = 1 - np.eye(len(classes))
    elif isinstance(loss, Mapping):
        values, names = _from_mapping(loss, classes, n_rows)
    elif (frame := as_frame(loss)) is not None:
        values, names = _from_frame(frame, classes), list(frame.columns)
    else:
        values = read_numbers(loss, "loss")
    values = _shaped(values.astype(np.float64, copy=False), len(classes), n_rows)
    n_actions = values.shape[-1]
    if actions is None and names is None:
        labels = classes if n_actions == len(classes) else np.arange(n_actions)
    elif names is None:
        labels = read_names(actions, n_actions, "actions", "action")
    elif actions is None:
        labels = as_vector(names)
    else:
        labels = as_vector(actions)
        values = values[..., places_of(labels.tolist(), names, "loss", "action")]
    for *row, k, a in np.argwhere(~np.isfinite(values)).tolist():
        name = f"The loss of action {labels.tolist()[a]!r} in class {classes.tolist()[k]!r}"
        raise _not_finite(
            name + "".join(f" of row {i}" for i in row),
            values[*row, k, a],
            "Give each action a finite loss; a forbidden action one that is much larger than the "
            "others.",
        )
    return Loss(values, labels, loss is None)


def _from_mapping(
    loss: Mapping[Any, Any], classes: Labels, n_rows: int | None
) -> tuple[Array, list[Any]]:
    """{class: {action: loss}}, where a loss is a number, or a vector with one a row."""
    keys = list(loss)
    rows = [loss[keys[i]] for i in places_of(classes.tolist(), keys, "loss", "class")]
    if not all(isinstance(row, Mapping) for row in rows):
        raise ParameterError(
            "loss is a dict, but not one from class to action to loss.",
            "Write {class: {action: loss, ...}, ...}.",
        )
    names, cells = list(rows[0]), []
    for row in rows:
        given = list(row.values())
        for place in places_of(names, list(row), "loss", "action"):
            cells.append(_one_or_each(given[place], "A loss", n_rows))
    stacked = np.array(np.broadcast_arrays(*cells))
    values = stacked.reshape(len(classes), len(names), *stacked.shape[len(cells) > 0 :])
    return np.moveaxis(values, -1, 0) if values.ndim == 3 else values, names


def _from_frame(frame: "nw.DataFrame[Any]", classes: Labels) -> Array:
    """A column an action and a row a class: by the index if it has labels, else in order."""
    values = _shaped(read_numbers(frame.to_numpy(), "loss"), len(classes), None)
    index = nw.maybe_get_index(frame)
    labels = None if index is None else own_names(list(index), classes.tolist())
    if labels is None:
        return values
    return values[places_of(classes.tolist(), labels, "loss", "class")]


def _one_or_each(value: Any, name: str, n_rows: int | None) -> Array:
    """One number (), or one a row (n,)."""
    found = read_numbers(value, name).astype(np.float64)
    if found.shape in ((), (n_rows,)):
        return found
    each = "" if n_rows is None else f" or {n_rows} numbers"
    raise ShapeError(
        f"{name} has shape {found.shape}, expected a number{each}.",
        "Give one number, or one a row.",
    )


def _shaped(values: Array, n_classes: int, n_rows: int | None) -> Array:
    """(K, A), or (n, K, A) if the rows have their own."""
    if values.ndim == 2 and len(values) == n_classes and values.size:
        return values
    if values.ndim == 3 and values.shape[:2] == (n_rows, n_classes) and values.shape[2] > 0:
        return values
    each = "" if n_rows is None else f" or ({n_rows}, {n_classes}, actions)"
    raise ShapeError(
        f"loss has shape {values.shape}, expected ({n_classes}, actions){each}.",
        "Give each class a loss for each action.",
    )


def _not_finite(name: str, value: float, remedy: str) -> DataError:
    if np.isnan(value):
        return MissingValueError(f"{name} is missing.", remedy)
    return InfiniteValueError(f"{name} is {value}.", remedy)


def read_reject_cost(cost: Any, n_rows: int | None) -> Array | None:
    """The cost of rejecting, () or (n,), finite; None where no row may be rejected."""
    if cost is None:
        return None
    values = _one_or_each(cost, "reject_cost", n_rows)
    for row in np.argwhere(~np.isfinite(values)).tolist():
        name = "The reject_cost" + "".join(f" of row {i}" for i in row)
        raise _not_finite(name, values[*row], "Give a finite cost, or None to reject no row.")
    return values
