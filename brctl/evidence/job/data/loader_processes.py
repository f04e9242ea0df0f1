"""What `job.loader` saw: the processes that make batches, and who else can read their files."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from brctl.evidence.job.data.waits import WORKER_LOOPS
from brctl.evidence.operators import is_number
from brctl.evidence.stacks.snapshot import read_frames, read_place
from brctl.model.evidence_kinds import LOADER_CHECK
from brctl.model.foreign_json import ForeignJsonError, read_foreign_json
from brctl.model.sweeps.report import NodeReport, Value

_SUBJECT = re.compile(r"rank:(\d{1,7})(?:/(\d{1,10}))?")
_PATH = "path:"


@dataclass(frozen=True, slots=True)
class LoaderProcess:
    """A worker of a rank's data loader, or the rank itself, looked at twice.

    Attributes:
        pid: Of a worker; None for the rank's own process.
        stack: Innermost frame first, `file:function`; empty when it was not read.
        place: The innermost frame of the job's own code, `read_shard (data.py:91)`; "" if none.
        moved: It was somewhere else in the first look; None when one look failed.
        apart_s: Time between the looks.
        sample: Indices of the samples it fetches, as PyTorch's fetcher was given them.
        file: What it reads, as far as its variables or open files tell.
        mount: `SOURCE on DIRECTORY` of that file.
        children: Processes below a rank that may be workers, looked at or not; None if not known.
        pins_memory: A thread of it stands between the workers and the rank; None if not known.
    """

    rank: int
    node: str
    pid: int | None = None
    state: str = ""
    kernel_wait: str = ""
    stack: tuple[str, ...] = ()
    place: str = ""
    moved: bool | None = None
    apart_s: float | None = None
    sample: str = ""
    file: str = ""
    mount: str = ""
    children: int | None = None
    pins_memory: bool | None = None

    @property
    def called(self) -> str:
        """The process as people read it."""
        return f"rank {self.rank}" if self.pid is None else f"worker {self.pid} of rank {self.rank}"


@dataclass(frozen=True, slots=True)
class PathAnswer:
    """Whether a node reads a file that workers of other nodes wait for.

    Attributes:
        seconds: How long that took; None where it did not answer.
    """

    node: str
    path: str
    answers: bool
    seconds: float | None = None


def read_loaders(reports: Iterable[NodeReport]) -> tuple[LoaderProcess, ...]:
    """Every process that was looked at, by rank, the rank's own first."""
    found = []
    for report in reports:
        for subject, values in _by_subject(report).items():
            match = _SUBJECT.fullmatch(subject)
            if match and "state" in values:
                pid = int(match[2]) if match[2] else None
                found.append(_process(int(match[1]), pid, report.node, values))
    return tuple(sorted(found, key=lambda p: (p.rank, p.pid or 0)))


def read_path_answers(reports: Iterable[NodeReport]) -> tuple[PathAnswer, ...]:
    """Which nodes read the files that workers wait for."""
    return tuple(
        PathAnswer(
            report.node,
            subject.removeprefix(_PATH),
            values["path_answers"] is True,
            _number(values.get("path_s")),
        )
        for report in reports
        for subject, values in _by_subject(report).items()
        if subject.startswith(_PATH) and "path_answers" in values
    )


def _by_subject(report: NodeReport) -> Mapping[str, Mapping[str, Value]]:
    found: dict[str, dict[str, Value]] = {}
    for m in report.measured_by(LOADER_CHECK):
        found.setdefault(m.subject, {})[m.name.removeprefix("job.loader.")] = m.value
    return found


def _process(rank: int, pid: int | None, node: str, values: Mapping[str, Value]) -> LoaderProcess:
    frames = _frames(values.get("stack"))
    children = values.get("children")
    return LoaderProcess(
        rank,
        node,
        pid,
        state=_text(values, "state"),
        kernel_wait=_text(values, "kernel_wait"),
        stack=read_frames(frames),
        place=read_place(_below_worker_loop(frames)),
        moved=_flag(values, "moved"),
        apart_s=_number(values.get("apart_s")),
        sample=_text(values, "sample"),
        file=_text(values, "file"),
        mount=_text(values, "mount"),
        children=children if type(children) is int else None,
        pins_memory=_flag(values, "pins_memory"),
    )


def _frames(value: Value | None) -> list[Mapping[str, object]]:
    try:
        rows = read_foreign_json(str(value or "[]"))
    except ForeignJsonError:
        return []
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _below_worker_loop(frames: Sequence[Mapping[str, object]]) -> Iterable[Mapping[str, object]]:
    """What a worker itself called: a forked one has the frames of its rank further out."""
    return takewhile(lambda frame: frame.get("name") not in WORKER_LOOPS, frames)


def _text(values: Mapping[str, Value], name: str) -> str:
    value = values.get(name)
    return value if isinstance(value, str) else ""


def _flag(values: Mapping[str, Value], name: str) -> bool | None:
    value = values.get(name)
    return value if isinstance(value, bool) else None


def _number(value: Value | None) -> float | None:
    return float(value) if is_number(value) else None
