"""The NVML probes read what NVML says, and say what it does not."""

from tests.checks.probes import read
from tests.fakes.nvml import FakeNvml, NVMLError

GPU0 = "gpu:GPU-00000000-0000-0000-0000-000000000000"
GPU3 = "gpu:GPU-00000003-0000-0000-0000-000000000000"


def test_a_lost_gpu_is_named_and_the_others_are_still_read() -> None:
    """One GPU that answers nothing but `lost` costs no reading of its seven neighbours."""
    found = read("gpu.devices", {"expected_gpus": 8}, FakeNvml(changes={(3, "*"): NVMLError(15)}))
    assert found.values["gpu.device.lost", "gpu:index-3"] is True
    assert sum(name == "gpu.device.pci" for name, _ in found.values) == 7
    assert found.values["gpu.device.pci", GPU0] == "0000:10:00.0"


def test_a_counter_that_cannot_be_read_is_no_zero() -> None:
    """A failing counter leaves a note and no value."""
    fake = FakeNvml(changes={(3, "TotalEccErrors(1,0)"): NVMLError(999)})
    found = read("gpu.ecc", {}, fake)
    assert ("gpu.ecc.volatile_uncorrected", GPU3) not in found.values
    assert any("volatile_uncorrected" in note and GPU3 in note for note in found.notes)
    assert found.values["gpu.ecc.volatile_uncorrected", GPU0] == 0


def test_hardware_without_row_remapping_is_not_a_failure() -> None:
    """What the part does not support is said as that."""
    found = read("gpu.ecc", {}, FakeNvml(1, {(None, "RemappedRows"): NVMLError(3)}))
    assert f"not supported: gpu.remap {GPU0}" in found.notes


def test_remap_flags_are_read_in_nvmls_order() -> None:
    """NVML's four numbers are corrected, uncorrected, pending, failed."""
    found = read("gpu.ecc", {}, FakeNvml(1, {(0, "RemappedRows"): (1, 2, 1, 0)}))
    assert found.values["gpu.remap.uncorrected", GPU0] == 2
    assert found.values["gpu.remap.pending", GPU0] is True
    assert found.values["gpu.remap.failed", GPU0] is False


def test_links_are_counted_until_the_first_one_the_part_lacks() -> None:
    """A part with two links has two, one of them down."""
    changes: dict[tuple[int | None, str], object] = {
        (0, "NvLinkState(1)"): 0,
        (0, "NvLinkState(2)"): NVMLError(2),
    }
    found = read("gpu.nvlink", {}, FakeNvml(1, changes))
    assert found.values["gpu.nvlink.count", GPU0] == 2
    assert found.values["gpu.nvlink.active", f"link:{GPU0[4:]}/1"] is False


def test_power_is_given_in_watts_and_heat_as_a_margin() -> None:
    """NVML's milliwatts and thresholds become what check.yaml promises."""
    found = read("gpu.clocks", {}, FakeNvml(1))
    assert found.values["gpu.clocks.power_w", GPU0] == 412.0
    assert found.values["gpu.clocks.temperature_margin_c", GPU0] == 26


def test_pcie_width_is_read_beside_what_is_possible() -> None:
    """Both sides of the comparison come from the same moment."""
    found = read("gpu.pcie", {}, FakeNvml(1, {(0, "CurrPcieLinkWidth"): 8}))
    assert (found.values["gpu.pcie.width", GPU0], found.values["gpu.pcie.max_width", GPU0]) == (
        8,
        16,
    )
