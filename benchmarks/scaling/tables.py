"""The tables of docs/scaling.md, in Markdown.

Those that are simulated follow from the constants as they stand in the document, so that a test
can make them again.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace

from benchmarks.scaling.cost import (
    LARGEST_CHUNK,
    Cost,
    Kind,
    Machine,
    Shape,
    best_chunk_rows,
    kernel_bytes,
    operations,
    passes,
    sum_bytes,
)
from benchmarks.scaling.measure import Compared, Measured
from benchmarks.scaling.simulate import USUAL, Tasks, Weather, simulate

WORKERS = (1, 2, 8, 32, 128, 1000)
COLUMNS = (20, 200, 2000)
ROWS = (10**8, 10**10, 10**12)
MANY = 1000

UNITS: Mapping[str, tuple[str, float]] = {
    "activation": ("an activation through the loss, ns", 1e9),
    "entry": ("an entry times a coefficient and a residual, ns", 1e9),
    "copy": ("an entry copied with a weight, ns", 1e9),
    "product": ("a product of two entries, added up, ns", 1e9),
    "add": ("a byte of a sum added to another, ns", 1e9),
    "pickle": ("a byte of a sum pickled and unpickled, ns", 1e9),
    "cholesky": ("Cholesky factor, ns for p³ = 1", 1e9),
    "dispatch": ("a task in client and scheduler, ms", 1e3),
    "worker_task": ("a task in a worker beside its work, ms", 1e3),
    "read": ("reading, MB/s a worker (assumed)", 1e-6),
    "network": ("network, MB/s a worker (assumed)", 1e-6),
    "latency": ("a message, ms (assumed)", 1e3),
}
"""What the constants are called, and in which units they are told."""

WEATHERS = {
    "as on paper": Weather(),
    "task times spread by a quarter": Weather(noise=0.25),
    "2% of the workers three times slower": Weather(slow_share=0.02, slow_factor=3.0),
    "both, as in the tables above": USUAL,
    "and each worker dies once in 100 hours": replace(USUAL, deaths_per_hour=0.01),
    "once in 10 hours": replace(USUAL, deaths_per_hour=0.1),
    "once an hour": replace(USUAL, deaths_per_hour=1.0),
}


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """
    >>> print(table(["a", "b"], [["1", "2"]]))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows).replace(" --- ", "---")


def time(seconds: float) -> str:
    """
    >>> time(0.0123), time(75), time(7300), time(1e6)
    ('12 ms', '75 s', '2 h', '12 d')
    """
    for unit, size, most in (
        ("ms", 1e-3, 1),
        ("s", 1, 120),
        ("min", 60, 7200),
        ("h", 3600, 172800),
    ):
        if seconds < 0.9995 * most:
            return f"{short(seconds / size)} {unit}"
    return f"{short(seconds / 86400)} d"


def size(number: float, unit: str = "B") -> str:
    """
    >>> size(336), size(3.2e7), size(1.6e16), size(8e12, "flop")
    ('336 B', '32 MB', '16 PB', '8 Tflop')
    """
    prefixes = ["", "k", "M", "G", "T", "P", "E"]
    while number >= 999.5 and len(prefixes) > 1:
        number, prefixes = number / 1000, prefixes[1:]
    return f"{short(number)} {prefixes[0]}{unit}"


def short(number: float) -> str:
    """Two digits, or all before the point."""
    return f"{number:.0f}" if number >= 10 else f"{number:.2g}"


def power(n: int) -> str:
    """
    >>> power(10**12), power(400_000)
    ('10^12', '400,000')
    """
    digits = str(n)
    return f"10^{len(digits) - 1}" if n >= 10**6 and digits.strip("0") == "1" else f"{n:,}"


# What holds anywhere.


def sizes() -> str:
    """Operations and bytes of a pass over a million rows."""
    head = ("pass", "d", "K", "flops", "bytes read", "to each worker", "a sum")
    kinds: tuple[Kind, ...] = ("gradient", "hessian", "moments")
    shapes = [Shape(10**6, d, K) for d in COLUMNS for K in (2, 10)]
    return table(head, (_sizes(kind, shape) for kind in kinds for shape in shapes))


def _sizes(kind: Kind, shape: Shape) -> list[str]:
    return [
        kind,
        f"{shape.d:,}",
        str(shape.K),
        size(operations(kind, shape).flops, "flop"),
        size(shape.n * shape.row_bytes),
        size(kernel_bytes(kind, shape, 0)),
        size(sum_bytes(kind, shape)),
    ]


# What is measured.


