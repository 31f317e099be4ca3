"""Sums of chunks that lie in the memory of workers, asked of the workers themselves.

A task and its result go by way of the scheduler, which takes some 15 ms a pass, whatever is summed.
A question to all workers takes 4. So where each chunk lies in the memory of a worker, and none has
more of them than its share, the workers are asked for sums of what they have. Whatever is not as
it was (a worker is gone, a chunk has been moved) is noticed, and the pass is then made of tasks.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from posteriori.rows.dask_tasks import Parts, Sent, run

Keys = tuple[Any, ...]
"""Dask's names of the parts of a chunk; None for a part that it does not have."""

_MOST = 64
"""Chunks that are summed so, as all of their sums come back, and workers that are asked."""

_UNEVEN = 1.25
"""How many times its share of chunks a worker may have; beyond it the scheduler may move some."""


def client_in_use() -> Any | None:
    """The client of the cluster that Dask uses now; None if it uses none."""
    distributed = sys.modules.get("distributed")  # a cluster in use has been imported
    if distributed is None:
        return None
    try:
        return distributed.get_client()
    except ValueError:
        return None


def _is_a_task() -> bool:
    """Whether this is done by a worker, for whose threads it must not wait."""
    try:
        sys.modules["distributed"].get_worker()
    except ValueError:
        return False
    return True


class Residents:
    """Chunks, and the worker that is asked for each, once all of them are found on one."""

    def __init__(self, chunks: Sequence[Parts]) -> None:
        self._keys = [tuple(getattr(part, "key", None) for part in parts) for parts in chunks]
        self._where: dict[int, str] | None = None

    def each(self, task: Sent, numbers: Sequence[int]) -> list[Any] | None:
        """What the task gives for the chunks of these numbers; None if tasks of Dask are needed."""
        client = client_in_use()
        if client is None or client.asynchronous or len(numbers) > _MOST or _is_a_task():
            return None
        if self._where is None:
            self._where = self._find(client, numbers)
        if not self._where:
            return None
        jobs: dict[str, dict[int, Keys]] = {}
        for i in numbers:
            jobs.setdefault(self._where[i], {})[i] = self._keys[i]
        answers = client.run(_sums_of, task, jobs, on_error="return")
        found: dict[int, Any] = {}
        for answer in answers.values():
            found |= answer if isinstance(answer, dict) else {}
        if not all(i in found for i in numbers):
            self._where = None  # to be found again in the next pass
            return None
        return [found[i] for i in numbers]

    def _find(self, client: Any, numbers: Sequence[int]) -> dict[int, str]:
        """A worker for each chunk; none if some chunk lies nowhere, or a worker had too many."""
        wanted = {i: self._keys[i] for i in numbers}
        answers = client.run(_holding, wanted, on_error="return")
        holding = {address: held for address, held in answers.items() if isinstance(held, _Held)}
        where, load = dict[int, str](), Counter[str]()
        for i in numbers:
            owners = [address for address, held in holding.items() if i in held.numbers]
            if not owners or len(answers) > _MOST:
                return {}
            where[i] = min(owners, key=lambda address: load[address] / holding[address].n_threads)
            load[where[i]] += 1
        n_threads = sum(held.n_threads for held in holding.values())
        turns = max(-(-load[address] // holding[address].n_threads) for address in load)
        return where if turns <= _UNEVEN * -(-len(numbers) // n_threads) else {}


# What the workers do, out of turn.


class _Held(NamedTuple):
    """The chunks that a worker has in memory, and how many of them it sums at once."""

    numbers: frozenset[int]
    n_threads: int


def _memory(worker: Any) -> Mapping[Any, Any]:
    """What a worker holds, without what it has written to disk."""
    return getattr(worker.data, "memory", worker.data)


def _holding(chunks: dict[int, Keys], dask_worker: Any = None) -> _Held:
    memory = _memory(dask_worker)
    held = (i for i, keys in chunks.items() if all(key is None or key in memory for key in keys))
    return _Held(frozenset(held), dask_worker.state.nthreads)


async def _sums_of(
    task: Sent, jobs: dict[str, dict[int, Keys]], dask_worker: Any = None
) -> dict[int, Any]:
    """What the task gives for chunks that this worker is asked for, as far as it has them."""
    memory = _memory(dask_worker)
    own = jobs.get(dask_worker.address, {})
    chunks = {
        i: [None if key is None else memory[key] for key in keys]
        for i, keys in own.items()
        if all(key is None or key in memory for key in keys)
    }
    threads, loop = dask_worker.executors["default"], asyncio.get_running_loop()
    found = await asyncio.gather(
        *(loop.run_in_executor(threads, run, task, i, *parts) for i, parts in chunks.items())
    )
    return dict(zip(chunks, found, strict=True))
