"""The decision tree of ByteRobust (arXiv 2509.16293, section 4, Fig. 5) as a table.

The first row that matches a verdict and the runs it already led to says what comes next. A row that
was tried and did not help is passed over, so the same failure climbs from the cheap to the dear:
evict, stop-time checks, restart, roll back, replay. `playbook` is empty where a person must act.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from brctl.model.fault import FaultClass
from brctl.model.verdict import Confidence, Verdict

F = FaultClass


class Branch(StrEnum):
    """Which of the paper's four branches a fault takes."""

    MACHINE = "machine"
    NETWORK = "network"
    USER = "user"
    UNCLEAR = "unclear"
    GROUP = "group"


BRANCHES = {
    F.NETWORK_IB: Branch.NETWORK, F.NETWORK_ETH: Branch.NETWORK, F.NETWORK_LINK: Branch.NETWORK,
    F.USER_CODE: Branch.USER, F.DATA_LOADER: Branch.USER, F.GPU_OOM: Branch.USER,
    F.CPU_OOM: Branch.USER, F.NCCL_CONFIG: Branch.USER, F.PREEMPTION_SIGTERM: Branch.USER,
    F.NUMERIC_NAN: Branch.UNCLEAR, F.UNKNOWN: Branch.UNCLEAR,
    F.HANG_MISMATCH: Branch.GROUP, F.STRAGGLER_SLOW: Branch.GROUP,
}  # fmt: skip
"""Every other class is a machine's."""

NETWORK_ALERTS = 2
"""Links flap: one alert is no reason to evict, two within five minutes are (section 4.1)."""


@dataclass(frozen=True, slots=True)
class Row:
    """One edge of the tree.

    Attributes:
        nodes: The verdict must name nodes (True), or it does not matter (None).
        alerts: Network alerts that must have come within five minutes.
        after: Playbooks of which one must have been tried already; empty for none.
        source: Where in the paper the edge is drawn, or why we added it.
    """

    branch: Branch
    playbook: str
    say: str
    source: str
    confidence: tuple[Confidence, ...] = tuple(Confidence)
    nodes: bool | None = None
    alerts: int = 0
    after: tuple[str, ...] = ()


HIGH = (Confidence.HIGH,)
SURE = (Confidence.HIGH, Confidence.MEDIUM)

TREE: tuple[Row, ...] = (
    Row(Branch.MACHINE, "swap-and-resume", "a machine is at fault: evict it", "Fig. 5 [1]",
        SURE, nodes=True),
    Row(Branch.NETWORK, "swap-and-resume", "the network alert came back: evict", "Fig. 5 [1]",
        SURE, nodes=True, alerts=NETWORK_ALERTS),
    Row(Branch.NETWORK, "", "one network alert: wait for a second within five minutes",
        "section 4.1", alerts=0),
    Row(Branch.USER, "restart-in-place", "no code change is on record to roll back: restart",
        "ours: Fig. 5 [2] rolls back first"),
    Row(Branch.USER, "", "it failed again: roll back the newest code change", "Fig. 5 [2]",
        after=("restart-in-place",)),
    Row(Branch.GROUP, "swap-and-resume", "one node is named surely: evict it alone",
        "ours: isolate no more than needed", HIGH, nodes=True),
    Row(Branch.GROUP, "group-evict", "the suspects share a parallel group: evict the group",
        "section 5", nodes=True),
    Row(Branch.UNCLEAR, "stop-time-checks", "no culprit: check every node of the job, stopped",
        "Fig. 5 [3]"),
)  # fmt: skip

FALLBACK: tuple[Row, ...] = (
    Row(Branch.UNCLEAR, "stop-time-checks", "it failed again: check every node of the job",
        "Fig. 5, A fails again -> C"),
    Row(Branch.UNCLEAR, "restart-in-place", "all checks were clean: assume a transient fault",
        "Fig. 5 [5]", after=("stop-time-checks",)),
    Row(Branch.UNCLEAR, "", "it failed again: roll back the newest code change, then replay",
        "Fig. 5 [6] [8]", after=("restart-in-place",)),
)  # fmt: skip
"""What every branch joins once its own rows are used up."""


def next_move(verdict: Verdict, tried: Sequence[str] = (), alerts: int = 1) -> Row:
    """The row that applies to a verdict.

    Args:
        verdict: What is believed.
        tried: Playbooks that already ran for this job in this incident and did not help.
        alerts: Network alerts on the suspects within five minutes.
    """
    branch = BRANCHES.get(verdict.fault, Branch.MACHINE)
    rows = [row for row in TREE if row.branch is branch and _fits(row, verdict, tried, alerts)]
    rows += [row for row in FALLBACK if _fits(row, verdict, tried, alerts)]
    return rows[0] if rows else FALLBACK[-1]


def _fits(row: Row, verdict: Verdict, tried: Sequence[str], alerts: int) -> bool:
    return (
        verdict.confidence in row.confidence
        and (row.nodes is None or row.nodes is bool(verdict.nodes))
        and alerts >= row.alerts
        and row.playbook not in tried
        and (not row.after or any(name in tried for name in row.after))
    )


def describe_tree() -> str:
    """The tree as a table for the documentation; a test compares it with the page."""
    lines = [
        "| branch | sure enough | nodes named | after | then | source |",
        "|---|---|---|---|---|---|",
    ]
    for row in (*TREE, *FALLBACK):
        sure = "any" if len(row.confidence) == len(Confidence) else "/".join(row.confidence)
        nodes = "yes" if row.nodes else "-"
        alerts = f"{row.alerts} alerts" if row.alerts else ", ".join(row.after) or "-"
        act = f"`{row.playbook}`" if row.playbook else "a person"
        lines.append(
            f"| {row.branch} | {sure} | {nodes} | {alerts} | {act}: {row.say} | {row.source} |"
        )
    return "\n".join(lines)
