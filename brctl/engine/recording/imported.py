"""What another tool collected as an incident file: its logs, and what they say by today's rules."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from brctl import __version__
from brctl.engine.logs.classify import Blocks, Classifier
from brctl.engine.recording.archive import pack
from brctl.engine.recording.contents import truth_name
from brctl.engine.recording.foreign import FILES_LIMIT, TOTAL_BYTES, foreign_files
from brctl.engine.recording.foreign_kinds import LOGS, UNAME, ForeignKind, kind_of
from brctl.evidence.logs.catalogue import SHIPPED
from brctl.library.log_rules import load_log_rules, signatures_with
from brctl.model.errors import ConfigError
from brctl.model.evidence import Evidence, Gap, Role, Subject, Weight
from brctl.model.fault import Origin
from brctl.model.log_verdict import LogVerdict
from brctl.model.verdict import Alternative, Suspect, Verdict
from brctl.view.recorded.scores import Truth
from brctl.view.redact import Redactor

IMPORTED = "imported"
"""What the only look of such a file is called."""

VERDICT, SOURCES = "verdict.json", "sources.json"
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_NAME_LENGTH = 50
_WEIGHTS = {Role.ROOT: Weight.CONVICTS}


class Sources(msgspec.Struct, frozen=True):
    """Where the members come from."""

    kind: str
    hosts: tuple[str, ...]
    paths: dict[str, str]


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """An incident file made of another tool's collection."""

    raw: bytes
    kind: str
    verdict: Verdict
    hosts: tuple[str, ...]
    logs: int
    cuts: tuple[str, ...]


def import_collection(source: Path, secrets: tuple[str, ...], truth: Truth | None) -> ImportedFile:
    """Read, redact, judge and pack it.

    Raises:
        ConfigError: It cannot be read, or nothing in it is a log.
        UsageError: There is no such file.
    """
    notes: list[str] = []
    redactor = Redactor(values=secrets)
    kind, texts = _texts(source, notes)
    host = _common_host(kind, texts)
    members: dict[str, bytes] = {}
    paths: dict[str, str] = {}
    for number, (path, raw) in enumerate(sorted(_taken(kind, texts))):
        member = f"logs/{_host(kind, path, raw) or host or '-'}/{number:05}-{_plain(path)}"
        members[member.replace("/-/", "/unknown/")] = redactor.text(_as_text(raw)).encode()
        paths[member.replace("/-/", "/unknown/")] = redactor.text(path)
    if not members:
        raise ConfigError(f"{source}: no log was found in it", hint="brctl logs classify FILE")
    verdict = judge_logs(members, None, _newest(source))
    hosts = tuple(sorted({name.split("/")[1] for name in members} - {"unknown"}))
    members[SOURCES] = msgspec.json.encode(Sources(kind.name, hosts, paths))
    members[VERDICT] = msgspec.json.encode(verdict)
    if truth is not None:
        members[truth_name(IMPORTED)] = msgspec.json.encode(truth)
    cuts = tuple(map(redactor.text, notes))
    raw_file = pack(members, made_by=__version__, looks=(), redaction=+redactor.taken, cuts=cuts)
    return ImportedFile(raw_file, kind.name, verdict, hosts, len(paths), cuts)


def _texts(source: Path, notes: list[str]) -> tuple[ForeignKind, dict[str, bytes]]:
    """Every file that any tool's layout may take, and whose layout it is."""
    found: dict[str, bytes] = {}
    kind, size = LOGS, 0
    for number, file in enumerate(foreign_files(source, notes)):
        kind = kind if kind is not LOGS else kind_of([file.path])
        if number >= FILES_LIMIT or size > TOTAL_BYTES:
            notes.append(f"{file.path}: not read, the collection is too big")
            break
        if _of_use(file.path, kind):
            found[file.path] = file.read()
            size += len(found[file.path])
    return kind, found


