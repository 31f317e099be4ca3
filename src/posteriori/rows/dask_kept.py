"""What one worker of a Dask cluster keeps of all rows, for as long as somebody may ask of it."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar, cast

from posteriori.rows.dask_tasks import Sent, or_raise, run
from posteriori.rows.kept import Kept, Room, room_here

S = TypeVar("S")
T = TypeVar("T")

_OURS = 0.6
"""Share of the memory of a worker beyond which Dask begins to write to the disk."""


@dataclass(frozen=True, eq=False)
class OnWorker(Kept[T]):
    """A delayed value that is there already. If its worker dies, another makes it again."""

    held: Any

    @classmethod
    def made(cls, make: Callable[..., T], *parts: Any) -> "OnWorker[T]":
        """What `make` gives for delayed parts, when it is there; or the error that came up."""
        dask = import_module("dask")
        [held] = dask.persist(dask.delayed(run, pure=False)(Sent(make), *parts))
        kept = cls(held)
        kept.ask(_be_there)
        return kept

    def ask(self, question: Callable[[T], S]) -> S:
        task = import_module("dask").delayed(run, pure=False)
        return cast(S, or_raise(task(Sent(question), self.held).compute()))

    def then(self, make: Callable[[T], S]) -> "OnWorker[S]":
        return OnWorker.made(make, self.held)


def _be_there(value: Any) -> None:
    """A question without an answer."""


def room_on_workers() -> Room:
    """The memory of the largest worker of the cluster in use; of this machine if there is none."""
    distributed = sys.modules.get("distributed")  # a cluster in use has been imported
    if distributed is None:
        return room_here()
    try:
        client = distributed.get_client()
    except ValueError:
        return room_here()
    limits = [worker["memory_limit"] for worker in client.scheduler_info()["workers"].values()]
    room = int(_OURS * max(limits)) if limits and all(limits) else None
    return Room("the largest worker", room)
