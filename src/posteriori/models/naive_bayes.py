"""Naive Bayes: features that are independent given the class (4.2.3, 4.2.4)."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from posteriori.arguments import check_number
from posteriori.decision.class_priors import PriorsLike
from posteriori.errors import NotLinearError, ShapeError
from posteriori.likelihood.feature_families import (
    FAMILIES,
    Categorical,
    Family,
    FamilyLike,
    MeanFamily,
    TableLabels,
    estimate_gaussian,
    in_parts,
    read_families,
)
from posteriori.likelihood.linear_activations import Linear
from posteriori.linalg import read_only
from posteriori.models.from_statistics import FromStatistics
from posteriori.rows.block import Block, Features, Rows
from posteriori.statistics.column_moments import ColumnMoments, check_scale
from posteriori.statistics.discrete_counts import (
    Counts,
    FamilySums,
    GatherByFamily,
    Group,
    Part,
    check_domain,
    check_families,
)
from posteriori.typing import Array, Codes, Labels

_POSITIVE = ("bernoulli", "exponential", "poisson")
"""Families whose entries cannot be negative."""

_KINDS = {"numeric": "numbers", "boolean": "booleans", "categorical": "categories"}


class NaiveBayes(FromStatistics):
    """p(x|C_k) = Π_j p(x_j|C_k), each column of its own exponential family (4.83).

    The posterior is the softmax of a_k(x) = Σ_j ln p(x_j|C_k) + ln p(C_k) (4.63); where every
    family has u(x) = x, it is linear in x (4.86).

    Parameters
    ----------
    family : "auto", the name of a family for all columns, or {column name or position: name}
        One of gaussian, bernoulli (0 or 1), categorical (levels, or numbers as levels), poisson
        (0, 1, 2, ...) and exponential (x >= 0). "auto", also for columns not in the dict, goes by
        the type of the column: bernoulli for booleans (a boolean array, data frame column or
        sparse matrix), categorical for text and categories, gaussian for all other numbers. So
        the numbers 0.0 and 1.0 are gaussian, and False and True are not; `families_` and
        `summary()` show the families.
    pseudocount : float
        Added to the count of each state of a bernoulli or categorical column: a state without
        rows has probability α / (N_k + αL).
    priors : dict from label to probability, or sequence in the order of the classes
        By default the shares of the classes.
    shared_scale : bool
        One variance per gaussian column for all classes, so that its boundary is linear.

    Attributes
    ----------
    families_ (one per column), parameters_ ({column name: {parameter: one value per class}}),
    priors_, class_count_, classes_, n_parameters_, statistics_; coef_, intercept_ where the
    boundaries are linear.

    Missing entries are left out in fitting and in prediction. A class without rows has prior zero
    and the parameters of all rows together. A gaussian column that is constant in a class is given
    a variance, with a `SingularCovarianceWarning`. Where the conventions coincide, probabilities
    are those of scikit-learn's BernoulliNB and CategoricalNB (alpha = pseudocount) and of
    GaussianNB(var_smoothing=0).

    Examples
    --------
    >>> X = np.array([[True, True], [True, False], [False, False], [False, True]])
    >>> model = NaiveBayes().fit(X, ["spam", "spam", "ham", "ham"])
    >>> model.families_
    ('bernoulli', 'bernoulli')
    >>> model.parameters_["x0"]["probability"]
    array([0.25, 0.75])
    >>> model.predict_proba(X[:1])
    array([[0.25, 0.75]])
    """

    def __init__(
        self,
        *,
        family: FamilyLike = "auto",
        pseudocount: float = 1.0,
        priors: PriorsLike | None = None,
        shared_scale: bool = False,
    ) -> None:
        self.family = family
        self.pseudocount = pseudocount
        self.priors = priors
        self.shared_scale = shared_scale

    _allows_missing = _is_generative = _learns_levels = True
    _statistic_types = (FamilySums,)

    families_: tuple[str, ...]
    _parts: list[tuple[Group, Family]]

    def _check_parameters(self, classes: Labels) -> None:
        check_number("pseudocount", self.pseudocount)

    def _gather(self, rows: Rows, before: FamilySums | None = None) -> FamilySums:
        if not len(rows.schema):
            raise ShapeError("NaiveBayes needs a column at least.", "Pass features.")
        if before is None or self.family != "auto":
            families = read_families(self.family, rows.schema)
        else:
            families = before.families
        kernel = GatherByFamily(rows.schema, families, cast(Labels, rows.classes))
        found = rows.map_sum(kernel)
        for part in found.parts:
            if isinstance(part, ColumnMoments):
                check_scale(part)
        return found

    def _convert(self, statistics: FamilySums) -> FamilySums:
        """The families of the statistics must be those of the model; "auto" takes any."""
        if self.family != "auto":
            families = read_families(self.family, statistics.schema)
            check_families(statistics.schema, statistics.families, families)
        return statistics

    def _estimate(self, statistic: FamilySums) -> None:
        self.families_ = statistic.families
        self._set_priors(statistic.class_count)
        pairs = zip(statistic.groups, statistic.parts, strict=True)
        self._parts = [(group, self._fit_group(group, part)) for group, part in pairs]
        free = sum(family.n_parameters for _, family in self._parts)
        self.n_parameters_ = free + len(self.classes_) - 1

    def _fit_group(self, group: Group, part: Part) -> Family:
        """The parameters of the columns of one family."""
        vacant = self.class_count_ == 0
        places = TableLabels(self.schema_, group.columns, self.classes_, vacant)
        if isinstance(part, ColumnMoments):
            return estimate_gaussian(
                part.count, part.mean, part.scatter, shared=self.shared_scale, places=places
            )
        if isinstance(part, Counts):
            return Categorical.estimate(
                part.levels, part.tables, self.pseudocount, places, coded=group.coded
            )
        count = np.broadcast_to(part.count, part.total.shape)
        family = cast(type[MeanFamily], FAMILIES[group.family])
        return family.estimate(count, part.total, self.pseudocount, places)

    def _prepare(self) -> None:
        self._linear = None
        forms = [family.form for _, family in self._parts]
        if None not in forms:
            columns = [group.columns for group, _ in self._parts]
            self._linear = _joined(columns, cast(list[Linear], forms), self._log_priors)

    def _log_density(self, X: Features) -> Array:
        parts = (family.log_density(group.values(X)) for group, family in self._parts)
        return cast(Array, sum(parts))

    def _activations(self, X: Features) -> Array:
        values = super()._activations(X)  # (4.86) where it is linear
        for group, family in self._parts if self._linear is not None else ():
            family.mark_outside(values, group.values(X))
        return values

    def _marginal(self, X: Features) -> Array:
        parts = (in_parts(f.marginal_log_density, g.values(X)) for g, f in self._parts)
        return cast(Array, sum(parts)) + self._log_priors

    def _column_densities(self, X: Features) -> Array:
        """ln p(x_j|C_k) of each column of one row (d, K); zero where an entry is missing."""
        out = np.empty((self.n_features_in_, len(self.classes_)))
        for group, family in self._parts:
            x = group.values(X)
            x = x.toarray() if isinstance(x, csr_array) else x
            for k in range(len(self.classes_)):
                out[group.columns, k] = np.nan_to_num(family.entries(x, k)[0], neginf=-np.inf)
        return out

    def _checked(self, block: Block, activate: Callable[[Features], Array]) -> Array:
        def activate_in_domain(X: Features) -> Array:
            activation = activate(X)
            if np.isnan(activation).any():
                for group, _ in self._parts:
                    check_domain(group.part(block), group)
            return activation

        return super()._checked(block, activate_in_domain)

    def _draw(self, k: int, n: int, random: np.random.Generator) -> Array:
        X = np.empty((n, self.n_features_in_))
        for group, family in self._parts:
            X[:, group.columns] = family.draw(k, n, random)
        return X

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[NDArray[Any], Labels]:
        """Rows and labels drawn from the model, of the types that it was fitted to.

        X is an array of doubles if all columns are numbers, of booleans if all are booleans,
        else of objects.
        """
        X, y = super().sample(n_samples, random_state)
        kinds = [column.kind for column in self.schema_.columns]
        if len(set(kinds)) == 1 and kinds[0] != "categorical":
            return X.astype(np.bool_ if kinds[0] == "boolean" else np.float64, copy=False), y
        objects = X.astype(object)
        for j, column in enumerate(self.schema_.columns):
            if column.kind == "boolean":
                objects[:, j] = X[:, j].astype(np.bool_)
            elif column.kind == "categorical":
                objects[:, j] = np.array(column.levels, dtype=object)[X[:, j].astype(np.intp)]
        return objects, y

    @property
    def parameters_(self) -> dict[str, dict[str, Any]]:
        """The parameters of each column: one value per class, in the order of `classes_`.

        gaussian: mean, sd. bernoulli: probability (of one). categorical: levels, probability
        (K, L), unseen (that of a level not among them). poisson and exponential: mean.
        """
        self._known_classes()
        found = {
            int(j): family.column(i)
            for group, family in self._parts
            for i, j in enumerate(group.columns)
        }
        return {
            column.name: {
                name: value if name == "levels" else read_only(value)
                for name, value in found[j].items()
            }
            for j, column in enumerate(self.schema_.columns)
        }

    @property
    def _estimates(self) -> str:  # type: ignore[override]
        """What the table of parameters shows, for the summary."""
        columns = zip(self.families_, self.schema_.columns, strict=True)
        kinds = sorted({f"{family} for {_KINDS[column.kind]}" for family, column in columns})
        chosen = "by the type of the column" if self.family == "auto" else "by the setting family"
        return f"the parameters of each column's family, chosen {chosen}: {', '.join(kinds)}"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        names = self.family.values() if isinstance(self.family, Mapping) else [self.family]
        tags.input_tags.positive_only = any(name in _POSITIVE for name in names)
        return tags

    def _parameter_columns(self) -> dict[str, list[Any]]:
        names = ("term", "class", "family", "parameter", "estimate")
        columns = [*zip(self.parameters_.items(), self.families_, strict=True)]
        rows = [
            (name, label, family, parameter, float(value))
            for k, label in enumerate(self.classes_.tolist())
            for (name, found), family in columns
            for parameter, value in _numbers_of(found, k)
        ]
        return {
            name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)
        }

    def _not_linear(self) -> NotLinearError:
        curved = [j for group, f in self._parts if f.form is None for j in group.columns]
        return NotLinearError(
            f"The boundary is not linear in {self.schema_.describe_all(sorted(curved))}.",
            "coef_ needs poisson, exponential or bernoulli columns (with a pseudocount where a "
            "count is zero), or gaussian ones with shared_scale=True.",
        )


def _numbers_of(found: dict[str, Any], k: int) -> list[tuple[str, float]]:
    """The parameters of a column in class k, with names; of levels, the probability of each."""
    if "levels" in found:
        return list(zip(map(str, found["levels"]), found["probability"][k], strict=True))
    return [(name, values[k]) for name, values in found.items()]


def _joined(columns: list[Codes], forms: list[Linear], log_priors: Array) -> Linear:
    """a_k = λ_kᵀx + ln g(λ_k) + ln p(C_k) of all columns together (4.86)."""
    order = np.argsort(np.concatenate(columns))
    weights = np.vstack([form.weights for form in forms])[order]
    centres = [np.zeros(len(f.weights)) if f.centre is None else f.centre for f in forms]
    bias = log_priors + np.sum([form.bias for form in forms], axis=0)
    return Linear.about(np.concatenate(centres)[order], weights, bias)
