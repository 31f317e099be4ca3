"""How many of scikit-learn's checks ran, printed at the end of every run that had them."""

from collections import Counter
from typing import Any

CONTRACT = "test_sklearn_contract.py"


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
