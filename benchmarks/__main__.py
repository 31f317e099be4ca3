"""Run the cases one after the other, show the table, save it if asked."""

import argparse
import os
import platform
import sys
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from pathlib import Path

import numpy as np
import sklearn
from rich.console import Console
from rich.table import Table

from benchmarks import grid
from benchmarks.accuracy import ENOUGH
from benchmarks.cases import CASES
from benchmarks.measures import Case, Scale
from benchmarks.result import Result, result
from benchmarks.timing import THREADS, two_threads

RESULTS = Path(__file__).with_name("results.md")
FILE_WIDTH = 150
BUSY = 0.5
HEADINGS = ("case", "data", "ours", "rival", "value", "target", "verdict")
LEGEND = (
    "The value is how many times faster we are, unless the case says what else it is. "
    "Times are those of the best call in at least {turns} turns of equal length, ours and the "
    "rival's in alternation in one "
    f"process, {THREADS} threads each; of a rival's solvers the fastest (or smallest) counts. "
    "Where a fit has an optimum to reach, each rival has the loosest tolerance with which its mean "
    f"objective is within {ENOUGH:g} of it (relative), and the row says how far off each side is."
)


def main() -> None:
    options = _options()
    if options.table == "grid":
        grid.main(options.quick)
        return
    scale = Scale(shrink=20, turns=3, turn_seconds=0.02, seconds=0.5) if options.quick else Scale()
    console = Console(width=None if sys.stdout.isatty() else FILE_WIDTH)
    _warn_if_busy(console)
    with two_threads():
        results = [_shown(_result(case, scale), console) for case in _chosen(options.only)]
    console.print(_table(results))
    for note in _notes(results):
        console.print(note, style="dim", markup=False, soft_wrap=True)
    console.print(LEGEND.format(turns=scale.turns))
    if options.quick:
        console.print("A quick run only shows that everything runs: the targets are for full size.")
    if options.save:
        RESULTS.write_text(_markdown(results, scale), encoding="utf-8")
        console.print(f"Saved to {RESULTS.relative_to(Path.cwd())}")


def _warn_if_busy(console: Console) -> None:
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if load > BUSY:
        console.print(f"Other work is running here (load {load:.1f}): ratios will be unreliable.")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "table", nargs="?", choices=["cases", "grid"], default="cases", help="which table to print"
    )
    parser.add_argument("--quick", action="store_true", help="a twentieth of the rows")
    parser.add_argument("--only", metavar="NAME", default="", help="cases whose name contains NAME")
    parser.add_argument("--save", action="store_true", help="write benchmarks/results.md")
    return parser.parse_args()


def _chosen(only: str) -> list[Case]:
    """The cases whose name or data contains `only`."""
    return [case for case in CASES if only in f"{case.name} {case.data}"]


def _result(case: Case, scale: Scale) -> Result:
    """The row of a case, which says so if something it needs is not installed."""
    try:
        return case.run(scale)
    except ImportError as missing:
        return result(case.name, case.data, "", "", None, case.target, note=str(missing))


def _shown(result: Result, console: Console) -> Result:
    """The same result, after saying it in a line: a full run takes minutes."""
    console.print(
        " · ".join(part for part in astuple(result) if part),
        style="dim",
        markup=False,
        soft_wrap=True,
    )
    return result


def _table(results: Iterable[Result]) -> Table:
    table = Table(*HEADINGS, title="Benchmarks")
    for row in results:
        style = {"met": "green", "SHORT": "bold red"}.get(row.verdict)
        *cells, verdict = _cells(row)
        table.add_row(*cells, f"[{style}]{verdict}" if style else "")
    return table


def _cells(result: Result) -> tuple[str, ...]:
    """All but the note."""
    return astuple(result)[: len(HEADINGS)]


def _notes(results: Iterable[Result]) -> list[str]:
    """What was left out and why, one line a row that has something to say."""
    return [f"{r.case}, {r.data}: left out: {r.note}" for r in results if r.note]


def _markdown(results: Sequence[Result], scale: Scale) -> str:
    lines = [
        "# Benchmarks",
        "",
        LEGEND.format(turns=scale.turns),
        "",
        f"Python {platform.python_version()}, NumPy {np.__version__}, "
        f"scikit-learn {sklearn.__version__}, {platform.machine()}"
        + (f", rows divided by {scale.shrink}." if scale.shrink > 1 else "."),
        "",
        "| " + " | ".join(HEADINGS) + " |",
        "|" + "---|" * len(HEADINGS),
        *(
            "| " + " | ".join(part.replace("|", "\\|") for part in _cells(r)) + " |"
            for r in results
        ),
        "",
        *(f"- {note}" for note in _notes(results)),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
