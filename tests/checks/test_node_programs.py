"""All code that is sent to nodes is of the oldest Python that the contract names, and runs there.

Torch has no release for that Python that this project could pin: what needs torch is compiled there
and run to the sentence that torch is missing; its arithmetic is tested in test_torch_probes.py.
"""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from brctl.backends.ranks.parking import Parking
from brctl.backends.static.backend import StaticBackend
from brctl.fanout.local import LocalTransport
from brctl.lab.compile import build_libraries
from brctl.lab.nvml.state import healthy, write_state
from brctl.library.checks import load_checks
from brctl.library.shipped import node_program, shipped_dir
from brctl.model.command import Outcome
from brctl.model.inventory import Inventory, Node
from brctl.model.sweeps.report import ProbeStatus
from brctl.sweep.stream import sweep
from tests.contract.parking.site import LEASE_S, N1, N2, SCRIPT, ParkingSite, job_in, until
from tests.fakes.pythons import OLDEST, needs_oldest, oldest
from tests.timeouts import TIMEOUT_S

PACKAGE = Path(__file__).resolve().parents[2] / "brctl"
# Runs on the controller's machine: for the lab, and inside Ansible's own process.
NOT_ON_NODES = ("lab/", "actions/ansible/callback.py")
_PROGRAM = re.compile(r"^\s*import \w")
_END_OF_DOCSTRING = re.compile(r'''\A("""[^"]*)"""''')
# Where a literal, or a part of one, may begin so: only such a file is worth its syntax tree.
_MAY_HOLD_PROGRAM = re.compile(r"""["'}](\\\n|\\n|\\t|\s)*import \w""")


def node_sources() -> dict[str, str]:
    """Every program below checks/, and every program text that stands in a module of brctl."""
    found = {
        f"checks/{path.relative_to(shipped_dir('checks'))}": path.read_text()
        for path in sorted(shipped_dir("checks").rglob("*.py"))
    }
    for path in sorted(PACKAGE.rglob("*.py")):
        where = str(path.relative_to(PACKAGE))
        if not where.startswith(NOT_ON_NODES):
            found.update({f"{where}:{line}": text for line, text in _texts(path)})
    return found


