"""Checks as people read them: what they ask, what convicts, how to look by hand."""

from collections.abc import Iterable, Mapping

from brctl.model.evidence import Weight
from brctl.model.sweeps.check import Check, Rule
from brctl.view.notices.page import Json, Page
from brctl.view.text import columns


def check_list_page(checks: Iterable[Check]) -> Page:
    """The answer of `brctl check list`."""
    listed = list(checks)
    rows = [("CHECK", "LEVEL", "NEEDS", "DEADLINE", "WHAT")]
    rows += [
        (c.name, str(c.level), ",".join(sorted(c.needs)) or "-", f"{c.deadline_s:g}s", c.title)
        for c in listed
    ]
    documents = tuple(check_document(check) for check in listed)
    names = tuple(check.name for check in listed)
    text = columns(rows)
    return Page("CheckList", {"checks": list(documents)}, text, names=names, rows=documents)


def check_document(check: Check) -> Mapping[str, Json]:
    """One check as a document."""
    return {
        "name": check.name,
        "title": check.title,
        "why": check.why.strip(),
        "source": check.source,
        "level": check.level,
        "safe_beside_job": check.level == 1 and not check.disruptive,
        "needs": sorted(check.needs),
        "tools": list(check.tools),
        "deadline_seconds": check.deadline_s,
        "measurements": [
            {"name": m.name, "unit": m.unit, "what": m.what} for m in check.measurements.values()
        ],
        "rules": [_rule_document(rule) for rule in check.rules],
        "cross_check": check.cross_check,
        "origin": check.origin,
    }


def _rule_document(rule: Rule) -> Mapping[str, Json]:
    operand = rule.operand
    return {
        "kind": rule.kind,
        "when": f"{rule.operator} {operand}" if operand is not None else rule.operator,
        "weight": rule.weight.value,
        "class": rule.fault.value if rule.fault else None,
        "source": rule.source,
    }


_ORDER = {Weight.CONVICTS: 0, Weight.HINTS: 1, Weight.CONTEXT: 2, Weight.CLEARS: 3}


def check_page(check: Check) -> Page:
    """The answer of `brctl check explain`."""
    rules = sorted(check.rules, key=lambda rule: (_ORDER[rule.weight], rule.kind))
    judged = [
        (
            rule.weight.value,
            rule.fault.value if rule.fault else "-",
            f"{rule.kind} {rule.operator}"
            + (f" {rule.operand}" if rule.operand is not None else ""),
            f"[{rule.source}]" if rule.source else "",
        )
        for rule in rules
    ]
    measured = [(m.name, m.unit, m.what) for m in check.measurements.values()]
    beside = (
        "safe beside a job" if check.level == 1 and not check.disruptive else "NOT beside a job"
    )
    lines = [
        f"{check.name}: {check.title}",
        f"level {check.level}, {beside}, deadline {check.deadline_s:g} s,"
        f" needs {', '.join(sorted(check.needs)) or 'nothing'}",
        "",
        check.why.strip(),
        "",
        "measures:",
        columns(measured, "  "),
        "",
        "judges:",
        columns(judged, "  "),
        "",
        f"by hand:  {check.cross_check.strip()}",
        f"source:   {check.source.strip()}",
        f"file:     {check.origin}",
    ]
    return Page("Check", {"check": check_document(check)}, "\n".join(lines), names=(check.name,))
