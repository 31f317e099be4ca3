"""Arguments of the right kind, or an error that names them and says what they may be.

scikit-learn asks that constructors only keep what they are given; so these are called by `fit`.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import signature
from numbers import Integral, Real
from typing import Any, TypeGuard, TypeVar, cast

import numpy as np

from posteriori.errors import ParameterError, ParameterNameError


def is_number(value: object) -> TypeGuard[float]:
    """Whether this is one real number; True and False are none.

    >>> is_number(2), is_number(np.float32(0.5)), is_number(True), is_number("2"), is_number(1j)
    (True, True, False, False, False)
    """
    return isinstance(value, Real) and not isinstance(value, bool)


def check_fraction(name: str, value: Any) -> None:
    """An error unless this is a number between zero and one, both excluded."""
    if not (is_number(value) and 0 < value < 1):
        raise ParameterError(
            f"{name}={value!r} is out of range.", "Use a number between zero and one."
        )


def check_number(name: str, value: Any, *, positive: bool = False, most: float = np.inf) -> None:
    """An error unless this is a finite number from zero to `most`; above zero, if `positive`."""
    inside = is_number(value) and 0 <= value <= most and value < np.inf
    if not inside or (positive and value == 0):
        least = "a positive number" if positive else "a finite number of zero or more"
        up_to = f" up to {most:g}" if most < np.inf else ""
        raise ParameterError(f"{name}={value!r} is out of range.", f"Use {least}{up_to}.")


def check_count(name: str, value: Any, what: str, *, none: bool = False) -> None:
    """An error unless this is a whole number from one on or, where `none`, None."""
    if value is None and none:
        return
    if not (isinstance(value, Integral) and is_number(value) and value >= 1):
        raise ParameterError(
            f"{name}={value!r} is not a number of {what}.",
            f"Use a whole number, one or more{', or None' if none else ''}.",
        )


def check_flag(name: str, value: Any) -> None:
    """An error unless this is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(f"{name}={value!r} is not understood.", "Use True or False.")


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """An error unless this is one of the words.

    >>> check_choice("units", "metres", ["original", "standardised"])
    Traceback (most recent call last):
    posteriori.errors.ParameterError: units='metres' is not understood. Use 'original' or
    'standardised'. [P301]
    """
    if not (isinstance(value, str) and value in choices):
        raise ParameterError(f"{name}={value!r} is not understood.", f"Use {either(choices)}.")


def either(words: Sequence[str]) -> str:
    """Words to choose from.

    >>> either(["log"]), either(["log", "identity"]), either("abc")
    ("'log'", "'log' or 'identity'", "'a', 'b' or 'c'")
    """
    *most, last = map(repr, words)
    return f"{', '.join(most)} or {last}" if most else last


_INSTEAD = {
    "C": "prior=1/C (the precision of every slope; None, the default, is maximum likelihood)",
    "penalty": "prior: a number for an l2 penalty, 'evidence' to choose it, None for none",
    "l1_ratio": "prior='ard', which switches irrelevant columns off",
    "alpha": "prior=alpha times the number of rows",
    "class_weight": "a loss in DecidingClassifier for unequal costs, or undo_sampling for "
    "resampled classes",
    "n_jobs": "the context manager posteriori.threads(n)",
    "random_state": "nothing: this fit is not random",
    "warm_start": "partial_fit",
    "multi_class": "nothing for softmax, or OneVersusRest(LogisticRegression())",
    "verbose": "solution_.trace after the fit",
}
"""Parameters that scikit-learn has, and what takes their place."""

Init = TypeVar("Init", bound=Callable[..., None])


def names_of_others(init: Init) -> Init:
    """The constructor, with an error that says what to use for a parameter of scikit-learn.

    >>> from posteriori import LogisticRegression
    >>> LogisticRegression(n_jobs=4)
    Traceback (most recent call last):
    posteriori.errors.ParameterNameError: LogisticRegression has no parameter 'n_jobs'. Use the
    context manager posteriori.threads(n). [P305]
    """
    known = signature(init).parameters

    @wraps(init)
    def checked(self: Any, *args: Any, **settings: Any) -> None:
        for name in settings:
            if name in _INSTEAD and name not in known:
                raise ParameterNameError(
                    f"{type(self).__name__} has no parameter {name!r}.", f"Use {_INSTEAD[name]}."
                )
        init(self, *args, **settings)

    return cast(Init, checked)


def as_generator(random_state: Any) -> np.random.Generator:
    """A generator from a seed, a Generator, or scikit-learn's RandomState."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ParameterError(
            f"random_state={random_state!r} is not a seed.",
            "Use a whole number of zero or more, a numpy Generator or RandomState, or None.",
        ) from None
