"""A weight of w is the row repeated w times; a weight of zero is no row."""

import numpy as np
import pytest
from samples import answers, assert_same_answers, fitted, has_free, has_proba, over, rows_for
from samples import assert_same_probabilities as assert_same
from sklearn.base import clone


@over()
def test_weight_two_is_the_row_twice(entry):
    rows = rows_for(entry)
    times = np.random.default_rng(0).integers(1, 4, size=len(rows.X))
    weighted = fitted(entry, rows, sample_weight=times)
    repeated = entry.make(rows.classes).fit(rows.X.repeat(times, 0), rows.y.repeat(times))
    assert_same_answers(answers(repeated, rows.new), answers(weighted, rows.new))


@over()
@pytest.mark.parametrize("rubbish", [None, np.nan, np.inf, -np.inf, 1e308])
def test_weight_zero_is_no_row(entry, rubbish):
    rows = rows_for(entry)
    kept = np.random.default_rng(1).uniform(size=len(rows.X)) < 0.7
    X = rows.X.copy()
    if rubbish is not None:
        X[~kept] = rubbish
    weighted = entry.make(rows.classes).fit(X, rows.y, sample_weight=kept.astype(float))
    dropped = entry.make(rows.classes).fit(rows.X[kept], rows.y[kept])
    assert_same_answers(answers(dropped, rows.new), answers(weighted, rows.new))


@over()
def test_a_class_of_weight_zero_is_no_class(entry):
    rows = rows_for(entry)
    y = rows.y.copy()
    y[:5] = max(rows.classes) + 1
    weight = np.where(np.arange(len(y)) < 5, 0.0, 1.0)
    model = entry.make(rows.classes).fit(rows.X, y, sample_weight=weight)
    assert model.classes_.tolist() == rows.classes
    dropped = entry.make(rows.classes).fit(rows.X[5:], rows.y[5:])
    assert_same_answers(answers(dropped, rows.new), answers(model, rows.new))


@over(lambda entry: has_free(entry, "weight"))
@pytest.mark.parametrize("unit", [0.25, 1e-3, 1e6])
def test_the_unit_of_the_weights_changes_no_probability(entry, unit):
    rows = rows_for(entry)
    weight = np.random.default_rng(2).uniform(0.2, 3.0, size=len(rows.X))
    model = entry.make(rows.classes).set_params(**entry.exactly)
    one, other = (clone(model).fit(rows.X, rows.y, weight * u) for u in (1.0, unit))
    assert_same(one, other, rows.new)


@over()
def test_weights_of_one_are_no_weights(entry):
    rows = rows_for(entry)
    model = fitted(entry, rows, sample_weight=np.ones(len(rows.X)))
    assert_same_answers(answers(fitted(entry, rows), rows.new), answers(model, rows.new))


@over(has_proba, lambda entry: entry.estimator.get_params().get("threshold") != "midpoint")
def test_more_weight_on_a_class_makes_it_more_probable(entry):
    rows = rows_for(entry)
    weight = np.where(rows.y == rows.classes[0], 1.0 + 1e-3, 1.0)
    plain, heavy = fitted(entry, rows), fitted(entry, rows, sample_weight=weight)
    gain = heavy.predict_proba(rows.X).mean(axis=0) - plain.predict_proba(rows.X).mean(axis=0)
    assert gain[0] > 0
