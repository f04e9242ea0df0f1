"""Recorded looks as one file that may leave the house: secrets are taken out of all of it."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from brctl import __version__
from brctl.engine.incidents import alert_store
from brctl.engine.incidents.timeline import load_incidents
from brctl.engine.incidents.verdict_store import StoredVerdict, VerdictState, load_all
from brctl.engine.recording.archive import pack
from brctl.engine.recording.budget import DEFAULT_BYTES, fitted, packed_bytes
from brctl.engine.recording.contents import truth_name
from brctl.engine.recording.look import Look
from brctl.engine.recording.look_members import answers_name, look_members, look_name
from brctl.engine.recording.recorder import Recorder
from brctl.engine.recording.ring import (
    RecordedLook,
    answers_in,
    folders,
    look_in,
    unpacked_answers,
)
from brctl.engine.recording.surroundings import journals, sweeps_before
from brctl.model.errors import ConfigError, UsageError
from brctl.model.fault import FaultClass
from brctl.view.incident import incident_document
from brctl.view.recorded.scores import Truth
from brctl.view.redact import Redactor, names_secret

RAW_LIMIT = 256 << 20
"""Bytes of looks that one file takes, unpacked; the newest go first."""

_SHORTEST_SECRET = 8


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which looks: one, or those that came to a verdict, or since a moment, of some nodes."""

    verdict: str | None = None
    since: datetime | None = None
    nodes: frozenset[str] = frozenset()
    look: str | None = None

    def takes(self, look: Look) -> bool:
        """Whether this look is meant."""
        if self.look is not None:
            return look.id == self.look
        of_verdict = self.verdict is None or any(v.id == self.verdict for v in look.verdicts)
        in_time = self.since is None or look.clock[0] >= self.since
        return of_verdict and in_time and (not self.nodes or not self.nodes.isdisjoint(look.nodes))


def export(
    state_dir: Path,
    wanted: Wanted,
    environ: Mapping[str, str] = os.environ,
    limit_bytes: int = DEFAULT_BYTES,
) -> bytes:
    """The file of what is recorded, at most about so many bytes of it.

    Raises:
        UsageError: Nothing of that is recorded, or none of it can be written.
    """
    redactor = Redactor(values=secrets_of(environ))
    cuts: list[str] = []
    looks, members = _looks(state_dir, wanted, redactor, limit_bytes, cuts)
    if not looks:
        raise _nothing(state_dir, wanted, cuts)
    members["incidents.json"] = _incidents(state_dir, wanted.verdict, looks, redactor)
    files, chains = journals(state_dir, looks, redactor, cuts)
    around = {"journals": files, "sweeps": dict(sweeps_before(state_dir, looks, redactor))}
    room = limit_bytes - packed_bytes(members)
    for name, found in around.items():
        room -= (size := packed_bytes(found))
        if room < 0:
            cuts.append(f"{name}: for the size of the file, {size} bytes")
        else:
            members |= found
    return pack(
        members,
        made_by=__version__,
        looks=tuple(look.id for look in looks),
        redaction=+redactor.taken,
        cuts=tuple(cuts),
        journals=chains,
    )


def look_file(look: Look, recorder: Recorder, environ: Mapping[str, str] = os.environ) -> bytes:
    """The file of one look that was just recorded, whole."""
    return _file_of(RecordedLook(look, unpacked_answers(recorder.answers())), [], environ)


def file_of_verdict(
    state_dir: Path, verdict: str, environ: Mapping[str, str] = os.environ
) -> bytes | None:
    """The file of the look that came to a verdict, whole; None where none is kept."""
    cuts: list[str] = []
    found = next(iter(_recorded(state_dir, Wanted(verdict=verdict), cuts)), None)
    return _file_of(found, cuts, environ) if found else None


def _file_of(recorded: RecordedLook, cuts: list[str], environ: Mapping[str, str]) -> bytes:
    redactor = Redactor(values=secrets_of(environ))
    members = dict(look_members(recorded, redactor, cuts))
    return pack(
        members,
        made_by=__version__,
        looks=(recorded.look.id,),
        redaction=+redactor.taken,
        cuts=tuple(cuts),
    )


