"""The embedded cluster with a training job and a broken node, brought up by the real commands."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.timeouts import TIMEOUT_S

BRCTL = (sys.executable, "-m", "brctl")


def lab_environ(folder: Path) -> dict[str, str]:
    """The environment in which every brctl means this lab."""
    home = {"HOME": str(folder), "XDG_STATE_HOME": str(folder / "xdg")}
    drop = ("BRCTL_CONFIG", "BRCTL_CONTEXT", "NO_COLOR")
    kept = {key: value for key, value in os.environ.items() if key not in drop}
    return {**kept, **home, "BRCTL_LAB_DIR": str(folder / "lab"), "TERM": "xterm-256color"}


def brctl(environ: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """One command line; exit codes up to 3 are answers."""
    done = subprocess.run(
        [*BRCTL, *arguments], env=dict(environ), capture_output=True, text=True, timeout=TIMEOUT_S,
        check=False,
    )  # fmt: skip
    assert done.returncode <= 3, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def job_step(environ: Mapping[str, str]) -> int:
    """The newest step the job reports; -1 when nobody knows."""
    done = brctl(environ, "--context", "lab", "job", "show", "lab-train", "--json")
    step = json.loads(done.stdout)["job"]["step"]
    return -1 if step is None else int(step)


def wait_for_step(environ: Mapping[str, str], least: int) -> int:
    """Wait until the job has come this far."""
    end = time.monotonic() + TIMEOUT_S
    while (step := job_step(environ)) < least:
        assert time.monotonic() < end, f"the job is at step {step}, not {least}"
        time.sleep(0.5)
    return step


@contextmanager
def broken_lab(
    folder: Path, *, fault: str = "gpu-lost", node: str = "n3"
) -> Iterator[dict[str, str]]:
    """A lab whose job trained and then lost a node, not diagnosed yet; gone afterwards."""
    environ = lab_environ(folder)
    try:
        brctl(environ, "lab", "up", "--nodes", "4", "--standbys", "2", "--isolation", "none")
        brctl(environ, "--context", "lab", "sweep")
        brctl(environ, "--context", "lab", "job", "start", "lab-train")
        wait_for_step(environ, 12)
        brctl(environ, "lab", "break", fault, node)
        time.sleep(2)
        yield environ
    finally:
        brctl(environ, "lab", "down")
