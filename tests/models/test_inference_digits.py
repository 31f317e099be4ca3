"""Every number of inference at 50 digits, for several links and kinds of target and row."""

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import statsmodels.api as sm
from inference_oracle import Binary, Exact, Softmax, cauchy, logistic, normal
from sklearn.datasets import load_iris

from posteriori import LogisticRegression, ProbitRegression, ThresholdRegression

LEVEL = 0.9
BINARY = {  # the model, its link, and the curvature that its errors come from
    "logit": (LogisticRegression, logistic, "observed"),
    "probit": (ProbitRegression, normal, "observed"),
    "cauchy": (lambda **given: ThresholdRegression(noise="cauchy", **given), cauchy, "expected"),
}
KINDS = ("weights", "offset", "no intercept", "soft", "prior")


@dataclass
class Case:
    """What our fit receives, and the same as rows and targets of the oracle."""

    X: Any
    y: Any
    rows: Any
    target: Any
    settings: dict = field(default_factory=dict)
    given: dict = field(default_factory=dict)
    new: float = 0.0

    def exact(self, loss, start):
        precision = self.settings.get("prior", 0.0) * (np.arange(len(start)) > 0)
        weight, offset = self.given.get("sample_weight"), self.given.get("offset")
        return Exact(loss, self.rows, self.target, start, weight, offset, precision)


@cache
def spector():
    data = sm.datasets.spector.load_pandas()
    return data.exog.iloc[:, :2].to_numpy(float), data.endog.to_numpy().astype(int)


@cache
def flowers():
    X, y = load_iris(return_X_y=True)
    noise = np.random.default_rng(0).normal(size=(30, 2))
    return X[::5, :2] + noise, y[::5]


def case_of(kind, X, y, K):
    """One way to pass rows and targets."""
    random, n = np.random.default_rng(5), len(y)
    case = Case(X, y, np.column_stack([np.ones(n), X]), y if K == 2 else np.eye(K)[y])
    if kind == "weights":
        case.given = {"sample_weight": random.integers(0, 4, n) + 0.5}
    if kind == "offset":
        case.given = {"offset": random.normal(size=n if K == 2 else (n, K)) / 2}
        case.new = 0.3 if K == 2 else 0.0
    if kind == "no intercept":
        case.rows, case.settings = X, {"fit_intercept": False}
    if kind == "soft":
        trials = random.integers(1, 9, n)
        share = 0.6 * np.eye(K)[y] + 0.4 * random.dirichlet(np.ones(K), n)
        pairs = zip(trials, share, strict=True)
        case.y = np.stack([random.multinomial(m, p) / m for m, p in pairs])
        case.target = case.y[:, 1] if K == 2 else case.y
        case.given = {"sample_weight": trials}
    if kind == "prior":
        case.settings = {"prior": 0.5}
    return case


def check(model, exact, case, kind, own):
    """All numbers of a fit; `own` is the curvature that the model's errors come from."""
    quantile, w = mp.sqrt(2) * mp.erfinv(mp.mpf(LEVEL)), exact.w
    for errors in ("model", "observed", "expected", "robust"):
        found = model.tidy(LEVEL, errors=errors)
        covariance = exact.covariance({"model": own, "robust": "observed"}.get(errors, errors))
        if errors == "robust":
            covariance = covariance * exact.scores() * covariance
        error = [mp.sqrt(covariance[i, i]) for i in range(len(w))]
        z = [v / s for v, s in zip(w, error, strict=True)]
        wanted = {
            "estimate": w,
            "std_error": error,
            "statistic": z,
            "p_value": [mp.erfc(abs(v) / mp.sqrt(2)) for v in z],
            "conf_low": [v - quantile * s for v, s in zip(w, error, strict=True)],
            "conf_high": [v + quantile * s for v, s in zip(w, error, strict=True)],
        }
        for name, numbers in wanted.items():
            # An end near zero is a difference: it has digits beside the standard error.
            size = np.abs(np.array(error if "conf" in name else numbers, dtype=float))
            away = np.asarray(found[name]) - np.array(numbers, dtype=float)
            assert (abs(away) <= 1e-8 * size).all(), (errors, name)
        if errors == "model":
            flat = np.array(covariance.tolist(), dtype=float)
            np.testing.assert_allclose(
                model.coef_covariance_, flat, rtol=1e-8, atol=1e-10 * np.abs(flat).max()
            )
    check_goodness(model, exact)
    ends = model.tidy(LEVEL, intervals="profile")
    j = KINDS.index(kind) % len(w)  # one each, which makes all of them together
    for name, side in (("conf_low", -1), ("conf_high", 1)):
        assert (ends[name][j] - w[j]) * side > 0
        # An error of an end is twice that in the rise, which is about a parabola.
        rise = float(exact.profile_rise(j, ends[name][j]))
        assert rise == pytest.approx(float(quantile**2 / 2), rel=2e-8)
    offset = {"offset": np.full(3, case.new)} if case.new else {}
    some = model.predict_interval(case.X[:3], LEVEL, **offset)
    wanted = [exact.interval(row, case.new, quantile, own) for row in case.rows[:3]]
    np.testing.assert_allclose(some.reshape(np.shape(wanted)), wanted, rtol=1e-8, atol=0)


def check_goodness(model, exact):
    value, saturated = exact.log_likelihood(exact.w), exact.saturated()
    p, n = len(exact.w), exact.n
    for found, wanted in (
        (model.log_likelihood_, value),
        (model.deviance_, 2 * (saturated - value)),
        (model.null_deviance_, 2 * (saturated - exact.null_log_likelihood())),
        (model.aic_, 2 * (p - value)),
        (model.bic_, p * mp.log(n) - 2 * value),
    ):
        assert found == pytest.approx(float(wanted), rel=1e-10)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("logit", "weights"),
        ("logit", "prior"),
        ("probit", "offset"),
        ("probit", "soft"),
        ("cauchy", "no intercept"),
        ("cauchy", "weights"),
    ],
)
def test_two_classes_have_the_numbers_of_fifty_digits(name, kind):
    make, link, own = BINARY[name]
    case = case_of(kind, *spector(), 2)
    model = make(**case.settings).fit(case.X, case.y, **case.given)
    check(model, case.exact(Binary(link), model.tidy()["estimate"]), case, kind, own)


@pytest.mark.parametrize("kind", ["weights", "offset", "soft", "no intercept"])
def test_three_classes_have_the_numbers_of_fifty_digits(kind):
    case = case_of(kind, *flowers(), 3)
    model = LogisticRegression(**case.settings).fit(case.X, case.y, **case.given)
    check(model, case.exact(Softmax(3), model.tidy()["estimate"]), case, kind, "observed")
