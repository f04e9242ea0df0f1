"""What somebody typed tells of nothing seen; what a console prints behind a prompt does."""

import pytest

from brctl.evidence.logs.catalogue import SHIPPED
from brctl.evidence.logs.judge import judge
from brctl.evidence.logs.phrasing.commands import is_command
from brctl.evidence.logs.reader import LineIndex, LineReader
from brctl.evidence.logs.unexplained import is_alarming
from brctl.evidence.logs.words.components import component_event
from brctl.model.fault import FaultClass

INDEX = LineIndex(SHIPPED)
COMMANDS = [
    "root@q7:~# for i in 0 1; do ibstat mlx5_$i | grep -c 'Physical state: Polling'; done",
    "[root@asc-n3 ~]# hccn_tool -i 0 -optical -g | grep 'Rx Los fault'",
    "(base) ana@login2:/work/run$ grep -c 'CUDA out of memory' rank*.log",
    "q7:~ # dmesg | grep 'GPU has fallen off the bus'",
    "$ journalctl -k | grep -i 'Out of memory: Killed process'",
    "# dmesg -T | grep 'I/O error, dev sda'",
    "+ grep 'No space left on device' train.err",
    "export ALLOC_CONF=expandable:True   # avoids CUDA out of memory",
]
PRINTED = [
    ("root@q7:~# [  812.1] NVRM: GPU 0000:3b:00.0 has fallen off the bus.", "gpu-lost"),
    ("q7 login: [  812.1] Out of memory: Killed process 71 (python) total-vm:1kB", "cpu-oom"),
    ("$ tail -1 rank3.err -> RuntimeError: CUDA out of memory. Tried to allocate", "gpu-oom"),
    ("# the node says: GPU has fallen off the bus", "gpu-lost"),
    ("# dmesg says GPU has fallen off the bus", "gpu-lost"),
    ("# for the record: GPU has fallen off the bus", "gpu-lost"),
    ("+ gpu 3 of n7: GPU has fallen off the bus", "gpu-lost"),
]


def fault_of(line: str) -> FaultClass:
    reader = LineReader("a.log", INDEX)
    reader.read(1, line.encode())
    return judge("a.log", reader.events()).fault


@pytest.mark.parametrize("line", COMMANDS)
def test_a_typed_command_is_no_evidence(line: str) -> None:
    """Neither a rule nor its words of alarm nor the component that it names count."""
    assert is_command(line)
    assert not is_alarming(line)
    assert component_event({1: line}, "a.log", lambda _: False) is None
    assert fault_of(line) is FaultClass.UNKNOWN


@pytest.mark.parametrize(("line", "fault"), PRINTED)
def test_what_stands_behind_a_prompt_or_an_arrow_was_printed(line: str, fault: str) -> None:
    assert fault_of(line).value == fault


def test_the_kernels_own_words_are_no_programs() -> None:
    """A file system's `size mismatch` is no tensor's; a cause that a program names stays one."""
    assert fault_of("[  812.100200] XFS (sda1): log size mismatch detected") is not (
        FaultClass.USER_CODE
    )
    assert fault_of("RuntimeError: size mismatch, got 4, 8") is FaultClass.USER_CODE
