"""What classifiers that are learnt row after row have in common (4.1.7)."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self, cast, get_args

import numpy as np

from posteriori.arguments import as_generator, check_choice, check_count, check_flag
from posteriori.design.columns import Columns
from posteriori.errors import Interrupted, LabelError, ScaleError
from posteriori.models.base import Classifier
from posteriori.models.geometry import LinearCoefficients
from posteriori.posterior.linear import Linear
from posteriori.rows.block import Features
from posteriori.rows.rows import Rows
from posteriori.rows.schema import Unseen
from posteriori.solve.covariance import CONSTANT
from posteriori.statistics.bins import Shuffle
from posteriori.statistics.column_moments import column_spread
from posteriori.statistics.coordinates import Coordinates
from posteriori.statistics.sequence import Walkable, mean_weight
from posteriori.statistics.walks import visits_of
from posteriori.typing import Array, Labels

Orders = Callable[[], Shuffle | None]
"""The order of the rows in the next epoch; None for that in which they lie."""


class RowByRow(LinearCoefficients, Classifier):
    """What both have in common: rows in an order, and linear activations.

    The rows are brought together from wherever they lie: here, on disk, or on workers of the
    cluster that has them. Columns are centred and scaled inside, by the rows of the fit or of the
    first `partial_fit`. With `shuffle`, each epoch has a random order, drawn from `random_state`
    for the set of rows: it does not depend on the order in which they came, and the same row twice
    counts as one row of twice the weight. Without, the rows are visited in the order given, where
    they lie if they are many. A weight multiplies the step that a row makes.
    """

    max_epochs: int
    shuffle: bool
    random_state: Any
    n_iter_: int
    converged_: bool
    _linear: Linear
    _coordinates: Coordinates
    _weight_unit: float

    def _fit_rows(self, rows: Rows) -> None:
        self._check_parameters()
        self._coordinates = _coordinates_of(rows)
        visits = self._visits(rows, first=True)
        self._begin(visits)
        with _counted(self._orders()) as orders:
            self._learn(rows, visits, orders)

    @abstractmethod
    def _begin(self, visits: Walkable) -> None:
        """Set the parameters to where learning starts."""

    @abstractmethod
    def _learn(self, rows: Rows, visits: Walkable, orders: Orders) -> None:
        """Visit the rows until there is nothing more to learn."""

    @abstractmethod
    def _learn_once(self, visits: Walkable, order: Shuffle | None) -> None:
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
            self._add_batch(X, y, classes, sample_weight)
        return self

    def _add_batch(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
        self._check_parameters()
        first = not hasattr(self, "_coordinates")
        if first:
            rows = self._read(X, y, sample_weight, classes)
            self._remember(rows.schema, cast(Labels, rows.classes))
            self._coordinates = _coordinates_of(rows)
        else:
            rows = self._read_more(X, y, classes, sample_weight)
        visits = self._visits(rows, first)
        if first:
            self._begin(visits)
        self._learn_once(visits, self._orders(0 if first else self.n_iter_)())

    def _read_more(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> Rows:
        if classes is None and not hasattr(type(X), "map_sum"):
            classes = self.classes_
        rows = self._read(X, y, sample_weight, classes, schema=self.schema_)
        if not np.array_equal(cast(Labels, rows.classes), self.classes_):
            raise LabelError(
                f"The batch has the classes {cast(Labels, rows.classes).tolist()[:8]}, the first "
                f"had {self.classes_.tolist()[:8]}.",
                "Name all classes in the first call of partial_fit.",
            )
        return rows

    def _visits(self, rows: Rows, first: bool) -> Walkable:
        """The rows to be visited; the weight of the first ones is one on average."""
        visits = visits_of(rows, self._coordinates, self.shuffle)
        if first:
            self._weight_unit = mean_weight(visits)
        return visits.weighted(1 / self._weight_unit)

    def _orders(self, n_epochs: int = 0) -> Orders:
        """Orders of the rows, one after the other, where so many epochs have been made before."""
        if not self.shuffle:
            return lambda: None
        seed = self.random_state
        if n_epochs and isinstance(seed, int | np.integer):
            seed = [int(seed), n_epochs]  # not the orders of those epochs again
        random = as_generator(seed)
        return lambda: Shuffle(int(random.integers(2**63)))

    def _set_weights(self, weights: Array) -> None:
        """Activations of the columns as they are from W (p, c) of the standardised ones."""
        coordinates = self._coordinates
        slopes, bias = weights[1:], weights[0]
        if weights.shape[1] == 1:  # half of the activation for, half against
            slopes, bias = slopes * [-0.5, 0.5], bias * [-0.5, 0.5]
        with np.errstate(over="ignore"):
            slopes = slopes / coordinates.scale[:, None] / coordinates.unit[:, None]
        if not np.isfinite(slopes).all():
            j = int(np.argmax(~np.isfinite(slopes).all(axis=1)))
            column = coordinates.columns.as_schema().describe(j)
            raise ScaleError(
                f"The coefficients of {column} do not fit in a double.",
                "Multiply the column by a large number.",
            )
        self._linear = Linear.about(coordinates.centre * coordinates.unit, slopes, bias)

    def _check_parameters(self) -> None:
        check_count("max_epochs", self.max_epochs, "epochs")
        for name in ("shuffle", "averaged"):
            check_flag(name, getattr(self, name, False))
        check_choice("unseen", self.unseen, get_args(Unseen))

    def _activations(self, X: Features) -> Array:
        return self._linear.of_rows(X, self.schema_, self.unseen)

    def _linear_function(self) -> Linear:
        self._known_classes()
        return self._linear

    @property
    def n_parameters_(self) -> int:
        """Free numbers: one function less than classes, as only differences decide."""
        d, K = self._linear_function().weights.shape
        return (d + 1) * (K - 1)


@contextmanager
def _counted(orders: Orders) -> Iterator[Orders]:
    """Orders of epochs; an interrupt tells how many have been asked for."""
    n_epochs = 0

    def next_one() -> Shuffle | None:
        nonlocal n_epochs
        n_epochs += 1
        return orders()

    try:
        yield next_one
    except Interrupted:  # in a pass, which has told of itself
        raise
    except KeyboardInterrupt as error:
        raise Interrupted(
            f"Stopped in epoch {n_epochs}.",
            "What was being fitted is as it was before. Fit again, with fewer max_epochs if they "
            "take too long.",
        ) from error


def _coordinates_of(rows: Rows) -> Coordinates:
    """Means and standard deviations of the columns; a constant column is divided by its size."""
    columns = Columns(rows.schema)
    spread = column_spread(rows, columns)
    size, scale = abs(spread.mean), spread.deviation
    scale = np.where(scale > CONSTANT * size, scale, np.where(size > 0, size, 1.0))
    return Coordinates(columns, True, spread.mean, scale, far=True, long=False, unit=spread.unit)
