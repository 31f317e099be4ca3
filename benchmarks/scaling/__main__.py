"""Measure, simulate, and show the tables; or write them into docs/scaling.md."""

import argparse
from pathlib import Path

from benchmarks.scaling.measure import measure
from benchmarks.scaling.tables import all_tables, put

DOCUMENT = Path(__file__).parents[2] / "docs" / "scaling.md"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument("--save", action="store_true", help="write docs/scaling.md")
    save = parser.parse_args().save
    tables = all_tables(measure())
    for name, table in tables.items():
        print(f"### {name}\n\n{table}\n")
    if save:
        text = DOCUMENT.read_text(encoding="utf-8")
        DOCUMENT.write_text(put(text, tables), encoding="utf-8")


if __name__ == "__main__":  # workers import this file
    main()
