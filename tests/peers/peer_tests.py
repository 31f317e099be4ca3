"""The tests of an installed scikit-learn, with its classes replaced by shims of ours."""

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from typing import Any
from unittest.mock import patch

import pytest
from shims import SHIMS


def peer_tests(name: str, not_applicable: Mapping[str, str]) -> dict[str, Any]:
    """The tests and fixtures of the test module `name`, run on shims.

    `not_applicable` has the tests that do not apply, by the reason; they are skipped. Tests that do
    not use a class with a shim are left out (see conftest.py).
    """
    original = import_module(name)
    peers = [peer for peer in SHIMS if hasattr(original, peer.__name__)]
    replaced = {peer.__name__: SHIMS[peer] for peer in peers}
    spec = find_spec(name)
    module = module_from_spec(spec)
    with patch.multiple(".".join(peers[0].__module__.split(".")[:2]), **replaced):
        spec.loader.exec_module(module)
    found = {key: value for key, value in vars(module).items() if not key.startswith("__")}
    marks = found.pop("pytestmark", [])
    marks = marks if isinstance(marks, list) else [marks]
    for reason, names in not_applicable.items():
        tests = names.split()
        assert set(tests) <= set(found), f"{name} has not all of {tests}"
        found |= dict.fromkeys(tests, _skipped(reason))
    ours = pytest.mark.filterwarnings("ignore::posteriori.errors.PosterioriWarning")
    return found | {"pytestmark": [ours, *marks], "PEER_CLASSES": list(replaced)}


def _skipped(reason: str) -> Callable[[], None]:
    @pytest.mark.skip(reason=reason)
    def test() -> None:
        pass

    return test
