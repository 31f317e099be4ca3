"""How a file is known again, so that one that has changed between two passes is named."""

import os
from typing import NamedTuple

from posteriori.errors import SourceError


class Mark(NamedTuple):
    """A file as it was when it was first looked at."""

    path: str
    number: int
    size: int
    changed: tuple[int, int]

    @classmethod
    def of(cls, path: str) -> "Mark":
        found = os.stat(path)
        times = found.st_mtime_ns, found.st_ctime_ns
        return cls(path, found.st_ino, found.st_size, times)

    def check(self) -> None:
        """An error unless the file is still what it was."""
        try:
            now = Mark.of(self.path)
        except OSError as error:
            raise SourceError(
                f"The file {self.path} is gone since it was first looked at.",
                "Put it back, or scan again.",
            ) from error
        if now != self:
            raise SourceError(
                f"The file {self.path} has changed since it was first looked at.",
                "Scan again, and fit to what is there now.",
            )
