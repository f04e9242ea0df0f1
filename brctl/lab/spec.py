"""What a lab consists of: its size, its isolation, and where everything of it lies."""

import hashlib
import sys
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from brctl.model.errors import UsageError, did_you_mean
from brctl.training.supervised_loader import POLICIES

MAX_NODES = 64


class Isolation(StrEnum):
    """How far nodes are apart."""

    AUTO = "auto"
    """`netns` where it works, else `none`."""
    NONE = "none"
    """Real SSH servers on loopback addresses; no privileges needed."""
    NETNS = "netns"
    """Own network, PID and mount namespace, hostname and OpenSSH server; needs root."""


def parse_isolation(text: str) -> Isolation:
    """The isolation a person named."""
    try:
        return Isolation(text)
    except ValueError as exc:
        near = did_you_mean(text, [each.value for each in Isolation])
        raise UsageError(f"no isolation {text!r}; {near}") from exc


@dataclass(frozen=True, slots=True)
class LabSpec:
    """What `lab up` was asked for.

    Attributes:
        nodes: Active nodes; the training job runs on all of them.
        gpus: Fake GPUs a node has.
        ranks_per_node: Ranks of the training job on each node.
        every_step: The job is tensor, pipeline and data parallel, and keeps every step in memory.
        data_parallel: The job names no tensor or pipeline groups: each node is a replica.
        on_loader: What supervised loaders do when a worker dies; "" takes PyTorch's own.
        steps: Steps the training job runs before it is done.
        checkpoint_every: A checkpoint after every so many steps.
        collective_timeout_s: After this long in one all-reduce a rank gives up with gloo's error.
        stall_after_s: After this long without a step the job counts as stalled; longer than any
            step takes on two busy cores, shorter than patience.
        python: Interpreter of probes and ranks; it must have torch for the training job.
    """

    nodes: int = 8
    standbys: int = 2
    gpus: int = 8
    isolation: Isolation = Isolation.AUTO
    ranks_per_node: int = 1
    every_step: bool = False
    data_parallel: bool = False
    on_loader: str = ""
    steps: int = 100_000
    checkpoint_every: int = 10
    collective_timeout_s: float = 30.0
    stall_after_s: float = 15.0
    python: str = field(default_factory=lambda: sys.executable)

    def check(self) -> None:
        """Refuse sizes that cannot be built."""
        limits = (
            ("nodes", self.nodes, 1, MAX_NODES),
            ("standbys", self.standbys, 0, MAX_NODES),
            ("gpus", self.gpus, 1, 16),
        )
        for name, value, least, most in limits:
            if not least <= value <= most:
                raise UsageError(f"a lab has {least} to {most} {name}, not {value}")
        if self.every_step and self.data_parallel:
            raise UsageError("a job that cuts its tensors (--every-step) has not only replicas")
        if self.on_loader not in ("", *POLICIES):
            near = did_you_mean(self.on_loader, POLICIES)
            raise UsageError(f"no policy {self.on_loader!r} for loaders; {near}")

    @property
    def world_size(self) -> int:
        return self.nodes * self.ranks_per_node

    def names(self) -> tuple[str, ...]:
        """Node names, active ones first."""
        return tuple(f"n{i}" for i in range(1, self.nodes + self.standbys + 1))

    def parallel(self) -> dict[str, int]:
        """Declared parallel sizes, fastest varying first, whose product is the world size."""
        if self.data_parallel:
            return {"tp": 1, "pp": 1, "dp": self.world_size}
        tp = 2 if self.world_size % 2 == 0 else 1
        pp = 2 if self.world_size % (tp * 2) == 0 and self.world_size > tp else 1
        return {"tp": tp, "pp": pp, "dp": self.world_size // (tp * pp)}


@dataclass(frozen=True, slots=True)
class NodePaths:
    """The files of one node."""

    root: Path

    @property
    def nvml(self) -> Path:
        """State of its fake NVML."""
        return self.root / "nvml.state"

    @property
    def kernel_log(self) -> Path:
        """Its kernel log, one /dev/kmsg record a line."""
        return self.root / "kmsg"

    @property
    def faults(self) -> Path:
        """Faults its ranks show, read by the trainer at every step."""
        return self.root / "faults.json"

    @property
    def clock(self) -> Path:
        """Offset of its wall clock, one int64 of nanoseconds."""
        return self.root / "clock"

    @property
    def wrong_results(self) -> Path:
        """What its GPUs compute or send wrongly; see wrong_results.py."""
        return self.root / "wrong-results"

    @property
    def pci(self) -> Path:
        """Its PCI devices, laid out like /sys/bus/pci/devices."""
        return self.root / "pci"

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def programs(self) -> Path:
        """First folder of its PATH: the fake nvidia-smi."""
        return self.root / "bin"

    @property
    def host_key(self) -> Path:
        return self.root / "host_key"

    @property
    def process(self) -> Path:
        """Its first process, written by whoever starts it."""
        return self.root / "process.json"

    @property
    def log(self) -> Path:
        return self.root / "sshd.log"


@dataclass(frozen=True, slots=True)
class LabPaths:
    """The files of one lab; `down` removes exactly these."""

    root: Path

    @property
    def record(self) -> Path:
        """What was created and must go again."""
        return self.root / "lab.json"

    @property
    def lock(self) -> Path:
        return self.root / ".lock"

    @property
    def config(self) -> Path:
        return self.root / "config.yaml"

    @property
    def inventory(self) -> Path:
        return self.root / "inventory.yaml"

    @property
    def job(self) -> Path:
        return self.root / "job.yaml"

    @property
    def guards(self) -> Path:
        return self.root / "guards.yaml"

    @property
    def keys(self) -> Path:
        return self.root / "keys"

    @property
    def client_key(self) -> Path:
        return self.keys / "client"

    @property
    def known_hosts(self) -> Path:
        return self.keys / "known_hosts"

    @property
    def work(self) -> Path:
        """Job data: checkpoints, logs, progress."""
        return self.root / "job"

    @property
    def scratch(self) -> Path:
        """Mount point of each node's own small disk; the same path on every node."""
        return self.root / "scratch"

    @property
    def memory(self) -> Path:
        """Mount point of each node's own memory, where ranks keep steps; the same path on all."""
        return self.root / "memory"

    @property
    def state(self) -> Path:
        """State of brctl itself while the lab is the context."""
        return self.root / "state"

    def node(self, name: str) -> NodePaths:
        return NodePaths(self.root / "nodes" / name)

    def owned(self) -> tuple[Path, ...]:
        """Everything the lab writes, apart from the lock."""
        return (
            self.config, self.inventory, self.job, self.guards, self.keys, self.work, self.scratch,
            self.memory, self.state, self.root / "nodes", self.record,
        )  # fmt: skip


def tag_bytes(tag: str) -> bytes:
    """Bytes from which a lab's addresses and interface names are taken."""
    return hashlib.sha256(tag.encode()).digest()
