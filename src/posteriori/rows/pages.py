"""Numbers that lie in a Parquet file as they do in memory, and are read without being decoded.

Doubles that seldom repeat are stored in plain pages. Snappy finds nothing to compress in them, and
stores them as they are, 64 KiB at a time with three bytes between. So one call of the system brings
many pages of a column to where they are wanted, past all that lies between. Where that is follows
from a few heads of pages, as they are mostly alike; and what lies between is looked at when it
comes along. A column of any other kind is left to pyarrow.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from posteriori.rows.page_content import (
    BETWEEN,
    Stretch,
    blocks_of,
    content_of,
    levels_of,
    literal_at,
    stretches_of,
)
from posteriori.rows.page_heads import (
    BY_PLACE,
    DATA,
    DICTIONARY,
    HEAD,
    OF_DICTIONARIES,
    PLAIN,
    NotPlain,
    PageHead,
    head_of,
    integer,
    varint,
)

WIDTH = 8
"""Bytes of a number."""

_LEAST = 0.5
"""Share of the rows of a column that must be in such pages, and of their bytes in the file."""

_PACKED = 1 / 4
"""Share of the rows whose pages may be compressed after all, as two numbers are alike by chance."""

_PAGE_ROWS = 2**11
"""Rows that a page has on average at least: each takes Python as long as pyarrow some hundred."""

_PIECES = 1000
"""Pieces of memory that are filled at once, of which systems take 1,024."""


class Pages(NamedTuple):
    """Pages that are alike, one after the other, with the numbers of the rows from start to stop.

    `place` is where the head of the first begins. `stored` says that a page has as many bytes in
    the file as in memory, with Snappy's tags.
    """

    start: int
    stop: int
    place: int
    head: PageHead
    stored: bool


@dataclass(frozen=True, eq=False)
class PlainColumn:
    """A column of doubles in a row group, in plain pages from the row `first` on.

    `optional` says that numbers could be missing, `snappy` that pages went through Snappy. Pages
    that turn out to be compressed, though they have the size of such as are stored, are noted.
    """

    pages: tuple[Pages, ...]
    optional: bool
    snappy: bool
    compressed: set[int] = field(default_factory=set)

    @property
    def first(self) -> int:
        return self.pages[0].start

    def read(self, file: int, low: int, high: int, out: memoryview) -> None:
        """Rows low to high, the bytes of which go to `out`; NotPlain if they are not as it seemed.

        All rows of a page must be read in order: what is before them is seen with the first.
        """
        try:
            self._fill(file, low, high, out)
        except _Otherwise:
            self.compressed.update(self._places(low, high))
            self._fill(file, low, high, out)

    def _fill(self, file: int, low: int, high: int, out: memoryview) -> None:
        run = _Run(file)
        for place, head, stored, begin, n_bytes in self._wanted(low, high):
            if stored:
                end = begin + n_bytes
                for stretch in stretches_of(head, self.optional, self.snappy, begin, end):
                    run.ask_for(place, stretch, out)
            else:
                out[:n_bytes] = self._unpacked(file, place, head)[begin : begin + n_bytes]
            out = out[n_bytes:]
        run.read()

    def _wanted(self, low: int, high: int) -> Iterator["_Wanted"]:
        """The pages of rows low to high: all at once that are alike, if none is compressed."""
        for start, stop, place, head, stored in self.pages:
            end = min(stop, high)
            while low < end:
                number, row = divmod(low - start, head.n_rows)
                here = place + number * head.stride
                n_rows = end - low
                if self.compressed or not stored:
                    n_rows = min(n_rows, head.n_rows - row)
                is_stored = stored and here not in self.compressed
                yield _Wanted(here, head, is_stored, WIDTH * row, WIDTH * n_rows)
                low += n_rows

    def _places(self, low: int, high: int) -> Iterator[int]:
        """Where the pages of rows low to high begin."""
        for start, stop, place, head, _ in self.pages:
            first, last = max(low, start) - start, min(high, stop) - 1 - start
            if first <= last:
                for number in range(first // head.n_rows, last // head.n_rows + 1):
                    yield place + number * head.stride

    def _unpacked(self, file: int, place: int, head: PageHead) -> memoryview:
        """The numbers of a page that Snappy has compressed."""
        found = os.pread(file, head.stride, place)
        if not head.is_of(found):
            raise NotPlain
        content = content_of(found[head.length :], head, self.snappy)
        levels = levels_of(head, self.optional)
        if not content.startswith(levels):
            raise NotPlain
        return memoryview(content)[len(levels) :]


class _Wanted(NamedTuple):
    """Bytes of the numbers of pages: where these begin, what they are, from which on and how many.

    Pages that are not `stored` as they are come one by one.
    """

    place: int
    head: PageHead
    stored: bool
    begin: int
    n_bytes: int


class _Otherwise(Exception):
    """Something is not what should lie between numbers."""


class _Run:
    """Pieces of a file that come one after the other, with something between them."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._begin = self._end = 0
        self._pieces: list[memoryview] = []
        self._between = memoryview(bytearray(BETWEEN))
        self._before: list[bytes] = []
        self._masks: list[bytes] = []
        self._n_before = 0

    def ask_for(self, place: int, stretch: Stretch, out: memoryview) -> None:
        """A stretch of pages that begin at a place."""
        n_before = self._n_before + len(stretch.before)
        n_pieces = len(self._pieces) + 2 * len(stretch.spans)
        if place + stretch.begin != self._end or n_pieces > _PIECES or n_before > BETWEEN:
            self.read()
            self._begin = place + stretch.begin
        at = self._n_before
        for size, span in stretch.spans:
            if size:
                self._pieces.append(self._between[at : at + size])
                at += size
            self._pieces.append(out[span])
        self._before.append(stretch.before)
        self._masks.append(stretch.mask)
        self._n_before, self._end = at, place + stretch.end

    def read(self) -> None:
        """Fill all pieces; an error if something else is between them than should be."""
        if not self._pieces:
            return
        _read_all(self._file, self._pieces, self._begin, self._end)
        found = (self._between[: self._n_before], b"".join(self._masks), b"".join(self._before))
        between, mask, before = (int.from_bytes(each, "little") for each in found)
        if between & mask != before:
            raise _Otherwise
        self._pieces.clear()
        self._before.clear()
        self._masks.clear()
        self._n_before = 0


