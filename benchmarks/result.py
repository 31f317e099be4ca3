"""Targets, and rows of the table."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A bound on a number, from below or from above."""

    bound: float
    sign: str  # ">=" or "<="

    def met_by(self, value: float) -> bool:
        return value >= self.bound if self.sign == ">=" else value <= self.bound

    def __str__(self) -> str:
        return f"{'≥' if self.sign == '>=' else '≤'} {self.bound:g}"


def at_least(bound: float) -> Target:
    return Target(bound, ">=")


def at_most(bound: float) -> Target:
    return Target(bound, "<=")


@dataclass(frozen=True)
class Result:
    """One row of the table."""

    case: str
    data: str
    ours: str
    rival: str
    value: str
    target: str
    verdict: str  # "met", "SHORT", or nothing where there is no target
    note: str = ""  # printed below the table


def result(
    case: str,
    data: str,
    ours: str,
    rival: str,
    value: float | None,
    target: Target | None,
    *,
    valid: bool = True,
    note: str = "",
) -> Result:
    """A row, with its verdict; a value of None was not to be had on this machine.

    No value meets its target if it is not `valid`.
    """
    cell = "–" if value is None else f"{value:.3g}"
    if target is None or value is None:
        return Result(case, data, ours, rival, cell, str(target or ""), "", note)
    verdict = "met" if valid and target.met_by(value) else "SHORT"
    return Result(case, data, ours, rival, cell, str(target), verdict, note)


def duration(seconds: float) -> str:
    """Seconds in the unit that reads best.

    >>> duration(1.5), duration(0.0123), duration(0.0000456)
    ('1.5 s', '12.3 ms', '45.6 µs')
    """
    unit, size = next(
        ((unit, size) for unit, size in (("s", 1.0), ("ms", 1e-3)) if seconds >= size),
        ("µs", 1e-6),
    )
    return f"{seconds / size:.3g} {unit}"
