"""What a process waits for in its kernel: a limit somebody set, files, or the machine itself."""

import re
from collections.abc import Iterable

from brctl.evidence.job.status import WAITING_PHASE
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.evidence_kinds import HELD_BACK, RANKS_CHECK
from brctl.model.jobs.job_status import JobStatus, RankView

_LIMIT = re.compile(
    r"refrigerator|freezer|mem_cgroup|memcg|balance_dirty_pages|blk_throtl|blkcg|wbt_wait|rq_qos"
)
_FILES = re.compile(
    r"nfs|rpc_|cl_sync_io|fuse|request_wait_answer|lustre|ll_|ptlrpc|ceph|gpfs|mmfs|beegfs|wait_on_page"
    r"|folio_wait|io_schedule|jbd2|xfs_|ext4_|balance_dirty_pages",
    re.IGNORECASE,
)
_SERVED = re.compile(
    r"nfs|rpc_|fuse|request_wait_answer|lustre|ptlrpc|ceph|gpfs|mmfs|beegfs", re.IGNORECASE
)


_PIPE = re.compile(r"wait_for_partner|pipe_read|pipe_wait|sk_wait|wait_woken|tcp_recv|inet_csk")


def is_file_wait(kernel_wait: str) -> bool:
    """A wait for a file system, a pipe or a connection: for somebody else to answer."""
    return bool(_FILES.search(kernel_wait) or _PIPE.search(kernel_wait))


def waits_for_files(view: RankView) -> bool:
    """Blocked in the kernel by a file system."""
    return view.process_state == "D" and bool(_FILES.search(view.kernel_wait))


def held_back_by(view: RankView) -> str:
    """What holds a process back that no machine is to blame for; "" for nothing of the kind."""
    if view.process_state != "D":
        return ""
    if _LIMIT.search(view.kernel_wait):
        return "a limit or a freeze of its control group"
    return "a file server or daemon" if _SERVED.search(view.kernel_wait) else ""


def served_alone(status: JobStatus) -> frozenset[int]:
    """Ranks that wait for a file server while no rank waits in the all-reduce.

    The stages of a pipeline wait for the one that reads: it is odd because only it asks the server,
    which may answer no other node either.
    """
    if any(view.alive and view.phase == WAITING_PHASE for view in status.ranks):
        return frozenset()
    return frozenset(
        view.rank
        for view in status.ranks
        if view.process_state == "D" and _SERVED.search(view.kernel_wait)
    )


def held_back(status: JobStatus) -> Iterable[Evidence]:
    """Ranks in state D for a reason outside their machines."""
    for view in status.ranks:
        if what := held_back_by(view):
            yield Evidence(
                kind=HELD_BACK,
                subject=Subject(view.node, f"rank:{view.rank}"),
                weight=Weight.CONTEXT,
                fault=None,
                role=Role.CONTEXT,
                source=RANKS_CHECK,
                text=f"rank {view.rank} is held back by {what} ({view.kernel_wait}), not by its"
                " machine",
                raw=f"state=D wchan={view.kernel_wait}",
            )
