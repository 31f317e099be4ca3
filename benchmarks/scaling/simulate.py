"""A pass played on a cluster: workers that differ, and die; a scheduler that hands out one by one.

A task waits for a free worker and for the scheduler. Sums that are complete are added up before new
chunks are begun. A worker that dies takes the sums with it that it holds; what went into
them is summed again, down to the chunks.
"""

from collections import deque
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np

from benchmarks.scaling.cost import FAN_IN, Cost

MOST_CHUNKS = 24_000
"""Beyond this many chunks the rate at which the last half of them is done is extended."""

_NOBODY = -1


@dataclass(frozen=True)
class Tasks:
    """What a pass asks of a cluster, in seconds.

    A chunk takes `chunk`, and each of the sums that a task adds up `part`; the scheduler takes
    `chunk_dispatch` and `plus_dispatch` for a task, one after the other.
    """

    chunks: int
    workers: int
    chunk: float
    part: float = 0.0
    chunk_dispatch: float = 0.0
    plus_dispatch: float = 0.0
    start: float = 0.0

    @classmethod
    def of(cls, cost: Cost) -> "Tasks":
        return cls(
            cost.chunks,
            cost.workers,
            cost.chunk_seconds,
            cost.part_seconds,
            cost.chunk_dispatch,
            cost.machine.dispatch,
            cost.start_seconds,
        )


@dataclass(frozen=True)
class Weather:
    """How a cluster differs from one on paper.

    `noise` is the deviation of the logarithm of a task's time; `slow_share` of the workers take
    `slow_factor` times as long; each dies so often an hour, and is back after `restart` seconds.
    """

    noise: float = 0.0
    slow_share: float = 0.0
    slow_factor: float = 1.0
    deaths_per_hour: float = 0.0
    restart: float = 60.0


CALM = Weather()
USUAL = Weather(noise=0.25, slow_share=0.02, slow_factor=3.0)


class Outcome(NamedTuple):
    """Seconds of a pass, the share of them in which workers work, and chunks done again."""

    seconds: float
    busy: float
    again: int


