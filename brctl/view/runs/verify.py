"""The page of `brctl play verify`: which journals are as they were written."""

from collections import Counter
from collections.abc import Sequence

from brctl.model.exit_codes import ExitCode, worst
from brctl.model.runs.journal_check import HEALTH_OF, JournalCheck, JournalState
from brctl.model.sweeps.sweep import EXIT_OF
from brctl.view.notices.page import Page
from brctl.view.text import columns, printable


def journals_page(checks: Sequence[JournalCheck]) -> Page:
    """One line for each journal that is not sound, and the count of all."""
    rows = [
        (check.state.upper(), check.name, f"{check.lines} lines", printable(problem, 300))
        for check in checks
        for problem in check.problems[:5]
    ]
    documents = tuple(
        {"name": c.name, "lines": c.lines, "state": c.state.value, "problems": list(c.problems)}
        for c in checks
    )
    code = worst([ExitCode.OK, *(EXIT_OF[HEALTH_OF[check.state]] for check in checks)])
    bad = tuple(check.name for check in checks if check.state is not JournalState.SOUND)
    text = "\n".join(filter(None, [columns(rows), counted(checks)]))
    return Page("JournalCheck", {"journals": list(documents)}, text, code, bad, documents)


def counted(checks: Sequence[JournalCheck]) -> str:
    """`3 journals: 2 sound, 1 altered`."""
    counts = Counter(check.state for check in checks)
    parts = ", ".join(f"{counts[state]} {state}" for state in JournalState if counts[state])
    return f"{len(checks)} journals" + (f": {parts}" if parts else "")
