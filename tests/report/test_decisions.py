"""What `reject_curve` and `confusion` put on the axes."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import confusion_matrix

from posteriori import decide
from posteriori.errors import LabelError, ParameterError, ShapeError
from posteriori.report.plots import confusion, reject_curve

LABELS = np.array(["ant", "bee", "cat"])
LOSS = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 3.0], [9.0, 5.0, 0.0]])


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(2)
    proba = random.dirichlet([0.7, 0.7, 0.7], 60)
    return LABELS[[random.choice(3, p=p) for p in proba]], proba


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def right_of(ax):
    """The axis at the right-hand side."""
    return next(other for other in ax.figure.axes if other is not ax)


def by_brute_force(y, proba, loss, price):
    """Errors and losses of the rows kept, and costs of all, for each number of rejected rows."""
    codes, expected = np.searchsorted(LABELS, y), proba @ loss
    action, order = expected.argmin(axis=1), np.argsort(-expected.min(axis=1))
    error, kept_loss, cost = [], [], []
    for m in range(len(y) + 1):
        kept = order[m:]
        lost = loss[codes[kept], action[kept]].sum()
        cost.append((lost + m * price) / len(y))
        if len(kept):
            error.append((action[kept] != codes[kept]).mean())
            kept_loss.append(lost / len(kept))
    return error, kept_loss, cost


def test_errors_are_those_of_the_rows_kept_when_the_least_sure_go_first(rows):
    y, proba = rows
    ax = reject_curve(y, proba)
    (line,) = ax.get_lines()
    assert_allclose(line.get_xdata(), np.arange(60) / 60)
    assert_allclose(line.get_ydata(), by_brute_force(y, proba, 1 - np.eye(3), 0)[0], atol=1e-12)
    assert ax.get_xlabel() == "share of rows rejected"
    assert ax.get_ylabel() == "error rate of the remaining rows"
    assert legend(ax) == ["error rate of the remaining rows"]


def test_costs_of_all_rows_go_from_no_rejection_to_the_price_of_it(rows):
    y, proba = rows
    ax = reject_curve(y, proba, loss=LOSS, reject_cost=0.8)
    error, _, cost = by_brute_force(y, proba, LOSS, 0.8)
    right = right_of(ax)
    assert_allclose(ax.get_lines()[0].get_ydata(), error, atol=1e-12)
    assert_allclose(right.get_lines()[0].get_xdata(), np.arange(61) / 60, atol=1e-12)
    assert_allclose(right.get_lines()[0].get_ydata(), cost, atol=1e-12)
    assert cost[-1] == pytest.approx(0.8)
    assert right.get_ylabel() == "mean cost of all rows"
    assert legend(ax) == [
        "error rate of the remaining rows",
        "rejected by Chow's rule",
        "mean cost of all rows",
    ]


def test_the_rule_rejects_where_the_expected_loss_is_above_the_cost(rows):
    y, proba = rows
    rule = reject_curve(y, proba, reject_cost=0.3).get_lines()[-1]
    share = (1 - proba.max(axis=1) > 0.3).mean()
    assert 0 < share < 1
    assert_allclose(rule.get_xdata(), [share, share])


def test_a_loss_alone_gives_the_mean_loss_of_the_rows_kept(rows):
    y, proba = rows
    right = right_of(reject_curve(y, proba, loss=LOSS))
    assert_allclose(
        right.get_lines()[0].get_ydata(), by_brute_force(y, proba, LOSS, 0)[1], atol=1e-12
    )
    assert right.get_ylabel() == "mean loss of the remaining rows"


def test_actions_that_are_no_classes_have_costs_but_no_errors(rows):
    y, proba = rows
    loss = {c: {"go": float(k), "stop": 1.0} for k, c in enumerate(LABELS.tolist())}
    ax = reject_curve(y, proba, loss=loss, reject_cost=0.5)
    table = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
    expected = proba @ table
    lost = table[np.searchsorted(LABELS, y), expected.argmin(axis=1)]
    cost = ax.get_lines()[0].get_ydata()
    assert_allclose([cost[0], cost[-1]], [lost.mean(), 0.5])
    assert ax.get_ylabel() == "mean cost of all rows"
    assert len(ax.figure.axes) == 1


def test_rows_that_are_equally_sure_are_rejected_together():
    y, p = [0, 1, 1, 0, 1], [0.1, 0.9, 0.9, 0.6, 0.6]
    for order in ([0, 1, 2, 3, 4], [4, 3, 2, 1, 0]):
        (line,) = reject_curve(np.take(y, order), np.take(p, order)).get_lines()
        assert_allclose(line.get_xydata(), [[0, 0.2], [0.4, 0]], atol=1e-12)


def test_the_order_of_the_classes_given_is_that_of_the_loss(rows):
    y, proba = rows
    order = [2, 0, 1]
    sorted_ = reject_curve(y, proba, loss=LOSS, reject_cost=1.0)
    other = reject_curve(
        y,
        proba[:, order],
        loss=LOSS[np.ix_(order, order)],
        reject_cost=1.0,
        classes=LABELS[order],
    )
    for a, b in ((sorted_, other), (right_of(sorted_), right_of(other))):
        assert_allclose(a.get_lines()[0].get_xydata(), b.get_lines()[0].get_xydata(), atol=1e-12)


def test_rows_may_have_losses_and_prices_of_their_own(rows):
    y, proba = rows
    amount = np.random.default_rng(0).uniform(1, 5, len(y))
    right = right_of(
        reject_curve(y, proba, loss=amount[:, None, None] * LOSS, reject_cost=amount / 2)
    )
    codes, expected = np.searchsorted(LABELS, y), proba @ LOSS
    order = np.argsort(-(expected.min(axis=1) - 0.5) * amount)
    lost = amount * LOSS[codes, expected.argmin(axis=1)]
    cost = [(lost[order[m:]].sum() + amount[order[:m]].sum() / 2) / 60 for m in range(61)]
    assert_allclose(right.get_lines()[0].get_ydata(), cost, atol=1e-12)


def cells(ax):
    return [text.get_text() for text in ax.texts]


def test_cells_are_counts_shaded_by_the_shares_of_the_class(rows):
    y, proba = rows
    decided = LABELS[proba.argmax(axis=1)]
    ax = confusion(y, decided)
    count = confusion_matrix(y, decided)
    assert cells(ax) == [str(n) for n in count.ravel()]
    share = count / count.sum(axis=1, keepdims=True)
    white = 1 - share[..., None] * (1 - np.array(to_rgb("#004B75")))
    assert_allclose(ax.images[0].get_array(), white)
    assert [text.get_text() for text in ax.get_xticklabels()] == LABELS.tolist()
    assert [text.get_text() for text in ax.get_yticklabels()] == LABELS.tolist()
    assert (ax.get_xlabel(), ax.get_ylabel()) == (
        "action",
        "true class (shade: share of its rows)",
    )
    assert ax.get_title() == ""


def test_text_has_at_least_the_contrast_that_is_asked_of_it(rows):
    y = np.repeat("a", 100)
    for n in range(0, 101, 5):
        ax = confusion(y, np.repeat(["a", "b"], [n, 100 - n]), classes=["a", "b"])
        for text, shade in zip(ax.texts[:2], ax.images[0].get_array()[0], strict=True):
            linear = np.where(shade <= 0.04045, shade / 12.92, ((shade + 0.055) / 1.055) ** 2.4)
            ground = linear @ [0.2126, 0.7152, 0.0722]
            ink = 1.0 if text.get_color() == "white" else 0.0
            light, dark = max(ground, ink), min(ground, ink)
            assert (light + 0.05) / (dark + 0.05) > 4.5  # WCAG, level AA
        plt.close("all")


def test_costs_of_cells_add_up_to_the_total(rows):
    y, proba = rows
    decided = LABELS[(proba @ LOSS).argmin(axis=1)]
    ax = confusion(y, decided, loss=LOSS)
    expected = confusion_matrix(y, decided) * LOSS
    assert [float(cell.split("cost ")[1]) for cell in cells(ax)] == expected.ravel().tolist()
    total = expected.sum()
    assert ax.get_title() == f"total cost {total:g}, {total / 60:.3g} per row"


@pytest.mark.parametrize("sign", ["reject", None, np.nan])
def test_rejected_rows_have_a_column_and_a_price(sign):
    decided = np.array([0, 1, sign, sign], dtype=object)
    if isinstance(sign, str):
        plain = confusion([0, 0, 1, 1], decided)
    else:
        plain = confusion([0, 0, 1, 1], decided.tolist())
    assert [text.get_text() for text in plain.get_xticklabels()] == ["0", "1", "reject"]
    assert cells(plain) == ["1", "1", "0", "0", "0", "2"]
    ax = confusion([0, 0, 1, 1], decided, reject_cost=0.25)
    assert cells(ax)[1::4] == ["1\ncost 1", "2\ncost 0.5"]
    assert ax.get_title() == "total cost 1.5, 0.375 per row"


def test_the_classes_given_order_the_cells_and_the_losses():
    y, decided = ["no", "no", "yes"], ["yes", "no", "no"]
    ax = confusion(y, decided, classes=["yes", "no"], loss=[[0, 7], [1, 0]])
    assert [text.get_text() for text in ax.get_yticklabels()] == ["yes", "no"]
    assert cells(ax) == ["0\ncost 0", "1\ncost 7", "1\ncost 1", "1\ncost 0"]


def test_a_loss_may_be_a_table_of_actions():
    loss = pd.DataFrame({"treat": [1.0, 0.0], "wait": [0.0, 20.0]}, index=["healthy", "ill"])
    ax = confusion(["ill", "healthy", "ill"], ["wait", "wait", "treat"], loss=loss)
    assert [text.get_text() for text in ax.get_xticklabels()] == ["treat", "wait"]
    assert cells(ax) == ["0\ncost 0", "1\ncost 0", "1\ncost 0", "1\ncost 20"]


def test_losses_of_rows_are_added_up_in_their_cells():
    amount = np.array([3.0, 5.0, 11.0])
    loss = amount[:, None, None] * (1 - np.eye(2))
    ax = confusion([0, 0, 1], [1, 1, 0], loss=loss)
    assert cells(ax) == ["0\ncost 0", "2\ncost 8", "1\ncost 11", "0\ncost 0"]


def test_a_class_without_rows_is_white():
    ax = confusion([0, 0], [0, 1], classes=[0, 1])
    assert_array_equal(ax.images[0].get_array()[1], np.ones((2, 3)))


def test_what_cannot_be_drawn_is_named(rows):
    y, proba = rows
    with pytest.raises(LabelError, match="3 classes, but y has 1"):
        reject_curve(np.full(60, "ant"), proba)
    with pytest.raises(ShapeError, match="loss has shape"):
        reject_curve(y, proba, loss=np.eye(2))
    with pytest.raises(ShapeError, match="y has no rows"):
        confusion([], [])
    with pytest.raises(ShapeError, match="decided has shape"):
        confusion(y, y[:5])
    with pytest.raises(ParameterError, match="'dog'"):
        confusion(y, np.full(60, "dog"), loss=LOSS)
    with pytest.raises(ParameterError, match="reject_cost="):
        confusion(y, np.full(60, "reject"), loss=LOSS)


def test_decisions_are_confused_as_their_actions_are():
    proba, loss = [0.1, 0.45, 0.9, 0.6], {0: {"go": 0, "stop": 1}, 1: {"go": 1, "stop": 0}}
    found = decide(proba, loss, reject_cost=0.42)
    pictures = [
        confusion([0, 1, 1, 0], each, loss=loss, reject_cost=0.42) for each in (found, found.action)
    ]
    cells = [[text.get_text() for text in ax.texts] for ax in pictures]
    assert cells[0] == cells[1]
    assert any("cost 0.42" in cell for cell in cells[0])
