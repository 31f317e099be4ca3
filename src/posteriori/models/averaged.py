"""Predictions with the coefficients integrated out (4.145), from a posterior that a fit found."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from posteriori.decision.rule import most_probable
from posteriori.models.anywhere import anywhere
from posteriori.models.discriminative import DiscriminativeClassifier
from posteriori.models.predictive import (
    PredictiveName,
    interval_kernel,
    log_kernel,
    read_predictive,
)
from posteriori.posterior.shown_posterior import Posterior
from posteriori.rows.block import Block
from posteriori.rows.target import read_offset
from posteriori.rows.threads import one_blas_thread
from posteriori.typing import Array, Labels


class AveragedClassifier(DiscriminativeClassifier):
    """A classifier whose probabilities are averages over a posterior of the coefficients."""

    predictive: PredictiveName
    posterior_: Posterior

    def _log_predictive(self, X: Any, offset: Any) -> Array:
        """ln p(C_k|x) (n, K), with the coefficients integrated out."""
        K = len(self._known_classes())
        method = read_predictive(self.predictive, K)
        kernel = log_kernel(self.posterior_, method, self._link())
        return self._filled(X, offset, kernel, (K,))

    def _predicted(self, block: Block) -> Array:
        method = read_predictive(self.predictive, len(self.classes_))
        return np.exp(log_kernel(self.posterior_, method, self._link())(block))

    def _filled(
        self, X: Any, offset: Any, kernel: Callable[[Block], Array], shape: tuple[int, ...]
    ) -> Array:
        rows = self._new_rows(X)
        if offset is not None:
            width = self.posterior_.shown.coordinates.n_activations
            rows = replace(rows, offset=read_offset(offset, rows.n_rows, width))
        with one_blas_thread():
            return rows.fill(np.empty((rows.n_rows, *shape)), kernel)

    @anywhere
    def predict_log_proba(self, X: Any, offset: Any = None) -> Array:
        """ln p(C_k|x) of the predictive distribution (n, K)."""
        return self._log_predictive(X, offset)

    @anywhere
    def predict_proba(self, X: Any, offset: Any = None) -> Array:
        """p(C_k|x) of the predictive distribution (4.145), (n, K); rows sum to one."""
        return np.exp(self._log_predictive(X, offset))

    @anywhere
    def decision_function(self, X: Any, offset: Any = None) -> Array:
        """Log odds of the second class (n,); for more than two classes ln p(C_k|x) (n, K)."""
        found = self._log_predictive(X, offset)
        return found if found.shape[1] > 2 else found[:, 1] - found[:, 0]

    @anywhere
    def predict(self, X: Any, offset: Any = None) -> Labels:
        """The most probable class of each row.

        For two classes and a Gaussian posterior that is also the class of the mean coefficients
        (4.155): being unsure moves probabilities towards a half, but none across.
        """
        codes = most_probable(self._log_predictive(X, offset))
        return self.classes_[codes.astype(np.intp)]

    @anywhere
    def predict_interval(self, X: Any, level: float = 0.95, offset: Any = None) -> Array:
        """In which the probability of each row lies with probability `level`.

        Ends (n, 2) for the second of two classes; for more (n, K, 2). They are quantiles of the
        posterior of the probability itself.
        """
        K = len(self._known_classes())
        kernel = interval_kernel(self.posterior_, level, self._link())
        return self._filled(X, offset, kernel, (2,) if K == 2 else (K, 2))
