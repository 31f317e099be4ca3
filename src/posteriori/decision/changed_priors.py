"""Probabilities under class priors other than those of the training data.

Conventions: n rows, K classes; p (n, K) are the probabilities under the old priors.
"""

from typing import Any

import numpy as np

from posteriori.decision.priors import PriorsLike, by_class, log_priors, read_priors
from posteriori.decision.probabilities import Probabilities, read_proba
from posteriori.errors import ParameterError, ProbabilityError
from posteriori.posterior.classes import probabilities
from posteriori.typing import Array, Labels


def adjust_priors(proba: Any, old: PriorsLike, new: PriorsLike, classes: Any = None) -> Array:
    """The probabilities that the same classifier would give if the class priors were others.

    p(C_k|x) is proportional to p(x|C_k) π_k, and the densities stay as they are: so the new
    probabilities are proportional to p_k new_k / old_k.

    proba : (n, K), a data frame with a column a class, or (n,) for the second of two classes; the
        answer has the same shape, its columns in the order of `classes`.
    old, new : priors by class, or in the order of the classes.
    classes : labels of the columns of proba; by default their names, else 0, 1, ...

    >>> adjust_priors([0.5, 0.9], old=[0.5, 0.5], new=[0.99, 0.01]).round(4)
    array([0.01  , 0.0833])
    """
    given = read_proba(proba, classes)
    before = read_priors(old, given.classes, "old")
    after = read_priors(new, given.classes, "new")
    p, weight = given.checked(), log_ratio(before, after, given.classes)
    check_possible(p, before, given.classes)
    return _as_given(given, reweigh(p, weight))


def undo_sampling(proba: Any, rates: PriorsLike, classes: Any = None) -> Array:
    """The probabilities before classes were thinned out, or multiplied, to train the classifier.

    If rate_k of the rows of class k were kept (below one), or made of each row (above one), the
    probabilities without that are proportional to p_k / rate_k. Only ratios of rates matter.

    proba : (n, K), a data frame with a column a class, or (n,) for the second of two classes; the
        answer has the same shape, its columns in the order of `classes`.
    rates : by class, or in the order of the classes.
    classes : labels of the columns of proba; by default their names, else 0, 1, ...

    Of the honest payments one in a hundred was kept, of the frauds all:

    >>> undo_sampling([0.5, 0.9], rates=[0.01, 1.0]).round(4)
    array([0.0099, 0.0826])
    """
    given = read_proba(proba, classes)
    values = by_class(rates, given.classes, "rates", "rate")
    if not (np.isfinite(values).all() and (values > 0).all()):
        raise ParameterError(
            f"rates={values.tolist()} must be finite and above zero.",
            "Give the share of the rows kept, or how often each was repeated; leave out classes "
            "of which no row was kept.",
        )
    return _as_given(given, reweigh(given.checked(), -np.log(values)))


def log_ratio(old: Array, new: Array, classes: Labels) -> Array:
    """ln(new_k / old_k); -inf for a class that can no longer occur, or never could."""
    lost = (old == 0) & (new > 0)
    if lost.any():
        label = classes.tolist()[int(lost.argmax())]
        raise ParameterError(
            f"Class {label!r} has prior zero in old, but not in new: nothing is known of it.",
            "Fit the classifier to rows of this class, or give it prior zero in new.",
        )
    with np.errstate(invalid="ignore"):
        return np.where(new > 0, log_priors(new) - log_priors(old), -np.inf)


def reweigh(p: Array, log_weight: Array) -> Array:
    """p_k exp(log_weight_k), made to sum to one."""
    with np.errstate(divide="ignore"):
        return probabilities(weighed_logs(np.log(p), log_weight))


def weighed_logs(log_p: Array, log_weight: Array) -> Array:
    """ln p_k + log_weight_k, an error for rows of which no class is left."""
    activation = log_p + log_weight
    lost = np.isneginf(activation).all(axis=1)
    if lost.any():
        raise ProbabilityError(
            f"Row {int(lost.argmax())} of proba can only be of classes whose prior is now zero.",
            "Give some class that is possible there a prior above zero.",
        )
    return activation


def check_possible(p: Array, old: Array, classes: Labels) -> None:
    """An error if a row may be of a class that could not occur."""
    strange = (p > 0) & (old == 0)
    if strange.any():
        row, k = np.argwhere(strange)[0].tolist()
        raise ProbabilityError(
            f"Row {row} of proba has probability {p[row, k]:.4g} for class "
            f"{classes.tolist()[k]!r}, whose prior in old is zero.",
            "Give in old the priors that the classifier was trained with.",
        )


def _as_given(given: Probabilities, p: Array) -> Array:
    """Of two classes the second alone, if that is what was given."""
    return p[:, 1] if given.single else p
