"""Settings to climb, from loose to tight. Newton's last steps are long, so its rungs are too."""

from collections.abc import Mapping

Ladder = tuple[Mapping[str, float], ...]


def newton(name: str = "tol") -> Ladder:
    """A decade a rung."""
    return tuple({name: 10.0**-power} for power in range(2, 10))


def first_order(name: str = "tol") -> Ladder:
    """Half a decade a rung: every iteration counts."""
    return tuple({name: 10.0 ** (-power / 2)} for power in range(6, 17))


def epochs() -> Ladder:
    """So many passes, whatever the tolerance says."""
    return tuple({"max_iter": passes} for passes in (5, 10, 20, 40, 80, 160))
