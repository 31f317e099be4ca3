"""What a pass over rows costs: operations, bytes and seconds.

Conventions: n rows, d columns, K classes; q = d + 1 parameters an activation, the intercept first;
c activations a row: 1 for two classes, else K. Rows lie in chunks; a pass is a task a chunk, and a
tree of tasks that add up `FAN_IN` sums each.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

from posteriori.posterior.levels import MOST_ENTRIES
from posteriori.rows.look import sample_limit

Kind = Literal["gradient", "hessian", "moments"]

DOUBLE = 8
FAN_IN = 8
"""Sums that one task adds up, as in `posteriori.rows.dask`."""

READS = 2
"""Tasks of a chunk before it is summed: one brings the columns, one the labels."""

NAME, CHUNK = 21.5, 22.0
"""Bytes of a column's name and kind, and of a chunk's number, rows and first row, pickled."""

HEAD = {"gradient": 236, "hessian": 270, "moments": 450}
"""Bytes of a pickled sum beside its numbers."""

KERNEL_HEAD = 2000
"""Bytes of what is sent to the workers beside numbers, names and chunks."""

LARGEST_CHUNK = 1e9
"""Bytes of a chunk that a worker has room for, with the one that it reads next."""


@dataclass(frozen=True)
class Shape:
    """Rows, columns and classes."""

    n: int
    d: int
    K: int = 2

    @property
    def c(self) -> int:
        return 1 if self.K == 2 else self.K

    @property
    def q(self) -> int:
        return self.d + 1

    @property
    def p(self) -> int:
        """Free parameters of a discriminative model."""
        return (self.K - 1) * self.q

    @property
    def row_bytes(self) -> int:
        """Columns and label of a row."""
        return DOUBLE * (self.d + 1)


class Operations(NamedTuple):
    """Numbers of: activations put through the loss; entries times a coefficient and a residual;
    entries copied with a weight; products of two entries of a row that are added up.
    """

    activations: float
    entries: float
    copies: float
    products: float

    @property
    def flops(self) -> float:
        """An exponential and a logarithm count as twenty."""
        return 20 * self.activations + 4 * self.entries + self.copies + 2 * self.products


def operations(kind: Kind, shape: Shape) -> Operations:
    """Of all rows, in one pass. Symmetric products are computed on one side of the diagonal."""
    n, d, q, c = shape.n, shape.d, shape.q, shape.c
    if kind == "moments":
        return Operations(n, n * d, n * d, n * d * d / 2)
    if kind == "gradient":
        return Operations(n * c, n * c * q, 0, 0)
    free = shape.K - 1
    products = free * q * free * q / 2 + (free * q * q if c > 1 else 0)
    return Operations(n * c, n * c * q, n * free * q, n * products)


def sum_bytes(kind: Kind, shape: Shape) -> float:
    """A pickled sum. The Hessian of K > 2 classes is sent with all K of them, not K - 1."""
    d, cq = shape.d, shape.c * shape.q
    numbers = {
        "gradient": cq,
        "hessian": cq + cq * cq,
        "moments": d * d + (shape.K + 1) * d + shape.K,
    }[kind]
    return DOUBLE * numbers + HEAD[kind] + (NAME * d if kind == "moments" else 0)


def kernel_bytes(kind: Kind, shape: Shape, chunks: int) -> float:
    """What each worker is sent once a pass: parameters, columns, and where the chunks begin."""
    numbers = 0 if kind == "moments" else shape.c * shape.q + 2 * shape.d
    return DOUBLE * numbers + NAME * shape.d + CHUNK * chunks + KERNEL_HEAD


def n_sums(chunks: int) -> int:
    """Sums of sums in the tree over so many chunks; the last of them is made by the client."""
    total = 0
    while chunks > 1:
        groups, left = divmod(chunks, FAN_IN)
        total += groups + (left > 1)
        chunks = groups + (left > 0)
    return total


@dataclass(frozen=True)
class Machine:
    """Seconds of each of the `Operations`; of a byte added to another, or pickled and unpickled; of
    p³ in a Cholesky factor; of a task in client and scheduler, and in the worker beside its work.

    `read` and `network` are bytes a second of each worker, `latency` the seconds of a message.
    """

    activation: float
    entry: float
    copy: float
    product: float
    add: float
    pickle: float
    cholesky: float
    dispatch: float
    worker_task: float
    read: float = 250e6
    network: float = 1.25e9
    latency: float = 1e-3

    def seconds(self, done: Operations) -> float:
        """Of operations on one core."""
        return (
            self.activation * done.activations
            + self.entry * done.entries
            + self.copy * done.copies
            + self.product * done.products
        )


@dataclass(frozen=True)
class Cost:
    """One pass on `workers` of one core each, in chunks of `chunk_rows`."""

    kind: Kind
    shape: Shape
    workers: int
    chunk_rows: int
    machine: Machine

    @property
    def chunks(self) -> int:
        return -(-self.shape.n // self.chunk_rows)

    @property
    def flops(self) -> float:
        return operations(self.kind, self.shape).flops

    @property
    def bytes_read(self) -> float:
        return float(self.shape.n * self.shape.row_bytes)

    @property
    def bytes_out(self) -> float:
        """Parameters to all workers."""
        return self.workers * kernel_bytes(self.kind, self.shape, self.chunks)

    @property
    def bytes_back(self) -> float:
        """Sums up the tree: each is sent once, unless it is added up where it was made."""
        sent = self.chunks + n_sums(self.chunks)
        return sent * (1 - 1 / self.workers) * sum_bytes(self.kind, self.shape)

    @cached_property
    def chunk_seconds(self) -> float:
        """A worker's time for a chunk: it reads, and then it sums."""
        rows = min(self.chunk_rows, self.shape.n)
        part = replace(self.shape, n=rows)
        reading = rows * part.row_bytes / self.machine.read
        tasks = (READS + 1) * self.machine.worker_task
        return reading + self.machine.seconds(operations(self.kind, part)) + tasks

    @cached_property
    def part_seconds(self) -> float:
        """A worker's time for each of the sums that it adds up in one task."""
        size, far = sum_bytes(self.kind, self.shape), 1 - 1 / self.workers
        sent = size * (self.machine.pickle + 1 / self.machine.network) + self.machine.latency
        return far * sent + size * self.machine.add + self.machine.worker_task / FAN_IN

    @property
    def chunk_dispatch(self) -> float:
        """Time of client and scheduler for a chunk; nothing else is handed out meanwhile."""
        return (READS + 1) * self.machine.dispatch

    @property
    def start_seconds(self) -> float:
        """Parameters go from worker to worker, so that twice as many have them each time."""
        size = kernel_bytes(self.kind, self.shape, self.chunks)
        hops = math.ceil(math.log2(self.workers)) + 1
        return hops * (size / self.machine.network + self.machine.latency)

    @property
    def solve_seconds(self) -> float:
        """A Cholesky factor in the client, where a pass brings a matrix."""
        order = {"gradient": 0, "hessian": self.shape.p, "moments": self.shape.d}[self.kind]
        return self.machine.cholesky * float(order) ** 3

    @property
    def scheduler_seconds(self) -> float:
        """All that client and scheduler do in a pass."""
        return self.chunks * self.chunk_dispatch + n_sums(self.chunks) * self.machine.dispatch

    @property
    def work_seconds(self) -> float:
        """All that workers do in a pass, shared evenly."""
        added = (self.chunks + n_sums(self.chunks) - 1) * self.part_seconds
        return (self.chunks * self.chunk_seconds + added) / self.workers

    @property
    def bound_seconds(self) -> float:
        """No pass is shorter: the scheduler or the workers are busy all the time."""
        return self.start_seconds + max(self.scheduler_seconds, self.work_seconds)

    @property
    def even_seconds(self) -> float:
        """A pass whose workers are all alike: at its end most of them wait for the last chunk."""
        levels = math.ceil(math.log(max(self.chunks, 2), FAN_IN))
        return self.bound_seconds + self.chunk_seconds + levels * FAN_IN * self.part_seconds

    @property
    def worker_bytes(self) -> float:
        """Memory of a worker: this chunk and the next, and the sums that it adds up."""
        chunk = self.chunk_rows * self.shape.row_bytes
        return 2 * chunk + (FAN_IN + 1) * sum_bytes(self.kind, self.shape)

    @property
    def useful_workers(self) -> float:
        """With more workers than this, some wait for the scheduler."""
        each = self.chunk_dispatch + self.machine.dispatch / (FAN_IN - 1)
        return (self.chunk_seconds + self.part_seconds * FAN_IN / (FAN_IN - 1)) / each