def constants(machine: Machine, decode: float) -> str:
    lines = [
        [name, f"{getattr(machine, field) * times:.4g}"] for field, (name, times) in UNITS.items()
    ]
    lines.append(["Parquet from the memory of the system, MB/s a core", f"{decode / 1e6:.0f}"])
    return table(("constant", "value"), lines)


def read_constants(text: str) -> Machine:
    """The constants back from their table."""
    found = dict(re.findall(r"^\| (.*?) \| (\S*) \|$", text, re.MULTILINE))
    values = {field: float(found[name]) / times for field, (name, times) in UNITS.items()}
    return Machine(**{field.name: values[field.name] for field in fields(Machine)})


def one_core(measured: Measured) -> str:
    head = ("pass", "rows", "d", "K", "in a worker", "model", "model / measured", "outside of Dask")
    lines = ([*_compared(each.worker), time(each.outside)] for each in measured.one_core)
    return table(head, lines)


def _compared(each: Compared) -> list[str]:
    shape = each.shape
    return [each.kind, f"{shape.n:,}", f"{shape.d:,}", str(shape.K), *_ratio(each)]


def _ratio(each: Compared) -> list[str]:
    return [time(each.measured), time(each.predicted), f"{each.predicted / each.measured:.2f}"]


def cluster(measured: Measured) -> str:
    head = (
        *("pass", "rows", "d", "K", "work, measured", "model", "model / measured", "chunks"),
        *("clock, measured", "simulated", "simulated / measured"),
    )
    lines = (
        [*_compared(each.work), str(each.chunks), *_ratio(each.clock)] for each in measured.cluster
    )
    return table(head, lines)


def fits(measured: Measured) -> str:
    head = ("rows", "d", "K", "passes, measured", "model")
    lines = (
        [f"{shape.n:,}", f"{shape.d:,}", str(shape.K), str(counted), str(expected)]
        for shape, expected, counted in measured.fits
    )
    return table(head, lines)


# What is simulated.


def cost_at_best(kind: Kind, shape: Shape, workers: int, machine: Machine) -> Cost:
    rows = best_chunk_rows(kind, shape, workers, machine)
    return Cost(kind, shape, workers, rows, machine)


def pass_seconds(kind: Kind, shape: Shape, workers: int, machine: Machine) -> float:
    """As it usually goes, in chunks of the best size."""
    return simulate(Tasks.of(cost_at_best(kind, shape, workers, machine)), USUAL).seconds


def one_pass(kind: Kind, machine: Machine) -> str:
    """Seconds of a pass by rows, columns and workers."""
    head = ("d", "rows", "bytes", *(f"W = {workers:,}" for workers in WORKERS))
    lines = (
        [
            f"{d:,}",
            power(n),
            size(n * Shape(n, d).row_bytes),
            *(time(pass_seconds(kind, Shape(n, d), workers, machine)) for workers in WORKERS),
        ]
        for d in COLUMNS
        for n in ROWS
    )
    return table(head, lines)


def whole_fit(machine: Machine) -> str:
    """A logistic fit, its standard errors, and a Gaussian classifier, on a thousand workers."""
    fit = ("fit, W = 32", "W = 128", "W = 1,000")
    head = ("d", "rows", "passes", *fit, "+ standard errors", "Gaussian classifier")
    return table(head, (_whole_fit(Shape(n, d), machine) for d in COLUMNS for n in ROWS))


def _whole_fit(shape: Shape, machine: Machine) -> list[str]:
    light, products = passes(shape)
    told = f"{light}" + (f" + {products} with d² sums" if products else "")
    seconds = [_fit_seconds(shape, workers, machine) for workers in (32, 128, MANY)]
    errors = _heavy_seconds("hessian", shape, machine)
    look = pass_seconds("gradient", shape, MANY, machine)
    gaussian = look + _heavy_seconds("moments", shape, machine)
    return [f"{shape.d:,}", power(shape.n), told, *map(time, (*seconds, errors, gaussian))]


def _fit_seconds(shape: Shape, workers: int, machine: Machine) -> float:
    """A pass for products costs what one for moments does."""
    light, products = passes(shape)
    found = light * pass_seconds("gradient", shape, workers, machine)
    if products:
        found += products * pass_seconds("moments", shape, workers, machine)
    return found


def _heavy_seconds(kind: Kind, shape: Shape, machine: Machine) -> float:
    cost = cost_at_best(kind, shape, MANY, machine)
    return simulate(Tasks.of(cost), USUAL).seconds + cost.solve_seconds


