"""The units and the origin of a column change no probability, unless a prior is in its units."""

import numpy as np
import pytest
from samples import assert_same_probabilities as assert_same
from samples import fitted, has_free, is_generative, over, rows_for


@over(lambda entry: has_free(entry, "scale"))
@pytest.mark.parametrize(
    "unit", [[1.0, 1e150, 1.0, 1.0], [1e-150] * 4, [1e150, 1e-150, 1e8, 1e-8]], ids=str
)
def test_columns_in_other_units(entry, unit):
    rows = rows_for(entry)
    model = entry.make(rows.classes).fit(rows.X * unit, rows.y)
    plain = fitted(entry, rows)
    assert_same(plain, model, rows.new, rows.new * unit, 1e-6)
    if is_generative(entry):  # ln p(sx) = ln p(x) - ln s
        expected = plain.score_samples(rows.new) - np.log(unit).sum()
        np.testing.assert_allclose(model.score_samples(rows.new * unit), expected, rtol=1e-9)
        rows.new[np.random.default_rng(0).uniform(size=rows.new.shape) < 0.3] = np.nan
        assert_same(plain, model, rows.new, rows.new * unit, 1e-6)


@over(lambda entry: has_free(entry, "shift"))
@pytest.mark.parametrize("unit", [1.0, 1e150])
def test_columns_shifted_by_many_spreads(entry, unit):
    if unit > 1 and not has_free(entry, "scale"):
        pytest.skip("a prior in the units of the columns")
    rows = rows_for(entry)
    shift = -1e6 * rows.X.std(axis=0)
    far, new = (rows.X + shift) * unit, (rows.new + shift) * unit
    # The digits that the shift costs are lost in the data: compare with what is left of them.
    plain = entry.make(rows.classes).fit(far / unit - shift, rows.y)
    model = entry.make(rows.classes).fit(far, rows.y)
    assert_same(plain, model, new / unit - shift, new, 1e-6)
