"""What a watcher keeps on disk: its state, its record, and the file that stops it."""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import msgspec

from brctl.library.durable_files import append_line, private_dir, set_aside, write_atomic
from brctl.model.errors import UsageError
from brctl.model.units import rfc3339
from brctl.model.watch.policy import WatchLimits
from brctl.model.watch.snapshot import WatchSnapshot
from brctl.model.watch.state import WatchRecord, WatchState

RECORD, STATE, STATUS, STOP = "watch.ndjson", "state.json", "status.json", "stop.json"
CLOSE = "close-breaker.json"
ROTATE_BYTES = 64 << 20
"""Half a year of a quiet fleet; one older file is kept beside it."""

LINE_BYTES, LINE_LIMIT_BYTES = 1 << 10, 64 << 10
"""What a line takes by and large, and the most that is read of one."""

Kept = TypeVar("Kept")


class WatchFolder:
    """The files of one context's watcher.

    Reading makes nothing; the first write makes the folder.
    """

    def __init__(self, state_dir: Path, context: str) -> None:
        self.path = state_dir / "watch" / context

    def load_state(self) -> WatchState | None:
        """The state of the watcher before; None without one. A damaged file is set aside."""
        path = self.path / STATE
        if not path.exists():
            return None
        try:
            return msgspec.json.decode(path.read_bytes(), type=WatchState)
        except msgspec.MsgspecError:
            set_aside(path)
            return None

    def save_state(self, state: WatchState) -> None:
        write_atomic(private_dir(self.path) / STATE, msgspec.json.encode(state))

    def append(self, record: WatchRecord) -> None:
        """Add a line to the record; a record that has become long is put beside first."""
        path = private_dir(self.path) / RECORD
        if path.exists() and path.stat().st_size > ROTATE_BYTES:
            path.replace(path.with_name(f"{RECORD}.1"))
        row = {"seq": record.seq, "at": rfc3339(record.at), "kind": record.kind, **record.fields}
        append_line(path, json.dumps(row))

    def records(self, newest: int) -> tuple[WatchRecord, ...]:
        """The newest lines, oldest first."""
        path = self.path / RECORD
        if not path.exists():
            return ()
        with path.open("rb") as stream:
            back = newest * LINE_BYTES + LINE_LIMIT_BYTES
            stream.seek(max(0, path.stat().st_size - back))
            return tuple(_decoded(stream))[-newest:]

    def snapshot(self, newest: int) -> WatchSnapshot:
        """All of it as it is now, for who only looks: nothing is set aside or made."""
        try:
            status = _read(self.path / STATUS, dict[str, object]) or {}
            return WatchSnapshot(
                status, _limits(status), _read(self.path / STATE, WatchState),
                self.records(newest), self.stopped(),
            )  # fmt: skip
        except (OSError, msgspec.MsgspecError) as error:
            return WatchSnapshot(problem=f"{self.path}: {error}")

    def tell_status(self, status: Mapping[str, object]) -> None:
        """What `watch status` shows; it is no state, and lost with no harm."""
        write_atomic(private_dir(self.path) / STATUS, json.dumps(status, allow_nan=False))

    def status(self) -> Mapping[str, object]:
        return _object(self.path / STATUS)

    def close_breaker(self, why: str, at: datetime) -> None:
        """Ask the watcher to close its breaker; only it writes its state."""
        text = json.dumps({"why": why, "at": rfc3339(at)})
        write_atomic(private_dir(self.path) / CLOSE, text)

    def breaker_closed(self) -> str:
        """Why somebody asked to close the breaker, once; "" where nobody did."""
        path = self.path / CLOSE
        if not path.exists():
            return ""
        why = str(_object(path).get("why") or "no reason given")
        path.unlink()
        return why

    def stop(self, by: str, why: str, at: datetime) -> None:
        """Switch every watcher of this context off, until somebody lifts it."""
        text = json.dumps({"by": by, "why": why, "at": rfc3339(at)})
        write_atomic(private_dir(self.path) / STOP, text)

    def lift(self) -> bool:
        """Take the switch back; False where it was not thrown."""
        try:
            (self.path / STOP).unlink()
        except FileNotFoundError:
            return False
        return True

    def stopped(self) -> str:
        """Who switched watchers off and why; "" where nobody did. The file alone is enough."""
        path = self.path / STOP
        if not path.exists():
            return ""
        said = _object(path)
        return f"stopped by {said.get('by', 'somebody')}: {said.get('why') or 'no reason given'}"


def read_record_file(path: Path) -> Iterator[WatchRecord]:
    """Every line of a recorded file that is one.

    Raises:
        UsageError: The file cannot be read, or holds no such line.
    """
    try:
        with path.open("rb") as stream:
            found = False
            for record in _decoded(stream):
                found = True
                yield record
    except OSError as exc:
        raise UsageError(f"{path}: cannot be read: {exc.strerror}") from exc
    if not found:
        raise UsageError(f"{path}: no line of it is a watcher's", hint="a watch.ndjson is wanted")


class _RecordHead(msgspec.Struct):
    seq: int
    at: datetime
    kind: str


def _decoded(lines: Iterable[bytes]) -> Iterator[WatchRecord]:
    """The lines that are records: a disk that was full, or a seek, leaves parts of some."""
    for line in lines:
        if len(line) > LINE_LIMIT_BYTES:
            continue
        try:
            head = msgspec.json.decode(line, type=_RecordHead)
            row = msgspec.json.decode(line, type=dict[str, object])
        except (msgspec.MsgspecError, RecursionError):
            continue
        if head.at.tzinfo is None:
            # A moment without a zone is none, and cannot be put beside the others.
            continue
        fields = {key: value for key, value in row.items() if key not in ("seq", "at", "kind")}
        yield WatchRecord(head.seq, head.at, head.kind, fields)


def _read(path: Path, kind: type[Kept]) -> Kept | None:
    """What a file holds; None where there is none."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None


def _limits(status: Mapping[str, object]) -> WatchLimits | None:
    """Those that the watcher tells; an older one tells none."""
    try:
        return msgspec.convert(status.get("limits"), WatchLimits)
    except msgspec.ValidationError:
        return None


def _object(path: Path) -> Mapping[str, object]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, object])
    except (OSError, msgspec.MsgspecError):
        return {}
