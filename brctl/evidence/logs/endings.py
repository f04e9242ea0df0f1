"""What to look at next where a log does not name its cause: the likeliest cause, and what settles it.

The leads of words (leads.py) stand after these. A SIGKILL, a time-out or a closed connection is known to have usual causes; each row names one, its
share among such ends by brctl's own judgement, and the two commands whose output decides.
"""

# ruff: noqa: E501 - a table is read by its columns

from collections.abc import Iterable, Sequence

from brctl.evidence.logs.event import LogEvent
from brctl.evidence.logs.witnesses import (
    NODE_SILENT,
    PEER_GONE,
    QUEUE_FLUSHED,
    WORKER_STOPPED,
)
from brctl.model.fault import FaultClass as F
from brctl.model.log_verdict import LogLead

_MEMORY = (
    "dmesg -T | grep -iE 'out of memory|oom-kill|killed process'",
    "sacct -j JOB --format=JobID,State,ExitCode,MaxRSS,ReqMem",
)
_STOP = ("scontrol show job JOB", "kubectl describe pod POD")
_DRIVER = (
    "dmesg -T | grep -iE 'xid|nvrm|segfault'",
    "nvidia-smi -q -d ECC,ROW_REMAPPER,PERFORMANCE",
)
_FABRIC = ("ibstat", "ethtool -S IFACE | grep -iE 'err|discard|drop|timeout'")
_STACKS = ("brctl stacks dump", "brctl dx")
_PEER = ("tail -n 100 the log of the rank or host that is named", "dmesg -T on that host")

_TABLE: tuple[tuple[frozenset[str], F, float, str, tuple[str, str]], ...] = (
    (frozenset({"exit.killed", "k8s.crash"}), F.CPU_OOM, 0.5, "SIGKILL without a word: most often the kernel's or a container's memory limit", _MEMORY),
    (frozenset({"exit.killed"}), F.PREEMPTION_SIGTERM, 0.2, "a scheduler or a person sends the same signal", _STOP),
    (frozenset({"exit.segv", "native.segfault", "kernel.segfault"}), F.USER_CODE, 0.45, "a crash in native code: an extension, or a library that does not fit", ("coredumpctl info PID", "dmesg -T | grep -i segfault")),
    (frozenset({"exit.segv", "kernel.segfault", "cuda.unspecified"}), F.DRIVER_FIRMWARE, 0.2, "the driver or a GPU below it", _DRIVER),
    (frozenset({"c10d.watchdog", "barrier.timeout"}), F.HANG_MISMATCH, 0.4, "a time-out names who waited: one rank did not come", _STACKS),
    (frozenset({"c10d.watchdog", "nccl.system-error", "nccl.warn"}), F.NETWORK_IB, 0.2, "the network between the ranks", _FABRIC),
    (frozenset({NODE_SILENT}), F.NODE_FAILURE, 0.45, "who missed its heartbeats saw a silent node: the node, its agent or the way to it", _PEER),
    (frozenset({NODE_SILENT, QUEUE_FLUSHED}), F.NETWORK_IB, 0.2, "the network between the two", _FABRIC),
    (frozenset({WORKER_STOPPED, "slurm.step-cancelled"}), F.PREEMPTION_SIGTERM, 0.3, "a person, a scheduler or the end of another rank stopped it", _STOP),
    (frozenset({"nccl.peer-closed", "c10d.store-lost", "gloo.broken", PEER_GONE}), F.NODE_FAILURE, 0.25, "somebody else closed the connection and failed first", _PEER),
    (frozenset({"exit.python", "exit.abort", "torchrun.failed", "python.traceback"}), F.USER_CODE, 0.3, "the program ended itself; its own log has the exception", ("grep -n -A20 Traceback the log of the first rank that failed", "rerun with TORCHELASTIC_ERROR_FILE=FILE")),
)  # fmt: skip

SOURCE = "ending"
"""How a lead of this table is told from one that words name."""

_SHOWN = 3


def leads_of_ending(events: Iterable[LogEvent]) -> tuple[LogLead, ...]:
    """The likeliest causes of what was seen and not explained, likeliest first."""
    names = {event.signature.name for event in events}
    found: dict[F, LogLead] = {}
    for seen, fault, share, why, commands in _TABLE:
        if not seen.isdisjoint(names):
            found.setdefault(fault, LogLead(fault, share, SOURCE, why=why, commands=commands))
    return tuple(_likeliest(list(found.values())))


def _likeliest(leads: Sequence[LogLead]) -> list[LogLead]:
    return sorted(leads, key=lambda lead: (-lead.probability, lead.fault.value))[:_SHOWN]
