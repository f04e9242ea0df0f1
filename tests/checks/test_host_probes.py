"""Host and fabric probes on made-up sysfs trees, and on file systems that misbehave."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from brctl.evidence.kernel_ends import RESET_MARK
from tests.checks.probes import load_probe, read
from tests.timeouts import TIMEOUT_S


def tree(root: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return str(root)


def port(state: str = "4: ACTIVE", downed: int = 0) -> dict[str, str]:
    base = "mlx5_0/ports/1/"
    return {
        base + "state": state,
        base + "phys_state": "5: LinkUp",
        base + "rate": "400 Gb/sec (4X NDR)",
        base + "counters/link_downed": str(downed),
        base + "counters/symbol_error": "junk",
    }


def test_an_rdma_port_is_read_as_sysfs_spells_it(tmp_path: Path) -> None:
    """Words lose their numbers, the rate becomes one, and junk becomes a note."""
    found = read("fabric.ibport", {"sysfs": tree(tmp_path, port(downed=3))})
    nic = "nic:mlx5_0"
    assert found.values["fabric.ibport.state", nic] == "ACTIVE"
    assert found.values["fabric.ibport.gbit_per_s", nic] == 400.0
    assert found.values["fabric.ibport.link_downed", nic] == 3
    assert any("symbol_error" in note for note in found.notes)


def test_an_interface_that_is_switched_off_is_left_alone(tmp_path: Path) -> None:
    """A port an administrator switched off (no IFF_UP) is not asked about."""
    root = tree(tmp_path, {"eth1/flags": "0x1002", "eth1/carrier": "0", "eth1/device/vendor": "x"})
    assert read("fabric.eth", {"sysfs": root}).values == {}


def test_memory_errors_of_all_controllers_are_summed(tmp_path: Path) -> None:
    """EDAC counts per controller; the host has one number."""
    edac = tree(tmp_path, {f"mc{i}/{n}_count": str(i) for i in (1, 2) for n in ("ce", "ue")})
    found = read("host.memory", {"edac": edac})
    assert found.values["host.memory.corrected_errors", ""] == 3


def test_a_host_that_counts_no_memory_errors_has_no_zero(tmp_path: Path) -> None:
    """No EDAC driver: no reading, rather than a reassuring zero."""
    found = read("host.memory", {"edac": str(tmp_path)})
    assert ("host.memory.uncorrected_errors", "") not in found.values


def test_processors_of_a_list_are_counted(tmp_path: Path) -> None:
    """The kernel writes `0-3,8`."""
    sysfs = tree(tmp_path, {"online": "0-3,8", "present": "0-15"})
    found = read("host.cpu", {"sysfs": sysfs})
    assert found.values["host.cpu.online_count", ""] == 5
    assert found.values["host.cpu.offline_count", ""] == 11


def test_a_file_system_that_hangs_costs_its_limit_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child that never answers is abandoned in time and named."""
    for name, attribute in (("host.mounts", "statvfs"), ("host.disk", "statvfs")):
        module = load_probe(name)
        monkeypatch.setattr(module.os, attribute, lambda path: time.sleep(600))
        begin = time.monotonic()
        ask = module.answers if name == "host.mounts" else module.ask_child
        assert ask(str(tmp_path), 0.2) is None
        assert time.monotonic() - begin < TIMEOUT_S
        monkeypatch.undo()


def test_a_full_or_missing_path_is_told_apart(tmp_path: Path) -> None:
    """A path that is not there is a note; one that is there is measured."""
    found = read("host.disk", {"paths": [str(tmp_path), str(tmp_path / "absent")]})
    assert found.values["host.disk.hangs", f"disk:{tmp_path}"] is False
    assert 0 <= float(found.values["host.disk.free_pct", f"disk:{tmp_path}"]) <= 100
    assert any("absent" in note for note in found.notes)


