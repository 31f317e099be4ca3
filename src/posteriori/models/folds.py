"""How rows are dealt out to folds: by what they hold.

Neither their order nor the number of times that a row occurs makes a difference, so that a weight
of two is the row twice; and no row is on both sides. Nor does it matter where the rows lie, or
whether they are doubles or float32: rows go by what float32 holds of them, and those that it takes
for equal together; unless these are too many.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posteriori.arguments import as_generator, check_count
from posteriori.errors import IdentifiabilityWarning, LabelError, ParameterError, warn
from posteriori.models.meta import Training
from posteriori.rows.digests import leading_bits, row_lots
from posteriori.rows.rows import Rows
from posteriori.statistics.lots import GatherLots, buckets, buckets_for, leading, rows_of_classes
from posteriori.typing import Array, Codes, Labels

_MOST_KEYS = 2**63


def check_folds(folds: Any) -> None:
    """An error unless this is a number of folds."""
    check_count("folds", folds, "folds")
    if folds < 2:
        raise ParameterError("folds=1 holds no rows back.", "Use two folds or more.")


def read_key(random_state: Any) -> int:
    """What lots depend on; without `random_state` they are the same every time."""
    return 0 if random_state is None else int(as_generator(random_state).integers(_MOST_KEYS))


@dataclass(frozen=True, eq=False)
class Folds:
    """The fold of a row by its lot and its class: by the bits that lead the lot, or `by_all`.

    Of a class with few different rows there are as many in one fold as in another, to within one:
    `known` has their lots in order, the lowest of which is in the `first` fold. Those of a class
    with many, for which it has None, go with their buckets, whose folds are in `dealt` (K, B), or
    (1, B) if these are the same for all classes.
    """

    number: int
    by_all: bool
    known: tuple[Array | None, ...]
    first: Codes
    dealt: NDArray[np.int32]

    @property
    def need_classes(self) -> bool:
        """Whether it takes the class of a row to know its fold."""
        return len(self.dealt) > 1 or any(lots is not None for lots in self.known)

    def lots(self, X: Any, key: int) -> Array:
        """What decides on the rows of a table."""
        return row_lots(X, key) if self.by_all else leading_bits(X, key)

    def fold(self, lots: Array, codes: Codes) -> Codes:
        """The fold (n,) of each row by such lots."""
        bucket = buckets(lots, self.dealt.shape[1])
        found = self.dealt[codes if len(self.dealt) > 1 else 0, bucket].astype(np.intp)
        if self.need_classes:
            for k, rows in enumerate(rows_of_classes(codes, len(self.known))):
                known = self.known[k]
                if known is not None:
                    place = self.first[k] + np.searchsorted(known, lots[rows])
                    found[rows] = place % self.number
        return found


@dataclass(frozen=True, eq=False)
class Deal:
    """Folds, and the weight and the number (K, folds) of the rows of each class in each of them."""

    folds: Folds
    weight: Array
    count: Array


def deal_out(rows: Rows, number: int, classes: Labels) -> Deal:
    """Folds for rows whose one column is their lot, by one pass.

    Buckets without rows are passed over: of rows that were left by another deal, which took some
    buckets away, all folds get their share.
    """
    found = rows.map_sum(GatherLots(len(classes), buckets_for(number)))
    _check_twice(found.whole.n_different, classes, int(found.whole.count.sum()))
    by_all = found.are_heaped(number)
    piles = found.whole if by_all else found.leading
    known = tuple(own.lots if own.are_few else None for own in piles.classes)
    dealt = (np.cumsum(piles.count > 0, axis=1) - 1).astype(np.int32) % number
    many = dealt[[lots is None for lots in known]]
    same = (many == many[:1]).all()
    shown = (many if len(many) else dealt)[:1] if same else dealt
    first = np.cumsum([0, *piles.n_different[:-1]])
    folds = Folds(number, by_all, known, first, shown)
    weight, count = np.empty((2, len(classes), number))
    for k, own in enumerate(piles.classes):
        fold, each = dealt[k], (piles.weight[k], piles.count[k])
        if own.are_few:
            fold, each = (first[k] + np.arange(len(own.lots))) % number, (own.weight, own.count)
        weight[k], count[k] = (np.bincount(fold, values, number) for values in each)
    return Deal(folds, weight, count)


def deal(rows: Training, folds: int, random_state: Any) -> Codes:
    """The fold (n,) of each row of a table."""
    lots = row_lots(rows.X, read_key(random_state))
    found = deal_out(rows.as_numbers(lots), folds, rows.classes).folds
    return found.fold(lots if found.by_all else leading(lots), rows.codes)


def _check_twice(distinct: Codes, classes: Labels, n_rows: int) -> None:
    """Say so where a class has one row, which is unknown to the estimator when it is held back."""
    lone = distinct == 1
    if not lone.any():
        return
    label = classes.tolist()[int(lone.argmax())]
    remedy = (
        "Pass more rows; or wrap a fitted estimator in sklearn.frozen.FrozenEstimator, and pass "
        "other rows."
    )
    if len(lone) - lone.sum() < min(2, len(lone)):
        raise LabelError(
            f"Class {label!r} has no two different rows, so that none can be held back "
            f"(n_samples = {n_rows}).",
            remedy,
        )
    warn(
        IdentifiabilityWarning(
            f"Class {label!r} has no two different rows: where its row is held back, the estimator "
            "does not know the class.",
            remedy,
        )
    )