def _texts(path: Path) -> list[tuple[int, str]]:
    text = path.read_text()
    # The imports below a module's docstring are no program.
    may_hold = _MAY_HOLD_PROGRAM.search(_END_OF_DOCSTRING.sub(r"\1", text))
    nodes = ast.walk(ast.parse(text)) if may_hold else ()
    constants = [n for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return [(n.lineno, str(n.value)) for n in constants if _PROGRAM.match(str(n.value))]


SOURCES = node_sources()


def test_the_programs_that_travel_as_text_are_seen() -> None:
    """Five loaders and two one-liners; a program of more than a few lines belongs in checks/."""
    texts = {name: text for name, text in SOURCES.items() if not name.startswith("checks/")}
    assert {name.partition(":")[0] for name in texts} >= {
        "sweep/bundle.py", "fanout/gateway/relay.py", "backends/ranks/commands.py",
        "engine/search/group_runner_torch.py", "engine/search/replay_runner.py",
        "actions/node/gpu_reset.py", "engine/standby/care.py",
    }  # fmt: skip
    assert {name: text for name, text in texts.items() if text.count("\n") > 12} == {}


@pytest.mark.parametrize("name", SOURCES)
def test_a_program_for_nodes_has_the_oldest_grammar(name: str) -> None:
    ast.parse(SOURCES[name], feature_version=(3, 8))


def test_program_texts_use_no_newer_library_than_files(tmp_path: Path) -> None:
    """`vermin` reads checks/ in tests/check.py; here it reads what stands as text in modules."""
    for number, (name, text) in enumerate(SOURCES.items()):
        if not name.startswith("checks/"):
            (tmp_path / f"text{number}.py").write_text(text)
    vermin = Path(sys.executable).parent / "vermin"
    done = subprocess.run(
        [vermin, "--quiet", "-t=3.8-", "--no-tips", tmp_path],
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


@needs_oldest
def test_every_program_for_nodes_compiles_on_the_oldest_python() -> None:
    """The real compiler of that Python, with its warnings as errors."""
    program = (
        "import json, sys\n"
        "for name, text in json.load(sys.stdin).items(): compile(text, name, 'exec')\n"
        "print('%d.%d' % sys.version_info[:2])"
    )
    done = subprocess.run(
        [oldest(), "-I", "-W", "error", "-c", program], input=json.dumps(SOURCES),
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout.strip()) == (0, OLDEST), done.stderr


@needs_oldest
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
async def test_the_oldest_python_measures_a_whole_node(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real bundle with every level-1 probe; those of the GPU read the lab's NVML."""
    checks = {
        name: check
        for name, check in load_checks([shipped_dir("checks")]).items()
        if check.level == 1 and not check.together
    }
    write_state(tmp_path / "state", healthy("n1", 8))
    library = build_libraries(tmp_path_factory.mktemp("fake-nvml")).nvml_dir
    monkeypatch.setenv("LD_LIBRARY_PATH", str(library))
    monkeypatch.setenv("BRCTL_FAKE_NVML_STATE", str(tmp_path / "state"))
    (tmp_path / "kmsg").write_text("")
    node = Node("here", "localhost", python=oldest(), labels={"kernel_log": f"{tmp_path}/kmsg"})
    transport = LocalTransport()
    try:
        (report,) = [each async for each in sweep(transport, [node], checks, limit=1)]
    finally:
        await transport.close()
    assert (report.outcome, report.python.rpartition(".")[0]) == (Outcome.ANSWERED, OLDEST)
    ended = {result.check: result.status for result in report.results}
    assert set(ended) == set(checks)
    unread = {ProbeStatus.MEASURED, ProbeStatus.COULD_NOT_MEASURE}
    assert {name: status for name, status in ended.items() if status not in unread} == {}
    nvml = {name for name, check in checks.items() if "nvml" in check.needs}
    assert {name for name in nvml if ended[name] is not ProbeStatus.MEASURED} == set()


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[ParkingSite]:
    """A node and a job whose interpreters are both the oldest."""
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "helper.py").write_text("shade = 1\n")
    inventory = Inventory({n: Node(n, "127.0.0.1", python=oldest()) for n in (N1, N2)})
    transport = LocalTransport()
    backend = StaticBackend(tmp_path / "static.json", transport, inventory, 8)
    job = job_in(tmp_path, (oldest(), "-u", "train.py", "--depth"))
    site = ParkingSite(tmp_path, backend, Parking(transport, inventory, 8), job)
    yield site
    await site.backend.stop_job(site.job, 0.1)
    assert await site.parking.unpark(site.job, [N1, N2]) == {}
    await transport.close()


@needs_oldest
async def test_ranks_park_start_and_stop_on_the_oldest_python(site: ParkingSite) -> None:
    """Every order that brctl gives to a node of a job: examine, park, look, start, status, stop."""
    setup = (await site.parking.examine(site.job, [N1]))[N1]
    assert (setup.problem, str(setup.python).rpartition(".")[0]) == ("", OLDEST)
    await site.park()
    assert (await site.parking.list_parked(site.job, [N1]))[N1].is_whole
    report = await site.backend.start_job(site.job, "", "R-1")
    assert (report.started, report.warm) == ((0, 1), (0, 1)), report
    await until(lambda: (site.folder / "logs" / "rank-00001.log").read_text())
    assert site.said(1)["argv"] == ["train.py", "--depth"]
    assert (await site.backend.job_status(site.job)).alive == (0, 1)
    assert (await site.backend.stop_job(site.job, 5.0)).stopped == (0, 1)
    cold = await site.backend.start_job(site.job, "", "R-2")
    assert (cold.started, cold.warm) == ((0, 1), ())
    await site.park(N2, LEASE_S)
    assert await site.parking.unpark(site.job, [N2]) == {}


def run_on_oldest(path: str, given: Mapping[str, object], *arguments: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [oldest(), "-I", "-c", node_program(path), *arguments], input=json.dumps(given),
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@needs_oldest
def test_a_script_of_the_site_runs_on_the_oldest_python() -> None:
    """Status, bounded output and the deadline."""
    arguments = {
        "run": "echo $SHADE; exit 3",
        "env": {"SHADE": "teal"},
        "deadline_s": 20,
        "limit": 99,
    }
    assert run_on_oldest("_script.py", arguments) == (3, "teal\n", "")
    late = {**arguments, "run": "sleep 60", "deadline_s": 0.2}
    assert run_on_oldest("_script.py", late)[0] == 124
    flood = {**arguments, "run": "seq 1 100000", "limit": 5}
    assert run_on_oldest("_script.py", flood) == (0, "1\n2\n3", "")


@needs_oldest
def test_ends_of_files_come_from_the_oldest_python(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("0123456789")
    files = (f"0:{tmp_path}/a", f"1:{tmp_path}/none")
    code, out, err = run_on_oldest("_file_tails.py", {}, "4", *files)
    assert (code, out) == (0, "\0==> rank 0 cut 4\n6789\n\0==> rank 1 missing 0\n\n")
    assert "No such file" in err


@needs_oldest
def test_a_foreign_check_runs_on_the_oldest_python(tmp_path: Path) -> None:
    program = tmp_path / "check_disk"
    program.write_text("#!/bin/sh\necho WARNING - 91 percent\nexit 1\n")
    program.chmod(0o755)
    arguments = {
        "name": "site.disk", "command": [str(program)], "deadline_s": 20, "known_codes": [0, 1, 2],
    }  # fmt: skip
    code, out, err = run_on_oldest("_foreign.py", arguments)
    assert code == 0, err
    values = {row["name"]: row["value"] for row in json.loads(out)["measurements"]}
    assert values["site.disk.code"] == 1
    assert values["site.disk.line"] == "WARNING - 91 percent"


@needs_oldest
def test_a_group_s_programs_start_on_the_oldest_python(tmp_path: Path) -> None:
    """The replay of a job runs to its end; the worker's rank says that torch is missing."""
    request = {
        "command": ["/bin/sh", "-c", "echo rank $RANK; exit 4"], "workdir": str(tmp_path),
        "environment": {}, "ranks_per_node": 1, "node_rank": 1, "world_size": 2,
        "master": "127.0.0.1", "port": 1, "deadline_s": 20,
    }  # fmt: skip
    code, out, err = run_on_oldest("fabric/group/replay.py", request)
    assert (code, json.loads(out)) == (0, {"ranks": [{"exit_status": 4, "lines": ["rank 1"]}]}), err
    order = {"do": "test", "session": f"oldest-{os.getpid()}", "deadline_s": 20}
    try:
        code, out, err = run_on_oldest("fabric/group/worker.py", order)
        assert (code, "No module named 'torch'" in json.loads(out)["problem"]) == (0, True), err
    finally:
        stopped = run_on_oldest("fabric/group/worker.py", {**order, "do": "stop"})
    assert stopped[:2] == (0, '{"stopped": true}\n')
