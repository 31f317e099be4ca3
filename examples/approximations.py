"""Posteriors by Laplace, by the variational bound and by draws, beside the exact one.

With up to three coefficients the posterior can be integrated on a grid. Columns are standardised
first, so that the prior, N(0, 1/precision) on each slope and N(0, 10²) on the intercept, is that
of the columns as they are passed.

Conventions: n rows, d columns, p coefficients w (p,), the intercept first.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, log_expit, logsumexp
from sklearn.datasets import load_breast_cancer, load_iris
from statsmodels.datasets import spector

from posteriori import BayesianLogisticRegression
from posteriori.models.bayesian import InferenceChoice
from posteriori.posterior.monte_carlo import diagnostics

Array = NDArray[np.float64]

INSIDE, OUTSIDE = 0.5, 3.0
"""Rows to be predicted: all columns so many standard deviations above their means."""

DEEP = 40.0
"""What is so far below the largest log density is nothing."""

POINTS, MOST_POINTS = 40, 640
"""Of the grid along each direction, at first and at most."""

AGREE = 1e-8
"""The most by which numbers of two grids differ, one being twice as fine."""

SOME = 2**14
"""Points of the grid at a time."""


def main() -> None:
    for title, make in PROBLEMS.items():
        print(f"### {title}\n\n{table(make())}\n")


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows X (n, d) of standardised columns, and whether each is of the second class, y (n,)."""

    X: Array
    y: NDArray[np.bool_]
    columns: tuple[str, ...]
    precision: float = 1.0
    fit_intercept: bool = True

    def design(self, X: Array) -> Array:
        """X with a column of ones in front, if there is an intercept."""
        return np.insert(X, 0, 1.0, axis=1) if self.fit_intercept else X

    @property
    def terms(self) -> tuple[str, ...]:
        return ("intercept", *self.columns) if self.fit_intercept else self.columns

    @property
    def asked(self) -> Array:
        """The rows to be predicted (2, d)."""
        return np.outer([INSIDE, OUTSIDE], np.ones(len(self.columns)))

    def fit(self, inference: InferenceChoice, random_state: int = 0) -> BayesianLogisticRegression:
        model = BayesianLogisticRegression(
            prior=self.precision,
            inference=inference,
            fit_intercept=self.fit_intercept,
            random_state=random_state,
        )
        return model.fit(self.X, self.y)


@dataclass(frozen=True, eq=False)
class Answer:
    """What a posterior says: ln p(t); mean and sd of each coefficient; p(C|x) of the rows asked."""

    log_evidence: float
    mean: Array
    sd: Array
    probability: Array

    @property
    def numbers(self) -> Array:
        return np.concatenate([[self.log_evidence], self.mean, self.sd, self.probability])


# Data.


def grades() -> Problem:
    """Whose grades improved, of 32 students (Spector and Mazzeo 1980)."""
    data = spector.load_pandas().data
    return standardised(data[["GPA", "PSI"]], data["GRADE"] == 1)


