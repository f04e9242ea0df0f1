"""Verdicts on disk: one file each, open until a person or a finished run closes it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path

import msgspec

from brctl.library.durable_files import private_dir, set_aside, write_atomic
from brctl.model.errors import ConfigError, UsageError, did_you_mean
from brctl.model.fault import FaultClass
from brctl.model.verdict import Confidence, Verdict

_NAMES_NO_CAUSE = (FaultClass.NO_FAULT, FaultClass.UNKNOWN)


class VerdictState(StrEnum):
    """Where a verdict stands in its life."""

    OPEN = "open"
    ACTED_ON = "acted-on"
    CONFIRMED = "confirmed"
    DISMISSED = "dismissed"
    SUPERSEDED = "superseded"


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    """A verdict with what became of it.

    Attributes:
        note: Why it was dismissed, which cause was confirmed, or the run that acted on it.
        nodes: Where it really was, of a confirmed one that accused other nodes.
        by: Who confirmed or dismissed it.
        at: When.
    """

    verdict: Verdict
    state: VerdictState
    note: str = ""
    nodes: tuple[str, ...] = ()
    by: str = ""
    at: datetime | None = None


def _path(state_dir: Path, verdict_id: str) -> Path:
    return state_dir / "verdicts" / f"{verdict_id}.json"


def save(state_dir: Path, stored: StoredVerdict) -> Path:
    """Write one verdict so that a reader sees the old file or the new one, never a part."""
    path = _path(state_dir, stored.verdict.id)
    private_dir(path.parent)
    write_atomic(path, msgspec.json.encode(stored))
    return path


def save_new(state_dir: Path, verdict: Verdict) -> None:
    """Store a fresh verdict; it is open when there is something to do about it.

    Older open ones on the same nodes and job give way to one that names a cause. One that names
    none gives way to an open one of its job that does; it is open only while it is the newest.
    """
    before = [s for s in load_all(state_dir) if s.state is VerdictState.OPEN]
    for older in before:
        if _gives_way(older.verdict, verdict):
            save(state_dir, replace(older, state=VerdictState.SUPERSEDED, note=verdict.id))
    save(state_dir, _filed(verdict, before))


def _gives_way(older: Verdict, newer: Verdict) -> bool:
    # Two causes of one look on the same nodes are both said, and a person or the tree chooses.
    if older.job != newer.job or older.decided_at == newer.decided_at:
        return False
    if older.fault in _NAMES_NO_CAUSE:
        return True
    return older.nodes == newer.nodes and newer.fault not in _NAMES_NO_CAUSE


def _filed(verdict: Verdict, before: list[StoredVerdict]) -> StoredVerdict:
    if verdict.fault not in _NAMES_NO_CAUSE:
        return StoredVerdict(verdict, VerdictState.OPEN)
    if not verdict.playbook:
        return StoredVerdict(verdict, VerdictState.ACTED_ON, "nothing to do")
    named = (s.verdict for s in before if s.verdict.fault not in _NAMES_NO_CAUSE)
    better = next((v for v in named if v.job == verdict.job), None)
    if better is not None:
        return StoredVerdict(verdict, VerdictState.SUPERSEDED, better.id)
    return StoredVerdict(verdict, VerdictState.OPEN)


def close_acted_on(state_dir: Path, verdict_id: str, run: str, began: datetime) -> None:
    """An open verdict that a run has acted on is no longer proposed; others stay as they are.

    Looks taken while the run waited for a person said the same anew: those are acted on as well,
    and what says it after the run went on, `began`, shows that the action did not help.
    """
    if not _path(state_dir, verdict_id).is_file():
        return
    acted_on = load(state_dir, verdict_id).verdict
    for stored in load_all(state_dir):
        if stored.state is VerdictState.OPEN and _was_meant(stored.verdict, acted_on, began):
            save(state_dir, replace(stored, state=VerdictState.ACTED_ON, note=run))


def _was_meant(one: Verdict, acted_on: Verdict, began: datetime) -> bool:
    same = (one.job, one.fault, one.nodes) == (acted_on.job, acted_on.fault, acted_on.nodes)
    return one.id == acted_on.id or (same and one.decided_at <= began)


def load(state_dir: Path, verdict_id: str) -> StoredVerdict:
    """The verdict of this id.

    Raises:
        UsageError: There is none; names the nearest id.
    """
    path = _path(state_dir, verdict_id)
    if "/" in verdict_id or not path.is_file():
        known = [p.stem for p in path.parent.glob("V-*.json")]
        is_id = not verdict_id or verdict_id.upper().startswith("V-")
        hint = "brctl verdict list" if is_id else f"if it names nodes: brctl dx -w '{verdict_id}'"
        raise UsageError(f"no verdict `{verdict_id}`; {did_you_mean(verdict_id, known)}", hint=hint)
    return _read(path)


def is_known(state_dir: Path, verdict_id: str) -> bool:
    """Whether there is a verdict of this id; alerts and runs are incidents too."""
    return "/" not in verdict_id and _path(state_dir, verdict_id).is_file()


def current(state_dir: Path, verdict_id: str) -> StoredVerdict:
    """The verdict of this id, or the one that took its place: a page keeps the id it was sent with.

    Raises:
        UsageError: There is none; names the nearest id.
    """
    stored, seen = load(state_dir, verdict_id), {verdict_id}
    while stored.state is VerdictState.SUPERSEDED and stored.note not in seen:
        if not _path(state_dir, stored.note).is_file():
            break
        seen.add(stored.note)
        stored = load(state_dir, stored.note)
    return stored


def load_all(state_dir: Path) -> tuple[StoredVerdict, ...]:
    """Every stored verdict, newest first; a damaged file is set aside and stops nothing."""
    found = []
    for path in (state_dir / "verdicts").glob("V-*.json"):
        try:
            found.append(_read(path))
        except ConfigError as damaged:
            if isinstance(damaged.__cause__, OSError):
                raise
            set_aside(path)
    return tuple(sorted(found, key=lambda s: s.verdict.decided_at, reverse=True))


def open_verdicts(state_dir: Path) -> tuple[StoredVerdict, ...]:
    """The verdicts nobody has acted on yet, newest first."""
    return tuple(s for s in load_all(state_dir) if s.state is VerdictState.OPEN)


def the_one(state_dir: Path, verdict_id: str | None) -> StoredVerdict:
    """The named verdict or what took its place, or the only open one.

    Raises:
        UsageError: None is open, or several are and none was named.
    """
    if verdict_id is not None:
        return current(state_dir, verdict_id)
    found = open_verdicts(state_dir)
    if len(found) == 1:
        return found[0]
    if not found:
        closed = [f"{s.verdict.id} ({s.verdict.fault}) is {s.note or s.state}"
                  for s in load_all(state_dir)[:1]]  # fmt: skip
        raise UsageError("; ".join(["no verdict is open", *closed]), hint="look first: brctl dx")
    names = ", ".join(f"{s.verdict.id} ({s.verdict.fault})" for s in blockers_first(found))
    raise UsageError(f"{len(found)} verdicts are open: {names}", hint="name the one you mean")


def for_one_fix(state_dir: Path) -> tuple[StoredVerdict, ...]:
    """All open verdicts where one look found them, surely, and one playbook mends them; else one.

    Raises:
        UsageError: None is open, or several that no one run mends.
    """
    found = tuple(blockers_first(open_verdicts(state_dir)))
    wanted = {(s.verdict.decided_at, s.verdict.job, s.verdict.playbook) for s in found}
    sure = all(s.verdict.playbook and s.verdict.confidence is not Confidence.LOW for s in found)
    return found if len(found) > 1 and len(wanted) == 1 and sure else (the_one(state_dir, None),)


def to_read(state_dir: Path, verdict_id: str | None) -> StoredVerdict:
    """The named verdict, or the only open one; with none open the newest, as it may say why.

    Raises:
        UsageError: There is none, or several are open and none was named.
    """
    if verdict_id is None and not open_verdicts(state_dir):
        newest = load_all(state_dir)[:1]
        if newest:
            return newest[0]
    return the_one(state_dir, verdict_id)


def blockers_first(found: Iterable[StoredVerdict]) -> list[StoredVerdict]:
    """What most surely names a cause first: that is what the job waits for."""
    return sorted(found, key=lambda s: (s.verdict.fault in _NAMES_NO_CAUSE, -s.verdict.probability))


def _read(path: Path) -> StoredVerdict:
    try:
        return msgspec.json.decode(path.read_bytes(), type=StoredVerdict)
    except (msgspec.MsgspecError, OSError) as exc:
        raise ConfigError(f"{path}: not a stored verdict: {exc}") from exc
