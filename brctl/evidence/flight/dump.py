"""One rank's dump as typed values; anything unexpected is left out, never guessed."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from brctl.evidence.flight.plain_pickle import Plain, UnsafePickleError, load_plain_pickle
from brctl.model.foreign_json import ForeignJsonError, read_foreign_json

ENTRY_LIMIT = 20_000
GROUP_LIMIT = 10_000
MEMBER_LIMIT = 200_000
NAME_LIMIT = 200
SHAPE_ITEMS, SHAPE_LIMIT = 32, 400

_DIGITS = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Operation:
    """One collective or point-to-point operation that a rank entered.

    Attributes:
        order: Number of the record: the order in which the rank entered operations.
        group: Name of the process group.
        peer: Global rank at the other end of a point-to-point operation; None for a collective.
        shape: Input sizes and types: what must agree between the members.
        created_s: Unix seconds; 0.0 when the dump does not say.
    """

    order: int
    group: str
    sequence: int
    name: str
    peer: int | None
    shape: str
    pending: bool
    created_s: float


@dataclass(frozen=True, slots=True)
class Dump:
    """What one rank's recorder holds.

    Attributes:
        members: Global ranks of each group the rank knows, by group name.
        descriptions: What each group is for, by group name.
        enqueued: Last collective entered, by group name.
        completed: Last collective completed, by group name.
    """

    rank: int
    operations: tuple[Operation, ...]
    members: Mapping[str, tuple[int, ...]]
    descriptions: Mapping[str, str]
    enqueued: Mapping[str, int]
    completed: Mapping[str, int]

    @property
    def newest_s(self) -> float:
        return max((op.created_s for op in self.operations), default=0.0)


def rank_of_name(name: str) -> int | None:
    """The rank a dump's file name ends in: `nccl_trace_rank_12`, `_dump_12`, `fr_2.json`."""
    match = re.search(r"(\d{1,6})(?:\.(?:json|pkl|pickle|bin))?$", name)
    return int(match[1]) if match else None


def parse_dump(rank: int, data: bytes) -> Dump:
    """The dump in these bytes, JSON or pickle.

    Raises:
        UnsafePickleError: Neither plain JSON nor a pickle of plain data, or not a recorder's dump.
    """
    if data.lstrip()[:1] == b"{":
        try:
            return read_dump(rank, read_foreign_json(data))
        except ForeignJsonError as exc:
            raise UnsafePickleError(f"not JSON: {exc}") from exc
    return read_dump(rank, load_plain_pickle(data))


def read_dump(rank: int, value: Plain) -> Dump:
    """The dump a plain value describes."""
    top = _mapping(value)
    if "entries" not in top and "pg_status" not in top:
        raise UnsafePickleError("no `entries` and no `pg_status`: not a flight recorder's dump")
    groups = list(_mapping(top.get("pg_config")).items())[:GROUP_LIMIT]
    config = {_name(k): _mapping(v) for k, v in groups}
    members = {name: _ranks(row.get("ranks")) for name, row in config.items()}
    entries = top.get("entries")
    rows = [_mapping(e) for e in entries[:ENTRY_LIMIT]] if isinstance(entries, list) else []
    operations = tuple(_operation(i, row, members) for i, row in enumerate(rows))
    names = _group_names(rows, config, _mapping(top.get("pg_status")))
    status = {
        names[k]: _mapping(v) for k, v in _mapping(top.get("pg_status")).items() if k in names
    }
    return Dump(
        rank,
        operations,
        members,
        {name: _name(row.get("desc", "")) for name, row in config.items()},
        _last(status, "last_enqueued_collective", operations, pending_too=True),
        _last(status, "last_completed_collective", operations, pending_too=False),
    )


def _group_names(
    rows: list[Mapping[str, Plain]],
    config: Mapping[str, Mapping[str, Plain]],
    status: Mapping[str, Plain],
) -> dict[str, str]:
    """Group names by the process-local number that `pg_status` uses.

    Entries tell both. A rank without entries is exactly the one that never joined, so without them
    the two lists are matched in order of creation, which both numbers follow.
    """
    named = {_name(row.get("pg_id")): _group(row) for row in rows}
    numeric = [n for n in config if _DIGITS.fullmatch(n)]
    if len(numeric) != len(config) or len(config) != len(status):
        return named
    by_order = dict(zip(sorted(status, key=_number), sorted(numeric, key=int), strict=True))
    agrees = all(by_order.get(key) == name for key, name in named.items())
    return {**by_order, **named} if agrees else named


def _last(
    status: Mapping[str, Mapping[str, Plain]],
    key: str,
    operations: tuple[Operation, ...],
    *,
    pending_too: bool,
) -> dict[str, int]:
    last = {name: n for name, row in status.items() if type(n := row.get(key)) is int}
    for op in operations:
        if op.peer is None and (pending_too or not op.pending):
            last[op.group] = max(last.get(op.group, -1), op.sequence)
    return last


def _operation(
    index: int, row: Mapping[str, Plain], members: Mapping[str, tuple[int, ...]]
) -> Operation:
    name = _name(row.get("profiling_name", ""))
    group = _group(row)
    peer = _peer(name, members.get(group, ())) if row.get("is_p2p") is True else None
    created = row.get("time_created_ns")
    return Operation(
        order=_int(row.get("record_id"), index),
        group=group,
        sequence=_int(row.get("p2p_seq_id" if row.get("is_p2p") else "collective_seq_id"), -1),
        name=name,
        peer=peer if row.get("is_p2p") is True else None,
        shape=f"{_brief(row.get('input_sizes'))}{_brief(row.get('input_dtypes'))}"[:SHAPE_LIMIT],
        pending=row.get("state") != "completed" and row.get("retired") is not True,
        created_s=created / 1e9
        if isinstance(created, int) and not isinstance(created, bool)
        else 0.0,
    )


def _peer(name: str, members: tuple[int, ...]) -> int:
    """The global rank at the other end of `nccl:send 0->3` or `nccl:recv 0<-1`; -1 if unknown."""
    match = re.search(r"(?:->|<-)(\d{1,6})$", name)
    if match is None:
        return -1
    index = int(match[1])
    return members[index] if index < len(members) else index


def _group(row: Mapping[str, Plain]) -> str:
    group = row.get("process_group")
    named = isinstance(group, (list, tuple)) and group
    return _name(group[0] if named else row.get("pg_id"))  # type: ignore[index]  # a list then


def _ranks(value: Plain) -> tuple[int, ...]:
    if isinstance(value, str):
        numbers = islice(re.finditer(r"[0-9]{1,7}", value), MEMBER_LIMIT)
        return tuple(int(number[0]) for number in numbers)
    if isinstance(value, (list, tuple)):
        return tuple(item for item in value[:MEMBER_LIMIT] if type(item) is int)
    return ()


def _mapping(value: Plain) -> Mapping[str, Plain]:
    return value if isinstance(value, dict) else {}


def _int(value: Plain, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _number(text: str) -> int:
    return int(text) if _DIGITS.fullmatch(str(text)) else -1


def _name(value: Plain) -> str:
    """A scalar as a name; a container in its place says nothing."""
    return str(value)[:NAME_LIMIT] if not isinstance(value, (dict, list, tuple)) else ""


def _brief(value: Plain, depth: int = 3) -> str:
    """Sizes and types as text, without writing out what nobody compares."""
    if isinstance(value, (list, tuple)) and depth:
        inner = ", ".join(_brief(item, depth - 1) for item in value[:SHAPE_ITEMS])
        return f"[{inner}]"
    return _name(value)
