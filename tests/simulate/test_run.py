"""Worker processes: none is left behind by a parent that was killed."""

import os
import signal
import subprocess
import sys

from tests.timeouts import TIMEOUT_S

RUNS = """
from dataclasses import replace
from brctl.simulate.compare import Request, choose_policies, simulated
from brctl.simulate.fleet_file import find_fleet

fleet = replace(find_fleet("paper-means"), days=1.0)
request = Request(fleet, choose_policies(["oracle"]), 7, 100_000, 2)
simulated(request, request.seeds(), lambda runs: print("done", flush=True))
"""


def test_workers_end_with_a_parent_that_was_killed() -> None:
    """They inherit its output, which ends with the last of them."""
    parent = subprocess.Popen(
        [sys.executable, "-c", RUNS], stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"done\n"
        parent.kill()
        parent.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(parent.pid, signal.SIGKILL)
        raise
    finally:
        parent.kill()
