"""Effects as the columns of a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from posteriori.models.surveys import Survey
from posteriori.rows.frames import make_frame
from posteriori.typing import Array


@dataclass(frozen=True, eq=False)
class Line:
    """What was found under some labels: (K, 4), or (n, K, 4) with one answer a row."""

    labels: dict[str, Any]
    found: Array
    by_row: bool = False

    @property
    def n_entries(self) -> int:
        """Lines of the table."""
        return self.found[..., 0].size


def effect_table(lines: Sequence[Line], about: Survey, tested: bool = True) -> Any:
    """A frame with the labels, the rows, the classes and the numbers; `tested` against zero."""
    columns: dict[str, list[Any]] = {
        name: [value for line in lines for value in [line.labels[name]] * line.n_entries]
        for name in lines[0].labels
    }
    K = lines[0].found.shape[-2]
    if lines[0].by_row:
        columns["row"] = [
            int(i) for line in lines for i in np.repeat(np.arange(len(line.found)), K)
        ]
    if about.classes is not None:
        labels = about.classes[-K:].tolist()
        columns["class"] = [k for line in lines for k in labels * (line.n_entries // K)]
    numbers = np.concatenate([line.found.reshape(-1, 4) for line in lines])
    return make_frame(columns | _numbers(numbers, about, tested), about.backend)


def _numbers(found: Array, about: Survey, tested: bool) -> dict[str, list[float]]:
    estimate, error, low, high = found.T
    out = {"estimate": estimate.tolist()}
    if not about.population.has_errors:
        return out
    out["std_error"] = error.tolist()
    if tested:
        with np.errstate(divide="ignore", invalid="ignore"):
            statistic = np.where(np.isinf(error) | (estimate == 0), 0.0, estimate / error)
        out["statistic"] = statistic.tolist()
        out["p_value"] = about.p_values(statistic).tolist()
    return out | {"conf_low": low.tolist(), "conf_high": high.tolist()}
