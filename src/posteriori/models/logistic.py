"""Logistic regression (4.3.2)-(4.3.4): two classes, and more by the softmax function."""

from typing import Any

from posteriori.errors import ParameterError
from posteriori.likelihood.link import ProbabilityLink
from posteriori.likelihood.links import PROBABILITY_LINKS
from posteriori.likelihood.logistic import LogisticLoss, SignedLogisticLoss
from posteriori.likelihood.loss import ClassLoss, Loss
from posteriori.likelihood.softmax import SoftmaxLoss
from posteriori.models.discriminative import Solver
from posteriori.models.fitting import Prepared
from posteriori.models.label_noise import (
    LabelNoise,
    Noise,
    NoisyLoss,
    conclude,
    label_probabilities,
    noise_facts,
    noisy_solution,
    read_label_noise,
    with_noise,
    wrong_label_probability,
)
from posteriori.models.sequential import SequentialClassifier
from posteriori.posterior.inference import Inference
from posteriori.posterior.objective import LogPosterior
from posteriori.posterior.priors import PriorLike, PriorName
from posteriori.rows.block import Block
from posteriori.rows.schema import Unseen
from posteriori.solve.solution import Iteration, Solution
from posteriori.typing import Array


class LogisticRegression(SequentialClassifier):
    """Probabilities by a linear function: σ(wᵀφ) for two classes (4.87), softmax for more (4.104).

    The coefficients make -ln p(t|w) - ln p(w) smallest (4.90), (4.108). Columns are centred and
    scaled inside; data frames with categorical columns are taken as they are, with treatment
    coding.

    Parameters
    ----------
    prior : None, a number, a `GaussianPrior`, or "jeffreys"
        Maximum likelihood; a precision on every slope (1/C of scikit-learn); any Gaussian; or
        Jeffreys' prior, Firth's reduction of bias, which is finite on separated classes.
    label_noise : a number, a pair, or "estimate"
        The probability that a label is wrong (4.117): one for all classes, one for each of two, or,
        for two classes, to be estimated with the coefficients.
    solver : "auto", "newton", "gradient", "coordinate" or "sequential"
        All reach the same optimum; `solver_` and `solver_reason_` say what "auto" took, and why.
    fit_intercept : bool
    tol : float
        The iteration ends within about this many standard errors of the optimum; much nearer
        where that costs little.
    max_iter : int or None
        Steps before the iteration is given up; None leaves it to the solver.
    unseen : "error" or "reference"
        What to do at prediction with a level that the fit never saw.

    Attributes
    ----------
    coef_, intercept_ : (1, d) and (1,) for two classes, (K, d) and (K,) for more, summing to zero.
    coef_names_ : names (d,) of its columns: those of X in order, levels in the place of a factor.
    classes_, n_iter_, converged_, n_parameters_, solver_, solver_reason_.
    solution_ : how the iteration ended, and a trace of it.
    coef_covariance_, log_likelihood_, deviance_, null_deviance_, aic_, bic_; `tidy()`, `glance()`,
    `summary()`, `predict_interval(X)`.
    separation_ : whether the classes can be separated, and by which columns.
    label_noise_, label_noise_error_ : the rate(s) of wrong labels, and the standard error of an
    estimated one (None where it was given, or is zero); `mislabelled_probability(X, y)`.
    penalised_log_likelihood_ : with prior="jeffreys", ln p(t|w) + ½ ln|I|.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> X = X[["mean radius", "mean texture"]]
    >>> model = LogisticRegression().fit(X, y)
    >>> model.tidy()[["term", "estimate", "std_error"]].round(3)
               term  estimate  std_error
    0     intercept    19.849      1.774
    1   mean radius    -1.057      0.101
    2  mean texture    -0.218      0.037
    >>> model.predict_proba(X[:1]).round(3), model.predict_interval(X[:1]).round(3)
    (array([[0.807, 0.193]]), array([[0.085, 0.381]]))
    """

    label_noise_: float | tuple[float, float]
    label_noise_error_: float | None
    _noise: Noise | None
    _noisy_loss: NoisyLoss | None

    def __init__(
        self,
        *,
        prior: PriorLike | PriorName = None,
        label_noise: LabelNoise = 0.0,
        solver: Solver = "auto",
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int | None = None,
        unseen: Unseen = "error",
    ) -> None:
        self.prior = prior
        self.label_noise = label_noise
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.unseen = unseen

    def _loss(self, n_classes: int, soft: bool) -> Loss | ClassLoss:
        self._noise = read_label_noise(self.label_noise, n_classes)
        self._noisy_loss, self.label_noise_, self.label_noise_error_ = None, 0.0, None
        if n_classes > 2:
            return SoftmaxLoss()
        return LogisticLoss() if soft or self._noise is not None else SignedLogisticLoss()

    def _link(self) -> ProbabilityLink:
        return PROBABILITY_LINKS["logit"]

    def _adapted(self, prepared: Prepared) -> Prepared:
        if self._noise is None:
            return super()._adapted(prepared)
        if isinstance(self.prior, str):
            raise ParameterError(
                f"prior={self.prior!r} cannot be combined with label_noise.",
                "Use a number as prior, or label_noise=0.0.",
            )
        return with_noise(prepared, self._noise)

    def _predicted(self, block: Block) -> Array:
        found = super()._predicted(block)
        return found if self._noisy_loss is None else label_probabilities(self._noisy_loss, found)

    def _check_sequential(self) -> None:
        super()._check_sequential()
        if read_label_noise(self.label_noise, 2) is not None:
            raise ParameterError(
                "partial_fit cannot tell wrong labels: the curvature of their likelihood depends "
                "on where it is taken.",
                "Use label_noise=0.0, or fit.",
            )

    def _solve(self, prepared: Prepared) -> Solution[Array, Iteration]:
        if self._noise is None:
            return super()._solve(prepared)
        if self.solver not in ("auto", "newton"):
            raise ParameterError(
                f"solver={self.solver!r} cannot be combined with label_noise, whose likelihood "
                "is not convex.",
                "Use solver='auto' or 'newton'.",
            )
        self.solver_ = "newton"
        self.solver_reason_ = "the likelihood of labels that may be wrong is not convex"
        return noisy_solution(prepared, self.max_iter)

    def _infer(self, prepared: Prepared, solution: Solution[Array, Iteration]) -> Inference:
        if self._noise is None:
            return super()._infer(prepared, solution)
        found = conclude(prepared.objective, self._noise, solution)
        self.label_noise_, self.label_noise_error_ = found.rate, found.rate_error
        self._noisy_loss = found.loss
        return found.inference

    def _proves_overlap(self, objective: LogPosterior) -> bool:
        # With labels that may be wrong, a maximum proves nothing of the labels themselves.
        return self._noise is None and super()._proves_overlap(objective)

    def _summary_facts(self) -> tuple[tuple[str, str], ...]:
        own = () if self._noise is None else noise_facts(self.label_noise_, self.label_noise_error_)
        return (*super()._summary_facts(), *own)

    def mislabelled_probability(self, X: Any, y: Any, offset: Any = None) -> Array:
        """The probability that the label of each row is wrong (n,), by Bayes' rule.

        `offset` is that of `fit`, for these rows. The probability is zero for a fit with
        `label_noise=0.0`.

        >>> X, y = [[-3.0], [-2.0], [-1.0], [1.0], [2.0], [3.0], [2.5]], [0, 0, 0, 1, 1, 1, 0]
        >>> model = LogisticRegression(prior=0.1, label_noise=0.1).fit(X, y)
        >>> model.mislabelled_probability(X, y).round(2)
        array([0.  , 0.01, 0.02, 0.08, 0.03, 0.01, 0.39])
        """
        K = len(self._known_classes())
        activation = self._evaluate_with(X, offset, lambda a: a, 1 if K == 2 else K)
        return wrong_label_probability(self._noisy_loss, activation, y, self.classes_)
