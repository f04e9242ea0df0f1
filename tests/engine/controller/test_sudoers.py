"""The login on nodes may run as root what checks need and nothing else: real visudo, real sudo."""

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import asyncssh
import pytest

from brctl.cli.commands import config as config_module
from brctl.cli.commands import doctor as doctor_module
from brctl.engine.controller.security.sudoers import sudoers, without_command
from brctl.fanout.asyncssh.transport import AsyncsshTransport
from brctl.inventory.load import load_inventory
from brctl.library.checks import load_check, load_checks
from brctl.library.config import load_settings
from brctl.library.new_check import write_new_check
from brctl.library.shipped import shipped_dir
from brctl.model.errors import ConfigError, UsageError
from brctl.model.sweeps.report import NodeReport, Value
from brctl.sweep.stream import sweep
from tests.cli.test_run import call
from tests.contract.transport_sites import SSHD, _wait_until_open
from tests.fakes.ports import free_port
from tests.timeouts import TIMEOUT_S

LOGIN = "brctlprobe"
UID = 4242
TOOLS = all(map(shutil.which, ("visudo", "sudo", "unshare", "nsenter"))) and SSHD is not None
NEEDS_TOOLS = pytest.mark.skipif(not TOOLS or os.geteuid() != 0, reason="sudo, sshd and root")
CHECKS = load_checks((shipped_dir("checks"),))
CONFIG = """\
apiVersion: brctl.dev/v1
kind: Config
context: here
state_dir: state
ssh:
  {user: LOGIN, identity_file: key, known_hosts: known, transport: asyncssh, sudo: "sudo -n",
   sudo_for: HOW}
contexts:
  here: {inventory: [{file: inventory.yaml}]}
"""
INVENTORY = """\
apiVersion: brctl.dev/v1
kind: Inventory
nodes: {n1: {address: 127.0.0.1, port: PORT, python: /usr/bin/python3}}
"""


