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
    """The newest step that rank 0 wrote down; -1 when there is none.

    Its own file, on the disk that the lab's nodes share: asking brctl each time would take the
    job more of the machine than it needs for the step that is waited for.
    """
    steps = Path(environ["BRCTL_LAB_DIR"]) / "job" / "progress" / "steps.ndjson"
    lines = steps.read_text().split("\n")[:-1] if steps.exists() else []
    return int(json.loads(lines[-1])["step"]) if lines else -1


def wait_for_step(environ: Mapping[str, str], least: int) -> None:
    """Wait until the job has come this far, and `job show` says so."""
    end = time.monotonic() + TIMEOUT_S
    for newest in (job_step, shown_step):
        while (step := newest(environ)) < least:
            assert time.monotonic() < end, f"{newest.__name__}: {step}, not {least}"
            time.sleep(0.2)


def shown_step(environ: Mapping[str, str]) -> int:
    """The step that brctl knows of; -1 when it knows none."""
    done = brctl(environ, "--context", "lab", "job", "show", "lab-train", "--json")
    step = json.loads(done.stdout)["job"]["step"]
    return -1 if step is None else int(step)


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
