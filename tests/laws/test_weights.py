"""A weight of w is the row repeated w times; a weight of zero is no row."""

import numpy as np
import pytest
from samples import assert_same_outputs, fitted, has_free, outputs, over, rows_for
from samples import assert_same_probabilities as assert_same
from sklearn.base import clone


@over()
def test_a_weight_is_the_row_repeated(entry):
    rows = rows_for(entry)
    times = np.random.default_rng(0).integers(1, 4, size=len(rows.X))
    weighted = fitted(entry, rows, sample_weight=times)
    repeated = entry.make(rows.classes).fit(rows.X.repeat(times, 0), rows.y.repeat(times))
    assert_same_outputs(outputs(repeated, rows.new), outputs(weighted, rows.new))
    ones = fitted(entry, rows, sample_weight=np.ones(len(rows.X)))
    assert_same_outputs(outputs(fitted(entry, rows), rows.new), outputs(ones, rows.new))


@over()
@pytest.mark.parametrize("entry_there", [None, np.nan, np.inf])
def test_weight_zero_is_no_row(entry, entry_there):
    rows = rows_for(entry)
    kept = np.random.default_rng(1).uniform(size=len(rows.X)) < 0.7
    X, y = rows.X.copy(), rows.y.copy()
    if entry_there is not None:
        X[~kept] = entry_there
        y[np.flatnonzero(~kept)[:5]] = max(rows.classes) + 1  # a class of weight zero is no class
    weighted = entry.make(rows.classes).fit(X, y, sample_weight=kept.astype(float))
    assert weighted.classes_.tolist() == rows.classes
    dropped = entry.make(rows.classes).fit(rows.X[kept], rows.y[kept])
    assert_same_outputs(outputs(dropped, rows.new), outputs(weighted, rows.new))


@over(lambda entry: has_free(entry, "weight"))
@pytest.mark.parametrize("unit", [1e-3, 1e6])
def test_the_unit_of_the_weights_changes_no_probability(entry, unit):
    rows = rows_for(entry)
    weight = np.random.default_rng(2).uniform(0.2, 3.0, size=len(rows.X))
    model = entry.make(rows.classes).set_params(**entry.exactly)
    one, other = (clone(model).fit(rows.X, rows.y, weight * u) for u in (1.0, unit))
    assert_same(one, other, rows.new)
