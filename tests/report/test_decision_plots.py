"""The error-reject curve and the confusion matrix."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
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
    ax = reject_curve(*rows)
    (line,) = ax.get_lines()
    assert_allclose(line.get_xdata(), np.arange(60) / 60)
    assert_allclose(line.get_ydata(), by_brute_force(*rows, 1 - np.eye(3), 0)[0], atol=1e-12)
    assert ax.get_xlabel() == "share of rows rejected"
    assert ax.get_ylabel() == "error rate of the remaining rows"


def test_costs_of_all_rows_go_from_no_rejection_to_the_price_of_it(rows, legend):
    ax = reject_curve(*rows, loss=LOSS, reject_cost=0.8)
    error, kept_loss, cost = by_brute_force(*rows, LOSS, 0.8)
    (line,) = right_of(ax).get_lines()
    assert_allclose(ax.get_lines()[0].get_ydata(), error, atol=1e-12)
    assert_allclose(line.get_xydata(), np.column_stack([np.arange(61) / 60, cost]), atol=1e-12)
    assert cost[-1] == pytest.approx(0.8)
    words = ["error rate of the remaining rows", "rejected by Chow's rule", "mean cost of all rows"]
    assert legend(ax) == words
    share = ((rows[1] @ LOSS).min(axis=1) > 0.8).mean()  # Chow's rule
    assert 0 < share < 1
    assert_allclose(ax.get_lines()[-1].get_xdata(), [share, share])
    right = right_of(reject_curve(*rows, loss=LOSS))
    assert_allclose(right.get_lines()[0].get_ydata(), kept_loss, atol=1e-12)
    assert right.get_ylabel() == "mean loss of the remaining rows"


def test_actions_that_are_no_classes_have_costs_but_no_errors(rows):
    y, proba = rows
    loss = {c: {"go": float(k), "stop": 1.0} for k, c in enumerate(LABELS.tolist())}
    ax = reject_curve(y, proba, loss=loss, reject_cost=0.5)
    table = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
    lost = table[np.searchsorted(LABELS, y), (proba @ table).argmin(axis=1)]
    cost = ax.get_lines()[0].get_ydata()
    assert_allclose([cost[0], cost[-1]], [lost.mean(), 0.5])
    assert ax.get_ylabel() == "mean cost of all rows"
    assert len(ax.figure.axes) == 1


def test_rows_that_are_equally_sure_are_rejected_together():
    y, p = [0, 1, 1, 0, 1], [0.1, 0.9, 0.9, 0.6, 0.6]
    for order in ([0, 1, 2, 3, 4], [4, 3, 2, 1, 0]):
        (line,) = reject_curve(np.take(y, order), np.take(p, order)).get_lines()
        assert_allclose(line.get_xydata(), [[0, 0.2], [0.4, 0]], atol=1e-12)


def test_rows_may_have_losses_and_prices_of_their_own(rows):
    y, proba = rows
    amount = np.random.default_rng(0).uniform(1, 5, len(y))
    given = {"loss": amount[:, None, None] * LOSS, "reject_cost": amount / 2}
    right = right_of(reject_curve(y, proba, **given))
    codes, expected = np.searchsorted(LABELS, y), proba @ LOSS
    order = np.argsort(-(expected.min(axis=1) - 0.5) * amount)
    lost = amount * LOSS[codes, expected.argmin(axis=1)]
    cost = [(lost[order[m:]].sum() + amount[order[:m]].sum() / 2) / 60 for m in range(61)]
    assert_allclose(right.get_lines()[0].get_ydata(), cost, atol=1e-12)


# --- The confusion matrix -------------------------------------------------------------------------


def cells(ax):
    return [text.get_text() for text in ax.texts]


def names(labels):
    return [text.get_text() for text in labels]


def test_cells_are_counts_shaded_by_the_shares_of_the_class(rows):
    y, proba = rows
    decided = LABELS[proba.argmax(axis=1)]
    ax = confusion(y, decided)
    count = confusion_matrix(y, decided)
    assert cells(ax) == [str(n) for n in count.ravel()]
    assert_allclose(ax.images[0].get_array(), count / count.sum(axis=1, keepdims=True))
    assert names(ax.get_xticklabels()) == names(ax.get_yticklabels()) == LABELS.tolist()
    assert (ax.get_xlabel(), ax.get_ylabel()[:10]) == ("action", "true class")
    assert ax.get_title() == ""


def test_text_has_enough_contrast_to_its_shade():
    for n in range(0, 101, 4):
        ax = confusion(np.repeat("a", 100), np.repeat(["a", "b"], [n, 100 - n]), classes=["a", "b"])
        shades = ax.images[0].to_rgba(ax.images[0].get_array())[0, :, :3]
        for text, shade in zip(ax.texts[:2], shades, strict=True):
            linear = np.where(shade <= 0.04045, shade / 12.92, ((shade + 0.055) / 1.055) ** 2.4)
            ground = linear @ [0.2126, 0.7152, 0.0722]
            ink = 1.0 if text.get_color() == "white" else 0.0
            assert (max(ground, ink) + 0.05) / (min(ground, ink) + 0.05) > 4.5  # WCAG level AA
        plt.close("all")


def test_costs_of_cells_add_up_to_the_total(rows):
    y, proba = rows
    decided = LABELS[(proba @ LOSS).argmin(axis=1)]
    ax = confusion(y, decide(proba, LOSS, classes=LABELS), loss=LOSS)
    expected = confusion_matrix(y, decided) * LOSS
    assert [float(cell.split("cost ")[1]) for cell in cells(ax)] == expected.ravel().tolist()
    total = expected.sum()
    assert ax.get_title() == f"total cost {total:g}, {total / 60:.3g} per row"
    order = LABELS[::-1]
    ax = confusion(y, decided, loss=LOSS[::-1, ::-1], classes=order)
    assert names(ax.get_yticklabels()) == order.tolist()
    assert [float(cell.split("cost ")[1]) for cell in cells(ax)] == expected.ravel().tolist()[::-1]


@pytest.mark.parametrize("sign", ["reject", None, np.nan])
def test_rejected_rows_have_a_column_and_a_price(sign):
    plain = confusion([0, 0, 1, 1], [0, 1, sign, sign])
    assert names(plain.get_xticklabels()) == ["0", "1", "reject"]
    assert cells(plain) == ["1", "1", "0", "0", "0", "2"]
    ax = confusion([0, 0, 1, 1], [0, 1, sign, sign], reject_cost=0.25)
    assert cells(ax)[1::4] == ["1\ncost 1", "2\ncost 0.5"]
    assert ax.get_title() == "total cost 1.5, 0.375 per row"


def test_rows_may_have_losses_of_their_own_and_classes_no_rows():
    loss = np.array([3.0, 5.0, 11.0])[:, None, None] * (1 - np.eye(2))
    ax = confusion([0, 0, 0], [1, 1, 0], loss=loss, classes=[0, 1])
    assert cells(ax) == ["1\ncost 0", "2\ncost 8", "0\ncost 0", "0\ncost 0"]
    assert_array_equal(ax.images[0].get_array()[1], [0, 0])


@pytest.mark.parametrize(
    ("draw", "given", "error", "words"),
    [
        (reject_curve, {"y": np.full(60, "ant")}, LabelError, "3 classes, but y has 1"),
        (reject_curve, {"loss": np.eye(2)}, ShapeError, "loss has shape"),
        (confusion, {"decided": ["ant"]}, ShapeError, "decided has shape"),
        (confusion, {"decided": np.full(60, "dog"), "loss": LOSS}, ParameterError, "'dog'"),
        (confusion, {"decided": ["reject"] * 60, "loss": LOSS}, ParameterError, "reject_cost="),
    ],
)
def test_what_cannot_be_drawn_is_named(rows, draw, given, error, words):
    second = {"proba": rows[1]} if draw is reject_curve else {}
    with pytest.raises(error, match=words):
        draw(**{"y": rows[0], **second, **given})
