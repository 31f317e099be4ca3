"""What is in a page of a Parquet file, and how it lies there: as it is, or through Snappy."""

from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from typing import NamedTuple

from posteriori.rows.page_heads import BY_RUNS, DICTIONARY, HEAD, NotPlain, PageHead, varint

BLOCK = 2**16
"""Bytes that Snappy stores at a time."""

_AT_ONCE = 32
"""Pieces that are read at a stroke."""

BETWEEN = _AT_ONCE * HEAD
"""Bytes that may lie between them."""


def content_of(found: bytes, head: PageHead, snappy: bool) -> bytes:
    """The content of a page in memory."""
    if len(found) != head.n_bytes or (not snappy and head.n_bytes != head.content):
        raise NotPlain
    if not snappy:
        return found
    if not found.startswith(varint(head.content)):
        raise NotPlain
    tags = b"".join(tag for _, tag in blocks_of(head.content, snappy))
    if head.content <= BLOCK and found.startswith(tags) and len(found) == head.content + len(tags):
        return found[len(tags) :]
    return import_module("pyarrow").decompress(found, head.content, "snappy", asbytes=True)


class Piece(NamedTuple):
    """Numbers of a page, from one of their bytes to another, and where in it they are.

    Before them are some bytes that are not theirs, with a mask of which are known.
    """

    start: int
    stop: int
    place: int
    before: bytes
    mask: bytes


@lru_cache
def layout_of(head: PageHead, optional: bool, snappy: bool) -> tuple[Piece, ...]:
    """How a page lies in the file whose content is stored there."""
    levels = levels_of(head, optional)
    before, mask, place, low = head.masked, head.mask, 0, 0
    found: list[Piece] = []
    for size, tag in blocks_of(head.content, snappy):
        before, mask = before + tag + levels, mask + b"\xff" * len(tag + levels)
        place, n_bytes = place + len(before), size - len(levels)
        found.append(Piece(low, low + n_bytes, place, before, mask))
        before, mask, place, low, levels = b"", b"", place + n_bytes, low + n_bytes, b""
    return tuple(found)


class Stretch(NamedTuple):
    """Numbers that are read at a stroke, from one place in a file to another.

    `spans` says where they go, piece by piece, and how many bytes before each are none of them.
    All of these bytes are `before`, as far as `mask` says that they are known.
    """

    begin: int
    end: int
    spans: tuple[tuple[int, slice], ...]
    before: bytes
    mask: bytes


@lru_cache(maxsize=512)
def stretches_of(
    head: PageHead, optional: bool, snappy: bool, low: int, high: int
) -> tuple[Stretch, ...]:
    """Bytes low to high of the numbers in pages that follow upon each other and are all alike."""
    pieces = list(_pieces_of(head, optional, snappy, low, high))
    groups = (pieces[i : i + _AT_ONCE] for i in range(0, len(pieces), _AT_ONCE))
    return tuple(
        Stretch(
            group[0].place - len(group[0].before),
            group[-1].place + group[-1].stop - group[-1].start,
            tuple((len(each.before), slice(each.start - low, each.stop - low)) for each in group),
            b"".join(each.before for each in group),
            b"".join(each.mask for each in group),
        )
        for group in groups
    )


def _pieces_of(
    head: PageHead, optional: bool, snappy: bool, low: int, high: int
) -> Iterator[Piece]:
    """The pieces of these pages; what is before one belongs to it if its first number does."""
    layout = layout_of(head, optional, snappy)
    size = layout[-1].stop
    for number in range(low // size, -(-high // size)):
        for piece in layout:
            first, last = number * size + piece.start, number * size + piece.stop
            start, stop = max(first, low), min(last, high)
            place = number * head.stride + piece.place + start - first
            if first >= low and start < stop:
                yield Piece(start, stop, place, piece.before, piece.mask)
            elif start < stop:
                yield Piece(start, stop, place, b"", b"")


@lru_cache
def blocks_of(content: int, snappy: bool) -> tuple[tuple[int, bytes], ...]:
    """Bytes that are stored at a time, and what Snappy puts before them."""
    if not snappy:
        return ((content, b""),)
    sizes = [min(content - low, BLOCK) for low in range(0, content, BLOCK)]
    return tuple((n, varint(content) * (i == 0) + tag_of(n)) for i, n in enumerate(sizes))


def levels_of(head: PageHead, optional: bool) -> bytes:
    """What comes before the numbers of a page if none of them is missing."""
    if not optional or head.kind == DICTIONARY:
        return b""
    if head.levels != BY_RUNS:
        raise NotPlain
    return _all_there(head.n_rows)


def literal_at(data: bytes, at: int) -> tuple[int, int]:
    """Where the bytes begin that Snappy stores here as they are, and how many these are."""
    kind, size = data[at] & 3, data[at] >> 2
    if kind:
        return at, 0
    n_more = max(size - 59, 0)
    more = int.from_bytes(data[at + 1 : at + 1 + n_more], "little")
    return at + 1 + n_more, 1 + (more if n_more else size)


@lru_cache
def tag_of(n_bytes: int) -> bytes:
    """What Snappy puts before so many bytes, 64 KiB at most, that it stores as they are."""
    if n_bytes <= 60:
        return bytes([(n_bytes - 1) << 2])
    if n_bytes <= 2**8:
        return bytes([60 << 2, n_bytes - 1])
    return bytes([61 << 2]) + (n_bytes - 1).to_bytes(2, "little")


@lru_cache
def _all_there(n_rows: int) -> bytes:
    """What says that none of so many numbers is missing: a run of ones, after its length."""
    run = varint(n_rows << 1) + b"\x01"
    return len(run).to_bytes(4, "little") + run
