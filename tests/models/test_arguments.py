"""Arguments of the wrong kind: an error that names them and says what they may be."""

import re

import numpy as np
import pytest
from scipy.stats import norm

from posteriori import (
    GLM,
    Adaline,
    LogisticRegression,
    Mixture,
    Perceptron,
    ProbitRegression,
    ThresholdRegression,
)
from posteriori.errors import LabelError, ParameterError, ShapeError

X = np.random.default_rng(0).standard_normal((40, 2))
Y = (X[:, 0] + np.random.default_rng(1).standard_normal(40) > 0).astype(int)

FITTED_BY_LIKELIHOOD = {
    "logistic": LogisticRegression,
    "probit": ProbitRegression,
    "threshold": ThresholdRegression,
    "glm": GLM,
    "glm of classes": lambda **given: GLM(family="bernoulli", link="probit", **given),
}

SHARED = [
    *[({"tol": tol}, "tol={!r} is out of range. Use a number between zero and one.")
      for tol in ("a", None, 0, 1.0, float("nan"), True)],
    *[({"max_iter": n},
       "max_iter={!r} is not a number of steps. Use a whole number, one or more, or None.")
      for n in ("a", 2.5, True, 0)],
    *[({"fit_intercept": flag}, "fit_intercept={!r} is not understood. Use True or False.")
      for flag in ("no", 1)],
    *[({"prior": prior},
       "prior={!r} is not understood. Use None, a number, a GaussianPrior, 'jeffreys', 'evidence' "
       "or 'ard'.")
      for prior in ("foo", np.ones(3), True)],
    *[({"prior": prior}, "prior={!r} is not a precision. Use a finite number, zero or more.")
      for prior in (-1, np.inf, np.nan)],
    *[({"handle_unknown": choice},
       "handle_unknown={!r} is not understood. Use 'error' or 'reference'.")
      for choice in ("foo", 3)],
]  # fmt: skip

OTHERS = [
    (lambda: LogisticRegression(solver=3).fit(X, Y), "solver=3 is not understood. Use 'auto', "),
    (lambda: ProbitRegression(solver=["newton"]).fit(X, Y), "solver=['newton'] is not understood"),
    (lambda: LogisticRegression(tol="a").partial_fit(X, Y), "tol='a' is out of range"),
    (lambda: Perceptron(random_state="x").fit(X, Y), "random_state='x' is not a seed"),
    (lambda: Adaline(random_state=-1).fit(X, Y), "random_state=-1 is not a seed"),
    (lambda: Perceptron(max_epochs=2.0).fit(X, Y), "max_epochs=2.0 is not a number of epochs."),
    (lambda: Mixture(0.5, [1]), "has the weights [0.5]. Give one weight above zero"),
    (lambda: Mixture([np.nan], [norm]), "has the weights [nan]. Give one weight above zero"),
    (lambda: Mixture([1.0, 1.0], [norm, norm]), "Give one weight above zero for each, with a sum"),
    (lambda: ThresholdRegression(noise=Mixture([1.0], ["foo"])).fit(X, Y), "noise='foo' is not"),
    (lambda: GLM(family="binomial").fit(X, Y), "('bernoulli' is the binomial family; counts of"),
]  # fmt: skip


@pytest.mark.parametrize("name", FITTED_BY_LIKELIHOOD)
@pytest.mark.parametrize(("given", "message"), SHARED, ids=[str(given) for given, _ in SHARED])
def test_every_model_says_which_argument_and_what_it_may_be(name, given, message):
    model = FITTED_BY_LIKELIHOOD[name](**given)
    with pytest.raises(ParameterError) as caught:
        model.fit(X, Y)
    assert str(caught.value) == message.format(*given.values()) + " [P301]"


@pytest.mark.parametrize(("call", "message"), OTHERS, ids=[message for _, message in OTHERS])
def test_other_arguments_are_named_too(call, message):
    with pytest.raises(ParameterError, match=re.escape(message)):
        call()


@pytest.mark.parametrize("level", ["a", None, 0, 1, 1.5, np.nan, True])
@pytest.mark.parametrize("name", FITTED_BY_LIKELIHOOD)
def test_a_level_is_between_zero_and_one(name, level):
    model = FITTED_BY_LIKELIHOOD[name]().fit(X, Y)
    wanted = f"level={level!r} is out of range. Use a number between zero and one. [P301]"
    for ask in (model.tidy, model.summary, lambda level: model.predict_interval(X, level=level)):
        with pytest.raises(ParameterError) as caught:
            ask(level=level)
        assert str(caught.value) == wanted


def test_labels_are_read_even_where_none_can_be_wrong():
    model = LogisticRegression().fit(X, Y)
    np.testing.assert_array_equal(model.mislabelled_probability(X, Y), np.zeros(40))
    with pytest.raises(ShapeError, match="X has 40 rows but y has 5"):
        model.mislabelled_probability(X, Y[:5])
    with pytest.raises(LabelError, match="Row 3 of y is 7, which is not among the classes given"):
        model.mislabelled_probability(X, np.where(np.arange(40) == 3, 7, Y))
