"""Cross-fitting: predictions for rows that the predicting model was not fitted to.

The folds are those of a splitter of scikit-learn. Each test part is predicted by a copy of the
estimator that is fitted to the training part; an estimator that is already fitted, in a
`FrozenEstimator`, predicts all rows.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
from sklearn.model_selection import StratifiedKFold, check_cv

from posteriori.arguments import check_count
from posteriori.errors import IdentifiabilityWarning, LabelError, ParameterError, warn
from posteriori.models.wrapper import Training, Wrapper
from posteriori.typing import Array, Codes

Fold = tuple[Codes, Codes]
"""The places of the rows to fit to, and of those to predict."""

_REMEDY = (
    "Pass more rows of it; or wrap a fitted estimator in sklearn.frozen.FrozenEstimator, and pass "
    "other rows."
)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Predictions (m,) or (m, K) for held-out rows, and their classes and weights (m,).

    A row that is predicted r times has 1/r of its weight each time.
    """

    values: Array
    codes: Codes
    weight: Array


def held_out_predictions(
    rows: Training, model: Wrapper, predict: Any, split_params: Mapping[str, Any]
) -> HeldOut:
    """What `predict(fitted, X)` gives for held-out rows of a fit of the model."""
    if model._frozen:
        values = rows.predict(partial(predict, model.estimator_))
        return HeldOut(values, rows.codes, rows.weight)
    folds = make_folds(model.cv, rows, split_params)
    check_training_classes(rows, folds)
    parts = []
    for train, test in folds:
        fitted = rows.pick(train).fit(model.estimator)
        parts.append(rows.pick(test).predict(partial(predict, fitted)))
    places = np.concatenate([test for _, test in folds])
    times = np.bincount(places)[places]
    return HeldOut(np.concatenate(parts), rows.codes[places], rows.weight[places] / times)


def check_folds(cv: Any) -> None:
    """An error unless this is a number of folds, a splitter, or a list of splits."""
    if not isinstance(cv, str) and (hasattr(cv, "split") or np.iterable(cv)):
        return
    check_count("cv", cv, "folds")
    if int(cv) < 2:
        raise ParameterError("cv=1 holds out no rows.", "Use two folds or more.")


def make_folds(cv: Any, rows: Training, split_params: Mapping[str, Any]) -> Sequence[Fold]:
    """The folds of a number, `StratifiedKFold(cv, shuffle=True, random_state=0)`, or a splitter.

    There are no more folds than rows in the largest class.
    """
    check_folds(cv)
    if hasattr(cv, "split") or np.iterable(cv):
        given = {
            name: values if rows.rows is None else np.asarray(values)[rows.rows]
            for name, values in split_params.items()
        }
        if not hasattr(cv, "split") and rows.rows is not None:
            return [(_places(rows, train), _places(rows, test)) for train, test in cv]
        splitter, labels = check_cv(cv), rows.classes[rows.codes]
        return list(splitter.split(rows.features, labels, **given))
    n_folds = min(cv, int(np.bincount(rows.codes).max()))
    if n_folds < 2:
        raise LabelError(
            f"Every class has one row only (n_samples = {len(rows.codes)}): none can be held out.",
            _REMEDY,
        )
    with warnings.catch_warnings():
        # A class with fewer rows than folds is in some of the folds only.
        warnings.simplefilter("ignore", UserWarning)
        splitter = StratifiedKFold(n_folds, shuffle=True, random_state=0)
        return list(splitter.split(rows.codes, rows.codes))


def _places(rows: Training, numbers: Any) -> Codes:
    """The places, among the rows in use, of rows numbered as the user passed them."""
    return np.flatnonzero(np.isin(cast(Codes, rows.rows), numbers))


def check_training_classes(rows: Training, folds: Sequence[Fold]) -> None:
    """Warn of a class that training rows lack and held-out rows have; an error for one class."""
    labels, K = rows.classes.tolist(), len(rows.classes)
    for number, (train, test) in enumerate(folds, start=1):
        fitted, held_out = (
            np.bincount(rows.codes[places], minlength=K) > 0 for places in (train, test)
        )
        lacking = np.flatnonzero(held_out & ~fitted)
        if not len(lacking) and fitted.sum() >= min(2, K):
            continue
        k = int(lacking[0] if len(lacking) else fitted.argmin())
        problem = (
            f"No training row of fold {number} is of class {labels[k]!r} "
            f"(n_samples = {len(rows.codes)})"
        )
        if fitted.sum() < min(2, K):
            raise LabelError(f"{problem}: the fold has one class.", _REMEDY)
        warn(IdentifiabilityWarning(f"{problem}: it gets probability zero there.", _REMEDY))
