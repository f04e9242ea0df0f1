"""The fault catalogue: what each class is called, whose side it is on, and what to do.

Rules of this file: everything that differs between fault classes stands in the table, nothing in
code. `prior` is log10 odds that this class is the cause on one given node when training stops and
nothing is known yet; the order follows the incident counts of ByteRobust (arXiv 2509.16293,
Table 1) with the paper's catch-all CUDA errors spread over GPU classes. `explains` names classes
whose signs this class produces by itself on the same node; `everywhere` those it produces on other
nodes of the job.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from brctl.model.fault import Action, FaultClass, Origin

F = FaultClass

_GPU_SIGNS = frozenset(
    {F.PCIE, F.NVLINK, F.THERMAL_POWER, F.DRIVER_FIRMWARE, F.GPU_SLOW, F.USER_CODE, F.GPU_OOM}
)
_STOPPED_RANK = frozenset({F.HANG_MISMATCH, F.STRAGGLER_SLOW, F.NODE_FAILURE, F.DATA_LOADER})
_PEERS_SEE = frozenset(
    {F.NETWORK_IB, F.NETWORK_ETH, F.NETWORK_LINK, F.HANG_MISMATCH, F.STRAGGLER_SLOW, F.NVLINK}
)
_SWAP_COST = "one standby and the time of a restart; the node stays cordoned until burn-in"
_RESTART_COST = "the time of one restart"
_GROUP = (Action.EVICT_GROUP, "group-evict")


@dataclass(frozen=True, slots=True)
class FaultRow:
    """One fault class as verdicts use it."""

    title: str
    origin: Origin
    action: Action
    playbook: str
    prior: float = -1.2
    per_node: bool = True
    explains: frozenset[FaultClass] = frozenset()
    everywhere: frozenset[FaultClass] = frozenset()
    cost_if_wrong: str = _SWAP_COST
    together: tuple[Action, str] | None = None
    """Action and playbook when several nodes are suspected at once."""


def _machine(title: str, **more: object) -> FaultRow:
    """A fault of one machine: swap it and resume."""
    row = {"origin": Origin.INFRA, "action": Action.SWAP, "playbook": "swap-and-resume"}
    return FaultRow(title, **(row | {"explains": _STOPPED_RANK, "everywhere": _PEERS_SEE} | more))  # type: ignore[arg-type]  # fields of FaultRow


def _job(title: str, action: Action, playbook: str, **more: object) -> FaultRow:
    """A fault of the job or its surroundings: no machine is to blame."""
    row = {"origin": Origin.USER, "per_node": False, "cost_if_wrong": _RESTART_COST}
    row |= {"everywhere": _PEERS_SEE | _STOPPED_RANK}
    return FaultRow(title, action=action, playbook=playbook, **(row | more))  # type: ignore[arg-type]  # fields of FaultRow


CATALOGUE: Mapping[FaultClass, FaultRow] = {
    F.GPU_LOST: _machine("a GPU fell off the bus", prior=-1.0, explains=_GPU_SIGNS | _STOPPED_RANK),
    F.GPU_MEMORY_ECC: _machine(
        "GPU memory has uncorrectable errors", prior=-1.0, explains=_GPU_SIGNS | _STOPPED_RANK
    ),
    F.NVLINK: _machine("an NVLink is down or failing", explains=_STOPPED_RANK | {F.GPU_SLOW}),
    F.PCIE: _machine("a PCIe link is degraded", explains=_STOPPED_RANK | {F.GPU_SLOW}),
    F.THERMAL_POWER: _machine(
        "a GPU is held back by heat or power", explains=_STOPPED_RANK | {F.GPU_SLOW}
    ),
    F.DRIVER_FIRMWARE: _machine("GPU driver or firmware fails", explains=_STOPPED_RANK),
    F.SILENT_CORRUPTION: _machine("a GPU computes wrong results", prior=-2.0),
    F.GPU_SLOW: _machine("a GPU is slower than its peers", explains=_STOPPED_RANK),
    F.NETWORK_IB: _machine("the InfiniBand side of a node fails", prior=-1.1),
    F.NETWORK_ETH: _machine("the Ethernet side of a node fails"),
    F.NETWORK_LINK: _machine("a network link fails or is slow"),
    F.NETWORK_SWITCH: _machine(
        "a switch or leaf fails",
        action=Action.PAGE_NETWORK,
        playbook="",
        prior=-2.0,
        per_node=False,
        cost_if_wrong="a needless page to the network team",
    ),
    F.NODE_FAILURE: _machine(
        "the node does not answer and its ranks are gone",
        explains=_GPU_SIGNS | _STOPPED_RANK | {F.HOST_KERNEL},
    ),
    F.HOST_KERNEL: _machine("the host kernel reports a failure", explains=_STOPPED_RANK),
    F.CPU_OOM: _machine(
        "the host ran out of memory",
        origin=Origin.USER,
        action=Action.RESTART,
        playbook="restart-in-place",
        explains=_STOPPED_RANK,
        cost_if_wrong=_RESTART_COST,
    ),
    F.DISK_FULL: _machine(
        "a file system is full", action=Action.FREE_SPACE, playbook="", cost_if_wrong="a look at df"
    ),
    F.STORAGE_CHECKPOINT: _job(
        "storage fails where checkpoints go", Action.CORDON, "", origin=Origin.INFRA
    ),
    F.STRAGGLER_SLOW: _machine(
        "one node slows all others down",
        origin=Origin.UNKNOWN,
        everywhere=frozenset(),
        together=_GROUP,
    ),
    F.HANG_MISMATCH: _machine(
        "a rank never joined the collective the others wait in",
        origin=Origin.UNKNOWN,
        together=_GROUP,
        explains=frozenset({F.STRAGGLER_SLOW, F.NODE_FAILURE}),
    ),
    F.NUMERIC_NAN: _machine(
        "the loss became NaN on one rank first",
        origin=Origin.UNKNOWN,
        action=Action.STOP_TIME_CHECKS,
        playbook="stop-time-checks",
        explains=frozenset(),
        cost_if_wrong="the time of the stop-time checks",
    ),
    F.GPU_OOM: _job("a GPU ran out of memory", Action.FIX_CONFIG, "restart-in-place"),
    F.USER_CODE: _job(
        "the training code raised an error", Action.RESTART, "restart-in-place", prior=-0.8
    ),
    F.DATA_LOADER: _job("a data loader failed", Action.RESTART, "restart-in-place"),
    F.NCCL_CONFIG: _job("NCCL is configured wrongly", Action.FIX_CONFIG, "restart-in-place"),
    F.ENVIRONMENT_MISMATCH: _job("software versions do not fit", Action.FIX_CONFIG, ""),
    F.PREEMPTION_SIGTERM: _job("the job was told to stop", Action.RESTART, "restart-in-place"),
    F.NO_FAULT: _job("nothing is wrong that was looked at", Action.NONE, "", cost_if_wrong=""),
    F.UNKNOWN: _job("the cause is not known", Action.COLLECT_MORE, "", origin=Origin.UNKNOWN),
}
