"""The intercept of rows that differ in their offsets alone, where means are eᵃ."""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from posteriori.rows.block import Block
from posteriori.statistics.local_quadratic import Target
from posteriori.statistics.statistic import Statistic


@dataclass(frozen=True, eq=False)
class LogLevel(Statistic):
    """ln Σ wt e^{(1-k)o}, ln Σ w e^{(2-k)o}, and between which two numbers the offsets o lie."""

    target: float
    mean: float
    low: float
    high: float

    def __add__(self, other: "LogLevel") -> "LogLevel":
        return LogLevel(
            float(np.logaddexp(self.target, other.target)),
            float(np.logaddexp(self.mean, other.mean)),
            min(self.low, other.low),
            max(self.high, other.high),
        )

    @property
    def level(self) -> float:
        """The intercept; minus infinity where all targets are zero."""
        return self.target - self.mean

    @property
    def span(self) -> float:
        """By how much the offsets differ."""
        return self.high - self.low


@dataclass(frozen=True, eq=False)
class GatherLogLevel:
    """The kernel: a block of rows to its `LogLevel`.

    `power` is k of the variance V(μ) = μᵏ. With μ = e^{b+o} the derivative of the loss in b is
    Σ w(μ - t)μ^{1-k}, and zero where eᵇ Σ w e^{(2-k)o} = Σ wt e^{(1-k)o}.
    """

    target: Target
    power: float

    def __call__(self, block: Block) -> LogLevel:
        t, offset = self.target(block), block.offset
        weight = np.ones(len(t)) if block.weight is None else block.weight
        with np.errstate(divide="ignore", over="ignore"):
            if offset is None:
                return LogLevel(float(np.log(weight @ t)), float(np.log(weight.sum())), 0.0, 0.0)
            log_weight, log_target = np.log(weight), np.log(t)
        return LogLevel(
            float(logsumexp(log_weight + log_target + (1 - self.power) * offset)),
            float(logsumexp(log_weight + (2 - self.power) * offset)),
            float(offset.min(initial=np.inf)),
            float(offset.max(initial=-np.inf)),
        )
