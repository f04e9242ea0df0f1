"""The runner on a node: probes are kept apart, ended on time, and all accounted for."""

import asyncio
import contextlib
import glob
import json
import os
import pwd
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from brctl.fanout.local import LocalTransport
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.inventory import Node
from brctl.model.root_access import RootAccess
from brctl.model.sweeps.check import Check
from brctl.model.sweeps.report import CheckResult, NodeReport, ProbeStatus
from brctl.sweep.bundle import pack_bundle, total_seconds
from brctl.sweep.stream import sweep
from tests.fakes.pythons import OLDEST_PYTHON, needs_oldest
from tests.fakes.transport import FakeTransport, answered
from tests.sweep.answers import check
from tests.timeouts import TIMEOUT_S

NOON = datetime(2026, 7, 5, 12, 0, tzinfo=UTC)
PYTHONS = [
    pytest.param(sys.executable, id="this-python"),
    pytest.param(OLDEST_PYTHON, id="oldest-python", marks=needs_oldest),
]

SUDO = RootAccess(("sudo", "-n"))
HANG = "import time\nprint('begun', flush=True)\ntime.sleep(600)"
PID = """
import json, os, sys, time
if os.fork() == 0:
    time.sleep(600)
print(json.dumps({"measurements": [{"name": "m", "subject": "", "value": os.getpid()}]}))
"""
WAITING = """
import os, time
while not os.path.exists(%r):
    time.sleep(0.01)
"""
NVML = """
import json
import pynvml
known = issubclass(pynvml.NVMLError_LibraryNotFound, pynvml.NVMLError)
print(json.dumps({"measurements": [{"name": "m", "subject": "", "value": known}]}))
"""


async def run(*checks: Check, python: str = sys.executable, torch: str = "") -> NodeReport:
    transport = LocalTransport()
    node = Node("here", "localhost", python=python, torch_python=torch)
    try:
        named = {each.name: each for each in checks}
        reports = [report async for report in sweep(transport, [node], named, limit=1)]
        return reports[0]
    finally:
        await transport.close()


async def run_one(each: Check, **how: str) -> CheckResult:
    return (await run(each, **how)).results[0]


@pytest.mark.parametrize("python", PYTHONS)
async def test_probes_answer_side_by_side(python: str) -> None:
    """A hanging, a crashing, a babbling and a killed probe cost the healthy ones nothing."""
    report = await run(
        check("good"), check("hang", HANG, deadline_s=0.5), check("crash", "1/0"),
        check("babble", "while True: print('x' * 1000)"),
        check("killed", "import os\nos.kill(os.getpid(), 9)"),
        check("exit", "raise SystemExit('no')"),
        check("also", level=2),
        python=python,
    )  # fmt: skip
    statuses = {r.check: r.status for r in report.results}
    assert report.outcome is Outcome.ANSWERED
    assert statuses == {
        "good": ProbeStatus.MEASURED, "also": ProbeStatus.MEASURED,
        "hang": ProbeStatus.TIMED_OUT, "crash": ProbeStatus.PROBE_ERROR,
        "babble": ProbeStatus.PROBE_ERROR, "killed": ProbeStatus.PROBE_ERROR,
        "exit": ProbeStatus.PROBE_ERROR,
    }  # fmt: skip


