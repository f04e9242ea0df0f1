"""The NVML probes on a real driver: every reading is there, or said to be not supported."""

import json
import subprocess
import sys

import pytest

from brctl.library.checks import load_checks
from brctl.library.shipped import shipped_dir
from brctl.model.sweeps.check import Check
from tests.checks.probes import probe_path

pytestmark = pytest.mark.gpu
NVML = [c for c in load_checks([shipped_dir("checks")]).values() if "nvml" in c.needs]


@pytest.mark.parametrize("check", NVML, ids=lambda c: c.name)
def test_a_probe_reads_a_real_driver(check: Check) -> None:
    """No reading fails in a way its probe did not foresee."""
    done = subprocess.run(
        [sys.executable, probe_path(check.name)],
        input=json.dumps({"deadline_s": 30}), capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    answer = json.loads(done.stdout)
    assert done.returncode == 0, done.stdout
    assert all(note.startswith("not supported: ") for note in answer["notes"]), answer["notes"]
