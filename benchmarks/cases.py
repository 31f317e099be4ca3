"""The table of cases. A new one is a line here."""

from collections.abc import Iterator

from benchmarks import losses, ours
from benchmarks.bayes import AgainstSearch, DrawsPerSecond, WithPosterior
from benchmarks.cluster import ClusterHessian, ClusterPass
from benchmarks.contender import Contender, Solver
from benchmarks.data.forms import as_made, one_hot
from benchmarks.decisions import CompareTime, DecideTime
from benchmarks.equal import EqualFit, EqualMemory, WithErrors, WithSummary
from benchmarks.files import FileFit, FileMemory, FilePass
from benchmarks.measures import (
    Agreement,
    Case,
    Fit,
    FitWithin,
    ImportTime,
    Memory,
    Predict,
    PredictOne,
)
from benchmarks.ours import BERNOULLI, DIAGONAL, FULL, SHARED
from benchmarks.problem import Problem
from benchmarks.result import at_least, at_most
from benchmarks.rivals import (
    glum,
    gram,
    nutpie,
    sklearn_bernoulli_nb,
    sklearn_gaussian_nb,
    sklearn_lda,
    sklearn_logistic,
    sklearn_logistic_cv,
    sklearn_poisson,
    sklearn_qda,
    statsmodels,
)

LDA = sklearn_lda.RIVAL
QDA = sklearn_qda.RIVAL
GAUSSIAN_NB = sklearn_gaussian_nb.RIVAL
BERNOULLI_NB = sklearn_bernoulli_nb.RIVAL
SEARCH = sklearn_logistic_cv.RIVAL

DENSE = (*sklearn_logistic.solvers(), *glum.solvers("binomial"))
SEVERAL = sklearn_logistic.solvers(leave_out="liblinear")
# The others build the Hessian: 20 GB.
WIDE = sklearn_logistic.solvers(leave_out="newton-cholesky")
FACTORS = sklearn_logistic.solvers(form=one_hot)
COUNTED_FACTORS = sklearn_poisson.solvers(form=one_hot)

SIZES = ("100,000 x 10", "100,000 x 50", "1,000,000 x 20", "200,000 x 200", "50,000 x 500")
INFERENCE = "200,000 x 30 independent"


def large(ours: Contender, rival: Contender, data: str, faster: float) -> Iterator[Case]:
    """Everything measured on one large data set: fit, predict, agreement and memory."""
    yield Fit(ours, rival, data, at_least(faster))
    yield Predict(ours, rival, data, at_least(1))
    yield PredictOne(ours, rival, data, at_least(5))
    yield Agreement(ours, rival, data, at_most(1e-9))
    yield Memory(ours, rival, data, at_most(0.2))


def equal(
    ours: Contender, solvers: tuple[Solver, ...], problem: Problem, faster: float
) -> Iterator[Case]:
    """Fit and memory at equal accuracy."""
    yield EqualFit(ours, problem, at_least(faster), solvers)
    yield EqualMemory(ours, problem, at_most(0.2), solvers)


def factors(
    ours: Contender, native: tuple[Solver, ...], encoded: tuple[Solver, ...], problem: Problem
) -> Iterator[Case]:
    """Categorical columns, which glum takes natively and scikit-learn as zeros and ones."""
    yield EqualFit(ours, problem, at_least(1), native, "against native factors")
    yield EqualFit(ours, problem, at_least(5), encoded, "against one-hot")
    yield EqualMemory(ours, problem, at_most(0.2), native)


def inference(ours: Contender, rival: Contender, loss: losses.Loss) -> Iterator[Case]:
    """Standard errors and the summary of a maximum likelihood fit."""
    problem = Problem(INFERENCE, loss, prior=0.0)
    yield WithErrors(ours, problem, at_most(1.5))
    yield WithSummary(ours, problem, at_least(10), rival)


GENERATIVE: tuple[Case, ...] = (
    FitWithin(SHARED, gram.RIVAL, "500,000 x 50", at_most(2)),
    *large(SHARED, LDA, "500,000 x 50", faster=5),
    *large(FULL, QDA, "500,000 x 50", faster=3),
    *large(DIAGONAL, GAUSSIAN_NB, "500,000 x 50", faster=1.5),
    FitWithin(SHARED, gram.RIVAL, "100,000 x 200", at_most(2)),
    *large(SHARED, LDA, "100,000 x 200", faster=5),
    *large(FULL, QDA, "100,000 x 200", faster=3),
    *large(DIAGONAL, GAUSSIAN_NB, "100,000 x 200", faster=1.5),
    *large(BERNOULLI, BERNOULLI_NB, "500,000 x 100 bits", faster=1),
    *large(BERNOULLI, BERNOULLI_NB, "200,000 x 10,000 sparse bits", faster=1),
    Fit(SHARED, LDA, "iris, 150 x 4"),
    Fit(FULL, QDA, "iris, 150 x 4"),
    Fit(DIAGONAL, GAUSSIAN_NB, "iris, 150 x 4"),
)

