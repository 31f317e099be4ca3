"""Sequential learning: a few rows at a time, in random order ((3.22) with the gradient (4.91)).

Conventions as in `posteriori.solve.newton`: p parameters w (p,), objective f, gradient g (p,). The
rows are in k batches; f_b is the objective with batch b standing for all rows, so f = Σ_b f_b / k.

Plain stochastic gradients, w - η ∇f_b(w), never settle: at the optimum of f each ∇f_b still has a
size of its own. That part is known from a pass at an anchor v, and is taken off (variance
reduction, Johnson and Zhang 2013): w - η M⁻¹ (∇f_b(w) - ∇f_b(v) + ∇f(v)), where the metric M is
the Hessian of a subsample. So the error shrinks by a factor from pass to pass, and no learning
rate has to be set.
"""

from collections.abc import Sequence
from time import perf_counter
from typing import NamedTuple, Protocol, cast

import numpy as np

from posteriori.solve.first_order import FINEST, Curvatures, Suspicion
from posteriori.solve.local import Curvature, Local, Objective
from posteriori.solve.metric import Metric
from posteriori.solve.search import decrement_of, rounding, search, standstill
from posteriori.solve.solution import Iteration, Solution, Status
from posteriori.typing import Array

_ROWS_PER_PARAMETER = 8
"""Rows a batch, at least: with fewer, its Hessian says little of that of all rows."""

_COUNTS = (31, 17, 11, 7, 5, 3, 1)
"""How many batches: primes, so that rows which come in turns are not all in one of them."""

_GOOD = 0.3
"""Going through the batches should shrink the error by this; else a better metric is sought."""

_FEWER, _SUSPICIOUS = 2, 4
"""Times in a row that this fails before there are fewer batches, and before w may run away."""

_RUNAWAY = 2.0
"""Steps that grow by this factor on the way go nowhere good."""

_LEVEL = 0.9
"""Where f is level to its last digits, the error must still shrink by this."""

_MOST_ROUGH_EPOCHS = 10


class Splittable(Objective, Protocol):
    """An objective whose rows can be had in parts."""

    def batches(self, k: int) -> Sequence[Objective]:
        """Objectives on k parts of the rows, whose mean is this one; or this one alone."""
        ...


def sequential(
    levels: Sequence[Splittable],
    start: Array,
    *,
    max_iter: int = 200,
    suspicion: Suspicion | None = None,
    random_state: int = 0,
) -> Solution[Array, Iteration]:
    """The parameters that make the last of `levels` smallest, by steps on a few rows each.

    `levels` and `suspicion` are those of `newton`. Each iteration of the trace is once through
    the batches of a level, in an order drawn from `random_state`, and a look at all its rows that
    makes sure f fell. Where it did not, the metric is made anew, of more rows; where that does not
    help, batches differ too much from each other, and there will be half as many.
    """
    log = _Log()
    metric, w = _LazyMetric(levels, start, log), start
    random = np.random.default_rng(random_state)
    for objective in levels[:-1]:
        rough = _Descent(objective, w, metric, random, log)
        rough.run(_MOST_ROUGH_EPOCHS, None)
        w = rough.anchor.w
    descent = _Descent(levels[-1], w, metric, random, log)
    status = descent.run(max_iter, suspicion)
    return Solution(descent.anchor.w, status, tuple(log.trace), descent.anchor.local.value)


class _Log:
    """The trace so far, and what was looked at since its last entry."""

    def __init__(self) -> None:
        self.trace: list[Iteration] = []
        self._begun, self._share = perf_counter(), 0.0

    def look(self, share: float) -> None:
        """So much of the rows was looked at once more."""
        self._share += share

    def seconds(self) -> float:
        """Since the start."""
        return perf_counter() - self._begun

    def note(
        self, value: float, decrement: float, step: float, seconds: float, share: float
    ) -> None:
        """Once through the batches of a share of the rows, from where f had this value."""
        looks = self._share / share
        self.trace.append(Iteration(value, decrement, step, seconds, share, False, looks))
        self._share = 0.0


class _LazyMetric:
    """A metric that is made anew only when told to: of few rows first, of more if need be."""

    def __init__(self, sources: Sequence[Objective], start: Array, log: _Log) -> None:
        self._sources, self._source, self._log = sources, 0, log
        self._make(start)

    def _make(self, w: Array) -> None:
        source = self._sources[self._source]
        curvature: Curvature = "diagonal" if source.price == np.inf else "full"
        hessian = cast(Array, source(w, curvature).hessian)
        self._log.look(source.share)
        self._metric, self._age = Metric.of(hessian), 0
        self._curvatures = Curvatures(hessian if hessian.ndim == 1 else np.diagonal(hessian))

    @property
    def is_full(self) -> bool:
        """Whether it knows more than a diagonal."""
        return self._metric.is_full

    def direction(self, gradient: Array) -> Array:
        """-M⁻¹g."""
        return self._metric.direction(gradient)

    def decrement(self, local: Local) -> float:
        """About how many standard errors w is from the optimum."""
        return decrement_of(self._sources[0], local, self.direction(local.gradient))

    def away(self, local: Local) -> float:
        """How many they are at most, whether or not the metric is any good."""
        return self._curvatures.away(local.gradient) / self._sources[0].unit

    def learn(self, moved: Array, change: Array) -> None:
        """Take in how the gradient changed while the batches were gone through once."""
        self._metric.learn(moved, change)
        self._curvatures.see(moved, change)
        self._age += 1

    def improve(self, w: Array) -> bool:
        """Make it anew at w, of more rows if it was of no use; whether that could be done."""
        of_all_rows = self._source == len(self._sources) - 1
        if self._sources[0].price == np.inf or (of_all_rows and self._age == 0):
            return False
        self._source += int(self._age <= 1 and not of_all_rows)
        self._make(w)
        return True


