"""Start real ranks of the lab's job as processes of this machine."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

DEADLINE_S = 120


class Ranks:
    """One start of the job: its processes, and what they wrote."""

    def __init__(
        self,
        directory: Path,
        world_size: int,
        *,
        flags: Sequence[str] = (),
        resume_from: Path | None = None,
        order: Sequence[int] | None = None,
    ) -> None:
        self.directory = directory
        for name in ("progress", "checkpoints"):
            (directory / name).mkdir(parents=True, exist_ok=True)
        port = _free_port()
        self.processes = {
            rank: self._start(rank, world_size, port, flags, resume_from)
            for rank in (order or range(world_size))
        }

    def faults(self, rank: int) -> Path:
        return self.directory / f"faults-{rank}.json"

    def log(self, rank: int) -> str:
        return (self.directory / f"rank-{rank}.log").read_text()

    def progress(self, rank: int) -> dict[str, object]:
        path = self.directory / "progress" / f"rank-{rank:05d}.json"
        document: dict[str, object] = json.loads(path.read_text()) if path.exists() else {}
        return document

    def steps(self) -> dict[int, tuple[float, float]]:
        """Loss and gradient norm by step."""
        path = self.directory / "progress" / "steps.ndjson"
        lines = path.read_text().splitlines() if path.exists() else []
        parsed = [json.loads(line) for line in lines]
        return {line["step"]: (line["loss"], line["grad_norm"]) for line in parsed}

    def checkpoints(self) -> list[Path]:
        return sorted((self.directory / "checkpoints").glob("step-*"))

    def wait(self) -> dict[int, int]:
        """Exit status of every rank."""
        return {rank: process.wait(DEADLINE_S) for rank, process in self.processes.items()}

    def send(self, number: signal.Signals) -> None:
        for process in self.processes.values():
            process.send_signal(number)

    def kill(self) -> None:
        self.send(signal.SIGKILL)
        for process in self.processes.values():
            process.wait()

    def _start(
        self,
        rank: int,
        world_size: int,
        port: int,
        flags: Sequence[str],
        resume_from: Path | None,
    ) -> "subprocess.Popen[bytes]":
        environment = {
            **os.environ,
            "RANK": str(rank),
            "WORLD_SIZE": str(world_size),
            "LOCAL_RANK": "0",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "GLOO_SOCKET_IFNAME": "lo",
            "BRCTL_NODE": f"n{rank + 1}",
            "BRCTL_PROGRESS_DIR": str(self.directory / "progress"),
            "BRCTL_CHECKPOINT_DIR": str(self.directory / "checkpoints"),
            "BRCTL_RESUME_FROM": str(resume_from or ""),
            "BRCTL_LAB_FAULTS": str(self.faults(rank)),
        }
        with (self.directory / f"rank-{rank}.log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "brctl.training", "--pace=0", *flags],
                env=environment,
                stdout=log,
                stderr=log,
            )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
