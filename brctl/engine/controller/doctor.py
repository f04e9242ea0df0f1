"""Examine the controller: everything that would make a command fail later, said now."""

import contextlib
import os
import resource
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from brctl.actions.ansible.process import INSTALL, PROGRAM
from brctl.engine.controller.doctor_journal import journal
from brctl.engine.controller.doctor_kubernetes import kubernetes
from brctl.engine.controller.doctor_node_pods import node_pods
from brctl.engine.controller.doctor_site import site
from brctl.engine.controller.doctor_slots import slots
from brctl.fanout.processes.broker_place import make_private
from brctl.fanout.processes.broker_wire import socket_path
from brctl.inventory.load import load_inventory
from brctl.journal.shared_locks import CACHED, lock_problem, mount_here
from brctl.library.checks import load_checks
from brctl.library.config import Settings, load_settings
from brctl.library.jobs import load_job
from brctl.library.playbooks import load_trusted_playbook, playbook_files
from brctl.library.shipped import shipped_dir
from brctl.model.doctor_finding import DoctorFinding
from brctl.model.errors import BrctlError, ConfigError
from brctl.model.inventory import NodeRole
from brctl.model.runs.playbook import Playbook
from brctl.model.sweeps.sweep import Health

_TOOLS = {
    "ssh": "for hosts whose ssh_config needs OpenSSH itself; asyncssh works without",
    "cc": "for `brctl lab` only: it builds a stand-in for the NVIDIA library",
}


def examine(
    environ: Mapping[str, str], context: str | None, config: Path | None
) -> tuple[DoctorFinding, ...]:
    """Every finding, the good ones too; one broken file does not hide the rest."""
    findings = [*_python(), *_tools(), *_library()]
    try:
        settings = load_settings(environ, context, config)
    except ConfigError as error:
        findings.append(DoctorFinding(Health.CRITICAL, "config", str(error), error.hint or ""))
        return tuple(findings)
    findings.append(
        DoctorFinding(Health.OK, "config", f"{settings.config_file}, {settings.context}")
    )
    for part in (
        _inventory,
        _jobs,
        slots,
        site,
        kubernetes,
        node_pods,
        ansible,
        _ssh,
        broker,
        _state,
        journal,
    ):
        findings += _guarded(part, settings)
    return tuple(findings)


def _guarded(
    part: Callable[[Settings], Iterator[DoctorFinding]], settings: Settings
) -> list[DoctorFinding]:
    topic = part.__name__.lstrip("_")
    try:
        return list(part(settings))
    except BrctlError as error:
        return [DoctorFinding(Health.CRITICAL, topic, str(error), error.hint or "")]


def _python() -> Iterator[DoctorFinding]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield DoctorFinding(Health.OK, "python", f"{version} at {sys.executable}")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    small = hard < 4096
    yield DoctorFinding(
        Health.WARNING if small else Health.OK,
        "descriptors",
        f"soft limit {soft}, hard limit {hard}",
        "raise the hard limit of open files to 8192 for fleets above 1,000 nodes" if small else "",
    )


def _tools() -> Iterator[DoctorFinding]:
    for tool, purpose in _TOOLS.items():
        path = shutil.which(tool)
        if path:
            yield DoctorFinding(Health.OK, tool, path)
        else:
            yield DoctorFinding(Health.WARNING, tool, f"not found; {purpose}")


def _library() -> Iterator[DoctorFinding]:
    try:
        checks = load_checks((shipped_dir("checks"),))
    except BrctlError as error:
        yield DoctorFinding(Health.CRITICAL, "checks", str(error), error.hint or "")
        return
    yield DoctorFinding(Health.OK, "checks", f"{len(checks)} shipped checks load")


def ansible(settings: Settings) -> Iterator[DoctorFinding]:
    """The program of `ansible.playbook`; who has no such step needs none."""
    files = playbook_files(folder / "playbooks" for folder in settings.library_dirs)
    playbooks = _usable(files)
    users = [p.name for p in playbooks if any(s.uses == "ansible.playbook" for s in p.steps)]
    path = shutil.which(PROGRAM)
    if path or not users:
        yield DoctorFinding(Health.OK, "ansible", path or "not installed, and no playbook needs it")
    else:
        problem = f"{PROGRAM} not found, and {', '.join(users)} needs it"
        yield DoctorFinding(Health.WARNING, "ansible", problem, INSTALL)


