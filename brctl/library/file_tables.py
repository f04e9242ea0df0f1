"""The keys of config.yaml, of brctl's own inventory files and of job.yaml, with what each holds.

The readers refuse a key that is not here, and the JSON Schemas for editors are made of the same
tables, so neither can know a key that the other does not.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Union

from brctl.evidence.logs.progress.formats import AUTO, FORMATS
from brctl.model.inventory import NodeRole
from brctl.model.jobs.checkpoint_layouts import CHECKPOINT_NAMES
from brctl.model.notice import NoticeEvent


class Holds(StrEnum):
    """What the value of a key is."""

    TEXT = "text"
    WHOLE = "whole number"
    TRUTH = "truth"
    DURATION = "duration"
    TEXTS = "list of texts"
    LABEL = "text or number"
    COUNT = "a count or a percentage"
    ANYTHING = "anything"


@dataclass(frozen=True, slots=True)
class Each:
    """A mapping of names that the site chooses to values of one kind; `bare` names hold nothing."""

    value: "Value"
    bare: bool = False


@dataclass(frozen=True, slots=True)
class Many:
    """A list of values of one kind."""

    value: "Value"


@dataclass(frozen=True, slots=True)
class OneOf:
    """A value of either kind."""

    kinds: tuple["Value", ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A mapping with these keys and no others; iterating gives the keys."""

    rows: Mapping[str, "Value"]
    required: tuple[str, ...] = ()

    def __contains__(self, key: object) -> bool:
        return key in self.rows

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


Value = Union[Holds, tuple[str, ...], Table, Each, Many, OneOf]  # noqa: UP007 - it names itself
"""A kind of value, or the closed list of its words."""

_TEXT, _WHOLE, _DURATION, _TEXTS = Holds.TEXT, Holds.WHOLE, Holds.DURATION, Holds.TEXTS

TRANSPORT_NAMES = ("auto", "asyncssh", "broker", "openssh", "paramiko", "srun", "kubectl", "local")
SCHEDULERS = ("static", "slurm", "kubernetes")
GATEWAYS = ("jump", "tree")
SUDO_FOR = ("runner", "commands")
ROLES = {"active": NodeRole.ACTIVE, "train": NodeRole.ACTIVE, "standby": NodeRole.STANDBY}
EVENTS = tuple(event.value for event in NoticeEvent if event is not NoticeEvent.TEST)

SSH = Table(
    {
        "user": _TEXT, "identity_file": _TEXT, "known_hosts": _TEXT, "config_file": _TEXT,
        "fanout": _WHOLE, "handshakes_per_jump": _WHOLE, "connect_timeout": _DURATION,
        "login_timeout": _DURATION, "transport": TRANSPORT_NAMES, "sudo": _TEXT, "shards": _WHOLE,
        "sudo_for": SUDO_FOR, "gateways": GATEWAYS,
    }
)  # fmt: skip
NODE_PODS = Table({"daemonset": _TEXT, "image": _TEXT, "namespace": _TEXT, "container": _TEXT})
KUBERNETES = Table({"context": _TEXT, "namespace": _TEXT, "node_pods": NODE_PODS})
SOURCE = Table(
    {
        "file": _TEXT, "hostlist": _TEXT, "ansible": _TEXT, "slurm": Holds.ANYTHING,
        "k8s": Holds.ANYTHING, "clustershell": Holds.ANYTHING,
    }
)  # fmt: skip
ASK_NCCL = ("stalled", "old-too", "off")
CONTEXT = Table(
    {
        "inventory": Many(SOURCE), "jobs": _TEXTS, "scheduler": SCHEDULERS,
        "kubernetes": KUBERNETES, "readonly": Holds.TRUTH, "nccl_ras": ASK_NCCL,
    },
    ("inventory",),
)  # fmt: skip
SWEEP = Table(
    {"profile": _TEXT, "interval": _DURATION, "max_unknown": Holds.COUNT, "reminder": _DURATION}
)
_WHEN = Many(EVENTS)
PAGERDUTY = Table(
    {"routing_key_file": _TEXT, "when": _WHEN, "url": _TEXT, "ca_file": _TEXT},
    ("routing_key_file",),
)
SLACK = Table(
    {
        "webhook_file": _TEXT, "token_file": _TEXT, "channel": _TEXT, "when": _WHEN, "url": _TEXT,
        "ca_file": _TEXT,
    }
)  # fmt: skip
ALERTMANAGER = Table({"url": _TEXT, "when": _WHEN, "token_file": _TEXT, "ca_file": _TEXT}, ("url",))
WEBHOOK = Table(
    {"url": _TEXT, "key_file": _TEXT, "when": _WHEN, "token_file": _TEXT, "ca_file": _TEXT},
    ("url",),
)
HOOKS = Table({"dir": _TEXT, "when": _WHEN})
NOTIFY = Table(
    {
        "pagerduty": PAGERDUTY, "slack": SLACK, "alertmanager": ALERTMANAGER, "webhook": WEBHOOK,
        "hooks": HOOKS, "deadline": _DURATION, "runbook": _TEXT,
    }
)  # fmt: skip
TICKET = Table(
    {"url": _TEXT, "command": _TEXTS, "key_file": _TEXT, "token_file": _TEXT, "ca_file": _TEXT}
)
CALENDAR = Table({"file": _TEXT, "ranges": _TEXTS, "timezone": _TEXT})
AUDIT = ("syslog", "journald", "file")
AUDIT_FAILURE = ("warn", "refuse")
CONFIG = Table(
    {
        "context": _TEXT, "contexts": Each(CONTEXT), "ssh": SSH, "state_dir": _TEXT, "sweep": SWEEP,
        "guards": Holds.ANYTHING, "notify": NOTIFY, "ticket": TICKET, "calendars": Each(CALENDAR),
        "audit": AUDIT, "audit_path": _TEXT, "audit_failure": AUDIT_FAILURE,
    },
    ("context", "contexts"),
)  # fmt: skip

