"""The fault catalogue: one row a class, and no other table says anything about a class.

Rules of this file: everything that differs between fault classes stands in the table, nothing in
code. What to do is not here: the class names its branch, and the decision tree
(brctl/playbook/tree.py) says what comes next on it. `prior` is log10 odds that this class is the
cause on one given node when training stops and nothing is known yet; the order follows the incident
counts of ByteRobust (arXiv 2509.16293, Table 1) with the paper's catch-all CUDA errors spread over
GPU classes. A class that explains another is never its rival: it produces the other's signs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from brctl.model.evidence_kinds import (
    BUSY_HOSTS,
    CLOCK_SKEW,
    GRADIENT_NORM_JUMPED,
    LOSS_JUMPED,
    NUMBERS_BAD,
    NUMBERS_DIFFER,
    RANK_GRADIENT,
    RANK_LOSS,
)
from brctl.model.fault import Branch, FaultClass, Origin

F = FaultClass

_NETWORKS = frozenset({F.NETWORK_IB, F.NETWORK_ETH, F.NETWORK_LINK})
_GPU_SIGNS = frozenset(
    {F.PCIE, F.NVLINK, F.THERMAL_POWER, F.DRIVER_FIRMWARE, F.GPU_SLOW, F.USER_CODE, F.GPU_OOM}
)
_STOPPED_RANK = frozenset({F.HANG_MISMATCH, F.STRAGGLER_SLOW, F.NODE_FAILURE, F.DATA_LOADER})
_ENDED_JOB = frozenset({F.UNKNOWN, F.PREEMPTION_SIGTERM})
_STOPPED = _STOPPED_RANK | _ENDED_JOB
_PEERS_SEE = _NETWORKS | {F.HANG_MISMATCH, F.STRAGGLER_SLOW}
_SWAP_COST = "one standby and the time of a restart; the node stays cordoned until burn-in"
_RESTART_COST = "the time of one restart"


@dataclass(frozen=True, slots=True)
class FaultRow:
    """All that is known of a fault class before anything was looked at.

    Attributes:
        title: What is broken, as the end of "because ...".
        words: What a person on call has to know of it, one sentence.
        origin: Whose side it is on, unless a log line knows better.
        branch: Its way through the decision tree.
        per_node: Whether one node has it; otherwise it is the job's or the site's.
        explains: Classes whose signs it produces by itself on its own node, or in the job.
        everywhere: Classes whose signs it produces on other nodes of the job.
        cost_if_wrong: What acting on it costs when it was something else.
        worth_stopping: A job that makes progress with it is better stopped and brought back.
        slows: A job with it is slower or wrong, and never stands or ends for it.
        titles: What is broken where evidence of one kind alone says it, by that kind.
        may_be_local: Not `per_node`, and yet one node alone may have it, which is then named.
    """

    title: str
    words: str
    origin: Origin
    branch: Branch
    prior: float = -1.2
    per_node: bool = True
    explains: frozenset[FaultClass] = frozenset()
    everywhere: frozenset[FaultClass] = frozenset()
    cost_if_wrong: str = _SWAP_COST
    slows: bool = False
    titles: Mapping[str, str] = field(default_factory=dict)
    may_be_local: bool = False
    worth_stopping: bool = True

    def produces(self, effect: FaultClass) -> bool:
        """Whether the signs of `effect` may be this class's own, wherever they were seen."""
        return effect in self.explains or effect in self.everywhere