class _Anchor(NamedTuple):
    """f and g at w, and the gradient of each batch there."""

    w: Array
    local: Local
    gradients: list[Array]


class _Batches:
    """An objective in k parts."""

    def __init__(self, objective: Splittable, p: int, most: int) -> None:
        most = max(min(objective.n_rows // (_ROWS_PER_PARAMETER * p), most), 1)
        k = next(k for k in _COUNTS if k <= most)
        self._parts = [objective] if k == 1 else objective.batches(k)
        self.k = len(self._parts)
        # The step that best balances what is gained against what the choice of rows adds.
        self.step = 1.0 if self.k == 1 else 1.0 / (1.0 + p * self.k / objective.n_rows)

    def look(self, w: Array) -> _Anchor:
        """f, g and the gradients of all batches at w."""
        found = [part(w, "none") for part in self._parts]
        gradients = [local.gradient for local in found]
        value = float(np.mean([local.value for local in found]))
        return _Anchor(w, Local(value, np.mean(gradients, axis=0), None), gradients)

    def once_through(
        self, anchor: _Anchor, metric: _LazyMetric, random: np.random.Generator
    ) -> Array | None:
        """The mean of the second half of the steps, or None where they run away."""
        w, total = anchor.w, np.zeros(len(anchor.w))
        largest = (_RUNAWAY * metric.decrement(anchor.local) * self._parts[0].unit) ** 2
        for place, b in enumerate(random.permutation(self.k)):
            slope = self._parts[b](w, "none").gradient - anchor.gradients[b]
            slope += anchor.local.gradient
            step = metric.direction(slope)
            if not -(slope @ step) <= largest:  # NaN where w has left the domain
                return None
            w = w + self.step * step
            if place >= self.k // 2:
                total += w
        return total / (self.k - self.k // 2)


class _Descent:
    """Times through the batches of one objective."""

    def __init__(
        self,
        objective: Splittable,
        w: Array,
        metric: _LazyMetric,
        random: np.random.Generator,
        log: _Log,
    ) -> None:
        self._objective, self._metric, self._random, self._log = objective, metric, random, log
        self._tolerance = max(objective.tolerance, FINEST)
        self._rate, self._slow = 1.0, 0
        self._split(_COUNTS[0], w)

    def _split(self, most: int, w: Array) -> None:
        self._batches = _Batches(self._objective, len(w), most)
        self._log.look(self._objective.share)
        self.anchor = self._batches.look(w)

    def run(self, most: int, suspicion: Suspicion | None) -> Status:
        """Until the parameters are within the tolerance of the objective."""
        for _ in range(most):
            decrement, value = self._metric.decrement(self.anchor.local), self.anchor.local.value
            if decrement <= self._tolerance and self._settled():
                return Status.CONVERGED
            seconds, step = self._log.seconds(), self._batches.step
            if not self._advance(decrement):
                if not self._metric.improve(self.anchor.w) and not self._fewer_batches():
                    here = self.anchor.local
                    return standstill(self._objective, here, self._metric.direction(here.gradient))
                continue
            self._log.note(value, decrement, step, seconds, self._objective.share)
            if suspicion is not None and self._slow >= _SUSPICIOUS:
                if suspicion():
                    return Status.SEPARATED
                suspicion = None
            self._adapt()
        return Status.MAX_ITERATIONS

    def _settled(self) -> bool:
        """Whether the metric can be relied on to say how far the optimum is, or need not be."""
        good = self._metric.is_full and self._rate <= _GOOD
        return good or self._metric.away(self.anchor.local) <= self._tolerance

    def _advance(self, decrement: float) -> bool:
        """Go to the next anchor, unless f would not fall."""
        here, there = self.anchor, self._next(decrement)
        if there is None:
            return False
        moved = there.w - here.w
        self._metric.learn(moved, there.local.gradient - here.local.gradient)
        self.anchor = there
        self._rate = self._metric.decrement(there.local) / decrement
        self._slow = self._slow + 1 if self._rate > _GOOD else 0
        return True

    def _next(self, decrement: float) -> _Anchor | None:
        if self._batches.k == 1:
            return self._next_by_search()
        w = self._batches.once_through(self.anchor, self._metric, self._random)
        self._log.look(2 * self._objective.share)
        if w is None:
            return None
        there, value = self._batches.look(w), self.anchor.local.value
        gain, noise = value - there.local.value, rounding(self._objective, value)
        if gain > noise:
            return there
        still = abs(gain) <= noise and self._metric.decrement(there.local) <= _LEVEL * decrement
        return there if still else None

    def _next_by_search(self) -> _Anchor | None:
        """With all rows in one batch, a step along which f falls for sure."""
        w, here, _ = self.anchor
        step = self._metric.direction(here.gradient)
        found = search(self._objective, w, here, step)
        if found is None:
            return None
        self._log.look(found.looks * self._objective.share)
        return _Anchor(w + found.length * step, found.local, [found.local.gradient])

    def _fewer_batches(self) -> bool:
        if self._batches.k == 1:
            return False
        self._split(self._batches.k // 2, self.anchor.w)
        return True

    def _adapt(self) -> None:
        """After slow progress, look for a better metric, then for larger batches."""
        if self._slow:
            self._metric.improve(self.anchor.w)
        if self._slow >= _FEWER:
            self._fewer_batches()
