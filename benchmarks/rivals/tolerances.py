"""Settings of solvers from loose to tight; coarser for Newton's method, whose steps are long."""

from collections.abc import Mapping

Settings = tuple[Mapping[str, float], ...]


def newton(name: str = "tol") -> Settings:
    """In decades."""
    return tuple({name: 10.0**-power} for power in range(2, 10))


def first_order(name: str = "tol") -> Settings:
    """In half decades."""
    return tuple({name: 10.0 ** (-power / 2)} for power in range(6, 17))


def epochs() -> Settings:
    """Numbers of passes."""
    return tuple({"max_iter": passes} for passes in (5, 10, 20, 40, 80, 160))
