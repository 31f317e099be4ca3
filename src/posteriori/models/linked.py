"""What classifiers of two classes by any probability link share: p(C₂|x) = F(wᵀφ(x)) (4.111)."""

from abc import abstractmethod
from typing import Any, cast

import numpy as np

from posteriori.errors import BoundaryWarning, LabelError, ParameterError, warn
from posteriori.likelihood.link import ProbabilityLink
from posteriori.models.anywhere import anywhere
from posteriori.models.discriminative import DiscriminativeClassifier
from posteriori.models.fitting import Problem
from posteriori.models.geometry import Hyperplane
from posteriori.rows.rows import Rows
from posteriori.typing import Array, Labels


class LinkedClassifier(DiscriminativeClassifier):
    """A classifier of two classes with a link F of its own.

    The classes are equally probable where F(a) = ½. For a symmetric F that is a = 0; otherwise
    `decision_function` and `hyperplane` take the middle off, so that both change sign there.
    `coef_` and `intercept_` give the activation a itself.
    """

    _fitted_link: ProbabilityLink
    _edge: str | None

    @abstractmethod
    def _make_link(self) -> ProbabilityLink:
        """F, from the parameters of the estimator."""

    def _link(self) -> ProbabilityLink:
        return self._fitted_link

    def _problem(self, rows: Rows) -> Problem:
        self._check_classes(cast(Labels, rows.classes))
        self._fitted_link, self._edge = self._make_link(), None
        return super()._problem(rows)

    def _check_classes(self, classes: Labels) -> None:
        if len(classes) > 2:
            raise LabelError(
                f"Only binary classification is supported. {type(self).__name__} tells two "
                f"classes apart; y has {len(classes)}.",
                "Use LogisticRegression, or OneVersusRest with this estimator.",
            )

    def _check_prior(self, has_ends: bool) -> None:
        if has_ends and isinstance(self.prior, str):
            raise ParameterError(
                f"prior={self.prior!r} cannot be combined with a link or noise of bounded support.",
                "Use None, a number or a GaussianPrior; or a link or noise without ends.",
            )

    def _warn_of_edge(self, problem: str, remedy: str) -> None:
        """Say that the optimum lies at an end, now and on the page of the fit."""
        self._edge = problem
        warn(BoundaryWarning(problem, remedy))

    def _summary_notes(self) -> tuple[str, ...]:
        notes = super()._summary_notes()
        return notes if self._edge is None else (*notes, self._edge)

    def _middle(self) -> float:
        """The activation at which both classes are equally probable."""
        return float(self._link().activation(np.array([0.5]))[0])

    @anywhere
    def decision_function(self, X: Any, offset: Any = None) -> Array:
        """Activations less the one with F = ½ (n,): positive where the second class is chosen."""
        self._known_classes()
        return super().decision_function(X, offset) - self._middle()

    def hyperplane(self, first: Any = None, second: Any = None) -> Hyperplane:
        """The boundary between the classes, where F(wᵀx + w₀) = ½; its positive side is `first`.

        Both labels can be left out: the positive side is then that of `classes_[1]`.
        """
        plane = super().hyperplane(first, second)
        side = 1.0 if first is None or first == self.classes_[1] else -1.0
        return Hyperplane(plane.normal, plane.offset - side * self._middle())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
