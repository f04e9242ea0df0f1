"""What other tools collect, and which of their files say what went wrong and on which host."""

import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ForeignKind:
    """One tool's way to lay out what it collects.

    Attributes:
        known_by: A path that only this tool writes.
        taken: Paths of logs and command output that are of use.
        host: The host in a path, as its first group; where none stands in it, a file names it.
        host_file: A file whose first word is the host of all others.
    """

    name: str
    known_by: re.Pattern[str]
    taken: re.Pattern[str]
    host: re.Pattern[str] | None = None
    host_file: re.Pattern[str] | None = None


_SOS_COMMANDS = (
    "kernel/dmesg|logs/journalctl|nvidia|infiniband|networking/(?:ethtool|ip_)|hardware/"
    "|pci/|slurm|memory|block/|filesys|processor|date/"
)
KINDS = (
    ForeignKind(
        "sosreport",
        known_by=re.compile(r"(?:^|/)sos_commands/"),
        taken=re.compile(
            rf"(?:^|/)(?:sos_commands/(?:{_SOS_COMMANDS})|var/log/(?:messages|syslog|kern|dmesg"
            r"|nvidia|fabricmanager|slurm))"
        ),
        host_file=re.compile(r"(?:^|/)(?:etc/hostname|hostname|sos_commands/host/hostname)$"),
    ),
    ForeignKind(
        "must-gather",
        known_by=re.compile(r"(?:^|/)(?:namespaces|cluster-scoped-resources)/"),
        taken=re.compile(
            r"/logs/(?:current|previous)\.log$|/events\.yaml$|/host_service_logs/|/nodes/.*\.log"
            r"|/core/(?:nodes|events)/|/dmesg"
        ),
        host=re.compile(
            r"/(?:nodes|pods)/([a-z0-9][a-z0-9.-]{0,252}?)(?:/|\.ya?ml$|_dmesg|\.log)"
        ),
    ),
    ForeignKind(
        "nvidia-bug-report",
        known_by=re.compile(r"(?:^|/)nvidia-bug-report[\w.-]*\.log(?:\.gz)?$"),
        taken=re.compile(r"(?:^|/)nvidia-bug-report[\w.-]*\.log(?:\.gz)?$"),
    ),
)  # fmt: skip
LOGS = ForeignKind(
    "logs", known_by=re.compile(""), taken=re.compile(""), host=re.compile(r"^([^/]{1,64})/")
)
"""A plain folder: everything in it is a log, of the host its folder is called."""

UNAME = re.compile(rb"^(?:uname: )?Linux (\S{1,64}) \d+\.\d+\S* ", re.MULTILINE)
"""The host in the text of an nvidia-bug-report, which asks `uname -a`."""


def kind_of(paths: Iterable[str]) -> ForeignKind:
    """The tool that wrote these files."""
    listed = list(paths)
    known = (kind for kind in KINDS if any(kind.known_by.search(path) for path in listed))
    return next(known, LOGS)
