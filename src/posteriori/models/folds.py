"""Answers for rows that the answering model has not seen: cross-validation by content.

Rows are dealt out by what they hold. Neither their order nor the number of times that a row occurs
makes a difference, so that a weight of two is the row twice; and no row is on both sides.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from posteriori.arguments import as_generator, check_count
from posteriori.errors import IdentifiabilityWarning, LabelError, ParameterError, warn
from posteriori.models.meta import Training
from posteriori.rows.digests import row_digests
from posteriori.typing import Array, Codes

_MOST_KEYS = 2**63


def check_folds(folds: Any) -> None:
    """An error unless this is a number of folds."""
    check_count("folds", folds, "folds")
    if folds < 2:
        raise ParameterError("folds=1 holds no rows back.", "Use two folds or more.")


def deal(rows: Training, folds: int, random_state: Any) -> Codes:
    """The fold (n,) of each row: as many of each class in one as in another, to within one.

    Without `random_state`, rows are dealt out in the same way every time.
    """
    key = 0 if random_state is None else int(as_generator(random_state).integers(_MOST_KEYS))
    digests = row_digests(rows.X, key)
    order = np.lexsort((digests, rows.codes))
    changed = (np.diff(digests[order]) != 0) | (np.diff(rows.codes[order]) != 0)
    first = np.concatenate([[True], changed])
    _check_twice(rows, np.bincount(rows.codes[order[first]], minlength=len(rows.classes)))
    found = np.empty(len(order), dtype=np.intp)
    found[order] = (np.cumsum(first) - 1) % folds
    return found


def _check_twice(rows: Training, distinct: Codes) -> None:
    """Say so where a class has one row, which is unknown to the estimator when it is held back."""
    lone = distinct == 1
    if not lone.any():
        return
    label = rows.classes.tolist()[int(lone.argmax())]
    remedy = (
        "Pass more rows; or wrap a fitted estimator in sklearn.frozen.FrozenEstimator, and pass "
        "other rows."
    )
    if len(lone) - lone.sum() < min(2, len(lone)):
        raise LabelError(
            f"Class {label!r} has no two different rows, so that none can be held back "
            f"(n_samples = {len(rows.codes)}).",
            remedy,
        )
    warn(
        IdentifiabilityWarning(
            f"Class {label!r} has no two different rows: where its row is held back, the estimator "
            "does not know the class.",
            remedy,
        )
    )


def out_of_fold(
    rows: Training,
    estimator: Any,
    answer: Callable[[Any, Any], Array],
    folds: Codes,
    labelled: bool = True,
) -> Array:
    """answer(fitted, X) for the rows of each fold, by an estimator fitted to all other folds."""
    parts, places = [], []
    for fold in np.unique(folds):
        held, rest = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        fitted = rows.pick(rest).fitted(estimator, labelled)
        parts.append(answer(fitted, rows.pick(held).X))
        places.append(held)
    joined = np.concatenate(parts)
    found = np.empty_like(joined)
    found[np.concatenate(places)] = joined
    return found
