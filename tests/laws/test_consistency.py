"""What a model says in one way agrees with what it says in another."""

import numpy as np
import pytest
from samples import allows_missing, fitted, has_proba, is_generative, is_linear, over, rows_for
from scipy.special import logsumexp

CLASSES = [2, 3]


@over(has_proba)
@pytest.mark.parametrize("classes", CLASSES)
def test_probabilities_sum_to_one(entry, classes):
    rows = rows_for(entry, classes=classes)
    p = fitted(entry, rows).predict_proba(rows.new)
    assert p.shape == (len(rows.new), len(rows.classes))
    assert ((p >= 0) & (p <= 1)).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=0, atol=1e-14)


@over(has_proba)
@pytest.mark.parametrize("classes", CLASSES)
def test_log_probabilities_are_logarithms(entry, classes):
    rows = rows_for(entry, classes=classes)
    model = fitted(entry, rows)
    p, logs = model.predict_proba(rows.new), model.predict_log_proba(rows.new)
    large = p > 1e-12
    np.testing.assert_allclose(logs[large], np.log(p[large]), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(np.exp(logs), p, rtol=0, atol=1e-12)


@over()
@pytest.mark.parametrize("classes", CLASSES)
def test_the_prediction_is_the_largest_activation(entry, classes):
    rows = rows_for(entry, classes=classes)
    model = fitted(entry, rows)
    activation = model.decision_function(rows.new)
    if len(rows.classes) == 2:
        assert activation.shape == (len(rows.new),)
        codes = (activation > 0).astype(int)
    else:
        codes = activation.argmax(axis=1)
    assert model.predict(rows.new).tolist() == model.classes_[codes].tolist()


@over(has_proba)
@pytest.mark.parametrize("classes", CLASSES)
def test_activations_are_log_odds(entry, classes):
    """Where the model has one activation a class, whose softmax are the probabilities.

    Of two classes, where the noise is not logistic, its distribution function is meant.
    """
    rows = rows_for(entry, classes=classes)
    model = fitted(entry, rows)
    activation, logs = model.decision_function(rows.new), model.predict_log_proba(rows.new)
    if len(rows.classes) == 2:
        for logarithm, a in ((logs[:, 1], activation), (logs[:, 0], -activation)):
            np.testing.assert_allclose(logarithm, entry.log_probability(a), rtol=1e-9, atol=1e-9)
    elif hasattr(model, "estimators_"):
        pytest.skip("margins of several classifiers are not one softmax")
    else:
        odds = logs - logs[:, :1]
        np.testing.assert_allclose(activation - activation[:, :1], odds, rtol=1e-9, atol=1e-9)


@over(has_proba)
def test_the_prediction_is_the_most_probable_class(entry):
    rows = rows_for(entry)
    model = fitted(entry, rows)
    if hasattr(model, "estimators_"):
        pytest.skip("several classifiers vote; what they claim is shared out afterwards")
    expected = model.classes_[model.predict_proba(rows.new).argmax(axis=1)]
    assert model.predict(rows.new).tolist() == expected.tolist()


@over()
@pytest.mark.parametrize("classes", CLASSES)
def test_coefficients_give_the_activations(entry, classes):
    rows = rows_for(entry, classes=classes)
    model = fitted(entry, rows)
    if not is_linear(model) or entry.averages:
        pytest.skip("not linear")
    K, d = len(rows.classes), rows.X.shape[1]
    assert model.coef_.shape == ((1, d) if K == 2 else (K, d))
    assert model.intercept_.shape == ((1,) if K == 2 else (K,))
    found = rows.new @ model.coef_.T + model.intercept_
    activation = model.decision_function(rows.new)
    if K == 2:
        np.testing.assert_allclose(found[:, 0], activation, rtol=1e-9, atol=1e-9)
        return
    # Constants of a row are free.
    np.testing.assert_allclose(
        found - found[:, :1], activation - activation[:, :1], rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(model.coef_.sum(axis=0), 0, atol=1e-9)


@over(is_generative)
@pytest.mark.parametrize("classes", CLASSES)
def test_the_linear_function_is_the_log_density_ratio(entry, classes):
    """w_kᵀx + w_k0 - (w_jᵀx + w_j0) = ln p(x|C_k) p(C_k) - ln p(x|C_j) p(C_j)."""
    rows = rows_for(entry, classes=classes)
    model = fitted(entry, rows)
    if not is_linear(model):
        pytest.skip("not linear")
    joint = np.column_stack([_log_joint(model, k, rows.new) for k in range(len(rows.classes))])
    ratio = joint[:, 1:] - joint[:, :1]
    found = rows.new @ model.coef_.T + model.intercept_
    found = found if len(rows.classes) == 2 else found[:, 1:] - found[:, :1]
    np.testing.assert_allclose(found, ratio, rtol=1e-9, atol=1e-9)


def _log_joint(model, k, X):
    """ln p(x|C_k) p(C_k), by the density of the model in which C_k is certain."""
    certain = np.eye(len(model.classes_))[k]
    return model.with_priors(certain).score_samples(X) + np.log(model.priors_[k])


@over(is_generative)
def test_densities_and_priors_make_the_posterior(entry):
    """p(C_k|x) = p(x|C_k) p(C_k) / p(x) (4.57)."""
    rows = rows_for(entry)
    model = fitted(entry, rows)
    joint = np.column_stack([_log_joint(model, k, rows.new) for k in range(len(rows.classes))])
    evidence = logsumexp(joint, axis=1)
    np.testing.assert_allclose(model.score_samples(rows.new), evidence, rtol=1e-10, atol=1e-10)
    found = np.exp(joint - evidence[:, None])
    np.testing.assert_allclose(found, model.predict_proba(rows.new), rtol=0, atol=1e-10)


@over(is_generative)
@pytest.mark.parametrize("classes", CLASSES)
def test_other_priors_are_a_fit_with_those_priors(entry, classes):
    rows = rows_for(entry, classes=classes)
    K = len(rows.classes)
    priors = np.arange(1.0, K + 1) / np.arange(1.0, K + 1).sum()
    swapped = fitted(entry, rows).with_priors(priors)
    again = entry.make(rows.classes).set_params(priors=priors).fit(rows.X, rows.y)
    named = fitted(entry, rows).with_priors(dict(zip(rows.classes, priors, strict=True)))
    for name in ("predict_proba", "score_samples", "decision_function"):
        expected = getattr(again, name)(rows.new)
        for model in (swapped, named):
            np.testing.assert_allclose(
                getattr(model, name)(rows.new), expected, rtol=1e-12, atol=1e-12
            )


@over(is_generative)
def test_other_priors_leave_the_model_as_it_was(entry):
    rows = rows_for(entry)
    model = fitted(entry, rows)
    before = model.predict_proba(rows.new)
    model.with_priors([0.5, 0.25, 0.25])
    np.testing.assert_array_equal(model.predict_proba(rows.new), before)


@over(is_generative)
@pytest.mark.parametrize("classes", CLASSES)
def test_a_class_of_prior_zero_has_probability_zero(entry, classes):
    rows = rows_for(entry, classes=classes)
    K = len(rows.classes)
    priors = np.array([0.0, *[1 / (K - 1)] * (K - 1)])
    p = fitted(entry, rows).with_priors(priors).predict_proba(rows.new)
    assert (p[:, 0] == 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=0, atol=1e-14)


@over(has_proba, allows_missing)
@pytest.mark.parametrize("share", [0.2, 0.6])
def test_gaps_in_never_nan_out(entry, share):
    rows = rows_for(entry)
    new = rows.new.copy()
    new[np.random.default_rng(0).uniform(size=new.shape) < share] = np.nan
    new[0] = np.nan
    model = fitted(entry, rows)
    p = model.predict_proba(new)
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=0, atol=1e-14)
    assert set(model.predict(new).tolist()) <= set(rows.classes)
    assert not np.isnan(model.predict_log_proba(new)).any()
    if hasattr(model, "score_samples"):
        assert np.isfinite(model.score_samples(new)).all()


@over(is_generative, allows_missing)
def test_a_row_of_nothing_has_the_priors(entry):
    rows = rows_for(entry)
    model = fitted(entry, rows)
    nothing = np.full((1, rows.X.shape[1]), np.nan)
    np.testing.assert_allclose(model.predict_proba(nothing)[0], model.priors_, atol=1e-12)
    np.testing.assert_allclose(model.score_samples(nothing), 0.0, atol=1e-12)


@over(allows_missing)
def test_fits_to_rows_with_gaps(entry):
    rows = rows_for(entry)
    X = rows.X.copy()
    X[np.random.default_rng(2).uniform(size=X.shape) < 0.1] = np.nan
    model = entry.make(rows.classes).fit(X, rows.y)
    for name in ("predict_proba", "decision_function", "score_samples"):
        if hasattr(model, name):
            assert np.isfinite(getattr(model, name)(X)).all()
    assert model.score(rows.X, rows.y) > fitted(entry, rows).score(rows.X, rows.y) - 0.15
