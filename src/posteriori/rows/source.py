"""Rows of a dataset on disk or on a cluster, read batch by batch each time they are summed.

Reading happens in named steps: `scan` makes a source, `discover` is the first pass over it
(columns, levels, classes, number of rows), and every sum after that is one more pass.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from importlib import import_module
from operator import add
from time import perf_counter
from typing import Any, ClassVar, Literal, Self, TypeVar, cast

import numpy as np

from posteriori.errors import (
    ColumnNameError,
    ColumnTypeError,
    DataError,
    Interrupted,
    LabelError,
    ParameterError,
    PosterioriError,
    ScaleError,
    ShapeError,
    SourceError,
)
from posteriori.rows.block import Kernel
from posteriori.rows.categories import check_text, declared_values
from posteriori.rows.features import Table, read_features
from posteriori.rows.in_memory import MemoryRows
from posteriori.rows.schema import Batch, Column, Roles, Schema, listed, merge_columns
from posteriori.rows.target import (
    as_labels,
    check_total_weight,
    merge_classes,
    read_offset,
    read_real_target,
    read_target,
    read_weight,
)
from posteriori.typing import Array, Codes, Labels

S = TypeVar("S")
T = TypeVar("T")

_MOST_CLASSES = 10_000
"""A target with more distinct values than this has no classes."""

_counting = threading.Lock()


# Progress.


@dataclass(frozen=True)
class Step:
    """Where a pass is: its number from 1 on, rows read of all (None while that is not known).

    `objective` is what the pass before came to, where it summed one. `seconds` are those of the
    pass so far.
    """

    number: int
    rows: int
    n_rows: int | None
    objective: float | None
    seconds: float

    def __str__(self) -> str:
        of_all = "" if self.n_rows is None else f" of {self.n_rows:,}"
        return f"pass {self.number}, row {self.rows:,}{of_all}"


@dataclass
class PassLog:
    """Passes over the rows, and bytes read; `listener` is called with each `step` of a pass.

    `objective` is what the last pass came to, `mark` the checksum of some rows in a pass.
    """

    passes: int = 0
    bytes_read: int = 0
    listener: Callable[[Step], object] | None = None
    step: Step | None = None
    objective: float | None = None
    mark: int = 0
    _reported: "PassLog | None" = None

    def read(self, n_bytes: int) -> None:
        """Count bytes that one of several threads has read."""
        with _counting:
            self.bytes_read += n_bytes

    def since_last(self) -> "PassLog":
        """Passes and bytes since the last call of this method."""
        before = self._reported or PassLog()
        self._reported = PassLog(self.passes, self.bytes_read)
        return PassLog(self.passes - before.passes, self.bytes_read - before.bytes_read)

    def __str__(self) -> str:
        """Passes, and bytes of decoded columns that were needed.

        >>> str(PassLog(7, 16_350_000_000))
        '7, 16,350.0 MB read'
        """
        return f"{self.passes}, {self.bytes_read / 1e6:,.1f} MB read"


class Bar:
    """A bar for each pass, by rich, removed after the pass; one line where there is no terminal."""

    def __init__(self, console: Any = None) -> None:
        try:
            self._rich = import_module("rich.progress")
            self._console = console or import_module("rich.console").Console()
        except ImportError as error:
            raise ParameterError(
                "The bar is drawn by rich, which is not installed.",
                "Install it: pip install 'posteriori[cli]'; or pass a function as progress.",
            ) from error
        self._bar: Any = None
        self._line = ""

    def __call__(self, step: Step) -> None:
        rich, console = self._rich, self._console
        objective = "" if step.objective is None else f" objective {step.objective:.8g}"
        title = f"pass {step.number}{objective}"
        is_screen = console.is_jupyter or (console.is_terminal and not console.is_dumb_terminal)
        if is_screen and self._bar is None:
            columns = title, rich.BarColumn(), rich.TimeRemainingColumn()
            count = "{task.completed:,.0f} rows"
            self._bar = rich.Progress(*columns, count, console=console, transient=True)
            self._bar.add_task("", total=step.n_rows)
            self._bar.start()
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=step.rows)
        self._line = f"{title}: {step.rows:,} rows"

    def end(self) -> None:
        """Remove the bar; or print the pass as one line where there is none."""
        if self._bar is not None:
            self._bar.stop()
        elif self._line:
            self._console.print(self._line, highlight=False)
        self._bar, self._line = None, ""


# The first pass.


def _plus(a: Any, b: Any) -> Any:
    """The sum of two values, either of which may be None."""
    return b if a is None else a if b is None else a + b


@dataclass(frozen=True, eq=False)
class LabelWeights:
    """Labels in order, and the weight of the rows with each; of soft labels the sum of shares."""

    labels: Labels
    weight: Array
    soft: bool = False

    def __add__(self, other: "LabelWeights") -> "LabelWeights":
        same = self.labels.dtype == other.labels.dtype and np.array_equal(self.labels, other.labels)
        if self.soft or same:
            return replace(self, weight=self.weight + other.weight)
        labels, *places = merge_classes(self.labels, other.labels)
        if len(labels) > _MOST_CLASSES:
            raise LabelError(
                f"The target has more than {_MOST_CLASSES:,} distinct values, too many for "
                "classes.",
                "Name a column of labels as target; for numbers use GLM.",
            )
        weights = np.concatenate([self.weight, other.weight])
        weight = np.bincount(np.concatenate(places), weights).astype(np.float64)
        return LabelWeights(labels, weight)


@dataclass(frozen=True, eq=False)
class Discovered:
    """Columns and labels of some rows, their weight, and how many rows each batch has.

    `empty` says of each column whether all its entries are missing. `lengths` has the number of
    each chunk, or of the first row of each batch, and its rows. `statistic` is a sum made in the
    same pass, which is that of all these rows if it `is_complete`. `classes` are the labels of rows
    with a weight, in order, of the whole source.
    """

    schema: Schema
    empty: tuple[bool, ...]
    labels: LabelWeights | None
    lengths: tuple[tuple[int, int], ...]
    n_rows: int
    weight: float
    statistic: Any = None
    is_complete: bool = False
    classes: Labels | None = None

    def __add__(self, other: "Discovered") -> "Discovered":
        ours, theirs = self.schema.names, other.schema.names
        if ours != theirs:
            raise ColumnNameError(
                f"Parts of the source have different columns: {listed(ours)} and {listed(theirs)}.",
                "Write the same columns everywhere.",
            )
        pairs = list(zip(self.schema.columns, other.schema.columns, strict=True))
        empty = zip(self.empty, other.empty, strict=True)
        merged = (_merged(*pair, *bare) for pair, bare in zip(pairs, empty, strict=True))
        is_complete = self.is_complete and other.is_complete
        is_complete = is_complete and all(a.kind == b.kind for a, b in pairs)
        return Discovered(
            replace(self.schema, columns=tuple(merged)),
            tuple(map(bool.__and__, self.empty, other.empty)),
            _plus(self.labels, other.labels),
            self.lengths + other.lengths,
            self.n_rows + other.n_rows,
            self.weight + other.weight,
            _plus(self.statistic, other.statistic) if is_complete else None,
            is_complete,
        )


def _merged(a: Column, b: Column, a_is_empty: bool, b_is_empty: bool) -> Column:
    """One column, from what is known of it in two parts of the source."""
    if a_is_empty or b_is_empty:
        return b if a_is_empty else a
    if a.kind == b.kind:
        return merge_columns(a, b) if a.kind == "categorical" else a
    if "categorical" in (a.kind, b.kind):
        raise ColumnTypeError(
            f"Column '{a.name}' is numeric in some parts of the source and text in others.",
            "Write it as the same type everywhere.",
        )
    return replace(a, kind="numeric")


def inspect_batch(batch: Batch, soft_classes: Any = None, real: bool = False) -> Discovered:
    """Columns, labels and weight of one batch; `soft_classes` names columns of soft labels.

    A `real` target is a number, and is not read here.
    """
    n, labels = batch.n_rows, None
    try:
        table = read_features(batch.X) if batch.X.shape[1] else Table((), Schema((), named=True))
        weight = read_weight(batch.weight, n, all_zero=True)
        if not real and batch.y is not None:
            found, y = read_target(batch.y, n, soft_classes)
            if y.ndim == 2:
                total = y.sum(0) if weight is None else weight @ y
            else:
                total = np.bincount(cast(Codes, y), weight, len(found)).astype(np.float64)
            labels = LabelWeights(found, total, y.ndim == 2)
            declared = declared_values(batch.y)
            if declared is not None:  # so that parts without some class keep the order of all
                own = as_labels(declared)
                labels = LabelWeights(own, np.zeros(len(own))) + labels
    except DataError as error:
        raise error.located("", batch.start) from error
    number = batch.start if batch.chunk is None else batch.chunk
    return Discovered(
        table.schema,
        tuple(_is_empty(table, j) for j in range(len(table.schema))),
        labels,
        ((number, n),),
        n,
        float(n if weight is None else weight.sum()),
    )


def _is_empty(table: Table, j: int) -> bool:
    """Whether a column of a table has no value."""
    if table.schema.columns[j].kind == "categorical":
        return not table.schema.columns[j].levels
    if not isinstance(table.values, tuple | np.ndarray):
        return False
    values = table.column(j)
    # Most often the first entry shows that there are values.
    return values.dtype.kind == "f" and bool(np.isnan(values[0]) and np.isnan(values).all())


# Passes.


@dataclass(frozen=True, eq=False)
class Part:
    """A sum over some rows, None where there are none, their number, and a checksum of some."""

    n_rows: int = 0
    value: Any = None
    mark: int = 0

    def __add__(self, other: "Part") -> "Part":
        n_rows, mark = self.n_rows + other.n_rows, self.mark + other.mark
        return Part(n_rows, _plus(self.value, other.value), mark)


def _part(kernel: Callable[[Batch], Any], batch: Batch) -> Part:
    """What the kernel gives for a batch; an error says where the batch is."""
    if not batch.n_rows:
        return Part()
    try:
        return Part(batch.n_rows, kernel(batch))
    except (DataError, ScaleError) as error:
        raise error.located(batch.where) from error


@dataclass(frozen=True, eq=False)
class SourceRows(ABC):
    """`Rows` of a source that is read batch by batch, in every pass.

    A new kind of source implements `_sum_batches` and `_iterate`. `real` says that the target is a
    number, `soft_classes` what the user calls columns of soft labels. `known_schema` and
    `known_classes` are those of an earlier fit. `code` is applied to class codes as they are read,
    `prepare` to features. `n_expected` is the number of rows, where it is known before the first
    pass.
    """

    roles: Roles
    real: bool = field(default=False, kw_only=True)
    soft_classes: Any = field(default=None, kw_only=True)
    log: PassLog = field(default_factory=PassLog, kw_only=True)
    known_schema: Schema | None = field(default=None, kw_only=True)
    known_classes: Labels | None = field(default=None, kw_only=True)
    code: Callable[[Any], Array] | None = field(default=None, kw_only=True)
    prepare: Callable[[Any], Any] | None = field(default=None, kw_only=True)
    n_expected: int | None = field(default=None, kw_only=True)
    _found: list[Discovered] = field(default_factory=list, kw_only=True)

    in_memory: ClassVar[Literal[False]] = False
    is_distributed: ClassVar[bool] = False
    """Whether a pass needs a scheduler, which must not be called while a model is pickled."""

    def __repr__(self) -> str:
        found = f"{self.n_rows:,} rows" if self._found else "not read yet"
        return f"<rows of {self._origin}, {found}>\ntarget={listed(self.roles.targets)}"

    # Each kind of source implements these.

    @property
    @abstractmethod
    def _origin(self) -> str:
        """What the rows are read from, in a few words."""

    @abstractmethod
    def _sum_batches(self, task: Callable[[Batch], S], once: bool = False) -> Iterator[S]:
        """What `task` gives for the batches, added up where they are next to each other, in the
        order of the rows. What is read `once` is not cached.
        """

    @abstractmethod
    def _iterate(self, random: np.random.Generator | None) -> Iterator[Batch]:
        """The batches one after the other, in their order or, as far as it can be, a random one."""

    @property
    def has_offsets(self) -> bool:
        """Whether rows have numbers that are added to the activations."""
        return self.roles.offset is not None

    @property
    def has_target(self) -> bool:
        """Whether rows have labels or numbers to predict."""
        return bool(self.roles.targets)

    @property
    def files(self) -> Sequence[str]:
        """The files that the rows are read from, where there are any."""
        return ()

    # Discovery.

    def discover(self) -> Self:
        """Make the first pass over the rows, unless it was made before."""
        if not self._found:
            inspect = partial(inspect_batch, soft_classes=self.soft_classes, real=self.real)
            self._remember(self._sum(inspect))
        return self

    def discover_and_sum(self, gather: Callable[[MemoryRows], S]) -> S | None:
        """Discovery and the sum of what `gather` gives for each batch, in one pass.

        Each batch is read with its own columns and classes, which sums align. None where the
        sum is to be made in another pass: discovery was made before, or a batch alone does not
        show what the whole source has (a column without a value, rows that `gather` refuses).
        """
        if self._found or self.known_schema is not None or self.real:
            self.discover()
            return None

        def inspect(batch: Batch) -> Discovered:
            found = inspect_batch(batch, self.soft_classes)
            if found.labels is None or not found.weight:
                return replace(found, is_complete=found.labels is not None)
            try:
                own = replace(self, _found=[self._in_order(found)])
                statistic = gather(own.read(batch))
                return replace(found, statistic=statistic, is_complete=not any(found.empty))
            except PosterioriError:  # raised again by the pass that follows, with all rows known
                return found

        statistic: Any = self._remember(self._sum(inspect, once=True))
        if statistic is None or statistic.schema != self.schema:
            return None
        same = np.array_equal(statistic.classes, cast(Labels, self.classes))
        return cast(S, statistic) if same else None

    def _remember(self, found: Discovered | None) -> Any:
        """Keep what the first pass has found; its statistic is returned."""
        if found is None:
            raise ShapeError("There are no rows.", "Pass a source with at least one row.")
        check_total_weight(found.weight)
        self._found.append(replace(self._in_order(found), statistic=None))
        return found.statistic if found.is_complete else None

    def _in_order(self, found: Discovered) -> Discovered:
        """Levels and classes in the order that the types of the source declare."""
        labels, classes = found.labels, None
        if labels is not None:
            classes = labels.labels if labels.soft else labels.labels[labels.weight > 0]
            order = () if labels.soft else self.roles.declared.get(self.roles.targets[0], ())
            if order:
                place = {level: i for i, level in enumerate(order)}
                places = [place.get(str(label), len(place)) for label in classes]
                classes = classes[np.argsort(places, kind="stable")]
        return replace(found, schema=self.roles.in_order(found.schema), classes=classes)

    def check_text(self) -> None:
        """An error for columns of text that are dates, numbers or identifiers."""
        for j in self.schema.categorical:
            column = self.schema.columns[j]
            check_text(column, self.n_rows, column.name in self.roles.text)

    @property
    def discovered(self) -> Discovered:
        """The result of the first pass; an error before it."""
        if not self._found:
            raise SourceError(
                "The columns and classes of this source are not known yet.",
                "Call discover() first: it reads the source once.",
            )
        return self._found[0]

    @property
    def schema(self) -> Schema:
        return self.discovered.schema if self.known_schema is None else self.known_schema

    @property
    def classes(self) -> Labels | None:
        classes = None if self.real else self.discovered.classes
        return classes if classes is None or self.known_classes is None else self.known_classes

    @property
    def soft(self) -> bool:
        labels = self.discovered.labels
        return not self.real and labels is not None and labels.soft

    @property
    def n_rows(self) -> int:
        return self.discovered.n_rows

    def read(self, batch: Batch) -> MemoryRows:
        """The rows of a batch in memory, once columns and classes are known.

        Errors have the numbers of rows in the whole source.
        """
        n, classes, offset = batch.n_rows, self.classes, None
        y: Codes | Array | None = None
        try:
            X = batch.X if self.prepare is None else self.prepare(batch.X)
            table = read_features(X, self.schema, "The model")
            weight = read_weight(batch.weight, n, all_zero=True)
            if self.real:
                y = read_real_target(batch.y, n)
            elif classes is not None:
                y = read_target(batch.y, n, self.soft_classes, known=classes, weight=weight)[1]
            if batch.offset is not None:
                K = 1 if classes is None or len(classes) == 2 else len(classes)
                offset = read_offset(batch.offset, n, K)
        except DataError as error:
            raise error.located("", batch.start) from error
        y = y if self.code is None else self.code(y)
        return MemoryRows(table, y, weight, classes, offset, batch.start, is_batch=True)

    # Passes.

    def map_sum(self, kernel: Kernel[S], *, block_entries: int | None = None) -> S:
        """Run `kernel` on every block, and add up its results in the order of the rows."""
        found = self._sum(
            lambda batch: self.read(batch).map_sum(kernel, block_entries=block_entries)
        )
        self.log.objective = getattr(found, "objective", None)
        return cast(S, found)

    def _sum(self, kernel: Callable[[Batch], Any], once: bool = False) -> Any:
        """The sum of `kernel` over all batches, in one pass; None where there are no rows."""
        values = self._one_pass(self._sum_batches(partial(_part, kernel), once))
        first = next(values, None)
        return reduce(add, values, first)

    def each(self, make: Callable[[Batch], list[T]]) -> Iterator[list[T]]:
        """What `make` gives for the batches, in lists in the order of the rows."""
        return self._one_pass(self._sum_batches(partial(_part, make), once=True))

    def batches(self, random: np.random.Generator | None = None) -> Iterator[MemoryRows]:
        """The rows a batch at a time, in their order or, as far as it can be, a random one."""
        return self._one_pass(map(partial(_part, self.read), self._iterate(random)))

    def _one_pass(self, parts: Iterator[Part]) -> Iterator[Any]:
        """The values of the parts of a pass, which is counted and reported."""
        log, n_rows, mark, begun = self.log, 0, 0, perf_counter()
        number = 1 if log.step is None else log.step.number + 1
        expected = self.n_rows if self._found else self.n_expected

        def report() -> None:
            log.step = Step(number, n_rows, expected, log.objective, perf_counter() - begun)
            if log.listener is not None:
                log.listener(log.step)

        try:
            report()
            for part in parts:
                n_rows, mark = n_rows + part.n_rows, mark + part.mark
                report()
                if part.value is not None:
                    yield part.value
        finally:
            if isinstance(log.listener, Bar):
                log.listener.end()
        log.passes += 1
        if self._found and n_rows != self.n_rows:
            raise _other_rows(f"The source has {n_rows:,} rows, and had {self.n_rows:,}")
        if mark and log.mark not in (0, mark):
            raise _other_rows("Chunks have other rows than")
        log.mark = mark or log.mark

    @contextmanager
    def fitting(self) -> Iterator[None]:
        """The context of a fit, in which an interrupt names the pass."""
        try:
            yield
        except KeyboardInterrupt as error:
            step, where = self.log.step, "before the first pass"
            if step is not None:
                where = f"{'after' if step.rows == step.n_rows else 'in'} {step}"
            raise Interrupted(
                f"Stopped {where}.",
                "The estimator is as it was before the fit. Fit again; the first pass over the "
                "same source is not repeated.",
            ) from error

    # Views of the same rows.

    def known_as(self, schema: Schema, classes: Labels | None, new_levels: bool = False) -> Self:
        """More rows of a model that was fitted to these columns and classes.

        With `new_levels`, categorical columns may have more levels than they had.
        """
        if new_levels:
            found = {column.name: column for column in self.schema.columns}
            columns = (
                merge_columns(column, found[column.name]) if column.name in found else column
                for column in schema.columns
            )
            schema = replace(schema, columns=tuple(columns))
        return replace(self, known_schema=schema, known_classes=classes)

    def with_offset(self, offset: Any) -> Self:
        """The same rows with offsets, for sources whose offsets are an argument of fit."""
        raise ParameterError(
            "offset was given together with rows of scan(), which have offsets of their own.",
            "Name the column of offsets: scan(source, offset=...).",
        )

    def recoded(self, code: Callable[[Any], Array]) -> Self:
        """The same rows with `code` of their targets in place of these."""
        return replace(self, code=code)

    def with_columns(self, columns: Sequence[str], target: str) -> Self:
        """The same rows with other features and this target, before their first pass."""
        roles = replace(self.roles, columns=tuple(columns), targets=(target,))
        return replace(self, roles=roles, _found=[])

    def with_numbers(self) -> Self:
        """The same rows with the target as a number."""
        if not self.has_target:
            raise LabelError("The rows have no target.", "Name one: scan(source, target=...).")
        return replace(self, real=True, _found=list(self._found))


def _other_rows(problem: str) -> SourceError:
    return SourceError(
        f"{problem} in the first pass.",
        "Scan again, and fit to what is there now. The chunks of Dask must be the same each time "
        "they are computed: fix seeds.",
    )
