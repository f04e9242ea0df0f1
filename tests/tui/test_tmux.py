"""The real program in a real terminal: from a broken node to a job that trains again."""

import json
import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.test_sweep_jobs import JOB, Ranks
from tests.fakes.site_files import local_config, write_site
from tests.timeouts import TIMEOUT_S
from tests.tui.lab_site import BRCTL, brctl, broken_lab, job_step, lab_environ, wait_for_step
from tests.tui.site import make_site


def until(holds: Callable[[], bool], what: str) -> None:
    """Wait until something is so."""
    end = time.monotonic() + TIMEOUT_S
    while not holds():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.2)


class Terminal:
    """A tmux server of our own with one window."""

    def __init__(
        self,
        environ: dict[str, str],
        size: tuple[int, int],
        *arguments: str,
    ) -> None:
        self._socket = f"brctl-test-{uuid.uuid4().hex[:8]}"
        self._environ = environ
        self._tmux("new-session", "-d", "-x", str(size[0]), "-y", str(size[1]), "-s", "t",
                   *BRCTL, *(arguments or ("--context", "lab", "tui")))  # fmt: skip

    def _tmux(self, *arguments: str) -> str:
        done = subprocess.run(
            ["tmux", "-L", self._socket, "-f", "/dev/null", *arguments], env=self._environ,
            capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
        return done.stdout

    def press(self, *keys: str) -> None:
        self._tmux("send-keys", "-t", "t", *keys)

    def text(self) -> str:
        return self._tmux("capture-pane", "-p", "-t", "t")

    def click(self, text: str) -> None:
        """A press and release of the left button on the first place that shows a text."""
        rows = self.text().splitlines()
        row = next(n for n, line in enumerate(rows) if text in line)
        place = f"{rows[row].index(text) + 2};{row + 1}"
        codes = "".join(f"\x1b[<0;{place}{end}" for end in "Mm")
        self._tmux("send-keys", "-t", "t", "-H", *(f"{byte:02x}" for byte in codes.encode()))

    def resize(self, width: int, height: int) -> None:
        self._tmux("resize-window", "-t", "t", "-x", str(width), "-y", str(height))

    def shows(self, text: str) -> None:
        """Wait until the terminal shows a text."""
        end = time.monotonic() + TIMEOUT_S
        while text not in (observed := self.text()):
            assert time.monotonic() < end, f"waited in vain for {text!r} on\n{observed}"
            time.sleep(0.2)

    def ended(self) -> bool:
        return "t" not in self._tmux("list-sessions").split(":")[0]

    def ends(self) -> None:
        """Wait until the program has left."""
        until(self.ended, "the end of the program")

    def close(self) -> None:
        self._tmux("kill-server")


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[dict[str, str]]:
    pytest.importorskip("torch", reason="the lab trains with torch")
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    with broken_lab(tmp_path) as environ:
        yield environ


@pytest.mark.system
@pytest.mark.torch
def test_from_a_broken_node_to_a_resumed_job(lab: dict[str, str], tmp_path: Path) -> None:
    """Diagnose, read why, fix with typed words, lose the terminal; the job trains on without n3.

    What was recorded of it is shown to somebody who has neither the lab nor a configuration.
    """
    terminal = Terminal(lab, (110, 34))
    try:
        terminal.shows("needs attention")
        terminal.press(":")
        terminal.press("dx lab-train", "Enter")
        terminal.shows("EVIDENCE, in order")
        terminal.shows("gpu-lost  n3")
        terminal.press("f")
        terminal.shows("type  y")
        terminal.press("A")
        terminal.press("y", "Enter")
        terminal.shows("restart")
        terminal.resize(20, 5)
        terminal.resize(110, 34)
        terminal.shows("ranks started from")
        stopped_at = job_step(lab)
        terminal.close()
        assert terminal.ended()
        wait_for_step(lab, max(stopped_at, 12) + 3)
        shown = brctl(lab, "--context", "lab", "job", "show", "lab-train", "--json").stdout
        assert "n3" not in {rank["node"] for rank in json.loads(shown)["ranks"]}
        recorded_incident_is_shown_elsewhere(lab, tmp_path)
    finally:
        terminal.close()


def recorded_incident_is_shown_elsewhere(lab: dict[str, str], folder: Path) -> None:
    """The lab's look in one file, opened by somebody with no configuration; nothing is changed."""
    file = folder / "taken.brctl.tar.zst"
    written = brctl(
        lab, "--context", "lab", "incident", "record", "--last", "1h", "--out", str(file)
    )
    assert written.returncode == 0, written.stdout
    (folder / "vendor").mkdir()
    elsewhere = {**lab_environ(folder / "vendor"), "BRCTL_LAB_DIR": str(folder / "no-lab")}
    again = Terminal(elsewhere, (110, 34), "tui", "--replay", str(file))
    try:
        again.shows("read-only")
        again.shows("gpu-lost  n3")
        again.shows("EVIDENCE, in order")
        again.press("f")
        again.shows("recorded incident")
    finally:
        again.close()


@pytest.mark.system
def test_a_command_that_is_no_view_runs_in_the_same_terminal(tmp_path: Path) -> None:
    """`:nodes diff` gives way to the command and comes back; small terminals and `:q` are fine."""
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    make_site(tmp_path)
    environ = {**os.environ, "BRCTL_CONFIG": str(tmp_path / "config.yaml"), "TERM": "xterm"}
    terminal = Terminal(environ, (100, 30), "--context", "site", "tui", "--look-every", "0s")
    try:
        terminal.shows("needs attention")
        terminal.press(":nodes diff n[1-2]", "Enter")
        terminal.shows("press enter to go back")
        assert "$ brctl nodes diff" in terminal.text()
        terminal.press("Enter")
        terminal.shows("needs attention")
        terminal.resize(40, 10)
        terminal.shows(".wX?ss")
        terminal.press(":q", "Enter")
        terminal.ends()
    finally:
        terminal.close()


FLEET = """\
apiVersion: brctl.dev/v1
kind: Inventory
nodes:
  "gpu[0001-1998]": {gpus: 8, rack: {every: 64, format: "r%02d"}}
  n[1-2]: {gpus: 0}
"""


@pytest.mark.system
def test_a_fleet_of_two_thousand_answers_keys_and_the_mouse(tmp_path: Path) -> None:
    """`:` and what is typed behind it, marks, a kept view, a click, a job's trends."""
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    config = write_site(tmp_path, local_config("job"), FLEET, job=JOB)
    ranks = Ranks(tmp_path)
    past = [{"step": n, "loss": 9 - n / 8, "seconds": 0.2, "at": n, "wait_seconds": 0.01}
            for n in range(40)]  # fmt: skip
    (tmp_path / "progress/steps.ndjson").write_text("".join(f"{json.dumps(x)}\n" for x in past))
    ranks.run(step=41)
    environ = {
        **os.environ, "BRCTL_CONFIG": str(config), "HOME": str(tmp_path), "TERM": "xterm-256color",
        "XDG_CONFIG_HOME": str(tmp_path / "home"),
    }  # fmt: skip
    terminal = Terminal(environ, (120, 36), "tui")
    try:
        terminal.shows("2000 nodes")
        terminal.press(":play histo")
        terminal.shows(" play histo")
        terminal.press("ry", "Enter")
        terminal.shows("no run yet")
        terminal.press("1", "space", "Right", "space")
        terminal.shows("2 marked")
        terminal.press("7")
        terminal.shows("S/STEP")
        terminal.press(":save night", "Enter")
        views = tmp_path / "home" / "brctl" / "views.yaml"
        until(lambda: views.exists() and "jobs demo" in views.read_text(), "the kept view")
        terminal.click("Fleet")
        terminal.shows("needs attention")
        terminal.press(":view night", "Enter")
        terminal.shows("S/STEP")
        terminal.press("Enter")
        terminal.shows("step time")
        terminal.shows("loss")
        terminal.press(":q", "Enter")
        terminal.ends()
    finally:
        terminal.close()
