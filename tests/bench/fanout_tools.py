"""How each tool runs one command on many hosts, and what it says about each of them."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tests.bench.fanout_site import PORT, SAY, Fleet

CONNECT_S, LOGIN_S, COMMAND_S = 5, 5, 10
_HOST = re.compile(r"127\.1\.\d+\.\d+")

_PSSH = """
import sys
from pssh.clients import ParallelSSHClient
hosts = open(sys.argv[1]).read().split()
client = ParallelSSHClient(hosts, user="root", port=int(sys.argv[2]), pkey=sys.argv[3],
                           pool_size=128, timeout=int(sys.argv[4]), num_retries=1)
for output in client.run_command(sys.argv[5], stop_on_errors=False, read_timeout=int(sys.argv[6])):
    try:
        if output.exception:
            raise output.exception
        lines = list(output.stdout)
        print(f"{output.host}: {lines[0] if lines else 'nothing'} {output.exit_code}")
    except Exception as error:
        print(f"{output.host}: FAILED {type(error).__name__}")
"""


@dataclass(frozen=True)
class ToolRun:
    """One measured run; `right` counts hosts that were reported as what they are."""

    tool: str
    wall_s: float
    cpu_s: float
    peak_mb: float
    right: int
    total: int


def tool_commands(fleet: Fleet) -> Mapping[str, list[str]]:
    """The tools that are here, each at its best fan-out."""
    folder = fleet.folder
    hostfile = folder / f"hosts-{len(fleet.hosts)}"
    hostfile.write_text("\n".join(fleet.hosts) + "\n")
    (folder / "parallel_run.py").write_text(_PSSH)
    found = {"brctl": _brctl(folder, hostfile)}
    clush, pdsh = shutil.which("clush"), shutil.which("pdsh")
    if clush:
        found["clush -f 64"] = [clush, "-S", "-L", "-f", "64", "-t", str(CONNECT_S),
                                "-u", str(COMMAND_S), "--hostfile", str(hostfile),
                                "echo", SAY]  # fmt: skip
    if pdsh:
        found["pdsh -f 64"] = [pdsh, "-S", "-R", "ssh", "-f", "64", "-t", str(CONNECT_S),
                               "-u", str(COMMAND_S), "-w", f"^{hostfile}", "echo", SAY]  # fmt: skip
    python = os.environ.get("BRCTL_BENCH_PSSH", sys.executable)
    if subprocess.run([python, "-c", "import pssh"], capture_output=True).returncode == 0:
        script, key = str(folder / "parallel_run.py"), str(folder / "id")
        words = [str(hostfile), str(PORT), key, str(CONNECT_S), f"echo {SAY}", str(COMMAND_S)]
        found["parallel-ssh 128"] = [python, script, *words]
    ansible = os.environ.get("BRCTL_BENCH_ANSIBLE") or shutil.which("ansible")
    if ansible:
        found["ansible -f 64 raw"] = _ansible(ansible, hostfile)
    return found


def _ansible(program: str, hostfile: Path) -> list[str]:
    """Its lightest way: `raw` copies nothing to the node; no master connection stays behind."""
    (hostfile.parent / "ansible.cfg").write_text("[defaults]\n")
    settings = {
        "ANSIBLE_SSH_ARGS": "-o ControlMaster=no", "ANSIBLE_TIMEOUT": str(CONNECT_S),
        "ANSIBLE_TASK_TIMEOUT": str(COMMAND_S), "ANSIBLE_NOCOLOR": "1", "LC_ALL": "C.UTF-8",
        "ANSIBLE_CONFIG": f"{hostfile.parent}/ansible.cfg",
    }  # fmt: skip
    words = [f"{name}={value}" for name, value in settings.items()]
    return ["/usr/bin/env", *words, program, "all", "-i", str(hostfile), "-f", "64", "-o",
            "-m", "raw", "-a", f"echo {SAY}"]  # fmt: skip


def _brctl(folder: Path, hostfile: Path) -> list[str]:
    config = write_config(folder, hostfile, "asyncssh")
    return [sys.executable, "-m", "brctl", "--config", str(config), "run", "-w", "@all", "--lines",
            "--deadline", f"{COMMAND_S}s", "--", f"echo {SAY}"]  # fmt: skip


def write_config(folder: Path, hostfile: Path, transport: str, state: str = "state") -> Path:
    """A brctl configuration of these hosts."""
    config = folder / f"{hostfile.name}-{transport}.yaml"
    config.write_text(
        "apiVersion: brctl.dev/v1\nkind: Config\ncontext: bench\n"
        f"state_dir: {state}\n"
        f"contexts: {{bench: {{inventory: [{{file: {hostfile.name}.inventory}}]}}}}\n"
        f"ssh: {{user: root, identity_file: id, known_hosts: known_hosts, fanout: 64,"
        f" transport: {transport}, connect_timeout: {CONNECT_S}s, login_timeout: {LOGIN_S}s}}\n"
    )
    nodes = "".join(f"  {host}:\n" for host in hostfile.read_text().split())
    (folder / f"{hostfile.name}.inventory").write_text(
        "apiVersion: brctl.dev/v1\nkind: Inventory\n"
        f"defaults: {{port: {PORT}, python: /usr/bin/python3}}\nnodes:\n{nodes}"
    )
    return config


def measure(tool: str, argv: list[str], fleet: Fleet) -> ToolRun:
    """Run a tool once: what it cost, and its honesty."""
    run = run_once(tool, argv, fleet)
    text = (fleet.folder / "output").read_text(errors="replace")
    return replace(run, right=_count_right(text, fleet))


def run_once(tool: str, argv: list[str], fleet: Fleet) -> ToolRun:
    """Wall, CPU of the tool and what it waited for, largest process; its words in `output`."""
    output = fleet.folder / "output"
    with output.open("wb") as stream:
        started = time.perf_counter()
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream)
        _, _, used = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - started
        process.returncode = 0
    cpu_s = used.ru_utime + used.ru_stime
    return ToolRun(tool, wall_s, cpu_s, used.ru_maxrss / 1024, 0, len(fleet.hosts))


def _count_right(text: str, fleet: Fleet) -> int:
    """Healthy hosts that answered plus faulty hosts that are named and did not."""
    answered = set(re.findall(rf"({_HOST.pattern})(?:: | \| CHANGED .*\(stdout\) ){SAY}", text))
    named = set(_HOST.findall(_unfold(text)))
    return len(answered & fleet.healthy) + len((named - answered) & fleet.faulty)


def _unfold(text: str) -> str:
    """Folded loopback addresses written out, so that a folded report counts as naming them."""
    from brctl.model.errors import UsageError
    from brctl.model.nodeset import expand

    found = [text]
    for folded in re.findall(r"127\.1\.[0-9.,\[\]-]+", text):
        try:
            found += expand(folded.rstrip(",.-"))
        except UsageError:
            continue
    return " ".join(found)
