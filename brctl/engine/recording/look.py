"""One diagnosis as it is recorded: what was asked, what came back, and what else it judged by."""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime
from pathlib import PurePosixPath

import msgspec

from brctl.evidence.kernel_line import YEARS
from brctl.library.file_tables import ASK_NCCL
from brctl.model.command import CommandResult, Outcome
from brctl.model.inventory import Inventory
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_look import JobLook
from brctl.model.jobs.job_run_state import JobRunState
from brctl.model.sweeps.report import NodeReport
from brctl.model.verdict import Verdict
from brctl.playbook.tree import IncidentHistory

RANKS_LIMIT, NODES_LIMIT = 1 << 20, 100_000
_FILE_NAME = re.compile(r"[^./\x00-\x1f\x7f][^/\x00-\x1f\x7f]{0,99}")
_FILE_NAME_BYTES = 200
"""A replay keeps its state in files named so; none may lead out of its folder."""


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """One node's answer to one command; text as text, so that it can be searched.

    Attributes:
        asks: What the command wanted to know; see `Command.asks`.
        packed: Which of stdout and stderr are base64, because they are no text.
    """

    node: str
    asks: tuple[str, ...]
    outcome: Outcome
    exit_status: int | None
    seconds: float
    came_at: datetime
    detail: str = ""
    stdout: str = ""
    stderr: str = ""
    packed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TriedBefore:
    """What was known of an incident besides the case of one verdict."""

    fault: str
    nodes: tuple[str, ...]
    history: IncidentHistory


@dataclass(frozen=True, slots=True)
class Look:
    """All of a diagnosis but the answers.

    Attributes:
        made_by: The version that looked.
        clock: Every reading of the controller's clock, in order.
        before: What these nodes had answered last.
        against: The check and the sentence of each that showed a warning or worse.
        schedulers: Each answer of the scheduler, in order.
        heavy: Of the checks above level 1 those that were asked; empty for all.
        site: The site's own checks, log rules and baseline, by path below its library.
        verdicts: What was told.
        clock_ahead_s: By how much each node's clock was ahead of this one's when it answered; the
            time its answer travelled is in it.
        versions: Of what looked: Python, and the packages that read and packed.
        nccl_ras: What the settings said about asking NCCL of a stalled job.
    """

    id: str
    made_by: str
    context: str
    level: int
    fanout: int
    gateways: str
    nodes: tuple[str, ...]
    job: Job | None
    inventory: Inventory
    scheduler: str
    clock: tuple[datetime, ...]
    before: Mapping[str, NodeReport]
    against: Mapping[str, tuple[str, str]]
    job_look: JobLook | None
    schedulers: tuple[JobRunState | None, ...]
    tried: tuple[TriedBefore, ...]
    site: Mapping[str, str]
    verdicts: tuple[Verdict, ...]
    clock_ahead_s: Mapping[str, float] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    nccl_ras: str = ASK_NCCL[0]
    heavy: tuple[str, ...] = ()


def answer_of(asks: tuple[str, ...], result: CommandResult, came_at: datetime) -> RecordedAnswer:
    """An answer as it is recorded."""
    stdout, stderr = _as_text(result.stdout), _as_text(result.stderr)
    packed = (("stdout", stdout[1]), ("stderr", stderr[1]))
    return RecordedAnswer(
        result.node, asks, result.outcome, result.exit_status, result.seconds, came_at,
        result.detail, stdout[0], stderr[0], tuple(name for name, is_packed in packed if is_packed),
    )  # fmt: skip


def _as_text(raw: bytes) -> tuple[str, bool]:
    """Bytes as text, and whether they had to be packed for that."""
    try:
        return raw.decode(), False
    except UnicodeDecodeError:
        return base64.b64encode(raw).decode(), True


def result_of(answer: RecordedAnswer) -> CommandResult:
    """What the transport said then."""
    return CommandResult(
        answer.node, answer.outcome, answer.exit_status, _raw(answer, "stdout"),
        _raw(answer, "stderr"), answer.seconds, answer.detail, came_at=answer.came_at,
    )  # fmt: skip


def _raw(answer: RecordedAnswer, name: str) -> bytes:
    text: str = getattr(answer, name)
    if name not in answer.packed:
        return text.encode("utf-8", "replace")
    try:
        return binascii.a2b_base64(text)
    except ValueError:
        return b""


def _encode(value: object) -> object:
    if isinstance(value, PurePosixPath):
        return str(value)
    raise NotImplementedError(type(value))


def _decode(kind: type, value: object) -> object:
    if kind is PurePosixPath and isinstance(value, str):
        return PurePosixPath(value)
    raise ValueError("a path is no text")


_encoder = msgspec.json.Encoder(enc_hook=_encode, order="deterministic")
_look = msgspec.json.Decoder(Look, dec_hook=_decode)
_answer = msgspec.json.Decoder(RecordedAnswer)


def encode(value: Look | RecordedAnswer) -> bytes:
    """One line of JSON, the same for the same value."""
    return _encoder.encode(value)


def read_look(raw: bytes) -> Look:
    """A recorded look.

    Raises:
        ValueError: It is none, or does not fit together.
    """
    try:
        look = _look.decode(raw)
    except RecursionError as exc:
        raise ValueError("it is nested too deep") from exc
    if not look.clock:
        raise ValueError("no reading of the clock")
    _check_names((look.id, look.context, *((look.job.name,) if look.job else ())))
    received = tuple(report.received_at for report in look.before.values())
    _check_moments((look.clock, look.job_look, received, look.verdicts))
    named = {*look.nodes, *(look.job.nodes if look.job else ())}
    strangers = sorted(named - set(look.inventory.nodes))
    if strangers:
        raise ValueError(f"node {strangers[0]!r} is not in its inventory")
    if len(look.inventory.nodes) > NODES_LIMIT:
        raise ValueError(f"more than {NODES_LIMIT} nodes")
    if look.job and not 0 < look.job.world_size <= RANKS_LIMIT:
        raise ValueError(f"a job of {look.job.world_size} ranks")
    return look


def read_answers(raw: bytes) -> Iterable[RecordedAnswer]:
    """RecordedLook answers, one a line.

    Raises:
        ValueError: A line is none.
    """
    try:
        answers = [_answer.decode(line) for line in raw.split(b"\n") if line]
    except RecursionError as exc:
        raise ValueError("it is nested too deep") from exc
    _check_moments(tuple(answer.came_at for answer in answers))
    return answers


def _check_names(names: Iterable[str]) -> None:
    """The look, its context and its job name files of a replay."""
    for name in names:
        if not _FILE_NAME.fullmatch(name) or len(name.encode()) > _FILE_NAME_BYTES:
            raise ValueError(f"{name[:80]!r} cannot name a file")


def _check_moments(values: object) -> None:
    """Moments are subtracted from another: one without a zone, or at the calendar's end, cannot."""
    for moment in _moments(values):
        if moment.tzinfo is None or moment.year not in YEARS:
            raise ValueError(
                f"{moment.isoformat()} is no moment: it needs a zone, and a year from {YEARS[0]} "
                f"to {YEARS[-1]}"
            )


def _moments(value: object) -> Iterator[datetime]:
    if isinstance(value, datetime):
        yield value
    elif is_dataclass(value):
        for part in fields(value):
            yield from _moments(getattr(value, part.name))
    elif isinstance(value, tuple):
        for item in value:
            yield from _moments(item)
