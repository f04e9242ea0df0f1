"""An incident file for somebody else: pseudonyms for names, and proof that no name is left."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from brctl.engine.recording.archive import IncidentFile, pack
from brctl.engine.recording.imported import imported_hosts
from brctl.engine.recording.look_members import look_members
from brctl.engine.recording.ring import RecordedLook
from brctl.model.errors import GuardError
from brctl.view.recorded.originals import names_left
from brctl.view.recorded.pseudonyms import NameKind, Pseudonyms
from brctl.view.redact import Redactor

_PERSON_KEYS = frozenset({"by", "user", "person", "owner", "operator", "approver"})
_JOB_KEYS = frozenset({"job"})
_JOB_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


@dataclass(frozen=True, slots=True)
class RedactedFile:
    """A file for somebody else.

    Attributes:
        taken: How often each kind of secret was taken out now.
        names: How many names of each kind got a pseudonym.
        places: Of each member, how many secrets were taken out and names replaced.
    """

    raw: bytes
    taken: Mapping[str, int]
    names: Mapping[str, int]
    cuts: Sequence[str]
    places: Mapping[str, int]


def redact_file(
    path: Path,
    file: IncidentFile,
    looks: Sequence[RecordedLook],
    names: Pseudonyms,
    secrets: tuple[str, ...],
) -> RedactedFile:
    """The same file with pseudonyms, and without what is known to be secret here.

    Raises:
        GuardError: A name would be left in it; nothing is written.
    """
    _learn(names, file, looks)
    redactor = Redactor(values=secrets, rename=names.rename)
    cuts: list[str] = list(map(redactor.text, file.manifest.cuts))
    members: dict[str, bytes] = {}
    for one in looks:
        members |= dict(look_members(one, redactor, cuts))
    for name, raw in file.members.items():
        if name not in members:
            members[names.rename(name)] = redactor.file(name, raw)
    _refuse_names_left(path, members, names)
    places = {
        names.rename(name): _replaced(raw, members[names.rename(name)])
        for name, raw in sorted(file.members.items())
    }
    counted = Counter(kind.value for kind, _ in names.used)
    taken = Counter(file.manifest.redaction) + redactor.taken
    raw = pack(
        members,
        made_by=file.manifest.made_by,
        looks=file.manifest.looks,
        redaction=taken,
        cuts=tuple(cuts),
        profile=names.profile.value,
        names=counted,
        journals=file.manifest.journals,
    )
    return RedactedFile(raw, +redactor.taken, counted, cuts, {n: c for n, c in places.items() if c})


def _learn(names: Pseudonyms, file: IncidentFile, looks: Sequence[RecordedLook]) -> None:
    """Every name the file knows to be one, in the order of its inventories."""
    for one in looks:
        nodes = one.look.inventory.nodes.values()
        _learn_hosts(names, (node.name for node in nodes))
        _learn_hosts(names, (host for node in nodes for host in (node.address, node.via)))
        names.learn(NameKind.USER, (node.user for node in nodes if node.user))
        names.learn(NameKind.JOB, [one.look.job.name] if one.look.job else [])
        _learn_hosts(names, _host_names(one))
    _learn_hosts(names, imported_hosts(file.members))
    for name, raw in sorted(file.members.items()):
        names.learn_users(raw.decode("utf-8", "replace"))
        if name.endswith("json"):
            names.learn(NameKind.USER, _texts_below(raw, _PERSON_KEYS))
            jobs = _texts_below(raw, _JOB_KEYS)
            names.learn(NameKind.JOB, (job for job in jobs if _JOB_NAME.fullmatch(job)))


def _learn_hosts(names: Pseudonyms, hosts: Iterable[str]) -> None:
    """A host is known by its first part alone, too, and its domain by itself."""
    named = [host.split(".", 1) for host in hosts if _is_name(host)]
    names.learn(NameKind.DOMAIN, (parts[1] for parts in named if len(parts) > 1))
    names.learn(NameKind.NODE, (parts[0] for parts in named))


def _is_name(host: str) -> bool:
    return any(map(str.isalpha, host)) and ":" not in host


def _host_names(one: RecordedLook) -> Iterator[str]:
    """What machines call themselves in the first line of each answer."""
    for answer in one.answers:
        hello = answer.stdout[:1000].split("\n", 1)[0]
        if '"hello"' in hello:
            yield from _named(hello)


def _named(line: str) -> Iterator[str]:
    try:
        found = msgspec.json.decode(line, type=dict[str, object]).get("node")
    except msgspec.MsgspecError:
        return
    if isinstance(found, str) and found:
        yield found


def _texts_below(raw: bytes, keys: frozenset[str]) -> Iterator[str]:
    """What a document says under one of these keys: who did something, which job it is about."""
    left: list[object] = list(_documents(raw))
    while left:
        value = left.pop()
        if isinstance(value, dict):
            yield from (v for k, v in value.items() if k in keys and isinstance(v, str) and v)
            left += value.values()
        elif isinstance(value, list):
            left += value


def _documents(raw: bytes) -> Iterator[object]:
    """A whole document, or one a line."""
    for text in (raw, *raw.split(b"\n")):
        try:
            yield json.loads(text)
        except (ValueError, RecursionError):
            continue


def _refuse_names_left(path: Path, members: Mapping[str, bytes], names: Pseudonyms) -> None:
    wanted = {name for _, name in names.used} | names.learned
    for member, raw in members.items():
        text = f"{member}\n{raw.decode('utf-8', 'replace')}"
        if left := names_left(text, wanted):
            raise GuardError(
                f"{path}: {len(left)} names would be left in {member}; nothing was written",
                hint="a file for nobody outside: brctl incident record",
            )


def _replaced(before: bytes, after: bytes) -> int:
    """Lines of a member that differ."""
    pairs = zip(before.split(b"\n"), after.split(b"\n"), strict=False)
    return sum(one != other for one, other in pairs)
