"""A fit that ends in an error, or by Ctrl-C, leaves the estimator as it was."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


@contextmanager
def unchanged_on_error(estimator: Any) -> Iterator[None]:
    """What an estimator learns within is forgotten if an error ends it."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        estimator.__dict__ = before
        raise


def all_or_nothing(fit: F) -> F:
    """The same for a method that fits."""

    @wraps(fit)
    def fitted(self: Any, *args: Any, **kwargs: Any) -> Any:
        with unchanged_on_error(self):
            return fit(self, *args, **kwargs)

    return cast(F, fitted)
