"""Reads the text form of a RAS answer, of every release since 2.24.

The sentences are those of NCCL's writer (`src/ras/client_support.cc`, 2.24 to 2.32): 2.24 names
missing ranks by number alone and counts all operations together, later ones name the process and
count by kind. A line no row knows says nothing here.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice

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

LINES_LIMIT, LINE_LIMIT = 100_000, 2000
LISTED_LIMIT = 20_000
_NUMBER = r"\d{1,15}"
_GPUS = re.compile(r"\d{1,4}")


@dataclass
class _Open:
    """A communicator while its lines are read."""

    name: str
    size: int | None
    missing: list[RasMember] = field(default_factory=list)
    missing_ranks: int = 0
    launched: list[tuple[str, int, int, list[RasMember]]] = field(default_factory=list)
    states: list[tuple[str, int, list[RasMember]]] = field(default_factory=list)
    failed: list[tuple[str, int, list[RasMember]]] = field(default_factory=list)


@dataclass
class _Reading:
    """Everything read so far, and what the next line belongs to."""

    version: str = ""
    groups: list[tuple[int, int, str]] = field(default_factory=list)
    open: dict[str, _Open] = field(default_factory=dict)
    here: _Open | None = None
    listed: list[RasMember] | None = None
    processes: list[RasProcess] | None = None
    silent: list[RasProcess] = field(default_factory=list)
    dead: list[RasProcess] = field(default_factory=list)
    silent_processes: int = 0
    dead_processes: int = 0
    operation: str = ""
    timeouts: int = 0
    heads: set[str] = field(default_factory=set)


def read_text_answer(data: bytes) -> RasAnswer:
    """The answer in these bytes.

    Raises:
        NotRasError: Nothing in it is a RAS service's.
    """
    reading = _Reading()
    lines = data.decode("utf-8", "replace").splitlines()
    for line in islice(lines, LINES_LIMIT):
        _read_line(reading, line[:LINE_LIMIT].strip())
    if not reading.heads:
        raise NotRasError("none of the heads of a RAS report")
    return RasAnswer(
        version=reading.version,
        form="text",
        communicators=tuple(_closed(one) for one in reading.open.values()),
        total=sum(comms for comms, _, _ in reading.groups),
        ranks=max((ranks for _, ranks, _ in reading.groups), default=0),
        in_setup=sum(comms for comms, _, state in reading.groups if state == "INIT"),
        silent=tuple(reading.silent),
        silent_processes=max(reading.silent_processes, len(reading.silent)),
        dead=tuple(reading.dead),
        dead_processes=max(reading.dead_processes, len(reading.dead)),
        timeouts=reading.timeouts,
        is_whole="Warnings" in reading.heads and len(lines) <= LINES_LIMIT,
    )


def _closed(one: _Open) -> Communicator:
    return Communicator(
        name=one.name,
        size=one.size,
        missing=tuple(one.missing),
        missing_ranks=max(one.missing_ranks, len(one.missing)),
        launched=tuple(Launched(o, c, n, tuple(m)) for o, c, n, m in one.launched),
        states=tuple(InState(s, n, tuple(m)) for s, n, m in one.states),
        failed=tuple(Failed(e, n, tuple(m)) for e, n, m in one.failed),
    )


def _read_line(reading: _Reading, line: str) -> None:
    for pattern, read in _LINES:
        found = pattern.fullmatch(line)
        if found:
            read(reading, found)
            return


def _head(reading: _Reading, found: re.Match[str]) -> None:
    reading.heads.add(found[1])
    reading.here = reading.processes = None


def _version(reading: _Reading, found: re.Match[str]) -> None:
    reading.version = reading.version or found[1]
    reading.heads.add("version")


def _group(reading: _Reading, found: re.Match[str]) -> None:
    if int(found[1]) == len(reading.groups):
        reading.groups.append((int(found[2]), int(found[3]), found[4]))


def _communicator(reading: _Reading, found: re.Match[str]) -> None:
    group, name = int(found[1]), found[2].lstrip("0") or "0"
    size = reading.groups[group][1] if group < len(reading.groups) else None
    reading.here = reading.open.setdefault(name, _Open(name, size))
    reading.listed, reading.processes, reading.operation = None, None, ""


def _job_incomplete(reading: _Reading, found: re.Match[str]) -> None:
    reading.here, reading.processes = None, reading.silent
    reading.silent_processes = int(found[1])


def _job_dead(reading: _Reading, found: re.Match[str]) -> None:
    reading.here, reading.processes = None, reading.dead
    reading.dead_processes = int(found[1])


def _process(reading: _Reading, found: re.Match[str]) -> None:
    if reading.processes is not None and len(reading.processes) < LISTED_LIMIT:
        gpus = tuple(map(int, _GPUS.findall(found[4] or found[3])))
        reading.processes.append(_named(found[2], found[1], gpus))


def _missing_count(reading: _Reading, found: re.Match[str]) -> None:
    if reading.here:
        reading.here.missing_ranks = int(found[1])
        reading.listed = reading.here.missing


def _missing_numbers(reading: _Reading, found: re.Match[str]) -> None:
    """2.24: numbers without their processes."""
    if reading.here:
        numbers = (int(text) for text in found[1].split(",") if text.strip().isdigit())
        reading.here.missing += [RasMember(n, None) for n in islice(numbers, LISTED_LIMIT)]


def _operation(reading: _Reading, found: re.Match[str]) -> None:
    reading.operation = "" if found[1] == "collective" else found[1]


def _launched(reading: _Reading, found: re.Match[str]) -> None:
    reading.listed = []
    if reading.here:
        count = int(found["count"] or 0)
        reading.here.launched.append((reading.operation, count, _ranks(found), reading.listed))


def _in_state(reading: _Reading, found: re.Match[str]) -> None:
    reading.listed = []
    if reading.here:
        # NOCOMM was called UNKNOWN before 2.26.
        state = "NOCOMM" if found["state"] == "UNKNOWN" else found["state"]
        reading.here.states.append((state, _ranks(found), reading.listed))


def _with_error(reading: _Reading, found: re.Match[str]) -> None:
    reading.listed = []
    if reading.here:
        reading.here.failed.append((found["error"], _ranks(found), reading.listed))


def _ranks(found: re.Match[str]) -> int:
    return int(found["ranks"] or 1)


def _member(reading: _Reading, found: re.Match[str]) -> None:
    """A rank by name; with its own count, state or error where it is the only one that has it."""
    for pattern, read in _SHARED:
        alone = pattern.fullmatch(found["what"] or "")
        if alone:
            read(reading, alone)
    if reading.listed is not None and len(reading.listed) < LISTED_LIMIT:
        gpu = found["nvml"] or found["gpu"]
        gpus = (int(gpu),) if gpu else ()
        process = _named(found["host"], found["pid"], gpus) if found["host"] else None
        reading.listed.append(RasMember(int(found["rank"]), process))


def _named(host: str, pid: str, gpus: tuple[int, ...]) -> RasProcess:
    number = int(pid)
    return RasProcess(host, number if number > 0 else None, gpus)


def _timeouts(reading: _Reading, found: re.Match[str]) -> None:
    reading.timeouts = int(found[1])


_Row = tuple[re.Pattern[str], Callable[[_Reading, re.Match[str]], None]]
_WHO = rf"(?:(?P<ranks>{_NUMBER}) ranks have|has)"
_SHARED: tuple[_Row, ...] = (
    (re.compile(rf"{_WHO} launched up to operation (?P<count>{_NUMBER})"), _launched),
    (re.compile(rf"{_WHO} not launched any operations(?P<count>)"), _launched),
    (re.compile(rf"{_WHO} status (?P<state>[A-Z]{{2,12}})"), _in_state),
    (re.compile(rf"(?:(?P<ranks>{_NUMBER}) ranks )?reported (?P<error>.{{1,80}})"), _with_error),
)
"""Of several ranks as a line, of one behind its number."""

_GPU = r"GPU (?P<gpu>\d{1,4})(?: \(NVML (?P<nvml>\d{1,4})\))?"
_BY = rf"managed by process (?P<pid>-?{_NUMBER}) on node (?P<host>\S{{1,100}})"
_LINES: tuple[_Row, ...] = (
    *_SHARED,
    (
        re.compile(
            rf"Rank (?P<rank>\d{{1,7}})(?: (?P<what>(?:has|reported) .{{1,80}}?))? -- "
            rf"(?:{_GPU} {_BY}|\[process information not found\])"
        ),
        _member,
    ),
    (re.compile(r"#(\d{1,5})-\d{1,9} \(([0-9a-f]{1,32})\) [A-Z]{1,20}"), _communicator),
    (re.compile(r"Communicator ranks have different (\w{1,40}) operation counts"), _operation),
    (re.compile(rf"Missing communicator data from ({_NUMBER}) ranks?"), _missing_count),
    (re.compile(r"The missing ranks?: ([\d, ]+)"), _missing_numbers),
    (
        re.compile(
            rf"Process (-?{_NUMBER}) on node (\S{{1,100}}) managing GPUs? "
            r"([\d,]{1,400})(?: \(NVML ([\d,]{1,400})\))?"
        ),
        _process,
    ),
    (
        re.compile(rf"Missing communicator data from ({_NUMBER}) job process(?:es)?"),
        _job_incomplete,
    ),
    (re.compile(rf"({_NUMBER}) job process(?: is|es are) considered dead .*"), _job_dead),
    (
        re.compile(
            r"(\d{1,5}) +(\d{1,9}) +\d{1,9} +[\d-]{1,20} +(\d{1,9}) +\d{1,9}"
            r" +([A-Z]{2,12}) +[A-Z,]{2,40}"
        ),
        _group,
    ),
    (re.compile(rf"Encountered ({_NUMBER}) communication timeouts? .*"), _timeouts),
    (re.compile(r"NCCL version (\d{1,2}\.\d{1,3}\.\d{1,3})\S* compiled .*"), _version),
    (re.compile(r"(Job summary|Errors|Warnings|No communicator data collected!)"), _head),
    (re.compile(r"(Communicators\.\.\.).*"), _head),
)
