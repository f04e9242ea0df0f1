"""Storage as one node has it: a directory only it cannot write, ranks that wait for files."""

from collections.abc import Iterable

from brctl.evidence.job.kernel_waits import waits_for_files, waits_for_page
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.evidence_kinds import DISKS_CHECK, RANKS_CHECK
from brctl.model.fault import FaultClass
from brctl.model.jobs.job_status import JobStatus
from brctl.model.sweeps.report import NodeReport

WRITABLE = "host.disk.writable"


def storage(status: JobStatus, reports: Iterable[NodeReport]) -> Iterable[Evidence]:
    """What speaks of the storage of single nodes of the job."""
    yield from _not_writable(status, reports)
    if status.stalled:
        yield from _waiting_for_files(status)


def _not_writable(status: JobStatus, reports: Iterable[NodeReport]) -> Iterable[Evidence]:
    """A directory of the job that few of its nodes cannot write, and most can."""
    by_path: dict[str, dict[str, bool]] = {}
    for report in reports:
        for m in report.named(WRITABLE):
            if isinstance(m.value, bool) and report.node in status.job.nodes:
                by_path.setdefault(m.subject, {})[report.node] = m.value
    for path, nodes in sorted(by_path.items()):
        shut = [node for node, writable in nodes.items() if not writable]
        if len(nodes) < 3 or len(shut) * 2 >= len(nodes):
            continue
        for node in shut:
            text = f"{path.removeprefix('disk:')} cannot be written on {node}"
            yield Evidence(
                kind=WRITABLE,
                subject=Subject(node, path),
                weight=Weight.CONVICTS,
                fault=FaultClass.STORAGE_CHECKPOINT,
                role=Role.ROOT,
                source=DISKS_CHECK,
                text=f"{text}; {len(nodes) - len(shut)} other nodes of the job can write there",
                raw=f"{WRITABLE} {path} false",
            )


def _waiting_for_files(status: JobStatus) -> Iterable[Evidence]:
    """Ranks of a job that stands still, blocked in the kernel by a file system.

    Before the first step they read what they start from, page by page: that alone accuses nobody.
    """
    for view in status.ranks:
        if waits_for_files(view):
            starts = status.step is None and waits_for_page(view)
            yield Evidence(
                kind="job.rank.waits-for-files",
                subject=Subject(view.node, f"rank:{view.rank}"),
                weight=Weight.CONTEXT if starts else Weight.HINTS,
                fault=FaultClass.STORAGE_CHECKPOINT,
                role=Role.CONTEXT if starts else Role.ROOT,
                source=RANKS_CHECK,
                text=f"rank {view.rank} waits in the kernel for a file system"
                f" ({view.kernel_wait}) while the job stands still",
                raw=f"state=D wchan={view.kernel_wait}",
            )