def best_chunk_rows(kind: Kind, shape: Shape, workers: int, machine: Machine) -> int:
    """Of the sizes for which a worker has room, the one with the shortest pass."""
    most = min(shape.n, int(LARGEST_CHUNK / shape.row_bytes))
    sizes = {most} | {2**k for k in range(most.bit_length())}
    return min(sizes, key=lambda rows: Cost(kind, shape, workers, rows, machine).even_seconds)


class Passes(NamedTuple):
    """Passes of a fit over all rows: those whose sums are vectors, and those with d² sums."""

    light: int
    products: int


_STEP = 0.27
"""By how much a step without a good metric shrinks the error, on columns that are independent."""


def sample_rows(n: int, d: int) -> int:
    """Rows that the first look brings to the client: one in eight at most, halved until few."""
    kept = n // 8
    while kept > 2 * sample_limit(d):
        kept //= 2
    return kept


def passes(shape: Shape, tol: float = 1e-4) -> Passes:
    """A maximum likelihood fit of `LogisticRegression`: what its solver expects of itself.

    With a sample of m rows the metric is off by 1.3 √(p/m), and so much smaller is the error after
    each pass; at first it is √(pn/m) standard errors. One pass more is the first look, and one
    brings the sample if that of the look is not large enough. With none three passes look at the
    columns, one of them at their products, the metric is a diagonal, and one pass shows that the
    classes overlap, which a sample does otherwise.
    """
    p, m, looks = shape.p, sample_rows(shape.n, shape.d), 1
    least = max(1000, 12 * p)
    if m < least:
        m, looks = min(2 * least, MOST_ENTRIES // shape.d, shape.n // 8), 2
    if m >= least:
        rate = min(max(1.3 * math.sqrt(p / m), 1e-3), 0.9)
        steps = math.log(math.sqrt(p * shape.n / m) / tol) / -math.log(rate)
        return Passes(looks + max(1, math.ceil(steps)), 0)
    steps = math.log(math.sqrt(shape.n) / tol**2) / -math.log(_STEP)
    return Passes(4 + math.ceil(steps), 1)
