"""Copies are the same to the last bit, fits forget earlier ones, inputs stay untouched."""

import copy
import pickle

import pandas as pd
from samples import assert_same_outputs, fitted, is_from_sums, outputs, over, rows_for
from sklearn.base import clone


@over()
def test_copies_give_the_same_bits(entry):
    rows = rows_for(entry)
    model = fitted(entry, rows)
    expected = outputs(model, rows.new)
    for same in (pickle.loads(pickle.dumps(model)), copy.copy(model), copy.deepcopy(model)):
        assert_same_outputs(expected, outputs(same, rows.new), tolerance=0)
    other = clone(model)
    assert repr(other.get_params()) == repr(model.get_params())
    assert not hasattr(other, "classes_")


@over(is_from_sums)
def test_adding_rows_to_a_copy_leaves_the_original(entry):
    rows = rows_for(entry)
    model = fitted(entry, rows)
    before = outputs(model, rows.new)
    copy.copy(model).partial_fit(rows.X[:30], rows.y[:30])
    assert_same_outputs(before, outputs(model, rows.new), tolerance=0)


@over()
def test_a_fit_forgets_earlier_ones(entry):
    first, second = rows_for(entry, n=60), rows_for(entry, classes=2, seed=1)
    fresh = entry.make(second.classes).fit(second.X, second.y)
    model = entry.make(first.classes).fit(pd.DataFrame(first.X, columns=list("abcd")), first.y)
    assert model.feature_names_in_.tolist() == list("abcd")
    model.fit(second.X, second.y)
    assert_same_outputs(outputs(fresh, second.new), outputs(model, second.new), tolerance=0)
    assert sorted(vars(model)) == sorted(vars(fresh))


@over()
def test_fitted_arrays_are_read_only_or_copies(entry):
    rows = rows_for(entry)
    model = fitted(entry, rows)
    before = outputs(model, rows.new)
    for values in outputs(model, rows.new).values():
        values[:] = 0
    for name in ("coef_", "intercept_", "means_", "covariances_", "priors_", "scalings_"):
        try:
            values = getattr(model, name)
        except AttributeError:
            continue
        if values.flags.writeable:
            values[:] = 0
    assert_same_outputs(before, outputs(model, rows.new), tolerance=0)
