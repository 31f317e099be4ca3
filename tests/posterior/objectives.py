"""Objectives of soft labels, built without an estimator."""

from dataclasses import replace

import numpy as np

from posteriori.design.columns import Columns
from posteriori.design.standardise import Standard
from posteriori.likelihood.binary_losses import LogisticLoss
from posteriori.likelihood.softmax import SoftmaxLoss
from posteriori.posterior.log_posterior import Coordinates, LogPosterior
from posteriori.posterior.priors import Penalty, read_prior
from posteriori.rows.in_memory import read_rows


def second(block):
    return block.y[:, 1]


def whole(block):
    return block.y


def log_posterior(X, T, prior, weight=None, offset=None, standard=None, basis=None):
    """That of soft labels T (n, K), with columns as they are unless `standard` says otherwise."""
    d, K = X.shape[1], T.shape[1]
    standard = standard or Standard(np.zeros(d), np.ones(d), False)
    rows = replace(read_rows(X, T, weight, list(range(K))), offset=offset)
    return LogPosterior(
        rows,
        Columns(rows.schema),
        standard,
        LogisticLoss() if K == 2 else SoftmaxLoss(),
        second if K == 2 else whole,
        prior if isinstance(prior, Penalty) else read_prior(prior, standard),
        Coordinates(1 if K == 2 else K, d + standard.intercept, basis),
        1e-10,
    )


def differences(function, w, step=1e-5):
    """Central differences of a function of a vector, one row a parameter."""
    steps = step * np.eye(len(w))
    return np.array([(function(w + s) - function(w - s)) / (2 * step) for s in steps])
