"""Classes and actions by name: which of the names given belongs where."""

from collections.abc import Sequence
from typing import Any

from posteriori.errors import ParameterError


def places_of(wanted: Sequence[Any], given: Sequence[Any], what: str, kind: str) -> list[int]:
    """Where each of the names wanted stands among those given; an error unless they are the same.

    Names of columns may be the labels spelt out: "0" for 0.

    >>> places_of([0, 1], ["1", "0"], "loss", "class")
    [1, 0]
    """
    if all(isinstance(name, str) for name in given):
        given = _as_labels(wanted, given)
    unknown = [name for name in given if name not in wanted]
    absent = [name for name in wanted if name not in given]
    if unknown or absent:
        found = f"an unknown {kind} {unknown[0]!r}" if unknown else f"no {kind} {absent[0]!r}"
        raise ParameterError(
            f"{what} has {found}.", f"Give one number for each {kind} of {list(wanted)[:8]}."
        )
    check_distinct(given, what, kind)
    place = {name: i for i, name in enumerate(given)}
    return [place[name] for name in wanted]


def check_distinct(names: Sequence[Any], what: str, kind: str) -> None:
    """An error if two of the names are the same."""
    if len(set(names)) != len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise ParameterError(f"{what} has the {kind} {twice!r} twice.", f"Name each {kind} once.")


def own_names(names: Sequence[Any], labels: Sequence[Any]) -> Sequence[Any] | None:
    """Names of rows or columns; None if they are but their numbers, and not the labels.

    >>> own_names([0, 1], ["no", "yes"]), own_names([0, 1], [1, 0])
    (None, [0, 1])
    """
    are_numbers = list(names) == list(range(len(names)))
    return None if are_numbers and set(names) != set(labels) else names


def _as_labels(labels: Sequence[Any], words: Sequence[Any]) -> list[Any]:
    """The labels that the words spell out; other words as they are."""
    meant = {str(label): label for label in labels}
    return [meant.get(word, word) for word in words]
