"""`brctl doctor --security`: each finding with why it matters and what to type."""

from collections.abc import Sequence

from brctl.model.exit_codes import worst
from brctl.model.security_finding import SecurityFinding
from brctl.model.sweeps.sweep import EXIT_OF, Health
from brctl.view.doctor import WORDS
from brctl.view.notices.page import Page
from brctl.view.text import columns, printable

_ORDER = (Health.CRITICAL, Health.UNKNOWN, Health.WARNING, Health.OK)


def security_page(findings: Sequence[SecurityFinding]) -> Page:
    """The worst first; exit codes as those of `brctl doctor`."""
    ordered = sorted(findings, key=lambda finding: _ORDER.index(finding.health))
    rows: list[tuple[str, ...]] = []
    for finding in ordered:
        what = f"{printable(finding.subject, 120)}: {printable(finding.text, 300)}"
        rows.append((WORDS[finding.health], finding.topic, what))
        if finding.why:
            rows.append(("", "", f"why: {finding.why}"))
        if finding.command:
            rows.append(("", "", f"type: {printable(finding.command, 300)}"))
    documents = tuple(
        {
            "state": f.health.value,
            "topic": f.topic,
            "subject": f.subject,
            "text": f.text,
            "why": f.why or None,
            "type": f.command or None,
        }
        for f in ordered
    )
    code = worst(EXIT_OF[finding.health] for finding in findings)
    body = {"findings": list(documents)}
    return Page("SecurityReport", body, columns(rows), code, rows=documents)
