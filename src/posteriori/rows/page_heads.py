"""The heads of the pages of Parquet files, in Thrift's compact protocol."""

from functools import lru_cache
from typing import Any, NamedTuple

HEAD = 512
"""Bytes within which the head of a page is looked for, and what comes before its numbers."""

PLAIN, BY_PLACE, OF_DICTIONARIES, BY_RUNS = 0, (2, 8), (0, 2), 3
"""Codes of the format for encodings: of numbers, as they are or by their places in a dictionary; of
dictionaries; and of which numbers are there."""

DATA, DICTIONARY = 0, 2
"""And for kinds of pages."""

_OWN = {DATA: 5, DICTIONARY: 7}
"""Where in the head of a page is said what is of its kind alone."""


class NotPlain(Exception):
    """A column has not the form that is read here."""


_INTEGERS, _TEXT, _STRUCT = (4, 5, 6), 8, 12
"""Thrift's codes of what fields hold."""

_OTHERS = {1: 0, 2: 0, 3: 1, 7: 8}
"""And what else there may be, with its bytes: true, false, a byte, a double."""

_DEEPEST = 4
"""Structs within structs that a head has at most."""

_FIRST, _MOST_HEADS = 12, 256
"""Bytes by which a head is found among those met last, and how many these are."""


class PageHead(NamedTuple):
    """What the head of a page says, and its bytes, with zeros for the texts in it.

    The pages of a column mostly differ in these alone: the least and the largest of their numbers.
    """

    kind: int
    content: int
    n_bytes: int
    n_rows: int
    encoding: int
    levels: int
    length: int
    mask: bytes
    masked: bytes

    @classmethod
    def of(cls, data: bytes) -> "PageHead":
        """The head that these bytes begin with."""
        kept = bytearray(b"\xff" * len(data))
        head, length = _struct(data, 0, kept, _DEEPEST)
        kind, content, n_bytes = (_whole(head, number) for number in (1, 2, 3))
        own = head.get(_OWN.get(kind, 0))
        if not isinstance(own, dict):
            raise NotPlain
        n_rows, encoding, levels = _whole(own, 1), _whole(own, 2), _whole(own, 3, BY_RUNS)
        if min(kind, content, n_bytes, n_rows, encoding, levels) < 0:
            raise NotPlain
        mask = bytes(kept[:length])
        masked = _masked(data[:length], mask)
        return cls(kind, content, n_bytes, n_rows, encoding, levels, length, mask, masked)

    @property
    def stride(self) -> int:
        """Bytes from the beginning of the page to that of the next."""
        return self.length + self.n_bytes

    def is_of(self, data: bytes) -> bool:
        """Whether these bytes begin with a head that says the same."""
        return _masked(data[: self.length], self.mask) == self.masked


_heads: dict[bytes, PageHead] = {}
"""Those met last, by their first bytes, in which no text is: most pages have one of a few heads."""


def head_of(data: bytes) -> PageHead:
    """The head that these bytes begin with."""
    found = _heads.get(data[:_FIRST])
    if found is None or not found.is_of(data):
        if len(_heads) >= _MOST_HEADS:
            _heads.clear()
        found = _heads[data[:_FIRST]] = PageHead.of(data)
    return found


def _masked(data: bytes, mask: bytes) -> bytes:
    """The bytes with zeros where the mask has some."""
    number = int.from_bytes(data, "little") & int.from_bytes(mask, "little")
    return number.to_bytes(len(mask), "little")


def _struct(data: bytes, at: int, kept: bytearray, deepest: int) -> tuple[dict[int, Any], int]:
    """Integers and structs by the numbers of their fields, and where the struct ends.

    Texts become zeros in `kept`.
    """
    out: dict[int, Any] = {}
    number = 0
    if not deepest:
        raise NotPlain
    while data[at]:
        step, kind = data[at] >> 4, data[at] & 15
        at, number = at + 1, number + step
        if not step:  # which says that the number follows: nobody writes heads so
            raise NotPlain
        if kind in _INTEGERS:
            value, at = integer(data, at)
            out[number] = (value >> 1) ^ -(value & 1)
        elif kind == _STRUCT:
            out[number], at = _struct(data, at, kept, deepest - 1)
        elif kind == _TEXT:
            n_bytes, at = integer(data, at)
            end = min(at + n_bytes, len(data))
            kept[at:end] = bytes(end - at)
            at += n_bytes
        elif kind in _OTHERS:
            at += _OTHERS[kind]
        else:
            raise NotPlain
    return out, at + 1


def _whole(struct: dict[int, Any], number: int, otherwise: int = -1) -> int:
    """A field that is an integer; -1 if it is something else."""
    value = struct.get(number, otherwise)
    return value if isinstance(value, int) else -1


def integer(data: bytes, at: int) -> tuple[int, int]:
    """A number by seven bits a byte, and where it ends."""
    value = shift = 0
    while data[at] > 127:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if shift > 63:
            raise NotPlain
    return value | data[at] << shift, at + 1


@lru_cache
def varint(value: int) -> bytes:
    """A number by seven bits a byte, the lowest first."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])
