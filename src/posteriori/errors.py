"""Every error and warning, each with a code and a remedy.

All errors derive from `PosterioriError`, all warnings from `PosterioriWarning`.
`str(error)` is what is wrong, then what to do, then the code in brackets.

>>> error = ScaleError("Column 'mass' spans too much.", "Divide it by 1e150.")
>>> print(error)
Column 'mass' spans too much. Divide it by 1e150. [P201]
>>> error.code, error.remedy
('P201', 'Divide it by 1e150.')
"""

import sys
import warnings
from types import FrameType
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning as SklearnConvergenceWarning


def printable(text: str) -> str:
    """Text with control characters, which a terminal would obey, written out; lines may end.

    >>> printable("a column named \\x1b[31mred")
    'a column named \\\\x1b[31mred'
    """
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


class _Coded(BaseException):
    """What is wrong (`problem`), what to do about it (`remedy`), and a `code` to look up.

    `{row}` in the text is replaced by the number of the row, where there is one.
    """

    code: ClassVar[str] = "P000"

    def __init__(self, problem: str, remedy: str, row: int | None = None) -> None:
        super().__init__(problem, remedy, row)
        self._text, self.remedy, self.row = problem, remedy, row

    @property
    def problem(self) -> str:
        """What is wrong."""
        return self._text if self.row is None else self._text.replace("{row}", str(self.row))

    def located(self, where: str, start: int = 0) -> Self:
        """The same error in rows of a file or chunk, the first of which is row `start` of all."""
        row = None if self.row is None else self.row + start
        return type(self)(f"{where}: {self._text}" if where else self._text, self.remedy, row)

    def __str__(self) -> str:
        return printable(f"{self.problem} {self.remedy} [{self.code}]")

    def __reduce__(self) -> Any:
        return type(self), (self._text, self.remedy, self.row)


class PosterioriError(_Coded, Exception):
    """The root of all errors raised by this library."""


class DataError(PosterioriError, ValueError):
    """The data cannot be used as they are."""

    code = "P100"


class ShapeError(DataError):
    """An array has the wrong number of dimensions, rows or columns."""

    code = "P101"


class MissingValueError(DataError):
    """Missing entries, in a model that needs every entry."""

    code = "P102"


class InfiniteValueError(DataError):
    """An infinite entry."""

    code = "P103"


class ColumnTypeError(DataError, TypeError):
    """A column of a type that cannot be used: complex numbers, dates, mixtures."""

    code = "P104"


class ColumnNameError(DataError):
    """Columns that differ from those of the fit, or column names that cannot be used."""

    code = "P105"


class LabelError(DataError):
    """Class labels that cannot be used."""

    code = "P106"


class WeightError(DataError):
    """Sample weights that are negative, not finite, all zero, or too large or small to sum."""

    code = "P107"


class DomainError(DataError):
    """A value outside the domain of the distribution chosen for its column."""

    code = "P108"


class LevelError(DataError):
    """A level of a categorical column that was not in the fit."""

    code = "P109"


class SourceError(DataError):
    """A file that cannot be read, or has changed."""

    code = "P110"


class ProbabilityError(DataError):
    """Numbers that are not probabilities: negative, or not summing to one."""

    code = "P111"


class IdentifierColumnError(DataError):
    """A text column with a value of its own in nearly every row."""

    code = "P112"


class ScaleError(PosterioriError, ValueError):
    """Numbers too large or too small for double precision."""

    code = "P201"


class SingularCovarianceError(PosterioriError, np.linalg.LinAlgError):
    """A covariance matrix without an inverse."""

    code = "P202"


class StatisticsError(PosterioriError, ValueError):
    """Statistics that cannot be added, or are not available."""

    code = "P203"


class ParameterError(PosterioriError, ValueError):
    """A constructor or method argument that cannot be honoured."""

    code = "P301"


class ParameterNameError(ParameterError, TypeError):
    """A parameter of another library, with what to use in its place."""

    code = "P305"


class NotLinearError(PosterioriError, AttributeError):
    """A linear discriminant is not defined: the boundary of the model is not linear."""

    code = "P302"


class InferenceError(PosterioriError, AttributeError):
    """Standard errors, or results based on them, are not available for this fit."""

    code = "P204"


class Interrupted(_Coded, KeyboardInterrupt):
    """The user has interrupted a fit."""

    code = "P401"


class PosterioriWarning(_Coded, UserWarning):
    """The root of all warnings given by this library."""


class RankDeficiencyWarning(PosterioriWarning):
    """Columns that depend linearly on others; the minimum-norm solution is returned."""

    code = "W201"


class SingularCovarianceWarning(PosterioriWarning):
    """A covariance matrix without an inverse was regularised."""

    code = "W203"


class ConvergenceWarning(PosterioriWarning, SklearnConvergenceWarning):  # type: ignore[misc]
    """An iteration stopped before it converged; a subclass of scikit-learn's warning."""

    code = "W202"


class SeparationWarning(PosterioriWarning):
    """The classes can be separated, so the likelihood has no maximum."""

    code = "W204"


class BoundaryWarning(PosterioriWarning):
    """The likelihood is largest at the boundary of a parameter's range."""

    code = "W205"


class IdentifiabilityWarning(PosterioriWarning):
    """A parameter that the data do not identify."""

    code = "W206"


class ApproximationWarning(PosterioriWarning):
    """A Gaussian approximation that is far from the exact posterior."""

    code = "W209"


class DecisionWarning(PosterioriWarning):
    """Losses under which an action, or rejecting, is never optimal."""

    code = "W207"


class CalibrationWarning(PosterioriWarning):
    """Probabilities that discriminate no better than chance, or in the wrong direction."""

    code = "W208"


class ImpossibleClassWarning(PosterioriWarning):
    """A class occurred whose predicted probability was zero."""

    code = "W103"


class ColumnNameWarning(PosterioriWarning):
    """Column names were not checked, because the fit or the prediction had none."""

    code = "W101"


def warn(warning: Warning) -> None:
    """Give a warning that points at the first line outside this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame):
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)


def _is_ours(frame: FrameType) -> bool:
    # Code that is run by exec need not have a name.
    return str(frame.f_globals.get("__name__")).startswith("posteriori.")
