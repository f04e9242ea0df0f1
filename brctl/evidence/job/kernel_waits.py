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
# From their beginning: a driver's `call_rwsem_down_write_failed` is no `ll_` of Lustre.
_SERVED = re.compile(
    r"_*(?:nfs|rpc_|fuse_|request_wait_answer|lustre|ll_|cl_sync_io|ldlm_|ptlrpc|osc_|ceph|gpfs|mmfs"
    r"|cxiWait|beegfs|fhgfs)",
    re.IGNORECASE,
)
_OWN_DISK = re.compile(r"_*(?:jbd2|xfs_|xlog_|ext4_|btrfs_)")
_PAGES = re.compile(r"_*(?:io_schedule|wait_on_page|folio_wait|balance_dirty_pages)")
"""Of a file, served or on a disk; of swap and of a migration as well."""

_PIPE = re.compile(r"wait_for_partner|pipe_read|pipe_wait|sk_wait|wait_woken|tcp_recv|inet_csk")


def is_file_wait(kernel_wait: str) -> bool:
    """A wait for a file system, a pipe or a connection: for somebody else to answer."""
    return bool(_is_of_files(kernel_wait) or _PIPE.search(kernel_wait))


def _is_of_files(kernel_wait: str) -> bool:
    return any(of.match(kernel_wait) for of in (_SERVED, _OWN_DISK, _PAGES))


def waits_for_files(view: RankView) -> bool:
    """Blocked in the kernel by a file system."""
    return view.process_state == "D" and _is_of_files(view.kernel_wait)


def waits_for_page(view: RankView) -> bool:
    """Blocked by a page: of which file, or of none, the kernel's function does not say."""
    return view.process_state == "D" and bool(_PAGES.match(view.kernel_wait))


def waits_for_own_disk(view: RankView) -> bool:
    """Blocked by a file system that lies on the node's own disks."""
    return view.process_state == "D" and bool(_OWN_DISK.match(view.kernel_wait))


def held_back_by(view: RankView) -> str:
    """What holds a process back that no machine is to blame for; "" for nothing of the kind."""
    if view.process_state != "D":
        return ""
    if _LIMIT.search(view.kernel_wait):
        return "a limit or a freeze of its control group"
    return "a file server or daemon" if _SERVED.match(view.kernel_wait) else ""


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
        if view.process_state == "D" and _SERVED.match(view.kernel_wait)
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
