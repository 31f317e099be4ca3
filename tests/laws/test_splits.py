"""Any split of the rows gives the pooled fit, in any order."""

from dataclasses import dataclass

import numpy as np
import pytest
from samples import (
    allows_missing,
    assert_same_outputs,
    fitted,
    is_from_sums,
    outputs,
    over,
    rows_for,
)

from posteriori import NaiveBayes
from posteriori.errors import InfiniteValueError, ParameterError
from posteriori.rows.in_memory import MemoryRows, read_rows


@dataclass(frozen=True)
class InBlocks(MemoryRows):
    """Rows that are summed a few at a time."""

    entries: int = 1

    def map_sum(self, kernel, *, block_entries=None):
        return super().map_sum(kernel, block_entries=self.entries)


# A part alone may have too few rows or classes; the whole has enough.
pytestmark = [
    pytest.mark.filterwarnings("ignore::posteriori.errors.SingularCovarianceWarning"),
    pytest.mark.filterwarnings("ignore::posteriori.errors.RankDeficiencyWarning"),
    pytest.mark.filterwarnings("ignore::posteriori.errors.IdentifiabilityWarning"),
]


def _parts(n, parts, seed):
    return np.array_split(np.random.default_rng(seed).permutation(n), parts)


@over(lambda entry: entry.from_rows)
@pytest.mark.parametrize(
    ("entries", "weighted"), [(1, True), (40, False)], ids=["one row", "ten rows"]
)
def test_rows_in_any_blocks_make_the_pooled_fit(entry, entries, weighted):
    rows = rows_for(entry)
    weight = np.random.default_rng(6).choice([0.0, 0.5, 2.0], size=len(rows.X))
    given = {"sample_weight": weight} if weighted else {}
    source = InBlocks(**vars(read_rows(rows.X, rows.y, **given)), entries=entries)
    model = entry.make(rows.classes).fit(source)
    assert_same_outputs(outputs(fitted(entry, rows, **given), rows.new), outputs(model, rows.new))


@over(is_from_sums)
@pytest.mark.parametrize("parts", [2, 40])
def test_partial_fits_make_the_pooled_fit(entry, parts):
    """The first batch names the classes, unless each batch is one row; missing entries add up."""
    rows = rows_for(entry, n=40)
    model = entry.make(rows.classes)
    if allows_missing(entry) and isinstance(model, NaiveBayes):
        rows.X[np.random.default_rng(5).uniform(size=rows.X.shape) < 0.15] = np.nan
    for part in _parts(len(rows.X), parts, 0):
        classes = rows.classes if parts == 2 else None
        model.partial_fit(rows.X[part], rows.y[part], classes=classes)
    assert_same_outputs(outputs(fitted(entry, rows), rows.new), outputs(model, rows.new))


@over(is_from_sums)
def test_sums_of_statistics_make_the_pooled_fit(entry):
    rows = rows_for(entry)
    sums = [
        entry.make(rows.classes)
        .partial_fit(rows.X[part], rows.y[part], classes=rows.classes)
        .statistics_
        for part in _parts(len(rows.X), 5, 3)
    ]
    expected = outputs(fitted(entry, rows), rows.new)
    model = type(entry.estimator)
    settings = entry.make(rows.classes).get_params(deep=False)
    for total in (sum(sums), sum(sums[::-1]), sum(sums[:2]) + sum(sums[2:])):
        merged = model.from_statistics(total, **settings)
        assert_same_outputs(expected, outputs(merged, rows.new))


def _wrong_for_more_classes(model):
    """A setting that cannot be honoured once a fourth class has come."""
    wrong = {"priors": [0.2, 0.3, 0.5], "coding": "fisher", "n_components": 9}
    return next((name, value) for name, value in wrong.items() if name in model.get_params())


@over(is_from_sums)
def test_a_failed_batch_leaves_the_model_as_it_was(entry):
    rows = rows_for(entry)
    model = fitted(entry, rows)
    before = outputs(model, rows.new)
    spoilt = rows.X[:10].copy()
    spoilt[4, 1] = np.inf
    with pytest.raises(InfiniteValueError):
        model.partial_fit(spoilt, rows.y[:10])
    name, wrong = _wrong_for_more_classes(model)
    right = model.get_params()[name]
    model.set_params(**{name: wrong})
    with pytest.raises(ParameterError):
        model.partial_fit(rows.X[:10], np.full(10, 7))
    model.set_params(**{name: right})
    assert_same_outputs(before, outputs(model, rows.new), tolerance=0)
    model.partial_fit(rows.X[:10], rows.y[:10])
    again = np.concatenate([np.arange(len(rows.X)), np.arange(10)])
    pooled = entry.make(rows.classes).fit(rows.X[again], rows.y[again])
    assert_same_outputs(outputs(pooled, rows.new), outputs(model, rows.new))


@over(is_from_sums, lambda entry: entry.kind == "real" and not entry.most_classes)
def test_a_class_that_is_named_but_never_comes_is_never_predicted(entry):
    rows = rows_for(entry)
    plain = entry.make([0, 1, 2]).partial_fit(rows.X[rows.y < 2], rows.y[rows.y < 2])
    model = entry.make([0, 1, 2])
    model.partial_fit(rows.X[rows.y < 2], rows.y[rows.y < 2], classes=[0, 1, 2])
    expected, found = outputs(plain, rows.new), outputs(model, rows.new)
    del expected["decision_function"], found["decision_function"]
    for name, values in found.items():
        there = values[:, :2] if values.ndim == 2 else values
        np.testing.assert_allclose(there, expected[name], rtol=1e-10, atol=1e-10, err_msg=name)
    assert found["predict"].max() < 2
