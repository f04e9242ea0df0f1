"""What lies in the current directory is never run: not by brctl, not by the processes it starts."""

import ast
import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import brctl
from brctl.engine.runs.remediate import spawn
from brctl.fanout.asyncssh.transport import AsyncsshTransport
from brctl.fanout.processes.broker_transport import BrokerTransport
from brctl.fanout.processes.shards import Shard
from brctl.library.config import SshSettings
from brctl.library.own_program import forget_current_directory, own_program
from tests.fakes.brokers import end_brokers
from tests.timeouts import TIMEOUT_S

PACKAGE = Path(brctl.__file__).parent
OURS = ("brctl", "asyncio", "msgspec", "asyncssh")


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory holds modules of our names; the file that they leave when they run."""
    sprung = tmp_path / "sprung"
    place = tmp_path / "cwd"
    for name in OURS:
        (place / name).mkdir(parents=True)
        (place / name / "__init__.py").write_text(f"open({str(sprung)!r}, 'a').close()\n")
    monkeypatch.chdir(place)
    return sprung


def test_a_child_imports_brctl_from_where_it_is_installed(trap: Path) -> None:
    """The version comes out, and nothing of the current directory ran."""
    done = subprocess.run(
        own_program("brctl", "--version"), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert brctl.__version__ in done.stdout
    assert not trap.exists()


def test_the_trap_springs_without_it(trap: Path) -> None:
    """What the tests here guard against does happen to a plain `python -m`."""
    subprocess.run([sys.executable, "-m", "brctl", "--version"], capture_output=True, check=False)
    assert trap.exists()


def test_no_process_of_the_fan_out_runs_what_lies_here(trap: Path, tmp_path: Path) -> None:
    """Neither a shard nor the broker; both come up."""
    socket_file = tmp_path / "run" / "broker.sock"
    asyncio.run(_fan_out(socket_file))
    end_brokers(socket_file.parent)
    assert not trap.exists()


async def _fan_out(socket_file: Path) -> None:
    ssh = SshSettings()
    shard = Shard("1 of 1", 4)
    broker = BrokerTransport(ssh, {}, socket_file, lambda: AsyncsshTransport(ssh))
    await broker._connect()
    assert broker._conversation is not None
    await broker.close()
    await shard.close()


def test_no_run_starts_what_lies_here(trap: Path, tmp_path: Path) -> None:
    """A run's process ends for want of a plan, and says so in its own log."""
    run_dir = tmp_path / "R-0001"
    (run_dir / "stdout").mkdir(parents=True)
    asyncio.run(spawn(run_dir))
    log = run_dir / "stdout" / "run.log"
    deadline = time.monotonic() + TIMEOUT_S
    while not log.read_text() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert log.read_text()
    assert "No module named" not in log.read_text()
    assert not trap.exists()


def test_every_child_is_started_through_it() -> None:
    """No other place of the package spells `-m` after an interpreter of ours."""
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.name != "own_program.py"
        # To take every file of the package apart costs seconds.
        and "sys.executable" in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.List | ast.Tuple) and _is_plain_start(node)
    ]
    assert found == []


def _is_plain_start(node: ast.List | ast.Tuple) -> bool:
    words = [ast.unparse(element) for element in node.elts[:2]]
    return words == ["sys.executable", "'-m'"]


def test_an_empty_entry_of_pythonpath_reaches_no_process_of_ours(trap: Path) -> None:
    """`PYTHONPATH=:` puts the current directory first even with `-P`."""
    script = (
        "import os, subprocess, sys\n"
        "from brctl.library.own_program import forget_current_directory, own_program\n"
        "assert forget_current_directory(os.environ, sys.path)\n"
        "import asyncio\n"
        "subprocess.run(own_program('brctl', '--version'), check=True)\n"
    )
    elsewhere = trap.parent / "elsewhere"
    elsewhere.mkdir()
    # The first import of brctl itself is from a place that holds no trap.
    start = f"import os; import brctl.library.own_program; os.chdir({str(trap.parent / 'cwd')!r})\n"
    start += f"import sys; sys.path.insert(0, os.getcwd())\n{script}"
    done = subprocess.run(
        [sys.executable, "-P", "-c", start],
        cwd=elsewhere,
        env={**os.environ, "PYTHONPATH": f":{PACKAGE.parent}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert brctl.__version__ in done.stdout
    assert not trap.exists()


@pytest.mark.parametrize(
    ("before", "after"),
    [(":/opt/x", "/opt/x"), ("/opt/x:", "/opt/x"), (":", ""), ("/a::/b", "/a:/b")],
)
def test_named_places_of_pythonpath_stay(before: str, after: str) -> None:
    """Only the empty entries go, and the current directory with them."""
    environ, path = {"PYTHONPATH": before}, ["", str(Path.cwd()), "/opt/x"]
    assert forget_current_directory(environ, path)
    assert (environ["PYTHONPATH"], path) == (after, ["/opt/x"])


@pytest.mark.parametrize("whole", ["", "/opt/x", "."])
def test_a_pythonpath_without_an_empty_entry_is_left_alone(whole: str) -> None:
    """Also a current directory that somebody names on purpose."""
    environ, path = {"PYTHONPATH": whole}, ["", str(Path.cwd())]
    assert not forget_current_directory(environ, path)
    assert (environ["PYTHONPATH"], path) == (whole, ["", str(Path.cwd())])


def test_the_command_says_that_it_left_an_entry_out(tmp_path: Path) -> None:
    """And works."""
    done = subprocess.run(
        [sys.executable, "-m", "brctl", "--version"], cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": f":{PACKAGE.parent}"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert "PYTHONPATH has an empty entry" in done.stderr
