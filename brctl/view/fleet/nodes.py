"""Nodes as lists: state, reason, who cordoned them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from brctl.model.evidence import Weight
from brctl.model.inventory import Node
from brctl.model.nodeset import fold
from brctl.model.sweeps.sweep import Health, NodeHealth
from brctl.model.units import describe_duration
from brctl.view.alike import fold_alike
from brctl.view.fleet.nodes_table import NodesTable, shown_rows, table_text
from brctl.view.fleet.sweep import WORDS
from brctl.view.notices.page import Page
from brctl.view.schema import NodeRow
from brctl.view.text import columns, printable

NOT_SWEPT = "not swept"


@dataclass(frozen=True, slots=True)
class NodeLine:
    """What is known of one node.

    Attributes:
        health: From the newest sweep that asked it; None when none did.
        cordon: Owner and reason, or None.
    """

    node: Node
    health: NodeHealth | None
    cordon: tuple[str, str] | None
    job: str | None


def nodes_page(
    lines: Sequence[NodeLine],
    age_s: float | None,
    *,
    reasons: bool,
    table: NodesTable | None = None,
) -> Page:
    """The answer of `brctl ls`, of `brctl ls -R`, or of one with columns that were asked for."""
    rows = tuple(_row(line) for line in lines)
    if table is not None:
        pairs = [(row, line.node.labels) for row, line in zip(rows, lines, strict=True)]
        return _table_page(rows, shown_rows(table, pairs), age_s, table)
    text = _reasons_text(lines) if reasons else _state_text(rows)
    if not reasons:
        text += f"\n{age_text(age_s)}"
    body = {"nodes": list(rows), "data_age_seconds": age_s}
    return Page("Nodes", body, text, names=tuple(row["node"] for row in rows), rows=rows)


def _table_page(
    rows: Sequence[NodeRow],
    shown: Sequence[Mapping[str, str | None]],
    age_s: float | None,
    table: NodesTable,
) -> Page:
    text = f"{table_text(shown, table)}\n{age_text(age_s)}"
    body = {"nodes": list(rows), "data_age_seconds": age_s}
    names = tuple(str(row["node"]) for row in shown if row.get("node"))
    return Page("Nodes", body, text, names=names, rows=tuple(shown))


def _row(line: NodeLine) -> NodeRow:
    check, detail = _main_reason(line.health)
    return {
        "node": line.node.name,
        "role": line.node.role.value,
        "state": line.health.health.value if line.health else NOT_SWEPT,
        "check": check,
        "detail": detail,
        "cordoned_by": line.cordon[0] if line.cordon else None,
        "reason": line.cordon[1] if line.cordon else None,
        "job": line.job,
    }


def _main_reason(health: NodeHealth | None) -> tuple[str | None, str | None]:
    if health is None or health.health is Health.OK:
        return None, None
    for weight in (Weight.CONVICTS, Weight.HINTS):
        for item in health.evidence:
            if item.weight is weight and health.health is not Health.UNKNOWN:
                return item.source, item.text
    gap = next(iter(health.gaps), None)
    return (gap.what, gap.why) if gap else ("-", health.report.detail or None)


def _state_text(rows: Sequence[NodeRow]) -> str:
    order = {state.value: word for state, word in WORDS.items()} | {NOT_SWEPT: NOT_SWEPT}
    table: list[tuple[str, ...]] = [("STATE", "NODES", "ROLE", "CORDON", "JOB", "CHECK", "DETAIL")]
    alike = fold_alike((_key(row), row["node"], row["detail"] or "-") for row in rows)
    for state, word in order.items():
        table += [
            (word, fold(each.nodes), *shared, printable(each.text, 160))
            for each in alike
            for st, *shared in [each.key]
            if st == state
        ]
    return columns(table)


def _key(row: NodeRow) -> tuple[str, ...]:
    """What nodes on one line share beside what is said of them."""
    cordon = "cordoned" if row["cordoned_by"] else "-"
    return (row["state"], row["role"], cordon, row["job"] or "-", row["check"] or "-")


def _reasons_text(lines: Sequence[NodeLine]) -> str:
    """One line per reason, as `sinfo -R`; a cordon set outside brctl is marked."""
    table = [("REASON", "OWNER", "NODES")]
    gathered: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        if line.cordon:
            gathered.setdefault(line.cordon, []).append(line.node.name)
    for (owner, reason), names in gathered.items():
        mark = "" if owner.startswith("brctl") else "*"
        table.append((printable(reason, 80), printable(owner, 40) + mark, fold(names)))
    return columns(table) + "\n* not set by brctl" if gathered else "no node is cordoned"


def age_text(age_s: float | None) -> str:
    """How old what is shown is."""
    return (
        "never swept; run: brctl sweep" if age_s is None else f"data {describe_duration(age_s)} old"
    )
