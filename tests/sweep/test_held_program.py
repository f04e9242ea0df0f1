"""What loops on a watched node: which looks it counts, and what it leaves alone."""

import json
import os
import select
import subprocess
import sys
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import pytest

from brctl.library.shipped import joined_program, loading_of, node_program
from tests.timeouts import TIMEOUT_S


class Round(Protocol):
    """As the program has it."""

    def start_if_due(self, now: float, log: object) -> None: ...

    def go_on(self) -> None: ...

    def hurry(self, check: str) -> None: ...


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
    probes = [
        {"check": name, "source": "", "torch": False} for name in ("gpu.devices", "job.ranks")
    ]
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


class Ranks(Protocol):
    """As the program has it."""

    def changed(self) -> bool: ...


def ranks_of(program: types.ModuleType, folder: Path, pid: object) -> Ranks:
    """One rank that runs, another that was never started here."""
    (folder / "rank-00000.process.json").write_text(json.dumps({"pid": pid}))
    made: Ranks = program.Ranks({"log_dir": str(folder), "ranks": [0, 1]})
    return made


@contextmanager
def a_child(status: int) -> Iterator[int]:
    """A process that ends with the block, and is not collected."""
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(writes)
        os.read(reads, 1)
        os._exit(status)
    os.close(reads)
    try:
        yield pid
    finally:
        os.close(writes)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def test_a_rank_that_ends_is_seen_without_a_probe_and_hurries_the_look_at_ranks(
    program: types.ModuleType, tmp_path: Path
) -> None:
    """Seen once: the first look at it tells what it was."""
    with a_child(9) as rank:
        ranks = ranks_of(program, tmp_path, rank)
        assert not ranks.changed()
    assert ranks.changed(), "a zombie has ended"
    assert not ranks.changed()
    os.waitpid(rank, 0)
    (tmp_path / "rank-00000.exit.json").write_text('{"exit_status": 9}')
    assert ranks.changed()
    one = a_round(program)
    one.start_if_due(10.0, None)
    FakeRunner.made[-1].ended = True
    one.go_on()
    one.start_if_due(11.0, None)
    assert len(FakeRunner.made) == 1
    one.hurry("host.kernel")
    one.start_if_due(11.0, None)
    assert len(FakeRunner.made) == 1, "another round asks for that"
    one.hurry("job.ranks")
    one.start_if_due(11.0, None)
    assert len(FakeRunner.made) == 2


