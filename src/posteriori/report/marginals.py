"""The distribution of one column in each class, out of a fitted model.

Conventions: K classes, L states of a discrete column.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from sklearn.utils.validation import check_is_fitted

from posteriori.design.columns import Columns
from posteriori.errors import InfiniteValueError, LevelError, ParameterError
from posteriori.models.gaussian import GaussianClassifier
from posteriori.models.naive_bayes import NaiveBayes
from posteriori.report.tables import Table, place_of
from posteriori.typing import Array, Codes

_TAIL = 1e-4
"""The probability that a curve leaves out at either end."""

_POINTS = 201


@dataclass(frozen=True, eq=False)
class Curves:
    """A continuous column: one distribution of SciPy's a class."""

    distributions: tuple[Any, ...]

    def curve(self, k: int) -> tuple[Array, Array]:
        """Places (m,) that cover class k, and its density there."""
        found = self.distributions[k]
        x = np.linspace(found.ppf(_TAIL), found.ppf(1 - _TAIL), _POINTS)
        return x, found.pdf(x)


@dataclass(frozen=True, eq=False)
class Bars:
    """A discrete column: its states in order, and their probabilities (K, L)."""

    states: tuple[Any, ...]
    probability: Array

    def shares(self, values: Any, codes: Codes) -> Array:
        """How often each state occurs among the rows of each class (K, L)."""
        place = {state: i for i, state in enumerate(self.states)}
        count = np.zeros_like(self.probability)
        for k, value in zip(codes.tolist(), values, strict=True):
            if value not in place:
                raise LevelError(f"The model has no state {value!r}.", "Draw the rows it knows.")
            count[k, place[value]] += 1
        total = count.sum(axis=1, keepdims=True)
        return np.divide(count, total, out=np.zeros_like(count), where=total > 0)


Marginal = Curves | Bars
Generative = GaussianClassifier | NaiveBayes


def check_generative(model: Any) -> None:
    """An error where the model has no densities of its columns."""
    if not isinstance(model, GaussianClassifier | NaiveBayes):
        raise ParameterError(
            f"A {type(model).__name__} has no densities of its columns.",
            "Pass a fitted GaussianClassifier or NaiveBayes.",
        )
    check_is_fitted(model)


def place_in(model: Generative, column: Any) -> int:
    """The place of a column of the fit, by its name or by its number."""
    return place_of(column, model.schema_.names, named=model.schema_.named)


def name_in(model: Generative, j: int) -> str:
    """What an axis calls a column of the fit."""
    return model.schema_.names[j] if model.schema_.named else f"column {j}"


def entries(model: Generative, table: Table, j: int) -> Any:
    """The entries (n,) in `table` of a column of the fit: numbers, or levels."""
    by_name = table.frame is not None and model.schema_.named
    place = table.place(model.schema_.names[j] if by_name else j)
    if model.schema_.columns[j].kind == "categorical":
        return table.array[:, place]
    values = table.numbers(place)
    if np.isinf(values).any():
        raise InfiniteValueError(
            f"Row {int(np.isinf(values).argmax())} of {table.names[place]!r} is infinite.",
            "Drop such rows.",
        )
    return values


def gaussians(model: GaussianClassifier, places: list[int]) -> tuple[Array, Array]:
    """Means (K, m) and covariances (K, m, m) of columns, the others being integrated out."""
    schema = model.schema_
    factors = [j for j in places if j in schema.categorical]
    if factors:
        raise ParameterError(
            f"A Gaussian has no density of the levels of {schema.describe_all(factors)}.",
            "Choose numeric columns, or draw a NaiveBayes.",
        )
    positions = Columns(schema).positions
    at = [positions[j][0] for j in places]
    d = model.means_.shape[1]
    covariances = np.broadcast_to(model.covariances_, (len(model.means_), d, d))
    found = covariances[:, at][:, :, at]
    flat = ~(np.diagonal(found, axis1=1, axis2=2) > 0).all(axis=0)
    if flat.any():
        raise _without_density(model, places[int(flat.argmax())])
    return model.means_[:, at], found


def marginal_of(model: Generative, j: int, largest: float = 0.0) -> Marginal:
    """The distribution of column j; counts are taken as far as `largest` at least."""
    if isinstance(model, GaussianClassifier):
        means, covariances = gaussians(model, [j])
        return _normal(means[:, 0], np.sqrt(covariances[:, 0, 0]))
    family, found = model.families_[j], model.parameters_[model.schema_.names[j]]
    if family == "gaussian":
        sd = np.broadcast_to(found["sd"], found["mean"].shape)
        if not (sd > 0).all():
            raise _without_density(model, j)
        return _normal(found["mean"], sd)
    if family == "exponential":
        return Curves(tuple(stats.expon(scale=mean) for mean in found["mean"]))
    if family == "poisson":
        return _poisson(found["mean"], largest)
    if family == "bernoulli":
        one = found["probability"]
        return Bars((0, 1), np.column_stack([1 - one, one]))
    return Bars(tuple(found["levels"]), found["probability"])


def _normal(means: Array, deviations: Array) -> Curves:
    return Curves(tuple(stats.norm(*pair) for pair in zip(means, deviations, strict=True)))


def _poisson(means: Array, largest: float) -> Bars:
    high = int(max(largest, stats.poisson.ppf(1 - _TAIL, means).max(), 1))
    states = np.arange(high + 1)
    return Bars(tuple(states.tolist()), stats.poisson.pmf(states, means[:, None]))


def _without_density(model: Generative, j: int) -> ParameterError:
    return ParameterError(
        f"{model.schema_.describe(j).capitalize()} never changes, and was left out of the model.",
        "Choose another column.",
    )
