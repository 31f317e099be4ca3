"""Soft labels: certain ones are labels, uncertain ones are rows shared among classes."""

import numpy as np
import pytest
from samples import answers, assert_same_answers, fitted, over, rows_for, takes_soft_labels


def _one_hot(y, K):
    return np.eye(K)[y]


@over(takes_soft_labels)
@pytest.mark.parametrize("classes", [2, 3])
def test_certain_soft_labels_are_labels(entry, classes):
    rows = rows_for(entry, classes=classes)
    soft = _one_hot(rows.y, len(rows.classes))
    model = entry.make(rows.classes).fit(rows.X, soft)
    assert model.classes_.tolist() == rows.classes
    assert_same_answers(answers(fitted(entry, rows), rows.new), answers(model, rows.new))


@over(takes_soft_labels)
@pytest.mark.parametrize("weighted", [False, True])
def test_soft_labels_share_a_row_among_classes(entry, weighted):
    rows = rows_for(entry)
    K = len(rows.classes)
    random = np.random.default_rng(0)
    soft = random.dirichlet(np.ones(K), size=len(rows.X)) * 0.5 + 0.5 * _one_hot(rows.y, K)
    weight = random.uniform(0.5, 2.0, size=len(soft)) if weighted else np.ones(len(soft))
    given = {"sample_weight": weight} if weighted else {}
    model = entry.make(rows.classes).fit(rows.X, soft, **given)
    shared = entry.make(rows.classes).fit(
        rows.X.repeat(K, 0),
        np.tile(np.arange(K), len(soft)),
        sample_weight=(soft * weight[:, None]).ravel(),
    )
    assert_same_answers(answers(shared, rows.new), answers(model, rows.new))


@over(takes_soft_labels)
def test_the_columns_of_soft_labels_can_be_named(entry):
    rows = rows_for(entry)
    names = np.array(["cat", "ant", "bee"])[: len(rows.classes)]
    soft = _one_hot(rows.y, len(names))
    model = entry.make(sorted(names.tolist())).fit(rows.X, soft, classes=names)
    called = entry.make(sorted(names.tolist())).fit(rows.X, names[rows.y])
    assert model.classes_.tolist() == called.classes_.tolist()
    assert_same_answers(answers(called, rows.new), answers(model, rows.new))
