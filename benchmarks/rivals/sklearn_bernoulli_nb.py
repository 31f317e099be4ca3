"""scikit-learn's BernoulliNB, with and without the pass that turns numbers into bits."""

from functools import partial

from sklearn.naive_bayes import BernoulliNB

from benchmarks.contender import Contender

RIVAL = Contender(
    "BernoulliNB",
    {
        "binarize=0": partial(BernoulliNB, alpha=1.0),
        "binarize=None": partial(BernoulliNB, alpha=1.0, binarize=None),
    },
)
