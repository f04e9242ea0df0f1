"""The embedded cluster: bring it up, break it, heal it, take it down.

Whatever happens in between (Ctrl-C, kill -9, a failure half way), `down` finds everything: the
record with the lab's tag and interface names is on disk before anything exists.
"""

import os
import stat
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from brctl.lab import loopback, namespaces
from brctl.lab.compile import build_libraries
from brctl.lab.faults import FAULTS, Fault
from brctl.lab.files import reset_node, write_files
from brctl.lab.interrupts import locked, signals_as_exceptions, signals_ignored
from brctl.lab.plan import master_port, plan_lab
from brctl.lab.processes import end_tagged, tagged
from brctl.lab.record import (
    TAG_VARIABLE,
    LabNode,
    LabRecord,
    read_record,
    remove_files,
    write_record,
)
from brctl.lab.site import FaultSite
from brctl.lab.spec import Isolation, LabPaths, LabSpec
from brctl.lab.wrong_results import WrongResults
from brctl.library.config import user_cache_dir
from brctl.library.durable_files import private_dir
from brctl.model.errors import UsageError, did_you_mean


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """One node as it is now."""

    name: str
    role: str
    address: str
    port: int
    is_on: bool
    answers_ssh: bool
    process_count: int
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LabStatus:
    """A lab as it is now."""

    directory: Path
    isolation: Isolation
    nodes: tuple[NodeStatus, ...]


@dataclass(frozen=True, slots=True)
class InjectedFault:
    """The truth about a fault that was put in.

    Attributes:
        subject: What broke: `gpu:<uuid>`, `link:<uuid>/<n>`, `rank:local`, or "" for the node.
        say: One sentence.
    """

    fault: str
    node: str
    subject: str
    say: str


class Lab:
    """A lab that is up, or half up, in one directory."""

    def __init__(self, directory: Path) -> None:
        self.paths = LabPaths(directory)

    @property
    def record(self) -> LabRecord:
        """What the lab consists of, as on disk now."""
        record = read_record(self.paths)
        if record is None:
            raise UsageError(
                f"no lab is up in {self.paths.root}", hint="bring one up: brctl lab up"
            )
        return record

    @property
    def nodes(self) -> Mapping[str, LabNode]:
        return {node.name: node for node in self.record.nodes}

    def status(self) -> LabStatus:
        """Which nodes run, answer and are broken."""
        record = self.record
        # Side by side, because each silent node takes its time.
        with ThreadPoolExecutor(max_workers=16) as pool:
            nodes = pool.map(lambda node: self._node_status(record, node), record.nodes)
        return LabStatus(self.paths.root, record.isolation, tuple(nodes))

    def break_node(
        self, fault: str, node: str, *, gpu: int | None = None, wrong: WrongResults | None = None
    ) -> InjectedFault:
        """Put a fault in force, now.

        Args:
            fault: A name of `faults.FAULTS`.
            node: The node to break.
            gpu: GPU slot for GPU faults; None takes one that depends on the node's name.
            wrong: How often and when results are wrong, for faults that make them so.

        Raises:
            UsageError: There is no such fault or node, or this isolation cannot do it.
        """
        with locked(self.paths):
            record = self.record
            chosen = self._fault(record, fault)
            if wrong is not None and not chosen.is_wrong_result:
                those = ", ".join(f.name for f in FAULTS.values() if f.is_wrong_result)
                raise UsageError(f"{fault} is not had by probability or size; {those} are")
            site = replace(self._site(record, node, gpu), wrong=wrong or WrongResults())
            now = (*(f for f in record.faults.get(node, ()) if f != fault), fault)
            write_record(self.paths, record.with_faults(node, now))
            try:
                chosen.apply(site)
            except UsageError:
                write_record(self.paths, record)
                raise
            return InjectedFault(fault, node, chosen.subject(site), chosen.say.format(node=node))

    def heal(self, node: str | None = None) -> tuple[str, ...]:
        """Undo all faults of a node, or of all nodes; the names of the nodes that were broken."""
        with locked(self.paths):
            record = self.record
            broken = tuple(name for name in record.faults if node in (None, name))
            if node is not None:
                self._site(record, node, None)
            for name in broken:
                self._heal_node(self.record, name)
            return broken

    def adopt_children(self) -> None:
        """Let processes this one starts from now on belong to the lab, and so end with it."""
        os.environ[TAG_VARIABLE] = self.record.tag

    def down(self) -> None:
        """End and remove everything; nothing happens if there is nothing."""
        take_down(self.paths)
        os.environ.pop(TAG_VARIABLE, None)

    def _heal_node(self, record: LabRecord, name: str) -> None:
        site = self._site(record, name, None)
        for fault in reversed(record.faults[name]):
            FAULTS[fault].heal(site)
        if not site.is_on():
            boot(record, self.paths, (record.node(name),))
        reset_node(record, self.paths, name)
        write_record(self.paths, record.with_faults(name, ()))

    def _fault(self, record: LabRecord, name: str) -> Fault:
        if name not in FAULTS:
            raise UsageError(f"no fault {name!r}; {did_you_mean(name, FAULTS)}")
        fault = FAULTS[name]
        if fault.needs_netns and record.isolation is not Isolation.NETNS:
            raise UsageError(
                f"{name} needs nodes with network namespaces of their own",
                hint="as root: brctl lab down; brctl lab up --isolation netns",
            )
        return fault

    def _site(self, record: LabRecord, node: str, gpu: int | None) -> FaultSite:
        if node not in self.nodes:
            raise UsageError(f"no node {node!r}; {did_you_mean(node, self.nodes)}")
        if gpu is not None and not 0 <= gpu < record.spec.gpus:
            raise UsageError(f"{node} has GPUs 0 to {record.spec.gpus - 1}, not {gpu}")
        return FaultSite(record, self.paths, node, gpu)

    def _node_status(self, record: LabRecord, node: LabNode) -> NodeStatus:
        pids = processes(record, self.paths, node.name)
        return NodeStatus(
            node.name,
            node.role,
            node.address,
            node.port,
            is_on=bool(pids),
            answers_ssh=namespaces.answers_ssh(node, 0.5),
            process_count=len(pids),
            faults=record.faults.get(node.name, ()),
        )


