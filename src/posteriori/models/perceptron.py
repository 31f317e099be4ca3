"""The perceptron and the adaline: linear discriminants learnt row after row (4.1.7)."""

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from operator import length_hint
from typing import Any, Self, cast, get_args

import numpy as np

from posteriori.arguments import as_generator, check_choice, check_count, check_flag, is_number
from posteriori.design.columns import Columns
from posteriori.design.standardise import Standard
from posteriori.errors import (
    ConvergenceWarning,
    Interrupted,
    LabelError,
    ParameterError,
    ScaleError,
    warn,
)
from posteriori.likelihood.feature_families import CONSTANT
from posteriori.likelihood.linear_activations import Linear
from posteriori.models.base import Classifier
from posteriori.rows.block import Features
from posteriori.rows.in_memory import is_memory_rows
from posteriori.rows.scan import is_source
from posteriori.rows.schema import HandleUnknown
from posteriori.rows.source import FitRows
from posteriori.rows.target import read_classes, same_classes
from posteriori.solve.perceptron import (
    PerceptronState,
    Random,
    adaline_epoch,
    perceptron,
    perceptron_epoch,
    squared_error_gradient,
)
from posteriori.solve.separation import are_separable
from posteriori.statistics.column_moments import column_spread
from posteriori.statistics.row_stream import RowStream
from posteriori.statistics.separation_margins import pair_sums
from posteriori.typing import Array, Labels


