"""The memory of this machine."""

import os
from pathlib import Path
from typing import NamedTuple


class Room(NamedTuple):
    """Whose memory it is, and its bytes; None where they are not known."""

    owner: str
    n_bytes: int | None


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