def test_a_hurried_look_asks_its_check_alone_and_leaves_the_round_its_interval(
    program: types.ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    """A rank that ends must not make a second look at a GPU of one that is 2 s old."""
    one = a_round(program)
    for now, hurried in ((10.0, False), (12.0, True), (14.0, False), (20.0, False)):
        if hurried:
            one.hurry("job.ranks")
        one.start_if_due(now, None)
        FakeRunner.made[-1].ended = True
        one.go_on()
        program.beat([one], 0.0)
    both = ["gpu.devices", "job.ranks"]
    assert [made.asked for made in FakeRunner.made] == [both, ["job.ranks"], both]
    counted = [json.loads(line)["looks"]["10"] for line in capsys.readouterr().out.splitlines()]
    assert counted == [1, 1, 1, 2]


def test_a_rank_that_is_started_anew_is_a_change(program: types.ModuleType, tmp_path: Path) -> None:
    ranks = ranks_of(program, tmp_path, os.getpid())
    (tmp_path / "rank-00001.process.json").write_text(json.dumps({"pid": os.getpid()}))
    assert ranks.changed()
    assert not ranks.changed()


@pytest.mark.parametrize("pid", ["../../etc/passwd", -1, True, None, [1], 10**30])
def test_what_names_no_process_is_watched_by_its_files_alone(
    program: types.ModuleType, tmp_path: Path, pid: object
) -> None:
    ranks = ranks_of(program, tmp_path, pid)
    assert not ranks.changed()
    (tmp_path / "rank-00000.exit.json").write_text("not even JSON")
    assert ranks.changed()


def test_what_a_training_put_where_a_file_belongs_is_not_waited_for(
    program: types.ModuleType, tmp_path: Path
) -> None:
    """To open a FIFO waits until somebody writes to it."""
    os.mkfifo(tmp_path / "rank-00000.process.json")
    made: Ranks = program.Ranks({"log_dir": str(tmp_path), "ranks": [0]})
    assert not made.changed()


class HangingFolder:
    """Ranks whose look ends when a test writes a byte."""

    def __init__(self) -> None:
        self.reads, self.writes = os.pipe()

    def __call__(self, _parameters: object) -> "HangingFolder":
        return self

    def changed(self) -> bool:
        return os.read(self.reads, 1) == b"1"


def test_a_log_folder_that_hangs_holds_up_neither_heartbeats_nor_looks_and_is_told_once(
    program: types.ModuleType,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = HangingFolder()
    monkeypatch.setattr(program, "Ranks", folder)
    monkeypatch.setattr(program, "RANKS_S", 0.0)
    ranks = program.RanksProcess({"log_dir": str(tmp_path), "ranks": [0]}, 100.0)
    try:
        assert [ranks.changed(now) for now in (102.0, 120.0, 122.0)] == [False] * 3
        assert capsys.readouterr().out.count("log folder does not answer") == 1
        os.write(folder.writes, b"1")
        select.select([ranks.descriptor], [], [], TIMEOUT_S)
        assert ranks.changed(130.0)
        assert not ranks.changed(131.0)
        assert capsys.readouterr().out == ""
    finally:
        pid = ranks.pid
        ranks.end()
    select.select([ranks.descriptor], [], [], TIMEOUT_S)
    assert not ranks.changed(132.0)
    assert "has ended" in capsys.readouterr().out
    with pytest.raises(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def test_what_looks_at_ranks_ends_once_nobody_reads_it(
    program: types.ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program was killed, and could end nothing."""
    folder = HangingFolder()
    monkeypatch.setattr(program, "Ranks", folder)
    monkeypatch.setattr(program, "RANKS_S", 0.0)
    ranks = program.RanksProcess({"log_dir": str(tmp_path), "ranks": [0]}, 100.0)
    os.close(ranks.descriptor)
    os.write(folder.writes, b"0")
    assert os.waitpid(ranks.pid, 0) == (ranks.pid, 0)


def test_a_kernel_log_that_is_rotated_has_grown(program: types.ModuleType, tmp_path: Path) -> None:
    """The new file may be as long as the old one was, or empty."""
    path = tmp_path / "kern.log"
    path.write_text("a line\n")
    log = program.KernelLog(str(path))
    assert not log.grew()
    path.rename(tmp_path / "kern.log.1")
    path.write_text("a line\n")
    assert log.grew()
    assert not log.grew()


def test_no_second_probe_hangs_beside_the_first_and_the_check_is_asked_again_once_it_ends(
    program: types.ModuleType,
) -> None:
    """A driver that hangs keeps its process in state D, and a kill does not end it."""
    one = a_round(program)
    with a_child(0) as hanging:
        one.start_if_due(10.0, None)
        FakeRunner.made[-1].left["gpu.devices"] = hanging
        FakeRunner.made[-1].ended = True
        one.go_on()
        one.start_if_due(20.0, None)
        assert FakeRunner.made[-1].asked == ["job.ranks"]
        FakeRunner.made[-1].ended = True
        one.go_on()
    # It ended, and nobody but the round takes it in.
    one.start_if_due(30.0, None)
    assert FakeRunner.made[-1].asked == ["gpu.devices", "job.ranks"]
    with pytest.raises(ChildProcessError):
        os.waitpid(hanging, os.WNOHANG)


def test_a_probe_is_compiled_once_for_all_its_looks(program: types.ModuleType) -> None:
    """One that is no Python goes to its own process as text, which says so in every look."""
    good, bad, torch = (
        program.with_code({"check": "site.one", "source": source, "torch": needs_torch})
        for source, needs_torch in (("x = 1", False), ("x =", False), ("x = 1", True))
    )
    names: dict[str, object] = {}
    exec(good["code"], names)  # noqa: S102 - our own line
    assert names["x"] == 1
    assert "code" not in bad
    assert "code" not in torch


def test_what_probes_share_is_loaded_before_they_are_forked() -> None:
    """A probe takes what is there already, and reads its own copy where it is another one."""
    probe = "from checks._stacks.processes import kernel_wait\nprint(kernel_wait.__name__)"
    module = "sys.modules['checks._stacks.processes']"
    mark = f"import sys\n{module}.kernel_wait = len\n"
    other = f"{module}.source = 'of another release'\n"
    looked = "\n".join(
        [loading_of([probe]), mark, joined_program(probe), other, joined_program(probe)]
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", looked],
        capture_output=True, text=True, timeout=TIMEOUT_S, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["len", "kernel_wait"]
