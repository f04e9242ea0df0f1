"""The append-only record of one run: a line per event, numbered, chained, on disk before we act.

    runs/R-0001/ playbook.yaml inputs.json plan.json events.ndjson result.json stdout/ evidence/

`events.ndjson` is the truth. Each line carries `prev`, the digest of the line before it, so a lost
or altered line shows, and `mac`, which only the operator's key can make, so that the rest cannot be
written anew to fit. Journals of before there was a key have no `mac`. A controller that died while
writing leaves a torn last line; it is reported, moved to `events.torn` when the run goes on, and
never guessed at.
"""

import fcntl
import hashlib
import hmac
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from errno import ENOSPC
from pathlib import Path

from brctl.journal.chain_key import ChainKey, own_or_new_key
from brctl.journal.heads import JournalLength, note_head
from brctl.journal.shared_locks import NO_LOCKS, no_locks, refuse_local_locks
from brctl.library.durable_files import private_dir, sync_folder
from brctl.model.errors import LockedError, UnavailableError, UsageError
from brctl.model.runs.event import Event, EventType
from brctl.model.runs.playbook import Json
from brctl.model.units import parse_rfc3339, rfc3339

EVENTS = "events.ndjson"
TORN = "events.torn"
PRIVATE_DIR, PRIVATE_FILE = 0o700, 0o600
OWNER_TRIES, OWNER_PAUSE_S = 10, 0.01
_RUN = re.compile(r"R-(\d{4,})")
_OWN_KEYS = ("type", "seq", "run", "ts", "prev", "mac")
_MAC = re.compile(rb',"mac":"([0-9a-f]{16}):([0-9a-f]{64})"\}\Z')
_STRIPPED = "carries no key, though lines before it do"
MAC_LENGTH = len(',"mac":""}') + 16 + 1 + 64


@dataclass(frozen=True, slots=True)
class Recording:
    """What a journal holds.

    Attributes:
        torn: Bytes of a last line that was never finished.
        damage: Sentences about gaps, altered or unreadable lines; empty for a sound journal.
        tail: Digest the next line must carry.
        keyless: How many lines carry no mac.
        stripped: Sentences about lines without a mac behind lines with one: no key could be read
            when they were written, or somebody else wrote them.
        strange_keys: Ids of keys that lines were written with and that are not the one at hand.
        first: Digest of the first line.
    """

    events: tuple[Event, ...]
    torn: bytes
    damage: tuple[str, ...]
    tail: str
    keyless: int = 0
    stripped: tuple[str, ...] = ()
    strange_keys: tuple[str, ...] = ()
    first: str = ""

    @property
    def ended(self) -> bool:
        """Whether the last thing recorded is the end of the run."""
        return bool(self.events) and self.events[-1].type is EventType.END


def new_run(state_dir: Path) -> Path:
    """A fresh folder `runs/R-nnnn`; two controllers at once get two numbers.

    Raises:
        UnavailableError: Locks on the state directory's file system cannot be trusted.
    """
    refuse_local_locks(state_dir)
    runs = private_dir(private_dir(state_dir) / "runs")
    number = max((int(m[1]) for p in runs.iterdir() if (m := _RUN.fullmatch(p.name))), default=0)
    while True:
        number += 1
        try:
            (runs / f"R-{number:04d}").mkdir(mode=PRIVATE_DIR)
        except FileExistsError:
            continue
        return runs / f"R-{number:04d}"


def find_run(state_dir: Path, name: str) -> Path:
    """The folder of a run, `R-0012` or `latest`.

    Raises:
        UsageError: There is no such run.
    """
    runs = run_dirs(state_dir)
    if name == "latest" and runs:
        return runs[-1]
    path = state_dir / "runs" / name
    if not _RUN.fullmatch(name) or not path.is_dir():
        last = f"; the newest is {runs[-1].name}" if runs else "; there are none"
        raise UsageError(f"no run {name!r}{last}")
    return path


def run_dirs(state_dir: Path) -> list[Path]:
    """All runs, oldest first."""
    runs = state_dir / "runs"
    found = [p for p in runs.iterdir() if _RUN.fullmatch(p.name)] if runs.is_dir() else []
    return sorted(found, key=lambda p: int(p.name[2:]))


