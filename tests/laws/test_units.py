"""The units and the origin of a column change no probability, where the model has none of its own.

Not so for one variance in all columns, a ridge in the units of the columns, or families whose
entries are counts, states or times from zero.
"""

import numpy as np
import pytest
from samples import assert_same_probabilities as assert_same
from samples import fitted, has_free, is_generative, over, rows_for

SCALES = [1e8, 1e-8, 1e150, 1e-150]
TOLERANCE = 1e-6


@over(lambda entry: has_free(entry, "scale"))
@pytest.mark.parametrize("scale", SCALES)
def test_one_column_in_another_unit(entry, scale):
    rows = rows_for(entry)
    unit = np.ones(rows.X.shape[1])
    unit[1] = scale
    model = entry.make(rows.classes).fit(rows.X * unit, rows.y)
    assert_same(fitted(entry, rows), model, rows.new, rows.new * unit, TOLERANCE)


@over(lambda entry: has_free(entry, "zoom"))
@pytest.mark.parametrize("scale", [*SCALES, 1e300, 1e-270])
def test_all_columns_in_another_unit(entry, scale):
    rows = rows_for(entry)
    model = entry.make(rows.classes).fit(rows.X * scale, rows.y)
    assert_same(fitted(entry, rows), model, rows.new, rows.new * scale, TOLERANCE)


@over(lambda entry: has_free(entry, "scale"))
def test_columns_of_all_sizes_at_once(entry):
    rows = rows_for(entry)
    unit = np.array([1e150, 1e-150, 1e8, 1e-8])
    model = entry.make(rows.classes).fit(rows.X * unit, rows.y)
    assert_same(fitted(entry, rows), model, rows.new, rows.new * unit, TOLERANCE)


@over(lambda entry: has_free(entry, "shift"))
@pytest.mark.parametrize("which", ["one", "all"])
@pytest.mark.parametrize("sign", [1, -1])
def test_columns_shifted_by_many_spreads(entry, which, sign):
    rows = rows_for(entry)
    shift = np.zeros(rows.X.shape[1])
    column = 1 if which == "one" else slice(None)
    shift[column] = sign * 1e8 * rows.X.std(axis=0)[column]
    far = rows.X + shift
    # The digits that the shift costs are lost in the data: compare with what is left of them.
    near = far - shift
    plain = entry.make(rows.classes).fit(near, rows.y)
    model = entry.make(rows.classes).fit(far, rows.y)
    new = rows.new + shift
    assert_same(plain, model, new - shift, new, TOLERANCE)


@over(lambda entry: has_free(entry, "shift"), lambda entry: has_free(entry, "scale"))
def test_scaled_and_shifted_together(entry):
    rows = rows_for(entry)
    unit, shift = 1e150, 1e6 * rows.X.std(axis=0)
    far = (rows.X + shift) * unit
    model = entry.make(rows.classes).fit(far, rows.y)
    new = (rows.new + shift) * unit
    plain = entry.make(rows.classes).fit(far / unit - shift, rows.y)
    assert_same(plain, model, new / unit - shift, new, TOLERANCE)


@over(is_generative, lambda entry: has_free(entry, "scale"))
@pytest.mark.parametrize("scale", SCALES)
def test_a_density_scales_with_the_unit(entry, scale):
    """ln p(sx) = ln p(x) - d ln s."""
    rows = rows_for(entry)
    model = entry.make(rows.classes).fit(rows.X * scale, rows.y)
    expected = fitted(entry, rows).score_samples(rows.new) - rows.X.shape[1] * np.log(scale)
    np.testing.assert_allclose(model.score_samples(rows.new * scale), expected, rtol=1e-9)


@over(is_generative, lambda entry: has_free(entry, "scale"))
@pytest.mark.parametrize("scale", SCALES)
def test_rows_with_gaps_in_any_unit(entry, scale):
    rows = rows_for(entry)
    new = rows.new.copy()
    new[np.random.default_rng(0).uniform(size=new.shape) < 0.3] = np.nan
    unit = np.array([scale, 1.0, 1.0, 1.0])
    model = entry.make(rows.classes).fit(rows.X * unit, rows.y)
    assert_same(fitted(entry, rows), model, new, new * unit, TOLERANCE)
