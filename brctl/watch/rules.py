"""What a watcher suspects: one row a rule, and no other table says anything about one.

Figures marked P are ByteRobust's (arXiv 2509.16293, Table 3 and section 4.1). One look is enough
where the thing says itself that it is over with (a panic, a loss that is no number); two where it
may be a driver that was slow once; a second check that says it counts as a second look.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from brctl.model.watch.state import WatchClass

C = WatchClass


@dataclass(frozen=True, slots=True)
class WatchRule:
    """One thing that is suspected.

    Attributes:
        every_s: How often it is looked at.
        looks: Looks that must see it before it counts.
        holds_s: It stands so long after it was seen last; 0: the first clean look ends it.
        accuses: It speaks of a node, not of the course of a job.
        diagnosed: Confirmed, it is worth a diagnosis; else people are told and nothing follows.
    """

    watch_class: WatchClass
    title: str
    every_s: float
    looks: int
    accuses: bool
    holds_s: float = 0.0
    diagnosed: bool = True


RULES: Mapping[str, WatchRule] = {
    "kernel-fatal": WatchRule(C.KERNEL, "a fatal line in the kernel log", 2, 1, True, 600),  # P
    "gpu": WatchRule(
        C.GPU, "a GPU is lost, hot, in error or on a narrow PCIe link", 10, 2, True
    ),  # P
    "network": WatchRule(C.NETWORK, "an adapter fails or flaps", 30, 2, True, 300),  # P
    "node-silent": WatchRule(C.SILENT, "a node does not answer", 30, 2, True),  # P
    "rank-ended": WatchRule(C.STALL, "a rank ended with an error", 10, 1, False),
    "not-a-number": WatchRule(C.NUMBERS, "loss or gradient is no number", 10, 1, False),  # P
    "wrong-numbers": WatchRule(C.NUMBERS, "ranks find wrong numbers", 10, 1, False),
    "jump": WatchRule(C.NUMBERS, "loss or gradient jumped", 10, 2, False, diagnosed=False),  # P
    "no-step": WatchRule(C.STALL, "no step", 10, 1, False),
    "rdma-silent": WatchRule(C.STALL, "no RDMA traffic and no step", 30, 1, False),  # P: 10 min
    "tensor-idle": WatchRule(C.STALL, "tensor cores idle and no step", 30, 1, False),
    "slower": WatchRule(C.SPEED, "steps take longer than they did", 10, 5, False),  # P: 5 rounds
}

ROUNDS: Mapping[float, tuple[str, ...]] = {
    2: ("gpu.xid", "host.kernel"),
    10: ("gpu.devices", "gpu.pcie", "job.ranks"),
    30: ("gpu.ecc", "gpu.retirement", "gpu.clocks", "fabric.eth", "fabric.ibport"),
}
"""Which checks are asked how often. The first are asked only when the kernel log has grown;
what has no rule below is kept for the trends and suspects nobody."""

OF_CHECK: Mapping[str, str] = {
    "gpu.xid": "kernel-fatal", "host.kernel": "kernel-fatal",
    "gpu.devices": "gpu", "gpu.pcie": "gpu", "gpu.ecc": "gpu", "gpu.retirement": "gpu",
    "fabric.eth": "network", "fabric.ibport": "network",
}  # fmt: skip
"""The rule that evidence of a check speaks for."""

UNSENT = (
    "job.rank.last_words", "gpu.pcie.generation", "gpu.pcie.replays", "gpu.pcie.busy_pct",
)  # fmt: skip
"""Measurements that stay on the node: they change all the time, and a diagnosis reads them."""


def title_of(rule: str) -> str:
    """What a rule suspects; the rule's name where a record of another version has it."""
    return RULES[rule].title if rule in RULES else rule


def round_of(check: str) -> float:
    """How often a check is asked.

    Raises:
        StopIteration: It is in no round.
    """
    return next(every_s for every_s, names in ROUNDS.items() if check in names)
