"""Something made of all rows that stays where it was made, and is asked there."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

S = TypeVar("S")
T = TypeVar("T")


class Kept(ABC, Generic[T]):
    """A value that is too large to be brought here."""

    @abstractmethod
    def ask(self, question: Callable[[T], S]) -> S:
        """The answer to a question about the value, which is small."""

    @abstractmethod
    def then(self, make: "Callable[[T], S]") -> "Kept[S]":
        """What is made of the value, kept where it is."""


@dataclass(frozen=True, eq=False)
class Here(Kept[T]):
    """A value in the memory of this process."""

    value: T

    def ask(self, question: Callable[[T], S]) -> S:
        return question(self.value)

    def then(self, make: Callable[[T], S]) -> "Here[S]":
        return Here(make(self.value))


class Room(NamedTuple):
    """Whose memory something can be kept in, and its bytes; None where they are not known."""

    owner: str
    n_bytes: int | None


def room_here() -> Room:
    """The memory of this machine."""
    if not hasattr(os, "sysconf"):
        return Room("this machine", None)
    return Room("this machine", os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
