"""`check()`, on every fitted model: what looks wrong with it, and what to do."""

from typing import Any

from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from posteriori.errors import ParameterError
from posteriori.models.fit_checks import collinearity, convergence, influence, separation, trust
from posteriori.models.row_checks import calibration, residuals
from posteriori.models.seen import Seen, rows_given, rows_of_fit
from posteriori.posterior.checks import Checks
from posteriori.rows.threads import one_blas_thread


class Checking:
    """A mixin for models that say what looks wrong with them."""

    def check(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> Checks:
        """What looks wrong with the fit, in words: a verdict on each of seven subjects.

        convergence, separation (coefficients that run to infinity), collinearity (condition indices
        √(λ_max/λ_j) of the columns about their means), influence (Cook's distances δᵀHδ/(ps) of
        rows), residuals (averaged over rows of like predictions), calibration (Spiegelhalter's
        test), and trust (how near the posterior found is to the exact one). A verdict is "good",
        "look", "bad" or "not checked"; its sentence says what was found, where, and what to do.

        Without arguments the rows of the fit are looked at, where the model keeps them. Rows that
        it has not seen say more of residuals and calibration: pass X and y, or the rows of `scan`;
        their offsets count as zero. Where a prior holds coefficients, or there are fewer than ten
        rows for each of them, those of the fit would mislead, and only others are judged by.
        Influence is always that of the rows of the fit. Of a
        source of more than a million rows, residuals and calibration go by a sample.

        >>> from posteriori import LogisticRegression
        >>> X = [[0, 0], [1, 1], [2, 2], [3, 3], [4, 4], [5, 5.1], [6, 6], [7, 7.1]]
        >>> checks = LogisticRegression().fit(X, [0, 0, 1, 0, 1, 0, 1, 1]).check()
        >>> checks["collinearity"].word, checks["collinearity"].values["dependencies"][0].columns
        ('bad', ('x0', 'x1'))
        >>> checks["convergence"].sentence
        'The iteration converged.'
        """
        _check_fitted(self)
        if X is None and not (y is None and sample_weight is None):
            raise ParameterError("y or weights were given without X.", "Pass X too.")
        with one_blas_thread():
            seen = rows_of_fit(self) if X is None else rows_given(self, X, y, sample_weight)
            return _checks(self, seen)


def _check_fitted(model: Any) -> None:
    check_is_fitted(model)
    if is_classifier(model) and not hasattr(model, "classes_"):
        raise NotFittedError(
            f"This {type(model).__name__} instance is not fitted yet. Call fit first."
        )


def _checks(model: Any, seen: Seen) -> Checks:
    return Checks(
        type(model).__name__,
        (
            convergence(model),
            separation(model),
            collinearity(model, seen),
            influence(model),
            residuals(model, seen),
            calibration(model, seen),
            trust(model),
        ),
    )
