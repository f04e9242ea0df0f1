"""The fake NVML library answers the real nvidia-ml-py binding from a file that changes live."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from brctl.lab.compile import Libraries
from brctl.lab.nvml.state import LOST, change_state, gpu_uuid, healthy, write_state
from tests.timeouts import TIMEOUT_S

READER = Path(__file__).parent / "nvml_reader.py"


class Reader:
    """One process with the real binding; it reads GPUs each time it is asked."""

    def __init__(self, state: Path, libraries: Libraries) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(READER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "LD_LIBRARY_PATH": str(libraries.nvml_dir),
                "BRCTL_FAKE_NVML_STATE": str(state),
            },
        )

    def ask(self, function: str, *arguments: object) -> object:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([function, *arguments]) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate(timeout=TIMEOUT_S)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    path = tmp_path / "nvml.state"
    write_state(path, healthy("n1", 8))
    return path


@pytest.fixture
def reader(state: Path, libraries: Libraries) -> Iterator[Reader]:
    reader = Reader(state, libraries)
    yield reader
    reader.close()


def test_a_healthy_node_has_eight_gpus_of_its_own(reader: Reader) -> None:
    """GPUs carry the identity the node's name gives them, and no errors."""
    assert reader.ask("count") == 8
    assert reader.ask("uuid", 3) == gpu_uuid("n1", 3)
    assert gpu_uuid("n1", 3) != gpu_uuid("n2", 3)
    assert reader.ask("pci", 4) == "00000000:9A:00.0"
    assert reader.ask("ecc", 0) == [0, 0]
    assert reader.ask("remapped", 0) == [0, 0, 0, 0]
    assert reader.ask("links", 0) == [1] * 18


def test_a_change_is_seen_by_a_running_program(reader: Reader, state: Path) -> None:
    """Counters move under a program that has NVML open, for that GPU only."""
    change_state(state, {"gpu2.temp": "93", "gpu2.ecc.uncorrected.volatile": "4"})
    assert reader.ask("temperature", 2) == 93
    assert reader.ask("ecc", 2) == [0, 4]
    assert reader.ask("ecc", 3) == [0, 0]
    change_state(state, {"gpu2.temp": "40"})
    assert reader.ask("temperature", 2) == 40


def test_a_lost_gpu_has_no_handle_while_the_others_answer(reader: Reader, state: Path) -> None:
    """NVML error 15 for everything about one GPU, and the count does not move."""
    change_state(state, {"gpu5.*": LOST})
    assert reader.ask("temperature", 5) == "NVMLError 15"
    assert reader.ask("held_temperature", 5) == "NVMLError 15"
    assert reader.ask("count") == 8
    assert reader.ask("temperature", 4) != "NVMLError 15"


def test_what_the_hardware_lacks_is_not_supported(reader: Reader) -> None:
    """An H100 has no retired pages; that is an answer, not a zero."""
    assert reader.ask("retired", 0) == "NVMLError 3"


def test_structures_with_versions_are_filled(reader: Reader, state: Path) -> None:
    """SRAM counters, fabric state, histogram and field values arrive in the binding's own types."""
    change_state(state, {"gpu*.sram.volatile.parity": "2", "gpu1.remap.histogram.none": "7"})
    assert reader.ask("sram", 1) == [2, 0]
    assert reader.ask("histogram", 1) == [640, 7]
    assert reader.ask("fabric", 1) == [3, 0]
    assert reader.ask("fields", 1, [82, 144, 9999]) == [[0, 48], [0, 0], [3, 0]]


def test_one_link_can_be_down(reader: Reader, state: Path) -> None:
    """A key for one link beats the key for all links, which beats the default."""
    change_state(state, {"gpu0.nvlink5.state": "0", "gpu*.nvlink*.error.replay": "3"})
    assert reader.ask("links", 0) == [1] * 5 + [0] + [1] * 12
    assert reader.ask("link_errors", 0, 5) == 3


def test_a_hung_driver_takes_its_time(reader: Reader, state: Path) -> None:
    """A sleep prefix delays the answer without changing it."""
    change_state(state, {"gpu0.temp": "@150:55"})
    answer = reader.ask("timed_temperature", 0)
    assert isinstance(answer, list)
    assert answer[0] >= 0.15
    assert answer[1] == 55


def test_a_machine_without_driver_says_so(tmp_path: Path, libraries: Libraries) -> None:
    """`init=!9` is a machine whose driver is not loaded."""
    state = tmp_path / "nvml.state"
    write_state(state, {"init": "!9"})
    reader = Reader(state, libraries)
    assert reader.ask("init") == "NVMLError 9"
    reader.close()