def visudo(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = folder / "sudoers"
    path.write_text(text)
    path.chmod(0o440)
    return subprocess.run(
        ["visudo", "-c", "-s", "-f", str(path)], capture_output=True, text=True, check=False
    )


def site_check(folder: Path, command: str) -> Path:
    path = write_new_check("site.tool", folder) / "check.yaml"
    path.write_text(path.read_text() + f"root_command: {command}\n")
    return path


def test_every_check_that_needs_root_names_its_one_command() -> None:
    """So none of ours is UNKNOWN with the login of least rights."""
    assert without_command(CHECKS) == ()
    needing = {name for name, check in CHECKS.items() if "root" in check.needs}
    assert {name for name, check in CHECKS.items() if check.root_command} == needing


@NEEDS_TOOLS
def test_visudo_finds_nothing_wrong_with_the_lines(tmp_path: Path) -> None:
    """Of the shipped checks, and of a site's with everything sudoers reads otherwise."""
    done = visudo(sudoers("brctl", CHECKS), tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    odd = load_check(site_check(tmp_path, "[/opt/x/tool, 'a=b,c:d', --all]"))
    alone = load_check(site_check(tmp_path / "two", "[/opt/x/tool]"))
    text = sudoers("brctl", {**CHECKS, "odd": odd, "alone": alone})
    assert r"/opt/x/tool a\=b\,c\:d --all" in text
    assert '/opt/x/tool ""\n' in text
    done = visudo(text, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@NEEDS_TOOLS
def test_visudo_does_find_what_is_wrong(tmp_path: Path) -> None:
    """What the test above rests on."""
    assert visudo("brctl ALL=(root NOPASSWD: x\n", tmp_path).returncode != 0


@pytest.mark.parametrize(
    "command", ["[/bin/x, '*']", "[/bin/x, 'a b']", "['/bin/[x]']", "[dmesg]", "[/bin/x, '!y']",
                "[/bin/x, 'a\\b']", "[/bin/x, \"a\\nb\"]"]
)  # fmt: skip
def test_a_command_that_sudoers_reads_otherwise_is_no_check(command: str, tmp_path: Path) -> None:
    """A wildcard would allow more than it says, a name without its path another program."""
    with pytest.raises(ConfigError, match="root_command"):
        load_check(site_check(tmp_path, command))


@pytest.mark.parametrize("user", ["", "ALL", "%wheel", "a b", "x\ny", "#0", "+net", "root,ann"])
def test_a_login_that_sudoers_reads_otherwise_is_refused(user: str) -> None:
    with pytest.raises(UsageError, match="--user"):
        sudoers(user, CHECKS)


@dataclass(frozen=True, slots=True)
class Node:
    """A real sshd whose one login has these lines of sudoers, and a configuration that uses it."""

    config: Path
    port: int


@contextlib.contextmanager
def node(folder: Path, lines: str, how: str, *, closed: bool = False) -> Iterator[Node]:
    """Accounts and sudoers are those of a mount namespace; the machine's own are not touched.

    `closed`: the login may not read the kernel log, whatever this machine's kernel.dmesg_restrict.
    """
    key = asyncssh.generate_private_key("ssh-ed25519")
    key.write_private_key(str(folder / "key"))
    (folder / "key").chmod(0o600)
    host = asyncssh.generate_private_key("ssh-ed25519")
    host.write_private_key(str(folder / "host_key"))
    (folder / "host_key").chmod(0o600)
    public = key.export_public_key().decode().strip()
    (folder / "authorized").write_text(f"restrict {public}\n")
    for name, line in {
        "passwd": f"{LOGIN}:x:{UID}:{UID}::/tmp:/bin/sh\n",
        "shadow": f"{LOGIN}:*:19000:0:99999:7:::\n",
        "group": f"{LOGIN}:x:{UID}:\n",
    }.items():
        (folder / name).write_text(Path("/etc", name).read_text() + line)
        (folder / name).chmod(0o640 if name == "shadow" else 0o644)
    (folder / "sudoers").write_text(f"Defaults env_reset\n{lines}")
    (folder / "sudoers").chmod(0o440)
    port = free_port()
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host_key\nPidFile none\n"
        f"AuthorizedKeysFile /mnt/authorized\nStrictModes no\nUsePAM no\nUseDNS no\n"
    )
    (folder / "known").write_text(
        f"[127.0.0.1]:{port} {host.export_public_key().decode().strip()}\n"
    )
    (folder / "config.yaml").write_text(CONFIG.replace("LOGIN", LOGIN).replace("HOW", how))
    (folder / "inventory.yaml").write_text(INVENTORY.replace("PORT", str(port)))
    binds = [f"mount --bind {folder}/{name} /etc/{name}" for name in
             ("passwd", "shadow", "group", "sudoers")]  # fmt: skip
    # The login itself reads its authorized keys, and may not enter the folders of this test.
    keys = f"mount -t tmpfs -o mode=0755 none /mnt && install -m 0644 {folder}/authorized /mnt/"
    if closed:
        (folder / "kmsg").touch(0o600)
        binds.append(f"mount --bind {folder}/kmsg /dev/kmsg")
    script = " && ".join([*binds, keys, f"exec {SSHD} -D -e -f {folder}/sshd_config"])
    process = subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", script], stderr=subprocess.DEVNULL
    )
    try:
        _wait_until_open(port)
        yield Node(folder / "config.yaml", port)
    finally:
        process.terminate()
        process.wait(TIMEOUT_S)


def over_ssh(found: Node, *command: str) -> subprocess.CompletedProcess[str]:
    folder = found.config.parent
    options = ["-o", "BatchMode=yes", "-o", f"UserKnownHostsFile={folder}/known", "-F", "none"]
    return subprocess.run(
        ["ssh", *options, "-i", str(folder / "key"), "-p", str(found.port), f"{LOGIN}@127.0.0.1",
         *command],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def sudo_rows(found: Node) -> list[tuple[str, str]]:
    """What `doctor --security -w` says of sudo."""
    _, text = call(doctor_module, found.config, "--security", "-w", "n1", "--json")
    rows = json.loads(text)["findings"]
    return [(row["state"], row["text"]) for row in rows if row["topic"] == "sudo"]


async def asked(found: Node) -> NodeReport:
    """What the node answers to the checks that need root."""
    settings = load_settings({}, config=found.config)
    checks = {name: check for name, check in CHECKS.items() if "root" in check.needs}
    transport = AsyncsshTransport(settings.ssh)
    try:
        nodes = list(load_inventory(settings).nodes.values())
        stream = sweep(transport, nodes, checks, limit=1, root=settings.ssh.root)
        (report,) = [report async for report in stream]
    finally:
        await transport.close()
    return report


def lines_read(report: NodeReport) -> dict[str, Value]:
    """How many lines of the kernel log each check had."""
    return {
        result.check: measured.value
        for result in report.results
        for measured in result.measurements
        if measured.name.endswith(".lines_read")
    }


@pytest.mark.ssh
@NEEDS_TOOLS
def test_the_login_runs_the_sweep_and_nothing_else_as_root(tmp_path: Path) -> None:
    """A real sshd and a real sudo, with exactly what `brctl config sudoers` prints."""
    (tmp_path / "config.yaml").write_text(CONFIG.replace("LOGIN", LOGIN).replace("HOW", "commands"))
    (tmp_path / "inventory.yaml").write_text(INVENTORY.replace("PORT", "22"))
    code, lines = call(config_module, tmp_path / "config.yaml", "sudoers")
    assert code == 0
    with node(tmp_path, lines, "commands") as found:
        assert over_ssh(found, "id", "-u").stdout.strip() == str(UID)
        assert over_ssh(found, "sudo", "-n", "/usr/bin/dmesg", "--raw").returncode == 0
        for command in (
            ["id"], ["/usr/bin/dmesg"], ["/usr/bin/dmesg", "--clear"],
            ["/usr/bin/dmesg", "--raw", "--clear"], ["/usr/bin/python3", "-c", "1"], ["sh"], ["-s"],
            ["cat", "/etc/shadow"], ["-e", "/etc/passwd"], ["-u", "daemon", "/usr/bin/dmesg"],
        ):  # fmt: skip
            done = over_ssh(found, "sudo", "-n", *command)
            assert done.returncode != 0, command
            assert "password is required" in done.stderr or "not allowed" in done.stderr, command
        read = lines_read(asyncio.run(asked(found)))
        ((state, text),) = sudo_rows(found)
    assert (state, text) == (
        "ok",
        "may run as root what checks need, no more: /usr/bin/dmesg --raw",
    )
    assert set(read) == {"gpu.xid", "host.kernel"}
    assert all(read.values())


@pytest.mark.ssh
@NEEDS_TOOLS
@pytest.mark.parametrize("how", ["commands", "runner"])
def test_without_the_lines_the_kernel_log_is_unknown_and_says_why(how: str, tmp_path: Path) -> None:
    """No login of least rights, no answer; never an empty log."""
    with node(tmp_path, "", how, closed=True) as found:
        report = asyncio.run(asked(found))
    assert lines_read(report) == {}
    told = report.detail + "".join(
        note + result.stderr for result in report.results for note in ("", *result.notes)
    )
    assert "password is required" in told


@pytest.mark.ssh
@NEEDS_TOOLS
@pytest.mark.parametrize(
    ("lines", "state", "said"),
    [
        ("", "ok", "may run nothing as root; checks that need /usr/bin/dmesg --raw are UNKNOWN"),
        (f"{LOGIN} ALL=(ALL) NOPASSWD: ALL\n", "warn", "may run as root: (ALL) ALL"),
        (f"{LOGIN} ALL=(root) NOPASSWD: /usr/bin/dmesg\n", "warn", "as root: /usr/bin/dmesg"),
        (f"{LOGIN} ALL=(daemon) NOPASSWD: /bin/sh\n", "warn", "as root: (daemon) /bin/sh"),
    ],
)
def test_doctor_says_what_sudo_allows_the_login(
    lines: str, state: str, said: str, tmp_path: Path
) -> None:
    """As the node's own sudo lists it."""
    with node(tmp_path, lines, "commands") as found:
        ((health, text),) = sudo_rows(found)
    assert health == state
    assert text.endswith(said)


def test_doctor_does_not_take_silence_for_least_rights(tmp_path: Path) -> None:
    """A node that cannot be asked is unknown; a login that is root needs no sudo."""
    (tmp_path / "config.yaml").write_text(
        CONFIG.replace("LOGIN", LOGIN).replace("HOW", "commands").replace("asyncssh", "local")
    )
    inventory = INVENTORY.replace("PORT", "22")
    (tmp_path / "inventory.yaml").write_text(inventory)
    ((health, text),) = sudo_rows(Node(tmp_path / "config.yaml", 0))
    if os.geteuid() == 0:
        assert (health, text) == ("warn", "the login is root")
    (tmp_path / "known").write_text("")
    (tmp_path / "config.yaml").write_text(CONFIG.replace("LOGIN", LOGIN).replace("HOW", "commands"))
    (tmp_path / "inventory.yaml").write_text(INVENTORY.replace("PORT", str(free_port())))
    ((health, text),) = sudo_rows(Node(tmp_path / "config.yaml", 0))
    assert health == "unknown"
    assert "identity file cannot be used" in text
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(str(tmp_path / "key"))
    ((health, text),) = sudo_rows(Node(tmp_path / "config.yaml", 0))
    assert health == "unknown"
    assert text.startswith("could not be asked")