CATALOGUE: Mapping[FaultClass, FaultRow] = {
    F.GPU_LOST: FaultRow(
        "a GPU fell off the bus",
        "The driver no longer reaches the GPU (Xid 79); only a reboot or a repair brings it back.",
        Origin.INFRA,
        Branch.MACHINE,
        prior=-1.0,
        explains=_GPU_SIGNS | _STOPPED | {F.ENVIRONMENT_MISMATCH},
        everywhere=_PEERS_SEE | {F.NVLINK},
    ),
    F.GPU_MEMORY_ECC: FaultRow(
        "GPU memory has uncorrectable errors",
        "Xid 48, 63, 64, 94 or 95, or failed row remaps: results and processes are lost.",
        Origin.INFRA,
        Branch.MACHINE,
        prior=-1.0,
        explains=_GPU_SIGNS | _STOPPED | {F.NUMERIC_NAN},
        everywhere=_PEERS_SEE | {F.NVLINK},
    ),
    F.NVLINK: FaultRow(
        "an NVLink is down or failing",
        "Links between the GPUs of one node, or an NVSwitch, report errors or are inactive.",
        Origin.INFRA,
        Branch.MACHINE,
        explains=_STOPPED | {F.GPU_SLOW, F.USER_CODE},
        everywhere=_PEERS_SEE,
    ),
    F.PCIE: FaultRow(
        "a PCIe link is degraded",
        "A device trained below its rate or width, or the bus reports uncorrected errors.",
        Origin.INFRA,
        Branch.MACHINE,
        explains=_STOPPED | {F.GPU_SLOW},
        everywhere=_PEERS_SEE,
        slows=True,
    ),
    F.THERMAL_POWER: FaultRow(
        "a GPU is held back by heat or power",
        "Clocks are low, or a part shut down, because of temperature, power supply or a fan.",
        Origin.INFRA,
        Branch.MACHINE,
        explains=_STOPPED_RANK | {F.GPU_SLOW},
        everywhere=_PEERS_SEE,
        slows=True,
    ),
    F.DRIVER_FIRMWARE: FaultRow(
        "GPU driver or firmware fails",
        "GSP time-outs (Xid 119, 120), fabric manager, driver start; a reset helps later.",
        Origin.INFRA,
        Branch.MACHINE,
        explains=_STOPPED | {F.USER_CODE, F.ENVIRONMENT_MISMATCH, F.PCIE},
        everywhere=_PEERS_SEE,
    ),
    F.SILENT_CORRUPTION: FaultRow(
        "a GPU computes wrong results",
        "Nothing reports an error, and the same work gives another result than elsewhere.",
        Origin.INFRA,
        Branch.MACHINE,
        prior=-2.0,
        explains=_STOPPED_RANK | {F.NUMERIC_NAN, F.USER_CODE},
        everywhere=_PEERS_SEE,
        slows=True,
    ),
    F.GPU_SLOW: FaultRow(
        "a GPU is slower than its peers",
        "A measured rate is below those of the same model, and no other sign says why.",
        Origin.INFRA,
        Branch.MACHINE,
        explains=_STOPPED_RANK,
        everywhere=_PEERS_SEE,
        slows=True,
    ),
    F.NETWORK_IB: FaultRow(
        "the InfiniBand side of a node fails",
        "An adapter or its port fails or stops answering; ports flap, so one alert proves little.",
        Origin.INFRA,
        Branch.NETWORK,
        prior=-1.1,
        explains=_STOPPED | {F.NETWORK_ETH},
        everywhere=_PEERS_SEE,
    ),
    F.NETWORK_ETH: FaultRow(
        "the Ethernet side of a node fails",
        "Connections to or from the node are refused, cut or time out, or its adapter is stuck.",
        Origin.INFRA,
        Branch.NETWORK,
        explains=_STOPPED_RANK,
        everywhere=_PEERS_SEE,
    ),
    F.NETWORK_LINK: FaultRow(
        "a network link fails or is slow",
        "A cable, transceiver or port of a node is down, flaps or counts errors.",
        Origin.INFRA,
        Branch.NETWORK,
        explains=_STOPPED_RANK | {F.NETWORK_IB, F.NETWORK_ETH, F.UNKNOWN},
        everywhere=_PEERS_SEE,
    ),
    F.NETWORK_SWITCH: FaultRow(
        "a switch or leaf fails",
        "Many nodes behind one switch lose each other; no node of them is at fault.",
        Origin.INFRA,
        Branch.SWITCH,
        prior=-2.0,
        per_node=False,
        explains=_STOPPED,
        everywhere=_PEERS_SEE,
        cost_if_wrong="a needless page to the network team",
        worth_stopping=False,
    ),
    F.NODE_FAILURE: FaultRow(
        "the node does not answer and its ranks are gone",
        "Power, board, CPU or memory failed, or the node was rebooted under its job.",
        Origin.INFRA,
        Branch.MACHINE,
        explains=_GPU_SIGNS | _STOPPED | {F.HOST_KERNEL},
        everywhere=_PEERS_SEE | {F.NVLINK},
    ),
    F.HOST_KERNEL: FaultRow(
        "the host kernel reports a failure",
        "A panic, an oops or a lock-up: what runs above it cannot be trusted.",
        Origin.INFRA,
        Branch.MACHINE,
        explains=_STOPPED,
        everywhere=_PEERS_SEE,
    ),
    F.CPU_OOM: FaultRow(
        "the host ran out of memory",
        "The kernel or a memory limit killed a process; the job asks for more than there is.",
        Origin.USER,
        Branch.USER,
        explains=_STOPPED | {F.USER_CODE},
        everywhere=_PEERS_SEE,
        cost_if_wrong=_RESTART_COST,
        worth_stopping=False,
    ),
    F.DISK_FULL: FaultRow(
        "a file system is full",
        "Writes fail until space is freed; the machine is healthy, another fills up as well.",
        Origin.INFRA,
        Branch.SPACE,
        explains=_STOPPED | {F.USER_CODE},
        everywhere=_PEERS_SEE,
        cost_if_wrong="a look at df",
        worth_stopping=False,
    ),
    F.STORAGE_CHECKPOINT: FaultRow(
        "storage fails where checkpoints go",
        "A disk, file server or checkpoint cannot be read or written; every node sees the same.",
        Origin.INFRA,
        Branch.STORAGE,
        per_node=False,
        explains=_ENDED_JOB | {F.USER_CODE, F.HOST_KERNEL, F.DISK_FULL},
        everywhere=_PEERS_SEE | _STOPPED_RANK,
        cost_if_wrong="a needless page to the storage team",
        may_be_local=True,
        worth_stopping=False,
    ),
    F.STRAGGLER_SLOW: FaultRow(
        "one node slows all others down",
        "Every collective waits for it; heat, a link, its CPU or its data may be the reason.",
        Origin.UNKNOWN,
        Branch.GROUP,
        explains=frozenset({F.UNKNOWN, F.USER_CODE}),
        slows=True,
    ),
    F.HANG_MISMATCH: FaultRow(
        "a rank never joined the collective the others wait in",
        "The ranks wait for one that stands elsewhere: its code, its GPU or its network.",
        Origin.UNKNOWN,
        Branch.GROUP,
        explains=_ENDED_JOB | {F.STRAGGLER_SLOW, F.NODE_FAILURE},
        everywhere=_PEERS_SEE,
        worth_stopping=False,
    ),
    F.NUMERIC_NAN: FaultRow(
        "the loss became NaN on one rank first",
        "Data, code or a GPU that computes wrongly; only checks of every node tell them apart.",
        Origin.UNKNOWN,
        Branch.NUMBERS,
        explains=_ENDED_JOB | {F.USER_CODE},
        everywhere=_PEERS_SEE,
        cost_if_wrong="the time of a restart and of the search",
        titles={
            RANK_LOSS: "the loss of one rank became NaN first: its batch or its machine",
            RANK_GRADIENT: "the gradient of one rank became NaN first: its batch or its machine",
            NUMBERS_BAD: "the loss became NaN on several ranks at once",
            NUMBERS_DIFFER: "numbers that must agree between ranks do not",
            LOSS_JUMPED: "the loss jumped on all ranks at once: code or data, or a machine",
            GRADIENT_NORM_JUMPED: "the gradient norm jumped: code or data, or a machine",
        },
    ),
    F.GPU_OOM: FaultRow(
        "a GPU ran out of memory",
        "The job asks for more GPU memory than there is, or another process holds some of it.",
        Origin.USER,
        Branch.USER,
        per_node=False,
        explains=_ENDED_JOB | {F.USER_CODE},
        everywhere=_PEERS_SEE | _STOPPED_RANK,
        cost_if_wrong=_RESTART_COST,
        worth_stopping=False,
    ),
    F.USER_CODE: FaultRow(
        "the training code raised an error",
        "An exception or a wrong GPU access of the job's own code; the newest change comes first.",
        Origin.USER,
        Branch.USER,
        prior=-0.8,
        per_node=False,
        explains=_ENDED_JOB,
        everywhere=_PEERS_SEE | _STOPPED_RANK,
        cost_if_wrong=_RESTART_COST,
        worth_stopping=False,
    ),
    F.DATA_LOADER: FaultRow(
        "a data loader failed",
        "Reading the next batch failed: a worker died, or the data is not as expected.",
        Origin.USER,
        Branch.USER,
        per_node=False,
        explains=_ENDED_JOB | {F.USER_CODE},
        everywhere=_PEERS_SEE | _STOPPED_RANK,
        cost_if_wrong=_RESTART_COST,
        worth_stopping=False,
    ),
    F.NCCL_CONFIG: FaultRow(
        "NCCL is configured wrongly",
        "An interface, plug-in, shared memory or version that NCCL was told to use does not fit.",
        Origin.USER,
        Branch.USER,
        per_node=False,
        explains=_ENDED_JOB | {F.DISK_FULL, F.USER_CODE},
        everywhere=_PEERS_SEE | _STOPPED_RANK,
        cost_if_wrong=_RESTART_COST,
        worth_stopping=False,
    ),
    F.ENVIRONMENT_MISMATCH: FaultRow(
        "software or settings of the nodes do not fit",
        "Driver, libraries, packages or clocks of the nodes do not fit each other or the job.",
        Origin.USER,
        Branch.CONFIG,
        per_node=False,
        explains=_ENDED_JOB | {F.USER_CODE, F.GPU_LOST, F.NCCL_CONFIG, F.DRIVER_FIRMWARE},
        everywhere=_PEERS_SEE | _STOPPED_RANK,
        cost_if_wrong="a look at what differs",
        titles={CLOCK_SKEW: "a node's clock is off"},
        may_be_local=True,
        worth_stopping=False,
    ),
    F.PREEMPTION_SIGTERM: FaultRow(
        "the job was told to stop",
        "A scheduler, a time limit or a person ended it before anything failed.",
        Origin.USER,
        Branch.TOLD,
        per_node=False,
        everywhere=_PEERS_SEE | _STOPPED_RANK,
        cost_if_wrong=_RESTART_COST,
        worth_stopping=False,
    ),
    F.NO_FAULT: FaultRow(
        "nothing is wrong that was looked at",
        "Everything that was asked answered, and nothing of it speaks of a fault.",
        Origin.UNKNOWN,
        Branch.NOTHING,
        per_node=False,
        cost_if_wrong="",
        worth_stopping=False,
    ),
    F.UNKNOWN: FaultRow(
        "the cause is not known",
        "Something is wrong or could not be looked at, and nothing names the cause surely.",
        Origin.UNKNOWN,
        Branch.UNCLEAR,
        per_node=False,
        cost_if_wrong="the time of the stop-time checks",
        titles={BUSY_HOSTS: "steps are longer, and its hosts have more to do than they can"},
        worth_stopping=False,
    ),
}

WRONG_RESULTS = CATALOGUE[F.SILENT_CORRUPTION].title
"""What stands in the reason of a cordon for them: the guard `corruption` looks for it there."""

REPLAYS_FAIL = "its groups fail in both rounds of a replay"
"""The reason of a cordon where a replay came to no result that could be called wrong."""
