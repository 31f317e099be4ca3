"""Gaussian priors on the coefficients, and what they add to the objective.

Conventions: d columns of the design, q parameters an activation: d + 1 with the intercept first,
or d without one; c activations; θ (c, q).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np

from posteriori.arguments import check_choice, is_number
from posteriori.design.columns import Columns
from posteriori.design.standardise import Standard
from posteriori.errors import ParameterError
from posteriori.typing import Array

_NOTHING = 1e-13
"""A precision that is rounding beside the largest."""

_INFINITE = 1e300
"""A precision that leaves nothing of a coefficient, and can still be added to."""

Units: TypeAlias = Literal["original", "standardised"]


@dataclass(frozen=True)
class GaussianPrior:
    """N(mean, precision⁻¹) on the coefficients: -ln p(w) = ½ (w - m)ᵀ precision (w - m) (4.140).

    Parameters
    ----------
    precision : a number, a vector (one a column), a d x d matrix, or a (d+1) x (d+1) matrix
        with the intercept first; or numbers by the names of columns, as in {"age": 1}: columns
        that are not named have no prior.
    mean : a number, a vector (one a column), or numbers by name (zero where not named).
    intercept_precision, intercept_mean : the same for the intercept, which has no prior by default.
    units : "original" or "standardised"
        Whether the numbers are for the columns as they are, or for columns that were centred
        and divided by their standard deviations.
    sd : in place of the precision, standard deviations: a number, a vector, or numbers by name.

    For more than two classes each class's vector has this prior; a mean that all of them share
    then changes nothing.

    With it a fit gives the most probable w, where -ln p(t|w) - ln p(w) is least (4.142).

    >>> from posteriori import LogisticRegression
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> prior = GaussianPrior(precision=4.0, mean=1.0)
    >>> LogisticRegression(prior=prior).fit(X, y).coef_.round(3)
    array([[1.196]])
    """

    precision: Any = 1.0
    mean: Any = 0.0
    intercept_precision: float = 0.0
    intercept_mean: float = 0.0
    units: Units = "original"
    sd: Any = None

    def by_column(self, columns: Columns) -> "GaussianPrior":
        """The same prior with arrays in place of numbers by name, and precisions in place of sd.

        A number for a factor is that of all its levels; one of its design columns f[l] may be
        named as well.
        """
        precision, mean = self.precision, _by_name("mean", self.mean, columns, 0.0)
        if self.sd is not None:
            if not (is_number(precision) and precision == 1.0):
                raise ParameterError("The prior has a precision and an sd.", "Pass one of them.")
            sd = _numbers("sd", _by_name("sd", self.sd, columns, np.inf))
            if not (sd > 0).all():
                raise ParameterError("An sd of the prior is not positive.", "Use numbers above 0.")
            precision = sd**-2.0
        precision = _by_name("precision", precision, columns, 0.0)
        return replace(self, precision=precision, mean=mean, sd=None)


def _by_name(what: str, given: Any, columns: Columns, otherwise: float) -> Any:
    """Numbers by name as a vector (d,); anything else as it is."""
    if not isinstance(given, Mapping):
        return given
    found: Array = np.full(len(columns.names), otherwise)
    for name, value in given.items():
        if name in columns.schema.names:
            found[columns.positions[columns.schema.names.index(name)]] = value
        elif name in columns.names:
            found[columns.names.index(name)] = value
        else:
            raise ParameterError(
                f"The {what} of the prior names {name!r}, which is not a column.",
                f"Use names of {', '.join(columns.names[:8])}"
                f"{', ...' if len(columns.names) > 8 else ''}.",
            )
    return found


PriorLike: TypeAlias = float | GaussianPrior | None

PriorName: TypeAlias = Literal["jeffreys", "evidence", "ard"]
"""Priors that are made of the data: by Jeffreys' rule, or with precisions of greatest evidence."""


