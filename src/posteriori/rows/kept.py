"""Something made of all rows that stays where it was made, and is asked there."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
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
    """Whose memory something can be kept in, and its bytes; None where they are not known.

    There may be several such `places`, each with as many bytes.
    """

    owner: str
    n_bytes: int | None
    places: int = 1


LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where Linux tells a container how much memory it may take."""


def room_here() -> Room:
    """The memory of this machine, or of this container."""
    if not hasattr(os, "sysconf"):
        return Room("this machine", None)
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    allowed = (Path(path).read_text().strip() for path in LIMITS if os.access(path, os.R_OK))
    container = min((int(limit) for limit in allowed if limit.isdigit()), default=machine)
    if container < machine:
        return Room("this container", container)
    return Room("this machine", machine)