LABELS = ("rack", "leaf", "spine", "zone", "pod", "gpu_model", "rails")
"""Labels that may stand beside the fields; any other goes under `labels`."""

NODE_TEXTS = ("user", "python", "torch_python", "via")
RACK = Table({"every": _WHOLE, "format": _TEXT}, ("every",))
DEFAULTS = Table(
    {
        **dict.fromkeys(NODE_TEXTS, _TEXT), "port": _WHOLE, "gpus": _WHOLE, "role": tuple(ROLES),
        "labels": Each(Holds.LABEL), **dict.fromkeys(LABELS, Holds.LABEL),
        "rack": OneOf((Holds.LABEL, RACK)),
    }
)  # fmt: skip
NODE = Table({"address": _TEXT, **DEFAULTS.rows})
LABEL_FILE = Table({"file": _TEXT, "key": _TEXT, "value": _TEXT}, ("file",))
INVENTORY = Table(
    {
        "defaults": DEFAULTS,
        "nodes": Each(NODE, bare=True),
        "groups": Each(OneOf((_TEXT, LABEL_FILE))),
    }
)

AXES = ("tp", "pp", "dp", "ep", "cp")
LAYOUTS = tuple(CHECKPOINT_NAMES)
LOG_FORMATS = (AUTO, *FORMATS)
SBATCH_OPTIONS = (
    "partition", "account", "qos", "reservation", "gres", "constraint", "time", "mem",
    "cpus-per-task", "exclusive",
)  # fmt: skip
"""What a site may ask of sbatch. Nodes, tasks, name and output are brctl's own business."""

CHECKPOINT = Table(
    {"directory": _TEXT, "layout": LAYOUTS, "pattern": _TEXT, "slots": _TEXT}, ("directory",)
)
PROGRESS = Table({"log": _TEXT, "format": LOG_FORMATS, "pattern": _TEXT, "directory": _TEXT})
JOB = Table(
    {
        "name": _TEXT, "nodes": OneOf((_TEXT, _TEXTS)), "ranks_per_node": _WHOLE,
        "parallel": Table({"order": _TEXTS, **dict.fromkeys(AXES, _WHOLE)}), "launch": _TEXTS,
        "workdir": _TEXT, "environment": Each(Holds.LABEL), "warm": _TEXTS,
        "checkpoint": CHECKPOINT, "logs": _TEXT, "progress": OneOf((_TEXT, PROGRESS)),
        "stall_after": _DURATION, "master_port": _WHOLE,
        "slurm": Table(dict.fromkeys(SBATCH_OPTIONS, OneOf((Holds.LABEL, Holds.TRUTH)))),
        "code": Table({"releases": _TEXT, "start": _TEXT}, ("releases", "start")),
    },
    ("name", "nodes", "launch", "checkpoint", "logs", "progress"),
)  # fmt: skip
