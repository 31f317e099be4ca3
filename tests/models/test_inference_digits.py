"""Every number of inference at 50 digits, for each link and each kind of target and row."""

from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import mpmath as mp
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from inference_oracle import Binary, Exact, Softmax, cauchy, gumbel, logistic, normal
from noisy_fits import polished
from sklearn.datasets import load_iris

from posteriori import LogisticRegression, ProbitRegression, ThresholdRegression

LEVEL = 0.9
BINARY = {
    "logit": (LogisticRegression(), logistic),
    "probit": (ProbitRegression(), normal),
    "cauchy": (ThresholdRegression(noise="cauchy"), cauchy),
    "gumbel": (ThresholdRegression(noise="gumbel_r"), gumbel),
}
KINDS = ("plain", "weights", "offset", "no intercept", "factor", "soft", "counts", "prior")


@dataclass
class Case:
    """What our fit receives, and the same as plain numbers."""

    X: Any
    y: Any
    rows: Any
    target: Any
    settings: dict = field(default_factory=dict)
    given: dict = field(default_factory=dict)
    precision: Any = 0.0
    new: float = 0.0


@cache
def spector():
    data = sm.datasets.spector.load_pandas()
    return data.exog, data.endog.to_numpy().astype(int)


@cache
def flowers():
    X, y = load_iris(return_X_y=True)
    noise = np.random.default_rng(0).normal(size=(30, 2))
    return X[::5, :2] + noise, y[::5]


def with_ones(X):
    return np.column_stack([np.ones(len(X)), X])


