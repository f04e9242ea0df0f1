"""The NVML probes on the real nvidia-ml-py binding and the lab's C library, judged end to end."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from brctl.evidence.assess import Assessment, assess
from brctl.lab.compile import build_libraries
from brctl.lab.nvml.state import gpu_pci, gpu_uuid, healthy, write_state
from brctl.library.checks import load_checks
from brctl.library.shipped import shipped_dir
from brctl.model.command import Outcome
from brctl.model.evidence import Weight
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus
from tests.checks.probes import DRIVER, probe_path
from tests.timeouts import TIMEOUT_S

CHECKS = {
    name: check
    for name, check in load_checks([shipped_dir("checks")]).items()
    if "nvml" in check.needs and check.level == 1
}
GPU = f"gpu:{gpu_uuid('n1', 4)}"

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_libraries(tmp_path_factory.mktemp("fake-nvml")).nvml_dir


def sweep(library: Path, folder: Path, changes: Mapping[str, str], hurried: str = "") -> Assessment:
    """Run every level-1 NVML probe against a node in the given state, and judge it.

    All have the time that a busy machine takes, but for one that is known to hang.
    """
    state = folder / "state"
    write_state(state, healthy("n1", 8) | dict(changes))
    environ = os.environ | {"LD_LIBRARY_PATH": str(library), "BRCTL_FAKE_NVML_STATE": str(state)}
    results: list[CheckResult] = []
    for deadline_s, names in ((TIMEOUT_S, CHECKS.keys() - {hurried}), (1.0, {hurried} - {""})):
        parameters = {"expected_gpus": 8, "deadline_s": deadline_s, "pci_root": str(folder)}
        paths = {str(probe_path(name)): name for name in names}
        done = subprocess.run(
            [sys.executable, "-c", DRIVER, *paths], input=json.dumps(parameters), env=environ,
            capture_output=True, text=True, timeout=TIMEOUT_S, check=True,
        )  # fmt: skip
        results += [_result(paths[path], *end) for path, end in json.loads(done.stdout).items()]
    at = datetime(2026, 1, 10, tzinfo=UTC)
    return assess(NodeReport("n1", Outcome.ANSWERED, tuple(results), received_at=at), CHECKS)


def _result(name: str, status: int, text: str) -> CheckResult:
    answer = json.loads(text)
    rows = tuple(Measurement(r["name"], r["subject"], r["value"]) for r in answer["measurements"])
    kind = (ProbeStatus.MEASURED, ProbeStatus.COULD_NOT_MEASURE)[status]
    return CheckResult(name, kind, rows, tuple(answer["notes"]))


def against(found: Assessment) -> set[tuple[str, str]]:
    return {
        (e.subject.device, e.fault.value if e.fault else "")
        for e in found.evidence
        if e.weight in (Weight.HINTS, Weight.CONVICTS)
    }


def test_a_healthy_node_is_clean_without_a_gap(library: Path, tmp_path: Path) -> None:
    """Eight well GPUs give no suspicion and leave nothing unsaid."""
    found = sweep(library, tmp_path, {})
    assert against(found) == set()
    assert found.gaps == ()


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"gpu4.ecc.uncorrected.volatile": "4"}, {(GPU, "gpu-memory-ecc")}),
        ({"gpu4.remap.failure": "1"}, {(GPU, "gpu-memory-ecc")}),
        ({"gpu4.pcie.width": "4"}, {(GPU, "pcie")}),
        ({"gpu4.temp": "94", "gpu4.clocks.reasons": "0x68"}, {(GPU, "thermal-power")}),
        ({"gpu4.nvlink5.state": "0"}, {(f"link:{GPU[4:]}/5", "nvlink")}),
        ({"gpu4.*": "!15"}, {("gpu:index-4", "gpu-lost")}),
    ],
    ids=["ecc", "remap", "pcie", "thermal", "nvlink", "lost"],
)  # fmt: skip
def test_a_fault_is_found_on_its_device_alone(
    library: Path, tmp_path: Path, changes: Mapping[str, str], wanted: set[tuple[str, str]]
) -> None:
    """Each fault convicts the device it sits on and no other."""
    assert against(sweep(library, tmp_path, changes)) == wanted


def test_a_driver_that_hangs_is_named_and_left_behind(library: Path, tmp_path: Path) -> None:
    """A probe that waits for the driver ends at its deadline; the others still answer."""
    found = sweep(library, tmp_path, {"gpu4.temp": "@600000:94"}, hurried="gpu.clocks")
    assert ("", "driver-firmware") in against(found)
    hangs = {e.source for e in found.evidence if e.kind == "gpu.driver.hang"}
    assert hangs == {"gpu.clocks"}
    assert any(gap.what == "gpu.clocks" for gap in found.gaps)


def test_the_probes_read_the_real_struct_layouts(library: Path, tmp_path: Path) -> None:
    """Addresses come through the binding's structures, not only its plain numbers."""
    found = sweep(library, tmp_path, {})
    assert found.evidence
    state = tmp_path / "state"
    environ = os.environ | {"LD_LIBRARY_PATH": str(library), "BRCTL_FAKE_NVML_STATE": str(state)}
    done = subprocess.run(
        [sys.executable, probe_path("gpu.devices")], input="{}", env=environ,
        capture_output=True, text=True, timeout=TIMEOUT_S, check=True,
    )  # fmt: skip
    rows = json.loads(done.stdout)["measurements"]
    pcis = {r["subject"]: r["value"] for r in rows if r["name"] == "gpu.device.pci"}
    assert pcis[GPU] == gpu_pci(4)


@pytest.mark.parametrize(
    ("changes", "value", "why"),
    [
        ({"gpu4.gpm.tensor": "61.24"}, 61.2, ""),
        ({"gpu4.gpm.tensor": "0"}, 0.0, ""),
        ({"gpu4.gpm.supported": "0"}, None, f"not supported: gpu.clocks.tensor_pct {GPU}"),
        ({"gpu4.gpm.supported": "!13"}, None, f"not supported: gpu.clocks.tensor_pct {GPU}"),
        ({"gpu4.gpm.tensor": "!999"}, None, f"gpu.clocks.tensor_pct {GPU}: "),
        ({"gpu4.gpm.tensor": "nan"}, None, f"gpu.clocks.tensor_pct {GPU}: "),
    ],
    ids=["busy", "idle", "before Hopper", "old driver", "metric fails", "no number"],
)  # fmt: skip
def test_tensor_core_activity_is_read_between_two_samples_or_said_to_be_missing(
    library: Path, tmp_path: Path, changes: Mapping[str, str], value: float | None, why: str
) -> None:
    """What one GPU cannot tell is no zero, and costs its neighbours nothing."""
    state = tmp_path / "state"
    write_state(state, healthy("n1", 8) | dict(changes))
    environ = os.environ | {"LD_LIBRARY_PATH": str(library), "BRCTL_FAKE_NVML_STATE": str(state)}
    done = subprocess.run(
        [sys.executable, probe_path("gpu.clocks")], input='{"tensor_sample_s": 0}', env=environ,
        capture_output=True, text=True, timeout=TIMEOUT_S, check=True,
    )  # fmt: skip
    answer = json.loads(done.stdout)
    found = {
        row["subject"]: row["value"]
        for row in answer["measurements"]
        if row["name"] == "gpu.clocks.tensor_pct"
    }
    assert found.get(GPU) == value
    assert len(found) == (7 if value is None else 8)
    assert [note[: len(why)] for note in answer["notes"]] == ([why] if why else [])
