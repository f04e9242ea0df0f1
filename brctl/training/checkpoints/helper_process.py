"""The trainer's side of its machine's helper: start it, ask it, start it again if it dies."""

import json
import select
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from brctl.training.checkpoints.spec import HeldCopies, HelperSpec

_RESTART_AFTER_S = 5.0
_END_WITHIN_S = 30.0
_STUCK_AFTER_S = 120.0
"""Who verifies copies computes, however slow the disk is; who waits for a dead one does not."""

_LOOK_EVERY_S = 0.5
_KILLED_WITHIN_S = 10.0


class HelperError(Exception):
    """The helper did not start or ended; says what is known."""


class HelperStuckError(HelperError):
    """The helper neither answers nor computes: a disk keeps it waiting."""


class HelperProcess:
    """The helper of this machine; owned by its first rank."""

    def __init__(self, spec: HelperSpec) -> None:
        self._spec = spec
        self._started_at = time.monotonic()
        try:
            self._process, self.inventory = _start(spec)
        except HelperStuckError as exc:
            if spec.disk is None:
                raise
            self._start_without_disk(spec, str(exc))
        self._addresses: Mapping[str, list[object]] = {}
        self._again: threading.Thread | None = None

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, command: Mapping[str, object]) -> str:
        """Have something done before the first step; "" or the reason why it was not.

        Raises:
            HelperError: The helper ended instead.
        """
        answer = _ask(self._process, command)
        return "" if answer.get("done") is True else str(answer.get("reason", "no reason given"))

    def join(self, addresses: Mapping[str, list[object]]) -> str:
        """Let it bring copies to the other machines from now on."""
        self._addresses = addresses
        return self.ask({"do": "join", "addresses": addresses})

    def keep_alive(self) -> None:
        """Start it again beside the training if it died; called every step."""
        status = self._process.poll()
        starting = self._again is not None and self._again.is_alive()
        waited = time.monotonic() - self._started_at > _RESTART_AFTER_S
        if status is not None and waited and not starting:
            self._started_at = time.monotonic()
            sys.stderr.write(
                f"brctl: the checkpoint helper ended with status {status}; training goes on, saves "
                "are skipped until it runs again\n"
            )
            self._again = threading.Thread(target=self._start_again, daemon=True)
            self._again.start()

    def close(self) -> None:
        """End it: it finishes what it is at, without us if a disk keeps it waiting."""
        if self._process.stdin is not None and self._process.stdout is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_WITHIN_S)
            self._process.stdout.close()

    def _start_without_disk(self, spec: HelperSpec, why: str) -> None:
        """All ranks wait for this one; what lies on the disk is refused, not taken for nothing."""
        self._spec = replace(spec, disk=None)
        self._process, found = _start(self._spec)
        sys.stderr.write(
            f"brctl: {spec.disk} does not answer ({why}): training starts without it, no step goes "
            "there until the job is started anew\n"
        )
        refused = f"{spec.disk}: does not answer, steps on it are not offered"
        self.inventory = replace(found, refused=(*found.refused, refused))

    def _start_again(self) -> None:
        """With the port of before, which the other machines know."""
        port = self.inventory.address[1]
        try:
            self._process, self.inventory = _start(replace(self._spec, port=port, verifies=False))
            problem = self.join(self._addresses)
        except (HelperError, OSError, ValueError, TypeError) as exc:
            problem = str(exc)
        if problem:
            # One that brings nothing to anybody would hold up all saves, unseen.
            self._process.terminate()
            sys.stderr.write(f"brctl: the checkpoint helper is not back: {problem}\n")


def _start(spec: HelperSpec) -> tuple["subprocess.Popen[str]", HeldCopies]:
    process = subprocess.Popen(
        # -P: what lies in the job's current directory must not become this program.
        [sys.executable, "-P", "-m", "brctl.training.checkpoints.helper"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        # It ends by itself with its rank; a signal to the job's group must not cut off a last copy.
        start_new_session=True,
    )  # fmt: skip
    _tell(process, spec.to_line())
    try:
        return process, HeldCopies.from_json(_read(process))
    except HelperStuckError:
        _kill(process)
        raise


def _kill(process: "subprocess.Popen[str]") -> None:
    """One that hangs in the kernel ends when that lets it go; its lock then says who it is."""
    process.kill()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_KILLED_WITHIN_S)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def _ask(process: "subprocess.Popen[str]", command: Mapping[str, object]) -> dict[str, object]:
    _tell(process, json.dumps(command))
    return _read(process)


def _tell(process: "subprocess.Popen[str]", line: str) -> None:
    try:
        if process.stdin is not None:
            process.stdin.write(line + "\n")
            process.stdin.flush()
    except OSError as exc:
        raise HelperError(f"the checkpoint helper ended: {exc}") from exc


def _read(process: "subprocess.Popen[str]") -> dict[str, object]:
    _wait_for_answer(process)
    line = process.stdout.readline() if process.stdout is not None else ""
    if not line:
        raise HelperError(
            f"the checkpoint helper ended with status {process.wait()} and no answer: see above"
        )
    answer: dict[str, object] = json.loads(line)
    return answer


def _wait_for_answer(process: "subprocess.Popen[str]") -> None:
    """However long that takes, as long as it computes.

    Raises:
        HelperStuckError: It does not.
    """
    computed, since_s = _cpu_ticks(process.pid), time.monotonic()
    answers = [pipe for pipe in (process.stdout,) if pipe is not None]
    while not select.select(answers, [], [], _LOOK_EVERY_S)[0]:
        if (ticks := _cpu_ticks(process.pid)) != computed:
            computed, since_s = ticks, time.monotonic()
        elif time.monotonic() - since_s > _STUCK_AFTER_S:
            raise HelperStuckError(
                f"the checkpoint helper {process.pid} has neither answered nor computed for "
                f"{_STUCK_AFTER_S:g} s"
            )


def _cpu_ticks(pid: int) -> int | None:
    """CPU time of all its threads; None where the kernel does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return int(fields[11]) + int(fields[12])
