"""This code against another checkout of it, in alternating runs.

    python -m benchmarks.against ../before --turns 5 --cases parquet

Each case runs in a fresh process with the `src` of one checkout on its path, in turns, and the best
of the turns counts for each side. The ratio is this code's time divided by the other's. `--cases`
runs those whose names contain a word.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

N_FILE, D_FILE = 3_000_000, 25


def _classes(n: int, d: int, K: int = 2, seed: int = 0) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    scores = X @ random.normal(size=(d, K)) / 3 + random.gumbel(size=(n, K))
    return X, scores.argmax(axis=1)


def _memory(model: str, n: int, d: int, K: int = 2, **settings: Any) -> Callable[[], Any]:
    def prepare() -> Callable[[], Any]:
        import posteriori

        X, y = _classes(n, d, K)
        return lambda: getattr(posteriori, model)(**settings).fit(X, y)

    return prepare


def _labels(kind: str) -> Callable[[], Any]:
    """A fit of a shared covariance to a million rows with labels that are strings."""

    def prepare() -> Callable[[], Any]:
        from posteriori import GaussianClassifier

        X, y = _classes(1_000_000, 50)
        labels: Any = np.array(["no", "yes"], dtype=object)[y]
        if kind == "categorical":
            labels = __import__("pandas").Series(labels, dtype="category")
        elif kind == "polars":
            labels = __import__("polars").Series(labels.tolist())
        return lambda: GaussianClassifier().fit(X, labels if kind != "integers" else y)

    return prepare


def _parquet(model: str, folder: str, **settings: Any) -> Callable[[], Any]:
    def prepare() -> Callable[[], Any]:
        import posteriori

        return lambda: getattr(posteriori, model)(**settings).fit(
            posteriori.scan(folder, target="y")
        )

    return prepare


def _frame(kind: str) -> Callable[[], Any]:
    """Predictions for one row of a data frame, a hundred times."""

    def prepare() -> Callable[[], Any]:
        import pandas as pd

        from posteriori import LogisticRegression

        X, y = _classes(2000, 4)
        frame = pd.DataFrame(X, columns=list("abcd"))
        if kind == "text":
            frame = frame.apply(lambda column: (column > 0).map({True: "up", False: "down"}))
        model = LogisticRegression(prior=1.0).fit(frame, y)
        row = frame[:1]
        return lambda: [model.predict_proba(row) for _ in range(100)]

    return prepare


def cases(folder: str) -> dict[str, Callable[[], Any]]:
    """All cases by name; each prepares its data and returns what is timed."""
    fits = [
        ("LogisticRegression", 1000, 10, 2),
        ("LogisticRegression", 100_000, 20, 2),
        ("LogisticRegression", 100_000, 20, 5),
        ("LogisticRegression", 1_000_000, 50, 2),
        ("GaussianClassifier", 1_000_000, 20, 2),
        ("GaussianClassifier", 1_000_000, 50, 5),
        ("NaiveBayes", 1_000_000, 20, 2),
        ("LeastSquaresClassifier", 1_000_000, 20, 2),
    ]
    found = {f"memory {m} {n:,} x {d}, {K}": _memory(m, n, d, K) for m, n, d, K in fits}
    models = ("LogisticRegression", "GaussianClassifier", "NaiveBayes", "LeastSquaresClassifier")
    found |= {f"parquet {m} {N_FILE:,} x {D_FILE}": _parquet(m, folder) for m in models}
    kinds = ("integers", "objects", "categorical", "polars")
    found |= {f"labels {kind} 1,000,000 x 50": _labels(kind) for kind in kinds}
    return found | {
        f"one row, {kind} frame, 100 times": _frame(kind) for kind in ("text", "number")
    }


def _write(folder: str) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    for part in range(6):
        X, y = _classes(N_FILE // 6, D_FILE, seed=part)
        table = {f"x{j}": X[:, j] for j in range(D_FILE)} | {"y": y}
        parquet.write_table(pa.table(table), f"{folder}/part-{part}.parquet")


def _run_one(name: str, folder: str) -> None:
    """In a process of its own: seconds of the best of three, and the peak of memory in MB."""
    call = cases(folder)[name]()
    seconds = []
    for _ in range(3):
        begun = perf_counter()
        call()
        seconds.append(perf_counter() - begun)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(min(seconds), peak)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", help="another checkout of this project")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--cases", default="")
    given = parser.parse_args()
    sides = {"this": Path(__file__).parents[1], "other": Path(given.other).resolve()}
    with tempfile.TemporaryDirectory() as folder:
        _write(folder)
        print(f"{'case':50} {'this, s':>9} {'other, s':>9} {'ratio':>6} {'MB':>6}")
        for name in cases(folder):
            if given.cases not in name:
                continue
            best: dict[str, tuple[float, float]] = {}
            for _ in range(given.turns):
                for side, path in sides.items():
                    call = [sys.executable, __file__, "--one", name, folder]
                    environment = os.environ | {"PYTHONPATH": str(path / "src")}
                    out = subprocess.run(
                        call, env=environment, capture_output=True, text=True, check=True
                    )
                    seconds, peak = map(float, out.stdout.split())
                    best[side] = min(best.get(side, (np.inf, np.inf)), (seconds, peak))
            (ours, peak), (theirs, _) = best["this"], best["other"]
            print(
                f"{name:50} {ours:9.4f} {theirs:9.4f} {ours / theirs:6.2f} {peak:6.0f}", flush=True
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        _run_one(*sys.argv[2:])
    else:
        main()