DISCRIMINATIVE: tuple[Case, ...] = (
    *(
        case
        for size in SIZES
        for columns in ("independent", "correlated")
        for case in equal(
            ours.LOGISTIC, DENSE, Problem(f"{size} {columns}", losses.LOGISTIC), faster=3
        )
    ),
    *(
        EqualFit(
            ours.LOGISTIC, Problem(f"1,000 x 20 {columns}", losses.LOGISTIC), at_least(1), DENSE
        )
        for columns in ("independent", "correlated")
    ),
    *equal(ours.SOFTMAX, SEVERAL, Problem("100,000 x 50, 5 classes", losses.SOFTMAX), faster=3),
    *equal(ours.SOFTMAX, SEVERAL, Problem("50,000 x 20, 20 classes", losses.SOFTMAX), faster=3),
    *equal(ours.LOGISTIC, WIDE, Problem("100,000 x 50,000 words", losses.LOGISTIC), faster=1),
    *factors(
        ours.BINOMIAL_GLM,
        glum.solvers("binomial", form=as_made),
        FACTORS,
        Problem("600,000 factors, two classes", losses.LOGISTIC, design=one_hot),
    ),
    *factors(
        ours.POISSON_GLM,
        glum.solvers("poisson", form=as_made),
        COUNTED_FACTORS,
        Problem("600,000 factors, counts", losses.POISSON, design=one_hot),
    ),
    *inference(ours.LIKELY_LOGISTIC, statsmodels.LOGIT, losses.LOGISTIC),
    *inference(ours.LIKELY_PROBIT, statsmodels.PROBIT, losses.PROBIT),
    PredictOne(ours.LOGISTIC, sklearn_logistic.RIVAL, "100,000 x 50 independent", at_least(10)),
    PredictOne(ours.SOFTMAX, sklearn_logistic.RIVAL, "100,000 x 50, 5 classes", at_least(10)),
)

BAYESIAN: tuple[Case, ...] = (
    *(
        case
        for columns in ("independent", "correlated")
        for case in (
            WithPosterior(ours.LAPLACE, ours.LOGISTIC, f"200,000 x 50 {columns}", at_most(1.5)),
            WithPosterior(ours.EVIDENCE, ours.LOGISTIC, f"200,000 x 50 {columns}", at_most(4)),
        )
    ),
    *(
        AgainstSearch(ours.EVIDENCE, SEARCH, f"{data}, 20,000 held out", at_least(20))
        for data in (
            "20,000 x 30 independent",
            "20,000 x 30 correlated",
            "200,000 x 50 independent",
        )
    ),
    DrawsPerSecond(ours.MONTE_CARLO, nutpie.RIVAL, "20,000 x 20 independent", at_least(10)),
    DrawsPerSecond(ours.MONTE_CARLO, nutpie.RIVAL, "20,000 x 20 correlated", at_least(10)),
)

FROM_FILES: tuple[Case, ...] = tuple(
    case
    for contender, n_classes in (
        (ours.LOGISTIC, 2),
        (ours.SOFTMAX, 4),
        (SHARED, 4),
    )
    for case in (
        FilePass(contender, "20,000,000 x 20 in Parquet", 20_000_000, n_classes, at_least(0.7)),
        FileFit(contender, "20,000,000 x 20 in Parquet", 20_000_000, n_classes, at_least(0.7)),
        FileMemory(contender, "20,000,000 x 20 in Parquet", 20_000_000, n_classes, at_most(700)),
    )
)

ON_A_CLUSTER: tuple[Case, ...] = (
    ClusterPass(ours.LOGISTIC, "2,000,000 x 50 in Dask", 2_000_000, at_most(1.5)),
    ClusterHessian(ours.LOGISTIC, "2,000,000 x 50 in Dask", 2_000_000, at_most(1.5)),
)

DECISIONS: tuple[Case, ...] = (
    DecideTime(1_000_000, at_most(1)),
    CompareTime("20,000 x 30 independent", at_least(3)),
    CompareTime("20,000 x 30 independent", without_search=True),
)

IMPORTS: tuple[Case, ...] = (
    ImportTime("import posteriori", at_most(0.3)),
    ImportTime("from posteriori import GaussianClassifier", at_most(0.3)),
)

CASES = (*GENERATIVE, *DISCRIMINATIVE, *BAYESIAN, *FROM_FILES, *ON_A_CLUSTER, *DECISIONS, *IMPORTS)
