"""Labels that may be wrong (4.117): rates that are given, or estimated with the coefficients.

Conventions: p free parameters w (p,); labels of both classes are flipped with one probability ε;
F(w, ε) = -ln p(t|w, ε) - ln p(w).
"""

from dataclasses import dataclass, fields, replace
from typing import Any, Literal, NamedTuple, NoReturn, TypeAlias, cast

import numpy as np
from scipy.linalg import eigh

from posteriori.arguments import is_number
from posteriori.errors import (
    IdentifiabilityWarning,
    InferenceError,
    ParameterError,
    SeparationWarning,
    warn,
)
from posteriori.likelihood.binary_losses import LogisticLoss, NoisyLogisticLoss
from posteriori.likelihood.loss import ClassLoss
from posteriori.likelihood.softmax import NoisyClassLoss, SoftmaxLoss
from posteriori.models.fitting import Prepared, of_many, second_of_two
from posteriori.models.scoring import Solved, choice, scored
from posteriori.models.separation import SeparationSearch, Solve
from posteriori.posterior.inference import Inference, inverse_of
from posteriori.posterior.log_posterior import BLOCK_ENTRIES, LogPosterior
from posteriori.rows.target import read_target
from posteriori.solve.newton import newton
from posteriori.solve.objective import Curvature, Iteration, Local, Solution, Status
from posteriori.statistics.label_noise import FlipSums, GatherFlips, downweight_outliers
from posteriori.statistics.local_quadratic import Information
from posteriori.typing import Array, Labels

MOST = 0.5 - 1e-6
"""The largest rate; at one half labels carry no information."""

_NEAR_RATE = 1e-7
"""Standard errors from the best rate at which one more step has all digits."""

_LEVEL = 1e-15
"""Bounds as close together as this are one."""


@dataclass(frozen=True, eq=False)
class NoiseProfile(LogPosterior):
    """f(w) = min F(w, ε) over 0 <= ε < ½; a solver's `Objective`.

    p(t|a) is linear in ε, so that F is convex in it and has one minimum. There, by the envelope
    theorem, ∇f = ∂F/∂w, and the Hessian is F_ww - F_wε F_εw / F_εε: its inverse is the covariance
    of w where ε is estimated, too. At the boundary ε = 0 both are those without noise.

    `rate` is where the search for ε starts.
    """

    rate: float = 0.1

    @classmethod
    def of(cls, plain: LogPosterior) -> "NoiseProfile":
        """The same rows, columns and prior, with a rate of wrong labels besides."""
        return cls(**{each.name: getattr(plain, each.name) for each in fields(plain)})

    def __call__(self, w: Array, hessian: Curvature) -> Local:
        rate, found = self._best(w)
        local = LogPosterior.__call__(self.at(rate), w, hessian)
        if found is None or hessian != "full":
            return local
        if self.information == "expected":
            found = self._flips(w, rate, "expected")
        cross = self._contracted(found)
        curved = cast(Array, local.hessian) - np.outer(cross, cross) / found.curvature
        # Below zero by rounding, or where f is not convex: not definite in either case.
        np.fill_diagonal(curved, np.maximum(np.diagonal(curved), 0.0))
        return local._replace(hessian=curved)

    def at(self, rate: float) -> "NoiseProfile":
        """The same, with this rate in its loss and as the start of searches."""
        if rate == 0:
            return replace(self, loss=LogisticLoss())
        return replace(self, loss=NoisyLogisticLoss(rate, rate), rate=rate)

    def best_rate(self, w: Array) -> float:
        """The ε that makes F(w, ε) smallest."""
        return self._best(w)[0]

    def rate_error(self, w: Array, undetermined: Array | None) -> float | None:
        """The standard error of the best ε, by the joint curvature; infinite where that is flat.

        `undetermined` (p, m) are directions of w that the data do not determine. None at the
        boundary ε = 0, where the likelihood is no parabola, and with more parameters than a Hessian
        can have.
        """
        rate, found = self._best(w)
        if found is None or self.is_wide:
            return None
        observed = replace(self.at(rate), information="observed")
        hessian = cast(Array, LogPosterior.__call__(observed, w, "full").hessian)
        cross = self._contracted(found)
        if undetermined is not None:
            hessian = hessian + np.diagonal(hessian).max() * undetermined @ undetermined.T
        joint = np.block([[hessian, cross[:, None]], [cross, np.array([found.curvature])]])
        try:
            return float(np.sqrt(inverse_of(joint)[-1, -1]))
        except InferenceError:
            return np.inf

    def _best(self, w: Array) -> tuple[float, FlipSums | None]:
        """The best ε by Newton steps between bounds, and the sums there; none at an end."""
        low, high, rate = 0.0, MOST, self.rate
        inner: set[float] = set()
        while True:
            found = self._flips(w, rate, "observed")
            low, high = (low, rate) if found.slope > 0 else (rate, high)
            step = -found.slope / found.curvature if found.curvature > 0 else 0.0
            if abs(step) * np.sqrt(found.curvature) <= _NEAR_RATE or high - low <= _LEVEL:
                return float(np.clip(rate + step, low, high)), found
            if low < rate + step < high:
                rate = rate + step
                continue
            end = low if step < 0 else high
            if end in (0.0, MOST) and end not in inner:
                if (self._flips(w, end, "observed").slope < 0) == (end == MOST):
                    return end, None
                inner.add(end)
            rate = (low + high) / 2

    def _flips(self, w: Array, rate: float, information: Information) -> FlipSums:
        kernel = GatherFlips(replace(self.kernel(w), information=information), rate)
        found, times = self.rows.map_sum(kernel, block_entries=BLOCK_ENTRIES), self.factor
        return FlipSums(times * found.slope, times * found.curvature, times * found.cross)

    def _contracted(self, found: FlipSums) -> Array:
        return self.coordinates.contract(self.standard.inward(found.cross))


