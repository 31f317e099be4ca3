"""Every loss of one activation, with what it must be at any number of digits.

A new loss is tested by one more line in `LOSSES`: the loss, -ln p(t|a) written down from its
definition with mpmath, and samples of activations and targets.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import mpmath as mp
import numpy as np
from scipy import stats

from posteriori.likelihood.binary_losses import (
    BinaryLoss,
    LogisticLoss,
    NoisyLogisticLoss,
    SignedLogisticLoss,
)
from posteriori.likelihood.cdf_links import Mixture, cdf_link
from posteriori.likelihood.glm_families import glm_loss
from posteriori.likelihood.loss import Loss

NEAR = (-4.5, -1.3, -0.2, 0.4, 1.7, 5.1)
FAR = (-38.0, -6.5, 6.5, 38.0)
LABELS = (0.0, 1.0, 0.3)

Function = Callable[..., Any]


@dataclass(frozen=True)
class Entry:
    """A loss; `exact(a, t)` = -ln p(t|a); what its targets are; where to look at it.

    `logs` has ln p(t=1|a) and ln p(t=0|a) if targets are labels; `rtol` and `atol` say how good the
    derivatives are; `slopes` replaces `rtol` where the slope of a density comes in.
    """

    loss: Loss
    exact: Function
    kind: str
    near: tuple[float, ...]
    far: tuple[float, ...]
    targets: tuple[float, ...]
    domain: tuple[float, float] = (-np.inf, np.inf)
    logs: tuple[Function, Function] | None = None
    rtol: float = 1e-12
    atol: float = 1e-70
    slopes: float = 1e-12

    def rows(self, far: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Each activation with each target."""
        a, t = np.meshgrid(self.near + (self.far if far else ()), self.targets)
        return a.ravel(), t.ravel()


def labels(loss: Loss, second: Function, first: Function, **options: Any) -> Entry:
    """Targets from zero to one: ln p of the label second, and of the label first."""

    def exact(a: Any, t: Any) -> Any:
        return -(t * second(a) if t else 0) - ((1 - t) * first(a) if t != 1 else 0)

    chosen = {"near": NEAR, "far": FAR, "targets": LABELS, "kind": "label", **options}
    return Entry(loss, exact, logs=(second, first), **chosen)


def symmetric(loss: Loss, second: Function, **options: Any) -> Entry:
    return labels(loss, second, lambda a: second(-a), **options)


def numbers(family: str, link: str, exact: Function, **options: Any) -> Entry:
    return Entry(glm_loss(family, link), exact, kind=family, **options)


def threshold(noise: Any) -> Loss:
    return BinaryLoss(cdf_link(noise))


def log_sigmoid(a: Any) -> Any:
    return -mp.log1p(mp.exp(-a))


def log_normal_cdf(a: Any) -> Any:
    return mp.log(mp.ncdf(a)) if a < 0 else mp.log1p(-mp.ncdf(-a))


def log_cauchy_cdf(a: Any) -> Any:
    return mp.log(mp.acot(-a) / mp.pi) if a < 0 else mp.log1p(-mp.acot(a) / mp.pi)


def log_student_cdf(v: float, a: Any) -> Any:
    tail = mp.betainc(mp.mpf(v) / 2, 0.5, 0, v / (v + a * a), regularized=True) / 2
    return mp.log(tail) if a < 0 else mp.log1p(-tail)


def log_cloglog(a: Any) -> Any:
    u = mp.exp(a)
    if u > 1e9:
        return mp.mpf(0)
    return mp.log1p(-mp.exp(-u)) if u > 1 else mp.log(-mp.expm1(-u))


def log_mixed(a: Any) -> Any:
    """Figure 4.13: 0.4 N(-1, 0.5²) + 0.6 N(1.5, 1)."""
    if a > 0:
        return mp.log1p(-mp.mpf("0.4") * mp.ncdf(-2 * (a + 1)) - mp.mpf("0.6") * mp.ncdf(1.5 - a))
    return mp.log(mp.mpf("0.4") * mp.ncdf(2 * (a + 1)) + mp.mpf("0.6") * mp.ncdf(a - 1.5))


def log_mixed_rest(a: Any) -> Any:
    """The same of the mixture turned round."""
    if a < 0:
        return mp.log1p(-mp.exp(log_mixed(a)))
    return mp.log(mp.mpf("0.4") * mp.ncdf(-2 * (a + 1)) + mp.mpf("0.6") * mp.ncdf(1.5 - a))


