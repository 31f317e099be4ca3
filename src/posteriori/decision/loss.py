"""The loss of each action in each class, as the user has it, and the cost of rejecting.

Conventions: n rows, K classes, A actions; losses (K, A), or (n, K, A) where rows have their own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np

from posteriori.decision.probabilities import check_distinct, own_names, places_of
from posteriori.errors import (
    InfiniteValueError,
    MissingValueError,
    ParameterError,
    ShapeError,
)
from posteriori.rows.features import as_frame
from posteriori.rows.target import as_vector
from posteriori.typing import Array, Labels

LossLike = Any
"""An array, a data frame with a row a class and a column an action, or {class: {action: loss}}."""

LARGEST_LOSS = 1e300
"""Sums of losses up to this size do not leave the doubles."""


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

    def check(self, values: Array, classes: Labels, first: int | None = None) -> None:
        """An error if a loss is missing or too large; `first` is the number of the first row."""
        bad = np.argwhere(~(abs(values) <= LARGEST_LOSS))  # so is NaN
        if not len(bad):
            return
        *rows, k, a = bad[0].tolist()
        what = (
            f"The loss of action {self.actions.tolist()[a]!r} in class {classes.tolist()[k]!r}"
            f"{f' of row {first + rows[0]}' if first is not None and rows else ''}"
        )
        if np.isnan(values[tuple(bad[0])]):
            raise MissingValueError(f"{what} is missing.", "Give every action a loss.")
        raise InfiniteValueError(
            f"{what} is {values[tuple(bad[0])]}.",
            "Give an action that must not be taken a loss that is large beside the others.",
        )


def read_loss(loss: LossLike, classes: Labels, n_rows: int | None, actions: Any = None) -> Loss:
    """The losses with their rows in the order of the classes; None is one for each error.

    `n_rows` is None where no row may have losses of its own.

    >>> read_loss({1: {"go": 9, "stop": 0}, 0: {"go": 0, "stop": 1}}, np.arange(2), None).values
    array([[0., 1.],
           [9., 0.]])
    """
    if loss is None:
        found = Loss(1 - np.eye(len(classes)), _named(actions, classes, len(classes)), True)
    elif isinstance(loss, Mapping):
        found = _from_mapping(loss, classes, n_rows, actions)
    elif (frame := as_frame(loss)) is not None:
        found = _from_frame(frame, classes, actions)
    else:
        values = _numbers(loss, "loss")
        n_actions = values.shape[-1] if values.ndim else 0
        found = Loss(_shaped(values, len(classes), n_rows), _named(actions, classes, n_actions))
    if found.shared:
        found.check(found.values, classes)
    return found


def _from_mapping(
    loss: Mapping[Any, Any], classes: Labels, n_rows: int | None, actions: Any
) -> Loss:
    """{class: {action: loss}}, where a loss is a number, or a vector with one a row."""
    keys = list(loss)
    rows = [loss[keys[i]] for i in places_of(classes.tolist(), keys, "loss", "class")]
    if not all(isinstance(row, Mapping) for row in rows):
        raise ParameterError(
            "loss is a dict, but not one from class to action to loss.",
            "Write {class: {action: loss, ...}, ...}.",
        )
    names = list(rows[0]) if actions is None else as_vector(actions).tolist()
    cells = [cell for row in rows for cell in _cells(row, names, n_rows)]
    stacked = np.array(np.broadcast_arrays(*cells))
    values = stacked.reshape(len(classes), len(names), *stacked.shape[len(cells) > 0 :])
    values = np.moveaxis(values, -1, 0) if values.ndim == 3 else values
    return Loss(_shaped(values, len(classes), n_rows), as_vector(names))


def _cells(row: Mapping[Any, Any], names: Sequence[Any], n_rows: int | None) -> list[Array]:
    """The losses of the actions in a class, each () or (n,)."""
    keys = list(row)
    cells = [_numbers(row[keys[i]], "loss") for i in places_of(names, keys, "loss", "action")]
    for cell in cells:
        if cell.shape not in ((), (n_rows,)):
            raise _wrong_shape(cell.shape, "a number" + _or_rows(n_rows, ""))
    return cells


def _from_frame(frame: "nw.DataFrame[Any]", classes: Labels, actions: Any) -> Loss:
    """A column an action and a row a class: by the index where that has labels, or in order."""
    values = _shaped(_numbers(frame.to_numpy(), "loss"), len(classes), None)
    index = nw.maybe_get_index(frame)
    labels = None if index is None else own_names(list(index), classes.tolist())
    if labels is not None:
        values = values[places_of(classes.tolist(), labels, "loss", "class")]
    names = list(frame.columns)
    if actions is None:
        return Loss(values, as_vector(names))
    wanted = as_vector(actions)
    return Loss(values[:, places_of(wanted.tolist(), names, "loss", "action")], wanted)


def _numbers(values: Any, name: str) -> Array:
    try:
        found = as_vector(values)
        if found.dtype.kind in "fiubO":
            return found.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"{name} does not hold numbers in a regular shape: {error}.", "Give numbers."
        ) from error
    raise ParameterError(f"{name} does not hold numbers.", "Give numbers.")


def _shaped(values: Array, n_classes: int, n_rows: int | None) -> Array:
    """(K, A), or (n, K, A) if the rows have their own; either of n and K may be 1 in the latter."""
    if values.ndim == 2 and len(values) == n_classes and values.size:
        return values
    fits = values.ndim == 3 and n_rows is not None and values.shape[2] > 0
    if fits and values.shape[0] in (1, n_rows) and values.shape[1] in (1, n_classes):
        return np.broadcast_to(values, (n_rows or 0, n_classes, values.shape[2]))
    raise _wrong_shape(values.shape, f"({n_classes}, actions)" + _or_rows(n_rows, n_classes))


def _or_rows(n_rows: int | None, n_classes: int | str) -> str:
    if n_rows is None:
        return ""
    return f" or ({n_rows}{f', {n_classes}, actions' if n_classes else ','})"


def _wrong_shape(shape: tuple[int, ...], expected: str) -> ShapeError:
    return ShapeError(
        f"loss has shape {shape}, expected {expected}.", "Give each class a loss for each action."
    )


def _named(actions: Any, classes: Labels, n_actions: int) -> Labels:
    """The actions: as given, else the classes if there are as many, else their numbers."""
    if actions is None:
        return classes if n_actions == len(classes) else np.arange(n_actions)
    names = as_vector(actions)
    if names.shape != (n_actions,):
        raise ShapeError(
            f"loss has {n_actions} actions, but actions has shape {names.shape}.",
            "Name each action once, in the order of the columns of loss.",
        )
    check_distinct(names.tolist(), "actions", "action")
    return names


def read_reject_cost(cost: Any, n_rows: int | None) -> Array | None:
    """The cost of rejecting, () or (n,), finite; None where no row may be rejected."""
    if cost is None:
        return None
    values = _numbers(cost, "reject_cost")
    if values.shape not in ((), (n_rows,)):
        raise ShapeError(
            f"reject_cost has shape {values.shape}, expected a number{_or_rows(n_rows, '')}.",
            "Give one cost, or one a row.",
        )
    bad = ~(abs(values) <= LARGEST_LOSS)
    if bad.any():
        where = f" of row {int(bad.argmax())}" * values.ndim
        kind = MissingValueError if np.isnan(values[bad][0]) else InfiniteValueError
        raise kind(
            f"The reject_cost{where} is {values[bad][0]}.",
            "Give a cost below 1e300, or None if no row may be rejected.",
        )
    return values


def reject_label(actions: Sequence[Any]) -> str | None:
    """What stands for a row that is rejected: "reject" among words, None among other labels."""
    if not all(isinstance(action, str) for action in actions):
        return None
    if "reject" in actions:
        raise ParameterError(
            "An action is called 'reject', as rejecting itself is.",
            "Give the action another name, or leave reject_cost out.",
        )
    return "reject"
