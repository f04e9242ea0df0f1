"""The doctor's findings, one line each, with the way out below what is wrong."""

from collections.abc import Sequence

from brctl.model.doctor_finding import DoctorFinding
from brctl.model.exit_codes import worst
from brctl.model.sweeps.sweep import EXIT_OF, Health
from brctl.view.notices.page import Page
from brctl.view.text import columns, printable

WORDS = {Health.OK: "ok", Health.WARNING: "WARN", Health.CRITICAL: "FAIL"}
WORDS |= {Health.UNKNOWN: "UNKNOWN"}


def doctor_page(findings: Sequence[DoctorFinding]) -> Page:
    """The answer of `brctl doctor`."""
    rows: list[tuple[str, ...]] = []
    for finding in findings:
        rows.append((WORDS[finding.health], finding.topic, printable(finding.text, 200)))
        if finding.hint:
            rows.append(("", "", f"try: {finding.hint}"))
    documents = [
        {"state": f.health.value, "topic": f.topic, "text": f.text, "try": f.hint or None}
        for f in findings
    ]
    code = worst(EXIT_OF[finding.health] for finding in findings)
    return Page("Doctor", {"findings": documents}, columns(rows), code)
