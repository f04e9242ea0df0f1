"""Hosts with more to do than they have processors, and what that may do to a job's steps."""

from collections.abc import Collection, Iterable, Mapping
from statistics import median

from brctl.evidence.job.history import CAUSE_SHARE, slow_down
from brctl.evidence.operators import is_number
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.evidence_kinds import BUSY_HOSTS
from brctl.model.jobs.job_status import JobStatus
from brctl.model.sweeps.report import NodeReport

CPU_CHECK = "job.cpu"
LOAD = "host.cpu.load_per_cpu"

BUSY_LOAD = 2.0
"""So many processes that want each processor make ranks late in turn (own)."""

LEAST_RANKS = 3


def loads_of(reports: Iterable[NodeReport]) -> Mapping[str, float]:
    """How many processes want each processor of a node, of the nodes that tell."""
    told = (
        (report.node, m.value) for report in reports for m in report.named("host.cpu.load_per_cpu")
    )
    return {node: float(load) for node, load in told if is_number(load)}


def are_busy(reports: Iterable[NodeReport]) -> bool:
    """Most hosts have more to do than they have processors: any rank may be the late one."""
    loads = loads_of(reports)
    return bool(loads) and median(loads.values()) >= BUSY_LOAD


def of_ranks(status: JobStatus, reports: Iterable[NodeReport], name: str) -> Mapping[int, float]:
    """A reading of `job.cpu` by rank; a node tells of its own ranks only."""
    read: dict[int, float] = {}
    for report in reports:
        told = {m.subject: m.value for m in report.named(f"{CPU_CHECK}.{name}")}
        for rank in status.job.ranks_on(report.node):
            value = told.get(f"rank:{rank}")
            if is_number(value):
                read[rank] = float(value)
    return read


def hosts_may_account(status: JobStatus, reports: Collection[NodeReport]) -> Iterable[Evidence]:
    """That busy hosts may account for steps that became longer; nothing where they do not.

    They may where every rank has a thread that stands without a CPU for as much of a step as steps
    have grown: its main thread, which every step needs, where the nodes tell of it. It proves
    nothing, for the rank may always have stood so.
    """
    change = None if status.stalled or status.ended else slow_down(status.history)
    mains = of_ranks(status, reports, "main_waits_pct")
    every = max(LEAST_RANKS, len(status.ranks))
    waits = mains if len(mains) >= every else of_ranks(status, reports, "waits_pct")
    if change is None or len(waits) < every or not are_busy(reports) or _is_limited(reports):
        return
    loads = change.load_s is not None and change.load_s >= CAUSE_SHARE * change.growth_s
    if loads or min(waits.values()) < 100.0 * change.growth_s / change.now_s:
        return
    thread = "the main thread of the usual rank" if waits is mains else "a thread of the usual rank"
    yield Evidence(
        kind=BUSY_HOSTS,
        subject=Subject(""),
        weight=Weight.CONTEXT,
        fault=None,
        role=Role.CONTEXT,
        source=CPU_CHECK,
        text=f"steps are longer, and most hosts have more to do than they can: {thread} is ready"
        f" without a CPU for {median(waits.values()):.0f} % of the time, which may account for it;"
        " look at what else runs there",
    )


def _is_limited(reports: Iterable[NodeReport]) -> bool:
    """A limit on CPU time makes ranks stand as well, and whoever set it can take it away."""
    held = [m.value for r in reports for m in r.named("job.cgroup.throttled_pct")]
    return any(is_number(share) and share > 0 for share in held)
