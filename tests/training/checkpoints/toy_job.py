"""A small job of real ranks on pretended machines: each has a slot directory of its own."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

DEADLINE_S = 120.0


class Starter:
    """The process that forks ranks."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.training.checkpoints.toy_rank"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
        )  # fmt: skip

    def ask(self, do: str, **request: object) -> int | None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, **request}) + "\n")
        self._process.stdin.flush()
        answer: int | None = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        self._process.communicate(timeout=DEADLINE_S)


class ToyJob:
    """One job over all its attempts; its machines' memory is a folder in /dev/shm."""

    def __init__(
        self, starter: Starter, logs: Path, axes: str, machines: int, **options: object
    ) -> None:
        self._starter = starter
        self.logs = logs
        self._options = {"axes": axes, **options}
        self._per_machine = int(str(options.get("ranks_per_machine", 1)))
        self.machines = machines
        self.memory = Path(tempfile.mkdtemp(prefix="brctl-test-", dir="/dev/shm"))
        self.attempt = 0
        self._pids: dict[int, int] = {}
        self._statuses: dict[int, int] = {}

    @property
    def world(self) -> int:
        return self.machines * self._per_machine

    def start(self, **options: object) -> None:
        """Start every rank anew."""
        self.attempt += 1
        self._statuses.clear()
        for rank in range(self.world):
            asked = {**self._options, **options, "rank": rank, "world": self.world,
                     "store": str(self.logs / f"store-{self.attempt}"),
                     "directory": str(self.directory(rank // self._per_machine))}  # fmt: skip
            pid = self._starter.ask("start", options=asked, log=str(self._log(rank)))
            assert pid is not None
            self._pids[rank] = pid

    def directory(self, machine: int) -> Path:
        return self.memory / f"machine-{machine}"

    def text(self, rank: int) -> str:
        path = self._log(rank)
        return path.read_text() if path.exists() else ""

    def lines(self, rank: int) -> list[dict[str, object]]:
        """What a rank printed in this attempt, without lines not yet whole."""
        whole = [line for line in self.text(rank).splitlines(keepends=True) if line.endswith("\n")]
        return [json.loads(line) for line in whole if line.startswith("{")]

    def resumed(self, rank: int = 0) -> int:
        """The step this attempt resumed from."""
        self.until(lambda: bool(self.lines(rank)), "the ranks have started")
        return int(str(self.lines(rank)[0]["resumed"]))

    def steps(self, rank: int = 0) -> list[dict[str, object]]:
        return self.lines(rank)[1:]

    def last_step(self, rank: int = 0) -> int:
        steps = self.steps(rank)
        return int(str(steps[-1]["step"])) if steps else 0

    def reaches(self, step: int) -> None:
        """Wait until every rank has finished a step."""
        self.until(
            lambda: all(self.last_step(rank) >= step for rank in range(self.world)), f"step {step}"
        )

    def until(self, true: Callable[[], bool], what: str) -> None:
        limit_s = time.monotonic() + DEADLINE_S
        while not true():
            failed = [rank for rank in self._pids if self.status(rank) not in (None, 0)]
            assert not failed, f"rank {failed[0]} ended:\n{self.text(failed[0])[-2000:]}"
            assert time.monotonic() < limit_s, f"no {what}: {self.text(0)[-2000:]}"
            time.sleep(0.02)

    def status(self, rank: int) -> int | None:
        """Exit status of a rank; None while it runs."""
        if rank not in self._statuses:
            status = self._starter.ask("ended", pid=self._pids[rank])
            if status is not None:
                self._statuses[rank] = status
        return self._statuses.get(rank)

    def finish(self) -> None:
        """Wait until all ranks have ended well."""
        self.until(lambda: all(self.status(rank) == 0 for rank in self._pids), "end of the job")

    def fails(self) -> str:
        """Wait until every rank has ended with an error, and return what the first one said."""
        limit_s = time.monotonic() + DEADLINE_S
        while any(self.status(rank) is None for rank in self._pids):
            assert time.monotonic() < limit_s
            time.sleep(0.02)
        assert all(self.status(rank) == 1 for rank in self._pids)
        return self.text(0)

    def helper_pid(self, machine: int) -> int:
        """The process that holds the lock of the machine's helper."""
        found = (self.directory(machine) / "helper.lock").stat()
        # Of two file systems of memory, as of a lab beside this test, inodes may have one number.
        wanted = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
        for line in Path("/proc/locks").read_text().splitlines():
            pid, place = line.split()[4:6]
            if place == wanted:
                return int(pid)
        raise AssertionError(f"no helper of machine {machine}")

    def crash(self) -> None:
        """SIGKILL to every rank at once, and wait until they are gone."""
        for rank in self._pids:
            if self.status(rank) is None:
                with suppress(ProcessLookupError):
                    os.kill(self._pids[rank], signal.SIGKILL)
        limit_s = time.monotonic() + DEADLINE_S
        while any(self.status(rank) is None for rank in self._pids):
            assert time.monotonic() < limit_s
            time.sleep(0.01)

    def lose(self, machines: Collection[int]) -> None:
        """What these machines had in memory is gone; others take their places."""
        for machine in machines:
            shutil.rmtree(self.directory(machine))

    def close(self) -> None:
        self.crash()
        shutil.rmtree(self.memory)

    def _log(self, rank: int) -> Path:
        return self.logs / f"attempt-{self.attempt}-rank-{rank}.log"
