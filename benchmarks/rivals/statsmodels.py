"""statsmodels' Logit and Probit by maximum likelihood, at their default settings."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

import numpy as np

from benchmarks.contender import Contender, imported


@dataclass
class Discrete:
    """A model at a dotted path, in the manner of an estimator. X begins with a column of ones."""

    path: str
    model: Any = field(init=False)

    def __post_init__(self) -> None:
        self.model = imported(self.path)

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        self.result_ = self.model(y, X).fit(disp=0)
        return self

    def summary(self) -> Any:
        return self.result_.summary()

    @property
    def coef_(self) -> np.ndarray:
        return self.result_.params[1:]

    @property
    def intercept_(self) -> float:
        return self.result_.params[0]


LOGIT = Contender(
    "statsmodels", {"Logit": partial(Discrete, "statsmodels.discrete.discrete_model.Logit")}
)
PROBIT = Contender(
    "statsmodels", {"Probit": partial(Discrete, "statsmodels.discrete.discrete_model.Probit")}
)
