"""A node dies under a real Slurm job: brctl names it, drains it, and training goes on elsewhere.

Slurm itself would notice after its default of 300 s; brctl is long done by then.
"""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from brctl.lab.cluster import leftovers, take_down
from brctl.lab.record import LabRecord, read_record
from brctl.lab.spec import LabPaths
from tests.fakes.slurm_lab import missing
from tests.timeouts import TIMEOUT_S

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.netns,
    pytest.mark.system,
    pytest.mark.torch,
    pytest.mark.skipif(bool(missing()), reason=f"no Slurm lab here: {missing()}"),
]
BENCH = [sys.executable, "-m", "tests.bench.slurm_recovery"]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Short: slurmstepd's socket lies below it, and its path may not exceed 108 bytes."""
    return tmp_path_factory.mktemp("s") / "lab"


def test_a_node_powered_off_under_a_slurm_job_is_replaced(directory: Path) -> None:
    """Verdict, drain with owner and reason, restart on the spare, and the very same losses."""
    try:
        done = subprocess.run(
            [*BENCH, "--nodes", "2", "--directory", str(directory), "--json"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=2 * TIMEOUT_S,
            check=False,
        )
    finally:
        # Killed for its time limit, the bench could not clean up.
        left = directory.exists()
        take_down(LabPaths(directory))
    assert done.stdout, done.stderr[-9000:]
    actual: dict[str, Any] = json.loads(done.stdout)
    assert actual["named"] == ["n2"]
    assert actual["run_state"] == "ok", done.stderr[-9000:]
    assert "drain" in actual["drained"]
    assert f"[brctl:{actual['run']}] V-" in actual["drained"]
    assert actual["placed"] == "n1,n3"
    assert actual["new_step"] > actual["old_step"]
    assert actual["losses"]
    assert all(before == after for before, after in actual["losses"].values())
    assert done.returncode == 0
    assert not left


@pytest.mark.deep
def test_ctrl_c_leaves_no_daemon_of_slurm(directory: Path) -> None:
    """Interrupted while the job runs, with slurmctld, slurmd and srun at work."""
    bench = subprocess.Popen(
        [*BENCH, "--nodes", "2", "--directory", str(directory)],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        record = wait_for_job(bench, directory)
        bench.send_signal(signal.SIGINT)
        bench.communicate(timeout=TIMEOUT_S)
        assert bench.returncode not in (0, None)
        assert leftovers(record) == ()
        assert not Path(f"/sys/class/net/{record.bridge}").exists()
        assert not directory.exists()
    finally:
        bench.kill()
        bench.communicate()
        take_down(LabPaths(directory))


def wait_for_job(bench: subprocess.Popen[str], directory: Path) -> LabRecord:
    """The lab's record, once a rank of the Slurm job runs."""
    deadline = time.monotonic() + TIMEOUT_S
    logs = directory / "job" / "logs"
    while not list(logs.glob("rank-*.process.json")):
        assert bench.poll() is None, "the bench ended by itself"
        assert time.monotonic() < deadline, "no rank was started"
        time.sleep(0.05)
    record = read_record(LabPaths(directory))
    assert record is not None
    assert [pid for pid in leftovers(record) if name_of(pid) == "slurmctld"]
    return record


def name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
