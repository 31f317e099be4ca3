"""Soft labels: certain ones are labels, uncertain ones are rows shared among classes."""

import numpy as np
from samples import assert_same_outputs, fitted, outputs, over, rows_for, takes_soft_labels


@over(takes_soft_labels)
def test_certain_soft_labels_are_labels_with_the_names_of_their_columns(entry):
    rows = rows_for(entry)
    names = np.array(["cat", "ant", "bee"])[: len(rows.classes)]
    model = entry.make(names).fit(rows.X, np.eye(len(names))[rows.y], classes=names)
    named = entry.make(names).fit(rows.X, names[rows.y])
    assert model.classes_.tolist() == named.classes_.tolist()
    assert_same_outputs(outputs(named, rows.new), outputs(model, rows.new))


@over(takes_soft_labels)
def test_soft_labels_share_a_row_among_classes(entry):
    rows = rows_for(entry)
    K, random = len(rows.classes), np.random.default_rng(0)
    soft = random.dirichlet(np.ones(K), size=len(rows.X)) * 0.5 + 0.5 * np.eye(K)[rows.y]
    weight = random.uniform(0.5, 2.0, size=len(soft))
    model = entry.make(rows.classes).fit(rows.X, soft, sample_weight=weight)
    labels = np.tile(rows.classes, len(soft))
    shared = entry.make(rows.classes).fit(
        rows.X.repeat(K, 0), labels, sample_weight=(soft * weight[:, None]).ravel()
    )
    assert_same_outputs(outputs(shared, rows.new), outputs(model, rows.new))
    unweighted = entry.make(rows.classes).fit(rows.X, soft)
    ones = entry.make(rows.classes).fit(rows.X, soft, sample_weight=np.ones(len(soft)))
    assert_same_outputs(outputs(ones, rows.new), outputs(unweighted, rows.new))
    assert fitted(entry, rows).classes_.tolist() == model.classes_.tolist()
