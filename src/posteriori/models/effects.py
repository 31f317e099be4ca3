"""Effects in units of probability: predictions, comparisons and slopes, with intervals.

Coefficients are in units of log odds; what a reader wants to know is by how much a probability
changes. That depends on the row, so it is averaged over rows, or told for chosen ones.
"""

from typing import Any

from posteriori.arguments import check_flag, check_fraction
from posteriori.models.contrasts import (
    At,
    ChangeLike,
    numeric_columns,
    read_contrasts,
    read_places,
)
from posteriori.models.effect_table import Line, effect_table
from posteriori.models.explaining import explain
from posteriori.models.explanation import Explanation
from posteriori.models.surveys import Survey, survey


def predictions(
    model: Any, X: Any = None, *, at: At = None, average: bool = False, level: float = 0.95
) -> Any:
    """Probabilities with intervals, row by row, averaged, or at chosen values.

    The standard error of a mean μ(w) is √(gᵀCg), with g = ∂μ/∂w and C the covariance of the
    coefficients (the delta method); intervals are taken on the scale of the link, within zero and
    one, as `predict_interval` does.

    Parameters
    ----------
    model : any fitted classifier with `predict_proba`, or a `GLM` of numbers
        Standard errors and intervals are there for models fitted by likelihood. For
        `BayesianLogisticRegression` they are deviations and quantiles of draws of the posterior.
        Other models (`GaussianClassifier`, `NaiveBayes`, those of scikit-learn) have estimates
        alone, and so have fits of more than 2,100 coefficients by likelihood.
    X : rows in memory
        None for those of the fit, with their weights and offsets, if the model has kept them.
        Rows that are passed count alike, and have the offset zero.
    at : None, "mean" or {column: value or list of values}
        The rows as they are. One row: means of numbers, most frequent levels and booleans. Or all
        rows with these values in some columns, averaged, one line for each combination.
    average : whether to average over rows, which `at` always does.
    level : the probability that an interval is to have.

    Returns
    -------
    A data frame of the kind that the model was fitted to, with the columns row or at_..., class,
    estimate, std_error, conf_low, conf_high. Of two classes the second is told of.

    >>> from posteriori import LogisticRegression
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 1, 0, 1, 1]
    >>> model = LogisticRegression().fit(X, y)
    >>> predictions(model, at={"x0": [1, 4]}).round(3)
       at_x0  class  estimate  std_error  conf_low  conf_high
    0      1      1     0.139      0.213     0.005      0.840
    1      4      1     0.861      0.213     0.160      0.995
    """
    about = _survey(model, X, level, average)
    if at is None and not average:
        lines = [Line({}, about.population.each_mean(), by_row=True)]
    else:
        places = read_places(about.population, at)
        lines = [Line(p.labels, p.population.average_means(p.changes)) for p in places]
    return effect_table(lines, about, tested=False)


def comparisons(
    model: Any,
    X: Any = None,
    *,
    columns: Any = None,
    change: ChangeLike = 1.0,
    average: bool = True,
    level: float = 0.95,
) -> Any:
    """By how much probabilities change when a column does, all others staying as they are.

    E[μ(x with x_j = high) - μ(x with x_j = low)], averaged over rows, with errors by the delta
    method. Rows, models and intervals are those of `predictions`, but that an interval is the
    estimate and standard errors to either side.

    Parameters
    ----------
    columns : a name or several; all by default.
    change : a number, "sd", "iqr", "minmax", or (low, high), for numeric columns
        So much more than each row has; a standard deviation more; from the lower quartile to the
        upper one; from the smallest entry to the largest; from low to high. What the rows say of
        a column is an error where it does not vary in them. A boolean is changed
        from False to True, a categorical column from its first level to each of the others.
    average : whether to average over rows; otherwise each row has its own comparison.

    Returns
    -------
    A data frame with the columns term, contrast, (row), class, estimate, std_error, statistic,
    p_value, conf_low, conf_high.

    >>> from posteriori import LogisticRegression
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 1, 0, 1, 1]
    >>> found = comparisons(LogisticRegression().fit(X, y), change="iqr")
    >>> found[["term", "contrast", "class", "estimate", "std_error"]].round(3)
      term  contrast  class  estimate  std_error
    0   x0  q1 to q3      1     0.721      0.328
    """
    about = _survey(model, X, level, average)
    people = about.population
    found = read_contrasts(people, columns, change)
    answer = people.average if average else people.each
    names = people.schema.names
    lines = [
        Line(
            {"term": names[one.column], "contrast": one.label},
            answer([(1.0, one.high), (-1.0, one.low)]),
            by_row=not average,
        )
        for one in found
    ]
    return effect_table(lines, about)


