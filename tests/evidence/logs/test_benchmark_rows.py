"""A benchmark whose sizes went on to large ones proves health; other tables prove nothing."""

import pytest

from brctl.evidence.logs.progress.benchmark import benchmark_rows

OSU = ["# OSU MPI-CUDA Bandwidth Test v7.2", "# Size      Bandwidth (MB/s)"]


@pytest.mark.parametrize(
    "rows",
    [
        [*OSU, "1        1.01", "1024   299.62", "65536   15294.18", "1048576   73675.19"],
        [f"[0] Transfer size (B): {1 << n}, Bandwidth (GB/s): 0.{n}" for n in range(3, 12)],
        ["size (bytes),iterations,latency (us)", *(f"{1 << n},2621,{n}.7e6" for n in range(8))],
    ],
    ids=["a table", "rows with names", "values with commas"],
)
def test_a_benchmark_that_went_on_to_large_sizes_proves_health(
    rows: list[str],
) -> None:
    """Rows of one shape, a size that climbs to many times the first, and a unit."""
    event = benchmark_rows(dict(enumerate(rows, start=1)), "a.log")
    assert event is not None
    assert (event.signature.name, event.line) == ("progress.measured", len(rows))


@pytest.mark.parametrize(
    "rows",
    [
        ["PID  CPU", "100 3.1", "101 3.2", "102 3.3", "900 3.4"],
        [*OSU, "1 1.01", "2 1.02", "3 1.03", "4 1.04"],
        [*OSU, "1 1.01", "1024 299.62"],
        [f"{1 << n} failed after {n} us" for n in range(3, 12)],
    ],
    ids=["no unit", "sizes that hardly grow", "two rows", "failures with sizes"],
)
def test_other_tables_of_numbers_prove_nothing(rows: list[str]) -> None:
    assert benchmark_rows(dict(enumerate(rows, start=1)), "a.log") is None