def tumours() -> Problem:
    """Which of the first thirty tumours are benign: three are."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return standardised(X.loc[:29, ["mean texture"]], y[:30] == 1)


def iris(
    kinds: tuple[int, int],
    columns: list[str],
    precision: float = 1.0,
    fit_intercept: bool = True,
) -> Problem:
    """Two kinds of iris, fifty flowers each."""
    data = load_iris(as_frame=True)
    X, y = data.data[data.target.isin(kinds)], data.target[data.target.isin(kinds)]
    found = standardised(X[[f"{column} (cm)" for column in columns]], y == max(kinds))
    return replace(found, columns=tuple(columns), precision=precision, fit_intercept=fit_intercept)


def standardised(X: pd.DataFrame, y: pd.Series) -> Problem:
    values = X.to_numpy()
    return Problem(
        (values - values.mean(axis=0)) / values.std(axis=0), y.to_numpy(), tuple(X.columns)
    )


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "Grades": grades,
    "Sepals": partial(iris, (1, 2), ["sepal length", "sepal width"]),
    "Tumours": tumours,
    "One coefficient": partial(iris, (1, 2), ["petal width"], fit_intercept=False),
    "Separated": partial(iris, (0, 1), ["petal length"]),
    "Separated, with a weak prior": partial(iris, (0, 1), ["petal length"], precision=0.01),
}


# The exact answer.


def exact(problem: Problem) -> Answer:
    """By the trapezoidal rule, on grids that get finer until nothing changes.

    Its error falls exponentially for a smooth function that is nothing at the ends.
    """
    grid = Grid.of(problem).fitted()
    points, found = POINTS, grid.integrate(POINTS)
    while points < MOST_POINTS:
        points *= 2
        before, found = found, grid.integrate(points)
        if abs(found.numbers - before.numbers).max() < AGREE:
            return found
    raise RuntimeError(f"A grid of {points} points a direction is too coarse.")


@dataclass(frozen=True, eq=False)
class Grid:
    """A box low <= z <= high (p,), with w = centre + root z; z is white by the Laplace fit."""

    problem: Problem
    precision: Array
    centre: Array
    root: Array
    low: Array
    high: Array

    @classmethod
    def of(cls, problem: Problem) -> "Grid":
        """A box that may be too small, with the prior that the model has."""
        model = problem.fit("laplace")
        prior, d = model.prior_, len(problem.columns)
        first = [prior.intercept_precision] if problem.fit_intercept else []
        precision = np.concatenate([first, np.broadcast_to(prior.precision, d)])
        root = np.linalg.cholesky(model.posterior_.covariance)
        reach = np.full(len(root), 8.0)
        return cls(problem, precision, model.posterior_.mean, root, -reach, reach)

    def fitted(self) -> "Grid":
        """The box outside of which there is nothing, and not much more than that."""
        z = self.axes(POINTS)
        depth = self.depth(POINTS)
        inside = [axis[depth.max(axis=others(i, depth.ndim)) > -DEEP] for i, axis in enumerate(z)]
        step = np.array([axis[1] - axis[0] for axis in z])
        low = np.array([axis[0] for axis in inside]) - step
        high = np.array([axis[-1] for axis in inside]) + step
        box = replace(self, low=low, high=high)
        return box if (low >= self.low).all() and (high <= self.high).all() else box.fitted()

    def axes(self, points: int) -> list[Array]:
        """Coordinates along each direction."""
        return [np.linspace(*ends, points) for ends in zip(self.low, self.high, strict=True)]

    def places(self, points: int) -> Iterator[Array]:
        """Coefficients at the points of the grid, some at a time, as rows."""
        z = np.stack(np.meshgrid(*self.axes(points), indexing="ij"), axis=-1)
        z = z.reshape(-1, len(self.low))
        for start in range(0, len(z), SOME):
            yield self.centre + z[start : start + SOME] @ self.root.T

    def log_density(self, w: Array) -> Array:
        """ln p(t|w) + ln p(w) of rows w."""
        problem = self.problem
        signs = np.where(problem.y, 1.0, -1.0)
        log_likelihood = log_expit(w @ (problem.design(problem.X) * signs[:, None]).T).sum(axis=1)
        log_prior = 0.5 * (np.log(self.precision / (2 * np.pi)) - self.precision * w**2)
        return log_likelihood + log_prior.sum(axis=1)

    def depth(self, points: int) -> Array:
        """ln p(t, w) less its largest value, an axis a direction."""
        found = np.concatenate([self.log_density(w) for w in self.places(points)])
        return (found - found.max()).reshape([points] * len(self.low))

    def integrate(self, points: int) -> Answer:
        """Sums over the grid; at its ends there is nothing that would have to be halved."""
        logs = [self.log_density(w) for w in self.places(points)]
        total = logsumexp(np.concatenate(logs))
        cell = np.prod([axis[1] - axis[0] for axis in self.axes(points)])
        asked = self.problem.design(self.problem.asked)
        first = second = probability = 0.0
        for w, log_density in zip(self.places(points), logs, strict=True):
            share = np.exp(log_density - total)
            first = first + share @ w
            second = second + share @ (w - self.centre) ** 2
            probability = probability + share @ expit(w @ asked.T)
        return Answer(
            float(total + np.log(cell) + np.linalg.slogdet(self.root)[1]),
            first,
            np.sqrt(second - (first - self.centre) ** 2),
            probability,
        )


def others(i: int, n: int) -> tuple[int, ...]:
    return tuple(j for j in range(n) if j != i)


# The answers of the models.


def answer(problem: Problem, model: BayesianLogisticRegression) -> Answer:
    posterior = model.posterior_
    return Answer(
        model.log_evidence_,
        posterior.mean,
        posterior.standard_deviation,
        model.predict_proba(problem.asked)[:, 1],
    )


def errors(problem: Problem, model: BayesianLogisticRegression) -> Answer:
    """Standard errors of the numbers by Monte Carlo; that of the evidence is not known.

    Predictions are made by a thousand of the draws.
    """
    draws, sd = model.posterior_.draws, model.posterior_.standard_deviation
    some = draws[:, :: draws.shape[0] * draws.shape[1] // 1000]
    return Answer(
        np.nan,
        mean_error(draws),
        mean_error((draws - model.posterior_.mean) ** 2) / (2 * sd),
        mean_error(expit(some @ problem.design(problem.asked).T)),
    )


# The table.


def table(problem: Problem) -> str:
    """In Markdown."""
    models = [problem.fit(name) for name in ("laplace", "variational", "monte_carlo")]
    answers = [exact(problem), *(answer(problem, model) for model in models)]
    found = np.column_stack([each.numbers for each in answers])
    error = errors(problem, models[-1]).numbers
    lines = [
        "| | exact | Laplace | variational | Monte Carlo |",
        "|---|---|---|---|---|",
        *(line(*each) for each in zip(names(problem), found, error, strict=True)),
        "| `approximation_check_` | | " + " | ".join(check_text(model) for model in models) + " |",
    ]
    return "\n".join(lines)


def names(problem: Problem) -> tuple[str, ...]:
    """Of the numbers of an answer."""
    means = (f"mean, {term}" for term in problem.terms)
    deviations = (f"sd, {term}" for term in problem.terms)
    return ("ln p(t)", *means, *deviations, "p inside", "p far out")


def line(name: str, numbers: Array, error: float) -> str:
    write = probability if name.startswith("p ") else "{:.3f}".format
    cells = [write(number) for number in numbers]
    if np.isfinite(error):
        cells[-1] += f" ± {error:.1g}"
    return f"| {' | '.join([name, *cells])} |"


def mean_error(draws: Array) -> Array:
    """The Monte Carlo standard error of the mean of draws."""
    return diagnostics(draws)["mcse_mean"]


def probability(p: float) -> str:
    """One that is nearly one is told by what it lacks, unless that is rounding."""
    if 0.999 < p < 1 - 1e-12:
        return f"1 - {1 - p:.1e}"
    return f"{p:.4f}"


def check_text(model: BayesianLogisticRegression) -> str:
    found = model.approximation_check_
    if found.k_hat is None:
        return found.word
    return f"{found.word} (discrepancy {found.discrepancy:.2f}, k-hat {found.k_hat:.2f})"


if __name__ == "__main__":
    main()
