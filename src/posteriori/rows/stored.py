"""Blocks of rows on disk, for what must visit them again and again and has no room for them."""

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from posteriori.errors import SourceError
from posteriori.rows.block import Block
from posteriori.rows.scratch import Place, Scratch, name_of

S = TypeVar("S")

_ALIGNED = 64
"""Arrays begin at multiples of this, as they do in memory."""


class _Kept(NamedTuple):
    """Where a block lies, and where in it its parts end."""

    place: Place
    ends: tuple[int, ...]


class Stored:
    """Blocks by a number of their own, in a file without a name in `folder`."""

    def __init__(self, folder: str | None) -> None:
        self._folder = folder
        with self._told():
            self._scratch = Scratch(folder)
        self._kept: dict[int, _Kept] = {}

    def put(self, number: int, block: Block) -> None:
        """Keep a block under this number."""
        arrays: list[pickle.PickleBuffer] = []
        head = pickle.dumps(block, protocol=5, buffer_callback=arrays.append)
        pieces: list[Any] = []
        ends: list[int] = []
        size = 0
        for part in (head, *(array.raw() for array in arrays)):
            gap = -len(part) % _ALIGNED
            pieces += [part, bytes(gap)]
            ends.append(size + len(part))
            size += len(part) + gap
        with self._told():
            self._kept[number] = _Kept(self._scratch.add(pieces), tuple(ends))

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What the disk refuses is told with the folder."""
        try:
            yield
        except OSError as error:
            raise SourceError(
                f"The rows cannot be put in order in {name_of(self._folder)}: {error}.",
                "Name a folder with room, scan(..., cache='...'); or set shuffle=False, which "
                "visits them in the order in which they lie.",
            ) from error

    def get(self, number: int) -> Block:
        """The block of this number, in memory only where it is looked at."""
        place, ends = self._kept[number]
        window = self._scratch.window(place)
        begins = (0, *(-(-end // _ALIGNED) * _ALIGNED for end in ends))
        head, *arrays = (window[low:high] for low, high in zip(begins, ends, strict=False))
        return pickle.loads(head, buffers=arrays)

    def fold(self, step: Callable[[S, Block], S], state: S, turns: Sequence[int]) -> S:
        """The state after `step` has seen the blocks of these numbers, one after the other."""
        for number in turns:
            state = step(state, self.get(number))
        return state
