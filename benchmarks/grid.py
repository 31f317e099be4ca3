"""Logistic and softmax fits with prior=1.0 over a grid of shapes: `python -m benchmarks grid`.

Each cell is our time over that of the fastest rival that comes within 1e-8 (relative) of the least
objective seen: scikit-learn's lbfgs, newton-cg and newton-cholesky, and with two classes glum if it
is installed, each at its loosest tolerance.
"""

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from itertools import product
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression as Rival

from benchmarks.rivals.per_row import per_row
from benchmarks.timing import two_threads
from posteriori import LogisticRegression

ROWS = (100, 1_000, 10_000, 100_000, 1_000_000)
COLUMNS = (2, 10, 50, 200, 1_000)
CLASSES = (2, 3, 10, 50)
MOST_ENTRIES = 2e7
"""Numbers of the largest X, and of the largest matrix of activations."""

MOST_HESSIAN = 3_000
"""Coefficients from which on the rival that forms a Hessian is left out."""

TOLERANCES = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
ENOUGH = 1e-8
SECONDS = 1.0
"""How long fits are repeated for the best time."""

TOO_SLOW = 4.0
"""A rival that takes this many times as long as another is given up."""

HEADING = "| rows | columns | classes | form | ours, ms | rival, ms | solver of the rival | ratio |"


def shapes(quick: bool = False) -> Iterator[tuple[int, int, int, bool]]:
    """Rows, columns, classes, and whether X is sparse."""
    for n, d, K in product(ROWS, COLUMNS, CLASSES):
        if n >= 10 * K and n * max(d, K) <= (2e5 if quick else MOST_ENTRIES) and d * K <= 20_000:
            yield n, d, K, False
            if d >= 200:
                yield n, d, K, True


def make(n: int, d: int, K: int, is_sparse: bool) -> tuple[Any, np.ndarray]:
    """Correlated columns (or a twentieth of the entries of independent ones), and drawn labels."""
    random = np.random.default_rng(0)
    W = 2 * random.standard_normal((d, K)) / np.sqrt(d)
    if is_sparse:
        X = sparse.random(n, d, 0.05, "csr", random_state=0, data_rvs=random.standard_normal)
        a = 4 * X @ W
    else:
        X = random.standard_normal((n, d)) + 0.7 * random.standard_normal((n, 1))
        a = X @ W
    y = (a + random.gumbel(size=(n, K))).argmax(axis=1)
    y[:K] = np.arange(K)
    return X, y


def objective(model: Any, X: Any, y: np.ndarray) -> float:
    """Σ -ln p(t|x) + ½ |slopes|²."""
    W = np.atleast_2d(model.coef_)
    a = X @ W.T + model.intercept_
    if a.shape[1] == 1:
        a = np.hstack([np.zeros_like(a), a])
    loss = logsumexp(a, axis=1) - a[np.arange(len(y)), y]
    return float(loss.sum() + 0.5 * np.square(W).sum())


def best(fit: Callable[[], Any]) -> tuple[float, Any]:
    """The least seconds of a fit, and the model."""
    seconds: list[float] = []
    while not seconds or (sum(seconds) < SECONDS and len(seconds) < 20):
        begun = perf_counter()
        model = fit()
        seconds.append(perf_counter() - begun)
    return min(seconds), model


def rivals(size: int, K: int) -> Iterator[tuple[str, Callable[[float], Any]]]:
    """Names of solvers, and how to make an unfitted estimator at a tolerance."""
    for solver in ("lbfgs", "newton-cg", "newton-cholesky"):
        if solver != "newton-cholesky" or size <= MOST_HESSIAN:
            yield solver, partial(_sklearn, solver)
    if K == 2 and size <= MOST_HESSIAN and find_spec("glum"):
        yield "glum", _glum


def _sklearn(solver: str, tol: float) -> Any:
    return Rival(solver=solver, tol=tol, max_iter=10_000)


def _glum(tol: float) -> Any:
    return per_row(
        "glum.GeneralizedLinearRegressor",
        family="binomial",
        solver="irls-ls",
        max_iter=1_000,
        gradient_tol=tol,
    )


def fastest_rival(X: Any, y: np.ndarray, K: int, least: float) -> tuple[float, str]:
    """The time and the name of the fastest solver that reaches the optimum."""
    found = (np.inf, "none")
    for name, new in rivals((X.shape[1] + 1) * (1 if K == 2 else K), K):
        for tol in TOLERANCES:
            fit = partial(new(tol).fit, X, y)
            begun = perf_counter()
            model = fit()
            if perf_counter() - begun > TOO_SLOW * found[0]:
                break
            if objective(model, X, y) <= least * (1 + ENOUGH):
                found = min(found, (best(fit)[0], f"{name} {tol:g}"))
                break
    return found


def main(quick: bool = False) -> None:
    print(f"{HEADING}\n|{'---|' * 8}")
    with two_threads(), warnings.catch_warnings(action="ignore"):
        for n, d, K, is_sparse in shapes(quick):
            X, y = make(n, d, K, is_sparse)
            ours, model = best(lambda X=X, y=y: LogisticRegression(prior=1.0).fit(X, y))
            theirs, solver = fastest_rival(X, y, K, objective(model, X, y))
            form, times = "sparse" if is_sparse else "dense", (1e3 * ours, 1e3 * theirs)
            cells = [f"{n:,}", f"{d:,}", K, form, *(f"{time:.2f}" for time in times), solver]
            print(f"| {' | '.join(map(str, cells))} | {ours / theirs:.2f} |", flush=True)
