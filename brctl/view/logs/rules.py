"""Log rules as a list, and what a trial of them gave."""

from collections.abc import Sequence
from typing import Protocol

from brctl.model.exit_codes import ExitCode
from brctl.model.fault import FaultClass
from brctl.view.notices.page import Page
from brctl.view.text import columns, printable


class ShownRule(Protocol):
    """What is shown of a signature."""

    @property
    def name(self) -> str: ...
    @property
    def part(self) -> str: ...
    @property
    def fault(self) -> FaultClass | None: ...
    @property
    def strength(self) -> float: ...
    @property
    def source(self) -> str: ...


class RuleTrial(Protocol):
    """What is shown of a trial."""

    @property
    def line(self) -> str: ...
    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def wanted(self) -> str: ...
    @property
    def passed(self) -> bool: ...


def rules_page(rules: Sequence[ShownRule]) -> Page:
    """The answer of `brctl logs rules list`."""
    rows = tuple(
        {
            "name": rule.name,
            "part": str(rule.part),
            "class": rule.fault.value if rule.fault else None,
            "probability": rule.strength,
            "source": rule.source,
        }
        for rule in rules
    )
    table = [["NAME", "PART", "CLASS", "P", "SOURCE"]]
    table += [[r.name, str(r.part), r.fault or "-", f"{r.strength:.2f}", r.source] for r in rules]
    return Page("LogRuleList", {"rules": list(rows)}, columns(table), rows=rows)


def trial_page(trials: Sequence[RuleTrial], *, wanted: bool) -> Page:
    """The answer of `brctl logs rules test`; a rule file without examples is no proof."""
    rows = tuple(
        {"line": t.line, "rules": list(t.names), "wanted": t.wanted or None, "passed": t.passed}
        for t in trials
    )
    table = [
        ["ok" if t.passed else "FAIL", ",".join(t.names) or "-", printable(t.line, 120)]
        for t in trials
    ]
    failed = [t for t in trials if not t.passed]
    code = ExitCode.CRITICAL if failed else ExitCode.OK
    if wanted and not trials:
        code = ExitCode.UNKNOWN
    text = columns(table) or "no examples: nothing was tested"
    return Page("LogRuleTrial", {"lines": list(rows)}, text, exit_code=code, rows=rows)
