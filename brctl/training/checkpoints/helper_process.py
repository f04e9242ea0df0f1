"""The trainer's side of its machine's helper: start it, ask it, start it again if it dies."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from brctl.training.checkpoints.spec import HeldCopies, HelperSpec

_RESTART_AFTER_S = 5.0
_END_WITHIN_S = 30.0


class HelperError(Exception):
    """The helper did not start or ended; says what is known."""


class HelperProcess:
    """The helper of this machine; owned by its first rank."""

    def __init__(self, spec: HelperSpec) -> None:
        self._spec = spec
        self._started_at = time.monotonic()
        self._process, self.inventory = _start(spec)
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
    return process, HeldCopies.from_json(_read(process))


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
    line = process.stdout.readline() if process.stdout is not None else ""
    if not line:
        raise HelperError(
            f"the checkpoint helper ended with status {process.wait()} and no answer: see above"
        )
    answer: dict[str, object] = json.loads(line)
    return answer
