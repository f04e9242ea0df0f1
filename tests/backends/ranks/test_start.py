"""A rank that was started can be stopped at once, however long its exec takes."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from brctl.backends.ranks.commands import start_request
from brctl.model.inventory import Node
from tests.contract.parking.site import N1, job_in
from tests.timeouts import TIMEOUT_S

# In a process of its own, which forks; the delay stands for a program on a slow file system.
SLOW_EXEC = """
import json, os, sys, time
from checks._ranks import program
exec_now = os.execvpe
def exec_later(*words):
    time.sleep(0.5)
    exec_now(*words)
os.execvpe = exec_later
asked = json.load(sys.stdin)
program.start(asked)
found = program.job_processes(asked)
print(json.dumps([len(found), program.stop({**asked, "grace_s": 5.0})["stuck"]]))
print(len(program.job_processes(asked)))
"""


def test_a_start_returns_when_its_ranks_can_be_found(tmp_path: Path) -> None:
    """Before exec a process carries no marks: a stop right after the start would pass it over."""
    (tmp_path / "logs").mkdir()
    job = replace(job_in(tmp_path, ("sleep", "60")), warm=())
    node = Node(N1, "127.0.0.1")
    asked = start_request(job, node, node, "", "R-1")
    done = subprocess.run(
        [sys.executable, "-c", SLOW_EXEC],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
    )
    assert done.stdout.split("\n")[:2] == ["[2, []]", "0"]
