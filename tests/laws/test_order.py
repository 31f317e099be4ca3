"""The order of rows, columns and classes does not matter, nor what the classes are called."""

import numpy as np
import pandas as pd
import pytest
from samples import (
    assert_same_outputs,
    assert_same_probabilities,
    fitted,
    is_linear,
    names_columns,
    outputs,
    over,
    rows_for,
)

CLASSES = [2, 3]


@over()
@pytest.mark.parametrize("classes", CLASSES)
def test_the_order_of_rows_does_not_matter(entry, classes):
    rows = rows_for(entry, classes=classes)
    order = np.random.default_rng(0).permutation(len(rows.X))
    model = entry.make(rows.classes).fit(rows.X[order], rows.y[order])
    assert_same_outputs(outputs(fitted(entry, rows), rows.new), outputs(model, rows.new))
    back = np.argsort(np.random.default_rng(1).permutation(len(rows.new)))
    one = outputs(model, rows.new)
    other = outputs(model, rows.new[np.argsort(back)])
    assert_same_outputs(one, {name: values[back] for name, values in other.items()})


@over(lambda entry: not names_columns(entry))
@pytest.mark.parametrize("classes", CLASSES)
def test_the_order_of_columns_moves_the_coefficients_only(entry, classes):
    rows = rows_for(entry, classes=classes)
    order = [2, 0, 3, 1]
    plain = fitted(entry, rows)
    moved = entry.make(rows.classes).fit(rows.X[:, order], rows.y)
    assert_same_probabilities(plain, moved, rows.new, rows.new[:, order])
    if is_linear(plain):
        np.testing.assert_allclose(moved.coef_, plain.coef_[:, order], rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(moved.intercept_, plain.intercept_, rtol=1e-10, atol=1e-10)


def _objects(values):
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


NAMES = {
    "whole floats": np.array([-1.0, 0.0, 5.0]),
    "unicode": np.array(["Ähre", "日本", "🦉"]),
    "tuples": _objects([(0, "a"), (0, "b"), (1, "a")]),
    "booleans": np.array([False, True]),
    "declared order": pd.Categorical.from_codes([0, 1, 2], ["cat", "ant", "bee"]),
}


@over()
@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_other_names_in_the_same_order_change_nothing(entry, names):
    rows = rows_for(entry, classes=len(names))
    plain = fitted(entry, rows)
    called = names[: len(rows.classes)]
    model = entry.make(called.tolist()).fit(rows.X, called[rows.y])
    assert model.classes_.tolist() == called.tolist()
    assert model.classes_.dtype.kind == names.dtype.kind
    assert_same_outputs(outputs(plain, rows.new), outputs(model, rows.new), tolerance=0)
    assert model.predict(rows.new).tolist() == called[plain.predict(rows.new)].tolist()


@over()
@pytest.mark.parametrize("order", [(2, 1, 0), (1, 2, 0), (1, 0)], ids=str)
def test_relabelling_the_classes_relabels_the_predictions(entry, order):
    """(2, 1, 0) and (1, 0) turn the columns of predict_proba round."""
    rows = rows_for(entry, classes=len(order))
    order = [k for k in order if k in rows.classes]
    plain = fitted(entry, rows)
    moved = entry.make(order).fit(rows.X, np.array(order)[rows.y])
    for name in ("predict_proba", "predict_log_proba"):
        if hasattr(plain, name):
            expected, found = getattr(plain, name)(rows.new), getattr(moved, name)(rows.new)
            np.testing.assert_allclose(found[:, order], expected, rtol=1e-10, atol=1e-10)
    expected, found = plain.decision_function(rows.new), moved.decision_function(rows.new)
    found = -found if len(order) == 2 else found[:, order]
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
    assert moved.predict(rows.new).tolist() == np.array(order)[plain.predict(rows.new)].tolist()
    if is_linear(plain):
        coef = -moved.coef_ if len(order) == 2 else moved.coef_[order]
        np.testing.assert_allclose(coef, plain.coef_, rtol=1e-10, atol=1e-10)
