"""What loops on a watched node: which looks it counts, and what it leaves alone."""

import json
import os
import types
from collections.abc import Mapping
from typing import Protocol

import pytest

from brctl.library.shipped import node_program


class Round(Protocol):
    """As the program has it."""

    def start_if_due(self, now: float, log: object) -> None: ...

    def go_on(self) -> None: ...


class FakeRunner:
    """Answers when a test says so.

    Attributes:
        left: Of checks that hang in the kernel, the pid.
    """

    made: list["FakeRunner"]

    def __init__(self, bundle: Mapping[str, object]) -> None:
        probes = bundle["probes"]
        assert isinstance(probes, list)
        self.asked = [probe["check"] for probe in probes]
        self.left: dict[str, int] = {}
        self.selector = self
        self.ended = False
        type(self).made.append(self)

    def go_on(self) -> bool:
        return not self.ended

    def close(self) -> None:
        """Its selector has nothing open."""


@pytest.fixture
def program() -> types.ModuleType:
    module = types.ModuleType("held_program")
    exec(compile(node_program("_watch/program.py"), "program", "exec"), module.__dict__)  # noqa: S102 - our own program
    FakeRunner.made = []
    return module


def a_round(program: types.ModuleType) -> Round:
    probes = [{"check": "gpu.devices"}, {"check": "job.ranks"}]
    about = {"every_s": 10, "probes": probes, "total_s": 9, "on_log": False}
    made: Round = program.Round(about, {"node": {}, "unsent": ()}, FakeRunner)
    return made


def test_a_heartbeat_counts_only_looks_that_ended(
    program: types.ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    one = a_round(program)
    for number in (1, 2):
        one.start_if_due(10.0 * number, None)
        one.go_on()
        program.beat([one], 0.0)
        FakeRunner.made[-1].ended = True
        one.go_on()
        program.beat([one], 0.0)
    counted = [json.loads(line)["looks"]["10"] for line in capsys.readouterr().out.splitlines()]
    assert counted == [0, 1, 1, 2]


def test_no_second_probe_hangs_beside_the_first_and_the_check_is_asked_again_once_it_ends(
    program: types.ModuleType,
) -> None:
    """A driver that hangs keeps its process in state D, and a kill does not end it."""
    reads, writes = os.pipe()
    hanging = os.fork()
    if hanging == 0:
        os.close(writes)
        os.read(reads, 1)
        os._exit(0)
    os.close(reads)
    one = a_round(program)
    try:
        one.start_if_due(10.0, None)
        FakeRunner.made[-1].left["gpu.devices"] = hanging
        FakeRunner.made[-1].ended = True
        one.go_on()
        one.start_if_due(20.0, None)
        assert FakeRunner.made[-1].asked == ["job.ranks"]
        FakeRunner.made[-1].ended = True
        one.go_on()
    finally:
        os.close(writes)
    # It ends, and nobody but the round takes it in.
    os.waitid(os.P_PID, hanging, os.WEXITED | os.WNOWAIT)
    one.start_if_due(30.0, None)
    assert FakeRunner.made[-1].asked == ["gpu.devices", "job.ranks"]
    with pytest.raises(ChildProcessError):
        os.waitpid(hanging, os.WNOHANG)
