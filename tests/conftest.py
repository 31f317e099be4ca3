"""How many of scikit-learn's checks ran, printed at the end; and names of tests that are stable."""

import re
from collections import Counter
from typing import Any

CONTRACT = "test_keeps_the_contract_of_scikit_learn"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Under xdist this runs on the controller, which has the reports of all workers."""
    found = {
        outcome: [
            report
            for report in terminalreporter.stats.get(outcome, [])
            if CONTRACT in getattr(report, "nodeid", "")
        ]
        for outcome in ("passed", "failed", "error", "skipped")
    }
    number = {outcome: len(reports) for outcome, reports in found.items()}
    if not any(number.values()):
        return
    failed = number["failed"] + number["error"]
    terminalreporter.write_sep("-", "scikit-learn's checks")
    terminalreporter.write_line(
        f"{number['passed'] + failed} ran, {number['passed']} passed, {failed} failed, "
        f"{number['skipped']} skipped by scikit-learn itself"
    )
    for (check, reason), times in sorted(Counter(map(_why, found["skipped"])).items()):
        terminalreporter.write_line(f"  {times} x {check}: {reason}")


def _why(report: Any) -> tuple[str, str]:
    """The check that was skipped, and the reason given."""
    check = "check_" + report.nodeid.rsplit("check_", 1)[-1].rstrip("]").split("(")[0]
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return check, reason.removeprefix("Skipped: ")


def pytest_make_parametrize_id(config: Any, val: Any, argname: str) -> str | None:
    """Names of tests without addresses in memory, which differ from process to process."""
    text = repr(val)
    return re.sub(r" at 0x[0-9a-f]+", "", text) if " at 0x" in text else None
