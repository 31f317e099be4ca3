"""scikit-learn's GaussianNB, without the variance it adds by default, to compare like with like."""

from functools import partial

from sklearn.naive_bayes import GaussianNB

from benchmarks.contender import Contender

RIVAL = Contender("GaussianNB", {"": partial(GaussianNB, var_smoothing=0.0)})