def test_the_checkpoint_directory_is_written_read_and_left_clean(tmp_path: Path) -> None:
    """The probe file comes back equal and is gone afterwards."""
    found = read("storage.checkpoint", {"checkpoint_dir": str(tmp_path), "bytes": 1 << 20})
    assert found.values["storage.checkpoint.equal", ""] is True
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_directory_that_takes_no_file_says_so(tmp_path: Path) -> None:
    """A write error is a reading (not writable), not a crash."""
    target = tmp_path / "gone"
    target.mkdir()
    module = load_probe("storage.checkpoint")
    readings = module.Readings()
    target.rmdir()
    module.write_and_read(readings, str(target / "x"), b"data")
    values = {row["name"]: row["value"] for row in readings.rows}
    assert values["storage.checkpoint.writable"] is False


def test_limits_are_read_as_numbers() -> None:
    """`unlimited` is -1; the rest are plain numbers."""
    rows = ("Max open files  1024  4096  files", "Max locked memory  unlimited  unlimited  bytes")
    text = "\n".join(rows)
    assert load_probe("host.limits").parse(text) == {
        "host.limits.open_files": 1024,
        "host.limits.locked_bytes": -1,
    }


def test_a_rank_of_an_earlier_start_is_a_leftover() -> None:
    """What carries the job's name and is neither rank nor family of one was left behind."""
    module = load_probe("host.leftovers")
    parents = {100: 1, 101: 100, 102: 101, 200: 1, os.getpid(): 1}
    assert module.process_family({101}, parents) == {100, 101, 102}
    assert module.is_of_job({"BRCTL_JOB": "j", "BRCTL_NODE": "n1"}, {"job": "j", "node": "n1"})
    assert not module.is_of_job({"BRCTL_JOB": "j", "BRCTL_NODE": "n2"}, {"job": "j", "node": "n1"})


def test_a_process_that_waits_to_become_a_rank_is_no_leftover(tmp_path: Path) -> None:
    """Only while its record lies in the log directory, and only on its own node."""
    module = load_probe("host.leftovers")
    environment = {**os.environ, "BRCTL_JOB": "j", "BRCTL_NODE": "n1", "BRCTL_PARKED": "word"}
    asked = {"job": "j", "node": "n1", "ranks": [], "log_dir": str(tmp_path)}
    record = tmp_path / "parked-n1-0.record"
    with subprocess.Popen(["sleep", "60"], env=environment) as waiting:
        for text, count in (('{"token": "word"}', 0), ("torn", 1), ('{"token": "other"}', 1)):
            record.write_text(text)
            readings = module.Readings()
            module.measure(readings, asked)
            values = {row["name"]: row["value"] for row in readings.rows}
            assert values["host.leftovers.count"] == count
        waiting.kill()


def test_driver_lines_come_in_their_order_with_the_mark_of_a_reset(tmp_path: Path) -> None:
    """A mark counts by what stands before it; without a prefix of its own it is still a line."""
    log = tmp_path / "kmsg"
    xid = "3,1,5,-;NVRM: Xid (PCI:0000:4b:00): 79, GPU has fallen off the bus."
    log.write_text(f"{xid}\n6,2,6,-;eth0: link up\n{RESET_MARK}\n3,3,7,-;NVRM: again\n")
    module = load_probe("gpu.xid")
    readings = module.Readings()
    module.measure(readings, {"kernel_log": str(log)})
    lines = [row["value"] for row in readings.rows if row["name"] == "gpu.xid.line"]
    assert lines == [xid, RESET_MARK, "3,3,7,-;NVRM: again"]


def test_a_link_that_is_up_is_read_with_its_packet_size(tmp_path: Path) -> None:
    """Every reading of a plain link, and no note beside them."""
    statistics = {f"eth1/statistics/{name}": "3" for name in ("rx_errors", "tx_errors")}
    files = {"flags": "0x1003", "carrier": "1", "carrier_changes": "2", "speed": "100000"}
    files |= {"mtu": "9000", "device/vendor": "x"}
    root = tree(tmp_path, {f"eth1/{name}": text for name, text in files.items()} | statistics)
    found = read("fabric.eth", {"sysfs": root})
    values = {name.removeprefix("fabric.eth."): value for (name, _), value in found.values.items()}
    assert values == {
        "carrier": True, "carrier_changes": 2, "mtu": 9000, "gbit_per_s": 100.0,
        "rx_errors": 3, "tx_errors": 3,
    }  # fmt: skip
    assert found.notes == ()
