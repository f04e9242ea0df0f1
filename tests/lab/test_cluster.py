"""Up and down: nothing is left behind, however `up` or the lab ends."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from brctl.lab import cluster, loopback, namespaces
from brctl.lab.cluster import Lab, leftovers, load, take_down, up
from brctl.lab.interrupts import locked
from brctl.lab.record import LabRecord, read_record
from brctl.lab.spec import Isolation, LabPaths, LabSpec
from brctl.model.errors import ConfigError, LockedError, UnavailableError, UsageError
from tests.timeouts import TIMEOUT_S

ISOLATIONS = [
    Isolation.NONE,
    pytest.param(Isolation.NETNS, marks=[pytest.mark.netns, pytest.mark.ssh]),
]


def small(isolation: Isolation) -> LabSpec:
    if isolation is Isolation.NETNS and (why_not := namespaces.missing()):
        pytest.skip(why_not)
    return LabSpec(nodes=1, standbys=1, gpus=2, isolation=isolation)


def assert_nothing_left(record: LabRecord, directory: Path) -> None:
    assert leftovers(record) == ()
    assert not directory.exists()
    if record.bridge:
        assert not any(name.startswith(record.bridge) for name in os.listdir("/sys/class/net"))


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_down_leaves_nothing_and_can_be_repeated(tmp_path: Path, isolation: Isolation) -> None:
    """Processes, interfaces, mounts and files are gone; a second `down` finds nothing to do."""
    lab = up(small(isolation), tmp_path / "lab")
    record = lab.record
    assert all(node.is_on and node.answers_ssh for node in lab.status().nodes)
    lab.down()
    lab.down()
    assert_nothing_left(record, tmp_path / "lab")
    assert str(tmp_path) not in Path("/proc/mounts").read_text()


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_down_clears_up_after_a_killed_up(
    tmp_path: Path, isolation: Isolation, library_cache: Path
) -> None:
    """`up` is killed with SIGKILL at several moments; `down` ends whatever it had made by then."""
    small(isolation)
    for delay_s in (0.05, 0.15, 0.3):
        directory = tmp_path / f"lab-{delay_s}"
        process = subprocess.Popen(_up_command(directory, isolation), stderr=subprocess.DEVNULL)
        record = _wait_for_record(directory)
        time.sleep(delay_s)
        process.kill()
        process.wait()
        take_down(LabPaths(directory))
        assert_nothing_left(record, directory)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_up_removes_what_it_made(tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C and a polite kill roll back before the process ends."""
    directory = tmp_path / "lab"
    process = subprocess.Popen(_up_command(directory, Isolation.NONE), stderr=subprocess.DEVNULL)
    record = _wait_for_record(directory)
    process.send_signal(number)
    process.wait(timeout=TIMEOUT_S)
    assert_nothing_left(record, directory)


def test_a_node_that_does_not_start_takes_the_lab_back_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure half way is an error, not half a lab."""
    kept: list[LabRecord] = []

    def boot(record: LabRecord, paths: LabPaths, nodes: object) -> None:
        kept.append(record)
        loopback.boot(record, paths, record.nodes[:1])
        raise UnavailableError("n2 does not start")

    monkeypatch.setattr(cluster, "boot", boot)
    with pytest.raises(UnavailableError, match="n2 does not start"):
        up(small(Isolation.NONE), tmp_path / "lab")
    assert_nothing_left(kept[0], tmp_path / "lab")


def test_a_second_lab_needs_a_second_directory(lab: Lab) -> None:
    """`up` where a lab is up changes nothing and says how to go on."""
    tag = lab.record.tag
    with pytest.raises(UsageError, match="a lab is up"):
        up(LabSpec(nodes=1, isolation=Isolation.NONE), lab.paths.root)
    assert lab.record.tag == tag


def test_one_command_at_a_time_changes_a_lab(lab: Lab) -> None:
    """While one command holds the lab, another is told so."""
    with locked(lab.paths), pytest.raises(LockedError):
        lab.break_node("thermal", "n1")
    assert lab.record.faults == {}


def test_no_lab_is_an_answer(tmp_path: Path) -> None:
    """Looking for a lab where none is says how to get one."""
    with pytest.raises(UsageError) as error:
        load(tmp_path)
    assert "lab up" in str(error.value.hint)


def test_a_foreign_record_is_never_acted_on(tmp_path: Path) -> None:
    """A lab.json that is not ours is an error and stays where it is."""
    (tmp_path / "lab.json").write_text('{"schema": "other/1"}')
    with pytest.raises(ConfigError):
        take_down(LabPaths(tmp_path))
    assert (tmp_path / "lab.json").exists()


def test_down_removes_only_what_the_lab_wrote(tmp_path: Path) -> None:
    """A file somebody put into the directory survives."""
    lab = up(small(Isolation.NONE), tmp_path / "lab")
    (lab.paths.root / "notes.txt").write_text("mine")
    lab.down()
    assert [path.name for path in (tmp_path / "lab").iterdir()] == ["notes.txt"]


def _up_command(directory: Path, isolation: Isolation) -> list[str]:
    program = (
        "import sys; from pathlib import Path\n"
        "from brctl.lab.cluster import up\n"
        "from brctl.lab.spec import Isolation, LabSpec\n"
        "up(LabSpec(nodes=3, standbys=1, isolation=Isolation(sys.argv[2])), Path(sys.argv[1]))\n"
    )
    return [sys.executable, "-c", program, str(directory), isolation.value]


def _wait_for_record(directory: Path) -> LabRecord:
    limit_s = time.monotonic() + TIMEOUT_S
    while time.monotonic() < limit_s:
        try:
            record = read_record(LabPaths(directory))
        except (ConfigError, json.JSONDecodeError):
            record = None
        if record is not None:
            return record
        time.sleep(0.002)
    raise AssertionError("`up` wrote no record")
