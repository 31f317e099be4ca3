"""The perceptron and the adaline: linear discriminants trained row after row (4.1.7)."""

from abc import abstractmethod
from typing import Any, Self, cast, get_args

import numpy as np

from posteriori.arguments import as_generator, check_choice, check_count, check_flag, check_number
from posteriori.design.columns import Columns
from posteriori.design.standardise import Standard
from posteriori.errors import (
    ConvergenceWarning,
    LabelError,
    ShapeError,
    warn,
)
from posteriori.likelihood.feature_families import CONSTANT
from posteriori.likelihood.linear_activations import Linear
from posteriori.models.base import Classifier
from posteriori.rows.block import Features, FitRows
from posteriori.rows.schema import HandleUnknown
from posteriori.rows.target import same_classes
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
from posteriori.statistics.row_stream import RowStream, Segment
from posteriori.statistics.separation_margins import pair_sums
from posteriori.typing import Array, Labels


class RowByRow(Classifier):
    """Epochs over the rows, in columns that are standardised first if `standardise`.

    Weights count relative to their mean, in the fit or in the first `partial_fit`.
    """

    max_epochs: int
    shuffle: bool
    standardise: bool
    random_state: Any
    n_iter_: int
    n_updates_: int
    converged_: bool
    _linear: Linear
    _standard: Standard
    _random: Random

    def _fit_rows(self, rows: FitRows) -> None:
        self._check_parameters()
        self._learn(self._begin(rows))

    @abstractmethod
    def _set_start(self, stream: RowStream) -> None:
        """Set the initial weights."""

    @abstractmethod
    def _learn(self, stream: RowStream) -> None:
        """Epochs until convergence."""

    @abstractmethod
    def _learn_once(self, stream: RowStream) -> None:
        """One epoch."""

    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """One epoch over a batch of rows, starting from the present weights.

        The first call names all classes, by `classes` or by labels of each of them; its rows also
        determine the standardisation. A call that fails leaves the estimator as it was.
        """
        with self._all_or_nothing():
            self._check_parameters()
            if hasattr(self, "_standard"):
                stream = self._stream(self._read_more(X, y, classes, sample_weight))
            else:
                rows = self._read(X, y, sample_weight, classes)
                self._remember(rows.schema, cast(Labels, rows.classes))
                stream = self._begin(rows)
            self._learn_once(stream)
        return self

    def _read_more(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> FitRows:
        rows = self._read(
            X, y, sample_weight, None, schema=self.schema_, known_classes=self.classes_
        )
        if not same_classes(rows.classes if classes is None else classes, self.classes_):
            raise LabelError(
                "The classes of the batch are not those of the first one, "
                f"{self.classes_.tolist()[:8]}.",
                "Name all classes in the first call of partial_fit.",
            )
        return rows

    def _begin(self, rows: FitRows) -> RowStream:
        """The rows in columns standardised by them; a constant column is divided by its size."""
        mean, deviation = column_spread(rows, Columns(rows.schema))
        scale = np.ones_like(mean)
        if self.standardise:
            size = np.where(mean == 0, 1.0, abs(mean))
            scale = np.where(deviation > CONSTANT * abs(mean), deviation, size)
        self._standard = Standard(mean if self.standardise else np.zeros_like(mean), scale, True)
        stream = self._stream(rows)
        self._random = as_generator(self.random_state) if self.shuffle else None
        self._set_start(stream)
        return stream

    def _stream(self, rows: FitRows) -> RowStream:
        return RowStream(rows, self._standard, bool(self.shuffle))

    def _set_weights(self, weights: Array) -> None:
        """Activations in the user's columns from W (p, K) of the standardised ones."""
        slopes = weights[1:] / self._standard.scale[:, None]
        self._linear = Linear.about(self._standard.centre, slopes, weights[0])

    def _check_parameters(self) -> None:
        check_count("max_epochs", self.max_epochs, "epochs")
        for name in ("shuffle", "standardise", "averaged", "keep_path"):
            check_flag(name, getattr(self, name, False))
        check_choice("handle_unknown", self.handle_unknown, get_args(HandleUnknown))

    def _activations(self, X: Features) -> Array:
        return self._linear.of_rows(X, self.schema_, self.handle_unknown)

    @property
    def n_parameters_(self) -> int:
        """Free numbers: one function less than classes, as only differences decide."""
        d, K = self._linear_function().weights.shape
        return (d + 1) * (K - 1)


class Perceptron(RowByRow):
    """Rosenblatt's perceptron: each row on the wrong side of the boundary moves it.

    For two classes, w ← w + φ_n t_n wherever wᵀφ_n t_n ≤ 0, with t = ±1 (4.55) and φ = (1, x), x
    standardised if `standardise`. For more, the class of the row gains φ_n, and the class that won
    instead loses it; tied classes share the loss. If a linear function separates the classes, the
    updates end with such a function (the perceptron convergence theorem). If there is none they
    never end; a linear program decides that after some thousand updates, and the fit stops.

    Parameters
    ----------
    max_epochs : int
        The largest number of passes over the rows.
    shuffle : bool
        Whether each epoch takes the rows in a random order of its own, drawn from `random_state`;
        otherwise they are taken in the order of X.
    standardise : bool
        Whether the columns are centred and divided by their standard deviations first, which takes
        far fewer updates where their units differ. With False, (4.55) is applied to X as it is.
    averaged : bool
        Whether to return the mean of the weights over all rows visited, not the last ones. It
        depends less on the last rows, in particular where classes overlap.
    random_state : int, Generator or None
        Seed of the orders.
    keep_path : bool
        Whether `path_` has the weights after each update.
    handle_unknown : "error" or "reference"
        How to predict a level that had no rows in the fit.

    Attributes
    ----------
    converged_ : whether an epoch ended without a mistake. separable_ : whether a linear function
    separates the classes; None after `partial_fit`, and where classes and columns are too many to
    decide it. path_ : with `keep_path`, the initial weights and those after each update in the
    units of X, (n_updates_ + 1, K, 1 + d), the intercept first; for two classes K is 1.
    n_updates_, n_iter_ (epochs). coef_ (1, d) for two classes, else (K, d); intercept_; classes_;
    n_parameters_.

    Without convergence, a `ConvergenceWarning` says whether the classes can be separated, and the
    weights are the mean over all rows visited, as with `averaged=True`; with that, classes that
    overlap give no warning.

    Datasets of up to 16 million numbers are read into memory once. Larger ones are read in every
    epoch, with `shuffle=True` in a random order of batches (row groups of Parquet files, chunks of
    Dask collections) and of the rows in each; shuffle rows that are stored by class before. A
    weight multiplies the update of its row; with `shuffle=True`, weight 2 is the row twice.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = Perceptron(random_state=0).fit(X[:100], y[:100])
    >>> model.converged_, model.score(X[:100], y[:100])
    (True, 1.0)
    """

    separable_: bool | None
    path_: Array
    _state: PerceptronState

    def __init__(
        self,
        *,
        max_epochs: int = 1000,
        shuffle: bool = True,
        standardise: bool = True,
        averaged: bool = False,
        random_state: Any = None,
        keep_path: bool = False,
        handle_unknown: HandleUnknown = "error",
    ) -> None:
        self.max_epochs = max_epochs
        self.shuffle = shuffle
        self.standardise = standardise
        self.averaged = averaged
        self.random_state = random_state
        self.keep_path = keep_path
        self.handle_unknown = handle_unknown

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        classes: Any = None,
        *,
        coef_init: Any = None,
        intercept_init: Any = None,
    ) -> Self:
        """Fit to rows X (n, d) and class labels y (n,), as other classifiers do.

        The first weights are `coef_init` and `intercept_init`, in the shapes of `coef_` and
        `intercept_` and in the units of X; zero unless given.

        >>> X, y = [[-1.0, 0.0], [0.0, -2.0], [0.0, 2.0], [2.0, 1.0]], [0, 0, 1, 1]
        >>> model = Perceptron(standardise=False, shuffle=False, keep_path=True)
        >>> model.fit(X, y, coef_init=[[1.0, -1.0]]).path_
        array([[[ 0.,  1., -1.]],
        <BLANKLINE>
               [[-1.,  1.,  1.]]])
        """
        self._start = {"coef_init": coef_init, "intercept_init": intercept_init}
        try:
            return super().fit(X, y, sample_weight, classes)
        finally:
            del self._start

    def _set_start(self, stream: RowStream) -> None:
        c, d = 1 if len(self.classes_) == 2 else len(self.classes_), len(self._standard.scale)
        coef, intercept = self._given("coef_init", (c, d)), self._given("intercept_init", (c,))
        bias = intercept + coef @ self._standard.centre
        weights = np.vstack([bias, (coef * self._standard.scale).T])
        if c == 1:  # half of w for each class
            weights = weights * [-0.5, 0.5]
        unit = stream.mean(lambda segment: segment.weight)
        self._state = PerceptronState(weights, np.zeros_like(weights), unit)

    def _given(self, name: str, shape: tuple[int, ...]) -> Array:
        """Initial weights; (d,) or a number may stand for the shape if their size is right."""
        given = getattr(self, "_start", {}).get(name)
        try:
            found = np.zeros(shape) if given is None else np.asarray(given, dtype=np.float64)
            return found.reshape(shape)
        except (TypeError, ValueError):
            raise ShapeError(
                f"{name} is not an array of numbers of shape {shape}.", "Use the shape of coef_."
            ) from None

    def _learn(self, stream: RowStream) -> None:
        path = [self._state.weights]
        state, self.converged_, self.separable_ = perceptron(
            stream,
            self._state,
            self.max_epochs,
            self._random,
            lambda: are_separable(*pair_sums(stream.rows, len(self.classes_))),
            path if self.keep_path else None,
        )
        self._set_state(state, self.averaged or not self.converged_)
        if not self.converged_:
            self._warn()
        self.__dict__.pop("path_", None)
        if self.keep_path:
            self.path_ = self._in_units(np.array(path))

    def _in_units(self, path: Array) -> Array:
        """Weights (u, p, K) of the standardised columns as intercepts and coefficients."""
        slopes = path[:, 1:] / self._standard.scale[:, None]
        bias = path[:, :1] - self._standard.centre @ slopes[:, None]
        found = np.concatenate([bias, slopes], axis=1).swapaxes(1, 2)
        if found.shape[1] == 2:
            return found[:, 1:] - found[:, :1]
        return found - found.mean(axis=1, keepdims=True)

    def _learn_once(self, stream: RowStream) -> None:
        before = self._state.n_updates
        self._set_state(perceptron_epoch(self._state, stream, self._random), self.averaged)
        self.converged_, self.separable_ = self.n_updates_ == before, None

    def _set_state(self, state: PerceptronState, averaged: bool) -> None:
        self._state = state
        self.n_updates_, self.n_iter_ = state.n_updates, state.n_epochs
        self._set_weights(state.mean() if averaged else state.weights)

    def _warn(self) -> None:
        epochs = f"{self.n_iter_} epoch{'s' * (self.n_iter_ > 1)}"
        if self.separable_ is not False:
            possible = "The classes can be separated, but the" if self.separable_ else "The"
            problem = f"{possible} perceptron did not converge in {epochs}"
            remedy = "Raise max_epochs."
        elif not self.averaged:
            problem = (
                "No linear function separates the classes, by a linear program. The perceptron was "
                f"stopped after {epochs}"
            )
            remedy = (
                "Use a model for classes that overlap, such as LogisticRegression, or "
                "averaged=True."
            )
        else:
            return
        warn(ConvergenceWarning(f"{problem}; the mean of the weights is used.", remedy))


