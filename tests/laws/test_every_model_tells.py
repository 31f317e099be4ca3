"""Every model tells what was fitted: parameters, one line, a page, and rows with its answers."""

import warnings

import numpy as np
import pytest
from registry import ENTRIES
from samples import frame_of, rows_for

from posteriori.errors import PosterioriWarning


def fitted(entry):
    rows = rows_for(entry, n=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PosterioriWarning)
        return entry.make(rows.classes).fit(frame_of(rows.X), rows.y), rows


@pytest.mark.parametrize("entry", ENTRIES, ids=str)
def test_every_model_tells_of_its_fit(entry):
    model, rows = fitted(entry)
    name = type(model).__name__
    table = model.tidy()
    assert next(iter(table.columns)) == "term"
    assert np.isfinite(table["estimate"]).all()
    line = model.glance()
    assert len(line) == 1
    assert line["n_parameters"][0] == model.n_parameters_
    page = model.summary()
    assert str(page).startswith(f"{name}, fitted")
    assert max(map(len, str(page).splitlines())) <= 88
    assert "<table>" in page._repr_html_()
    assert page.latex().count("begin{tabular}") == page.latex().count("end{tabular}") == 2
    assert repr(model).startswith(f"<{name}(")
    assert f"4 columns, {len(rows.classes)} classes" in repr(model)


@pytest.mark.parametrize("entry", ENTRIES, ids=str)
def test_rows_come_back_with_answers(entry):
    model, rows = fitted(entry)
    X = frame_of(rows.X)
    table = model.augment(X, rows.y)
    assert table[X.columns.tolist()].equals(X)
    assert (table["predicted"].to_numpy() == model.predict(X)).all()
    if not hasattr(model, "predict_proba"):
        assert list(table.columns) == [*X.columns, "predicted"]
        return
    proba = model.predict_proba(X)
    shown = table[[f"p_{label}" for label in model.classes_]].to_numpy()
    np.testing.assert_allclose(shown, proba, rtol=1e-9, atol=1e-300)
    own = np.searchsorted(model.classes_, rows.y)
    np.testing.assert_allclose(
        np.exp(-table["log_loss"]), proba[np.arange(len(own)), own], rtol=1e-9, atol=1e-300
    )