def _usable(files: Iterable[Path]) -> list[Playbook]:
    """Those that can be read; `site` names the others."""
    found: list[Playbook] = []
    for path in files:
        with contextlib.suppress(BrctlError):
            found.append(load_trusted_playbook(path))
    return found


def _inventory(settings: Settings) -> Iterator[DoctorFinding]:
    inventory = load_inventory(settings)
    standby = len(inventory.names(NodeRole.STANDBY))
    text = f"{len(inventory.nodes)} nodes, {standby} of them standby"
    if standby:
        yield DoctorFinding(Health.OK, "inventory", text)
    else:
        hint = "a swap needs a standby: give nodes `role: standby`"
        yield DoctorFinding(Health.WARNING, "inventory", text, hint)


def _jobs(settings: Settings) -> Iterator[DoctorFinding]:
    for path in settings.jobs:
        job = load_job(path)
        yield DoctorFinding(Health.OK, "job", f"{job.name}: {job.world_size} ranks, {path}")
    if not settings.jobs:
        yield DoctorFinding(
            Health.WARNING, "job", "no job is declared; dx and fix work on nodes only"
        )


def _ssh(settings: Settings) -> Iterator[DoctorFinding]:
    known = settings.ssh.known_hosts or Path(os.environ.get("HOME", "/")) / ".ssh/known_hosts"
    if known.is_file():
        yield DoctorFinding(Health.OK, "known_hosts", str(known))
    else:
        hint = "collect keys on purpose: brctl inventory trust NODES"
        yield DoctorFinding(Health.CRITICAL, "known_hosts", f"{known} does not exist", hint)
    for key in settings.ssh.identity_files:
        yield _key(key)


def broker(settings: Settings) -> Iterator[DoctorFinding]:
    """Whether the broker's folder is ours alone; without that every command goes without it."""
    if settings.ssh.transport == "broker":
        folder = socket_path().parent
        make_private(folder)
        yield DoctorFinding(Health.OK, "broker", str(folder))


def _key(key: Path) -> DoctorFinding:
    if not key.is_file():
        return DoctorFinding(Health.CRITICAL, "identity", f"{key} does not exist")
    open_to_others = key.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    if open_to_others:
        return DoctorFinding(
            Health.WARNING, "identity", f"{key} is readable by others", f"chmod 600 {key}"
        )
    return DoctorFinding(Health.OK, "identity", str(key))


def _state(settings: Settings) -> Iterator[DoctorFinding]:
    folder = settings.state_dir
    present = next(path for path in (folder, *folder.parents) if path.exists())
    if not os.access(present, os.W_OK):
        yield DoctorFinding(
            Health.CRITICAL, "state", f"{present} is not writable: no run can be journalled"
        )
    elif folder.exists() and folder.stat().st_mode & stat.S_IRWXO:
        yield DoctorFinding(
            Health.WARNING, "state", f"{folder} is open to others", f"chmod 700 {folder}"
        )
    else:
        yield DoctorFinding(Health.OK, "state", str(folder))
    yield from _locks(present)


def _locks(folder: Path) -> Iterator[DoctorFinding]:
    """Whether controllers that share the state directory see each other."""
    mount = mount_here(folder)
    problem = lock_problem(mount)
    if problem:
        hint = "no run can act: mount it with locks, or name another state_dir"
        yield DoctorFinding(Health.CRITICAL, "locks", problem, hint)
    elif mount is not None and mount.kind in CACHED and "noac" not in mount.options:
        yield DoctorFinding(
            Health.WARNING,
            "locks",
            f"{mount.point} is {mount.kind}: blast_radius sees a run that another machine made only"
            " after the time its attributes are cached, up to a minute",
            "mount it with noac, or act from one machine",
        )
