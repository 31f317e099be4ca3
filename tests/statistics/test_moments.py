"""Counts, means and scatters of the classes."""

import numpy as np
import pytest
from statistics_registry import STATISTICS, assert_same

from posteriori.design.columns import Columns
from posteriori.errors import StatisticsError
from posteriori.rows.in_memory import read_rows
from posteriori.statistics.moments import GatherMoments, Moments

rng = np.random.default_rng(8)
X = rng.normal(size=(150, 3)) @ rng.normal(size=(3, 3))
Y = np.array(["a", "b", "c"])[rng.integers(0, 3, size=150)]


def moments(X, y, sharing, weight=None, classes=None) -> Moments:
    rows = read_rows(X, y, weight, classes)
    keys = tuple(sharing[label] for label in rows.classes.tolist())
    return rows.map_sum(GatherMoments(Columns(rows.schema), rows.classes, keys))


OWN = {"a": "a", "b": "b", "c": "c"}
SHARED = {"a": None, "b": None, "c": None}
PAIRED = {"a": "ac", "b": "b", "c": "ac"}


def test_scatter_is_the_sample_covariance_times_its_degrees_of_freedom():
    found = moments(X, Y, OWN)
    for k, label in enumerate("abc"):
        own = X[label == Y]
        assert found.count[k] == len(own)
        np.testing.assert_allclose(found.mean[k], own.mean(0), rtol=1e-12)
        np.testing.assert_allclose(
            found.scatter[k], np.cov(own.T) * (len(own) - 1), rtol=1e-12, atol=1e-12
        )


def test_classes_that_share_a_group_pool_their_scatter():
    own, paired, shared = (moments(X, Y, sharing) for sharing in (OWN, PAIRED, SHARED))
    np.testing.assert_allclose(paired.scatter[0], own.scatter[0] + own.scatter[2], rtol=1e-12)
    np.testing.assert_allclose(paired.scatter[1], own.scatter[1], rtol=1e-12)
    np.testing.assert_allclose(shared.scatter[0], own.scatter.sum(0), rtol=1e-12)
    assert paired.groups.tolist() == [0, 1, 0]
    np.testing.assert_array_equal(paired.group_count, [own.count[0] + own.count[2], own.count[1]])
    np.testing.assert_allclose(own.squares, np.diagonal(own.scatter.sum(0)), rtol=1e-12)


@pytest.mark.parametrize("sharing", [OWN, PAIRED, SHARED], ids=["own", "paired", "shared"])
def test_pooling_is_gathering_with_one_scatter(sharing):
    assert_same(moments(X, Y, sharing).pooled(), moments(X, Y, SHARED))


def test_the_total_is_the_moments_of_all_rows_together():
    weight = rng.uniform(size=150)
    for sharing in (OWN, PAIRED, SHARED):
        n, mean, scatter = moments(X, Y, sharing, weight).total()
        np.testing.assert_allclose(n, weight.sum())
        np.testing.assert_allclose(mean, np.average(X, axis=0, weights=weight), rtol=1e-10)
        centred = X - np.average(X, axis=0, weights=weight)
        np.testing.assert_allclose(scatter, (centred.T * weight) @ centred, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("sharing", [OWN, PAIRED, SHARED], ids=["own", "paired", "shared"])
@pytest.mark.parametrize("sites", ["ab|bc", "bc|ab", "ac|b", "c|b|a", "b|ac", "abc|b"])
def test_sites_with_different_classes_add_up_to_the_pooled_statistic(sharing, sites):
    groups = sites.split("|")
    site = rng.integers(0, len(groups), size=150)
    site = np.array(
        [
            s if y in groups[s] else next(i for i, g in enumerate(groups) if y in g)
            for s, y in zip(site, Y, strict=True)
        ]
    )
    parts = [
        moments(X[site == i], Y[site == i], sharing, classes=sorted(group) + ["b"] * (group == "a"))
        if len(group) > 1
        else sum(row_of(x, group, sharing) for x in X[site == i])
        for i, group in enumerate(groups)
    ]
    assert_same(sum(parts), moments(X, Y, sharing))


def row_of(x: np.ndarray, label: str, sharing: dict) -> Moments:
    """A single row as a statistic of its own, in the group its class belongs to."""
    return Moments(
        Columns(read_rows(np.ones((2, len(x))), [0, 1]).schema).schema,
        np.array([label]),
        (sharing[label],),
        np.ones(1),
        x[None, :],
        np.zeros((1, len(x), len(x))),
        np.ones(len(x)),
    )


def test_points_add_up_to_the_moments_of_the_rows():
    points = [Moments.of_point(x, y) for x, y in zip(X, Y, strict=True)]
    assert_same(sum(points), moments(X, Y, OWN))


def test_statistics_that_pool_differently_do_not_add():
    for other in (SHARED, PAIRED):
        with pytest.raises(StatisticsError, match="different groups of classes"):
            moments(X, Y, OWN) + moments(X, Y, other)


def test_pooled_statistics_of_one_class_add_to_pooled_statistics_of_others():
    one = sum(Moments.of_point(x, "a") for x in X[Y == "a"]).pooled()
    rest = moments(X[Y != "a"], Y[Y != "a"], SHARED)
    assert_same(one + rest, moments(X, Y, SHARED))


def test_a_class_of_one_row_has_no_scatter():
    found = moments(X[:4], ["a", "b", "c", "c"], OWN)
    np.testing.assert_array_equal(found.scatter[:2], np.zeros((2, 3, 3)))
    np.testing.assert_array_equal(found.mean[:2], X[:2])
    assert (STATISTICS["column moments"].of(X[:4], ["a", "b", "c", "c"]).scatter[:2] == 0).all()