class NoisyInference(Inference):
    """The inference of coefficients that were estimated together with a rate of wrong labels."""

    def _scores(self, objective: LogPosterior) -> NoReturn:
        raise InferenceError(
            "Robust standard errors cannot be combined with a rate of wrong labels that is "
            "estimated.",
            "Pass the rate that was found as label_noise, or use other standard errors.",
        )


_FLAT = 1e-8
"""Least curvature, beside that at zero, of coefficients that the data determine."""

_INVOLVED = 0.1
"""Share of the largest coefficient in a direction from which a column is counted to it."""


def level_directions(objective: LogPosterior, w: Array) -> Array:
    """Directions (p, k) of the coefficients along which the likelihood is level at w."""
    if objective.penalty.proper or objective.is_wide:
        return np.zeros((len(w), 0))
    clean = SoftmaxLoss() if isinstance(objective.loss, ClassLoss) else LogisticLoss()
    at = objective.at(objective.best_rate(w)) if isinstance(objective, NoiseProfile) else objective
    # Without noise the information is largest at zero.
    largest = _information(replace(objective, loss=clean), 0 * w)
    values, vectors = eigh(_information(at, w), largest)
    return cast(Array, vectors[:, values <= _FLAT])


def _n_level(objective: LogPosterior, w: Array) -> int:
    return level_directions(objective, w).shape[1]


def _information(objective: LogPosterior, w: Array) -> Array:
    return cast(Array, objective.likelihood(w, "full", "expected").hessian)


def _warn_of_separation(objective: LogPosterior, directions: Array) -> None:
    """Name the columns whose coefficients make up directions (p, k)."""
    expand, first = objective.coordinates.expand, int(objective.standard.intercept)
    thetas = np.stack([expand(one / abs(one).max()) for one in directions.T])
    sizes = abs(thetas[:, :, first:]).max(axis=(0, 1))
    involved = np.flatnonzero(sizes >= _INVOLVED * sizes.max())
    columns = objective.columns.as_schema().describe_all(involved)
    warn(
        SeparationWarning(
            "Apart from rows whose label is taken for wrong, the classes can be separated, or "
            f"almost: the coefficients of {columns} diverge, or are too large to be "
            "determined.",
            "Set a prior, such as prior=1.0.",
        )
    )


LabelNoise: TypeAlias = float | tuple[float, float] | Literal["estimate"]
"""One rate for all classes, one for each of two, or "estimate"."""

NoisyLoss: TypeAlias = NoisyLogisticLoss | NoisyClassLoss

_DAMPING = 1.0
"""Precision of the slopes of standardised columns in fits without noise, which give starts."""

