"""nutpie, the fastest of the general samplers tried: NUTS in Rust, with both its mass matrices.

The density is written for it in NumPy, each gradient two products and one exponential: in trials
that took half the time of a loop compiled by numba, which gave more draws than a PyMC model.
"""

from functools import partial
from typing import Any, Self

import numpy as np

from benchmarks.contender import Contender, imported
from benchmarks.draws import CHAINS, DRAWS, INTERCEPT_PRECISION, SLOPE_PRECISION
from benchmarks.timing import THREADS


class Nutpie:
    """Draws of logistic regression, in the manner of an estimator."""

    def __init__(self, low_rank: bool) -> None:
        self.low_rank = low_rank
        self.sample = imported("nutpie.sample")
        self.from_pyfunc = imported("nutpie.compiled_pyfunc.from_pyfunc")

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        mean, scale = X.mean(axis=0), X.std(axis=0)
        signed = (2.0 * y - 1.0)[:, None] * np.column_stack([np.ones(len(X)), (X - mean) / scale])
        trace = self.sample(
            self._model(signed),
            draws=DRAWS // CHAINS,
            chains=CHAINS,
            cores=THREADS,
            low_rank_modified_mass_matrix=self.low_rank,
            seed=0,
            progress_bar=False,
        )
        w = np.asarray(trace.posterior["w"])
        slopes = w[..., 1:] / scale
        self.draws_ = np.concatenate([w[..., :1] - (slopes @ mean)[..., None], slopes], axis=2)
        return self

    def _model(self, signed: np.ndarray) -> Any:
        p = signed.shape[1]
        return self.from_pyfunc(
            p,
            lambda: partial(_log_density, signed),
            lambda *_: _named,
            [np.dtype(np.float64)],
            [(p,)],
            ["w"],
        )


def _log_density(signed: np.ndarray, w: np.ndarray, **_: Any) -> tuple[float, np.ndarray]:
    """ln p(w|t) up to a constant, and its gradient; where it is not finite, the sampler turns back.

    Rows are multiplied by the sign of their class.
    """
    precision = np.full(len(w), SLOPE_PRECISION)
    precision[0] = INTERCEPT_PRECISION
    with np.errstate(over="ignore", invalid="ignore"):
        odds = np.exp(-(signed @ w))
        evens = 1.0 + odds
        value = -np.log(evens).sum() - 0.5 * (precision @ w**2)
        return float(value), (odds / evens) @ signed - precision * w


def _named(w: np.ndarray, **_: Any) -> dict[str, np.ndarray]:
    return {"w": w}


RIVAL = Contender(
    "nutpie",
    {"diagonal": partial(Nutpie, low_rank=False), "low rank": partial(Nutpie, low_rank=True)},
)