class _RowByRow(Classifier):
    """What both have in common: epochs over rows in an order, and linear activations.

    Columns are centred and scaled internally, by the rows of the fit or of the first
    `partial_fit`. Weights count relative to their mean there.
    """

    max_epochs: int
    shuffle: bool
    random_state: Any
    n_iter_: int
    n_updates_: int
    converged_: bool
    _linear: Linear
    _standard: Standard
    _weight_unit: float

    def _fit_rows(self, rows: FitRows) -> None:
        self._check_parameters()
        stream = self._first_stream(rows)
        with _numbered(int(self.max_epochs)) as epochs:
            self._learn(rows, stream, epochs, self._random())

    @abstractmethod
    def _begin(self, mean_square: float) -> None:
        """Set the parameters to the start of learning, given the mean of |φ|²."""

    @abstractmethod
    def _learn(
        self, rows: FitRows, stream: RowStream, epochs: Iterator[int], random: Random
    ) -> None:
        """Visit the rows until nothing is left to learn, or the epochs end."""

    @abstractmethod
    def _learn_once(self, stream: RowStream, random: Random) -> None:
        """Visit the rows once."""

    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """One epoch over a batch of rows, starting from what has been learnt so far.

        The first call names all classes, by `classes` or by labels of each of them; its rows also
        set the centre and the scale of the columns for good. A call that fails leaves the
        estimator as it was.
        """
        with self._all_or_nothing():
            self._check_parameters()
            if hasattr(self, "_standard"):
                rows = self._read_more(X, y, classes, sample_weight)
                stream = self._stream(rows, self._weight_unit)
                self._learn_once(stream, self._random(self.n_iter_))
            else:
                rows = self._read(X, y, sample_weight, classes)
                self._remember(rows.schema, cast(Labels, rows.classes))
                self._learn_once(self._first_stream(rows), self._random())
        return self

    def _read_more(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> FitRows:
        is_rows = is_source(X) or is_memory_rows(X)
        known = {} if is_rows else {"known_classes": self.classes_}
        rows = self._read(X, y, sample_weight, None, schema=self.schema_, **known)
        found = cast(Labels, rows.classes if classes is None else read_classes(classes))
        if not same_classes(found, self.classes_):
            raise LabelError(
                f"The batch has the classes {found.tolist()[:8]}, the first "
                f"had {self.classes_.tolist()[:8]}.",
                "Name all classes in the first call of partial_fit.",
            )
        return rows

    def _first_stream(self, rows: FitRows) -> RowStream:
        """The rows by whose means and standard deviations columns are centred and scaled.

        A constant column is divided by its size.
        """
        spread = column_spread(rows, Columns(rows.schema))
        size, scale = abs(spread.mean), spread.deviation
        scale = np.where(scale > CONSTANT * size, scale, np.where(size > 0, size, 1.0))
        self._standard = Standard(spread.mean * spread.unit, scale * spread.unit, True)
        stream = self._stream(rows)
        self._weight_unit = stream.weight_unit
        self._begin(1.0 + float(np.sum((spread.deviation / scale) ** 2)))
        return stream

    def _stream(self, rows: FitRows, unit: float | None = None) -> RowStream:
        return RowStream(rows, self._standard, unit, bool(self.shuffle))

    def _random(self, n_epochs: int = 0) -> Random:
        """Draws the order of rows, where so many epochs have been made before."""
        if not self.shuffle:
            return None
        seed = self.random_state
        if n_epochs and isinstance(seed, int | np.integer):
            seed = [int(seed), n_epochs]  # not the orders of those epochs again
        return as_generator(seed)

    def _set_weights(self, weights: Array) -> None:
        """Activations of the columns as they are from W (p, c) of the standardised ones."""
        slopes, bias = weights[1:], weights[0]
        if weights.shape[1] == 1:  # half of the activation for, half against
            slopes, bias = slopes * [-0.5, 0.5], bias * [-0.5, 0.5]
        with np.errstate(over="ignore"):
            slopes = slopes / self._standard.scale[:, None]
        if not np.isfinite(slopes).all():
            j = int(np.argmax(~np.isfinite(slopes).all(axis=1)))
            column = Columns(self.schema_).as_schema().describe(j)
            raise ScaleError(
                f"The coefficients of {column} do not fit in a double.",
                "Multiply the column by a large number.",
            )
        self._linear = Linear.about(self._standard.centre, slopes, bias)

    def _check_parameters(self) -> None:
        check_count("max_epochs", self.max_epochs, "epochs")
        for name in ("shuffle", "averaged"):
            check_flag(name, getattr(self, name, False))
        check_choice("handle_unknown", self.handle_unknown, get_args(HandleUnknown))

    def _activations(self, X: Features) -> Array:
        return self._linear.of_rows(X, self.schema_, self.handle_unknown)

    def _linear_function(self) -> Linear:
        self._known_classes()
        return self._linear

    @property
    def n_parameters_(self) -> int:
        """Free numbers: one function less than classes, as only differences decide."""
        d, K = self._linear_function().weights.shape
        return (d + 1) * (K - 1)


@contextmanager
def _numbered(max_epochs: int) -> Iterator[Iterator[int]]:
    """As many epochs; an interrupt is reported with the one that it came in."""
    epochs = iter(range(max_epochs))
    try:
        yield epochs
    except Interrupted:  # in a pass over a source, which has named itself
        raise
    except KeyboardInterrupt as error:
        raise Interrupted(
            f"Stopped in epoch {max_epochs - length_hint(epochs)}.",
            "The estimator is as it was before. Fit again, with fewer max_epochs if they take too "
            "long.",
        ) from error


class Perceptron(_RowByRow):
    """Rosenblatt's perceptron: a row on the wrong side moves the boundary, others do not.

    For two classes, w ← w + φ_n t_n wherever wᵀφ_n t_n ≤ 0, t = ±1 (4.55), which lessens the error
    -wᵀφ_n t_n of that row (4.54), (4.56). For more, the class of the row gains φ_n and the class
    that won instead loses it; classes that tie share the loss. The perceptron convergence theorem:
    if a linear function puts every row on its right side, the updates end with such a function. If
    there is none they never end; whether there is one is decided by a linear program once some
    thousand updates have been made, and ends the search.

    Parameters
    ----------
    max_epochs : int
        How often to go through all rows, at most.
    shuffle : bool
        Whether each epoch visits the rows in a random order of its own, drawn from `random_state`;
        otherwise in the order in which they are passed or stored.
    averaged : bool
        Whether to give the mean of the weights over all visits instead of the last ones: less
        depends on the rows that happened to come last, in particular where classes overlap.
    random_state : int, Generator or None
        Draws the orders: the same seed and the same rows in the same order give the same result.
    handle_unknown : "error" or "reference"
        What to do at prediction with a level that the fit never saw.

    Attributes
    ----------
    converged_ : whether an epoch ended without a mistake. separable_ : whether a linear function
    puts every row on its right side; None after `partial_fit`, which sees some of the rows, and
    where classes and columns are too many to decide it.
    n_updates_, n_iter_ (epochs). coef_ (1, d) for two classes, else (K, d); intercept_; classes_;
    n_parameters_.

    Where the classes cannot be separated, or the epochs do not suffice, a `ConvergenceWarning` says
    which of the two it is. What is given then are the weights with the fewest mistakes out of those
    at the end of each epoch and their means. With `averaged=True`, classes that overlap are no
    reason for a warning.

    Rows of files or of Dask are read into memory once if they have up to 16 million numbers, and
    are visited as rows in memory are: the order in which they are passed does not matter if they
    are shuffled, and weight 2 is the row twice. More are read in every epoch, batch by batch: with
    `shuffle=True` in a random order of batches (row groups of Parquet files, chunks of Dask
    collections), and of the rows in each. FitRows that are stored by class should be shuffled once
    before. A weight multiplies the update of its row.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = Perceptron(random_state=0).fit(X[:100], y[:100])
    >>> model.converged_, model.score(X[:100], y[:100])
    (True, 1.0)
    """

    separable_: bool | None
    _state: PerceptronState

    def __init__(
        self,
        *,
        max_epochs: int = 1000,
        shuffle: bool = True,
        averaged: bool = False,
        random_state: Any = None,
        handle_unknown: HandleUnknown = "error",
    ) -> None:
        self.max_epochs = max_epochs
        self.shuffle = shuffle
        self.averaged = averaged
        self.random_state = random_state
        self.handle_unknown = handle_unknown

    def _begin(self, mean_square: float) -> None:
        p = len(self._standard.scale) + 1
        self._state = PerceptronState.zero(p, len(self.classes_))

    def _learn(
        self, rows: FitRows, stream: RowStream, epochs: Iterator[int], random: Random
    ) -> None:
        known: list[bool | None] = []

        def is_possible(weights: Array) -> bool:
            known.append(are_separable(pair_sums(rows, len(self.classes_))))
            return known[-1] is not False

        averaged = bool(self.averaged)
        found = perceptron(stream, self._state, epochs, random, is_possible, averaged=averaged)
        separable = found.separable if found.converged or None not in known else None
        if not found.converged:
            self._warn(separable, found.state.n_epochs)
        state = found.state if averaged else replace(found.state, weights=found.weights)
        self._set_state(state, found.weights)
        self.converged_, self.separable_ = found.converged, separable

    def _learn_once(self, stream: RowStream, random: Random) -> None:
        before = self._state.n_updates
        state = perceptron_epoch(self._state, stream, random)
        self._set_state(state, state.mean() if self.averaged else state.weights)
        self.converged_, self.separable_ = state.n_updates == before, None

    def _set_state(self, state: PerceptronState, weights: Array) -> None:
        self._state = state
        self.n_updates_, self.n_iter_ = state.n_updates, state.n_epochs
        self._set_weights(weights)

    def _warn(self, separable: bool | None, n_epochs: int) -> None:
        epochs = f"{n_epochs} epoch" + "s" * (n_epochs > 1)
        given = (
            "mean of the weights is" if self.averaged else "weights with the fewest mistakes are"
        )
        if separable is not False:
            can = "can" if separable else "may"
            problem = (
                f"The classes {can} be separated, but {epochs} of the perceptron did not find out "
                f"how. The {given} given."
            )
            warn(ConvergenceWarning(problem, "Raise max_epochs."))
        elif not self.averaged:
            problem = (
                "No linear function puts every row on the right side (a linear program says so), "
                f"so the perceptron was stopped after {epochs}. The {given} given."
            )
            remedy = (
                "Use a model of classes that overlap, such as LogisticRegression, or set "
                "averaged=True."
            )
            warn(ConvergenceWarning(problem, remedy))


class Adaline(_RowByRow):
    """Widrow and Hoff's adaptive linear element: least squares, learnt row after row.

    W ← W + η_n φ_n (t_n - Wᵀφ_n)ᵀ, the least-mean-squares rule, with targets -1 and +1 for two
    classes and the 1-of-K code for more. The steps grow smaller from epoch to epoch, and the mean
    of W over all visits, in which later epochs count more, approaches the solution of
    `LeastSquaresClassifier`.

    Parameters
    ----------
    learning_rate : float
        The first step, as a share of what would fit a row of usual length alone, in (0, 1].
    max_epochs : int
        How often to go through all rows, at most.
    shuffle, random_state
        As in `Perceptron`.
    tol : float
        Stop when no column (of unit spread) has a mean product with the errors above this; at the
        least squares solution they are zero.
    handle_unknown : "error" or "reference"
        What to do at prediction with a level that the fit never saw.

    Attributes
    ----------
    converged_, n_iter_ (epochs), n_updates_ (visits); coef_ (1, d) for two classes, else (K, d);
    intercept_; classes_; n_parameters_.

    Large sources are read in every epoch, as in `Perceptron`. Several rows are processed at once,
    with the same result as one by one. A weight multiplies the step of its row.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> model = Adaline(random_state=0).fit(X, y)
    >>> model.converged_, model.score(X, y)
    (True, 1.0)
    """

    _last: Array
    _mean: Array

    def __init__(
        self,
        *,
        learning_rate: float = 0.5,
        max_epochs: int = 1000,
        shuffle: bool = True,
        random_state: Any = None,
        tol: float = 3e-3,
        handle_unknown: HandleUnknown = "error",
    ) -> None:
        self.learning_rate = learning_rate
        self.max_epochs = max_epochs
        self.shuffle = shuffle
        self.random_state = random_state
        self.tol = tol
        self.handle_unknown = handle_unknown

    def _begin(self, mean_square: float) -> None:
        K = len(self.classes_)
        self._last = np.zeros((len(self._standard.scale) + 1, 1 if K == 2 else K))
        self._mean = self._last
        self._rate = float(self.learning_rate) / mean_square
        self.n_iter_ = self.n_updates_ = 0

    def _learn(
        self, rows: FitRows, stream: RowStream, epochs: Iterator[int], random: Random
    ) -> None:
        for _ in epochs:
            worst = self._epoch(stream, random)
            if self.converged_:
                break
        else:
            warn(
                ConvergenceWarning(
                    f"After {self.max_epochs} epochs a column still has a mean product of "
                    f"{worst:.2g} with the errors, more than tol={self.tol}.",
                    "Raise max_epochs or tol, or use LeastSquaresClassifier, the limit of these "
                    "epochs in closed form.",
                )
            )
        self._set_weights(self._mean)

    def _learn_once(self, stream: RowStream, random: Random) -> None:
        self._epoch(stream, random)
        self._set_weights(self._mean)

    def _epoch(self, stream: RowStream, random: Random) -> float:
        """Epoch e: steps that fall as e^(-3/4), and a mean in which it counts e² times.

        Gives the largest entry of the gradient at the mean.
        """
        self.n_iter_ += 1
        e = self.n_iter_
        rate = self._rate * e**-0.75
        self._last, mean, n_visits = adaline_epoch(self._last, stream, rate, random)
        share = 6 * e / ((e + 1) * (2 * e + 1))  # e² out of 1 + 4 + ... + e²
        self._mean = self._mean + share * (mean - self._mean)
        self.n_updates_ += n_visits
        worst = float(abs(squared_error_gradient(self._mean, stream)).max())
        self.converged_ = worst <= self.tol
        return worst

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name, most in (("learning_rate", 1.0), ("tol", np.inf)):
            value = getattr(self, name)
            if not (is_number(value) and 0 < value <= most and value < np.inf):
                raise ParameterError(
                    f"{name}={value!r} is out of range.",
                    "Use a positive number" + (" up to 1." if most == 1 else "."),
                )
