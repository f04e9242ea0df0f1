"""Which context we are in and how to reach it: flags, environment, user and system files."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from brctl.library.calendars import CalendarSource, read_sources
from brctl.library.file_tables import (
    ASK_NCCL,
    AUDIT,
    AUDIT_FAILURE,
    CONFIG,
    CONTEXT,
    GATEWAYS,
    KUBERNETES,
    NODE_PODS,
    SCHEDULERS,
    SOURCE,
    SSH,
    SUDO_FOR,
    TRANSPORT_NAMES,
)
from brctl.library.notify_settings import NotifySettings, read_notify
from brctl.library.schema import Section, open_kind
from brctl.library.strict_yaml import Document, load_document
from brctl.library.sweep_settings import SweepSettings, read_sweep
from brctl.library.trusted_files import refuse_untrusted
from brctl.model.errors import NoConfigError, did_you_mean
from brctl.model.root_access import RootAccess

CONFIG_NAME = "config.yaml"
BASELINE_NAME = "baseline.yaml"
_SYSTEM = Path("/etc/brctl")


@dataclass(frozen=True, slots=True)
class NodePods:
    """Pods through which nodes without SSH are reached: an existing DaemonSet's, or our own.

    Attributes:
        context: Of the kubeconfig; "" for its current one.
        namespace: Where the pods are; "" for the namespace of the jobs.
        daemonset: Whose pods are used; "" makes pods of `image`.
        container: "" for a pod's first.
    """

    context: str = ""
    namespace: str = ""
    daemonset: str = ""
    image: str = ""
    container: str = ""


@dataclass(frozen=True, slots=True)
class SshSettings:
    """How nodes are reached.

    Attributes:
        fanout: Nodes in flight at once. Precedent: clush ships 64 (conf/clush.conf).
        handshakes_per_jump: SSH handshakes at once through one jump host; sshd's default
            MaxStartups 10:30:100 drops them at random above 10.
        config_file: OpenSSH client configuration to honour; None reads none.
        shards: Processes a fan-out over thousands of nodes is split over; 0 means one for each
            CPU, 1 never splits.
        gateways: How nodes with `via` are reached: `jump` through a tunnel, end to end; `tree` by
            the gateway's own ssh, for fleets one login node cannot serve.
        sudo_for: `runner` puts `sudo` before all probes of a sweep that needs root, `commands`
            before single commands.
        node_pods: For the transport `kubectl`.
    """

    user: str = ""
    identity_files: tuple[Path, ...] = ()
    known_hosts: Path | None = None
    config_file: Path | None = None
    fanout: int = 64
    handshakes_per_jump: int = 8
    connect_timeout_s: float = 10.0
    login_timeout_s: float = 10.0
    transport: str = "auto"
    sudo: str = ""
    sudo_for: str = "runner"
    shards: int = 0
    gateways: str = "jump"
    node_pods: NodePods = field(default_factory=NodePods)

    @property
    def makes_pods(self) -> bool:
        """Whether asking a node makes a pod on it."""
        chosen = self.node_pods
        return self.transport == "kubectl" and bool(chosen.image) and not chosen.daemonset

    @property
    def root(self) -> RootAccess:
        """How sweeps become root on nodes."""
        return RootAccess(tuple(self.sudo.split()), self.sudo_for == "commands")


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """Where a line for each action goes.

    Attributes:
        to: `syslog`, `journald` or `file`; "" writes none.
        path: Its socket or file; None is the usual one.
        refuse: Do nothing when the line cannot be written, instead of saying so.
    """

    to: str = ""
    path: Path | None = None
    refuse: bool = False


@dataclass(frozen=True, slots=True)
class KubernetesSettings:
    """Which cluster, and where its jobs are; "" leaves it to kubectl's own configuration."""

    context: str = ""
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that files and environment decide before a command starts.

    Attributes:
        inventory: Sources in order, each a mapping with one key: file, slurm, k8s, ...
        jobs: job.yaml files of this context.
        state_dir: Runs, sweeps, verdicts, locks; mode 0700.
        guard_files: guards.yaml files; limits merge by strictness.
        baseline: What is normal for this fleet, as `check learn` wrote it; None without one.
        library_dirs: Where site checks (`checks/`) and playbooks (`playbooks/`) are looked for,
            besides the shipped ones.
        calendars: Maintenance windows and change freezes, not read yet.
        config_file: The file all this came from, or None.
        contexts: Names of all contexts of the file.
        nccl_ras: Whether NCCL of a stalled job is asked: `stalled`, `old-too`, `off`.
        command_limit_s: No command on a node may take longer than this; None leaves each its own.
    """

    context: str
    inventory: tuple[Mapping[str, object], ...]
    jobs: tuple[Path, ...]
    scheduler: str
    state_dir: Path
    ssh: SshSettings
    sweep: SweepSettings = field(default_factory=SweepSettings)
    notify: NotifySettings = field(default_factory=NotifySettings)
    guard_files: tuple[Path, ...] = ()
    baseline: Path | None = None
    library_dirs: tuple[Path, ...] = ()
    readonly: bool = False
    kubernetes: KubernetesSettings = field(default_factory=KubernetesSettings)
    config_file: Path | None = None
    calendars: Mapping[str, CalendarSource] = field(default_factory=dict)
    audit: AuditSettings = field(default_factory=AuditSettings)
    origins: Mapping[str, str] = field(default_factory=dict)
    command_limit_s: float | None = None
    contexts: tuple[str, ...] = ()
    nccl_ras: str = ASK_NCCL[0]


def user_config_dir(environ: Mapping[str, str]) -> Path:
    """Where this user's files are: $XDG_CONFIG_HOME/brctl or ~/.config/brctl."""
    home = Path(environ.get("HOME", "/"))
    return Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "brctl"


