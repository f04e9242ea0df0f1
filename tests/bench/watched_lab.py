"""A lab with its job, and a watcher beside it where one is wanted."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

DEADLINE_S = 150.0
SETTLES_S = 20.0
POLICY = """\
apiVersion: brctl.dev/v1
kind: WatchPolicy
mode: act
limits: {start_up: 1s, spares_kept: 0%s}
"""


class WatchedLab:
    """Everything is done with the commands that a person would type.

    Args:
        limits: More limits of the watcher's policy, as YAML.
        netns: Nodes with network namespaces of their own; takes root.
    """

    def __init__(
        self, folder: Path, nodes: int, standbys: int = 2, limits: str = "", *, netns: bool = False
    ) -> None:
        self.folder, self._nodes, self._standbys = folder / "lab", nodes, standbys
        self._isolation = "netns" if netns else "none"
        self._policy = folder / "watch.yaml"
        self._policy.write_text(POLICY % limits)
        self._policy.chmod(0o600)

    def brctl(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run one command to its end."""
        config = self.folder / "config.yaml"
        at = ["--config", str(config)] if config.exists() and words[0] != "lab" else []
        return subprocess.run(
            [sys.executable, "-m", "brctl", *at, *words], env=self._environment,
            capture_output=True, text=True, check=False, timeout=DEADLINE_S,
        )  # fmt: skip

    def done(self, *words: str) -> None:
        """Run one command that must succeed.

        Raises:
            RuntimeError: It did not.
        """
        ended = self.brctl(*words)
        if ended.returncode:
            raise RuntimeError(f"brctl {' '.join(words)}: {ended.stderr[-400:]}")

    def document(self, *words: str) -> Mapping[str, object]:
        """The answer of a command as JSON; nothing where it gave none."""
        try:
            return dict(json.loads(self.brctl(*words, "-o", "json").stdout))
        except ValueError:
            return {}

    @property
    def _environment(self) -> dict[str, str]:
        return {**os.environ, "BRCTL_LAB_DIR": str(self.folder)}

    @contextmanager
    def training(self) -> Iterator[None]:
        """Up, and its job begun."""
        up = self.brctl(
            "lab", "up", "--nodes", str(self._nodes), "--standbys", str(self._standbys),
            "--isolation", self._isolation,
        )  # fmt: skip
        try:
            if up.returncode:
                raise RuntimeError(up.stderr[-400:])
            self.done("job", "start", "lab-train")
            yield
        finally:
            self.brctl("lab", "down")

    @contextmanager
    def watched(self) -> Iterator[None]:
        """A watcher that may act, and has heard of every node."""
        watcher = subprocess.Popen(
            [sys.executable, "-m", "brctl", "--config", str(self.folder / "config.yaml"),
             "watch", "--job", "lab-train", "--mode", "act", "--policy", str(self._policy)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self._environment,
        )  # fmt: skip
        try:
            if not until(lambda: self.status().get("talking") == self._nodes, DEADLINE_S):
                raise RuntimeError(f"not {self._nodes} nodes talk after {DEADLINE_S:g} s")
            time.sleep(SETTLES_S)
            yield
        finally:
            end(watcher)

    def status(self) -> Mapping[str, object]:
        """What the watcher has written."""
        return self.document("watch", "status", "--lines", "1000")

    def job(self) -> Mapping[str, object]:
        """What is known of the job now."""
        body = self.document("job", "show")
        found = body.get("job", body)
        return found if isinstance(found, dict) else {}

    def step(self) -> int | None:
        """The job's newest step while it goes on; None while it does not."""
        body = self.job()
        return None if body.get("stalled") else int(str(body.get("step") or 0))


def end(process: "subprocess.Popen[bytes]") -> None:
    """End a process, by force where it does not end by itself."""
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def until(what: Callable[[], object], limit_s: float) -> bool:
    """Whether it came to be within the time."""
    give_up = time.monotonic() + limit_s
    while time.monotonic() < give_up:
        if what():
            return True
        time.sleep(0.5)
    return False
