"""Probabilities of rows beside the classes that occurred, for what judges one by the other.

Conventions: n rows, K classes. A weight counts how often its row occurred; weight zero is absence.
"""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from posteriori.decision.probabilities import read_proba
from posteriori.errors import LabelError, ParameterError, ShapeError
from posteriori.rows.features import as_frame
from posteriori.rows.target import as_vector, read_target, read_weight
from posteriori.typing import Array, Codes, Labels


@dataclass(frozen=True, eq=False)
class Labelled:
    """Rows with their probabilities (n, K), the code of the class that occurred, and a weight.

    `row` is the number of each among the rows that were given; those of weight zero are left out.
    """

    classes: Labels
    probability: Array
    codes: Codes
    weight: Array
    row: Codes

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @property
    def own(self) -> Array:
        """The probability (n,) of the class that occurred."""
        return np.take_along_axis(self.probability, self.codes[:, None], axis=1)[:, 0]

    def place(self, label: Any) -> int:
        """The column of a class; None for the second of two."""
        return class_place(label, self.classes)


def class_place(label: Any, classes: Labels) -> int:
    """The place of the class `label`; None is the second of two."""
    labels = classes.tolist()
    if label is None and len(labels) == 2:
        return 1
    if label is None:
        raise ParameterError(
            f"There are {len(labels)} classes, and label does not say which is meant.",
            f"Pass label=, one of {labels[:8]}.",
        )
    if label not in labels:
        raise ParameterError(f"There is no class {label!r}.", f"Use one of {labels[:8]}.")
    return labels.index(label)


def read_labelled(y: Any, proba: Any, classes: Any = None, sample_weight: Any = None) -> Labelled:
    """Labels `y`, `proba` (n, K) or (n,) for the second of two classes, and weights, checked.

    Column j is of class j of `classes`, by default the labels in y in their order. In a data frame
    whose columns are called as the classes, each is of the class it is called after.
    """
    probability = read_proba(proba).checked()
    n, K = probability.shape
    if not probability.size or K < 2:
        raise ShapeError(
            f"proba has shape {probability.shape}.",
            "Pass rows with a column a class, or one number a row for the second of two classes.",
        )
    labels = as_vector(y)
    if labels.ndim == 0:
        raise LabelError(f"y is {y!r}, not a list of labels.", "Pass one label a row.")
    if len(labels) != n:
        raise ShapeError(f"proba has {n} rows but y has {len(labels)}.", "Pass one label a row.")
    given = None if classes is None else np.atleast_1d(as_vector(classes))
    if given is None and labels.dtype.kind == "b" and K == 2:
        given = np.array([False, True])
    known, codes = read_target(y, n, known=given)
    if codes.ndim == 2:
        raise LabelError("y has a column a class.", "Pass one label a row.")
    _check_number(known, given, K)
    probability = probability[:, _columns_of(known.tolist(), proba)]
    weight = read_weight(sample_weight, n)
    weight = np.ones(n) if weight is None else weight
    kept = np.flatnonzero(weight)
    return Labelled(known, probability[kept], cast(Codes, codes)[kept], weight[kept], kept)


def _columns_of(classes: list[Any], proba: Any) -> list[int]:
    """The column of each class: by name where a data frame has them as names, else by order."""
    frame = as_frame(proba)
    names = classes if frame is None else list(frame.columns)
    if set(names) != set(classes):
        names = classes
    return [names.index(label) for label in classes]


def _check_number(known: Labels, given: Labels | None, K: int) -> None:
    if given is not None and len(set(given.tolist())) < len(given):
        raise LabelError("classes names a class twice.", "Name each column of proba once.")
    if len(known) != K:
        what = "y has" if given is None else "classes names"
        raise LabelError(
            f"proba is of {K} classes, but {what} {len(known)}: {known.tolist()[:8]}.",
            "Pass classes=, the class of each column of proba, such as model.classes_.",
        )