_WEAK = 1e-4
"""The same in fits with noise: it keeps coefficients finite where they would diverge."""

_STEEPER = (3.0, 10.0)
"""How many times the coefficients of a fit without noise to start from: noise had shrunk them."""

_ROUGH_STEPS = 50

_MOST_DOUBLINGS = 40

_SMALL = 1e-3
"""The rate to search from where few rows have it at zero."""

_VAGUE = 0.25
"""A standard error of the rate that leaves open most of what lies between zero and one half."""


@dataclass(frozen=True, eq=False)
class Noise:
    """The rates of wrong labels that are given, and the loss with them; None to estimate one."""

    rate: float | tuple[float, float] | None
    loss: NoisyLoss | None

    def start(self, prepared: Prepared) -> Prepared:
        """The objectives of a fit without noise as those with it, and the best start found.

        Diverging estimates come last: where noise explains the rows on the wrong side, some
        hyperplane often fits the rows next to it by chance, as well as or better than the truth.
        """
        levels = [
            NoiseProfile.of(level) if self.loss is None else replace(level, loss=self.loss)
            for level in prepared.levels
        ]
        few = levels[0]
        finite = replace(few, penalty=few.penalty.damped(_WEAK, few.standard.intercept))
        starts = _starts(prepared.levels[0], prepared.start)
        rough = [scored([finite], start, _ROUGH_STEPS) for start in starts]
        best = min(rough, key=lambda found: (_n_level(few, found.parameters) > 0, found.value))
        if isinstance(few, NoiseProfile):
            rate = few.best_rate(best.parameters) or _SMALL
            levels = [replace(cast(NoiseProfile, level), rate=rate) for level in levels]
        return replace(prepared, levels=levels, start=best.parameters)

    def conclude(self, objective: LogPosterior, solution: Solution[Array, Iteration]) -> "NoisyFit":
        """Rates and inference at the optimum of an objective with noise."""
        w, value, undetermined = solution.parameters, solution.value, None
        level = level_directions(objective, w)
        if level.size:
            _warn_of_separation(objective, level)
            undetermined = np.linalg.qr(level)[0]
        objective = replace(objective, information="observed")
        if not isinstance(objective, NoiseProfile):
            inference = Inference(objective, w, value, undetermined=undetermined)
            return NoisyFit(inference, cast(float, self.rate), None, cast(NoisyLoss, self.loss))
        rate = objective.best_rate(w)
        objective = objective.at(rate)
        rate_error = objective.rate_error(w, undetermined)
        _check_rate(rate, rate_error)
        inference = NoisyInference(objective, w, value, others=1, undetermined=undetermined)
        return NoisyFit(inference, rate, rate_error, NoisyLogisticLoss(rate, rate))


class NoisyFit(NamedTuple):
    """What a fit to labels that may be wrong found.

    rate: as given, or as estimated. rate_error: its standard error; None if it was given, or is
    estimated as zero, the end of what is possible, where there is none. loss: with these rates.
    """

    inference: Inference
    rate: float | tuple[float, float]
    rate_error: float | None
    loss: NoisyLoss


def read_label_noise(label_noise: LabelNoise, n_classes: int) -> Noise | None:
    """What the user passed as `label_noise`; None where no label can be wrong.

    A number is the probability that a label is not that of the row's class, but any other one.
    Of a pair, the first is that of rows of the first class, the second that of the second.

    >>> read_label_noise((0.1, 0.2), 2).loss.link.flip_second
    0.2
    >>> read_label_noise(0.3, 3).loss.transition
    array([[0.7 , 0.15, 0.15],
           [0.15, 0.7 , 0.15],
           [0.15, 0.15, 0.7 ]])
    """
    if isinstance(label_noise, str) and label_noise == "estimate":
        if n_classes > 2:
            raise ParameterError(
                f"label_noise='estimate' is for two classes; y has {n_classes}.",
                "Pass the rate as a number, or fit two classes at a time.",
            )
        return Noise(None, None)
    is_pair = isinstance(label_noise, tuple | list) or np.ndim(label_noise) > 0
    rates: list[Any] = list(cast(Any, label_noise)) if is_pair else [label_noise]
    most = 1.0 if is_pair else 1 - 1 / n_classes
    is_right = len(rates) == n_classes == 2 if is_pair else True
    is_right = is_right and all(is_number(rate) and rate >= 0 for rate in rates)
    if not (is_right and sum(rates) < most):
        raise ParameterError(
            f"label_noise={label_noise!r} cannot be the rates of wrong labels in {n_classes} "
            "classes.",
            f"Use a number from zero to less than {1 - 1 / n_classes:.3g}; for two classes also "
            "a pair with a sum of less than 1, or 'estimate'. Labels that are wrong more often "
            "are not informative.",
        )
    if not any(rates):
        return None
    if n_classes > 2:
        return Noise(rates[0], NoisyClassLoss(uniform_transition(rates[0], n_classes)))
    loss = NoisyLogisticLoss(float(rates[0]), float(rates[-1]))
    return Noise((rates[0], rates[1]) if is_pair else float(rates[0]), loss)


