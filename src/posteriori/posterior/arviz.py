"""Draws in the form that arviz takes, for its plots and diagnostics."""

from importlib import import_module
from typing import Any

import numpy as np

from posteriori.errors import ParameterError
from posteriori.posterior.shown_posterior import Posterior
from posteriori.typing import Labels


def to_arviz(posterior: Posterior, classes: Labels) -> Any:
    """The draws as variables `intercept` and `coef`, with columns and classes as coordinates."""
    draws, shown = posterior.draws, posterior.shown
    try:
        arviz = import_module("arviz")
    except ImportError as error:
        raise ParameterError(
            "to_arviz needs the package arviz, which is not installed.", "Run: pip install arviz"
        ) from error
    first, K = int(shown.standard.intercept), shown.coordinates.n_activations
    each = draws.reshape(*draws.shape[:2], K, -1)
    classed = ["class"] if K > 1 else []
    values = {"coef": each[..., first:]}
    dims = {"coef": [*classed, "column"]}
    if first:
        values["intercept"], dims["intercept"] = each[..., 0], classed
    if K == 1:
        values = {name: one[:, :, 0] for name, one in values.items()}
    coords = {"column": np.array(shown.columns.names), "class": np.array(classes)}
    if not classed:
        del coords["class"]
    if int(arviz.__version__.split(".")[0]) >= 1:
        return arviz.from_dict({"posterior": values}, coords=coords, dims=dims)
    return arviz.from_dict(posterior=values, coords=coords, dims=dims)