def chunk_sizes(machine: Machine) -> str:
    """10^12 rows of 20 columns on a thousand workers, in chunks of other sizes."""
    times = ("scheduler", "each worker", "pass")
    head = ("rows a chunk", "bytes", "chunks", *times, "useful workers", "memory of a worker")
    rows = (10**4, 10**5, 10**6, 10**7, 10**8)
    costs = [Cost("gradient", Shape(10**12, 20), MANY, each, machine) for each in rows]
    return table(head, (_chunk_size(cost) for cost in costs))


def _chunk_size(cost: Cost) -> list[str]:
    return [
        power(cost.chunk_rows),
        size(cost.chunk_rows * cost.shape.row_bytes),
        power(cost.chunks),
        time(cost.scheduler_seconds),
        time(cost.work_seconds),
        time(simulate(Tasks.of(cost), USUAL).seconds),
        f"{cost.useful_workers:,.0f}",
        size(cost.worker_bytes),
    ]


def traffic(machine: Machine) -> str:
    """All that is computed, read and sent in a pass over 10^12 rows by a thousand workers."""
    head = ("pass", "d", "chunks", "flops", "read", "parameters out", "sums back")
    kinds: tuple[Kind, ...] = ("gradient", "hessian", "moments")
    costs = [cost_at_best(kind, Shape(10**12, d), MANY, machine) for kind in kinds for d in COLUMNS]
    return table(head, (_traffic(cost) for cost in costs))


def _traffic(cost: Cost) -> list[str]:
    sent = [size(cost.bytes_read), size(cost.bytes_out), size(cost.bytes_back)]
    return [cost.kind, f"{cost.shape.d:,}", f"{cost.chunks:,}", size(cost.flops, "flop"), *sent]


def tree(machine: Machine) -> str:
    """What d² sums cost beside the chunks that they are sums of, with a thousand workers."""
    head = ("d", "a sum", "rows a chunk", "chunk", "its share of +", "8 sums in memory", "Cholesky")
    cases = [(d, times * d) for d in (200, 2000, 20_000) for times in (1, 10, 100)]
    return table(head, (_tree(d, rows, machine) for d, rows in cases))


def _tree(d: int, rows: int, machine: Machine) -> list[str]:
    cost = Cost("moments", Shape(10**10, d), MANY, rows, machine)
    one = sum_bytes("moments", cost.shape)
    return [
        f"{d:,}",
        size(one),
        f"{rows:,}",
        time(cost.chunk_seconds),
        time(cost.part_seconds * 8 / 7),
        size(8 * one),
        time(cost.solve_seconds),
    ]


def weather(machine: Machine) -> str:
    """A gradient pass over 10^11 rows of 20 columns by a thousand workers, 1 GB a chunk."""
    shape = Shape(10**11, 20)
    cost = Cost("gradient", shape, MANY, int(LARGEST_CHUNK / shape.row_bytes), machine)
    slower = replace(cost, machine=replace(machine, read=machine.read / 10))
    tasks, long = Tasks.of(cost), Tasks.of(slower)
    head = ("", "pass", "chunks done again", "read ten times slower", "chunks done again")
    lines = []
    for name, each in WEATHERS.items():
        found, also = simulate(tasks, each), simulate(long, each)
        told = [time(found.seconds), f"{found.again:,}", time(also.seconds), f"{also.again:,}"]
        lines.append([name, *told])
    return table(head, lines)


def simulated(machine: Machine) -> dict[str, str]:
    """The tables that follow from the constants."""
    return {
        "gradient pass": one_pass("gradient", machine),
        "hessian pass": one_pass("hessian", machine),
        "whole fit": whole_fit(machine),
        "traffic": traffic(machine),
        "chunk sizes": chunk_sizes(machine),
        "tree": tree(machine),
        "weather": weather(machine),
    }


def all_tables(measured: Measured) -> dict[str, str]:
    return {
        "sizes": sizes(),
        "constants": constants(measured.machine, measured.decode),
        "one core": one_core(measured),
        "two workers": cluster(measured),
        "passes": fits(measured),
        **simulated(measured.machine),
    }


# The document.


def place(name: str) -> re.Pattern[str]:
    """Where a table stands in the document."""
    return re.compile(rf"(<!-- {name} -->\n)(?:(?!<!--).)*(<!-- end -->)", re.DOTALL)


def put(text: str, tables: Mapping[str, str]) -> str:
    """The document with these tables in their places."""
    for name, found in tables.items():
        at = place(name).search(text)
        if at is None:
            raise ValueError(f"The document has no place for the table {name!r}.")
        text = f"{text[: at.end(1)]}\n{found}\n\n{text[at.start(2) :]}"
    return text
