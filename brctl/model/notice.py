"""What people outside are told: one fault, one key, from the first page to the resolve."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from brctl.model.nodeset import fold
from brctl.model.verdict import Verdict

KEY_LIMIT = 255
"""PagerDuty's limit for `dedup_key`."""


class NoticeEvent(StrEnum):
    """What happened; the words of `when:` in the configuration."""

    VERDICT_HIGH = "verdict.high"
    RUN_WAITING = "run.waiting"
    RUN_NEEDS_HUMAN = "run.needs_human"
    RUN_STARTED = "run.started"
    RUN_ENDED = "run.ended"
    TRAINING_ADVANCED = "training.advanced"
    TEST = "test"


class NoticeState(StrEnum):
    """What it means for the fault that the key names."""

    FIRING = "firing"
    ACKNOWLEDGED = "acknowledged"
    RESOLVED = "resolved"
    INFO = "info"


OPEN_STATES = frozenset({NoticeState.FIRING, NoticeState.ACKNOWLEDGED})
MARKS = 50


class PageSeverity(StrEnum):
    """PagerDuty's four words."""

    CRITICAL = "critical"
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Memory:
    """What a sink was told last under one key.

    Attributes:
        marks: Everything that was told since the fault was opened.
        ref: What the sink needs to reach the same thing again: a message, a set of labels.
    """

    state: NoticeState
    marks: tuple[str, ...]
    at: datetime
    ref: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        return self.state in OPEN_STATES

    def after(
        self, state: NoticeState, mark: str, at: datetime, ref: Mapping[str, str]
    ) -> "Memory":
        """What is remembered after one more notice; information opens and closes nothing."""
        if not self.is_open:
            return Memory(state, (mark,), at, ref)
        now = self.state if state is NoticeState.INFO else state
        return Memory(now, (*self.marks, mark)[-MARKS:], at, ref or self.ref)


def verdict_key(context: str, verdict: Verdict) -> str:
    """The key of a verdict's fault, the same for every run that acts on it."""
    return dedup_key(context, verdict.job or fold(verdict.nodes), verdict.fault.value)


def dedup_key(context: str, subject: str, fault: str) -> str:
    """`brctl/<context>/<job or nodes>/<class>`, never longer than KEY_LIMIT.

    Examples:
        >>> dedup_key("prod-a", "48213", "gpu-lost")
        'brctl/prod-a/48213/gpu-lost'
    """
    key = f"brctl/{context}/{subject or '-'}/{fault or '-'}"
    if len(key) <= KEY_LIMIT:
        return key
    tail = hashlib.sha256(key.encode()).hexdigest()[:16]
    return f"{key[: KEY_LIMIT - 17]}~{tail}"