def noisy(keep: float, flip: float, a: Any) -> Any:
    """ln(keep σ(a) + flip σ(-a)), nothing being kept of the two that is not a double."""
    return mp.log((keep * mp.exp(a) + flip) / (1 + mp.exp(a)))


MIXED = Mixture([0.4, 0.6], [stats.norm(-1.0, 0.5), stats.norm(1.5, 1.0)])
POSITIVE = {"near": (0.31, 0.9, 1.7, 6.1), "domain": (0.0, np.inf)}
COUNTS = {"targets": (0.0, 1.0, 7.0, 2.5)}
REALS = {"targets": (-2.0, 0.7, 5.0)}
SMOOTH = {"slopes": 1e-8, "atol": 1e-12}

LOSSES: dict[str, Entry] = {
    "logistic": symmetric(LogisticLoss(), log_sigmoid, atol=2e-16),
    "signed logistic": Entry(
        SignedLogisticLoss(), lambda a, t: -log_sigmoid(a * t), "sign", NEAR, FAR, (-1.0, 1.0)
    ),
    "probit": symmetric(glm_loss("bernoulli", "probit"), log_normal_cdf),
    "cloglog": labels(
        glm_loss("bernoulli", "cloglog"), log_cloglog, lambda a: -mp.exp(a), atol=2e-16
    ),
    "bernoulli, log": labels(
        glm_loss("bernoulli", "log"),
        lambda a: a,
        lambda a: mp.log(-mp.expm1(a)),
        near=(-4.0, -0.7, -0.1),
        far=(-1e4, -700.0, -1e-9),
        domain=(-np.inf, 0.0),
    ),
    "bernoulli, identity": labels(
        glm_loss("bernoulli", "identity"),
        mp.log,
        lambda a: mp.log1p(-a),
        near=(0.1, 0.45, 0.8),
        far=(1e-100, 1e-9, 0.999),
        domain=(0.0, 1.0),
    ),
    "threshold, Cauchy": symmetric(threshold(stats.cauchy()), log_cauchy_cdf, **SMOOTH),
    "threshold, Student": symmetric(
        threshold(stats.t(2.5)), partial(log_student_cdf, 2.5), **SMOOTH
    ),
    "threshold, right Gumbel": labels(
        threshold(stats.gumbel_r()),
        lambda a: -mp.exp(-a),
        lambda a: log_cloglog(-a),
        far=(6.5, 38.0),
        **SMOOTH,
    ),
    "threshold, mixture": labels(threshold(MIXED), log_mixed, log_mixed_rest, **SMOOTH),
    "threshold, uniform": labels(
        threshold(stats.uniform(-3.0, 6.0)),
        lambda a: mp.log((a + 3) / 6),
        lambda a: mp.log((3 - a) / 6),
        near=(-2.7, -0.4, 1.1),
        far=(-2.999, 2.999),
        slopes=1e-9,
    ),
    "label noise": labels(
        NoisyLogisticLoss(0.1, 0.05), partial(noisy, 0.95, 0.1), partial(noisy, 0.05, 0.9)
    ),
    "gaussian, identity": numbers(
        "gaussian", "identity", lambda a, t: (t - a) ** 2 / 2, near=NEAR, far=FAR, **REALS
    ),
    "gaussian, log": numbers(
        "gaussian", "log", lambda a, t: (t - mp.exp(a)) ** 2 / 2, near=NEAR, far=FAR, **REALS
    ),
    "gaussian, reciprocal": numbers(
        "gaussian", "reciprocal", lambda a, t: (t - 1 / a) ** 2 / 2,
        far=(1e-20, 700.0, 1e4), **POSITIVE, **REALS,
    ),
    "poisson, log": numbers(
        "poisson", "log", lambda a, t: mp.exp(a) - t * a, near=NEAR, far=FAR, **COUNTS
    ),
    "poisson, identity": numbers(
        "poisson", "identity", lambda a, t: a - t * mp.log(a),
        far=(1e-100, 700.0, 1e4), **POSITIVE, **COUNTS,
    ),
}  # fmt: skip

for family, times in {"exponential": (0.0, 3.0), "gamma": (0.25, 3.0, 1e-3)}.items():
    options = {"far": (1e-50, 700.0, 1e4), "targets": times, **POSITIVE}
    for link, exact in {
        "reciprocal": lambda a, t: t * a - mp.log(a),
        "log": lambda a, t: a + t * mp.exp(-a),
        "identity": lambda a, t: mp.log(a) + t / a,
    }.items():
        chosen = options if link != "log" else {"near": NEAR, "far": FAR, "targets": times}
        LOSSES[f"{family}, {link}"] = numbers(family, link, exact, **chosen)