def simulate(tasks: Tasks, weather: Weather = CALM, seed: int = 0) -> Outcome:
    """One pass. Deaths, which are rare and cost much, are played with few chunks only."""
    if tasks.chunks <= MOST_CHUNKS:
        return _Run(tasks, weather, seed).outcome()
    if weather.deaths_per_hour:
        raise ValueError(f"Deaths are played with up to {MOST_CHUNKS:,} chunks.")
    half, whole = (
        simulate(replace(tasks, chunks=chunks), weather, seed)
        for chunks in (MOST_CHUNKS // 2, MOST_CHUNKS)
    )
    times = (tasks.chunks - MOST_CHUNKS) / (MOST_CHUNKS - MOST_CHUNKS // 2)
    seconds = whole.seconds + times * (whole.seconds - half.seconds)
    return Outcome(seconds, whole.busy, 0)


def parents(chunks: int) -> list[int]:
    """The task that adds up each sum: chunks first, then the tree, whose last node has none."""
    out: list[int] = [_NOBODY] * chunks
    found = list(range(chunks))
    while len(found) > 1:
        groups = [found[i : i + FAN_IN] for i in range(0, len(found), FAN_IN)]
        found = []
        for group in groups:
            if len(group) == 1:
                found += group
                continue
            for node in group:
                out[node] = len(out)
            found.append(len(out))
            out.append(_NOBODY)
    return out


class _Run:
    """The state of a pass. Nodes are chunks, and the sums that are made of other nodes."""

    def __init__(self, tasks: Tasks, weather: Weather, seed: int) -> None:
        random = np.random.default_rng(seed)
        self._tasks, self._weather, self._random = tasks, weather, random
        self._parent = parents(tasks.chunks)
        nodes, workers = len(self._parent), tasks.workers
        self._children: list[list[int]] = [[] for _ in range(nodes)]
        for node, above in enumerate(self._parent):
            if above != _NOBODY:
                self._children[above].append(node)
        self._missing = [len(below) for below in self._children]
        self._latest = [0.0] * nodes
        self._holder = [_NOBODY] * nodes
        self._held: list[set[int]] = [set() for _ in range(workers)]
        slow = np.arange(workers) < round(weather.slow_share * workers)
        self._factor = np.where(slow, weather.slow_factor, 1.0).tolist()
        spread = weather.noise
        self._noise = random.lognormal(-(spread**2) / 2, spread, tasks.chunks).tolist()
        self._death = [self._next_death(0.0) for _ in range(workers)]
        self._chunks = deque(range(tasks.chunks))
        self._complete: list[tuple[float, int]] = []
        self._scheduler = tasks.start
        self._worked, self._again = 0.0, 0

    def outcome(self) -> Outcome:
        free = [(self._tasks.start, worker) for worker in range(self._tasks.workers)]
        heapify(free)
        end, root = 0.0, len(self._parent) - 1
        while self._holder[root] == _NOBODY:
            time, worker = heappop(free)
            if time >= self._death[worker]:
                heappush(free, (self._die(worker), worker))
                continue
            node, now = self._take(max(time, self._scheduler))
            self._scheduler = now + self._dispatch(node)
            seconds = self._seconds(node) * self._factor[worker]
            end = self._scheduler + seconds
            if end > self._death[worker]:
                heappush(free, (self._die(worker, node), worker))
                continue
            self._worked += seconds
            self._finish(node, end, worker)
            heappush(free, (end, worker))
        busy = self._worked / (self._tasks.workers * end) if end else 0.0
        return Outcome(end, busy, self._again)

    def _take(self, now: float) -> tuple[int, float]:
        """What to do next, and when it can be handed out."""
        while self._complete and (self._complete[0][0] <= now or not self._chunks):
            ready, node = heappop(self._complete)
            if self._missing[node] == 0 and self._holder[node] == _NOBODY:
                return node, max(now, ready)
        return self._chunks.popleft(), now

    def _dispatch(self, node: int) -> float:
        is_chunk = node < self._tasks.chunks
        return self._tasks.chunk_dispatch if is_chunk else self._tasks.plus_dispatch

    def _seconds(self, node: int) -> float:
        if node < self._tasks.chunks:
            return self._tasks.chunk * self._noise[node]
        return self._tasks.part * len(self._children[node])

    def _finish(self, node: int, end: float, worker: int) -> None:
        for below in self._children[node]:
            self._held[self._holder[below]].discard(below)
        self._holder[node] = worker
        self._held[worker].add(node)
        above = self._parent[node]
        if above == _NOBODY:
            return
        self._missing[above] -= 1
        self._latest[above] = max(self._latest[above], end)
        if self._missing[above] == 0:
            heappush(self._complete, (self._latest[above], above))

    def _next_death(self, now: float) -> float:
        rate = self._weather.deaths_per_hour
        return now + float(self._random.exponential(3600 / rate)) if rate else np.inf

    def _die(self, worker: int, node: int | None = None) -> float:
        """Lose what a worker holds, and what it is doing; gives when it is back."""
        death = self._death[worker]
        lost, self._held[worker] = self._held[worker], set()
        for each in lost:
            self._missing[self._parent[each]] += 1
            self._lose(each)
        if node is not None and node < self._tasks.chunks:
            self._lose(node)
        elif node is not None and self._missing[node] == 0:
            heappush(self._complete, (death, node))
        back = death + self._weather.restart
        self._death[worker] = self._next_death(back)
        return back

    def _lose(self, node: int) -> None:
        """Do a node again, and all that went into it."""
        self._holder[node] = _NOBODY
        if node < self._tasks.chunks:
            self._chunks.appendleft(node)
            self._again += 1
            return
        self._missing[node] = len(self._children[node])
        for below in self._children[node]:
            self._lose(below)
