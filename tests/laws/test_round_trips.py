"""Copies are the same to the last bit, fits forget what came before, and inputs stay untouched."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from samples import answers, assert_same_answers, fitted, has_proba, is_from_sums, over, rows_for
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

COPIES = {
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@over()
@pytest.mark.parametrize("same", COPIES.values(), ids=COPIES)
def test_copies_give_the_same_bits(entry, same):
    rows = rows_for(entry)
    model = fitted(entry, rows)
    assert_same_answers(answers(model, rows.new), answers(same(model), rows.new), tolerance=0)


@over(is_from_sums)
def test_a_copy_goes_its_own_way(entry):
    rows = rows_for(entry)
    model = fitted(entry, rows)
    before = answers(model, rows.new)
    copy.copy(model).partial_fit(rows.X[:30], rows.y[:30])
    assert_same_answers(before, answers(model, rows.new), tolerance=0)


@over()
def test_clones_have_the_same_parameters_and_fit_the_same(entry):
    rows = rows_for(entry)
    model = fitted(entry, rows)
    other = clone(model)
    assert repr(other.get_params()) == repr(model.get_params())
    assert not hasattr(other, "classes_")
    assert_same_answers(
        answers(model, rows.new), answers(other.fit(rows.X, rows.y), rows.new), tolerance=0
    )


@over()
def test_a_fit_leaves_no_trace_of_the_one_before(entry):
    first, second = rows_for(entry, n=60, d=6), rows_for(entry, classes=2, seed=1)
    fresh = entry.make(second.classes).fit(second.X, second.y)
    model = entry.make(first.classes).fit(first.X, first.y)
    if hasattr(model, "score_samples"):
        answers(model, first.new)  # whatever is computed at prediction only
    model.fit(second.X, second.y)
    assert_same_answers(answers(fresh, second.new), answers(model, second.new), tolerance=0)
    assert sorted(vars(model)) == sorted(vars(fresh))


@over()
def test_names_of_columns_are_forgotten_with_their_fit(entry):
    rows = rows_for(entry)
    model = entry.make(rows.classes)
    model.fit(pd.DataFrame(rows.X, columns=list("abcd")), rows.y)
    assert model.feature_names_in_.tolist() == list("abcd")
    model.fit(rows.X, rows.y)
    assert not hasattr(model, "feature_names_in_")
    model.predict(rows.new)


@over()
@pytest.mark.parametrize("order", ["C", "F"])
def test_inputs_are_left_alone(entry, order):
    rows = rows_for(entry)
    X, y, weight = np.array(rows.X, order=order), rows.y.copy(), np.linspace(0, 2, len(rows.X))
    new, given = np.array(rows.new, order=order), weight.copy()
    parameters = repr(entry.estimator.get_params())
    model = entry.make(rows.classes).fit(X, y, sample_weight=weight)
    answers(model, new)
    np.testing.assert_array_equal(X, rows.X)
    np.testing.assert_array_equal(y, rows.y)
    np.testing.assert_array_equal(weight, given)
    np.testing.assert_array_equal(new, rows.new)
    if entry.for_classes is None:
        assert repr(model.get_params()) == parameters


@over()
def test_read_only_inputs_will_do(entry):
    rows = rows_for(entry)
    for array in (rows.X, rows.y, rows.new):
        array.flags.writeable = False
    model = fitted(entry, rows, sample_weight=_read_only(np.ones(len(rows.X))))
    answers(model, rows.new)


def _read_only(array):
    array.flags.writeable = False
    return array


@over()
def test_answers_are_the_callers_own(entry):
    """Writing into an answer does not change the model."""
    rows = rows_for(entry)
    model = fitted(entry, rows)
    before = answers(model, rows.new)
    for values in answers(model, rows.new).values():
        values[:] = 0
    for name in ("coef_", "intercept_", "covariances_"):
        try:
            values = getattr(model, name)
        except AttributeError:
            continue
        if values.flags.writeable:
            values[:] = 0
    assert_same_answers(before, answers(model, rows.new), tolerance=0)


@over(lambda entry: entry.for_classes is None)
def test_works_in_scikit_learns_machinery(entry):
    rows = rows_for(entry)
    pipe = make_pipeline(FunctionTransformer(), clone(entry.estimator)).fit(rows.X, rows.y)
    assert pipe.predict(rows.new).tolist() == fitted(entry, rows).predict(rows.new).tolist()
    scores = cross_val_score(pipe, rows.X, rows.y, cv=3)
    assert (scores > 1 / len(rows.classes)).all()
    step = type(entry.estimator).__name__.lower()
    name, value = next(iter(entry.estimator.get_params(deep=False).items()))
    search = GridSearchCV(pipe, {f"{step}__{name}": [value]}, cv=3).fit(rows.X, rows.y)
    assert search.best_score_ == pytest.approx(scores.mean())


@over(has_proba, lambda entry: entry.for_classes is None)
def test_can_be_calibrated(entry):
    rows = rows_for(entry)
    p = CalibratedClassifierCV(clone(entry.estimator), cv=3).fit(rows.X, rows.y)
    np.testing.assert_allclose(p.predict_proba(rows.new).sum(axis=1), 1.0, atol=1e-12)
