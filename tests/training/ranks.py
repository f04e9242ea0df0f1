"""Real ranks of the lab's job as processes of this machine."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.fakes.ports import free_port
from tests.timeouts import TIMEOUT_S

STARTER = Path(__file__).parent / "rank_starter.py"


class Starter:
    """The process that forks ranks."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(STARTER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    def ask(self, do: str, **request: object) -> int | None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, **request}) + "\n")
        self._process.stdin.flush()
        answer: int | None = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        self._process.communicate(timeout=TIMEOUT_S)


class Ranks:
    """One start of the job: its processes, and what they wrote."""

    def __init__(
        self,
        starter: Starter,
        directory: Path,
        world_size: int,
        *,
        resume_from: Path | None = None,
        order: Sequence[int] | None = None,
        **options: float | str,
    ) -> None:
        self.directory = directory
        self._starter = starter
        self._statuses: dict[int, int] = {}
        for name in ("progress", "checkpoints", "dumps"):
            (directory / name).mkdir(parents=True, exist_ok=True)
        port = free_port()
        self._pids = {
            rank: starter.ask(
                "start",
                environment=self._environment(rank, world_size, port, resume_from),
                log=str(directory / f"rank-{rank}.log"),
                options={**_DEFAULTS, **options},
            )
            for rank in (order or range(world_size))
        }

    def faults(self, rank: int) -> Path:
        return self.directory / f"faults-{rank}.json"

    def dump(self, rank: int) -> Path:
        return self.directory / "dumps" / f"fr_{rank}"

    def child(self, rank: int) -> int:
        """Process id of the rank's only child, its data loader."""
        (child,) = self.children(rank)
        return child

    def children(self, rank: int) -> list[int]:
        """Process ids of a rank's loader and its shadow."""
        pid = self._pids[rank]
        return [int(child) for child in self._children_of(pid).read_text().split()]

    @staticmethod
    def _children_of(pid: int | None) -> Path:
        return Path(f"/proc/{pid}/task/{pid}/children")

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

    def ended(self, rank: int) -> int | None:
        """Exit status of a rank; None while it runs."""
        if rank not in self._statuses:
            status = self._starter.ask("ended", pid=self._pids[rank])
            if status is not None:
                self._statuses[rank] = status
        return self._statuses.get(rank)

    def wait(self, rank: int) -> int:
        limit_s = time.monotonic() + TIMEOUT_S
        while (status := self.ended(rank)) is None:
            assert time.monotonic() < limit_s, f"rank {rank} does not end"
            time.sleep(0.02)
        return status

    def wait_all(self) -> dict[int, int]:
        """Exit status of every rank."""
        return {rank: self.wait(rank) for rank in sorted(self._pids)}

    def send(self, number: signal.Signals) -> None:
        for rank, pid in self._pids.items():
            if pid is not None and self.ended(rank) is None:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)

    def kill(self) -> None:
        self.send(signal.SIGKILL)
        self.wait_all()

    def _environment(
        self, rank: int, world_size: int, port: int, resume_from: Path | None
    ) -> dict[str, str]:
        return {
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
            "TORCH_FR_DUMP_TEMP_FILE": str(self.directory / "dumps" / "fr_"),
            "BRCTL_LAB_FAULTS": str(self.faults(rank)),
        }


_DEFAULTS = {
    "steps": 100_000,
    "checkpoint_every": 10,
    "keep": 4,
    "seed": 7,
    "pace_s": 0.0,
    "collective_timeout_s": TIMEOUT_S,
    "dump_after_s": 1.0,
}
