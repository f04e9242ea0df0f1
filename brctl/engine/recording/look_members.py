"""The members of a look in an archive, redacted: secrets leave no text that is written here."""

import base64
import json
from collections.abc import Iterator
from dataclasses import replace

import msgspec

from brctl.engine.recording.look import RecordedAnswer, encode
from brctl.engine.recording.ring import RecordedLook
from brctl.model.jobs.job import Job
from brctl.view.redact import HIDDEN, Redactor

KEPT_VARIABLES = (
    "NCCL_", "CUDA_", "TORCH_", "TORCHELASTIC_", "UCX_", "OMP_", "MASTER_", "RANK", "WORLD_SIZE",
    "LOCAL_", "BRCTL_",
)  # fmt: skip
"""Variables of a job whose values are of use; of all others only the name leaves."""


def look_members(
    recorded: RecordedLook, redactor: Redactor, cuts: list[str]
) -> Iterator[tuple[str, bytes]]:
    """Names and contents; what had to stay here is told in `cuts`."""
    look = recorded.look
    look = replace(look, job=_known_variables(look.job, redactor))
    plain = redactor.document(json.loads(encode(look)))
    yield look_name(look.id), msgspec.json.encode(plain)
    lines = [_redacted(answer, redactor) for answer in recorded.answers]
    emptied = sum(map(_emptied, recorded.answers, lines))
    damaged = sum(map(_damaged, recorded.answers))
    if emptied > damaged:
        held = emptied - damaged
        cuts.append(f"look {look.id}: outputs that are no text and hold a secret: {held}")
    if damaged:
        cuts.append(f"look {look.id}: outputs that say they are base64 and are none: {damaged}")
    yield answers_name(look.id), b"".join(encode(line) + b"\n" for line in lines)


def look_name(look: str) -> str:
    """Where an archive keeps all of a look but its answers."""
    return f"looks/{look}/look.json"


def answers_name(look: str) -> str:
    """Where an archive keeps the answers of a look, one a line."""
    return f"looks/{look}/answers.ndjson"


def _redacted(answer: RecordedAnswer, redactor: Redactor) -> RecordedAnswer:
    """Texts are redacted; of bytes that are no text, those that hold a secret stay here."""
    stdout, stderr = (
        _harmless(text, redactor) if name in answer.packed else _by_line(text, redactor)
        for name, text in (("stdout", answer.stdout), ("stderr", answer.stderr))
    )
    node = redactor.rename(answer.node) if redactor.rename else answer.node
    detail = redactor.text(answer.detail)
    return replace(answer, node=node, stdout=stdout, stderr=stderr, detail=detail)


def _emptied(answer: RecordedAnswer, redacted: RecordedAnswer) -> int:
    """How many of its outputs that are no text stay here."""
    outputs = ((answer.stdout, redacted.stdout), (answer.stderr, redacted.stderr))
    return sum(bool(before) and not after for before, after in outputs)


def _harmless(packed: str, redactor: Redactor) -> str:
    """Bytes in base64, or nothing: a secret cut out of them would leave something unreadable."""
    plain = _unpacked(packed)
    return packed if plain is not None and redactor.text(plain) == plain else ""


def _damaged(answer: RecordedAnswer) -> int:
    """How many of its outputs are no base64, though they say so; no replay reads them either."""
    outputs = (("stdout", answer.stdout), ("stderr", answer.stderr))
    return sum(name in answer.packed and _unpacked(text) is None for name, text in outputs)


def _unpacked(packed: str) -> str | None:
    try:
        return base64.b64decode(packed).decode("latin-1")
    except ValueError:
        return None


def _by_line(text: str, redactor: Redactor) -> str:
    """A runner's lines are JSON each; one that is none must not keep the others from being read."""
    if not text.startswith("{"):
        return redactor.text(text)
    return "\n".join(str(redactor.document(line)) for line in text.split("\n"))


def _known_variables(job: Job | None, redactor: Redactor) -> Job | None:
    if job is None:
        return None
    kept = {
        name: value if name.startswith(KEPT_VARIABLES) else HIDDEN
        for name, value in job.environment.items()
    }
    redactor.taken["variable"] += sum(kept[name] != job.environment[name] for name in kept)
    return replace(job, environment=kept)