def uniform_transition(rate: float, n_classes: int) -> Array:
    """Labels that are wrong with this probability, and then any of the other classes."""
    other = rate / (n_classes - 1)
    return np.full((n_classes, n_classes), other) + (1 - rate - other) * np.eye(n_classes)


def _starts(clean: LogPosterior, start: Array) -> list[Array]:
    """Coefficients to start from, by fits without noise."""
    damped = replace(clean, penalty=clean.penalty.damped(_DAMPING, clean.standard.intercept))
    starts = [newton([damped], start).parameters]
    if not clean.is_wide:
        near = replace(damped, rows=downweight_outliers(clean.rows, clean.columns))
        found = newton([near], start).parameters
        starts += [times * found for times in _STEEPER]
    return starts


def solver_of_noise(max_iter: int | None) -> Solve:
    """The solver for labels that may be wrong, whose coefficients may diverge."""

    def optimum(prepared: Prepared, search: SeparationSearch) -> Solved:
        objective, start = prepared.objective, prepared.start
        solution = scored(prepared.levels, start, max_iter)
        if n_level := _n_level(objective, solution.parameters):
            # It is level at much smaller coefficients: a multiple of the start, if that does.
            multiples = (2.0**k * start for k in range(_MOST_DOUBLINGS))
            found = (w for w in multiples if _n_level(objective, w) >= n_level)
            w = next(found, solution.parameters)
            value = objective(w, "none").value
            solution = Solution(w, Status.DIVERGED, solution.trace, value)
        return Solved(solution, *choice(objective))

    return optimum


def _check_rate(rate: float, rate_error: float | None) -> None:
    if rate == MOST:
        problem = "the likelihood increases up to a rate of one half"
    elif rate_error is not None and rate_error > _VAGUE:
        problem = f"the rate {rate:.3g} has a standard error of {rate_error:.3g}"
    else:
        return
    warn(
        IdentifiabilityWarning(
            f"The data do not determine how many labels are wrong: {problem}.",
            "Pass the rate as label_noise if you know it, or set it to 0.0.",
        )
    )


def noise_fact(rate: float | tuple[float, float], rate_error: float | None) -> tuple[str, str]:
    """The rates of wrong labels for the summary of a fit, and the error of an estimated one."""
    rates = rate if isinstance(rate, tuple) else (rate,)
    error = "" if rate_error is None else f" (s.e. {rate_error:.4g})"
    return "Wrong labels", ", ".join(f"{each:.4g}" for each in rates) + error


def wrong_label_probability(
    loss: NoisyLoss | None, activation: Array, y: Any, classes: Labels
) -> Array:
    """p(the true class is not that of the label | x, label) of each row (n,), by Bayes' rule.

    loss: None where no label can be wrong. activation: (n, 1) for two classes, else (n, K). y:
    labels, or (n, K) soft labels.

    >>> loss = NoisyLogisticLoss(0.1, 0.1)
    >>> classes = np.array(["no", "yes"])
    >>> wrong_label_probability(loss, np.array([[0.0], [4.0]]), ["yes", "no"], classes).round(3)
    array([0.1  , 0.858])
    """
    _, target = read_target(y, len(activation), known=classes)
    if loss is None:
        return np.zeros(len(activation))
    if isinstance(loss, NoisyLogisticLoss):
        return loss.wrong_label_probability(activation[:, 0], second_of_two(target))
    return loss.wrong_label_probability(activation, of_many(len(classes))(target))