def _looks(
    state_dir: Path, wanted: Wanted, redactor: Redactor, limit_bytes: int, cuts: list[str]
) -> tuple[list[Look], dict[str, bytes]]:
    """The looks there is room for, newest first, and their members."""
    members: dict[str, bytes] = {}
    looks: list[Look] = []
    room = limit_bytes
    for recorded in _recorded(state_dir, wanted, cuts):
        look = recorded.look
        found = dict(look_members(recorded, redactor, cuts))
        if sum(map(len, [*members.values(), *found.values()])) > RAW_LIMIT:
            cuts.append(f"look {look.id}: the file would unpack to more than {RAW_LIMIT} bytes")
            continue
        room -= packed_bytes({look.id: found[look_name(look.id)]})
        asked, name = [answer.node for answer in recorded.answers], answers_name(look.id)
        found[name] = fitted(look, asked, found[name], max(0, room), cuts)
        room -= packed_bytes({name: found[name]})
        members |= found | _truth(state_dir, look, redactor)
        looks.append(look)
    return looks, members


def _recorded(state_dir: Path, wanted: Wanted, cuts: list[str]) -> Iterator[RecordedLook]:
    """What is meant, newest first; a damaged one may have been meant, and is told in `cuts`."""
    for folder in folders(state_dir):
        try:
            look = look_in(folder)
            if wanted.takes(look):
                yield RecordedLook(look, answers_in(folder))
        except ConfigError:
            cuts.append(f"look {folder.name}: its recording is damaged")


def _nothing(state_dir: Path, wanted: Wanted, cuts: Sequence[str]) -> UsageError:
    meant = wanted.verdict or wanted.look or "that time"
    if cuts:
        return UsageError(
            f"nothing of {meant} can be written: {'; '.join(cuts)}",
            hint=f"the recordings are in {state_dir / 'recordings'}",
        )
    return UsageError(
        f"nothing of {meant} is recorded",
        hint="every `brctl dx` records what it sees; the newest 20 are kept",
    )


def secrets_of(environ: Mapping[str, str]) -> tuple[str, ...]:
    """What this controller itself knows to be secret: it is taken out wherever it stands."""
    found = {
        value
        for name, value in environ.items()
        if names_secret(name) and len(value) >= _SHORTEST_SECRET and "/" not in value[:1]
    }
    return tuple(sorted(found, key=len, reverse=True))


def _truth(state_dir: Path, look: Look, redactor: Redactor) -> dict[str, bytes]:
    """What it really was, where somebody confirmed one of the verdicts."""
    told = {verdict.id for verdict in look.verdicts}
    for stored in load_all(state_dir):
        if stored.verdict.id in told and stored.state is VerdictState.CONFIRMED:
            return {truth_name(look.id): msgspec.json.encode(truth_of(stored, redactor))}
    return {}


def truth_of(stored: StoredVerdict, redactor: Redactor) -> Truth:
    """What a confirmed verdict turned out to be: words confirm its own class."""
    named = stored.note if stored.note in list(FaultClass) else stored.verdict.fault.value
    nodes = stored.nodes or stored.verdict.nodes
    return Truth(named, nodes, redactor.text(stored.note), stored.by, stored.at)


def _incidents(
    state_dir: Path, named: str | None, looks: Iterable[Look], redactor: Redactor
) -> bytes:
    """Time lines of what these looks told: verdict, runs, approvals, notes; and of its alerts."""
    told = {verdict.id for look in looks for verdict in look.verdicts}
    meant = told | {
        a.id for a in alert_store.load_all(state_dir) if not told.isdisjoint(a.verdicts)
    }
    found = [
        incident_document(incident)["incident"]
        for incident in load_incidents(state_dir, named)
        if incident.id in meant
    ]
    return msgspec.json.encode(redactor.document(found))


def since(now: datetime, seconds: float | None) -> datetime | None:
    """The moment so long ago."""
    return None if seconds is None else now - timedelta(seconds=seconds)
