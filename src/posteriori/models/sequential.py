"""Learning from rows that come in batches and are let go: `partial_fit`.

Conventions: p parameters, the coefficients of all classes but one. As long as there are few rows
for p parameters, they are kept and fitted anew with each batch. Later some are let go, and what
they said is kept as a parabola (see `posteriori.solve.online`).
"""

from dataclasses import replace
from typing import Any, Self, cast

from sklearn.utils.metaestimators import available_if

from posteriori.errors import (
    ConvergenceWarning,
    InferenceError,
    ParameterError,
    warn,
)
from posteriori.models.discriminative import DiscriminativeClassifier, with_offset
from posteriori.models.fitting import prepare
from posteriori.models.keeping import SoFar, is_strange, joined, rows_to_keep
from posteriori.models.predicting import linear_function
from posteriori.posterior.inference import inverse_of
from posteriori.posterior.objective import LogPosterior
from posteriori.posterior.priors import flat
from posteriori.posterior.rowless import RowlessInference
from posteriori.posterior.shown import Shown
from posteriori.rows.in_memory import MemoryRows
from posteriori.rows.schema import Schema
from posteriori.rows.source import FitRows
from posteriori.rows.target import as_vector, same_classes
from posteriori.solve.online import BROAD, Belief, online_update
from posteriori.statistics.row_sample import sample_rows, thin_rows
from posteriori.typing import Array, Labels


def _learns_in_batches(model: "SequentialClassifier") -> bool:
    model._check_sequential()
    return True