def slopes(
    model: Any,
    X: Any = None,
    *,
    columns: Any = None,
    at: At = None,
    average: bool = True,
    level: float = 0.95,
) -> Any:
    """By how much probabilities change with each unit of a numeric column: marginal effects.

    ∂μ/∂x_j = M w_j with M = ∂μ/∂a, the derivative through the link at the row's activation: for
    two classes p(1 - p) w_j. They are averaged over rows, with errors by the delta method, whose
    derivatives in w are exact; after a fit by a formula, whose columns may be made of x_j in any
    way, differences over small steps stand for derivatives in x_j. So they do for models that are
    known by `predict_proba` alone; it is an error if their probabilities change in steps, as those
    of trees do. Rows, models and `at` are those of `predictions`.

    Parameters
    ----------
    columns : a name or several of numeric columns; all of these by default
        `comparisons` has boolean and categorical ones.
    average : whether to average over rows, which `at` always does.

    Returns
    -------
    A data frame with the columns (row or at_...), term, class, estimate, std_error, statistic,
    p_value, conf_low, conf_high.

    >>> from posteriori import LogisticRegression
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 1, 0, 1, 1]
    >>> found = slopes(LogisticRegression().fit(X, y))
    >>> found[["term", "class", "estimate", "std_error", "conf_low", "conf_high"]].round(3)
      term  class  estimate  std_error  conf_low  conf_high
    0   x0      1     0.159      0.022     0.115      0.202
    """
    about = _survey(model, X, level, average)
    people = about.population
    places = numeric_columns(people.schema, columns)
    terms = [{"term": people.schema.names[j]} for j in places]
    if at is None and not average:
        each = people.each_slope(places)
        lines = [Line(term, each[:, i], by_row=True) for i, term in enumerate(terms)]
        return effect_table(lines, about)
    lines = []
    for place in read_places(people, at):
        found = place.population.average_slopes(places, place.changes)
        lines += [Line(place.labels | term, one) for term, one in zip(terms, found, strict=True)]
    return effect_table(lines, about)


class Effects:
    """A mixin of the same for fitted models, and of `explain`."""

    def predictions(
        self, X: Any = None, *, at: At = None, average: bool = False, level: float = 0.95
    ) -> Any:
        """Probabilities with intervals, row by row, averaged, or at chosen values.

        See `posteriori.models.effects.predictions`.
        """
        return predictions(self, X, at=at, average=average, level=level)

    def comparisons(
        self,
        X: Any = None,
        *,
        columns: Any = None,
        change: ChangeLike = 1.0,
        average: bool = True,
        level: float = 0.95,
    ) -> Any:
        """By how much probabilities change when a column does.

        See `posteriori.models.effects.comparisons`.
        """
        return comparisons(self, X, columns=columns, change=change, average=average, level=level)

    def slopes(
        self,
        X: Any = None,
        *,
        columns: Any = None,
        at: At = None,
        average: bool = True,
        level: float = 0.95,
    ) -> Any:
        """By how much probabilities change with each unit of a numeric column.

        See `posteriori.models.effects.slopes`.
        """
        return slopes(self, X, columns=columns, at=at, average=average, level=level)

    def explain(self, x: Any, *, label: Any = None, against: Any = None) -> Explanation:
        """What each column contributes to the log odds of one row.

        See `posteriori.models.explaining.explain`.
        """
        return explain(self, x, label=label, against=against)


def _survey(model: Any, X: Any, level: float, average: Any) -> Survey:
    check_fraction("level", level)
    check_flag("average", average)
    return survey(model, X, level)