def _read_all(file: int, pieces: list[memoryview], place: int, end: int) -> None:
    """Fill pieces of memory with what is in the file from a place to another."""
    while place < end:
        n_bytes = os.preadv(file, pieces, place)
        if not n_bytes:
            raise OSError("it ends within a page")
        place += n_bytes
        if place < end:
            pieces = list(_rest(pieces, n_bytes))


def _rest(pieces: list[memoryview], n_bytes: int) -> Iterator[memoryview]:
    """What is left of pieces of memory whose first bytes have been filled."""
    for piece in pieces:
        if n_bytes < len(piece):
            yield piece[n_bytes:]
        n_bytes = max(n_bytes - len(piece), 0)


# What is learnt from the heads of pages.


def plain_column(file: int, metadata: Any, group: int, number: int) -> PlainColumn | None:
    """How a column of a row group may be read here; None if it cannot, or were not worth it."""
    column, kind = metadata.row_group(group).column(number), metadata.schema.column(number)
    n_rows = metadata.row_group(group).num_rows
    n_bytes = min(column.total_compressed_size, column.total_uncompressed_size)
    if (
        column.physical_type != "DOUBLE"
        or column.compression not in ("SNAPPY", "UNCOMPRESSED")
        or kind.max_repetition_level > 0
        or kind.max_definition_level > 1
        or column.file_path
        or n_bytes < _LEAST * WIDTH * n_rows
    ):
        return None
    begin = column.data_page_offset
    if column.has_dictionary_page:
        begin = min(begin, column.dictionary_page_offset)
    optional, snappy = kind.max_definition_level == 1, column.compression == "SNAPPY"
    walk = _Walk(file, optional, snappy, n_rows, begin)
    try:
        return PlainColumn(walk.to(begin + column.total_compressed_size), optional, snappy)
    except (NotPlain, IndexError):  # or a head that is longer than any should be
        return None


