"""Names of tests that do not change from process to process."""

import re
from typing import Any


def pytest_make_parametrize_id(config: Any, val: Any, argname: str) -> str | None:
    """The `repr` without addresses in memory."""
    text = repr(val)
    return re.sub(r" at 0x[0-9a-f]+", "", text) if " at 0x" in text else None