def encode(event: Event, prev: str, key: ChainKey | None = None) -> bytes:
    """The line of an event, without its newline.

    Raises:
        ValueError: A field has the name of one of the journal's own keys.
    """
    clash = set(_OWN_KEYS) & set(event.fields)
    if clash:
        raise ValueError(f"{event.type}: {sorted(clash)[0]!r} is a key of every line")
    line = {
        "type": str(event.type),
        "seq": event.seq,
        "run": event.run,
        "ts": rfc3339(event.at),
        **event.fields,
        "prev": prev,
    }
    raw = json.dumps(line, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    return raw if key is None else raw[:-1] + f',"mac":"{key.id}:{key.mac(raw)}"}}'.encode()


def decode(line: bytes) -> tuple[Event, str]:
    """The event of a line and the digest it chains to.

    Raises:
        ValueError: The line is not an event.
    """
    data = json.loads(line)
    try:
        fields = {key: value for key, value in data.items() if key not in _OWN_KEYS}
        kind, at = EventType(data["type"]), parse_rfc3339(data["ts"])
        return Event(int(data["seq"]), kind, str(data["run"]), at, fields), str(data["prev"])
    except (KeyError, TypeError, AttributeError) as exc:
        raise ValueError(f"not an event: {exc}") from exc


def digest(line: bytes) -> str:
    """What the following line must carry as `prev`."""
    return hashlib.sha256(line).hexdigest()


def read_journal(run_dir: Path, key: ChainKey | None = None) -> Recording:
    """Everything a run recorded, with what is wrong about the file.

    Args:
        run_dir: Its folder.
        key: The operator's, to tell lines that were not written with it.
    """
    path = run_dir / EVENTS
    raw = path.read_bytes() if path.exists() else b""
    *lines, torn = raw.split(b"\n")
    events: list[Event] = []
    damage: list[str] = []
    chain = _Chain(run_dir.name, key)
    for number, line in enumerate(lines, start=1):
        try:
            event, prev = decode(line)
        except ValueError as exc:
            damage.append(f"{path}:{number}: {exc}")
        else:
            problems = chain.problems(number, event, prev, line)
            damage += [f"{path}:{number}: {problem}" for problem in problems]
            events.append(event)
        chain.tail = digest(line)
    if torn:
        damage.append(f"{path}: the last line was never finished ({len(torn)} bytes)")
    strange = tuple(sorted(chain.strange))
    stripped = tuple(f"{path}:{number}: {_STRIPPED}" for number in chain.stripped)
    return Recording(
        tuple(events), torn, tuple(damage), chain.tail, chain.keyless, stripped, strange,
        digest(lines[0]) if lines else "",
    )  # fmt: skip


class _Chain:
    """Whether each line follows the one before it, and was written by whoever has the key."""

    def __init__(self, run: str, key: ChainKey | None) -> None:
        self.tail = ""
        self.keyless = 0
        self.stripped: list[int] = []
        self.strange: set[str] = set()
        self._run = run
        self._key = key
        self._read = 0
        self._keyed = False

    def problems(self, number: int, event: Event, prev: str, line: bytes) -> Iterator[str]:
        """What is wrong with the next line."""
        if prev != self.tail:
            yield "does not follow the line before it"
        if event.seq != self._read:
            yield f"number {event.seq} instead of {self._read}"
        self._read += 1
        yield from self._problems_of_key(number, event, line)

    def _problems_of_key(self, number: int, event: Event, line: bytes) -> Iterator[str]:
        found = _MAC.search(line, max(0, len(line) - MAC_LENGTH))
        if found is None:
            self.keyless += 1
            if self._keyed:
                self.stripped.append(number)
            return
        self._keyed = True
        key_id, mac = found[1].decode(), found[2].decode()
        if self._key is None or key_id != self._key.id:
            self.strange.add(key_id)
        elif not hmac.compare_digest(mac, self._key.mac(line[: found.start()] + b"}")):
            yield "was altered: it does not fit its key"
        elif event.run != self._run:
            yield f"belongs to {event.run}"


class Journal:
    """Appends to one run's journal; only the process that owns the run has one."""

    def __init__(self, run_dir: Path, key: ChainKey | None = None) -> None:
        recording = read_journal(run_dir)
        self._key = key
        self.run = run_dir.name
        self._path = run_dir / EVENTS
        self._first = recording.first
        if recording.torn:
            self._set_aside(run_dir, recording.torn)
        self._next = len(recording.events)
        self._tail = recording.tail
        self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE_FILE)
        sync_folder(run_dir)

    def _set_aside(self, run_dir: Path, torn: bytes) -> None:
        with (run_dir / TORN).open("ab") as stream:
            stream.write(torn + b"\n")
        os.truncate(self._path, self._path.stat().st_size - len(torn))

    @property
    def next_seq(self) -> int:
        """The number that the next line gets."""
        return self._next

    def append(self, kind: EventType, at: datetime, fields: Mapping[str, Json]) -> Event:
        """Write one event; it is on disk when this returns.

        Raises:
            UnavailableError: It could not be written; the journal is as before.
        """
        event = Event(self._next, kind, self.run, at, fields)
        line = encode(event, self._tail, self._key)
        self._append_whole(line + b"\n")
        self._next += 1
        self._tail = digest(line)
        self._first = self._first or self._tail
        return event

    def _append_whole(self, raw: bytes) -> None:
        """All of it or nothing: what comes after half a line could not be read."""
        size = os.fstat(self._descriptor).st_size
        try:
            written = os.write(self._descriptor, raw)
            os.fsync(self._descriptor)
            problem = "" if written == len(raw) else os.strerror(ENOSPC)
        except OSError as exc:
            problem = exc.strerror or str(exc)
        if problem:
            with suppress(OSError):
                os.ftruncate(self._descriptor, size)
            raise UnavailableError(
                f"{self._path}: cannot be written: {problem}; without it nothing is done",
                hint=f"make room, then: brctl play resume {self.run}",
            )

    def close(self) -> None:
        """Let go of it; how far it came stands outside the state, where it has a key."""
        if self._key is not None and self._first:
            note_head(self._path.parent, JournalLength(self._first, self._next))
        os.close(self._descriptor)


