"""Posteriors by Laplace, variational and Monte Carlo methods, compared with exact integrals.

The exact posterior is integrated on a grid. Columns are standardised; the prior is
N(0, 1/precision) on slopes and N(0, 10²) on the intercept.

Conventions: n rows, d columns, p = d + 1 coefficients w (p,), the intercept first.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, logsumexp
from sklearn.datasets import load_breast_cancer, load_iris

from posteriori import BayesianLogisticRegression
from posteriori.posterior.monte_carlo import diagnostics

Array = NDArray[np.float64]

NEW_ROWS = (0.5, 3.0)
"""Rows to predict: all columns so many standard deviations above their means."""

REACH, DEPTH = 40.0, 40.0
"""The box ends REACH standard deviations of the Laplace fit from its mean, or where the log density
is DEPTH below its maximum."""

POINTS = {2: 400, 3: 80}
"""Points of the grid along each direction, by number of coefficients."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Standardised columns X (n, d), and whether each row is of the second class, y (n,)."""

    X: Array
    y: NDArray[np.bool_]
    columns: tuple[str, ...]
    precision: float = 1.0

    def fit(self, inference: str) -> BayesianLogisticRegression:
        model = BayesianLogisticRegression(
            prior=self.precision, inference=inference, random_state=0
        )
        return model.fit(self.X, self.y)

    def log_density(self, w: Array) -> Array:
        """ln p(t|w) + ln p(w) of rows w."""
        sign = np.where(self.y, 1.0, -1.0)[:, None]
        precision = np.array([0.01, *[self.precision] * len(self.columns)])
        log_likelihood = log_expit(w @ (with_constant(self.X) * sign).T).sum(axis=1)
        return log_likelihood + 0.5 * (np.log(precision / (2 * np.pi)) - precision * w**2).sum(
            axis=1
        )

    @property
    def new_rows(self) -> Array:
        return np.outer(NEW_ROWS, np.ones(len(self.columns)))

    @property
    def names(self) -> list[str]:
        """Of the numbers of `exact` and `approximate`."""
        terms = ["intercept", *self.columns]
        names = [f"{what}, {term}" for what in ("mean", "sd") for term in terms]
        return ["ln p(t)", *names, "p inside", "p far out"]


def with_constant(X: Array) -> Array:
    return np.insert(X, 0, 1.0, axis=1)


def standardised(X: Array, y: Array, *columns: str, precision: float = 1.0) -> Problem:
    return Problem((X - X.mean(axis=0)) / X.std(axis=0), y, columns, precision)


def problems() -> dict[str, Problem]:
    iris, kind = load_iris(return_X_y=True)
    tumours, benign = load_breast_cancer(return_X_y=True)
    petals, is_versicolor = iris[:100, 2:3], kind[:100] == 1
    return {
        "Sepals": standardised(iris[50:, :2], kind[50:] == 2, "sepal length", "sepal width"),
        "Tumours": standardised(tumours[:30, 1:2], benign[:30] == 1, "mean texture"),
        "Separated": standardised(petals, is_versicolor, "petal length"),
        "Separated, with a weak prior": standardised(
            petals, is_versicolor, "petal length", precision=0.01
        ),
    }


def exact(problem: Problem) -> Array:
    """ln p(t), means, standard deviations and predictions by the trapezoidal rule."""
    laplace = problem.fit("laplace").posterior_
    root = np.linalg.cholesky(laplace.covariance)
    p = len(root)

    def places(axes: list[Array]) -> Array:
        grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
        return laplace.mean + grid.reshape(-1, p) @ root.T

    def log_density(w: Array) -> Array:
        return np.concatenate([problem.log_density(part) for part in np.array_split(w, 64)])

    axes = [np.linspace(-REACH, REACH, 61)] * p
    depth = log_density(places(axes)).reshape([61] * p)
    inside = np.argwhere(depth > depth.max() - DEPTH)
    low, high = inside.min(axis=0) - 1, inside.max(axis=0) + 1
    axes = [np.linspace(axes[j][low[j]], axes[j][high[j]], POINTS[p]) for j in range(p)]
    w = places(axes)
    logs = log_density(w)
    cell = np.prod([axis[1] - axis[0] for axis in axes]) * np.prod(np.diag(root))
    share = np.exp(logs - logsumexp(logs))
    mean = share @ w
    sd = np.sqrt(share @ (w - mean) ** 2)
    predictions = share @ expit(w @ with_constant(problem.new_rows).T)
    return np.array([logsumexp(logs) + np.log(cell), *mean, *sd, *predictions])


def approximate(problem: Problem, model: BayesianLogisticRegression) -> Array:
    """The same numbers by a model."""
    posterior = model.posterior_
    predictions = model.predict_proba(problem.new_rows)[:, 1]
    return np.array(
        [model.log_evidence_, *posterior.mean, *posterior.standard_deviation, *predictions]
    )


def errors(problem: Problem, model: BayesianLogisticRegression) -> Array:
    """Monte Carlo standard errors of the same numbers."""
    draws, sd = model.posterior_.draws, model.posterior_.standard_deviation
    squares = (draws - model.posterior_.mean) ** 2
    predictions = expit(draws @ with_constant(problem.new_rows).T)
    return np.array(
        [
            model.log_evidence_error_,
            *diagnostics(draws)["mcse_mean"],
            *diagnostics(squares)["mcse_mean"] / (2 * sd),
            *diagnostics(predictions)["mcse_mean"],
        ]
    )


def table(problem: Problem) -> str:
    """In Markdown."""
    models = [problem.fit(name) for name in ("laplace", "variational", "monte_carlo")]
    numbers = [exact(problem), *(approximate(problem, model) for model in models)]
    lines = ["| | exact | Laplace | variational | Monte Carlo |", "|---|---|---|---|---|"]
    rows = zip(problem.names, *numbers, errors(problem, models[-1]), strict=True)
    for name, *values, error in rows:
        cells = [written(name, value) for value in values]
        lines.append(f"| {name} | {' | '.join(cells)} ± {error:.1g} |")
    words = [model.approximation_check_.word for model in models]
    lines.append(f"| `approximation_check_` | | {' | '.join(words)} |")
    return "\n".join(lines)


def written(name: str, value: float) -> str:
    """A number of the table; probabilities near one by their distance from it."""
    if not name.startswith("p "):
        return f"{value:.3f}"
    return f"1 - {1 - value:.1e}" if 0.999 < value < 1 - 1e-12 else f"{value:.4f}"


if __name__ == "__main__":
    for title, problem in problems().items():
        print(f"### {title}\n\n{table(problem)}\n")
