"""What a fitted model tells of itself: its parameters, the fit in a line, and rows with answers.

Models fitted by likelihood have more to tell, and their own `tidy`, `glance` and `summary`.
"""

from abc import abstractmethod
from typing import Any, cast

import narwhals.stable.v1 as nw
import numpy as np
from sklearn.utils.validation import check_is_fitted

from posteriori.design.columns import Columns
from posteriori.errors import ColumnNameError, LabelError
from posteriori.posterior.shown import INTERCEPT
from posteriori.posterior.summary import Listing, Summary, number_text
from posteriori.rows.features import as_frame
from posteriori.rows.frames import as_pickable, make_frame
from posteriori.rows.target import as_vector, read_target
from posteriori.typing import Array, Codes, Labels

_FACTS = ("log_likelihood", "aic", "bic")


class Telling:
    """A mixin for fitted models.

    A subclass gives `_parameter_columns`: a table of its parameters, of which the first column is
    `term`, a further one perhaps `class`.
    """

    _frame_backend: str | None = None
    _estimates = ""

    @abstractmethod
    def _parameter_columns(self) -> dict[str, list[Any]]:
        """The parameters, column by column."""

    def tidy(self) -> Any:
        """The parameters as a frame of the kind that the model was fitted to.

        >>> from posteriori import LeastSquaresClassifier
        >>> LeastSquaresClassifier().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).tidy().round(3)
                term  estimate
        0  intercept      -1.2
        1         x0       0.8
        """
        check_is_fitted(self)
        return make_frame(self._parameter_columns(), self._frame_backend)

    def glance(self) -> Any:
        """The fit as a frame with one row."""
        check_is_fitted(self)
        columns = {name: [value] for name, value in self._facts().items()}
        return make_frame(columns, self._frame_backend)

    def summary(self) -> Summary:
        """The fit on one page, to print or to look at in a notebook; `.latex()` for a document."""
        check_is_fitted(self)
        facts = [(_in_words(name), _told(value)) for name, value in self._facts().items()]
        facts += passes_text(self)
        half = (len(facts) + 1) // 2
        title = f"{type(self).__name__}, fitted"
        notes = tuple(f"{caveat[0].upper()}{caveat[1:]}." for caveat in self._caveats())
        told = (f"Estimates are {self._estimates}.",) if self._estimates else ()
        listing = Listing(self._parameter_columns())
        return Summary(title, (facts[:half], facts[half:]), listing, notes=(*told, *notes))

    def _facts(self) -> dict[str, Any]:
        """What one line says of the fit; only what is known."""
        found: dict[str, Any] = {}
        if (n_obs := self._n_obs()) is not None:
            found["n_obs"] = int(n_obs) if n_obs == int(n_obs) else n_obs
        found["n_columns"] = getattr(self, "n_features_in_", None)
        if hasattr(self, "classes_"):
            found["n_classes"] = len(self.classes_)
        found["n_parameters"] = getattr(self, "n_parameters_", None)
        found |= self._criteria(n_obs)
        for name in ("converged", "n_iter"):
            found[name] = getattr(self, f"{name}_", None)
        return {name: value for name, value in found.items() if value is not None}

    def _n_obs(self) -> float | None:
        """The weight of the rows, where it is known."""
        return None

    def _criteria(self, n_obs: float | None) -> dict[str, Any]:
        value, k = getattr(self, "log_likelihood_", None), getattr(self, "n_parameters_", None)
        if value is None or k is None:
            return {}
        bic = None if n_obs is None else float(k * np.log(n_obs) - 2 * value)
        return dict(zip(_FACTS, (value, 2.0 * (k - value), bic), strict=True))

    def augment(self, X: Any, y: Any = None) -> Any:
        """The rows of X with what the model says of them, as a frame of the kind that X is.

        Added are `predicted` and, if the model has probabilities, `p_` and the label of each
        class. With labels y there is also `log_loss`, -ln p of the label. A model of a number has
        `fitted` and, with y, `residual`.

        >>> import pandas as pd
        >>> from posteriori import LogisticRegression
        >>> X, y = pd.DataFrame({"dose": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]}), [0, 0, 1, 0, 1, 1]
        >>> LogisticRegression().fit(X, y).augment(X, y).round(2).tail(2)
           dose  predicted   p_0   p_1  log_loss
        4   4.0          1  0.14  0.86      0.15
        5   5.0          1  0.05  0.95      0.05
        """
        check_is_fitted(self)
        added = self._added(X, y)
        frame = as_frame(X)
        if frame is None:
            rows = as_pickable(X)
            table = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)
            own = {f"x{j}": column.tolist() for j, column in enumerate(table.T)}
            return make_frame(own | added, self._frame_backend)
        clash = [name for name in added if name in frame.columns]
        if clash:
            raise ColumnNameError(
                f"X has a column '{clash[0]}' already, which is what the answer would be called.",
                "Rename that column, and fit again.",
            )
        native = nw.get_native_namespace(frame)
        columns = [nw.new_series(name, found, backend=native) for name, found in added.items()]
        return frame.with_columns(*columns).to_native()

    def _added(self, X: Any, y: Any) -> dict[str, list[Any]]:
        if not hasattr(self, "classes_"):
            mean = np.asarray(self.predict(X))  # type: ignore[attr-defined]
            added = {"fitted": mean.tolist()}
            if y is not None:
                added["residual"] = (as_vector(y).astype(np.float64) - mean).tolist()
            return added
        labels: Labels = self.classes_
        added = {"predicted": np.asarray(self.predict(X)).tolist()}  # type: ignore[attr-defined]
        if hasattr(self, "predict_proba"):
            logs = log_probabilities(self, X)
            columns = np.exp(logs).T.tolist()
            named = zip(labels.tolist(), columns, strict=True)
            added |= {f"p_{label}": column for label, column in named}
            if y is not None:
                added["log_loss"] = _log_loss(logs, y, labels).tolist()
        return added

    def _caveats(self) -> tuple[str, ...]:
        """What to bear in mind of the fit, in a few words each."""
        return () if getattr(self, "converged_", True) else ("it did not converge",)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        plain = super().__repr__(N_CHAR_MAX)  # type: ignore[call-arg]
        classes = getattr(self, "classes_", None)
        width = getattr(self, "n_features_in_", None)
        if width is None:
            return plain
        told = [f"{width} column{'s' * (width != 1)}"]
        told += [] if classes is None else [f"{len(classes)} classes"]
        steps = getattr(self, "n_iter_", None)
        if getattr(self, "converged_", False) and steps is not None:
            told.append(f"converged in {steps} step{'s' * (steps != 1)}")
        return f"<{plain}, fitted: {', '.join([*told, *self._caveats()])}>"


