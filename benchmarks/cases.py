"""The table of cases. A new one is a line here."""

from collections.abc import Iterator

from benchmarks.contender import Contender
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
from benchmarks.result import at_least, at_most
from benchmarks.rivals import (
    gram,
    sklearn_bernoulli_nb,
    sklearn_gaussian_nb,
    sklearn_lda,
    sklearn_qda,
)

LDA = sklearn_lda.RIVAL
QDA = sklearn_qda.RIVAL
GAUSSIAN_NB = sklearn_gaussian_nb.RIVAL
BERNOULLI_NB = sklearn_bernoulli_nb.RIVAL


def large(ours: Contender, rival: Contender, data: str, faster: float) -> Iterator[Case]:
    """Everything measured on one large data set: fit, predict, agreement and memory."""
    yield Fit(ours, rival, data, at_least(faster))
    yield Predict(ours, rival, data, at_least(1))
    yield PredictOne(ours, rival, data, at_least(5))
    yield Agreement(ours, rival, data, at_most(1e-9))
    yield Memory(ours, rival, data, at_most(0.2))


CASES: tuple[Case, ...] = (
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
    ImportTime("import posteriori", at_most(0.3)),
    ImportTime("from posteriori import GaussianClassifier", at_most(0.3)),
)
