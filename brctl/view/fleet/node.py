"""`brctl nodes show`: one node, what stands against it, what is not known, what changed."""

from collections.abc import Sequence
from datetime import datetime

from brctl.model.evidence import Weight
from brctl.model.exit_codes import ExitCode
from brctl.model.inventory import Node
from brctl.model.sweeps.sweep import EXIT_OF, NodeHealth
from brctl.model.sweeps.transition import Transition
from brctl.model.units import describe_duration, rfc3339
from brctl.view.fleet.nodes import NOT_SWEPT, NodeLine
from brctl.view.fleet.sweep import WORDS
from brctl.view.notices.page import Json, Page
from brctl.view.text import columns, printable
from brctl.view.verdict import checks_text

_LABEL_OF = {Weight.CONVICTS: "CRIT", Weight.HINTS: "WARN"}
_DETAIL = 200


def node_page(line: NodeLine, past: Sequence[Transition] | None, now_at: datetime) -> Page:
    """The answer of `brctl nodes show`.

    Args:
        line: What is known of the node.
        past: Its news, oldest first; None when no history was asked for.
        now_at: Ages are told from here.
    """
    health = line.health
    body: dict[str, Json] = {
        "node": line.node.name,
        "state": health.health.value if health else NOT_SWEPT,
        "facts": dict(_facts(line.node)),
        "job": line.job,
        "cordoned_by": line.cordon[0] if line.cordon else None,
        "reason": line.cordon[1] if line.cordon else None,
        "against": [{"state": w, "check": c, "text": t} for w, c, t in _against(health)],
        "not_checked": [{"check": c, "why": w} for _, c, w in _unknown(health)],
        "history": None if past is None else [_row(each) for each in past],
    }
    parts = [_head(line, now_at), columns(_lasting(line), indent="  ")]
    parts += [columns(_findings(line), indent="  "), _past_text(past, now_at)]
    rows = tuple(_row(each) for each in past or ())
    code = EXIT_OF[health.health] if health else ExitCode.UNKNOWN
    next_ = () if code is ExitCode.OK else (_next(line),)
    text = "\n".join(part for part in parts if part)
    return Page("Node", body, text, code, names=(line.node.name,), rows=rows, next=next_)


def _next(line: NodeLine) -> str:
    return f"brctl {'dx' if line.health else 'sweep'} -w {line.node.name}"


def _head(line: NodeLine, now_at: datetime) -> str:
    if line.health is None:
        return f"{line.node.name}  UNKNOWN  never swept"
    received_at = line.health.report.received_at
    age = (
        f"  {describe_duration((now_at - received_at).total_seconds())} ago" if received_at else ""
    )
    outcome = line.health.report.outcome.value
    return f"{line.node.name}  {WORDS[line.health.health]}  {outcome}{age}"


def _lasting(line: NodeLine) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [
        (name, printable(value, _DETAIL)) for name, value in _facts(line.node)
    ]
    if line.job:
        rows.append(("job", line.job))
    if line.cordon:
        owner, reason = (printable(each, _DETAIL) for each in line.cordon)
        rows.append(("cordoned", f"by {owner}: {reason}"))
    return rows


def _findings(line: NodeLine) -> list[tuple[str, ...]]:
    return [*_against(line.health), *_unknown(line.health)]


def _facts(node: Node) -> list[tuple[str, str]]:
    facts = [("role", node.role.value), ("address", f"{node.address}:{node.port}")]
    facts += [("via", node.via)] if node.via else []
    facts += [("gpus", str(node.gpus))] if node.gpus is not None else []
    return [*facts, *sorted(node.labels.items()), ("origin", node.origin)]


def _against(health: NodeHealth | None) -> list[tuple[str, str, str]]:
    """What convicts, then what hints."""
    return [
        (word, item.source, printable(item.text, _DETAIL))
        for weight, word in _LABEL_OF.items()
        for item in (health.evidence if health else ())
        if item.weight is weight
    ]


def _unknown(health: NodeHealth | None) -> list[tuple[str, str, str]]:
    by_reason: dict[str, list[str]] = {}
    for gap in health.gaps if health else ():
        by_reason.setdefault(gap.why, []).append(gap.what)
    return [
        ("UNKNOWN", checks_text(names), printable(why, _DETAIL)) for why, names in by_reason.items()
    ]


def _past_text(past: Sequence[Transition] | None, now_at: datetime) -> str:
    if not past:
        return "" if past is None else "history: no check changed"
    rows = [
        (
            f"{describe_duration((now_at - each.at).total_seconds())} ago", each.what.upper(),
            WORDS[each.health], each.check, printable(each.detail, _DETAIL),
        )
        for each in past
    ]  # fmt: skip
    return "history\n" + columns(rows, indent="  ")


def _row(each: Transition) -> dict[str, Json]:
    return {
        "at": rfc3339(each.at), "what": each.what, "state": each.health.value,
        "check": each.check, "detail": each.detail,
    }  # fmt: skip