@dataclass(frozen=True, eq=False)
class Penalty:
    """½ Σ_k (θ_k - mean)ᵀ precision (θ_k - mean), in the parameters of standardised columns.

    `precision` is a diagonal (q,) or a matrix (q, q), the same for each of c vectors θ_k; or one
    (cq, cq) of all of them together, and `mean` is (q,) or (c, q). `proper` says whether it holds
    every slope: then there is one best θ, if every class has rows.
    """

    mean: Array
    precision: Array
    proper: bool

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        """Its value and gradient (c, q) at θ (c, q)."""
        away = theta - self.mean
        gradient = self.times(away)
        return 0.5 * float((away * gradient).sum()), gradient

    def damped(self, amount: float, intercept: bool) -> "Penalty":
        """The same with this much more precision on every slope."""
        more = np.full(self.mean.shape[-1], amount)
        more[: int(intercept)] = 0.0
        more = np.tile(more, len(self.precision) // len(more))
        return replace(
            self, precision=self.precision + (more if self.precision.ndim == 1 else np.diag(more))
        )

    def times(self, away: Array) -> Array:
        """The precision times vectors (..., c, q)."""
        if self.precision.ndim == 1:
            return away * self.precision
        if away.ndim > 1 and self.is_joint(away.shape[-2]):
            flat = away.reshape(*away.shape[:-2], -1)
            return (flat @ self.precision).reshape(away.shape)
        return away @ self.precision

    def is_joint(self, c: int) -> bool:
        """Whether the precision is that of all c vectors together."""
        return len(self.precision) > self.mean.shape[-1] or (c > 1 and self.mean.ndim == 2)

    def matrix(self, c: int) -> Array:
        """The precision (cq, cq) of c vectors."""
        one = np.diag(self.precision) if self.precision.ndim == 1 else self.precision
        return one if self.is_joint(c) else cast(Array, np.kron(np.eye(c), one))

    def diagonal(self, c: int) -> Array:
        """The diagonal of the precision (cq,) of c vectors."""
        one = self.precision if self.precision.ndim == 1 else np.diagonal(self.precision)
        return one if self.is_joint(c) else np.tile(one, c)

    def means(self, c: int) -> Array:
        """The means (cq,) of c vectors."""
        return np.broadcast_to(self.mean, (c, self.mean.shape[-1])).ravel()


def flat(q: int) -> Penalty:
    """No prior: maximum likelihood."""
    return Penalty(np.zeros(q), np.zeros(q), proper=False)


def read_prior(prior: PriorLike, standard: Standard) -> Penalty:
    """What the user passed as `prior`, for standardised columns.

    `standard` must have the deviations of all rows as its scale if the prior's units are
    "standardised".
    """
    q = len(standard.scale) + int(standard.intercept)
    if prior is None:
        return flat(q)
    if not isinstance(prior, GaussianPrior):
        check_prior(prior)
        prior = GaussianPrior(precision=prior)
    precision, mean = _read_precision(prior, standard), _read_mean(prior, standard)
    if prior.units == "original":
        mean = standard.from_user(mean)
        precision = _in_standard_units(precision, standard)
    return Penalty(mean, precision, _is_proper(precision, standard.intercept))


def hold_intercept(penalty: Penalty, precision: float) -> Penalty:
    """The same with this precision on the intercept of centred columns, if it has none."""
    given = penalty.precision[0] if penalty.precision.ndim == 1 else penalty.precision[0, 0]
    if given > 0 or precision == 0:
        return penalty
    held = penalty.precision.copy()
    held[(0,) * held.ndim] = precision
    return replace(penalty, precision=held)


def check_prior(prior: Any) -> None:
    """An error unless this is a kind of prior, and as a number a precision."""
    if prior is None or isinstance(prior, GaussianPrior):
        return
    if is_number(prior):
        _check_precision("prior", prior)
    elif not (isinstance(prior, str) and prior in get_args(PriorName)):
        raise ParameterError(
            f"prior={prior!r} is not understood.",
            "Use None, a number, a GaussianPrior, 'jeffreys', 'evidence' or 'ard'.",
        )


def _check_precision(name: str, value: Any) -> None:
    if not (is_number(value) and 0 <= value < np.inf):
        raise ParameterError(
            f"{name}={value!r} is not a precision.", "Use a finite number, zero or more."
        )


def _numbers(name: str, given: Any) -> Array:
    """The precision or the mean of a prior as doubles, of whatever shape."""
    try:
        found = np.asarray(given)
    except ValueError:  # rows of different lengths
        found = np.empty(0, dtype=object)
    if found.dtype.kind not in "fiu":
        raise ParameterError(
            f"The {name} of the prior, {given!r}, is not made of real numbers.",
            "Pass a number, or an array of them.",
        )
    return found.astype(np.float64)


def _read_precision(prior: GaussianPrior, standard: Standard) -> Array:
    """Precision as a diagonal (q,) or a matrix (q, q), the intercept first."""
    check_choice("units", prior.units, get_args(Units))
    _check_precision("intercept_precision", prior.intercept_precision)
    given, d = _numbers("precision", prior.precision), len(standard.scale)
    first = [float(prior.intercept_precision)] if standard.intercept else []
    if not np.isfinite(given).all():
        raise ParameterError("The precision of the prior is not finite.", "Pass finite numbers.")
    if given.ndim < 2:
        if given.ndim == 1 and len(given) != d:
            raise _wrong_length("precision", len(given), d)
        if (given < 0).any():
            raise ParameterError("The precision of the prior is negative.", "Use zero or more.")
        return np.concatenate([first, np.broadcast_to(given, (d,))])
    return _read_matrix(given, first, d)


def _read_matrix(given: Array, first: list[float], d: int) -> Array:
    q = d + len(first)
    if given.shape not in ((d, d), (q, q)):
        raise ParameterError(
            f"The precision of the prior has shape {given.shape}; there are {d} columns.",
            f"Pass a number, {d} numbers, or a matrix of {d} x {d}"
            + (f" or {q} x {q} (intercept first)." if first else "."),
        )
    if not np.allclose(given, given.T) or np.linalg.eigvalsh(given)[0] < -1e-10 * abs(given).max():
        raise ParameterError(
            "The precision of the prior is not symmetric with eigenvalues of zero or more.",
            "Pass the inverse of a covariance matrix.",
        )
    if given.shape == (q, q):
        if first and first[0]:
            raise ParameterError(
                "The precision of the intercept is given twice.",
                "Leave out intercept_precision where precision has a row for the intercept.",
            )
        return given
    matrix = np.zeros((q, q))
    matrix[:1, :1] = first[0] if first else given[:1, :1]
    matrix[len(first) :, len(first) :] = given
    return matrix


def _read_mean(prior: GaussianPrior, standard: Standard) -> Array:
    given, d = _numbers("mean", prior.mean), len(standard.scale)
    if given.ndim == 1 and len(given) != d:
        raise _wrong_length("mean", len(given), d)
    if given.ndim > 1 or not np.isfinite(given).all():
        raise ParameterError(
            f"The mean of the prior must be a finite number, or one for each of the {d} columns.",
            f"Pass a number, or {d} of them.",
        )
    if not (is_number(prior.intercept_mean) and np.isfinite(prior.intercept_mean)):
        raise ParameterError(
            f"intercept_mean={prior.intercept_mean!r} is not a mean.", "Use a finite number."
        )
    first = [float(prior.intercept_mean)] if standard.intercept else []
    return np.concatenate([first, np.broadcast_to(given, (d,))])


def _in_standard_units(precision: Array, standard: Standard) -> Array:
    first = int(standard.intercept)
    with np.errstate(over="ignore", under="ignore"):
        if precision.ndim == 1 and not (first and precision[0] and standard.centre.any()):
            scale = np.concatenate([np.ones(first), standard.scale])
            return np.minimum((np.sqrt(precision) / scale) ** 2, _INFINITE)
        matrix = np.diag(precision) if precision.ndim == 1 else precision
        return np.clip(standard.pull_back_matrix(matrix), -_INFINITE, _INFINITE)


def _is_proper(precision: Array, intercept: bool) -> bool:
    first = int(intercept)
    if precision.ndim == 1:
        return bool((precision[first:] > 0).all())
    held = precision[first:, first:]
    if first and precision[0, 0] > 0:  # what is left of it once the intercept has followed
        held = held - np.outer(precision[1:, 0], precision[0, 1:]) / precision[0, 0]
    size = abs(precision).max(initial=0.0)
    return bool(np.linalg.eigvalsh(held).min(initial=1.0) > _NOTHING * size)


def _wrong_length(what: str, found: int, d: int) -> ParameterError:
    return ParameterError(
        f"The {what} of the prior has {found} numbers, but there are {d} columns.",
        "Pass one number for all columns or one for each.",
    )
