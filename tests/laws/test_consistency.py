"""Different outputs of a model agree with each other."""

import numpy as np
import pytest
from samples import allows_missing, fitted, has_proba, is_generative, is_linear, over, rows_for
from scipy.special import logsumexp

in_two_and_three_classes = pytest.mark.parametrize("classes", [2, 3])


@over()
@in_two_and_three_classes
def test_probabilities_activations_and_predictions_agree(entry, classes):
    rows = rows_for(entry, classes=classes)
    model, K = fitted(entry, rows), len(rows.classes)
    activation = model.decision_function(rows.new)
    assert activation.shape == ((len(rows.new),) if K == 2 else (len(rows.new), K))
    codes = (activation > 0).astype(int) if K == 2 else activation.argmax(axis=1)
    assert model.predict(rows.new).tolist() == model.classes_[codes].tolist()
    if not has_proba(entry):
        return
    p, logs = model.predict_proba(rows.new), model.predict_log_proba(rows.new)
    assert p.shape == (len(rows.new), K)
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=0, atol=1e-14)
    np.testing.assert_allclose(np.exp(logs), p, rtol=0, atol=1e-12)
    if hasattr(model, "estimators_"):  # several classifiers vote
        return
    assert model.predict(rows.new).tolist() == model.classes_[p.argmax(axis=1)].tolist()
    if K == 2:
        for logarithm, a in ((logs[:, 1], activation), (logs[:, 0], -activation)):
            np.testing.assert_allclose(logarithm, entry.log_probability(a), rtol=1e-9, atol=1e-9)
    else:
        odds = logs - logs[:, :1]
        np.testing.assert_allclose(activation - activation[:, :1], odds, rtol=1e-9, atol=1e-9)


@over(lambda entry: not entry.averages)
@in_two_and_three_classes
def test_coefficients_give_the_activations(entry, classes):
    rows = rows_for(entry, classes=classes)
    model = fitted(entry, rows)
    if not is_linear(model):
        pytest.skip("not linear")
    K, d = len(rows.classes), rows.X.shape[1]
    assert model.coef_.shape == ((1, d) if K == 2 else (K, d))
    assert model.intercept_.shape == ((1,) if K == 2 else (K,))
    found = rows.new @ model.coef_.T + model.intercept_
    activation = model.decision_function(rows.new)
    if K == 2:
        np.testing.assert_allclose(found[:, 0], activation, rtol=1e-9, atol=1e-9)
        return
    found, activation = (a - a[:, :1] for a in (found, activation))  # up to a constant of the row
    np.testing.assert_allclose(found, activation, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(model.coef_.sum(axis=0), 0, atol=1e-9)


@over(is_generative)
@in_two_and_three_classes
def test_densities_and_priors_make_the_posterior(entry, classes):
    """p(C_k|x) = p(x|C_k) p(C_k) / p(x) (4.57)."""
    rows = rows_for(entry, classes=classes)
    model = fitted(entry, rows)
    densities = [
        model.with_priors(certain).score_samples(rows.new) for certain in np.eye(len(rows.classes))
    ]
    joint = np.column_stack(densities) + np.log(model.priors_)
    evidence = logsumexp(joint, axis=1)
    np.testing.assert_allclose(model.score_samples(rows.new), evidence, rtol=1e-10, atol=1e-10)
    found = np.exp(joint - evidence[:, None])
    np.testing.assert_allclose(found, model.predict_proba(rows.new), rtol=0, atol=1e-10)


@over(is_generative)
@in_two_and_three_classes
def test_other_priors_are_a_fit_with_those_priors(entry, classes):
    rows = rows_for(entry, classes=classes)
    model, K = fitted(entry, rows), len(rows.classes)
    before = model.predict_proba(rows.new)
    priors = np.arange(1.0, K + 1) / np.arange(1.0, K + 1).sum()
    again = entry.make(rows.classes).set_params(priors=priors).fit(rows.X, rows.y)
    named = dict(zip(rows.classes, priors, strict=True))
    for other in (model.with_priors(priors), model.with_priors(named)):
        for name in ("predict_proba", "score_samples", "decision_function"):
            found, expected = getattr(other, name)(rows.new), getattr(again, name)(rows.new)
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(model.predict_proba(rows.new), before)
    p = model.with_priors([0.0, *[1 / (K - 1)] * (K - 1)]).predict_proba(rows.new)
    assert (p[:, 0] == 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=0, atol=1e-14)


@over(allows_missing)
def test_missing_entries_never_give_nan(entry):
    rows = rows_for(entry)
    new = rows.new.copy()
    new[np.random.default_rng(0).uniform(size=new.shape) < 0.4] = np.nan
    new[0] = np.nan
    model = fitted(entry, rows)
    p = model.predict_proba(new)
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=0, atol=1e-14)
    assert not np.isnan(model.predict_log_proba(new)).any()
    if is_generative(entry):  # a row without entries has the priors
        assert np.isfinite(model.score_samples(new)).all()
        np.testing.assert_allclose(p[0], model.priors_, atol=1e-12)
        np.testing.assert_allclose(model.score_samples(new[:1]), 0.0, atol=1e-12)
