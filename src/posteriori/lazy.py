"""A cached property without a lock."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")


class cached_property(Generic[T]):
    """A property that is computed once, and kept in the object's `__dict__`.

    That of functools holds a lock in Python 3.11: a child process that is forked while another
    thread computes the property would wait for the lock for ever.
    """

    def __init__(self, function: Callable[[Any], T]) -> None:
        self.function, self.__doc__ = function, function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> T:
        if instance is None:
            return cast(T, self)
        found = instance.__dict__[self.name] = self.function(instance)
        return found