def load(directory: Path) -> Lab:
    """The lab of a directory.

    Raises:
        UsageError: None is up there.
    """
    lab = Lab(directory)
    _ = lab.record
    return lab


def up(spec: LabSpec, directory: Path) -> Lab:
    """Bring a lab up; all nodes answer SSH when it returns. If it fails, nothing is left.

    Raises:
        UsageError: A lab is up in that directory, or the sizes make no sense.
        UnavailableError: A tool is missing, or a node does not start.
    """
    spec.check()
    paths = LabPaths(directory.absolute())
    _own_folder(paths.root)
    with locked(paths):
        if read_record(paths) is not None:
            raise UsageError(f"a lab is up in {paths.root}", hint="brctl lab down, then up again")
        with signals_as_exceptions():
            try:
                _build(spec, paths)
            except BaseException:
                _remove_everything(paths)
                raise
    return Lab(paths.root)


def _own_folder(root: Path) -> None:
    """Make the lab's folder, or see that it is ours: a link in another's would lead us anywhere."""
    private_dir(root.parent)
    with suppress(FileExistsError):
        root.mkdir(mode=0o700)
    found = root.lstat()
    if stat.S_ISLNK(found.st_mode) or not stat.S_ISDIR(found.st_mode):
        raise UsageError(f"{root}: a lab needs a folder of its own, and this is a link or a file")
    if found.st_uid != os.geteuid() or found.st_mode & 0o022:
        mode = stat.S_IMODE(found.st_mode)
        raise UsageError(
            f"{root}: others may write here (owner {found.st_uid}, mode {mode:04o})",
            hint="name a folder of your own in BRCTL_LAB_DIR, or none",
        )


def take_down(paths: LabPaths) -> None:
    """End and remove the lab of a directory, whatever state it is in."""
    if not paths.root.is_dir():
        return
    with locked(paths):
        _remove_everything(paths)


def _build(spec: LabSpec, paths: LabPaths) -> None:
    build_libraries(user_cache_dir(os.environ))
    record = plan_lab(spec)
    if spec.every_step and record.isolation is not Isolation.NETNS:
        raise UsageError(
            "steps are kept in each node's own memory, and these nodes have none of their own",
            hint="as root: brctl lab up --every-step --isolation netns",
        )
    write_record(paths, record)
    write_files(record, paths, master_port(record.tag))
    boot(record, paths, record.nodes)
    write_record(paths, replace(record, state="up"))


def boot(record: LabRecord, paths: LabPaths, nodes: tuple[LabNode, ...]) -> None:
    """Start nodes; returns when all answer."""
    build = namespaces.boot if record.isolation is Isolation.NETNS else loopback.boot
    build(record, paths, nodes)


def processes(record: LabRecord, paths: LabPaths, name: str) -> tuple[int, ...]:
    """Everything that runs on a node."""
    if record.isolation is Isolation.NETNS:
        return namespaces.processes(paths, name)
    return loopback.processes(record, paths, name)


def leftovers(record: LabRecord) -> tuple[int, ...]:
    """Living processes of a lab; for tests and `lab down`."""
    return tagged(record.tag)


def _remove_everything(paths: LabPaths) -> None:
    with signals_ignored():
        record = read_record(paths)
        if record is not None:
            write_record(paths, replace(record, state="stopping"))
            end_tagged(record.tag)
            if record.isolation is Isolation.NETNS:
                namespaces.remove_network(record)
            remove_files(paths)
        elif paths.root.is_dir() and not any(paths.root.iterdir()):
            paths.root.rmdir()
