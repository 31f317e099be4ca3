"""Sums of chunks that lie in the memory of workers, asked of the workers themselves.

Tasks are planned, sent, watched and collected, which takes some 15 ms a pass, whatever is summed. A
question to the workers takes 4. So where each chunk lies with a worker, and none has much more than
its share of them, the workers are asked for sums of what they have. Whatever else happens (a worker
is gone, a chunk is on disk) an answer is missing, and the pass is made of tasks.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

from posteriori.rows.dask_tasks import Parts, Sent, run

Keys = tuple[Any, ...]
"""Dask's names of the parts of a chunk; None for a part that it does not have."""

_MOST = 64
"""Chunks that are summed so."""

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
    """Chunks that may lie in the memory of workers; not once one that should has not been there."""

    def __init__(self, chunks: Sequence[Parts]) -> None:
        self._keys = [
            tuple(None if part is None else part.key for part in parts) for parts in chunks
        ]
        self._are_there = True

    def each(self, task: Sent, numbers: Sequence[int]) -> list[Any] | None:
        """What the task gives for the chunks of these numbers; None if tasks of Dask are needed."""
        client = client_in_use() if self._are_there and len(numbers) <= _MOST else None
        if client is None or client.asynchronous or _is_a_task():
            return None
        jobs = self._jobs(client, numbers)
        if not jobs:
            return None
        answers = client.run(_sums_of, task, jobs, workers=list(jobs), on_error="return")
        found: dict[int, Any] = {}
        for answer in answers.values():
            found |= answer if isinstance(answer, dict) else {}
        self._are_there = len(found) == len(numbers)
        return [found[i] for i in numbers] if self._are_there else None

    def _jobs(self, client: Any, numbers: Sequence[int]) -> dict[str, dict[int, Keys]]:
        """The chunks of each worker; none if one lies nowhere, or a worker had too many."""
        keys = {key for i in numbers for key in self._keys[i] if key is not None}
        holders = client.sync(client.scheduler.who_has, keys=list(keys))
        threads, load = client.nthreads(), Counter[str]()
        jobs: dict[str, dict[int, Keys]] = {}
        for i in numbers:
            own = [holders[key] for key in self._keys[i] if key is not None]
            workers = [each for each in threads if all(each in holding for holding in own)]
            if not workers:
                return {}
            worker = min(workers, key=lambda each: load[each] / threads[each])
            load[worker] += 1
            jobs.setdefault(worker, {})[i] = self._keys[i]
        turns = max(-(-load[worker] // threads[worker]) for worker in load)
        share = -(-len(numbers) // sum(threads.values()))
        return jobs if turns <= _UNEVEN * share else {}


async def _sums_of(
    task: Sent, jobs: dict[str, dict[int, Keys]], dask_worker: Any = None
) -> dict[int, Any]:
    """By a worker: what the task gives for its chunks; nothing if one of them is not in memory."""
    own = jobs[dask_worker.address]
    memory = getattr(dask_worker.data, "memory", dask_worker.data)  # without what is on disk
    if any(key is not None and key not in memory for keys in own.values() for key in keys):
        return {}
    chunks = [[None if key is None else memory[key] for key in keys] for keys in own.values()]
    threads, loop = dask_worker.executors["default"], asyncio.get_running_loop()
    sums = await asyncio.gather(
        *(
            loop.run_in_executor(threads, run, task, i, *parts)
            for i, parts in zip(own, chunks, strict=True)
        )
    )
    return dict(zip(own, sums, strict=True))
