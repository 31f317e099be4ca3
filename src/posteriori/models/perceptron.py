"""The perceptron and the adaline: linear discriminants learnt row after row (4.1.7)."""

from dataclasses import replace
from typing import Any

import numpy as np

from posteriori.arguments import is_number
from posteriori.errors import ConvergenceWarning, ParameterError, warn
from posteriori.models.row_by_row import Orders, RowByRow
from posteriori.rows.rows import Rows
from posteriori.rows.schema import Unseen
from posteriori.solve.perceptron import (
    Outcome,
    Walk,
    adaline_epoch,
    learn,
    perceptron_epoch,
    squared_error_gradient,
    suspects,
)
from posteriori.solve.separation import are_separable
from posteriori.statistics.bins import Shuffle
from posteriori.statistics.sequence import Walkable, mean_square
from posteriori.typing import Array


class Perceptron(RowByRow):
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
        Whether each epoch has an order of its own. See `random_state`.
    averaged : bool
        Whether to give the mean of the weights over all visits instead of the last ones: less
        depends on the rows that happened to come last, in particular where classes overlap.
    random_state : int, Generator or None
        Draws the orders; the same for the same rows, in whatever order they are passed.
    unseen : "error" or "reference"
        What to do at prediction with a level that the fit never saw.

    Attributes
    ----------
    converged_ : whether an epoch ended without a mistake. separable_ : whether a linear function
    puts every row on its right side; None after `partial_fit`, which sees some of the rows.
    n_updates_, n_iter_ (epochs). coef_ (1, d) for two classes, else (K, d); intercept_; classes_;
    n_parameters_.

    Where the classes cannot be separated, or the epochs do not suffice, a `ConvergenceWarning` says
    which of the two it is. What is given then are the weights with the fewest mistakes out of those
    at the end of each epoch and their means. With `averaged=True`, classes that overlap are no
    reason for a warning.

    Rows of files with more than 4 million numbers are not brought into memory. With `shuffle=True`
    they are dealt out on disk, into bins that are visited in random orders; those in Dask go to one
    worker, or to several if none has room for all. Without, they are visited where they lie. A
    weight multiplies the update that its row makes; with `shuffle=True`, weight 2 is exactly the
    row twice.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = Perceptron(random_state=0).fit(X[:100], y[:100])
    >>> model.converged_, model.score(X[:100], y[:100])
    (True, 1.0)
    """

    n_updates_: int
    separable_: bool | None
    _walk: Walk

    def __init__(
        self,
        *,
        max_epochs: int = 1000,
        shuffle: bool = True,
        averaged: bool = False,
        random_state: Any = None,
        unseen: Unseen = "error",
    ) -> None:
        self.max_epochs = max_epochs
        self.shuffle = shuffle
        self.averaged = averaged
        self.random_state = random_state
        self.unseen = unseen

    def _begin(self, visits: Walkable) -> None:
        p = len(self._coordinates.scale) + 1
        self._walk = Walk.from_zero(p, len(self.classes_))

    def _learn(self, rows: Rows, visits: Walkable, orders: Orders) -> None:
        K = len(self.classes_)
        found = learn(
            visits,
            self._walk,
            orders,
            lambda weights: are_separable(rows, K, suspects(weights, visits)),
            max_epochs=int(self.max_epochs),
            averaged=bool(self.averaged),
        )
        if found.outcome is not Outcome.CONVERGED:
            self._warn_of(found.outcome, found.walk.n_epochs)
        walk = found.walk if self.averaged else replace(found.walk, weights=found.weights)
        self._arrive(walk, found.weights)
        self.converged_ = found.outcome is Outcome.CONVERGED
        self.separable_ = found.outcome is not Outcome.INSEPARABLE

    def _learn_once(self, visits: Walkable, order: Shuffle | None) -> None:
        before = self._walk.n_updates
        walk = perceptron_epoch(self._walk, visits, order)
        self._arrive(walk, walk.mean() if self.averaged else walk.weights)
        self.converged_ = walk.n_updates == before
        self.separable_ = None

    def _arrive(self, walk: Walk, weights: Array) -> None:
        self._walk = walk
        self.n_updates_, self.n_iter_ = walk.n_updates, walk.n_epochs
        self._set_weights(weights)

    def _warn_of(self, outcome: Outcome, n_epochs: int) -> None:
        epochs = f"{n_epochs} epoch" + "s" * (n_epochs > 1)
        given = (
            "mean of the weights is" if self.averaged else "weights with the fewest mistakes are"
        )
        if outcome is Outcome.MAX_EPOCHS:
            warn(
                ConvergenceWarning(
                    f"The classes can be separated, but {epochs} of the perceptron did not find "
                    f"out how. The {given} given.",
                    "Raise max_epochs.",
                )
            )
        elif not self.averaged:
            warn(
                ConvergenceWarning(
                    "No linear function puts every row on the right side (a linear program says "
                    f"so), so the perceptron was stopped after {epochs}. The {given} given.",
                    "Use a model of classes that overlap, such as LogisticRegression, or set "
                    "averaged=True.",
                )
            )


class Adaline(RowByRow):
    """Widrow and Hoff's adaptive linear element: least squares, learnt row after row.

    W ← W + η_n φ_n (t_n - Wᵀφ_n)ᵀ, the least-mean-squares rule, with targets -1 and +1 for two
    classes and the 1-of-K code for more. The steps grow smaller from epoch to epoch, and the mean
    of W over all visits, in which later epochs count more, goes to the answer of
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
        least squares answer they are zero.
    unseen : "error" or "reference"
        What to do at prediction with a level that the fit never saw.

    Attributes
    ----------
    converged_, n_iter_ (epochs), n_updates_ (visits); coef_ (1, d) for two classes, else (K, d);
    intercept_; classes_; n_parameters_.

    Many rows of files stay on disk, as in `Perceptron`. Several rows are worked on at once, with
    the same result as one by one. A weight multiplies the step of its row; with `shuffle=True`,
    weight 2 is exactly the row twice.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> model = Adaline(random_state=0).fit(X, y)
    >>> model.converged_, model.score(X, y)
    (True, 1.0)
    """

    n_updates_: int
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
        unseen: Unseen = "error",
    ) -> None:
        self.learning_rate = learning_rate
        self.max_epochs = max_epochs
        self.shuffle = shuffle
        self.random_state = random_state
        self.tol = tol
        self.unseen = unseen

    def _begin(self, visits: Walkable) -> None:
        K = len(self.classes_)
        self._last = np.zeros((len(self._coordinates.scale) + 1, 1 if K == 2 else K))
        self._mean = self._last
        self._rate = float(self.learning_rate) / mean_square(visits)
        self.n_iter_ = self.n_updates_ = 0

    def _learn(self, rows: Rows, visits: Walkable, orders: Orders) -> None:
        for _ in range(int(self.max_epochs)):
            self._visit(visits, orders())
            worst = float(abs(squared_error_gradient(self._mean, visits)).max())
            self.converged_ = worst <= self.tol
            if self.converged_:
                break
        else:
            warn(
                ConvergenceWarning(
                    f"After {self.max_epochs} epochs a column still has a mean product of "
                    f"{worst:.2g} with the errors, more than tol={self.tol}.",
                    "Raise max_epochs or tol, or use LeastSquaresClassifier, whose answer this is "
                    "on the way to.",
                )
            )
        self._set_weights(self._mean)

    def _learn_once(self, visits: Walkable, order: Shuffle | None) -> None:
        self._visit(visits, order)
        self.converged_ = float(abs(squared_error_gradient(self._mean, visits)).max()) <= self.tol
        self._set_weights(self._mean)

    def _visit(self, visits: Walkable, order: Shuffle | None) -> None:
        """One epoch e: steps that fall as e^(-3/4), and a mean in which it counts e² times."""
        self.n_iter_ += 1
        e = self.n_iter_
        rate = self._rate * e**-0.75
        self._last, mean, n_visits = adaline_epoch(self._last, visits, rate, order)
        share = 6 * e / ((e + 1) * (2 * e + 1))  # e² out of 1 + 4 + ... + e²
        self._mean = self._mean + share * (mean - self._mean)
        self.n_updates_ += n_visits

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name, most in (("learning_rate", 1.0), ("tol", np.inf)):
            value = getattr(self, name)
            if not (is_number(value) and 0 < value <= most and value < np.inf):
                raise ParameterError(
                    f"{name}={value!r} is out of range.",
                    "Use a positive number" + (" up to 1." if most == 1 else "."),
                )