def _of_use(path: str, kind: ForeignKind) -> bool:
    """A folder of logs may turn out to be a tool's when more of it was listed."""
    wanted = kind.taken.search(path) or (kind.host_file and kind.host_file.search(path))
    return kind is LOGS or bool(wanted)


def _taken(kind: ForeignKind, texts: Mapping[str, bytes]) -> list[tuple[str, bytes]]:
    """Those that are text, and not empty."""
    return [
        (path, raw)
        for path, raw in texts.items()
        if kind.taken.search(path) and raw.strip() and b"\0" not in raw
    ]


def _as_text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _common_host(kind: ForeignKind, texts: Mapping[str, bytes]) -> str:
    """The host that a file of the collection names for all others."""
    if kind.host_file is None:
        return ""
    named = (raw for path, raw in texts.items() if kind.host_file.search(path))
    words = next((raw.split() for raw in named if raw.split()), [])
    return _plain(_as_text(words[0])) if words else ""


def _host(kind: ForeignKind, path: str, raw: bytes) -> str:
    if kind.host is not None:
        found = kind.host.search(path)
        return _plain(found[1]) if found else ""
    asked = UNAME.search(raw) if kind.host_file is None else None
    return _plain(_as_text(asked[1])) if asked else ""


def _plain(text: str) -> str:
    """A name that may stand in an archive."""
    return _UNSAFE.sub("-", text.rsplit("/", 1)[-1]).strip("-._")[-_NAME_LENGTH:].lstrip("-._")


def _newest(source: Path) -> datetime:
    return datetime.fromtimestamp(int(source.stat().st_mtime), UTC)


def judge_logs(members: Mapping[str, bytes], rules: Path | None, at: datetime) -> Verdict:
    """What the logs of a file say, by the shipped rules or a folder's."""
    signatures = signatures_with(load_log_rules((rules,))) if rules is not None else SHIPPED
    logs = [(name, raw) for name, raw in sorted(members.items()) if name.startswith("logs/")]
    found = Classifier(signatures).classify_inputs((name, Blocks([raw])) for name, raw in logs)
    return _verdict(found.overall, at)


def _verdict(said: LogVerdict, at: datetime) -> Verdict:
    evidence = tuple(
        Evidence(
            kind=line.signature, subject=Subject(_host_of(line.file)), fault=said.fault,
            weight=_WEIGHTS.get(line.role, Weight.CONTEXT), role=line.role,
            source=f"{line.file}:{line.line}", text=line.text,
        )
        for line in said.evidence
    )  # fmt: skip
    blamed = said.origin is Origin.INFRA
    hosts = dict.fromkeys(e.subject.node for e in evidence if blamed and e.role is Role.ROOT)
    return Verdict(
        id="V-LOGS", fault=said.fault, title=said.fault.value, origin=said.origin,
        suspects=tuple(Suspect(host) for host in hosts if host), probability=said.probability,
        evidence=evidence, ruled_out=(), decided_at=at, action=said.action,
        alternatives=tuple(Alternative(fault, (), left) for fault, left in said.alternatives),
        not_checked=tuple(Gap(Subject(""), "log", note) for note in said.notes),
        playbook=said.playbook, say=said.say,
    )  # fmt: skip


def _host_of(member: str) -> str:
    host = member.split("/")[1]
    return "" if host == "unknown" else host


def imported_verdict(path: Path, members: Mapping[str, bytes]) -> Verdict | None:
    """What was told when a collection was imported; None in a file of recorded looks.

    Raises:
        ConfigError: It cannot be read.
    """
    raw = members.get(VERDICT)
    try:
        return msgspec.json.decode(raw, type=Verdict) if raw is not None else None
    except msgspec.MsgspecError as exc:
        raise ConfigError(f"{path}: {VERDICT} cannot be read: {exc}") from exc


def imported_hosts(members: Mapping[str, bytes]) -> Sequence[str]:
    """The hosts whose logs a file holds, by its own list."""
    try:
        return msgspec.json.decode(members.get(SOURCES, b"{}"), type=Sources).hosts
    except msgspec.MsgspecError:
        return ()
