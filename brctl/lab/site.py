"""Where a fault strikes: one node of one lab, and the levers that reach it."""

import hashlib
import json
import os
import signal
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from brctl.lab import kernel_log, loopback, namespaces
from brctl.lab.nvml.state import change_state, gpu_pci, gpu_uuid
from brctl.lab.processes import command_line, is_stopped, parent, send, start_ticks
from brctl.lab.record import LabRecord
from brctl.lab.spec import Isolation, LabPaths, NodePaths
from brctl.lab.wrong_results import WrongResults, read_wrong_results, write_wrong_results
from brctl.library.durable_files import write_atomic
from brctl.model.errors import UsageError

SETTLE_DEADLINE_S = 60.0
TRAINER = "brctl.training"
"""The module that every rank of the lab's job and its data loader run."""

SLOT_HELPER = f"{TRAINER}.checkpoints"
"""A child of a rank that makes no batches."""


def write_faults(path: Path, faults: Mapping[str, object]) -> None:
    """Replace what the trainer reads at every step; see brctl/training/faults.py for the keys."""
    write_atomic(path, json.dumps(dict(faults)))


def _is_trainer(pid: int) -> bool:
    return TRAINER.encode() in command_line(pid)


def write_clock(path: Path, offset_s: float) -> None:
    """Set a node's clock offset in place: programs have the file mapped, so it never shrinks."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.pwrite(handle, struct.pack("q", round(offset_s * 1e9)), 0)
    finally:
        os.close(handle)


@dataclass(frozen=True, slots=True)
class FaultSite:
    """One node of one lab.

    Attributes:
        chosen_gpu: GPU slot for GPU faults; None takes one that depends on the node's name.
        wrong: How often and when a GPU that computes or sends wrongly does so.
    """

    record: LabRecord
    paths: LabPaths
    name: str
    chosen_gpu: int | None = None
    wrong: WrongResults = field(default_factory=WrongResults)

    @property
    def files(self) -> NodePaths:
        return self.paths.node(self.name)

    @property
    def gpu(self) -> int:
        if self.chosen_gpu is not None:
            return self.chosen_gpu
        return hashlib.sha256(self.name.encode()).digest()[0] % self.record.spec.gpus

    @property
    def gpu_uuid(self) -> str:
        return gpu_uuid(self.name, self.gpu)

    @property
    def pci(self) -> str:
        """The GPU's address as the driver logs it, `0000:9a:00`."""
        return gpu_pci(self.gpu).rpartition(".")[0]

    @property
    def interface(self) -> str:
        """Our end of the node's cable."""
        return self.record.interface(self.name)

    @property
    def has_namespaces(self) -> bool:
        return self.record.isolation is Isolation.NETNS

    def processes(self) -> tuple[int, ...]:
        if self.has_namespaces:
            return namespaces.processes(self.paths, self.name)
        return loopback.processes(self.record, self.paths, self.name)

    def is_on(self) -> bool:
        return bool(self.processes())

    def set_gpu(self, **values: str) -> None:
        """Change what NVML says of the GPU: `__` in a name is a dot, `all` is every key."""
        prefix = f"gpu{self.gpu}"
        change_state(
            self.files.nvml,
            {
                f"{prefix}.{'*' if k == 'all' else k.replace('__', '.')}": v
                for k, v in values.items()
            },
        )

    def set_link(self, link: int, **values: str) -> None:
        """Change what NVML says of one NVLink of the GPU."""
        self.set_gpu(**{f"nvlink{link}__{key}": value for key, value in values.items()})

    def log_kernel(self, *texts: str) -> None:
        kernel_log.append(self.files.kernel_log, texts)

    def trouble_rank(self, **faults: object) -> None:
        """Make the rank that uses the GPU, or the node's first rank, show something."""
        local_rank = self.gpu % self.record.spec.ranks_per_node
        before = json.loads(self.files.faults.read_text())
        write_faults(self.files.faults, {**before, "local_rank": local_rank, **faults})

    def falsify(self, kind: int) -> None:
        """Let every torch process of the node compute or send wrong numbers from now on."""
        path = self.files.wrong_results
        kinds = read_wrong_results(path).kinds | kind
        write_wrong_results(path, replace(self.wrong, kinds=kinds, gpu=self.gpu))

    def trouble_job(self, **faults: object) -> None:
        """Let all ranks show something, whichever node they run on now or after a swap."""
        for path in self._all_faults():
            before = json.loads(path.read_text())
            write_faults(path, {**before, "job": {**before.get("job", {}), **faults}})

    def untrouble_job(self) -> None:
        for path in self._all_faults():
            before = json.loads(path.read_text())
            write_faults(path, {key: value for key, value in before.items() if key != "job"})

    def _all_faults(self) -> tuple[Path, ...]:
        return tuple(self.paths.node(node.name).faults for node in self.record.nodes)

    def step_and_data(self) -> tuple[int, int]:
        """The newest step of the job, and whose data the first rank on the node reads.

        Raises:
            UsageError: No rank runs there.
        """
        folder = self.paths.work / "progress"
        rows = [json.loads(path.read_text()) for path in sorted(folder.glob("rank-*.json"))]
        here = [row["rank"] for row in rows if row["node"] == self.name]
        if not here:
            raise UsageError(f"no rank runs on {self.name}", hint="start the job first")
        sizes = self.record.spec.parallel()
        sharing = sizes["tp"] * sizes["pp"] if self.record.spec.every_step else 1
        return max(row["step"] for row in rows), here[0] // sharing

    def trainers(self) -> tuple[int, ...]:
        """The node's rank processes, each followed by its data loader."""
        return tuple(pid for pid in self.processes() if _is_trainer(pid))

    def loader(self) -> int:
        """The data-loader process of one rank: the oldest trainer whose parent is a trainer.

        Raises:
            UsageError: No rank with a loader runs on the node.
        """
        found = self.trainers()
        children = [pid for pid in found if parent(pid) in found]
        loaders = [pid for pid in children if SLOT_HELPER.encode() not in command_line(pid)]
        if not loaders:
            raise UsageError(f"no data loader runs on {self.name}", hint="start the job first")
        return min(loaders, key=lambda pid: start_ticks(pid) or 0)

    def power_off(self) -> None:
        if self.has_namespaces:
            namespaces.power_off(self.record, self.paths, self.name)
        else:
            loopback.power_off(self.record, self.paths, self.name)

    def freeze(self) -> None:
        """Stop every process; repeated until no fork has slipped through."""
        deadline = time.monotonic() + SETTLE_DEADLINE_S
        while time.monotonic() < deadline:
            running = [pid for pid in self.processes() if not is_stopped(pid)]
            if not running:
                return
            send(running, signal.SIGSTOP)
            time.sleep(0.01)

    def thaw(self) -> None:
        send(self.processes(), signal.SIGCONT)

    def refuse_ssh(self, *, refuse: bool) -> None:
        """Close or open the node's SSH port, and wait until that shows."""
        if self.has_namespaces:
            namespaces.refuse_ssh(self.paths, self.name, refuse=refuse)
        else:
            loopback.refuse_ssh(self.paths, self.name, refuse=refuse)
        deadline = time.monotonic() + SETTLE_DEADLINE_S
        node = self.record.node(self.name)
        while namespaces.answers_ssh(node) is refuse and time.monotonic() < deadline:
            time.sleep(0.01)

    def run_inside(self, script: str) -> None:
        """Run a shell script in the node's namespaces."""
        namespaces.enter(self.paths, self.name, ["sh", "-c", script])
