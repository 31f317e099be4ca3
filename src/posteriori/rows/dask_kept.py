"""What workers of a Dask cluster keep of all rows, for as long as somebody may ask of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from operator import itemgetter
from typing import Any, Generic, TypeVar, cast

from posteriori.rows.dask_direct import client_in_use
from posteriori.rows.dask_tasks import Sent, chain, or_raise, run
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


@dataclass(frozen=True, eq=False)
class OnWorkers(Generic[T]):
    """Delayed values, each on a worker of its own if there are enough of them."""

    held: tuple[Any, ...]

    @classmethod
    def dealt(cls, chunks: Sequence[Any], make: Callable[..., T], n_values: int) -> "OnWorkers[T]":
        """Of delayed chunks of so many parts: what `make` gives for all first parts, and so on."""
        task = import_module("dask").delayed(run, pure=False)
        takes = [Sent(itemgetter(i)) for i in range(n_values)]
        sent = Sent(make)
        return cls._made([(sent, [task(take, chunk) for chunk in chunks]) for take in takes])

    @classmethod
    def _made(cls, values: Sequence[tuple[Sent, Sequence[Any]]]) -> "OnWorkers[T]":
        """What is sent, called with its delayed parts, once for each value."""
        dask = import_module("dask")
        task, workers = dask.delayed(run, pure=False), list(_limits())
        delayed = []
        for i, (sent, parts) in enumerate(values):
            where = {"workers": [workers[i % len(workers)]]} if workers else {}
            with dask.annotate(allow_other_workers=True, **where):
                delayed.append(task(sent, *parts))
        made = cls(tuple(dask.persist(*delayed)))
        made.ask_each(_be_there)
        return made

    def ask_each(self, question: Callable[[T], S]) -> list[S]:
        """The answers of all values to a question, which are small."""
        dask = import_module("dask")
        task, sent = dask.delayed(run, pure=False), Sent(question)
        return [or_raise(found) for found in dask.compute(*(task(sent, own) for own in self.held))]

    def then(self, makes: Sequence[tuple[Callable[..., S], Sequence[int]]]) -> "OnWorkers[S]":
        """New values, each what is made of those of the numbers given."""
        new = [(Sent(make), [self.held[i] for i in sources]) for make, sources in makes]
        return OnWorkers._made(new)

    def fold(self, step: Callable[[S, int, T], S], state: S, turns: Sequence[tuple[int, int]]) -> S:
        """The state after steps by some of the values, each where its value is.

        A turn is the number of a value, and one that the step is told.
        """
        return cast(S, chain(Sent(step), state, [(told, self.held[i]) for i, told in turns]))


def room_on_workers() -> Room:
    """The memory of each worker of the cluster in use; of this machine if there is none."""
    limits = list(_limits().values())
    if not limits:
        return room_here()
    n_bytes = int(_OURS * min(limits)) if all(limits) else None
    return Room("each worker" if len(limits) > 1 else "the worker", n_bytes, len(limits))


def _limits() -> dict[str, int]:
    """The workers of the cluster in use, and the bytes of memory that each may take."""
    client = client_in_use()
    if client is None:
        return {}
    workers = client.scheduler_info(n_workers=-1)["workers"]
    return {address: worker["memory_limit"] or 0 for address, worker in workers.items()}
