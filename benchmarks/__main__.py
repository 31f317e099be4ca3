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

from benchmarks.cases import CASES
from benchmarks.measures import Scale
from benchmarks.result import Result
from benchmarks.threads import THREADS, two_threads

RESULTS = Path(__file__).with_name("results.md")
FILE_WIDTH = 150
BUSY = 0.5
HEADINGS = ("case", "data", "ours", "rival", "value", "target", "verdict")
LEGEND = (
    "The value is how many times faster we are, unless the case says what else it is. "
    "Times are those of the best call in at least {turns} turns of equal length, ours and the "
    "rival's in alternation in one "
    f"process, {THREADS} threads each; of a rival's solvers the fastest (or thriftiest) counts."
)


def main() -> None:
    options = _options()
    scale = Scale(shrink=20, turns=3, turn_seconds=0.02, seconds=0.5) if options.quick else Scale()
    console = Console(width=None if sys.stdout.isatty() else FILE_WIDTH)
    _warn_if_busy(console)
    with two_threads():
        results = [_shown(case.run(scale), console) for case in _chosen(options.only)]
    console.print(_table(results))
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
    parser.add_argument("--quick", action="store_true", help="a twentieth of the rows")
    parser.add_argument("--only", metavar="NAME", default="", help="cases whose name contains NAME")
    parser.add_argument("--save", action="store_true", help="write benchmarks/results.md")
    return parser.parse_args()


def _chosen(only: str) -> list:
    """The cases whose name or data contains `only`."""
    return [case for case in CASES if only in f"{case.name} {getattr(case, 'data', '')}"]


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
    for result in results:
        style = {"met": "green", "SHORT": "bold red"}.get(result.verdict)
        table.add_row(*astuple(result)[:-1], f"[{style}]{result.verdict}" if style else "")
    return table


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
            "| " + " | ".join(part.replace("|", "\\|") for part in astuple(r)) + " |"
            for r in results
        ),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