def case_of(kind, X, y, K):
    """One way to pass rows and targets."""
    random = np.random.default_rng(5)
    n, columns = len(y), np.asarray(X, dtype=float)
    t = y if K == 2 else np.eye(K)[y]
    plain = Case(X, y, with_ones(columns), t)
    if kind == "weights":
        weight = random.integers(0, 4, n) + 0.5
        plain.given = {"sample_weight": weight}
    if kind == "offset":
        plain.given = {"offset": random.normal(size=n if K == 2 else (n, K)) / 2}
        plain.new = 0.3 if K == 2 else 0.0
    if kind == "no intercept":
        plain.rows, plain.settings = columns, {"fit_intercept": False}
    if kind == "factor":
        frame = pd.DataFrame(columns[:, :1], columns=["x"])
        frame["level"] = np.array(["low", "mid", "top"])[(np.arange(n) * 7 // 5) % 3]
        plain.X = frame
        codes = np.column_stack([frame["level"] == name for name in ("mid", "top")])
        plain.rows = with_ones(np.column_stack([columns[:, 0], codes]))
    if kind in ("soft", "counts"):
        soft = 0.6 * np.eye(K)[y] + 0.4 * random.dirichlet(np.ones(K), n)
        if kind == "counts":
            trials = random.integers(1, 9, n)
            soft = np.stack(
                [random.multinomial(m, p) / m for m, p in zip(trials, soft, strict=True)]
            )
            plain.given = {"sample_weight": trials}
        plain.y, plain.target = soft, soft[:, 1] if K == 2 else soft
    if kind == "prior":
        plain.settings = {"prior": 0.5}
    return plain


def check(model, exact, case, kind, own):
    """All numbers of a fit; `own` is the curvature that the model's errors come from."""
    close = {"rtol": 1e-8, "atol": 0}
    quantile = mp.sqrt(2) * mp.erfinv(mp.mpf(LEVEL))
    w = exact.w
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
            flat = [[float(covariance[i, j]) for j in range(len(w))] for i in range(len(w))]
            np.testing.assert_allclose(
                model.coef_covariance_, flat, rtol=1e-8, atol=1e-10 * np.abs(flat).max()
            )
    _check_goodness(model, exact)
    ends = model.tidy(LEVEL, intervals="profile")
    j = KINDS.index(kind) % len(w)  # one each, which makes all of them together
    for name, side in (("conf_low", -1), ("conf_high", 1)):
        end = exact.profile_end(j, quantile**2 / 2, ends[name][j])
        assert (end - w[j]) * side > 0
        assert ends[name][j] - w[j] == pytest.approx(float(end - w[j]), rel=1e-8)
    offset = {"offset": np.full(3, case.new)} if case.new else {}
    some = model.predict_interval(case.X[:3], LEVEL, **offset)
    wanted = [exact.interval(row, case.new, quantile, own) for row in case.rows[:3]]
    np.testing.assert_allclose(some.reshape(np.shape(wanted)), wanted, **close)


def _check_goodness(model, exact):
    value, saturated = exact.log_likelihood(exact.w), exact.saturated()
    p, n = len(exact.w), exact.n
    for found, wanted in (
        (model.log_likelihood_, value),
        (model.deviance_, 2 * (saturated - value)),
        (model.null_deviance_, 2 * (saturated - _null(exact))),
        (model.aic_, 2 * (p - value)),
        (model.bic_, p * mp.log(n) - 2 * value),
    ):
        assert found == pytest.approx(float(wanted), rel=1e-10)


def _null(exact):
    """ln p of the best model with the intercepts alone, or with nothing."""
    q = len(exact.w) // exact.free
    if any(row[0] != 1 for row in exact.rows):
        return exact.log_likelihood([mp.mpf(0)] * len(exact.w))
    alone = Exact(
        exact.loss,
        [row[:1] for row in exact.rows],
        exact.target,
        np.zeros(len(exact.w) // q),
        exact.weight,
        exact.offset,
    )
    return alone.log_likelihood(alone.w)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("logit", "plain"),
        ("logit", "weights"),
        ("logit", "soft"),
        ("logit", "prior"),
        ("probit", "offset"),
        ("probit", "factor"),
        ("probit", "counts"),
        ("cauchy", "no intercept"),
        ("gumbel", "weights"),
        ("gumbel", "offset"),
    ],
)
def test_two_classes_have_the_numbers_of_fifty_digits(name, kind):
    model, link = BINARY[name]
    X, y = spector()
    case = case_of(kind, X.iloc[:, :2].to_numpy(), y, 2)
    model = type(model)(**{**model.get_params(), **case.settings})
    model.fit(case.X, case.y, **case.given)
    start = [*(model.intercept_ if "fit_intercept" not in case.settings else []), *model.coef_[0]]
    exact = _exact(Binary(link), case, start)
    check(model, exact, case, kind, "observed" if name in ("logit", "probit") else "expected")


@pytest.mark.parametrize("kind", ["weights", "offset", "soft", "no intercept"])
def test_three_classes_have_the_numbers_of_fifty_digits(kind):
    X, y = flowers()
    case = case_of(kind, X, y, 3)
    model = LogisticRegression(**case.settings).fit(case.X, case.y, **case.given)
    exact = _exact(Softmax(3), case, model.tidy()["estimate"])
    check(model, exact, case, kind, "observed")


@pytest.mark.parametrize(
    ("name", "kind", "apart"), [("logit", "weights", True), ("probit", "no intercept", False)]
)
def test_jeffreys_fits_are_optima_of_the_penalised_likelihood(name, kind, apart):
    X, y = spector()
    X, y = X.iloc[::2, :2].to_numpy(), y[::2]
    if apart:
        y = (X[:, 0] + 0.01 * X[:, 1] > 3.4).astype(int)
    check_jeffreys(BINARY[name], case_of(kind, X, y, 2))


def check_jeffreys(model_and_link, case):
    model, link = model_and_link
    settings = {**model.get_params(), **case.settings, "prior": "jeffreys"}
    model = type(model)(**settings).fit(case.X, case.y, **case.given)
    found = model.tidy()
    exact = _exact(Binary(link), replace(case, settings={}), found["estimate"], jeffreys=True)
    w, hessian = polished(exact.minus_penalised, found["estimate"])
    assert np.linalg.eigvalsh(hessian)[0] > 0
    np.testing.assert_allclose(
        found["estimate"], w, rtol=1e-8, atol=1e-8 * found["std_error"].min()
    )
    exact.w = [mp.mpf(v) for v in w]
    for errors, wanted in (
        ("model", np.array(exact.covariance("expected").tolist(), dtype=float)),
        ("observed", np.linalg.inv(hessian)),
    ):
        rtol = 1e-8 if errors == "model" else 1e-6  # the latter by differences of gradients
        np.testing.assert_allclose(
            model.tidy(errors=errors)["std_error"], np.sqrt(np.diag(wanted)), rtol=rtol
        )
    assert model.log_likelihood_ == pytest.approx(float(exact.log_likelihood(exact.w)), rel=1e-8)
    value = -float(exact.minus_penalised(exact.w))
    assert model.penalised_log_likelihood_ == pytest.approx(value, rel=1e-10)


def _exact(loss, case, start, **settings):
    held = case.settings.get("prior", 0.0) * (np.arange(len(start)) > 0)
    given = case.given
    return Exact(
        loss,
        case.rows,
        case.target,
        start,
        given.get("sample_weight"),
        given.get("offset"),
        held,
        **settings,
    )