class Adaline(RowByRow):
    """Widrow and Hoff's adaptive linear element: least squares, row after row.

    W ← W + η_n φ_n (t_n - Wᵀφ_n)ᵀ, the least-mean-squares rule, with the 1-of-K code as targets:
    with two classes, the difference of their activations has the targets -1 and +1. The steps
    decrease from epoch to epoch, and the mean of W over all rows visited, in which later epochs
    count more, converges to the solution of `LeastSquaresClassifier`.

    Parameters
    ----------
    learning_rate : float
        The first step, as a fraction of the step that would fit a row of average length exactly,
        in (0, 1].
    max_epochs, shuffle, standardise, random_state
        As in `Perceptron`.
    tol : float
        Stop when no column has a mean product with the errors above this; at the least squares
        solution they are zero.
    handle_unknown : "error" or "reference"
        How to predict a level that had no rows in the fit.

    Attributes
    ----------
    converged_, n_iter_ (epochs), n_updates_ (rows visited); coef_ (1, d) for two classes, else
    (K, d); intercept_; classes_; n_parameters_.

    Large datasets are read in every epoch, as in `Perceptron`. A weight multiplies the step of its
    row.

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
        standardise: bool = True,
        random_state: Any = None,
        tol: float = 3e-3,
        handle_unknown: HandleUnknown = "error",
    ) -> None:
        self.learning_rate = learning_rate
        self.max_epochs = max_epochs
        self.shuffle = shuffle
        self.standardise = standardise
        self.random_state = random_state
        self.tol = tol
        self.handle_unknown = handle_unknown

    def _set_start(self, stream: RowStream) -> None:
        self._last = self._mean = np.zeros((len(self._standard.scale) + 1, len(self.classes_)))
        self._rate = float(self.learning_rate) / stream.mean(_weighted_square)
        self.n_iter_ = self.n_updates_ = 0

    def _learn(self, stream: RowStream) -> None:
        for _ in range(self.max_epochs):
            self._learn_once(stream)
            if self.converged_:
                return
        warn(
            ConvergenceWarning(
                f"After {self.max_epochs} epochs a column still has a mean product with the errors "
                f"of more than tol={self.tol}.",
                "Raise max_epochs or tol, or use LeastSquaresClassifier, the solution in closed "
                "form.",
            )
        )

    def _learn_once(self, stream: RowStream) -> None:
        """Epoch e: steps that fall as e^(-3/4), and a mean in which it counts e² times."""
        e = self.n_iter_ = self.n_iter_ + 1
        self._last, mean, n_visits = adaline_epoch(
            self._last, stream, self._rate * e**-0.75, self._random
        )
        share = 6 * e / ((e + 1) * (2 * e + 1))  # e² out of 1 + 4 + ... + e²
        self._mean = self._mean + share * (mean - self._mean)
        self.n_updates_ += n_visits
        gradient = squared_error_gradient(self._mean, stream)
        self.converged_ = bool(abs(gradient).max() <= self.tol)
        self._set_weights(self._mean)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("learning_rate", self.learning_rate, positive=True, most=1.0)
        check_number("tol", self.tol, positive=True)


def _weighted_square(segment: Segment) -> Array:
    """The weight of each row times |φ|²."""
    return segment.weight * np.einsum("ij,ij->i", segment.rows, segment.rows)
