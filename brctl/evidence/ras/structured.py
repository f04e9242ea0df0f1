"""Reads the JSON form of a RAS answer (2.28.7 and later), with what some releases break of it."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from brctl.evidence.ras.answer import (
    Communicator,
    Failed,
    InState,
    Launched,
    NotRasError,
    RasAnswer,
    RasMember,
    RasProcess,
)
from brctl.model.foreign_json import ForeignJsonError, is_plain_number, read_foreign_json

COMMUNICATORS_LIMIT, RANKS_LIMIT, OPERATIONS_LIMIT = 20_000, 200_000, 64
NAME_LIMIT = 100
_LACKS_COMMA = re.compile(rb'("nvml_dev": \d{1,4})(\s+"status")')
_HEX = re.compile(r"0x0*([0-9a-f]{1,32})")
_VERSION = re.compile(r"\d{1,2}\.\d{1,3}\.\d{1,3}")
_READY, _IN_PROGRESS = 0, 7
_ERRORS: Mapping[int, str] = {
    1: "Unhandled CUDA error", 2: "System error", 3: "Internal error", 4: "Invalid argument",
    5: "Invalid usage", 6: "Remote process error",
}  # fmt: skip

REPAIRED = "the comma that NCCL 2.28 leaves out behind nvml_dev was put in"


def read_structured_answer(data: bytes) -> RasAnswer:
    """The answer in these bytes.

    Raises:
        NotRasError: No JSON, or not a RAS service's.
    """
    value, notes = _load(data)
    if not isinstance(value, dict) or not isinstance(value.get("communicators"), list):
        raise NotRasError("no `communicators`: not a RAS report")
    rows = [row for row in value["communicators"][:COMMUNICATORS_LIMIT] if isinstance(row, dict)]
    read = [_communicator(row) for row in rows]
    missing = [row for comm in rows for row in _rows(comm, "missing_ranks")]
    silent = _processes(missing, "unresponsive", "considered_dead")
    dead = _processes(missing, "considered_dead", "")
    version = _VERSION.match(_text(value.get("nccl_version")))
    return RasAnswer(
        version=version[0] if version else "",
        form="json",
        communicators=tuple(read),
        total=len(read),
        ranks=max((comm.size or 0 for comm in read), default=0),
        in_setup=sum(any(s.state == "INIT" for s in comm.states) for comm in read),
        silent=silent,
        silent_processes=len(silent),
        dead=dead,
        dead_processes=len(dead),
        timeouts=_number(_mapping(value.get("ras")).get("timeouts_count")) or 0,
        notes=notes,
    )


def _load(data: bytes) -> tuple[object, tuple[str, ...]]:
    try:
        return read_foreign_json(data), ()
    except ForeignJsonError as exc:
        mended, count = _LACKS_COMMA.subn(rb"\1,\2", data)
        if not count:
            raise NotRasError(f"not JSON: {exc}") from exc
    try:
        return read_foreign_json(mended), (REPAIRED,)
    except ForeignJsonError as exc:
        raise NotRasError(f"not JSON: {exc}") from exc


def _communicator(row: Mapping[str, object]) -> Communicator:
    ranks, missing = _rows(row, "ranks"), _rows(row, "missing_ranks")
    size, found = _number(row.get("size")), _HEX.fullmatch(_text(row.get("hash")))
    unheard = [m for m in missing if _mapping(m.get("status")).get("unresponsive") is not False]
    states = _members_by(ranks, _state)
    states["NOCOMM"] = [_member(m) for m in missing if m not in unheard]
    return Communicator(
        name=found[1] if found else _text(row.get("hash")),
        size=size,
        missing=tuple(map(_member, unheard)),
        missing_ranks=len(unheard),
        unknown=max(0, (size or 0) - len(ranks) - len(missing)),
        launched=_launched(ranks),
        states=tuple(InState(s, len(m), tuple(m)) for s, m in states.items() if m),
        failed=tuple(Failed(e, len(m), tuple(m)) for e, m in _members_by(ranks, _error).items()),
    )


def _launched(ranks: Sequence[Mapping[str, object]]) -> tuple[Launched, ...]:
    """Ranks by operation and count; names of operations are taken as they come."""
    found: dict[tuple[str, int], list[RasMember]] = {}
    for rank in ranks:
        counts = list(_mapping(rank.get("collective_counts")).items())[:OPERATIONS_LIMIT]
        for operation, value in counts:
            count = _number(value)
            if count is not None:
                found.setdefault((operation[:NAME_LIMIT], count), []).append(_member(rank))
    return tuple(Launched(o, c, len(m), tuple(m)) for (o, c), m in found.items())


def _members_by(
    ranks: Iterable[Mapping[str, object]], of: Callable[[Mapping[str, object]], str]
) -> dict[str, list[RasMember]]:
    found: dict[str, list[RasMember]] = {}
    for rank in ranks:
        if word := of(_mapping(rank.get("status"))):
            found.setdefault(word, []).append(_member(rank))
    return found


def _state(status: Mapping[str, object]) -> str:
    """As the text form calls it."""
    if status.get("abort_flag") is True:
        return "ABORT"
    if status.get("finalize_called") is True or status.get("destroy_flag") is True:
        return "FINALIZE"
    return "RUNNING" if status.get("init_state") == _READY else "INIT"


def _error(status: Mapping[str, object]) -> str:
    """The first of its errors; "" for none."""
    for key in ("async_error", "init_state"):
        number = _number(status.get(key))
        if number not in (None, _READY, _IN_PROGRESS):
            return _ERRORS.get(number or 0, "Unexpected error")
    return ""


def _member(row: Mapping[str, object]) -> RasMember:
    rank = _number(row.get("rank"))
    return RasMember(-1 if rank is None else rank, _process(row))


def _process(row: Mapping[str, object]) -> RasProcess | None:
    host, pid = _text(row.get("host")), _number(row.get("pid"))
    gpu = _number(row.get("nvml_dev"))
    known = pid is not None and pid > 0
    if not known and host in ("", "unknown"):
        return None
    return RasProcess(
        "" if host == "unknown" else host, pid if known else None, () if gpu is None else (gpu,)
    )


def _processes(
    rows: Iterable[Mapping[str, object]], flag: str, unless: str
) -> tuple[RasProcess, ...]:
    """Processes of missing ranks with a flag set, once each: a rank is in many communicators."""
    found = (
        _process(row)
        for row in rows
        if (status := _mapping(row.get("status"))).get(flag) is True
        and status.get(unless) is not True
    )
    return tuple(dict.fromkeys(process for process in found if process is not None))


def _rows(row: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
    value = row.get(key)
    return (
        [r for r in value[:RANKS_LIMIT] if isinstance(r, dict)] if isinstance(value, list) else []
    )


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and is_plain_number(value) else None


def _text(value: object) -> str:
    return value[:NAME_LIMIT] if isinstance(value, str) else ""