class SequentialClassifier(DiscriminativeClassifier):
    """A discriminative classifier that can also learn batch by batch."""

    _so_far: SoFar
    _n_fitted: int

    @available_if(_learns_in_batches)  # type: ignore[untyped-decorator]
    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        classes: Any = None,
        sample_weight: Any = None,
        offset: Any = None,
    ) -> Self:
        """Learn from more rows, without those seen before.

        The first call names the classes: by `classes`, or by labels of all of them. Its columns
        (and levels) are those of all batches to come. The first 20 rows a coefficient are all
        kept, and the answer is that of `fit`. Of the rows after them ever fewer are kept; what
        the others said is summed up by Laplace's approximation. The answer is then a small
        fraction of a standard error from `fit` to all rows, whatever the size of the batches; where
        a batch is unlike those before, as in rows sorted by class, a `ConvergenceWarning` says so.
        Rows that are kept are in pickles too. What needs all rows again, such as
        `log_likelihood_`, is an error. The prior counts once. After `fit`, its rows count as the
        first batch. `offset` is that of `fit`; rows of a call without one have zeros.

        >>> import numpy as np
        >>> from posteriori import LogisticRegression
        >>> X, y = np.arange(200.0)[:, None] % 10, np.arange(200) % 10 + np.arange(200) % 7 > 7
        >>> model = LogisticRegression()
        >>> for batch in range(4):
        ...     part = slice(50 * batch, 50 * batch + 50)
        ...     model = model.partial_fit(X[part], y[part], classes=[False, True])
        >>> model.coef_.round(2), LogisticRegression().fit(X, y).coef_.round(2)
        (array([[0.89]]), array([[0.89]]))
        """
        with self._all_or_nothing():
            self._check_parameters()
            self._take(with_offset(self._read_batch(X, y, sample_weight, classes), offset))
        return self

    def _fit_rows(self, rows: FitRows) -> None:
        super()._fit_rows(rows)
        self.__dict__.pop("_so_far", None)
        self._n_fitted = rows.n_rows

    def _check_sequential(self) -> None:
        """An error where the settings need all rows at once, so that there is no partial_fit."""
        if isinstance(self.prior, str):
            raise ParameterError(
                f"prior={self.prior!r} looks at all rows at once, which partial_fit cannot do.",
                "Use None, a number or a GaussianPrior, or fit.",
            )

    def _read_batch(self, X: Any, y: Any, sample_weight: Any, classes: Any) -> FitRows:
        if isinstance(X, str):
            raise ParameterError(
                "partial_fit takes rows, not a formula.",
                "Call fit with the formula first, or make the columns beforehand.",
            )
        if not hasattr(self, "classes_"):
            rows = self._read(X, y, sample_weight, classes)
            self._remember(rows.schema, cast(Labels, rows.classes))
            return rows
        formula = self.formula_
        if isinstance(X, MemoryRows):
            rows = self._read(X, y, sample_weight, classes)
            self._check_same(rows.classes, rows.schema)
        else:
            self._check_same(classes, self.schema_)
            X = X if formula is None else formula.apply(X, self.unseen)
            rows = self._read(
                X, y, sample_weight, None, schema=self.schema_, known_classes=self.classes_
            )
        self.formula_ = formula
        return rows

    def _check_same(self, classes: Any, schema: Schema) -> None:
        """An error unless classes and columns are those of the first batch."""
        if classes is not None and not same_classes(classes, self.classes_):
            raise ParameterError(
                f"classes={as_vector(classes).tolist()} are not those of the first batch.",
                f"Leave classes out, or pass {self.classes_.tolist()}.",
            )
        if schema != self.schema_:
            raise ParameterError(
                "The columns of these rows are not those of the first batch: "
                f"{self.schema_.difference(schema)}.",
                "Pass rows with the same columns, kinds and levels.",
            )

    def _take(self, rows: FitRows) -> None:
        so_far = self.__dict__.get("_so_far")
        if so_far is None and hasattr(self, "_inference"):
            so_far = SoFar(None, self._n_fitted, self._belief_of_fit())
        if so_far is None:
            self._fit_whole(rows)
        elif so_far.rest is not None:
            self._update(so_far, rows)
        elif rows.n_rows < rows_to_keep(self._problem(rows)):
            # The new ones first, so that errors tell their numbers.
            self._fit_whole(joined(_in_memory(rows), so_far.rows))
        else:
            self._fit_whole(rows)
            self._update(self._so_far, so_far.rows)

    def _belief_of_fit(self) -> Belief:
        """What the rows of a `fit` say, which need not be there any more."""
        inference = self._inference
        if inference.shown.coordinates.basis is not None or inference.determined is not None:
            raise InferenceError(
                "The rows of the fit did not determine all coefficients, and are not there to be "
                "looked at together with others.",
                "Begin with partial_fit, or set a prior.",
            )
        precision = inverse_of(inference.free_covariance())
        return Belief(precision, precision @ inference.w)

    def _fit_whole(self, rows: FitRows) -> None:
        """Fit to rows that are all there, and let most of them go if they are many."""
        few = rows_to_keep(self._problem(rows))
        prepared = prepare(self._problem(rows))
        self._finish(prepared)
        if rows.n_rows < few:
            self._so_far = SoFar(_in_memory(rows), rows.n_rows)
            return
        objective = _with_all_columns(prepared.objective)
        w = prepared.objective.coordinates.vectors(self.solution_.parameters).ravel()
        self._so_far = SoFar(None, 0, Belief.nothing(len(w)), objective.penalty)
        self._let_go(rows, objective, w)
        belief = _parabola(objective, w)
        self._adopt(objective, w, belief, belief.determined and self.solution_.converged)

    def _update(self, so_far: SoFar, rows: FitRows) -> None:
        """Learn from a batch together with what is kept."""
        shown = self._inference.shown
        new = self._loss_of(rows, shown)
        losses = [new]
        if so_far.rows is not None:
            kept = self._loss_of(so_far.rows, shown)
            losses.append(replace(kept, penalty=so_far.penalty or kept.penalty))
        rest = cast(Belief, so_far.rest)
        update = online_update(rest, losses, self._inference.w, self.tol)
        self.solution_, self._so_far, w = update.solution, so_far, update.solution.parameters
        self._let_go(rows, new, w)
        self._adopt(new, w, update.belief, update.determined)
        if is_strange(update.solution, rows.n_rows / so_far.n_seen):
            _warn_of_strange_rows()

    def _loss_of(self, rows: FitRows, shown: Shown) -> LogPosterior:
        """-ln p(t|w) of some rows, without a prior."""
        problem = self._problem(rows)
        return LogPosterior(
            problem.rows,
            shown.columns,
            shown.standard,
            problem.loss,
            problem.target,
            flat(shown.coordinates.q),
            shown.coordinates,
            self.tol,
        )

    def _let_go(self, rows: FitRows, objective: LogPosterior, w: Array) -> None:
        """Of rows that were learnt from, keep some that stand for them, and what they leave out."""
        so_far, shown = self._so_far, Shown.of(objective)
        n_seen = so_far.n_seen + rows.n_rows
        sample = thin_rows(rows, min(rows_to_keep(self._problem(rows)) / n_seen, 1.0), seed=n_seen)
        rest = cast(Belief, so_far.rest) + _parabola(self._loss_of(rows, shown), w)
        kept = so_far.rows
        if sample is not None:
            rest = rest - _parabola(self._loss_of(sample, shown), w)
            kept = sample if kept is None else joined(kept, sample)
        self._so_far = replace(so_far, rows=kept, n_seen=n_seen, rest=rest)

    def _adopt(self, objective: LogPosterior, w: Array, belief: Belief, determined: bool) -> None:
        """Predict and infer from the optimum, and the curvature there, of all that was said."""
        self.n_iter_ = max(len(self.solution_.trace), 1)
        self.converged_ = determined
        self._inference = RowlessInference(Shown.of(objective), w, belief.precision)
        self._separation = None
        self._linear = linear_function(objective, w)
        if not determined:
            _warn_of_gaps()


def _parabola(loss: LogPosterior, w: Array) -> Belief:
    return Belief.about(w, loss(w, "full"))


def _in_memory(rows: FitRows) -> MemoryRows:
    return sample_rows(rows, 1)[0]


def _with_all_columns(objective: LogPosterior) -> LogPosterior:
    """The objective in the parameters of all columns, told apart by the rows so far or not."""
    return replace(objective, coordinates=replace(objective.coordinates, basis=None))


def _warn_of_strange_rows() -> None:
    warn(
        ConvergenceWarning(
            "This batch is unlike the rows before, most of which were let go: what they said may "
            "count for too little or too much now.",
            "Pass rows in random order, or fit to all of them.",
        )
    )


def _warn_of_gaps() -> None:
    warn(
        ConvergenceWarning(
            "The rows so far do not determine all coefficients. A broad prior (standard deviation "
            f"{BROAD:g} for standardised columns) stands in for rows to come.",
            "Pass more rows to partial_fit, or set a prior.",
        )
    )