def user_state_dir(environ: Mapping[str, str]) -> Path:
    """Where this user's state is: $XDG_STATE_HOME/brctl or ~/.local/state/brctl."""
    home = Path(environ.get("HOME", "/"))
    return Path(environ.get("XDG_STATE_HOME") or home / ".local" / "state") / "brctl"


def user_cache_dir(environ: Mapping[str, str]) -> Path:
    """What can be lost without loss: $XDG_CACHE_HOME/brctl or ~/.cache/brctl."""
    home = Path(environ.get("HOME", "/"))
    return Path(environ.get("XDG_CACHE_HOME") or home / ".cache") / "brctl"


def lab_dir(environ: Mapping[str, str]) -> Path:
    """Where the embedded cluster keeps its configuration and processes' records."""
    return Path(environ.get("BRCTL_LAB_DIR") or user_state_dir(environ) / "lab")


def candidate_files(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Configuration files in the order they are tried; the first that exists is used.

    No file is read from the current directory: a repository must not change what 3 am does.
    """
    named = environ.get("BRCTL_CONFIG")
    if named:
        return (Path(named),)
    return (
        user_config_dir(environ) / CONFIG_NAME,
        _SYSTEM / CONFIG_NAME,
        lab_dir(environ) / CONFIG_NAME,
    )


def load_settings(
    environ: Mapping[str, str] = os.environ, context: str | None = None, config: Path | None = None
) -> Settings:
    """Settings of one context.

    Args:
        environ: BRCTL_CONFIG, BRCTL_CONTEXT, BRCTL_READONLY, HOME and XDG_* are read.
        context: Context to use; None means BRCTL_CONTEXT, then the file's `context`.
        config: File to use instead of the candidates.

    Raises:
        NoConfigError: There is none.
        ConfigError: It is invalid, or the context is not in it.
    """
    wanted = context or environ.get("BRCTL_CONTEXT")
    files = (config,) if config else candidate_files(environ)
    found = [path for path in files if path.is_file()]
    if wanted == "lab" and not config and not environ.get("BRCTL_CONFIG"):
        found = [path for path in found if path.parent == lab_dir(environ)]
    if not found:
        tried = ", ".join(str(path) for path in files)
        raise NoConfigError(
            f"no configuration found; looked at {tried}",
            hint="write one with `brctl config init --hosts FILE`, or practise with `brctl lab up`",
        )
    refuse_untrusted(found[0])
    return _read(load_document(found[0]), found[0], wanted, environ)


def _read(
    document: Document, path: Path, wanted: str | None, environ: Mapping[str, str]
) -> Settings:
    top = open_kind(document, "Config", CONFIG)
    contexts = top.section("contexts")
    name = wanted or top.value("context", str)
    if name not in contexts.data:
        raise top.error(f"no context {name!r}; {did_you_mean(name, contexts.data)}", "contexts")
    here = contexts.section(name)
    here.allow(CONTEXT)
    base = path.parent
    state = top.optional("state_dir", str)
    libraries = _existing(_SYSTEM, user_config_dir(environ), base)
    kubernetes = _read_kubernetes(here)
    ssh = replace(
        _read_ssh(top.section("ssh"), base),
        node_pods=_read_node_pods(here.section("kubernetes").section("node_pods"), kubernetes),
    )
    return Settings(
        context=name,
        contexts=tuple(map(str, contexts.data)),
        inventory=tuple(_sources(here, base)),
        jobs=tuple(base / job for job in here.texts("jobs", ())),
        scheduler=here.choice("scheduler", SCHEDULERS, "static"),
        state_dir=base / state if state else user_state_dir(environ),
        ssh=ssh,
        sweep=read_sweep(top.section("sweep")),
        notify=read_notify(top.section("notify"), top.section("ticket"), base, libraries),
        guard_files=_existing(Path("/etc/brctl/guards.yaml"), base / "guards.yaml"),
        baseline=next(iter(_existing(base / BASELINE_NAME, _SYSTEM / BASELINE_NAME)), None),
        library_dirs=libraries,
        readonly=here.value("readonly", bool, default=False) or bool(environ.get("BRCTL_READONLY")),
        kubernetes=kubernetes,
        nccl_ras=here.choice("nccl_ras", ASK_NCCL, ASK_NCCL[0]),
        config_file=path,
        calendars=read_sources(top.section("calendars"), base),
        audit=_read_audit(top, base),
    )


def _read_audit(top: Section, base: Path) -> AuditSettings:
    path = top.optional("audit_path", str)
    return AuditSettings(
        to=top.choice("audit", AUDIT, "") if "audit" in top.data else "",
        path=base / path if path else None,
        refuse=top.choice("audit_failure", AUDIT_FAILURE, "warn") == "refuse",
    )


def _read_kubernetes(here: Section) -> KubernetesSettings:
    """Without a context of its own, the cluster is the one the inventory comes from."""
    section = here.section("kubernetes")
    section.allow(KUBERNETES)
    listed = (source.data.get("k8s") for source in here.sections("inventory"))
    found = [s.get("context") if isinstance(s, dict) else s for s in listed if s]
    inventory = next((name for name in found if isinstance(name, str)), "")
    return KubernetesSettings(
        context=section.value("context", str, inventory),
        namespace=section.value("namespace", str, ""),
    )


def _read_node_pods(section: Section, kubernetes: KubernetesSettings) -> NodePods:
    section.allow(NODE_PODS)
    if "daemonset" in section.data and "image" in section.data:
        raise section.error("either a `daemonset` that is there, or an `image` of pods to make")
    return NodePods(
        context=kubernetes.context,
        namespace=section.value("namespace", str, kubernetes.namespace),
        daemonset=section.value("daemonset", str, ""),
        image=section.value("image", str, ""),
        container=section.value("container", str, ""),
    )


def _existing(*paths: Path) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(path for path in paths if path.exists()))


def _sources(here: Section, base: Path) -> list[Mapping[str, object]]:
    sources: list[Mapping[str, object]] = []
    for source in here.sections("inventory"):
        source.allow(SOURCE)
        sources.append(
            {
                key: str(base / source.value(key, str))
                if key in ("file", "hostlist", "ansible")
                else value
                for key, value in source.data.items()
            }
        )
    return sources


def _read_ssh(ssh: Section, base: Path) -> SshSettings:
    ssh.allow(SSH)
    identity = ssh.optional("identity_file", str)
    known_hosts = ssh.optional("known_hosts", str)
    config_file = ssh.optional("config_file", str)
    return SshSettings(
        user=ssh.value("user", str, ""),
        identity_files=(base / Path(identity).expanduser(),) if identity else (),
        known_hosts=base / Path(known_hosts).expanduser() if known_hosts else None,
        config_file=base / Path(config_file).expanduser() if config_file else None,
        fanout=ssh.value("fanout", int, 64),
        handshakes_per_jump=ssh.value("handshakes_per_jump", int, 8),
        connect_timeout_s=ssh.duration_s("connect_timeout", "10s"),
        login_timeout_s=ssh.duration_s("login_timeout", "10s"),
        transport=ssh.choice("transport", TRANSPORT_NAMES, "auto"),
        sudo=ssh.value("sudo", str, ""),
        sudo_for=ssh.choice("sudo_for", SUDO_FOR, "runner"),
        shards=ssh.value("shards", int, 0),
        gateways=ssh.choice("gateways", GATEWAYS, "jump"),
    )