@dataclass
class _Walk:
    """A walk over the pages of a column, and what was met on it."""

    file: int
    optional: bool
    snappy: bool
    n_rows: int
    place: int
    row: int = 0
    pages: list[Pages] = field(default_factory=list)
    dictionary: Pages | None = None
    n_pages: int = 0
    ahead: bytes = b""
    ahead_at: int = 0

    def to(self, end: int) -> tuple[Pages, ...]:
        """The plain pages, which are the last; before them a dictionary that is as good as one."""
        while self.place < end:
            begin = self._read(self.place, HEAD)
            head = head_of(begin)
            if head.content > WIDTH * self.n_rows + HEAD or self.place + head.stride > end:
                raise NotPlain
            self._meet(head, begin[head.length :])
        if self.place != end or self.row != self.n_rows or not self.pages:
            raise NotPlain
        first = self.pages[0].start
        if self.dictionary is not None and 0 < first <= self.dictionary.stop:
            self.pages.insert(0, self.dictionary._replace(stop=first))
        packed = sum(pages.stop - pages.start for pages in self.pages if not pages.stored)
        if self.pages[0].start > (1 - _LEAST) * self.n_rows or packed > _PACKED * self.n_rows:
            raise NotPlain
        return tuple(self.pages)

    def _meet(self, head: PageHead, begin: bytes) -> None:
        """The page that begins here, with its head and the first bytes after it."""
        n_pages = 1
        if head.kind == DICTIONARY and self.row == 0 and head.encoding in OF_DICTIONARIES:
            self.dictionary = self._alike(head, begin, 1)
            self._read_ahead(self.place + head.stride, head.n_rows)
        elif head.kind != DATA:
            raise NotPlain
        elif head.encoding == PLAIN:
            n_pages = self._n_alike(head)
            self.pages.append(self._alike(head, begin, n_pages))
            self.n_pages += n_pages
            if self.n_pages > 1 + self.n_rows / _PAGE_ROWS:
                raise NotPlain
        elif head.encoding not in BY_PLACE or self.pages:
            raise NotPlain
        elif self.dictionary is not None and not self._is_in_order(head):
            self.dictionary = None
        self.place += n_pages * head.stride
        self.row += n_pages * head.n_rows * (head.kind == DATA)

    def _alike(self, head: PageHead, begin: bytes, n_pages: int) -> Pages:
        """Pages of plain numbers without gaps. What the first begins with shows that it is one."""
        levels = levels_of(head, self.optional)
        if not head.n_rows or head.content != len(levels) + WIDTH * head.n_rows:
            raise NotPlain
        at, n_literal = 0, len(levels)
        if self.snappy:
            at, n_literal = literal_at(begin, len(varint(head.content)))
        if n_literal < len(levels) or not begin.startswith(levels, at):
            raise NotPlain
        n_tags = sum(len(tag) for _, tag in blocks_of(head.content, self.snappy))
        stored = head.n_bytes == head.content + n_tags
        return Pages(self.row, self.row + n_pages * head.n_rows, self.place, head, stored)

    def _n_alike(self, head: PageHead) -> int:
        """As many pages as lead to one like this; those between will be looked at when read."""

        def is_alike(number: int) -> bool:
            place = self.place + number * head.stride
            return head.is_of(self._read(place, head.length))

        n_pages = (self.n_rows - self.row) // max(head.n_rows, 1)
        if n_pages < 2 or not is_alike(1):
            return 1
        while not is_alike(n_pages - 1):
            n_pages //= 2
        return n_pages

    def _is_in_order(self, head: PageHead) -> bool:
        """Whether the places in the dictionary are those of the rows: no number occurs twice."""
        found = self._read(self.place + head.length, head.n_bytes)
        content, levels = content_of(found, head, self.snappy), levels_of(head, self.optional)
        if not content.startswith(levels):
            raise NotPlain
        return _counts(content[len(levels) :], self.row, head.n_rows)

    def _read_ahead(self, place: int, n_places: int) -> None:
        """What follows upon a dictionary: each of its places at least once."""
        n_bytes = n_places * n_places.bit_length() // 8
        self.ahead, self.ahead_at = os.pread(self.file, n_bytes + n_bytes // 16, place), place

    def _read(self, place: int, n_bytes: int) -> bytes:
        begin = place - self.ahead_at
        if 0 <= begin <= len(self.ahead) - n_bytes:
            return self.ahead[begin : begin + n_bytes]
        return os.pread(self.file, n_bytes, place)


@lru_cache(maxsize=32)
def _counts(runs: bytes, start: int, n: int) -> bool:
    """Whether runs of numbers, of as many bits as the first byte says, count up from `start`."""
    width, at, low = runs[0], 1, start
    while low < start + n:
        if at >= len(runs) or width > 32:
            return False
        size, at = integer(runs, at)
        packed = runs[at : at + width * (size >> 1)]  # eight numbers at a time
        if not size & 1 or not packed or len(packed) % width:  # or one number, over and over
            return False
        bits = np.unpackbits(np.frombuffer(packed, np.uint8), bitorder="little")
        high = min(low + len(bits) // width, start + n)
        found = bits.reshape(-1, width) @ (1 << np.arange(width))
        if (found[: high - low] != np.arange(low, high)).any():
            return False
        at, low = at + len(packed), high
    return True
