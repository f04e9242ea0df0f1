"""The decision tree of ByteRobust (arXiv 2509.16293, section 4, Fig. 5) as a table.

The first row that matches a verdict and the runs it already led to says what comes next. A row that
was tried and did not help is passed over, so the same failure climbs from the cheap to the dear:
evict, stop-time checks, restart, roll back, replay. `playbook` is empty where a person must act.
"""

from dataclasses import dataclass
from enum import StrEnum

from brctl.model.fault import FaultClass
from brctl.model.verdict import Confidence, Verdict

F = FaultClass


class Branch(StrEnum):
    """Which of the paper's branches a fault takes; `told to stop` and `site` are ours."""

    MACHINE = "machine"
    NETWORK = "network"
    USER = "user"
    TOLD = "told to stop"
    SITE = "site"
    UNCLEAR = "unclear"
    GROUP = "group"


BRANCHES = {
    F.NETWORK_IB: Branch.NETWORK, F.NETWORK_ETH: Branch.NETWORK, F.NETWORK_LINK: Branch.NETWORK,
    F.USER_CODE: Branch.USER, F.DATA_LOADER: Branch.USER, F.GPU_OOM: Branch.USER,
    F.CPU_OOM: Branch.USER, F.NCCL_CONFIG: Branch.USER, F.PREEMPTION_SIGTERM: Branch.TOLD,
    F.NUMERIC_NAN: Branch.UNCLEAR, F.UNKNOWN: Branch.UNCLEAR,
    F.HANG_MISMATCH: Branch.GROUP, F.STRAGGLER_SLOW: Branch.GROUP,
    F.NETWORK_SWITCH: Branch.SITE, F.STORAGE_CHECKPOINT: Branch.SITE,
    F.ENVIRONMENT_MISMATCH: Branch.SITE, F.NO_FAULT: Branch.SITE,
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
        fewer_alerts: There must be fewer than these; None for any number.
        changed: A code change must be on record that can be rolled back; None for no matter.
        after: Playbooks of which one must have been tried already; empty for none.
        unless: Playbooks of which none may have been tried.
        source: Where in the paper the edge is drawn, or why we added it.
    """

    branch: Branch
    playbook: str
    say: str
    source: str
    confidence: tuple[Confidence, ...] = tuple(Confidence)
    nodes: bool | None = None
    alerts: int = 0
    fewer_alerts: int | None = None
    changed: bool | None = None
    after: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()


HIGH = (Confidence.HIGH,)
SURE = (Confidence.HIGH, Confidence.MEDIUM)

TREE: tuple[Row, ...] = (
    Row(Branch.MACHINE, "swap-and-resume", "a machine is at fault: evict it", "Fig. 5 [1]",
        SURE, nodes=True),
    Row(Branch.NETWORK, "swap-and-resume", "the network alert came back: evict", "Fig. 5 [1]",
        SURE, nodes=True, alerts=NETWORK_ALERTS),
    Row(Branch.NETWORK, "", "one network alert: wait for a second within five minutes",
        "section 4.1", fewer_alerts=NETWORK_ALERTS),
    Row(Branch.USER, "code-rollback", "take back the newest code change", "Fig. 5 [2]",
        changed=True),
    Row(Branch.USER, "restart-in-place", "no code change is on record to take back: restart",
        "ours: Fig. 5 [2] rolls back first", unless=("code-rollback",)),
    Row(Branch.USER, "", "it failed again, and no code change is on record: fix the code",
        "ours", after=("restart-in-place",), unless=("code-rollback",)),
    Row(Branch.TOLD, "restart-in-place", "it was told to stop: start it again", "ours"),
    Row(Branch.TOLD, "", "it was told to stop again: ask who does that", "ours",
        after=("restart-in-place",)),
    Row(Branch.SITE, "", "neither another node nor another start would help", "ours"),
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
    Row(Branch.UNCLEAR, "code-rollback", "it failed again: take back the newest code change",
        "Fig. 5 [6]", changed=True, after=("restart-in-place",)),
    Row(Branch.UNCLEAR, "replay", "it failed again: replay the job in groups to find the node",
        "Fig. 5 [8]", after=("restart-in-place", "code-rollback")),
    Row(Branch.UNCLEAR, "", "all of the tree was tried", "ours", after=("replay",)),
)  # fmt: skip
"""What every branch joins once its own rows are used up."""


@dataclass(frozen=True, slots=True)
class Incident:
    """What is known besides the verdict.

    Attributes:
        tried: Playbooks that already restarted this job in this incident and did not help.
        alerts: Network alerts on the suspects within five minutes.
        changed: A code change is on record that can be rolled back.
    """

    tried: tuple[str, ...] = ()
    alerts: int = 1
    changed: bool = False


NO_HISTORY = Incident()


def branch_of(fault: FaultClass) -> Branch:
    """The branch a class of faults takes."""
    return BRANCHES.get(fault, Branch.MACHINE)


def next_move(verdict: Verdict, incident: Incident = NO_HISTORY) -> Row:
    """The row that applies to a verdict."""
    branch = branch_of(verdict.fault)
    rows = [row for row in TREE if row.branch is branch and _fits(row, verdict, incident)]
    rows += [row for row in FALLBACK if _fits(row, verdict, incident)]
    return rows[0] if rows else FALLBACK[-1]


def _fits(row: Row, verdict: Verdict, incident: Incident) -> bool:
    tried = set(incident.tried)
    return (
        verdict.confidence in row.confidence
        and (row.nodes is None or row.nodes is bool(verdict.nodes))
        and incident.alerts >= row.alerts
        and (row.fewer_alerts is None or incident.alerts < row.fewer_alerts)
        and (row.changed is None or row.changed is incident.changed)
        and row.playbook not in tried
        and (not row.after or bool(tried & set(row.after)))
        and not tried & set(row.unless)
    )


def describe_tree() -> str:
    """The tree as a table for the documentation; a test compares it with the page."""
    lines = [
        "| branch | sure enough | nodes named | besides | then | source |",
        "|---|---|---|---|---|---|",
    ]
    for row in (*TREE, *FALLBACK):
        sure = "any" if len(row.confidence) == len(Confidence) else "/".join(row.confidence)
        nodes = "yes" if row.nodes else "-"
        act = f"`{row.playbook}`" if row.playbook else "a person"
        cells = [row.branch, sure, nodes, _besides(row), f"{act}: {row.say}", row.source]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _besides(row: Row) -> str:
    said = [f"{row.alerts} alerts"] if row.alerts else []
    said += [f"fewer than {row.fewer_alerts} alerts"] if row.fewer_alerts else []
    said += ["a code change on record"] if row.changed else []
    said += [f"after {' or '.join(row.after)}"] if row.after else []
    said += [f"not after {' or '.join(row.unless)}"] if row.unless else []
    return ", ".join(said) or "-"