def keyed_journal(run_dir: Path) -> Journal:
    """The journal of a run, written with the operator's key."""
    return Journal(run_dir, own_or_new_key())


def locked(descriptor: int, tries: int, pause_s: float) -> bool:
    """Take the kernel's lock on an open file; False when somebody else keeps it all the time.

    Raises:
        UnavailableError: The file system has no locks.
    """
    for left in reversed(range(tries)):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if left:
                time.sleep(pause_s)
        except OSError as exc:
            if exc.errno in NO_LOCKS:
                raise no_locks(os.readlink(f"/proc/self/fd/{descriptor}"), exc) from exc
            raise
        else:
            return True
    return False


_OWNER, _STARTER = "owner.lock", "starter.lock"


@contextmanager
def starting(run_dir: Path) -> Iterator[int]:
    """Hold a run for a process that inherits the descriptor and is about to own it.

    Until that process has loaded its code, which takes long on a busy machine, nothing else tells
    that it lives; the kernel lets go when it dies before.

    Raises:
        LockedError: Another process is starting it.
    """
    with _held(run_dir, _STARTER, "started") as descriptor:
        yield descriptor


@contextmanager
def owning(run_dir: Path) -> Iterator[None]:
    """Hold a run for this process; the kernel lets go when the process dies, however it dies.

    Raises:
        LockedError: Another process is running it.
    """
    with _held(run_dir, _OWNER, "run"):
        yield


@contextmanager
def _held(run_dir: Path, lock: str, being: str) -> Iterator[int]:
    descriptor = os.open(run_dir / lock, os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
    try:
        # Whoever asks whether a run is alive holds the lock for a moment; an owner keeps it.
        if not locked(descriptor, OWNER_TRIES, OWNER_PAUSE_S):
            raise LockedError(
                f"{run_dir.name} is being {being} by another process",
                hint=f"follow it: `brctl play show {run_dir.name}`",
            )
        yield descriptor
    finally:
        os.close(descriptor)


def is_running(run_dir: Path) -> bool:
    """Whether a process owns this run now, or has been started to."""
    return any(_is_held(run_dir / name) for name in (_OWNER, _STARTER))


def _is_held(lock: Path) -> bool:
    try:
        descriptor = os.open(lock, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
