"""Predictions of several models for held-out rows, all of them by the same folds.

Conventions: n rows, K classes; `codes` (n,) are the classes that occurred.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from posteriori.errors import MissingValueError, ParameterError, ShapeError
from posteriori.models.cross_fit import assign_folds, check_folds
from posteriori.models.fisher import FisherDiscriminant
from posteriori.models.gaussian import GaussianClassifier
from posteriori.models.meta import Training
from posteriori.models.telling import log_probabilities
from posteriori.posterior.summary import shortened
from posteriori.rows.target import encode
from posteriori.statistics.moments import Moments
from posteriori.typing import Array, Codes


@dataclass(frozen=True)
class Fitting:
    """What is being fitted: a model by name, to all rows but those of a fold; `fold` 0 is none."""

    model: str
    fold: int
    n_folds: int
    fits: int
    n_fits: int

    def __str__(self) -> str:
        part = f"fold {self.fold} of {self.n_folds}" if self.fold else "all rows"
        return f"{self.model}, {part}"


@dataclass(frozen=True, eq=False)
class Predictions:
    """Of one model: ln p (n, K) and predicted codes (n,) of held-out rows; -1 for no class.

    `log_proba` is None where the model gives no probabilities. `fitted` is the model fitted to all
    rows, in `seconds`.
    """

    name: str
    log_proba: Array | None
    predicted: Codes
    fitted: Any
    seconds: float


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows, the fold (n,) of each, and who is told of each fit."""

    rows: Training
    folds: Codes
    models: Mapping[str, Any]
    listener: Callable[[Fitting], object] | None = None

    @property
    def n_folds(self) -> int:
        return int(self.folds.max()) + 1

    def predictions(self) -> list[Predictions]:
        """Those of every model."""
        for name, model in self.models.items():
            _check_weights(name, model, self.rows)
        n, K = len(self.rows.codes), len(self.rows.classes)
        predicted = {name: np.empty(n, dtype=np.intp) for name in self.models}
        log_proba: dict[str, Array | None] = {name: np.empty((n, K)) for name in self.models}
        for fold in range(self.n_folds):
            held = np.flatnonzero(self.folds == fold)
            rest, new = self.rows.pick(np.flatnonzero(self.folds != fold)), self.rows.pick(held).X
            for name, model in self.models.items():
                self._tell(name, fold + 1)
                fitted = self._fitted(name, model, fold, rest)
                predicted[name][held] = self._codes(fitted.predict(new))
                logs = log_proba[name]
                if logs is not None and hasattr(fitted, "predict_proba"):
                    logs[held] = self._aligned(fitted, log_probabilities(fitted, new))
                else:
                    log_proba[name] = None
        return [self._whole(name, log_proba[name], predicted[name]) for name in self.models]

    def _whole(self, name: str, log_proba: Array | None, predicted: Codes) -> Predictions:
        """The predictions of a model, with its fit to all rows."""
        self._tell(name, 0)
        begun = perf_counter()
        fitted = self.rows.fitted(self.models[name])
        return Predictions(name, log_proba, predicted, fitted, perf_counter() - begun)

    def _fitted(self, name: str, model: Any, fold: int, rest: Training) -> Any:
        """A copy of the model, fitted to the rows that are not in the fold."""
        try:
            if type(model) in (GaussianClassifier, FisherDiscriminant) and self._moments:
                sums = sum((one for k, one in enumerate(self._moments) if k != fold), 0)
                return type(model).from_statistics(sums, **model.get_params())
            return rest.fitted(model)
        except Exception as error:
            error.add_note(f"This was {name}, fitted to all rows but those of fold {fold + 1}.")
            raise

    @cached_property
    def _moments(self) -> list[Moments]:
        """Those of each class in each fold, which make every Gaussian model; none with gaps."""
        model = GaussianClassifier(covariance="full")
        try:
            return [self._moments_of(model, fold) for fold in range(self.n_folds)]
        except MissingValueError:
            return []

    def _moments_of(self, model: GaussianClassifier, fold: int) -> Moments:
        part = self.rows.pick(np.flatnonzero(self.folds == fold))
        labels = self.rows.classes[part.codes]
        known = {"schema": self.rows.schema, "known_classes": self.rows.classes}
        found = model._read(part.X, labels, part.weight, None, least_classes=1, **known)
        sums = model._gather(found)
        assert isinstance(sums, Moments)
        return sums

    def _aligned(self, fitted: Any, logs: Array) -> Array:
        """ln p of all classes; -inf for those that were not in the training folds."""
        known = self.rows.classes.tolist()
        out = np.full((len(logs), len(known)), -np.inf)
        out[:, [known.index(label) for label in np.asarray(fitted.classes_).tolist()]] = logs
        return out

    def _codes(self, labels: Any) -> Codes:
        place = {label: code for code, label in enumerate(self.rows.classes.tolist())}
        return np.array([place.get(label, -1) for label in np.asarray(labels).tolist()])

    def _tell(self, name: str, fold: int) -> None:
        if self.listener is not None:
            place, n_models = list(self.models).index(name), len(self.models)
            done = ((fold or self.n_folds + 1) - 1) * n_models + place
            self.listener(Fitting(name, fold, self.n_folds, done, (self.n_folds + 1) * n_models))


def _check_weights(name: str, model: Any, rows: Training) -> None:
    if rows.weight is not None and not has_fit_parameter(model, "sample_weight"):
        raise ParameterError(
            f"sample_weight was given, but {name} takes none.",
            "Leave the weights out, or compare models whose fit takes them.",
        )


def read_folds(folds: Any, rows: Training, kept: Codes, random_state: Any) -> Codes:
    """The fold of each row: by a number of folds, a label a row, or a splitter with `split`.

    `kept` are the places of the rows among those given, as rows of weight zero do not count.
    """
    listed = isinstance(folds, list | tuple)
    in_parts = listed and any(isinstance(one, list | tuple | np.ndarray) for one in folds)
    if isinstance(folds, str) or in_parts:
        raise ParameterError(
            f"folds={shortened(repr(folds), 60)} is not understood.",
            "Use a number, one label a row, or a splitter such as StratifiedKFold.",
        )
    if hasattr(folds, "split"):
        return _of_splitter(folds, rows, kept)
    if np.ndim(folds) == 1:
        given = np.asarray(folds)
        given = given[kept] if len(given) > len(rows.codes) and kept.max() < len(given) else given
        if len(given) != len(rows.codes):
            raise ShapeError(
                f"folds has {len(given)} labels for {len(rows.codes)} rows.", "Give one a row."
            )
        labels, found = encode(given)
        check_folds(len(labels))
        return found
    check_folds(folds)
    return assign_folds(rows.codes, rows.classes, folds, random_state)


def _of_splitter(folds: Any, rows: Training, kept: Codes) -> Codes:
    """The fold of each row, which is to be in one test part and in all other training parts."""
    n = len(rows.codes)
    found = np.full(n, -1)
    for fold, (train, test) in enumerate(folds.split(rows.X, rows.classes[rows.codes])):
        left = np.setdiff1d(np.arange(n), test)
        if (found[test] >= 0).any() or not np.array_equal(np.sort(train), left):
            raise ParameterError(
                "The splitter tests a row twice, or trains by only some of the others.",
                "Use one that tests every row once, against all others, such as StratifiedKFold.",
            )
        found[test] = fold
    if (found < 0).any():
        raise ParameterError(
            f"The folds leave out row {kept[int((found < 0).argmax())]}: every row is tested once.",
            "Use a splitter whose test rows are all rows, such as StratifiedKFold.",
        )
    return found
