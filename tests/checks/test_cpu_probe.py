"""job.cpu reads how long threads stand ready; files stand in for the kernel's."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.checks.probes import load_probe, read


def process(proc: Path, mask: str, **delays: str) -> None:
    """A process 42 with these threads."""
    for thread, row in delays.items():
        place = proc / "42/task" / thread.removeprefix("t")
        place.mkdir(parents=True)
        (place / "schedstat").write_text(row)
    (proc / "42/status").write_text(f"Name:\tpython\nCpus_allowed:\t{mask}\n")


def test_the_delay_of_every_thread_is_read(tmp_path: Path) -> None:
    process(tmp_path, "f", t42="900 100 3", t43="5 700 1")
    assert load_probe("job.cpu").delays_of(42, str(tmp_path)) == {"42": 100, "43": 700}


@pytest.mark.parametrize(("mask", "cpus"), [("f", 4), ("1", 1), ("ff,00000001", 9)])
def test_allowed_processors_are_counted(tmp_path: Path, mask: str, cpus: int) -> None:
    process(tmp_path, mask, t42="0 0 0")
    assert load_probe("job.cpu").allowed_cpus(42, str(tmp_path)) == cpus


def test_the_thread_that_waited_longest_counts_and_new_threads_do_not() -> None:
    longest = load_probe("job.cpu").longest_wait
    before = {"42": 10**9, "43": 0}
    assert longest(before, {"42": 10**9, "43": 3 * 10**8, "44": 9 * 10**8}) == 0.3
    assert longest(before, {}) == 0.0


def test_the_main_thread_is_told_of_by_itself() -> None:
    main = load_probe("job.cpu").main_wait
    assert main(42, {"42": 10**9, "43": 0}, {"42": 12 * 10**8, "43": 9 * 10**8}) == 0.2
    assert main(42, {"43": 0}, {"42": 1, "43": 0}) is None
    assert main(42, {"42": 0}, {}) is None


def test_a_kernel_that_keeps_no_schedstat_is_no_gap(tmp_path: Path) -> None:
    (tmp_path / "42/task").mkdir(parents=True)
    probe = load_probe("job.cpu")
    readings = probe.Readings()
    delays = probe.readings_of(readings, 2, lambda pid: probe.delays_of(pid, str(tmp_path)), 42)
    assert delays is None
    assert readings.notes == ["not supported: rank 2: the kernel keeps no schedstat"]


def test_a_rank_without_a_process_is_no_gap(tmp_path: Path) -> None:
    """In a job of a size that no process of this machine is a rank of."""
    asked = {"ranks": [3], "log_dir": str(tmp_path), "world_size": 987_654_321}
    found = read("job.cpu", asked)
    assert found.values == {}
    assert found.notes[0].startswith("not supported: rank 3")


def test_a_rank_is_measured_from_its_own_first_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reading takes a second here: both ranks' shares are alike."""
    probe, clock = load_probe("job.cpu"), [0]

    def delays(pid: int) -> dict[str, int]:
        clock[0] += 1
        return {"1": clock[0] * 10**9}

    monkeypatch.setattr(probe, "time", SimpleNamespace(
        monotonic=lambda: float(clock[0]), sleep=lambda _: None))  # fmt: skip
    monkeypatch.setattr(probe, "delays_of", delays)
    monkeypatch.setattr(probe, "allowed_cpus", lambda pid: 1)
    monkeypatch.setattr(probe, "pids_of", lambda *_: {0: 40, 1: 41})
    readings = probe.Readings()
    probe.measure(readings, {"ranks": [0, 1]})
    shares = [r["value"] for r in readings.rows if r["name"] == "job.cpu.waits_pct"]
    assert shares == pytest.approx([200 / 3, 200 / 3])
    assert [r for r in readings.rows if r["name"] == "job.cpu.main_waits_pct"] == []
    monkeypatch.setattr(probe, "pids_of", lambda *_: {0: 1})
    probe.measure(readings, {"ranks": [0]})
    assert readings.rows[-1]["name"] == "job.cpu.main_waits_pct"