async def test_results_travel_together_and_none_waits_for_a_slow_probe(tmp_path: Path) -> None:
    """Each piece costs the controller CPU: one in half a second, and the slow one holds up none."""
    quick = [check(f"quick{i}", deadline_s=TIMEOUT_S) for i in range(8)]
    slow = check("slow", WAITING % str(tmp_path / "go on"), deadline_s=TIMEOUT_S)
    command = pack_bundle({each.name: each for each in (*quick, slow)}).command(
        Node("here", "localhost", python=sys.executable), {}
    )
    process = await asyncio.create_subprocess_exec(
        *command.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(command.stdin)
    process.stdin.close()
    began = time.monotonic()
    pieces = [await process.stdout.read(1 << 20)]
    while not all(each.name.encode() in b"".join(pieces) for each in quick):
        pieces.append(await process.stdout.read(1 << 20))
        assert pieces[-1], b"".join(pieces)
    half_seconds = int((time.monotonic() - began) / 0.5)
    assert len(pieces) <= 1 + 1 + half_seconds  # the hello, the first result, what came after it
    assert b'"slow"' not in b"".join(pieces)
    (tmp_path / "go on").touch()
    rest = await process.stdout.read()
    await process.wait()
    assert b'"slow"' in rest
    assert b'"end"' in rest


USER = """
import json, os
who = "%d %d %s" % (os.geteuid(), len(os.getgroups()), os.environ["HOME"])
print(json.dumps({"measurements": [{"name": "m", "subject": "", "value": who}]}))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has privileges to drop")
async def test_a_heavy_probe_keeps_no_root_it_does_not_need(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Under sudo it runs as who called sudo; light probes, and those that ask, stay root."""
    monkeypatch.setenv("SUDO_UID", "65534")
    report = await run(
        check("light", USER), check("heavy", USER, level=2),
        check("asks", USER, level=2, needs=("root",)),
    )  # fmt: skip
    users = {r.check: str(r.measurements[0].value).split()[0] for r in report.results}
    assert users == {"light": "0", "heavy": "65534", "asks": "0"}
    heavy = next(r for r in report.results if r.check == "heavy")
    assert str(heavy.measurements[0].value).split()[1:] == ["1", pwd.getpwuid(65534).pw_dir]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has privileges to drop")
async def test_a_probe_that_cannot_drop_its_privileges_does_not_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A user that this node does not know is an error of the probe, not leave to stay root."""
    monkeypatch.setenv("SUDO_UID", "4123456")
    assert (await run_one(check("heavy", USER, level=2))).status is ProbeStatus.PROBE_ERROR


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has privileges to drop")
async def test_a_login_as_root_stays_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without sudo there is nobody to become."""
    monkeypatch.delenv("SUDO_UID", raising=False)
    result = await run_one(check("heavy", USER, level=2))
    assert str(result.measurements[0].value).startswith("0 ")


async def test_a_crash_keeps_its_traceback() -> None:
    """A traceback exits 70: exit 1 would claim that the probe could not measure."""
    result = await run_one(check("crash", "1/0"))
    assert "ZeroDivisionError" in result.stderr


async def test_nothing_a_probe_started_outlives_it() -> None:
    """Children in the probe's group are ended when it ends, not when they please."""
    started = time.monotonic()
    result = await run_one(check("pid", PID))
    assert result.status is ProbeStatus.MEASURED
    assert time.monotonic() - started < TIMEOUT_S
    while living := living_members(int(result.measurements[0].value)):
        assert time.monotonic() - started < TIMEOUT_S, living
        await asyncio.sleep(0.02)


def living_members(group: int) -> list[str]:
    """Processes of a group that are more than a line in the process table."""
    living = []
    for path in glob.glob("/proc/[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, process_group = Path(path).read_text().rpartition(")")[2].split()[:3]
            if int(process_group) == group and state not in ("Z", "X"):
                living.append(path)
    return living


async def test_a_probe_is_not_importable_by_another() -> None:
    """What one probe does to its interpreter stays in it."""
    spoil = "import json\njson.dumps = None\nraise SystemExit(1)"
    report = await run(check("a", spoil), check("b"))
    assert {r.check: r.status for r in report.results}["b"] is ProbeStatus.MEASURED


@pytest.mark.parametrize("python", PYTHONS)
async def test_pynvml_travels_along(python: str) -> None:
    """A node without nvidia-ml-py can still be asked, with pynvml's own exception classes."""
    result = await run_one(check("nvml", NVML, needs=("nvml",)), python=python)
    assert result.status is ProbeStatus.MEASURED, result
    assert result.measurements[0].value is True


async def test_only_the_used_part_of_pynvml_travels() -> None:
    """A level-1 sweep must not compile 6,000 lines on every node every minute."""
    bundle = pack_bundle({"nvml": check("nvml", NVML, needs=("nvml",))})
    assert len(bundle.packed) < 12_000


async def test_a_torch_check_without_torch_says_so() -> None:
    """No interpreter with torch is a reason, not a failure and not a pass."""
    result = await run_one(check("gemm", needs=("torch",)))
    assert result.status is ProbeStatus.COULD_NOT_MEASURE
    assert "torch_python" in " ".join(result.notes)


async def test_a_torch_check_runs_in_its_own_interpreter() -> None:
    """The probe's source and its parameters both arrive on its stdin."""
    result = await run_one(check("gemm", needs=("torch",)), torch=sys.executable)
    assert result.status is ProbeStatus.MEASURED, result


async def test_parameters_reach_only_their_own_node_and_check() -> None:
    """`parameters_for` overrides defaults, and deadline_s is always told."""
    transport = LocalTransport()
    nodes = [Node("a", "localhost"), Node("b", "localhost")]
    checks = {"c": check("c")}
    reports = [
        r async for r in sweep(
            transport, nodes, checks, lambda node, _: {"value": node.name}, limit=2
        )
    ]  # fmt: skip
    await transport.close()
    reported = {r.node: r.results[0].measurements[0].value for r in reports}
    assert reported == {"a": "a", "b": "b"}


async def test_the_runner_starts_as_root_only_when_a_check_needs_it() -> None:
    """`sudo -n` stands before the interpreter for a sweep with a root check, else not."""
    for needs, first in (((), "python3"), (("root",), "sudo")):
        transport = FakeTransport()
        checks = {"c": check("c", needs=needs)}
        node = Node("n", "localhost")
        [_ async for _ in sweep(transport, [node], checks, limit=1, root=SUDO)]
        assert transport.commands[0][1].argv[0] == first


async def test_only_single_commands_run_as_root_where_the_login_may_do_no_more() -> None:
    """The runner stays what the login is, and the probe is told its command."""
    transport = FakeTransport()
    checks = {
        "c": replace(check("c", needs=("root",)), root_command=("/usr/bin/dmesg", "--raw")),
        "d": check("d"),
    }
    root = RootAccess(("sudo", "-n"), single_commands=True)
    stream = sweep(transport, [Node("n", "localhost")], checks, limit=1, root=root)
    assert [report.node async for report in stream] == ["n"]
    command = transport.commands[0][1]
    assert command.argv[0] == "python3"
    size, _, rest = command.stdin.partition(b"\n")
    parameters = json.loads(rest[int(size) :])["parameters"]
    assert parameters["c"]["root_command"] == ["sudo", "-n", "/usr/bin/dmesg", "--raw"]
    assert "root_command" not in parameters["d"]


def test_the_total_deadline_counts_lonely_probes_in_sequence() -> None:
    """Eight shared probes of 2 s run in two batches; two lonely ones add up."""
    shared = [check(f"s{i}", deadline_s=2) for i in range(8)]
    alone = [check(f"a{i}", level=3, deadline_s=10) for i in range(2)]
    assert total_seconds([*shared, *alone]) == 2 + 2 + 10 + 10 + 5


async def test_an_answer_that_waited_to_be_read_came_when_it_came() -> None:
    """Else one node whose words take long to read makes the clocks of all behind it look slow."""

    def waited(node: Node, _command: Command) -> CommandResult:
        ended_s = asyncio.get_running_loop().time() - (60.0 if node.name == "n1" else 0.0)
        return replace(answered(node), ended_s=ended_s)

    nodes = [Node("n1", "n1"), Node("n2", "n2")]
    reports = sweep(FakeTransport(waited), nodes, {}, limit=2, now=lambda: NOON)
    came = {report.node: report.received_at async for report in reports}
    assert came["n1"] is not None
    assert came["n2"] is not None
    assert came["n2"] - came["n1"] > timedelta(seconds=50)
