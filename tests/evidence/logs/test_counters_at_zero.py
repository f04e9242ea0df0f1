"""A listing whose counters of errors are at zero proves health; one that counts does not."""

import pytest

from brctl.evidence.logs.progress.counters import counters_at_zero

AT_ZERO = {
    "colons": ["Link 0: Replay Errors: 0", "Link 0: CRC Errors: 0", "Link 1: CRC Errors: 0"],
    "states": ["HW Slowdown : Not Active", "SW Thermal Slowdown : Not Active", "Power: Not Active"],
    "a table of tests": ["| NVML Library | Pass |", "| Inforom | Pass |", "| Denylist | Pass |"],
    "perfquery": ["SymbolErrorCounter:......0", "LinkDownedCounter:......0", "RcvErrors:......0"],
    "parts of a machine": [
        "Power Supply 1: Present, OK",
        "Fan 1A: 9800 RPM, OK",
        "Inlet: 24 C, OK",
    ],
    "tests by name": ["PASS: pcie bandwidth", "PASS: nvlink", "PASS: gpu memory, 0 errors"],
    "words": ["No Memory errors.", "No PCIe AER errors.", "No MCE errors."],
}
NOT_AT_ZERO = {
    "one counts": [*AT_ZERO["perfquery"], "PortXmitDiscards:......17"],
    "one test fails": [*AT_ZERO["a table of tests"], "| PCIe | Fail |"],
    "an alarm beside them": [*AT_ZERO["colons"], "NVRM: fatal error on link 2"],
    "a row without a verdict": ["Link 1: PASS", "Link 2: PASS", "Link 4: PASS", "Link 3: 2 lanes"],
    "a rate without one": ["n1 : 37 GB/s OK", "n2 : 36 GB/s OK", "n4 : 37 GB/s OK", "n3 : 4 GB/s"],
    "what is missing": ["HBM: PASS", "PCIe: PASS", "SM: PASS", "NVLink: 3 of 18 links missing"],
    "two only": AT_ZERO["colons"][:2],
}


@pytest.mark.parametrize("rows", AT_ZERO.values(), ids=AT_ZERO)
def test_several_counters_at_rest_prove_health(rows: list[str]) -> None:
    """The newest of them is quoted."""
    event = counters_at_zero(dict(enumerate(["# heading", *rows], start=1)), "a.log")
    assert event is not None
    assert (event.line, event.count) == (len(rows) + 1, len(rows))


@pytest.mark.parametrize("rows", NOT_AT_ZERO.values(), ids=NOT_AT_ZERO)
def test_a_listing_that_counts_or_is_short_proves_nothing(rows: list[str]) -> None:
    assert counters_at_zero(dict(enumerate(rows, start=1)), "a.log") is None