def passes_text(fitted: Any) -> tuple[tuple[str, str], ...]:
    """How often a source was read for the fit, and how much of it; nothing for rows in memory."""
    log = getattr(fitted, "passes_", None)
    return () if log is None else (("Passes", str(log)),)


def log_probabilities(fitted: Any, X: Any) -> Array:
    """From the classifier's own logarithms where it has them, which reach below 1e-308."""
    with np.errstate(divide="ignore"):
        if hasattr(fitted, "predict_log_proba"):
            return np.asarray(fitted.predict_log_proba(X))
        return np.log(fitted.predict_proba(X))


def _log_loss(logs: Array, y: Any, classes: Labels) -> Array:
    _, codes = read_target(y, len(logs), known=classes)
    if codes.ndim == 2:
        raise LabelError("augment needs a label a row, and y is soft.", "Pass one label a row.")
    return -np.take_along_axis(logs, cast(Codes, codes)[:, None], axis=1)[:, 0]


def linear_columns(model: Any) -> dict[str, list[Any]]:
    """`coef_` and `intercept_` of a linear model: term, class (for more than two), estimate."""
    terms, slopes = _terms(model), np.atleast_2d(model.coef_)
    W = np.column_stack([np.broadcast_to(model.intercept_, len(slopes)), slopes])
    columns = {"term": [INTERCEPT, *terms] * len(W), "estimate": W.ravel().tolist()}
    if len(slopes) == 1:
        return columns
    labels = np.repeat(model.classes_, W.shape[1]).tolist()
    return {"term": columns["term"], "class": labels, "estimate": columns["estimate"]}


def _terms(model: Any) -> tuple[str, ...]:
    """The columns that the coefficients of a fitted model belong to, its own or any other."""
    if hasattr(model, "schema_"):
        return Columns(model.schema_).names
    names = getattr(model, "feature_names_in_", range(model.n_features_in_))
    return tuple(name if isinstance(name, str) else f"x{name}" for name in names)


def _in_words(name: str) -> str:
    """What a fact is called on a page.

    >>> _in_words("n_obs"), _in_words("log_likelihood"), _in_words("n_iter"), _in_words("bic")
    ('Rows', 'Log-likelihood', 'Steps', 'BIC')
    """
    words = {
        "n_obs": "Rows",
        "log_likelihood": "Log-likelihood",
        "n_iter": "Steps",
        "aic": "AIC",
        "bic": "BIC",
    }
    return words.get(name, name.removeprefix("n_").replace("_", " ").capitalize())


def _told(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return number_text(float(value))
