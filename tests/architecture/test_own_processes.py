"""The test command leaves nothing behind: not when it is interrupted, nor for long when killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import own_processes

ROOT = Path(__file__).parents[2]
COMMAND = """
import os, signal, sys
from pathlib import Path
from tests import own_processes

own_processes.adopt_orphans()
own_processes.raise_when_told_to_end()
daemon = "setsid sh -c 'echo $$ >&2; exec sleep 600' > /dev/null & wait"
try:
    own_processes.run(["sh", "-c", f"trap 'exit 0' INT; {daemon}"], Path("/"), dict(os.environ))
except own_processes.Interrupted as interrupted:
    print(interrupted, own_processes.end_own())
"""

TWO = """
import os, sys
from pathlib import Path
from tests import own_processes

folder, *commands = sys.argv[1:]
command, other = (["sh", "-c", each] for each in commands)
sys.exit(own_processes.run(command, Path(folder), dict(os.environ), [other]))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda n: n.name)
def test_an_interrupted_command_ends_the_daemons_of_its_tests(number: signal.Signals) -> None:
    """Also those in a session of their own, whose starter has gone before."""
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    assert process.stderr is not None
    daemon = int(process.stderr.readline())
    process.send_signal(number)
    output = process.communicate()[0]
    assert output.startswith(number.name)
    assert f"({daemon})" in output
    assert daemon not in own_processes.living()


def test_a_command_is_judged_once_those_beside_it_have_ended(tmp_path: Path) -> None:
    """Whichever ends first, and whatever the others end in."""
    early = "echo > first; exit 5"
    late = "until test -e first; do sleep 0.01; done; echo > second; exit 3"
    for command, other, expected in ((early, late, 5), (late, early, 3)):
        (folder := tmp_path / str(expected)).mkdir()
        # In a process of its own: whoever waits here collects every child there is.
        done = subprocess.run(
            [sys.executable, "-c", TWO, folder, command, other], cwd=ROOT, check=False
        )
        assert done.returncode == expected
        assert (folder / "second").exists()


def test_what_a_killed_command_left_is_ended_by_the_next(tmp_path: Path) -> None:
    """What carries the mark of a command that lives, or of another folder, is left alone."""
    marks = {
        "left": own_processes.mark(tmp_path) + "0",
        "running": own_processes.mark(tmp_path),
        "elsewhere": own_processes.mark(tmp_path / "other") + "0",
    }
    path = os.environ["PATH"]
    sleeping = {
        which: subprocess.Popen(["sleep", "600"], env={"PATH": f"{path}:{mark}"})
        for which, mark in marks.items()
    }
    try:
        assert own_processes.end_leftovers(tmp_path) == [f"sleep 600 ({sleeping['left'].pid})"]
        assert sleeping["left"].wait() == -signal.SIGKILL
        assert [sleeping[which].poll() for which in ("running", "elsewhere")] == [None, None]
    finally:
        for process in sleeping.values():
            process.kill()
            process.wait()
